"""``JsonForm``: how values of one type are written as JSON and read again, in prompts, records, journals and saved programs.

Pydantic writes and reads by the type, serializers and validators of the user included. Bytes are base64; a model inside the
type keeps its own configuration. Names of fields are aliases if each alias is both written and read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

from sigwire.core.json import JsonValue, dumps
from sigwire.core.narrow import is_items, is_object
from sigwire.core.record import is_same, to_plain
from sigwire.core.set_order import sort_sets
from sigwire.core.typed_dict import TypeExpression
from sigwire.signatures.annotations import nested_types

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["JsonForm", "alias_rules", "schema_nodes"]


@dataclass(frozen=True, slots=True)
class JsonForm:
    """The adapter of a type. ``by_alias``: names are written as aliases; ``read_options``: how the adapter reads names.

    >>> import datetime
    >>> from sigwire.signatures.signature import Signature
    >>> when = Signature("a -> when: list[datetime.date]", custom_types={"datetime": datetime}).spec.outputs[0].json_form
    >>> when.dump([datetime.date(2026, 1, 2)]), when.load(["2026-01-02"])
    (['2026-01-02'], [datetime.date(2026, 1, 2)])
    """

    adapter: TypeAdapter[Any]
    by_alias: bool
    read_options: Mapping[str, bool]

    @classmethod
    def of(cls, adapter: TypeAdapter[Any], annotation: TypeExpression, metadata: tuple[object, ...]) -> JsonForm:
        """Return the form of a type whose values ``adapter`` validates."""
        if any(found in (bytes, bytearray) for found in nested_types(annotation)):
            adapter = _base64_adapter(annotation, metadata) or adapter
        has_aliases, writes = alias_rules(adapter.core_schema)
        return cls(adapter, writes, {"by_alias": True, "by_name": True} if has_aliases else {})

    def dump(self, value: object) -> JsonValue:
        """Return the JSON of a value; see ``FieldSpec.dump``."""
        from pydantic_core import PydanticSerializationError

        if type(value) in _JSON_TYPES and not self._is_of_the_type(value):  # JSON already: a serializer would run twice
            return cast(JsonValue, to_plain(value))
        options: dict[str, Any] = {"mode": "json", "by_alias": self.by_alias}
        try:
            plain: JsonValue = self.adapter.dump_python(value, warnings="error", **options)
        except (PydanticSerializationError, UnicodeError, TypeError) as error:
            if self._is_of_the_type(value):
                raise ValueError(f"{type(value).__name__} has no JSON form: {error}") from error
            plain = to_plain(value)
        return sort_sets(value, plain) if isinstance(plain, list | dict) else plain

    def _is_of_the_type(self, value: object) -> bool:
        """Return True if validation gives an equal value of its class."""
        try:
            made = self.adapter.validate_python(value)
            return type(made) is type(value) and is_same(made, value)
        except Exception:  # a validator of the user may raise anything
            return False

    def load(self, value: object) -> Any:
        """Return the value of JSON. Raises ``ValueError`` if it does not fit the type."""
        options: dict[str, Any] = dict(self.read_options)
        try:
            return self.adapter.validate_json(dumps(value), **options)  # pyright: ignore[reportArgumentType]
        except (TypeError, ValueError):  # no JSON, or a reader that takes Python values only
            return self.adapter.validate_python(value, **options)


_JSON_TYPES = (str, int, float, list, dict)


def _base64_adapter(annotation: TypeExpression, metadata: tuple[object, ...]) -> TypeAdapter[Any] | None:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    target: Any = Annotated[(annotation, *metadata)] if metadata else annotation
    try:
        return TypeAdapter(target, config=ConfigDict(ser_json_bytes="base64", val_json_bytes="base64"))
    except PydanticUserError:  # a model has its own configuration
        return None


def alias_rules(schema: object) -> tuple[bool, bool]:
    """Return whether a core schema of pydantic has aliases, and whether they are written.

    Written names must be readable: an alias for one direction only is not written.
    """
    aliases = [
        (node.get("validation_alias"), node.get("serialization_alias"))
        for node in schema_nodes(schema)
        if node.get("type") in _FIELD_NODES
    ]
    has_aliases = any(reading or writing for reading, writing in aliases)
    return has_aliases, all(reading == writing for reading, writing in aliases)


_FIELD_NODES = ("model-field", "typed-dict-field", "dataclass-field")


def schema_nodes(schema: object) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of a core schema of pydantic."""
    pending: list[object] = [schema]
    while pending:
        current = pending.pop()
        if is_object(current):
            if isinstance(current.get("type"), str):
                yield current
            pending += [value for key, value in current.items() if key not in ("metadata", "serialization")]
        elif is_items(current):
            pending += current
