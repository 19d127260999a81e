"""``Noul``, ``Choice`` and ``Score``: values of outputs that hold their evidence. Each with criteria is a class of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self, cast, get_args

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, create_model, model_serializer
from pydantic.json_schema import SkipJsonSchema

from sigwire.core.evidence import DecisionRule, Evidence, EvidenceKind, label_of
from sigwire.dspy.types import Type
from sigwire.errors import SignatureError
from sigwire.signatures.criteria import Criteria, criteria_of

__all__ = ["Choice", "Noul", "Probability", "Score", "asked_type", "dspy_label", "json_text"]

Probability = Annotated[float, Field(ge=0, le=1)]
_JSON: TypeAdapter[Any] = TypeAdapter(JsonValue)


def dspy_label(value: object) -> str:
    """Return DSPy's text for a value of a choice: ``"True"`` and ``"None"`` for those of Python.

    >>> dspy_label(None), dspy_label(2), dspy_label("billing")
    ('None', '2', 'billing')
    """
    return str(value)


def json_text(what: str, given: object) -> str:
    """Return a text, object, list or ``None`` as JSON. Raises ``SignatureError`` for anything else."""
    try:
        if not isinstance(given, str | dict | list | None):
            raise ValueError(f"it is a {type(given).__name__}")
        _JSON.validate_python(given, strict=True)
        return json.dumps(given, allow_nan=False, ensure_ascii=False)
    except ValueError as error:
        raise SignatureError(
            f"{what} is a text, an object, a list or null in JSON: {str(error).splitlines()[0]} (reading criteria). Correct it."
        ) from error


def asked_type(kind: EvidenceKind, values: Sequence[Any], criteria: Any, is_mean: bool = True) -> Any:
    """Return the type that is asked for a decision, with DSPy's criteria as criteria of the core.

    >>> asked_type("score", (0, 1), ["bad", {"examples": ["great"]}]).__metadata__
    (Criteria('bad', '{"examples": ["great"]}'),)
    """
    if kind == "score":
        texts = [_text(each) for each in criteria]
        levels: Any = (
            texts
            if len(set(texts)) == len(texts) and all(map(str.strip, texts))
            else [(str(at), text) for at, text in enumerate(texts)]
        )
        return Annotated[float if is_mean else int, Criteria(*levels)]
    bare: Any = bool if kind == "bool" else Literal[tuple(values)]
    labels = {"true": True, "false": False} if kind == "bool" else {dspy_label(value): value for value in values}
    described_by: dict[str, Any] = dict(criteria or {})
    described = {label_of(labels[label]): _text(each) for label, each in described_by.items() if each}
    return Annotated[bare, Criteria(described)] if described else bare


def _text(description: Any) -> str:
    return description if isinstance(description, str) else json.dumps(description, ensure_ascii=False)


class _Decision(Type):
    model_config = ConfigDict(extra="forbid")
    decided_type: ClassVar[Any] = None
    _criteria: ClassVar[str] = "null"

    confidence: Probability

    @classmethod
    def criteria(cls) -> Any:
        """Return the criteria of the class, a copy; ``None`` without any."""
        return json.loads(cls._criteria)

    @classmethod
    def description(cls) -> str:
        """Return the description of the type for a model."""
        return f"A decision. Criteria: {cls._criteria}." if cls.criteria() else "A decision."

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(source)  # as metadata of a bool or a Literal the class gives its criteria only

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
        if core_schema["type"] not in ("model", "definition-ref", "definitions"):
            found = criteria_of(getattr(cls.decided_type, "__metadata__", ()))
            return found[0].__get_pydantic_json_schema__(core_schema, handler) if found else handler(core_schema)
        return {**handler(core_schema), "description": cls.description()}

    @model_serializer(mode="wrap")
    def _written(self, handler: Any) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None or name == "value"}

    def __reduce__(self) -> Any:
        base = next(each for each in (Noul, Choice, Score) if isinstance(self, each))
        values = get_args(type(self).model_fields["value"].annotation) if base is Choice else ()
        return _remade, (base, self._criteria, _typed(values), self.model_dump())


class Noul(_Decision):
    """A bool with its confidence, and p(True) as ``probability``.

    ``Noul[(True, "blocked"), (False, "usable")]`` describes one or both values; ``Annotated[bool, Noul[...]]`` is a native
    bool with these criteria. ``confidence`` is DSPy's: the distance of p(True) from the threshold, as a share of the greatest.

    >>> Noul[(True, "blocked")](value=True, confidence=0.5).model_dump()
    {'confidence': 0.5, 'value': True}
    """

    decided_type: ClassVar[Any] = bool
    value: bool = Field(strict=True)
    probability: SkipJsonSchema[Probability | None] = None

    def __class_getitem__(cls, options: Any) -> Any:
        pairs = _pairs(options)
        if any(type(value) is not bool for value, _ in pairs) or len({value for value, _ in pairs}) < len(pairs):
            raise SignatureError("Noul has criteria of True and False, each once (making a type). Correct the pairs.")
        described = [
            f'"{label_of(value)}": {json_text("A criterion", text)}' for value, text in sorted(pairs, reverse=True)
        ]
        return _configured(Noul, f"{{{', '.join(described)}}}", ())

    @classmethod
    def of_evidence(cls, evidence: Evidence, rule: DecisionRule) -> Self:
        """Return the value for evidence that a rule decided."""
        true, threshold = evidence.p(True), rule.threshold
        confidence = abs(true - threshold) / max(threshold, 1 - threshold)
        return cls(value=evidence.value, probability=true, confidence=min(confidence, 1.0))

    def __bool__(self) -> bool:
        return self.value


class Score(_Decision):
    """The mean level of an ordered rubric, from 0: ``Score["poor", "fair", "excellent"]`` is the type of an output.

    ``probabilities`` are by level; ``level`` is the one that the cuts choose, and ``value`` the mean whatever the cuts.

    >>> float(Score["poor", "fair"](value=0.75, confidence=0.5))
    0.75
    """

    value: float = Field(allow_inf_nan=False)
    probabilities: SkipJsonSchema[dict[int, Probability] | None] = None
    level: SkipJsonSchema[int | None] = Field(default=None, ge=0, strict=True)

    def __class_getitem__(cls, options: Any) -> Any:
        given: Any = options
        levels: list[Any] = list(given) if isinstance(options, tuple) else []
        if len(levels) < 2 or None in levels:
            raise SignatureError('Score has two levels or more (making a type). Write Score["poor", "excellent"].')
        return _configured(Score, f"[{', '.join(json_text('A level', each) for each in levels)}]", ())

    @classmethod
    def of_evidence(cls, evidence: Evidence, rule: DecisionRule) -> Self:
        """Return the value for evidence; the rule has the cuts."""
        mean, cuts = evidence.expected, rule.cuts or [level + 0.5 for level in range(len(evidence.values) - 1)]
        own = evidence.own_confidence
        return cls(
            value=mean,
            probabilities=dict(enumerate(evidence.probabilities)),
            level=sum(mean >= cut for cut in cuts),
            confidence=evidence.confidence if own is None else own,
        )

    def __float__(self) -> float:
        return self.value


class Choice(_Decision):
    """One of several values: ``Choice[("billing", "Payment issue"), ("technical", "Product bug")]``.

    Values are texts, ints, bools and ``None``; ``probabilities`` are by their texts. ``Annotated[Literal[...], Choice[...]]``
    is a native member with these criteria.

    >>> Choice[(1, "yes"), (0, "no")](value=1, confidence=0.5).value
    1
    """

    value: str | int | bool | None
    probabilities: SkipJsonSchema[dict[str, Probability] | None] = None

    def __class_getitem__(cls, options: Any) -> Any:
        pairs = _pairs(options)
        if any(type(value) not in (str, int, bool, type(None)) for value, _ in pairs):
            raise SignatureError("Values of Choice are texts, ints, bools or None (making a type). Correct the pairs.")
        if len({dspy_label(value) for value, _ in pairs}) < len(pairs):
            raise SignatureError("Two values of Choice have one text (making a type). Rename one: 1 and '1' are alike.")
        described = [f"{json.dumps(dspy_label(value))}: {json_text('A criterion', text)}" for value, text in pairs]
        return _configured(Choice, f"{{{', '.join(described)}}}", _typed(value for value, _ in pairs))

    @classmethod
    def of_evidence(cls, evidence: Evidence, rule: DecisionRule) -> Self:
        """Return the value for evidence that a rule decided; its confidence does not depend on the weights."""
        own = evidence.own_confidence
        return cls(
            value=evidence.value,
            probabilities={
                dspy_label(value): share for value, share in zip(evidence.values, evidence.probabilities, strict=True)
            },
            confidence=max(evidence.probabilities) if own is None else own,
        )


def _typed(values: Iterable[Any]) -> tuple[tuple[type[Any], Any], ...]:
    found: list[tuple[type[Any], Any]] = [(type(value), value) for value in values]
    return tuple(found)


def _pairs(options: Any) -> list[tuple[Any, Any]]:
    given: Any = options
    pairs: list[Any] = list(given) if isinstance(options, tuple) else []
    if len(pairs) == 2 and not isinstance(pairs[0], tuple):
        pairs = [given]
    if {_size(pair) for pair in pairs} != {2}:
        raise SignatureError("Criteria are pairs of a value and its description (making a type). Write (value, text).")
    return pairs


def _size(pair: Any) -> int:
    given: Any = pair
    return len(given) if isinstance(pair, tuple) else 0


@lru_cache(maxsize=512)  # by the types of values too: 1 equals True
def _configured(base: type[Any], criteria: str, typed: tuple[tuple[type, Any], ...]) -> Any:
    values, read = tuple(value for _, value in typed), json.loads(criteria)
    members: dict[str, Any] = {}
    if base is Choice:
        members = {"value": (cast("Any", Literal)[values], ...)}
    elif base is Score:
        top = len(read) - 1
        members = {
            "value": (float, Field(ge=0, le=top, allow_inf_nan=False)),
            "level": (Score.model_fields["level"].rebuild_annotation(), Field(default=None, ge=0, le=top, strict=True)),
        }
    made: Any = create_model(f"{base.__name__}[{criteria}]", __base__=base, __module__=base.__module__, **members)
    made._criteria = criteria
    kind: EvidenceKind = "bool" if base is Noul else "score" if base is Score else "choice"
    made.decided_type = asked_type(kind, values, read)
    return made


def _remade(base: Any, criteria: str, typed: tuple[tuple[type, Any], ...], data: Mapping[str, Any]) -> Any:
    """Make a value again: the class of its criteria has no name that another process can import."""
    return (base if criteria == "null" else _configured(base, criteria, typed)).model_validate(data)
