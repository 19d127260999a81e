"""Tools from functions: every way Python has to write one gives a schema a model can fill and a call that fits."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import json
import sqlite3
import sys
import textwrap
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from sigwire.core.schema import schema_of
from sigwire.core.tools.function import FunctionArguments
from sigwire.core.tools.tool import Tool
from sigwire.errors import InputError, ToolDefinitionError


class Item(BaseModel):
    """A thing."""

    name: str
    count: int = Field(1, ge=1, description="How many.")


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclasses.dataclass
class Place:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    limit: typing.Required[int]
    order: str


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


SIMPLE = (str, int, float, bool, type(None), Literal["b", "a"])


def _simple_hints(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda hint: list[hint]),
        inner.map(lambda hint: typing.List[hint]),  # noqa: UP006  (the older spelling is common in users' code)
        inner.map(lambda hint: dict[str, hint]),
        inner.map(lambda hint: Optional[hint]),  # noqa: UP045
        inner.map(lambda hint: None | hint),
    )


@given(st.recursive(st.sampled_from(SIMPLE), _simple_hints, max_leaves=4))
def test_schema_of_a_simple_type_is_the_text_that_pydantic_gives(hint: Any) -> None:
    def f(x): ...  # type: ignore[no-untyped-def]

    assert json.dumps(FunctionArguments(f, {"x": hint}).schema()["properties"]["x"]) == json.dumps(schema_of(hint))


def test_tool_of_simple_types_compiles_its_validator_at_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(name: str, tags: list[str], how: Literal["a", "b"] = "a", low: float | None = None) -> None: ...

    made: list[object] = []

    class Counted(TypeAdapter[Any]):
        def __init__(self, *args: Any, **options: Any) -> None:
            made.append(args)
            super().__init__(*args, **options)

    monkeypatch.setattr("pydantic.TypeAdapter", Counted)
    tool = Tool(f)
    assert tool.parameters["required"] == ["name", "tags"]
    assert not made
    for _ in range(2):
        assert tool.bind({"name": "n", "tags": [], "low": "2"}).kwargs == {"name": "n", "tags": [], "low": 2.0}
    assert len(made) == 1


def properties(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    return Tool(function, **options).parameters["properties"]


def bound(function: Callable[..., Any], /, **arguments: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    fit = Tool(function, name="f").bind(arguments)
    return fit.args, fit.kwargs


def fault(function: Callable[..., Any], /, **arguments: Any) -> str:
    with pytest.raises(InputError) as caught:
        Tool(function, name="f").bind(arguments)
    return str(caught.value)


# --- types: schema, what a model may send, what the function gets -----------------------------------------

ITEM = {
    "description": "A thing.",
    "properties": {
        "name": {"type": "string"},
        "count": {"default": 1, "description": "How many.", "minimum": 1, "type": "integer"},
    },
    "required": ["name"],
    "title": "Item",
    "type": "object",
}
TYPES: list[tuple[Any, dict[str, Any], Any, Any]] = [
    (str, {"type": "string"}, "a", "a"),
    (int, {"type": "integer"}, "5", 5),
    (float, {"type": "number"}, 2, 2.0),
    (bool, {"type": "boolean"}, "true", True),
    (Any, {}, {"a": [1]}, {"a": [1]}),
    (list, {"items": {}, "type": "array"}, [1, "a"], [1, "a"]),
    (list[int], {"items": {"type": "integer"}, "type": "array"}, ["1", 2], [1, 2]),
    (dict[str, float], {"additionalProperties": {"type": "number"}, "type": "object"}, {"a": 1}, {"a": 1.0}),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 5, 5),  # noqa: UP045
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "a", "a"),  # noqa: UP007
    (Literal["km", "miles"], {"enum": ["km", "miles"], "type": "string"}, "km", "km"),
    (Colour, {"enum": ["red", "blue"], "title": "Colour", "type": "string"}, "blue", Colour.BLUE),
    (datetime.date, {"format": "date", "type": "string"}, "2026-01-31", datetime.date(2026, 1, 31)),
    (set[int], {"items": {"type": "integer"}, "type": "array", "uniqueItems": True}, [1, 1], {1}),
    (Item, ITEM, {"name": "a"}, Item(name="a")),
    (list[Item], {"items": ITEM, "type": "array"}, [{"name": "a", "count": "2"}], [Item(name="a", count=2)]),
    (Annotated[int, Field(ge=0)], {"minimum": 0, "type": "integer"}, 3, 3),
    (
        Place,
        {
            "additionalProperties": False,
            "properties": {"x": {"type": "integer"}, "y": {"default": 0, "type": "integer"}},
            "required": ["x"],
            "title": "Place",
            "type": "object",
        },
        {"x": "1"},
        Place(1),
    ),
    (
        Options,
        {
            "additionalProperties": False,
            "properties": {"limit": {"type": "integer"}, "order": {"type": "string"}},
            "required": ["limit"],
            "title": "Options",
            "type": "object",
        },
        {"limit": "3"},
        {"limit": 3},
    ),
]


@pytest.mark.parametrize(("hint", "schema", "given", "received"), TYPES, ids=lambda case: str(case)[:40])
def test_types_become_schemas_and_arguments_are_converted(
    hint: Any, schema: dict[str, Any], given: Any, received: Any
) -> None:
    def f(value): ...  # type: ignore[no-untyped-def]

    f.__annotations__ = {"value": hint}
    tool = Tool(f)
    assert tool.parameters == {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    assert tool.bind({"value": given}).kwargs == {"value": received}


def test_recursive_type_stays_a_reference() -> None:
    def f(tree: Node, more: list[Node]) -> None: ...

    tool = Tool(f)
    assert set(tool.parameters["$defs"]) == {"Node"}  # type: ignore[arg-type]
    assert tool.parameters["properties"]["tree"] == {"$ref": "#/$defs/Node"}
    inner = tool.bind({"tree": {"value": 1, "children": [{"value": "2"}]}, "more": []}).kwargs["tree"].children[0]
    assert inner == Node(value=2)
    assert "tree.children.0.value" in fault(f, tree={"value": 1, "children": [{"value": "x"}]}, more=[])


def test_discriminator_has_no_mapping_to_inlined_definitions() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    def f(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> None: ...

    f.__annotations__ = {"pet": Annotated[Cat | Dog, Field(discriminator="kind")]}
    assert "#/$defs" not in str(Tool(f).parameters)
    assert isinstance(Tool(f).bind({"pet": {"kind": "dog"}}).kwargs["pet"], Dog)


# --- parameters: every kind Python has --------------------------------------------------------------------


def test_parameters_without_a_default_are_required() -> None:
    def f(a: int, b: int | None, c: int = 1, d: int | None = None, *, e: str, g: str = "x") -> None: ...

    assert Tool(f).parameters["required"] == ["a", "b", "e"]


def test_missing_arguments_get_the_defaults_of_the_function() -> None:
    def f(a: int, b: list[int] = [1]) -> None: ...  # noqa: B006

    assert bound(f, a=1) == ((), {"a": 1})


def test_none_is_allowed_when_it_is_the_default() -> None:
    def f(a: int = None, b: Optional[Annotated[int, Field(ge=1)]] = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013, UP045

    assert bound(f, a=None, b=None) == ((), {"a": None, "b": None})
    assert properties(f)["b"] == {"anyOf": [{"minimum": 1, "type": "integer"}, {"type": "null"}], "default": None}


def test_positional_only_parameters_are_passed_by_position() -> None:
    def f(a: int, b: int = 2, /, c: int = 3) -> tuple[int, ...]:
        return a, b, c

    assert bound(f, a="1", c=5) == ((1, 2), {"c": 5})
    assert Tool(f)(a=1, b=7) == (1, 7, 3)


def test_starred_parameters_are_an_array() -> None:
    def f(a: int, b: int = 2, *rest: int, c: str = "x") -> Any:
        return a, b, rest, c

    tool = Tool(f)
    assert tool.parameters["properties"]["rest"] == {"items": {"type": "integer"}, "type": "array"}
    assert tool.parameters["required"] == ["a"]
    assert tool(a=1) == (1, 2, (), "x")
    assert tool(a=1, rest=["3", 4], c="y") == (1, 2, (3, 4), "y")
    assert tool(a=1, b=9, rest=[]) == (1, 9, (), "x")
    assert "rest.0: Input should be a valid integer" in fault(f, a=1, rest=["z"])


def test_double_starred_parameters_are_additional_properties() -> None:
    def f(a: int, **more: Item) -> Any:
        return a, more

    tool = Tool(f)
    assert tool.parameters["additionalProperties"] == ITEM
    assert set(tool.parameters["properties"]) == {"a"}
    assert tool(a=1, b={"name": "x"}) == (1, {"b": Item(name="x")})
    assert fault(f, a=1, b=3).startswith("b: Input should be a valid dictionary")


def test_untyped_keywords_accept_any_value() -> None:
    def f(*args, **kwargs) -> Any:  # type: ignore[no-untyped-def]
        return args, kwargs

    tool = Tool(f)
    assert tool.parameters == {
        "type": "object",
        "properties": {"args": {"items": {}, "type": "array"}},
        "additionalProperties": True,
    }
    assert tool(args=[1], kwargs=2, x={"y": 1}) == ((1,), {"kwargs": 2, "x": {"y": 1}})


def test_recursive_keywords_have_their_definitions() -> None:
    def f(first: Node, **more: Node) -> None: ...

    schema = Tool(f).parameters
    assert schema["additionalProperties"] == {"$ref": "#/$defs/Node"}
    assert set(schema["$defs"]) == {"Node"}  # type: ignore[arg-type]


def test_unpacked_keywords_are_parameters() -> None:
    def f(**options: typing.Unpack[Options]) -> Any:
        return options

    tool = Tool(f)
    assert tool.parameters == {
        "type": "object",
        "properties": {"limit": {"type": "integer"}, "order": {"type": "string"}},
        "required": ["limit"],
    }
    assert tool(limit="5") == {"limit": 5}
    assert "order" in fault(f, limit=1, sort="x")


NAMES = ["self", "cls", "type", "id", "name", "func", "from_", "arguments", "function", "args", "kwargs", "input"]


@pytest.mark.parametrize("name", NAMES)
async def test_parameter_may_have_any_name(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f({name}: int, other: int = 1):\n    return {name}", scope)  # the name is what is tested
    tool = Tool(scope["f"])
    assert tool(**{name: "5"}) == 5
    assert await tool.acall(**{name: "5"}) == 5


def test_alias_may_be_a_name_that_python_forbids() -> None:
    def f(
        from_: Annotated[str, Field(alias="from")], kind: Annotated[str, Field(alias="Content-Type")] = "text"
    ) -> Any:
        return from_, kind

    tool = Tool(f)
    assert tool.parameters["required"] == ["from"]
    assert tool.parameters["properties"] == {
        "from": {"type": "string"},
        "Content-Type": {"type": "string", "default": "text"},
    }
    assert tool(**{"from": "me"}) == ("me", "text")
    assert tool(**{"from": "me", "Content-Type": "x"}) == ("me", "x")
    assert "the arguments are: from, Content-Type" in fault(f, from_="me")


# --- defaults and descriptions ----------------------------------------------------------------------------


@dataclasses.dataclass
class Unset:
    marker: object = dataclasses.field(default_factory=object)


DEFAULTS: list[tuple[Any, Any]] = [
    (5, 5),
    ("x", "x"),
    (None, None),
    ((1, 2), [1, 2]),
    ({3}, [3]),
    (Colour.RED, "red"),
    (datetime.date(2026, 1, 31), "2026-01-31"),
    (Item(name="a"), {"name": "a", "count": 1}),
    ([Place(1)], [{"x": 1, "y": 0}]),
]


@pytest.mark.parametrize(("default", "shown"), DEFAULTS, ids=repr)
def test_defaults_are_described_as_json(default: Any, shown: Any) -> None:
    def f(a: Any = default) -> Any:
        return a

    assert properties(f)["a"] == {"default": shown}
    assert Tool(f)() is default


@pytest.mark.parametrize(
    "default", [object(), Unset(), float("inf"), [float("nan")], b"\xff"], ids=lambda value: type(value).__name__
)
def test_default_without_a_json_form_is_omitted(default: Any) -> None:
    def f(a: Any = default) -> Any:
        return a

    assert properties(f) == {"a": {}}
    assert Tool(f)() is default


def test_default_may_be_a_pydantic_field() -> None:
    def f(a: int = Field(5, ge=0, description="An a."), b: int = Field(..., le=9), c: list[int] = Field([])) -> Any:  # noqa: B008
        return a, b, c

    tool = Tool(f)
    assert tool.parameters["required"] == ["b"]
    assert tool.parameters["properties"]["a"] == {"default": 5, "description": "An a.", "minimum": 0, "type": "integer"}
    assert tool(b=1) == (5, 1, [])
    assert "a: Input should be greater than or equal to 0" in fault(f, a=-1, b=1)
    assert Tool(f).bind({"b": 1}).kwargs["c"] is not Tool(f).bind({"b": 1}).kwargs["c"]


def test_nearest_description_wins() -> None:
    def f(
        a: Annotated[int, "From a text."],
        b: Annotated[int, Field(description="From a field.")],
        c: Annotated[int, Field(ge=0)],
        d: Item,
        e: Annotated[int, Field(description="Of an option.")] | None = None,
    ) -> None:
        """Do it.

        Args:
            a: Not this.
            b: Not this.
            c: From the docstring.
            d: Of the parameter.
        """

    described = {name: schema.get("description") for name, schema in properties(f).items()}
    assert described == {
        "a": "From a text.",
        "b": "From a field.",
        "c": "From the docstring.",
        "d": "Of the parameter.",
        "e": "Of an option.",
    }
    assert str(properties(f)["e"]).count("Of an option.") == 1
    assert FunctionArguments(f, None, {"c": "Given."}).schema()["properties"]["c"]["description"] == "Given."


# --- what a tool is made from --------------------------------------------------------------------------------


class Shop:
    """A shop."""

    def __init__(self, stock: int) -> None:
        self.stock = stock

    def __call__(self, count: int) -> int:
        """Buy some."""
        return self.stock - count

    def left(self, of: str = "all") -> str:
        """The rest."""
        return f"{self.stock} of {of}"

    @classmethod
    def named(cls, name: str) -> str:
        return name

    @staticmethod
    def hours(day: Literal["mon", "tue"]) -> str:
        return day


async def later(n: int) -> int:
    """Later."""
    return n


def subtract(a: int, b: int, c: int = 0) -> int:
    """Subtract."""
    return a - b - c


@functools.wraps(subtract)
def wrapped(*args: Any, **kwargs: Any) -> int:
    return subtract(*args, **kwargs)


SOURCES: list[tuple[Any, str, str, list[str], dict[str, Any], Any]] = [
    (subtract, "subtract", "Subtract.", ["a", "b", "c"], {"a": 3, "b": "1"}, 2),
    (wrapped, "subtract", "Subtract.", ["a", "b", "c"], {"a": 3, "b": "1"}, 2),
    (Shop(5), "Shop", "A shop.", ["count"], {"count": "2"}, 3),
    (Shop(5).left, "left", "The rest.", ["of"], {}, "5 of all"),
    (Shop.named, "named", "", ["name"], {"name": "x"}, "x"),
    (Shop.hours, "hours", "", ["day"], {"day": "mon"}, "mon"),
    (functools.partial(subtract, 10), "subtract", "Subtract.", ["b", "c"], {"b": 1}, 9),
    (functools.partial(subtract, b=1), "subtract", "Subtract.", ["a", "c"], {"a": 3}, 2),
    (functools.partial(functools.partial(subtract, b=1), c=1), "subtract", "Subtract.", ["a"], {"a": 3}, 1),
    (Place, "Place", "Place(x: 'int', y: 'int' = 0)", ["x", "y"], {"x": "1"}, Place(1)),
    (Item, "Item", "A thing.", ["name", "count"], {"name": "a"}, Item(name="a")),
    (len, "len", "Return the number of items in a container.", ["obj"], {"obj": [1, 2]}, 2),
    (later, "later", "Later.", ["n"], {"n": "4"}, 4),
    (functools.partial(later, n=4), "later", "Later.", [], {}, 4),
]


@pytest.mark.parametrize(
    ("source", "name", "description", "names", "given", "result"), SOURCES, ids=lambda value: type(value).__name__
)
def test_tool_is_made_of_any_callable(
    source: Any, name: str, description: str, names: list[str], given: dict[str, Any], result: Any
) -> None:
    tool = Tool(source)
    assert (tool.name, tool.description, list(tool.parameters["properties"])) == (name, description, names)
    assert tool(**given) == result
    assert tool.is_async == (getattr(source, "func", source) is later)


def test_lambda_with_a_name_is_a_tool() -> None:
    assert Tool(lambda a, b=2: a + b, name="add")(a=1) == 3


def test_arguments_bound_by_a_partial_are_not_offered() -> None:
    def query(connection: sqlite3.Connection, text: str) -> str:
        return text

    tool = Tool(functools.partial(query, connection=None))  # type: ignore[arg-type]
    assert list(tool.parameters["properties"]) == ["text"]
    with pytest.raises(InputError, match="connection: there is no such argument; the arguments are: text"):
        tool(connection=1, text="a")


# --- hints that are texts ----------------------------------------------------------------------------------


def test_types_in_the_closure_of_a_function_are_resolved() -> None:
    class Local(BaseModel):
        n: int

    def f(a: Local, b: list[Local], c: int = 1) -> Local:
        return Local(n=a.n + b[0].n)

    assert Tool(f)(a={"n": 1}, b=[{"n": "2"}]) == Local(n=3)


def test_unknown_type_raises_with_the_parameter() -> None:
    def f(a: int, b: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ToolDefinitionError, match="the type 'Missing' of its parameter 'b' is not known here"):
        Tool(f)
    assert FunctionArguments(f, {"b": int}).bind({"a": 1, "b": "2"}).kwargs == {"a": 1, "b": 2}


def test_unknown_return_type_is_ignored() -> None:
    def f(a: int) -> Missing:  # type: ignore[name-defined]  # noqa: F821
        return a

    assert Tool(f)(a="1") == 1


class Early(BaseModel):
    late: Late | None = None


def early(a: Early) -> Any:
    return a


EARLY = Tool(early)  # made before Late exists


class Late(BaseModel):
    n: int


def test_class_may_be_defined_after_the_tool() -> None:
    Early.model_rebuild()
    assert EARLY(a={"late": {"n": "1"}}).late.n == 1


def test_undefined_class_raises_at_first_use() -> None:
    class Waiting(BaseModel):
        other: Nowhere | None = None  # type: ignore[name-defined]  # noqa: F821

    def f(a: Waiting) -> None: ...

    f.__annotations__ = {"a": Waiting}
    tool = Tool(f)
    for use in (lambda: tool.spec, lambda: tool.bind({"a": {}})):
        with pytest.raises(ToolDefinitionError, match="'f' cannot be used yet"):
            use()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_type_parameters_and_type_aliases_are_resolved(future: str) -> None:
    source = """
    type Ids = list[int]
    def f[T: int](a: T, b: list[T], ids: Ids | None = None):
        return a, b, ids
    """
    scope: dict[str, Any] = {}
    exec(future + textwrap.dedent(source), scope)  # syntax that older interpreters cannot read
    tool = Tool(scope["f"])
    assert tool.parameters["properties"]["a"] == {"type": "integer"}
    assert tool.parameters["properties"]["ids"]["anyOf"][0] == {"items": {"type": "integer"}, "type": "array"}
    assert tool(a="1", b=["2"], ids=["3"]) == (1, [2], [3])


# --- what cannot be offered ----------------------------------------------------------------------------------


def takes_connection(text: str, db: sqlite3.Connection) -> None: ...


def takes_callable(callback: Callable[[int], int]) -> None: ...


def takes_many(*files: sqlite3.Cursor) -> None: ...


def takes_options(**files: sqlite3.Cursor) -> None: ...


def nested(a: dict[str, list[sqlite3.Row]]) -> None: ...


UNFIT: list[tuple[Any, dict[str, Any], str]] = [
    (takes_connection, {}, "its parameter 'db' has the type Connection.*functools.partial"),
    (takes_callable, {}, "its parameter 'callback'"),
    (takes_many, {}, "its parameter 'files'"),
    (takes_options, {}, "its parameter 'files'"),
    (nested, {}, "its parameter 'a'"),
    (max, {}, "Python does not know its parameters"),
    (Shop.left, {}, "Pass a method of an object"),
]


@pytest.mark.parametrize(("source", "options", "message"), UNFIT)
def test_function_that_cannot_be_offered_raises_with_the_parameter(
    source: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ToolDefinitionError, match=message):
        Tool(source, **options)


@pytest.mark.parametrize(("types", "descriptions"), [({"d": int}, None), (None, {"d": "?"})])
def test_types_and_descriptions_of_unknown_parameters_raise(types: Any, descriptions: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"no parameter 'd' to describe\. Its parameters are: a, b, c"):
        FunctionArguments(subtract, types, descriptions)


# --- faults of arguments ----------------------------------------------------------------------------------------


def order(item: Item, count: int, tags: list[str] = [], colour: Colour = Colour.RED) -> None:  # noqa: B006
    """Order something."""


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"count": 1}, "item: this argument is required"),
    ({"item": {}, "count": 1}, "item.name: this argument is required"),
    ({"item": {"name": "a", "count": 0}, "count": 1}, "item.count: Input should be greater than or equal to 1 (got 0)"),
    ({"item": {"name": "a"}, "count": "many"}, "count: Input should be a valid integer, unable to parse string"),
    ({"item": {"name": "a"}, "count": 1, "tags": ["a", 5]}, "tags.1: Input should be a valid string (got 5)"),
    ({"item": {"name": "a"}, "count": 1, "colour": "green"}, "colour: Input should be 'red' or 'blue' (got 'green')"),
    (
        {"item": {"name": "a"}, "count": 1, "color": "red"},
        "color: there is no such argument; the arguments are: item, count, tags, colour",
    ),
    ({}, "item: this argument is required; count: this argument is required"),
]


@pytest.mark.parametrize(("arguments", "message"), FAULTS)
def test_problem_names_the_argument_and_the_expected_value(arguments: dict[str, Any], message: str) -> None:
    assert fault(order, **arguments).startswith(message)


def test_problem_of_a_tool_without_arguments_has_no_names() -> None:
    def ping() -> None: ...

    assert fault(ping, host="a") == "host: there is no such argument; this tool takes no arguments"


class Point(BaseModel):
    x: int
    y: float = 0.0
    visible: bool = True


@dataclasses.dataclass
class Shape:
    points: list[Point]
    filled: bool = False


BOOLEANS: list[tuple[Any, Any, str]] = [
    (int, True, "a: Input should be a valid integer (got True)"),
    (float, False, "a: Input should be a valid number (got False)"),
    (Optional[int], True, "a: "),  # noqa: UP045
    (int | str, True, "a.int: "),
    (list[int], [1, True], "a.1: "),
    (dict[str, list[float]], {"k": [True]}, "a.k.0: "),
    (set[int], [2, True], "a.1: "),
    (Options, {"limit": True}, "a.limit: "),
    (Point, {"x": True, "visible": True}, "a.x: "),
    (Shape, {"points": [{"x": 1, "y": True}], "filled": True}, "a.points.0.y: "),
    (list[Annotated[int, Field(ge=0)]], [True], "a.0: "),
]


@pytest.mark.parametrize(("hint", "value", "message"), BOOLEANS)
def test_boolean_is_refused_as_a_number_at_any_depth(hint: Any, value: Any, message: str) -> None:
    def f(a: Any) -> None: ...

    f.__annotations__["a"] = hint
    assert fault(f, a=value).startswith(message)


def test_boolean_is_refused_as_a_number_among_starred_and_extra_arguments() -> None:
    def f(*rest: int, **more: float) -> None: ...

    assert fault(f, rest=[1, True]).startswith("rest.1: ")
    assert fault(f, scale=True).startswith("scale: ")


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (bool, 1, True), (bool, 0, False), (bool, "true", True), (int | bool, True, True), (float, 1, 1.0),
        (Point, {"x": "3", "visible": 1}, Point(x=3)), (Shape, {"points": [], "filled": True}, Shape([], True)),
        (list[bool], [True, 0], [True, False]), (Point, {"x": 1, "visible": False}, Point(x=1, visible=False)),
    ],
)  # fmt: skip
def test_boolean_arguments_and_numbers_convert_as_before(hint: Any, value: Any, expected: Any) -> None:
    def f(a: Any, also: bool = False) -> None: ...

    f.__annotations__["a"] = hint
    assert bound(f, a=value, also=True) == ((), {"a": expected, "also": True})


def test_problems_and_echoed_values_are_shortened() -> None:
    assert len(fault(order, item={"name": "a"}, count="9" * 10_000 + "x")) < 250
    many = fault(order, item={"name": "a"}, count=1, tags=[1] * 500)
    assert many.endswith("and 492 more problems")
    assert len(many) < 600


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=200) | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["item", "count", "tags", "colour"]) | st.text(max_size=5), json_like))
def test_any_arguments_are_valid_or_raise_a_short_message(arguments: dict[str, Any]) -> None:
    tool = Tool(order)
    message = ""
    try:
        tool.bind(arguments)
    except InputError as error:
        message = str(error)
    assert len(message) < 3_000
    assert not any(word in message for word in ("Traceback", "pydantic", "\n"))


@given(st.integers(), st.lists(st.text(max_size=5), max_size=3), st.booleans())
def test_valid_arguments_are_passed_to_the_function(a: int, b: list[str], c: bool) -> None:
    def f(a: int, b: list[str], c: bool = False) -> Any:
        return a, b, c

    assert Tool(f)(a=a, b=b, c=c) == (a, b, c)
