"""generateContent: a call that comes in pieces, as Vertex AI sends it where the caller asked for that.

The first piece has the name, each further one values and where in the arguments they stand; texts grow:

    {"functionCall": {"name": "f", "willContinue": True}}
    {"functionCall": {"partialArgs": [{"jsonPath": "$.q", "stringValue": "cats ", "willContinue": True}], "willContinue": True}}
    {"functionCall": {"partialArgs": [{"jsonPath": "$.q", "stringValue": "and dogs"}], "willContinue": True}}
    {"functionCall": {}}
"""

from __future__ import annotations

import itertools
import re

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of, without

__all__ = ["FragmentedCall", "is_fragment"]

_VALUES = ("stringValue", "numberValue", "boolValue")
_PIECES = frozenset({"partialArgs", "willContinue"})
_STEP = re.compile(r"\.(\w+)|\[(\d{1,4})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")


def is_fragment(function: JsonObject) -> bool:
    """Whether this is a piece of a call.

    >>> is_fragment({"name": "f", "willContinue": True}), is_fragment({"name": "f", "args": {}})
    (True, False)
    """
    return function.get("willContinue") is True or "partialArgs" in function


class FragmentedCall:
    """One call as it comes together.

    >>> call = FragmentedCall("call_0")
    >>> call.add({"functionCall": {"name": "f", "willContinue": True}})
    >>> piece = {"jsonPath": "$.at[0].x", "numberValue": 1}
    >>> call.add({"functionCall": {"partialArgs": [piece]}})
    >>> call.wire(), call.goes_on
    ({'functionCall': {'name': 'f', 'args': {'at': [{'x': 1}]}}}, False)
    """

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.arguments: JsonObject = {}
        self.goes_on = True
        self._function: JsonObject = {}
        self._beside: JsonObject = {}
        self._growing = ""  # the path of a text that goes on

    def takes(self, function: JsonObject) -> bool:
        """Whether a piece is one of this call: it begins no other."""
        call_id, name = string_of(function, "id"), string_of(function, "name")
        return self.goes_on and all(
            known is None or known == self._function.get(field) for field, known in (("id", call_id), ("name", name))
        )

    def add(self, wire: JsonObject) -> None:
        """One more piece, with the part it came in."""
        function = object_of(wire.get("functionCall"))
        self._beside |= without(wire, {"functionCall"})
        self._function |= without(function, {"args", *_PIECES})
        self.arguments |= object_of(function.get("args"))
        for piece in objects_of(function.get("partialArgs")):
            self._place(string_of(piece, "jsonPath") or "", piece)
        self.goes_on = function.get("willContinue") is True

    def wire(self) -> JsonObject:
        """The part as it comes where calls come whole."""
        return {"functionCall": {**self._function, "args": self.arguments}, **self._beside}

    def _place(self, path: str, piece: JsonObject) -> None:
        """Put a value where it stands; what is put into a text that goes on is its next piece."""
        steps = _steps(path)
        node: JsonValue = self.arguments
        for step, following in itertools.pairwise(steps):
            node = _child(node, step, [] if isinstance(following, int) else {})
        value: JsonValue = next((piece[name] for name in _VALUES if name in piece), None)
        for last in steps[-1:]:
            before = _child(node, last, None)
            grows = path == self._growing and isinstance(before, str) and isinstance(value, str)
            _put(node, last, f"{before}{value}" if grows else value)
        self._growing = path if piece.get("willContinue") is True else ""


def _steps(path: str) -> list[str | int]:
    """The names and positions of a path such as ``$.at[0].x``."""
    found = (_STEP.finditer(path[1:])) if path.startswith("$") else ()
    return [int(step[2]) if step[2] is not None else step[1] or step[3] or step[4] or "" for step in found]


def _child(node: JsonValue, step: str | int, otherwise: JsonValue) -> JsonValue:
    """What stands there, put there where nothing does; ``None`` where nothing can."""
    if isinstance(node, dict) and isinstance(step, str):
        return node.setdefault(step, otherwise)
    if isinstance(node, list) and isinstance(step, int):
        node.extend([None] * (step + 1 - len(node)))
        if node[step] is None:
            node[step] = otherwise
        return node[step]
    return None


def _put(node: JsonValue, step: str | int, value: JsonValue) -> None:
    if isinstance(node, dict) and isinstance(step, str):
        node[step] = value
        return
    if isinstance(node, list) and isinstance(step, int):
        node[step] = value
