"""Call ids: which are rewritten, and that a result always has the id of its call."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.messages import Message
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.lm.codecs.shared.history import HistoryRules, normalize_history
from sigwire.lm.histories.call_ids import CallIdRules


def ids_of(*calls: str, rules: CallIdRules | None) -> list[str]:
    messages = [Message.assistant(tool_calls=[ToolCall(call, "f", {}) for call in calls])]
    result = normalize_history(messages, HistoryRules(ids=rules))
    answered = [part.id for part in result.messages[1].tool_results]
    assert answered == [call.id for call in result.messages[0].tool_calls]
    return answered


def test_call_id_is_rewritten_only_if_the_wire_refuses_its_form() -> None:
    assert ids_of("toolu_1", "call.2+/=", rules=CallIdRules()) == ["toolu_1", "call_2___"]
    assert ids_of("abcdef", rules=CallIdRules(max_length=4)) == ["abcd"]
    assert ids_of("", rules=None) == ["call"]


def test_call_ids_stay_distinct_when_they_repeat_or_become_equal() -> None:
    assert ids_of("a.b", "a_b", "a/b", rules=CallIdRules()) == ["a_b", "a_b_2", "a_b_3"]
    assert ids_of("a", "a", rules=None) == ["a", "a_2"]


def test_call_id_of_two_turns_is_rewritten_in_calls_and_results() -> None:
    answered = [Message.assistant(tool_calls=[ToolCall("a", "f", {})]), Message.tool(ToolResult("a", "f", "1"))]
    messages = normalize_history([*answered, *answered], HistoryRules()).messages
    assert [call.id for message in messages for call in message.tool_calls] == ["a", "a_2"]
    assert [result.id for message in messages for result in message.tool_results] == ["a", "a_2"]


@given(st.lists(st.text(max_size=50), max_size=6), st.sampled_from([9, None]), st.sampled_from([None, 12]))
def test_any_call_ids_become_valid_distinct_and_reproducible(
    calls: list[str], exact: int | None, longest: int | None
) -> None:
    rules = CallIdRules("A-Za-z0-9", longest, exact)
    if not calls:
        return
    written = ids_of(*calls, rules=rules)
    assert len(set(written)) == len(calls)
    assert written == ids_of(*calls, rules=rules)
    length = f"{{{exact}}}" if exact else "+"
    assert all(re.fullmatch(f"[A-Za-z0-9_]{length}", call_id) for call_id in written)
