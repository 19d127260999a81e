"""History repair: answers, ids, foreign items, media and turns, by table and by property."""

from __future__ import annotations

import copy
import re
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonValue
from sigwire.core.messages import ImagePart, Message, OpaquePart, Part, TextPart, ThinkingPart
from sigwire.core.tools.tool import ToolCall, ToolResult
from sigwire.errors import InputError
from sigwire.lm.codecs.shared.history import (
    NOT_EXECUTED,
    CallIdRules,
    HistoryRules,
    NormalizedHistory,
    error_text,
    normalize_history,
    replace_surrogates,
)
from tests.lm.codecs.reading import read_error_text

ASKED = Message.user("q")
A, B = ToolCall("a", "f", {}), ToolCall("b", "g", {})
RA, RB = ToolResult("a", "f", "1"), ToolResult("b", "g", "2")
MISSING = ToolResult("a", "f", NOT_EXECUTED, is_error=True)
CALLED = Message.assistant(tool_calls=[A])
CALLED_BOTH = Message.assistant(tool_calls=[A, B])
PLAIN = HistoryRules(family="home")


def repaired(*messages: Message, rules: HistoryRules = PLAIN) -> NormalizedHistory:
    before = copy.deepcopy(messages)
    result = normalize_history(messages, rules)
    assert messages == before
    return result


# --- calls and their results -----------------------------------------------------------------------------------

WINDOWS: dict[str, tuple[list[Message], list[Message], int]] = {
    "an answered turn stays as it is": ([ASKED, CALLED, Message.tool(RA)], [ASKED, CALLED, Message.tool(RA)], 0),
    "results come in call order": (
        [ASKED, CALLED_BOTH, Message.tool(RB, RA)],
        [ASKED, CALLED_BOTH, Message.tool(RA, RB)],
        0,
    ),
    "results of several tool turns become one": (
        [ASKED, CALLED_BOTH, Message.tool(RA), Message.tool(RB)],
        [ASKED, CALLED_BOTH, Message.tool(RA, RB)],
        0,
    ),
    "a missing result is an error result": ([ASKED, CALLED, ASKED], [ASKED, CALLED, Message.tool(MISSING), ASKED], 1),
    "a call at the end is answered too": ([ASKED, CALLED], [ASKED, CALLED, Message.tool(MISSING)], 1),
    "a late result is moved to its call": (
        [ASKED, CALLED, ASKED, Message.tool(RA)],
        [ASKED, CALLED, Message.tool(RA), ASKED],
        0,
    ),
    "a result in a user turn is moved to its call": (
        [ASKED, CALLED, Message("user", (RA, TextPart("q")))],
        [ASKED, CALLED, Message.tool(RA), ASKED],
        0,
    ),
    "a result nobody asked for is left out": ([ASKED, Message.tool(RA), ASKED], [ASKED, ASKED], 1),
    "a result of an earlier turn is left out": (
        [ASKED, CALLED, ASKED, Message.assistant("t"), Message.tool(RA)],
        [ASKED, CALLED, Message.tool(MISSING), ASKED, Message.assistant("t")],
        2,
    ),
    "calls of neighbouring turns are answered together": (
        [ASKED, CALLED, Message.assistant(tool_calls=[B]), Message.tool(RA, RB)],
        [ASKED, CALLED_BOTH, Message.tool(RA, RB)],
        0,
    ),
    "what is said right after a call belongs to its turn": (
        [ASKED, CALLED, Message.assistant("t"), Message.tool(RA)],
        [ASKED, Message("assistant", (A, TextPart("t"))), Message.tool(RA)],
        0,
    ),
    "an answered call and the next one stay two turns": (
        [ASKED, CALLED, Message.tool(RA), Message.assistant(tool_calls=[B]), Message.tool(RB)],
        [ASKED, CALLED, Message.tool(RA), Message.assistant(tool_calls=[B]), Message.tool(RB)],
        0,
    ),
    "turns without calls stay apart": (
        [ASKED, Message.assistant("t"), CALLED, Message.tool(RA)],
        [ASKED, Message.assistant("t"), CALLED, Message.tool(RA)],
        0,
    ),
    "a result without an id answers by name": (
        [ASKED, CALLED, Message.tool(ToolResult("", "f", "1"))],
        [ASKED, CALLED, Message.tool(RA)],
        0,
    ),
    "a result without a name gets its call's": (
        [ASKED, CALLED, Message.tool(ToolResult("a", "", "1"))],
        [ASKED, CALLED, Message.tool(RA)],
        0,
    ),
}


