"""Plan: an adapter made ready for one signature and one model. Compiled once; a call only fills in values.

    format(inputs, demos, options) -> Request      messages in order: system, demos, history, the current inputs
    normalize(response, tools) -> Response         calls that the model wrote as text become calls; warnings are added
    parse(choice) -> Parsed                        why the model stopped first, then the fields, strictly, then leniently
    repair(request, choice, error) -> Request      the same question again, with what was wrong
    follow_up(choice) -> FollowUp | None           a second question that the adapter needs (TwoStep)

A plan runs no tool and asks no model. What it keeps between calls (demos and turns as written, the latest offers of tools)
is only a memory of its inputs: the same inputs always give the same request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sigwire.adapters.prompts.demos import EXAMPLE, EXAMPLES_NOTE, DemoWriter, examples_note
from sigwire.adapters.prompts.history import HistoryWriter
from sigwire.adapters.prompts.layout import ABSENT, FieldReadings, Layout
from sigwire.adapters.prompts.tool_choice import read_tool_choice
from sigwire.adapters.prompts.turns import TurnWriter
from sigwire.adapters.text_tools.render import instructions
from sigwire.adapters.text_tools.styles import style_named
from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message, Part
from sigwire.core.narrow import is_mapping
from sigwire.core.parts import OpaquePart, TextPart
from sigwire.core.request import MemoTuple, Request, ResponseFormat, ToolChoice
from sigwire.core.response import Choice, LMWarning, Repair, Response
from sigwire.core.tools.calls import CallError, ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.tool import Tool, are_same_tools
from sigwire.errors import (
    AdapterParseError,
    ContentFiltered,
    EmptyResponse,
    InputError,
    MalformedToolCall,
    ModelError,
    OutputTruncated,
    Refused,
    UnsupportedFeature,
)

if TYPE_CHECKING:
    from sigwire.adapters.base import Adapter
    from sigwire.adapters.text_tools import TextReader, ToolCatalog

__all__ = ["FollowUp", "ParsedChoice", "Plan", "ToolsMode", "check_finish_reason", "ran_a_tool"]

ToolsMode: TypeAlias = Literal["native", "text"]


@dataclass(frozen=True, slots=True)
class ParsedChoice:
    """The fields of one choice, and what had to be repaired to read them."""

    fields: dict[str, Any]
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A second question: which model to ask, what, and the plan that reads the answer."""

    lm: object
    plan: Plan
    request: Request


@dataclass(frozen=True, slots=True)
class _ToolPrompt:
    """Some tools as they are offered: their specs, and the texts that depend on them. Written once for the same tools."""

    given: tuple[Any, ...]
    tools: tuple[Tool, ...]
    by_name: Mapping[str, Tool]
    readable: ToolCatalog | None
    specs: tuple[JsonObject, ...]
    remind: str
    systems: dict[str, Message]
    """The system message by its note about examples."""


