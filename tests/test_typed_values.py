"""Typed values outside of prompts: each path gives back an equal value, shows it as JSON data, or refuses it by name.

``TYPES`` are those whose JSON holds all of a value; ``UNTYPED`` types hold JSON data; no JSON of the values of ``LOST`` is read
as an equal value, and those of ``WITHOUT`` have none. ``PATHS`` are the ways out of a program and back. The tests of whole
runs are in ``test_typed_runs``.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import pickle
import typing
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, NewType, Required, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    RootModel,
    SecretStr,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import core_schema
from typing_extensions import NamedTuple, TypedDict

from sigwire import (
    Code,
    Example,
    File,
    History,
    Image,
    InputError,
    InputField,
    OutputField,
    Predict,
    Prediction,
    Reasoning,
    Signature,
    StateError,
    Tool,
    ToolCall,
    ToolCalls,
    outputs_of,
)
from sigwire.core.events import Finished
from sigwire.core.record import is_same
from sigwire.evaluate.plain import Unreadable, dumped_example, typed_fields, written_fields
from sigwire.evaluate.rows.rows import example_of, row_of
from sigwire.journal.results import dump_inputs, dump_result, load_inputs, load_result
from sigwire.modules.field_types import types_of
from sigwire.optimizers.candidate import Candidate, Demo, applied
from sigwire.signatures.signature import SignatureMeta
from tests.grids import grid

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    GREEN = 2


class Point(BaseModel):
    x: int
    at: datetime.date = datetime.date(2026, 1, 2)


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = Field(alias="livesLeft")


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    place: Point


class Box(BaseModel, Generic[T]):
    inside: T


@dataclasses.dataclass
class Pair:
    left: decimal.Decimal
    right: uuid.UUID


class Row(TypedDict):
    when: datetime.datetime


class Place(NamedTuple):
    row: int
    day: datetime.date


class Money:
    """A class that pydantic knows only by the functions around it."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.cents == self.cents

    def __hash__(self) -> int:
        return self.cents


class Weight(Money):
    """A class with a core schema."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> core_schema.CoreSchema:
        write = core_schema.plain_serializer_function_ser_schema(lambda value: f"{value.cents} g")
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls(int(value.split()[0])), serialization=write
        )


class Unwritten:
    """A class that pydantic checks and cannot write."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(cls)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    YES = "yes"
    NO = "no"


class Sides(enum.Enum):
    LEFT = (1, 2)
    RIGHT = (3, 4)


class Numbers(RootModel[list[int]]):
    pass


