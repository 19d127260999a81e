"""Example and Prediction: the records users hold, and the Completions that a prediction was chosen from.

For type checkers there are three views: ``Record`` has the methods and no fields (a signature class inherits it, so a
misspelt output is an error); ``Example`` and ``Prediction`` answer any attribute with ``Any``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from sigwire.core.record import HIDDEN, Meta, Record, list_fields, new_record, to_plain

if TYPE_CHECKING:
    from sigwire.core.json import JsonObject
    from sigwire.core.response import Choice, Response

__all__ = ["Completions", "Example", "Prediction"]


class Example(Record):
    """A record of named values: a training example, a demo.

    ``base`` is another record or a mapping to start from. Fields are read and written by attribute or by item. As a
    keyword, ``base=`` is taken for that too when it is a record or a mapping, as DSPy does.

    >>> example = Example(question="2+2?", answer="4").with_inputs("question")
    >>> example.answer, example["answer"], "answer" in example, len(example)
    ('4', '4', True, 2)
    >>> example.labels(), example.copy(answer="four").inputs()
    (Example(answer='4'), Example(question='2+2?').with_inputs('question'))
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, base: Record | Mapping[str, Any] | None = None, /, **fields: Any) -> None:
        if base is None and isinstance(fields.get("base"), (Record, Mapping)):
            base = fields.pop("base")
        super().__init__(base, **fields)

    def keys(self, include_dspy: bool = False) -> list[str]:
        """The field names; those starting ``dspy_`` only on request."""
        return [name for name in self.__dict__ if include_dspy or not name.startswith(HIDDEN)]

    def values(self, include_dspy: bool = False) -> list[Any]:
        """The field values, in the order of ``keys``."""
        return [value for name, value in self.__dict__.items() if include_dspy or not name.startswith(HIDDEN)]

    def items(self, include_dspy: bool = False) -> list[tuple[str, Any]]:
        """Names with values."""
        return [(name, value) for name, value in self.__dict__.items() if include_dspy or not name.startswith(HIDDEN)]

    def get(self, name: str, default: Any = None) -> Any:
        """A field's value, or ``default``."""
        return self.__dict__.get(name, default)

    def copy(self, **changes: Any) -> Self:
        """A copy with some fields changed or added; input keys and metadata stay."""
        return self._with({**self.__dict__, **changes}, self._input_keys)

    def without(self, *names: str) -> Self:
        """A copy that lacks some fields."""
        return self._with({k: v for k, v in self.__dict__.items() if k not in names}, self._input_keys)

    def inputs(self) -> Self:
        """The input fields only. Raises ``ValueError`` when ``with_inputs`` was not called."""
        chosen = self._known_inputs()
        return self._with({k: v for k, v in self.__dict__.items() if k in chosen}, chosen)

    def labels(self) -> Self:
        """The fields that are not inputs. Raises ``ValueError`` when ``with_inputs`` was not called."""
        chosen = self._known_inputs()
        return self._with({k: v for k, v in self.__dict__.items() if k not in chosen}, None)

    def _known_inputs(self) -> frozenset[str]:
        if self._input_keys is None:
            raise ValueError(
                f"This {type(self).__name__} does not know its inputs; {list_fields(self)}. "
                "Call .with_inputs('name', ...), which gives a copy that does."
            )
        return self._input_keys


class _FromMeta:
    """Metadata by attribute. Not a data descriptor: a field of the same name wins."""

    __slots__ = ("_read",)

    def __init__(self, read: Any) -> None:
        self._read = read

    def __get__(self, record: Prediction | None, owner: type | None = None) -> Any:
        return self if record is None else self._read(record)


