"""States, files, previews, checks and cards of programs that fold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import AgentRun, CodeAct, Compaction, FakeLM, Fold, History, Module, Predict, ReAct, StateError
from sigwire.compaction import clear_results, drop_oldest, summarize
from sigwire.modules.code.rlm import RLM
from sigwire.show.text import text_card
from sigwire.signatures.cards.histories import history_card
from sigwire.signatures.types.history import folded
from tests.modules.context.test_folding import agent_of, reading
from tests.modules.context.worlds import World, note_of

NEWEST = "Write names and numbers only."


class Around(Module):
    def __init__(self, compaction: Any) -> None:
        self.agent: Any = ReAct("question -> answer", tools=[len], compaction=compaction)


@pytest.mark.parametrize("target", [True, Compaction(window=900)])
@pytest.mark.parametrize("is_inside", [False, True])
def test_state_has_the_summary_only_if_it_was_changed(target: Any, is_inside: bool) -> None:
    def made(compaction: Any) -> tuple[Any, Any]:
        around = Around(compaction)
        return (around, around.agent) if is_inside else (around.agent, around.agent)

    program, agent = made(Compaction(window=900))
    name = "agent.summary" if is_inside else "summary"
    plain = program.dump_state()
    assert name not in plain
    agent.summary.signature = agent.summary.signature.with_instructions(NEWEST)
    state = json.loads(json.dumps(program.dump_state()))
    other, loaded = made(target)
    other.load_state(state)
    assert loaded.summary.signature.instructions == NEWEST
    other.load_state(plain)
    assert loaded.summary.is_default
    with pytest.raises(StateError, match=r"nosuch\.summary"):
        other.load_state({**state, "nosuch.summary": state[name]})


def test_saved_program_keeps_its_compaction(tmp_path: Path) -> None:
    for module in (
        ReAct("question -> answer", tools=[len], compaction=Compaction(window=900, at=0.5)),
        RLM("log -> cause", compaction=False),
    ):
        sigwire.save_program(module, tmp_path / "program.json")
        loaded: Any = sigwire.load_program(tmp_path / "program.json", functions=[len])
        assert loaded.compaction == module.compaction
    window: Any = {"window": 9}
    assert CodeAct("question -> answer", compaction=window).compaction == Compaction(window=9)
    with pytest.raises(StateError, match="steps of a Compaction are code"):
        sigwire.save_program(
            ReAct("question -> answer", compaction=Compaction([drop_oldest()])), tmp_path / "program.json"
        )


def test_preview_shows_the_view_and_names_the_next_fold() -> None:
    world = World(reading(20), 2000)
    agent = agent_of(world, compaction=Compaction([summarize()], window=2000))
    history = AgentRun.of(agent(question="Read.")).history
    preview = agent.preview(history=history, question="And now?")
    assert note_of(preview.request) is not None
    assert [warning.feature for warning in preview.warnings] == []
    asked, text = len(world.requests), "word " * 1200
    long = agent.preview(history=history, question=text)
    assert [warning.feature for warning in long.warnings] == ["compaction"]
    assert "turns 0 to" in long.warnings[0].detail
    assert len(world.requests) == asked
    assert AgentRun.of(agent(question=text, history=history)).history.folds != history.folds


def test_program_that_folds_is_a_finding() -> None:
    from sigwire.modules.preview.findings import findings_of

    world = World(reading(20), 2000)
    agent = agent_of(world, compaction=Compaction([clear_results(), drop_oldest()], window=2000))
    history = AgentRun.of(agent(question="Read.")).history
    preview = agent.preview(history=history, question="word " * 1200)
    (finding,) = findings_of("self", preview, world)
    assert (finding.feature, finding.path) == ("compaction", "self")


def test_card_has_a_bar_of_the_turns_that_are_left_out() -> None:
    history = History([{"question": f"q{number}"} for number in range(4)])
    plain, card = (
        text_card(history_card(history)),
        text_card(history_card(folded(history, Fold(3, summary="s", tokens_before=6820, tokens_after=1590)))),
    )
    assert "turns 0-2" in card
    assert "6,820 → 1,590 tokens" in card
    assert "turns 0-" not in plain


def test_folds_of_two_predictors_with_one_history_are_sent() -> None:
    lm = FakeLM([{"answer": "x"}])
    history = folded(
        History([{"question": "a", "answer": "b"}, {"question": "c", "answer": "d"}]), Fold(1, summary="s")
    )
    Predict("question, history: History -> answer", lm=lm)(question="?", history=history)
    assert [message.role for message in lm.requests[0].messages] == ["system", "user", "user", "assistant", "user"]
