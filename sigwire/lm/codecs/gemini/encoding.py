"""generateContent: Request -> body: options, reasoning, structured output and tools; ``contents`` encodes the turns."""

from __future__ import annotations

import itertools
import re
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.errors import LMError, LMInvalidRequestError
from sigwire.lm.codecs.gemini.contents import encode_contents, encode_system
from sigwire.lm.codecs.gemini.profiles import GeminiProfile
from sigwire.lm.codecs.gemini.tables import BUILTIN, JSON_TYPE, MODES, OPTIONS, SAMPLING
from sigwire.lm.codecs.shared.assembly import assemble, prepare
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.options import (
    merge_objects,
    place_options,
    require_feature,
    target_warning,
)
from sigwire.lm.codecs.shared.output import OutputForm, StructuredMode, choose_output
from sigwire.lm.codecs.shared.paths import model_in_path
from sigwire.lm.codecs.shared.reasoning import ReasoningRequest, budget_for, fit_effort, requested_reasoning
from sigwire.lm.codecs.shared.tools import (
    OfferedTools,
    can_force,
    encode_functions,
    search_settings,
)

__all__ = ["alternative", "encode"]


def encode(request: Request, target: Target[GeminiProfile], *, stream: bool = False) -> EncodedRequest:
    """Return the request for this host. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.lm.codecs.gemini import GEMINI
    >>> sent = encode(Request((Message.user("q"),)), Target("gemini", "gemini-x", GEMINI))
    >>> sent.path, sent.body
    ('/v1/models/gemini-x:generateContent', {'contents': [{'role': 'user', 'parts': [{'text': 'q'}]}]})
    """
    ready = prepare(request, target)
    history, names, tools = ready.history, ready.names, ready.tools
    form = choose_output(request.response_format, _STRUCTURED, bool(tools.functions), target)
    thinking, thinks, thinking_warnings = _encode_reasoning(request, target)
    table = {**OPTIONS, **target.profile.options}
    options, option_warnings = place_options(request.options, table, target, sampling=SAMPLING, thinks=thinks)
    chosen, tool_warnings = _encode_tools(tools, request.parallel_tool_calls, thinks, target)
    config = {**_encode_output(form), **thinking}
    body: JsonObject = {
        **encode_system(history.messages, form.instruction, target),
        "contents": cast(JsonValue, encode_contents(history.messages, names, target)),
        **chosen,
        **(merge_objects(options, {"generationConfig": config}) if config else options),
    }
    lost = (history.warnings, tools.warnings, tool_warnings, form.warnings, thinking_warnings)
    query = {"alt": "sse"} if stream else {}
    found = itertools.chain(*lost, option_warnings)
    return assemble(ready, _path(target, stream), body, found, query=query, repeats=False)


def alternative(error: LMError, sent: EncodedRequest) -> EncodedRequest | None:
    """Return a request to repeat for each candidate if ``error`` means that the model returns one candidate at a time.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.lm.codecs.gemini import GEMINI
    >>> sent = encode(Request((Message.user("q"),), options={"n": 2}), Target("gemini", "gemini-x", GEMINI))
    >>> other = alternative(LMInvalidRequestError("Multiple candidates is not enabled for this model."), sent)
    >>> other.repeat, other.body["generationConfig"], other.warnings[0].feature
    (2, {'candidateCount': 1}, 'n')
    """
    config = sent.body.get("generationConfig")
    wanted = config.get("candidateCount") if isinstance(config, dict) else None
    is_refused = isinstance(error, LMInvalidRequestError) and "candidate" in error.message.lower()
    if not (is_refused and isinstance(config, dict) and isinstance(wanted, int) and wanted > 1):
        return None
    lost = f"The model returns one choice at a time; the request was sent {wanted} times more."
    body = {**sent.body, "generationConfig": {**config, "candidateCount": 1}}
    return sent._replace(body=body, repeat=wanted, warnings=(*sent.warnings, LMWarning("n", lost)))


def _path(target: Target[GeminiProfile], stream: bool) -> str:
    profile, model = target.profile, target.model
    preview = not profile.preview_names.isdisjoint(re.split(r"[-/]", model))
    is_endpoint = profile.endpoint_path is not None and model.startswith("endpoints/")
    path = (profile.endpoint_path if is_endpoint else None) or profile.path
    is_whole = is_endpoint or model.startswith(("models/", "tunedModels/"))
    return path.format(
        version=profile.preview_version if preview else profile.version,
        model=model_in_path(model if is_whole else f"models/{model}"),
        method="streamGenerateContent" if stream else "generateContent",
    )


# --- options, reasoning, structured output


