"""Field codecs: values are equal after text and JSON, repairs are listed, and strict refuses repairs."""

from __future__ import annotations

import datetime as dt
import enum
import pathlib
import re
import sys
import typing as t
import uuid
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, HttpUrl, field_validator, model_validator
from typing_extensions import TypedDict

from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.edges import EDGES
from sigwire.adapters.values.typed_json import ReadValue
from sigwire.core.parts import AudioPart, ImagePart
from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.errors import FieldDefinitionError, InputError, ValueReadError
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.signatures.types import Audio, Code, Image, Reasoning


class Color(enum.Enum):
    RED = "red"
    SKY_BLUE = "sky blue"


class Word(str, enum.Enum):  # noqa: UP042  (not the same as StrEnum, and common)
    YES = "yes"
    EMPTY = ""


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    ONE = 1
    TEXT = "1"
    WORD = "word"


class Person(BaseModel):
    name: str
    age: int = Field(ge=0)
    tags: list[str] = []
    note: str | None = None


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Aliased(BaseModel):
    content_type: str = Field(alias="Content-Type")
    inner: Person | None = Field(default=None, validation_alias="in")


class Cat(BaseModel):
    kind: t.Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: t.Literal["dog"] = "dog"
    age: int


class Left(BaseModel):
    x: int


class Right(BaseModel):
    x: int


class Loose(BaseModel):
    a: int = 0
    b: str = ""


class Normalizing(BaseModel):
    when: dt.date
    tags: tuple[str, ...]

    @field_validator("when", mode="before")
    @classmethod
    def _stripped(cls, value: object) -> object:
        return value.strip() if isinstance(value, str) else value

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: object) -> object:
        return dict(value) if isinstance(value, dict) else value


@dataclass(frozen=True)
class Point:
    x: float
    label: str = ""


class Row(TypedDict):
    id: int
    when: t.NotRequired[dt.date]


class Pair(t.NamedTuple):
    left: int
    right: str = "r"


def field(kind: t.Any, direction: str = "output", **options: t.Any) -> t.Any:
    declare = InputField if direction == "input" else OutputField
    members: dict[str, t.Any] = {
        "__module__": __name__,
        "__annotations__": {"value": kind} if direction == "input" else {"text": str, "value": kind},
        "value": declare(**options),
    }
    if direction == "output":
        members["text"] = InputField()
    return type(Signature)("Made", (Signature,), members).spec.field("value")


def codec(kind: t.Any, direction: str = "output", **options: t.Any) -> FieldCodec:
    return FieldCodec(field(kind, direction, **options))


def whats(read: ReadValue) -> list[str]:
    return [repair.what for repair in read.repairs]


# --- nothing is lost ---------------------------------------------------------------------------------

PIECES = [
    "", " ", "\n", "\t", "\\", "\\\\", "\x00", "\ud800", "\udfff", "null", "None", "true", "NaN", "5", '"', "'", "`", "```",
    "```python\n", "~~~tool_call\n", "[[ ## answer ## ]]", "[[ ## completed ## ]]", "</answer>", "<![CDATA[", "]]>", "{", "}",
    '{"a": 1}', "[1", "é", "\u2028", "\u3000", "\x85", "\ufeff", "a", "# x", "// y", "\r\n", "&lt;", "\N{GRINNING FACE}",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=6).map("".join)
whole = texts.filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
finite = st.floats(allow_nan=False, allow_infinity=False)
people = st.builds(
    Person, name=whole, age=st.integers(0, 2**70), tags=st.lists(whole, max_size=2), note=st.none() | whole
)
nodes = st.recursive(
    st.builds(Node, value=st.integers()),
    lambda inner: st.builds(Node, value=st.integers(), children=st.lists(inner, max_size=2)),
    max_leaves=5,
)
# In JSON text two halves of a surrogate pair become one character; only a text field keeps them apart.
nested = texts.map(lambda text: re.sub("[\ud800-\udfff]+", lambda halves: halves[0][:1], text))
plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | nested,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(whole, inner, max_size=3),
    max_leaves=5,
)

