"""Normalized history: answers, foreign items, media and turns, by table and by property."""

from __future__ import annotations

import copy
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.messages import Message, Part, Role
from sigwire.core.parts import FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import InputError
from sigwire.lm.codecs.shared.history import (
    NOT_EXECUTED,
    HistoryRules,
    NormalizedHistory,
    error_text,
    normalize_history,
)
from sigwire.lm.histories.call_ids import CallIdRules
from sigwire.lm.histories.conversion import convert_history
from tests.lm.codecs.reading import read_error_text

ASKED = Message.user("q")
A, B = ToolCall("a", "f", {}), ToolCall("b", "g", {})
RA, RB = ToolResult("a", "f", "1"), ToolResult("b", "g", "2")
MISSING = ToolResult("a", "f", NOT_EXECUTED, is_error=True)
QUOTED = Message.user("[result of f, whose call is not in the conversation]\n1")
CALLED = Message.assistant(tool_calls=[A])
CALLED_BOTH = Message.assistant(tool_calls=[A, B])
PLAIN = HistoryRules(family="home")


def normalized(*messages: Message, rules: HistoryRules = PLAIN) -> NormalizedHistory:
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
    "a result behind another turn is moved to its call": (
        [ASKED, CALLED, ASKED, Message.tool(RA)],
        [ASKED, CALLED, Message.tool(RA), ASKED],
        0,
    ),
    "a result in a user turn is moved to its call": (
        [ASKED, CALLED, Message("user", (RA, TextPart("q")))],
        [ASKED, CALLED, Message.tool(RA), ASKED],
        0,
    ),
    "a result without a call is quoted": ([ASKED, Message.tool(RA), ASKED], [ASKED, QUOTED, ASKED], 1),
    "a result of an earlier turn is quoted": (
        [ASKED, CALLED, ASKED, Message.assistant("t"), Message.tool(RA)],
        [ASKED, CALLED, Message.tool(MISSING), ASKED, Message.assistant("t"), QUOTED],
        2,
    ),
    "calls of neighbouring turns are answered together": (
        [ASKED, CALLED, Message.assistant(tool_calls=[B]), Message.tool(RA, RB)],
        [ASKED, CALLED_BOTH, Message.tool(RA, RB)],
        0,
    ),
    "an assistant turn directly behind a call is merged into its turn": (
        [ASKED, CALLED, Message.assistant("t"), Message.tool(RA)],
        [ASKED, Message("assistant", (A, TextPart("t"))), Message.tool(RA)],
        0,
    ),
    "an answered call and the next one stay two turns": (
        [ASKED, CALLED, Message.tool(RA), Message.assistant(tool_calls=[B]), Message.tool(RB)],
        [ASKED, CALLED, Message.tool(RA), Message.assistant(tool_calls=[B]), Message.tool(RB)],
        0,
    ),
    "turns without calls are not merged": (
        [ASKED, Message.assistant("t"), CALLED, Message.tool(RA)],
        [ASKED, Message.assistant("t"), CALLED, Message.tool(RA)],
        0,
    ),
    "a result without an id answers by name": (
        [ASKED, CALLED, Message.tool(ToolResult("", "f", "1"))],
        [ASKED, CALLED, Message.tool(RA)],
        0,
    ),
    "a result without a name gets the name of its call": (
        [ASKED, CALLED, Message.tool(ToolResult("a", "", "1"))],
        [ASKED, CALLED, Message.tool(RA)],
        0,
    ),
}


@pytest.mark.parametrize(("given_", "wanted", "warnings"), WINDOWS.values(), ids=WINDOWS)
def test_history_answers_every_call_once_directly_behind_its_turn(
    given_: list[Message], wanted: list[Message], warnings: int
) -> None:
    result = normalized(*given_)
    assert list(result.messages) == wanted
    assert [warning.feature for warning in result.warnings] == ["tool_results"] * warnings


def test_history_lists_the_call_ids_of_the_caller() -> None:
    assert normalized(ASKED, CALLED, rules=HistoryRules(ids=CallIdRules(exact=9))).call_ids == {"a"}


# --- parts --------------------------------------------------------------------------------------------------------

