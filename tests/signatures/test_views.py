"""Views: what is sent of a conversation with folds; on every wire, in JSON, and between two folds."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import pytest

from sigwire import Fold, History, InputError, Message, to_provider
from sigwire.core.messages import Part
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.signatures import Signature
from sigwire.signatures.types.history import Turn, changed_turns, folded, regrouped, shown_as
from sigwire.signatures.types.views import is_cut
from tests.lm.histories.any_history import TARGETS
from tests.lm.histories.test_every_pair import read_by_fake

WIRES = ["anthropic", "bedrock", "gemini", "ollama", "openai", "openai-responses"]
LONG = "x" * 500


def conversation(seed: int, provider: str | None = None) -> History:
    """Return a valid conversation: tasks, thinking, calls with results, answers."""
    draw = random.Random(seed)
    turns = [Message.system("Be brief.")] * draw.randint(0, 1)
    for task in range(draw.randint(1, 4)):
        turns.append(Message.user(f"Task {task}."))
        for number in range(draw.randint(0, 3)):
            thought: tuple[Part, ...] = (ThinkingPart(f"Hm {number}.", f"U2ln{task}{number}AA", provider=provider),)
            ids = [f"call_{seed}_{task}_{number}_{each}" for each in range(draw.randint(1, 2))]
            calls = [
                ToolCall(id, "add", {"x": number}, provider_data="U2ln" if provider == "gemini" else None) for id in ids
            ]
            turns.append(Message("assistant", (*(thought if provider else ()), TextPart("I look."), *calls)))
            turns.append(Message.tool(*(ToolResult(id, "add", draw.choice(["three", LONG])) for id in ids)))
        turns.append(Message.assistant(f"Answer {task}."))
    return History([*turns, Message.user("And now?")])


def fold_of(history: History, seed: int) -> Fold:
    """Return a fold at a random cut."""
    draw, turns = random.Random(seed), history.messages
    upto = draw.choice([at for at in range(len(turns)) if is_cut(turns, at)])
    cleared = draw.choice([0, upto, len(turns) // 2])
    return Fold(upto, cleared, draw.choice(["", "Earlier: three."]), search="search_conversation", reader="read_result")


def messages_of(history: History) -> list[Message]:
    return [turn for turn in history.messages if isinstance(turn, Message)]


def check_wires(wires: list[str], seeds: range) -> None:
    for seed in seeds:
        for wire in wires:
            history = conversation(seed, wire if wire in ("anthropic", "gemini") else None)
            view = messages_of(folded(history, fold_of(history, seed)).view())
            read_by_fake(wire, view)
            whole = to_provider(messages_of(history), TARGETS[wire]).losses
            assert whole or not to_provider(view, TARGETS[wire]).losses


def test_view_at_random_cuts_is_accepted_by_every_wire() -> None:
    check_wires(WIRES, range(12))


@pytest.mark.long
@pytest.mark.parametrize("wire", WIRES)
def test_thousand_views_at_random_cuts_are_accepted_by_every_wire(wire: str) -> None:
    check_wires([wire], range(1000))


def test_whole_conversations_of_the_wire_test_have_no_losses() -> None:
    """The check above proves nothing for a wire that loses a part of every conversation."""
    for wire in WIRES:
        history = conversation(1, wire if wire in ("anthropic", "gemini") else None)
        assert not to_provider(messages_of(history), TARGETS[wire]).losses


@pytest.mark.parametrize("wire", ["anthropic", "gemini", "openai-responses", "bedrock"])
def test_kept_turns_of_a_view_are_the_same_objects_with_their_signed_thinking(wire: str) -> None:
    history = conversation(3, "anthropic" if wire == "bedrock" else wire)
    for at in range(1, len(history)):
        if is_cut(history.messages, at):
            kept = folded(history, Fold(at)).view().messages[-(len(history) - at) :]
            assert all(mine is theirs for mine, theirs in zip(kept, history.messages[at:], strict=True))


def test_view_has_pinned_turns_the_note_and_the_kept_turns() -> None:
    call, result = Message.assistant("", [ToolCall("a", "f", {})]), Message.tool(ToolResult("a", "f", LONG))
    again = Message.assistant("", [ToolCall("b", "f", {})])
    system, task = Message.system("Be brief."), Turn({"question": "?"})
    history = History([system, Turn({"question": "old"}), Message.assistant("!"), task, call, result, again])
    view = folded(history, Fold(6, summary="one\ntwo", search="find", reader="read")).view().messages
    assert (view[0], view[1], view[3:]) == (system, task, (again,))
    note = view[2]
    assert isinstance(note, Message)
    assert note.role == "user"
    assert "the 4 earliest turns of this conversation were left out" in note.text
    assert 'find(query="...") finds passages' in note.text
    assert note.text.endswith("\n> one\n> two")


def test_task_is_not_pinned_when_the_kept_turns_begin_with_their_own() -> None:
    history = History([{"question": "1", "answer": "one"}, {"question": "2", "answer": "two"}])
    note, kept = folded(history, Fold(1)).view().messages
    assert isinstance(note, Message)
    assert kept is history.messages[1]


def test_cleared_results_are_references_and_name_the_reading_call() -> None:
    history = History(
        [
            {"question": "?"},
            Message.assistant("", [ToolCall("a", "f", {}), ToolCall("b", "f", {})]),
            Message.tool(ToolResult("a", "f", "x" * 4120), ToolResult("b", "f", "short", is_error=True)),
            Message.assistant("", [ToolCall("c", "f", {})]),
            Message.tool(ToolResult("c", "f", LONG)),
        ]
    )
    view = folded(history, Fold(0, 3, reader="read_result")).view().messages
    (first, second), (last,) = messages_of(History(view))[1].tool_results, messages_of(History(view))[3].tool_results
    assert first.text == '[Result left out: 4,120 characters; read_result(id="a")]'
    assert (second.text, second.is_error, last.text) == ("short", True, LONG)
    assert view[1] is history.messages[1]


def test_longer_view_begins_with_the_same_turns_until_the_next_fold() -> None:
    history = conversation(5)
    held = folded(history, fold_of(history, 5))
    before = held.view().messages
    for number in range(3):
        held = held.append(Message.assistant(f"more {number}"), Message.user("go on"))
        view = held.view().messages
        assert all(mine is theirs for mine, theirs in zip(before, view, strict=False))
        assert len(view) == len(before) + 2
        before = view


@pytest.mark.parametrize("way", ["json", "read", "pickle", "copy", "history", "typed"])
def test_history_keeps_its_folds(way: str) -> None:
    spec = Signature("question, chat: History -> answer").spec
    history = folded(
        History([{"question": "a", "answer": "b"}, {"question": "c", "answer": "d"}]), Fold(1, summary="s")
    )
    ways: dict[str, Any] = {
        "json": lambda: History.from_json(history.to_json()),
        "read": lambda: History.read(history.to_json()),
        "pickle": lambda: pickle.loads(pickle.dumps(history)),
        "copy": lambda: copy.deepcopy(history),
        "history": lambda: History(history),
        "typed": lambda: spec.typed_history(History.from_json(spec.plain_history(history).to_json())),
    }
    made = ways[way]()
    assert made == history
    assert made.view().messages == history.view().messages


def test_longer_history_keeps_folds_and_a_slice_has_none() -> None:
    history = folded(conversation(2), Fold(1))
    assert history.append(Message.user("!")).folds == (history + (Message.user("!"),)).folds == history.folds  # noqa: RUF005
    assert history[1:].folds == ()
    assert history != conversation(2)
    assert "folds" not in conversation(2).to_json()


def test_folds_of_changed_turns_end_at_the_same_turn() -> None:
    history = folded(History([{"q": "a", "x": 1}, {"q": "b"}]), Fold(1))
    assert changed_turns(history, lambda turn: {**turn, "y": 2}).folds == history.folds
    assert regrouped(history, [(), history.messages[1:]]).folds[0].upto == 0


def test_other_view_is_of_one_history_only() -> None:
    history = History([{"q": "a"}])
    other = shown_as(history, History([{"q": "z"}]))
    assert other.view().messages == (Turn({"q": "z"}),)
    assert other.append(q="b").view().messages == (Turn({"q": "a"}), Turn({"q": "b"}))


@pytest.mark.parametrize(
    "fold", [{"upto": 2}, {"upto": 9}, {"upto": -1}, {"upto": "1"}, {"upto": 0, "cleared": 9}, "no"]
)
def test_json_of_a_fold_that_is_no_cut_is_refused(fold: Any) -> None:
    history = History(
        [{"q": "a"}, Message.assistant("", [ToolCall("a", "f", {})]), Message.tool(ToolResult("a", "f", 1))]
    )
    with pytest.raises(InputError, match="fold"):
        History.from_json({**history.to_json(), "folds": [fold]})
