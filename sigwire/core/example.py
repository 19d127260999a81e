"""Example and Prediction: the records that users hold. Completions: all candidates of a prediction.

To type checkers ``Record`` has methods and no fields (a signature class inherits it, so a misspelt output is an error);
``Example`` and ``Prediction`` have every attribute, as ``FieldValue``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, SupportsFloat, TypeVar

from sigwire.core.foreign_names import HIDDEN, NamedFields
from sigwire.core.json import decoding
from sigwire.core.messages import Message
from sigwire.core.record import (
    DeclaresFields,
    FieldValue,
    FieldValues,
    Meta,
    Record,
    keep_values,
    list_fields,
    new_record,
    plain_of,
    to_plain,
)
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.errors import InputError
from sigwire.show.card import HasCard

if TYPE_CHECKING:
    from sigwire.core.evidence import Evidence
    from sigwire.core.json import JsonObject
    from sigwire.core.response import Attempt, Choice, Repair, Response

__all__ = ["Completions", "Example", "Prediction", "outputs_of"]

_T = TypeVar("_T")

keep_values(Message, ToolCall, ToolCalls, ToolResult)


class Example(NamedFields, Record, HasCard):
    """A record of named values: a training example, a demo.

    ``base``: a record or mapping whose fields are copied; also as a keyword, if it is a record or mapping.
    Fields are read and written by attribute or by item.

    >>> example = Example(question="2+2?", answer="4").with_inputs("question")
    >>> example.answer, example["answer"], "answer" in example, len(example)
    ('4', '4', True, 2)
    >>> example.labels(), example.copy(answer="four").inputs()
    (Example(answer='4'), Example(question='2+2?').with_inputs('question'))
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> FieldValue: ...

    def __init__(self, base: Record | FieldValues | None = None, /, **fields: FieldValue) -> None:
        if base is None and isinstance(fields.get("base"), (Record, Mapping)):
            base = fields.pop("base")
        super().__init__(base, **fields)

    def get(self, name: str, default: object = None) -> FieldValue:
        """Return the value of a field, or ``default``."""
        return self.__dict__.get(name, default)

    def copy(self, **changes: object) -> Self:
        """Return a copy with changed or added fields; input keys and metadata are kept."""
        return self._with({**self.__dict__, **changes}, self._input_keys)

    def without(self, *names: str) -> Self:
        """Return a copy without some fields."""
        return self._with({k: v for k, v in self.__dict__.items() if k not in names}, self._input_keys)

    def inputs(self) -> Self:
        """Return the input fields only. Raises ``ValueError`` if ``with_inputs`` was not called."""
        chosen = self._known_inputs()
        return self._with({k: v for k, v in self.__dict__.items() if k in chosen}, chosen)

    def labels(self) -> Self:
        """Return the fields that are not inputs. Raises ``ValueError`` if ``with_inputs`` was not called."""
        chosen = self._known_inputs()
        return self._with({k: v for k, v in self.__dict__.items() if k not in chosen}, None)

    def _known_inputs(self) -> frozenset[str]:
        if self._input_keys is None:
            raise ValueError(
                f"The inputs of this {type(self).__name__} are unknown; {list_fields(self)}. "
                "Call .with_inputs('name', ...), which returns a copy with inputs."
            )
        return self._input_keys