PARTS: dict[str, tuple[tuple[Part, ...], tuple[Part, ...], list[str]]] = {
    "thinking of the family is kept": (
        (ThinkingPart("h", provider="home"),),
        (ThinkingPart("h", provider="home"),),
        [],
    ),
    "untagged thinking is kept for the encoder": ((ThinkingPart("h"),), (ThinkingPart("h"),), []),
    "foreign thinking is dropped with a warning": (
        (ThinkingPart("h", provider="away"), TextPart("t")),
        (TextPart("t"),),
        ["thinking"],
    ),
    "items of the family are kept": ((OpaquePart("home", {}),), (OpaquePart("home", {}),), []),
    "foreign items are dropped with a warning": ((OpaquePart("away", {}), TextPart("t")), (TextPart("t"),), ["opaque"]),
    "empty text is dropped": ((TextPart(""), TextPart("t")), (TextPart("t"),), []),
    "lone surrogates are replaced": ((TextPart("a\ud800"),), (TextPart("a\ufffd"),), []),
    "lone surrogates in the name of a file are replaced": (
        (FilePart(data="YQ==", filename="\udcffa.txt"),),
        (FilePart(data="YQ==", filename="\ufffda.txt"),),
        [],
    ),
    "surrogate pairs become one character": ((TextPart("\ud83d\ude00"),), (TextPart("😀"),), []),
}


@pytest.mark.parametrize(("given_", "wanted", "warned"), PARTS.values(), ids=PARTS)
def test_history_keeps_the_parts_that_the_family_understands(
    given_: tuple[Part, ...], wanted: tuple[Part, ...], warned: list[str]
) -> None:
    result = normalized(Message("assistant", given_))
    assert result.messages == (Message("assistant", wanted),)
    assert [warning.feature for warning in result.warnings] == warned


def test_history_drops_empty_turns_and_warns_of_user_turns() -> None:
    result = normalized(ASKED, Message.user(""), Message.assistant())
    assert result.messages == (ASKED,)
    assert [warning.detail for warning in result.warnings] == ["An empty user turn was left out."]


def test_history_replaces_lone_surrogates_in_texts_of_results() -> None:
    result = ToolResult("a", "f", "", media=(TextPart("\ud800"), TextPart("b")))
    messages = normalized(Message.assistant(tool_calls=[ToolCall("a", "f", {})]), Message.tool(result)).messages
    (sent,) = messages[-1].parts
    assert isinstance(sent, ToolResult)
    assert sent.media == (TextPart("\ufffd"), TextPart("b"))


def test_history_replaces_lone_surrogates_in_arguments_and_results() -> None:
    call = ToolCall.read("a", "f", '{"x":"\\ud800"}')
    messages = normalized(Message.assistant(tool_calls=[call]), Message.tool(ToolResult("a", "f", ["\ud800"]))).messages
    assert messages[0].tool_calls[0].arguments == {"x": "\ufffd"}
    assert messages[1].tool_results[0].content == ["\ufffd"]


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
def test_history_refuses_a_part_that_its_turn_cannot_hold(message: Message) -> None:
    with pytest.raises(InputError, match=f"A '{message.role}' message cannot hold a {type(message.parts[0]).__name__}"):
        normalize_history([message], PLAIN)


def test_history_moves_media_of_results_behind_all_results_of_the_turn() -> None:
    image = ImagePart(url="u")
    first = ToolResult("a", "f", "see", media=(TextPart("note"), image))
    result = normalized(CALLED_BOTH, Message.tool(first, RB), ASKED, rules=HistoryRules(result_media="user"))
    text = ToolResult("a", "f", "see\nnote\n[image attached below]")
    assert result.messages[1:] == (Message.tool(text, RB), Message("user", (image,)), ASKED)
    assert [warning.feature for warning in result.warnings] == ["result_media"]
    assert normalized(CALLED_BOTH, Message.tool(first, RB)).messages[1] == Message.tool(first, RB)


# --- turns ----------------------------------------------------------------------------------------------------------

S, T = Message.system("S"), Message.system("T")
TURNS: dict[str, tuple[HistoryRules, list[Message], list[Message], list[str]]] = {
    "system turns are kept in place": (HistoryRules(), [S, ASKED, T], [S, ASKED, T], []),
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
        [Message.user("q\n\nq"), Message.assistant("a"), Message.assistant("b")],
        [],
    ),
    "user turns with results between them are not merged": (
        HistoryRules(merge=frozenset({"user", "assistant"})),
        [ASKED, CALLED, Message.tool(RA), ASKED, ASKED],
        [ASKED, CALLED, Message.tool(RA), Message.user("q\n\nq")],
        [],
    ),
    "a user turn comes first": (
        HistoryRules(first_user="(begin)"),
        [S, Message.assistant("a")],
        [S, Message.user("(begin)"), Message.assistant("a")],
        ["messages"],
    ),
    "a user turn is first already": (HistoryRules(first_user="(begin)"), [S, ASKED], [S, ASKED], []),
    "a user turn follows system turns alone": (
        HistoryRules(first_user="(begin)"),
        [S],
        [S, Message.user("(begin)")],
        ["messages"],
    ),
    "system turns alone are kept": (HistoryRules(), [S], [S], []),
}