@pytest.mark.parametrize(("given_", "wanted", "warnings"), WINDOWS.values(), ids=WINDOWS)
def test_every_call_is_answered_once_right_after_its_turn(
    given_: list[Message], wanted: list[Message], warnings: int
) -> None:
    result = repaired(*given_)
    assert list(result.messages) == wanted
    assert [warning.feature for warning in result.warnings] == ["tool_results"] * warnings


def test_the_conversations_ids_are_told_as_the_caller_has_them() -> None:
    assert repaired(ASKED, CALLED, rules=HistoryRules(ids=CallIdRules(exact=9))).call_ids == {"a"}


# --- ids ---------------------------------------------------------------------------------------------------------


def ids_of(*calls: str, rules: CallIdRules | None) -> list[str]:
    messages = [Message.assistant(tool_calls=[ToolCall(call, "f", {}) for call in calls])]
    result = repaired(*messages, rules=HistoryRules(ids=rules))
    answered = [part.id for part in result.messages[1].tool_results]
    assert answered == [call.id for call in result.messages[0].tool_calls]
    return answered


def test_ids_that_fit_stay_and_others_are_made_to_fit() -> None:
    assert ids_of("toolu_1", "call.2+/=", rules=CallIdRules()) == ["toolu_1", "call_2___"]
    assert ids_of("abcdef", rules=CallIdRules(max_length=4)) == ["abcd"]
    assert ids_of("", rules=None) == ["call"]


def test_ids_that_become_equal_or_repeat_are_told_apart() -> None:
    assert ids_of("a.b", "a_b", "a/b", rules=CallIdRules()) == ["a_b", "a_b_2", "a_b_3"]
    assert ids_of("a", "a", rules=None) == ["a", "a_2"]


def test_the_same_id_in_two_turns_is_told_apart_for_calls_and_results() -> None:
    messages = repaired(ASKED, CALLED, Message.tool(RA), CALLED, Message.tool(RA)).messages
    assert [call.id for message in messages for call in message.tool_calls] == ["a", "a_2"]
    assert [result.id for message in messages for result in message.tool_results] == ["a", "a_2"]


@given(st.lists(st.text(max_size=50), max_size=6), st.sampled_from([9, None]), st.sampled_from([None, 12]))
def test_any_ids_become_fitting_and_different(calls: list[str], exact: int | None, longest: int | None) -> None:
    rules = CallIdRules("A-Za-z0-9", longest, exact)
    if not calls:
        return
    written = ids_of(*calls, rules=rules)
    assert len(set(written)) == len(calls)
    assert written == ids_of(*calls, rules=rules)
    length = f"{{{exact}}}" if exact else "+"
    assert all(re.fullmatch(f"[A-Za-z0-9_]{length}", call_id) for call_id in written)


# --- parts --------------------------------------------------------------------------------------------------------

PARTS: dict[str, tuple[tuple[Part, ...], tuple[Part, ...], list[str]]] = {
    "own thinking stays": ((ThinkingPart("h", provider="home"),), (ThinkingPart("h", provider="home"),), []),
    "thinking of nobody is left to the encoder": ((ThinkingPart("h"),), (ThinkingPart("h"),), []),
    "foreign thinking goes": ((ThinkingPart("h", provider="away"), TextPart("t")), (TextPart("t"),), []),
    "own items stay": ((OpaquePart("home", {}),), (OpaquePart("home", {}),), []),
    "foreign items go with a warning": ((OpaquePart("away", {}), TextPart("t")), (TextPart("t"),), ["opaque"]),
    "empty text goes": ((TextPart(""), TextPart("t")), (TextPart("t"),), []),
    "half characters are replaced": ((TextPart("a\ud800"),), (TextPart("a\ufffd"),), []),
    "two halves are one character": ((TextPart("\ud83d\ude00"),), (TextPart("😀"),), []),
}


