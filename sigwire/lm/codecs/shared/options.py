"""Encode the options of a request into a body: sampling, limits, the output's form, extra body and headers.

place_options(options, table, target)   every option placed, dropped with a warning, or refused, by the wire's table
drop_options                            rows over that table for options that a model refuses
sampling_options_while_reasoning        rows for the sampling options of a model that reasons
requested_choices, repeat_warning       the option ``n`` on wires with one choice at a time
choose_output(wanted, modes, target)    structured output: the strictest form that host, model and schema allow
merge_extra_body, headers_for           ``extra_body`` and ``extra_headers``, merged last
require_feature(condition, feature, ..) refuse a feature before anything is sent
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.request import Request, ResponseFormat, check_prompt_cache
from sigwire.core.response import LMWarning
from sigwire.errors import InputError, UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.lm.codecs.shared.schema import compile_schema
from sigwire.lm.codecs.shared.untrusted import object_of

__all__ = [
    "NO_SAMPLING", "Drop", "Option", "OptionTable", "OutputForm", "Place", "Refuse", "Skip", "StructuredMode",
    "add_instruction", "choose_output", "drop_options", "headers_for", "merge_extra_body", "merge_objects",
    "place_options", "repeat_warning", "requested_choices", "require_feature", "sampling_options_while_reasoning",
    "schema_instruction", "set_path", "target_warning", "unsupported_feature",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """Set the option in the body at ``path`` ("generationConfig.maxOutputTokens"), converted if ``convert`` is set."""

    path: str
    convert: Callable[[JsonValue], JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop the option with a warning: the wire has no place for it, and the answer does not depend on it."""

    detail: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse the option: the wire has no place for its ``feature``, and the answer depends on it.

    Nothing is sent; ``instead`` ends the error's message. ``False`` and 0 are no request for the feature.
    """

    feature: str
    instead: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Skip the option: the codec encodes it, or it needs no encoding (automatic caching)."""


Option: TypeAlias = Place | Drop | Refuse | Skip
OptionTable: TypeAlias = Mapping[str, Option]
# ``cache`` is for the responses of sigwire; a codec without marks or keys for the provider's cache ignores ``prompt_cache``.
_COMMON = frozenset("cache extra_body extra_headers prompt_cache strict_history strict_window".split())


