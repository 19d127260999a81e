"""JSON that stands for calls: its end, its calls and its repairs.

    read_payload(cursor, closers)   one JSON value in the text, read strictly, else leniently, with notes of the repairs
    calls_in(payload, catalog)      the calls of a value: {"name", "arguments"} and its variants, lists, wrappers
    is_call(value, catalog)         whether a value is a call and nothing else, as forms without a marker must be

Repairs in this order: the lenient JSON reader; an extra bracket is dropped; a missing bracket is added if a closing marker
shows that the call was complete. A text that ends inside a value is never completed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sigwire.adapters.text_tools.cursor import Cursor, Finder, Wait
from sigwire.adapters.text_tools.grammar import TRUNCATED, ToolCatalog, broken_call, unknown_call
from sigwire.adapters.text_tools.scan.brackets import JSON, BracketSpan, read_span
from sigwire.adapters.values.json_text import read_json
from sigwire.core.json import JsonValue, dumps, loads_once
from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import JsonReadError

__all__ = [
    "ARGUMENT_KEYS", "NAME_KEYS", "ClosingMarkers", "JsonPayload", "call_name", "calls_in", "is_call", "is_object_next",
    "make_call", "read_payload", "wrapped_calls"
]  # fmt: skip

NAME_KEYS = ("name", "tool_name")
ARGUMENT_KEYS = ("arguments", "parameters", "args")
_CALL_KEYS = frozenset({*NAME_KEYS, *ARGUMENT_KEYS, "id", "type", "index", "tool_call_id"})
_ID_KEYS = ("id", "tool_call_id")
_NAME = re.compile(r"""["']?(?:tool_)?name["']?\s*:\s*["']([^"'\\]{1,200})["']""")
_WORD = re.compile(r"\w", re.UNICODE)


class ClosingMarkers:
    """Markers that can follow a payload and close it. One of them shows that the payload was meant to be complete."""

    __slots__ = ("finder", "literals")

    def __init__(self, *literals: str) -> None:
        self.literals = literals
        self.finder = Finder(literals) if literals else None


@dataclass(frozen=True, slots=True)
class JsonPayload:
    """One JSON value as read: the value, or the error. ``items``: the members of an incomplete list."""

    raw: str
    value: JsonValue = None
    error: str | None = None
    notes: tuple[str, ...] = ()
    items: tuple[JsonPayload, ...] = ()


def is_object_next(cursor: Cursor, *, lists: bool = True) -> Wait[bool]:
    """Return True if JSON that can hold a call starts here. Passes only space.

    An object starts with a brace, then a quote, a word or a brace; a list starts with a bracket and an object.
    """
    yield from cursor.skip_space()
    start = cursor.position
    if lists and (yield from cursor.accept("[")):
        yield from cursor.skip_space()
    found = yield from cursor.accept("{")
    if found:
        yield from cursor.skip_space()
        here = yield from cursor.peek()
        found = not here or here in "\"'}" or _WORD.match(here) is not None
    cursor.position = start
    return found


def read_payload(cursor: Cursor, closers: ClosingMarkers) -> Wait[JsonPayload]:
    """Pass and read the JSON value here. A broken one is passed up to a closing marker."""
    span = yield from read_span(cursor, JSON)
    if span.complete:
        extra = yield from _skip_extra_brackets(cursor)
        read = _with_items(_read(cursor.text[span.start : span.end]), cursor, span)
        return _with_note(read, "a bracket too many was dropped") if extra else read
    if not span.truncated and closers.finder and (yield from cursor.peek_any(closers.literals)) is not None:
        text = cursor.text[span.start : span.end].rstrip().rstrip(",")
        return _with_note(_with_items(_read(text + span.missing), cursor, span), "a missing bracket was added")
    error = TRUNCATED if span.truncated else f"This is not JSON (character {span.end - span.start})"
    whole = JsonPayload(cursor.text[span.start : span.end], error=error)
    if closers.finder and (match := (yield from cursor.find(closers.finder, span.start))):
        # Up to the marker: an unclosed string may have passed it, and the text after it is not part of this call.
        cursor.position = match.start()
        return _with_items(JsonPayload(cursor.text[span.start : match.start()], error=error), cursor, span)
    return _with_items(whole, cursor, span)


def _skip_extra_brackets(cursor: Cursor) -> Wait[bool]:
    """Pass closing brackets without an opening one. Return True if there was one."""
    start, found = cursor.position, False
    while (yield from cursor.accept_any(("}", "]"))) is not None:
        found, start = True, cursor.position
        yield from cursor.skip_space()
    cursor.position = start
    return found


def _read(text: str) -> JsonPayload:
    try:
        return JsonPayload(text, loads_once(text))
    except ValueError:
        pass
    try:
        value, repairs = read_json(text)
    except JsonReadError as error:
        return JsonPayload(text, error=f"This is not JSON: {error}")
    notes = tuple(repair.what for repair in repairs)
    if not notes or any("came twice" in note for note in notes):
        return JsonPayload(text, error="duplicate key with different values")
    return JsonPayload(text, value, notes=notes)


def _with_note(read: JsonPayload, note: str) -> JsonPayload:
    return JsonPayload(read.raw, read.value, read.error, (*read.notes, note), read.items)


def _with_items(read: JsonPayload, cursor: Cursor, span: BracketSpan) -> JsonPayload:
    """Return the complete members of a list that was not closed, and an error for the rest."""
    if read.error is None or cursor.text[span.start] != "[":
        return read
    members = [(start, end) for start, end in span.members if end <= cursor.position]
    items = [_read(cursor.text[start:end].strip()) for start, end in members]
    start = members[-1][1] if members else span.start + 1
    if rest := cursor.text[start : span.end - 1 if span.complete else cursor.position].strip().strip(",").strip():
        items.append(JsonPayload(rest, error=read.error))
    notes = () if rest or span.complete else ("the closing bracket of a list was missing",)
    return JsonPayload(read.raw, error=read.error, items=tuple(items), notes=(*read.notes, *notes))


def calls_in(read: JsonPayload, catalog: ToolCatalog) -> tuple[ToolCall, ...]:
    """Return the calls of a payload behind a marker: every value there is a call, well formed or not."""
    return tuple(_iter_calls(read, catalog))


def _iter_calls(read: JsonPayload, catalog: ToolCatalog) -> Iterator[ToolCall]:
    if read.items:
        for part in read.items:
            yield from _iter_calls(part, catalog)
    elif read.error is not None:
        yield broken_call(read.raw, read.error, _name_of(read.raw, catalog))
    elif is_sequence(read.value):
        for item in read.value:
            yield from _calls_of(item, catalog)
    else:
        yield from _calls_of(read.value, catalog)


def _calls_of(value: JsonValue, catalog: ToolCatalog) -> Iterator[ToolCall]:
    inner = wrapped_calls(value)
    if inner is not None:
        for item in inner:
            yield from _calls_of(item, catalog)
        return
    value = _inner_function(value)
    if not is_mapping(value):
        yield broken_call(dumps(value), "A call is a JSON object")
        return
    name = call_name(value)
    if not name:
        yield broken_call(dumps(value), 'The call has no "name"')
        return
    arguments = next((value[key] for key in ARGUMENT_KEYS if key in value), None)
    yield make_call(name, arguments, catalog, next((str(value[key]) for key in _ID_KEYS if value.get(key)), ""))


def wrapped_calls(value: object) -> list[Any] | None:
    """Return the members of ``{"tool_calls": [...]}``; ``None`` for any other value."""
    inner = value.get("tool_calls") if is_mapping(value) and not any(key in value for key in NAME_KEYS) else None
    return list(inner) if is_sequence(inner) else None


def _inner_function(value: Any) -> Any:
    """Return the inner object of OpenAI's ``{"type": "function", "function": {...}}``, else the value."""
    inner = value.get("function") if is_mapping(value) else None
    if not is_mapping(inner) or any(key in value for key in NAME_KEYS):
        return value
    return {**{key: value[key] for key in _ID_KEYS if key in value}, **inner}


def make_call(name: str, arguments: object, catalog: ToolCatalog, id: str = "") -> ToolCall:
    """Return a call of a declared tool. The arguments are an object, a text that holds an object, or nothing.

    >>> make_call("add", '{"a": 1}', ToolCatalog.of(["add"])).arguments
    {'a': 1}
    >>> make_call("add", [1], ToolCatalog.of(["add"])).error.code
    'not_an_object'
    """
    declared = catalog.declared_name(name)
    if declared is None:
        return unknown_call(name, arguments, catalog, id)
    raw = arguments if isinstance(arguments, str) else None
    if raw is not None:
        read = _read(raw) if raw.strip() else JsonPayload(raw)
        if read.error is not None:
            return broken_call(raw, f"The text of the arguments cannot be read. {read.error}", declared, id=id)
        arguments = read.value
    if arguments is None:
        return ToolCall(id, declared, {}, raw)
    if not is_mapping(arguments):
        given = raw if raw is not None else dumps(arguments)
        return broken_call(given, "The arguments of a call must be a JSON object", declared, "not_an_object", id)
    return ToolCall(id, declared, dict(arguments), raw)


def _name_of(raw: str, catalog: ToolCatalog) -> str | None:
    match = _NAME.search(raw)
    return catalog.declared_name(match[1]) if match else None


def call_name(value: object) -> str | None:
    """Return the name that a value gives in the place of a call's name, nested or not.

    >>> call_name({"type": "function", "function": {"name": "ping"}})
    'ping'
    """
    value = _inner_function(value)
    name = next((value[key] for key in NAME_KEYS if key in value), None) if is_mapping(value) else None
    return name if isinstance(name, str) else None


def is_call(value: object, catalog: ToolCatalog) -> bool:
    """Return True if a value is a call of a declared tool, not an answer or a tool definition.

    >>> catalog = ToolCatalog.of(["ping"])
    >>> is_call({"name": "ping", "arguments": {}}, catalog), is_call({"name": "ping", "status": "old"}, catalog)
    (True, False)
    """
    value = _inner_function(value)
    if not is_mapping(value) or not value.keys() <= _CALL_KEYS:
        return False
    given = [value[key] for key in ARGUMENT_KEYS if key in value]
    declared = catalog.declared_name(call_name(value))
    if declared is None or len(given) != 1:
        return False
    arguments = _object_of(given[0])
    return arguments is not None and not _is_tool_definition(arguments, catalog.tools[declared])


def _object_of(value: object) -> Mapping[str, Any] | None:
    if isinstance(value, str):
        value = _read(value).value if value.lstrip().startswith("{") else None
    return value if is_mapping(value) else None


def _is_tool_definition(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Return True if "arguments" are a JSON Schema: the model shows the tool and does not call it."""
    shown = arguments.get("type") == "object" and is_mapping(arguments.get("properties"))
    declared = schema.get("properties")
    return shown and not (is_mapping(declared) and "properties" in declared)
