"""Chat completions, streamed: the calls of one choice, joined from their fragments.

A fragment names its call by ``index``; the first fragment of a call has the id and the name. Hosts break each of these
rules: no index, one index for all calls, ids or names repeated in every fragment, no ids, two calls in a row without a
border. A fragment starts a new call, whatever its index, if

    the fragment and the call have different ids
    the fragment and the call have different names, which are not deltas of one offered name
    the arguments of the call are a complete object, and another object starts (a call without a name inherits it)

Any other fragment continues the last call of its index, or of its id, or the last call of all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.lm.codecs.shared.untrusted import object_of, string_of

__all__ = ["PartialCall", "PartialCalls"]

_MODELLED = frozenset({"id", "index", "function", "custom"})


class PartialCall:
    """A call that is not complete yet. ``position`` counts the calls of the choice.

    ``deltas`` are the fragments of the arguments; ``emitted`` counts those in events, -1 before the call's own event.
    """

    def __init__(self, position: int) -> None:
        self.position = position
        self.id = self.name = ""
        self.deltas: list[str] = []
        self.emitted = -1
        self._object: JsonValue = None  # the arguments, if they are no text
        self._fields: JsonObject = {}
        self._depth = _JsonDepth()

    def add(self, fragment: JsonObject) -> None:
        """Add a fragment of this call."""
        function = _function_of(fragment)
        self.id = self.id or _id_of(fragment)
        name = string_of(function, "name") or ""
        self.name += name if name != self.name else ""
        given = function.get("arguments", function.get("input"))
        if isinstance(given, str):
            self._object = ""
            self.deltas += [given] if given else []
        elif given is not None:  # some hosts send an object, in one fragment
            self._object = given
            self.deltas.append(dumps(given))
        self._fields |= {name: value for name, value in fragment.items() if name not in _MODELLED and value is not None}

    def can_add(self, fragment: JsonObject, names: Collection[str]) -> bool:
        """Return True if the fragment can continue this call. ``names``: the offered names."""
        function = _function_of(fragment)
        call_id, name, given = _id_of(fragment), string_of(function, "name"), function.get("arguments")
        if call_id and self.id and call_id != self.id:
            return False
        if name and not self._accepts_name(name, names):
            return False
        starts = isinstance(given, dict) or (isinstance(given, str) and given.lstrip().startswith("{"))
        return not (starts and self._depth.is_complete(self.deltas))

    def _accepts_name(self, name: str, names: Collection[str]) -> bool:
        """Return True if it is the name of this call, or a delta of it, as some hosts stream names; an offered name is none."""
        if not self.name or name == self.name:
            return True
        if self.deltas or not names or name not in names:
            return not self.deltas and bool(names)
        return self.name not in names and any(other.startswith(self.name + name) for other in names)

    def has_name(self, names: Collection[str]) -> bool:
        """Return True if the name is complete: it has arguments behind it, or no offered name is longer."""
        if self.deltas or not names or not self.name:
            return self.name != ""
        return self.name in names and not any(name.startswith(self.name) and name != self.name for name in names)

    def wire_call(self) -> JsonObject:
        """Return the call in the shape of a reply that is not streamed."""
        joined: JsonValue = "".join(self.deltas)
        if len(self.deltas) < 2 and not isinstance(self._object, str):
            joined = self._object
        kind, arguments = ("custom", "input") if self._fields.get("type") == "custom" else ("function", "arguments")
        return {"id": self.id, "type": "function", **self._fields, kind: {"name": self.name, arguments: joined}}


def _function_of(fragment: JsonObject) -> JsonObject:
    return object_of(fragment.get("function")) or object_of(fragment.get("custom"))


def _id_of(fragment: JsonObject) -> str:
    call_id = string_of(fragment, "id") or ""
    return "" if call_id == "null" else call_id


class PartialCalls:
    """The calls of one choice, in the order of their first fragments.

    >>> calls = PartialCalls(["f", "g"])
    >>> for name, text in ("f", '{"x"'), ("", ": 1}"), ("g", "{}"):
    ...     call = calls.add({"index": 0, "function": {"name": name, "arguments": text}})
    >>> [(call.name, "".join(call.deltas)) for call in calls]
    [('f', '{"x": 1}'), ('g', '{}')]
    """

    def __init__(self, names: Collection[str]) -> None:
        self.names = names
        self._calls: list[PartialCall] = []
        self._last: dict[int | str | None, PartialCall] = {}  # by index, by id, and of all (None)

    def __iter__(self) -> Iterator[PartialCall]:
        return iter(self._calls)

    def between(self, first: int, last: int) -> list[PartialCall]:
        """Return the calls from one position to another, both included."""
        return self._calls[first : last + 1]

    def add(self, fragment: JsonObject) -> PartialCall:
        """Add a fragment and return its call."""
        index = fragment.get("index")
        key = index if isinstance(index, int) else _id_of(fragment) or None
        call = self._last.get(key)
        if call is None or not call.can_add(fragment, self.names):
            before, call = call, PartialCall(len(self._calls))
            call.name = before.name if before is not None and not _function_of(fragment).get("name") else ""
            self._calls.append(call)
        call.add(fragment)
        self._last |= {key: call, call.id or None: call, None: call}
        return call


_MARKS = re.compile(r'[{}"\\]')


class _JsonDepth:
    """The depth of open braces in deltas of JSON. Each delta is scanned once, at the first question about it."""

    def __init__(self) -> None:
        self._scanned = self._depth = 0
        self._in_string = self._escaped = self._has_object = False

    def is_complete(self, deltas: list[str]) -> bool:
        for delta in deltas[self._scanned :]:
            self._scan(delta)
        self._scanned = len(deltas)
        return self._has_object and self._depth == 0

    def _scan(self, delta: str) -> None:
        skip = 0 if self._escaped else -1  # the escaped character
        self._escaped = False
        for mark in _MARKS.finditer(delta):
            if mark.start() == skip:
                continue
            match mark[0]:
                case "\\":
                    skip = mark.start() + 1
                    self._escaped = skip == len(delta)
                case '"':
                    self._in_string = not self._in_string
                case brace if not self._in_string:
                    self._depth += 1 if brace == "{" else -1
                    self._has_object = True
                case _:
                    pass