class _FromMeta:
    """Metadata by attribute. Not a data descriptor: a field of the same name wins."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[Prediction], object]) -> None:
        self._read = read

    def __get__(self, record: Prediction | None, owner: type | None = None) -> object:
        return self if record is None else self._read(record)


def _on_score(operation: Callable[[float, float], _T]) -> Callable[[Prediction, SupportsFloat], _T]:
    return lambda prediction, other: operation(float(prediction), float(other))


class Prediction(Example):
    """The result of a module: the output fields, and metadata.

    Metadata: ``response`` and ``choice`` (the canonical answer), ``usage``, ``warnings``, ``repairs`` (accepted deviations),
    ``evidence`` (distributions of deciding outputs, by path), ``attempts`` (every exchange), ``mode`` (how outputs were
    requested), ``completions`` (all candidates), ``run`` (the ``CallReport``: usage, attempts and warnings are those of all
    calls inside). A field of the same name wins.

    A prediction with a field ``score`` acts as that number: in ``float()``, ``+``, ``/``, ``sum``, comparisons with numbers
    and predictions, and in truth tests, so ``Prediction(score=0)`` of a metric is a failure. Without ``score``, a
    prediction with fields is true.

    >>> prediction = Prediction(score=0.5, feedback="half right")
    >>> prediction < 0.6, prediction == 0.5, sum([prediction, prediction]), bool(Prediction(score=0))
    (True, True, 1.0, False)
    """

    __slots__ = ()
    _shown_by = "sigwire.core.cards.records:prediction"
    _is_result = True

    @classmethod
    def make(
        cls,
        fields: dict[str, FieldValue],
        *,
        signature: DeclaresFields | None = None,
        response: Response | None = None,
        choice: Choice | None = None,
        repairs: Sequence[Repair] = (),
        mode: str | None = None,
        attempts: Sequence[Attempt] = (),
        completions: Completions | Sequence[FieldValues] | None = None,
        made_by: str = "",
        seconds: float = 0.0,
    ) -> Self:
        """Return a prediction that owns ``fields`` (not copied).

        ``completions``: the fields of every choice, if there are several. ``made_by`` and ``seconds``: class and time of the
        predictor, for its report.
        """
        meta = Meta(signature, response, choice, repairs, mode, attempts, completions, None, None, made_by, seconds)
        return new_record(cls, fields, None, meta)

    @classmethod
    def from_completions(
        cls,
        completions: Sequence[FieldValues] | Mapping[str, Sequence[object]] | Completions,
        signature: DeclaresFields | None = None,
    ) -> Self:
        """Return the first candidate, with all candidates in ``completions``.

        >>> Prediction.from_completions([{"answer": "4"}, {"answer": "four"}]).completions.answer
        ['4', 'four']
        """
        every = completions if isinstance(completions, Completions) else Completions(completions)
        first = every.rows[0] if every.rows else {}
        return cls.make(dict(first), signature=signature, completions=every)

    if not TYPE_CHECKING:  # type checkers see the declarations of Record
        response = _FromMeta(lambda record: record._meta.response)
        choice = _FromMeta(lambda record: record._meta.choice)
        repairs = _FromMeta(lambda record: record._meta.repairs)
        evidence = _FromMeta(lambda record: dict(record._meta.evidence or {}))
        mode = _FromMeta(lambda record: record._meta.mode)
        attempts = _FromMeta(lambda record: _report().attempts_of(record._meta))
        warnings = _FromMeta(lambda record: _report().warnings_of(record._meta))
        usage = _FromMeta(lambda record: _report().usage_of(record._meta))
        run = _FromMeta(lambda record: _report().CallReport.of(record))
        completions = _FromMeta(lambda record: record._candidates())

        def __getattr__(self, name: str) -> FieldValue:
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(_missing_attribute(self, self._meta, name), name=name, obj=self)

    def _candidates(self) -> Completions:
        given = self._meta.completions
        if isinstance(given, Completions):
            return given
        return Completions([self.__dict__] if given is None else given)

    def __float__(self) -> float:
        if "score" not in self.__dict__:
            raise ValueError(
                f"This {type(self).__name__} is not a number: it has no field 'score'; {list_fields(self)}."
            )
        return float(self.__dict__["score"])

    def __bool__(self) -> bool:
        return bool(self.__dict__["score"]) if "score" in self.__dict__ else len(self) > 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Record):
            return self.__dict__ == other.__dict__
        if isinstance(other, (int, float)) and isinstance(self.__dict__.get("score"), (int, float)):
            return float(self) == other
        return NotImplemented

    __hash__ = Record.__hash__

    __add__ = __radd__ = _on_score(lambda score, other: score + other)
    __truediv__ = _on_score(lambda score, other: score / other)
    __rtruediv__ = _on_score(lambda score, other: other / score)
    __lt__ = _on_score(lambda score, other: score < other)
    __le__ = _on_score(lambda score, other: score <= other)
    __gt__ = _on_score(lambda score, other: score > other)
    __ge__ = _on_score(lambda score, other: score >= other)

    def sent_outputs(self) -> object:
        """Return the prediction as the value of a tool: the declared outputs, of a single one its value.

        Outputs that a module added (``reasoning``) and facts about a run (``steps``) are left out. All fields if the
        prediction has no signature.

        >>> Prediction(label="spam", score=0.5).sent_outputs()
        {'label': 'spam', 'score': 0.5}
        """
        declared = self._meta.signature
        if declared is None:
            return {name: value for name, value in self.__dict__.items() if not name.startswith(HIDDEN)}
        names = [spec.name for spec in declared.spec.sent_outputs]
        found = {name: self.__dict__[name] for name in names if name in self.__dict__}
        return found[names[0]] if len(names) == 1 and found else found

    def to_json(self) -> JsonObject:
        """Return the record as JSON: the fields and the metadata.

        >>> Prediction(answer="4").to_json()
        {'fields': {'answer': '4'}}
        """
        data, meta = super().to_json(), self._meta
        dump = plain_of if meta.signature is None else meta.signature.spec.dump
        extra: dict[str, FieldValue] = {
            "response": meta.response and meta.response.to_json(),
            "choice": meta.choice and meta.choice.to_json(),
            "repairs": [repair.to_json() for repair in meta.repairs],
            "mode": meta.mode,
            "attempts": [attempt.to_json() for attempt in meta.attempts],
            "completions": None if meta.completions is None else [dump(row) for row in self._candidates().rows],
            "lm_usage": meta.lm_usage and to_plain(meta.lm_usage),
            "run": meta.report and meta.report.to_json(),
            "evidence": meta.evidence and {path: each.to_json() for path, each in meta.evidence.items()},
        }
        return {**data, **{name: value for name, value in extra.items() if value is not None and value != []}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, signature: DeclaresFields | None = None) -> Self:
        """Decode the result of ``to_json``. With ``signature``, fields get its declared types."""
        from sigwire.core.response import Attempt, Choice, Repair, Response

        record = super().from_json(data, signature=signature)
        rows = data.get("completions")
        load: Callable[[FieldValue], dict[str, FieldValue]] = (
            dict[str, FieldValue] if signature is None else signature.spec.load
        )
        with decoding(cls.__name__, data):
            record._meta = Meta(
                signature,
                Response.from_json(data["response"]) if "response" in data else None,
                Choice.from_json(data["choice"]) if "choice" in data else None,
                tuple(Repair.from_json(repair) for repair in data.get("repairs", ())),
                data.get("mode"),
                tuple(Attempt.from_json(attempt) for attempt in data.get("attempts", ())),
                None if rows is None else Completions([load(row) for row in rows]),
                data.get("lm_usage"),
                _report().CallReport.from_json(data["run"]) if "run" in data else None,
                evidence=_load_evidence(data["evidence"], signature) if "evidence" in data else None,
            )
        return record


def _load_evidence(data: Mapping[str, Any], signature: DeclaresFields | None) -> dict[str, Evidence]:
    """Decode evidence; with a signature, its values get their declared types."""
    from sigwire.core.evidence import Evidence

    found = {path: Evidence.from_json(each) for path, each in data.items()}
    typed: Callable[[dict[str, Evidence]], dict[str, Evidence]] | None = getattr(signature, "typed_evidence", None)
    return found if typed is None else typed(found)


def _report() -> Any:
    """Return the module of reports, which only reads of metadata need."""
    from sigwire.core import report

    return report


def _missing_attribute(record: Record, meta: Meta, name: str) -> str:
    """Return the error text for a missing attribute, with its cause if the metadata have one."""
    spec = meta.signature.spec if meta.signature is not None else None
    declared_by = spec.name if spec is not None and name in spec.by_name else None
    calls = meta.choice.tool_calls if meta.choice is not None else ()
    if declared_by and calls:
        asked = ", ".join(call.name for call in calls)
        return (
            f"The answer has no {name!r}: the model called tools instead ({asked}). Run the calls and send their results "
            f"(ReAct does that), or read them; {list_fields(record)}."
        )
    if declared_by:
        return f"The answer has no {name!r}, which {declared_by} declares; {list_fields(record)}."
    return f"{type(record).__name__} has no field {name!r}; {list_fields(record)}."


class Completions(HasCard):
    """All candidates of one call, by number or by field name. A missing field is ``None`` in the column.

    >>> completions = Completions([{"answer": "4"}, {"answer": "four"}])
    >>> completions[1], completions["answer"], len(completions)
    (Prediction(answer='four'), ['4', 'four'], 2)
    """

    _shown_by = "sigwire.core.cards.records:completions"

    def __init__(self, completions: Sequence[FieldValues] | Mapping[str, Sequence[object]]) -> None:
        if isinstance(completions, Mapping):
            if len({len(column) for column in completions.values()}) > 1:
                raise ValueError("Every field of the completions needs the same number of values.")
            completions = [dict(zip(completions, row, strict=True)) for row in zip(*completions.values(), strict=True)]
        self.rows: list[dict[str, FieldValue]] = [dict(row) for row in completions]

    def keys(self) -> list[str]:
        """Return the names of all fields, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def items(self) -> list[tuple[str, list[FieldValue]]]:
        """Return names with columns."""
        return [(name, self._column(name)) for name in self.keys()]

    def __getitem__(self, key: int | str) -> FieldValue:
        return Prediction(self.rows[key]) if isinstance(key, int) else self._column(key)

    def __getattr__(self, name: str) -> list[FieldValue]:
        if name.startswith("_") or name == "rows":
            raise AttributeError(name)
        try:
            return self._column(name)
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def _column(self, name: str) -> list[FieldValue]:
        if not any(name in row for row in self.rows):
            raise KeyError(f"No completion has a field {name!r}; they have {', '.join(self.keys()) or 'none'}.")
        return [row.get(name) for row in self.rows]

    def __contains__(self, name: object) -> bool:
        return any(name in row for row in self.rows)

    def __iter__(self) -> Iterator[Prediction]:
        return (Prediction(row) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def outputs_of(prediction: object) -> JsonObject:
    """Return the outputs of a prediction as JSON data that any JSON parser reads, for a browser or a log.

    Only the outputs that the signature declares; all fields if the prediction has no signature. Models and dates are written
    as pydantic writes them, bytes in base64; a number that JSON lacks (NaN, infinity) is ``None``. Raises ``InputError`` if
    ``prediction`` is no ``Prediction``, ``ValueError`` for a value without a JSON form.

    >>> import datetime
    >>> outputs_of(Prediction(on=datetime.date(2026, 1, 2), score=float("nan")))
    {'on': '2026-01-02', 'score': None}
    """
    if not isinstance(prediction, Prediction):
        raise InputError(f"outputs_of() takes a prediction, not {type(prediction).__name__}.")
    from pydantic_core import to_jsonable_python

    declared = prediction._meta.signature  # pyright: ignore[reportPrivateUsage]
    names = prediction.__dict__ if declared is None else (spec.name for spec in declared.spec.outputs)
    dump = plain_of if declared is None else declared.spec.dump
    fields = dump({name: prediction.__dict__[name] for name in names if name in prediction.__dict__})
    outputs: JsonObject = to_jsonable_python(fields, inf_nan_mode="null")
    return outputs
