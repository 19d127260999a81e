"""LiteLLM as the way to every provider without a row of its own: Request -> ``litellm.completion`` -> Response.

LiteLLM takes and gives OpenAI's chat completions as Python values, so the codec ``openai_chat`` does the work; what differs is
here, in this order:

    connect(name, connection)           the backend of one model; looks whether the package is there and which release
    dialect_for(model, parameters)      what LiteLLM says the model takes, as a dialect: the rest is dropped or refused early
    encode_call(request, target)        keyword arguments of a call
    decode_answer(body, sent, target)   what came back, with the items that the upstream provider wants to see again
    failure(error, target)              its exceptions as ours, by a table

LiteLLM is an extra, and is imported by the first request: that takes seconds. It is asked to fetch no price table, to send
nothing home, to try once (trying again is the client's), and to run no tool: its own gateway for tool servers is left out.
Releases that were tampered with are refused before they are imported.

What the upstream leaves on a turn (thinking blocks, thought signatures) belongs to the family ``litellm/<prefix>``: it goes
back to the same upstream only.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
import re
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from sigwire.core.capabilities import Capabilities
from sigwire.core.events import events_of
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Part
from sigwire.core.parts import ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.effects.emitting import Emit
from sigwire.effects.gather import Gather
from sigwire.effects.loops import to_thread
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import (
    ConfigurationError,
    ContextWindowExceededError,
    LMAuthenticationError,
    LMBillingError,
    LMContentFilteredError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnsupportedModelError,
)
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.partial_calls import PartialCall
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile, ReasoningNames
from sigwire.lm.codecs.openai_chat.stream_decoder import ChatDecoder
from sigwire.lm.codecs.shared.choices import join_responses, usage_of
from sigwire.lm.codecs.shared.errors import CONTEXT_TEXTS, ErrorRule, lm_error, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, ModelFacts, Target
from sigwire.lm.codecs.shared.media import split_data_url
from sigwire.lm.codecs.shared.options import Drop, Option, Place, require_feature
from sigwire.lm.codecs.shared.tools import provider_data
from sigwire.lm.litellm.effects import CompletionEffect, LiteLLMStream, emit_stream, to_json_value
from sigwire.lm.secrets import redact_key

if TYPE_CHECKING:
    from sigwire.lm.providers.connection import ConnectionOptions

__all__ = [
    "ERRORS",
    "LITELLM",
    "REFUSED_RELEASES",
    "LiteLLM",
    "LiteLLMDecoder",
    "LiteLLMProfile",
    "check_release",
    "connect",
    "decode_answer",
    "dialect_for",
    "encode_call",
    "failure",
]


# --- tables ------------------------------------------------------------------------------------------------

REFUSED_RELEASES = frozenset({"1.82.7", "1.82.8"})
"""Releases that stole credentials (24 March 2026); 1.82.8 did so at the start of every Python beside it."""

_EFFORTS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
_THINKING = "thinking.budget_tokens"


@dataclass(frozen=True, kw_only=True)
class LiteLLMProfile(ChatProfile):
    """How LiteLLM speaks for an upstream. ``parallel_choice``: whether calls can be kept to one at a time.

    ``web_search``: whether there is a built-in one.
    """

    family: str = "litellm"
    # LiteLLM's own ``metadata`` is for its callbacks; the provider never sees it.
    options: Mapping[str, Option | None] = field(
        default_factory=lambda: {"max_tokens": Place("max_tokens"), "top_k": Place("top_k"), "metadata": None}
    )
    allowed_tools: bool = False
    text_lists: bool = False
    reasoning: ReasoningNames = ReasoningNames(efforts=_EFFORTS, budget=_THINKING)
    broken_arguments: bool = False
    cache_key: bool = False
    cache_mark: str = "cache_control"
    parallel_choice: bool = True
    web_search: bool = True


LITELLM = LiteLLMProfile()

_ROWS: Mapping[str, LiteLLMProfile] = {
    # It flattens content to text for this host: an image would be lost without a word.
    "deepseek": replace(LITELLM, media=frozenset[str](), replay="reasoning_content"),
    # It drops a forced choice without a word.
    "ollama": replace(LITELLM, forced_choice=False, media=frozenset({"image"})),
    "ollama_chat": replace(LITELLM, forced_choice=False, media=frozenset({"image"})),
}
"""Upstreams that differ from ``LITELLM``, by the prefix of LiteLLM's model string."""

