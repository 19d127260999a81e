"""Anthropic Messages wire, spoken by Anthropic and by hosts that imitate it: Request -> dict, dict -> Response.

Pure: no network, clock or environment. What differs between hosts is a ``MessagesDialect``; what differs between models
is in the target's facts. Reads top to bottom: dialects, tables, encode(), decode(), resume(), decode_error(),
read_request().

Surprises of this wire:
    - Results travel in a *user* turn, all of one turn's together, before any text of the user's.
    - The system text stands outside the conversation; only newer models take system turns inside it.
    - ``max_tokens`` has to be sent, and thinking counts against it.
    - Order matters: thinking, text, calls and the provider's own items go back interleaved as they came, with their
      signatures. An ``OpaquePart`` is a whole block, or, without a ``type``, fields of the block before it (citations,
      ``cache_control``). Unknown fields of a call are its provider data (``caller``).
    - ``input_tokens`` leaves out what was read from or written to the cache; ours is all of it.
    - A turn may be paused: ``resume()`` gives the request that goes on, and decode() takes the list of all the bodies.

Beside a tool's ``function``, its object under the dialect's family holds fields of Anthropic's own
(``{"type": "function", "function": {...}, "anthropic": {"defer_loading": True}}``). Anthropic's own tool types pass as
they are: ``{"type": "code_execution_20260120", "code_execution_20260120": {"name": "code_execution"}}``. A result that
is a list of ``tool_reference`` or ``search_result`` objects is sent as these blocks, not as text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import (
    AudioPart,
    FilePart,
    ImagePart,
    MediaPart,
    Message,
    OpaquePart,
    Part,
    Role,
    TextPart,
    ThinkingPart,
)
from sigwire.core.names import NameMap, NameRules
from sigwire.core.request import Request, ResponseFormat, ToolChoice
from sigwire.core.response import Choice, FinishReason, LMWarning, Response, Usage
from sigwire.core.tools import ToolCall, ToolResult, number_calls
from sigwire.errors import (
    CallerError,
    InputError,
    LMBillingError,
    LMError,
    LMServerError,
    LMTimeoutError,
    LMUnexpectedError,
    UnsupportedFeature,
)
from sigwire.lm.codecs.base import (
    Dialect,
    Encoded,
    Offer,
    OptionTable,
    Place,
    Skip,
    Target,
    asked_reasoning,
    budget_for,
    drop_options,
    finish,
    fit_effort,
    headers_for,
    in_words,
    merge,
    name_map,
    needs_media,
    objects_of,
    offer,
    place_options,
    provider_data,
    repeat_warning,
    settle,
    string_of,
    supports,
    usage_of,
    wanted_choices,
)
from sigwire.lm.codecs.faults import Fault, Rule, lm_error, read_body, read_fault
from sigwire.lm.codecs.repair import IdRules, RepairRules, repair
from sigwire.lm.codecs.schema_rules import SchemaRules, any_of_for_types, compile_schema, one_of_to_any_of

__all__ = [
    "ANTHROPIC",
    "COMPATIBLE_MESSAGES",
    "ERRORS",
    "FINISH_REASONS",
    "OPTIONS",
    "OUTPUT_SCHEMA",
    "STATUSES",
    "USAGE",
    "MessagesDialect",
    "decode",
    "decode_error",
    "encode",
    "read_request",
    "resume",
]


# --- dialects ----------------------------------------------------------------------------------------------

OUTPUT_SCHEMA = SchemaRules(
    keep=frozenset(
        {
            "$defs", "$ref", "additionalProperties", "allOf", "anyOf", "const", "definitions", "description", "enum",
            "format", "items", "minItems", "properties", "required", "title", "type",
        }
    ),
    values={
        "format": frozenset(
            {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"}
        ),
        "minItems": frozenset({0, 1}),
    },
    rewrite=(one_of_to_any_of, any_of_for_types),
    ref_siblings=False,
    recursion="refuse",
    closed=True,
    open_maps="refuse",
    untyped="refuse",
)  # fmt: skip
"""The JSON Schema that structured output takes. Tools take all of it."""

_NAMES = NameRules(max_length=128)
_OBJECT_ROOT = SchemaRules(root="object")
_HISTORY = RepairRules(ids=IdRules(), system="front")
_NO_SAMPLING_SINCE = "2026-10-21"


@dataclass(frozen=True, kw_only=True)
class MessagesDialect(Dialect):
    """How one host speaks Messages. The defaults are api.anthropic.com.

    ``version``: of the API, sent as a header; from 2026-10-21 on no model takes sampling options. ``media``: what a
    user turn may hold beside text. ``efforts``: the reasoning words of models that take words, weakest first.
    ``signed_thinking``: whether thinking goes back only with a signature. ``temperature_or_top_p``: whether one
    excludes the other. ``cache_control``: whether the mark for the cache is taken. ``web_search``: the type of the
    host's own search tool, ``None`` where it has none.
    """

    family: str = "anthropic"
    path: str = "/v1/messages"
    names: NameRules = _NAMES
    tool_schema: SchemaRules = _OBJECT_ROOT
    output_schema: SchemaRules = OUTPUT_SCHEMA
    repair: RepairRules = _HISTORY
    version: str = "2023-06-01"
    media: frozenset[str] = frozenset({"image", "file"})
    efforts: tuple[str, ...] = ("off", "low", "medium", "high", "xhigh", "max")
    signed_thinking: bool = True
    temperature_or_top_p: bool = True
    cache_control: bool = True
    web_search: str | None = "web_search_20250305"

    def __post_init__(self) -> None:
        super().__post_init__()
        # One truth, as with the family: a row with another version must not go on sending the one of its base.
        object.__setattr__(self, "headers", {**self.headers, "anthropic-version": self.version})


ANTHROPIC = MessagesDialect()
COMPATIBLE_MESSAGES = MessagesDialect(
    family="anthropic-compatible",
    signed_thinking=False,
    temperature_or_top_p=False,
    cache_control=False,
    web_search=None,
)


# --- tables ------------------------------------------------------------------------------------------------

_SAMPLING = ("temperature", "top_p", "top_k")

OPTIONS: OptionTable = {
    **drop_options(["seed"], "the provider has no seed; it was left out."),
    "cache": Skip(),
    "max_tokens": Skip(),  # encoded with thinking, which counts against it
    "metadata": Skip(),
    "n": Skip(),  # the request is repeated
    "reasoning": Skip(),
    "service_tier": Place("service_tier"),
    "stop": Skip(),
    "temperature": Place("temperature"),
    "top_k": Place("top_k"),
    "top_p": Place("top_p"),
    "user": Skip(),
}

FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",  # nobody went on: what is there is not the whole answer
    "compaction": "length",
    "refusal": "content_filter",
}

_PAUSED = frozenset({"pause_turn", "compaction"})

USAGE: Mapping[str, str | tuple[str, ...]] = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
    "reasoning_tokens": "output_tokens_details.thinking_tokens",
}

_BALANCE_HINT = "Check the account's balance and limits; trying again does not help."
_LIMIT_CODES = frozenset({"contract_spend_limit_reached", "enforced_spend_limit_reached"})
_LIMIT_TEXTS = ("credit balance is too low", "spend limit", "usage limits")

STATUSES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status that belongs to an error's type, for errors that come under status 200."""