KINDS: dict[str, tuple[t.Any, st.SearchStrategy[t.Any]]] = {
    "str": (str, texts),
    "str or None": (str | None, st.none() | texts),
    "Optional str": (t.Optional[str], st.none() | texts),  # noqa: UP045
    "int": (int, st.integers()),
    "int or None": (int | None, st.none() | st.integers()),
    "float": (float, finite),
    "bool": (bool, st.booleans()),
    "None": (None, st.none()),
    "Any": (t.Any, plain_json),
    "object": (object, plain_json),
    "literal words": (t.Literal["a", " b ", "", "null", '"q"', "\\", "A"],
                      st.sampled_from(["a", " b ", "", "null", '"q"', "\\", "A"])),
    "literal words or None": (t.Literal["a", "null", "\\null"] | None, st.sampled_from(["a", "null", "\\null", None])),
    "literal mix": (t.Literal["1", 1, True, "true", None], st.sampled_from(["1", 1, True, "true", None])),
    "enum": (Color, st.sampled_from(Color)),
    "enum of texts": (Word, st.sampled_from(Word)),
    "int enum": (Level, st.sampled_from(Level)),
    "mixed enum": (Mixed, st.sampled_from(Mixed)),
    "enum or None": (Color | None, st.none() | st.sampled_from(Color)),
    "int or str": (int | str, st.integers() | nested),
    "int, str or None": (int | str | None, st.none() | st.integers() | nested),
    "list or str": (list[str] | str, st.lists(nested, max_size=2) | nested),
    "bool or int": (bool | int, st.booleans() | st.integers()),
    "int or float": (int | float, st.integers() | finite),
    "list of str": (list[str], st.lists(nested, max_size=3)),
    "list of str or None": (list[str] | None, st.none() | st.lists(nested, max_size=2)),
    "dict": (dict[str, list[int] | None], st.dictionaries(whole, st.none() | st.lists(st.integers(), max_size=2), max_size=2)),
    "dict by int": (dict[int, str], st.dictionaries(st.integers(), whole, max_size=2)),
    "bare list": (list, st.lists(plain_json, max_size=2)),
    "bare dict": (dict, st.dictionaries(whole, plain_json, max_size=2)),
    "tuple": (tuple[int, str, float], st.tuples(st.integers(), whole, finite)),
    "open tuple": (tuple[int, ...], st.lists(st.integers(), max_size=3).map(tuple)),
    "set": (set[int], st.sets(st.integers(), max_size=3)),
    "frozenset": (frozenset[str], st.frozensets(whole, max_size=3)),
    "bytes": (bytes, st.binary(max_size=8)),
    "list of bytes": (list[bytes], st.lists(st.binary(max_size=4), max_size=2)),
    "complex": (complex, st.complex_numbers(allow_nan=False, allow_infinity=False)),
    "Decimal": (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    "datetime": (dt.datetime, st.datetimes(timezones=st.none() | st.just(dt.UTC))),
    "date": (dt.date, st.dates()),
    "time": (dt.time, st.times()),
    "timedelta": (dt.timedelta, st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999))),
    "UUID": (uuid.UUID, st.uuids()),
    "Path": (pathlib.Path, whole.map(lambda text: pathlib.Path(text.replace("\x00", "")))),
    "datetime or None": (dt.datetime | None, st.none() | st.datetimes()),
    "URL": (HttpUrl, st.just(HttpUrl("https://example.com/a?b=%20#c"))),
    "model": (Person, people),
    "model or None": (Person | None, st.none() | people),
    "models": (list[Person], st.lists(people, max_size=2)),
    "recursive model": (Node, nodes),
    "aliases": (Aliased, st.builds(lambda c, i: Aliased(**{"Content-Type": c, "in": i}), whole, st.none() | people)),
    "tagged union": (
        t.Annotated[Cat | Dog, Field(discriminator="kind")],
        st.builds(Cat, lives=st.integers()) | st.builds(Dog, age=st.integers()),
    ),
    "union of models": (Cat | Dog, st.builds(Cat, lives=st.integers()) | st.builds(Dog, age=st.integers())),
    "dataclass": (Point, st.builds(Point, x=finite, label=whole)),
    "TypedDict": (Row, st.fixed_dictionaries({"id": st.integers()}, optional={"when": st.dates()})),
    "NamedTuple": (Pair, st.builds(Pair, st.integers(), whole)),
    "validators": (Normalizing, st.builds(Normalizing, when=st.dates(), tags=st.lists(whole, max_size=2).map(tuple))),
    "Code": (Code, texts.map(Code)),
    "Code java": (Code["java"], texts.map(Code["java"])),
    "Code or None": (Code | None, st.none() | texts.map(Code)),
    "Reasoning": (Reasoning, texts.map(Reasoning)),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_value_is_equal_when_read_from_its_text_or_json(name: str) -> None:
    kind, values = KINDS[name]
    codec_ = codec(kind)

    @given(values)
    def survives(value: t.Any) -> None:
        text = codec_.render(value)
        assert text == text.strip()
        assert same(codec_.read(text, strict=True), ReadValue(value))
        assert same(codec_.read(f"\n {text}\n\n", strict=True), ReadValue(value))
        dumped = codec_.dump(value)
        assert same(codec_.load(dumped, strict=True), ReadValue(value))
        assert codec_.render(dumped) == text

    survives()


