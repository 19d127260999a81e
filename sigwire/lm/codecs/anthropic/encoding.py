"""Messages: Request -> body: options, structured output, system text and turns; ``blocks`` encodes the parts of a turn."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Role
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.core.tools.names import NameMap
from sigwire.errors import InputError
from sigwire.lm.codecs.anthropic.blocks import NO_NAMES, TEXT, encode_blocks, plain_content
from sigwire.lm.codecs.anthropic.cache_marks import with_cache_marks
from sigwire.lm.codecs.anthropic.profiles import NO_SAMPLING_SINCE, MessagesProfile
from sigwire.lm.codecs.anthropic.tables import OPTIONS, SAMPLING
from sigwire.lm.codecs.anthropic.thinking import encode_reasoning
from sigwire.lm.codecs.anthropic.tools import encode_tools
from sigwire.lm.codecs.shared.assembly import assemble, prepare
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.options import (
    OptionTable,
    drop_options,
    merge_objects,
    place_options,
    require_feature,
    usable_stops,
)
from sigwire.lm.codecs.shared.output import StructuredMode, choose_output
from sigwire.lm.codecs.shared.paths import model_in_path

__all__ = ["encode"]


def encode(request: Request, target: Target[MessagesProfile], *, stream: bool = False) -> EncodedRequest:
    """Return the request for this host. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> from sigwire.lm.codecs.anthropic import ANTHROPIC
    >>> sent = encode(Request((Message.user("q"),)), Target("anthropic", "m", ANTHROPIC))
    >>> sent.path, sent.body
    ('/v1/messages', {'model': 'm', 'max_tokens': 4096, 'messages': [{'role': 'user', 'content': 'q'}]})
    """
    profile, warnings = target.profile, list[LMWarning]()
    ready = prepare(request, target)
    history, names, tools = ready.history, ready.names, ready.tools
    form = choose_output(request.response_format, _STRUCTURED, bool(request.tools), target)
    warnings += (*history.warnings, *tools.warnings, *form.warnings)
    thinking = encode_reasoning(request, history.messages, target, warnings)
    table = _option_table(target)
    options, lost = place_options(request.options, table, target, sampling=SAMPLING, thinks=thinking.on)
    warnings += lost
    system = list(itertools.takewhile(lambda turn: turn.role == "system", history.messages))
    output: JsonObject = {"output_config": {"format": {"type": form.mode, "schema": form.schema}}} if form.mode else {}
    body: JsonObject = {
        **({"anthropic_version": profile.body_version} if profile.body_version else {"model": target.model}),
        "max_tokens": thinking.max_tokens,
        **_encode_system(system, form.instruction, target),
        "messages": cast(JsonValue, _encode_messages(history.messages[len(system) :], names, target)),
        **encode_tools(tools, request, thinking, target, warnings),
        **merge_objects(output, thinking.fields),
        **options,
        **_encode_stop(request, target, warnings),
        **_encode_metadata(request, target),
        **({"stream": True} if stream else {}),
    }
    path = profile.path.format(model=model_in_path(target.model), method="streamRawPredict" if stream else "rawPredict")
    return assemble(ready, path, with_cache_marks(body, request, profile), warnings)


# --- options


def _option_table(target: Target[MessagesProfile]) -> OptionTable:
    if target.profile.version < NO_SAMPLING_SINCE:
        return OPTIONS
    return {**OPTIONS, **drop_options(SAMPLING, "the model takes no sampling options; it was left out.")}


def _encode_stop(request: Request, target: Target[MessagesProfile], warnings: list[LMWarning]) -> JsonObject:
    stop = usable_stops(request.options, target, warnings) if target.facts.stop else None
    return {"stop_sequences": stop if isinstance(stop, list) else [stop]} if stop else {}


def _encode_metadata(request: Request, target: Target[MessagesProfile]) -> JsonObject:
    """Encode the id of the end user, the only metadata that this wire accepts."""
    metadata, user = request.options.get("metadata"), request.options.get("user")
    if metadata is not None and not isinstance(metadata, dict):
        raise InputError(f"metadata must be an object such as {{'user_id': ...}}, not {metadata!r:.80}.")
    facts: JsonObject = dict(metadata or {})
    for name in facts:
        require_feature(name == "user_id", f"metadata {name!r}", target, "It takes user_id only; leave the rest out.")
    if user is not None:
        facts["user_id"] = user
    return {"metadata": facts} if facts else {}


# --- structured output


_STRUCTURED: tuple[StructuredMode, ...] = ("json_schema",)


# --- system


def _encode_system(system: Iterable[Message], instruction: str, target: Target[MessagesProfile]) -> JsonObject:
    """Return one text, or blocks if there are several; the output instruction is last."""
    blocks = [block for turn in system for block in encode_blocks(turn, NO_NAMES, target)]
    if instruction and len(blocks) == 1 and blocks[0].keys() == TEXT:
        return {"system": f"{blocks[0]['text']}\n\n{instruction}"}
    if instruction:
        blocks.append({"type": "text", "text": instruction})
    return {"system": plain_content(blocks)} if blocks else {}


# --- messages

_WIRE_ROLES: Mapping[Role, str] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}


def _encode_messages(turns: Iterable[Message], names: NameMap, target: Target[MessagesProfile]) -> list[JsonObject]:
    """Encode the turns; neighbours of one role on the wire are one message: results, then the user's text."""
    messages: list[tuple[str, list[JsonObject]]] = []
    for turn in turns:
        role, blocks = _WIRE_ROLES[turn.role], encode_blocks(turn, names, target)
        if messages and messages[-1][0] == role:
            messages[-1][1].extend(blocks)
        else:
            messages.append((role, blocks))
    return [{"role": role, "content": plain_content(blocks)} for role, blocks in messages]
