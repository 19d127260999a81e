"""Targets that parse a model's text: every dialect of calls, lenient JSON, the readers of values, streamed outputs.

Any text gives calls of declared tools or calls with a typed error, and values or the documented error of each reader. Chunks
give the same result as the whole text. A stream emits nothing of a field that the parsed answer does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pydantic

import sigwire
from sigwire.adapters.base import Adapter
from sigwire.adapters.plan import Plan
from sigwire.adapters.streaming.partial_json import PartialJsonParser
from sigwire.adapters.text_tools import Grammar, ScanResult, TextReader, ToolCatalog, dialects, read_calls
from sigwire.adapters.text_tools.grammars.literals import LiteralError, read_arguments, read_bare_object, read_literal
from sigwire.adapters.text_tools.grammars.parameter_text import read_value
from sigwire.adapters.values.json_text import JsonKind, read_json
from sigwire.core.json import dumps, loads
from sigwire.core.response import Repair
from sigwire.errors import JsonReadError, SignatureError
from sigwire.signatures.parser import TypeScope, parse_signature
from tests.adapters.streaming.emitting import StreamedFields, read_whole, stream_fields
from tests.adapters.text_tools.test_dialects import FORMS
from tests.adapters.text_tools.test_streams import MARKS, PAYLOADS
from tests.fuzz.source import Source, in_chunks

__all__ = ["FRAGMENTS", "TARGETS"]

KINDS: tuple[JsonKind | None, ...] = (None, "object", "array")
TOOLS: Mapping[str, Any] = {
    "add": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "number"}}, "required": ["a"]},
    "ping": {"properties": {"a": {"type": ["string", "null"]}, "n": {"$ref": "#/properties/n"}}},
    "say": {"properties": {"text": {"type": "string"}, "tags": {"type": "array"}, "more": {"type": "object"}}},
}  # fmt: skip
THINKING = ("unknown", "open", "over")
CALLS_ALONE = (False, True, "families", "fences")
NUMBERS = ["1", "-0", "1e9", "1e999", "0x1", "1_000", "9" * 400, ".5", "NaN", "-Infinity", "1.", "00"]
JSON_BITS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "'",
    "\\",
    "\\u12",
    "\\ud83d",
    "true",
    "None",
    "null",
    "//",
    "/*",
    "#",
    "```",
]
LAYOUT_BITS = [
    "[[ ## answer ## ]]\n", "[[ ## items ## ]]\n", "[[ ## completed ## ]]", "[[ ##", "\\[[ ##", "<answer>", "</answer>",
    "<items>", "</items>", '{"answer": "', '", "items": [', "]}", "```json\n", "\n```", "null", "None", '"""', "\\ ", " \\",
]  # fmt: skip
SECTION = '[[ ## calls ## ]]\n[{"name": "add", "arguments": {"a": 1}}]\n\n[[ ## completed ## ]]'
FRAGMENTS = [
    SECTION,
    "[[ ## calls ## ]]\n",
    "calls ## ]]",
    *MARKS,
    *PAYLOADS,
    *NUMBERS,
    *JSON_BITS,
    *LAYOUT_BITS,
    *(form for _, form in FORMS),
]


def written(source: Source, fragments: Sequence[str]) -> str:
    """Return a text of partly damaged fragments, or any text."""
    if source.below(4) == 0:
        return source.rest().decode("utf-8", "surrogatepass" if source.below(2) else "replace")
    parts: list[str] = []
    while source and len(parts) < 24:
        part = source.choose(fragments)
        damage = source.below(6)
        if damage == 0:
            part = part[: source.below(len(part) + 1)]
        elif damage == 1:
            at = source.below(len(part) + 1)
            part = part[:at] + chr(source.below(0x3000)) + part[at + source.below(2) :]
        parts.append(part)
    return "".join(parts)


def some_text(source: Source, fragments: Sequence[str]) -> str:
    """Return ``written``, or an empty text for bytes that are not text."""
    try:
        return written(source, fragments)
    except UnicodeDecodeError:
        return ""


# --- calls as text -------------------------------------------------------------------------------------------------


