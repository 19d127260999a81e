"""Kill the process of a recorded run that folds, at its requests: ``python -m tests.modules.context.kills MODE COUNT``.

Each run is killed once, after the model has answered a request and before the answer is recorded, and then started again. It
prints the number of requests of a run that nothing disturbs. ``COUNT``: how many of its requests are killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sigwire import AgentRun, Compaction, Journal
from sigwire.compaction import clear_results, summarize
from tests.modules.code.lives import is_killed, write
from tests.modules.context.test_folding import agent_of, reading
from tests.modules.context.worlds import World

__all__ = ["killed_runs"]


class Killed(World):
    """Writes a line for each request, and kills the process at one of them: before its answer is returned."""

    def __init__(self, folder: Path, kill_at: int) -> None:
        super().__init__(reading(24), 2000)
        self.folder, self.kill_at, self.number = folder, kill_at, 0

    def _answer(self, request: Any) -> Any:
        self.number += 1
        write(self.folder / "asked", "summary" if self.is_summary(request) else f"turn {len(request.messages)}")
        response = super()._answer(request)
        if self.number == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        usage = replace(response.usage, cached_tokens=(response.usage.input_tokens or 0) // 2)
        return replace(response, usage=usage)


def recorded(journal: Journal, agent: Any, mode: str) -> Any:
    if mode == "sync":
        return journal.run(agent, "one", question="Read.")
    if mode == "async":
        return asyncio.run(journal.arun(agent, "one", question="Read."))
    return [event.value for event in journal.stream(agent, "one", question="Read.") if hasattr(event, "value")][-1]


def live(folder: Path, mode: str, kill_at: int) -> None:
    """Be one life of the run's process."""
    agent = agent_of(Killed(folder, kill_at), compaction=Compaction([clear_results(), summarize()], window=2000))
    with Journal(folder / "runs.sqlite3") as journal:
        result = recorded(journal, agent, mode)
    history = AgentRun.of(result).history
    data = {"answer": result.answer, "history": history.to_json(), "attempts": len(result.attempts)}
    (folder / "result").write_text(json.dumps(data))


def asked(folder: Path) -> list[str]:
    return (folder / "asked").read_text().splitlines()


def killed_runs(mode: str, count: int) -> int:
    """Kill ``count`` runs, each at another request; return the number of requests of a whole run."""
    with tempfile.TemporaryDirectory() as folder:
        assert not is_killed(partial(live, Path(folder), mode, 0))
        whole, expected = asked(Path(folder)), json.loads(Path(folder, "result").read_text())
    assert whole.count("summary") == len(expected["history"]["folds"]) >= 2
    for number in range(count):
        at = 1 + number * len(whole) // count
        with tempfile.TemporaryDirectory() as folder:
            assert is_killed(partial(live, Path(folder), mode, at))
            assert not is_killed(partial(live, Path(folder), mode, 0))
            assert json.loads(Path(folder, "result").read_text()) == expected
            # Only the request that was killed before its answer was recorded is made again.
            lines = asked(Path(folder))
            assert sorted([*whole, whole[at - 1]]) == sorted(lines), (at, lines)
    return len(whole)


if __name__ == "__main__":
    print(killed_runs(sys.argv[1], int(sys.argv[2])))
