"""The string form: the types that it denotes, and the positions of its errors."""

from __future__ import annotations

import collections.abc
import datetime
import enum
import typing
from typing import Any, Literal, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.errors import SignatureError
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.parser import TypeScope, caller_scope, parse_signature
from sigwire.signatures.signature import Signature, ensure_signature, make_signature
from sigwire.signatures.types import Audio, Code, History, Image, Reasoning, Tool, ToolCalls


class Colour(enum.Enum):
    RED = "red"


class Outer:
    class Inner:
        pass


TYPES: list[tuple[str, Any]] = [
    ("int", int),
    ("str", str),
    ("bytes", bytes),
    ("None", type(None)),
    ("NoneType", type(None)),
    ("Any", Any),
    ("list", list),
    ("list[str]", list[str]),
    ("dict[str, list[int]]", dict[str, list[int]]),
    ("tuple[str, int]", tuple[str, int]),
    ("tuple[int, ...]", tuple[int, ...]),
    ("frozenset[int]", frozenset[int]),
    ("List[int]", typing.List[int]),  # noqa: UP006
    ("typing.List[int]", typing.List[int]),  # noqa: UP006
    ("Optional[int]", Optional[int]),  # noqa: UP045
    ("int | None", Optional[int]),  # noqa: UP045
    ("int|str|None", Union[int, str, None]),  # noqa: UP007
    ("Union[int, str]", Union[int, str]),  # noqa: UP007
    ("list[int | None]", list[Optional[int]]),  # noqa: UP045
    ("str | (int | float) | None", Union[str, int, float, None]),  # noqa: UP007
    ("((int))", int),
    ("(list[(int | None)])", list[Optional[int]]),  # noqa: UP045
    ("(Literal['(', ')'] | None)", Optional[Literal["(", ")"]]),  # noqa: UP045
    ("Literal['a', 'b']", Literal["a", "b"]),
    ("Literal['a, b: c', \"it's\", '->', 'x]']", Literal["a, b: c", "it's", "->", "x]"]),
    (r"Literal['it\'s', 'line\n']", Literal["it's", "line\n"]),
    ("Literal[1, -2, True, None, b'x']", Literal[1, -2, True, None, b"x"]),
    ("Literal[Colour.RED]", Literal[Colour.RED]),
    ("typing.Literal['a']", Literal["a"]),
    ("Annotated[int, 'note']", typing.Annotated[int, "note"]),
    ("Image", Image),
    ("dspy.Image", Image),
    ("sigwire.Audio", Audio),
    ("list[dspy.Image]", list[Image]),
    ("Reasoning", Reasoning),
    ("Code", Code),
    ("Code['java']", Code["java"]),
    ("dspy.Code[java]", Code["java"]),
    ("Colour", Colour),
    ("Outer.Inner", Outer.Inner),
    ("list[Outer.Inner]", list[Outer.Inner]),
    ("datetime.date", datetime.date),
    ("collections.abc.Sequence[int]", collections.abc.Sequence[int]),
]


@pytest.mark.parametrize(("text", "kind"), TYPES, ids=[text for text, _ in TYPES])
def test_type_in_text_equals_the_python_type(text: str, kind: Any) -> None:
    inputs, outputs = parse_signature(f"a: {text}, b -> c: {text}", TypeScope(scope=globals()))
    assert inputs == [("a", kind), ("b", str)]
    assert outputs == [("c", kind)]


def test_white_space_and_line_breaks_are_ignored() -> None:
    tight, loose = "a:list[int],b->c:int|None", "\n  a : list [ int ]\n, b\n ->  c : int\n | None  "
    assert parse_signature(tight, TypeScope()) == parse_signature(loose, TypeScope())


def test_either_side_may_end_in_a_comma() -> None:
    assert parse_signature("a, -> b,", TypeScope()) == ([("a", str)], [("b", str)])


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("list[", "]")])
def test_type_that_is_nested_too_deeply_is_a_signature_error(opening: str, closing: str) -> None:
    with pytest.raises(SignatureError, match="nested too deeply"):
        parse_signature(f"a -> b: {opening * 5000}int{closing * 5000}", TypeScope())