_CACHE_MARKED = frozenset({"anthropic", "bedrock"})
"""Upstreams that cache what stands before a mark."""

_SIGNED_TEXT = frozenset({"gemini", "vertex_ai"})
"""Upstreams that sign texts too, and want the signatures back."""

_DROPPED: Mapping[str, str] = {
    "frequency_penalty": "is not taken by this model; it was left out.",
    "presence_penalty": "is not taken by this model; it was left out.",
    "seed": "is not taken by this model; it was left out.",
    "stop": "is not taken by this model; it was left out.",
    "temperature": "is not taken by this model; it was left out.",
    "top_p": "is not taken by this model; it was left out.",
}
"""Options that an answer can do without where LiteLLM knows that the model has no place for them."""

_REFUSED = ("logprobs", "service_tier", "top_logprobs")

USAGE: Mapping[str, str | tuple[str, ...]] = {
    **openai_chat.USAGE,
    "cached_tokens": ("prompt_tokens_details.cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens"),
    "cache_write_tokens": (
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_creation_tokens",
        "cache_creation_input_tokens",
    ),
}


def _is(*classes: str) -> frozenset[str]:
    return frozenset(name.lower() for name in classes)


_NO_KEY_TEXTS = ("missing credentials", "api_key client option must be set")
_QUOTA_TEXTS = ("insufficient_quota", "exceeded your current quota", "check your plan and billing")
_UNREACHABLE = ("connection error", "connection refused", "cannot connect", "name or service not known")
_BALANCE_HINT = "Check the account's balance and limits; trying again does not help."
_REACH_HINT = "Check that the server runs and can be reached from here; base_url names another one."
_KEY_HINT = "Check the API key: LiteLLM reads the provider's usual environment variable, or pass api_key=..."

ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(
        LMBillingError,
        codes=_is("PaymentRequiredError", "BudgetExceededError") | {"insufficient_quota"},
        hint=_BALANCE_HINT,
    ),
    ErrorRule(LMBillingError, codes=_is("RateLimitError"), texts=_QUOTA_TEXTS, hint=_BALANCE_HINT),
    ErrorRule(
        ContextWindowExceededError,
        codes=_is("ContextWindowExceededError") | {"context_length_exceeded"},
        hint="Shorten the request or use a model with a larger context.",
    ),
    ErrorRule(ContextWindowExceededError, codes=_is("BadRequestError"), texts=CONTEXT_TEXTS),
    ErrorRule(
        LMContentFilteredError,
        codes=_is("ContentPolicyViolationError", "RejectedRequestError")
        | {"content_filter", "content_policy_violation"},
        hint="Change what is sent; trying again does not help.",
    ),
    ErrorRule(
        LMInvalidRequestError,
        codes=_is("UnsupportedParamsError"),
        hint="Leave the option out, or pass extra_body={{'drop_params': True}} to have LiteLLM drop it.",
    ),
    ErrorRule(
        LMUnsupportedModelError,
        codes=_is("BadRequestError"),
        texts=("llm provider not provided",),
        hint="Neither sigwire nor LiteLLM knows the provider in {model!r}; check its spelling.",
    ),
    ErrorRule(LMAuthenticationError, codes=_is("AuthenticationError", "PermissionDeniedError"), hint=_KEY_HINT),
    # OpenAI's package refuses to be made without a key, which LiteLLM takes for a failing server.
    ErrorRule(LMAuthenticationError, codes=_is("InternalServerError"), texts=_NO_KEY_TEXTS, hint=_KEY_HINT),
    ErrorRule(
        LMUnsupportedModelError,
        codes=_is("NotFoundError"),
        hint="Check the model's name: it is not served as {model!r} to this key.",
    ),
    ErrorRule(LMTimeoutError, codes=_is("Timeout", "APITimeoutError")),
    ErrorRule(LMRateLimitError, codes=_is("RateLimitError")),
    ErrorRule(LMTransportError, codes=_is("InternalServerError"), texts=_UNREACHABLE, hint=_REACH_HINT),
    ErrorRule(LMServerError, codes=_is("InternalServerError", "ServiceUnavailableError", "BadGatewayError")),
    ErrorRule(LMTransportError, codes=_is("APIConnectionError"), hint=_REACH_HINT),
    ErrorRule(LMInvalidRequestError, codes=_is("BadRequestError", "UnprocessableEntityError")),
    ErrorRule(LMServerError, codes=_is("APIResponseValidationError"), retry=False),
    # Statuses without a class of their own (402, 403, 529) are judged by the status.
    ErrorRule(LMServerError, frozenset({500}), codes=_is("APIError"), retry=False),
)
"""By the exception's class and those it is made from; the first rule that fits counts."""