def same(left: t.Any, right: t.Any) -> bool:
    """Equal, and equal in type: ``1``, ``1.0`` and ``True`` are three values. Sets, mappings and times have several reprs."""
    return left == right and (
        repr(left) == repr(right) or isinstance(left.value, (set, frozenset, dict, complex, dt.datetime, dt.time))
    )


def test_none_empty_and_absent_are_different() -> None:
    texts_ = codec(str | None)
    assert [texts_.read(text).value for text in ("null", "", "\\", "\\null", "none at all")] == [
        None, "", "", "null", "none at all",
    ]  # fmt: skip
    lists = codec(list[str] | None)
    assert (lists.read("null").value, lists.read("[]").value, lists.read('[""]').value) == (None, [], [""])
    with pytest.raises(ValueReadError):
        lists.read("")


def test_text_is_never_decoded_for_text_fields() -> None:
    for text in ('{"value": "x"}', '"quoted"', "null", "5", "```\nx\n```"):
        assert codec(str).read(text) == ReadValue(text)


# --- reading what models write -------------------------------------------------------------------------

REPAIRED: list[tuple[t.Any, str, t.Any, str]] = [
    (int, '"5"', 5, 'the text "5" was read as a number'),
    (int, "5.0", 5, "5.0 was read as a whole number"),
    (int, "1,234", 1234, 'the text "1,234" was read as a number'),
    (int, "007", 7, "odd spelling of a number"),
    (int, "```\n5\n```", 5, "a code fence was taken off"),
    (float, '"0.5"', 0.5, 'the text "0.5" was read as a number'),
    (bool, "yes", True, '"yes" was read as true'),
    (bool, "No.", False, '"No." was read as false'),
    (bool, "1", True, "1 was read as true"),
    (bool, "True", True, "Python literal"),
    (int | None, "None", None, "Python literal"),
    (Person | None, "None", None, '"None" was read as null'),
    (str | None, "None", None, "None was read as null"),
    (t.Literal["a", "b"], "A", "a", '"A" was read as "a"'),
    (t.Literal["a", "b"], "'a'", "a", '''"'a'" was read as "a"'''),
    (t.Literal["a", "b"], "**b**", "b", '"**b**" was read as "b"'),
    (t.Literal[1, 2], '"2"', 2, '"2" was read as 2'),
    (Color, "SKY_BLUE", Color.SKY_BLUE, '"SKY_BLUE" was read as "sky blue"'),
    (Level, '"HIGH"', Level.HIGH, '"HIGH" was read as 2'),
    (Level, "high", Level.HIGH, '"high" was read as 2'),
    (dt.date, "`2026-01-02`", dt.date(2026, 1, 2), "quotes around the value were taken off"),
    (dt.date, "2026-01-02T00:00:00", dt.date(2026, 1, 2), "the value was converted to the declared type"),
    (list[int], "[1, 2,]", [1, 2], "trailing comma"),
    (list[int], '["1", 2]', [1, 2], '[0]: the text "1" was read as a number'),
    (list[str], "[1, 'a']", ["1", "a"], "single quotes"),
    (list[int], '"[1]"', [1], "JSON in a string was decoded"),
    (list[bool], '["yes"]', [True], '[0]: "yes" was read as true'),
    (list[Color], '["RED"]', [Color.RED], '[0]: "RED" was read as "red"'),
    (Person, '{"name": 7, "age": 3}', Person(name="7", age=3), "name: the number 7 was read as text"),
    (Person, '{"name": "x", "age": "3"}', Person(name="x", age=3), 'age: the text "3" was read as a number'),
    (Person, '{"json": {"name": "x", "age": 3}}', Person(name="x", age=3), "the envelope 'json' was taken off"),
    (Person, "{name: 'x', age: 3}", Person(name="x", age=3), "unquoted key (2 times)"),
    (Person, 'Here: {"name": "x", "age": 3}', Person(name="x", age=3), "text before the JSON was left out"),
    (Person, '{"name": "x", "age": 3} as asked', Person(name="x", age=3), "text after the JSON was left out"),
    (Loose, '{"json": {"a": 4}}', Loose(a=4), "the envelope 'json' was taken off"),
    (Loose, '{"c": 4}', Loose(), "none of the members 'c' is known; they were left out"),
    (Left | Right, '{"x": 1}', Left(x=1), "the value fits Left and Right alike; Left was taken"),
    (list[Left | Right], '[{"x": 1}]', [Left(x=1)], 
     "a part of the value fits several types alike; the one declared first was taken"),
    (Code, "Here:\n```python\nx = 1\n```\nDone.", Code("x = 1"), "text around the code was left out"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "value", "what"), REPAIRED)
