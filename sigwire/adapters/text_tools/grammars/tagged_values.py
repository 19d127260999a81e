"""Dialects that put every argument into its own tag, as plain text that the tool's schema types.

    <function=NAME> <parameter=KEY> VALUE </parameter> </function>            qwen3_coder, in <tool_call>
    <invoke name="NAME"> <parameter name="KEY">VALUE</parameter> </invoke>    minimax, anthropic_legacy, DeepSeek's DSML
    <steptml:invoke name="NAME"> <steptml:parameter name="KEY"> VALUE ...     step3, between DeepSeek's tokens
    NAME <arg_key>KEY</arg_key> <arg_value>VALUE</arg_value>                  glm45, in <tool_call>

A closed argument does not complete a call, since another may be missing. Without the call's closing tag, or its wrapper's,
the call is an error. Values are verbatim; no entity is decoded.

A text that holds a closing tag of its own form would end there, and a call with less than the model wrote would run. So a call
with a text among its arguments waits for the end of the message. It is an error, with all text after it, if the text holds an
opening tag too, if its own closing tag is missing within a line, or if closing tags without opening ones follow. If the
message is truncated, no text may follow such a call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sigwire.adapters.text_tools.cursor import Cursor, Finder, Wait
from sigwire.adapters.text_tools.grammar import (
    TRUNCATED,
    UNCLEAR,
    CallBlock,
    Grammar,
    Reader,
    ToolCatalog,
    broken_call,
    unknown_call,
)
from sigwire.adapters.text_tools.grammars.parameter_text import read_value
from sigwire.adapters.text_tools.grammars.tagged_json import in_tool_calls, read_named_call, truncated_call
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, is_object_next
from sigwire.adapters.text_tools.markers import CALL, CALL_END, SECTION, SECTION_END, SEPARATOR
from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.core.tools.calls import ToolCall

__all__ = ["TAGGED_VALUES", "read_glm_pairs"]

_HEADER = re.compile(r"[^<>\n]*")
_NAME = re.compile(r"[\w.\-]*")
_MORE_TEXT = re.compile(r"(?:\s|</[\w:]+>)*[^\s<]")
_UNCLEAR = f"{UNCLEAR}. Write the arguments as one JSON object between the call's tags"
_ATTRIBUTE = re.compile(r"""\s*["']?([^"'\s]+)["']?(?:\s+string=["'](true|false)["'])?\s*""")


class _TagSet:
    """The tags of one dialect. ``lines``: one line break on each side of a value belongs to the markup.

    ``between``: the literals between a wrapper and its call, one of each group of spellings.
    """

    def __init__(
        self,
        call: str,
        call_end: str,
        parameter: str,
        parameter_end: str,
        wrappers: tuple[str, ...] = (),
        wrapper_ends: tuple[str, ...] = (),
        *,
        lines: bool = False,
        between: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        self.call, self.call_end = call, call_end
        self.parameter, self.parameter_end = parameter, parameter_end
        self.wrappers, self.wrapper_ends, self.lines = wrappers, wrapper_ends, lines
        self.between = between
        self.value_ends = Finder([parameter_end, parameter, call_end, *wrapper_ends])
        self.ends = ClosingMarkers(call_end, *wrapper_ends)

    def openers(self) -> tuple[str, ...]:
        return (*self.wrappers, self.call)


@dataclass(slots=True)
class _PartialCallBlock:
    name: str
    start: int
    catalog: ToolCatalog
    arguments: JsonObject = field(default_factory=dict[str, JsonValue])
    notes: list[str] = field(default_factory=list[str])
    has_text: bool = False
    is_unclosed: bool = False
    is_unclear: bool = False

    def typed_value(self, key: str, text: str) -> JsonValue:
        tool = self.catalog.declared_name(self.name) or ""
        return read_value(text, self.catalog.parameter_schema(tool, key), self.catalog.tools.get(tool))

    def add(self, key: str, value: JsonValue, *, is_unclear: bool, is_unclosed: bool = False) -> None:
        """Add an argument. ``is_unclear``: if the value is text, more of it may follow."""
        is_text = isinstance(value, str)
        self.has_text = self.has_text or is_text
        self.is_unclosed = self.is_unclosed or (is_text and is_unclosed)
        self.is_unclear = self.is_unclear or (is_text and is_unclear) or self.arguments.get(key, value) != value
        self.arguments[key] = value

    def finish(self, cursor: Cursor, is_complete: bool, tags: tuple[str, str]) -> Wait[ToolCall]:
        """Return the call. ``tags``: the opening and the closing tag of a value."""
        if self.has_text or self.is_unclear:
            yield from cursor.wait_for_end()
            text, end = cursor.text, cursor.position
            has_more = (self.is_unclosed or cursor.is_truncated) and _MORE_TEXT.match(text, end) is not None
            if self.is_unclear or has_more or text.count(tags[1], end) > text.count(tags[0], end):
                cursor.position = len(text)
                return broken_call(text[self.start :], _UNCLEAR, self.catalog.declared_name(self.name))
        return self._call(cursor, is_complete)

    def _call(self, cursor: Cursor, is_complete: bool) -> ToolCall:
        tool = self.catalog.declared_name(self.name)
        if not is_complete:
            raw = cursor.text[self.start : cursor.position]
            return broken_call(raw, "The text ended inside the call, or its tags do not fit", tool)
        return ToolCall("", tool, self.arguments) if tool else unknown_call(self.name, self.arguments, self.catalog)


def _make_reader(tags: _TagSet) -> Reader:
    def read(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
        if opener != tags.call:
            yield from cursor.skip_marks(tags.wrappers)
            for spellings in (*tags.between, (tags.call,)):
                yield from cursor.skip_space()
                if (yield from cursor.accept_any(spellings)) is None:
                    return None
        first = yield from _read_call(cursor, tags, catalog)
        return first and (yield from _read_row(cursor, tags, catalog, first))

    return read


def _read_row(cursor: Cursor, tags: _TagSet, catalog: ToolCatalog, first: CallBlock) -> Wait[CallBlock]:
    calls, notes = list(first.calls), list(first.notes)
    while True:
        start = cursor.position
        yield from cursor.skip_space()
        if (yield from cursor.accept_any(tags.wrapper_ends)) is not None:
            return CallBlock(tuple(calls), tuple(notes))
        following = (yield from _read_call(cursor, tags, catalog)) if (yield from cursor.accept(tags.call)) else None
        if following is None:
            cursor.position = start
            return CallBlock(tuple(calls), tuple(notes))
        calls += following.calls
        notes += following.notes


def _read_call(cursor: Cursor, tags: _TagSet, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    header = yield from cursor.run(_HEADER)
    match = _ATTRIBUTE.fullmatch(header)
    if match is None or not (yield from cursor.accept(">")):
        name = catalog.declared_name(match[1]) if match is not None and not (yield from cursor.has(1)) else None
        return CallBlock((broken_call(header, TRUNCATED, name),)) if name else None
    partial = _PartialCallBlock(match[1], cursor.position, catalog)
    if (yield from is_object_next(cursor, lists=False)):
        block = yield from read_named_call(cursor, partial.name, catalog, tags.ends)
        yield from _accept_end(cursor, tags)
        return block
    if not (yield from _is_body_next(cursor, tags, declared=catalog.declared_name(partial.name) is not None)):
        return None
    is_complete = yield from _read_parameters(cursor, tags, partial)
    call = yield from partial.finish(cursor, is_complete, (tags.parameter, tags.parameter_end))
    return CallBlock((call,), tuple(partial.notes))


def _is_body_next(cursor: Cursor, tags: _TagSet, *, declared: bool) -> Wait[bool]:
    """Return True if a parameter or the call's end follows, or the end of the text after the name of a tool."""
    yield from cursor.skip_space()
    start = cursor.position
    found = yield from cursor.accept_any((tags.parameter, tags.call_end, *tags.wrapper_ends))
    at_end = found is None and declared and not (yield from cursor.has(1))
    cursor.position = start
    return found is not None or at_end


def _read_parameters(cursor: Cursor, tags: _TagSet, partial: _PartialCallBlock) -> Wait[bool]:
    """Pass parameters up to the end of the call. Return True if the end was there."""
    while True:
        yield from cursor.skip_space()
        if (yield from _accept_end(cursor, tags)):
            return True
        if not (yield from cursor.accept(tags.parameter)):
            return False
        header = yield from cursor.run(_HEADER)
        match = _ATTRIBUTE.fullmatch(header)
        if match is None or not (yield from cursor.accept(">")):
            return False
        read = yield from _read_parameter_text(cursor, tags, partial)
        if read is None:
            return False
        text, is_closed, is_unclear = read
        value = _typed_value(text, match, partial)
        partial.add(match[1], value, is_unclear=is_unclear, is_unclosed=not is_closed)


def _accept_end(cursor: Cursor, tags: _TagSet) -> Wait[bool]:
    start = cursor.position
    yield from cursor.skip_space()
    if (yield from cursor.accept(tags.call_end)):
        return True
    position = cursor.position
    found = (yield from cursor.accept_any(tags.wrapper_ends)) is not None
    cursor.position = position if found else start  # _read_row passes the wrapper's end
    return found


def _read_parameter_text(
    cursor: Cursor, tags: _TagSet, partial: _PartialCallBlock
) -> Wait[tuple[str, bool, bool] | None]:
    """Pass and return a parameter's text, whether it is closed, and whether its end is unclear; ``None`` without an end."""
    if (yield from cursor.accept("<![CDATA[")):
        text = yield from _read_cdata(cursor, tags)
        return None if text is None else (text, True, False)
    start = search = cursor.position
    while (match := (yield from cursor.find(tags.value_ends, search))) is not None:
        text, cursor.position = cursor.text[start : match.start()], match.start()
        if (yield from cursor.accept(tags.parameter_end)):
            return (_trim_line_breaks(text) if tags.lines else text), True, tags.parameter in text
        if match[0] != tags.parameter or (yield from _is_known_parameter_next(cursor, tags, partial)):
            partial.notes.append("the closing tag of an argument was missing")
            is_unclear = match[0] in tags.wrapper_ends or _is_unclear(text, tags.call)
            return text.strip("\n"), False, is_unclear
        search = match.end()
    cursor.position = len(cursor.text)
    return None


def _is_unclear(text: str, opener: str) -> bool:
    """Return True if an unclosed value may go on: the tag behind it is not on a new line, or the value holds a call."""
    return not text.rstrip(" \t").endswith("\n") or opener in text


def _read_cdata(cursor: Cursor, tags: _TagSet) -> Wait[str | None]:
    start = cursor.position
    match = yield from cursor.find(_CDATA_END)
    if match is None:
        cursor.position = len(cursor.text)
        return None
    cursor.position = match.end()
    yield from cursor.accept(tags.parameter_end)
    return cursor.text[start : match.start()]


_CDATA_END = Finder(["]]>"])


def _is_known_parameter_next(cursor: Cursor, tags: _TagSet, partial: _PartialCallBlock) -> Wait[bool]:
    """Return True if a tag inside a value opens the next parameter: a declared one, or any if the tool declares none."""
    start = cursor.position
    yield from cursor.accept(tags.parameter)
    match = _ATTRIBUTE.fullmatch((yield from cursor.run(_HEADER)))
    cursor.position = start
    tool = partial.catalog.declared_name(partial.name)
    known = tool is not None and "properties" in partial.catalog.tools[tool]
    return match is not None and (not known or partial.catalog.parameter_schema(tool or "", match[1]) is not None)


def _trim_line_breaks(text: str) -> str:
    end = "\r\n" if text.startswith("\r\n") else "\n"
    return text.removeprefix(end).removesuffix(end)


def _typed_value(text: str, match: re.Match[str], partial: _PartialCallBlock) -> JsonValue:
    flag = match[2] if match.re.groups > 1 else None
    if flag == "true":
        return text
    if flag == "false":
        try:
            value: JsonValue = loads(text)
        except ValueError:
            pass
        else:
            return value
    return partial.typed_value(match[1], text)


def _read_legacy(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    """Read ``<invoke> <tool_name>NAME</tool_name> <parameters> <KEY>VALUE</KEY> </parameters> </invoke>``, repeated."""
    calls: list[ToolCall] = []
    while True:
        start = cursor.position
        yield from cursor.skip_space()
        if calls and (yield from cursor.accept("</function_calls>")):
            return CallBlock(tuple(calls))
        is_call = (not calls and opener == "<invoke>") or (yield from cursor.accept("<invoke>"))
        if is_call:
            yield from cursor.skip_space()
            is_call = yield from cursor.accept("<tool_name>")
        if not is_call:
            cursor.position = start
            return CallBlock(tuple(calls)) if calls else None
        calls.append((yield from _read_legacy_call(cursor, catalog)))


def _read_legacy_call(cursor: Cursor, catalog: ToolCatalog) -> Wait[ToolCall]:
    partial = _PartialCallBlock((yield from cursor.run(_HEADER)).strip(), cursor.position, catalog)
    is_complete = (yield from cursor.accept("</tool_name>")) and (yield from _read_legacy_parameters(cursor, partial))
    return (yield from partial.finish(cursor, is_complete, ("<parameters>", "</parameters>")))


def _read_legacy_parameters(cursor: Cursor, partial: _PartialCallBlock) -> Wait[bool]:
    yield from cursor.skip_space()
    inside = yield from cursor.accept("<parameters>")
    while True:
        yield from cursor.skip_space()
        if inside and (yield from cursor.accept("</parameters>")):
            inside = False
        elif not inside and (yield from cursor.accept("</invoke>")):
            return True
        elif not inside or not (yield from _read_legacy_parameter(cursor, partial)):
            return False


def _read_legacy_parameter(cursor: Cursor, partial: _PartialCallBlock) -> Wait[bool]:
    if not (yield from cursor.accept("<")):
        return False
    key = yield from cursor.run(_NAME)
    if not key or not (yield from cursor.accept(">")):
        return False
    start = cursor.position
    match = yield from cursor.find(Finder([f"</{key}>"]))
    cursor.position = match.end() if match else len(cursor.text)
    if match is not None:
        text = cursor.text[start : match.start()]
        partial.add(key, partial.typed_value(key, text), is_unclear=f"<{key}>" in text)
    return match is not None


def _read_glm(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    yield from cursor.skip_space()
    name = yield from cursor.run(_NAME)
    if not name:
        return None
    return (yield from read_glm_pairs(cursor, name, catalog))


def read_glm_pairs(cursor: Cursor, name: str, catalog: ToolCatalog, *, bare: bool = False) -> Wait[CallBlock | None]:
    """Read the text after the name. ``bare``: no marker precedes the name, so that a first pair must follow."""
    partial = _PartialCallBlock(name, cursor.position, catalog)
    yield from _skip_line_breaks(cursor)
    yield from cursor.accept("<tool_sep>")
    yield from _skip_line_breaks(cursor)
    declared = catalog.declared_name(name)
    if not bare and declared and (yield from is_object_next(cursor, lists=False)):
        block = yield from read_named_call(cursor, name, catalog, _GLM_ENDS)
        yield from _accept_glm_end(cursor)
        return block
    if (yield from cursor.accept("<arg_key>")):
        is_complete = yield from _read_pairs(cursor, partial)
        call = yield from partial.finish(cursor, is_complete, ("<arg_value>", "</arg_value>"))
        return CallBlock((call,), tuple(partial.notes))
    if bare or declared is None:
        return None
    if (yield from _accept_glm_end(cursor)):
        return CallBlock((ToolCall("", declared, {}),))
    return (yield from truncated_call(cursor, name, name, catalog))


def _skip_line_breaks(cursor: Cursor) -> Wait[None]:
    """Pass space, and line breaks written as a backslash and an n."""
    yield from cursor.skip_space()
    while (yield from cursor.accept("\\n")):
        yield from cursor.skip_space()


def _read_pairs(cursor: Cursor, partial: _PartialCallBlock) -> Wait[bool]:
    """Pass keys and values up to the closing tag. Return True if the tag was there."""
    while True:
        key = (yield from cursor.run(_HEADER)).strip()
        if not (yield from cursor.accept("</arg_key>")):
            return False
        yield from _skip_line_breaks(cursor)
        if not (yield from cursor.accept("<arg_value>")):
            return False
        start = cursor.position
        match = yield from cursor.find(_ARG_ENDS)
        cursor.position = match.start() if match else len(cursor.text)
        if match is None:
            return False
        text = cursor.text[start : cursor.position]
        is_closed = yield from cursor.accept("</arg_value>")
        is_unclear = "<arg_value>" in text
        if not is_closed:
            partial.notes.append("the closing tag of an argument was missing")
            is_unclear = match[0] == "</tool_call>" or _is_unclear(text, "<tool_call>")
            text = text.strip("\n")
        partial.add(key, partial.typed_value(key, text), is_unclear=is_unclear, is_unclosed=not is_closed)
        yield from _skip_line_breaks(cursor)
        if (yield from _accept_glm_end(cursor)):
            return True
        if not (yield from cursor.accept("<arg_key>")):
            return False


def _accept_glm_end(cursor: Cursor) -> Wait[bool]:
    yield from cursor.skip_space()
    return (yield from cursor.accept("</tool_call>"))


_ARG_ENDS = Finder(["</arg_value>", "<arg_key>", "</tool_call>"])
_GLM_ENDS = ClosingMarkers("</tool_call>")


def _make_grammar(name: str, tags: _TagSet) -> Grammar:
    return Grammar(name, tags.openers(), _make_reader(tags), closers=(tags.call_end, *tags.wrapper_ends))


def _invoke_tags(
    prefix: str, wrappers: tuple[str, ...], wrapper_ends: tuple[str, ...], between: tuple[tuple[str, ...], ...] = ()
) -> _TagSet:
    call, parameter = f"{prefix}invoke", f"{prefix}parameter"
    return _TagSet(
        f"<{call} name=",
        f"</{call}>",
        f"<{parameter} name=",
        f"</{parameter}>",
        wrappers,
        wrapper_ends,
        between=between,
    )


_QWEN = _TagSet(
    "<function=", "</function>", "<parameter=", "</parameter>", ("<tool_call>", "<seed:tool_call>"),
    ("</tool_call>", "</seed:tool_call>"), lines=True
)  # fmt: skip
_MINIMAX = _invoke_tags("", ("<minimax:tool_call>",), ("</minimax:tool_call>",))
_ANTHROPIC = _invoke_tags("", ("<function_calls>",), ("</function_calls>",))
_STEP = _invoke_tags("steptml:", (*SECTION, *CALL), (*CALL_END, *SECTION_END), (("function",), SEPARATOR))
_MINICPM = _TagSet("<function name=", "</function>", "<param name=", "</param>")


def _make_dsml_grammar(bar: str) -> Grammar:
    prefix, wrappers = f"{bar}DSML{bar}", ("function_calls", "tool_calls")
    starts, ends = tuple(f"<{prefix}{name}>" for name in wrappers), tuple(f"</{prefix}{name}>" for name in wrappers)
    return _make_grammar("deepseek_dsml", _invoke_tags(prefix, starts, ends))


_QWEN_CALLS = _make_grammar("qwen3_coder", _QWEN)
_GLM_CALLS = Grammar("glm45", ("<tool_call>",), _read_glm, closers=("</tool_call>", "</tool_calls>"))

TAGGED_VALUES: tuple[Grammar, ...] = (
    _QWEN_CALLS,
    in_tool_calls(_QWEN_CALLS),
    _GLM_CALLS,
    in_tool_calls(_GLM_CALLS),
    _make_grammar("minimax", _MINIMAX),
    _make_grammar("anthropic_legacy", _ANTHROPIC),
    Grammar("anthropic_legacy", ("<function_calls>", "<invoke>"), _read_legacy),
    _make_grammar("minicpm5", _MINICPM),
    _make_grammar("step3", _STEP),
    _make_dsml_grammar("｜"),
    _make_dsml_grammar("|"),
)
