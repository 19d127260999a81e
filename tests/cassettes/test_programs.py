"""Every program of ``examples`` and of the quickstart page, recorded once and replayed without a model, a tool or a network.

A program added to ``examples`` is tested as it is. ``CASSETTES`` has recordings for review; a changed prompt or answer fails
here. ``SIGWIRE_RECORD=1 pytest -m "" tests/cassettes/test_programs.py`` writes them again.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

import sigwire
from sigwire import Cassette
from sigwire.cassettes.cassette import CassetteMode
from sigwire.lm.fake import FakeLM
from sigwire.testing import FakeProvider
from tests.test_docs import blocks
from tests.test_examples import endpoints

ROOT = Path(__file__).resolve().parents[2]
CASSETTES = Path(__file__).with_name("cassettes") / Path(__file__).stem
PAGE = ROOT / "docs" / "quickstart.md"
APART = {
    "evaluate_and_compare.md": "a cell kills its evaluation at a point that threads decide",
    "resume_agent.py": "its runs are processes of their own, which are killed",
    "team.py": "a call waits while it is recorded; a replay gives its result at once",
}
LONG = {
    "experiment.md",
    "experiment.py",
    "optimize.md",
    "optimize_extraction.py",
    "optimize_tools.py",
    "quickstart.py",
    "shop_both_ways.py",
    "triage.py",
}
STORED = {"quickstart.md", "stream_agent.py"}
TIMES = re.compile(
    r"(?m)^(  (?:baseline|optimized) .*?) +(?:[\d.]+ [µm]?s|[\d:]+)$|(; )[\d,]+ to [\d,]+, about [\d,]+ tokens"
)
"""The seconds of an evaluation are the last column of its table; a plan's tokens are corrected by the calls before it."""


# --- what a program prints -------------------------------------------------------------------------------


def check_quickstart(text: str, folder: Path) -> None:
    assert "Every check passed." in text
    assert "FAILED" not in text
    rows = [line for line in text.splitlines() if line.startswith("│")]
    for endpoint in endpoints():
        (row,) = [row for row in rows if f" {endpoint.model} " in row and f" {endpoint.wire} " in row]
        assert row.rstrip(" │").endswith(" same")


def check_stream_agent(text: str, folder: Path) -> None:
    assert "Every stream came to the same answer." in text
    assert "FAILED" not in text
    wires = [f"{to.model} over {to.wire}" for to in endpoints() if to.needs is None]
    printed = text.splitlines()
    for title in [*wires, *(f"calls as text: {dialect}" for dialect in ("hermes", "mistral", "qwen3_coder"))]:
        assert title in printed
    assert (len(wires), printed.count("  ok")) == (5, 8)
    assert printed.count('    convert_weight {"value":16.7,"from_unit":"kilograms","to_unit":"pounds"}') == 8


def check_optimize_extraction(text: str, folder: Path) -> None:
    assert "60 messages for training, 48 for the choice, 60 for the test" in text
    assert text.count("The plan: ") == 2
    assert "The student is kept (no candidate was shown to be better)" in text
    assert re.search(r"optimized is better than baseline: \+0\.\d+, 97\.5 % \+0\.\d+ …", text.splitlines()[-1])
    again = printed(ROOT / "examples" / "optimize_extraction.py", folder)  # from the journal
    assert TIMES.sub(r"\1\2", again) == TIMES.sub(r"\1\2", text)


def check_optimize_tools(text: str, folder: Path) -> None:
    assert "48 requests for training, 32 for the choice, 40 for the test" in text
    assert "self.tools.rma_create.desc" in text
    assert "Open inbound [-RMA.-]{+RMA. " in text
    *_, test, report = text.splitlines()
    assert "<!doctype html>" in (folder / report.removeprefix("The report: ")).read_text(encoding="utf-8").lower()
    found = re.fullmatch(r"The test: (.*) → (.*) on 40 test rows, .* \[(.*), .*\]", test)
    assert found is not None
    assert float(found[1]) < float(found[2])
    assert float(found[3]) > 0


def check_experiment(text: str, folder: Path) -> None:
    assert text.startswith("12 points, 360 to 720, about 720 calls; ≈ $0, at most $0")
    assert re.search(r"direct · demos is better than direct · none: \+0\.\d+, .* × 3 seeds\)\.", text)
    assert "direct · none & 0.250 & " in text
    assert "reasons · demos & \\textbf{0." in text
    page = (folder / text.splitlines()[-1]).read_text(encoding="utf-8")
    assert "reasons · demos" in page
    again = printed(ROOT / "examples" / "experiment.py", folder)  # from the folder
    assert again.startswith("0 points, 0 calls")
    assert again.partition("\nExperiment")[2] == text.partition("\nExperiment")[2]


def check_shop_both_ways(text: str, folder: Path) -> None:
    table, _, verdict = text.strip().rpartition("\n")
    assert verdict == "All answers are right."
    assert table in (ROOT / "docs" / "code.md").read_text(encoding="utf-8")


