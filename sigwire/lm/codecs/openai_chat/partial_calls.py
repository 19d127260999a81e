"""Chat completions, streamed: the calls of one choice, put together from their fragments.

A fragment says which call it belongs to by ``index``; the id and the name come with the first. Hosts get all of it wrong:
no index, one index for all calls, ids or names again with every fragment, no ids, a second call glued to the first. The
rules, for a fragment that may go on with an open call:

    it has an id, and the call another one                it is a new call, whatever its index
    it has a name, and the call another one               it is a new call
    the call's arguments are a whole object, and an       it is a new call; without a name of its own it has the call's
    object begins
    else                                                  it goes on with the call: the last one of its index, or of its
                                                          id, or the last of all
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.lm.codecs.shared.untrusted import object_of, string_of

__all__ = ["PartialCall", "PartialCalls"]

_MODELLED = frozenset({"id", "index", "function", "custom"})


class PartialCall:
    """A call as far as it has come. ``position`` counts the choice's calls; ``told`` is how much of it was shown."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.id = self.name = ""
        self.pieces: list[str] = []
        self.told = -1  # pieces of arguments; -1 before the call itself
        self._object: JsonValue = None  # where no text came
        self._fields: JsonObject = {}
        self._nesting = _JsonDepth()

    def add(self, fragment: JsonObject) -> None:
        """Take a fragment that belongs to this call."""
        called = _called(fragment)
        self.id = self.id or _id(fragment)
        self.name = self.name or string_of(called, "name") or ""
        given = called.get("arguments", called.get("input"))
        if isinstance(given, str):
            self._object = ""
            self.pieces += [given] if given else []
        elif given is not None:  # some hosts give an object; it comes at once
            self._object = given
            self.pieces.append(dumps(given))
        self._fields |= {name: value for name, value in fragment.items() if name not in _MODELLED and value is not None}

    def goes_on(self, fragment: JsonObject) -> bool:
        """Whether the fragment can be more of this call."""
        called = _called(fragment)
        call_id, name, given = _id(fragment), string_of(called, "name"), called.get("arguments")
        if (call_id and self.id and call_id != self.id) or (name and self.name and name != self.name):
            return False
        begins = isinstance(given, dict) or (isinstance(given, str) and given.lstrip().startswith("{"))
        return not (begins and self._nesting.is_whole(self.pieces))

    def wire(self) -> JsonObject:
        """The call as it stands in an answer that came whole."""
        whole: JsonValue = "".join(self.pieces)
        if len(self.pieces) < 2 and not isinstance(self._object, str):
            whole = self._object
        kind, arguments = ("custom", "input") if self._fields.get("type") == "custom" else ("function", "arguments")
        return {"id": self.id, "type": "function", **self._fields, kind: {"name": self.name, arguments: whole}}


def _called(fragment: JsonObject) -> JsonObject:
    return object_of(fragment.get("function")) or object_of(fragment.get("custom"))


def _id(fragment: JsonObject) -> str:
    call_id = string_of(fragment, "id") or ""
    return "" if call_id == "null" else call_id


class PartialCalls:
    """The calls of one choice, in the order in which they began.

    >>> calls = PartialCalls()
    >>> for name, text in ("f", '{"x"'), ("", ": 1}"), ("g", "{}"):
    ...     call = calls.add({"index": 0, "function": {"name": name, "arguments": text}})
    >>> [(call.name, "".join(call.pieces)) for call in calls]
    [('f', '{"x": 1}'), ('g', '{}')]
    """

    def __init__(self) -> None:
        self._calls: list[PartialCall] = []
        self._last: dict[int | str | None, PartialCall] = {}  # of an index, of an id, of all

    def __iter__(self) -> Iterator[PartialCall]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, fragment: JsonObject) -> PartialCall:
        """Take a fragment; the call that it belongs to."""
        index = fragment.get("index")
        sign = index if isinstance(index, int) else _id(fragment) or None
        call = self._last.get(sign)
        if call is None or not call.goes_on(fragment):
            before, call = call, PartialCall(len(self._calls))
            call.name = before.name if before is not None and not _called(fragment).get("name") else ""
            self._calls.append(call)
        call.add(fragment)
        self._last |= {sign: call, call.id or None: call, None: call}
        return call


_MARKS = re.compile(r'[{}"\\]')


class _JsonDepth:
    """Whether pieces of JSON are a whole object. Each piece is looked at once, when somebody asks."""

    def __init__(self) -> None:
        self._read = self._depth = 0
        self._in_text = self._escaped = self._was_object = False

    def is_whole(self, pieces: list[str]) -> bool:
        for piece in pieces[self._read :]:
            self._look_at(piece)
        self._read = len(pieces)
        return self._was_object and self._depth == 0

    def _look_at(self, piece: str) -> None:
        skip = 0 if self._escaped else -1  # the character whose meaning an escape took away
        self._escaped = False
        for mark in _MARKS.finditer(piece):
            if mark.start() == skip:
                continue
            match mark[0]:
                case "\\":
                    skip = mark.start() + 1
                    self._escaped = skip == len(piece)
                case '"':
                    self._in_text = not self._in_text
                case brace if not self._in_text:
                    self._depth += 1 if brace == "{" else -1
                    self._was_object = True
                case _:
                    pass
