"""Record: named values, the base of examples and predictions. ``to_plain``: any field value as JSON data.

Fields are read by attribute and by item. They are the ``__dict__`` of the instance, so an attribute named like a method
(``items``, ``keys``, ``copy``) is the field; the library reads ``__dict__``. All else is in slots with an underscore, the
metadata of a prediction in one of them (``Meta``). No public attribute of the classes is a data descriptor, which would win
over the field of its name.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self, TypeAlias, TypeVar, cast

from sigwire.core.foreign_names import HIDDEN
from sigwire.core.json import decoding
from sigwire.core.narrow import is_items, is_mapping, is_object
from sigwire.show.card import HasLine

if TYPE_CHECKING:
    from sigwire.core.json import JsonObject
    from sigwire.core.response import Attempt, Choice, Repair, Response, Usage

__all__ = [
    "UNSET", "DeclaresFields", "FieldValue", "FieldValues", "Meta", "Record", "Unset", "dump_fields", "is_same",
    "keep_values", "list_fields", "new_record", "plain_of", "to_plain",
]  # fmt: skip

FieldValue: TypeAlias = Any
"""The value of a field. Its type is declared by a signature, which no type checker follows."""
FieldValues: TypeAlias = Mapping[str, object]


class Unset(Enum):
    """The type of ``UNSET``."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET
"""No value was given; ``None`` is a value."""


class DeclaresFields(Protocol):
    """A signature: ``spec`` has the fields ``by_name`` and decodes their values with ``load``."""

    @property
    def spec(self) -> Any: ...


_META = ("_input_keys", "_meta", "_version")


class Record(HasLine):
    """The methods of all records; the static base of signature classes.

    Type checkers see methods with the name of a likely field as ``FieldValue``, so that a signature may declare the field.
    """

    __slots__ = ("__dict__", "__weakref__", "_input_keys", "_meta", "_version")
    _shown_by = "sigwire.core.cards.records:record"
    _is_result: ClassVar[bool] = False  # of a call, with a report
    _input_keys: frozenset[str] | None
    _meta: Meta
    _version: int

    if TYPE_CHECKING:
        keys: FieldValue
        values: FieldValue
        items: FieldValue
        get: FieldValue
        copy: FieldValue
        without: FieldValue
        inputs: FieldValue
        labels: FieldValue
        response: FieldValue
        choice: FieldValue
        repairs: FieldValue
        evidence: FieldValue
        warnings: FieldValue
        attempts: FieldValue
        mode: FieldValue
        usage: FieldValue
        run: FieldValue
        completions: FieldValue
        show: FieldValue

    def __init__(self, base: Record | FieldValues | None = None, /, **fields: object) -> None:
        known = base.__dict__ if isinstance(base, Record) else base or {}
        _fill(self, {**known, **fields}, base._input_keys if isinstance(base, Record) else None)

    def __getitem__(self, name: str) -> FieldValue:
        return self.__dict__[name]

    def __setitem__(self, name: str, value: object) -> None:
        self.__dict__[name] = value
        _set(self, "_version", self._version + 1)

    def __delitem__(self, name: str) -> None:
        del self.__dict__[name]
        _set(self, "_version", self._version + 1)

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def __len__(self) -> int:
        return sum(not name.startswith(HIDDEN) for name in self.__dict__)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _META:
            _set(self, name, value)
        else:
            self[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; {list_fields(self)}.")
        del self[name]

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if isinstance(other, Record) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset((name, _hash(value)) for name, value in self.__dict__.items()))

    def with_inputs(self, *keys: str) -> Self:
        """Return a copy whose input fields are ``keys``; the other fields are labels.

        >>> Record(question="2+2?", answer="4").with_inputs("question")
        Record(question='2+2?', answer='4').with_inputs('question')
        """
        return self._with(self.__dict__, frozenset(keys))

    def _with(self, fields: FieldValues, input_keys: frozenset[str] | None) -> Self:
        return new_record(type(self), dict(fields), input_keys, self._meta)

    def toDict(self) -> dict[str, FieldValue]:  # noqa: N802
        """Return the fields as a dict; nested records, pydantic models and canonical values become plain data."""
        return {name: _plain_inside(value) for name, value in self.__dict__.items()}

    def to_json(self) -> JsonObject:
        """Return the record as JSON: fields, types of tool calls and messages, input keys.

        >>> Record(a=1).with_inputs("a").to_json()
        {'fields': {'a': 1}, 'input_keys': ['a']}
        """
        dump = plain_of if (declared := self._meta.signature) is None else declared.spec.dump
        data: JsonObject = {"fields": dump(self.__dict__)}
        names = {kind: name for name, kind in _value_classes.items()}
        if types := {name: names[type(value)] for name, value in self.__dict__.items() if type(value) in names}:
            data["types"] = {**types}
        if self._input_keys is not None:
            data["input_keys"] = [*sorted(self._input_keys)]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, signature: DeclaresFields | None = None) -> Self:
        """Decode the result of ``to_json``. With ``signature``, fields get its declared types; without, tool calls and
        messages get their classes and other fields are plain data.

        >>> Record.from_json({"fields": {"a": 1}, "input_keys": ["a"]})
        Record(a=1).with_inputs('a')
        """
        declared = () if signature is None else signature.spec.by_name
        with decoding(cls.__name__, data):
            types = {name: kind for name, kind in data.get("types", {}).items() if name not in declared}
            fields: dict[str, Any] = _named(data["fields"])
            if signature is not None:
                fields = dict(signature.spec.load(fields))
            # Types are kept outside of the fields, so that no user's value is mistaken for a canonical one.
            fields |= {
                name: _value_classes[kind].from_json(fields[name])
                for name, kind in types.items()
                if kind in _value_classes and name in fields
            }
            keys = data.get("input_keys")
            return new_record(cls, fields, None if keys is None else frozenset(_texts(keys)))

    def get_lm_usage(self) -> dict[str, FieldValue]:
        """Return tokens by model (``Usage.counts``): those of ``set_lm_usage``, else of the attempts, else ``{}``."""
        meta = self._meta
        if meta.lm_usage is not None:
            return meta.lm_usage
        attempts: Sequence[Attempt | Response] = meta.attempts if meta.report is None else meta.report.attempts
        if not attempts:
            if meta.response is None or meta.response.cache == "hit":
                return {}
            attempts = (meta.response,)
        totals: dict[str, Usage] = {}
        for attempt in attempts:
            model = attempt.model or ""
            totals[model] = totals[model] + attempt.usage if model in totals else attempt.usage
        return {model: usage.counts() for model, usage in totals.items()}

    def set_lm_usage(self, usage: FieldValues) -> None:
        """Store tokens by model."""
        self._meta = replace(self._meta, lm_usage=dict(usage))