# --- the backend -------------------------------------------------------------------------------------------


def connect(name: str, connection: ConnectionOptions) -> LiteLLM:
    """The backend for one of LiteLLM's models ("bedrock/..."). Imports nothing and opens nothing.

    Raises ``ConfigurationError`` where LiteLLM is not installed, was tampered with, or would ignore the connection's
    ``transport`` or ``wire``.
    """
    check_release()
    for setting in ("transport", "wire"):
        if getattr(connection, setting) is not None:
            raise ConfigurationError(
                f"litellm/{name} goes through LiteLLM, which has no place for {setting}=... (making an LM). Leave it out, "
                "or use a provider that sigwire speaks to itself."
            )
    return LiteLLM(name, connection)


class LiteLLM:
    """Answers through LiteLLM for one model. Blocking and awaited from one program, each request tried once."""

    def __init__(self, model: str, connection: ConnectionOptions) -> None:
        self._model, self._connection = model, connection
        self._target: Target[LiteLLMProfile] | None = None

    def answer(self, request: Request) -> Response:
        """The answer, blocking. Raises ``CallerError`` before anything is sent, and ``LMError`` where none came."""
        return run(self._steps(request))

    async def aanswer(self, request: Request) -> Response:
        """The answer, awaited."""
        return await arun(self._steps(request))

    def _steps(self, request: Request) -> Steps[Response]:
        litellm, target, whole, sent = yield from self._prepare(request)
        if sent.repeat == 1:
            return (yield from _ask(litellm, whole, sent, target))
        several: list[Response] = yield Gather(
            [_ask(litellm, whole, sent, target) for _ in range(sent.repeat)], limit=_AT_ONCE
        )
        return join_responses(several)

    def _prepare(
        self, request: Request, *, stream: bool = False
    ) -> Steps[tuple[Any, Target[LiteLLMProfile], dict[str, Any], EncodedRequest]]:
        """The package, and what it is called with."""
        litellm = yield _ImportEffect()
        target = self._target = self._target or target_for(self._model, _parameters(litellm, self._model))
        arguments, sent = encode_call(request, target, stream=stream)
        return litellm, target, {**arguments, **self._way(sent)}, sent

    def stream_steps(self, request: Request) -> Steps[Response]:
        """The answer as a program that emits its events as they come; tried once, like ``answer``."""
        litellm, target, arguments, sent = yield from self._prepare(request, stream=True)
        if sent.repeat == 1:
            key = arguments.get("api_key")
            failed = partial(failure, target=target, key=key)
            return (yield from emit_stream(LiteLLMStream(litellm, arguments), LiteLLMDecoder(sent, target), failed))
        response = yield from self._steps(request)
        yield Emit(*events_of(response))
        return response

    def _way(self, sent: EncodedRequest) -> dict[str, Any]:
        """Where to and with which key, as keyword arguments."""
        connection = self._connection
        key = connection.api_key() if callable(connection.api_key) else connection.api_key
        if key is None and connection.base_url is not None:
            key = _NO_KEY  # else the environment's key would go wherever base_url points
        way = {
            "api_key": key,
            "api_base": connection.base_url,
            "timeout": connection.timeout,
            "extra_headers": {**connection.headers, **sent.headers} or None,
        }
        return {name: value for name, value in way.items() if value is not None}


def _parameters(litellm: Any, model: str) -> Collection[str] | None:
    try:
        return cast("Collection[str] | None", litellm.get_supported_openai_params(model))
    except Exception:  # a model that LiteLLM cannot place; the call will say so
        return None


_AT_ONCE = 8
_NO_KEY = "not-given"


