"""Record: the named values that users hold, before they are examples or predictions. Fields by attribute and by item.

The fields are the instance's ``__dict__``, so a field named like a method (``items``, ``keys``, ``copy``) is what its
attribute gives; the library itself reads ``__dict__`` and never trips over it. Everything that is not a field lives in
slots with an underscore, and what a prediction knows beside its fields in one of them (``Meta``). Nothing public on the
classes is a data descriptor, or it would win over the field of that name.

Below the record: ``to_plain``, any field value as JSON data.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

if TYPE_CHECKING:
    from sigwire.core.json import JsonObject
    from sigwire.core.response import Choice, Response

__all__ = ["HIDDEN", "Meta", "Record", "list_fields", "new_record", "to_plain"]

HIDDEN = "dspy_"
"""Fields of this prefix are bookkeeping: kept, and left out of length and views."""

_META = ("_input_keys", "_meta", "_version")


class Record:
    """What every record can do; the static base of signature classes.

    Methods whose name is a likely field are ``Any`` to type checkers here, so that a signature may declare such a
    field.
    """

    __slots__ = ("__dict__", "__weakref__", "_input_keys", "_meta", "_version")
    _input_keys: frozenset[str] | None
    _meta: Meta
    _version: int

    if TYPE_CHECKING:
        keys: Any
        values: Any
        items: Any
        get: Any
        copy: Any
        without: Any
        inputs: Any
        labels: Any
        response: Any
        choice: Any
        repairs: Any
        warnings: Any
        attempts: Any
        mode: Any
        usage: Any
        completions: Any

    def __init__(self, base: Record | Mapping[str, Any] | None = None, /, **fields: Any) -> None:
        known = base.__dict__ if isinstance(base, Record) else base or {}
        _fill(self, {**known, **fields}, base._input_keys if isinstance(base, Record) else None)

    # --- fields by item ---

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
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

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _META:
            _set(self, name, value)
        else:
            self[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; {list_fields(self)}.")
        del self[name]

    # --- comparing ---

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if isinstance(other, Record) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset((name, _hash(value)) for name, value in self.__dict__.items()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items() if not name.startswith(HIDDEN))
        chosen = "" if self._input_keys is None else f".with_inputs({', '.join(map(repr, sorted(self._input_keys)))})"
        return f"{type(self).__name__}({fields}){chosen}"

    # --- copies ---

    def with_inputs(self, *keys: str) -> Self:
        """A copy that knows which fields are inputs; the others are labels.

        >>> Record(question="2+2?", answer="4").with_inputs("question")
        Record(question='2+2?', answer='4').with_inputs('question')
        """
        return self._with(self.__dict__, frozenset(keys))

    def _with(self, fields: Mapping[str, Any], input_keys: frozenset[str] | None) -> Self:
        return new_record(type(self), dict(fields), input_keys, self._meta)

    def toDict(self) -> dict[str, Any]:  # noqa: N802  (DSPy's name)
        """The fields as a dict; nested records, pydantic models and sigwire's own values become plain data."""
        return {name: _plain_inside(value) for name, value in self.__dict__.items()}

    # --- JSON ---

    def to_json(self) -> JsonObject:
        """The record as JSON: fields, which of them are tool calls or messages, input keys, a prediction's response.

        >>> Record(a=1).with_inputs("a").to_json()
        {'fields': {'a': 1}, 'input_keys': ['a']}
        """
        data: JsonObject = {"fields": {name: to_plain(value) for name, value in self.__dict__.items()}}
        names = {kind: name for name, kind in _core_values().items()}
        if types := {name: names[type(value)] for name, value in self.__dict__.items() if type(value) in names}:
            data["types"] = {**types}
        if self._input_keys is not None:
            data["input_keys"] = [*sorted(self._input_keys)]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, signature: Any = None) -> Self:
        """Read what ``to_json`` wrote. With ``signature``, fields come back as its declared types; without, tool calls and
        messages as what they were and everything else as plain data.

        >>> Record.from_json({"fields": {"a": 1}, "input_keys": ["a"]})
        Record(a=1).with_inputs('a')
        """
        declared = () if signature is None else signature.spec.by_name
        known = _core_values()
        types = {name: kind for name, kind in data.get("types", {}).items() if name not in declared}
        fields = dict(data["fields"]) if signature is None else signature.spec.load(data["fields"])
        # What a field is stands beside the fields, never in them: no field's value can pass for one of ours.
        fields |= {
            name: known[kind].from_json(fields[name])
            for name, kind in types.items()
            if kind in known and name in fields
        }
        keys = data.get("input_keys")
        return new_record(cls, dict(fields), None if keys is None else frozenset(keys))

    # --- usage ---

    def get_lm_usage(self) -> dict[str, Any]:
        """Tokens by model: what ``set_lm_usage`` stored, else those of this record's attempts, else ``{}``."""
        meta = self._meta
        if meta.lm_usage is not None:
            return meta.lm_usage
        if meta.response is None:
            return {}
        totals: dict[str, Any] = {}
        for attempt in meta.attempts or (meta.response,):
            model = attempt.model or ""
            totals[model] = totals[model] + attempt.usage if model in totals else attempt.usage
        return {model: usage.to_json() for model, usage in totals.items()}

    def set_lm_usage(self, usage: Mapping[str, Any]) -> None:
        """Store tokens by model."""
        self._meta = replace(self._meta, lm_usage=dict(usage))


