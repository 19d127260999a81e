"""The codec of LiteLLM: Request -> arguments of ``litellm.completion``, its answer -> Response, its exceptions -> errors.

LiteLLM takes and returns OpenAI's chat completions as Python values, so ``openai_chat`` does the work; here is what differs.
Imports no LiteLLM.

Items that an upstream leaves on a turn (thinking blocks, thought signatures) belong to the family ``litellm/<prefix>``: they
go back to the same upstream only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from sigwire.core.capabilities import Capabilities
from sigwire.core.events import StreamEvent
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Part
from sigwire.core.parts import ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import LMAuthenticationError, LMError, LMTimeoutError
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.decoding import decode_usage
from sigwire.lm.codecs.openai_chat.partial_calls import PartialCall
from sigwire.lm.codecs.openai_chat.profiles import ReasoningNames
from sigwire.lm.codecs.openai_chat.stream_decoder import ChatDecoder
from sigwire.lm.codecs.shared.errors import lm_error, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, ModelFacts, Target
from sigwire.lm.codecs.shared.media import split_data_url
from sigwire.lm.codecs.shared.options import Drop, Option, require_feature
from sigwire.lm.codecs.shared.reasoning import EFFORTS
from sigwire.lm.codecs.shared.tools import provider_data, search_settings
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of
from sigwire.lm.http.reply_mask import ReplyMask, mask_of
from sigwire.lm.litellm import tables
from sigwire.lm.litellm.tables import LiteLLMProfile
from sigwire.lm.providers.families import family_facts
from sigwire.lm.secrets import redact

__all__ = [
    "ENCODING_VERSION", "LiteLLMDecoder", "decode_answer", "encode_call", "profile_for", "target_for", "translate_error",
]  # fmt: skip

ENCODING_VERSION = 4  # of the arguments; in the keys of stored answers

# Everything: LiteLLM's list of a model's options decides what is dropped or refused.
_CAPABILITIES = Capabilities(
    native_tools=True,
    parallel_tool_calls=True,
    tool_choice=True,
    json_schema=True,
    json_object=True,
    tools_with_json_schema=True,
    schema_on_demand=True,
    reasoning=True,
    images=True,
    audio=True,
    files=True,
)


def target_for(model: str, parameters: Collection[str] | None) -> Target[LiteLLMProfile]:
    """Return the target for LiteLLM's name of a model. ``parameters``: the options it takes, ``None`` if unknown."""
    upstream = model.partition("/")[0]
    facts = family_facts(model)
    if upstream in tables.MARKS_CACHE and facts == ModelFacts():
        facts = replace(facts, cache_breakpoints=True)
    return Target("litellm", model, profile_for(model, parameters), _CAPABILITIES, facts)


def profile_for(model: str, parameters: Collection[str] | None) -> LiteLLMProfile:
    """Return the profile of a model's upstream, without the options that the model does not take.

    >>> profile_for("mistral/large", ["tools", "temperature"]).many
    False
    """
    upstream = model.partition("/")[0]
    row = replace(tables.PROFILES.get(upstream, tables.LITELLM), family=f"litellm/{upstream}")
    if parameters is None:
        return row
    return replace(
        row,
        options={**row.options, **_missing_options(parameters)},
        forced_choice=row.forced_choice and "tool_choice" in parameters,
        none="word" if "tool_choice" in parameters else "drop",
        structured=row.structured if "response_format" in parameters else (),
        many="n" in parameters,
        reasoning=_reasoning_names(parameters),
        parallel_choice="parallel_tool_calls" in parameters,
        web_search="web_search_options" in parameters,
    )


def _missing_options(parameters: Collection[str]) -> dict[str, Option | None]:
    lost = "{} is not taken by this model; it was left out."
    dropped = {name: Drop(lost.format(name)) for name in tables.DROPPED_OPTIONS if name not in parameters}
    return {**dropped, **{name: None for name in tables.REFUSED_OPTIONS if name not in parameters}}


def _reasoning_names(parameters: Collection[str]) -> ReasoningNames:
    efforts = EFFORTS if "reasoning_effort" in parameters else ()
    return ReasoningNames(efforts=efforts, budget=tables.THINKING_BUDGET if "thinking" in parameters else None)