ERRORS: tuple[Rule, ...] = (
    Rule(LMBillingError, codes=frozenset({"billing_error"}) | _LIMIT_CODES, hint=_BALANCE_HINT),
    # A limit one has set oneself, or a balance that is used up, has the status of a bad request.
    Rule(LMBillingError, frozenset({400}), texts=_LIMIT_TEXTS, hint=_BALANCE_HINT),
    Rule(LMTimeoutError, codes=frozenset({"timeout_error"})),
    Rule(LMServerError, frozenset({200})),
)


# --- encode ------------------------------------------------------------------------------------------------


def encode(request: Request, target: Target[MessagesDialect], *, stream: bool = False) -> Encoded:
    """The request as this host takes it. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> sent = encode(Request((Message.user("q"),)), Target("anthropic", "m", ANTHROPIC))
    >>> sent.path, sent.body
    ('/v1/messages', {'model': 'm', 'max_tokens': 4096, 'messages': [{'role': 'user', 'content': 'q'}]})
    """
    dialect, notes = target.dialect, _Notes()
    names = name_map(request, dialect.names)
    history = repair(request.messages, _repair_rules(target))
    notes.add(*history.warnings)
    tools = offer(request, names, target)
    notes.add(*tools.warnings)
    output, instruction = _encode_output(request.response_format, bool(request.tools), target, notes)
    thinking = _encode_reasoning(request, target, notes)
    options, lost = place_options(request.options, _option_table(thinking.on, request, target), target)
    notes.add(*lost, *_media_warnings(history.messages), *repeat_warning(request, target))
    system, turns = _system_apart(_sendable(history.messages, dialect, notes), notes)
    body: JsonObject = {
        "model": target.model,
        "max_tokens": thinking.max_tokens,
        **_encode_system(system, instruction, target),
        "messages": cast(JsonValue, _encode_messages(turns, names, target, notes)),
        **_encode_tools(tools, request, thinking, target, notes),
        **merge(output, thinking.fields),
        **options,
        **_encode_stop(request, target, notes),
        **_encode_metadata(request, target),
        **_encode_cache(request, dialect),
        **({"stream": True} if stream else {}),
    }
    return Encoded(
        dialect.path.format(model=target.model),
        finish(body, request),
        {},
        headers_for(request, dialect),
        tuple(notes.warnings),
        names,
        history.call_ids,
        wanted_choices(request),
    )


class _Notes:
    """The warnings of one request as they come up."""

    def __init__(self) -> None:
        self.warnings: list[LMWarning] = []

    def add(self, *warnings: LMWarning) -> None:
        self.warnings.extend(warnings)

    def say(self, feature: str, target: Target[MessagesDialect], detail: str) -> None:
        self.add(LMWarning(feature, f"{target.provider}/{target.model} {detail}"))


def _repair_rules(target: Target[MessagesDialect]) -> RepairRules:
    return replace(target.repair, system="keep") if target.facts.later_system else target.repair


def _media_warnings(messages: Iterable[Message]) -> tuple[LMWarning, ...]:
    parts = (part for message in messages for part in message.parts)
    if not any(isinstance(part, ImagePart) and part.detail is not None for part in parts):
        return ()
    return (LMWarning("detail", "An image's detail has no place here; it was left out."),)


# --- options


def _option_table(thinks: bool, request: Request, target: Target[MessagesDialect]) -> OptionTable:
    """The wire's table with what the host, its version and the model refuse put over it."""
    facts, dialect, asked = target.facts, target.dialect, request.options
    table = dict(OPTIONS)
    if asked.get("temperature") is not None and dialect.temperature_or_top_p:
        table |= drop_options(["top_p"], "it takes temperature or top_p, not both; top_p was left out.")
    if facts.sampling == "never" or dialect.version >= _NO_SAMPLING_SINCE:
        table |= drop_options(_SAMPLING, "the model takes no sampling options; it was left out.")
    elif facts.sampling == "unless_reasoning" and thinks:
        table |= drop_options(_SAMPLING, "a model that reasons takes no sampling options; it was left out.")
    if not facts.stop:
        table |= drop_options(["stop"], "the model takes no stop sequences; they were left out.")
    return table


