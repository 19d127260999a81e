"""Outputs that no text can fill are refused when the signature is defined; the door for DSPy refuses them at the first call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel

import sigwire.dspy as dspy
from sigwire import Audio, FakeLM, File, Image, InputField, OutputField, Predict, Signature, Tool, make_signature
from sigwire.errors import FieldDefinitionError


class Card(BaseModel):
    title: str
    picture: Image


class Sorter(BaseModel):
    key: Callable[[int], int]


class Deck(BaseModel):
    cards: list[Card]
    next: Deck | None = None


@dataclass
class Sound:
    sound: Audio


class Row(TypedDict):
    file: File


class Pair(NamedTuple):
    tool: Tool
    n: int


UNFILLABLE: list[Any] = [
    Image,
    Audio,
    File,
    Tool,
    Callable,
    Callable[[int], int],
    FunctionType,
    Annotated[Image, "x"],
    Image | None,
    Image | Audio,
    list[Image],
    Sequence[Tool],
    dict[str, Audio],
    tuple[int, Image],
    list[Callable[..., Any]],
    dict[str, list[Image | None]],
    Card,
    Sorter,
    Deck,
    Sound,
    Row,
    Pair,
    list[Card],
    Card | None,
]


@pytest.mark.parametrize("kind", UNFILLABLE, ids=str)
def test_output_that_no_text_can_fill_is_refused_at_its_definition(kind: Any) -> None:
    with pytest.raises(FieldDefinitionError, match=r"'out' has the type .* as an output: "):
        make_signature({"q": InputField(), "out": (kind, OutputField())})
    with pytest.raises(FieldDefinitionError):
        Signature("q -> a").append("out", OutputField(), kind)


def test_error_names_the_part_that_no_text_can_fill() -> None:
    with pytest.raises(
        FieldDefinitionError, match=r"the type Card as an output: answers are text.*No text can fill Image in it"
    ):
        make_signature({"q": InputField(), "out": (Card, OutputField())})
    with pytest.raises(FieldDefinitionError, match="a model writes no function"):
        make_signature({"q": InputField(), "out": (Sorter, OutputField())})


FILLABLE: list[tuple[Any, Any, Any]] = [
    (Image | str, "a cat", "a cat"),
    (str | Tool, "f", "f"),
    (Callable[[], int] | int, 3, 3),
    (list[Image | int], [1, 2], [1, 2]),
    (Card | int | None, 4, 4),
    (dict[str, Tool | str], {"a": "b"}, {"a": "b"}),
]


@pytest.mark.parametrize(("kind", "sent", "value"), FILLABLE, ids=[str(kind) for kind, _, _ in FILLABLE])
def test_union_with_a_fillable_member_is_allowed(kind: Any, sent: Any, value: Any) -> None:
    signature = make_signature({"q": InputField(), "out": (kind, OutputField())})
    predict = Predict(signature, lm=(lm := FakeLM([{"out": sent}])))
    assert predict(q="x").out == value
    assert not any(word in lm.requests[0].messages[0].text for word in ("Image", "data URI", "Tool", "callable"))


class Drawn(dspy.Signature):
    question: str = dspy.InputField()
    picture: Image = dspy.OutputField()


class Called(dspy.Signature):
    question: str = dspy.InputField()
    function: Callable[[], int] = dspy.OutputField()


LATE: dict[str, Callable[[], Any]] = {
    "class": lambda: dspy.Predict(Drawn),
    "callable": lambda: dspy.Predict(Called),
    "text": lambda: dspy.Predict("question -> picture: dspy.Image"),
    "tools": lambda: dspy.Predict("question -> tools: list[dspy.Tool]"),
    "ChainOfThought": lambda: dspy.ChainOfThought(Drawn),
}


@pytest.mark.parametrize("make", LATE.values(), ids=LATE)
def test_door_refuses_such_an_output_at_the_first_call(make: Callable[[], Any]) -> None:
    program = make()
    program.set_lm(lm := FakeLM([{"picture": "x"}]))
    with pytest.raises(FieldDefinitionError, match="as an output: "):
        program(question="x")
    assert lm.requests == []
