"""Plan: one adapter compiled for one signature and one model's capabilities. A call only fills in values.

    format(inputs, demos, options) -> Request      messages in order: system, demos, history, current inputs
    normalize(response, tools) -> Response         calls written as text become calls; warnings are added
    parse(choice) -> ParsedChoice                  the finish reason first, then the fields, with listed repairs
    reask(request, choice, error) -> Request       the conversation, the answer and its errors
    follow_up(choice) -> FollowUp | None           a second request that the adapter needs (TwoStep)

A plan runs no tool and calls no model. It caches written demos, turns and tool prompts; equal inputs give equal requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from sigwire.adapters.finish import (
    check_finish_reason,
    drop_truncated_calls,
    truncated_error,
    with_calls,
    with_unique_ids,
)
from sigwire.adapters.options import AdapterOptions, ToolsMode, check_tool_choice
from sigwire.adapters.plan_parts import PlanParts, PlanSetup
from sigwire.adapters.prompts.demos import EXAMPLES_NOTE, examples_note
from sigwire.adapters.prompts.excerpts import shorten_answer
from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.prompts.tool_prompt import ANSWER_PLAINLY, ToolPrompt
from sigwire.adapters.values.codecs import ABSENT
from sigwire.adapters.values.lead_in import lead_in_end
from sigwire.adapters.values.objects import FieldReadings
from sigwire.core.capabilities import Capabilities
from sigwire.core.example import Prediction
from sigwire.core.messages import Message, Part
from sigwire.core.narrow import is_mapping
from sigwire.core.parts import OpaquePart
from sigwire.core.record import FieldValues
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning, Repair, Response
from sigwire.core.tools.calls import CallError, ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.choice import ToolChoice, read_tool_choice
from sigwire.core.tools.tool import Tool
from sigwire.errors import AdapterParseError, InputError, ModelError, Refused
from sigwire.signatures.fields import FieldSpec, SignatureSpec
from sigwire.signatures.signature import SignatureClass

if TYPE_CHECKING:
    from sigwire.adapters.text_tools import TextReader, ToolCatalog

__all__ = ["FollowUp", "ParsedChoice", "Plan", "is_tool_trace"]

_NO_REASONING = "the text has no reasoning, and the provider sent no thinking"


class ParsedChoice(NamedTuple):
    """The fields of one choice, and what had to be repaired to read them."""

    fields: dict[str, Any]
    repairs: tuple[Repair, ...] = ()
    evidence: Mapping[str, Any] | None = None  # of the second request of an adapter


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A second request: the model that it is for, the plan that parses the answer, the request."""

    lm: object
    plan: Plan
    request: Request