class Upper(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def _upper(cls, value: str) -> str:
        return value.upper()


class Cents(BaseModel):
    cents: int

    @field_serializer("cents")
    def _write(self, value: int) -> str:
        return f"{value} c"

    @field_validator("cents", mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        return int(value[:-2]) if isinstance(value, str) else value


class Span(BaseModel):
    start: int
    end: int

    @model_serializer
    def _write(self) -> list[int]:
        return [self.start, self.end]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        return {"start": value[0], "end": value[1]} if isinstance(value, list) else value


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Longer(Point):
    more: int


class Hidden(BaseModel):
    word: SecretStr


class Parts(TypedDict, total=False):
    size: int
    day: Required[datetime.date]


@dataclasses.dataclass(frozen=True)
class Frozen:
    pair: Pair
    days: tuple[datetime.date, ...] = ()


RowId = NewType("RowId", int)


def _read_money(value: Any) -> Any:
    return Money(int(value.split()[0])) if isinstance(value, str) else value


class AnyMoney:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(Money)


Priced = Annotated[
    Money,
    AnyMoney,
    BeforeValidator(_read_money),
    PlainSerializer(lambda value: f"{value.cents} EUR", return_type=str),
]
Doubled = Annotated[
    int, BeforeValidator(lambda v: int(v[1:]) if isinstance(v, str) else v), PlainSerializer(lambda v: f"#{v}")
]

WrittenOnly = Annotated[int, PlainSerializer(lambda v: f"{v} EUR")]

DAYS = st.dates(min_value=datetime.date(1900, 1, 1))
POINTS = st.builds(Point, x=st.integers(-5, 5), at=DAYS)
CATS = st.integers(0, 9).map(lambda n: Cat(livesLeft=n))
TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=5)
TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "str": (str, TEXTS),
    "int": (int, st.integers(-(2**70), 2**70)),
    "float": (float, st.floats(allow_nan=False, allow_infinity=False)),
    "number that JSON lacks": (float, st.sampled_from([math.nan, math.inf, -math.inf])),
    "list of such numbers": (list[float], st.just([math.nan, 1.0, -math.inf])),
    "float or int": (float | int, st.sampled_from([3, 3.0, 0.5])),
    "bool": (bool, st.booleans()),
    "literal": (Literal["a", 1, True], st.sampled_from(["a", 1])),
    "enum": (Color, st.sampled_from(Color)),
    "date": (datetime.date, DAYS),
    "datetime": (datetime.datetime, st.datetimes(timezones=st.none() | st.just(datetime.UTC))),
    "time": (datetime.time, st.times()),
    "timedelta": (datetime.timedelta, st.timedeltas(datetime.timedelta(-9), datetime.timedelta(9))),
    "decimal": (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3)),
    "bytes": (bytes, st.binary(max_size=5)),
    "list of bytes": (list[bytes], st.lists(st.binary(max_size=5), max_size=3)),
    "uuid": (uuid.UUID, st.uuids()),
    "path": (pathlib.PurePosixPath, TEXTS.map(pathlib.PurePosixPath)),
    "dataclass": (Pair, st.builds(Pair, st.decimals(0, 9, places=2), st.uuids())),
    "typed dict": (Row, st.fixed_dictionaries({"when": st.datetimes()})),
    "named tuple": (Place, st.builds(Place, st.integers(), DAYS)),
    "model": (Point, POINTS),
    "model with an alias": (Cat, CATS),
    "generic model": (Box[Point], POINTS.map(lambda point: Box[Point](inside=point))),
    "discriminated union": (
        Annotated[Cat | Dog, Field(discriminator="kind")],
        CATS | POINTS.map(lambda point: Dog(place=point)),
    ),
    "list of models": (list[Point], st.lists(POINTS, max_size=3)),
    "set": (set[str], st.sets(TEXTS, max_size=4)),
    "frozen set": (frozenset[datetime.date], st.frozensets(DAYS, max_size=3)),
    "tuple": (tuple[int, datetime.date], st.tuples(st.integers(), DAYS)),
    "dict with int keys": (dict[int, Point], st.dictionaries(st.integers(), POINTS, max_size=3)),
    "dict with date keys": (dict[datetime.date, Color], st.dictionaries(DAYS, st.sampled_from(Color), max_size=3)),
    "optional": (Point | None, st.none() | POINTS),
    "annotated serializer": (Doubled, st.integers()),
    "list of annotated": (list[Doubled], st.lists(st.integers(), max_size=3)),
    "foreign class": (Priced, st.integers(0, 99).map(Money)),
    "core schema": (Weight, st.integers(0, 99).map(Weight)),
    "foreign class in a dict": (dict[str, Priced], st.just({"a": Money(3)})),
    "foreign class in a model": (Box[Priced], st.just(Box[Priced](inside=Money(3)))),
    "int enum": (Level, st.sampled_from(Level)),
    "str enum": (Word, st.sampled_from(Word)),
    "root model": (Numbers, st.lists(st.integers(), max_size=3).map(Numbers)),
    "model with a validator": (Upper, TEXTS.map(lambda text: Upper(name=text))),
    "model with a field serializer": (Cents, st.integers().map(lambda n: Cents(cents=n))),
    "model with a serializer": (Span, st.builds(Span, start=st.integers(), end=st.integers())),
    "tree": (Tree, st.just(Tree(value=1, children=[Tree(value=2), Tree(value=3)]))),
    "typed dict with optional keys": (Parts, st.fixed_dictionaries({"day": DAYS}, optional={"size": st.integers()})),
    "nested dataclass": (
        Frozen,
        st.builds(Frozen, st.builds(Pair, st.decimals(0, 9, places=2), st.uuids()), st.tuples(DAYS)),
    ),
    "new type": (RowId, st.integers()),
    "deque": (deque[int], st.lists(st.integers(), max_size=3).map(deque)),
    "ordered dict": (OrderedDict[str, int], st.just(OrderedDict(b=1, a=2))),
    "dict with uuid keys": (dict[uuid.UUID, int], st.dictionaries(st.uuids(), st.integers(), max_size=2)),
    "dict with bool keys": (dict[bool, int], st.just({True: 1, False: 2})),
    "date or text": (datetime.date | str, DAYS | st.just("soon")),
    "nested": (dict[str, list[tuple[int, set[datetime.date]]]], st.just({"a": [(1, {datetime.date(2026, 1, 1)})]})),
    "reasoning": (Reasoning, TEXTS.map(Reasoning)),
    "list of reasoning": (list[Reasoning], st.lists(TEXTS.map(Reasoning), max_size=2)),
    "code": (Code, st.sampled_from([Code("x = 1"), Code("```\na\n```")])),
    "code of a language": (Code["java"], st.just(Code["java"]("x"))),  # type: ignore[misc]
    "optional code": (Code | None, st.sampled_from([None, Code("x = 1")])),
    "list of code": (list[Code], st.just([Code("x = 1")])),
    "any JSON": (Any, st.just({"a": [1, None, 2.5, True]})),
}
UNTYPED: dict[str, tuple[Any, Any, Any]] = {
    "any date": (Any, datetime.date(2026, 1, 2), "2026-01-02"),
    "any model": (Any, Point(x=1), {"x": 1, "at": "2026-01-02"}),
    "any tuple": (Any, (1, 2), [1, 2]),
    "any dict with int keys": (Any, {1: 2}, {"1": 2}),
    "list": (list, [datetime.date(2026, 1, 2)], ["2026-01-02"]),
    "dict of any": (dict[str, Any], {"a": {1}}, {"a": [1]}),
}
LOST: dict[str, tuple[Any, Any]] = {
    "enum of tuples": (Sides, Sides.RIGHT),
    "dict with tuple keys": (dict[tuple[int, int], str], {(1, 2): "a"}),
    "dict with enum keys of int": (dict[Color, int], {Color.GREEN: 1}),
    "subclass": (Point, Longer(x=1, more=2)),
    "serializer without a validator": (list[WrittenOnly], [5]),
    "secret": (Hidden, Hidden(word=SecretStr("x"))),
}
WITHOUT: dict[str, tuple[Any, Any]] = {
    "class without a serializer": (Unwritten, Unwritten()),
    "such a class in a list": (list[Unwritten], [Unwritten()]),
    "object in any": (Any, object()),
    "frozen set as a key": (dict[frozenset[int], int], {frozenset({1}): 1}),
}