def _ask(
    litellm: Any, arguments: dict[str, Any], sent: EncodedRequest, target: Target[LiteLLMProfile]
) -> Steps[Response]:
    try:
        answer = yield CompletionEffect(litellm, arguments)
    except Exception as error:  # whatever LiteLLM and the packages below it raise
        raise failure(error, target, arguments.get("api_key")) from error
    return decode_answer(to_json_value(answer), sent, target)


# --- the package -------------------------------------------------------------------------------------------


def check_release() -> None:
    """Raise ``ConfigurationError`` unless LiteLLM is installed in a release that may be imported. Imports nothing."""
    try:
        release = importlib.metadata.version("litellm")
    except importlib.metadata.PackageNotFoundError:
        raise ConfigurationError(
            "This model goes through LiteLLM, which is not installed (making an LM). "
            'Run pip install "sigwire[litellm]", or use a provider that sigwire speaks to itself.'
        ) from None
    if release in REFUSED_RELEASES:
        raise ConfigurationError(
            f"LiteLLM {release} is installed, a release that was tampered with and steals credentials; it was not imported. "
            "Uninstall it, replace every key and password that this machine could read, and then run "
            'pip install "sigwire[litellm]".'
        )


@dataclass(frozen=True, slots=True)
class _ImportEffect:
    """An effect: LiteLLM, imported on first use, which is long enough to keep an event loop waiting."""

    def run(self) -> Any:
        return _load()

    async def arun(self) -> Any:
        if _load.cache_info().currsize:
            return _load()
        return await to_thread(_load)


_QUIET = "LITELLM_LOCAL_MODEL_COST_MAP"
_loading = threading.Lock()


@functools.cache
def _load() -> Any:
    check_release()
    with _loading:
        before = os.environ.get(_QUIET)
        os.environ[_QUIET] = "True"  # read during the import, which would fetch a price table over the network
        try:
            litellm: Any = importlib.import_module("litellm")
        finally:
            if before is None:
                del os.environ[_QUIET]
            else:
                os.environ[_QUIET] = before
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    return litellm


# --- what a model takes ------------------------------------------------------------------------------------

# What a program asks for is what it knows the model to have: LiteLLM's own lists say what cannot be.
_ABLE = Capabilities(
    native_tools=True, parallel_tool_calls=True, tool_choice=True, json_schema=True, json_object=True,
    tools_with_json_schema=True, reasoning=True, images=True, audio=True, files=True,
)  # fmt: skip


def target_for(model: str, parameters: Collection[str] | None) -> Target[LiteLLMProfile]:
    """The target for LiteLLM's name of a model. ``parameters``: what LiteLLM says it takes, ``None`` if it does not know."""
    upstream = model.partition("/")[0]
    facts = ModelFacts(cache_breakpoints=upstream in _CACHE_MARKED)
    return Target("litellm", model, dialect_for(model, parameters), _ABLE, facts)


def dialect_for(model: str, parameters: Collection[str] | None) -> LiteLLMProfile:
    """The dialect of a model's upstream, without what it does not take.

    >>> dialect_for("mistral/large", ["tools", "temperature"]).many
    False
    """
    upstream = model.partition("/")[0]
    row = replace(_ROWS.get(upstream, LITELLM), family=f"litellm/{upstream}")
    if parameters is None:
        return row
    return replace(
        row,
        options={**row.options, **_missing_options(parameters)},
        forced_choice=row.forced_choice and "tool_choice" in parameters,
        none="word" if "tool_choice" in parameters else "drop",
        structured=row.structured if "response_format" in parameters else (),
        many="n" in parameters,
        reasoning=_reasoning_words(parameters),
        parallel_choice="parallel_tool_calls" in parameters,
        web_search="web_search_options" in parameters,
    )


def _missing_options(parameters: Collection[str]) -> dict[str, Option | None]:
    dropped = {name: Drop(f"{name} {detail}") for name, detail in _DROPPED.items() if name not in parameters}
    return {**dropped, **{name: None for name in _REFUSED if name not in parameters}}


def _reasoning_words(parameters: Collection[str]) -> ReasoningNames:
    able = "reasoning_effort" in parameters
    return ReasoningNames(efforts=_EFFORTS if able else (), budget=_THINKING if "thinking" in parameters else None)


# --- encode ------------------------------------------------------------------------------------------------


