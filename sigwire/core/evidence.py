"""Evidence: the distribution behind an output, and the rule that decides its value. Pure: no text, no model, no request.

    Question       a deciding output: path, kind, values        DecisionRule   threshold, weights, cuts, least
    Evidence       its probabilities, and what was decided      decide         value and confidence by a rule

A choice carries evidence as JSON (``Choice.evidence``): by path ``{"values": [...], "probabilities": [...]}``, with "answered"
if the backend itself answered and "confidence" if it rates its answer, or ``{"refused": true}``. ``Evidence.of`` makes the
typed value of a question from it.
Labels: a text stands for itself, any other value for its JSON text (``true``, ``null``, ``3``).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard, cast

from sigwire.core.json import JsonObject, JsonValue, Value, decoding, dumps
from sigwire.core.narrow import is_mapping, is_object
from sigwire.core.record import UNSET, to_plain
from sigwire.errors import ConfigurationError, InputError
from sigwire.keywords import ChecksKeywords

__all__ = [
    "DEFAULT_RULE", "DecisionRule", "Evidence", "EvidenceKind", "EvidenceReading", "EvidenceSource", "Question", "decide",
    "index_of", "label_of", "least_confidence", "normalized", "read_evidence", "share_of_values",
]  # fmt: skip

EvidenceSource: TypeAlias = Literal["measured", "logprob", "sampled", "stated"]
EvidenceKind: TypeAlias = Literal["bool", "choice", "score"]


def label_of(value: object) -> str:
    """Return the text that stands for a value: a text itself, else its JSON; of a member of an enum that of its value.

    >>> label_of("spam"), label_of(True), label_of(None), label_of(3)
    ('spam', 'true', 'null', '3')
    """
    plain: object = value.value if isinstance(value, Enum) else value
    return plain if isinstance(plain, str) else dumps(to_plain(plain))


def index_of(values: Sequence[object], given: object) -> int | None:
    """Return the position of the equal value of one type, else of the value with the label of ``given``; else ``None``.

    >>> index_of((1, "1", True), True), index_of(("a", None), "null"), index_of(("a",), "b")
    (2, 1, None)
    """
    for position, value in enumerate(values):
        if type(value) is type(given) and value == given:
            return position
    try:
        label = label_of(given)
    except ValueError:
        return None
    return next((position for position, value in enumerate(values) if label_of(value) == label), None)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong(what: str, next_step: str = "Correct the rule.") -> ConfigurationError:
    return ConfigurationError(f"{what} (making a decision rule). {next_step}")


@dataclass(frozen=True, slots=True)
class Question:
    """A deciding output of a signature, or one member of such a list. ``values``: (True, False), members, or level numbers.

    ``path``: "urgent", "ticket.urgent", of a member "tags[billing]". ``is_mean``: the value of a score is its mean level.

    >>> Question("urgent", "bool", (True, False)).labels
    ('true', 'false')
    """

    path: str
    kind: EvidenceKind
    values: tuple[Any, ...]
    is_mean: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The texts that stand for the values."""
        return tuple(map(label_of, self.values))


