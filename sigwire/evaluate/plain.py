"""Values of users and models as JSON for a record, and back to the types that the signature of a program declares.

``plain_value`` takes any value and never raises: media are references (type, size, SHA-256), tools their names; a value without
a JSON form is the name of its class. ``plain_fields`` writes declared fields by their types, and ``typed_fields`` reads them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Never, TypeAlias, cast

from sigwire.core.example import Example
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.record import Record, is_same, to_plain
from sigwire.core.tools.tool import Tool
from sigwire.errors import InputError
from sigwire.modules.field_types import NO_TYPES, FieldTypes, dumped_fields
from sigwire.signatures.annotations import contains
from sigwire.signatures.fields import FieldSpec, plain_history, typed_history
from sigwire.signatures.types.history import History
from sigwire.signatures.types.media import Audio, File, Image

__all__ = [
    "NO_FORMS", "Form", "Unreadable", "Written", "dumped_example", "plain_fields",
    "plain_value", "typed_fields", "written_fields",
]  # fmt: skip

_MOST_DEPTH = 60
_SCALARS = (str, int, bool, type(None))
_MEDIA = (Audio, File, Image)


Form: TypeAlias = Literal["data", "json", "text"]
NO_FORMS: Mapping[str, Form] = {}


class Written(NamedTuple):
    """Fields as JSON. ``forms``: how those are written that the declared type does not read back from it.

    ``"data"``: the value is the JSON data; ``"json"``: it is another value; ``"text"``: it has no JSON form, or only a part of
    it, and its class is named.
    """

    plain: JsonObject
    forms: Mapping[str, Form]


def written_fields(fields: Mapping[str, object], types: FieldTypes = NO_TYPES) -> Written:
    """Return the fields of a record as JSON, those in ``types`` by the declared type.

    >>> written_fields({"answer": "4", "sure": float("nan"), "tags": ("a", object())})
    Written(plain={'answer': '4', 'sure': 'nan', 'tags': ['a', '<object>']}, forms={'sure': 'json', 'tags': 'text'})
    """
    plain: JsonObject = {}
    forms: dict[str, Form] = {}
    for name, value in fields.items():
        plain[name], form = _written(value, types.get(name), types)
        if form is not None:
            forms[name] = form
    return Written(plain, forms)


def _written(value: object, spec: FieldSpec | None, types: FieldTypes) -> tuple[JsonValue, Form | None]:
    if value is None or (type(value) is str and (spec is None or spec.annotation is str)):
        return cast(JsonValue, value), None
    dumped = _by_type(value, spec, types)
    plain = plain_value(dumped)
    if isinstance(value, History):
        return plain, "text" if dumped is value else None
    if spec is not None and (spec.role == "tools" or spec.reads_back(value, plain)):
        return plain, None
    if is_same(value, plain):
        return plain, None if spec is None else "data"
    return plain, "json" if dumped is not value or _has_json(value) else "text"


def _has_json(value: object) -> bool:
    try:
        to_plain(value)
    except Exception:  # a class of the user may raise anything
        return False
    return True


def plain_fields(fields: Mapping[str, object], types: FieldTypes = NO_TYPES) -> JsonObject:
    """Return the fields of a record as JSON, those in ``types`` by the declared type.

    >>> plain_fields({"answer": "4", "sure": float("nan"), "tags": ("a", object())})
    {'answer': '4', 'sure': 'nan', 'tags': ['a', '<object>']}
    """
    return {
        name: value if type(value) is str else plain_value(_by_type(value, types.get(name), types))
        for name, value in fields.items()
    }


def _by_type(value: object, spec: FieldSpec | None, types: FieldTypes) -> object:
    """Return the JSON of a value by its declared type, of a history by those in ``types``; other values as they are: media,
    tools, and values of no JSON form.
    """
    try:
        if isinstance(value, History):
            return plain_history(value, types).to_json()
        if type(value) in _SCALARS or spec is None or spec.role != "value" or contains(spec.annotation, *_MEDIA):
            return value
        return spec.dump(value)
    except (ValueError, TypeError):
        return value


class Unreadable:
    """The value of a field of a record that cannot be made again. Any use of it but ``repr`` raises ``InputError``.

    Copies and comparisons by identity work.

    >>> value = Unreadable("price", "<Money>", "has no JSON form")
    >>> value
    <Money>
    >>> value == 5
    Traceback (most recent call last):
    sigwire.errors.InputError: The field 'price' has no JSON form (reading a record that shows '<Money>'). ...
    """

    __slots__ = ("_facts",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, shown: JsonValue, why: str) -> None:
        self._facts = (name, shown, why)

    def __repr__(self) -> str:
        shown = self._facts[1]
        return shown if isinstance(shown, str) else repr(shown)

    def __reduce__(self) -> tuple[object, ...]:
        return Unreadable, self._facts

    def _refuse(self, *given: object) -> Never:
        name, shown, why = self._facts
        raise InputError(
            f"The field {name!r} {why} (reading a record that shows {shown!r:.60}). Run the program again, or declare a type "
            "that writes and reads the value."
        )

    def __getattr__(self, name: str) -> Never:
        if name.startswith("__"):  # asked for by copying, pickling and inspection
            raise AttributeError(name)
        self._refuse()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __len__ = __iter__ = __getitem__ = _refuse
    __contains__ = __call__ = __str__ = __int__ = __float__ = __index__ = __add__ = __radd__ = __format__ = _refuse


_WHY: Mapping[str, str] = {
    "text": "has no JSON form",
    "json": "has a JSON form that its declared type does not read as the same value",
}


def typed_fields(fields: JsonObject, types: FieldTypes, forms: Mapping[str, Form] = NO_FORMS) -> dict[str, Any]:
    """Return the fields of a record, declared ones with their types; JSON that does not fit, and references, are unchanged.

    ``forms``: see ``Written``. A field that cannot be read back is ``Unreadable``; one that has no declared type is JSON data.

    >>> import datetime
    >>> from sigwire.modules.field_types import types_of
    >>> from sigwire.signatures.signature import Signature
    >>> types = types_of(Signature("a -> when: datetime.date", custom_types={"datetime": datetime}))
    >>> typed_fields({"when": "2026-01-02", "id": 7}, types)
    {'when': datetime.date(2026, 1, 2), 'id': 7}
    """
    return {name: _typed(name, value, types, forms.get(name)) for name, value in fields.items()}


def _typed(name: str, value: JsonValue, types: FieldTypes, form: Form | None) -> Any:
    spec = types.get(name)
    if form == "text" or (form == "json" and spec is not None and not spec.is_untyped):
        return Unreadable(name, value, _WHY[form])
    if spec is None or form == "data":
        return value
    made = spec.restore(value, plain_value)
    return typed_history(made, types) if isinstance(made, History) else made


def dumped_example(example: Example, types: FieldTypes) -> JsonObject:
    """Return ``example.to_json()`` with the declared fields by their types.

    Raises ``ValueError`` for a declared field without a JSON form.
    """
    keys = example._input_keys  # pyright: ignore[reportPrivateUsage]
    plain = Example(dumped_fields(example.__dict__, types))
    return (plain if keys is None else plain.with_inputs(*keys)).to_json()


def plain_value(value: object, depth: int = 0) -> JsonValue:
    """Return a value as JSON."""
    if type(value) in _SCALARS:
        return cast(JsonValue, value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > _MOST_DEPTH:
        return "<nested too deeply>"
    fields = value.__dict__ if isinstance(value, Record) else value
    if is_mapping(fields):
        return {str(name): plain_value(item, depth + 1) for name, item in fields.items()}
    if is_items(value):
        return [plain_value(item, depth + 1) for item in value]
    if isinstance(value, Unreadable):
        return value._facts[1]  # pyright: ignore[reportPrivateUsage]
    return _plain_object(value, depth)


def _plain_object(value: object, depth: int) -> JsonValue:
    if isinstance(value, (Audio, File, Image)):
        return _media_reference(value)
    if isinstance(value, Tool):
        return value.name
    try:
        plain = to_plain(value)
    except Exception:  # a user's class may raise anything
        plain = value
    return f"<{type(value).__name__}>" if plain is value else plain_value(plain, depth + 1)


def _media_reference(value: Audio | File | Image) -> JsonObject:
    content = repr(sorted(value.to_json().items())).encode()
    kind = type(value).__name__.lower()
    return {"media": kind, "bytes": len(content), "sha256": sha256(content).hexdigest()}
