"""Kill the process of a recorded ``CodeAct`` at each call of its code: ``python -m tests.modules.code.act_kills``.

A chain is one run whose lives are killed one call further each, until a life reaches the end. This process forks each life and
opens no interpreter itself. It prints a line for each chain: kills, calls of the tool, requests, result.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from sigwire import ApprovalNeeded, CodeAct, FakeLM, Journal, Predict, Tool
from tests.journal.order import run as run_recorded
from tests.modules.code.lives import is_killed, write

__all__ = ["CALLS", "CHAINS"]

CHAINS = (("sync", 2), ("async", 3), ("stream", 2), ("astream", 3))
"""The mode of each chain and the moment of its kills: 2 is after the effect of a call, 3 before that of the next call."""
CALLS = [*range(8), *range(13, 18)]
CODE = (
    "import random\nkept = [n for n in range(8) if reserve(n) > 2]\nprint(kept, random.random())",
    "for n in kept:\n    try:\n        check(n)\n    except KeyError as error:\n        print('refused', error)\n"
    "    reserve(n=n + 10)\nsubmit(answer=sum(kept))",
)


def agent(folder: Path, kill_at: int) -> Any:
    moments = 0

    def moment() -> None:
        nonlocal moments
        moments += 1
        if moments == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def reserve(n: int) -> int:
        moment()
        write(folder / "calls", str(n))
        moment()
        return n

    def check(n: int) -> bool:
        if n % 2:
            raise KeyError(n)
        return True

    def answer(request: Any) -> Any:
        turn = sum(message.role == "assistant" for message in request.messages)
        write(folder / "asked", str(turn))
        return {"reasoning": "r", "code": CODE[turn]}

    made: Any = CodeAct("order -> answer: int", tools=[Tool(reserve), Tool(check, on_crash="rerun")])
    made.set_lm(FakeLM(answer))
    return made


def lines(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def live(folder: Path, mode: str, kill_at: int) -> None:
    """Be one life of the run's process; decide by the calls that took effect."""
    with Journal(folder / "runs.sqlite3") as journal:
        while True:
            try:
                result = run_recorded(journal, agent(folder, kill_at), mode)
                break
            except ApprovalNeeded as error:
                done = lines(folder / "calls")
                n = error.pending[0].arguments["n"]
                journal.decide(
                    "order-1042", {call.id: {"result": n} if n in done else "rerun" for call in error.pending}
                )
    values = [call.content for step in result.steps for call in step.results]
    (folder / "result").write_text(json.dumps([result.answer, values]))


def load() -> None:
    """Load what a life needs, except an interpreter's processes, which a fork must not inherit."""
    import pydantic_monty  # noqa: F401

    with tempfile.TemporaryDirectory() as name, Journal(Path(name) / "runs.sqlite3") as journal:
        agent(Path(name), 0)
        journal.run(Predict("log -> text", lm=FakeLM([{"text": ""}])), "one", log="")


def main() -> None:
    load()
    memory = Path("/dev/shm")  # a kill loses nothing that was written, to any file system
    for mode, kill_at in (("sync", 0), *CHAINS):
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
            folder, kills = Path(name), 0
            while is_killed(partial(live, folder, mode, kill_at)):
                kills += 1
            result = json.loads((folder / "result").read_text())
            print(json.dumps([kills, lines(folder / "calls"), lines(folder / "asked"), result]), flush=True)


if __name__ == "__main__":
    main()