@dataclass(frozen=True, slots=True)
class DecisionRule(Value, ChecksKeywords):
    """How the value of an output is decided from its evidence. The defaults take the most probable value.

    ``threshold``: of a bool, the least p(True) of ``True``. ``weights``: of a choice, factors of the probabilities by value or
    label (missing: 1). ``cuts``: of a score that is an ``int``, ascending mean levels at which the next level begins (by
    default k + 0.5). ``least``: the confidence below which the output abstains, as it does without evidence.

    Raises ``ConfigurationError`` for numbers that no rule can have.

    >>> DecisionRule(threshold=0.8, least=0.6).to_json()
    {'threshold': 0.8, 'least': 0.6}
    """

    threshold: float = 0.5
    weights: Mapping[Any, float] = field(default_factory=dict[Any, float])
    cuts: tuple[float, ...] = ()
    least: float = 0.0

    def __post_init__(self) -> None:
        for name in ("threshold", "least"):
            number: object = getattr(self, name)
            if not _is_number(number) or not 0 <= number <= 1:
                raise _wrong(f"{name} is a number in 0..1, not {number!r}")
        if not is_mapping(self.weights):
            raise _wrong(f"weights are factors by value, not {type(self.weights).__name__}")
        for value, weight in cast("Mapping[object, object]", self.weights).items():
            if not _is_number(weight) or weight < 0 or not math.isfinite(weight):
                raise _wrong(f"the weight of {value!r} is a finite number from 0, not {weight!r}")
        if not all(_is_number(each) and math.isfinite(each) for each in self.cuts) or any(
            b <= a for a, b in zip(self.cuts, self.cuts[1:], strict=False)
        ):
            raise _wrong(f"cuts are ascending numbers, not {list(self.cuts)!r}")
        object.__setattr__(self, "weights", dict(self.weights))
        object.__setattr__(self, "cuts", tuple(self.cuts))

    def __hash__(self) -> int:
        return hash((self.threshold, tuple(self.weights.items()), self.cuts, self.least))

    def check(self, question: Question) -> None:
        """Check that the rule fits an output. Raises ``ConfigurationError``, naming the path."""
        kind, where = question.kind, f"decisions[{question.path!r}]"
        if self.threshold != 0.5 and kind != "bool":
            raise _wrong(f"{where}: a threshold is of a bool; this is a {kind}", _REMEDY[kind])
        if self.cuts and kind != "score":
            raise _wrong(f"{where}: cuts are of a score; this is a {kind}", _REMEDY[kind])
        if self.weights and kind != "choice":
            raise _wrong(f"{where}: weights are of a choice; this is a {kind}", _REMEDY[kind])
        if self.cuts and len(self.cuts) != len(question.values) - 1:
            raise _wrong(
                f"{where}: {len(question.values)} levels have {len(question.values) - 1} cuts, not {len(self.cuts)}"
            )
        if not self.weights:
            return
        for value in self.weights:
            if index_of(question.values, value) is None:
                raise _wrong(f"{where}: {value!r} is no value", f"The values are {', '.join(question.labels)}.")
        if not any(self.weights_of(question.values)):
            raise _wrong(f"{where}: all weights are 0", "Give one value a weight.")

    def weights_of(self, values: Sequence[object]) -> list[float]:
        """Return the weight of each value."""
        found = [1.0] * len(values)
        for value, weight in self.weights.items():
            if (position := index_of(values, value)) is not None:
                found[position] = weight
        return found

    def to_json(self) -> JsonObject:
        """Return the numbers that differ from the defaults. Weights are by label, as a list if a key is no text."""
        data = Value.to_json(self)
        if self.weights:
            keys: list[JsonValue] = [to_plain(key.value if isinstance(key, Enum) else key) for key in self.weights]
            pairs: list[JsonValue] = [[key, weight] for key, weight in zip(keys, self.weights.values(), strict=True)]
            texts = {
                key: weight for key, weight in zip(keys, self.weights.values(), strict=True) if isinstance(key, str)
            }
            data["weights"] = {**texts} if len(texts) == len(pairs) else pairs
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> DecisionRule:
        """Decode the result of ``to_json``. Raises ``StateError`` for other data."""
        with decoding("DecisionRule", data):
            known: dict[str, Any] = dict(data)
            if unknown := known.keys() - {"threshold", "weights", "cuts", "least"}:
                raise ValueError(f"it has no {min(unknown)!r}")
            known["weights"] = dict(known.get("weights", ()))
            known["cuts"] = tuple(known.get("cuts", ()))
            try:
                return cls(**known)
            except ConfigurationError as error:
                raise ValueError(str(error)) from error


_REMEDY = {
    "bool": "Set threshold=.",
    "choice": "Set weights=, factors by value.",
    "score": "Set cuts= for an int.",
}
DEFAULT_RULE = DecisionRule()


