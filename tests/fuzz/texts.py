"""Targets that read what a model wrote: every dialect of calls, lenient JSON, the readers of values, outputs as they come.

Whatever the text, calls of declared tools or calls with a tagged error come out, values or the one error of each reader; in
pieces the same as whole; and of a field nothing is told that the whole answer does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from tests.fuzz.source import Source, in_pieces

__all__ = ["FRAGMENTS", "TARGETS"]

KINDS: tuple[JsonKind | None, ...] = (None, "object", "array")
TOOLS: Mapping[str, Any] = {
    "add": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "number"}}, "required": ["a"]},
    "ping": {"properties": {"a": {"type": ["string", "null"]}, "n": {"$ref": "#/properties/n"}}},
    "say": {"properties": {"text": {"type": "string"}, "tags": {"type": "array"}, "more": {"type": "object"}}},
}  # fmt: skip
THINKING = ("unknown", "open", "over")
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
    """A text of fragments, in part damaged; or any text at all."""
    if source.below(4) == 0:
        return source.rest().decode("utf-8", "surrogatepass" if source.below(2) else "replace")
    pieces: list[str] = []
    while source and len(pieces) < 24:
        piece = source.choose(fragments)
        damage = source.below(6)
        if damage == 0:
            piece = piece[: source.below(len(piece) + 1)]
        elif damage == 1:
            at = source.below(len(piece) + 1)
            piece = piece[:at] + chr(source.below(0x3000)) + piece[at + source.below(2) :]
        pieces.append(piece)
    return "".join(pieces)


def some_text(source: Source, fragments: Sequence[str]) -> str:
    """The same; bytes that are no text at all make an empty one."""
    try:
        return written(source, fragments)
    except UnicodeDecodeError:
        return ""


# --- calls as text -------------------------------------------------------------------------------------------------


def calls(grammars: tuple[Grammar, ...] | None, fragments: Sequence[str], source: Source) -> None:
    """Any text, read for calls: by all dialects, or by one."""
    options: dict[str, Any] = {
        "thinking": source.choose(THINKING), "whole_message": source.below(4) == 3, "grammars": grammars, "taken": ["call_0"],
    }  # fmt: skip
    offer = ToolCatalog.of(TOOLS, strict=source.below(4) == 3, output="calls")
    cuts = source.cuts()
    text = some_text(source, fragments)
    whole = read_calls(text, offer, **options)
    assert _scanned(in_pieces(text, cuts), offer, options) == whole
    assert _scanned(list(text), offer, options) == whole
    for call in whole.calls:
        assert (call.arguments is None) == (call.error is not None)
        assert call.name in TOOLS or call.error is not None or '"name"' in text  # a toolbox knows what is no tool
        assert loads(dumps(call.to_json())) == call.to_json()
    assert len({call.id for call in whole.calls} | {"call_0"}) == len(whole.calls) + 1
    assert len(whole.text) + len(whole.reasoning) <= len(text)


def _scanned(pieces: Sequence[str], offer: ToolCatalog, options: Mapping[str, Any]) -> ScanResult:
    reader = TextReader(offer, **options)
    for piece in pieces:
        reader.feed(piece)
    reader.close()
    return reader.scan


def _of(name: str) -> Callable[[Source], None]:
    """A dialect by itself: all grammars that have its name."""
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
    """The text of a tag as its schema says: always a value."""
    schema = source.choose(
        [*(schema for tool in TOOLS.values() for schema in tool["properties"].values()), {}, True, None]
    )
    value = read_value(some_text(source, [*JSON_BITS, *NUMBERS]), schema, TOOLS["ping"])
    assert loads(dumps(value)) == value


def growing_json(source: Source) -> None:
    """JSON that is read as it comes: at no time more than there is, in the end what there is."""
    cuts = source.cuts()
    text = some_text(source, [*JSON_BITS, *NUMBERS, '{"a": ', '["', "é", "\n", " "])
    growth, at = PartialJsonParser(), 0
    for piece in in_pieces(text, cuts):
        at += growth.read(piece, 0)
        assert at <= len(text)
        growth.partial_value()
        if growth.done or growth.failed:
            break
    growth.close()
    strict = _strictly(text)
    if growth.done and strict is not _NO_JSON:
        assert growth.partial_value() == strict
    if strict is not _NO_JSON:
        assert growth.done


_NO_JSON: Any = object()


def _strictly(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


# --- outputs as they come ------------------------------------------------------------------------------------------

SIGNATURE = sigwire.Signature("question -> answer, items: list[int], note: str | None")
ADAPTERS: Mapping[str, Adapter] = {
    "chat": sigwire.ChatAdapter(),
    "json": sigwire.JSONAdapter(),
    "xml": sigwire.XMLAdapter(),
}


def fields(plan: Plan, source: Source) -> None:
    """Any answer: what is told of its outputs is what the whole answer has."""
    cuts = source.cuts()
    text = some_text(source, [*LAYOUT_BITS * 2, *JSON_BITS, "words", " ", "\n", "<think>", "</think>", *NUMBERS[:4]])
    told = stream_fields(plan, in_pieces(text, cuts))
    parsed, _ = read_whole(plan, text)
    assert _ends(stream_fields(plan, list(text))) == _ends(told)
    if parsed is None:
        return
    for name, said in told.texts.items():
        assert said == parsed.fields[name]
    for name, partials in told.partials.items():
        assert partials[-1] == parsed.fields[name]


def _ends(told: StreamedFields) -> tuple[dict[str, str], dict[str, Any], list[str]]:
    """What was told in the end, however it came."""
    return told.texts, {name: partials[-1] for name, partials in told.partials.items()}, told.ended


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
    """Any answer of a model that may call: what is told of its calls and its outputs is what the whole answer has."""
    cuts = source.cuts()
    text = some_text(source, [*_CALLING, *LAYOUT_BITS * 2, *JSON_BITS, "words", " ", "\n", "<think>", "</think>"])
    tools = (sigwire.Tool(double),)
    told = stream_fields(plan, in_pieces(text, cuts), tools)
    parsed, choice = read_whole(plan, text, tools)
    assert told.calls == list(choice.tool_calls)
    assert _ends(stream_fields(plan, list(text), tools)) == _ends(told)
    for name, said in told.texts.items() if parsed else ():
        assert parsed is not None
        assert name not in parsed.fields or said == parsed.fields[name]


# --- signatures ----------------------------------------------------------------------------------------------------

_SIGNATURE_BITS = [
    "->", "->", ",", ",", ":", ":", ".", "|", "(", ")", "[", "]", "=", "-", "...", "'a'", '"b\\', "b'x'", "question",
    "answer: str", "list[int]", "dict[str, int]", "Literal['a', 1]", "int | None", "x", "str", "Optional", "1", "-2.5", "Image",
]  # fmt: skip


def signature(source: Source) -> None:
    """A signature's text: fields, or the one error of its own."""
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
    "growing_json": growing_json,
    "json": json_text,
    "literals": literals,
    "signature": signature,
    "tag_values": tag_values,
}
