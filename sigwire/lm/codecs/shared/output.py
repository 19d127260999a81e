"""Structured output: the strictest form that host, model and schema allow, chosen in one place for every wire."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple, TypeAlias

from sigwire.core.json import JsonObject, dumps
from sigwire.core.request import ResponseFormat
from sigwire.core.response import LMWarning
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.lm.codecs.shared.schema import compile_schema

__all__ = ["OutputForm", "StructuredMode", "choose_output", "schema_instruction"]

StructuredMode: TypeAlias = Literal["json_schema", "json_object"]
"""A form that a host enforces; also the name of the capability of a model."""


class OutputForm(NamedTuple):
    """The form in which output is requested: enforced (``mode``), or by an instruction in the prompt.

    ``schema`` is compiled for the wire, ``name`` fits every wire. ``instruction`` is ``""`` if none is needed.
    """

    mode: StructuredMode | None = None
    schema: JsonObject | None = None
    name: str = ""
    instruction: str = ""
    warnings: tuple[LMWarning, ...] = ()


def choose_output(
    wanted: ResponseFormat | None,
    modes: Collection[StructuredMode],
    target: Target[WireProfile],
    *,
    with_tools: bool = False,
    blocked: bool = False,
) -> OutputForm:
    """Return the form for a response format. ``modes`` are those of the host, ``blocked`` excludes them.

    Raises ``UnsupportedFeature`` if the format is required and cannot be enforced, and for a root that the host refuses.
    """
    if wanted is None:
        return OutputForm()
    able, schema = target.capabilities, wanted.schema
    blocked = blocked or (with_tools and not able.tools_with_json_schema)
    modes = () if blocked else [mode for mode in modes if getattr(able, mode)]
    native: StructuredMode | None = "json_object" if "json_object" in modes else None
    if schema is None and native:
        return OutputForm(native)
    feature = "JSON output without a schema" if schema is None else "structured output by schema"
    reason = f"{target.label} has no {feature}{' beside tools' if blocked else ''} here."
    if schema is not None and "json_schema" in modes:
        rules = target.profile.output_schema
        try:
            compiled, lost = compile_schema(schema, rules, f"the output {wanted.name!r}", target.label)
        except UnsupportedFeature as refusal:
            if rules.root != "any":
                raise
            reason = str(refusal)
        else:
            name = re.sub(r"[^A-Za-z0-9_-]", "_", wanted.name)[:64] or "response"
            return OutputForm("json_schema", compiled, name, "", lost)
    if wanted.required:
        raise UnsupportedFeature(f"{reason} The request requires it, so nothing was sent.")
    # The instruction has the whole schema; a weaker schema would admit answers that do not fit it.
    detail = f"{reason} An instruction requests it instead."
    warning = LMWarning("response_format", detail, "native_json" if native else "prompt")
    return OutputForm(native, instruction=schema_instruction(schema), warnings=(warning,))


def schema_instruction(schema: JsonObject | None) -> str:
    """Return the instruction that replaces structured output on a wire without it.

    >>> schema_instruction(None)
    'Reply with only a JSON object.'
    """
    if schema is None:
        return "Reply with only a JSON object."
    return f"Reply with only a JSON value that matches this JSON Schema:\n{dumps(schema)}"
