"""FieldType: lets pydantic validate, serialize and describe a class, alone or inside pydantic models.

A subclass has ``read`` (any accepted value to an instance), ``to_json`` and ``json_schema``. This file imports pydantic only
when pydantic calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sigwire.core.json import JsonObject, JsonValue
from sigwire.keywords import ChecksKeywords

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

__all__ = ["FieldType"]


class FieldType(ChecksKeywords):
    """Base of the field types."""

    __slots__ = ()

    @classmethod
    def read(cls, value: object) -> Self:
        """Return an instance made of any accepted value. Raises ``ValueError`` with the accepted kinds of values."""
        raise ValueError(f"{cls.__name__} cannot be read from {type(value).__name__}.")

    @classmethod
    def json_schema(cls) -> JsonObject:
        """Return the JSON Schema of the result of ``to_json``."""
        return {}

    def to_json(self) -> JsonValue:
        """Return the value as plain JSON."""
        raise ValueError(f"{type(self).__name__} has no JSON form.")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls.read,
            serialization=core_schema.plain_serializer_function_ser_schema(_to_json, when_used="json-unless-none"),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: object) -> JsonObject:
        return cls.json_schema()


def _to_json(value: FieldType) -> Any:  # pydantic evaluates the return annotation
    return value.to_json()
