"""Messages, requests and responses: construction and properties."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import weakref
from collections.abc import Callable

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Attempt, Choice, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice

CALL = ToolCall("call_0", "add", {"a": 1})
RESULT = ToolResult("call_0", "add", 2)


def test_messages_are_made_by_role() -> None:
    image = ImagePart(url="https://example.org/a.png")
    assert Message.system("Be brief.") == Message("system", (TextPart("Be brief."),))
    assert Message.user("Look", image).parts == (TextPart("Look"), image)
    assert Message.assistant("Adding.", [CALL]).parts == (TextPart("Adding."), CALL)
    assert Message.assistant(tool_calls=[CALL]).parts == (CALL,)
    assert Message.tool(RESULT).role == "tool"


def test_message_properties_select_parts_by_kind() -> None:
    message = Message("assistant", (ThinkingPart("hm"), TextPart("a"), CALL, TextPart("b"), RESULT))
    assert (message.text, message.tool_calls, message.tool_results) == ("ab", (CALL,), (RESULT,))


def test_message_of_a_choice_has_its_parts() -> None:
    parts = (ThinkingPart("hm", signature="s"), CALL, TextPart("done"))
    assert Choice.from_parts(parts).message() == Message("assistant", parts)


def test_message_of_a_choice_without_parts_has_the_usual_order() -> None:
    choice = Choice("text", (CALL,), reasoning="hm")
    assert choice.message().parts == (ThinkingPart("hm"), TextPart("text"), CALL)


def test_redacted_thinking_is_not_part_of_reasoning() -> None:
    assert Choice.from_parts([ThinkingPart(redacted="xyz")]).reasoning is None


SUMS = [
    (Usage(1, 2), Usage(3, 4), Usage(4, 6)),
    (Usage(1), Usage(output_tokens=2), Usage(1, 2)),
    (Usage(), Usage(), Usage()),
    (Usage(cost=0.5), Usage(cost=0.25), Usage(cost=0.75)),
]


@pytest.mark.parametrize(("left", "right", "total"), SUMS)
def test_usage_adds_up_and_unknown_is_not_zero(left: Usage, right: Usage, total: Usage) -> None:
    assert left + right == total


def test_total_tokens_add_the_known_counts() -> None:
    assert (Usage(3, 4).total_tokens, Usage(3).total_tokens, Usage().total_tokens) == (7, 3, None)


def test_with_warnings_does_not_change_the_response() -> None:
    response = Response((Choice("4"),), warnings=(LMWarning("seed", "ignored"),))
    more = response.with_warnings(LMWarning("stop", "cut to four"))
    assert [warning.feature for warning in more.warnings] == ["seed", "stop"]
    assert [warning.feature for warning in response.warnings] == ["seed"]
    assert response.with_warnings() is response


def test_named_tool_choice_requires_the_tool() -> None:
    assert (ToolChoice.AUTO.mode, ToolChoice.REQUIRED.mode, ToolChoice.NONE.mode) == ("auto", "required", "none")
    assert ToolChoice.named("search") == ToolChoice("required", ("search",))


@pytest.mark.parametrize(
    "value", [Message.user("a"), Request(), Choice(), Response(), Usage(), Capabilities(), Attempt(), CALL, RESULT]
)
def test_values_are_frozen(value: object) -> None:
    field = dataclasses.fields(value)[0].name  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        setattr(value, field, None)
    assert not hasattr(value, "__dict__")


def test_default_capabilities_are_minimal() -> None:
    nothing_known = Capabilities()
    assert not any(value for name, value in dataclasses.asdict(nothing_known).items() if name != "decides")
    assert nothing_known.decides == "no"


class Looks:
    """Counts its instances."""

    made = 0

    def __init__(self, message: Message) -> None:
        Looks.made += 1
        self.text = message.text


def test_derived_calls_the_function_once() -> None:
    message, before = Message.user("Hello"), Looks.made
    assert message.derived(Looks) is message.derived(Looks)
    assert (message.derived(Looks).text, message.derived(id), Looks.made) == ("Hello", id(message), before + 1)


COPIES: dict[str, Callable[[Message], Message]] = {
    "copied": copy.copy,
    "deeply": copy.deepcopy,
    "replaced": dataclasses.replace,
    "pickled": lambda message: pickle.loads(pickle.dumps(message)),
    "as JSON": lambda message: Message.from_json(message.to_json()),
}


@pytest.mark.parametrize("how", COPIES)
def test_derived_values_are_not_part_of_copies_and_json(how: str) -> None:
    message = Message.assistant("Adding.", [CALL])
    shown, found = repr(message), message.derived(Looks)
    copied = COPIES[how](message)
    assert (copied == message, repr(message), copied.derived(Looks) is found) == (True, shown, False)


def test_derived_values_are_freed_with_the_message() -> None:
    message = Message.user("Hello")
    gone = weakref.ref(message.derived(Looks))
    del message
    assert gone() is None
