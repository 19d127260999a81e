"""JSONAdapter: the outputs as one JSON object, by the provider's structured output if the model has it.

Inputs are sections as in chat. ``mode`` is "native_schema" if the provider enforces the outputs' JSON Schema, "schema, not
enforced" if the provider gets it and enforces it only on demand (``require_schema``, ``strict``), "native_json" if it enforces
some JSON object, else "prompt"; the last two add a warning to the response. Tools offered as text
require "prompt": structured output has no place for calls. If the wire cannot send what the mode promises, it warns, and
``prediction.mode`` is the mode that was sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sigwire.adapters.base import Adapter
from sigwire.adapters.options import ToolsMode
from sigwire.adapters.prompts.layout import INPUT_HEADERS, Layout, VisibleFields
from sigwire.adapters.values.json_places import places_in_json
from sigwire.adapters.values.objects import FieldReadings, ObjectCodec
from sigwire.adapters.values.output_schema import output_schema
from sigwire.adapters.values.type_text import brief_type_text, type_suffix
from sigwire.core.capabilities import Capabilities
from sigwire.core.record import FieldValues
from sigwire.core.request import ResponseFormat
from sigwire.errors import UnsupportedFeature

if TYPE_CHECKING:
    from sigwire.adapters.field_events import FieldEvents, OutputReader

__all__ = ["JSONAdapter", "JSONLayout"]

_MAX_TYPE = 60


@dataclass(frozen=True, kw_only=True)
class JSONAdapter(Adapter):
    """Outputs as one JSON object. ``require_schema`` refuses models and requests that cannot enforce the JSON Schema.

    With ``strict``, the provider's wire must enforce what the mode promises; else the request is refused before it is sent.
    OpenAI enforces on such a demand only, and a subset of schemas: see ``Capabilities.schema_on_demand``.

    >>> from sigwire.signatures import Signature
    >>> adapter = JSONAdapter()
    >>> adapter.parse(Signature("question -> answer, score: float"), '{"answer": "Paris", "score": 0.5}')
    {'answer': 'Paris', 'score': 0.5}
    >>> adapter.plan(Signature("question -> answer"), Capabilities(json_schema=True)).mode
    'native_schema'
    >>> adapter.plan(Signature("question -> answer"), Capabilities(json_schema=True, schema_on_demand=True)).mode
    'schema, not enforced'
    """

    require_schema: bool = False

    def layout(self, visible: VisibleFields, capabilities: Capabilities) -> Layout:
        """Return a layout of one JSON object, with a schema if the model takes one."""
        return JSONLayout(
            visible,
            with_schema=capabilities.json_schema,
            required=self.require_schema or self.strict,
            keeps_criteria=capabilities.decides != "no",
        )

    def mode(self, layout: Layout, capabilities: Capabilities, tools_mode: ToolsMode | None) -> tuple[str, str | None]:
        """Return the strictest mode that model and tools allow. Raises ``UnsupportedFeature`` if a schema is required."""
        demanded = self.require_schema or self.strict
        mode, reason = _mode(capabilities, tools_mode, demanded) if layout.outputs else ("prompt", None)
        if reason and self.require_schema:
            raise UnsupportedFeature(
                f"No JSON Schema can hold the answer: {reason}. Drop require_schema, or change the model."
            )
        return mode, reason


def _mode(capabilities: Capabilities, tools_mode: ToolsMode | None, demanded: bool) -> tuple[str, str | None]:
    if tools_mode == "text":
        return "prompt", "tool calls are written as text, which structured output does not allow"
    if tools_mode == "native" and not capabilities.tools_with_json_schema:
        return "prompt", "the model does not take tools and structured output in one request"
    if capabilities.json_schema:
        return "schema, not enforced" if capabilities.schema_on_demand and not demanded else "native_schema", None
    if capabilities.json_object:
        return "native_json", "the model takes no JSON Schema; it is held to a JSON object only"
    return "prompt", "the model has no structured output; the form is asked for in the prompt"


class JSONLayout(Layout):
    """Outputs as members of an object."""

    def __init__(
        self, visible: VisibleFields, *, with_schema: bool, required: bool = False, keeps_criteria: bool = False
    ) -> None:
        super().__init__(visible)
        self._object = ObjectCodec(visible.outputs)
        self._with_schema, self._required, self._keeps_criteria = with_schema, required, keeps_criteria

    def format_instructions(self) -> str:
        form = INPUT_HEADERS
        if self.outputs:
            members = [f'"{s.name}": <{brief_type_text(s, _MAX_TYPE) or s.name}>' for s in self.visible.outputs]
            form += f" Reply with only a JSON object of this form:\n\n{{{', '.join(members)}}}"
        return "\n\n".join([*self.describe_fields(), form])

    def format_reminder(self) -> str:
        members = ", ".join(f'"{spec.name}"{type_suffix(spec, _MAX_TYPE)}' for spec in self.visible.outputs)
        noun = "field" if len(self.outputs) == 1 else "fields"
        return f"Reply with a JSON object with the {noun} {members}."

    def write(self, values: FieldValues) -> str:
        members = {name: codec.dump(values[name]) for name, codec in self.outputs if name in values}
        return json.dumps(members, ensure_ascii=False) if members else ""

    def starts_outputs(self, text: str) -> bool:
        return text.startswith("{")

    def places(self, text: str) -> dict[str, tuple[int, int]]:
        found = places_in_json(text, max(text.find("{"), 0))
        return {str(path[0]): place for path, place in found.items() if len(path) == 1}

    def output_reader(self, events: FieldEvents) -> OutputReader:
        from sigwire.adapters.streaming.json_members import JsonMemberReader

        return JsonMemberReader(self.outputs, events)

    def read(self, text: str, strict: bool) -> FieldReadings:
        return self._object.read(text, strict=strict)

    def response_format(self) -> ResponseFormat | None:
        schema = output_schema(self.visible.outputs, keeps_criteria=self._keeps_criteria) if self._with_schema else None
        return ResponseFormat(schema, required=self._required)
