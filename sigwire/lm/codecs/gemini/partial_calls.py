"""generateContent: a call in several events, which Vertex AI sends on request.

The first event has the name, the others have values with their paths in the arguments; a text may be split:

    {"functionCall": {"name": "f", "willContinue": True}}
    {"functionCall": {"partialArgs": [{"jsonPath": "$.q", "stringValue": "cats ", "willContinue": True}], "willContinue": True}}
    {"functionCall": {"partialArgs": [{"jsonPath": "$.q", "stringValue": "and dogs"}], "willContinue": True}}
    {"functionCall": {}}
"""

from __future__ import annotations

import itertools
import re

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, remove_members, string_of

__all__ = ["FragmentedCall", "is_fragment"]

_VALUES = ("stringValue", "numberValue", "boolValue")
_PARTIAL_FIELDS = frozenset({"partialArgs", "willContinue"})
_STEP = re.compile(r"\.(\w+)|\[(\d{1,4})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")


def is_fragment(function: JsonObject) -> bool:
    """Return True for a part of a call.

    >>> is_fragment({"name": "f", "willContinue": True}), is_fragment({"name": "f", "args": {}})
    (True, False)
    """
    return function.get("willContinue") is True or "partialArgs" in function


class FragmentedCall:
    """A call that is assembled from fragments.

    >>> call = FragmentedCall("call_0")
    >>> call.add({"functionCall": {"name": "f", "willContinue": True}})
    >>> value = {"jsonPath": "$.at[0].x", "numberValue": 1}
    >>> call.add({"functionCall": {"partialArgs": [value]}})
    >>> call.wire(), call.is_open
    ({'functionCall': {'name': 'f', 'args': {'at': [{'x': 1}]}}}, False)
    """

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.arguments: JsonObject = {}
        self.is_open = True
        self._function: JsonObject = {}
        self._part_fields: JsonObject = {}
        self._open_text = ""  # the path of a text that continues

    def accepts(self, function: JsonObject) -> bool:
        """Return True if a fragment belongs to this call: it has no other id and no other name."""
        call_id, name = string_of(function, "id"), string_of(function, "name")
        return self.is_open and all(
            known is None or known == self._function.get(field) for field, known in (("id", call_id), ("name", name))
        )

    def add(self, wire: JsonObject) -> None:
        """Add a fragment, given as its part."""
        function = object_of(wire.get("functionCall"))
        self._part_fields |= remove_members(wire, {"functionCall"})
        self._function |= remove_members(function, {"args", *_PARTIAL_FIELDS})
        self.arguments |= object_of(function.get("args"))
        for value in objects_of(function.get("partialArgs")):
            self._set(string_of(value, "jsonPath") or "", value)
        self.is_open = function.get("willContinue") is True

    def wire(self) -> JsonObject:
        """Return the part of the complete call."""
        return {"functionCall": {**self._function, "args": self.arguments}, **self._part_fields}

    def _set(self, path: str, fragment: JsonObject) -> None:
        """Set a value at its path, or append it to the open text there."""
        steps = _steps(path)
        node: JsonValue = self.arguments
        for step, following in itertools.pairwise(steps):
            node = _child(node, step, [] if isinstance(following, int) else {})
        value: JsonValue = next((fragment[name] for name in _VALUES if name in fragment), None)
        for last in steps[-1:]:
            before = _child(node, last, None)
            appends = path == self._open_text and isinstance(before, str) and isinstance(value, str)
            _set_item(node, last, f"{before}{value}" if appends else value)
        self._open_text = path if fragment.get("willContinue") is True else ""


def _steps(path: str) -> list[str | int]:
    """Return the names and positions of a path such as ``$.at[0].x``."""
    found = (_STEP.finditer(path[1:])) if path.startswith("$") else ()
    return [int(step[2]) if step[2] is not None else step[1] or step[3] or step[4] or "" for step in found]


def _child(node: JsonValue, step: str | int, default: JsonValue) -> JsonValue:
    """Return the item of a node, set to ``default`` if it is missing; ``None`` if the node cannot have it."""
    if isinstance(node, dict) and isinstance(step, str):
        return node.setdefault(step, default)
    if isinstance(node, list) and isinstance(step, int):
        node.extend([None] * (step + 1 - len(node)))
        if node[step] is None:
            node[step] = default
        return node[step]
    return None


def _set_item(node: JsonValue, step: str | int, value: JsonValue) -> None:
    if isinstance(node, dict) and isinstance(step, str):
        node[step] = value
        return
    if isinstance(node, list) and isinstance(step, int):
        node[step] = value