class Plan:
    """The way in which one adapter asks one signature of one kind of model. ``setup``: its options; ``parts``: its writers."""

    def __init__(self, setup: PlanSetup) -> None:
        self.setup, self.parts = setup, PlanParts.of(setup)
        self._added_fields: FieldValues | None = None

    @property
    def adapter(self) -> AdapterOptions:
        """The adapter whose plan this is."""
        return self.setup.adapter

    @property
    def signature(self) -> SignatureClass:
        """The signature that is asked."""
        return self.setup.signature

    @property
    def spec(self) -> SignatureSpec:
        """The fields of the signature."""
        return self.parts.spec

    @property
    def layout(self) -> Layout:
        """The notation of fields in prompts."""
        return self.setup.layout

    @property
    def mode(self) -> str:
        """How outputs are requested: "native_schema", "schema, not enforced", "native_json", "prompt" or "decisions"."""
        return self.setup.mode

    @property
    def tools_mode(self) -> ToolsMode | None:
        """How tools are offered: "native", "text", or ``None`` if the signature has none."""
        return self.setup.tools_mode

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model."""
        return self.setup.capabilities

    @property
    def warnings(self) -> tuple[LMWarning, ...]:
        """Options that the model cannot satisfy."""
        return self.setup.warnings

    @property
    def written(self) -> Layout:
        """The notation of fields in answers, which may have reasoning that the prompt does not ask for."""
        return self.setup.written

    @property
    def thinking(self) -> tuple[FieldSpec, ...]:
        """The reasoning fields that the text of an answer does not have."""
        return self.parts.thinking

    @property
    def thoughts(self) -> tuple[tuple[str, str], ...]:
        """The pairs of tags around thinking in a text."""
        return self.parts.thoughts

    def __repr__(self) -> str:
        return f"Plan({type(self.adapter).__name__}, {self.signature.__name__}, {self.mode}, tools={self.tools_mode})"

    def tools_of(self, inputs: FieldValues) -> tuple[Tool, ...]:
        """Return the tools in a call's inputs; functions become tools. Raises ``InputError`` if two have one name."""
        name = self.parts.tools_name
        return () if name is None else self.parts.tool_prompts.prompt_of(inputs.get(name)).tools

    def format(
        self, inputs: FieldValues, demos: Sequence[object] = (), options: Mapping[str, Any] | None = None
    ) -> Request:
        """Return the request for these inputs.

        ``options`` are request options, with ``tool_choice`` and ``parallel_tool_calls``. Raises ``InputError`` for two tools
        of one name, a ``tool_choice`` that is not offered, and a demo or turn that is no mapping.
        """
        settings: dict[str, Any] = dict(options) if options else {}
        choice = parallel = None
        if settings:
            choice = read_tool_choice(settings.pop("tool_choice", None))
            parallel = settings.pop("parallel_tool_calls", None)
        if parallel is None:
            parallel = self.setup.adapter.parallel_tool_calls
        prompt = self._tool_prompt(inputs, choice)
        messages = self._first_messages(prompt, demos)
        first = len(messages)
        history = inputs.get(self.parts.history_name) if self.parts.history_name is not None else None
        if history:
            self.parts.history.extend(messages, history)
        # If there are no inputs, a conversation that ends with a user's turn or tool results continues as it is.
        if not self.setup.layout.input_names.isdisjoint(inputs) or messages[-1].role not in ("tool", "user"):
            reminder = self.parts.tool_prompts.reminder(prompt, choice)
            messages.append(Message("user", self.setup.layout.write_inputs(inputs, after=reminder)))
        # All of a conversation is repeated by other requests, else the messages up to the demos.
        repeated = (first, len(messages)) if history else (first,) if demos else ()
        part = (
            self._repeated_part(inputs, history, first, len(messages) - 1) if self.setup.layout.has_repeated else None
        )
        if not prompt.specs:
            choice = parallel = None
        form = self.parts.response_format
        return Request(tuple(messages), prompt.specs, choice, parallel, form, settings, repeated, part)

    def _repeated_part(self, inputs: FieldValues, history: Any, first: int, last: int) -> tuple[int, int] | None:
        """Return the message that starts with inputs of many calls, and the number of their parts.

        ``first`` is the first message behind instructions and demos: a turn of the history, if there is one.
        """
        turns: Sequence[Any] = getattr(history, "messages", history) or ()
        values = turns[0] if turns else inputs
        count = self.setup.layout.repeated_parts(values) if is_mapping(values) else 0
        return (first if turns else last, count) if count else None

    def _tool_prompt(self, inputs: FieldValues, choice: ToolChoice | None) -> ToolPrompt:
        prompts = self.parts.tool_prompts
        prompt = (
            prompts.empty if self.parts.tools_name is None else prompts.prompt_of(inputs.get(self.parts.tools_name))
        )
        if choice is None:
            return prompt
        if prompt.by_name:
            check_tool_choice(choice, prompt.by_name)
        return prompts.empty if self.setup.tools_mode == "text" and choice.mode == "none" else prompt

    def _first_messages(self, prompt: ToolPrompt, demos: Sequence[object]) -> list[Message]:
        if not demos:
            return [self.parts.tool_prompts.system_message(prompt)]
        if self.parts.demos_in_system:
            examples = self.parts.demos.text(demos)
            system = self.parts.tool_prompts.system_message(prompt, EXAMPLES_NOTE if examples else "")
            return [Message.system(f"{examples}\n\n{system.text}") if examples else system]
        exchanges = self.parts.demos.exchanges(demos)
        messages = [self.parts.tool_prompts.system_message(prompt, examples_note(len(exchanges)))]
        for exchange in exchanges:
            messages += exchange
        return messages

    def normalize(self, response: Response, tools: Iterable[Tool] = (), *, taken: Iterable[str] = ()) -> Response:
        """Return the response with text calls moved out of the text into ``tool_calls``, and the plan's warnings.

        ``tools`` are the offered ones; if there are none, no text is read for calls. ``taken`` are call ids that the
        conversation uses: a call that repeats one gets another id. The text of a provider that runs its own tools is never
        read for calls.
        """
        if not (tools or self.setup.warnings) and _has_no_calls(response.choices):
            return response
        warnings = list(self.setup.warnings)
        choices = with_unique_ids(response.choices, taken)
        choices = self._read_text_calls(choices, tuple(tools), taken, warnings)
        choices = drop_truncated_calls(choices, warnings)
        if not warnings and choices is response.choices:
            return response
        return replace(response, choices=choices, warnings=response.warnings + tuple(warnings))

    def _read_text_calls(
        self, choices: tuple[Choice, ...], tools: tuple[Tool, ...], taken: Iterable[str], warnings: list[LMWarning]
    ) -> tuple[Choice, ...]:
        if not (self.parts.reads_calls and tools and any(map(_is_readable, choices))):
            return choices
        catalog = self.parts.tool_prompts.catalog_of(tools)
        if not catalog.tools:
            return choices
        read = [
            self._read_calls_of(choice, catalog, taken, warnings) if _is_readable(choice) else choice
            for choice in choices
        ]
        return choices if all(map(is_, read, choices)) else tuple(read)

    def _read_calls_of(
        self, choice: Choice, catalog: ToolCatalog, taken: Iterable[str], warnings: list[LMWarning]
    ) -> Choice:
        from sigwire.adapters.text_tools import read_calls

        found = read_calls(
            choice.text,
            catalog,
            thinking="over" if choice.reasoning else "unknown",
            whole_message=self.parts.calls_alone,
            truncated=choice.finish_reason == "length",
            taken=taken,
        )
        if found.reasoning and not choice.reasoning:
            choice = replace(choice, reasoning=found.reasoning)
        if not found.calls:
            return choice if found.text == choice.text else with_calls(choice, found.text, ())
        warnings += self._scan_warnings(found.dialect, found.notes)
        return with_calls(choice, found.text, found.calls)

    def _scan_warnings(self, dialect: str | None, notes: Iterable[str]) -> Iterator[LMWarning]:
        """Yield a warning if calls were read in another form than the one asked for, and the notes of the reader."""
        if self.setup.tools_mode == "native":
            yield LMWarning("native_tools", f"the model wrote its calls as text; they were read as {dialect}")
        elif dialect != self.parts.style.name and dialect not in self.parts.style.dialects:
            yield LMWarning("text_tools", f"the calls were not written in the form that was taught, but as {dialect}")
        for note in notes:
            yield LMWarning("text_tools", note)

    def check_calls(self, response: Response, tools: Iterable[Tool] = ()) -> Response:
        """Return the response with an ``error`` in each call that does not fit its tool; arguments stay unchanged."""
        by_name = self._by_name(tools)
        choices = tuple(_check_calls(choice, by_name) for choice in response.choices) if by_name else response.choices
        return response if choices == response.choices else replace(response, choices=choices)

    def check_call(self, call: ToolCall, tools: Iterable[Tool]) -> ToolCall:
        """Return a call, with an ``error`` if it does not fit one of the tools. Without tools nothing is checked."""
        by_name = self._by_name(tools)
        return _check_call(call, by_name) if by_name else call

    def _by_name(self, tools: Iterable[Tool]) -> Mapping[str, Tool]:
        prompt = self.parts.tool_prompts.find(tools := tuple(tools))
        return {tool.name: tool for tool in tools} if prompt is None else prompt.by_name

    def text_reader(
        self, tools: Iterable[Tool] = (), *, taken: Iterable[str] = (), thought: bool = False
    ) -> TextReader | None:
        """Return a reader of calls in a streamed text; ``None`` if text is not read for calls.

        The reader finds what ``normalize`` finds in a choice without native calls. ``thought``: the provider sent the
        reasoning separately, so the text holds none.
        """
        offered = tuple(tools)
        if not self.parts.reads_calls or not offered:
            return None
        from sigwire.adapters.text_tools import TextReader

        return TextReader(
            self.parts.tool_prompts.catalog_of(offered),
            thinking="over" if thought else "unknown",
            whole_message=self.parts.calls_alone,
            taken=taken,
        )

    def parse(self, choice: Choice) -> ParsedChoice:
        """Return the fields of a normalized choice.

        Raises ``OutputTruncated``, ``ContentFiltered``, ``Refused``, ``EmptyResponse``, ``MalformedToolCall``, or
        ``AdapterParseError`` with the problems by field.
        """
        has_calls = bool(choice.tool_calls) and self.parts.calls_name is not None
        if choice.refusal and choice.evidence is not None:
            raise self._refused_questions(choice)
        check_finish_reason(choice, has_calls=has_calls)
        if has_calls:
            reading = self._read_with_calls(choice)
        elif not self.setup.layout.outputs:
            reading = FieldReadings()
        else:
            reading = self._read(choice.text, choice.reasoning or "")
            if reading.problems:
                raise self._parse_error(choice, reading)
        if self._added_fields is not None or self.parts.has_fields_outside_text:
            fields = self.fields_outside_text(choice)
            reading.values.update(fields if choice.reasoning else self._with_written(fields, reading))
        return ParsedChoice(reading.values, tuple(reading.repairs))

    def places(self, text: str) -> Mapping[str, tuple[int, int]]:
        """Return where the values of outputs stand in an answer, as start and end. Thinking in front of it is skipped."""
        if "</think" not in text and "[/THINK]" not in text:
            return self.setup.written.places(text)
        answer, _ = self._without_thoughts(text.lstrip())
        before = len(text) - len(answer)
        found = self.setup.written.places(answer)
        return {name: (start + before, end + before) for name, (start, end) in found.items()}

    def _with_thought(self, reading: FieldReadings, thought: str) -> FieldReadings:
        """Use thinking for reasoning that the model did not write. An answer of a thinking model is valid without both."""
        for field in self.parts.reasoning:
            name = field.name
            if reading.values.get(name) or reading.problems.get(name, ABSENT) != ABSENT:
                continue
            if thought or (
                name in reading.problems and self.setup.capabilities.reasoning and not self.setup.adapter.strict
            ):
                reading.problems.pop(name, None)
                reading.values[name] = field.adapter.validate_python(thought)
                if not thought:
                    reading.repairs.append(Repair(name, _NO_REASONING))
        return reading

    def _with_written(self, fields: dict[str, Any], reading: FieldReadings) -> dict[str, Any]:
        """Return the fields outside the text with the reasoning that the model wrote unasked, if it sent no thinking."""
        for field in self.parts.thinking:
            if written := reading.values.get(field.name):
                fields[field.name] = written
            elif not (fields[field.name] or self.setup.adapter.strict):
                reading.repairs.append(Repair(field.name, _NO_REASONING))
        return fields

    def _read(self, text: str, thought: str) -> FieldReadings:
        """Read the outputs in a text. Thinking in front of the answer is removed first: it may hold drafts."""
        # Searching for one character is many times faster than for a word, and most long answers have no slash.
        if self.setup.adapter.strict or "/" not in text or not ("</think" in text or "[/THINK]" in text):
            return self._with_thought(self.setup.written.read(text, self.setup.adapter.strict), thought)
        start = text.lstrip()
        answer, is_certain = self._without_thoughts(start)
        if len(answer) == len(start):
            return self._with_thought(self.setup.written.read(text, False), thought)
        block = _without_tags(start[: len(start) - len(answer)], self.parts.thoughts)
        reading = self._with_thought(self.setup.written.read(answer, False), thought or block)
        if reading.problems and not is_certain:
            return self._with_thought(self.setup.written.read(text, False), thought)
        reading.repairs.insert(0, Repair(None, "reasoning before the answer was left out"))
        return reading

    def _without_thoughts(self, text: str) -> tuple[str, bool]:
        """Return the text after a thinking block, and whether it certainly was one: some models omit the opening tag."""
        for opening, closing in self.parts.thoughts:
            if text.startswith(opening) and closing in text:
                return text.partition(closing)[2], True
        if self.setup.written.starts_outputs(text[lead_in_end(text) :]):
            return text, False
        for opening, closing in self.parts.thoughts:
            before, found, after = text.partition(closing)
            if found and opening not in before:
                return after, False
        return text, False

    def _read_with_calls(self, choice: Choice) -> FieldReadings:
        """Read the fields beside calls. A field with a problem is left out or has its default."""
        reading = FieldReadings()
        if choice.finish_reason == "length":
            if self.setup.adapter.strict:
                raise truncated_error(choice)
            reading.repairs.append(Repair(None, "the answer was cut off by the token limit after its calls"))
        elif choice.text.strip() and self.setup.layout.outputs:
            reading = self._with_thought(self.setup.written.read(choice.text, False), choice.reasoning or "")
            reading.repairs += _problem_repairs(reading)
        missing = [codec.field for name, codec in self.setup.layout.outputs if name not in reading.values]
        reading.values.update({field.name: field.default_value() for field in missing if field.has_default})
        return reading

    def fields_outside_text(self, choice: Choice) -> dict[str, Any]:
        """Return the fields that are not in the text: calls and reasoning."""
        fields: dict[str, Any] = dict(self._added_fields or {})
        if self.parts.calls_name is not None:
            calls = choice.tool_calls
            fields[self.parts.calls_name] = ToolCalls(
                calls, choice.text if calls or not self.setup.layout.outputs else ""
            )
        for spec in self.parts.thinking:
            thought = choice.reasoning
            given = thought is not None or not spec.has_default
            fields[spec.name] = spec.adapter.validate_python(thought or "") if given else spec.default_value()
        return fields

    def _parse_error(self, choice: Choice, reading: FieldReadings) -> AdapterParseError:
        return AdapterParseError(
            type(self.setup.adapter).__name__,
            self.setup.signature,
            choice.text,
            parsed_result=reading.values,
            problems={name or "answer": problem for name, problem in reading.problems.items()},
            choice=choice,
        )

    def _refused_questions(self, choice: Choice) -> Refused:
        refused = Refused(
            f"The model declined: {choice.refusal}. Give these outputs a default, or allow None, to go on without an answer.",
            choice=choice,
        )
        refused.partial = Prediction(self._read(choice.text, "").values)
        return refused

    def reask(self, request: Request, choice: Choice, error: ModelError | None = None) -> Request:
        """Return a request with the conversation, the answer and its errors.

        A long answer is shortened around its problems. Invalid calls get tool results that carry the error; everything else is
        answered by a user message.
        """
        names = error.problems if isinstance(error, AdapterParseError) else ()
        marks = [mark for name in names for mark in (self.setup.layout.text_before(name).strip(), f'"{name}"')]
        answer = self.parts.turns.message(shorten_answer(choice, marks).message())
        messages = [*request.messages, answer] if answer.parts else list(request.messages)
        if any(call.error for call in choice.tool_calls):
            messages.append(self.parts.turns.results([_error_result(call) for call in choice.tool_calls]))
        else:
            messages.append(Message.user(self._problem_text(error)))
        return replace(request, messages=tuple(messages))

    def _problem_text(self, error: ModelError | None) -> str:
        problems = error.problems if isinstance(error, AdapterParseError) else {}
        lines = [f"- {name}: {problem}" for name, problem in problems.items()]
        if not lines:
            lines = [f"- {error.message if error else 'the reply is empty'}"]
        reminder = (self.setup.layout.outputs and self.setup.layout.format_reminder()) or ANSWER_PLAINLY
        return "\n".join(["Your reply is invalid:", *lines, "", f"Write the whole reply again. {reminder}"])

    def with_messages(self, fields: FieldValues) -> Plan:
        """Return a copy of the plan that adds these fields to each parsed choice."""
        plan = copy(self)
        plan._added_fields = fields
        return plan

    def follow_up(self, choice: Choice) -> FollowUp | None:
        """Return a second request that this answer needs; ``None`` for adapters that parse answers themselves."""
        return None