def encode_call(
    request: Request, target: Target[LiteLLMProfile], *, stream: bool = False
) -> tuple[dict[str, Any], EncodedRequest]:
    """The keyword arguments of ``litellm.completion``, without address and key, and what was encoded.

    Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.
    """
    request, search, lost = _search_apart(request, target)
    request, serial = _without_parallel(request, target)
    sent = openai_chat.encode(request, target, stream=stream)
    body = {**search, **sent.body}
    if isinstance(thinking := body.get("thinking"), dict):
        body["thinking"] = {"type": "enabled", **thinking}
    if body.get("tool_choice") == "auto" and not target.profile.forced_choice:
        del body["tool_choice"]  # the default, and LiteLLM may know no such argument for the model
    if not target.profile.many:
        body.pop("n", None)
    sent = sent._replace(body=body, warnings=(*sent.warnings, *lost, *serial))
    alone: dict[str, Any] = {"num_retries": 0, "max_retries": 0}
    if body.get("tools"):
        alone["_skip_mcp_handler"] = True  # it would run tools by itself, and needs a package it does not declare
    return {**body, **alone}, sent


def _search_apart(
    request: Request, target: Target[LiteLLMProfile]
) -> tuple[Request, JsonObject, tuple[LMWarning, ...]]:
    """Built-in web search is an argument of its own here, beside the tools."""
    searches = [tool for tool in request.tools if tool.get("type") == "web_search"]
    if not searches:
        return request, {}, ()
    require_feature(target.profile.web_search, "a built-in web search", target, "Use a function tool of your own.")
    settings = searches[0].get("web_search")
    settings = settings if isinstance(settings, dict) else {}
    for limit in ("allowed_domains", "blocked_domains"):
        require_feature(not settings.get(limit), f"{limit} of a web search", target, "Name them in the question.")
    options: JsonObject = {}
    if isinstance(place := settings.get("user_location"), dict):
        near: JsonObject = {name: value for name, value in place.items() if name != "type"}
        options["user_location"] = {"type": "approximate", "approximate": near}
    lost = f"{target.provider}/{target.model} cannot limit how often the web is searched."
    warnings = (LMWarning("max_uses", lost),) if settings.get("max_uses") is not None else ()
    functions = tuple(tool for tool in request.tools if tool.get("type") != "web_search")
    return replace(request, tools=functions), {"web_search_options": options}, warnings


def _without_parallel(request: Request, target: Target[LiteLLMProfile]) -> tuple[Request, tuple[LMWarning, ...]]:
    wanted = request.parallel_tool_calls
    if wanted is None or target.profile.parallel_choice:
        return request, ()
    lost = LMWarning("parallel_tool_calls", f"{target.provider}/{target.model} cannot be kept to one call at a time.")
    return replace(request, parallel_tool_calls=None), () if wanted or not request.tools else (lost,)


# --- decode ------------------------------------------------------------------------------------------------


def decode_answer(body: JsonValue, sent: EncodedRequest, target: Target[LiteLLMProfile]) -> Response:
    """LiteLLM's answer as a response. Raises an ``LMError`` for one that holds no choices."""
    response = openai_chat.decode(body, sent, target)
    usage = body.get("usage") if isinstance(body, dict) else None
    choices = tuple(_completed(choice, target) for choice in response.choices)
    return replace(response, choices=choices, usage=usage_of(usage, USAGE))


class LiteLLMDecoder(ChatDecoder[LiteLLMProfile]):
    """LiteLLM's chunks -> events: OpenAI's, with what LiteLLM adds to them."""

    def _decode(self, body: JsonObject) -> Response:
        return decode_answer(body, self.sent, self.target)

    def _usage_of(self, body: JsonObject) -> Usage:
        return usage_of(body.get("usage"), USAGE)

    def _start_call(self, call: PartialCall) -> tuple[str, str]:
        return self._assign_call_id(call.id.partition(_SIGNED_ID)[0]), self.sent.names.decode(call.name)


