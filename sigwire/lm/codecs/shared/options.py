"""Encode the options of a request into a body: sampling and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import check_prompt_cache
from sigwire.core.response import LMWarning
from sigwire.errors import UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.shared.interface import Target, WireProfile

__all__ = [
    "Drop", "Option", "OptionTable", "Place", "Refuse", "Skip", "drop_options", "fit_max_tokens", "merge_objects",
    "place_options", "require_feature", "sampling_options_while_reasoning", "set_path", "target_warning",
    "unsupported_feature", "usable_stops",
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
    options: Mapping[str, JsonValue],
    table: Mapping[str, Option | None],
    target: Target[WireProfile],
    *,
    sampling: Iterable[str] = (),
    thinks: bool = False,
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Return the options as members of the body, by the wire's table, and the warnings. ``None`` means not given.

    The rules of the model and its host hold on every wire: ``sampling``: the wire's options of sampling; ``thinks``:
    whether the model will reason. What the model does not take is dropped or refused, a value above its limit is lowered.

    Raises ``UnsupportedOption`` for an option without a row (or with ``None``), ``UnsupportedFeature`` for one that its row
    refuses, and ``ConfigurationError`` for an unknown ``prompt_cache``.
    """
    if not options:
        return {}, ()
    check_prompt_cache(options)
    body: JsonObject = {}
    warnings: list[LMWarning] = []
    given = {**table, **_rows_of_model(options, sampling, thinks, target)}
    rows: OptionTable = {name: row for name, row in given.items() if row is not None}
    options = _fitted_values(options, rows, target, warnings)
    for name, value in options.items():
        match rows.get(name, Skip() if name in _COMMON else None):
            case _ if value is None:
                pass
            case None:
                raise UnsupportedOption(provider=target.provider, option=name, known=sorted(rows))
            case Place(path, convert):
                set_path(body, path, convert(value) if convert else value)
            case Drop(detail):
                warnings.append(LMWarning(name, f"{target.label}: {detail}"))
            case Refuse(feature, instead):
                require_feature(not value, feature, target, instead)
            case Skip():
                pass
    return body, tuple(warnings)


def _rows_of_model(
    options: Mapping[str, JsonValue], sampling: Iterable[str], thinks: bool, target: Target[WireProfile]
) -> OptionTable:
    """Return the rows for what the model, or its host, does not take."""
    facts, profile = target.facts, target.profile
    rows: dict[str, Option] = {}
    if options.get("temperature") is not None and (profile.temperature_or_top_p or facts.temperature_or_top_p):
        rows["top_p"] = Drop("it takes temperature or top_p, not both; top_p was left out.")
    if facts.sampling == "never":
        rows |= {name: _LOGPROBS.get(name, Drop(_NEVER)) for name in sampling}
    elif facts.sampling == "unless_reasoning" and thinks:
        rows |= sampling_options_while_reasoning(sampling)
    if not facts.stop:
        rows |= drop_options(["stop"], "the model takes no stop sequences; they were left out.")
    return rows


_NEVER = "the model takes no sampling options; it was left out."


def _fitted_values(
    options: Mapping[str, JsonValue], table: OptionTable, target: Target[WireProfile], warnings: list[LMWarning]
) -> Mapping[str, JsonValue]:
    """Return the options with values within the limits of the model and its host. Options that are not placed stay."""
    placed = {name: value for name, value in options.items() if isinstance(table.get(name), Place)}
    changed: JsonObject = {}
    most, heat = target.temperature, placed.get("temperature")
    if most is not None and isinstance(heat, int | float) and heat > most:
        changed["temperature"] = most
        warnings.append(
            target_warning("temperature", target, f"takes at most {most:g}, not {heat:g}; {most:g} was sent.")
        )
    if "max_tokens" in placed and (limit := fit_max_tokens(options, target, warnings)) != placed["max_tokens"]:
        changed["max_tokens"] = limit
    if placed.get("stop") is not None and (stops := usable_stops(options, target, warnings)) != placed["stop"]:
        changed["stop"] = stops or None
    return {**options, **changed} if changed else options


def fit_max_tokens(
    options: Mapping[str, JsonValue], target: Target[WireProfile], warnings: list[LMWarning]
) -> JsonValue:
    """Return the option ``max_tokens``, the model's limit if that is smaller; ``None`` if not given."""
    given, most = options.get("max_tokens"), target.max_output
    if most is None or not isinstance(given, int) or isinstance(given, bool) or given <= most:
        return given
    detail = f"writes at most {most} tokens in one answer, not {given}; {most} was sent."
    warnings.append(target_warning("max_tokens", target, detail))
    return most


def usable_stops(options: Mapping[str, JsonValue], target: Target[WireProfile], warnings: list[LMWarning]) -> JsonValue:
    """Return the option ``stop`` without sequences of white space, if the model or its host refuses those."""
    stop = options.get("stop")
    if target.facts.blank_stops and target.profile.blank_stops:
        return stop
    given: list[JsonValue] = stop if isinstance(stop, list) else [stop]
    usable = [text for text in given if not (isinstance(text, str) and not text.strip())]
    if len(usable) == len(given):
        return stop
    warnings.append(target_warning("stop", target, "takes no stop sequence of white space only; it was left out."))
    return usable


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
    return {name: _LOGPROBS.get(name, Drop(_NO_SAMPLING)) for name in names}


_NO_SAMPLING = "the model takes no sampling options while it reasons; it was left out."
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