CHECKS: Mapping[str, Callable[[str, Path], None]] = {
    "experiment.py": check_experiment,
    "optimize_extraction.py": check_optimize_extraction,
    "optimize_tools.py": check_optimize_tools,
    "quickstart.py": check_quickstart,
    "shop_both_ways.py": check_shop_both_ways,
    "stream_agent.py": check_stream_agent,
}


# --- how it runs -----------------------------------------------------------------------------------------


def programs() -> Iterator[Any]:
    """Yield the programs that a user starts."""
    paths = [PAGE, *(ROOT / "examples" / "notebooks").glob("*.md"), *(ROOT / "examples").glob("*.py")]
    for path in sorted(paths):
        starts = path.suffix == ".md" or '__name__ == "__main__"' in path.read_text(encoding="utf-8")
        if starts and path.name not in APART:
            yield pytest.param(path, id=path.name, marks=[pytest.mark.long] if path.name in LONG else [])


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A folder without files, the modules of ``examples``, and settings that are restored."""
    before = {key: sigwire.settings[key] for key in sigwire.settings}
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("SIGWIRE_LM", raising=False)
    yield
    sigwire.configure(**before)
    _forget_modules()


def _forget_modules() -> None:
    for name, module in [*sys.modules.items()]:
        if str(ROOT / "examples") in str(getattr(module, "__file__", None)):
            del sys.modules[name]


def printed(program: Path, folder: Path) -> str:
    """Run a program in a folder; return what it prints."""
    _forget_modules()
    out, err = io.StringIO(), io.StringIO()
    folder.mkdir(exist_ok=True)
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        if program.suffix == ".md":
            namespace: dict[str, Any] = {"__name__": "page"}
            for block in blocks(program):
                if block.runs:
                    exec(compile(block.source, str(program), "exec", dont_inherit=True), namespace)
        else:
            with pytest.raises(SystemExit) as end:
                runpy.run_path(str(program), run_name="__main__")
            assert end.value.code in (0, None), out.getvalue() + err.getvalue()
    return out.getvalue()


class Received:
    """The requests that fake providers and scripted models received, by the order in which these were made.

    A replay asks none of them; what a program reads there is what its recording had received.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.recorded: list[Any] = []
        self._replayed: list[Any] = []
        self._is_replay = False
        for kind in (FakeProvider, FakeLM):
            monkeypatch.setattr(kind, "__init__", self._noted(kind.__init__))
        self._read = FakeProvider.requests.__get__
        monkeypatch.setattr(FakeProvider, "requests", property(self._requests))

    def replay(self) -> None:
        self._is_replay = True

    def _noted(self, make: Callable[..., None]) -> Callable[..., None]:
        def init(it: Any, *args: Any, **kwargs: Any) -> None:
            make(it, *args, **kwargs)
            made = self._replayed if self._is_replay else self.recorded
            made.append(it)
            if self._is_replay and isinstance(it, FakeLM):
                it.requests = self.recorded[len(made) - 1].requests

        return init

    def _requests(self, it: FakeProvider) -> Any:
        return self._read(self.recorded[self._replayed.index(it)] if self._is_replay else it)


def _closed(*_: object) -> NoReturn:
    raise AssertionError("a replay connects to nothing")


def timeless(line: Any) -> Any:
    """Return a line of a cassette without times, which differ from run to run."""
    if isinstance(line, list):
        return [timeless(each) for each in line]
    if not isinstance(line, dict):
        return line
    kept = {name: timeless(value) for name, value in line.items() if name not in ("at", "seconds", "queued", "first")}
    return kept | {"cuts": [[0, length] for _, length in kept["cuts"]]} if "cuts" in kept else kept


def lines(path: Path) -> list[str]:
    """Return the lines of a cassette in an order that threads do not change, without their numbers and sigwire's version."""
    found: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return sorted(json.dumps({name: 0 if name in ("lm", "tool") else line[name] for name in line}) for line in found)


@pytest.mark.parametrize("program", [*programs()])
def test_program_prints_the_same_from_its_cassette(
    program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if "import rich" in (source := program.read_text(encoding="utf-8")) or "from rich" in source:
        pytest.importorskip("rich")
    received, path, stored = Received(monkeypatch), tmp_path / "fresh.jsonl", CASSETTES / f"{program.name}.jsonl"
    redact = timeless if program.name in STORED else None

    def run(mode: CassetteMode) -> str:
        with Cassette(path, mode, strict=True, redact=redact):
            return printed(program, tmp_path / mode)

    first = run("record")
    if program.name in STORED and os.environ.get("SIGWIRE_RECORD"):
        stored.parent.mkdir(exist_ok=True)
        shutil.copy(path, stored)
    assert "any key" not in path.read_text(encoding="utf-8")
    if program.name in CHECKS:
        CHECKS[program.name](first, tmp_path / "record")
    received.replay()
    monkeypatch.setattr(socket.socket, "connect", _closed)
    assert TIMES.sub(r"\1\2", run("replay")) == TIMES.sub(r"\1\2", first)
    if program.name in STORED:
        assert lines(path) == lines(stored), f"the recording is out of date: {stored.relative_to(ROOT)}"
