"""Tools: the schemas of 200 typed functions, of plain types and of classes (e1); one call validated and run (e2)."""

from __future__ import annotations

import enum
import importlib
import importlib.util
import inspect
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, Field, create_model

from benchmarks.timing import FLOOR, SIGWIRE, Job
from sigwire import Tool, ToolCall
from sigwire.modules.agents.toolbox import Toolbox

__all__ = ["jobs"]

NUMBERS = itertools.count()


class Address(BaseModel):
    street: str
    city: str
    country: str = "Norway"


class Priority(enum.StrEnum):
    LOW = "low"
    HIGH = "high"


Shape = Callable[[], Callable[..., Any]]


def functions(shapes: Sequence[Shape]) -> list[Callable[..., Any]]:
    """Return 200 new functions: four shapes, fifty of each."""
    return [shape() for _ in range(50) for shape in shapes]


def plain() -> Callable[..., Any]:
    def look_up(name: str, limit: int = 10) -> str:
        """Look something up.

        Args:
            name: What to look up.
            limit: How many rows to give.
        """
        return name

    return named(look_up)


def several() -> Callable[..., Any]:
    def search(query: str, tags: list[str], low: float, high: float | None = None) -> list[str]:
        """Search by text and price.

        Args:
            query: The text.
            tags: All of them must match.
            low: The lowest price.
            high: The highest price.
        """
        return tags

    return named(search)


def choices() -> Callable[..., Any]:
    def convert(value: float, unit: Literal["km", "miles"], digits: int = 2) -> float:
        """Convert a distance."""
        return value

    return named(convert)


def nested() -> Callable[..., Any]:
    def send(order: int, address: Address, notes: dict[str, str] | None = None) -> bool:
        """Send an order.

        Args:
            order: The order's number.
            address: Where to.
        """
        return True

    return named(send)


def constrained() -> Callable[..., Any]:
    def find(
        query: Annotated[str, Field(min_length=1)], limit: Annotated[int, Field(ge=1, le=50)] = 10, page: int = 1
    ) -> list[str]:
        """Find rows.

        Args:
            query: The text.
            limit: How many rows to give.
        """
        return []

    return named(find)


def ordered() -> Callable[..., Any]:
    def order(lines: list[int], to: Address, priority: Priority = Priority.LOW) -> int:
        """Place an order.

        Args:
            lines: The numbers of the goods.
            to: Where to.
        """
        return 0

    return named(order)


def several_models() -> Callable[..., Any]:
    def route(stops: list[Address], by_name: dict[str, Address], avoid: set[str] | None = None) -> float:
        """Plan a route."""
        return 0.0

    return named(route)


PLAIN: Sequence[Shape] = (plain, several, choices, nested)
TYPED: Sequence[Shape] = (nested, constrained, ordered, several_models)


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = f"{function.__name__}_{next(NUMBERS)}"
    return function


def floor_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's schema by hand: pydantic, without the docstring."""
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    fields: dict[str, Any] = {p.name: (hints[p.name], ... if p.default is p.empty else p.default) for p in parameters}
    schema = create_model(function.__name__, **fields).model_json_schema()
    return {"type": "function", "function": {"name": function.__name__, "parameters": schema}}


def book(room: int, nights: int, breakfast: bool = False) -> dict[str, Any]:
    """Book a room."""
    return {"room": room, "nights": nights, "price": nights * (90 + 10 * breakfast)}


ARGUMENTS = '{"room": 12, "nights": 3, "breakfast": true}'
RESULT = '{"room":12,"nights":3,"price":300}'


class Booking(BaseModel):
    room: int
    nights: int
    breakfast: bool = False


def floor_run() -> str:
    """Run the call by hand: parse the arguments, validate, call, encode."""
    values = Booking.model_validate(json.loads(ARGUMENTS))
    return json.dumps(book(values.room, values.nights, values.breakfast), separators=(",", ":"))


Maker = Callable[[Callable[..., Any]], object]


def sigwire_schema(function: Callable[..., Any]) -> object:
    return Tool(function).spec


def peers() -> dict[str, Maker]:
    """Return dspy's way to a schema, if it is installed."""
    if importlib.util.find_spec("dspy") is None:
        return {}
    library: Any = importlib.import_module("dspy")
    return {"dspy": lambda function: library.Tool(function).format_as_litellm_function_call()}


def described(make: Maker, shapes: Sequence[Shape]) -> Callable[[], object]:
    return lambda: [make(function) for function in functions(shapes)]


def jobs() -> Iterator[Job]:
    """Yield e1 and e2."""
    makers: dict[str, Maker] = {FLOOR: floor_schema, SIGWIRE: sigwire_schema, **peers()}
    for what, shapes in (("typed functions", PLAIN), ("functions of classes and constraints", TYPED)):
        contestants = {name: described(make, shapes) for name, make in makers.items()}
        yield Job("e1", f"schemas of 200 {what}", "≤ 1.15x", contestants, unit="ms")
    toolbox = Toolbox([Tool(book)])

    def run() -> str:
        (result,) = toolbox([ToolCall.read("call_0", "book", ARGUMENTS)])
        return result.text

    assert run() == floor_run() == RESULT
    yield Job("e2", "validate and run one tool call", "≤ 2x", {FLOOR: floor_run, SIGWIRE: run})