def signature_of(annotation: Any) -> SignatureMeta:
    fields = {"given": (annotation, InputField()), "made": (annotation, OutputField())}
    return typing.cast(SignatureMeta, Signature(fields, "Copy."))


SIGNATURES = {name: signature_of(annotation) for name, (annotation, _) in TYPES.items()}
PROGRAMS = {name: Predict(signature) for name, signature in SIGNATURES.items()}


def _json(value: Any) -> Any:
    """Return what a store reads: sigwire's stores of runs have Python's spelling of numbers that JSON lacks."""
    return json.loads(json.dumps(value))


def _prediction(program: Predict[Any, Any], value: Any) -> Prediction:
    return Prediction.from_json(
        {"fields": {"made": program.signature.spec.outputs[0].dump(value)}}, signature=program.signature
    )


def _through_demos(program: Predict[Any, Any], value: Any) -> Any:
    other = program.deepcopy()
    other.demos = [Example(given=value, made=value)]
    state = _json(other.dump_state())
    loaded = program.deepcopy().load_state(state)
    assert is_same(loaded.dump_state(), state)
    return loaded.demos[0]["made"]


def _through_a_candidate(program: Predict[Any, Any], value: Any) -> Any:
    data = _json(dumped_example(Example(given=value, made=value), types_of(program)))
    candidate = Candidate.from_json(_json(Candidate(demos={"self": (Demo(data),)}).to_json()))
    return applied(program, candidate).demos[0]["made"]


