"""What the caller asked for beside the conversation, placed into a body: options, limits, the output's form, extras.

place_options(options, table, target)   every option placed, dropped with a warning, or refused, by the wire's table
drop_options / without_sampling         rows put over that table for what a model does not take
wanted_choices / repeat_warning         the option ``n`` on wires that give one choice at a time
in_words(schema)                        structured output for those that have none: the instruction
finish / headers_for                    ``extra_body`` and ``extra_headers``, merged last
supports(condition, feature, ...)       the refusal, before anything is sent
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.errors import InputError, UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.shared.interface import Target, WireProfile

__all__ = [
    "Drop",
    "Option",
    "OptionTable",
    "Place",
    "Refuse",
    "Skip",
    "drop_options",
    "headers_for",
    "merge_extra_body",
    "merge_objects",
    "place_options",
    "repeat_warning",
    "requested_choices",
    "require_feature",
    "sampling_options_while_reasoning",
    "schema_instruction",
    "set_path",
    "unsupported_feature",
]


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
class Refuse:
    """There is no place for what the option asks for (``feature``), and the answer would be another one without it.

    Nothing is sent, and the error says what to do ``instead``. ``False`` and 0 ask for nothing.
    """

    feature: str
    instead: str


@dataclass(frozen=True, slots=True)
class Skip:
    """The codec encodes the option itself, or it needs nothing here (automatic caching)."""


Option: TypeAlias = Place | Drop | Refuse | Skip
OptionTable: TypeAlias = Mapping[str, Option]
_COMMON: OptionTable = {"extra_body": Skip(), "extra_headers": Skip()}


def place_options(
    options: Mapping[str, JsonValue], table: OptionTable, target: Target[WireProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """The body's part of the options, by the wire's table. An option that is ``None`` was not given.

    Raises ``UnsupportedOption`` for one that the table does not name, ``UnsupportedFeature`` for one that it refuses. A wire's
    table is a constant; what depends on the model is put over it: ``{**OPTIONS, **drop_options(["stop"], "...")}``.
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
                set_path(body, path, convert(value) if convert else value)
            case Drop(detail):
                warnings.append(LMWarning(name, f"{target.label}: {detail}"))
            case Refuse(feature, instead):
                require_feature(not value, feature, target, instead)
            case Skip():
                pass
    return body, tuple(warnings)


def drop_options(names: Iterable[str], detail: str) -> OptionTable:
    """A table that drops these options for one reason.

    >>> drop_options(["seed"], "there is no seed; the option was left out.")
    {'seed': Drop(detail='there is no seed; the option was left out.')}
    """
    return dict.fromkeys(names, Drop(detail))


def sampling_options_while_reasoning(names: Iterable[str]) -> OptionTable:
    """The rows of a model that takes no sampling options while it reasons; these are the wire's names for them.

    An answer can do without a temperature. One without the log probabilities that were asked for is another answer.

    >>> table = sampling_options_while_reasoning(["temperature", "logprobs"])
    >>> [type(option).__name__ for option in table.values()]
    ['Drop', 'Refuse']
    """
    return {name: _LOGPROBS.get(name, _NO_SAMPLING) for name in names}


_NO_SAMPLING = Drop("a model that reasons takes no sampling options; it was left out.")
_LOGPROBS: OptionTable = dict.fromkeys(
    ("logprobs", "top_logprobs"),
    Refuse(
        "log probabilities while it reasons",
        "Leave them out, ask with reasoning='off' where the model takes that, or use a model that does not reason.",
    ),
)


def set_path(body: JsonObject, path: str, value: JsonValue) -> None:
    """Set ``value`` at a dotted path, making the objects on the way."""
    *parents, last = path.split(".")
    for parent in parents:
        body = cast(JsonObject, body.setdefault(parent, {}))
    body[last] = value


def merge_objects(body: JsonObject, extra: Mapping[str, JsonValue]) -> JsonObject:
    """``extra`` over ``body``: objects are merged, everything else is replaced. Neither is changed.

    >>> merge_objects({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}})
    {'a': {'b': 1, 'd': 3}, 'c': 2}
    """
    merged = dict(body)
    for name, value in extra.items():
        have = merged.get(name)
        merged[name] = merge_objects(have, value) if isinstance(have, dict) and isinstance(value, dict) else value
    return merged


def merge_extra_body(body: JsonObject, request: Request) -> JsonObject:
    """The caller's ``extra_body`` merged last, so that it can correct anything.

    Raises ``InputError`` if it is no object, or would have the answer come in another way than it is going to be read.
    """
    extra = request.options.get("extra_body")
    if extra is None:
        return body
    if not isinstance(extra, dict):
        raise InputError(f"extra_body must be an object that is merged into the request, not {extra!r:.80}.")
    if (stream := extra.get("stream")) is not None and stream != body.get("stream", False):
        raise InputError(
            f"extra_body says stream={stream!r}, which is not how the answer is going to be read (encoding the request). "
            "Leave it out: stream and astream ask for an answer in pieces, every other call for a whole one."
        )
    return merge_objects(body, extra)


def headers_for(request: Request, dialect: WireProfile) -> dict[str, str]:
    """The dialect's fixed headers and the caller's ``extra_headers``."""
    extra = request.options.get("extra_headers")
    if extra is None:
        return dict(dialect.headers)
    if not isinstance(extra, dict):
        raise InputError(f"extra_headers must be an object of header names and values, not {extra!r:.80}.")
    return {**dialect.headers, **{name: str(value) for name, value in extra.items()}}


def require_feature(condition: bool, feature: str, target: Target[WireProfile], instead: str) -> None:
    """Refuse a feature before anything is sent: ``supports(False, "audio input", target, "Transcribe it first.")``."""
    if not condition:
        raise unsupported_feature(feature, target, instead)


def unsupported_feature(feature: str, target: Target[WireProfile], instead: str) -> UnsupportedFeature:
    """What ``supports`` raises."""
    return UnsupportedFeature(f"{target.label} has no place for {feature}. {instead}")


def requested_choices(request: Request) -> int:
    """How many answers the option ``n`` asks for.

    >>> requested_choices(Request(options={"n": 3})), requested_choices(Request())
    (3, 1)
    """
    n = request.options.get("n")
    return n if isinstance(n, int) and n > 1 else 1


def repeat_warning(request: Request, target: Target[WireProfile]) -> tuple[LMWarning, ...]:
    """That the request is sent several times, on a wire that gives one choice at a time."""
    n = requested_choices(request)
    if n == 1:
        return ()
    return (LMWarning("n", f"{target.provider} gives one choice at a time; the request is sent {n} times."),)


def schema_instruction(schema: JsonObject | None) -> str:
    """The instruction that stands in for structured output by schema.

    >>> schema_instruction(None)
    'Reply with only a JSON object.'
    """
    if schema is None:
        return "Reply with only a JSON object."
    return f"Reply with only a JSON value that matches this JSON Schema:\n{dumps(schema)}"
