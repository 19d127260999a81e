"""JSON that stands for calls: where it ends, what it says, and what is forgiven.

    payload(cursor, closers)      one JSON value in the text, read strictly, else tolerantly, with what was repaired
    calls_in(value, offer)        the calls of a value: {"name", "arguments"} and its variants, lists, wrappers
    is_call(value, offer)         whether a value is a call and nothing else, as forms without a marker must be

Repairs in this order: the tolerant JSON reader; a bracket too many is dropped; a missing one is added, but only where a closing
marker shows that the model meant to be done. Text that ends inside is never completed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sigwire.adapters.text_tools.cursor import Cursor, Finder, Wait
from sigwire.adapters.text_tools.grammar import ToolCatalog, broken, unknown
from sigwire.adapters.text_tools.scan.brackets import JSON, BracketSpan, skim
from sigwire.adapters.values.json_text import read_json
from sigwire.core.json import JsonValue, dumps, loads_once
from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import JsonReadError

__all__ = [
    "ARGUMENTS",
    "NAMES",
    "ClosingMarkers",
    "JsonPayload",
    "call_name",
    "calls_in",
    "is_call",
    "make_call",
    "opens_object",
    "payload",
]

NAMES = ("name", "tool_name")
ARGUMENTS = ("arguments", "parameters", "args")
_BESIDE = frozenset({*NAMES, *ARGUMENTS, "id", "type", "index", "tool_call_id"})
_IDS = ("id", "tool_call_id")
_NAME = re.compile(r"""["']?(?:tool_)?name["']?\s*:\s*["']([^"'\\]{1,200})["']""")
_WORD = re.compile(r"\w", re.UNICODE)


class ClosingMarkers:
    """What may stand after a payload: markers that close it, one of which shows that it was meant to be whole."""

    __slots__ = ("finder", "literals")

    def __init__(self, *literals: str) -> None:
        self.literals = literals
        self.finder = Finder(literals) if literals else None


@dataclass(frozen=True, slots=True)
class JsonPayload:
    """One JSON value as it was read: the value, or why there is none. ``items`` are the parts of a list that was not one."""

    raw: str
    value: JsonValue = None
    fault: str | None = None
    notes: tuple[str, ...] = ()
    items: tuple[JsonPayload, ...] = ()


# --- reading one -----------------------------------------------------------------------------------------


def opens_object(cursor: Cursor, *, lists: bool = True) -> Wait[bool]:
    """Whether JSON that may hold a call begins here; passes nothing but space.

    An object begins with a brace and a quote, a word or its end; a list begins with a bracket and an object.
    """
    yield from cursor.space()
    start = cursor.position
    if lists and (yield from cursor.takes("[")):
        yield from cursor.space()
    found = yield from cursor.takes("{")
    if found:
        yield from cursor.space()
        here = yield from cursor.peek()
        found = not here or here in "\"'}" or _WORD.match(here) is not None
    cursor.position = start
    return found


def payload(cursor: Cursor, closers: ClosingMarkers) -> Wait[JsonPayload]:
    """Pass the JSON value here and read it; what is broken is passed up to a closing marker."""
    extent = yield from skim(cursor, JSON)
    if extent.complete:
        extra = yield from _extra_brackets(cursor)
        read = _members_or(_read(cursor.text[extent.start : extent.end]), cursor, extent)
        return _noted(read, "a bracket too many was dropped") if extra else read
    if not extent.cut and closers.finder and (yield from _stands(cursor, closers)):
        text = cursor.text[extent.start : extent.end].rstrip().rstrip(",")
        return _noted(_members_or(_read(text + extent.missing), cursor, extent), "a missing bracket was added")
    fault = (
        "The text ended inside the call" if extent.cut else f"This is not JSON (character {extent.end - extent.start})"
    )
    whole = JsonPayload(cursor.text[extent.start : extent.end], fault=fault)
    if closers.finder and (match := (yield from cursor.find(closers.finder, extent.start))):
        # Up to the marker: an unclosed string may have run over it, and what stands after is not this call's.
        cursor.position = match.start()
        return _members_or(JsonPayload(cursor.text[extent.start : match.start()], fault=fault), cursor, extent)
    return _members_or(whole, cursor, extent)


def _extra_brackets(cursor: Cursor) -> Wait[bool]:
    """Pass closing brackets that belong to nothing."""
    start, found = cursor.position, False
    while (yield from cursor.takes_any(("}", "]"))) is not None:
        found, start = True, cursor.position
        yield from cursor.space()
    cursor.position = start
    return found


def _stands(cursor: Cursor, closers: ClosingMarkers) -> Wait[bool]:
    start = cursor.position
    found = yield from cursor.takes_any(closers.literals)
    cursor.position = start
    return found is not None


def _read(text: str) -> JsonPayload:
    try:
        return JsonPayload(text, loads_once(text))
    except ValueError:
        pass
    try:
        value, repairs = read_json(text)
    except JsonReadError as fault:
        return JsonPayload(text, fault=f"This is not JSON: {fault}")
    notes = tuple(repair.what for repair in repairs)
    if not notes or any("came twice" in note for note in notes):
        return JsonPayload(text, fault="A key stands there twice, with different values")
    return JsonPayload(text, value, notes=notes)


def _noted(read: JsonPayload, note: str) -> JsonPayload:
    return JsonPayload(read.raw, read.value, read.fault, (*read.notes, note), read.items)


def _members_or(read: JsonPayload, cursor: Cursor, extent: BracketSpan) -> JsonPayload:
    """A list that was not closed still has its complete members; what remains of it is an error."""
    if read.fault is None or cursor.text[extent.start] != "[":
        return read
    members = [(start, end) for start, end in extent.members if end <= cursor.position]
    items = [_read(cursor.text[start:end].strip()) for start, end in members]
    end = extent.end - 1 if extent.complete else cursor.position
    rest = cursor.text[members[-1][1] if members else extent.start + 1 : end].strip().strip(",").strip()
    if rest:
        items.append(JsonPayload(rest, fault=read.fault))
    notes = () if rest or extent.complete else ("the closing bracket of a list was missing",)
    return JsonPayload(read.raw, fault=read.fault, items=tuple(items), notes=(*read.notes, *notes))


# --- what it says ------------------------------------------------------------------------------------------


def calls_in(read: JsonPayload, offer: ToolCatalog) -> tuple[ToolCall, ...]:
    """The calls of what was read behind a marker: everything there is a call, well written or not."""
    return tuple(_calls_in(read, offer))


def _calls_in(read: JsonPayload, offer: ToolCatalog) -> Iterator[ToolCall]:
    if read.items:
        for part in read.items:
            yield from _calls_in(part, offer)
    elif read.fault is not None:
        yield broken(read.raw, read.fault, _name_in(read.raw, offer))
    elif is_sequence(read.value):
        for item in read.value:
            yield from _calls_of(item, offer)
    else:
        yield from _calls_of(read.value, offer)


def _calls_of(value: JsonValue, offer: ToolCatalog) -> Iterator[ToolCall]:
    inner = _wrapped(value)
    if inner is not None:
        for item in inner:
            yield from _calls_of(item, offer)
        return
    value = _unnested(value)
    if not is_mapping(value):
        yield broken(dumps(value), "A call is a JSON object")
        return
    name = call_name(value)
    if not name:
        yield broken(dumps(value), 'The call has no "name"')
        return
    arguments = next((value[key] for key in ARGUMENTS if key in value), None)
    yield make_call(name, arguments, offer, next((str(value[key]) for key in _IDS if value.get(key)), ""))


def _wrapped(value: object) -> list[Any] | None:
    """The calls in ``{"tool_calls": [...]}``."""
    inner = value.get("tool_calls") if is_mapping(value) and not any(key in value for key in NAMES) else None
    return list(inner) if is_sequence(inner) else None


def _unnested(value: Any) -> Any:
    """OpenAI's ``{"type": "function", "function": {...}}`` as the object inside."""
    inner = value.get("function") if is_mapping(value) else None
    if not is_mapping(inner) or any(key in value for key in NAMES):
        return value
    return {**{key: value[key] for key in _IDS if key in value}, **inner}


def make_call(name: str, arguments: object, offer: ToolCatalog, id: str = "") -> ToolCall:
    """A call of a declared tool with arguments as they came: an object, a text that holds one, or nothing.

    >>> make_call("add", '{"a": 1}', OfferedTools.of(["add"])).arguments
    {'a': 1}
    >>> make_call("add", [1], OfferedTools.of(["add"])).error.code
    'not_an_object'
    """
    declared = offer.declared(name)
    if declared is None:
        return unknown(name, arguments, offer, id)
    raw = arguments if isinstance(arguments, str) else None
    if raw is not None:
        read = _read(raw) if raw.strip() else JsonPayload(raw)
        if read.fault is not None:
            return broken(raw, f"The text of the arguments cannot be read. {read.fault}", declared, id=id)
        arguments = read.value
    if arguments is None:
        return ToolCall(id, declared, {}, raw)
    if not is_mapping(arguments):
        given = raw if raw is not None else dumps(arguments)
        return broken(given, "The arguments of a call must be a JSON object", declared, "not_an_object", id)
    return ToolCall(id, declared, dict(arguments), raw)


def _name_in(raw: str, offer: ToolCatalog) -> str | None:
    """The declared name in a text that is otherwise not readable."""
    match = _NAME.search(raw)
    return offer.declared(match[1]) if match else None


# --- without a marker ----------------------------------------------------------------------------------------


def call_name(value: object) -> str | None:
    """The name that a value gives where a call has it, nested or not.

    >>> call_name({"type": "function", "function": {"name": "ping"}})
    'ping'
    """
    value = _unnested(value)
    name = next((value[key] for key in NAMES if key in value), None) if is_mapping(value) else None
    return name if isinstance(name, str) else None


def is_call(value: object, offer: ToolCatalog) -> bool:
    """Whether a value is a call of a declared tool, and neither an answer nor a tool's definition.

    >>> offer = OfferedTools.of(["ping"])
    >>> is_call({"name": "ping", "arguments": {}}, offer), is_call({"name": "ping", "status": "old"}, offer)
    (True, False)
    """
    value = _unnested(value)
    if not is_mapping(value) or not value.keys() <= _BESIDE:
        return False
    given = [value[key] for key in ARGUMENTS if key in value]
    declared = offer.declared(call_name(value))
    if declared is None or len(given) != 1:
        return False
    arguments = _object_in(given[0])
    return arguments is not None and not _is_definition(arguments, offer.tools[declared])


def _object_in(value: object) -> Mapping[str, Any] | None:
    if isinstance(value, str):
        value = _read(value).value if value.lstrip().startswith("{") else None
    return value if is_mapping(value) else None


def _is_definition(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether "arguments" are a JSON Schema: the model shows the tool instead of calling it."""
    shown = arguments.get("type") == "object" and is_mapping(arguments.get("properties"))
    declared = schema.get("properties")
    return shown and not (is_mapping(declared) and "properties" in declared)