class Plan:
    """How one signature is asked of one kind of model by one adapter.

    ``mode`` is how outputs are asked for: "native_schema", "native_json" or "prompt"; ``tools_mode`` how tools are: "native",
    "text", or ``None`` when the signature has none. ``warnings`` says what was asked for and cannot be had.
    """

    def __init__(
        self,
        adapter: Adapter,
        signature: Any,
        capabilities: Capabilities,
        layout: Layout,
        tools_mode: ToolsMode | None,
        mode: str = "prompt",
        warnings: tuple[LMWarning, ...] = (),
    ) -> None:
        self.spec = spec = signature.spec
        self.adapter = adapter
        self.signature = signature
        self.capabilities = capabilities
        self.layout = layout
        self.tools_mode = tools_mode
        self.mode = mode
        self.warnings = warnings
        self._instructions: str = spec.instructions
        self._tools_name: str | None = spec.tools_field.name if spec.tools_field else None
        self._calls_name: str | None = spec.calls_field.name if spec.calls_field else None
        self._history_name: str | None = spec.history_field.name if spec.history_field else None
        self.thinking = tuple(
            field for field in spec.outputs if field.role == "reasoning" and field.name not in layout.codecs
        )
        self.thoughts = tuple(
            (opening, closing)
            for name, opening, closing in _THOUGHTS
            if name not in layout.codecs and not adapter.strict
        )
        self._scans = layout.visible.calls
        self._response_format: ResponseFormat | None = layout.response_format() if mode != "prompt" else None
        self._style = style_named(adapter.text_tools)
        speaker = TurnWriter(layout, self._calls_name, capabilities.native_tools and tools_mode != "text", self._style)
        in_system = adapter.demos == "system"
        self._examples = DemoWriter(replace(speaker, native=False), EXAMPLE) if in_system else DemoWriter(speaker)
        self._demos_in_system = in_system
        self._replay = HistoryWriter(speaker, frozenset(spec.by_name))
        self._speaker = speaker
        self._bare = self._write_offer((), ())
        self._offers: tuple[_ToolPrompt, ...] = ()  # replaced as a whole: other threads may look at it
        self._added: Mapping[str, Any] = {}
        self._has_beside = bool(self._calls_name or self.thinking)

    def __repr__(self) -> str:
        return f"Plan({type(self.adapter).__name__}, {self.signature.__name__}, {self.mode}, tools={self.tools_mode})"

    # --- tools ---------------------------------------------------------------------------------------

    def tools_of(self, inputs: Mapping[str, Any]) -> tuple[Tool, ...]:
        """The tools that a call's inputs offer. Functions are taken as tools. Raises ``InputError`` on two of one name."""
        if self._tools_name is None:
            return ()
        return self._offered(inputs.get(self._tools_name)).tools

    def _offered(self, value: Any) -> _ToolPrompt:
        if not value:
            return self._bare
        for offer in self._offers:  # at once, if it is the tuple of an earlier call
            if value is offer.given:
                return offer
        given = _listed(value)
        for offer in self._offers:
            if are_same_tools(given, offer.given):
                return offer
        offer = self._write_offer(given, tuple(tool if isinstance(tool, Tool) else Tool(tool) for tool in given))
        self._offers = (offer, *self._offers[: _OFFERS_KEPT - 1])
        return offer

    def _write_offer(self, given: tuple[Any, ...], tools: tuple[Tool, ...]) -> _ToolPrompt:
        by_name = {tool.name: tool for tool in tools}
        if len(by_name) < len(tools):
            twice = sorted({tool.name for tool in tools if [t.name for t in tools].count(tool.name) > 1})
            raise InputError(f"Two tools are called {twice[0]!r}. Give one of them another name: Tool(f, name=...).")
        specs = tuple(tool.spec for tool in tools)
        native = self.tools_mode == "native"
        return _ToolPrompt(
            given,
            tools,
            by_name,
            self._readable(tools) if tools else None,
            MemoTuple(specs) if native else (),
            self._remind(bool(tools)),
            {"": Message.system(self._system_text(specs))},
        )

    def _readable(self, tools: tuple[Tool, ...]) -> ToolCatalog:
        """The tools as the reader of texts needs them."""
        from sigwire.adapters.text_tools import ToolCatalog

        schemas = {tool.name: tool.parameters for tool in tools}
        return ToolCatalog.of(schemas, strict=self.adapter.strict, output=self._calls_name or "")

    def _known_readable(self, tools: tuple[Tool, ...]) -> ToolCatalog:
        offer = self._known_offer(tools)
        return self._readable(tools) if offer is None or offer.readable is None else offer.readable

    def _known_offer(self, tools: tuple[Tool, ...]) -> _ToolPrompt | None:
        """The offer that was written for these tools, if it is kept."""
        return next((offer for offer in self._offers if are_same_tools(tools, offer.tools)), None)

    def _system_text(self, specs: Sequence[JsonObject], note: str = "") -> str:
        parts = [self.layout.format_instructions()]
        if specs and self.tools_mode == "text":
            self._refuse_built_in(specs)
            adapter = self.adapter
            parts.append(instructions(specs, adapter.tool_schemas, self._style, alone=adapter.calls_alone))
        if specs and self.layout.outputs:
            parts.append(_CALLS_FIRST)
        parts += [note, f"Task:\n{self._instructions}"]
        return "\n\n".join(part for part in parts if part)

    def _refuse_built_in(self, specs: Sequence[JsonObject]) -> None:
        for spec in specs:
            if spec.get("type") != "function":
                raise UnsupportedFeature(
                    f"The tool {spec.get('type')!r} is run by the provider, and this model is offered tools as text. "
                    "Use a model with native tools, or a function of your own."
                )

    def _remind(self, has_tools: bool) -> str:
        remind = self.layout.format_reminder()
        if not has_tools:
            return remind or _ANSWER_PLAINLY
        if not remind:
            return _CALL_OR_SAY
        return f"Call tools if needed; otherwise {remind[0].lower()}{remind[1:]}"

    # --- format --------------------------------------------------------------------------------------

    def format(
        self, inputs: Mapping[str, Any], demos: Sequence[Any] = (), options: Mapping[str, Any] | None = None
    ) -> Request:
        """The request for these inputs. ``options`` are the request's, with ``tool_choice`` and ``parallel_tool_calls``."""
        offer = self._bare if self._tools_name is None else self._offered(inputs.get(self._tools_name))
        choice = parallel = None
        settings: dict[str, Any] = dict(options) if options else {}
        if options:
            choice = read_tool_choice(settings.pop("tool_choice", None))
            if choice is not None and offer.by_name:
                _check_offered(choice, offer.by_name)
            parallel = settings.pop("parallel_tool_calls", None)
        if parallel is None:
            parallel = self.adapter.parallel_tool_calls
        if self.tools_mode == "text" and choice is not None and choice.mode == "none":
            offer = self._bare
        messages: list[Message] = []
        if not demos:
            messages.append(self._system(offer))
        elif self._demos_in_system:
            examples = self._examples.text(demos)
            system = self._system(offer, EXAMPLES_NOTE if examples else "")
            messages.append(Message.system(f"{examples}\n\n{system.text}") if examples else system)
        else:
            exchanges = self._examples.exchanges(demos)
            messages.append(self._system(offer, examples_note(len(exchanges))))
            for exchange in exchanges:
                messages += exchange
        history = inputs.get(self._history_name) if self._history_name is not None else None
        if history:
            self._replay.extend(messages, history)
        self._ask(messages, inputs, offer.remind if choice is None else self._insist(offer, choice))
        if not offer.specs:
            return Request(tuple(messages), response_format=self._response_format, options=settings)
        return Request(tuple(messages), offer.specs, choice, parallel, self._response_format, settings)

    def _system(self, offer: _ToolPrompt, note: str = "") -> Message:
        if note not in offer.systems:
            specs = [tool.spec for tool in offer.tools]
            offer.systems[note] = Message.system(self._system_text(specs, note))
        return offer.systems[note]

    def _ask(self, messages: list[Message], inputs: Mapping[str, Any], remind: str) -> None:
        """Add the current inputs. Without any, a conversation that already ends with its turn is left to go on."""
        if not self.layout.input_names.isdisjoint(inputs) or messages[-1].role not in ("tool", "user"):
            messages.append(Message("user", self.layout.write_inputs(inputs, after=remind)))

    def _insist(self, offer: _ToolPrompt, choice: ToolChoice) -> str:
        """The last line of a request that forces a call on a model which takes no such option."""
        if self.tools_mode != "text" or choice.mode != "required" or not offer.tools:
            return offer.remind
        return f"You must call {' or '.join(choice.allowed) or 'a tool'} now."

    # --- normalize -----------------------------------------------------------------------------------

    def normalize(self, response: Response, tools: Iterable[Tool] = (), *, taken: Iterable[str] = ()) -> Response:
        """The same response, with calls that were written as text taken out of the text, and the plan's warnings.

        ``tools`` are the offered ones; without any, no text is read for calls. ``taken`` are call ids already used in the
        conversation. A provider that runs its own tools is taken at its word: its text is never read.
        """
        warnings = list(self.warnings)
        choices = response.choices
        tools = tuple(tools)
        if self._scans and tools and any(_is_readable(choice) for choice in choices):
            readable = self._known_readable(tools)
            if readable.tools:
                choices = tuple(self._find_calls(choice, readable, taken, warnings) for choice in choices)
        if any(choice.finish_reason == "length" and choice.tool_calls for choice in choices):
            choices = tuple(_without_cut_call(choice, warnings) for choice in choices)
        if not warnings and choices is response.choices:
            return response
        return replace(response, choices=choices, warnings=response.warnings + tuple(warnings))

    def _find_calls(
        self, choice: Choice, offer: ToolCatalog, taken: Iterable[str], warnings: list[LMWarning]
    ) -> Choice:
        if not _is_readable(choice):
            return choice
        from sigwire.adapters.text_tools import read_calls

        found = read_calls(
            choice.text, offer, thinking=_thinking(choice), whole_message=self.adapter.calls_alone, taken=taken
        )
        if found.reasoning and not choice.reasoning:
            choice = replace(choice, reasoning=found.reasoning)
        if not found.calls:
            return choice if found.text == choice.text else _with_calls(choice, found.text, ())
        warnings += self._scan_warnings(found.dialect, found.notes)
        return _with_calls(choice, found.text, found.calls)

    def checked(self, response: Response, tools: Iterable[Tool] = ()) -> Response:
        """The same response, where calls that do not fit their tools say so in ``error``; arguments stay as they are."""
        offer = self._known_offer(tools := tuple(tools))
        by_name = {tool.name: tool for tool in tools} if offer is None else offer.by_name
        choices = tuple(_checked(choice, by_name) for choice in response.choices) if by_name else response.choices
        return response if choices == response.choices else replace(response, choices=choices)

    def _scan_warnings(self, dialect: str | None, notes: Iterable[str]) -> Iterator[LMWarning]:
        """What a caller may want to know of calls that were read from text."""
        if self.tools_mode == "native":
            yield LMWarning("native_tools", f"the model wrote its calls as text; they were read as {dialect}")
        elif dialect != self._style.name and dialect not in self._style.dialects:
            yield LMWarning("text_tools", f"the calls were not written in the form that was taught, but as {dialect}")
        for note in notes:
            yield LMWarning("text_tools", note)

    def text_reader(
        self, tools: Iterable[Tool] = (), *, taken: Iterable[str] = (), thought: bool = False
    ) -> TextReader | None:
        """What finds calls in a choice's text while it streams; ``None`` where text is not read for calls.

        It reads as ``normalize`` does, for a choice whose provider sends no calls of its own. ``thought``: the provider has
        sent the model's reasoning apart, so that the text holds none.
        """
        offered = tuple(tools)
        if not self._scans or not offered:
            return None
        from sigwire.adapters.text_tools import TextReader

        return TextReader(
            self._known_readable(offered),
            thinking="over" if thought else "unknown",
            whole_message=self.adapter.calls_alone,
            taken=taken,
        )

    # --- parse ---------------------------------------------------------------------------------------

    def parse(self, choice: Choice) -> ParsedChoice:
        """The fields of a normalized choice.

        Raises ``OutputTruncated``, ``ContentFiltered``, ``Refused``, ``EmptyResponse``, ``MalformedToolCall``, or
        ``AdapterParseError`` with what is wrong by field.
        """
        has_calls = bool(choice.tool_calls) and self._calls_name is not None
        check_finish_reason(choice, has_calls=has_calls)
        if has_calls:
            return self._parse_beside_calls(choice)
        if not self.layout.outputs:
            return self._parsed(choice, FieldReadings({}, [], {}))
        reading = self._read(choice.text)
        if reading.problems:
            self._fail(choice, reading)
        return self._parsed(choice, reading)

    def _read(self, text: str) -> FieldReadings:
        """The outputs in a text. Thinking that a model leaves before its answer may hold drafts of it, so it goes first."""
        # One character is looked for many times faster than a word, and most long answers have no slash.
        if self.adapter.strict or "/" not in text or not ("</think" in text or "[/THINK]" in text):
            return self.layout.read(text, self.adapter.strict)
        begin = text.lstrip()
        answer, sure = self._without_thoughts(begin)
        if len(answer) == len(begin):
            return self.layout.read(text, False)
        reading = self.layout.read(answer, False)
        if reading.problems and not sure:
            return self.layout.read(text, False)
        reading.repairs.insert(0, Repair(None, "reasoning before the answer was left out"))
        return reading

    def _without_thoughts(self, text: str) -> tuple[str, bool]:
        """The text after a thinking block at its start, and whether it surely was one: some models never open theirs."""
        for opening, closing in self.thoughts:
            if text.startswith(opening) and closing in text:
                return text.partition(closing)[2], True
        if self.layout.starts_outputs(text):
            return text, False
        for opening, closing in self.thoughts:
            before, found, after = text.partition(closing)
            if found and opening not in before:
                return after, False
        return text, False

    def _parse_beside_calls(self, choice: Choice) -> ParsedChoice:
        """Fields that stand beside calls are welcome; the ones that do not are left out or take their default."""
        reading = FieldReadings({}, [], {})
        if choice.finish_reason == "length":
            what = "the answer was cut off by the token limit after its calls"
            if self.adapter.strict:
                raise OutputTruncated(_TRUNCATED, choice=choice)
            reading.repairs.append(Repair(None, what))
        elif choice.text.strip() and self.layout.outputs:
            reading = self.layout.read(choice.text, False)
            for name, problem in reading.problems.items():
                if problem != ABSENT:
                    reading.repairs.append(Repair(name or None, f"left out beside the tool calls: {problem}"))
        for name, codec in self.layout.outputs:
            if name not in reading.values and codec.field.has_default:
                reading.values[name] = codec.field.default_value()
        return self._parsed(choice, reading)

    def _parsed(self, choice: Choice, reading: FieldReadings) -> ParsedChoice:
        fields = reading.values
        if self._has_beside:
            fields.update(self.fields_beside_text(choice))
        return ParsedChoice(fields, tuple(reading.repairs))

    def fields_beside_text(self, choice: Choice) -> dict[str, Any]:
        """The fields that do not stand in the text: calls, and what the model thought."""
        fields = dict(self._added)
        if self._calls_name is not None:
            calls = choice.tool_calls
            fields[self._calls_name] = ToolCalls(calls, choice.text if calls or not self.layout.outputs else "")
        for spec in self.thinking:
            thought = choice.reasoning
            given = thought is not None or not spec.has_default
            fields[spec.name] = spec.adapter.validate_python(thought or "") if given else spec.default_value()
        return fields

    def _fail(self, choice: Choice, reading: FieldReadings) -> None:
        raise AdapterParseError(
            type(self.adapter).__name__,
            self.signature,
            choice.text,
            parsed_result=reading.values,
            problems={name or "answer": problem for name, problem in reading.problems.items()},
            choice=choice,
        )

    # --- again -----------------------------------------------------------------------------------------

    def reask(self, request: Request, choice: Choice, error: ModelError | None = None) -> Request:
        """The request that asks again: the conversation, the answer, and exactly what was wrong with it.

        Wrong calls are answered as calls are, by results that carry the error; anything else by a user's message.
        """
        said = self._speaker.message(choice.message())
        messages = list(request.messages)
        if said.parts:
            messages.append(said)
        if any(call.error for call in choice.tool_calls):
            messages.append(self._speaker.results([_answer(call) for call in choice.tool_calls]))
        else:
            messages.append(Message.user(self._complaint(error)))
        return replace(request, messages=tuple(messages))

    def _complaint(self, error: ModelError | None) -> str:
        problems = error.problems if isinstance(error, AdapterParseError) else {}
        lines = [f"- {name}: {problem}" for name, problem in problems.items()]
        if not lines:
            lines = [f"- {error.message if error else 'the reply is empty'}"]
        remind = self.layout.format_reminder() or _ANSWER_PLAINLY
        return "\n".join(["Your reply is invalid:", *lines, "", f"Write the whole reply again. {remind}"])

    def with_messages(self, fields: Mapping[str, Any]) -> Plan:
        """The same plan; what it parses has these fields as well."""
        plan = copy(self)
        plan._added, plan._has_beside = dict(fields), True
        return plan

    def follow_up(self, choice: Choice) -> FollowUp | None:
        """A second question that this answer needs; ``None`` for adapters that read answers themselves."""
        return None


