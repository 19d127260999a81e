"""Gemini's generateContent wire, on the Gemini API and on Vertex AI: Request -> dict, dict -> Response.

Pure: no network, clock or environment. What differs between the two hosts is a ``GeminiDialect``; what differs between
models is in the target's facts. Reads top to bottom: dialects, tables, encode(), decode(), decode_error(), read_request().

Surprises of this wire:
    - There is no tool role: results travel in a *user* content, all of a turn together and in the order of the calls,
      and neighbouring contents of one role are written as one.
    - A result is always wrapped ({"output": value} or {"error": value}): a bare object with such a key means another thing.
    - There is no finish reason for calls; STOP with a call means a call. A blocked prompt is status 200 with no candidate.
    - Signatures (``thoughtSignature``) sit on parts and must come back on the same part. On a call they are its provider
      data. On text and media a ``ThinkingPart(redacted="", signature=...)`` follows, which seals the part before it; a
      part that is nothing but a signature is ``ThinkingPart(redacted=...)``.
    - Newer models refuse a call in the current turn that nobody signed: one made elsewhere gets a stand-in signature.
    - Ids are optional. One that sigwire made up is never sent.
    - Whatever else the model's turn holds (server-side calls, code and its output) is an ``OpaquePart``, the wire's part.

A file's name has no place here and is not sent. URLs are sent as URLs: the provider fetches them, or says it cannot.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import (
    AudioPart,
    FilePart,
    ImagePart,
    MediaPart,
    Message,
    OpaquePart,
    Part,
    TextPart,
    ThinkingPart,
)
from sigwire.core.names import NameMap, NameRules
from sigwire.core.request import Request, ResponseFormat, ToolChoice
from sigwire.core.response import Choice, FinishReason, LMWarning, Response, Usage
from sigwire.core.tools import ToolCall, ToolResult, number_calls
from sigwire.errors import (
    InputError,
    LMAuthenticationError,
    LMBillingError,
    LMError,
    LMInvalidRequestError,
    LMServerError,
    LMTimeoutError,
    LMUnexpectedError,
    LMUnsupportedModelError,
)
from sigwire.lm.codecs.base import (
    Dialect,
    Encoded,
    Offer,
    Option,
    OptionTable,
    Place,
    Skip,
    Target,
    asked_reasoning,
    at,
    budget_for,
    can_force,
    drop_options,
    finish,
    fit_effort,
    headers_for,
    in_words,
    is_invented,
    merge,
    name_map,
    objects_of,
    offer,
    place_options,
    provider_data,
    settle,
    string_of,
    supports,
    usage_of,
)
from sigwire.lm.codecs.faults import Fault, Rule, lm_error, read_body, read_fault
from sigwire.lm.codecs.repair import RepairRules, repair
from sigwire.lm.codecs.schema_rules import (
    SchemaRules,
    any_of_for_types,
    compile_schema,
    const_to_enum,
    merge_all_of,
)

__all__ = [
    "BUILTIN",
    "ERRORS",
    "FINISH_REASONS",
    "GEMINI",
    "OPTIONS",
    "UNSIGNED",
    "USAGE",
    "USAGE_BESIDE",
    "VERTEX",
    "GeminiDialect",
    "decode",
    "decode_error",
    "encode",
    "read_request",
]


# --- dialects ----------------------------------------------------------------------------------------------


def _null_out_of_enum(node: JsonObject) -> JsonObject:
    """Enums hold strings and numbers here; a ``null`` among them becomes a type of its own."""
    values = node.get("enum")
    if not isinstance(values, list) or None not in values or "anyOf" in node:
        return node
    rest: list[JsonValue] = [value for value in values if value is not None]
    bare: JsonObject = {name: value for name, value in node.items() if name not in ("enum", "type")}
    if not rest:
        return {**bare, "type": "null"}
    members: list[JsonValue] = [{"enum": rest}, {"type": "null"}]
    return {**bare, "anyOf": members}


_KEYWORDS = frozenset(
    "$id $defs definitions $ref $anchor type format title description enum items prefixItems minItems maxItems minimum "
    "maximum anyOf oneOf properties additionalProperties required propertyOrdering default".split()
)
_REWRITES = (merge_all_of, const_to_enum, any_of_for_types, _null_out_of_enum)
# ``default`` is read past, but recorded traffic has it everywhere: it is worth more to keep it than to warn of it.
_OUTPUT = SchemaRules(keep=_KEYWORDS, rewrite=_REWRITES, ref_siblings=False, recursion="optional")


@dataclass(frozen=True, kw_only=True)
class GeminiDialect(Dialect):
    """How one host speaks generateContent. The defaults are generativelanguage.googleapis.com.

    In ``path``, ``{version}`` is ``version``, or ``preview_version`` where a piece of the model's name is one of
    ``preview_names``; ``{model}`` has its collection before it ("models/..."), ``{method}`` is whole or streaming.
    ``options``: over the wire's table. ``efforts``: the thinking levels a model takes when its facts do not say.
    ``announce_builtin``: whether tools that the provider runs have to be announced when they stand beside functions.
    ``exclude_domains``: whether web search can leave out domains.
    """

    family: str = "gemini"
    path: str = "/{version}/{model}:{method}"
    version: str = "v1"
    preview_version: str = "v1beta"
    preview_names: frozenset[str] = frozenset({"preview", "latest", "exp"})
    names: NameRules = NameRules(allowed="A-Za-z0-9_.:-", first="A-Za-z_", max_length=128)
    # An empty text is what recorded requests without a user's word begin with; the models take it.
    repair: RepairRules = RepairRules(system="front", first_user="")
    tool_schema: SchemaRules = replace(_OUTPUT, root="object")
    output_schema: SchemaRules = _OUTPUT
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    efforts: tuple[str, ...] = ("low", "medium", "high")
    announce_builtin: bool = True
    exclude_domains: bool = False


GEMINI = GeminiDialect()
VERTEX = GeminiDialect(
    family="vertex",  # signatures of one route are refused on the other
    path="/publishers/google/{model}:{method}",  # the base URL ends with version, project and location
    options={"metadata": Place("labels")},
    announce_builtin=False,
    exclude_domains=True,
)


# --- tables ------------------------------------------------------------------------------------------------


def _listed(value: JsonValue) -> JsonValue:
    return value if isinstance(value, list) else [value]


OPTIONS: OptionTable = {
    "cache": Skip(),  # implicit; a stored prefix is named in extra_body: {"cachedContent": "cachedContents/..."}
    "frequency_penalty": Place("generationConfig.frequencyPenalty"),
    "logprobs": Place("generationConfig.responseLogprobs"),
    "max_tokens": Place("generationConfig.maxOutputTokens"),
    "n": Place("generationConfig.candidateCount"),
    "presence_penalty": Place("generationConfig.presencePenalty"),
    "reasoning": Skip(),
    "seed": Place("generationConfig.seed"),
    "service_tier": Place("serviceTier"),
    "stop": Place("generationConfig.stopSequences", _listed),
    "temperature": Place("generationConfig.temperature"),
    "top_k": Place("generationConfig.topK"),
    "top_logprobs": Place("generationConfig.logprobs"),
    "top_p": Place("generationConfig.topP"),
}
_SAMPLING = ("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty")

BUILTIN: Mapping[str, str] = {
    "web_search": "googleSearch",
    **{
        kind: kind
        for kind in (
            "codeExecution",
            "computerUse",
            "enterpriseWebSearch",
            "fileSearch",
            "googleMaps",
            "googleSearch",
            "googleSearchRetrieval",
            "retrieval",
            "urlContext",
        )
    },
}
"""Tools that the provider runs: our kind, or its own, to its key in ``tools``."""

_MODES: Mapping[str, str] = {"auto": "AUTO", "required": "ANY", "none": "NONE"}

_FILTERED = (
    "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION "
    "MODEL_ARMOR ESCALATION PUP_LIMITED_DISABLED"
).split()
_FAILED = (
    "MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE MISSING_THOUGHT_SIGNATURE "
    "NO_IMAGE IMAGE_OTHER LANGUAGE"
).split()
FINISH_REASONS: Mapping[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(_FILTERED, "content_filter"),
    **dict.fromkeys(_FAILED, "error"),
}
"""What is missing here (OTHER, unspecified, new words) is read off the content."""

USAGE: Mapping[str, str | tuple[str, ...]] = {
    "input_tokens": "promptTokenCount",
    "output_tokens": "candidatesTokenCount",
    "cached_tokens": "cachedContentTokenCount",
    "reasoning_tokens": "thoughtsTokenCount",
}
USAGE_BESIDE: Mapping[str, str | tuple[str, ...]] = {
    "input_tokens": "toolUsePromptTokenCount",
    "output_tokens": "thoughtsTokenCount",
}
"""What the wire counts beside the prompt and the answer, and we count into them."""

UNSIGNED = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""The stand-in signature for calls that Gemini did not make: ``skip_thought_signature_validator``, as bytes are sent."""

