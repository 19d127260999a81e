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
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, StringConstraints, TypeAdapter
from typing_extensions import TypedDict

from sigwire.core.schema import inline_refs, untitled_generator
from sigwire.core.tools import properties
from sigwire.core.tools.tool import Tool


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


ALONE: Mapping[str, Any] = {
    "any": Any, "list": list, "dict": dict, "list of any": list[Any], "dict of any": dict[str, Any],
    "optional any": Optional[Any],  # noqa: UP045
    "model": Address, "described model": Annotated[Address, Field(description="Where to.")],
    "optional model": Address | None, "list of models": list[Address], "dict of models": dict[str, Geo | None],
    "tuple of models": tuple[Address, Geo], "configured model": Document, "optional configured model": Document | None,
    "same description": Annotated[Document, Field(description="A document.")], "root model": Numbers,
    "dataclass": Point, "list of dataclasses": list[Point], "TypedDict": Row, "optional TypedDict": Row | None,
    "described TypedDict": Annotated[Row, Field(description="A row.")],
    "nested dataclass": Outer, "pydantic's dataclass": Checked, "named tuple": Pair,
    "enum": Colour, "list of enums": list[Kind],
    "date": datetime.date, "datetime": datetime.datetime, "timedelta": datetime.timedelta, "uuid": uuid.UUID,
    "decimal": decimal.Decimal, "path": pathlib.Path, "bytes": bytes, "secret": pydantic.SecretStr, "url": pydantic.HttpUrl,
    "set": set[str], "frozenset": frozenset[int], "tuple": tuple[int, ...], "literal": Literal[1, "a", None],
    "literal of an enum": Literal[Kind.A], "constrained": Annotated[int, Field(ge=1, description="How many.")],
    "with default": Annotated[int, Field(default=4, ge=1)], "optional constrained": Optional[Annotated[int, Field(ge=1)]],  # noqa: UP045
    "constrained optional": Annotated[int | None, Field(ge=1, description="How many.")],
    "validated": Annotated[int, BeforeValidator(int)], "short text": Annotated[str, StringConstraints(max_length=3)],
    "text": Annotated[int, "text"], "unhashable": Annotated[int, ["data"]], "json": pydantic.Json[int],
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


@pytest.mark.parametrize("hint", [Node, Node | None, Address | Geo, Sequence[int]])
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
