"""Calls in Python's notation: ``[NAME(key=LITERAL, ...), ...]``, bare or behind tokens.

    [get_weather(city="Bern")]                          pythonic, toolace: without a marker, so weak
    <|python_start|>[...]<|python_end|>                 llama4_pythonic; one of the tokens, or the brackets, may be missing
    <|tool_call_start|>[...]<|tool_call_end|>           lfm2
    <|python_tag|>NAME.call(key="value")                llama3_json, whose tag is usually followed by JSON
    ```tool_code                                        gemma: one call per line, often print(default_api.NAME(...))

Declared names are matched, the longest first, since some are free text with blanks. Positional arguments have no names, so
they are not read as a call. A value that is no literal makes its call an error; its neighbours are read.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sigwire.adapters.text_tools.cursor import LINE_REST, Cursor, Wait, run_complete
from sigwire.adapters.text_tools.grammar import (
    TRUNCATED,
    CallBlock,
    Grammar,
    Reader,
    ToolCatalog,
    broken_call,
    closes_fence,
    unknown_call,
)
from sigwire.adapters.text_tools.grammars.literals import LiteralError, MissingKeywords, read_arguments
from sigwire.adapters.text_tools.grammars.tagged_json import accept_closer
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, calls_in, is_object_next, read_payload
from sigwire.adapters.text_tools.scan.brackets import PYTHON, BracketSpan, read_span
from sigwire.core.tools.calls import ToolCall

__all__ = ["PYTHONIC", "PYTHON_LISTS", "after_token", "read_call"]

_PREFIXES = ("default_api.", "functions.")
_NAME = re.compile(r"[\w.\-]*")
_SEPARATORS = re.compile(r"[\s,;]*")


def read_call(text: str, catalog: ToolCatalog) -> ToolCall | None:
    """Return the call that a text is; ``None`` if the text is not readable as a call.

    >>> read_call("add(a=1)", ToolCatalog.of(["add"])).arguments
    {'a': 1}
    >>> read_call("add(1)", ToolCatalog.of(["add"])) is None
    True
    """
    cursor = Cursor(text.strip(), closed=True)
    name = run_complete(_read_name(cursor, catalog))
    if name is None:
        return None
    span = run_complete(read_span(cursor, PYTHON))
    inside = cursor.text[span.start + 1 : span.end - 1]
    if not span.complete or span.end < len(cursor.text):
        return broken_call(text, TRUNCATED, catalog.declared_name(name)) if span.truncated else None
    return _call_of(name, inside, catalog)


def _call_of(name: str, inside: str, catalog: ToolCatalog) -> ToolCall | None:
    declared = catalog.declared_name(name) or catalog.declared_name(name.removesuffix(".call"))
    try:
        arguments = read_arguments(inside)
    except MissingKeywords:
        return None
    except LiteralError as error:
        return broken_call(inside, f"The arguments cannot be read: {error}", declared)
    return ToolCall("", declared, arguments) if declared else unknown_call(name, arguments, catalog)


def _read_name(cursor: Cursor, catalog: ToolCatalog) -> Wait[str | None]:
    """Pass a name that a parenthesis follows. The cursor stays before the parenthesis."""
    start = cursor.position
    yield from cursor.accept_any(_PREFIXES)
    name = yield from cursor.accept_any(tuple(catalog.tools))
    if name is not None:
        yield from cursor.accept(".call")
        yield from cursor.skip_space()
        if (yield from cursor.peek()) == "(":
            return name
    cursor.position = start
    name = yield from cursor.run(_NAME)
    if name and not name[0].isdigit() and (yield from cursor.peek()) == "(":
        return name
    cursor.position = start
    return None


def after_token(closers: ClosingMarkers, *, brackets: bool = False) -> Reader:
    """Return a reader of the text behind a token: a list of calls, calls without brackets, or JSON."""

    def read(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
        if (yield from is_object_next(cursor)):
            return (yield from _read_json_calls(cursor, closers, catalog))
        if (yield from _is_list_next(cursor, catalog)):
            block = yield from _read_list(cursor, catalog, weak=False)
        elif brackets:
            return None
        else:
            block = yield from _read_row(cursor, catalog)
        return block and replace(block, notes=(*block.notes, *(yield from accept_closer(cursor, closers))))

    return read


def _read_json_calls(cursor: Cursor, closers: ClosingMarkers, catalog: ToolCatalog) -> Wait[CallBlock]:
    calls: list[ToolCall] = []
    notes: list[str] = []
    start = cursor.position
    while (yield from is_object_next(cursor)):
        read = yield from read_payload(cursor, closers)
        calls += calls_in(read, catalog)
        notes += read.notes
        start = cursor.position
        yield from cursor.run(_SEPARATORS)
    cursor.position = start
    ended = yield from accept_closer(cursor, closers)
    return CallBlock(tuple(calls), (*notes, *ended))


def _read_row(cursor: Cursor, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    calls: list[ToolCall] = []
    while True:
        start = cursor.position
        yield from cursor.run(_SEPARATORS)
        begin = cursor.position
        name = yield from _read_name(cursor, catalog)
        if name is None:
            cursor.position = start
            return CallBlock(tuple(calls)) if calls else None
        span = yield from read_span(cursor, PYTHON)
        call = read_call(cursor.text[begin : span.end], catalog) if span.complete or span.truncated else None
        if call is None:
            cursor.position = start
            return CallBlock(tuple(calls)) if calls else None
        calls.append(call)


def _is_list_next(cursor: Cursor, catalog: ToolCatalog) -> Wait[bool]:
    """Return True if a bracket and a tool's name with a parenthesis are here. Passes only space."""
    yield from cursor.skip_space()
    start = cursor.position
    found = yield from cursor.accept("[")
    if found:
        yield from cursor.skip_space()
        found = (yield from _read_name(cursor, catalog)) is not None
    cursor.position = start
    return found