def _encode_stop(request: Request, target: Target[MessagesDialect], notes: _Notes) -> JsonObject:
    """A sequence of nothing but white space is refused by the provider."""
    stop = request.options.get("stop")
    if stop is None or not target.facts.stop:
        return {}
    asked: list[JsonValue] = stop if isinstance(stop, list) else [stop]
    usable = [text for text in asked if not (isinstance(text, str) and not text.strip())]
    if len(usable) < len(asked):
        notes.say("stop", target, "takes no stop sequence of white space only; it was left out.")
    return {"stop_sequences": usable} if usable else {}


def _encode_metadata(request: Request, target: Target[MessagesDialect]) -> JsonObject:
    """The one fact this wire takes about the caller: an id of the end user."""
    metadata, user = request.options.get("metadata"), request.options.get("user")
    if metadata is not None and not isinstance(metadata, dict):
        raise InputError(f"metadata must be an object such as {{'user_id': ...}}, not {metadata!r:.80}.")
    facts: JsonObject = dict(metadata or {})
    for name in facts:
        supports(name == "user_id", f"metadata {name!r}", target, "It takes user_id; leave the rest out.")
    if user is not None:
        facts["user_id"] = user
    return {"metadata": facts} if facts else {}


def _encode_cache(request: Request, dialect: MessagesDialect) -> JsonObject:
    """One mark for the whole request: the provider puts it on the last block that can be cached."""
    hints = request.options.get("cache")
    if not hints or not dialect.cache_control:
        return {}
    ttl = hints.get("ttl") if isinstance(hints, dict) else None
    return {"cache_control": {"type": "ephemeral", **({} if ttl is None else {"ttl": ttl})}}


# --- reasoning, and the limit it counts against


@dataclass(frozen=True, slots=True)
class _Thinking:
    """What asks for thinking, the token limit that goes with it, and whether the model will think.

    ``forces``: whether a call can be forced beside it.
    """

    max_tokens: JsonValue
    fields: JsonObject
    on: bool
    forces: bool = True


_DISABLED: JsonObject = {"thinking": {"type": "disabled"}}


def _encode_reasoning(request: Request, target: Target[MessagesDialect], notes: _Notes) -> _Thinking:
    facts, asked = target.facts, asked_reasoning(request)
    limit, forces = _max_tokens(request, target), facts.forced_choice_with_reasoning
    efforts = target.dialect.efforts if facts.efforts is None else facts.efforts
    by_budget = facts.thinking == "budget"
    if asked is None:
        return _Thinking(limit, {}, facts.default_effort not in (None, "off"), forces)
    if asked.off and facts.thinking == "none":
        return _Thinking(limit, {}, False)
    if asked.off and (by_budget or "off" in efforts):
        return _Thinking(limit, _DISABLED, False)
    if by_budget:
        budget, warnings = budget_for(asked, target)
        notes.add(*warnings)
        return _within_limit(budget, request, target, notes)
    effort, warnings = fit_effort(asked, () if facts.thinking == "none" else efforts, target)
    notes.add(*warnings)
    return _Thinking(limit, {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}, True, forces)


def _max_tokens(request: Request, target: Target[MessagesDialect], budget: int = 0) -> JsonValue:
    """The caller's limit, or the model's default with room for the thinking that was asked for."""
    given = request.options.get("max_tokens")
    if given is not None:
        return given
    wanted, most = target.facts.default_max_tokens + budget, target.capabilities.max_output_tokens
    return wanted if most is None else min(wanted, most)