_OFFERS_KEPT = 8  # predictors of one signature share a plan, and each may have its own tools
_CALLS_FIRST = "Write the output fields only when you need no more tool calls."
_CALL_OR_SAY = "Call the tools you need. If no tool fits, say so in plain text."
_ANSWER_PLAINLY = "Reply in plain text."
_EMPTY = "The model returned neither text nor tool calls. Ask again, or look at choice.raw for the provider's reason."
_ONLY_CALLS = (
    "The model called tools and wrote nothing, and the signature has no output for calls. Add one: calls: ToolCalls."
)
_FILTERED = "The provider's content filter stopped the answer. Change the inputs, or the provider's safety settings."
_MALFORMED = (
    "The provider could not read the tool call that the model wrote; nothing of it arrived. Ask again, or simplify the "
    "tools' schemas. choice.raw has the provider's reason."
)
_TRUNCATED = (
    "The answer was cut off by the token limit. Raise max_tokens or ask for less; the partial text is in error.text."
)


def _checked(choice: Choice, tools: Mapping[str, Tool]) -> Choice:
    calls = tuple(_checked_call(call, tools) for call in choice.tool_calls)
    return choice if calls == choice.tool_calls else _with_calls(choice, choice.text, calls)


def _checked_call(call: ToolCall, tools: Mapping[str, Tool]) -> ToolCall:
    if call.error is not None:
        return call
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join(sorted(tools))
        return replace(
            call, error=CallError("unknown_tool", f"There is no tool {call.name!r}. The tools are: {known}.")
        )
    try:
        tool.bind(call.arguments or {})
    except InputError as fault:
        return replace(call, error=CallError("schema_mismatch", f"The arguments do not fit: {fault}"))
    return call