_KEY_HINT = "Check the API key and what it may do."
ERRORS: tuple[Rule, ...] = (
    Rule(LMAuthenticationError, codes=frozenset({"api_key_invalid"}), hint=_KEY_HINT),
    Rule(LMAuthenticationError, frozenset({400}), texts=("api key not valid", "api key expired"), hint=_KEY_HINT),
    Rule(
        LMBillingError,
        frozenset({429}),
        codes=frozenset({"quota_per_day"}),
        hint="The day's quota is used up; trying again before tomorrow does not help.",
    ),
    Rule(
        LMBillingError,
        frozenset({400}),
        codes=frozenset({"failed_precondition"}),
        texts=("billing",),
        hint="Check the project's billing.",
    ),
    Rule(
        LMAuthenticationError,
        frozenset({400}),
        codes=frozenset({"failed_precondition"}),
        hint="The service is not open to this project or region as it is; billing may have to be enabled.",
    ),
    Rule(
        LMInvalidRequestError,
        frozenset({400}),
        texts=("missing a thought_signature",),
        hint="Put each answer into the history as it came (choice.message()), signatures and all.",
    ),
    Rule(
        LMInvalidRequestError,
        frozenset({400}),
        texts=("thought signature", "thought_signature"),
        hint="Signatures hold for the model, key and route that made them; leave those of others out of the history.",
    ),
    Rule(
        LMUnsupportedModelError,
        frozenset({404}),
        hint="Check the model's name: {provider} does not serve {model!r} to this key under this version of the API.",
    ),
    Rule(LMTimeoutError, frozenset({504})),
)


# --- encode ------------------------------------------------------------------------------------------------


def encode(request: Request, target: Target[GeminiDialect], *, stream: bool = False) -> Encoded:
    """The request as generateContent takes it. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> sent = encode(Request((Message.user("q"),)), Target("gemini", "gemini-x", GEMINI))
    >>> sent.path, sent.body
    ('/v1/models/gemini-x:generateContent', {'contents': [{'role': 'user', 'parts': [{'text': 'q'}]}]})
    """
    names = name_map(request, target.dialect.names)
    history = repair(request.messages, target.repair)
    tools = offer(request, names, target)
    output, instruction, format_warnings = _encode_output(request.response_format, bool(tools.functions), target)
    thinking, thinks, thinking_warnings = _encode_reasoning(request, target)
    options, option_warnings = place_options(request.options, _option_table(thinks, target), target)
    chosen, tool_warnings = _encode_tools(tools, request.parallel_tool_calls, thinks, target)
    contents, content_warnings = _encode_contents(history.messages, names, target)
    body: JsonObject = {
        **_encode_system(history.messages, instruction, target),
        "contents": cast(JsonValue, contents),
        **chosen,
        **_with_generation(options, {**output, **thinking}),
    }
    lost = (history.warnings, content_warnings, tools.warnings, tool_warnings, format_warnings, thinking_warnings)
    return Encoded(
        _path(target, stream),
        finish(body, request),
        {"alt": "sse"} if stream else {},
        headers_for(request, target.dialect),
        (*itertools.chain(*lost), *option_warnings),
        names,
        history.call_ids,
    )