def _through_a_record(program: Predict[Any, Any], value: Any) -> Any:
    written = _json(written_fields({"made": value}, types_of(program))._asdict())
    json.dumps(written, allow_nan=False)
    return typed_fields(written["plain"], types_of(program), written["forms"])["made"]


def _through_a_conversation(program: Predict[Any, Any], value: Any) -> Any:
    spec = program.signature.spec
    turns = _json(spec.plain_history(History([{"given": value, "made": value}])).to_json())
    turn: Any = spec.typed_history(History.from_json(turns)).messages[0]
    return turn["made"]


def _through_an_input(program: Predict[Any, Any], value: Any) -> Any:
    history = History([{"given": value}])
    name = "past"
    spec = program.signature.append(name, InputField(), History).spec
    turn: Any = spec.load(_json(spec.dump({name: history})))[name].messages[0]
    return turn["given"]


Path = Callable[[Predict[Any, Any], Any], Any]
PATHS: dict[str, Path] = {
    "spec": lambda p, v: p.signature.spec.load(_json(p.signature.spec.dump({"made": v})))["made"],
    "prediction": lambda p, v: Prediction.from_json(_json(_prediction(p, v).to_json()), signature=p.signature)["made"],
    "outputs_of": lambda p, v: p.signature.spec.load(_json(outputs_of(_prediction(p, v))))["made"],
    "end of a stream": lambda p, v: p.signature.spec.load(_json(Finished(_prediction(p, v)).to_json())["value"])[
        "made"
    ],
    "record": _through_a_record,
    "row of a job": lambda p, v: example_of(
        _json(row_of(Example(given=v, made=v).with_inputs("given"), "7", 0, 1, types_of(p))), p
    )["given"],
    "inputs of a journal": lambda p, v: load_inputs(p, _json(dump_inputs({"given": v}, p)))["given"],
    "result of a journal": lambda p, v: load_result(p, _json(dump_result(p, _prediction(p, v))))["made"],
    "demos of a saved program": _through_demos,
    "demos of an optimizer": _through_a_candidate,
    "turn of a session": _through_a_conversation,
    "turn in an input": _through_an_input,
}
FOR_A_BROWSER = {"outputs_of", "end of a stream"}  # JSON that any parser reads: a number that it lacks is null


@grid("kind, path", TYPES, PATHS)
def test_value_comes_back_equal(path: str, kind: str) -> None:
    if path in FOR_A_BROWSER and kind in ("number that JSON lacks", "list of such numbers"):
        return

    @settings(max_examples=6, deadline=None, database=None)
    @given(TYPES[kind][1])
    def check(value: Any) -> None:
        found = PATHS[path](PROGRAMS[kind], value)
        assert type(found) is type(value)
        assert is_same(found, value)

    check()


LEAVES = {name: pair for name, pair in TYPES.items() if name not in ("number that JSON lacks", "list of such numbers")}
HASHABLE = ("int", "date", "uuid", "enum", "decimal")
KEYS = ("int", "date", "uuid", "bool")


