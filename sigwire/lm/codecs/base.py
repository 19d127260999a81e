"""What all wire codecs share: the shapes that go in and out, and the table-driven steps that every wire repeats.

A codec is a module of pure functions (it satisfies ``Codec``): no socket, clock, environment or logging, and its
input is never changed. The shapes, from the outside in:

    Dialect      how one host speaks the wire, as data; subclassed per wire, its defaults are the wire's own provider
    ModelFacts   what one model takes and refuses (sampling, efforts, forced calls ...), as data
    Target       provider + model + dialect + capabilities + facts: everything encode() may decide by
    Encoded      the request to send; also handed to decode(), which needs the tool names and call ids that were sent
    Codec        encode, decode, decode_error, read_request; ``StreamingCodec`` adds decoder() -> ``Decoder``

The steps, in the order in which encode() takes them (each is optional, all are pure):

    repair.repair(messages, rules)             history made fit for the wire: ids, order, answers, foreign thinking
    name_map(request, rules)                   tool names both ways
    offer(request, target)                     the tools that may be sent, compiled, and what the choice means
    place_options(options, table, target)      sampling and limits: placed, dropped with a warning, or refused
    asked_reasoning / fit_effort               the option ``reasoning`` in the model's own words
    finish(body, request)                      extra_body merged last

Where a provider's own data stands on canonical values: ``ThinkingPart.provider`` and ``OpaquePart.provider`` are the
dialect's ``family``; ``ToolCall.provider_data`` is ``{family: data}`` (``provider_data()`` reads it). repair() drops
what other families left, so that an encoder only ever sees its own.

decode() uses ``settle`` (finish reason against content) and ``usage_of`` (counts by path); errors are in ``faults``.
A choice's ``logprobs`` have OpenAI's shape ({"content": [{"token", "logprob", "top_logprobs"}]}); its ``citations``
are flat objects with ``type`` and, where known, ``url``, ``title``, ``start_index``, ``end_index`` and ``text``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Protocol, TypeAlias, cast

from typing_extensions import TypeVar

from sigwire.core.capabilities import Capabilities
from sigwire.core.events import StreamEvent
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import FilePart
from sigwire.core.names import NameMap, NameRules
from sigwire.core.request import Request, ToolChoice
from sigwire.core.response import FinishReason, LMWarning, Response, Usage
from sigwire.core.tools import ToolCall
from sigwire.errors import InputError, LMError, UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.repair import RepairRules
from sigwire.lm.codecs.schema_rules import AS_IS, SchemaRules, compile_schema

__all__ = [
    "BUDGETS",
    "EFFORTS",
    "Codec",
    "Decoder",
    "Dialect",
    "Drop",
    "Encoded",
    "ModelFacts",
    "Offer",
    "Option",
    "OptionTable",
    "Place",
    "Reasoning",
    "Skip",
    "StreamingCodec",
    "Target",
    "asked_reasoning",
    "budget_for",
    "drop_options",
    "effort_for_budget",
    "finish",
    "fit_effort",
    "headers_for",
    "is_invented",
    "merge",
    "name_map",
    "offer",
    "place_options",
    "provider_data",
    "put",
    "settle",
    "supports",
    "text_of_file",
    "usage_of",
]


# --- shapes --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How one host speaks a wire. Subclass it per wire; a compatible host is an instance with other values.

    ``family``: who made, and alone understands, opaque items and signatures. ``path``: appended to the host's base URL,
    ``{model}`` is filled in. ``headers``: fixed ones, never a key. ``names``: the tool names the host takes.
    ``repair``: how history must look. ``tool_schema`` / ``output_schema``: which JSON Schema the host takes, by place.
    """

    family: str
    path: str
    names: NameRules
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    repair: RepairRules = RepairRules()
    tool_schema: SchemaRules = AS_IS
    output_schema: SchemaRules = AS_IS

    def __post_init__(self) -> None:
        # One truth: a row that changes its family must not go on replaying the items of its base.
        object.__setattr__(self, "repair", replace(self.repair, family=self.family))


