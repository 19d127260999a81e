"""Messages: body -> Request, for fakes and conformance: what ``encoding`` wrote is read back."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Message, Part, Role
from sigwire.core.parts import FilePart, ImagePart, MediaPart, OpaquePart, TextPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult, number_calls
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.names import NameMap
from sigwire.errors import CallerError
from sigwire.lm.codecs.anthropic.blocks import (
    ANSWER_READERS,
    NO_NAMES,
    blocks_of,
    encode_blocks,
    is_native,
    read_block,
)
from sigwire.lm.codecs.anthropic.profiles import ANTHROPIC, MessagesProfile
from sigwire.lm.codecs.anthropic.tables import OPTIONS
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.options import Place
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of
from sigwire.lm.histories.parts import view_of

__all__ = ["read_request"]


_KNOWN = frozenset({"model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream"})


def read_request(body: JsonObject, dialect: MessagesProfile | None = None) -> Request:
    """The request that this body is the encoding of. What is not modelled stays in opaque parts and ``extra_body``."""
    dialect = dialect or ANTHROPIC
    rest: JsonObject = {name: value for name, value in body.items() if name not in _KNOWN and value is not None}
    choice, parallel = _read_choice(body.get("tool_choice"))
    if choice is None and body.get("tool_choice") is not None:
        rest["tool_choice"] = body["tool_choice"]
    wanted, rest = _read_format(rest)
    system = blocks_of(body.get("system"))
    return Request(
        (
            *((Message("system", _read_parts(system, "system", dialect)),) if system else ()),
            *_read_messages(objects_of(body.get("messages")), dialect),
        ),
        tuple(_read_tool(tool, dialect) for tool in objects_of(body.get("tools"))),
        choice,
        parallel,
        wanted,
        _read_options(body.get("max_tokens"), rest),
    )


def _read_options(max_tokens: JsonValue, rest: JsonObject) -> JsonObject:
    """Options by their places; each reader takes what it understands out of the rest."""
    options: JsonObject = {} if max_tokens is None else {"max_tokens": max_tokens}
    for name, option in OPTIONS.items():
        if isinstance(option, Place) and option.path in rest:
            options[name] = rest.pop(option.path)
    if "stop_sequences" in rest:
        options["stop"] = rest.pop("stop_sequences")
    if (cache := _read_cache(rest.get("cache_control"))) is not None:
        options["prompt_cache"] = cache
        del rest["cache_control"]
    metadata = rest.get("metadata")
    if isinstance(metadata, dict) and metadata.keys() == {"user_id"}:
        options["user"] = metadata["user_id"]
        del rest["metadata"]
    reasoning, rest = _read_reasoning(rest)
    if reasoning is not None:
        options["reasoning"] = reasoning
    return {**options, "extra_body": rest} if rest else options


def _read_cache(mark: JsonValue) -> JsonValue:
    if not isinstance(mark, dict) or mark.get("type") != "ephemeral" or mark.keys() - {"type", "ttl"}:
        return None
    return {name: value for name, value in mark.items() if name == "ttl"}


def _read_reasoning(rest: JsonObject) -> tuple[JsonValue, JsonObject]:
    """Return the requested effort or budget, and the fields that hold more than that."""
    thinking, config = rest.get("thinking"), rest.get("output_config")
    if not isinstance(thinking, dict):
        return None, rest
    kind, budget = thinking.get("type"), thinking.get("budget_tokens")
    effort = config.get("effort") if isinstance(config, dict) else None
    if kind == "disabled":
        return "off", _without(rest, {"thinking": ("type",)})
    if kind == "enabled" and isinstance(budget, int):
        return {"budget": budget}, _without(rest, {"thinking": ("type", "budget_tokens")})
    if kind == "adaptive" and isinstance(effort, str):
        ours = ("type", "display") if thinking.get("display") == "summarized" else ("type",)
        return effort, _without(rest, {"thinking": ours, "output_config": ("effort",)})
    return None, rest


def _without(rest: JsonObject, taken: Mapping[str, Sequence[str]]) -> JsonObject:
    """The rest without these fields of its objects, and without objects that are empty then."""
    left = dict(rest)
    for name, fields in taken.items():
        inner = left.pop(name)
        remaining = {key: value for key, value in cast(JsonObject, inner).items() if key not in fields}
        if remaining:
            left[name] = remaining
    return left


def _read_format(rest: JsonObject) -> tuple[ResponseFormat | None, JsonObject]:
    config = rest.get("output_config")
    wanted = config.get("format") if isinstance(config, dict) else None
    if not isinstance(wanted, dict) or wanted.keys() != {"type", "schema"} or not isinstance(wanted["schema"], dict):
        return None, rest
    return ResponseFormat(wanted["schema"]), _without(rest, {"output_config": ("format",)})


_CHOICES_READ: Mapping[str, ToolChoice] = {
    "auto": ToolChoice.AUTO,
    "any": ToolChoice.REQUIRED,
    "none": ToolChoice.NONE,
}


def _read_choice(wire: JsonValue) -> tuple[ToolChoice | None, bool | None]:
    kind, name = string_of(wire, "type") or "", string_of(wire, "name")
    parallel = False if isinstance(wire, dict) and wire.get("disable_parallel_tool_use") is True else None
    if kind == "tool" and name:
        return ToolChoice.named(name), parallel
    return _CHOICES_READ.get(kind), parallel


_SEARCH_FIELDS = frozenset({"type", "name", "allowed_domains", "blocked_domains", "max_uses", "user_location"})


def _read_tool(wire: JsonObject, dialect: MessagesProfile) -> JsonObject:
    if "input_schema" not in wire:
        return _read_builtin({name: value for name, value in wire.items() if value is not None}, dialect)
    function: JsonObject = {"name": wire.get("name")}
    if wire.get("description"):
        function["description"] = wire["description"]
    function["parameters"] = wire["input_schema"]
    further = {name: value for name, value in wire.items() if name not in ("name", "description", "input_schema")}
    return {"type": "function", "function": function, **({dialect.family: further} if further else {})}


def _read_builtin(wire: JsonObject, dialect: MessagesProfile) -> JsonObject:
    kind = string_of(wire, "type") or ""
    settings: JsonObject = {name: value for name, value in wire.items() if name != "type"}
    if kind != dialect.web_search or wire.keys() - _SEARCH_FIELDS:
        return {"type": kind, kind: settings}
    del settings["name"]
    if isinstance(place := settings.get("user_location"), dict):
        settings["user_location"] = {name: value for name, value in place.items() if name != "type"}
    return {"type": "web_search", "web_search": settings}


_ROLES: Mapping[str, Role] = {"system": "system", "assistant": "assistant"}


def _read_messages(wires: Iterable[JsonObject], dialect: MessagesProfile) -> Iterator[Message]:
    """Messages; neighbours of one role are one turn to the provider, and results become a turn of their own."""
    names: dict[str, str] = {}
    for role, blocks in _joined(wires):
        results = [_read_result(block, names, dialect) for block in blocks if block.get("type") == "tool_result"]
        if results:
            yield Message.tool(*results)
        said = (block for block in blocks if block.get("type") != "tool_result")
        parts = _read_parts(said, role, dialect)
        names |= {part.id: part.name for part in parts if isinstance(part, ToolCall)}
        if parts:
            yield Message(role, parts)


def _joined(wires: Iterable[JsonObject]) -> list[tuple[Role, list[JsonObject]]]:
    joined: list[tuple[Role, list[JsonObject]]] = []
    for wire in wires:
        role, blocks = _ROLES.get(string_of(wire, "role") or "", "user"), blocks_of(wire.get("content"))
        if joined and joined[-1][0] == role:
            joined[-1][1].extend(blocks)
        else:
            joined.append((role, blocks))
    return joined


def _read_parts(blocks: Iterable[JsonObject], role: Role, dialect: MessagesProfile) -> tuple[Part, ...]:
    parts = [part for block in blocks for part in _read_exactly(block, role, dialect)]
    numbered = iter(number_calls(part for part in parts if isinstance(part, ToolCall)))
    return tuple(next(numbered) if isinstance(part, ToolCall) else part for part in parts)


def _read_exactly(block: JsonObject, role: Role, dialect: MessagesProfile) -> tuple[Part, ...]:
    """The parts of a block; one that would not be written the same again is kept as it is."""
    readers = ANSWER_READERS if role == "assistant" else _ASKING_READERS
    parts = read_block(block, dialect.family, NO_NAMES, readers)
    bare = {name: value for name, value in block.items() if value is not None}
    turn = Message(role, parts)
    try:
        kept = view_of(turn, dialect.history_rules).message or turn
        written = encode_blocks(kept, NO_NAMES, Target("", "", dialect))
    except CallerError:
        written = []
    return parts if written == [bare] else (OpaquePart(dialect.family, block),)


def _read_result(block: JsonObject, names: Mapping[str, str], dialect: MessagesProfile) -> ToolResult:
    call_id, content, failed = (
        string_of(block, "tool_use_id") or "",
        block.get("content"),
        block.get("is_error") is True,
    )
    name = names.get(call_id, "")
    if isinstance(content, str) or is_native(content):
        return ToolResult(call_id, name, content, failed)
    match [_result_part(inner, dialect) for inner in objects_of(content)]:
        case [TextPart(text), *media]:
            return ToolResult(call_id, name, text, failed, tuple(media))
        case media:
            return ToolResult(call_id, name, "", failed, tuple(media))


def _result_part(block: JsonObject, dialect: MessagesProfile) -> MediaPart:
    """Return a part of a result; a block without a canonical part becomes its JSON text."""
    parts = _read_exactly(block, "user", dialect)
    if len(parts) == 1 and isinstance(parts[0], TextPart | ImagePart | FilePart):
        return parts[0]
    return TextPart(dumps(block))


def _read_image(block: JsonObject, family: str, names: NameMap) -> Part | None:
    source = block.get("source")
    match string_of(source, "type"):
        case "url":
            return ImagePart(url=_text_of(source, "url"))
        case "base64":
            return ImagePart(data=_text_of(source, "data"), media_type=_text_of(source, "media_type"))
        case _:
            return None


def _read_document(block: JsonObject, family: str, names: NameMap) -> Part | None:
    source, title = block.get("source"), string_of(block, "title")
    match string_of(source, "type"):
        case "url":
            return FilePart(url=_text_of(source, "url"), filename=title)
        case "file":
            return FilePart(file_id=_text_of(source, "file_id"), filename=title)
        case "base64":
            return FilePart(_text_of(source, "data"), filename=title, media_type=_text_of(source, "media_type"))
        case "text":
            data = base64.b64encode((_text_of(source, "data") or "").encode("utf-8", "replace")).decode()
            return FilePart(data, filename=title, media_type="text/plain")
        case _:
            return None


def _text_of(source: JsonValue, name: str) -> str | None:
    """Return the member of an object if it is a text, also an empty one."""
    value = source.get(name) if isinstance(source, dict) else None
    return value if isinstance(value, str) else None


_ASKING_READERS: Mapping[str, tuple[Callable[[JsonObject, str, NameMap], Part | None], frozenset[str]]] = {
    "text": ANSWER_READERS["text"],
    "image": (_read_image, frozenset({"type", "source"})),
    "document": (_read_document, frozenset({"type", "source", "title"})),
}