def _path(target: Target[GeminiDialect], stream: bool) -> str:
    dialect, model = target.dialect, target.model
    preview = not dialect.preview_names.isdisjoint(re.split(r"[-/]", model))
    return dialect.path.format(
        version=dialect.preview_version if preview else dialect.version,
        model=model if model.startswith(("models/", "tunedModels/")) else f"models/{model}",
        method="streamGenerateContent" if stream else "generateContent",
    )


def _with_generation(options: JsonObject, config: JsonObject) -> JsonObject:
    return merge(options, {"generationConfig": config}) if config else options


# --- options, reasoning, structured output


def _option_table(thinks: bool, target: Target[GeminiDialect]) -> OptionTable:
    facts = target.facts
    table = {**OPTIONS, **target.dialect.options}
    if facts.sampling == "never" or (facts.sampling == "unless_reasoning" and thinks):
        table |= drop_options(_SAMPLING, "a model that reasons takes no sampling options; it was left out.")
    if not facts.stop:
        table |= drop_options(["stop"], "the model takes no stop sequences; they were left out.")
    return table


def _encode_reasoning(
    request: Request, target: Target[GeminiDialect]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    """What asks for thinking, whether the model will think, and what could not be asked for."""
    asked, facts = asked_reasoning(request), target.facts
    if asked is None:
        return {}, facts.default_effort not in (None, "off"), ()
    if asked.off and facts.thinking == "none":
        return {}, False, ()  # it does not reason anyway
    if facts.thinking == "budget":
        if asked.off and (facts.efforts is None or "off" in facts.efforts):
            return {"thinkingConfig": {"thinkingBudget": 0}}, False, ()
        budget, warnings = budget_for(replace(asked, effort=None, budget=0) if asked.off else asked, target)
        return {"thinkingConfig": {"thinkingBudget": budget, "includeThoughts": True}}, True, warnings
    efforts = target.dialect.efforts if facts.efforts is None else facts.efforts
    levels = [effort for effort in efforts if effort != "off"] if facts.thinking == "effort" else []
    level, warnings = fit_effort(asked, levels, target)
    return {"thinkingConfig": {"thinkingLevel": level, "includeThoughts": True}}, True, warnings


def _encode_output(
    wanted: ResponseFormat | None, tools: bool, target: Target[GeminiDialect]
) -> tuple[JsonObject, str, tuple[LMWarning, ...]]:
    """The output format for ``generationConfig``, or what has to be said in words instead. Names have no place here."""
    if wanted is None:
        return {}, "", ()
    able, schema = target.capabilities, wanted.schema
    apart = tools and not able.tools_with_json_schema
    if schema is not None and able.json_schema and not apart:
        schema, lost = compile_schema(schema, target.dialect.output_schema, f"the output {wanted.name!r}")
        return {"responseMimeType": _JSON, "responseJsonSchema": schema}, "", lost
    native: JsonObject = {"responseMimeType": _JSON} if able.json_object and not apart else {}
    if schema is None and native:
        return native, "", ()
    why = "beside tools " if apart else ""
    detail = (
        f"{target.provider}/{target.model} has no structured output by schema {why}here; it was asked for in words."
    )
    return native, in_words(schema), (LMWarning("response_format", detail),)


_JSON = "application/json"


# --- tools


def _encode_tools(
    tools: Offer, parallel: bool | None, thinks: bool, target: Target[GeminiDialect]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """``tools`` and ``toolConfig``. A choice speaks of functions only; where none may be called, nothing else may run."""
    builtin = () if tools.choice == "none" else tools.builtin
    both = bool(builtin and tools.functions)
    supports(target.facts.builtin_with_functions or not both, "built-in tools beside functions", target, _NOT_BOTH)
    choice, narrowed, warnings = _encode_choice(tools, thinks, target)
    sent: list[JsonValue] = []
    for kind, settings in builtin:
        key, wire, lost = _encode_builtin(kind, settings, target)
        sent.append({key: wire})
        warnings += lost
    if tools.functions:
        functions = tools.only_allowed() if narrowed else tools.functions
        sent.append({"functionDeclarations": [_encode_function(*function) for function in functions]})
    config: JsonObject = {"functionCallingConfig": choice} if choice else {}
    if both and target.dialect.announce_builtin:
        config["includeServerSideToolInvocations"] = True
    if parallel is False and tools.functions and tools.choice != "none":
        detail = f"{target.provider}/{target.model} cannot be kept from calling several tools at once."
        warnings += (LMWarning("parallel_tool_calls", detail),)
    return {**({"tools": sent} if sent else {}), **({"toolConfig": config} if config else {})}, warnings


_NOT_BOTH = "Offer one kind at a time, or use a newer model."


def _encode_choice(
    tools: Offer, thinks: bool, target: Target[GeminiDialect]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    """``functionCallingConfig``, and whether the tools have to be narrowed to those it allows."""
    mode = tools.choice
    if mode is None or not tools.functions:
        detail = f"{target.provider}/{target.model} cannot be made to use a built-in tool; it is left to the model."
        return {}, False, (LMWarning("tool_choice", detail),) if mode == "required" else ()
    if mode == "required" and not can_force(thinks, target):
        detail = f"{target.provider}/{target.model} cannot be made to call a tool; the choice was left to the model."
        return {"mode": "AUTO"}, bool(tools.allowed), (LMWarning("tool_choice", detail),)
    if not tools.allowed or mode == "none":
        return {"mode": _MODES[mode]}, False, ()
    # AUTO takes no names; VALIDATED is AUTO that keeps to the schemas, and takes them.
    word = "ANY" if mode == "required" else "VALIDATED"
    return {"mode": word, "allowedFunctionNames": list(tools.allowed)}, False, ()


def _encode_function(name: str, description: str, parameters: JsonObject | None) -> JsonObject:
    function: JsonObject = {"name": name, "description": description} if description else {"name": name}
    if parameters is not None and not _says_nothing(parameters):
        function["parametersJsonSchema"] = parameters
    return function


def _says_nothing(schema: JsonObject) -> bool:
    """Whether the schema declares no argument; older models refuse an empty list of properties."""
    told = {name for name, value in schema.items() if value}
    return told <= {"type", "title"}


def _encode_builtin(
    kind: str, settings: JsonObject, target: Target[GeminiDialect]
) -> tuple[str, JsonObject, tuple[LMWarning, ...]]:
    key = BUILTIN.get(kind)
    supports(key is not None, f"the built-in tool {kind!r}", target, f"It has {', '.join(sorted(BUILTIN))}.")
    if kind != "web_search":
        return cast(str, key), settings, ()
    supports(
        not settings.get("allowed_domains"), "a web search limited to domains", target, "Name them in the question."
    )
    blocked = settings.get("blocked_domains")
    supports(
        not blocked or target.dialect.exclude_domains, "a web search without some domains", target, "Vertex AI has one."
    )
    lost = [name for name in ("max_uses", "user_location") if settings.get(name)]
    return (
        cast(str, key),
        {"excludeDomains": blocked} if blocked else {},
        tuple(LMWarning("web_search", f"{target.provider} has no place for {name}; it was left out.") for name in lost),
    )


# --- contents


def _encode_system(messages: Sequence[Message], instruction: str, target: Target[GeminiDialect]) -> JsonObject:
    parts: list[JsonValue] = []
    for part in (part for message in messages if message.role == "system" for part in message.parts):
        supports(isinstance(part, TextPart | OpaquePart), f"a {type(part).__name__} in a system turn", target, _TO_USER)
        parts.append(_encode_part(part))
    if instruction:
        parts.append({"text": instruction})
    return {"systemInstruction": {"parts": parts}} if parts else {}


_TO_USER = "Move it to a user turn."


def _encode_contents(
    messages: Sequence[Message], names: NameMap, target: Target[GeminiDialect]
) -> tuple[list[JsonObject], tuple[LMWarning, ...]]:
    """The turns, neighbours of one role as one content: a result and the user's next words belong together."""
    contents: list[tuple[str, list[JsonObject]]] = []
    for message in _signed(messages, target):
        role, parts = _encode_turn(message, names, target)
        if contents and contents[-1][0] == role:
            contents[-1][1].extend(parts)
        elif parts:
            contents.append((role, parts))
    warnings = _detail_warnings(messages)
    if not contents:
        contents.append(("user", [{"text": target.dialect.repair.first_user or ""}]))
        warnings += (LMWarning("messages", "The request has no turn beside the system's; an empty one was sent."),)
    return [{"role": role, "parts": cast(JsonValue, parts)} for role, parts in contents], warnings


def _detail_warnings(messages: Iterable[Message]) -> tuple[LMWarning, ...]:
    images = (part for message in messages for part in message.parts if isinstance(part, ImagePart))
    if any(image.detail not in (None, "auto") for image in images):
        return (
            LMWarning("detail", "An image's detail has no place here and was left out; mediaResolution is for all."),
        )
    return ()


def _signed(messages: Sequence[Message], target: Target[GeminiDialect]) -> Iterator[Message]:
    """The turns to write; in the current one, each step that nobody signed begins with a stand-in signature."""
    users = [number for number, message in enumerate(messages) if message.role == "user"]
    start = users[-1] if users else -1
    for number, message in enumerate(messages):
        if message.role == "system":
            continue
        calls = message.tool_calls
        if target.facts.signed_calls and number > start and calls and not _is_signed(calls[0], target):
            family = target.dialect.family
            data: JsonObject = {**provider_data(calls[0], family), _SIGNATURE: UNSIGNED}
            first = replace(calls[0], provider_data={family: data})
            yield replace(message, parts=tuple(first if part is calls[0] else part for part in message.parts))
        else:
            yield message


_SIGNATURE = "thoughtSignature"


def _is_signed(call: ToolCall, target: Target[GeminiDialect]) -> bool:
    return bool(provider_data(call, target.dialect.family).get(_SIGNATURE))


def _encode_turn(message: Message, names: NameMap, target: Target[GeminiDialect]) -> tuple[str, list[JsonObject]]:
    if message.role == "assistant":
        return "model", _encode_model(message.parts, names, target)
    if message.role == "tool":
        return "user", [_encode_result(result, names) for result in message.tool_results]
    return "user", [_encode_part(part) for part in message.parts]


def _encode_model(parts: Iterable[Part], names: NameMap, target: Target[GeminiDialect]) -> list[JsonObject]:
    wires: list[JsonObject] = []
    before: Part | None = None
    for part in parts:
        if isinstance(part, ThinkingPart):
            _encode_thinking(part, wires, sealing=isinstance(before, TextPart | ImagePart | AudioPart | FilePart))
        elif isinstance(part, ToolCall):
            wires.append(_encode_call(part, names, target.dialect.family))
        else:
            wires.append(_encode_part(part))
        before = part
    return wires


def _encode_thinking(part: ThinkingPart, wires: list[JsonObject], *, sealing: bool) -> None:
    """Thinking as it came. What is not tagged as Gemini's is left out: as plain text it would be an answer."""
    if part.provider is None:
        return
    if part.redacted is None:
        signed: JsonObject = {_SIGNATURE: part.signature} if part.signature is not None else {}
        wires.append({"text": part.text, "thought": True, **signed})
    elif part.signature is not None and sealing:
        wires[-1] = {**wires[-1], _SIGNATURE: part.signature}
    else:
        wires.append({"text": "", _SIGNATURE: part.signature or part.redacted})


def _encode_call(call: ToolCall, names: NameMap, family: str) -> JsonObject:
    # Arguments are an object here; what a model of another provider wrote instead is shown as the text it was.
    arguments: JsonObject = {"invalid_arguments": call.arguments_text} if call.arguments is None else call.arguments
    function: JsonObject = {**_sent_id(call.id), "name": names.encode(call.name), "args": arguments}
    return {"functionCall": function, **provider_data(call, family)}


def _sent_id(call_id: str) -> JsonObject:
    return {} if is_invented(call_id) else {"id": call_id}


def _encode_result(result: ToolResult, names: NameMap) -> JsonObject:
    response: JsonObject = {"error" if result.is_error else "output": result.content}
    function: JsonObject = {**_sent_id(result.id), "name": names.encode(result.name), "response": response}
    if result.media:
        function["parts"] = [_encode_result_media(part) for part in result.media]
    return {"functionResponse": function}


def _encode_result_media(part: MediaPart) -> JsonObject:
    if isinstance(part, TextPart):
        return _inline("text/plain", base64.b64encode(part.text.encode("utf-8", "replace")).decode())
    return _encode_part(part)


def _encode_part(part: Part) -> JsonObject:
    match part:
        case TextPart(text):
            return {"text": text}
        case ImagePart(url=url, data=data, media_type=media_type):
            return _encode_media(url, data, media_type, "image/png")
        case AudioPart(data=data, format=format):
            return _inline(f"audio/{format}", data)
        case FilePart(data=data, url=url, file_id=file_id, media_type=media_type):
            return _encode_media(url or file_id, data, media_type, "application/pdf")
        case OpaquePart(data=data):
            return cast(JsonObject, data)
        case _:
            raise InputError(f"A {type(part).__name__} cannot stand in this turn.")


def _encode_media(url: str | None, data: str | None, media_type: str | None, usual: str) -> JsonObject:
    if data is not None:
        return _inline(media_type or usual, data)
    if url is None:
        raise InputError("An image needs a url or data, a file a url, data or the id of an uploaded file.")
    inline = re.fullmatch(r"data:([^;,]+);base64,(.*)", url, re.DOTALL)
    if inline:
        return _inline(*inline.groups())
    known = media_type or _TYPE_OF_ENDING.get(re.split(r"[?#]", url)[0].rsplit(".", 1)[-1].lower())
    return {"fileData": {"fileUri": url, **({"mimeType": known} if known else {})}}


def _inline(media_type: str, data: str) -> JsonObject:
    return {"inlineData": {"mimeType": media_type, "data": data}}


_TYPE_OF_ENDING: Mapping[str, str] = {
    **{ending: f"image/{ending}" for ending in ("png", "jpeg", "webp", "heic", "heif", "gif")},
    **{ending: f"audio/{ending}" for ending in ("wav", "aac", "flac", "ogg", "aiff")},
    **{ending: f"video/{ending}" for ending in ("mp4", "mpeg", "webm")},
    "jpg": "image/jpeg",
    "mp3": "audio/mpeg",
    "mov": "video/quicktime",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
}
"""A URL needs its type beside it; where the caller did not say, the URL's ending does."""


# --- decode ------------------------------------------------------------------------------------------------


def decode(body: JsonValue, sent: Encoded, target: Target[GeminiDialect]) -> Response:
    """The reply as a response; a blocked prompt is a choice that was filtered. Raises an ``LMError`` for a failure."""
    if not isinstance(body, dict) or body.get("error"):
        raise _failed_inside(body, target)
    blocked = string_of(body.get("promptFeedback"), "blockReason")
    candidates = sorted(objects_of(body.get("candidates")), key=_index)
    if not candidates and not blocked:
        raise _failed_inside(body, target)
    decoded = [_decode_candidate(candidate, sent, target) for candidate in candidates] or [_blocked(body)]
    return Response(
        tuple(choice for choice, _ in decoded),
        _decode_usage(body.get("usageMetadata")),
        string_of(body, "modelVersion"),
        string_of(body, "responseId"),
        (*sent.warnings, *(warning for _, warnings in decoded for warning in warnings)),
        raw=body,
    )


def _index(candidate: JsonObject) -> int:
    index = candidate.get("index")
    return index if isinstance(index, int) else 0


def _blocked(body: JsonObject) -> tuple[Choice, tuple[LMWarning, ...]]:
    feedback = body["promptFeedback"]
    said = ": ".join(filter(None, (string_of(feedback, "blockReason"), string_of(feedback, "blockReasonMessage"))))
    choice = Choice(finish_reason="content_filter", raw=feedback)
    return choice, (LMWarning("content_filter", f"The prompt was blocked ({said})."),)


def _failed_inside(body: JsonValue, target: Target[GeminiDialect]) -> LMError:
    """An error that came with status 200: its own code stands in for the status; without one the server failed."""
    fault = _read_fault(200, {}, body)
    if isinstance(body, dict) and body.get("error"):
        code = next((int(code) for code in fault.codes if re.fullmatch(r"[45]\d\d", code)), 200)
        return lm_error(replace(fault, status=code), (*ERRORS, Rule(LMServerError, frozenset({200}))), target)
    said = f"The reply holds no candidates: {fault.message or dumps(body)[:200]}"
    spoke = isinstance(body, str) and body.strip() and body.lstrip()[:1] != "<"
    error = LMUnexpectedError if spoke else LMServerError
    return error(said, model=target.model, provider=target.provider, status=200)


def _decode_candidate(
    candidate: JsonObject, sent: Encoded, target: Target[GeminiDialect]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    wires = objects_of(at(candidate, "content.parts"))
    parts = [part for wire in wires for part in _decode_part(wire, sent.names, target.dialect.family)]
    found = number_calls((part for part in parts if isinstance(part, ToolCall)), sent.call_ids)
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    reason, calls, warnings = settle(candidate.get("finishReason"), FINISH_REASONS, text=text, calls=found)
    numbered = iter(found)
    parts = [next(numbered) if isinstance(part, ToolCall) else part for part in parts]
    parts = [part for part in parts if not isinstance(part, ToolCall) or part in calls]
    rest: dict[str, Any] = {
        "finish_reason": reason,
        "logprobs": _decode_logprobs(candidate.get("logprobsResult")),
        "citations": tuple(_decode_citations(candidate, wires)),
        "raw": candidate,
    }
    warnings += _finish_warnings(candidate, reason, bool(parts))
    usual = tuple(parts) == (*((TextPart(text),) if text else ()), *calls)
    return Choice(text, calls, **rest) if usual else Choice.from_parts(parts, **rest), warnings


_GO_ON = (
    "The answer is not complete. To go on, send the choice's message and, in extra_body, the continuationToken of its "
    "raw data."
)


def _finish_warnings(candidate: JsonObject, reason: FinishReason, spoke: bool) -> tuple[LMWarning, ...]:
    """What the finish reason in our words does not tell any more."""
    native = string_of(candidate, "finishReason") or "no reason"
    if reason in ("error", "content_filter"):
        said = ": ".join(filter(None, (native, string_of(candidate, "finishMessage"))))
        return (LMWarning("finish_reason", f"The provider ended the answer with {said}."),)
    if native == "CONTINUATION":
        return (LMWarning("continuation", _GO_ON),)
    if reason == "stop" and not spoke:
        return (LMWarning("content", "The model stopped without text and without calls."),)
    return ()


# --- parts, of answers and of history alike


def _decode_part(wire: JsonObject, names: NameMap, family: str) -> tuple[Part, ...]:
    """The part, and what seals it. An empty text without a signature is nothing."""
    wire = {name: value for name, value in wire.items() if value is not None}
    if isinstance(wire.get("functionCall"), dict):
        return (_decode_call(wire, names, family),)
    text, signature = wire.get("text"), string_of(wire, _SIGNATURE)
    if isinstance(text, str):
        return _decode_text(text, signature, wire.get("thought") is True, family)
    media = _decode_media(wire)
    bare: JsonObject = {name: value for name, value in wire.items() if name != _SIGNATURE}
    if media is None or _encode_part(media) != bare:
        return (OpaquePart(family, wire),)  # it would not be written the same again
    return (media, *_seal(signature, family))


def _decode_text(text: str, signature: str | None, thought: bool, family: str) -> tuple[Part, ...]:
    if thought:
        return (ThinkingPart(text, signature=signature, provider=family),)
    if text:
        return (TextPart(text), *_seal(signature, family))
    return (ThinkingPart(redacted=signature, provider=family),) if signature else ()


def _seal(signature: str | None, family: str) -> tuple[ThinkingPart, ...]:
    return (ThinkingPart(signature=signature, redacted="", provider=family),) if signature else ()


def _decode_call(wire: JsonObject, names: NameMap, family: str) -> ToolCall:
    function = wire["functionCall"]
    extra: JsonObject = {name: value for name, value in wire.items() if name != "functionCall"}
    return ToolCall.read(
        string_of(function, "id") or "",
        names.decode(string_of(function, "name") or ""),
        at(function, "args"),
        provider_data={family: extra} if extra else None,
    )


def _decode_media(wire: JsonObject) -> ImagePart | AudioPart | FilePart | None:
    inline, file = wire.get("inlineData"), wire.get("fileData")
    media_type = string_of(inline, "mimeType") or string_of(file, "mimeType")
    data, url = string_of(inline, "data"), string_of(file, "fileUri")
    kind, _, subtype = (media_type or "").partition("/")
    if data is not None and kind == "audio":
        return AudioPart(data, subtype)
    if data is None and url is None:
        return None
    return ImagePart(url, data, media_type) if kind == "image" else FilePart(data=data, url=url, media_type=media_type)


# --- what stands beside the parts


def _decode_usage(usage: JsonValue) -> Usage:
    return usage_of(usage, USAGE) + usage_of(usage, USAGE_BESIDE)


def _decode_logprobs(result: JsonValue) -> JsonValue:
    """In OpenAI's shape: each token, and the likeliest in its place."""
    if not isinstance(result, dict):
        return None
    tops = [objects_of(top.get("candidates")) for top in objects_of(result.get("topCandidates"))]
    content: list[JsonValue] = []
    for chosen, top in itertools.zip_longest(objects_of(result.get("chosenCandidates")), tops, fillvalue=None):
        if isinstance(chosen, dict):
            content.append({**_logprob(chosen), "top_logprobs": [_logprob(token) for token in top or ()]})
    return {"content": content}


def _logprob(token: JsonObject) -> JsonObject:
    return {"token": token.get("token"), "logprob": token.get("logProbability")}


def _decode_citations(candidate: JsonObject, wires: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Each supported piece of the text with each of its sources, sources of no piece, quotations, pages that were read."""
    grounding = candidate.get("groundingMetadata")
    chunks = objects_of(at(grounding, "groundingChunks"))
    cited: set[int] = set()
    for support in objects_of(at(grounding, "groundingSupports")):
        indices = support.get("groundingChunkIndices")
        for index in indices if isinstance(indices, list) else ():
            if isinstance(index, int) and 0 <= index < len(chunks):
                cited.add(index)
                yield {**_source(chunks[index]), **_span(support.get("segment"), wires)}
    yield from (_source(chunk) for number, chunk in enumerate(chunks) if number not in cited)
    quoted = candidate.get("citationMetadata")
    for citation in (*objects_of(at(quoted, "citations")), *objects_of(at(quoted, "citationSources"))):
        yield {**_source({"web": citation}), **_span(citation, wires)}
    for page in objects_of(at(candidate, "urlContextMetadata.urlMetadata")):
        yield {"type": "url_citation", "url": page.get("retrievedUrl")}


def _source(chunk: JsonObject) -> JsonObject:
    kind, facts = next(((kind, chunk[kind]) for kind in _SOURCES if kind in chunk), ("web", None))
    found: JsonObject = {
        "url": string_of(facts, "uri") or string_of(facts, "sourceUri"),
        "title": string_of(facts, "title"),
    }
    return {"type": _SOURCES[kind], **{name: value for name, value in found.items() if value is not None}}


_SOURCES: Mapping[str, str] = {
    "web": "url_citation",
    "maps": "url_citation",
    "image": "url_citation",
    "retrievedContext": "file_citation",
}


def _span(segment: JsonValue, wires: Sequence[JsonObject]) -> JsonObject:
    """The piece of the text, by characters of the whole text.

    The wire counts UTF-8 bytes: of one part, it says, and after thoughts of the whole answer, recordings say. So an
    offset counts only where it finds the words that are quoted, and words that stand only once need none.
    """
    quoted = string_of(segment, "text")
    start, end, number = (_count(segment, name) for name in ("startIndex", "endIndex", "partIndex"))
    texts = [_answer_text(wire) for wire in wires]
    whole, ahead = "".join(texts), sum(map(len, texts[:number]))
    for text, before in ((texts[number] if number < len(texts) else "", ahead), (whole, 0)):
        encoded = text.encode("utf-8", "replace")
        piece = encoded[start:end].decode("utf-8", "replace")
        if piece and piece == (quoted or piece):
            return _place(before + len(encoded[:start].decode("utf-8", "replace")), piece)
    if quoted and whole.count(quoted) == 1:
        return _place(whole.index(quoted), quoted)
    return {"text": quoted} if quoted else {}


def _place(start: int, piece: str) -> JsonObject:
    return {"start_index": start, "end_index": start + len(piece), "text": piece}


def _count(data: JsonValue, name: str) -> int:
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, int) and value > 0 else 0


def _answer_text(wire: JsonObject) -> str:
    return "" if wire.get("thought") is True else string_of(wire, "text") or ""


# --- errors --------------------------------------------------------------------------------------------------


def decode_error(status: int, headers: Mapping[str, str], body: bytes | str, target: Target[GeminiDialect]) -> LMError:
    """The error of a reply that is no success.

    >>> body = '{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": [{'
    >>> body += '"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}}'
    >>> error = decode_error(400, {}, body, Target("gemini", "m", GEMINI))
    >>> type(error).__name__, error.provider_code, error.retryable
    ('LMAuthenticationError', 'api_key_invalid', False)
    """
    return lm_error(_read_fault(status, headers, read_body(body)), ERRORS, target)


def _read_fault(status: int, headers: Mapping[str, str], body: JsonValue) -> Fault:
    """The usual reading; then Google's reasons come first among the codes, and its words before its numbers."""
    fault = read_fault(status, headers, body)
    body = body[0] if isinstance(body, list) and body else body
    details = objects_of(at(body, "error.details"))
    reasons = [reason.lower() for detail in details if (reason := string_of(detail, "reason"))]
    limits = [violation for detail in details for violation in objects_of(detail.get("violations"))]
    if any("perday" in (string_of(limit, "quotaId") or "").lower() for limit in limits):
        reasons.append("quota_per_day")
    words = [code for code in fault.codes if not code.isdigit()]
    numbers = [code for code in fault.codes if code.isdigit()]
    return replace(fault, codes=tuple(dict.fromkeys((*reasons, *words, *numbers))))


# --- read_request ------------------------------------------------------------------------------------------


def read_request(body: JsonObject, dialect: GeminiDialect = GEMINI) -> Request:
    """The request that this body is the encoding of, its keys in either spelling of the wire (camelCase, snake_case).

    What is not modelled stays in opaque parts and ``extra_body``.
    """
    body = cast(JsonObject, _in_camel_case(body))
    tools = [tool for entry in _entries(body.get("tools")) for tool in _read_tools(entry)]
    choice, unread_config = _read_choice(body.get("toolConfig"), tools, dialect)
    wanted, options, unread_generation = _read_generation(body.get("generationConfig"))
    named = {option.path: name for name, option in {**OPTIONS, **dialect.options}.items() if isinstance(option, Place)}
    options |= {named[name]: value for name, value in body.items() if name in named}
    extra: JsonObject = {name: value for name, value in body.items() if name not in _MODELLED and name not in named}
    extra |= {"toolConfig": unread_config} if unread_config else {}
    extra |= {"generationConfig": unread_generation} if unread_generation else {}
    system = objects_of(at(body, "systemInstruction.parts"))
    return Request(
        (
            *((Message("system", _read_parts(system, dialect)),) if system else ()),
            *_read_contents(objects_of(body.get("contents")), dialect),
        ),
        tuple(tools),
        choice,
        None,
        wanted,
        {**options, "extra_body": extra} if extra else options,
    )


_MODELLED = frozenset({"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"})
_NOT_OURS = frozenset({"args", "response", "parameters", "parametersJsonSchema", "responseJsonSchema", "responseSchema",
                       "labels", "partMetadata"})  # fmt: skip


def _in_camel_case(value: JsonValue) -> JsonValue:
    """The wire's own keys in camelCase; what callers and models put in stays as it is."""
    if isinstance(value, list):
        return [_in_camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name): child for name, child in value.items()}
    return {name: child if name in _NOT_OURS else _in_camel_case(child) for name, child in renamed.items()}


def _entries(value: JsonValue) -> tuple[JsonObject, ...]:
    return (value,) if isinstance(value, dict) else objects_of(value)  # one entry may stand without its list


# --- contents


def _read_contents(contents: Iterable[JsonObject], dialect: GeminiDialect) -> list[Message]:
    """Neighbours of one role are one turn; results come out of it first."""
    turns = [
        (role == "model", tuple(wire for content in group for wire in objects_of(content.get("parts"))))
        for role, group in itertools.groupby(contents, lambda content: string_of(content, "role") or "user")
    ]
    messages: list[Message] = []
    calls: tuple[ToolCall, ...] = ()
    taken: set[str] = set()
    for is_model, wires in turns:
        if is_model:
            message = _read_model(wires, taken, dialect)
            calls = message.tool_calls
            taken |= {call.id for call in calls}
            messages.append(message)
            continue
        answers = [cast(JsonObject, wire["functionResponse"]) for wire in wires if _is_answer(wire)]
        said = [wire for wire in wires if not _is_answer(wire)]
        if answers:
            messages.append(Message.tool(*_read_results(answers, calls)))
        if said:
            messages.append(Message("user", _read_parts(said, dialect)))
    return messages


def _is_answer(wire: JsonObject) -> bool:
    return isinstance(wire.get("functionResponse"), dict)


def _read_model(wires: Iterable[JsonObject], taken: Iterable[str], dialect: GeminiDialect) -> Message:
    parts = _read_parts(wires, dialect)
    numbered = iter(number_calls((part for part in parts if isinstance(part, ToolCall)), taken))
    return Message("assistant", tuple(next(numbered) if isinstance(part, ToolCall) else part for part in parts))


def _read_parts(wires: Iterable[JsonObject], dialect: GeminiDialect) -> tuple[Part, ...]:
    return tuple(part for wire in wires for part in _decode_part(wire, NameMap((), dialect.names), dialect.family))


def _read_results(answers: Iterable[JsonObject], calls: tuple[ToolCall, ...]) -> list[ToolResult]:
    """A result without an id belongs to the first call of its name that has none yet."""
    results: list[ToolResult] = []
    waiting = list(calls)
    for answer in answers:
        call_id, name = string_of(answer, "id"), string_of(answer, "name") or ""
        call = next((call for call in waiting if call.id == call_id or (call_id is None and call.name == name)), None)
        if call is not None:
            waiting.remove(call)
        results.append(_read_result(answer, call_id or (call.id if call else ""), name))
    return results


def _read_result(answer: JsonObject, call_id: str, name: str) -> ToolResult:
    response = answer.get("response")
    key = next(iter(response)) if isinstance(response, dict) and len(response) == 1 else None
    content = response[key] if isinstance(response, dict) and key in ("output", "error") else response
    media = tuple(part for wire in objects_of(answer.get("parts")) if (part := _decode_media(wire)) is not None)
    return ToolResult(call_id, name, content, key == "error", media)


# --- tools


def _read_tools(entry: JsonObject) -> Iterator[JsonObject]:
    for key, settings in entry.items():
        if key == "functionDeclarations":
            yield from map(_read_function, objects_of(settings))
        elif key == "googleSearch" and not settings:
            yield {"type": "web_search", "web_search": {}}
        else:
            yield {"type": key, key: settings}


def _read_function(declared: JsonObject) -> JsonObject:
    function: JsonObject = {name: declared[name] for name in ("name", "description") if name in declared}
    schema = declared.get("parametersJsonSchema") or _with_small_types(declared.get("parameters"))
    if schema:
        function["parameters"] = schema
    return {"type": "function", "function": function}


def _with_small_types(schema: JsonValue) -> JsonValue:
    """OpenAPI's dialect, which ``parameters`` speaks, shouts its types."""
    if isinstance(schema, list):
        return [_with_small_types(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _with_small_types(value)
        for name, value in schema.items()
    }


def _read_choice(
    config: JsonValue, tools: Sequence[JsonObject], dialect: GeminiDialect
) -> tuple[ToolChoice | None, JsonObject]:
    """The choice, and what of the configuration would not be written again from it and the tools."""
    unread: JsonObject = dict(config) if isinstance(config, dict) else {}
    kinds = {tool["type"] == "function" for tool in tools}
    if kinds == {True, False} and dialect.announce_builtin and unread.get("includeServerSideToolInvocations") is True:
        del unread["includeServerSideToolInvocations"]
    calling = unread.get("functionCallingConfig")
    if True not in kinds or not isinstance(calling, dict) or calling.keys() - {"mode", "allowedFunctionNames"}:
        return None, unread
    listed = calling.get("allowedFunctionNames")
    allowed = tuple(str(name) for name in listed) if isinstance(listed, list) else ()
    choice = _CHOICES.get((str(calling.get("mode")), bool(allowed)))
    if choice is not None:
        del unread["functionCallingConfig"]
    return replace(choice, allowed=allowed) if choice else None, unread


_CHOICES: Mapping[tuple[str, bool], ToolChoice] = {
    ("AUTO", False): ToolChoice.AUTO,
    ("ANY", False): ToolChoice.REQUIRED,
    ("NONE", False): ToolChoice.NONE,
    ("ANY", True): ToolChoice.REQUIRED,
    ("VALIDATED", True): ToolChoice.AUTO,
}


# --- generationConfig


def _read_generation(config: JsonValue) -> tuple[ResponseFormat | None, JsonObject, JsonObject]:
    """The output format, the options, and what is not modelled."""
    unread: JsonObject = dict(config) if isinstance(config, dict) else {}
    options: JsonObject = {}
    for name, option in OPTIONS.items():
        key = option.path.removeprefix("generationConfig.") if isinstance(option, Place) else ""
        if unread.get(key) is not None:
            options[name] = unread.pop(key)
    reasoning = _read_reasoning(unread.get("thinkingConfig"))
    if reasoning is not None:
        options["reasoning"] = reasoning
        del unread["thinkingConfig"]
    if unread.get("responseMimeType") != _JSON or "responseSchema" in unread:
        return None, options, unread
    del unread["responseMimeType"]
    schema = unread.pop("responseJsonSchema", None)
    return ResponseFormat(schema if isinstance(schema, dict) else None), options, unread


def _read_reasoning(config: JsonValue) -> JsonValue:
    match config:
        case {"thinkingLevel": str(level), "includeThoughts": True, **rest} if not rest:
            return level.lower()
        case {"thinkingBudget": 0, **rest} if not rest:
            return "off"
        case {"thinkingBudget": int(budget), "includeThoughts": True, **rest} if not rest and budget > 0:
            return {"budget": budget}
        case _:
            return None