def place_options(
    options: Mapping[str, JsonValue], table: OptionTable, target: Target[WireProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Return the options as members of the body, by the wire's table, and the warnings. ``None`` means not given.

    Raises ``UnsupportedOption`` for an option without a row, ``UnsupportedFeature`` for one that its row refuses, and
    ``ConfigurationError`` for an unknown ``prompt_cache``. Rows for one model are put over the wire's table:
    ``{**OPTIONS, **drop_options(["stop"], "...")}``.
    """
    check_prompt_cache(options)
    body: JsonObject = {}
    warnings: list[LMWarning] = []
    for name, value in options.items():
        match table.get(name, Skip() if name in _COMMON else None):
            case _ if value is None:
                pass
            case None:
                raise UnsupportedOption(provider=target.provider, option=name, known=sorted(table))
            case Place(path, convert):
                set_path(body, path, convert(value) if convert else value)
            case Drop(detail):
                warnings.append(LMWarning(name, f"{target.label}: {detail}"))
            case Refuse(feature, instead):
                require_feature(not value, feature, target, instead)
            case Skip():
                pass
    return body, tuple(warnings)


def drop_options(names: Iterable[str], detail: str) -> OptionTable:
    """Return rows that drop these options with one warning text.

    >>> drop_options(["seed"], "there is no seed; the option was left out.")
    {'seed': Drop(detail='there is no seed; the option was left out.')}
    """
    return dict.fromkeys(names, Drop(detail))


def sampling_options_while_reasoning(names: Iterable[str]) -> OptionTable:
    """Return rows for the sampling options ``names`` of a model that refuses them while it reasons.

    A temperature is dropped. Log probabilities are refused, since the caller would miss them in the answer.

    >>> table = sampling_options_while_reasoning(["temperature", "logprobs"])
    >>> [type(option).__name__ for option in table.values()]
    ['Drop', 'Refuse']
    """
    return {name: _LOGPROBS.get(name, Drop(NO_SAMPLING)) for name in names}


NO_SAMPLING = "the model takes no sampling options while it reasons; it was left out."
_LOGPROBS: OptionTable = dict.fromkeys(
    ("logprobs", "top_logprobs"),
    Refuse(
        "log probabilities while it reasons",
        "Leave them out, set reasoning='off' if the model accepts that, or use a model that does not reason.",
    ),
)


def set_path(body: JsonObject, path: str, value: JsonValue) -> None:
    """Set ``value`` at a dotted path; missing objects on the path are added."""
    *parents, last = path.split(".")
    for parent in parents:
        body = cast(JsonObject, body.setdefault(parent, {}))
    body[last] = value


def merge_objects(body: JsonObject, extra: Mapping[str, JsonValue]) -> JsonObject:
    """Return ``body`` with ``extra`` over it: objects are merged, other values replaced. The arguments are not changed.

    >>> merge_objects({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}})
    {'a': {'b': 1, 'd': 3}, 'c': 2}
    """
    merged = dict(body)
    for name, value in extra.items():
        have = merged.get(name)
        merged[name] = merge_objects(have, value) if isinstance(have, dict) and isinstance(value, dict) else value
    return merged


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


def headers_for(request: Request, dialect: WireProfile) -> dict[str, str]:
    """Return the fixed headers of the profile with the caller's ``extra_headers`` over them."""
    extra = request.options.get("extra_headers")
    if extra is None:
        return dict(dialect.headers)
    if not isinstance(extra, dict):
        raise InputError(f"extra_headers must be an object of header names and values, not {extra!r:.80}.")
    return {**dialect.headers, **{name: str(value) for name, value in extra.items()}}


def require_feature(condition: bool, feature: str, target: Target[WireProfile], instead: str) -> None:
    """Raise ``UnsupportedFeature`` unless ``condition`` holds. ``instead``: a sentence on what to do."""
    if not condition:
        raise unsupported_feature(feature, target, instead)


def unsupported_feature(feature: str, target: Target[WireProfile], instead: str) -> UnsupportedFeature:
    """Return the error that ``require_feature`` raises."""
    return UnsupportedFeature(f"{target.label} has no place for {feature}. {instead}")


def target_warning(feature: str, target: Target[WireProfile], detail: str) -> LMWarning:
    """Return a warning whose detail starts with the target: ``openai/gpt-5-mini has no ...``."""
    return LMWarning(feature, f"{target.label} {detail}")


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


# --- structured output

StructuredMode: TypeAlias = Literal["json_schema", "json_object"]
"""A form that a host enforces; also the name of the capability of a model."""


class OutputForm(NamedTuple):
    """The form in which output is requested: enforced (``mode``), or by an instruction in the prompt.

    ``schema`` is compiled for the wire, ``name`` fits every wire. ``instruction`` is ``""`` if none is needed.
    """

    mode: StructuredMode | None = None
    schema: JsonObject | None = None
    name: str = ""
    instruction: str = ""
    warnings: tuple[LMWarning, ...] = ()


_ANY_OUTPUT = OutputForm()


def choose_output(
    wanted: ResponseFormat | None, modes: Collection[StructuredMode], has_tools: bool, target: Target[WireProfile]
) -> OutputForm:
    """Return the form for a response format. ``modes`` are those of the host; tools exclude them on some models.

    Raises ``UnsupportedFeature`` if the format is required and cannot be enforced, and for a root that the host refuses.
    """
    if wanted is None:
        return _ANY_OUTPUT
    is_blocked = has_tools and not target.capabilities.tools_with_json_schema
    able: list[StructuredMode] = [mode for mode in modes if not is_blocked and getattr(target.capabilities, mode)]
    if wanted.schema is None:
        feature = "JSON output without a schema"
        if "json_object" in able:
            return OutputForm("json_object")
    else:
        feature = "structured output by schema"
        if "json_schema" in able:
            form = _compile_output(wanted, wanted.schema, target)
            return form if isinstance(form, OutputForm) else _replace_output(wanted, able, form)
    return _replace_output(wanted, able, f"{target.label} has no {feature}{' beside tools' * is_blocked} here.")


def _compile_output(wanted: ResponseFormat, schema: JsonObject, target: Target[WireProfile]) -> OutputForm | str:
    """Return the enforced form, or the reason why the host does not take the schema."""
    rules = target.profile.output_schema
    try:
        compiled, lost = compile_schema(schema, rules, f"the output {wanted.name!r}", target.label)
    except UnsupportedFeature as refusal:
        if rules.root != "any":
            raise
        return str(refusal)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", wanted.name)[:64] or "response"
    return OutputForm("json_schema", compiled, name, "", lost)


def _replace_output(wanted: ResponseFormat, modes: Collection[StructuredMode], reason: str) -> OutputForm:
    """Return an instruction with the whole schema; a weaker schema would admit answers that do not fit it."""
    if wanted.required:
        raise UnsupportedFeature(f"{reason} The request requires it, so nothing was sent.")
    native: StructuredMode | None = "json_object" if "json_object" in modes else None
    sent = "native_json" if native else "prompt"
    warning = LMWarning("response_format", f"{reason} An instruction requests it instead.", sent)
    return OutputForm(native, instruction=schema_instruction(wanted.schema), warnings=(warning,))


def schema_instruction(schema: JsonObject | None) -> str:
    """Return the instruction that replaces structured output on a wire without it.

    >>> schema_instruction(None)
    'Reply with only a JSON object.'
    """
    if schema is None:
        return "Reply with only a JSON object."
    return f"Reply with only a JSON value that matches this JSON Schema:\n{dumps(schema)}"


def add_instruction(messages: list[JsonObject], text: str) -> list[JsonObject]:
    """Return encoded messages with an instruction in the first system message, or in a new one."""
    if not text:
        return messages
    if messages and messages[0]["role"] == "system" and isinstance(content := messages[0]["content"], str):
        return [{**messages[0], "content": f"{content}\n\n{text}" if content else text}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]
