"""Messages: Request -> body. Options, structured output, the system text and the turns; what a turn holds is in ``blocks``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import ImagePart, Message, Role
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import LMWarning
from sigwire.core.tools.names import NameMap
from sigwire.errors import InputError, UnsupportedFeature
from sigwire.lm.codecs.anthropic.blocks import NO_NAMES, TEXT, encode_blocks, kept_parts, plain_content
from sigwire.lm.codecs.anthropic.notes import WarningList
from sigwire.lm.codecs.anthropic.profiles import NO_SAMPLING_SINCE, MessagesProfile
from sigwire.lm.codecs.anthropic.tables import OPTIONS, SAMPLING
from sigwire.lm.codecs.anthropic.thinking import encode_reasoning
from sigwire.lm.codecs.anthropic.tools import encode_tools
from sigwire.lm.codecs.shared.history import HistoryRules, normalize_history
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.options import (
    OptionTable,
    drop_options,
    headers_for,
    merge_extra_body,
    merge_objects,
    place_options,
    repeat_warning,
    requested_choices,
    require_feature,
    schema_instruction,
)
from sigwire.lm.codecs.shared.schema import compile_schema
from sigwire.lm.codecs.shared.tools import name_map, offered_tools

__all__ = ["encode"]


def encode(request: Request, target: Target[MessagesProfile], *, stream: bool = False) -> EncodedRequest:
    """The request as this host takes it. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> from sigwire.lm.codecs.anthropic import ANTHROPIC
    >>> sent = encode(Request((Message.user("q"),)), Target("anthropic", "m", ANTHROPIC))
    >>> sent.path, sent.body
    ('/v1/messages', {'model': 'm', 'max_tokens': 4096, 'messages': [{'role': 'user', 'content': 'q'}]})
    """
    dialect, notes = target.profile, WarningList()
    history = normalize_history(request.messages, _repair_rules(target))
    names = name_map(request.tools, history.call_names, dialect.names)
    notes.add(*history.warnings)
    tools = offered_tools(request, names, target)
    notes.add(*tools.warnings)
    output, instruction = _encode_output(request.response_format, bool(request.tools), target, notes)
    thinking = encode_reasoning(request, target, notes)
    options, lost = place_options(request.options, _option_table(thinking.on, request, target), target)
    notes.add(*lost, *_media_warnings(history.messages), *repeat_warning(request, target))
    system, turns = _system_apart(_sendable(history.messages, dialect, notes), notes)
    body: JsonObject = {
        "model": target.model,
        "max_tokens": thinking.max_tokens,
        **_encode_system(system, instruction, target),
        "messages": cast(JsonValue, _encode_messages(turns, names, target, notes)),
        **encode_tools(tools, request, thinking, target, notes),
        **merge_objects(output, thinking.fields),
        **options,
        **_encode_stop(request, target, notes),
        **_encode_metadata(request, target),
        **_encode_cache(request, dialect),
        **({"stream": True} if stream else {}),
    }
    return EncodedRequest(
        dialect.path.format(model=target.model),
        merge_extra_body(body, request),
        {},
        headers_for(request, dialect),
        tuple(notes.warnings),
        names,
        history.call_ids,
        requested_choices(request),
    )


def _repair_rules(target: Target[MessagesProfile]) -> HistoryRules:
    return replace(target.history_rules, system="keep") if target.facts.later_system else target.history_rules


def _media_warnings(messages: Iterable[Message]) -> tuple[LMWarning, ...]:
    parts = (part for message in messages for part in message.parts)
    if not any(isinstance(part, ImagePart) and part.detail is not None for part in parts):
        return ()
    return (LMWarning("detail", "An image's detail has no place here; it was left out."),)


# --- options


def _option_table(thinks: bool, request: Request, target: Target[MessagesProfile]) -> OptionTable:
    """The wire's table with what the host, its version and the model refuse put over it."""
    facts, dialect, asked = target.facts, target.profile, request.options
    table = dict(OPTIONS)
    if asked.get("temperature") is not None and dialect.temperature_or_top_p:
        table |= drop_options(["top_p"], "it takes temperature or top_p, not both; top_p was left out.")
    if facts.sampling == "never" or dialect.version >= NO_SAMPLING_SINCE:
        table |= drop_options(SAMPLING, "the model takes no sampling options; it was left out.")
    elif facts.sampling == "unless_reasoning" and thinks:
        table |= drop_options(SAMPLING, "a model that reasons takes no sampling options; it was left out.")
    if not facts.stop:
        table |= drop_options(["stop"], "the model takes no stop sequences; they were left out.")
    return table