class Prediction(Example):
    """What a module gives back: the output fields, and how they came about.

    Beside the fields: ``response`` and ``choice`` (what the model answered), ``usage``, ``warnings``, ``repairs`` (what
    was mended while parsing), ``attempts`` (every request made), ``mode`` (how outputs were asked for), ``completions``
    (all candidates). A field of the same name wins over each of them.

    A prediction with a field ``score`` counts as that number: in ``float()``, ``+``, ``/``, ``sum``, comparisons with
    numbers and predictions, and in truth tests, so a metric that returns ``Prediction(score=0)`` has failed.
    Without ``score`` it is true when it has fields.

    >>> prediction = Prediction(score=0.5, feedback="half right")
    >>> prediction < 0.6, prediction == 0.5, sum([prediction, prediction]), bool(Prediction(score=0))
    (True, True, 1.0, False)
    """

    __slots__ = ()

    @classmethod
    def make(
        cls,
        fields: dict[str, Any],
        *,
        signature: Any = None,
        response: Response | None = None,
        choice: Choice | None = None,
        repairs: Sequence[Any] = (),
        mode: str | None = None,
        attempts: Sequence[Any] = (),
        completions: Any = None,
    ) -> Self:
        """A prediction around ``fields``, which is taken over and not copied.

        ``completions`` is a list of field dicts, one per choice, when there are several.
        """
        meta = Meta(signature, response, choice, repairs, mode, attempts, completions)
        return new_record(cls, fields, None, meta)

    @classmethod
    def from_completions(
        cls, completions: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]] | Completions, signature: Any = None
    ) -> Self:
        """The first of several candidates, knowing all of them.

        >>> Prediction.from_completions([{"answer": "4"}, {"answer": "four"}]).completions.answer
        ['4', 'four']
        """
        every = completions if isinstance(completions, Completions) else Completions(completions)
        first = every.rows[0] if every.rows else {}
        return cls.make(dict(first), signature=signature, completions=every)

    if not TYPE_CHECKING:  # to checkers they are what Record declares
        response = _FromMeta(lambda record: record._meta.response)
        choice = _FromMeta(lambda record: record._meta.choice)
        repairs = _FromMeta(lambda record: record._meta.repairs)
        mode = _FromMeta(lambda record: record._meta.mode)
        attempts = _FromMeta(lambda record: _attempts(record._meta))
        warnings = _FromMeta(lambda record: record._meta.response.warnings if record._meta.response else ())
        usage = _FromMeta(lambda record: _usage(record._meta))
        completions = _FromMeta(lambda record: record._candidates())

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(_missing(self, self._meta, name))

    def _candidates(self) -> Completions:
        given = self._meta.completions
        if isinstance(given, Completions):
            return given
        return Completions([self.__dict__] if given is None else given)

    # --- a prediction as a number ---

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

    def __add__(self, other: Any) -> float:
        return float(self) + float(other)

    __radd__ = __add__

    def __truediv__(self, other: Any) -> float:
        return float(self) / float(other)

    def __rtruediv__(self, other: Any) -> float:
        return float(other) / float(self)

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= float(other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > float(other)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= float(other)

    # --- JSON ---

    def to_json(self) -> JsonObject:
        """The record as JSON: the fields, and how they came about.

        >>> Prediction(answer="4").to_json()
        {'fields': {'answer': '4'}}
        """
        data, meta = super().to_json(), self._meta
        extra: dict[str, Any] = {
            "response": meta.response and meta.response.to_json(),
            "choice": meta.choice and meta.choice.to_json(),
            "repairs": [repair.to_json() for repair in meta.repairs],
            "mode": meta.mode,
            "attempts": [attempt.to_json() for attempt in meta.attempts],
            "completions": None if meta.completions is None else to_plain(self._candidates().rows),
            "lm_usage": meta.lm_usage and to_plain(meta.lm_usage),
        }
        return {**data, **{name: value for name, value in extra.items() if value is not None and value != []}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, signature: Any = None) -> Self:
        """Read what ``to_json`` wrote; with ``signature``, fields come back as its declared types."""
        from sigwire.core.response import Attempt, Choice, Repair, Response

        record = super().from_json(data, signature=signature)
        rows: Any = data.get("completions")
        load: Callable[[Any], dict[str, Any]] = signature.spec.load if signature is not None else dict[str, Any]
        record._meta = Meta(
            signature,
            Response.from_json(data["response"]) if "response" in data else None,
            Choice.from_json(data["choice"]) if "choice" in data else None,
            tuple(Repair.from_json(repair) for repair in data.get("repairs", ())),
            data.get("mode"),
            tuple(Attempt.from_json(attempt) for attempt in data.get("attempts", ())),
            None if rows is None else Completions([load(row) for row in rows]),
            data.get("lm_usage"),
        )
        return record


def _attempts(meta: Meta) -> Sequence[Any]:
    return meta.attempts or (meta.response.attempts if meta.response is not None else ())


def _usage(meta: Meta) -> Any:
    """What the whole call cost: every attempt counts, failed ones too."""
    from sigwire.core.response import Usage

    if meta.attempts:
        return sum((attempt.usage for attempt in meta.attempts), Usage())
    return meta.response.usage if meta.response is not None else Usage()


def _missing(record: Record, meta: Meta, name: str) -> str:
    """Why a prediction lacks an attribute, as far as it can be known."""
    spec: Any = meta.signature.spec if meta.signature is not None else None
    declared_by = spec.name if spec is not None and name in spec.by_name else None
    calls = meta.choice.tool_calls if meta.choice is not None else ()
    if declared_by and calls:
        asked = ", ".join(call.name for call in calls)
        return (
            f"The model gave no {name!r}: it asked for tools instead ({asked}). Run the calls and ask again with their "
            f"results (ReAct does that), or read them; {list_fields(record)}."
        )
    if declared_by:
        return f"The answer gave no {name!r}, which {declared_by} declares; {list_fields(record)}."
    return f"{type(record).__name__} has no field {name!r}; {list_fields(record)}."


class Completions:
    """All candidates of one call, by number or by field name.

    A field that a candidate lacks is ``None`` in the column.

    >>> completions = Completions([{"answer": "4"}, {"answer": "four"}])
    >>> completions[1], completions["answer"], len(completions)
    (Prediction(answer='four'), ['4', 'four'], 2)
    """

    def __init__(self, completions: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]) -> None:
        if isinstance(completions, Mapping):
            if len({len(column) for column in completions.values()}) > 1:
                raise ValueError("Every field of the completions needs the same number of values.")
            completions = [dict(zip(completions, row, strict=True)) for row in zip(*completions.values(), strict=True)]
        self.rows: list[dict[str, Any]] = [dict(row) for row in completions]

    def keys(self) -> list[str]:
        """The names of all fields, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def items(self) -> list[tuple[str, list[Any]]]:
        """Names with columns."""
        return [(name, self._column(name)) for name in self.keys()]

    def __getitem__(self, key: int | str) -> Any:
        return Prediction(self.rows[key]) if isinstance(key, int) else self._column(key)

    def __getattr__(self, name: str) -> list[Any]:
        if name.startswith("_") or name == "rows":
            raise AttributeError(name)
        try:
            return self._column(name)
        except KeyError as fault:
            raise AttributeError(fault.args[0]) from None

    def _column(self, name: str) -> list[Any]:
        if not any(name in row for row in self.rows):
            raise KeyError(f"No completion has a field {name!r}; they have {', '.join(self.keys()) or 'none'}.")
        return [row.get(name) for row in self.rows]

    def __contains__(self, name: object) -> bool:
        return any(name in row for row in self.rows)

    def __iter__(self) -> Iterator[Prediction]:
        return (Prediction(row) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Completions({dict(self.items())!r})"