@pytest.mark.parametrize(("given_", "wanted", "warned"), PARTS.values(), ids=PARTS)
def test_parts(given_: tuple[Part, ...], wanted: tuple[Part, ...], warned: list[str]) -> None:
    result = repaired(Message("assistant", given_))
    assert result.messages == (Message("assistant", wanted),)
    assert [warning.feature for warning in result.warnings] == warned


def test_turns_with_nothing_left_are_left_out() -> None:
    result = repaired(ASKED, Message.user(""), Message.assistant())
    assert result.messages == (ASKED,)
    assert [warning.detail for warning in result.warnings] == ["An empty user turn was left out."]


def test_half_characters_in_arguments_and_results_are_replaced() -> None:
    call = ToolCall.read("a", "f", '{"x":"\\ud800"}')
    messages = repaired(Message.assistant(tool_calls=[call]), Message.tool(ToolResult("a", "f", ["\ud800"]))).messages
    assert messages[0].tool_calls[0].arguments == {"x": "\ufffd"}
    assert messages[1].tool_results[0].content == ["\ufffd"]


def test_well_formed_values_are_returned_as_they_are() -> None:
    value: JsonValue = {"é": [1, None, {"a": "b"}]}
    assert replace_surrogates(value) is value
    assert replace_surrogates({"\ud800": 1}) == {"\ufffd": 1}


@pytest.mark.parametrize(
    "message",
    [
        Message("user", (A,)),
        Message("system", (ThinkingPart("h"),)),
        Message("assistant", (RA,)),
        Message("tool", (TextPart("t"),)),
    ],
    ids=["call in user", "thinking in system", "result in assistant", "text in tool"],
)
def test_a_part_in_the_wrong_turn_is_an_input_error(message: Message) -> None:
    with pytest.raises(InputError, match=f"A '{message.role}' message cannot hold a {type(message.parts[0]).__name__}"):
        normalize_history([message], PLAIN)


def test_media_of_results_move_behind_all_results_of_the_turn() -> None:
    image = ImagePart(url="u")
    first = ToolResult("a", "f", "see", media=(TextPart("note"), image))
    result = repaired(CALLED_BOTH, Message.tool(first, RB), ASKED, rules=HistoryRules(result_media="user"))
    told = ToolResult("a", "f", "see\nnote\n[image attached below]")
    assert result.messages[1:] == (Message.tool(told, RB), Message("user", (image,)), ASKED)
    assert [warning.feature for warning in result.warnings] == ["result_media"]
    assert repaired(CALLED_BOTH, Message.tool(first, RB)).messages[1] == Message.tool(first, RB)


# --- turns ----------------------------------------------------------------------------------------------------------

S, T = Message.system("S"), Message.system("T")
TURNS: dict[str, tuple[HistoryRules, list[Message], list[Message], list[str]]] = {
    "system turns stay": (HistoryRules(), [S, ASKED, T], [S, ASKED, T], []),
    "one system turn in front": (HistoryRules(system="front"), [S, ASKED], [S, ASKED], []),
    "leading system turns are one": (
        HistoryRules(system="front"),
        [S, T, ASKED],
        [Message.system("S\n\nT"), ASKED],
        [],
    ),
    "a later system turn goes to the front": (
        HistoryRules(system="front"),
        [S, ASKED, T],
        [Message.system("S\n\nT"), ASKED],
        ["system"],
    ),
    "neighbours are merged": (
        HistoryRules(merge=frozenset({"user"})),
        [ASKED, ASKED, Message.assistant("a"), Message.assistant("b")],
        [Message("user", ASKED.parts * 2), Message.assistant("a"), Message.assistant("b")],
        [],
    ),
    "results keep user turns apart": (
        HistoryRules(merge=frozenset({"user", "assistant"})),
        [ASKED, CALLED, Message.tool(RA), ASKED, ASKED],
        [ASKED, CALLED, Message.tool(RA), Message("user", ASKED.parts * 2)],
        [],
    ),
    "a user turn comes first": (
        HistoryRules(first_user="(begin)"),
        [S, Message.assistant("a")],
        [S, Message.user("(begin)"), Message.assistant("a")],
        ["messages"],
    ),
    "a user turn is first already": (HistoryRules(first_user="(begin)"), [S, ASKED], [S, ASKED], []),
    "nobody speaks": (HistoryRules(first_user="(begin)"), [S], [S], []),
}


