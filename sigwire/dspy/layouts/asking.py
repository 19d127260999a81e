"""Calls of an adapter by itself: ask a model once, parse an answer, write and read single values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, cast, get_origin

from pydantic import TypeAdapter

from sigwire.adapters.base import Adapter
from sigwire.adapters.plan import ParsedChoice, Plan
from sigwire.core.record import FieldValue, FieldValues
from sigwire.core.response import Choice, Response
from sigwire.core.tools import calls as core_calls
from sigwire.core.tools.choice import ToolChoice
from sigwire.dspy.called_models import as_model
from sigwire.dspy.layouts.thinking import prompted_capabilities, with_thinking
from sigwire.dspy.tools import ToolCalls
from sigwire.effects.steps import Steps
from sigwire.errors import AdapterParseError, EmptyResponse, MalformedToolCall, ModelError
from sigwire.lm.base import LanguageModel
from sigwire.modules.ask import Ask, resolve_lm
from sigwire.signatures.declarations import OutputField
from sigwire.signatures.signature import SignatureClass, make_signature

__all__ = ["ask_steps", "parse_steps", "read_value", "signature_of_values"]

_NATIVE = ("tools", "tool_choice", "parallel_tool_calls")


def ask_steps(
    adapter: Adapter,
    lm: LanguageModel,
    options: FieldValues,
    signature: SignatureClass,
    demos: Sequence[object],
    inputs: FieldValues,
    *,
    reasons: bool,
) -> Steps[list[dict[str, Any]]]:
    """Ask a model; return the fields of each choice. ``reasons``: outputs of type ``Reasoning`` switch it on.

    An answer that cannot be parsed leads to one more request with the fallback of the adapter, if it has one.
    """
    asked = partial(
        _asked_steps, lm=lm, options=options, signature=signature, demos=demos, inputs=inputs, reasons=reasons
    )
    try:
        return (yield from asked(adapter))
    except (AdapterParseError, EmptyResponse, MalformedToolCall) as failure:
        if (other := adapter.fallback()) is None:
            raise
        try:
            return (yield from asked(other))
        except ModelError as error:
            raise error from failure


def _asked_steps(
    adapter: Adapter,
    *,
    lm: LanguageModel,
    options: FieldValues,
    signature: SignatureClass,
    demos: Sequence[object],
    inputs: FieldValues,
    reasons: bool,
) -> Steps[list[dict[str, Any]]]:
    lm, dropped = as_model(lm), _NATIVE if adapter.native_tools is False else ()
    options = {name: value for name, value in options.items() if name not in dropped}
    if reasons:
        options = with_thinking(signature, lm, options)
    plan = adapter.plan(signature, prompted_capabilities(lm, options))
    request = plan.format(inputs, demos, options or None)
    if request.tools and request.parallel_tool_calls is not None and request.tool_choice is None:
        request = replace(request, tool_choice=ToolChoice("auto"))
    response: Response = yield Ask(lm, request)
    answers: list[dict[str, Any]] = []
    for choice in plan.normalize(response, plan.tools_of(inputs)).choices:
        fields = yield from parse_steps(plan, choice, plan.parse)
        answers.append({name: _shown(fields.get(name)) for name in signature.output_fields})
    return answers


def parse_steps(plan: Plan, choice: Choice, parse: Callable[[Choice], ParsedChoice]) -> Steps[dict[str, Any]]:
    """Return the fields of a choice, after a second request if the adapter needs one.

    The error of a second answer names the adapter, the signature and the first answer; its cause has the second.
    """
    follow_up = plan.follow_up(choice)
    if follow_up is None:
        return parse(choice).fields
    response: Response = yield Ask(resolve_lm(follow_up.lm, "the second request of the adapter"), follow_up.request)
    second = follow_up.plan
    try:
        return second.parse(second.normalize(response, ()).choices[0]).fields
    except AdapterParseError as error:
        problem = f"Failed to parse response of the extraction model: {error}"
        name, found, problems = type(plan.adapter).__name__, error.parsed_result, error.problems
        raise AdapterParseError(name, plan.signature, choice.text, problem, found, problems=problems) from error


def _shown(value: object) -> object:
    """Return calls as those of the door; no calls are ``None``."""
    return (ToolCalls.of(value) if value else None) if isinstance(value, core_calls.ToolCalls) else value


def signature_of_values(annotations: Mapping[str, object]) -> SignatureClass:
    """Return a signature whose outputs are values of types."""
    return make_signature({name: (kind, OutputField()) for name, kind in annotations.items()}, "Write the fields.")


def read_value(adapter: Adapter, value: object, annotation: FieldValue) -> FieldValue:
    """Return a value of the type, read by an adapter of headers as a field of an answer is read."""
    if not isinstance(value, str):
        return str(value) if annotation is str else TypeAdapter(annotation).validate_python(value)
    if cast(object, get_origin(annotation)) is Literal and (
        named := re.fullmatch(r"(?:Literal|str)\[(.*)\]", value.strip())
    ):
        value = named[1]
    signature = make_signature({"value": (annotation, OutputField())}, "Read the value.")
    answer = Choice(f"[[ ## value ## ]]\n{value}\n\n[[ ## completed ## ]]")
    return adapter.plan(signature).parse(answer).fields["value"]