def test_known_model_mistakes_are_repaired_and_listed(kind: t.Any, text: str, value: t.Any, what: str) -> None:
    read = codec(kind).read(text)
    assert same(read, ReadValue(value, read.repairs))
    assert what in whats(read)
    assert all(repair.field == "value" for repair in read.repairs)


@pytest.mark.parametrize(("kind", "text"), [case[:2] for case in REPAIRED])
def test_strict_read_refuses_every_repair(kind: t.Any, text: str) -> None:
    with pytest.raises(ValueReadError):
        codec(kind).read(text, strict=True)


EXACT: list[tuple[t.Any, str, t.Any]] = [
    (int, "5", 5),
    (float, "5", 5.0),
    (bool, "true", True),
    (int | str, "5", 5),
    (int | str, '"5"', "5"),
    (int | str, "five", "five"),
    (int | float, "5.0", 5.0),
    (str | bool, "true", True),
    (t.Any, "[1", "[1"),
    (t.Literal["a", "b"], '"a"', "a"),
    (t.Literal['"a"', "a"], '"a"', '"a"'),
    (Color, "red", Color.RED),
    (dt.date, '"2026-01-02"', dt.date(2026, 1, 2)),
    (Decimal, "1.50", Decimal("1.50")),
    (list[Decimal], '[1, "1.50"]', [Decimal(1), Decimal("1.50")]),
    (bytes, "aGk=", b"hi"),
    (Point, '{"x": 1}', Point(1.0)),
    (Cat | Dog, '{"age": 3}', Dog(age=3)),
    (Normalizing, '{"when": " 2026-01-02 ", "tags": []}', Normalizing(when=dt.date(2026, 1, 2), tags=())),
    (Aliased, '{"content_type": "x"}', Aliased(**{"Content-Type": "x"})),
    (Code, "```python\nx = 1\n```", Code("x = 1")),
]


@pytest.mark.parametrize(("kind", "text", "value"), EXACT)
def test_exact_values_need_no_repair(kind: t.Any, text: str, value: t.Any) -> None:
    assert same(codec(kind).read(text, strict=True), ReadValue(value))
    assert same(codec(kind).read(text), ReadValue(value))


REFUSED: list[tuple[t.Any, str, str]] = [
    (int, "5 or 6", "no JSON"),
    (int, "5.5", "valid integer"),
    (int, "", "no JSON"),
    (float, "NaN", "NaN"),
    (float, '"nan"', "NaN"),
    (float, "1,234", "no JSON"),
    (list[float], "[1, Infinity]", "Infinity"),
    (list[float], '["-inf"]', "NaN and infinity"),
    (bool, "maybe", "not a JSON value"),
    (t.Literal["a", "A"], "'b'", "should be 'a' or 'A'"),
    (list[str], '["a", "thr', "not closed"),
    (dict[str, int], '{"a": 1, "b": tr', "cut off"),
    (list[int], "[1] or [2]", "more than one"),
    (Person, '{"name": "x", "age": -1}', "age: should be greater than or equal to 0, not -1"),
    (Person, '{"name": "x"}', "age: Field required"),
    (list[t.Any], "[" * 300 + ",", "deep"),
    (tuple[int, str], "[1]", "Field required"),
    (dt.date, "tomorrow", "valid date"),
    (uuid.UUID, "12", "valid UUID"),
]