@st.composite
def typed_values(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """Draw a type, and the strategy of its values."""
    shape = draw(st.sampled_from(["leaf", "list", "dict", "tuple", "set", "optional", "box"])) if depth else "leaf"
    if shape == "leaf":
        return TYPES[draw(st.sampled_from(sorted(LEAVES)))]
    if shape == "set":
        kind, values = TYPES[draw(st.sampled_from(HASHABLE))]
        return set[kind], st.sets(values, max_size=2)  # type: ignore[valid-type]
    kind, values = draw(typed_values(depth - 1))
    if shape == "list":
        return list[kind], st.lists(values, max_size=2)  # type: ignore[valid-type]
    if shape == "dict":
        key, keys = TYPES[draw(st.sampled_from(KEYS))]
        return dict[key, kind], st.dictionaries(keys, values, max_size=2)  # type: ignore[valid-type]
    if shape == "tuple":
        return tuple[kind, int], st.tuples(values, st.integers())  # type: ignore[valid-type]
    if shape == "optional":
        return kind | None, st.none() | values
    # The settings of the user's model write its bytes: as UTF-8 by default.
    boxes = values.map(lambda value: Box[kind](inside=value)).filter(_writes_json)  # type: ignore[valid-type]
    return Box[kind], boxes  # type: ignore[valid-type]


def _writes_json(model: BaseModel) -> bool:
    try:
        model.model_dump_json()
    except (ValueError, TypeError):
        return False
    return True


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_value_of_a_generated_type_comes_back_equal_on_each_path(data: st.DataObject) -> None:
    annotation, values = data.draw(typed_values())
    value, program = data.draw(values), Predict(signature_of(annotation))
    for name, path in PATHS.items():
        found = path(program, value)
        assert (name, type(found)) == (name, type(value))
        assert is_same(found, value), name


@pytest.mark.parametrize("kind", UNTYPED)
@pytest.mark.parametrize("path", PATHS)
def test_value_of_an_untyped_part_is_json_data(path: str, kind: str) -> None:
    annotation, value, plain = UNTYPED[kind]
    program = Predict(signature_of(annotation))
    if path == "result of a journal":  # the run is replayed instead
        made = Prediction.make({"made": value}, signature=program.signature)
        assert dump_result(program, made) is None
    else:
        assert PATHS[path](program, value) == plain


@pytest.mark.parametrize("kind", LOST)
def test_value_whose_json_is_read_as_another_one_is_refused_or_marked(kind: str) -> None:
    annotation, value = LOST[kind]
    program = Predict(signature_of(annotation))
    record = _through_a_record(program, value)
    with pytest.raises(InputError, match=r"field 'made' has a JSON form that .* \(reading a record .*\)\. Run"):
        bool(record == value)
    with pytest.raises(InputError, match=r"row 7 cannot .* the field 'given' would be read as another .*\)\. Give"):
        PATHS["row of a job"](program, value)
    with pytest.raises(InputError, match=r"input 'given' cannot be recorded: .* another value.*\)\. Pass data"):
        dump_inputs({"given": value}, program)
    made = Prediction.make({"made": value}, signature=program.signature)
    assert dump_result(program, made) is None
    assert json.loads(json.dumps(outputs_of(made)))


REFUSED: dict[str, tuple[type[Exception], str]] = {
    "spec": (ValueError, "field 'made' holds"),
    "row of a job": (InputError, "row 7 cannot be sent.*'given'"),
    "inputs of a journal": (InputError, "input 'given' cannot be recorded"),
    "demos of a saved program": (StateError, r"demos\[0\].*field 'given'"),
    "turn in an input": (ValueError, "field 'past'"),
}


@pytest.mark.parametrize("kind", WITHOUT)
@pytest.mark.parametrize("path", REFUSED)
def test_value_without_a_json_form_is_refused_by_the_name_of_its_field(path: str, kind: str) -> None:
    annotation, value = WITHOUT[kind]
    error, text = REFUSED[path]
    with pytest.raises(error, match=text + r".* \(.*\)\. "):
        PATHS[path](Predict(signature_of(annotation)), value)


@pytest.mark.parametrize("kind", list(WITHOUT)[:3])
def test_value_without_a_json_form_is_marked_in_a_record_and_refused_in_outputs(kind: str) -> None:
    annotation, value = WITHOUT[kind]
    program = Predict(signature_of(annotation))
    record = _through_a_record(program, value)
    assert isinstance(record, Unreadable)
    for use in (str, bool, len, list, lambda it: it == value, lambda it: it.cents, lambda it: f"{it}"):
        with pytest.raises(InputError, match=r"field 'made' has no JSON form \(reading a record that shows .*\)\. Run"):
            use(record)
    made = Prediction.make({"made": value}, signature=program.signature)
    assert dump_result(program, made) is None
    for write in (outputs_of, lambda it: it.to_json(), lambda it: Finished(it).to_json()):
        with pytest.raises(ValueError, match=r"field 'made' holds .* \(writing it as JSON\)\. Give"):
            write(made)


def test_marked_value_stays_marked_in_copies_and_pickles() -> None:
    value = Unreadable("made", "<Money>", "has no JSON form")
    copies = [copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))]
    assert {repr(each) for each in copies} == {"<Money>"}
    again = written_fields({"made": copies[0]}, types_of(PROGRAMS["date"]))
    assert again == ({"made": "<Money>"}, {"made": "text"})


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(Point, {"x": 1}), (datetime.date, "2026-01-02"), (datetime.date | str, "2026-01-02"), (Color, "red")],
)
@pytest.mark.parametrize("path", ["record", "row of a job"])
def test_json_data_of_a_typed_field_stays_json_data(path: str, annotation: Any, value: Any) -> None:
    found = PATHS[path](Predict(signature_of(annotation)), value)
    assert (type(found), found) == (type(value), value)


