"""Host calls: functions of the program that code calls by name. Arguments and results are JSON values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.record import to_plain
from sigwire.effects.steps import Steps

__all__ = ["EndCode", "HostCall", "HostCallError", "HostFunction", "HostReply", "as_json"]

HostFunction: TypeAlias = Callable[..., Steps[JsonValue]]
"""A function that code may call: takes JSON values and returns the steps of its result. Raises ``HostCallError`` for the code
to catch, ``EndCode`` to end the code; any other exception ends the program."""


class HostCallError(Exception):
    """Raised by a host function: the code sees an exception of the class ``kind``, or ``RuntimeError`` if Python has no such.

    >>> str(HostCallError("ValueError", "n is negative"))
    'ValueError: n is negative'
    """

    def __init__(self, kind: str, message: str) -> None:
        self.kind, self.message = kind, message
        super().__init__(f"{kind}: {message}")


class EndCode(BaseException):
    """Raised by a host function: the code ends here with this value, and no line after the call runs.

    >>> EndCode({"answer": 42}).value
    {'answer': 42}
    """

    def __init__(self, value: JsonValue = None) -> None:
        self.value = value
        super().__init__("the code was ended by a host function")


@dataclass(frozen=True, slots=True)
class HostCall:
    """A call that code waits for. The arguments are Python values as the code wrote them."""

    name: str
    args: tuple[object, ...] = ()
    kwargs: tuple[tuple[str, object], ...] = ()

    def arguments(self) -> tuple[list[JsonValue], JsonObject]:
        """Return the arguments as JSON values. Raises ``HostCallError`` for an argument without a JSON form."""
        try:
            return [as_json(value) for value in self.args], {name: as_json(value) for name, value in self.kwargs}
        except ValueError as error:
            raise HostCallError(
                "TypeError", f"{self.name}() takes numbers, texts, lists and dicts only: {error}"
            ) from error


@dataclass(frozen=True, slots=True)
class HostReply:
    """The reply to a host call: a value, or the class and the message of an exception."""

    value: JsonValue = None
    error: str = ""
    message: str = ""


def as_json(value: object) -> JsonValue:
    """Return a value as strict JSON: tuples and sets are lists, dates are texts. Raises ``ValueError`` if it has no such form.

    >>> as_json({"a": (1, 2)})
    {'a': [1, 2]}
    """
    if value is None or type(value) in (bool, str):
        return value  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
    try:
        plain: JsonValue = loads(dumps(to_plain(value)))
    except (RecursionError, TypeError) as error:
        raise ValueError(f"{type(value).__name__} has no JSON form ({error})") from None
    return plain