def _completed(choice: Choice, target: Target[LiteLLMProfile]) -> Choice:
    """The choice with what LiteLLM adds to OpenAI's shape."""
    family = target.profile.family
    message = choice.raw.get("message") if isinstance(choice.raw, dict) else None
    message = message if isinstance(message, dict) else {}
    came = [_bare(part, family) if isinstance(part, ToolCall) else part for part in choice.message().parts]
    thinking: list[Part] = [part for part in came if isinstance(part, ThinkingPart)]
    rest: list[Part] = [part for part in came if not isinstance(part, ThinkingPart | ToolCall)]
    calls = tuple(part for part in came if isinstance(part, ToolCall))
    parts = (*thinking, *_kept(message, target), *rest, *_images(message), *calls)
    usual = all(isinstance(part, TextPart | ToolCall) for part in parts)
    # LiteLLM calls some failures of the model a plain stop; an answer of nothing is one.
    said = any(not isinstance(part, ThinkingPart | OpaquePart) for part in parts)
    silent = choice.finish_reason == "stop" and choice.refusal is None and not said
    return replace(
        choice,
        tool_calls=calls,
        parts=() if usual else parts,
        finish_reason="error" if silent else choice.finish_reason,
    )


_SIGNED_ID = "__thought__"


def _bare(call: ToolCall, family: str) -> ToolCall:
    """The call without the signature that LiteLLM hides in its id; it is kept where LiteLLM looks first."""
    call_id, mark, signature = call.id.partition(_SIGNED_ID)
    if not mark:
        return call
    data = provider_data(call, family)
    fields = data.get("provider_specific_fields")
    signed: JsonObject = {"thought_signature": signature, **(fields if isinstance(fields, dict) else {})}
    return replace(call, id=call_id, provider_data={family: {**data, "provider_specific_fields": signed}})


def _kept(message: JsonObject, target: Target[LiteLLMProfile]) -> tuple[Part, ...]:
    """What the upstream wants to see again, as fields of the turn."""
    fields: JsonObject = {}
    if blocks := message.get("thinking_blocks"):
        fields["thinking_blocks"] = blocks
    upstream = target.model.partition("/")[0]
    specific = message.get("provider_specific_fields")
    if upstream in _SIGNED_TEXT and isinstance(specific, dict) and specific.get("thought_signatures"):
        fields["provider_specific_fields"] = {"thought_signatures": specific["thought_signatures"]}
    return (OpaquePart(target.profile.family, fields),) if fields else ()


def _images(message: JsonObject) -> list[Part]:
    found = message.get("images")
    images: list[Part] = []
    for item in found if isinstance(found, list) else ():
        image = item.get("image_url") if isinstance(item, dict) else None
        url = image.get("url") if isinstance(image, dict) else None
        if isinstance(url, str):
            media_type, data = split_data_url(url)
            images.append(ImagePart(url=url) if data is None else ImagePart(data=data, media_type=media_type))
    return images


# --- errors ------------------------------------------------------------------------------------------------


def failure(error: Exception, target: Target[LiteLLMProfile], key: str | None = None) -> LMError:
    """LiteLLM's exception as ours, by ``ERRORS``; what fits nothing there by its status. ``key`` is masked."""
    if isinstance(error, TimeoutError):
        return LMTimeoutError("No answer through LiteLLM in time.", provider=target.provider, model=target.model)
    status: object = getattr(error, "status_code", None)
    body: JsonValue = getattr(error, "body", None)
    fault = read_error_body(
        status if isinstance(status, int) else None, _headers(error), body if isinstance(body, dict) else {}
    )
    classes = [cls.__name__ for cls in type(error).__mro__ if cls.__module__.partition(".")[0] in ("litellm", "openai")]
    said = _PREFIXES.sub("", str(error)) if classes else f"LiteLLM failed with {type(error).__name__}: {error}"
    said = redact_key(said, key)
    codes = tuple(dict.fromkeys((*fault.codes, *(name.lower() for name in classes))))
    result = lm_error(replace(fault, message=said.strip() or fault.message, codes=codes), ERRORS, target)
    result.provider_code = fault.codes[0] if fault.codes else None
    if key == _NO_KEY and isinstance(result, LMAuthenticationError):
        result.message = f"{result.message} {_WITHHELD}"
        result.args = (result.message,)
    return result


# "litellm.RateLimitError: RateLimitError: OpenAIException - slow down" says "slow down", by OpenAI.
_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: Error)?: )+")
_WITHHELD = (
    "A key in the environment was not sent, as base_url may point at somebody else: pass api_key=... for that host."
)


def _headers(error: Exception) -> Mapping[str, str]:
    """Of the provider's reply, where LiteLLM kept it."""
    kept = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", None
    )
    return {str(name): str(value) for name, value in dict(kept or {}).items()}