FAULTS = [
    ("question", "Expected '->'", 8),
    ("question -> ", "Expected an output after the arrow", 12),
    (" -> answer", "Expected an input before the arrow", 1),
    ("->", "Expected an input before the arrow", 0),
    ("a b -> c", "Expected ',' or '->'", 2),
    ("a -> b -> c", "second", 7),
    ("a, a -> b", "duplicate field 'a'", 3),
    ("a -> a", "duplicate field 'a'; inputs and outputs have distinct names", 5),
    ("a: -> b", "Expected a type", 3),
    ("a -> b:", "Expected a type", 7),
    ("a -> b: list[int", "Expected ']'", 16),
    ("a -> b: list[int]]", "Expected ',' or the end", 17),
    ("a -> b: int = 3", "no defaults", 12),
    ("a -> b: Missing", "'Missing' is not a known type", 8),
    ("a -> b: list[Missing]", 'custom_types={"Missing": Missing}', 13),
    ("a -> b: string", "Did you mean 'str'", 8),
    ("a -> b: Lisst[int]", "Did you mean 'List'", 8),
    ("a -> b: Colour.BLUE", "'Colour' has no attribute 'BLUE'", 8),
    ("a -> b: datetime", "a module, not a type", 8),
    ("a -> b: a_value", "of type int, not a type", 8),
    ("a -> b: 'quoted'", "inside Literal", 8),
    ("a -> b: Literal['x", "not closed", 16),
    ("a -> b: Literal[", "Expected a constant", 16),
    ("a -> b: Literal[1 + 1]", "no meaning", 18),
    ("a -> b: int[str]", "cannot be built", 8),
    ("a -> b: Optional", "needs [...]", 8),
    ("a -> b: (int", "Expected ')'", 12),
    ("a -> b: int)", "Expected ',' or the end", 11),
    ("a -> b: ()", "Expected a type", 9),
    ("a -> b: (int, str)", "Expected ')' or '|'", 12),
    ("a -> _b", "underscore", 5),
    ("a -> x²", "not a Python identifier", 5),
    ("a: Literal['\\x'] -> b", "not a Python constant", 11),
    ("a: Literal['\0'] -> b", "not a Python constant", 11),
    ("a: Literal[٣] -> b", "not a Python constant", 11),
    ("a, *b -> c", "no meaning", 3),
    ("a, / -> c", "no meaning", 3),
    ("1 -> c", "name of a field", 0),
    ("a -> b: print('x')", "is not a known type", 8),
    ("a -> b: __import__('os').system", "is not a known type", 8),
    ("a -> b: os.PathLike", "'os' is not a known type", 8),
]
a_value = 3


@pytest.mark.parametrize(("text", "message", "column"), FAULTS, ids=[text for text, *_ in FAULTS])
def test_error_has_its_message_and_position(text: str, message: str, column: int) -> None:
    with pytest.raises(SignatureError) as caught:
        parse_signature(text, TypeScope(scope=globals()))
    said, line, caret = str(caught.value).split("\n")
    assert message in said
    assert (line[4:], caret) == (text, " " * (4 + column) + "^")


def test_error_in_a_text_of_several_lines_shows_its_line() -> None:
    with pytest.raises(SignatureError) as caught:
        Signature("a,\n b: Missing,\n c -> d")
    assert str(caught.value).split("\n")[1:] == ["     b: Missing,", "        ^"]


@given(st.text(max_size=40))
def test_any_text_is_a_signature_or_a_signature_error(text: str) -> None:
    try:
        inputs, outputs = parse_signature(text, TypeScope())
    except SignatureError:
        return
    assert text.count("->") >= 1
    assert all(name.isidentifier() for name, _ in inputs + outputs)


@given(
    st.lists(
        st.one_of(st.text(max_size=12), st.integers(), st.booleans(), st.binary(max_size=5)), min_size=1, max_size=4
    )
)
def test_literal_accepts_all_constants(values: list[Any]) -> None:
    shown = ", ".join(map(repr, values))
    _, ((_, kind),) = parse_signature(f"a -> b: Literal[{shown}]", TypeScope())
    assert kind == Literal[tuple(values)]  # type: ignore[valid-type]
    assert [type(value) for value in typing.get_args(kind)] == [
        type(v) for v in typing.get_args(Literal[tuple(values)])
    ]  # type: ignore[valid-type]


