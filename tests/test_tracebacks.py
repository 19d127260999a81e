"""Tracebacks of errors as people see them: lines of the user, and none of the library, unless all are wanted."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.errors import SigwireError
from sigwire.tracebacks import render, shortened

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = str(ROOT / "sigwire")


class Outer(sigwire.Module):
    """A program of the user around a predictor."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = unreadable()

    def forward(self, question: str) -> Any:
        return self.inner(question=question)


def unreadable() -> sigwire.Predict:
    return sigwire.Predict("question -> answer: int", lm=sigwire.FakeLM(["no number"]))


def stream(program: Any) -> None:
    with program.stream(question="2+2?") as events:
        list(events)


def raise_in_a_tool() -> None:
    def convert(amount: float) -> float:
        """Convert."""
        raise sigwire.ConfigurationError("no rates")

    sigwire.Tool(convert)(amount=1.0)


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "missing key": (lambda: sigwire.LM("openai/gpt-4.1")("Hi"), ""),
    "unknown type": (lambda: sigwire.Predict("question -> answer: Frob"), ""),
    "parse error": (lambda: unreadable()(question="2+2?"), ""),
    "parse error, awaited": (lambda: asyncio.run(unreadable().acall(question="2+2?")), ""),
    "parse error, streamed": (lambda: stream(unreadable()), "list(events)"),
    "parse error, nested": (lambda: Outer()(question="2+2?"), "return self.inner(question=question)"),
    "parse error, nested and streamed": (lambda: stream(Outer()), "return self.inner(question=question)"),
    "input": (lambda: unreadable()(qestion="2+2?"), ""),
    "setting": (lambda: sigwire.configure(lmm=3), ""),
    "unreadable file": (lambda: sigwire.load_examples("none.pdf"), ""),
    "tool": (raise_in_a_tool, 'raise sigwire.ConfigurationError("no rates")'),
}


@pytest.fixture(autouse=True)
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("SIGWIRE_TRACEBACK", raising=False)


def error_of(case: str) -> tuple[SigwireError, str]:
    """Return the error of a case, and the line of the user's code that is shown last."""
    call, last = CASES[case]
    with pytest.raises(SigwireError) as caught:
        call()
    return caught.value, last


@pytest.mark.parametrize("case", CASES)
def test_error_is_shown_without_frames_of_the_library(case: str) -> None:
    error, last = error_of(case)
    shown = "".join(render(error))
    assert LIBRARY not in shown
    assert "sigwire not shown: SIGWIRE_TRACEBACK=full shows all)" in shown
    assert __file__ in shown
    assert last in shown


@pytest.mark.parametrize("case", ["parse error", "parse error, nested"])
def test_error_keeps_its_whole_traceback_and_its_notes(case: str) -> None:
    error, _ = error_of(case)
    before, notes = traceback.format_exception(error), [*error.__notes__]
    render(error)
    assert traceback.format_exception(error) == before
    assert error.__notes__ == notes
    assert LIBRARY in "".join(before)


def test_variable_of_the_environment_shows_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    error, _ = error_of("unknown type")
    monkeypatch.setenv("SIGWIRE_TRACEBACK", "full")
    assert render(error) == traceback.format_exception(error)


def test_frames_of_the_user_in_a_cause_stay() -> None:
    def broken(request: object) -> Any:
        raise KeyError("topic")

    with pytest.raises(KeyError) as caught:
        sigwire.Predict("question -> answer", lm=sigwire.FakeLM(broken))(question="2+2?")
    error = SigwireError("no answer")
    error.__cause__ = caught.value
    assert LIBRARY in "".join(traceback.format_exception(error))
    shown = "".join(render(error))
    assert 'raise KeyError("topic")' in shown
    assert LIBRARY not in shown


def test_causes_in_a_circle_end() -> None:
    first, second = SigwireError("first"), SigwireError("second")
    first.__cause__, second.__cause__ = second, first
    with shortened(first):
        assert str(first) == "first"


SCRIPT = """
import sys
import sigwire
{before}
def main():
    sigwire.Predict("question -> answer: Frob")
main()
"""


@pytest.mark.parametrize(
    ("before", "lines"),
    [("", 7), ("sys.excepthook = lambda *error: print('hook of the user', file=sys.stderr)", 1)],
)
def test_program_that_ends_with_an_error_shows_few_lines_unless_it_has_a_hook(before: str, lines: int) -> None:
    command = [sys.executable, "-c", SCRIPT.format(before=before)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == lines, done.stderr
    assert LIBRARY not in done.stderr


CELLS = """
import os
os.environ.pop("OPENAI_API_KEY", None)
import sigwire
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
shell.run_cell("import sigwire")
for cell in (
    "sigwire.LM('openai/gpt-4.1')('Hi')",
    "sigwire.Predict('question -> answer: Frob')",
    "sigwire.Predict('question -> answer: int', lm=sigwire.FakeLM(['no']))(question='2+2?')",
    "sigwire.Predict('question -> answer', lm=sigwire.FakeLM(['no']))(qestion='2+2?')",
):
    print("CELL")
    shell.run_cell(cell)
"""


def test_ipython_shows_at_most_twelve_lines_of_an_error(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    command = [sys.executable, "-c", CELLS]
    environment = {"IPYTHONDIR": str(tmp_path), "PATH": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    _, *cells = done.stdout.split("CELL\n")
    assert [len(cell.strip().splitlines()) <= 12 for cell in cells] == [True] * 4, done.stdout
    assert LIBRARY not in done.stdout
    assert [name in cell for name, cell in zip(NAMES, cells, strict=True)] == [True] * 4


NAMES = ("LMAuthenticationError", "SignatureError", "AdapterParseError", "InputError")