def encode_call(
    request: Request, target: Target[LiteLLMProfile], *, stream: bool = False
) -> tuple[JsonObject, EncodedRequest]:
    """Return the keyword arguments of ``litellm.completion``, without URL and key, and the encoded request.

    Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.
    """
    request, search, lost = _split_web_search(request, target)
    request, serial = _drop_parallel(request, target)
    sent = openai_chat.encode(request, target, stream=stream)
    body = {**search, **sent.body}
    if isinstance(thinking := body.get("thinking"), dict):
        body["thinking"] = {"type": "enabled", **thinking}
    if body.get("tool_choice") == "auto" and not target.profile.forced_choice:
        del body["tool_choice"]  # the default; LiteLLM refuses the argument for some models
    if not target.profile.many:
        body.pop("n", None)
    sent = sent._replace(body=body, warnings=(*sent.warnings, *lost, *serial))
    settings: JsonObject = {"num_retries": 0, "max_retries": 0}  # retries are a layer of the call
    if body.get("tools"):
        settings["_skip_mcp_handler"] = True  # it runs tools, and needs a package that LiteLLM does not declare
    return {**body, **settings}, sent


def _split_web_search(
    request: Request, target: Target[LiteLLMProfile]
) -> tuple[Request, JsonObject, tuple[LMWarning, ...]]:
    """Split off the built-in web search: LiteLLM takes it as an argument beside the tools."""
    searches = [tool for tool in request.tools if tool.get("type") == "web_search"]
    if not searches:
        return request, {}, ()
    require_feature(target.profile.web_search, "a built-in web search", target, "Use a function tool of your own.")
    settings = search_settings(object_of(searches[0].get("web_search")), tables.SEARCH, target)
    for limit in ("allowed_domains", "blocked_domains"):
        require_feature(limit not in settings, f"{limit} of a web search", target, "Name them in the question.")
    lost = f"{target.provider}/{target.model} cannot limit how often the web is searched."
    warnings = (LMWarning("max_uses", lost),) if "max_uses" in settings else ()
    functions = tuple(tool for tool in request.tools if tool.get("type") != "web_search")
    return replace(request, tools=functions), {"web_search_options": _search_options(settings)}, warnings


def _search_options(settings: JsonObject) -> JsonObject:
    options: JsonObject = {name: settings[name] for name in settings if name == "search_context_size"}
    if isinstance(place := settings.get("user_location"), dict):
        near: JsonObject = {name: value for name, value in place.items() if name != "type"}
        options["user_location"] = {"type": "approximate", "approximate": near}
    return options


def _drop_parallel(request: Request, target: Target[LiteLLMProfile]) -> tuple[Request, tuple[LMWarning, ...]]:
    wanted = request.parallel_tool_calls
    if wanted is None or target.profile.parallel_choice:
        return request, ()
    lost = LMWarning(
        "parallel_tool_calls", f"{target.provider}/{target.model} cannot be limited to one call at a time."
    )
    return replace(request, parallel_tool_calls=None), () if wanted or not request.tools else (lost,)


def decode_answer(body: JsonValue, sent: EncodedRequest, target: Target[LiteLLMProfile]) -> Response:
    """Return LiteLLM's answer as a response. Raises an ``LMError`` for an answer without choices."""
    response = openai_chat.decode(body, sent, target, tables.USAGE)
    choices = tuple(_complete_choice(choice, target) for choice in response.choices)
    return replace(response, choices=choices)


class LiteLLMDecoder(ChatDecoder[LiteLLMProfile]):
    """LiteLLM's chunks -> events: OpenAI's, with LiteLLM's additions, and without the secrets that ``mask`` knows."""

    def __init__(self, sent: EncodedRequest, target: Target[LiteLLMProfile], mask: ReplyMask | None = None) -> None:
        super().__init__(sent, target)
        self._mask = mask or mask_of(())

    def feed(self, event: JsonValue) -> list[StreamEvent]:
        return super().feed(self._mask.value(event) if self._mask.forms else event)

    def _decode(self, body: JsonObject) -> Response:
        return decode_answer(body, self.sent, self.target)

    def _usage_of(self, body: JsonObject) -> Usage:
        return decode_usage(body, tables.USAGE).usage

    def _start_call(self, call: PartialCall, choice: int) -> tuple[str, str]:
        return self._assign_call_id(call.id.partition(_SIGNED_ID)[0], choice), self.sent.names.decode(call.name)


def _complete_choice(choice: Choice, target: Target[LiteLLMProfile]) -> Choice:
    """Return the choice with LiteLLM's additions to OpenAI's shape."""
    parts = _ordered_parts(choice, target)
    # LiteLLM reports some failures of the model as a plain stop with an empty answer.
    is_empty = all(isinstance(part, ThinkingPart | OpaquePart) for part in parts) and choice.refusal is None
    return replace(
        choice,
        tool_calls=tuple(part for part in parts if isinstance(part, ToolCall)),
        parts=() if all(isinstance(part, TextPart | ToolCall) for part in parts) else parts,
        finish_reason="error" if is_empty and choice.finish_reason == "stop" else choice.finish_reason,
    )