def is_tool_trace(part: Part) -> bool:
    """Return True if a part is the trace of a tool that the provider ran: every wire names such items by this shape."""
    if not isinstance(part, OpaquePart):
        return isinstance(part, ToolResult)
    kind = part.data.get("type") if is_mapping(part.data) else None
    return isinstance(kind, str) and ("tool" in kind or kind.endswith("_call"))


def _problem_repairs(reading: FieldReadings) -> list[Repair]:
    problems = [(name, problem) for name, problem in reading.problems.items() if problem != ABSENT]
    return [Repair(name or None, f"left out beside the tool calls: {problem}") for name, problem in problems]


def _without_tags(thought: str, tags: Iterable[tuple[str, str]]) -> str:
    for opening, closing in tags:
        thought = thought.strip().removeprefix(opening).removesuffix(closing)
    return thought.strip()


def _has_no_calls(choices: tuple[Choice, ...]) -> bool:
    for choice in choices:  # noqa: SIM110  # a generator would cost each call a frame
        if choice.tool_calls:
            return False
    return True


def _is_readable(choice: Choice) -> bool:
    """Return True if a text may be read for calls: the choice has no native calls and no traces of run tools."""
    return bool(choice.text) and not choice.tool_calls and not any(map(is_tool_trace, choice.parts))


def _check_calls(choice: Choice, tools: Mapping[str, Tool]) -> Choice:
    calls = tuple(_check_call(call, tools) for call in choice.tool_calls)
    return choice if calls == choice.tool_calls else with_calls(choice, choice.text, calls)


def _check_call(call: ToolCall, tools: Mapping[str, Tool]) -> ToolCall:
    if call.error is not None:
        return call
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join(sorted(tools))
        error = CallError("unknown_tool", f"Unknown tool {call.name[:60]!r}. The tools are: {known}.")
        return replace(call, error=error)
    try:
        tool.bind(call.arguments or {})
    except Exception as fault:  # the validators of users' types may raise anything
        why = fault if isinstance(fault, InputError) else type(fault).__name__
        return replace(call, error=CallError("schema_mismatch", f"The arguments do not fit: {why}"))
    return call


def _error_result(call: ToolCall) -> ToolResult:
    if call.error is None:
        return ToolResult(call.id, call.name, "Not run: another tool call in this turn is invalid.", is_error=True)
    return ToolResult(call.id, call.name, f"{call.error.message} No tool was run. Call the tools again.", is_error=True)