@pytest.mark.parametrize(("rules", "given_", "wanted", "warned"), TURNS.values(), ids=TURNS)
def test_turns(rules: HistoryRules, given_: list[Message], wanted: list[Message], warned: list[str]) -> None:
    result = repaired(*given_, rules=rules)
    assert list(result.messages) == wanted
    assert [warning.feature for warning in result.warnings] == warned


# --- properties -------------------------------------------------------------------------------------------------------

few_ids = st.sampled_from(["", "a", "b", "c.d"])
turns = st.one_of(
    st.just(ASKED),
    st.lists(st.builds(ToolCall, few_ids, st.just("f"), st.just({})), max_size=3).map(
        lambda calls: Message.assistant("t", calls)
    ),
    st.lists(st.builds(ToolResult, few_ids, st.just("f"), st.text(max_size=2)), max_size=3).map(
        lambda results: Message.tool(*results)
    ),
)


@given(st.lists(turns, max_size=8), st.sampled_from([None, CallIdRules(), CallIdRules("a-z0-9", exact=9)]))
def test_repaired_history_is_fit_and_stays_the_same_when_repaired_again(
    history: list[Message], ids: CallIdRules | None
) -> None:
    rules = HistoryRules(ids=ids)
    once = repaired(*history, rules=rules).messages
    again = normalize_history(once, rules)
    assert again == NormalizedHistory(once, (), again.call_ids, again.call_names)
    for message, following in zip(once, (*once, None)[1:], strict=True):
        calls = [call.id for call in message.tool_calls]
        results = [result.id for result in following.tool_results] if following else []
        assert calls == results or not calls
        assert bool(calls) == (following is not None and following.role == "tool")


def exchange(ids: list[str], named: str, media: bool) -> list[Message]:
    """A turn of calls and, right behind it, their results."""
    shown = (ImagePart(url="https://example.com/i.png"),) if media else ()
    return [
        Message.assistant(tool_calls=[ToolCall(call_id, "f", {}) for call_id in ids]),
        Message.tool(*(ToolResult(call_id, named, "1", media=shown) for call_id in ids)),
    ]


exchanges = st.builds(
    exchange,
    st.lists(st.sampled_from("abcdefgh.") | st.just(""), min_size=1, max_size=2),
    st.sampled_from(["f", "f", "f", "g"]),
    st.sampled_from([False, False, True]),
)
odd_turns = turns | st.sampled_from([Message("tool", (RA, OpaquePart("home", {}))), Message("user", (RA,))])


@given(
    st.lists(exchanges | odd_turns.map(lambda turn: [turn]) | st.just([Message.assistant("t")]), max_size=5),
    st.sampled_from([PLAIN, HistoryRules(family="home", ids=CallIdRules()), HistoryRules(result_media="user")]),
)
def test_a_conversation_that_is_passed_over_would_have_stayed_as_it_is(
    pieces: list[list[Message]], rules: HistoryRules
) -> None:
    history = [message for piece in pieces for message in piece]
    quickly = normalize_history(history, rules)
    with mock.patch("sigwire.lm.codecs.shared.history._are_fitting", return_value=False):
        assert normalize_history(history, rules) == quickly


@given(st.text(max_size=9), st.booleans())
def test_error_text_is_read_back(text: str, failed: bool) -> None:
    if failed or not text.startswith("ERROR: "):
        assert read_error_text(error_text(ToolResult("a", "f", text, failed))) == (text, failed)


# --- again and again


MIXED = (
    ASKED,
    Message("assistant", (ThinkingPart("hm", provider="home"), OpaquePart("away", {"id": 1}), TextPart("\ud800"), A)),
    Message.tool(RA),
    Message("assistant", (OpaquePart("home", {"id": 2}), B)),
    Message("user", ()),
)


@given(st.lists(st.tuples(st.integers(1, len(MIXED)), st.sampled_from(["home", "away", ""])), max_size=8))
def test_a_turn_that_was_seen_before_is_seen_the_same_by_each_family(rounds: list[tuple[int, str]]) -> None:
    for length, family in rounds:
        messages, rules = MIXED[:length], HistoryRules(family=family)
        assert normalize_history(messages, rules) == normalize_history(copy.deepcopy(messages), rules)