def _within_limit(budget: int, request: Request, target: Target[MessagesDialect], notes: _Notes) -> _Thinking:
    """Thinking with a budget below the token limit, or none where the limit leaves no room for the least budget."""
    limit = _max_tokens(request, target, budget)
    least = target.facts.budgets[0]
    fitting = budget
    if isinstance(limit, int) and budget >= limit:
        fitting = min(max(limit // 2, least), limit - 1)  # the other half is for the answer
    if fitting < least:
        notes.say("reasoning", target, f"has no room to think within {limit} tokens; it was not asked to.")
        return _Thinking(limit, _DISABLED, False)
    if fitting < budget:
        notes.say(
            "reasoning", target, f"has {limit} tokens in all; a thinking budget of {fitting} was asked for instead."
        )
    return _Thinking(limit, {"thinking": {"type": "enabled", "budget_tokens": fitting}}, True, forces=False)


# --- structured output


def _encode_output(
    wanted: ResponseFormat | None, tools: bool, target: Target[MessagesDialect], notes: _Notes
) -> tuple[JsonObject, str]:
    """The output format for the body, or what has to be said in words instead. The wire has no name for it."""
    if wanted is None:
        return {}, ""
    able, schema = target.capabilities, wanted.schema
    if schema is None:
        notes.say("response_format", target, "has no JSON output without a schema; it was asked for in words.")
        return {}, in_words(None)
    words = in_words(schema)
    if not able.json_schema or (tools and not able.tools_with_json_schema):
        notes.say("response_format", target, "has no structured output by schema here; it was asked for in words.")
        return {}, words
    try:
        supports(not _is_open(schema), "an output object of any keys", target, "Declare its keys.")
        compiled, warnings = compile_schema(schema, target.dialect.output_schema, f"the output {wanted.name!r}")
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


# --- tools


def _encode_tools(
    tools: Offer, request: Request, thinking: _Thinking, target: Target[MessagesDialect], notes: _Notes
) -> JsonObject:
    """``tools`` in the caller's order, so that a provider's cache knows them again, and ``tool_choice``."""
    if not tools.functions and not tools.builtin:
        return {}
    choice, narrowed = _encode_choice(tools, thinking, target, notes)
    if request.parallel_tool_calls is False and (choice is None or choice["type"] != "none"):
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    wires = _encode_offered(tools, request, target)
    sent = [wire for wire in wires if not narrowed or wire.get("name") in tools.allowed]
    return {"tools": cast(JsonValue, sent), **({} if choice is None else {"tool_choice": choice})}


def _encode_offered(tools: Offer, request: Request, target: Target[MessagesDialect]) -> Iterator[JsonObject]:
    functions, builtin = iter(tools.functions), iter(tools.builtin)
    for tool in request.tools:
        if tool.get("type", "function") != "function":
            yield _encode_builtin(*next(builtin), target)
            continue
        name, description, parameters = next(functions)
        extra = tool.get(target.dialect.family)
        yield {
            "name": name,
            **({"description": description} if description else {}),
            "input_schema": parameters or {"type": "object", "properties": {}},
            **(extra if isinstance(extra, dict) else {}),
        }


_OWN_TYPE = re.compile(r"\w+_\d{8}")  # code_execution_20260120


def _encode_builtin(kind: str, settings: JsonObject, target: Target[MessagesDialect]) -> JsonObject:
    own = target.dialect.web_search
    if kind == "web_search":
        supports(own is not None, "web search", target, "Use a function tool of your own.")
        return _encode_web_search(cast(str, own), settings, target)
    instead = "It has web_search and its own dated types; otherwise use a function tool."
    supports(_OWN_TYPE.fullmatch(kind) is not None, f"the built-in tool {kind!r}", target, instead)
    return {"type": kind, **settings}


def _encode_web_search(kind: str, settings: JsonObject, target: Target[MessagesDialect]) -> JsonObject:
    given: JsonObject = {name: value for name, value in settings.items() if value}
    both = "allowed_domains" in given and "blocked_domains" in given
    supports(not both, "allowed_domains together with blocked_domains", target, "Give one of the two.")
    if isinstance(place := given.get("user_location"), dict):
        given["user_location"] = {"type": "approximate", **place}
    return {"type": kind, "name": "web_search", **given}


_CHOICES: Mapping[str, str] = {"auto": "auto", "required": "any", "none": "none"}


def _encode_choice(
    tools: Offer, thinking: _Thinking, target: Target[MessagesDialect], notes: _Notes
) -> tuple[JsonObject | None, bool]:
    """The choice's spelling, and whether the tools have to be narrowed to those it allows."""
    if tools.choice is None:
        return None, False
    if tools.choice == "required" and not _can_force(thinking, target):
        notes.say("tool_choice", target, "cannot be made to call a tool; the choice was left to the model.")
        return {"type": "auto"}, bool(tools.allowed)
    if tools.named:
        return {"type": "tool", "name": tools.named}, False
    return {"type": _CHOICES[tools.choice]}, bool(tools.allowed) and tools.choice != "none"


def _can_force(thinking: _Thinking, target: Target[MessagesDialect]) -> bool:
    return target.facts.forced_choice and (thinking.forces or not thinking.on)


# --- system


def _system_apart(messages: Iterable[Message], notes: _Notes) -> tuple[list[Message], list[Message]]:
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


def _encode_system(system: Iterable[Message], words: str, target: Target[MessagesDialect]) -> JsonObject:
    """Plain text where there is one text, else blocks; an instruction of ours stands at its end."""
    blocks = [block for turn in system for block in _encode_blocks(turn, _NO_NAMES, target)]
    if words and len(blocks) == 1 and blocks[0].keys() == _TEXT:
        return {"system": f"{blocks[0]['text']}\n\n{words}"}
    if words:
        blocks.append({"type": "text", "text": words})
    return {"system": _plain(blocks)} if blocks else {}


_NO_NAMES = NameMap((), _NAMES)
_TEXT = {"type", "text"}


def _plain(blocks: list[JsonObject]) -> JsonValue:
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0].keys() == _TEXT else cast(JsonValue, blocks)


# --- messages

_WIRE_ROLES: Mapping[Role, str] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}


def _encode_messages(
    turns: Iterable[Message], names: NameMap, target: Target[MessagesDialect], notes: _Notes
) -> list[JsonObject]:
    """Neighbours of one role on the wire are one message: results, then what the user says."""
    messages: list[tuple[str, list[JsonObject]]] = []
    for turn in turns:
        role, blocks = _WIRE_ROLES[turn.role], _encode_blocks(turn, names, target)
        if messages and messages[-1][0] == role:
            messages[-1][1].extend(blocks)
        else:
            messages.append((role, blocks))
    if not messages or messages[0][0] != "user":
        notes.add(LMWarning("messages", "The conversation did not begin with a user turn; a short one was put first."))
        messages.insert(0, ("user", [{"type": "text", "text": "Go on."}]))
    if messages[-1][0] == "assistant":
        _strip_end(messages[-1][1])
    return [{"role": role, "content": _plain(blocks)} for role, blocks in messages]


def _strip_end(blocks: list[JsonObject]) -> None:
    """An answer that the model is to go on with may not end in white space."""
    text = blocks[-1].get("text")
    if blocks[-1].get("type") == "text" and isinstance(text, str):
        blocks[-1] = {**blocks[-1], "text": text.rstrip()}


