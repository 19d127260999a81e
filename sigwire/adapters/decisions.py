"""The layout for models that decide only: the outputs are questions of the request, and the answer is a JSON object.

The prompt has no outline and no form of the answer: the model reads the instructions, the demos and the inputs, and answers
the JSON Schema of the outputs. ``Adapter.compile`` uses it for such models, whatever the adapter is.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from sigwire.adapters.plan_parts import PlanSetup
from sigwire.adapters.prompts.layout import Layout, VisibleFields
from sigwire.adapters.values.objects import FieldReadings, ObjectCodec
from sigwire.adapters.values.output_schema import output_schema
from sigwire.core.record import FieldValues
from sigwire.core.request import ResponseFormat
from sigwire.errors import UnsupportedFeature

if TYPE_CHECKING:
    from sigwire.adapters.options import AdapterOptions
    from sigwire.core.capabilities import Capabilities
    from sigwire.signatures.signature import SignatureClass

__all__ = ["DecisionsLayout", "decisions_setup"]


class DecisionsLayout(Layout):
    """Outputs as questions; demos have their answers as one JSON object."""

    unprompted: ClassVar[bool] = True

    def __init__(self, visible: VisibleFields) -> None:
        super().__init__(visible)
        self._object = ObjectCodec(visible.outputs)

    def format_instructions(self) -> str:
        return ""

    def format_reminder(self) -> str:
        return ""

    def write(self, values: FieldValues) -> str:
        members = {name: codec.dump(values[name]) for name, codec in self.outputs if name in values}
        return json.dumps(members, ensure_ascii=False) if members else ""

    def starts_outputs(self, text: str) -> bool:
        return text.startswith("{")

    def read(self, text: str, strict: bool) -> FieldReadings:
        return self._object.read(text, strict=strict)

    def response_format(self) -> ResponseFormat:
        return ResponseFormat(output_schema(self.visible.outputs, keeps_criteria=True))


def decisions_setup(
    adapter: AdapterOptions, signature: SignatureClass, capabilities: Capabilities, visible: VisibleFields
) -> PlanSetup:
    """Return the setup of a plan for a model that decides only. Raises ``UnsupportedFeature`` for a signature with tools."""
    if signature.spec.tools_field is not None:
        raise UnsupportedFeature(
            f"{signature.__name__} has tools, and the model answers questions only: it cannot call one (making a plan). "
            "Run the tools with another model, and let this one decide from their results."
        )
    layout = DecisionsLayout(visible)
    return PlanSetup(adapter, signature, capabilities, layout, None, "decisions", (), layout)
