"""FieldType: how one of our classes stands as a field's type, alone or inside pydantic models.

A class gives ``read`` (any accepted value to an instance), ``to_json`` and ``json_schema``; pydantic then validates,
serializes and describes it like its own. Pydantic is imported only when it asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

__all__ = ["FieldType", "as_items", "as_mapping"]


class FieldType:
    """Base of the field types that hold more than plain data."""

    __slots__ = ()

    @classmethod
    def read(cls, value: Any) -> Self:
        """An instance from any value that stands for one. Raises ``ValueError`` saying what would be accepted."""
        raise ValueError(f"{cls.__name__} cannot be read from {type(value).__name__}.")

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of what ``to_json`` writes."""
        return {}

    def to_json(self) -> Any:
        """The value as plain JSON."""
        raise ValueError(f"{type(self).__name__} has no JSON form.")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls.read,
            serialization=core_schema.plain_serializer_function_ser_schema(_to_json, when_used="json-unless-none"),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        return cls.json_schema()


def _to_json(value: Any) -> Any:
    return value.to_json()


# User values are ``Any``; these give checkers back what ``isinstance`` takes away from them.


def as_mapping(value: Any) -> Mapping[str, Any] | None:
    """The value, if it is a mapping."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def as_items(value: Any) -> Sequence[Any] | None:
    """The value, if it is a list or a tuple."""
    return cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else None