# --- where names come from ---


def test_custom_types_win_and_may_be_dotted_paths() -> None:
    class Image:
        pass

    kinds = Signature(
        "a: Image, b: Some.Where -> c: Missing", custom_types={"Image": Image, "Some.Where": int, "Missing": float}
    )
    assert [spec.annotation for spec in kinds.spec.fields] == [Image, int, float]


def test_class_of_the_caller_needs_no_custom_types() -> None:
    class Local:
        pass

    assert Signature("a -> b: Local").spec.outputs[0].annotation is Local
    assert make_signature("a -> b: list[Local]").spec.outputs[0].annotation == list[Local]
    assert ensure_signature("a -> b: Local").spec.outputs[0].annotation is Local


def test_helper_sees_the_classes_of_its_caller_only_with_a_scope() -> None:
    class Hidden:
        pass

    def helper() -> Any:
        return Signature("a -> b: Hidden")

    def helper_with_scope() -> Any:
        return ensure_signature("a -> b: Hidden", scope=caller_scope())

    with pytest.raises(SignatureError, match="Hidden"):
        helper()
    assert helper_with_scope().spec.outputs[0].annotation is Hidden


def test_class_of_the_caller_named_like_a_known_type_is_ambiguous() -> None:
    class Code:
        pass

    with pytest.raises(
        SignatureError,
        match=r"ambiguous type 'Code': sigwire\.signatures\.types\.text\.Code, or your .*Code.*custom_types",
    ):
        Signature("a -> b: Code")
    assert Signature("a -> b: Code", custom_types={"Code": Code}).spec.outputs[0].annotation is Code


def test_abstract_class_of_the_caller_may_be_named_like_one_of_typing() -> None:
    from collections.abc import Sequence  # noqa: F401

    assert Signature("a -> b: Sequence[int]").spec.outputs[0].annotation == collections.abc.Sequence[int]


def test_parser_imports_nothing() -> None:
    import sys

    sys.modules.pop("colorsys", None)
    with pytest.raises(SignatureError, match="colorsys"):
        Signature("a -> b: colorsys.Missing")
    assert "colorsys" not in sys.modules


# --- the class it makes ---


def test_string_form_makes_a_class_named_string_signature() -> None:
    made = Signature("question -> answer")
    assert isinstance(made, type)
    assert issubclass(made, Signature)
    assert made.__name__ == "StringSignature"
    assert make_signature("a -> b", "Do.", "Named").__name__ == "Named"


def test_instructions_are_given_or_empty_or_default() -> None:
    assert Signature("a, b -> c, d").instructions == "Use `a`, `b` to write `c`, `d`."
    assert Signature("a -> c").delete("a").instructions == "Write `c`."
    assert Signature("a -> c").delete("c").instructions == "Read `a`."
    assert Signature("a -> b", "Do it.").instructions == "Do it."
    assert Signature("a -> b", "").instructions == ""
    assert Signature("q, tools: list[Tool] -> a, calls: ToolCalls").instructions == (
        "Use `q` to write `a`, calling tools where they help."
    )
    assert Signature("q, history: History, tools: list[Tool] -> calls: ToolCalls").instructions == (
        "Use `q` to decide which tools to call."
    )


def test_dict_makes_a_signature() -> None:
    made = Signature({"a": InputField(desc="first"), "n": (int, OutputField(ge=1))}, "Count.")
    assert made.signature == "a -> n"
    assert made.instructions == "Count."
    assert [spec.annotation for spec in made.spec.fields] == [str, int]


def test_other_values_raise() -> None:
    with pytest.raises(SignatureError, match="not int"):
        Signature(3)  # type: ignore[arg-type]
    with pytest.raises(SignatureError, match="InputField"):
        Signature({"a": 3})


def test_types_of_tools_are_known() -> None:
    made = Signature("q, tools: dict[str, Tool], past: History -> calls: ToolCalls")
    assert [spec.annotation for spec in made.spec.fields] == [str, dict[str, Tool], History, ToolCalls]