D = TypeVar("D", bound=Dialect, covariant=True, default=Dialect)
D_contra = TypeVar("D_contra", bound=Dialect, contravariant=True, default=Dialect)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What one model takes, beside its capabilities. The defaults describe a model that refuses nothing.

    ``sampling``: whether temperature and the like are taken; "unless_reasoning" where only with thinking switched
    off. ``stop``: whether stop sequences are taken. ``efforts``: the reasoning words the model takes, weakest first,
    "off" among them when it can be switched off; ``None`` leaves it to the dialect. ``default_effort``: what it does
    unasked (``None``: no reasoning). ``thinking``: how reasoning is asked for: by effort, by token budget, or not at
    all ("none"). ``budgets``: least and greatest thinking budget. ``forced_choice``: whether tool_choice may force a
    call, ever / with reasoning on. ``tools_with_reasoning``: whether tools may be offered with reasoning on.
    ``builtin_with_functions``: whether tools that the provider runs may stand beside functions. ``later_system``:
    whether system turns may stand inside the conversation. ``signed_calls``: whether calls in history need the
    provider's signature. ``media_in_results``: whether tool results may hold images on a wire that has a place for
    them. ``cache_breakpoints``: whether explicit cache marks are taken. ``default_max_tokens``: sent
    where the wire requires a limit and the caller gave none.
    """

    sampling: Literal["always", "unless_reasoning", "never"] = "always"
    stop: bool = True
    efforts: tuple[str, ...] | None = None
    default_effort: str | None = None
    thinking: Literal["effort", "budget", "none"] = "effort"
    budgets: tuple[int, int] = (1024, 32768)
    forced_choice: bool = True
    forced_choice_with_reasoning: bool = True
    tools_with_reasoning: bool = True
    builtin_with_functions: bool = True
    later_system: bool = False
    signed_calls: bool = False
    media_in_results: bool = True
    cache_breakpoints: bool = False
    default_max_tokens: int = 4096


@dataclass(frozen=True, slots=True)
class Target(Generic[D]):
    """Where a request goes: everything an encoder may decide by."""

    provider: str
    model: str
    dialect: D
    capabilities: Capabilities = Capabilities()
    facts: ModelFacts = ModelFacts()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A request in a provider's words, ready for the transport.

    ``headers`` hold no key. ``warnings`` go onto the response (decode() puts them there). ``names`` maps tool names
    both ways. ``call_ids`` are the ids in the conversation: an invented one must not repeat them. ``repeat`` is how
    often the client has to send this for the choices that were asked for, where the wire gives one at a time. ``stop``
    are the stop sequences where the wire has none: decode() cuts the text there.
    """

    path: str
    body: JsonObject
    query: Mapping[str, str]
    headers: Mapping[str, str]
    warnings: tuple[LMWarning, ...]
    names: NameMap
    call_ids: frozenset[str] = frozenset()
    repeat: int = 1
    stop: tuple[str, ...] = ()


class Codec(Protocol[D_contra]):
    """One wire. A module with these functions is one.

    ``encode`` raises ``UnsupportedOption`` or ``UnsupportedFeature`` before anything is sent. ``decode`` takes the
    parsed body of a successful reply and raises an ``LMError`` for a failure inside it. ``decode_error`` gives the
    error for any other status. ``read_request`` reads what ``encode`` writes, for fakes and conformance; what it does
    not model stays in opaque parts and ``extra_body``.
    """

    def encode(self, request: Request, target: Target[D_contra], *, stream: bool = False) -> Encoded: ...

    def decode(self, body: JsonValue, sent: Encoded, target: Target[D_contra]) -> Response: ...

    def decode_error(
        self, status: int, headers: Mapping[str, str], body: bytes | str, target: Target[D_contra]
    ) -> LMError: ...

    def read_request(self, body: JsonObject) -> Request: ...


class Decoder(Protocol):
    """A streamed reply: events of the wire in, stream events out. ``close`` ends it, and fails where it was cut off."""

    def feed(self, event: JsonValue) -> list[StreamEvent]: ...

    def close(self) -> list[StreamEvent]: ...


class StreamingCodec(Codec[D_contra], Protocol[D_contra]):
    """A wire whose replies can be read as they come."""

    def decoder(self, sent: Encoded, target: Target[D_contra]) -> Decoder: ...