MEDIA: dict[str, tuple[Any, Any]] = {
    "image": (Image, Image(b"GIF89a")),
    "image by its address": (Image, Image("https://example.org/a.png")),
    "list of images": (list[Image], [Image(b"GIF89a"), Image("https://example.org/a.png")]),
    "image in a model": (Box[Image], Box[Image](inside=Image(b"GIF89a"))),
    "dict of images": (dict[int, Image], {1: Image(b"GIF89a")}),
    "image with a date": (tuple[Image, datetime.date], (Image(b"GIF89a"), datetime.date(2026, 1, 2))),
    "file": (File, File(file_data=b"abc", filename="a.txt")),
    "history": (History, History([{"question": "a", "answer": "b"}, {"picture": Image(b"GIF89a")}])),
}


def _input_signature(annotation: Any) -> SignatureMeta:
    return typing.cast(
        SignatureMeta, Signature({"given": (annotation, InputField()), "made": (str, OutputField())}, "Copy.")
    )


@pytest.mark.parametrize("kind", MEDIA)
def test_media_come_back_equal_and_are_references_in_records(kind: str) -> None:
    annotation, value = MEDIA[kind]
    program, spec = Predict(_input_signature(annotation)), _input_signature(annotation).spec
    assert spec.load(_json(spec.dump({"given": value})))["given"] == value
    assert load_inputs(program, _json(dump_inputs({"given": value}, program)))["given"] == value
    row = _json(row_of(Example(given=value).with_inputs("given"), "7", 0, 1, spec.by_name))
    assert example_of(row, program)["given"] == value
    program.demos = [Example(given=value, made="x")]
    loaded = program.deepcopy().load_state(_json(program.dump_state()))
    assert loaded.demos[0]["given"] == value
    written = written_fields({"given": value}, spec.by_name)
    if kind not in ("history", "image in a model"):
        assert "sha256" in json.dumps(written.plain)
        assert isinstance(typed_fields(written.plain, spec.by_name, written.forms)["given"], Unreadable)


def test_tool_calls_come_back_equal() -> None:
    fields = {"tools": (list[Tool], InputField()), "calls": (ToolCalls, OutputField())}
    signature = typing.cast(SignatureMeta, Signature(fields, "Call."))
    program, calls = Predict(signature), ToolCalls([ToolCall("1", "look", {"a": [1, None]})])
    made = Prediction.make({"calls": calls}, signature=signature)
    assert load_result(program, _json(dump_result(program, made))) == made
    assert signature.spec.load(_json(outputs_of(made)))["calls"] == calls
    written = written_fields({"calls": calls}, types_of(program))
    assert typed_fields(_json(written.plain), types_of(program), written.forms)["calls"] == calls


def test_json_of_a_loaded_demo_is_not_written_twice() -> None:
    program = Predict(SIGNATURES["annotated serializer"])
    program.demos = [{"given": 4, "made": 5}]
    state = json.loads(json.dumps(program.dump_state()))
    assert state["demos"] == [{"given": "#4", "made": "#5"}]
    loaded = program.load_state(state)
    assert (loaded.demos, loaded.dump_state()["demos"]) == ([{"given": 4, "made": 5}], state["demos"])