def _named(fields: object) -> dict[str, Any]:
    if not is_mapping(fields) or not all(isinstance(name, str) for name in cast("Mapping[object, object]", fields)):
        raise TypeError(f"its fields are an object, not {short(fields)}")
    return dict(fields)


def _texts(keys: object) -> Iterable[str]:
    if not is_items(keys) or not all(isinstance(key, str) for key in keys):
        raise TypeError(f"its input_keys are a list of names, not {short(keys)}")
    return keys


_value_classes: dict[str, Any] = {}  # by name


def keep_values(*classes: type[Any]) -> None:
    """Keep the classes of values that have ``to_json`` and ``from_json`` through the JSON of records, by their names."""
    _value_classes.update((cls.__name__, cls) for cls in classes)


@dataclass(slots=True, eq=False, repr=False)
class Meta:
    """The metadata of a prediction. One slot of the record, so that making a record is cheap.

    ``evidence``: of deciding outputs, by path.
    ``report``: the ``CallReport`` of a program in which others ran. A predictor has none: ``made_by`` (its class) and
    ``seconds`` are kept for one that is read. ``cache_breaks``: those of the run of an agent (``CacheBreak``).
    """

    signature: DeclaresFields | None = None
    response: Response | None = None
    choice: Choice | None = None
    repairs: Sequence[Repair] = ()
    mode: str | None = None
    attempts: Sequence[Attempt] = ()
    completions: Any = None
    lm_usage: dict[str, FieldValue] | None = None
    report: Any = None
    made_by: str = ""
    seconds: float = 0.0
    cache_breaks: Sequence[Any] = ()
    evidence: Any = None

    def with_report(self, report: Any) -> Self:
        """Return a copy with a report. (``replace`` is slow.)"""
        if type(self) is not Meta:
            return replace(self, report=report)
        known = self.signature, self.response, self.choice, self.repairs, self.mode, self.attempts, self.completions
        rest = self.lm_usage, report, self.made_by, self.seconds, self.cache_breaks, self.evidence
        return type(self)(*known, *rest)


