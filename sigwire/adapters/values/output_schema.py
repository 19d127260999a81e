"""The JSON Schema of a signature's outputs: of an object with a member for each."""

from __future__ import annotations

from typing import Any

from sigwire.adapters.values.criteria_text import describe_criteria
from sigwire.core.json import JsonObject
from sigwire.signatures.fields import FieldSpec

__all__ = ["output_schema"]


def output_schema(outputs: tuple[FieldSpec, ...], *, keeps_criteria: bool = False) -> JsonObject:
    """Return the JSON Schema of an object with these outputs; fields share their definitions.

    Criteria are written as descriptions, unless a model that decides reads them.

    >>> from sigwire.signatures import Signature
    >>> output_schema(Signature("question -> score: float").spec.outputs)["required"]
    ['score']
    """
    from pydantic import TypeAdapter

    schemas, shared = TypeAdapter.json_schemas([(spec.name, "validation", spec.adapter) for spec in outputs])
    properties: dict[str, Any] = {}
    for spec in outputs:
        member: dict[str, Any] = dict(schemas[spec.name, "validation"])
        if spec.description and "$ref" not in member:
            member["description"] = spec.description
        properties[spec.name] = member
    required: list[Any] = [spec.name for spec in outputs if spec.required]
    schema: JsonObject = {"type": "object", "properties": properties, "required": required}
    whole: JsonObject = {**schema, "additionalProperties": False, **shared}
    return whole if keeps_criteria else describe_criteria(whole)
