"""Kill the process of a recorded RLM at each of its requests: ``python -m tests.modules.code.lives MODE``.

This process forks each life and opens no interpreter itself. It prints the requests that were answered, for each kill.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sigwire import FakeLM, Journal, Predict, Tool
from sigwire.modules.code.rlm import RLM

__all__ = ["REQUESTS", "RESULT", "is_killed", "reading_program", "recorded", "write"]

REQUESTS = ["turn", "one", "turn", "a", "b", "c", "turn"]
RESULT = {"text": "ONE A B C", "size": 3}
CODE = (
    "first = llm_query('one')\nsize = measure(log)",
    "rest = llm_query_batched(['a', 'b', 'c'])",
    "submit(text=' '.join([first, *rest]), size=size)",
)


def reading_program(asked: Callable[[str], None], measured: Callable[[], None]) -> Any:
    """Return the program. ``asked`` is called before each answer of the model, ``measured`` in the tool."""

    def answer(request: Any) -> Any:
        text = request.messages[-1].text
        if len(request.messages) == 1:
            asked(text)
            return text.upper()
        asked("turn")
        return {"reasoning": "r", "code": CODE[(len(request.messages) - 2) // 2]}

    def measure(text: str) -> int:
        measured()
        return len(text)

    program = RLM("log -> text, size: int", tools=[Tool(measure)], parallel=1)
    program.set_lm(FakeLM(answer))
    return program


def recorded(mode: str, journal: Journal, program: Any) -> dict[str, Any]:
    """Run the program with a journal; return its outputs."""
    result: Any
    if mode == "sync":
        result = journal.run(program, "one", log="abc")
    elif mode == "async":
        result = asyncio.run(journal.arun(program, "one", log="abc"))
    else:
        result = [event.value for event in journal.stream(program, "one", log="abc") if hasattr(event, "value")][-1]
    return {"text": result.text, "size": result.size}


def live(folder: Path, mode: str, kill_at: int) -> None:
    """Run the program, or go on with it. The process is killed before the answer number ``kill_at`` of this life."""
    ledger, count = folder / "asked", 0

    def asked(text: str) -> None:
        nonlocal count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        write(ledger, text)

    with Journal(folder / "runs.sqlite3") as journal:
        outputs = recorded(mode, journal, reading_program(asked, lambda: write(folder / "measured", "run")))
    (folder / "result").write_text(json.dumps(outputs))


def write(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(f"{text}\n")


def is_killed(live: Callable[[], None]) -> bool:
    """Fork a life; return True if it was killed."""
    child = os.fork()
    if child == 0:
        try:
            live()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert not (os.WIFEXITED(status) and os.WEXITSTATUS(status)), "a life failed"
    return os.WIFSIGNALED(status)


def load() -> None:
    """Load what a life needs, except an interpreter's processes, which a fork must not inherit."""
    import pydantic_monty  # noqa: F401

    reading_program(lambda text: None, lambda: None).generate_action(functions="", variables="")
    with tempfile.TemporaryDirectory() as name, Journal(Path(name) / "runs.sqlite3") as journal:
        journal.run(Predict("log -> text", lm=FakeLM([{"text": ""}])), "one", log="")


def main() -> None:
    load()
    for number in range(1, len(REQUESTS) + 1):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            killed, again = (is_killed(partial(live, folder, sys.argv[1], kill_at)) for kill_at in (number, 0))
            lines = [(folder / file).read_text().split() for file in ("asked", "measured")]
            print(json.dumps([killed, not again, *lines, json.loads((folder / "result").read_text())]))


if __name__ == "__main__":
    main()