def _is_readable(choice: Choice) -> bool:
    """Whether a choice's text may be read for calls: it has none of its own, and its provider ran no tool in it."""
    return bool(choice.text) and not choice.tool_calls and not any(map(ran_a_tool, choice.parts))


def ran_a_tool(part: Part) -> bool:
    """Whether a part is the trace of a tool that the provider ran. By its shape: every wire names such items so."""
    if not isinstance(part, OpaquePart):
        return isinstance(part, ToolResult)
    kind = part.data.get("type") if is_mapping(part.data) else None
    return isinstance(kind, str) and ("tool" in kind or kind.endswith("_call"))


def _thinking(choice: Choice) -> Literal["unknown", "over"]:
    return "over" if choice.reasoning else "unknown"


def _check_offered(choice: ToolChoice, names: Collection[str]) -> None:
    if stray := next((name for name in choice.allowed if name not in names), None):
        raise InputError(f"tool_choice names {stray!r}, and the tools on offer are {', '.join(sorted(names))}.")


def _listed(value: Any) -> tuple[Any, ...]:
    """Tools or functions as users give them: one, several, or a dict by name."""
    if is_mapping(value):
        return tuple(value.values())
    return (value,) if isinstance(value, Tool) or callable(value) else tuple(value)


def check_finish_reason(choice: Choice, *, has_calls: bool = False) -> None:
    """Raise what the finish reason says, before any text is read. Whole calls survive a cut and an odd end."""
    if choice.refusal:
        raise Refused(f"The model declined: {choice.refusal}", choice=choice)
    if choice.finish_reason == "content_filter":
        raise ContentFiltered(_FILTERED, choice=choice)
    if has_calls:
        return
    if choice.finish_reason == "length":
        raise OutputTruncated(_TRUNCATED, choice=choice)
    if not choice.text or choice.text.isspace():
        if choice.finish_reason == "error":
            raise MalformedToolCall(_MALFORMED, choice=choice)
        raise EmptyResponse(_ONLY_CALLS if choice.tool_calls else _EMPTY, choice=choice)