def _sendable(messages: Iterable[Message], dialect: MessagesDialect, notes: _Notes) -> Iterator[Message]:
    """The turns without what the provider would refuse and nobody would miss, and without those that are empty then."""
    for message in messages:
        parts = _kept(message.parts, dialect)
        if parts:
            yield message if len(parts) == len(message.parts) else Message(message.role, parts)
        elif message.role != "assistant":
            notes.add(LMWarning("messages", f"An empty {message.role} turn was left out."))


def _kept(parts: Iterable[Part], dialect: MessagesDialect) -> tuple[Part, ...]:
    kept: list[Part] = []
    last = False  # fields go with their block
    for part in parts:
        last = last if _fields(part) is not None else not _is_left_out(part, dialect)
        if last:
            kept.append(part)
    return tuple(kept)


def _fields(part: Part) -> JsonObject | None:
    """What a part says of the block before it; ``None`` where it is a block itself."""
    data = part.data if isinstance(part, OpaquePart) else None
    return data if isinstance(data, dict) and "type" not in data else None


def _is_left_out(part: Part, dialect: MessagesDialect) -> bool:
    """Text of white space only, and thinking whose signature is missing (its stream was cut)."""
    if isinstance(part, TextPart):
        return not part.text.strip()
    return isinstance(part, ThinkingPart) and part.redacted is None and not part.signature and dialect.signed_thinking


def _encode_blocks(message: Message, names: NameMap, target: Target[MessagesDialect]) -> list[JsonObject]:
    """The parts as blocks, in order."""
    blocks: list[JsonObject] = []
    for part in message.parts:
        fields = _fields(part)
        if fields is None:
            blocks.append(_encode_part(part, message.role, names, target))
        else:
            blocks[-1] = {**blocks[-1], **fields}
    return blocks


_PLACES: Mapping[Role, tuple[type, ...]] = {
    "system": (TextPart, OpaquePart),
    "user": (TextPart, ImagePart, AudioPart, FilePart, OpaquePart),
    "assistant": (TextPart, ThinkingPart, ToolCall, OpaquePart),
    "tool": (ToolResult, OpaquePart),
}


def _encode_part(part: Part, role: Role, names: NameMap, target: Target[MessagesDialect]) -> JsonObject:
    feature = f"a {type(part).__name__} in {'an' if role == 'assistant' else 'a'} {role} turn"
    supports(isinstance(part, _PLACES[role]), feature, target, "Move it to a user turn.")
    match part:
        case ToolCall():
            return _encode_call(part, names, target.dialect)
        case ToolResult():
            return _encode_result(part, target)
        case ThinkingPart():
            return _encode_thinking(part)
        case OpaquePart(data=data):
            supports(isinstance(data, dict), "an opaque item that is no object", target, "Leave it out.")
            return cast(JsonObject, data)
        case _:
            return _encode_media(part, target)


def _encode_call(call: ToolCall, names: NameMap, dialect: MessagesDialect) -> JsonObject:
    # The wire takes an object only; text that is none (another provider's broken call) goes as the object's value.
    arguments: JsonObject = {"invalid_arguments": call.arguments_text} if call.arguments is None else call.arguments
    wire: JsonObject = {"type": "tool_use", "id": call.id, "name": names.encode(call.name), "input": arguments}
    return {**wire, **provider_data(call, dialect.family)}


def _encode_thinking(part: ThinkingPart) -> JsonObject:
    if part.redacted is not None:
        return {"type": "redacted_thinking", "data": part.redacted}
    signed: JsonObject = {} if part.signature is None else {"signature": part.signature}
    return {"type": "thinking", "thinking": part.text, **signed}


def _encode_result(result: ToolResult, target: Target[MessagesDialect]) -> JsonObject:
    failed: JsonObject = {"is_error": True} if result.is_error else {}
    content = _result_content(result, target)
    return {"type": "tool_result", "tool_use_id": result.id, "content": content, **failed}


def _result_content(result: ToolResult, target: Target[MessagesDialect]) -> JsonValue:
    """Text, or blocks where there are media; an empty list would be refused."""
    if _is_native(result.content) and not result.media:
        return result.content
    parts: tuple[MediaPart, ...] = (TextPart(result.text), *result.media)
    blocks = [_encode_media(part, target) for part in parts if not _is_left_out(part, target.dialect)]
    return cast(JsonValue, blocks) if result.media and blocks else result.text


_NATIVE = frozenset({"tool_reference", "search_result"})


def _is_native(content: JsonValue) -> bool:
    """Whether a result is in this wire's own blocks, for which there is no other part."""
    if not isinstance(content, list) or not content:
        return False
    return all(isinstance(item, dict) and item.get("type") in _NATIVE for item in content)


def _encode_media(part: MediaPart, target: Target[MessagesDialect]) -> JsonObject:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart():
            needs_media("image", target.dialect.media, target)
            return {"type": "image", "source": _image_source(part, target)}
        case FilePart():
            needs_media("file", target.dialect.media, target)
            titled: JsonObject = {} if part.filename is None else {"title": part.filename}
            return {"type": "document", "source": _document_source(part, target), **titled}
        case AudioPart():
            supports(False, "audio input", target, "Transcribe it first, or use a provider that takes sound.")
            return {}


_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_SPELLINGS: Mapping[str, str] = {"image/jpg": "image/jpeg"}


def _image_source(part: ImagePart, target: Target[MessagesDialect]) -> JsonObject:
    if part.url is not None:
        return {"type": "url", "url": part.url}
    if part.data is None:
        raise InputError("An image needs a url or data.")
    media_type = _SPELLINGS.get(part.media_type or "", part.media_type or "image/png")
    supports(media_type in _IMAGE_TYPES, f"an image as {media_type!r}", target, "Convert it to PNG or JPEG.")
    return {"type": "base64", "media_type": media_type, "data": part.data}


