"""Structured output: the strictest form that the host, the model and the schema allow, else an instruction.

choose_output(wanted, modes, has_tools, target)   the form for the response format of a request
add_instruction(messages, text)                   the instruction in the first system message of a wire's messages
"""

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

__all__ = ["OutputForm", "StructuredMode", "add_instruction", "choose_output"]

StructuredMode: TypeAlias = Literal["json_schema", "json_object"]
"""A form that a host enforces; also the name of the capability of a model."""


class OutputForm(NamedTuple):
    """The form in which output is requested: enforced (``mode``), or by an instruction in the prompt.

    ``schema`` is compiled for the wire, ``name`` fits every wire. ``strict``: whether the host is asked to enforce it.
    ``instruction`` is ``""`` if none is needed.
    """

    mode: StructuredMode | None = None
    schema: JsonObject | None = None
    name: str = ""
    instruction: str = ""
    warnings: tuple[LMWarning, ...] = ()
    strict: bool = False


_ANY_OUTPUT = OutputForm()


def choose_output(
    wanted: ResponseFormat | None, modes: Collection[StructuredMode], has_tools: bool, target: Target[WireProfile]
) -> OutputForm:
    """Return the form for a response format. ``modes`` are those of the host; tools exclude them on some models.

    Raises ``UnsupportedFeature`` if the format is required and cannot be enforced, and for a root that the host refuses.
    """
    if wanted is None:
        return _ANY_OUTPUT
    is_blocked = has_tools and not target.capabilities.tools_with_json_schema
    able: list[StructuredMode] = [mode for mode in modes if not is_blocked and getattr(target.capabilities, mode)]
    if wanted.schema is None:
        feature = "JSON output without a schema"
        if "json_object" in able:
            return OutputForm("json_object")
    else:
        feature = "structured output by schema"
        if "json_schema" in able:
            form = _compile_output(wanted, wanted.schema, target)
            return form if isinstance(form, OutputForm) else _replace_output(wanted, able, form)
    return _replace_output(wanted, able, f"{target.label} has no {feature}{' beside tools' * is_blocked} here.")


def _compile_output(wanted: ResponseFormat, schema: JsonObject, target: Target[WireProfile]) -> OutputForm | str:
    """Return the enforced form, or the reason why the host does not take the schema."""
    strict = wanted.required and target.capabilities.schema_on_demand
    rules = target.profile.strict_schema if strict else target.profile.output_schema
    if rules is None:
        return f"{target.label} takes the schema but does not enforce it."
    try:
        compiled, lost = compile_schema(schema, rules, f"the output {wanted.name!r}", target.label)
    except UnsupportedFeature as refusal:
        if rules.root != "any" and not strict:
            raise
        return str(refusal)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", wanted.name)[:64] or "response"
    return OutputForm("json_schema", compiled, name, "", lost, strict)


def _replace_output(wanted: ResponseFormat, modes: Collection[StructuredMode], reason: str) -> OutputForm:
    """Return an instruction with the whole schema; a weaker schema would admit answers that do not fit it."""
    if wanted.required:
        raise UnsupportedFeature(f"{reason} The request requires it, so nothing was sent.")
    native: StructuredMode | None = "json_object" if "json_object" in modes else None
    sent = "native_json" if native else "prompt"
    warning = LMWarning("response_format", f"{reason} An instruction requests it instead.", sent)
    return OutputForm(native, instruction=_schema_instruction(wanted.schema), warnings=(warning,))


def _schema_instruction(schema: JsonObject | None) -> str:
    """Return the instruction that replaces structured output on a wire without it."""
    if schema is None:
        return "Reply with only a JSON object."
    return f"Reply with only a JSON value that matches this JSON Schema:\n{dumps(schema)}"


def add_instruction(messages: list[JsonObject], text: str) -> list[JsonObject]:
    """Return encoded messages with an instruction in the first system message, or in a new one."""
    if not text:
        return messages
    if messages and messages[0]["role"] == "system" and isinstance(content := messages[0]["content"], str):
        return [{**messages[0], "content": f"{content}\n\n{text}" if content else text}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]
