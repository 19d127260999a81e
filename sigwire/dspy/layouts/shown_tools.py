"""Tools as an input to read: in a signature without an output for calls, a model gets their texts and calls none."""

from __future__ import annotations

from typing import Any, cast

import pydantic

from sigwire.adapters.values.typed_json import untyped_json
from sigwire.core.json import JsonObject
from sigwire.dspy.tools import Tool
from sigwire.dspy.types import Type
from sigwire.modules.agents.toolbox import ToolsLike, as_tools
from sigwire.signatures.signature import SignatureClass

__all__ = ["with_shown_tools"]


def with_shown_tools(signature: SignatureClass) -> SignatureClass:
    """Return the signature; without an output for calls its tools are texts.

    >>> from sigwire.signatures import Signature
    >>> planned = with_shown_tools(Signature("task, tools: list[Tool] -> plan", custom_types={"Tool": Tool}))
    >>> planned.spec.tools_field is None
    True
    """
    tools = signature.spec.tools_field
    if tools is None or signature.spec.calls_field is not None:
        return signature
    return signature.with_updated_fields(tools.name, ToolTexts)


class ToolTexts(Type):
    """Tools in any form, as texts."""

    texts: list[str]

    @pydantic.model_validator(mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        return {"texts": [str(Tool.of(tool)) for tool in as_tools(cast(ToolsLike, value))]}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> JsonObject:
        return {"type": "array", "items": {"type": "string"}}

    def format(self) -> str:
        """Return the texts as a list."""
        return untyped_json(self.texts)
