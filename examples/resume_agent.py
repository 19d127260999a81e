"""An agent that is killed and goes on: `python examples/resume_agent.py`, also the last part of `make demo`.

Each life of the agent is a process of its own. The first is killed (SIGKILL) in the middle, the second starts the same run
again. A provider on this machine counts the answers that are paid for, a SQLite database the tools that ran. Answers and tools
of both lives must be those of one whole life; the exit code is 1 otherwise.

7. Killed between two effects     the run goes on where it was
8. Killed inside a tool           the tool is not run again without a decision
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import wraps
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.rule import Rule
from shop import Shop

import sigwire
from sigwire import ApprovalNeeded, BaseCallback, InputField, Journal, OutputField, ReAct, Signature, Tool
from sigwire.testing import FakeProvider

QUESTION = "What is the weight of one oak shelf in pounds?"
EXPECTED = "SELECT round(weight_kg / 0.45359237, 3) AS pounds FROM stock WHERE product = 'oak shelf'"
RUN = "weight-1"

console = Console(highlight=False)


class AskShop(Signature):
    """Answer the question about the shop with the help of the tools."""

    question: str = InputField()
    answer: str = OutputField(desc="the value asked for, and nothing else")


# --- one life: a process ----------------------------------------------------------------------------------


class KillAtRequest(BaseCallback):
    """Kills the process when a request is about to be sent."""

    def __init__(self, number: int) -> None:
        self.remaining = number

    def on_lm_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        self.remaining -= 1
        if not self.remaining:
            os.kill(os.getpid(), signal.SIGKILL)


def live(folder: Path, url: str, kill: str) -> int:
    """Run the agent, or continue its run; ``kill`` is the end of this life: "request 3", "tool 2" or "never"."""
    what, _, number = kill.partition(" ")
    callbacks = [KillAtRequest(int(number))] if what == "request" else []
    shop, log = Shop(folder / f"shop-{os.getpid()}.sqlite"), folder / "ran.sqlite"
    tools = [Tool(logged(tool, log, int(number) if what == "tool" else 0)) for tool in shop.tools()]
    lm = sigwire.LM("openai/gpt-5-mini", base_url=url, api_key="any key")
    agent = ReAct(AskShop, tools=tools, max_iters=8)
    with sigwire.context(lm=lm, callbacks=callbacks), Journal(folder / "runs.sqlite3") as journal:
        try:
            print(journal.run(agent, RUN, question=QUESTION).answer)
        except ApprovalNeeded as needed:
            (call,) = needed.pending
            print(f"    pending: {call.name}, {call.why}")
            print('    decided: "rerun", because the tool only converts')
            print(journal.resume(agent, RUN, {call.id: "rerun"}).answer)
    return 0


def logged(tool: Callable[..., Any], log: Path, kill_at: int) -> Callable[..., Any]:
    """Return the tool, which adds a row to ``log`` when it has run. The tool number ``kill_at`` kills the process."""

    @wraps(tool)
    def run(*args: Any, **kwargs: Any) -> Any:
        if kill_at and len(rows(log)) + 1 == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        value = tool(*args, **kwargs)
        with closing(sqlite3.connect(log)) as database, database:
            database.execute("INSERT INTO ran VALUES (?)", (tool.__name__,))
        return value

    return run


def rows(log: Path) -> list[str]:
    """Return the names of the tools that ran."""
    with closing(sqlite3.connect(log)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS ran (tool TEXT)")
        return [name for (name,) in database.execute("SELECT tool FROM ran")]


# --- the lives of a run -----------------------------------------------------------------------------------


def lives(folder: Path, kills: list[str]) -> tuple[str, int, list[str]]:
    """Start a process for each life; return the answer, the number of answers paid, and the tools that ran."""
    answer, log = "", folder / "ran.sqlite"
    with FakeProvider(sigwire.LM("offline/lexical")) as provider:
        for number, kill in enumerate(kills, 1):
            paid, ran = len(provider.requests), len(rows(log))
            command = [sys.executable, __file__, str(folder), provider.url("openai"), kill]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            *notes, answer = done.stdout.splitlines() or [""]
            console.print(*notes, sep="\n", end="\n" if notes else "", markup=False)
            end = "killed" if done.returncode == -signal.SIGKILL else f"answer {answer}"
            new = rows(log)[ran:]
            console.print(
                f"  life {number}: {len(provider.requests) - paid} answers paid, {len(new)} tools run "
                f"({', '.join(new) or 'none'}); [bold]{end}[/]",
                soft_wrap=True,
            )
        return answer, len(provider.requests), rows(log)


def main() -> int:
    console.print(f"[bold]{QUESTION}[/]")
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (row,) = Shop(folder / "expected.sqlite").sql(EXPECTED)
        results: list[tuple[str, int, list[str]]] = []
        for title, kills in (
            ("One life, for comparison", ["never"]),
            ("7. Killed between two effects", ["request 3", "never"]),
            ("8. Killed inside a tool", ["tool 2", "never"]),
        ):
            console.print(Rule(title))
            inside = folder / str(len(results))
            inside.mkdir()
            results.append(lives(inside, kills))
            answer, paid, ran = results[-1]
            same = results[-1] == results[0] and answer == str(row["pounds"])
            verdict = "[green]as in one life[/]" if same else "[red]FAILED: not as in one life[/]"
            console.print(f"  in all: {paid} answers paid, {len(ran)} tools run: {verdict}")
            wrong += not same
    console.print(Rule())
    console.print("[red]Some runs differ.[/]" if wrong else "[green]No answer was paid twice, no tool ran twice.[/]")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(live(Path(sys.argv[1]), *sys.argv[2:]) if len(sys.argv) > 1 else main())