def _document_source(part: FilePart, target: Target[MessagesDialect]) -> JsonObject:
    if part.file_id is not None:
        return {"type": "file", "file_id": part.file_id}
    if part.url is not None:
        return {"type": "url", "url": part.url}
    if part.data is None:
        raise InputError("A file needs data, a url or a file_id.")
    media_type = part.media_type or "application/pdf"
    if media_type.startswith("text/"):
        return {"type": "text", "media_type": "text/plain", "data": _text_of(part.data, part.filename)}
    supports(media_type == "application/pdf", f"a document as {media_type!r}", target, "Send it as PDF or as text.")
    return {"type": "base64", "media_type": media_type, "data": part.data}


def _text_of(data: str, filename: str | None) -> str:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8", "replace")
    except ValueError as fault:
        raise InputError(f"The data of the file {filename or '(unnamed)'!r} are not base64: {fault}.") from fault


# --- decode ------------------------------------------------------------------------------------------------


def decode(body: JsonValue, sent: Encoded, target: Target[MessagesDialect]) -> Response:
    """The reply as a response. Raises an ``LMError`` for an error, or no answer at all, inside status 200.

    A list is one answer in several bodies: those of a paused turn and of what went on from it (see ``resume``). Their
    content is joined and their tokens are added up.
    """
    bodies = [_checked(one, target) for one in (body if isinstance(body, list) and body else [body])]
    last = bodies[-1]
    choice, warnings = _decode_choice(bodies, sent, target)
    usage = Usage()
    for one in bodies:
        usage += _decode_usage(one)
    return Response(
        (replace(choice, raw=body),),
        usage,
        string_of(last, "model"),
        string_of(last, "id"),
        (*sent.warnings, *warnings),
        raw=body,
    )


def _checked(body: JsonValue, target: Target[MessagesDialect]) -> JsonObject:
    if isinstance(body, dict) and body.get("error"):
        fault = _fault(200, {}, body)
        status = next((STATUSES[code] for code in fault.codes if code in STATUSES), 200)
        raise lm_error(replace(fault, status=status), ERRORS, target)
    if isinstance(body, dict) and isinstance(body.get("content"), list | str):
        return body
    said = read_fault(200, {}, body).message or dumps(body)[:200]
    spoke = isinstance(body, str) and body.strip() and body.lstrip()[:1] != "<"
    error = LMUnexpectedError if spoke else LMServerError
    raise error(f"The reply holds no content: {said}", model=target.model, provider=target.provider, status=200)


