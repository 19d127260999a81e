"""Calls in Python's notation: ``[NAME(key=LITERAL, ...), ...]``, bare or behind tokens.

    [get_weather(city="Bern")]                          pythonic, toolace: without a marker, so weak
    <|python_start|>[...]<|python_end|>                 llama4_pythonic; one of the tokens, or the brackets, may be missing
    <|tool_call_start|>[...]<|tool_call_end|>           lfm2
    <|python_tag|>NAME.call(key="value")                llama3_json, whose tag is followed by JSON as a rule
    ```tool_code                                        gemma: one call per line, often print(default_api.NAME(...))

Declared names are matched, the longest first, for some are free text with blanks. Positional arguments carry no names: that
is nothing to be read as a call. A value that is no literal makes its call an error; its neighbours are read.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sigwire.adapters.text_tools.cursor import Cursor, Wait, run_complete
from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, Reader, ToolCatalog, broken, closes_fence, unknown
from sigwire.adapters.text_tools.grammars.literals import LiteralError, MissingKeywords, read_arguments
from sigwire.adapters.text_tools.grammars.tagged_json import closing, skip_literal
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, calls_in, opens_object, payload
from sigwire.adapters.text_tools.scan.brackets import PYTHON, BracketSpan, skim
from sigwire.core.tools.calls import ToolCall

__all__ = ["PYTHONIC", "PYTHON_LISTS", "after_token", "read_call"]

_PREFIXES = ("default_api.", "functions.")
_NAME = re.compile(r"[\w.\-]*")
_LINE = re.compile(r"[^\n]*")
_SEPARATORS = re.compile(r"[\s,;]*")
_CUT = "The text ended inside the call"


def read_call(text: str, offer: ToolCatalog) -> ToolCall | None:
    """The call that a text is; ``None`` where it is no call that can be read.

    >>> read_call("add(a=1)", OfferedTools.of(["add"])).arguments
    {'a': 1}
    >>> read_call("add(1)", OfferedTools.of(["add"])) is None
    True
    """
    cursor = Cursor(text.strip(), closed=True)
    name = _now_name(cursor, offer)
    if name is None:
        return None
    extent = _skimmed(cursor)
    inside = cursor.text[extent.start + 1 : extent.end - 1]
    if not extent.complete or extent.end < len(cursor.text):
        return broken(text, _CUT, offer.declared(name)) if extent.cut else None
    return _made(name, inside, offer)


def _made(name: str, inside: str, offer: ToolCatalog) -> ToolCall | None:
    declared = offer.declared(name) or offer.declared(name.removesuffix(".call"))
    try:
        arguments = read_arguments(inside)
    except MissingKeywords:
        return None
    except LiteralError as fault:
        return broken(inside, f"The arguments cannot be read: {fault}", declared)
    return ToolCall("", declared, arguments) if declared else unknown(name, arguments, offer)


def _names(offer: ToolCatalog) -> tuple[str, ...]:
    return tuple(sorted(offer.tools, key=len, reverse=True))


def _name(cursor: Cursor, offer: ToolCatalog) -> Wait[str | None]:
    """Pass a name that a parenthesis follows, and stand before that."""
    start = cursor.position
    yield from cursor.takes_any(_PREFIXES)
    name = yield from cursor.takes_any(_names(offer))
    if name is not None:
        yield from cursor.takes(".call")
        yield from cursor.space()
        if (yield from cursor.peek()) == "(":
            return name
    cursor.position = start
    name = yield from cursor.run(_NAME)
    if name and not name[0].isdigit() and (yield from cursor.peek()) == "(":
        return name
    cursor.position = start
    return None


def _now_name(cursor: Cursor, offer: ToolCatalog) -> str | None:
    return run_complete(_name(cursor, offer))


def _skimmed(cursor: Cursor) -> BracketSpan:
    return run_complete(skim(cursor, PYTHON))


# --- behind a token ------------------------------------------------------------------------------------------


def after_token(closers: ClosingMarkers, *, brackets: bool = False) -> Reader:
    """A reader of what a token opens: a list of calls, calls without brackets, or JSON."""

    def read(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
        if (yield from opens_object(cursor)):
            return (yield from _json(cursor, closers, offer))
        if (yield from _opens_list(cursor, offer)):
            block = yield from _list(cursor, offer, weak=False)
        elif brackets:
            return None
        else:
            block = yield from _row(cursor, offer)
        if block is None:
            return None
        return replace(block, notes=(*block.notes, *(yield from closing(cursor, closers))))

    return read


def _json(cursor: Cursor, closers: ClosingMarkers, offer: ToolCatalog) -> Wait[CallBlock]:
    calls: list[ToolCall] = []
    notes: list[str] = []
    start = cursor.position
    while (yield from opens_object(cursor)):
        read = yield from payload(cursor, closers)
        calls += calls_in(read, offer)
        notes += read.notes
        start = cursor.position
        yield from cursor.run(_SEPARATORS)
    cursor.position = start
    ended = yield from closing(cursor, closers)
    return CallBlock(tuple(calls), (*notes, *ended))


def _row(cursor: Cursor, offer: ToolCatalog) -> Wait[CallBlock | None]:
    """Calls one after the other, without brackets."""
    calls: list[ToolCall] = []
    while True:
        start = cursor.position
        yield from cursor.run(_SEPARATORS)
        begin = cursor.position
        name = yield from _name(cursor, offer)
        if name is None:
            cursor.position = start
            return CallBlock(tuple(calls)) if calls else None
        extent = yield from skim(cursor, PYTHON)
        call = read_call(cursor.text[begin : extent.end], offer) if extent.complete or extent.cut else None
        if call is None:
            cursor.position = start
            return CallBlock(tuple(calls)) if calls else None
        calls.append(call)


def _opens_list(cursor: Cursor, offer: ToolCatalog) -> Wait[bool]:
    """Whether a bracket and the name of a tool with a parenthesis stand here; passes nothing but space."""
    yield from cursor.space()
    start = cursor.position
    found = yield from cursor.takes("[")
    if found:
        yield from cursor.space()
        found = (yield from _name(cursor, offer)) is not None
    cursor.position = start
    return found


def _list(cursor: Cursor, offer: ToolCatalog, *, weak: bool) -> Wait[CallBlock | None]:
    """The bracketed list of calls here. Without a marker every member must have the form of a call, one of a known tool."""
    extent = yield from skim(cursor, PYTHON)
    members = [cursor.text[start:end] for start, end in extent.members]
    end = extent.end - extent.complete
    rest = cursor.text[extent.members[-1][1] if extent.members else extent.start + 1 : end].strip(" \t\r\n,")
    if rest:
        members.append(rest)
    if weak and not extent.complete and not extent.cut:
        return None
    calls = [read_call(member, offer) or (None if weak else broken(member, "This is no call")) for member in members]
    read = [call for call in calls if call is not None]
    known = any(offer.declared(call.name) for call in read)
    if len(read) < len(calls) or not read or (weak and not known):
        return None
    return CallBlock(tuple(read), () if extent.complete else ("the closing bracket of a list was missing",))


# --- without a token ------------------------------------------------------------------------------------------


def _weak_list(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    if not (yield from _opens_list(cursor, offer)):
        return None
    block = yield from _list(cursor, offer, weak=True)
    if block is None or not (yield from skip_literal(cursor, _LEFT_CLOSER)):
        return block
    return CallBlock(block.calls, (*block.notes, "the opening marker of a call was missing"), sure=True)


# --- a fence of its own ------------------------------------------------------------------------------------------


def _tool_code(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    """A fence labelled ``tool_code``: calls only, or it is just code."""
    rest = yield from cursor.run(_LINE)
    if rest.strip() or not (yield from cursor.takes("\n")):
        return None
    start = cursor.position
    if not (yield from _begins_call(cursor, offer)):
        return None
    while True:
        begin = cursor.position
        line = yield from cursor.run(_LINE)
        fence = line.lstrip().startswith("```")
        if fence or not (yield from cursor.takes("\n")):
            break
    closed = fence and closes_fence(line.lstrip(), "```")
    if fence:
        cursor.position = begin + (line.index("`") + 3 if closed else 0)
    calls = _code_calls(Cursor(cursor.text[start : begin if fence else cursor.position], closed=True), offer)
    notes = () if closed else ("the closing fence was missing",)
    return CallBlock(tuple(calls), notes) if calls else None


def _begins_call(cursor: Cursor, offer: ToolCatalog) -> Wait[bool]:
    """Whether code begins with a call of a tool, alone, printed or in a list; passes nothing but space."""
    yield from cursor.space()
    start = cursor.position
    found = (yield from cursor.takes("print(")) or (yield from _opens_list(cursor, offer))
    found = found or (yield from _name(cursor, offer)) is not None
    cursor.position = start
    return found


def _code_calls(body: Cursor, offer: ToolCatalog) -> list[ToolCall] | None:
    """The calls of some lines of code that are nothing else."""
    calls: list[ToolCall] = []
    while True:
        run_complete(body.run(_SEPARATORS))
        if body.position >= len(body.text):
            return calls
        start = body.position
        if run_complete(_opens_list(body, offer)):
            block = run_complete(_list(body, offer, weak=False))
            calls += block.calls if block else ()
            if block is None:
                return None
            continue
        printed = run_complete(body.takes("print"))
        if not printed and _now_name(body, offer) is None:
            return None
        extent = _skimmed(body)
        text = body.text[extent.start + 1 : extent.end - 1] if printed else body.text[start : extent.end]
        call = read_call(text, offer)
        if call is None:
            return None
        calls.append(call)


_LEFT_CLOSER = "<|python_end|>"
PYTHON_LISTS = Grammar("pythonic", ("[",), _weak_list, weak=True)
PYTHONIC: tuple[Grammar, ...] = (
    Grammar(
        "llama4_pythonic",
        ("<|python_start|>",),
        after_token(ClosingMarkers("<|python_end|>")),
        closers=("<|python_end|>",),
    ),
    Grammar(
        "lfm2",
        ("<|tool_call_start|>",),
        after_token(ClosingMarkers("<|tool_call_end|>")),
        closers=("<|tool_call_end|>",),
    ),
    Grammar("llama3_json", ("<|python_tag|>",), after_token(ClosingMarkers("<|eom_id|>", "<|eot_id|>"))),
    Grammar("gemma", ("```tool_code",), _tool_code, own_line=True),
)
