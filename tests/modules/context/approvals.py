"""A folding agent one of whose calls waits for a person, and the process that resumes it.

``python -m tests.modules.context.approvals WAY MODE FOLDER`` resumes the run that is in the folder: ``WAY`` is "journal" or
"state". It prints the answer, the folds and the requests that it sent, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from sigwire import AgentRun, Compaction, Journal, ReAct, Tool
from sigwire.compaction import summarize
from tests.modules.context.test_folding import page, reading
from tests.modules.context.worlds import World, called, last_result

__all__ = ["DECISION", "paying", "resumed"]

DECISION: Any = "approve"


def paying(*, waits: bool = True) -> Any:
    """Return an agent that reads 16 pages, pays, searches what it read, and submits; and its model."""

    def pay(cents: int) -> str:
        """Pay."""
        return f"paid {cents}"

    turn = reading(16)

    def next_turn(request: Any) -> Any:
        result = last_result(request)
        if result is not None and result.name == "pay":
            return called("x", "search_conversation", query="fact f1")
        if result is not None and result.name == "search_conversation":
            return called("s", "submit", answer=result.text)
        made = turn(request)
        return called("pay", "pay", cents=500) if made.tool_calls[0].name == "submit" else made

    agent: Any = ReAct(
        "question -> answer",
        tools=[page, Tool(pay, approve=waits)],
        max_iters=60,
        compaction=Compaction([summarize()], window=2000),
    )
    agent.set_lm(world := World(next_turn, 2000))
    return agent, world


def resumed(way: str, mode: str, folder: Path) -> dict[str, Any]:
    """Resume the run of a folder; return what it answered and sent."""
    agent, world = paying()
    if way == "state":
        state = json.loads((folder / "state.json").read_text())
        decisions = {"pay": DECISION}
        result = finished(
            mode,
            lambda: agent.resume(state, decisions),
            lambda: agent.aresume(state, decisions),
            lambda: agent.resume_stream(state, decisions),
        )
    else:
        with Journal(folder / "runs.sqlite3") as journal:
            decisions = dict.fromkeys(json.loads((folder / "pending.json").read_text()), DECISION)
            result = finished(
                mode,
                lambda: journal.resume(agent, "one", decisions),
                lambda: journal.aresume(agent, "one", decisions),
                lambda: streamed(journal, agent, decisions),
            )
    history = AgentRun.of(result).history
    return {
        "answer": result.answer,
        "history": history.to_json(),
        "requests": [request.to_json() for request in world.requests],
        "refused": len(world.refused),
    }


def streamed(journal: Journal, agent: Any, decisions: Any) -> Any:
    journal.decide("one", decisions)
    return journal.stream(agent, "one", question="Read.")


def finished(mode: str, call: Any, acall: Any, stream: Any) -> Any:
    if mode == "sync":
        return call()
    if mode == "async":
        return asyncio.run(acall())
    return [event.value for event in stream() if hasattr(event, "value")][-1]


if __name__ == "__main__":
    print(json.dumps(resumed(sys.argv[1], sys.argv[2], Path(sys.argv[3]))))