@dataclass(frozen=True, slots=True)
class Evidence(Value, ChecksKeywords):
    """The distribution of one output, or of one member of a list, and the value that the rule decided.

    ``source``: "measured" (the backend answers with distributions), "logprob" (of the tokens of its text), "sampled"
    (frequencies of several answers) or "stated" (written by the model). ``values`` and ``probabilities``: (True, False), the
    members as declared, ``None`` last, or level numbers from 0; their sum is 1. ``value``: decided, ``None`` if the output
    abstained; ``confidence``: its probability after the weights of the rule. ``answered``: the backend's own answer, ``UNSET``
    if it answers with numbers only. ``own_confidence``: that of the backend by its own formula, if it
    gives one. ``coverage``: the share of the probability that was read by label; ``samples``: how many.

    >>> evidence = Evidence.of(Question("urgent", "bool", (True, False)), (0.7, 0.3), "measured")
    >>> evidence.value, evidence.p(True), evidence.confidence
    (True, 0.7, 0.7)
    """

    source: EvidenceSource
    kind: EvidenceKind = field()  # type: ignore[misc]  # of values in unions; no union has evidence
    values: tuple[Any, ...] = field()  # so that tools which read the source see no default before it
    probabilities: tuple[float, ...] = field()
    value: Any = None
    confidence: float = 0.0
    answered: Any = UNSET
    coverage: float = 1.0
    samples: int | None = None
    own_confidence: float | None = None

    @classmethod
    def of(
        cls,
        question: Question,
        probabilities: Sequence[float],
        source: EvidenceSource,
        rule: DecisionRule = DEFAULT_RULE,
        **rest: Any,
    ) -> Evidence:
        """Return the evidence of a question, decided by a rule. ``probabilities`` sum to 1, in the order of its values."""
        made = cls(source, question.kind, question.values, tuple(probabilities), **rest)
        return made.decided(rule, is_mean=question.is_mean)

    def decided(self, rule: DecisionRule, *, is_mean: bool = False) -> Evidence:
        """Return the evidence with the value and the confidence by a rule. Below ``least`` the value is ``None``."""
        value, confidence = decide(
            self.kind, self.values, self.probabilities, rule, answered=self.answered, is_mean=is_mean
        )
        return replace(self, value=None if confidence < rule.least else value, confidence=confidence)

    def p(self, value: object) -> float:
        """Return the probability of a value, given as itself or by its label. Raises ``InputError`` for no value of it."""
        position = index_of(self.values, value)
        if position is None:
            known = ", ".join(map(repr, self.values))
            raise InputError(f"{value!r} is no value of this evidence (reading evidence). Its values are {known}.")
        return self.probabilities[position]

    @property
    def expected(self) -> float:
        """The mean level of a score, from 0. Raises ``InputError`` for evidence of another kind."""
        if self.kind != "score":
            raise InputError(f"A {self.kind} has no mean level (reading evidence). Read p(value).")
        return _mean(self.probabilities)

    def to_json(self) -> JsonObject:
        """Return the evidence as JSON; members of enums by their values."""
        data = Value.to_json(self)
        data.pop("type")  # of the values in unions
        data["kind"] = self.kind
        data["values"] = [_plain(value) for value in self.values]
        for name in ("value", "answered"):
            if name in data:
                data[name] = _plain(getattr(self, name))
        return data

    def typed(self, question: Question) -> Evidence:
        """Return the evidence of a file with the values of the declared type. Raises ``InputError`` if they do not fit."""
        positions = [index_of(question.values, value) for value in self.values]
        if question.kind != self.kind or positions != list(range(len(question.values))):
            raise InputError(f"Evidence of other values than {question.path!r} has (reading evidence). Ask again.")
        return replace(
            self,
            values=question.values,
            value=_typed(question.values, self.value, self.kind),
            answered=_typed(question.values, self.answered, self.kind),
        )


def _plain(value: object) -> JsonValue:
    plain: JsonValue = to_plain(value.value if isinstance(value, Enum) else value)
    return plain


def _typed(values: Sequence[Any], given: Any, kind: EvidenceKind) -> Any:
    if kind == "score" or given is UNSET:
        return given
    position = index_of(values, given)
    return given if position is None else values[position]


def decide(
    kind: EvidenceKind,
    values: Sequence[Any],
    probabilities: Sequence[float],
    rule: DecisionRule = DEFAULT_RULE,
    *,
    answered: object = UNSET,
    is_mean: bool = False,
) -> tuple[Any, float]:
    """Return the value that a rule decides, and its confidence: its probability after the weights of the rule.

    The confidence of a score is the probability of the level nearest to the value. Ties of a choice: ``answered``, then order.

    >>> decide("bool", (True, False), (0.7, 0.3), DecisionRule(threshold=0.9))
    (False, 0.7941176470588237)
    >>> decide("choice", ("a", "b"), (0.6, 0.4), DecisionRule(weights={"b": 2}))
    ('b', 0.5714285714285715)
    >>> decide("score", (0, 1, 2), (0.5, 0.25, 0.25))
    (1, 0.25)
    """
    if kind == "bool":
        return _decide_bool(probabilities, rule.threshold)
    if kind == "score":
        return _decide_level(values, probabilities, rule.cuts, is_mean)
    weights = rule.weights_of(values) if rule.weights else None
    weighted = [p * w for p, w in zip(probabilities, weights, strict=True)] if weights else probabilities
    total = sum(weighted)
    # If the weights leave no probability, a value of weight 0 is no candidate.
    ranks = [float(weight > 0) for weight in weights] if weights and not total else weighted
    most = max(ranks)
    at = ranks.index(most)
    if answered is not UNSET and ranks.count(most) > 1:
        preferred = index_of(values, answered)
        at = preferred if preferred is not None and ranks[preferred] == most else at
    return values[at], min(weighted[at] / total, 1.0) if total else 0.0


