"""The abilities of a model, as data. Adapters decide by them; nothing inspects a model's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sigwire.core.json import Value
from sigwire.keywords import ChecksKeywords

__all__ = ["Capabilities"]


@dataclass(frozen=True, slots=True)
class Capabilities(Value, ChecksKeywords):
    """The abilities of a model. The defaults describe the minimum: text in, text out.

    ``native_tools``: accepts a ``tools`` list and answers with calls; ``tool_choice``: can be forced to call;
    ``json_schema`` / ``json_object``: structured output by schema / any object; ``tools_with_json_schema``: both in one
    request; ``schema_on_demand``: the model is held only to a schema that is demanded (``require_schema``), else to each;
    ``reasoning``: thinks natively; ``reasoning_hidden``: its provider does not show the thinking; ``reasoning_unasked``: it
    thinks and shows that without being asked; ``images`` ``audio`` ``files``: accepts such parts; ``runs_own_tools``: an
    agent behind an API, whose text is never scanned for calls; ``context_window`` and ``max_output_tokens`` in tokens,
    ``None`` if unknown; ``decides``: answers with distributions ("also" beside texts, "only": to nothing but questions).

    >>> Capabilities(native_tools=True).native_tools
    True
    """

    native_tools: bool = False
    parallel_tool_calls: bool = False
    tool_choice: bool = False
    json_schema: bool = False
    json_object: bool = False
    tools_with_json_schema: bool = False
    schema_on_demand: bool = False
    reasoning: bool = False
    reasoning_hidden: bool = False
    reasoning_unasked: bool = False
    images: bool = False
    audio: bool = False
    files: bool = False
    streaming: bool = False
    runs_own_tools: bool = False
    context_window: int | None = None
    max_output_tokens: int | None = None
    decides: Literal["no", "also", "only"] = "no"
