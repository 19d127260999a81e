"""``TracingListener``: a listener that makes a span of each call.

    predict      a predictor: ``predict {path}``. A predictor inside one (``ChainOfThought``) has no span of its own.
    agent        ``invoke_agent {path}``
    workflow     the outermost module of the user, an evaluation, a compilation: ``invoke_workflow {class}``
    example      a run of an evaluation
    chat         a call of a model, with its retries: ``chat {model}``
    tool         ``execute_tool {name}``

The path of a module is that in the program around it; a module that is no part of that program, as inside a tool, starts
another program. Formatting and parsing have no spans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry._logs import Logger
from opentelemetry.trace import SpanKind, Tracer

from sigwire.core.example import Prediction, outputs_of
from sigwire.core.report import CallReport
from sigwire.core.response import Response, Usage
from sigwire.core.tools.calls import ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.observe.callbacks import ACTIVE_TOOL_CALL, BaseCallback
from sigwire.observe.place import running
from sigwire.observe.tracing import names
from sigwire.observe.tracing.attributes import (
    AttributeMap,
    CallFacts,
    attempt_attributes,
    is_in_process,
    request_attributes,
    response_attributes,
)
from sigwire.observe.tracing.content import Content
from sigwire.observe.tracing.events import emit_scores
from sigwire.observe.tracing.metrics import Metrics
from sigwire.observe.tracing.paths import name_in, paths_of
from sigwire.observe.tracing.spans import OpenSpan, current_span, end_span, start_span
from sigwire.signatures.types.history import History

__all__ = ["TracingListener"]

_PREDICT, _EXAMPLE = "predict", "example"
# By class name, subclasses included: observe does not import modules.
_ROLES = {"ReAct": names.INVOKE_AGENT, "ChainOfThought": _PREDICT, "Predict": _PREDICT}
_NO_CONTENT = frozenset({"config", "lm", "signature"})  # arguments of a predictor that are no inputs
_CANCELLATIONS = frozenset({"CancelledError", "GeneratorExit", "StreamCancelled"})


class TracingListener(BaseCallback):
    """Makes spans, metrics and events. Threads share it."""

    def __init__(self, tracer: Tracer, metrics: Metrics, logger: Logger, content: Content) -> None:
        self._tracer, self._metrics, self._logger, self._content = tracer, metrics, logger, content
        self._open: dict[str, OpenSpan] = {}
        self._metric_names: dict[str, str] = {}  # of the examples under way, by the id of the call

    # --- modules

    def on_module_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        role = _role_of(instance)
        around = current_span()
        is_inside = around is not None and id(instance) in around.paths
        if is_inside and (role == names.INVOKE_WORKFLOW or (around is not None and around.role == role == _PREDICT)):
            return
        paths = around.paths if around is not None and is_inside else paths_of(instance)
        name = name_in(paths, instance)
        attributes: AttributeMap = {
            names.PATH: name,
            **_turn_attributes(),
            **_START_ATTRIBUTES[role](role, name, instance),
        }
        if self._content.is_on:
            attributes |= self._content.attributes(names.INPUTS, _shown_inputs(inputs))
        facts: AttributeMap = {names.AGENT_NAME: name} if role == names.INVOKE_AGENT else {}
        self._start(call_id, f"{role} {name}", attributes, role=role, name=name, paths=paths, facts=facts)

    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        if (opened := self._open.get(call_id)) is None:
            return
        attributes: AttributeMap = {}
        if isinstance(outputs, Prediction):
            report = CallReport.of(outputs)
            attributes |= {names.REPAIRS: len(report.repairs)} | ({names.MODE: report.mode} if report.mode else {})
        if opened.role == names.INVOKE_AGENT:
            attributes |= _run_attributes(outputs if exception is None else exception)
        if exception is None and self._content.is_on:
            attributes |= self._content.attributes(names.OUTPUTS, _shown_outputs(outputs))
        self._end(call_id, attributes, exception)

    def on_adapter_format_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        if (around := current_span()) is not None and around.role == _PREDICT:
            around.span.set_attribute(names.ADAPTER, type(instance).__name__)

    # --- models

    def on_lm_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        attributes = request_attributes(instance, inputs)
        facts = {name: attributes[name] for name in _MEASURED if name in attributes}
        provider, model = str(attributes[names.PROVIDER]), str(attributes[names.REQUEST_MODEL])
        around = current_span()
        module = around and (around.nearest(_PREDICT) or around.nearest(names.INVOKE_AGENT))
        attributes |= {**({names.PATH: module.name} if module else {}), **_turn_attributes()}
        attributes |= self._content.of_request(inputs.get("request"))
        kind = SpanKind.INTERNAL if is_in_process(provider) else SpanKind.CLIENT
        self._start(call_id, f"{names.CHAT} {model}", attributes, role=names.CHAT, name=model, kind=kind, facts=facts)

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        if (opened := self._open.get(call_id)) is None:
            return
        response = outputs if exception is None else getattr(exception, "partial", None)
        attributes = attempt_attributes(getattr(exception, "attempts", ()))
        usage = Usage()
        if isinstance(response, Response):
            attributes |= response_attributes(response) | self._content.of_response(response)
            usage = response.usage
            if response.model is not None:
                opened.facts[names.RESPONSE_MODEL] = response.model
        if exception is not None:
            attributes.pop(names.RESPONSE_FINISH_REASONS, None)
        is_hit = isinstance(response, Response) and response.cache == "hit"
        facts = self._end(call_id, attributes, exception, is_measured=not is_hit)
        if not is_hit:
            self._metrics.record_tokens(usage, facts)

    # --- tools

    def on_tool_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        name = str(getattr(instance, "name", None) or type(instance).__name__)
        facts: AttributeMap = {names.TOOL_NAME: name, names.TOOL_TYPE: "function"}
        around = current_span()
        if (agent := around and around.nearest(names.INVOKE_AGENT)) is not None:
            facts[names.AGENT_NAME] = agent.name
        attributes: AttributeMap = {names.OPERATION: names.EXECUTE_TOOL, **facts, **_turn_attributes()}
        if (call := getattr(ACTIVE_TOOL_CALL.get(), "id", "")) and ACTIVE_TOOL_CALL.get().name == name:
            attributes[names.TOOL_CALL_ID] = call
        if description := str(getattr(instance, "description", None) or ""):
            attributes[names.TOOL_DESCRIPTION] = description
        attributes |= self._content.attributes(names.TOOL_ARGUMENTS, inputs)
        label = f"{names.EXECUTE_TOOL} {name}"
        self._start(call_id, label, attributes, role=names.EXECUTE_TOOL, name=name, facts=facts)

    def on_tool_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        attributes: AttributeMap = {}
        if isinstance(outputs, ToolResult):
            attributes |= self._content.attributes(names.TOOL_RESULT, outputs.content)
            if outputs.is_error:
                attributes[names.ERROR_TYPE] = "tool_error"
        elif exception is None:
            attributes |= self._content.attributes(names.TOOL_RESULT, outputs)
        self._end(call_id, attributes, exception)

    # --- evaluations and compilations

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        program = inputs.get("program")
        attributes: AttributeMap = {names.PROGRAM: _name_of(program), names.EXAMPLES: len(inputs.get("devset") or ())}
        self._start_workflow(call_id, instance, attributes)

    def on_evaluate_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        result = outputs if exception is None else getattr(exception, "result", None)
        known = {names.SCORE: getattr(result, "score", None), names.STATUS: getattr(result, "status", None)}
        self._end(call_id, {name: value for name, value in known.items() if value is not None}, exception)

    def on_example_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        attributes: AttributeMap = {
            names.EXAMPLE_ID: inputs["id"],
            names.EXAMPLE_INDEX: inputs["index"],
            names.EXAMPLE_REPEAT: inputs["repeat"],
        }
        attributes |= self._content.attributes(names.INPUTS, inputs["inputs"])
        self._metric_names[call_id] = str(inputs["metric"])
        self._start(call_id, _EXAMPLE, attributes, role=_EXAMPLE)

    def on_example_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        metric = self._metric_names.pop(call_id, "")
        attributes: AttributeMap = {}
        if exception is None and outputs is not None:
            emit_scores(self._logger, outputs, metric, self._content)
            if outputs.score is not None:
                attributes[names.SCORE] = float(outputs.score)
            if outputs.failure is not None:
                attributes |= {names.FAILURE: outputs.failure.kind, names.ERROR_TYPE: outputs.failure.type}
        self._end(call_id, attributes, exception)

    def on_compile_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        self._start_workflow(call_id, instance, {names.PROGRAM: _name_of(inputs.get("student"))})

    def on_compile_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self._end(call_id, {}, exception)

    # --- spans

    def _start_workflow(self, call_id: str, instance: object, attributes: AttributeMap) -> None:
        name = type(instance).__name__
        known = _workflow_attributes(names.INVOKE_WORKFLOW, name, instance)
        label = f"{names.INVOKE_WORKFLOW} {name}"
        self._start(call_id, label, known | attributes, role=names.INVOKE_WORKFLOW, name=name)

    def _start(self, call_id: str, label: str, attributes: AttributeMap, **options: Any) -> None:
        self._open[call_id] = start_span(self._tracer, label, attributes, **options)

    def _end(
        self, call_id: str, attributes: AttributeMap, exception: BaseException | None, *, is_measured: bool = True
    ) -> AttributeMap:
        """End a span and record its duration. Return the attributes of its metrics."""
        if (opened := self._open.pop(call_id, None)) is None:
            return {}
        event = None
        if exception is not None and _is_cancellation(exception):
            attributes[names.CANCELLED] = True
        elif exception is not None:
            attributes[names.ERROR_TYPE] = type(exception).__qualname__
            event = self._content.of_exception(exception)
        facts = dict(opened.facts)
        if (error := attributes.get(names.ERROR_TYPE)) is not None:
            facts[names.ERROR_TYPE] = error
        seconds = end_span(opened, attributes, event)
        if is_measured:
            self._metrics.record_duration(opened.role, seconds, facts)
        return opened.facts


_MEASURED = (names.OPERATION, names.PROVIDER, names.REQUEST_MODEL, names.SERVER_ADDRESS, names.SERVER_PORT)


def _role_of(module: object) -> str:
    return next((_ROLES[cls.__name__] for cls in type(module).__mro__ if cls.__name__ in _ROLES), names.INVOKE_WORKFLOW)


def _shown_inputs(inputs: CallFacts) -> Mapping[str, object]:
    """Return the inputs of a module as content. The messages of a history and the schemas of tools are on the model's span."""
    return {name: _shown_input(value) for name, value in inputs.items() if name not in _NO_CONTENT}