def _decode_choice(
    bodies: Sequence[JsonObject], sent: Encoded, target: Target[MessagesDialect]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    last, family = bodies[-1], target.dialect.family
    blocks = [block for body in bodies for block in _blocks(body.get("content"))]
    reason = last.get("stop_reason")
    blocks, cut = _without_cut_call(blocks, reason)
    parts = [part for block in blocks for part in _read_block(block, family, sent.names, _ANSWER_READERS)]
    calls = number_calls((part for part in parts if isinstance(part, ToolCall)), sent.call_ids)
    numbered = iter(calls)
    parts = [next(numbered) if isinstance(part, ToolCall) else part for part in parts]
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    refusal = (string_of(last.get("stop_details"), "explanation") or "") if reason == "refusal" else None
    finished, calls, lost = settle(reason, FINISH_REASONS, text=text, calls=calls, refusal=refusal)
    parts = [part for part in parts if not isinstance(part, ToolCall) or part in calls]
    rest: dict[str, Any] = {"refusal": refusal, "finish_reason": finished, "citations": tuple(_citations(blocks))}
    paused = (LMWarning("finish_reason", _WENT_NOT_ON),) if reason in _PAUSED else ()
    warnings = (*cut, *lost, *paused)
    if _is_usual(parts):
        return Choice(text, calls, **rest), warnings
    return Choice.from_parts(parts, **rest), warnings


_WENT_NOT_ON = "The provider paused its turn and nobody went on; what it said so far is not the whole answer."


def _without_cut_call(blocks: list[JsonObject], reason: JsonValue) -> tuple[list[JsonObject], tuple[LMWarning, ...]]:
    """A call at the end of a cut answer may be half a call, though what arrived of it is an object."""
    cut = reason in ("max_tokens", "model_context_window_exceeded")
    if not cut or not blocks or blocks[-1].get("type") != "tool_use":
        return blocks, ()
    name = string_of(blocks[-1], "name")
    return blocks[:-1], (LMWarning("tool_calls", f"The call of {name!r} was cut off by the token limit and left out."),)


def _is_usual(parts: Sequence[Part]) -> bool:
    """Whether text and calls alone, in this order, say it all."""
    calls = parts[1:] if parts and isinstance(parts[0], TextPart) else parts
    return all(isinstance(part, ToolCall) for part in calls)


def _citations(blocks: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """What each text stands on, flat: where it is in the answer, and what the source says."""
    start = 0
    for block in blocks:
        if block.get("type") != "text":
            continue
        end = start + len(string_of(block, "text") or "")
        for citation in objects_of(block.get("citations")):
            yield _flat_citation(citation, start, end)
        start = end


_CITED: Mapping[str, str] = {"cited_text": "text", "document_title": "title", "source": "url"}


def _flat_citation(citation: JsonObject, start: int, end: int) -> JsonObject:
    told = {
        _CITED.get(name, name): value
        for name, value in citation.items()
        if value is not None and name != "encrypted_index"  # goes back with its block; nobody else can read it
    }
    return {**told, "start_index": start, "end_index": end}


def _decode_usage(body: JsonObject) -> Usage:
    """What was read is the sum of three counts: fresh, from the cache, into the cache."""
    usage = usage_of(body.get("usage"), USAGE)
    counts = (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens)
    known = [count for count in counts if count is not None]
    return replace(usage, input_tokens=sum(known)) if known else usage


def _blocks(content: JsonValue) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(objects_of(content))


# --- blocks in, of replies and of requests


def _read_block(block: JsonObject, family: str, names: NameMap, readers: _Readers) -> tuple[Part, ...]:
    """The parts of a block: one of ours with its further fields behind it, or the block as it came."""
    reader, known = readers.get(string_of(block, "type") or "", _AS_IT_CAME)
    part = reader(block, family, names)
    if part is None:
        return (OpaquePart(family, block),)
    if isinstance(part, TextPart) and not part.text:
        return ()
    further: JsonObject = {name: value for name, value in block.items() if name not in known and value}
    return (part, OpaquePart(family, further)) if further and not isinstance(part, ToolCall) else (part,)


def _read_text(block: JsonObject, family: str, names: NameMap) -> Part | None:
    return TextPart(string_of(block, "text") or "")


def _read_thinking(block: JsonObject, family: str, names: NameMap) -> Part | None:
    signature = block.get("signature")
    signed = signature if isinstance(signature, str) else None
    return ThinkingPart(string_of(block, "thinking") or "", signature=signed, provider=family)


def _read_redacted(block: JsonObject, family: str, names: NameMap) -> Part | None:
    return ThinkingPart(redacted=string_of(block, "data") or "", provider=family)


_CALL_FIELDS = frozenset({"type", "id", "name", "input"})


def _read_call(block: JsonObject, family: str, names: NameMap) -> Part | None:
    further: JsonObject = {name: block[name] for name in block if name not in _CALL_FIELDS and block[name] is not None}
    return ToolCall.read(
        string_of(block, "id") or "",
        names.decode(string_of(block, "name") or ""),
        block.get("input"),
        provider_data={family: further} if further else None,
    )


def _read_image(block: JsonObject, family: str, names: NameMap) -> Part | None:
    source = block.get("source")
    match string_of(source, "type"):
        case "url":
            return ImagePart(url=string_of(source, "url"))
        case "base64":
            return ImagePart(data=string_of(source, "data"), media_type=string_of(source, "media_type"))
        case _:
            return None


def _read_document(block: JsonObject, family: str, names: NameMap) -> Part | None:
    source, title = block.get("source"), string_of(block, "title")
    match string_of(source, "type"):
        case "url":
            return FilePart(url=string_of(source, "url"), filename=title)
        case "file":
            return FilePart(file_id=string_of(source, "file_id"), filename=title)
        case "base64":
            return FilePart(string_of(source, "data"), filename=title, media_type=string_of(source, "media_type"))
        case "text":
            data = base64.b64encode((string_of(source, "data") or "").encode("utf-8", "replace")).decode()
            return FilePart(data, filename=title, media_type="text/plain")
        case _:
            return None


_Reader: TypeAlias = Callable[[JsonObject, str, NameMap], Part | None]
_Readers: TypeAlias = Mapping[str, tuple[_Reader, frozenset[str]]]
"""By the block's type: its reader, and the fields that the reader knows."""

_AS_IT_CAME: tuple[_Reader, frozenset[str]] = (lambda block, family, names: None, frozenset())
_ANSWER_READERS: _Readers = {
    "text": (_read_text, frozenset({"type", "text"})),
    "thinking": (_read_thinking, frozenset({"type", "thinking", "signature"})),
    "redacted_thinking": (_read_redacted, frozenset({"type", "data"})),
    "tool_use": (_read_call, _CALL_FIELDS),
}
_ASKING_READERS: _Readers = {
    "text": (_read_text, frozenset({"type", "text"})),
    "image": (_read_image, frozenset({"type", "source"})),
    "document": (_read_document, frozenset({"type", "source", "title"})),
}


# --- resume ------------------------------------------------------------------------------------------------


def resume(body: JsonValue, sent: Encoded) -> Encoded | None:
    """The request that goes on with a turn the provider paused; ``None`` where the turn is over.

    What was said so far goes back unchanged, with the same tools, and in the same container if there is one. Send it,
    ask again, and give decode() the list of all bodies.

    >>> sent = encode(Request((Message.user("q"),)), Target("anthropic", "m", ANTHROPIC))
    >>> paused = {"content": [{"type": "text", "text": "Well"}], "stop_reason": "pause_turn"}
    >>> resume(paused, sent).body["messages"][1]
    {'role': 'assistant', 'content': [{'type': 'text', 'text': 'Well'}]}
    >>> resume({**paused, "stop_reason": "end_turn"}, sent)
    """
    if not isinstance(body, dict) or body.get("stop_reason") not in _PAUSED:
        return None
    messages, said = list(objects_of(sent.body.get("messages"))), _blocks(body.get("content"))
    if messages and messages[-1].get("role") == "assistant":
        said = [*_blocks(messages.pop().get("content")), *said]
    if said:
        messages.append({"role": "assistant", "content": cast(JsonValue, said)})
    return replace(sent, body={**sent.body, "messages": cast(JsonValue, messages), **_same_container(body, sent)})


def _same_container(body: JsonObject, sent: Encoded) -> JsonObject:
    container, asked = string_of(body.get("container"), "id"), sent.body.get("container")
    if container is None:
        return {}
    return {"container": {**asked, "id": container} if isinstance(asked, dict) else container}


# --- decode_error ------------------------------------------------------------------------------------------


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes | str, target: Target[MessagesDialect]
) -> LMError:
    """The error of a reply that is no success.

    >>> body = '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r1"}'
    >>> error = decode_error(529, {}, body, Target("anthropic", "m", ANTHROPIC))
    >>> type(error).__name__, error.provider_code, error.request_id, error.retryable
    ('LMServerError', 'overloaded_error', 'r1', True)
    """
    return lm_error(_fault(status, headers, read_body(body)), ERRORS, target)


def _fault(status: int, headers: Mapping[str, str], body: JsonValue) -> Fault:
    """What the body says, its ``details.error_code`` among the codes."""
    fault = read_fault(status, headers, body)
    error = body.get("error") if isinstance(body, dict) else None
    code = string_of(error.get("details"), "error_code") if isinstance(error, dict) else None
    return fault if code is None else replace(fault, codes=(*fault.codes, code.lower()))


# --- read_request ------------------------------------------------------------------------------------------

_KNOWN = frozenset({"model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream"})


def read_request(body: JsonObject, dialect: MessagesDialect | None = None) -> Request:
    """The request that this body is the encoding of. What is not modelled stays in opaque parts and ``extra_body``."""
    dialect = dialect or ANTHROPIC
    rest: JsonObject = {name: value for name, value in body.items() if name not in _KNOWN and value is not None}
    choice, parallel = _read_choice(body.get("tool_choice"))
    if choice is None and body.get("tool_choice") is not None:
        rest["tool_choice"] = body["tool_choice"]
    wanted, rest = _read_format(rest)
    system = _blocks(body.get("system"))
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
        options["cache"] = cache
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
    return {"ttl": mark["ttl"]} if mark.get("ttl") is not None else True


def _read_reasoning(rest: JsonObject) -> tuple[JsonValue, JsonObject]:
    """The word or the budget that was asked for, and the fields that say more than that."""
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
        return effort, _without(rest, {"thinking": ("type",), "output_config": ("effort",)})
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


def _read_tool(wire: JsonObject, dialect: MessagesDialect) -> JsonObject:
    if "input_schema" not in wire:
        return _read_builtin({name: value for name, value in wire.items() if value is not None}, dialect)
    function: JsonObject = {"name": wire.get("name")}
    if wire.get("description"):
        function["description"] = wire["description"]
    function["parameters"] = wire["input_schema"]
    further = {name: value for name, value in wire.items() if name not in ("name", "description", "input_schema")}
    return {"type": "function", "function": function, **({dialect.family: further} if further else {})}


def _read_builtin(wire: JsonObject, dialect: MessagesDialect) -> JsonObject:
    kind = string_of(wire, "type") or ""
    settings: JsonObject = {name: value for name, value in wire.items() if name != "type"}
    if kind != dialect.web_search or wire.keys() - _SEARCH_FIELDS:
        return {"type": kind, kind: settings}
    del settings["name"]
    if isinstance(place := settings.get("user_location"), dict):
        settings["user_location"] = {name: value for name, value in place.items() if name != "type"}
    return {"type": "web_search", "web_search": settings}


_ROLES: Mapping[str, Role] = {"system": "system", "assistant": "assistant"}


def _read_messages(wires: Iterable[JsonObject], dialect: MessagesDialect) -> Iterator[Message]:
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
        role, blocks = _ROLES.get(string_of(wire, "role") or "", "user"), _blocks(wire.get("content"))
        if joined and joined[-1][0] == role:
            joined[-1][1].extend(blocks)
        else:
            joined.append((role, blocks))
    return joined


def _read_parts(blocks: Iterable[JsonObject], role: Role, dialect: MessagesDialect) -> tuple[Part, ...]:
    parts = [part for block in blocks for part in _read_exactly(block, role, dialect)]
    numbered = iter(number_calls(part for part in parts if isinstance(part, ToolCall)))
    return tuple(next(numbered) if isinstance(part, ToolCall) else part for part in parts)


def _read_exactly(block: JsonObject, role: Role, dialect: MessagesDialect) -> tuple[Part, ...]:
    """The parts of a block; one that would not be written the same again is kept as it is."""
    readers = _ANSWER_READERS if role == "assistant" else _ASKING_READERS
    parts = _read_block(block, dialect.family, _NO_NAMES, readers)
    bare = {name: value for name, value in block.items() if value is not None}
    try:
        written = _encode_blocks(Message(role, _kept(parts, dialect)), _NO_NAMES, Target("", "", dialect))
    except CallerError:
        written = []
    return parts if written == [bare] else (OpaquePart(dialect.family, block),)


def _read_result(block: JsonObject, names: Mapping[str, str], dialect: MessagesDialect) -> ToolResult:
    call_id, content, failed = (
        string_of(block, "tool_use_id") or "",
        block.get("content"),
        block.get("is_error") is True,
    )
    name = names.get(call_id, "")
    if isinstance(content, str) or _is_native(content):
        return ToolResult(call_id, name, content, failed)
    match [_result_part(inner, dialect) for inner in objects_of(content)]:
        case [TextPart(text), *media]:
            return ToolResult(call_id, name, text, failed, tuple(media))
        case media:
            return ToolResult(call_id, name, "", failed, tuple(media))


def _result_part(block: JsonObject, dialect: MessagesDialect) -> MediaPart:
    """A part of a result; what is none of ours is kept as its JSON text."""
    parts = _read_exactly(block, "user", dialect)
    if len(parts) == 1 and isinstance(parts[0], TextPart | ImagePart | FilePart):
        return parts[0]
    return TextPart(dumps(block))