def _encode_stop(request: Request, target: Target[MessagesProfile], notes: WarningList) -> JsonObject:
    """A sequence of nothing but white space is refused by the provider."""
    stop = request.options.get("stop")
    if stop is None or not target.facts.stop:
        return {}
    asked: list[JsonValue] = stop if isinstance(stop, list) else [stop]
    usable = [text for text in asked if not (isinstance(text, str) and not text.strip())]
    if len(usable) < len(asked):
        notes.say("stop", target, "takes no stop sequence of white space only; it was left out.")
    return {"stop_sequences": usable} if usable else {}


def _encode_metadata(request: Request, target: Target[MessagesProfile]) -> JsonObject:
    """The one fact this wire takes about the caller: an id of the end user."""
    metadata, user = request.options.get("metadata"), request.options.get("user")
    if metadata is not None and not isinstance(metadata, dict):
        raise InputError(f"metadata must be an object such as {{'user_id': ...}}, not {metadata!r:.80}.")
    facts: JsonObject = dict(metadata or {})
    for name in facts:
        require_feature(name == "user_id", f"metadata {name!r}", target, "It takes user_id; leave the rest out.")
    if user is not None:
        facts["user_id"] = user
    return {"metadata": facts} if facts else {}


def _encode_cache(request: Request, dialect: MessagesProfile) -> JsonObject:
    """One mark for the whole request: the provider puts it on the last block that can be cached."""
    hints = request.options.get("cache")
    if not hints or not dialect.cache_control:
        return {}
    ttl = hints.get("ttl") if isinstance(hints, dict) else None
    return {"cache_control": {"type": "ephemeral", **({} if ttl is None else {"ttl": ttl})}}


# --- structured output


def _encode_output(
    wanted: ResponseFormat | None, tools: bool, target: Target[MessagesProfile], notes: WarningList
) -> tuple[JsonObject, str]:
    """The output format for the body, or what has to be said in words instead. The wire has no name for it."""
    if wanted is None:
        return {}, ""
    able, schema = target.capabilities, wanted.schema
    if schema is None:
        notes.say("response_format", target, "has no JSON output without a schema; it was asked for in words.")
        return {}, schema_instruction(None)
    words = schema_instruction(schema)
    if not able.json_schema or (tools and not able.tools_with_json_schema):
        notes.say("response_format", target, "has no structured output by schema here; it was asked for in words.")
        return {}, words
    try:
        require_feature(not _is_open(schema), "an output object of any keys", target, "Declare its keys.")
        compiled, warnings = compile_schema(
            schema, target.profile.output_schema, f"the output {wanted.name!r}", target.label
        )
    except UnsupportedFeature as refusal:
        # Sent with less than the schema says, the answer could not fit it; said in words, it can.
        notes.add(LMWarning("response_format", f"{refusal} It was asked for in words."))
        return {}, words
    notes.add(*warnings)
    return {"output_config": {"format": {"type": "json_schema", "schema": compiled}}}, ""


def _is_open(schema: JsonObject) -> bool:
    """Whether the root takes keys that it does not declare by saying so, or by declaring none."""
    if schema.get("type") != "object":
        return False
    extra = schema.get("additionalProperties")
    return extra not in (None, False) or (extra is None and "properties" not in schema)