def _without_cut_call(choice: Choice, warnings: list[LMWarning]) -> Choice:
    """Drop a last call that the token limit cut: half an argument may be another command."""
    if choice.finish_reason != "length" or not choice.tool_calls:
        return choice
    last = choice.tool_calls[-1]
    if last.error is None or last.error.code != "malformed_json":
        return choice
    warnings.append(LMWarning("tool_calls", f"the call {last.name or 'at the end'!r} was cut off and left out"))
    return _with_calls(choice, choice.text, choice.tool_calls[:-1])


def _with_calls(choice: Choice, text: str, calls: tuple[ToolCall, ...]) -> Choice:
    kept = tuple(part for part in choice.parts if not isinstance(part, (TextPart, ToolCall)))
    parts = (*kept, *((TextPart(text),) if text else ()), *calls) if kept else ()
    reason = "tool_calls" if calls and choice.finish_reason == "stop" else choice.finish_reason
    return replace(choice, text=text, tool_calls=calls, finish_reason=reason, parts=parts)


def _answer(call: ToolCall) -> ToolResult:
    if call.error is None:
        return ToolResult(call.id, call.name, "Not run: another tool call in this turn is invalid.", is_error=True)
    return ToolResult(call.id, call.name, f"{call.error.message} No tool was run. Call the tools again.", is_error=True)


_THOUGHTS = (
    ("think", "<think>", "</think>"),
    ("thinking", "<thinking>", "</thinking>"),
    ("", "[THINK]", "[/THINK]"),
)
