"""Reading a request body: a value of the JSON with its path, and the errors at that path.

A wire reads bodies through ``RequestNode``, which raises ``InvalidValue`` with the path and the kind (missing, unknown,
wrong type, empty, ...). The wire turns an ``InvalidValue`` into its own text; this file knows no wire.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["InvalidValue", "MisfitKind", "Path", "RequestNode"]

Path: TypeAlias = "tuple[str | int, ...]"
MisfitKind: TypeAlias = Literal["missing", "unknown", "type", "empty", "value"]

_TYPE_NAMES: Mapping[type, str] = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null",
}  # fmt: skip


class InvalidValue(Exception):
    """A value of the body that the wire refuses.

    ``wanted`` is the type for the kind "type"; ``text`` is the whole message for the kind "value".
    """

    def __init__(self, kind: MisfitKind, path: Path, *, wanted: str = "", found: str = "", text: str = "") -> None:
        self.kind, self.path, self.wanted, self.found, self.text = kind, path, wanted, found, text
        super().__init__(f"{kind} at {path}: {text or wanted}")


@dataclass(frozen=True, slots=True)
class RequestNode:
    """A value of a request body and its path.

    >>> body = RequestNode({"messages": [{"role": "user"}]})
    >>> body["messages"].items()[0]["role"].text()
    'user'
    >>> body["model"]
    Traceback (most recent call last):
    sigwire.testing.request_node.InvalidValue: missing at ('model',):
    """

    value: Any
    path: Path = ()

    @property
    def kind(self) -> str:
        """The JSON type: object, array, string, integer, number, boolean, null."""
        return _TYPE_NAMES[type(self.value)]

    def fields(self, known: Collection[str] | None = None) -> Mapping[str, Any]:
        """Return the value as an object; with ``known``, any other key is refused."""
        found: Mapping[str, Any] = self._of(dict, "object")
        if known is not None and (unknown := [key for key in found if key not in known]):
            raise InvalidValue("unknown", (*self.path, unknown[0]))
        return found

    def __getitem__(self, name: str) -> RequestNode:
        if (node := self.get(name, null=True)) is None:
            raise InvalidValue("missing", (*self.path, name))
        return node

    def get(self, name: str, *, null: bool = False) -> RequestNode | None:
        """Return the value of an optional key. ``null=True`` returns a node for ``null``, else ``None``."""
        found = self.fields()
        if name not in found or (found[name] is None and not null):
            return None
        return RequestNode(found[name], (*self.path, name))

    def text_at(self, name: str) -> str:
        """Return the string of an optional key, ``""`` without it."""
        return node.text() if (node := self.get(name)) else ""

    def flag_at(self, name: str, default: bool = False) -> bool:
        """Return the boolean of an optional key."""
        return default if (node := self.get(name)) is None else node.flag()

    def has(self, name: str) -> bool:
        """Return True if the key exists and is not ``null``."""
        return self.get(name) is not None

    def items(self, *, filled: bool = False) -> list[RequestNode]:
        """Return the value as a list; ``filled`` refuses an empty list."""
        found: list[Any] = self._of(list, "array")
        if filled and not found:
            raise InvalidValue("empty", self.path)
        return [RequestNode(item, (*self.path, position)) for position, item in enumerate(found)]

    def text(self, allowed: Collection[str] | None = None) -> str:
        """Return the value as a string, one of ``allowed`` if given."""
        found: str = self._of(str, "string")
        if allowed is not None and found not in allowed:
            names = ", ".join(f"'{name}'" for name in sorted(allowed))
            raise self.wrong(f"Invalid value: '{found}'. Supported values are: {names}.")
        return found

    def flag(self) -> bool:
        """Return the value as a boolean."""
        found: bool = self._of(bool, "boolean")
        return found

    def number(self, low: float | None = None, high: float | None = None) -> float:
        """Return the value as a number within the bounds."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self._type_error("number")
        return self._check_bounds(self.value, low, high)

    def integer(self, low: float | None = None, high: float | None = None) -> int:
        """Return the value as an integer within the bounds."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self._type_error("integer")
        return int(self._check_bounds(self.value, low, high))

    def wrong(self, text: str) -> InvalidValue:
        """Return the error for this path with a text of the wire."""
        return InvalidValue("value", self.path, text=text)

    def walk(self) -> Iterator[RequestNode]:
        """Yield this node and all nodes below it."""
        yield self
        if self.kind == "object":
            for key, value in self.fields().items():
                yield from RequestNode(value, (*self.path, key)).walk()
        elif self.kind == "array":
            for item in self.items():
                yield from item.walk()

    def _of(self, kind: type, name: str) -> Any:
        if not isinstance(self.value, kind):
            raise self._type_error(name)
        return self.value

    def _type_error(self, wanted: str) -> InvalidValue:
        return InvalidValue("type", self.path, wanted=wanted, found=self.kind)

    def _check_bounds(self, number: float, low: float | None, high: float | None) -> float:
        if low is not None and number < low:
            raise self.wrong(f"Expected a value >= {low}, but got {number} instead.")
        if high is not None and number > high:
            raise self.wrong(f"Expected a value <= {high}, but got {number} instead.")
        return number