def _read_list(cursor: Cursor, catalog: ToolCatalog, *, weak: bool) -> Wait[CallBlock | None]:
    """Read the bracketed list of calls here. Without a marker every member must be a call, one of a known tool."""
    span = yield from read_span(cursor, PYTHON)
    members = _members_of(cursor.text, span)
    if weak:
        calls = _weak_calls(members, span, catalog)
    else:
        calls = [read_call(member, catalog) or broken_call(member, "This is no call") for member in members]
    notes = () if span.complete else ("the closing bracket of a list was missing",)
    return CallBlock(tuple(calls), notes) if calls else None


def _members_of(text: str, span: BracketSpan) -> list[str]:
    """Return the complete members of a list, and the incomplete last one."""
    start = span.members[-1][1] if span.members else span.start + 1
    rest = text[start : span.end - span.complete].strip(" \t\r\n,")
    return [text[first:last] for first, last in span.members] + ([rest] if rest else [])


def _weak_calls(members: list[str], span: BracketSpan, catalog: ToolCatalog) -> list[ToolCall]:
    if not span.complete and not span.truncated:
        return []
    calls = [call for member in members if (call := read_call(member, catalog)) is not None]
    has_known = any(catalog.declared_name(call.name) for call in calls)
    return calls if has_known and len(calls) == len(members) else []


def _read_weak_list(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    if not (yield from _is_list_next(cursor, catalog)):
        return None
    block = yield from _read_list(cursor, catalog, weak=True)
    if block is None or (yield from cursor.accept_after_space(_CLOSER)) is None:
        return block
    return CallBlock(block.calls, (*block.notes, "the opening marker of a call was missing"), is_marked=True)


def _read_tool_code(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    """Read a fence labelled ``tool_code``. It holds calls only; otherwise it is code."""
    rest = yield from cursor.run(LINE_REST)
    if rest.strip() or not (yield from cursor.accept("\n")):
        return None
    if not (yield from _is_code_call_next(cursor, catalog)):
        return None
    body, is_closed = yield from _read_code(cursor)
    calls = _calls_in_code(Cursor(body, closed=True), catalog)
    notes = () if is_closed else ("the closing fence was missing",)
    return CallBlock(tuple(calls), notes) if calls else None


def _read_code(cursor: Cursor) -> Wait[tuple[str, bool]]:
    start = cursor.position
    while True:
        begin = cursor.position
        line = yield from cursor.run(LINE_REST)
        if line.lstrip().startswith("```"):
            is_closed = closes_fence(line.lstrip(), "```")
            cursor.position = begin + (line.index("`") + 3 if is_closed else 0)
            return cursor.text[start:begin], is_closed
        if not (yield from cursor.accept("\n")):
            return cursor.text[start : cursor.position], False


def _is_code_call_next(cursor: Cursor, catalog: ToolCatalog) -> Wait[bool]:
    """Return True if code starts with a call of a tool, alone, printed or in a list. Passes only space."""
    yield from cursor.skip_space()
    start = cursor.position
    found = (yield from cursor.accept("print(")) or (yield from _is_list_next(cursor, catalog))
    found = found or (yield from _read_name(cursor, catalog)) is not None
    cursor.position = start
    return found


def _calls_in_code(body: Cursor, catalog: ToolCatalog) -> list[ToolCall] | None:
    """Return the calls of lines of code that hold nothing else."""
    calls: list[ToolCall] = []
    while True:
        run_complete(body.run(_SEPARATORS))
        if body.position >= len(body.text):
            return calls
        start = body.position
        if run_complete(_is_list_next(body, catalog)):
            block = run_complete(_read_list(body, catalog, weak=False))
            calls += block.calls if block else ()
            if block is None:
                return None
            continue
        printed = run_complete(body.accept("print"))
        if not printed and run_complete(_read_name(body, catalog)) is None:
            return None
        span = run_complete(read_span(body, PYTHON))
        text = body.text[span.start + 1 : span.end - 1] if printed else body.text[start : span.end]
        call = read_call(text, catalog)
        if call is None:
            return None
        calls.append(call)


_CLOSER = "<|python_end|>"
PYTHON_LISTS = Grammar("pythonic", ("[",), _read_weak_list, weak=True)


def _between(name: str, opener: str, closer: str) -> Grammar:
    return Grammar(name, (opener,), after_token(ClosingMarkers(closer)), closers=(closer,))


PYTHONIC: tuple[Grammar, ...] = (
    _between("llama4_pythonic", "<|python_start|>", _CLOSER),
    _between("lfm2", "<|tool_call_start|>", "<|tool_call_end|>"),
    Grammar("llama3_json", ("<|python_tag|>",), after_token(ClosingMarkers("<|eom_id|>", "<|eot_id|>"))),
    Grammar("gemma", ("```tool_code",), _read_tool_code, own_line=True, stops=("```tool_output",)),
)
