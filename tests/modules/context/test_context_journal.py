"""Folding runs that are recorded: killed at each request, approved in another process, apart from what a process learned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sigwire import AgentRun, ApprovalNeeded, Compaction, History, Journal, ReAct
from sigwire.compaction import drop_oldest
from tests.modules.context.approvals import paying
from tests.modules.context.test_folding import agent_of, reading
from tests.modules.context.worlds import World, called

ROOT = Path(__file__).resolve().parents[3]


def python(module: str, *arguments: str) -> str:
    """Run a module in another process; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def kill(mode: str, count: int) -> int:
    return int(python("tests.modules.context.kills", mode, str(count)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_run_asks_no_summary_twice() -> None:
    kill("sync", 2)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("mode", "moments"), [("sync", 26), ("async", 8), ("stream", 8)])
def test_run_that_is_killed_at_each_request_asks_no_summary_twice(mode: str, moments: int) -> None:
    assert kill(mode, moments) >= moments


def test_window_that_the_process_learned_meanwhile_does_not_move_the_folds_of_a_recorded_run(tmp_path: Path) -> None:
    class Stops(World):
        stops = True

        def _answer(self, request: Any) -> Any:
            if self.stops and len(self.requests) == 9:
                self.stops = False
                raise KeyboardInterrupt
            return super()._answer(request)

    world = Stops(reading(14), 4000)
    agent = agent_of(world, compaction=Compaction([drop_oldest()]))
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(KeyboardInterrupt):
            journal.run(agent, "one", question="Read.")
        # Another run of this process is refused by the same model, at a quarter of the size.
        world.limit, many, world.turn = 900, World(reading(14), 0).turn, reading(14)
        agent_of(world, compaction=Compaction([drop_oldest()]))(question="Read.")
        assert world.refused
        world.limit, world.turn = 4000, many
        result = journal.run(agent, "one", question="Read.")
    assert AgentRun.of(result).history.folds == ()


@pytest.mark.parametrize("mode", ["run", "stream"])
def test_folded_run_that_waits_for_approval_is_resumed_by_another_agent(mode: str) -> None:
    agent, world = paying()
    with pytest.raises(ApprovalNeeded) as caught:
        agent(question="Read.")
    state: Any = json.loads(json.dumps(caught.value.state))
    folds = History.from_json(state["history"]).folds
    assert folds
    other, later = paying()
    if mode == "run":
        result = other.resume(state, {"pay": "approve"})
    else:
        *_, last = other.resume_stream(state, {"pay": "approve"})
        result = last.value
    assert "fact f1 is v1" in result.answer
    assert AgentRun.of(result).history.folds[: len(folds)] == folds
    before, after = world.turns[-1], later.requests[0]
    assert after.messages[: len(before.messages)] == before.messages
    assert after.tools == before.tools
    assert later.refused == []


@pytest.mark.long
@pytest.mark.parametrize("way", ["journal", "state"])
@pytest.mark.parametrize("mode", ["sync", "async", "stream"])
def test_folded_run_that_waits_for_approval_is_resumed_in_another_process(way: str, mode: str, tmp_path: Path) -> None:
    whole, undisturbed = paying(waits=False)
    expected = AgentRun.of(whole(question="Read.")).history
    agent, world = paying()
    with Journal(tmp_path / "runs.sqlite3") as journal, pytest.raises(ApprovalNeeded) as caught:
        journal.run(agent, "one", question="Read.") if way == "journal" else agent(question="Read.")
    (tmp_path / "pending.json").write_text(json.dumps([call.id for call in caught.value.pending]))
    (tmp_path / "state.json").write_text(json.dumps(caught.value.state))
    done = json.loads(python("tests.modules.context.approvals", way, mode, str(tmp_path)))
    assert "fact f1 is v1" in done["answer"]
    assert (History.from_json(done["history"]), done["refused"]) == (expected, 0)
    assert expected.folds
    requests = [request.to_json() for request in undisturbed.requests]
    assert done["requests"] == requests[len(world.requests) :]  # the summaries are not asked again


def test_state_of_a_version_without_folds_is_resumed() -> None:
    agent, _ = paying()
    with pytest.raises(ApprovalNeeded) as caught:
        agent(question="Read.")
    state: Any = json.loads(json.dumps(caught.value.state))
    del state["history"]["folds"], state["size"]
    other, later = paying()
    assert "fact f1 is v1" in other.resume(state, {"pay": "approve"}).answer
    assert all(later.is_summary(request) for request in later.refused)


def test_agent_as_a_tool_folds_its_own_conversation() -> None:
    inner = agent_of(World(reading(20), 2000), compaction=Compaction([drop_oldest()], window=2000))

    def ask(question: str) -> str:
        """Ask."""
        result = inner(question=question)
        return f"{len(AgentRun.of(result).history.folds)} folds"

    outer: Any = ReAct("question -> answer", tools=[ask])
    turns = iter([called("a", "ask", question="Read."), called("s", "submit", answer="done")])
    outer.react.set_lm(World(lambda request: next(turns), 10_000))
    result = outer(question="Read.")
    assert result.steps[0].results[0].text != "0 folds"
    assert AgentRun.of(result).history.folds == ()