@pytest.mark.parametrize(("rules", "given_", "wanted", "warned"), TURNS.values(), ids=TURNS)
def test_history_orders_turns_by_the_rules(
    rules: HistoryRules, given_: list[Message], wanted: list[Message], warned: list[str]
) -> None:
    result = normalized(*given_, rules=rules)
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
def test_normalized_history_is_valid_and_stays_equal_when_normalized_again(
    history: list[Message], ids: CallIdRules | None
) -> None:
    rules = HistoryRules(ids=ids)
    once = normalized(*history, rules=rules).messages
    again = normalize_history(once, rules)
    assert again == NormalizedHistory(once, (), again.call_ids, again.call_names)
    for message, following in zip(once, (*once, None)[1:], strict=True):
        calls = [call.id for call in message.tool_calls]
        results = [result.id for result in following.tool_results] if following else []
        assert calls == results or not calls
        assert bool(calls) == (following is not None and following.role == "tool")


def answered_turn(ids: list[str], named: str, media: bool) -> list[Message]:
    """Return a turn of calls and the turn of their results."""
    images = (ImagePart(url="https://example.com/i.png"),) if media else ()
    return [
        Message.assistant(tool_calls=[ToolCall(call_id, "f", {}) for call_id in ids]),
        Message.tool(*(ToolResult(call_id, named, "1", media=images) for call_id in ids)),
    ]


answered_turns = st.builds(
    answered_turn,
    st.lists(st.sampled_from("abcdefgh.") | st.just(""), min_size=1, max_size=2),
    st.sampled_from(["f", "f", "f", "g"]),
    st.sampled_from([False, False, True]),
)
odd_turns = turns | st.sampled_from([Message("tool", (RA, OpaquePart("home", {}))), Message("user", (RA,))])


@given(
    st.lists(answered_turns | odd_turns.map(lambda turn: [turn]) | st.just([Message.assistant("t")]), max_size=5),
    st.sampled_from([PLAIN, HistoryRules(family="home", ids=CallIdRules()), HistoryRules(result_media="user")]),
)
def test_history_with_normal_calls_is_equal_when_the_call_passes_run(
    groups: list[list[Message]], rules: HistoryRules
) -> None:
    history = [message for group in groups for message in group]
    expected = normalize_history(history, rules)
    with mock.patch("sigwire.lm.histories.conversion.are_valid_ids", return_value=False):
        assert normalize_history(history, rules) == expected


@given(st.text(max_size=9), st.booleans())
def test_error_text_is_readable(text: str, failed: bool) -> None:
    if failed or not text.startswith("ERROR: "):
        assert read_error_text(error_text(ToolResult("a", "f", text, failed))) == (text, failed)


# --- cached views


MIXED = (
    ASKED,
    Message("assistant", (ThinkingPart("hm", provider="home"), OpaquePart("away", {"id": 1}), TextPart("\ud800"), A)),
    Message.tool(RA),
    Message("assistant", (OpaquePart("home", {"id": 2}), B)),
    Message("user", ()),
)


@given(st.lists(st.tuples(st.integers(1, len(MIXED)), st.sampled_from(["home", "away", ""])), max_size=8))
def test_cached_view_of_a_turn_is_equal_for_each_family(rounds: list[tuple[int, str]]) -> None:
    for length, family in rounds:
        messages, rules = MIXED[:length], HistoryRules(family=family)
        assert normalize_history(messages, rules) == normalize_history(copy.deepcopy(messages), rules)


TEXTS = ("Hello", "", " ", "\n", "caf\u00e9", "\ud800", "a" * 1000)


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
@pytest.mark.parametrize(
    "rules", [HistoryRules(), HistoryRules(blank_text=False), HistoryRules(merge=frozenset({"user"}))]
)
@pytest.mark.parametrize("text", TEXTS)
def test_plain_history_is_that_of_every_rule(text: str, rules: HistoryRules, role: Role) -> None:
    messages = [Message.user("q"), Message(role, (TextPart(text),)), Message.user("q")]
    assert normalize_history(messages, rules).messages == convert_history(messages, rules).messages
