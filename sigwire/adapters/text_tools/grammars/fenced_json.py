"""The form of calling that the prompt teaches: one fenced block of strict JSON for each call.

    ~~~tool_call
    {"name": "read_file", "arguments": {"path": "/tmp/foo"}}
    ~~~

Both fences are alone on their lines. Because the prompt teaches the form, nothing inside a block is repaired: a malformed
block becomes a call with an ``error`` that shows the form. Its neighbours are read independently. Accepted with a note: a
backtick fence with the same label, a missing last fence after complete JSON, and ``~~~json`` at the end of the message
(``scan.scanner``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.adapters.text_tools.cursor import LINE_REST, Cursor, Wait
from sigwire.adapters.text_tools.grammar import NAMELESS, CallBlock, Grammar, ToolCatalog, closes_fence
from sigwire.adapters.text_tools.markers import CALL_FENCE, FENCE, RESULT_FENCE
from sigwire.core.json import dumps, loads
from sigwire.core.narrow import is_mapping
from sigwire.core.tools.calls import CallError, CallErrorKind, ToolCall

__all__ = ["FENCED_JSON", "read_block"]

_OPENERS = (CALL_FENCE, "```tool_call")
_RESULTS = (RESULT_FENCE, "```tool_result")
_FORM = '{"name": "...", "arguments": {...}}'
_KEYS = frozenset({"name", "arguments", "id", "type"})


def _read(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    rest = yield from cursor.run(LINE_REST)
    if rest.strip(" \t\r"):
        return None
    yield from cursor.accept("\n")
    start = cursor.position
    while True:
        begin = cursor.position
        line = (yield from cursor.run(LINE_REST)).rstrip(" \t\r")
        if closes_fence(line, opener[:3]):
            cursor.position = begin + 3
            return CallBlock((read_block(cursor.text[start:begin]),))
        if line in _OPENERS or line in _RESULTS:
            cursor.position = begin - 1  # the next block starts at a line break
            return _unclosed_block(cursor.text[start:begin])
        if not (yield from cursor.accept("\n")):
            return _unclosed_block(cursor.text[start : cursor.position])


def _unclosed_block(body: str) -> CallBlock:
    # A stop sequence can remove the fence, with or without the line break before it. Complete JSON is a complete call.
    call = read_block(body)
    if call.error is None:
        return CallBlock((call,), ("the closing fence of a tool_call block was missing",))
    return CallBlock((_broken_block(body, "malformed_json", "The tool_call block was not closed", call.name),))


def read_block(body: str) -> ToolCall:
    """Return the call in a block's body. An unreadable one has an ``error`` and the body in ``raw_arguments``.

    >>> read_block('{"name": "add", "arguments": {"a": 1}}').arguments
    {'a': 1}
    >>> read_block("{'name': 'add'}").error.code
    'malformed_json'
    """
    try:
        value = loads(body)
    except ValueError as error:
        return _broken_block(body, "malformed_json", f"The tool_call block is not strict JSON ({error})")
    if not is_mapping(value):
        return _broken_block(body, "malformed_json", "The tool_call block must hold one JSON object")
    return _read_object(value, body)


def _read_object(value: Mapping[str, Any], body: str) -> ToolCall:
    name, id = value.get("name"), value.get("id")
    if not isinstance(name, str) or not name:
        return _broken_block(body, "malformed_json", 'The tool_call block has no "name"')
    if "arguments" not in value and value.keys() - _KEYS:
        # {"parameters": {...}} read as a call without arguments would run a call that the model did not write.
        return _broken_block(body, "malformed_json", 'The tool_call block has no "arguments"', name)
    id = str(id) if isinstance(id, (str, int)) else ""
    raw = value.get("arguments", {})
    if is_mapping(raw):
        return ToolCall(id, name, dict(raw))
    if isinstance(raw, str):
        return _read_text(id, name, raw)
    return _broken_block(dumps(raw), "not_an_object", 'The "arguments" of a call must be a JSON object', name, id)


def _read_text(id: str, name: str, raw: str) -> ToolCall:
    try:
        arguments: object = loads(raw or "{}")
    except ValueError as error:
        return _broken_block(raw, "malformed_json", f'The text in "arguments" is not JSON ({error})', name, id)
    if is_mapping(arguments):
        return ToolCall(id, name, dict(arguments), raw)
    return _broken_block(raw, "not_an_object", 'The text in "arguments" is not a JSON object', name, id)


def _broken_block(raw: str, code: CallErrorKind, what: str, name: str = NAMELESS, id: str = "") -> ToolCall:
    return ToolCall(id, name, None, raw, CallError(code, f"{what}. Write {_FORM} between {CALL_FENCE} and {FENCE}."))


FENCED_JSON = Grammar("fenced", _OPENERS, _read, own_line=True, stops=_RESULTS, other_text="before")
