"""The first and the last step of every encoder: what a request brings, and the request to send.

prepare(request, target)      the history, the tool names and the tools in the form of the wire
assemble(ready, path, ...)    the encoded request: ``extra_body`` and ``extra_headers`` are merged last
requested_choices(request)    the option ``n``, which wires with one choice at a time repeat
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.core.tools.names import NameMap
from sigwire.errors import InputError
from sigwire.lm.codecs.shared.history import NormalizedHistory, normalize_history
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target, WireProfile
from sigwire.lm.codecs.shared.options import merge_objects, require_feature
from sigwire.lm.codecs.shared.tools import OfferedTools, name_map, offered_tools
from sigwire.lm.codecs.shared.untrusted import object_of

__all__ = [
    "PreparedRequest", "assemble", "headers_for", "merge_extra_body", "prepare", "repeat_warning", "requested_choices",
]  # fmt: skip


class PreparedRequest(NamedTuple):
    """A request and its target, with the history and the tools that the wire accepts; ``names`` maps tool names."""

    request: Request
    target: Target[WireProfile]
    history: NormalizedHistory
    names: NameMap
    tools: OfferedTools


def prepare(request: Request, target: Target[WireProfile]) -> PreparedRequest:
    """Return the request with history and tools in the form of the wire.

    Raises ``InputError`` for a part that its turn cannot hold and for a choice of a tool that is not offered.
    """
    history = normalize_history(request.messages, target.history_rules, request.options)
    if history.messages and history.messages[-1].role == "assistant":
        history = history._replace(messages=_with_prefill(history.messages, target))
    names = name_map(request.tools, history.call_names, target.profile.names)
    return PreparedRequest(request, target, history, names, offered_tools(request, names, target))


_NO_QUERY: Mapping[str, str] = {}


def _with_prefill(messages: tuple[Message, ...], target: Target[WireProfile]) -> tuple[Message, ...]:
    """Return a history that ends with an answer to continue in the form of the model. A paused turn ends with an item."""
    last = messages[-1].parts[-1]
    if not isinstance(last, TextPart | ThinkingPart):
        return messages
    require_feature(target.facts.prefill, "an answer to continue", target, _END_WITH_USER)
    is_trimmed = target.facts.trims_prefill or target.profile.trims_prefill
    if not is_trimmed or not isinstance(last, TextPart) or last.text == (text := last.text.rstrip()):
        return messages
    return (*messages[:-1], Message("assistant", (*messages[-1].parts[:-1], TextPart(text))))


_END_WITH_USER = "The conversation ends with the assistant's turn: end it with a user turn that asks to continue."


def assemble(
    ready: PreparedRequest,
    path: str,
    body: JsonObject,
    warnings: Iterable[LMWarning],
    *,
    query: Mapping[str, str] = _NO_QUERY,
    repeats: bool = True,
    stop: tuple[str, ...] = (),
) -> EncodedRequest:
    """Return the request to send. ``repeats``: whether the wire returns one choice at a time, so that ``n`` repeats it."""
    request, target = ready.request, ready.target
    return EncodedRequest(
        path,
        merge_extra_body(body, request) if request.options else body,
        query,
        headers_for(request, target.profile) if request.options else dict(target.profile.headers),
        (*warnings, *(repeat_warning(request, target) if repeats else ())),
        ready.names,
        ready.history.call_ids,
        requested_choices(request) if repeats else 1,
        stop,
    )


def merge_extra_body(body: JsonObject, request: Request) -> JsonObject:
    """Merge the caller's ``extra_body`` last, so that it can override any member. Its tools are added to those of the request.

    A tool with the name of another (or with its type, if it has no name) replaces that one.
    Raises ``InputError`` if it is no object, or sets a ``stream`` other than the one by which the reply is decoded.
    """
    extra = request.options.get("extra_body")
    if extra is None:
        return body
    if not isinstance(extra, dict):
        raise InputError(f"extra_body must be an object that is merged into the request, not {extra!r:.80}.")
    if (stream := extra.get("stream")) is not None and stream != body.get("stream", False):
        raise InputError(
            f"extra_body sets stream={stream!r}, but the reply will be read in the other form (encoding the request). "
            "Leave it out: stream() and astream() request a streamed reply, every other call a whole one."
        )
    tools, more = body.get("tools"), extra.get("tools")
    if isinstance(tools, list) and isinstance(more, list):
        extra = {**extra, "tools": _join_tools(tools, more)}
    return merge_objects(body, extra)


def _join_tools(tools: Sequence[JsonValue], more: Sequence[JsonValue]) -> list[JsonValue]:
    joined = list(tools)
    for tool in more:
        place = next((n for n, have in enumerate(joined) if _tool_key(have) == _tool_key(tool)), len(joined))
        former = object_of(joined[place]) if place < len(joined) else {}
        have, wanted = former.get(_DECLARATIONS), object_of(tool).get(_DECLARATIONS)
        if isinstance(have, list) and isinstance(wanted, list):
            wanted = _join_tools(have, wanted)
            joined[place] = {_DECLARATIONS: wanted}
        else:
            joined[place : place + 1] = [tool]
    return joined


_DECLARATIONS = "functionDeclarations"  # Gemini has a list of functions in one tool


def _tool_key(tool: JsonValue) -> object:
    fields = object_of(tool)
    named = {**fields, **object_of(fields.get("function"))}
    return next(
        (named[key] for key in ("name", "server_label", "mcp_server_name", "type") if key in named), fields.keys()
    )


def headers_for(request: Request, profile: WireProfile) -> dict[str, str]:
    """Return the fixed headers of the profile with the caller's ``extra_headers`` over them."""
    extra = request.options.get("extra_headers")
    if extra is None:
        return dict(profile.headers)
    if not isinstance(extra, dict):
        raise InputError(f"extra_headers must be an object of header names and values, not {extra!r:.80}.")
    return {**profile.headers, **{name: str(value) for name, value in extra.items()}}


def requested_choices(request: Request) -> int:
    """Return the number of choices that the option ``n`` requests.

    >>> requested_choices(Request(options={"n": 3})), requested_choices(Request())
    (3, 1)
    """
    n = request.options.get("n")
    return n if isinstance(n, int) and n > 1 else 1


def repeat_warning(request: Request, target: Target[WireProfile]) -> tuple[LMWarning, ...]:
    """Return the warning that the request is sent ``n`` times, on a wire with one choice at a time."""
    n = requested_choices(request)
    if n == 1:
        return ()
    return (LMWarning("n", f"{target.provider} returns one choice at a time; the request is sent {n} times."),)
