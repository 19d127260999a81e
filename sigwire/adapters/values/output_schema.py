"""The JSON Schema of a signature's outputs: of an object with a member for each."""

from __future__ import annotations

from typing import Any

from sigwire.core.json import JsonObject
from sigwire.signatures.fields import FieldSpec

__all__ = ["output_schema"]


def output_schema(outputs: tuple[FieldSpec, ...]) -> JsonObject:
    """Return the JSON Schema of an object with these outputs; fields share their definitions.

    >>> from sigwire.signatures import Signature
    >>> output_schema(Signature("question -> score: float").spec.outputs)["required"]
    ['score']
    """
    from pydantic import TypeAdapter

    schemas, shared = TypeAdapter.json_schemas([(spec.name, "validation", spec.adapter) for spec in outputs])
    properties: dict[str, Any] = {}
    for spec in outputs:
        schema: dict[str, Any] = dict(schemas[spec.name, "validation"])
        if spec.description and "$ref" not in schema:
            schema["description"] = spec.description
        properties[spec.name] = schema
    required: list[Any] = [spec.name for spec in outputs if spec.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **shared}
