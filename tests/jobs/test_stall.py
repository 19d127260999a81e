"""A run ends as stalled only if no row ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.jobs.job import Job
from sigwire.jobs.submissions import EndedChunk, Submissions


def test_run_goes_on_while_workers_write_to_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, next_ended = list[str](), Submissions.next_ended

    def slow(self: Submissions) -> EndedChunk | None:
        if len(lines) == 5:
            return next_ended(self)
        lines.append("{}\n")
        block = tmp_path / "out.jsonl.journal" / "slow"
        block.mkdir(parents=True, exist_ok=True)
        (block / "worker.jsonl").write_text("".join(lines))
        return None

    monkeypatch.setattr(Submissions, "next_ended", slow)
    with ThreadPoolExecutor(1) as pool:
        job = Job(program="tests.jobs.app:shout")
        result = map_rows(job, [{"question": "a"}, {"question": "b"}], tmp_path / "out.jsonl", executor=pool)
    assert (result.status, result.rows) == ("complete", 2)