_NO_META = Meta()
_set = object.__setattr__


def _fill(
    record: Record, fields: dict[str, FieldValue], input_keys: frozenset[str] | None, meta: Meta = _NO_META
) -> None:
    _set(record, "__dict__", fields)
    _set(record, "_input_keys", input_keys)
    _set(record, "_meta", meta)
    _set(record, "_version", 0)


_R = TypeVar("_R", bound=Record)


def new_record(
    cls: type[_R], fields: dict[str, FieldValue], input_keys: frozenset[str] | None = None, meta: Meta = _NO_META
) -> _R:
    """Return a record that owns ``fields`` (not copied). ``__init__`` is not called."""
    record = object.__new__(cls)
    _fill(record, fields, input_keys, meta)
    return record


def list_fields(record: Record) -> str:
    """Return the names of the fields, as the last clause of an error message."""
    return f"it has {', '.join(record.__dict__) or 'no fields'}"


def _hash(value: object) -> int:
    try:
        return hash(value)
    except TypeError:
        return 0  # lists and dicts: equality decides


def is_same(one: object, other: object) -> bool:
    """Return True for equal values. NaN equals NaN, also inside of others; a comparison that raises is False.

    >>> is_same([float("nan")], [float("nan")]), is_same((1,), [1])
    (True, False)
    """
    try:
        return bool(one == other) or _is_same_inside(one, other)
    except Exception:  # a class of the user may raise anything
        return False


def _is_same_inside(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one != one and other != other
    if is_items(one):
        return len(one) == len(other) and all(map(is_same, one, other))
    if is_object(one):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    return bool(fields := getattr(one, "__dict__", None)) and is_same(fields, other.__dict__)


_SCALARS = (str, int, float, bool, type(None))


def plain_of(fields: FieldValues) -> JsonObject:
    """Return fields without a signature as JSON data, each by ``to_plain``; see ``dump_fields`` for the error."""
    return dump_fields(fields, lambda name, value: to_plain(value))


def dump_fields(fields: FieldValues, dump: Callable[[str, object], Any]) -> dict[str, Any]:
    """Return fields as ``dump`` writes each. Raises ``ValueError`` with the name of a field whose value has no JSON form."""
    plain: dict[str, Any] = {}
    for name, value in fields.items():
        try:
            plain[name] = dump(name, value)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"The field {name!r} holds what its type cannot write: {error} (writing it as JSON). Give the type a "
                "serializer of pydantic, or hold plain values."
            ) from error
    return plain


def to_plain(value: object) -> Any:
    """Return a field value as JSON data: canonical values by ``to_json``, bytes in base64, other values by pydantic.

    Raises ``ValueError`` for a value without a JSON form.

    >>> import datetime
    >>> to_plain({"on": datetime.date(2026, 1, 2), "tags": {"a"}})
    {'on': '2026-01-02', 'tags': ['a']}
    """
    if type(value) in _SCALARS:
        return value
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in cast("list[object]", value)]
    if isinstance(value, Mapping):
        items = cast("FieldValues", value).items()
        return {name if type(name) is str else str(to_plain(name)): to_plain(item) for name, item in items}
    if isinstance(value, Record):
        return {name: to_plain(item) for name, item in value.__dict__.items()}
    if callable(write := getattr(value, "to_json", None)) and not isinstance(value, type):
        return write()
    if isinstance(value, (bytes, bytearray)):  # the form of prompts: a saved demo gives the same prompt
        return urlsafe_b64encode(value).decode()
    return _by_pydantic(value)


def _by_pydantic(value: object) -> Any:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value, bytes_mode="base64")  # as above
    except PydanticSerializationError as error:
        raise ValueError(f"{type(value).__name__} has no JSON form: {error}") from error


def _plain_inside(value: FieldValue) -> FieldValue:
    """Return plain data for structured values; leaves (dates, enums, numbers) are unchanged."""
    if isinstance(value, Record):
        return value.toDict()
    if isinstance(value, Mapping):
        return {name: _plain_inside(item) for name, item in cast("FieldValues", value).items()}
    if type(value) in (list, tuple):
        return type(value)(_plain_inside(item) for item in value)
    if hasattr(value, "model_dump") or (hasattr(value, "to_json") and not isinstance(value, type)):
        return to_plain(value)
    return value