@cache
def _core_values() -> dict[str, Any]:
    """The values of core that a field may hold, by the name they are saved under."""
    from sigwire.core.messages import Message
    from sigwire.core.tools.tool import ToolCall, ToolCalls, ToolResult

    return {kind.__name__: kind for kind in (Message, ToolCall, ToolCalls, ToolResult)}


@dataclass(slots=True, eq=False, repr=False)
class Meta:
    """What a prediction knows beside its fields. One slot on the record, so that making one stays cheap."""

    signature: Any = None
    response: Response | None = None
    choice: Choice | None = None
    repairs: Sequence[Any] = ()
    mode: str | None = None
    attempts: Sequence[Any] = ()
    completions: Any = None
    lm_usage: dict[str, Any] | None = None


_NO_META = Meta()
_set = object.__setattr__


def _fill(record: Record, fields: dict[str, Any], input_keys: frozenset[str] | None, meta: Meta = _NO_META) -> None:
    _set(record, "__dict__", fields)
    _set(record, "_input_keys", input_keys)
    _set(record, "_meta", meta)
    _set(record, "_version", 0)


_R = TypeVar("_R", bound=Record)


def new_record(
    cls: type[_R], fields: dict[str, Any], input_keys: frozenset[str] | None = None, meta: Meta = _NO_META
) -> _R:
    """A record around ``fields``, which is taken over and not copied; no ``__init__`` is run."""
    record = object.__new__(cls)
    _fill(record, fields, input_keys, meta)
    return record


def list_fields(record: Record) -> str:
    """The names of the fields, for the end of an error's message."""
    return f"it has {', '.join(record.__dict__) or 'no fields'}"


def _hash(value: object) -> int:
    try:
        return hash(value)
    except TypeError:
        return 0  # lists and dicts: equality decides


# --- plain data ----------------------------------------------------------------------------------

_SCALARS = (str, int, float, bool, type(None))


def to_plain(value: object) -> Any:
    """Any field value as JSON data: our own values by ``to_json``, bytes in base64, everything else as pydantic writes it.

    Raises ``ValueError`` for what has no JSON form.

    >>> import datetime
    >>> to_plain({"on": datetime.date(2026, 1, 2), "tags": {"a"}})
    {'on': '2026-01-02', 'tags': ['a']}
    """
    if type(value) in _SCALARS:
        return value
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in cast("list[object]", value)]
    if isinstance(value, Mapping):
        return {_key(name): to_plain(item) for name, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, Record):
        return {name: to_plain(item) for name, item in value.__dict__.items()}
    if callable(write := getattr(value, "to_json", None)) and not isinstance(value, type):
        return write()
    if isinstance(value, (bytes, bytearray)):  # the form they have in prompts, so that a saved demo stands there alike
        return urlsafe_b64encode(value).decode()
    return _by_pydantic(value)


def _key(name: Any) -> str:
    return name if type(name) is str else str(to_plain(name))


def _by_pydantic(value: object) -> Any:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value, bytes_mode="base64")  # as above
    except PydanticSerializationError as fault:
        raise ValueError(f"{type(value).__name__} has no JSON form: {fault}") from fault


def _plain_inside(value: Any) -> Any:
    """Plain data where a value is structured; leaves (dates, enums, numbers) stay what they are."""
    if isinstance(value, Record):
        return value.toDict()
    if isinstance(value, Mapping):
        return {name: _plain_inside(item) for name, item in cast("Mapping[str, Any]", value).items()}
    if type(value) in (list, tuple):
        return type(value)(_plain_inside(item) for item in value)
    if hasattr(value, "model_dump") or (hasattr(value, "to_json") and not isinstance(value, type)):
        return to_plain(value)
    return value