@pytest.mark.parametrize(("kind", "text", "problem"), REFUSED)
def test_value_of_another_type_is_refused_with_the_reason(kind: t.Any, text: str, problem: str) -> None:
    with pytest.raises(ValueReadError) as caught:
        codec(kind).read(text)
    assert problem in str(caught.value)


def test_constraints_are_enforced_on_text_and_json() -> None:
    short = codec(str, max_length=3)
    assert short.read("abc").value == "abc"
    with pytest.raises(ValueReadError, match="at most 3"):
        short.read("abcd")
    with pytest.raises(ValueReadError, match="at most 3"):
        short.load("abcd")
    with pytest.raises(ValueReadError, match="less than or equal to 1"):
        codec(float, le=1).read("2")


def test_error_inside_a_users_validator_is_raised() -> None:
    class Broken(BaseModel):
        a: int

        @field_validator("a")
        @classmethod
        def _fail(cls, value: int) -> int:
            return value + t.cast(int, None)

    with pytest.raises(TypeError):
        codec(Broken).read('{"a": 1}')


@given(st.text() | texts)
def test_any_text_is_read_deterministically_as_value_or_problem(text: str) -> None:
    for kind in (int, Person | None, list[Left | Right], Color, t.Any, Code):
        outcomes = [_outcome(CODECS.setdefault(kind, codec(kind)), text) for _ in range(2)]
        assert repr(outcomes[0]) == repr(outcomes[1])


CODECS: dict[t.Any, FieldCodec] = {}


def _outcome(codec_: FieldCodec, text: str) -> object:
    try:
        return codec_.read(text)
    except ValueReadError as problem:
        return str(problem)


@given(texts)
def test_lenient_read_equals_strict_read_when_strict_succeeds(text: str) -> None:
    for kind in (int, bool, Person, list[str], Color, t.Any, int | str):
        codec_ = CODECS.setdefault(kind, codec(kind))
        try:
            strict = codec_.read(text, strict=True)
        except ValueReadError:
            continue
        assert same(codec_.read(text), strict)
        assert not strict.repairs


# --- writing -------------------------------------------------------------------------------------------


def test_nan_is_refused_when_written() -> None:
    for kind, value in ((float, float("nan")), (list[float], [1.0, float("inf")]), (t.Any, {"a": float("-inf")})):
        with pytest.raises(InputError, match="'value' holds"):
            codec(kind).render(value)
        with pytest.raises(InputError):
            codec(kind).dump(value)


def test_json_is_compact_and_keeps_every_character() -> None:
    assert codec(list[str]).render(["é", "\N{GRINNING FACE}"]) == '["é","\N{GRINNING FACE}"]'


def test_list_for_a_text_input_is_numbered() -> None:
    passages = codec(str, "input")
    assert passages.render_input(["a", "b\nc", 3]) == "[1] «a»\n[2] «««\nb\nc\n»»»\n[3] «3»"
    assert passages.render_input([]) == "[]"
    assert passages.render(["a"]) == '["a"]'
    assert codec(list[str], "input").render_input(["a"]) == '["a"]'


def test_other_values_for_a_text_input_are_json() -> None:
    assert [codec(str, "input").render_input(value) for value in (5, {"a": [1]}, None)] == ["5", '{"a":[1]}', "null"]


class Opaque:
    def __str__(self) -> str:
        return " opaque "


@pytest.mark.parametrize("inside", [lambda thing: thing, lambda thing: [1, {"k": thing}]], ids=["alone", "inside"])
@pytest.mark.parametrize("kind", ["Any", "dict[str, Any]", "Thing"])
def test_input_with_a_memory_address_as_text_is_an_error(kind: str, inside: t.Callable[[t.Any], t.Any]) -> None:
    class Thing:
        pass

    codec = FieldCodec(Signature(f"thing: {kind} -> b", custom_types={"Thing": Thing}).spec.inputs[0])
    value = {"k": inside(Thing())} if kind.startswith("dict") else inside(Thing())
    with pytest.raises(
        InputError, match=r"field 'thing' holds.*the type Thing has no JSON form.*Give it as plain data, or as text"
    ):
        codec.render_input(value)