def _encode_reasoning(
    request: Request, target: Target[GeminiProfile]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    """Return the thinking config, whether the model will think, and warnings."""
    asked, facts = requested_reasoning(request), target.facts
    if asked is None:
        return {}, facts.default_effort not in (None, "off"), ()
    if asked.is_off and facts.thinking == "none":
        return {}, False, ()
    config, thinks, warnings = (
        _encode_budget(asked, target) if facts.thinking == "budget" else _encode_level(asked, target)
    )
    return {"thinkingConfig": config}, thinks, warnings


def _encode_budget(
    asked: ReasoningRequest, target: Target[GeminiProfile]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    efforts = target.facts.efforts
    if asked.is_off and (efforts is None or "off" in efforts):
        return {"thinkingBudget": 0}, False, ()
    budget, warnings = budget_for(ReasoningRequest(budget=0) if asked.is_off else asked, target)
    return {"thinkingBudget": budget, "includeThoughts": True}, True, warnings


def _encode_level(
    asked: ReasoningRequest, target: Target[GeminiProfile]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    levels = [effort for effort in target.facts.known_efforts(target.profile.efforts) if effort != "off"]
    level, warnings = fit_effort(asked, levels, target)
    return {"thinkingLevel": level, "includeThoughts": True}, True, warnings


_STRUCTURED: tuple[StructuredMode, ...] = ("json_schema", "json_object")


def _encode_output(form: OutputForm) -> JsonObject:
    typed: JsonObject = {"responseMimeType": JSON_TYPE} if form.mode else {}
    return {**typed, "responseJsonSchema": form.schema} if form.schema is not None else typed


# --- tools


def _encode_tools(
    tools: OfferedTools, parallel: bool | None, thinks: bool, target: Target[GeminiProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Return ``tools`` and ``toolConfig``. The choice is about functions only; "none" drops built-in tools."""
    builtin = () if tools.choice == "none" else tools.builtin
    has_both = bool(builtin and tools.functions)
    can_send = target.facts.builtin_with_functions or not has_both
    require_feature(can_send, "built-in tools beside functions", target, _NOT_BOTH)
    choice, narrowed, warnings = _encode_choice(tools, thinks, target)
    sent: list[JsonValue] = []
    for kind, settings in builtin:
        wire, lost = _encode_builtin(kind, settings, target)
        sent.append(wire)
        warnings += lost
    functions = tools.allowed_functions() if narrowed else tools.functions
    if functions:
        sent.append({"functionDeclarations": [*encode_functions(functions, _encode_function)]})
    if functions and parallel is False and tools.choice != "none":
        detail = "cannot be kept from calling several tools at once."
        warnings += (target_warning("parallel_tool_calls", target, detail),)
    config = _tool_config(choice, has_both, target)
    return {**({"tools": sent} if sent else {}), **({"toolConfig": config} if config else {})}, warnings


def _tool_config(choice: JsonObject, has_both: bool, target: Target[GeminiProfile]) -> JsonObject:
    config: JsonObject = {"functionCallingConfig": choice} if choice else {}
    if has_both and target.profile.announce_builtin:
        config["includeServerSideToolInvocations"] = True
    return config


_NOT_BOTH = "Offer one kind at a time, or use a newer model."


def _encode_choice(
    tools: OfferedTools, thinks: bool, target: Target[GeminiProfile]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    """Return ``functionCallingConfig``, whether the tools must be limited to those that it allows, and warnings."""
    mode = tools.choice
    if mode is None or not tools.functions:
        detail = "cannot be made to use a built-in tool; the choice was left to the model."
        return {}, False, (target_warning("tool_choice", target, detail),) if mode == "required" else ()
    if mode == "required" and not can_force(thinks, target):
        detail = "cannot be made to call a tool; the choice was left to the model."
        return {"mode": "AUTO"}, bool(tools.allowed), (target_warning("tool_choice", target, detail),)
    if not tools.allowed or mode == "none":
        return {"mode": MODES[mode]}, False, ()
    # AUTO accepts no names; VALIDATED is AUTO with names and enforced schemas.
    native = "ANY" if mode == "required" else "VALIDATED"
    return {"mode": native, "allowedFunctionNames": list(tools.allowed)}, False, ()


def _encode_function(name: str, description: str, parameters: JsonObject | None, fields: JsonObject) -> JsonObject:
    function: JsonObject = {"name": name, "description": description} if description else {"name": name}
    # Older models refuse an empty list of properties.
    if parameters and not {name for name, value in parameters.items() if value} <= {"type", "title"}:
        function["parametersJsonSchema"] = parameters
    return {**function, **fields}


def _encode_builtin(
    kind: str, settings: JsonObject, target: Target[GeminiProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    key = BUILTIN.get(kind, "")
    require_feature(bool(key), f"the built-in tool {kind!r}", target, f"It has {', '.join(sorted(BUILTIN))}.")
    if kind != "web_search":
        return {key: settings}, ()
    given = search_settings(settings, _SEARCH, target)
    require_feature(
        "allowed_domains" not in given, "a web search limited to domains", target, "Name them in the question."
    )
    blocked, can_exclude = given.get("blocked_domains"), target.profile.exclude_domains
    require_feature(can_exclude or not blocked, "a web search without some domains", target, "Vertex AI has one.")
    warnings = [
        LMWarning("web_search", f"{target.provider} has no place for {name}; it was left out.")
        for name in ("max_uses", "user_location")
        if name in given
    ]
    return {key: {"excludeDomains": blocked} if blocked else {}}, tuple(warnings)


_SEARCH = frozenset({"allowed_domains", "blocked_domains", "max_uses", "user_location"})
