"""The schema of a parameter alone is the text that pydantic gives for a record of it."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import gc
import json
import pathlib
import uuid
import weakref
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, cast

import pydantic.dataclasses
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
    create_model,
)
from pydantic_core import core_schema
from typing_extensions import TypedDict

from sigwire.core.schema import inline_refs, untitled_generator
from sigwire.core.tools import function, properties
from sigwire.core.tools.function import FunctionArguments
from sigwire.core.tools.tool import Tool
from sigwire.errors import ToolDefinitionError


class Geo(BaseModel):
    lat: float = Field(description="Latitude.")
    lon: float


class Address(BaseModel):
    street: str
    country: str = "Norway"
    floor: int = 0
    geo: Geo | None = None


class Document(BaseModel):
    """A document."""

    model_config = ConfigDict(title="The document", json_schema_extra={"examples": [1]})
    pages: Annotated[int, Field(description="How many.")] = 1


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Numbers(RootModel[list[int]]):
    pass


@dataclasses.dataclass
class Point:
    x: int
    y: int = 1


class Row(TypedDict):
    a: int
    b: NotRequired[str]


@dataclasses.dataclass
class Outer:
    point: Point
    rows: list[Row]


@pydantic.dataclasses.dataclass
class Checked:
    """A checked record."""

    x: int
    at: Geo | None = None


class Pair(NamedTuple):
    a: int
    b: str = "x"


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Kind(enum.StrEnum):
    A = "a"


class Either(RootModel[int | str]):
    pass


class Own:
    kind: str = "integer"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        return core_schema.int_schema() if cls.kind == "integer" else core_schema.str_schema()


class Holder(BaseModel):
    own: Own


Wide = create_model("Wide", **cast(Any, {f"a{number}": (Address, ...) for number in range(300)}))


ALONE: Mapping[str, Any] = {
    "any": Any, "list": list, "dict": dict, "list of any": list[Any], "dict of any": dict[str, Any],
    "optional any": Optional[Any],  # noqa: UP045
    "model": Address,
    "optional model": Address | None, "list of models": list[Address], "dict of models": dict[str, Geo | None],
    "tuple of models": tuple[Address, Geo], "configured model": Document, "optional configured model": Document | None,
    "root model": Numbers,
    "dataclass": Point, "list of dataclasses": list[Point], "TypedDict": Row, "optional TypedDict": Row | None,
    "nested dataclass": Outer, "pydantic's dataclass": Checked, "named tuple": Pair,
    "enum": Colour, "list of enums": list[Kind],
    "date": datetime.date, "datetime": datetime.datetime, "timedelta": datetime.timedelta, "uuid": uuid.UUID,
    "decimal": decimal.Decimal, "path": pathlib.Path, "bytes": bytes, "secret": pydantic.SecretStr, "url": pydantic.HttpUrl,
    "set": set[str], "frozenset": frozenset[int], "tuple": tuple[int, ...], "literal": Literal[1, "a", None],
    "literal of an enum": Literal[Kind.A], "constrained": Annotated[int, Field(ge=1, description="How many.")],
    "optional constrained": Optional[Annotated[int, Field(ge=1)]],  # noqa: UP045
    "constrained optional": Annotated[int | None, Field(ge=1, description="How many.")],
    "short text": Annotated[str, StringConstraints(max_length=3)],
    "text": Annotated[int, "text"], "unhashable": Annotated[int, ["data"]],
    "optional None": Optional[Literal[None, "a"]],  # noqa: UP045
}  # fmt: skip


def recorded(hint: Any) -> str:
    """Return the schema of a property of a record."""
    record = cast(Any, TypedDict)("Arguments", {"x": hint})
    record.__pydantic_config__ = {"extra": "forbid"}
    schema = TypeAdapter(record).json_schema(schema_generator=untitled_generator())
    whole = {**schema["properties"]["x"], **({"$defs": schema["$defs"]} if "$defs" in schema else {})}
    return json.dumps(inline_refs(whole))


def offered(hint: Any) -> str:
    def f(x: Any) -> None: ...

    f.__annotations__["x"] = hint
    parameters: Any = Tool(f).parameters
    return json.dumps(parameters["properties"]["x"])


@pytest.mark.parametrize("hint", ALONE.values(), ids=ALONE)
def test_schema_of_a_type_alone_is_that_of_a_record(hint: Any) -> None:
    for _ in range(2):  # then from the known schema of a class
        schemas = properties.properties_of([parameter(hint)])
        assert json.dumps(schemas and schemas["x"]) == recorded(hint)


TOGETHER: Mapping[str, Any] = {
    "recursive": Node, "optional recursive": Node | None, "union": Address | Geo, "sequence": Sequence[int],
    "optional decimal": decimal.Decimal | None, "list of optional decimals": list[decimal.Decimal | None],
    "dict of optional decimals": dict[str, decimal.Decimal | None], "optional union model": Either | None,
    "own schema": Own, "optional own schema": Own | None, "json": pydantic.Json[int],
    "described model": Annotated[Address, Field(description="Where to.")],
    "same description": Annotated[Document, Field(description="A document.")],
    "described TypedDict": Annotated[Row, Field(description="A row.")],
    "described list of recursive": Annotated[list[Node], Field(description="All.")],
    "described inside": list[Annotated[int, Field(description="One.")]],
    "with default": Annotated[int, Field(default=4, ge=1)],
    "with default factory": Annotated[list[int], Field(default_factory=list)],
    "two fields": Annotated[int, Field(description="One."), Field(ge=1)],
    "validated": Annotated[int, BeforeValidator(int)], "with schema": Annotated[int, WithJsonSchema({"type": "x"})],
    "wide": Wide,
}  # fmt: skip


@pytest.mark.parametrize("hint", TOGETHER.values(), ids=TOGETHER)
def test_other_types_are_described_by_a_record(hint: Any) -> None:
    assert properties.properties_of([parameter(hint)]) is None
    assert json.loads(offered(hint)) == {
        key: value for key, value in json.loads(recorded(hint)).items() if key != "$defs"
    }


def parameter(hint: Any) -> Any:
    from sigwire.core.tools.function import FunctionParameter

    return FunctionParameter("x", "x", hint, None, None, None)


def test_schemas_of_two_tools_share_no_dict() -> None:
    def f(x: Address) -> None: ...
    def g(x: Address) -> None: ...

    first: Any = Tool(f).parameters
    second: Any = Tool(g).parameters
    first["properties"]["x"]["properties"]["street"]["type"] = "changed"
    assert second["properties"]["x"]["properties"]["street"] == {"type": "string"}
    assert json.dumps(Tool(g).parameters) == json.dumps(second)


def test_rebuilt_model_gives_its_new_schema() -> None:
    namespace: dict[str, Any] = {}

    class Late(BaseModel):
        value: Wanted  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownVariableType]

    for wanted, kind in ((int, "integer"), (str, "string")):
        namespace["Wanted"] = wanted
        Late.__annotations__["value"] = wanted
        Late.model_fields["value"].annotation = wanted
        Late.model_rebuild(force=True, _types_namespace=namespace)
        assert json.loads(offered(Late))["properties"]["value"]["type"] == kind


def test_class_of_a_tool_is_collected() -> None:
    class Short(BaseModel):
        x: int

    offered(Short)
    reference = weakref.ref(Short)
    del Short
    gc.collect()
    assert reference() is None


def test_description_of_an_optional_type_is_given_once() -> None:
    def f(x: Annotated[int, Field(ge=1, description="How many.")] | None = None) -> None: ...

    parameters: Any = Tool(f).parameters
    assert parameters["properties"]["x"] == {
        "anyOf": [{"minimum": 1, "type": "integer"}, {"type": "null"}],
        "description": "How many.",
        "default": None,
    }


LEAVES = [
    str, int, float, bool, type(None), Any, list, dict, object, tuple, bytes, decimal.Decimal, datetime.date,
    datetime.timedelta, uuid.UUID, pathlib.Path, Colour, Kind, Address, Document, Node, Numbers, Either, Point, Outer, Checked,
    Pair, Row, Own, pydantic.SecretStr, Literal["a"], Literal["a", "b"], Literal[1, None], Literal[Kind.A],
]  # fmt: skip
METADATA = [
    "text",
    Field(description="D."),
    Field(title="T"),
    Field(default=None),
    Field(description="D.", examples=[1]),
]


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    made = [
        inner.map(lambda hint: Optional[hint]),  # noqa: UP045
        inner.map(lambda hint: list[hint]),
        inner.map(lambda hint: dict[str, hint]),
        inner.map(lambda hint: tuple[hint, int]),
        st.tuples(inner, st.sampled_from(METADATA)).map(lambda pair: Annotated[pair]),
    ]
    return st.one_of(*made)


HINTS = st.recursive(st.sampled_from(LEAVES), composed, max_leaves=4)


@given(st.lists(HINTS, min_size=1, max_size=2))
def test_composed_types_are_described_as_in_a_record(hints: list[Any]) -> None:
    def described(tool: Any) -> str:
        try:
            return json.dumps(FunctionArguments(tool).schema())
        except ToolDefinitionError as error:
            return str(error)

    def g(a: Any, b: Any = 1) -> None: ...

    g.__annotations__.update(zip("ab", hints, strict=False))
    schemas = described(g)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(function, "properties_of", undecided)
        assert described(g) == schemas


def undecided(parameters: object) -> None: ...


def test_tool_does_not_change_a_class() -> None:
    class Step(BaseModel):
        after: list[Step] = []

    Step.model_rebuild(_types_namespace={"Step": Step})
    clean = json.dumps(Step.model_json_schema())
    what = Field(description="What to move.")
    for hint in (Annotated[Step, what], Annotated[list[Step] | None, what], Annotated[Step | None, what], Step):
        shown = offered(hint)
    assert "move" not in shown
    assert json.dumps(Step.model_json_schema()) == clean


@pytest.mark.parametrize("field", [Field(default=3), Field(default_factory=int)])
def test_default_inside_of_annotated_makes_a_parameter_optional(field: Any) -> None:
    def f(a: Any, b: int) -> None: ...

    f.__annotations__["a"] = Annotated[int, field]
    assert Tool(f).parameters["required"] == ["b"]


@pytest.mark.parametrize("hint", [Own, Holder, list[Holder]])
def test_class_that_makes_its_schema_is_asked_each_time(hint: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert '"integer"' in offered(hint)
    monkeypatch.setattr(Own, "kind", "string")
    Holder.model_rebuild(force=True)
    assert '"string"' in offered(hint)
    monkeypatch.undo()
    Holder.model_rebuild(force=True)


TEXTS = iter(("first", "second"))


def describe(schema: dict[str, Any]) -> None:
    schema["description"] = next(TEXTS)


class Described(BaseModel):
    x: Annotated[int, Field(json_schema_extra=describe)]


def test_schema_of_a_model_with_own_functions_is_not_kept() -> None:
    assert "first" in offered(Described)
    assert "second" in offered(Described)