def _ordered_parts(choice: Choice, target: Target[LiteLLMProfile]) -> tuple[Part, ...]:
    message = object_of(object_of(choice.raw).get("message"))
    found = choice.message().parts
    thinking = (part for part in found if isinstance(part, ThinkingPart))
    rest = (part for part in found if not isinstance(part, ThinkingPart | ToolCall))
    calls = (_strip_signature(part, target.profile.family) for part in found if isinstance(part, ToolCall))
    return (*thinking, *_replayed_fields(message, target), *rest, *_images(message), *calls)


_SIGNED_ID = "__thought__"


def _strip_signature(call: ToolCall, family: str) -> ToolCall:
    """Return the call without the signature in its id; it moves to the field that LiteLLM reads first."""
    call_id, mark, signature = call.id.partition(_SIGNED_ID)
    if not mark:
        return call
    data = provider_data(call, family)
    signed: JsonObject = {"thought_signature": signature, **object_of(data.get("provider_specific_fields"))}
    return replace(call, id=call_id, provider_data={family: {**data, "provider_specific_fields": signed}})


def _replayed_fields(message: JsonObject, target: Target[LiteLLMProfile]) -> tuple[Part, ...]:
    """Return the items that the upstream needs again, as fields of the turn."""
    fields: JsonObject = {}
    if blocks := message.get("thinking_blocks"):
        fields["thinking_blocks"] = blocks
    upstream = target.model.partition("/")[0]
    signatures = object_of(message.get("provider_specific_fields")).get("thought_signatures")
    if upstream in tables.SIGNS_TEXT and signatures:
        fields["provider_specific_fields"] = {"thought_signatures": signatures}
    return (OpaquePart(target.profile.family, fields),) if fields else ()


def _images(message: JsonObject) -> list[Part]:
    images: list[Part] = []
    for item in objects_of(message.get("images")):
        if isinstance(url := object_of(item.get("image_url")).get("url"), str):
            media_type, data = split_data_url(url)
            images.append(ImagePart(url=url) if data is None else ImagePart(data=data, media_type=media_type))
    return images


def translate_error(
    error: Exception, target: Target[LiteLLMProfile], arguments: Mapping[str, JsonValue] = MappingProxyType({})
) -> LMError:
    """Return LiteLLM's exception as an ``LMError``, by ``ERRORS``, else by its status. Secrets in ``arguments`` are masked."""
    if isinstance(error, TimeoutError):
        return LMTimeoutError("No answer through LiteLLM in time.", provider=target.provider, model=target.model)
    if type(error).__name__ == "MidStreamFallbackError":  # LiteLLM wraps an error before the first chunk
        error = getattr(error, "original_exception", None) or error
    status: object = getattr(error, "status_code", None)
    body = object_of(getattr(error, "body", None))
    classes = [cls.__name__ for cls in type(error).__mro__ if cls.__module__.partition(".")[0] in ("litellm", "openai")]
    text = _PREFIXES.sub("", str(error)) if classes else f"LiteLLM failed with {type(error).__name__}: {error}"
    given = body or _body_in(text) or {"message": text}
    fault = read_error_body(status if isinstance(status, int) else None, _headers(error), given)
    unknown = f"The provider {target.model.partition('/')[0]!r} is unknown to sigwire and to LiteLLM"
    text = redact(re.sub("(?is).*llm provider not provided.*", unknown, text), arguments)
    codes = tuple(dict.fromkeys((*fault.codes, *(name.lower() for name in classes))))
    result = lm_error(replace(fault, message=text.strip() or fault.message, codes=codes), tables.ERRORS, target)
    result.provider_code = next(iter(fault.codes), None)
    if arguments.get("api_key") == tables.NO_KEY and isinstance(result, LMAuthenticationError):
        result.message = f"{result.message} {_WITHHELD}"
        result.args = (result.message,)
    return result


def _body_in(text: str) -> JsonObject:
    """Return the provider's body in the text of an error; LiteLLM keeps most bodies nowhere else."""
    start = text.find("{")
    try:
        return object_of(json.JSONDecoder().raw_decode(text, start)[0]) if start >= 0 else {}
    except ValueError:
        return {}


# "litellm.RateLimitError: RateLimitError: OpenAIException - slow down" -> "OpenAIException - slow down"
_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: Error)?: )+")
_WITHHELD = (
    "The environment's key was not sent, because base_url may be a foreign host. Pass api_key=... for that host."
)


def _headers(error: Exception) -> Mapping[str, str]:
    reply = getattr(error, "response", None)
    kept = getattr(error, "litellm_response_headers", None) or getattr(reply, "headers", None)
    return {str(name): str(value) for name, value in dict(kept or {}).items()}