def test_input_of_an_unknown_type_is_its_str_and_output_an_error() -> None:
    assert codec(Opaque, "input").render(Opaque()) == "\\ opaque \\"
    with pytest.raises(FieldDefinitionError):
        codec(Opaque)


# --- media ------------------------------------------------------------------------------------------------

CAT = Image("https://example.com/cat.png")
BEEP = Audio(data=b"beep", audio_format="wav")


class Page(BaseModel):
    title: str
    pictures: list[Image]


def test_media_are_parts_between_texts() -> None:
    assert codec(Image, "input").parts(CAT) == (ImagePart(url=CAT.url),)
    page = codec(Page, "input")
    assert page.parts(Page(title="t", pictures=[CAT, CAT])) == (
        '{"title":"t","pictures":[', ImagePart(url=CAT.url), ",", ImagePart(url=CAT.url), "]}",
    )  # fmt: skip
    assert codec(list[Image | Audio], "input").parts([CAT, BEEP])[3] == AudioPart(data=BEEP.data, format="wav")
    assert page.has_media
    assert not codec(str, "input").has_media


def test_media_in_saved_values_are_loaded_by_type() -> None:
    page = codec(Page, "input")
    value = Page(title="t", pictures=[CAT])
    assert page.parts(page.dump(value)) == page.parts(value)
    assert page.render(value) == page.render(page.dump(value)) == '{"title":"t","pictures":[[image]]}'


def test_value_without_media_is_one_text() -> None:
    assert codec(int, "input").parts(5) == ("5",)


# --- tool calls ---------------------------------------------------------------------------------------


def test_tool_calls_are_equal_when_loaded_from_json() -> None:
    spec = Signature("tools: list[Tool], text -> value: ToolCalls").spec.field("value")
    calls = ToolCalls([ToolCall.read("call_7", "add", '{"a": '), ToolCall("call_8", "add", {"a": 1})], text="so")
    codec_ = FieldCodec(spec)
    assert codec_.load(codec_.dump(calls)).value == calls
    assert codec_.read(codec_.render(calls), strict=True).value == calls
    assert codec_.load([{"name": "add", "args": {"a": 1}}]).value[0].arguments == {"a": 1}
    with pytest.raises(ValueReadError, match="invalid tool calls"):
        codec_.load([{"args": {}}])


# --- what holds itself ---------------------------------------------------------------------------------


class Ring(BaseModel):
    links: list[Ring] = []


def _endless(kind: t.Any) -> t.Any:
    ring, items = Ring(), list[t.Any]()
    ring.links.append(ring)
    items.append(items)
    return ring if kind is Ring else items


@pytest.mark.parametrize("kind", [str, t.Any, list[t.Any], Ring, Image | list[t.Any]], ids=str)
@pytest.mark.parametrize("declare", [InputField, OutputField])
def test_value_that_contains_itself_is_an_error_with_the_field(kind: t.Any, declare: t.Any) -> None:
    if declare is OutputField and kind == Image | list[t.Any]:
        pytest.skip("media are inputs")
    other = OutputField() if declare is InputField else InputField()
    signature = Signature({"field": (kind, declare()), "other": other})
    codec = FieldCodec(signature.spec.field("field"))
    with pytest.raises(InputError, match=r"'field' holds"):
        codec.parts(_endless(kind)) if codec.has_media else codec.render(_endless(kind))


# --- plain scalars ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [bool, int, float])
@given(
    text=st.sampled_from(["0", "1", "-7", "1.0", "2.5", "1e400", "NaN", "true", "null", '"1"', '"yes"', "[1]", "{", ""])
)
def test_plain_scalar_is_read_like_an_annotated_one(kind: type, text: str) -> None:
    """The plain one goes to pydantic's core, the other through a ``TypeAdapter``."""
    annotated = t.Annotated[kind, "what means nothing to pydantic"]
    codecs = [FieldCodec(Signature({"value": (of, OutputField())}).spec.outputs[0]) for of in (kind, annotated)]
    plain, through = (outcome(codec, text) for codec in codecs)
    assert plain == through


def outcome(codec: FieldCodec, text: str) -> object:
    try:
        read = codec.read(text)
    except ValueReadError as error:
        return str(error)
    return repr(read), codec.render(read.value)


def test_edges_are_all_blanks_and_the_backslash() -> None:
    assert {"\\"} | {chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()} == EDGES
