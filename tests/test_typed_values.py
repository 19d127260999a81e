"""Typed values outside of prompts: each path of a program gives back a value equal to the one that it took."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import typing
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer
from pydantic_core import core_schema
from typing_extensions import NamedTuple, TypedDict

from sigwire import (
    BootstrapFewShot,
    ConfigurationError,
    Evaluate,
    Example,
    FakeLM,
    InputField,
    Module,
    OutputField,
    Predict,
    Prediction,
    Signature,
    load_records,
    outputs_of,
)
from sigwire.core.events import Finished
from sigwire.evaluate.plain import plain_fields, typed_fields
from sigwire.evaluate.rows.rows import example_of, row_of
from sigwire.journal.results import dump_inputs, dump_result, load_inputs, load_result
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

DAYS = st.dates(min_value=datetime.date(1900, 1, 1))
POINTS = st.builds(Point, x=st.integers(-5, 5), at=DAYS)
CATS = st.integers(0, 9).map(lambda n: Cat(livesLeft=n))
TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=5)
TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "str": (str, TEXTS),
    "int": (int, st.integers(-(2**70), 2**70)),
    "float": (float, st.floats(allow_nan=False, allow_infinity=False)),
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
}


def signature_of(annotation: Any) -> SignatureMeta:
    fields = {"given": (annotation, InputField()), "made": (annotation, OutputField())}
    return typing.cast(SignatureMeta, Signature(fields, "Copy."))


SIGNATURES = {name: signature_of(annotation) for name, (annotation, _) in TYPES.items()}
PROGRAMS = {name: Predict(signature) for name, signature in SIGNATURES.items()}


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


def _prediction(program: Predict[Any, Any], value: Any) -> Prediction:
    return Prediction.from_json(
        {"fields": {"made": program.signature.spec.outputs[0].dump(value)}}, signature=program.signature
    )


def _through_demos(program: Predict[Any, Any], value: Any) -> Any:
    other = program.deepcopy()
    other.demos = [Example(given=value, made=value)]
    loaded = program.deepcopy().load_state(_json(other.dump_state()))
    fields = loaded.demos[0]
    return program.signature.spec.load(fields)["made"]


PATHS: dict[str, Callable[[Predict[Any, Any], Any], Any]] = {
    "spec": lambda p, v: p.signature.spec.load(_json(p.signature.spec.dump({"made": v})))["made"],
    "prediction": lambda p, v: Prediction.from_json(_json(_prediction(p, v).to_json()), signature=p.signature)["made"],
    "outputs_of": lambda p, v: p.signature.spec.load(_json(outputs_of(_prediction(p, v))))["made"],
    "end of a stream": lambda p, v: p.signature.spec.load(_json(Finished(_prediction(p, v)).to_json())["value"])[
        "made"
    ],
    "record": lambda p, v: typed_fields(
        _json(plain_fields({"made": v}, p.signature.spec.by_name)), p.signature.spec.by_name
    )["made"],
    "row of a job": lambda p, v: example_of(
        _json(row_of(Example(given=v, made=v).with_inputs("given"), "7", 0, 1, p.signature.spec.by_name)), p
    )["given"],
    "inputs of a journal": lambda p, v: load_inputs(p, _json(dump_inputs({"given": v}, p)))["given"],
    "result of a journal": lambda p, v: load_result(p, _json(dump_result(p, _prediction(p, v))))["made"],
    "demos of a saved program": _through_demos,
}


@grid("kind, path", TYPES, PATHS)
def test_value_comes_back_equal(path: str, kind: str) -> None:
    @settings(max_examples=6, deadline=None, database=None)
    @given(TYPES[kind][1])
    def check(value: Any) -> None:
        found = PATHS[path](PROGRAMS[kind], value)
        assert (type(found), found) == (type(value), value)

    check()


class Order(BaseModel):
    number: str
    placed: datetime.date


class Ordering(Signature):
    """Read the order."""

    text: str = InputField()
    order: Order = OutputField()
    price: Priced = OutputField()


class Shop(Module):
    """A program without a signature, whose predictor declares the outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.read = Predict(Ordering, lm=LM_OF_ORDERS)

    def forward(self, text: str) -> Any:
        made = self.read(text=text)
        return Prediction(order=made.order, price=made.price)


ANSWER = {"order": {"number": "A1", "placed": "2026-01-02"}, "price": "5 EUR"}
LM_OF_ORDERS = FakeLM(lambda request: ANSWER)
LABELS = {"order": Order(number="A1", placed=datetime.date(2026, 1, 2)), "price": Money(5)}
ROWS = [Example(text=str(number), **LABELS).with_inputs("text") for number in range(3)]


def by_types(example: Any, prediction: Any, trace: object = None) -> bool:
    return bool(
        example.order.placed.year == prediction.order.placed.year and example.price.cents == prediction.price.cents
    )


@pytest.mark.parametrize("make", [lambda: Predict(Ordering, lm=LM_OF_ORDERS), Shop], ids=["predictor", "module"])
def test_records_of_a_file_are_scored_again_and_resumed_with_types(make: Callable[[], Any], tmp_path: Any) -> None:
    evaluate = Evaluate(devset=ROWS, metric=by_types, progress=False, log=tmp_path / "log.jsonl")
    assert evaluate(make()).score == 100
    assert "<Money>" not in (tmp_path / "log.jsonl").read_text()
    loaded = load_records(tmp_path / "log.jsonl", make())
    again = loaded.rescore(lambda example, prediction: by_types(example, prediction) / 2)
    assert (again.score, again.unscored) == (50.0, 0)
    resumed = evaluate(make())
    assert [each.kept for each in resumed.run.records] == [True] * 3
    assert {type(prediction.order) for _, prediction, _ in resumed.results} == {Order}
    assert resumed.rescore(by_types).score == 100


def test_metric_that_meets_plain_values_names_the_program(tmp_path: Any) -> None:
    evaluate = Evaluate(devset=ROWS, metric=by_types, progress=False, log=tmp_path / "log.jsonl")
    evaluate(Predict(Ordering, lm=LM_OF_ORDERS))
    plain = load_records(tmp_path / "log.jsonl")
    assert plain.results[0][1].order == ANSWER["order"]
    with pytest.raises(ConfigurationError, match=r"load_records\(path, program\)"):
        plain.rescore(by_types)
    assert load_records(tmp_path / "log.jsonl", Ordering).rescore(by_types).score == 100


def test_bootstrapped_demos_are_saved_with_the_serializers_of_the_user() -> None:
    program = BootstrapFewShot(by_types, max_bootstrapped_demos=2).compile(
        Predict(Ordering, lm=LM_OF_ORDERS), trainset=ROWS
    )
    program.set_lm(None)
    demos = json.loads(json.dumps(program.dump_state()["demos"]))
    assert {(demo["price"], demo["order"]["placed"]) for demo in demos} == {("5 EUR", "2026-01-02")}


def test_json_of_a_loaded_demo_is_not_written_twice() -> None:
    program = Predict(SIGNATURES["annotated serializer"])
    program.demos = [{"given": 4, "made": 5}]
    state = json.loads(json.dumps(program.dump_state()))
    assert state["demos"] == [{"given": "#4", "made": "#5"}]
    assert program.load_state(state).dump_state()["demos"] == state["demos"]
