"""A program with effects of each kind, whose process kills itself at a chosen one.

Each effect appends a line to the ledger file before it begins and after its end: the proof of what ran, which survives the
kill. Tools also write rows to a database. The model is a function of the request alone, so it answers in every life alike.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigwire import (
    ApprovalNeeded,
    Capabilities,
    Journal,
    Module,
    Predict,
    Prediction,
    ReAct,
    Request,
    Response,
    Tool,
    ToolCall,
    Usage,
    current_call,
    durable,
)
from sigwire.core.response import Choice

MODES = ("sync", "async", "stream", "astream")
ITEMS = {"shelf": 2, "lamp": 1}


@dataclass
class Ledger:
    """The effects of a run, and the number of the moment at which the process kills itself (0: never)."""

    folder: Path
    kill_at: int = 0
    moments: int = 0

    def note(self, what: str) -> None:
        """Write a line. There is a moment before it and one after it."""
        self._pass_moment()
        descriptor = os.open(self.folder / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{what}\n".encode())
        os.close(descriptor)
        self._pass_moment()

    def _pass_moment(self) -> None:
        self.moments += 1
        if self.moments == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def insert(self, table: str, key: str, value: str) -> None:
        with closing(sqlite3.connect(self.folder / "shop.sqlite", timeout=30)) as connection, connection:
            connection.execute("PRAGMA synchronous = OFF")  # the process is killed, not the machine
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (key TEXT, value TEXT)")
            connection.execute(
                f"INSERT INTO {table} SELECT ?, ? WHERE ? NOT IN (SELECT key FROM {table})", (key, value, key)
            )

    def rows(self, table: str) -> list[tuple[str, str]]:
        connection = sqlite3.connect(self.folder / "shop.sqlite", timeout=30)
        try:
            return connection.execute(f"SELECT key, value FROM {table} ORDER BY value").fetchall()
        except sqlite3.OperationalError:  # no table yet
            return []
        finally:
            connection.close()

    def lines(self) -> list[str]:
        path = self.folder / "ledger"
        return path.read_text().splitlines() if path.exists() else []


class Clerk:
    """A model whose answer is a function of the request. Each answer is paid: a line in the ledger."""

    model = "test/clerk"
    capabilities = Capabilities(native_tools=True)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def respond(self, request: Request) -> Response:
        name, choice = self._answer(request)
        self._ledger.note(f"asking {name}")
        self._ledger.note(f"paid {name}")
        return Response((choice,), Usage(len(request.messages), 1), self.model)

    async def arespond(self, request: Request) -> Response:
        return self.respond(request)

    def _answer(self, request: Request) -> tuple[str, Choice]:
        turn = sum(message.role == "assistant" for message in request.messages)
        offered = {str(tool["function"]["name"]) for tool in request.tools}  # type: ignore[call-overload, index]
        if not offered:
            return "summary", Choice("[[ ## summary ## ]]\nTwo shelves and a lamp.\n\n[[ ## completed ## ]]")
        if "weigh" in offered:
            return f"research {turn}", _calls(turn, [("weigh", {"item": "shelf"})], {"finding": "12 kg"})
        calls = [
            [("reserve", {"item": item, "count": count}) for item, count in ITEMS.items()],
            [("research", {"question": "How heavy?"})],
            [("charge", {"cents": 9900}), ("charge", {"cents": 100})],
        ]
        return f"order {turn}", _calls(turn, calls[turn] if turn < len(calls) else [], {"answer": "ordered"})


def _calls(turn: int, calls: list[tuple[str, dict[str, Any]]], outputs: Mapping[str, Any]) -> Choice:
    made = calls if turn == 0 or len(calls) != 1 or calls[0][0] == "research" else []
    named = made or [("submit", dict(outputs))]
    return Choice("", tuple(ToolCall(f"call_{turn}_{at}", name, given) for at, (name, given) in enumerate(named)))


class Order(Module):
    """An order: an agent with parallel tools and a nested agent, the time, and a summary."""

    def __init__(self, ledger: Ledger, on_crash: str = "ask") -> None:
        super().__init__()
        lm = Clerk(ledger)
        self.researcher: Any = ReAct("question -> finding", tools=[Tool(weigh_with(ledger), on_crash="rerun")], lm=lm)
        tools = [
            Tool(reserve_with(ledger), on_crash=on_crash),  # type: ignore[arg-type]
            Tool(charge_with(ledger), on_crash="rerun"),
            Tool(self.research, on_crash="rerun"),
        ]
        self.agent: Any = ReAct("question -> answer", tools=tools, lm=lm)
        self.summary: Any = Predict("text -> summary", lm=lm)

    def research(self, question: str) -> str:
        return str(self.researcher(question=question).finding)

    def forward(self, order: str) -> Prediction:
        at = durable.now()
        answer = self.agent(question=order)
        return self._result(at, answer, self.summary(text=answer.answer))

    async def aforward(self, order: str) -> Prediction:
        at = durable.now()
        answer = await self.agent.acall(question=order)
        return self._result(at, answer, await self.summary.acall(text=answer.answer))

    def _result(self, at: Any, answer: Any, summary: Any) -> Prediction:
        results = [result.content for step in answer.steps for result in step.results]
        return Prediction(at=at.isoformat(), answer=answer.answer, summary=summary.summary, results=results)


def reserve_with(ledger: Ledger) -> Callable[..., str]:
    def reserve(item: str, count: int) -> str:
        """Reserve an item. The tool adds a row whenever it runs."""
        ledger.note(f"reserving {item}")
        ledger.insert("reserved", f"{item} {current_call().place} {len(ledger.rows('reserved'))} {os.getpid()}", item)
        ledger.note(f"reserved {item}")
        return f"{count} {item}"

    return reserve


def charge_with(ledger: Ledger) -> Callable[..., str]:
    def charge(cents: int) -> str:
        """Charge an amount, once for each idempotency key."""
        ledger.note(f"charging {cents}")
        ledger.insert("charged", current_call().idempotency_key, str(cents))
        ledger.note(f"charged {cents}")
        return f"paid {cents}"

    return charge


def weigh_with(ledger: Ledger) -> Callable[..., int]:
    def weigh(item: str) -> int:
        """Weigh an item."""
        ledger.note(f"weighing {item}")
        return 12

    return weigh


def start(ledger: Ledger, mode: str, on_crash: str = "ask") -> Any:
    """Run the order, or continue it, in one of ``MODES``; decide by the rows of the database."""
    with Journal(ledger.folder / "runs.sqlite3") as journal:
        program = Order(ledger, on_crash)
        while True:
            try:
                return run(journal, program, mode)
            except ApprovalNeeded as error:
                done = {value for _, value in ledger.rows("reserved")}
                decisions: dict[str, Any] = {}
                for call in error.pending:
                    item = call.arguments["item"]
                    decisions[call.id] = {"result": f"{ITEMS[str(item)]} {item}"} if item in done else "rerun"
                journal.decide("order-1042", decisions)


def run(journal: Journal, program: Order, mode: str) -> Any:
    name, order = "order-1042", "Two shelves and a lamp."
    if mode == "sync":
        return journal.run(program, name, order=order)
    if mode == "async":
        return asyncio.run(journal.arun(program, name, order=order))
    if mode == "stream":
        stream = journal.stream(program, name, order=order)
        for _ in stream:
            pass
        return stream.value

    async def awaited() -> Any:
        stream = journal.astream(program, name, order=order)
        async for _ in stream:
            pass
        return stream.value

    return asyncio.run(awaited())


def live(folder: Path, mode: str, kill_at: int = 0, on_crash: str = "ask") -> None:
    """Be one life of the run's process. The result goes to a file."""
    result = start(Ledger(folder, kill_at), mode, on_crash)
    (folder / "result").write_text(json.dumps(result.toDict()))