def calls(grammars: tuple[Grammar, ...] | None, fragments: Sequence[str], source: Source) -> None:
    """Parse any text for calls, in all dialects or in some."""
    options: dict[str, Any] = {
        "thinking": source.choose(THINKING), "whole_message": source.choose(CALLS_ALONE), "grammars": grammars,
        "taken": ["call_0"],
    }  # fmt: skip
    offer = ToolCatalog.of(TOOLS, strict=source.below(4) == 3, output="calls")
    cuts = source.cuts()
    text = some_text(source, fragments)
    whole = read_calls(text, offer, **options)
    assert _scanned(in_chunks(text, cuts), offer, options) == whole
    assert _scanned(list(text), offer, options) == whole
    for call in whole.calls:
        assert (call.arguments is None) == (call.error is not None)
        assert call.name in TOOLS or call.error is not None or '"name"' in text  # a toolbox knows what is no tool
        assert loads(dumps(call.to_json())) == call.to_json()
    assert len({call.id for call in whole.calls} | {"call_0"}) == len(whole.calls) + 1
    assert len(whole.text) + len(whole.reasoning) <= len(text)


def _scanned(parts: Sequence[str], offer: ToolCatalog, options: Mapping[str, Any]) -> ScanResult:
    reader = TextReader(offer, **options)
    for part in parts:
        reader.feed(part)
    reader.close()
    return reader.scan


def _of(name: str) -> Callable[[Source], None]:
    """Return a target for one dialect: all grammars of that name."""
    grammars = tuple(grammar for grammar in dialects() if grammar.name == name)
    marks = [mark for grammar in grammars for mark in (*grammar.openers, *grammar.closers, *grammar.stops)]
    forms = [form for dialect, form in FORMS if dialect == name] or [SECTION, "[[ ## calls ## ]]\n", "double(a=1)"]
    return partial(calls, grammars, [*forms * 4, *marks * 2, *PAYLOADS, *NUMBERS])


# --- values --------------------------------------------------------------------------------------------------------


def json_text(source: Source) -> None:
    """Lenient JSON."""
    strict, kind = source.below(2) == 1, source.choose(KINDS)
    text = some_text(source, [*JSON_BITS, *NUMBERS, *PAYLOADS])
    try:
        value, repairs = read_json(text, strict, kind=kind)
    except JsonReadError:
        return
    assert loads(dumps(value)) == value
    assert all(isinstance(repair, Repair) for repair in repairs)
    assert not (strict and repairs)


def literals(source: Source) -> None:
    """Python's notation, read without evaluating anything."""
    read = source.choose((read_literal, read_arguments, read_bare_object))
    text = some_text(
        source, [*JSON_BITS, *NUMBERS, *PAYLOADS, "a=", "*", "**", "b'", "f'", "lambda", "__import__('os')"]
    )
    try:
        value: Any = read(text)
    except LiteralError:
        return
    assert loads(dumps(value)) == value


def tag_values(source: Source) -> None:
    """Read the text of a tag by its schema: always a value."""
    schema = source.choose(
        [*(schema for tool in TOOLS.values() for schema in tool["properties"].values()), {}, True, None]
    )
    value = read_value(some_text(source, [*JSON_BITS, *NUMBERS]), schema, TOOLS["ping"])
    assert loads(dumps(value)) == value


def partial_json(source: Source) -> None:
    """Parse JSON in chunks: the parser never reads past the text, and the final value equals the whole."""
    cuts = source.cuts()
    text = some_text(source, [*JSON_BITS, *NUMBERS, '{"a": ', '["', "é", "\n", " "])
    parser, at = PartialJsonParser(), 0
    for part in in_chunks(text, cuts):
        at += parser.read(part, 0)
        assert at <= len(text)
        parser.partial_value()
        if parser.done or parser.failed:
            break
    parser.close()
    strict = _strictly(text)
    if parser.done and strict is not _NO_JSON:
        assert parser.partial_value() == strict
    if strict is not _NO_JSON:
        assert parser.done


_NO_JSON: Any = object()


