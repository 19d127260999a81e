"""JSONAdapter: the outputs as one JSON object, by the provider's structured output where the model has it.

Inputs stand in sections as in chat. ``mode`` is "native_schema" where the model is held to the outputs' JSON Schema,
"native_json" where it is held to some JSON object, else "prompt"; anything less than a schema is a warning on the response.
Calls that are written as text cannot stand in a JSON object, so tools as text mean "prompt".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sigwire.adapters.base import Adapter
from sigwire.adapters.plan import ToolsMode
from sigwire.adapters.prompts.layout import INPUT_HEADERS, FieldReadings, Layout, VisibleFields
from sigwire.adapters.values.objects import ObjectCodec
from sigwire.adapters.values.type_text import field_type_text
from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.request import ResponseFormat
from sigwire.errors import UnsupportedFeature
from sigwire.signatures.fields import FieldSpec

if TYPE_CHECKING:
    from sigwire.adapters.field_events import FieldEvents, OutputReader

__all__ = ["JSONAdapter", "JSONLayout"]

_LONG_TYPE = 60


@dataclass(frozen=True, kw_only=True)
class JSONAdapter(Adapter):
    """Outputs as one JSON object. ``require_schema`` refuses models and requests where no schema can hold the answer.

    >>> from sigwire.signatures import Signature
    >>> adapter = JSONAdapter()
    >>> adapter.parse(Signature("question -> answer, score: float"), '{"answer": "Paris", "score": 0.5}')
    {'answer': 'Paris', 'score': 0.5}
    >>> adapter.plan(Signature("question -> answer"), Capabilities(json_schema=True)).mode
    'native_schema'
    """

    require_schema: bool = False

    def layout(self, visible: VisibleFields, capabilities: Capabilities) -> Layout:
        """One JSON object; with a schema where the model takes one."""
        return JSONLayout(visible, with_schema=capabilities.json_schema)

    def mode(self, layout: Layout, capabilities: Capabilities, tools_mode: ToolsMode | None) -> tuple[str, str | None]:
        """The best that model and tools allow. Raises ``UnsupportedFeature`` when that is not what is required."""
        mode, why = _mode(capabilities, tools_mode) if layout.outputs else ("prompt", None)
        if why and self.require_schema:
            raise UnsupportedFeature(
                f"No JSON Schema can hold the answer: {why}. Drop require_schema, or change the model."
            )
        return mode, why


def _mode(capabilities: Capabilities, tools_mode: ToolsMode | None) -> tuple[str, str | None]:
    if tools_mode == "text":
        return "prompt", "tool calls are written as text, which structured output does not allow"
    if tools_mode == "native" and not capabilities.tools_with_json_schema:
        return "prompt", "the model does not take tools and structured output in one request"
    if capabilities.json_schema:
        return "native_schema", None
    if capabilities.json_object:
        return "native_json", "the model takes no JSON Schema; it is held to a JSON object only"
    return "prompt", "the model has no structured output; the form is asked for in the prompt"


class JSONLayout(Layout):
    """Outputs as members of an object."""

    def __init__(self, visible: VisibleFields, *, with_schema: bool) -> None:
        super().__init__(visible)
        self._object = ObjectCodec(visible.outputs)
        self._with_schema = with_schema

    def format_instructions(self) -> str:
        form = INPUT_HEADERS
        if self.outputs:
            form += " Reply with only a JSON object of this form:\n\n" + self._shape()
        return "\n\n".join([*self.describe_fields(), form])

    def _shape(self) -> str:
        members = [f'"{spec.name}": <{_brief_type(spec) or spec.name}>' for spec in self.visible.outputs]
        return "{" + ", ".join(members) + "}"

    def format_reminder(self) -> str:
        if not self.outputs:
            return ""
        members = ", ".join(f'"{spec.name}"{_bracketed(_brief_type(spec))}' for spec in self.visible.outputs)
        noun = "field" if len(self.outputs) == 1 else "fields"
        return f"Reply with a JSON object with the {noun} {members}."

    def write(self, values: Mapping[str, Any]) -> str:
        members = {name: codec.dump(values[name]) for name, codec in self.outputs if name in values}
        return json.dumps(members, ensure_ascii=False) if members else ""

    def starts_outputs(self, text: str) -> bool:
        return text.startswith("{")

    def output_reader(self, told: FieldEvents) -> OutputReader:
        from sigwire.adapters.streaming.json_members import JsonMemberReader

        return JsonMemberReader(self.outputs, told)

    def read(self, text: str, strict: bool) -> FieldReadings:
        found = self._object.read(text, strict=strict)
        return FieldReadings(dict(found.values), list(found.repairs), dict(found.problems))

    def response_format(self) -> ResponseFormat | None:
        return ResponseFormat(output_schema(self.visible.outputs) if self._with_schema else None)


def output_schema(outputs: tuple[FieldSpec, ...]) -> JsonObject:
    """The JSON Schema of an object with these outputs; definitions that fields share stand in one place.

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
    whole: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return {**whole, **shared}


def _brief_type(spec: FieldSpec) -> str:
    kind = field_type_text(spec, "compact")
    return kind if len(kind) <= _LONG_TYPE and "\n" not in kind else ""


def _bracketed(kind: str) -> str:
    return f" ({kind})" if kind and kind != "string" else ""