# --- system


def _system_apart(messages: Iterable[Message], notes: WarningList) -> tuple[list[Message], list[Message]]:
    """The system turns that stand before the conversation, and the conversation."""
    messages = list(messages)
    start = next((number for number, turn in enumerate(messages) if turn.role != "system"), len(messages))
    leading, turns, waiting = list(messages[:start]), list[Message](), list[Message]()
    for turn in (*messages[start:], None):
        if turn is not None and turn.role == "system":
            waiting.append(turn)
            continue
        # Inside the conversation a system turn follows the user's and is followed by the assistant's or by nothing.
        if waiting and (turn is None or turn.role == "assistant"):
            place = leading if turns[-1].role == "assistant" else turns
            if place is leading:
                notes.add(LMWarning("system", "A system turn behind the assistant's was moved to the front."))
            place.extend(waiting)
            waiting = []
        elif waiting:
            notes.add(LMWarning("system", "A system turn was moved behind the user's turns, to its place here."))
        if turn is not None:
            turns.append(turn)
    return leading, turns


def _encode_system(system: Iterable[Message], words: str, target: Target[MessagesProfile]) -> JsonObject:
    """Plain text where there is one text, else blocks; an instruction of ours stands at its end."""
    blocks = [block for turn in system for block in encode_blocks(turn, NO_NAMES, target)]
    if words and len(blocks) == 1 and blocks[0].keys() == TEXT:
        return {"system": f"{blocks[0]['text']}\n\n{words}"}
    if words:
        blocks.append({"type": "text", "text": words})
    return {"system": plain_content(blocks)} if blocks else {}


# --- messages

_WIRE_ROLES: Mapping[Role, str] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}


def _encode_messages(
    turns: Iterable[Message], names: NameMap, target: Target[MessagesProfile], notes: WarningList
) -> list[JsonObject]:
    """Neighbours of one role on the wire are one message: results, then what the user says."""
    messages: list[tuple[str, list[JsonObject]]] = []
    for turn in turns:
        role, blocks = _WIRE_ROLES[turn.role], encode_blocks(turn, names, target)
        if messages and messages[-1][0] == role:
            messages[-1][1].extend(blocks)
        else:
            messages.append((role, blocks))
    if not messages or messages[0][0] != "user":
        notes.add(LMWarning("messages", "The conversation did not begin with a user turn; a short one was put first."))
        messages.insert(0, ("user", [{"type": "text", "text": "Continue."}]))
    if messages[-1][0] == "assistant":
        require_feature(
            target.facts.prefill or not _is_begun(messages[-1][1]), "an answer to go on with", target, _SAY_SO
        )
        _strip_end(messages[-1][1])
    return [{"role": role, "content": plain_content(blocks)} for role, blocks in messages]


_SAY_SO = "The conversation ends with the assistant's turn: end it with a user turn that asks to go on."


def _is_begun(blocks: list[JsonObject]) -> bool:
    """Whether the last turn is the beginning of an answer; one that ends with the provider's own tools was paused."""
    return blocks[-1].get("type") in ("text", "thinking", "redacted_thinking")


def _strip_end(blocks: list[JsonObject]) -> None:
    """An answer that the model is to go on with may not end in white space."""
    text = blocks[-1].get("text")
    if blocks[-1].get("type") == "text" and isinstance(text, str):
        blocks[-1] = {**blocks[-1], "text": text.rstrip()}


def _sendable(messages: Iterable[Message], dialect: MessagesProfile, notes: WarningList) -> Iterator[Message]:
    """The turns without what the provider would refuse and nobody would miss, and without those that are empty then."""
    for message in messages:
        parts = kept_parts(message.parts, dialect)
        if parts:
            yield message if len(parts) == len(message.parts) else Message(message.role, parts)
        elif message.role != "assistant":
            notes.add(LMWarning("messages", f"An empty {message.role} turn was left out."))