def _strictly(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


# --- streamed outputs ----------------------------------------------------------------------------------------------

SIGNATURE = sigwire.Signature("question -> answer, items: list[int], note: str | None")
ADAPTERS: Mapping[str, Adapter] = {
    "chat": sigwire.ChatAdapter(),
    "json": sigwire.JSONAdapter(),
    "xml": sigwire.XMLAdapter(),
}


def fields(plan: Plan, source: Source) -> None:
    """Stream any answer: the emitted outputs equal those of the whole answer."""
    cuts = source.cuts()
    text = some_text(source, [*LAYOUT_BITS * 2, *JSON_BITS, "words", " ", "\n", "<think>", "</think>", *NUMBERS[:4]])
    streamed = stream_fields(plan, in_chunks(text, cuts))
    parsed, _ = read_whole(plan, text)
    assert _ends(stream_fields(plan, list(text))) == _ends(streamed)
    if parsed is None:
        return
    for name, text in streamed.texts.items():
        assert text == parsed.fields[name]
    for name, partials in streamed.partials.items():
        assert partials[-1] == parsed.fields[name]


def _ends(streamed: StreamedFields) -> tuple[dict[str, str], dict[str, Any], list[str]]:
    """Return the final texts, partial values and ended fields of a stream."""
    return streamed.texts, {name: partials[-1] for name, partials in streamed.partials.items()}, streamed.ended


class Person(pydantic.BaseModel):
    name: str
    friends: list[Person] = []


def double(n: int) -> int:
    """Twice as much."""
    return 2 * n


class Acting(sigwire.Signature):
    """Answer, or call a tool."""

    question: str = sigwire.InputField()
    tools: list[sigwire.Tool] = sigwire.InputField()
    person: Person | None = sigwire.OutputField()
    answer: str = sigwire.OutputField()
    calls: sigwire.ToolCalls = sigwire.OutputField()


_CALLING = [
    *(form.replace("add", "double").replace('"a"', '"n"') for _, form in FORMS), "[[ ## person ## ]]\n", "[[ ## calls ## ]]\n",
    "<person>", "</person>", "<name>", "</name>", "<friends>", "</friends>", "<calls>", "</calls>", '{"person": ', '"calls": [',
    '{"name": "Ada", "friends": []}', '{"name": "double", "arguments": {"n": 1}}', "double(n=1)",
]  # fmt: skip


def acting(plan: Plan, source: Source) -> None:
    """Stream an answer that may have calls: emitted calls and outputs equal those of the whole answer."""
    cuts = source.cuts()
    text = some_text(source, [*_CALLING, *LAYOUT_BITS * 2, *JSON_BITS, "words", " ", "\n", "<think>", "</think>"])
    tools = (sigwire.Tool(double),)
    streamed = stream_fields(plan, in_chunks(text, cuts), tools)
    parsed, choice = read_whole(plan, text, tools)
    whole = choice.tool_calls
    assert [replace(call, error=None) for call in streamed.calls] == [replace(call, error=None) for call in whole]
    assert all(call.error in (None, emitted.error) for call, emitted in zip(whole, streamed.calls, strict=True))
    assert _ends(stream_fields(plan, list(text), tools)) == _ends(streamed)
    for name, text in streamed.texts.items() if parsed else ():
        assert parsed is not None
        assert name not in parsed.fields or text == parsed.fields[name]


# --- signatures ----------------------------------------------------------------------------------------------------

_SIGNATURE_BITS = [
    "->", "->", ",", ",", ":", ":", ".", "|", "(", ")", "[", "]", "=", "-", "...", "'a'", '"b\\', "b'x'", "question",
    "answer: str", "list[int]", "dict[str, int]", "Literal['a', 1]", "int | None", "x", "str", "Optional", "1", "-2.5", "Image",
]  # fmt: skip


def signature(source: Source) -> None:
    """Parse a signature's text: fields or a ``SignatureError``."""
    text = some_text(source, [*_SIGNATURE_BITS, " ", "\n"])
    try:
        inputs, outputs = parse_signature(text, TypeScope())
    except SignatureError:
        return
    assert all(name.isidentifier() for name, _ in (*inputs, *outputs))


TARGETS: Mapping[str, Callable[[Source], None]] = {
    "calls": partial(calls, None, FRAGMENTS),
    **{f"calls_{name}": _of(name) for name in dict.fromkeys(grammar.name for grammar in dialects())},
    **{f"fields_{name}": partial(fields, adapter.plan(SIGNATURE)) for name, adapter in ADAPTERS.items()},
    **{f"acting_{name}": partial(acting, adapter.plan(Acting)) for name, adapter in ADAPTERS.items()},
    "partial_json": partial_json,
    "json": json_text,
    "literals": literals,
    "signature": signature,
    "tag_values": tag_values,
}