def _decide_bool(probabilities: Sequence[float], threshold: float) -> tuple[bool, float]:
    true, false = probabilities
    value = true >= threshold
    if threshold != 0.5:
        share, other = true * (1 - threshold), false * threshold
        if not share + other:  # the threshold is 0 and p(True) is 0, or both are 1
            return value, 1.0
        true, false = share / (share + other), other / (share + other)
    return value, min(true if value else false, 1.0)


def _decide_level(
    values: Sequence[Any], probabilities: Sequence[float], cuts: tuple[float, ...], is_mean: bool
) -> tuple[Any, float]:
    mean = _mean(probabilities)
    if is_mean:
        nearest = min(int(mean + 0.5), len(values) - 1)
        return mean, min(probabilities[nearest], 1.0)
    at = bisect_right(cuts or [k + 0.5 for k in range(len(values) - 1)], mean)
    return values[at], min(probabilities[at], 1.0)


def _mean(probabilities: Sequence[float]) -> float:
    return math.fsum(level * p for level, p in enumerate(probabilities))


def least_confidence(confidences: Mapping[str, float], paths: Iterable[str]) -> tuple[str, float]:
    """Return the path with the least confidence, and this confidence. One that lacks its evidence has the confidence 0.

    >>> least_confidence({"urgent": 0.9, "queue": 0.7}, ["urgent", "queue"]), least_confidence({"urgent": 0.9}, ["queue"])
    (('queue', 0.7), ('queue', 0.0))
    """
    path = min(paths, key=lambda each: confidences.get(each, 0.0))
    return path, confidences.get(path, 0.0)


def share_of_values(given: Iterable[object], values: Sequence[object]) -> tuple[float, ...]:
    """Return the frequency of each value in ``given``, in the order of ``values``; without any, all are 0.

    >>> share_of_values(["a", "b", "a", "a"], ("a", "b", "c"))
    (0.75, 0.25, 0.0)
    """
    counts = [0] * len(values)
    for each in given:
        if (position := index_of(values, each)) is not None:
            counts[position] += 1
    total = sum(counts)
    return tuple(each / total if total else 0.0 for each in counts)


def normalized(masses: Sequence[float]) -> tuple[float, ...] | None:
    """Return masses as probabilities of sum 1; ``None`` if one is negative or not finite, or if all are 0.

    >>> normalized((1.0, 3.0)), normalized((0.0, 0.0)), normalized((-1.0, 2.0))
    ((0.25, 0.75), None, None)
    """
    try:
        total = math.fsum(masses) if masses and min(masses) >= 0 else 0.0
    except OverflowError:
        return None
    return tuple([mass / total for mass in masses]) if 0 < total < math.inf else None


class EvidenceReading(NamedTuple):
    """The probabilities of a question, the backend's own answer (else ``UNSET``) and its own confidence."""

    probabilities: tuple[float, ...]
    answered: object = UNSET
    confidence: float | None = None


def read_evidence(data: object, question: Question) -> EvidenceReading | None:
    """Return the numbers of a question in its JSON of ``Choice.evidence``.

    ``None`` if the question was refused, or if the JSON does not fit the question.
    """
    if (
        not is_object(data)
        or not isinstance(data.get("values"), list)
        or not isinstance(data.get("probabilities"), list)
    ):
        return None
    masses = [0.0] * len(question.values)
    for value, mass in zip(data["values"], data["probabilities"], strict=False):
        position = index_of(question.values, value)
        if position is None or not _is_number(mass):
            return None
        masses[position] += mass
    found = normalized(masses)
    if found is None:
        return None
    answered = data.get("answered", UNSET)
    position = None if answered is UNSET else index_of(question.values, answered)
    confidence = data.get("confidence")
    return EvidenceReading(
        found,
        UNSET if position is None else question.values[position],
        confidence if _is_number(confidence) else None,
    )
