"""Reprs and cards of signatures and histories, and types as Python writes them."""

from __future__ import annotations

import io
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Union

import pytest

from sigwire.core.messages import Message
from sigwire.core.tools.calls import ToolCall
from sigwire.signatures.cards.types import python_type
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature, make_signature
from sigwire.signatures.types.history import History


class Colour(Enum):
    RED = 1


TYPES: list[tuple[Any, str]] = [
    (str, "str"),
    (None, "None"),
    (Literal["billing", "delivery"], "'billing' | 'delivery'"),
    (Literal[1, None], "1 | None"),
    (Optional[int], "int | None"),  # noqa: UP045
    (Union[int, str], "int | str"),  # noqa: UP007
    (int | None, "int | None"),
    (list[Literal["a", "b"]], "list['a' | 'b']"),
    (dict[str, list[Colour]], "dict[str, list[Colour]]"),
    (tuple[int, ...], "tuple[int, ...]"),
    (Annotated[int, "positive"], "int"),
    (Callable[[int, str], bool], "Callable[[int, str], bool]"),
    (Any, "Any"),
]


@pytest.mark.parametrize(("annotation", "text"), TYPES, ids=[text for _, text in TYPES])
def test_type_is_written_as_python_writes_the_type(annotation: Any, text: str) -> None:
    assert python_type(annotation) == text


def test_literal_of_many_values_and_a_deep_type_are_cut() -> None:
    literal: Any = Literal
    assert len(python_type(literal[tuple(range(1_000))])) <= 200
    deep: Any = int
    for _ in range(100):
        deep = list[deep]
    assert python_type(deep).endswith("…]]]]]]]")


class Triage(Signature):
    """Sort the mail."""

    message: str = InputField()
    topic: Literal["billing", "delivery"] = OutputField(desc="what it is about")
    urgency: int = OutputField(ge=0, le=3, default=1)


def test_repr_of_a_signature_has_a_line_for_each_field() -> None:
    assert repr(Triage).splitlines() == [
        "Triage(message -> topic, urgency",
        "    instructions='Sort the mail.'",
        "    message: str (input)",
        "    topic: 'billing' | 'delivery' (output): what it is about",
        "    urgency: int (output): at least 0, at most 3",
        ")",
    ]
    assert repr(Signature) == "<class 'sigwire.signatures.signature.Signature'>"


def test_card_of_a_signature_has_a_row_for_each_field() -> None:
    file = io.StringIO()
    Triage.show(file, width=100)
    assert file.getvalue().splitlines() == [
        "Triage  message -> topic, urgency",
        "  instructions  Sort the mail.",
        "  field    role    type                    description       limits                 default",
        "  message  input   str",
        "  topic    output  'billing' | 'delivery'  what it is about",
        "  urgency  output  int                                       at least 0, at most 3  1",
    ]


def test_fields_may_have_the_names_of_the_methods_of_cards() -> None:
    signature = make_signature("show -> card")
    assert repr(signature(show="a", card="b")) == "StringSignature(show='a', card='b')"


def test_repr_of_a_history_counts_turns_and_messages() -> None:
    history = History([{"question": "Hi"}, Message.assistant("Hello"), Message.user("Bye")])
    assert repr(history) == "History(1 turn, 2 messages)"
    assert repr(History()) == "History(0 turns)"
    assert repr(History([{"q": 1}, {"q": 2}])) == "History(2 turns)"


def test_card_of_a_history_warns_of_a_call_without_a_result() -> None:
    file = io.StringIO()
    History([{"question": "Hi"}, Message.assistant("", [ToolCall("a", "find", {})])]).show(file, width=80)
    assert file.getvalue().splitlines() == [
        "History  1 turn, 1 message",
        "  unanswered  1 call without a result: find",
        "  turn",
        "    question  Hi",
        "  assistant",
        "    find()",
    ]