# --- options -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """The option goes into the body at ``path`` ("generationConfig.maxOutputTokens"), converted where it has to be."""

    path: str
    convert: Callable[[JsonValue], JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """The wire has no place for the option and can do without: it is left out with a warning that says ``detail``."""

    detail: str


@dataclass(frozen=True, slots=True)
class Skip:
    """The codec encodes the option itself, or it needs nothing here (automatic caching)."""


Option: TypeAlias = Place | Drop | Skip
OptionTable: TypeAlias = Mapping[str, Option]
_COMMON: OptionTable = {"extra_body": Skip(), "extra_headers": Skip()}


def place_options(
    options: Mapping[str, JsonValue], table: OptionTable, target: Target[Dialect]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """The body's part of the options, by the wire's table. An option that is ``None`` was not given.

    Raises ``UnsupportedOption`` for one that the table does not name. A wire's table is a constant; what depends on the
    model is put over it: ``{**OPTIONS, **drop_options(SAMPLING, "...")}``.
    """
    body: JsonObject = {}
    warnings: list[LMWarning] = []
    for name, value in options.items():
        match table.get(name, _COMMON.get(name)):
            case _ if value is None:
                pass
            case None:
                raise UnsupportedOption(provider=target.provider, option=name, known=sorted(table))
            case Place(path, convert):
                put(body, path, convert(value) if convert else value)
            case Drop(detail):
                warnings.append(LMWarning(name, f"{target.provider}/{target.model}: {detail}"))
            case Skip():
                pass
    return body, tuple(warnings)


def drop_options(names: Iterable[str], detail: str) -> OptionTable:
    """A table that drops these options for one reason.

    >>> drop_options(["seed"], "there is no seed; the option was left out.")
    {'seed': Drop(detail='there is no seed; the option was left out.')}
    """
    return dict.fromkeys(names, Drop(detail))


def put(body: JsonObject, path: str, value: JsonValue) -> None:
    """Set ``value`` at a dotted path, making the objects on the way."""
    *parents, last = path.split(".")
    for parent in parents:
        body = cast(JsonObject, body.setdefault(parent, {}))
    body[last] = value


def merge(body: JsonObject, extra: Mapping[str, JsonValue]) -> JsonObject:
    """``extra`` over ``body``: objects are merged, everything else is replaced. Neither is changed.

    >>> merge({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}})
    {'a': {'b': 1, 'd': 3}, 'c': 2}
    """
    merged = dict(body)
    for name, value in extra.items():
        have = merged.get(name)
        merged[name] = merge(have, value) if isinstance(have, dict) and isinstance(value, dict) else value
    return merged


def finish(body: JsonObject, request: Request) -> JsonObject:
    """The caller's ``extra_body`` merged last, so that it can correct anything. ``InputError`` if it is no object."""
    extra = request.options.get("extra_body")
    if extra is None:
        return body
    if not isinstance(extra, dict):
        raise InputError(f"extra_body must be an object that is merged into the request, not {extra!r:.80}.")
    return merge(body, extra)


def headers_for(request: Request, dialect: Dialect) -> dict[str, str]:
    """The dialect's fixed headers and the caller's ``extra_headers``."""
    extra = request.options.get("extra_headers")
    if extra is None:
        return dict(dialect.headers)
    if not isinstance(extra, dict):
        raise InputError(f"extra_headers must be an object of header names and values, not {extra!r:.80}.")
    return {**dialect.headers, **{name: str(value) for name, value in extra.items()}}


def text_of_file(part: FilePart) -> str | None:
    """The text of a text document that came as data, for wires that have no place for documents; ``None`` for others.

    >>> text_of_file(FilePart(data="aGk=", media_type="text/plain", filename="a.txt"))
    'a.txt:\\nhi'
    """
    if part.data is None or not (part.media_type or "").startswith("text/"):
        return None
    try:
        text = base64.b64decode(part.data, validate=True).decode("utf-8", "replace")
    except ValueError:
        return None
    return f"{part.filename}:\n{text}" if part.filename else text


def supports(condition: bool, feature: str, target: Target[Dialect], instead: str) -> None:
    """Refuse a feature before anything is sent: ``supports(False, "audio input", target, "Transcribe it first.")``."""
    if not condition:
        raise UnsupportedFeature(f"{target.provider}/{target.model} has no place for {feature}. {instead}")


# --- tools ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of a request, checked against its choice.

    ``functions`` are (name on the wire, description, compiled parameters or ``None``); ``builtin`` are tools that the
    provider runs, as (kind, settings). ``choice`` is ``None`` where the caller left it open or there is nothing to
    choose; ``allowed`` are the names on the wire that the choice is limited to, empty for all. ``named`` is the one
    that must be called.
    """

    functions: tuple[tuple[str, str, JsonObject | None], ...] = ()
    builtin: tuple[tuple[str, JsonObject], ...] = ()
    choice: Literal["auto", "required", "none"] | None = None
    allowed: tuple[str, ...] = ()
    warnings: tuple[LMWarning, ...] = ()

    @property
    def named(self) -> str | None:
        """The one tool that must be called, by its name on the wire."""
        return self.allowed[0] if self.choice == "required" and len(self.allowed) == 1 else None

    def only_allowed(self) -> tuple[tuple[str, str, JsonObject | None], ...]:
        """The functions without those that the choice leaves out, for wires that cannot say it otherwise."""
        return tuple(tool for tool in self.functions if tool[0] in self.allowed) if self.allowed else self.functions


def offer(request: Request, names: NameMap, target: Target[Dialect]) -> Offer:
    """Read the tools and the choice. Raises ``InputError`` when the choice names a tool that is not offered."""
    functions: list[tuple[str, str, JsonObject | None]] = []
    builtin: list[tuple[str, JsonObject]] = []
    warnings: list[LMWarning] = []
    for tool in request.tools:
        if tool.get("type", "function") != "function":
            kind = str(tool["type"])
            builtin.append((kind, cast(JsonObject, tool.get(kind) or {})))
            continue
        function = cast(JsonObject, tool.get("function") or {})
        name, parameters = str(function.get("name")), function.get("parameters")
        if isinstance(parameters, dict):
            parameters, lost = compile_schema(parameters, target.dialect.tool_schema, f"tool {name!r}")
            warnings.extend(lost)
        else:
            parameters = None
        functions.append((names.encode(name), str(function.get("description") or ""), parameters))
    choice = request.tool_choice or ToolChoice.AUTO
    _check_allowed(choice, request)
    if not functions and not builtin:
        return Offer()
    mode = request.tool_choice.mode if request.tool_choice else None
    allowed = tuple(names.encode(name) for name in choice.allowed)
    return Offer(tuple(functions), tuple(builtin), mode, allowed, tuple(warnings))


def _check_allowed(choice: ToolChoice, request: Request) -> None:
    offered = [name for tool in request.tools if (name := tool_name(tool))]
    for name in choice.allowed:
        if name not in offered:
            raise InputError(
                f"tool_choice allows {name!r}, which the request does not offer. "
                f"Offered: {', '.join(offered) or 'no tools'}."
            )


def tool_name(tool: JsonObject) -> str:
    """The name of an offered function, ``""`` for a built-in tool."""
    function = tool.get("function")
    return str(function.get("name") or "") if isinstance(function, dict) else ""


def name_map(request: Request, rules: NameRules) -> NameMap:
    """Every tool name of the request, of offered tools first and of old calls after, mapped for the wire and back."""
    names = [tool_name(tool) for tool in request.tools]
    for message in request.messages:
        if message.role == "assistant":
            names.extend(call.name for call in message.tool_calls)
        elif message.role != "system":
            names.extend(result.name for result in message.tool_results)
    return NameMap(list(dict.fromkeys(name for name in names if name)), rules)


def provider_data(call: ToolCall, family: str) -> JsonObject:
    """What this family left on the call (``{family: {...}}``), ``{}`` for nothing or another's."""
    data = call.provider_data.get(family) if isinstance(call.provider_data, dict) else None
    return data if isinstance(data, dict) else {}


# --- reasoning -----------------------------------------------------------------------------------------


EFFORTS: tuple[str, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
BUDGETS: Mapping[str, int] = {
    "minimal": 1024, "low": 1024, "medium": 4096, "high": 16384, "xhigh": 24576, "max": 32768,
}  # fmt: skip
"""Thinking tokens that stand for an effort where a model takes only a budget, and the other way round."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the caller asked for: a word of ``EFFORTS`` or a budget in tokens; the other one is ``None``."""

    effort: str | None = None
    budget: int | None = None

    @property
    def off(self) -> bool:
        return self.effort == "off"


def asked_reasoning(request: Request) -> Reasoning | None:
    """The option ``reasoning``; ``None`` leaves it to the model. Raises ``InputError`` for what it cannot be.

    >>> asked_reasoning(Request(options={"reasoning": "high"}))
    Reasoning(effort='high', budget=None)
    """
    asked = request.options.get("reasoning")
    if asked is None:
        return None
    if isinstance(asked, str) and asked in EFFORTS:
        return Reasoning(asked)
    budget = asked.get("budget") if isinstance(asked, dict) and len(asked) == 1 else None
    if isinstance(budget, int) and not isinstance(budget, bool) and budget >= 0:
        return Reasoning(budget=budget) if budget else Reasoning("off")
    raise InputError(f"reasoning must be one of {', '.join(EFFORTS)} or {{'budget': tokens}}, not {asked!r:.80}.")


def fit_effort(asked: Reasoning, efforts: Sequence[str], target: Target[Dialect]) -> tuple[str, tuple[LMWarning, ...]]:
    """The nearest of the efforts that the model takes, the stronger of two as near; a warning when it is another.

    ``efforts`` are words of ``EFFORTS``. "off" is only chosen when it was asked for; where a model cannot be switched
    off its weakest effort is. Raises ``UnsupportedFeature`` where there is no effort to choose.
    """
    wanted = asked.effort or effort_for_budget(asked.budget or 0)
    order = {name: number for number, name in enumerate(EFFORTS)}
    able = [effort for effort in efforts if effort != "off" or asked.off]
    supports(
        bool(able), f"reasoning effort {wanted!r}", target, "Leave the option out or use a model that has efforts."
    )
    chosen = min(able, key=lambda effort: (abs(order[effort] - order[wanted]), -order[effort]))
    if asked.budget is not None:
        return chosen, (
            _note(target, f"takes no budget of {asked.budget} tokens; effort {chosen!r} was asked for instead."),
        )
    if chosen != wanted:
        return chosen, (_note(target, f"does not take {wanted!r}; {chosen!r} was asked for instead."),)
    return chosen, ()


def _note(target: Target[Dialect], detail: str) -> LMWarning:
    return LMWarning("reasoning", f"{target.provider}/{target.model} {detail}")


def effort_for_budget(budget: int) -> str:
    """The effort whose budget is nearest.

    >>> effort_for_budget(2000), effort_for_budget(20000)
    ('low', 'high')
    """
    return min((name for name in BUDGETS if name != "minimal"), key=lambda name: abs(BUDGETS[name] - budget))


def budget_for(asked: Reasoning, target: Target[Dialect]) -> tuple[int, tuple[LMWarning, ...]]:
    """The thinking budget for what was asked, within what the model takes; a warning when a given one was changed."""
    least, greatest = target.facts.budgets
    if asked.budget is None:
        return min(max(BUDGETS[asked.effort or "medium"], least), greatest), ()
    budget = min(max(asked.budget, least), greatest)
    if budget == asked.budget:
        return budget, ()
    return budget, (_note(target, f"takes budgets of {least} to {greatest} tokens; {budget} was asked for instead."),)


# --- replies -------------------------------------------------------------------------------------------


def settle(
    reason: object,
    table: Mapping[str, FinishReason],
    *,
    text: str,
    calls: Sequence[ToolCall],
    refusal: str | None = None,
) -> tuple[FinishReason, tuple[ToolCall, ...], tuple[LMWarning, ...]]:
    """The finish reason that fits the content, the calls that are whole, and a warning for a call that is not.

    A cut answer keeps its reason and loses its last call when that one's arguments do not parse. Otherwise calls mean
    ``tool_calls`` whatever the wire says, a refusal means ``content_filter``, and an unknown reason is ``stop`` with
    text and ``error`` without.

    >>> settle("stop", {"stop": "stop"}, text="", calls=[ToolCall("call_0", "f", {})])[0]
    'tool_calls'
    """
    calls = tuple(calls)
    known = table.get(reason) if isinstance(reason, str) else None
    if known in ("length", "content_filter"):
        if calls and calls[-1].error is not None:
            lost = LMWarning("tool_calls", f"The call of {calls[-1].name!r} was cut off ({known}) and left out.")
            return known, calls[:-1], (lost,)
        return known, calls, ()
    if calls:
        return "tool_calls", calls, ()
    if refusal is not None:
        return "content_filter", calls, ()
    if known == "tool_calls":  # the wire speaks of calls that are not there
        known = "stop" if text else "error"
    return known or ("stop" if text else "error"), calls, ()


def usage_of(data: JsonValue, paths: Mapping[str, str | tuple[str, ...]]) -> Usage:
    """Token counts by dotted path, the first path that holds a number; missing and ``null`` are unknown.

    >>> paths = {"input_tokens": "prompt", "cached_tokens": "details.cached"}
    >>> usage_of({"prompt": 3, "details": {"cached": 1}}, paths) == Usage(input_tokens=3, cached_tokens=1)
    True
    """
    counts: dict[str, Any] = {}
    for name, path in paths.items():
        for candidate in (path,) if isinstance(path, str) else path:
            value = at(data, candidate)
            if isinstance(value, int | float) and not isinstance(value, bool):
                counts[name] = value if name == "cost" else int(value)
                break
    return Usage(**counts)


def at(data: JsonValue, path: str) -> JsonValue:
    """What stands at a dotted path, ``None`` where there is nothing."""
    for step in path.split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(step)
    return data


_INVENTED = re.compile(r"call_\d+")


def is_invented(call_id: str) -> bool:
    """Whether sigwire made this id up because the provider sent none.

    >>> is_invented("call_0"), is_invented("call_x7Kq")
    (True, False)
    """
    return _INVENTED.fullmatch(call_id) is not None