def _shown_input(value: object) -> object:
    if isinstance(value, History):
        return f"<history of {len(value)} messages>"
    if isinstance(value, list | tuple):
        return [item.name if isinstance(item, Tool) else item for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value.name if isinstance(value, Tool) else value


def _shown_outputs(outputs: object) -> object:
    if not isinstance(outputs, Prediction):
        return outputs
    try:
        return outputs_of(outputs)
    except ValueError:  # an output has no JSON form
        return vars(outputs)


def _turn_attributes() -> AttributeMap:
    number = running.get().turn
    return {} if number is None else {names.TURN: number}


def _signature_attributes(role: str, name: str, module: object) -> AttributeMap:
    signature = getattr(getattr(module, "signature", None) or _inner_signature(module), "signature", None)
    return {} if signature is None else {names.SIGNATURE: str(signature)}


def _inner_signature(module: object) -> object:
    return getattr(getattr(module, "predict", None), "signature", None)


def _agent_attributes(role: str, name: str, module: object) -> AttributeMap:
    return {names.OPERATION: role, names.AGENT_NAME: name, **_signature_attributes(role, name, module)}


def _workflow_attributes(role: str, name: str, module: object) -> AttributeMap:
    return {names.OPERATION: role, names.WORKFLOW_NAME: name}


_START_ATTRIBUTES: Mapping[str, Callable[[str, str, object], AttributeMap]] = {
    _PREDICT: _signature_attributes,
    names.INVOKE_AGENT: _agent_attributes,
    names.INVOKE_WORKFLOW: _workflow_attributes,
}


def _run_attributes(ended: object) -> AttributeMap:
    """Return turns and end of an agent's run. If an output has the name of a field of the run, the field has a prefix."""
    known: Mapping[str, Any] = getattr(ended, "__dict__", {})
    steps = known.get("run_steps", known.get("steps"))
    reason = known.get("run_termination_reason", known.get("termination_reason"))
    found: AttributeMap = {} if not isinstance(steps, tuple) else {names.TURNS: len(steps)}  # pyright: ignore[reportUnknownArgumentType]
    return found | ({names.TERMINATION: reason} if isinstance(reason, str) else {})


def _name_of(program: object) -> str:
    return str(getattr(program, "__name__", type(program).__name__))


def _is_cancellation(error: BaseException) -> bool:
    return any(cls.__name__ in _CANCELLATIONS for cls in type(error).__mro__)
