"""The four adapters with DSPy's options and methods, as subclasses of the core's.

``use_native_function_calling`` is another name for ``native_tools``. ``native_response_types`` without ``Reasoning`` keeps
an output of that type from switching the model's own reasoning on; ``use_json_adapter_fallback`` has no effect. They warn
where they ask for more.

A subclass may override ``format``, ``parse`` and the ``format_...`` methods in ``_HOOKS``; every call uses them. Messages
are dicts in OpenAI's form, whose content is text or a list of parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import InitVar, dataclass, field, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast, get_origin

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from sigwire.adapters import base, chat, json, two_step, xml
from sigwire.adapters.finish import check_finish_reason
from sigwire.adapters.plan import ParsedChoice, Plan
from sigwire.adapters.plan_parts import PlanSetup
from sigwire.adapters.prompts.layout import Layout, VisibleFields
from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message, Part
from sigwire.core.record import FieldValue, FieldValues
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools import calls as core_calls
from sigwire.core.tools.choice import ToolChoice
from sigwire.dspy.layouts.formats import described, with_formats
from sigwire.dspy.layouts.shown_tools import with_shown_tools
from sigwire.dspy.layouts.thinking import prompted_capabilities, with_thinking
from sigwire.dspy.layouts.turns import with_answered_calls
from sigwire.dspy.lm import as_model
from sigwire.dspy.paths import add_paths
from sigwire.dspy.tools import Tool, ToolCallResults, ToolCalls

from sigwire.dspy.types import (  # isort: skip
    Audio, Code, File, History, Image, Reasoning, Type, split_message_content_for_custom_types,
)  # fmt: skip
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import AdapterParseError, warn_user
from sigwire.lm.base import LanguageModel
from sigwire.lm.openai_dicts import decode_messages, encode_messages
from sigwire.modules.ask import Ask, resolve_lm
from sigwire.signatures.declarations import OutputField
from sigwire.signatures.signature import SignatureClass, make_signature
from sigwire.signatures.types import text

__all__ = [
    "COMMENT_SYMBOL", "Adapter", "Audio", "BAMLAdapter", "ChatAdapter", "Code", "FieldInfoWithName", "File", "History", "Image",
    "JSONAdapter", "Reasoning", "Tool", "ToolCallResults", "ToolCalls", "TwoStepAdapter", "Type", "XMLAdapter", "parse_value",
]  # fmt: skip

_NO_FALLBACK = (
    "use_json_adapter_fallback=True has no effect: one call is one request. An answer that is a JSON object is read as it "
    "stands; to ask again after an answer that cannot be read, use Predict(..., max_reasks=1)."
)
_NO_NATIVE_TYPES = (
    "native_response_types has an effect for Reasoning only: outputs of other types are read from the text of the answer. A "
    "model reasons if its capabilities have it."
)
# The methods that decide the messages of a request, in ``format``; those of its texts, in the layout; the one that parses.
_MESSAGE_HOOKS = (
    "format", "format_conversation_history", "format_demos", "format_system_message", "format_task_description",
)  # fmt: skip
_TEXT_HOOKS = (
    "format_assistant_message_content", "format_field_description", "format_field_structure",
    "format_user_message_content",
)  # fmt: skip
_HOOKS = (*_MESSAGE_HOOKS, *_TEXT_HOOKS, "parse")
_CALLS = ("__call__", "acall")
_NATIVE = ("tools", "tool_choice", "parallel_tool_calls")
_Dicts: TypeAlias = list[dict[str, Any]]
COMMENT_SYMBOL = "//"
"""The mark in front of the description of a field in a type."""


class _InUse(NamedTuple):
    """The call whose messages are being formatted. ``plan`` is ``None`` while it is being made."""

    layout: Layout
    plan: Plan | None = None
    demos: Sequence[object] = ()
    inputs: FieldValues = MappingProxyType({})


_in_use: ContextVar[tuple[object, _InUse] | None] = ContextVar("sigwire_dspy_adapter_call", default=None)


@contextmanager
def _using(signature: SignatureClass, call: _InUse) -> Generator[None]:
    token = _in_use.set((signature.spec, call))
    try:
        yield
    finally:
        _in_use.reset(token)


@dataclass(frozen=True, kw_only=True)
class Adapter(base.Adapter):
    """Base of the adapters; a subclass gives the layout of fields, or overrides methods of DSPy.

    >>> ChatAdapter(use_native_function_calling=False).native_tools
    False
    >>> class Brief(ChatAdapter):
    ...     def format_task_description(self, signature):
    ...         return signature.instructions + " Be brief."
    >>> from sigwire.signatures import Signature
    >>> Brief().format(Signature("question -> answer"), [], {"question": "?"})[0]["content"][-9:]
    'Be brief.'
    """

    fixed_methods: ClassVar[Mapping[str, str]] = dict.fromkeys((*_HOOKS, *_CALLS), "")
    _hooks: ClassVar[frozenset[str]] = frozenset()

    use_native_function_calling: InitVar[bool | None] = None
    use_json_adapter_fallback: InitVar[bool | None] = None
    native_response_types: InitVar[Sequence[Any] | None] = None
    native_reasoning: bool = field(default=True, init=False, repr=False)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._hooks = frozenset(name for name in _HOOKS if getattr(cls, name) is not getattr(Adapter, name))

    def __post_init__(
        self,
        use_native_function_calling: bool | None,
        use_json_adapter_fallback: bool | None,
        native_response_types: Sequence[Any] | None,
    ) -> None:
        if use_native_function_calling is not None:
            object.__setattr__(self, "native_tools", use_native_function_calling)
        super().__post_init__()
        if use_json_adapter_fallback:
            warn_user(_NO_FALLBACK)
        if native_response_types is not None:
            others = [kind for kind in native_response_types if not _is_reasoning(kind)]
            object.__setattr__(self, "native_reasoning", len(others) < len(native_response_types))
            if others:
                warn_user(_NO_NATIVE_TYPES)

    def layout(self, visible: VisibleFields, capabilities: Capabilities) -> Layout:
        """Return the layout of the adapter; sections for an adapter that overrides methods of DSPy only."""
        visible = replace(
            visible, inputs=tuple(map(described, visible.inputs)), outputs=tuple(map(described, visible.outputs))
        )
        own: Layout | None = cast(Any, super()).layout(visible, capabilities)
        return with_formats(own or chat.ChatLayout(visible))

    def compile(self, signature: SignatureClass, capabilities: Capabilities) -> Plan:
        """Return a new plan. Tools are offered if an output takes the calls; otherwise they are an input to read."""
        plan = super().compile(with_shown_tools(signature), capabilities)
        plan.setup = replace(plan.setup, signature=signature)
        return plan

    def make_plan(self, setup: PlanSetup) -> Plan:
        """Return a plan that uses the overridden methods."""
        return with_answered_calls(_HookedPlan(setup, self) if self._hooks else super().make_plan(setup))

    def __call__(
        self,
        lm: LanguageModel,
        lm_kwargs: FieldValues,
        signature: SignatureClass,
        demos: Sequence[object],
        inputs: FieldValues,
    ) -> _Dicts:
        """Ask a model once; return the fields of each choice. Raises what ``Predict`` raises.

        >>> from sigwire.lm.fake import FakeLM
        >>> from sigwire.signatures import Signature
        >>> ChatAdapter()(FakeLM([{"answer": "4"}]), {}, Signature("question -> answer"), [], {"question": "2+2?"})
        [{'answer': '4'}]
        """
        return run(self._steps(lm, lm_kwargs, signature, demos, inputs))

    async def acall(
        self,
        lm: LanguageModel,
        lm_kwargs: FieldValues,
        signature: SignatureClass,
        demos: Sequence[object],
        inputs: FieldValues,
    ) -> _Dicts:
        """``adapter(...)``, awaited."""
        return await arun(self._steps(lm, lm_kwargs, signature, demos, inputs))

    def _steps(
        self,
        lm: LanguageModel,
        lm_kwargs: FieldValues,
        signature: SignatureClass,
        demos: Sequence[object],
        inputs: FieldValues,
    ) -> Steps[_Dicts]:
        lm, dropped = as_model(lm), _NATIVE if self.native_tools is False else ()
        options: FieldValues = {name: value for name, value in lm_kwargs.items() if name not in dropped}
        if self.native_reasoning:
            options = with_thinking(signature, lm, options)
        plan = self.plan(signature, prompted_capabilities(lm, options))
        request = plan.format(inputs, demos, options or None)
        if request.tools and request.parallel_tool_calls is not None and request.tool_choice is None:
            request = replace(request, tool_choice=ToolChoice("auto"))
        response: Response = yield Ask(lm, request)
        answers: _Dicts = []
        for choice in plan.normalize(response, plan.tools_of(inputs)).choices:
            fields = yield from _parse_steps(plan, choice, plan.parse)
            answers.append({name: _shown(fields.get(name)) for name in signature.output_fields})
        return answers

    def _call(self, signature: SignatureClass) -> _InUse:
        """Return the running call, or one without demos and inputs."""
        running = _in_use.get()
        if running is not None and running[0] is signature.spec:
            return running[1]
        plan = self.plan(signature)
        return _InUse(plan.layout, plan)

    def _sections(self, signature: SignatureClass, demos: Sequence[object], inputs: FieldValues) -> _Sections:
        return _sections_of(self._call(signature).plan or self.plan(signature), demos, inputs)

    def format(  # type: ignore[override]
        self, signature: SignatureClass, demos: Sequence[object], inputs: FieldValues
    ) -> _Dicts:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the messages of a request: system, demos, history, inputs."""
        with _using(signature, self._call(signature)._replace(demos=demos, inputs=inputs)):
            messages: _Dicts = [{"role": "system", "content": self.format_system_message(signature)}]
            messages += self.format_demos(signature, demos)
            history = signature.spec.history_field
            if history is not None and inputs.get(history.name):
                messages += self.format_conversation_history(signature, history.name, dict(inputs))
            return messages + encode_messages(self._sections(signature, demos, inputs).current)

    def parse(  # type: ignore[override]
        self, signature: SignatureClass, completion: Choice | str
    ) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the fields of an answer. Raises ``AdapterParseError``."""
        choice = Choice(completion) if isinstance(completion, str) else completion
        plan = self._call(signature).plan or self.plan(signature)
        return run(_parse_steps(plan, choice, partial(Plan.parse, plan)))

    def format_system_message(self, signature: SignatureClass) -> str:
        """Return the system message: fields, structure, tools, task."""
        call, task = self._call(signature), str(signature.instructions)
        text = self._sections(signature, call.demos, call.inputs).system.text
        return text.removesuffix(task) + self.format_task_description(signature) if text.endswith(task) else text

    def format_task_description(self, signature: SignatureClass) -> str:
        """Return the instructions."""
        return str(signature.instructions)

    def format_field_description(self, signature: SignatureClass) -> str:
        """Return the description of inputs and outputs."""
        return "\n\n".join(self._call(signature).layout.describe_fields())

    def format_field_structure(self, signature: SignatureClass) -> str:
        """Return the form of inputs and outputs in messages."""
        layout = self._call(signature).layout
        return type(layout).format_instructions(layout).removeprefix("\n\n".join(layout.describe_fields())).strip()

    def format_demos(self, signature: SignatureClass, demos: Sequence[object]) -> _Dicts:
        """Return the demos as messages."""
        return encode_messages(self._sections(signature, demos, {}).demos)

    def format_conversation_history(
        self, signature: SignatureClass, history_field_name: str, inputs: FieldValues
    ) -> _Dicts:
        """Return the past turns as messages."""
        return encode_messages(self._sections(signature, (), inputs).history)

    def format_user_message_content(
        self,
        signature: SignatureClass,
        inputs: FieldValues,
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> Any:
        """Return the inputs as text, with media as a list of parts; ``suffix`` is the reminder of the current request."""
        layout = self._call(signature).layout
        return encode_messages([Message("user", type(layout).write_inputs(layout, inputs, prefix, suffix))])[0][
            "content"
        ]

    def format_assistant_message_content(
        self, signature: SignatureClass, outputs: FieldValues, missing_field_message: str | None = None
    ) -> str:
        """Return the outputs as the model should write them. Missing outputs are omitted."""
        layout = self._call(signature).layout
        return type(layout).write(layout, outputs)

    def format_field_with_value(self, fields_with_values: Mapping[FieldInfoWithName, object]) -> str:
        """Return the values as the model should write them, without a closing mark."""
        outputs = {field.name: (field.info.annotation, OutputField()) for field in fields_with_values}
        values = {field.name: value for field, value in fields_with_values.items()}
        text = self.format_assistant_message_content(make_signature(outputs, "Write the fields."), values)
        return text.removesuffix("[[ ## completed ## ]]").rstrip()


def _is_reasoning(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, text.Reasoning)


class FieldInfoWithName(NamedTuple):
    """The name and the declaration of a field, as a key of ``format_field_with_value``."""

    name: str
    info: FieldInfo


def _parse_steps(plan: Plan, choice: Choice, parse: Callable[[Choice], ParsedChoice]) -> Steps[dict[str, Any]]:
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


def own_call(adapter: object) -> object:
    """Return the overridden ``__call__``, or ``acall``, that a ``Predict`` of the door calls; ``None`` without one."""
    if not isinstance(adapter, Adapter):
        return None
    mine = (getattr(adapter, name) for name in _CALLS if getattr(type(adapter), name) is not getattr(Adapter, name))
    return next(mine, None)


class _Sections(NamedTuple):
    """The messages of a request by their origin. ``current``: those of the current inputs, none if the call continues."""

    system: Message
    demos: Sequence[Message]
    history: Sequence[Message]
    current: Sequence[Message]


def _sections_of(plan: Plan, demos: Sequence[object], inputs: FieldValues) -> _Sections:
    parts = plan.parts
    messages = Plan.format(plan, inputs, demos).messages
    exchanges = () if parts.demos_in_system else parts.demos.exchanges(demos)
    past: list[Message] = []
    history = plan.spec.history_field
    if history is not None and inputs.get(history.name):
        parts.history.extend(past, inputs[history.name])
    before = 1 + sum(map(len, exchanges))
    return _Sections(messages[0], messages[1:before], past, messages[before + len(past) :])


class _HookedPlan(Plan):
    """A plan that formats and parses by the methods that a subclass of an adapter overrides."""

    def __init__(self, setup: PlanSetup, adapter: Adapter) -> None:
        self._user_adapter = adapter
        hooks = adapter._hooks  # pyright: ignore[reportPrivateUsage]  # of this file
        self._formats_messages, self._parses = not hooks.isdisjoint(_MESSAGE_HOOKS), "parse" in hooks
        self._hook_layout(setup.layout, setup.signature, hooks)
        super().__init__(setup)

    def _hook_layout(self, layout: Layout, signature: SignatureClass, hooks: Iterable[str]) -> None:
        """Replace the methods of this plan's layout that have hooks; ``type(layout)`` has the original ones."""
        adapter = self._user_adapter

        def instructions() -> str:
            with _using(signature, _InUse(layout)):
                parts = adapter.format_field_description(signature), adapter.format_field_structure(signature)
            return "\n\n".join(part for part in parts if part)

        def write(values: FieldValues) -> str:
            outputs = {name: values[name] for name in layout.codecs if name in values}
            with _using(signature, _InUse(layout)):
                return adapter.format_assistant_message_content(signature, outputs) if outputs else ""

        def write_inputs(values: FieldValues, before: str = "", after: str = "") -> tuple[Part, ...]:
            inputs = {name: value for name, value in values.items() if name in layout.input_names}
            with _using(signature, _InUse(layout)):
                content = adapter.format_user_message_content(signature, inputs, before, after, main_request=not before)
            marked = split_message_content_for_custom_types([{"role": "user", "content": content}])
            return decode_messages(marked)[0].parts

        def no_reader(events: object) -> None:
            """Return no reader: fields are emitted when the answer is complete."""

        replaced: Mapping[str, Mapping[str, Callable[..., object]]] = {
            "format_field_description": {"format_instructions": instructions},
            "format_field_structure": {"format_instructions": instructions},
            "format_assistant_message_content": {"write": write},
            "format_user_message_content": {"write_inputs": write_inputs},
            # An agent parses a plain answer that may start outputs.
            "parse": {"output_reader": no_reader, "starts_outputs": bool},
        }
        for hook in hooks:
            for name, function in replaced.get(hook, {}).items():
                setattr(layout, name, function)

    def format(
        self, inputs: FieldValues, demos: Sequence[object] = (), options: Mapping[str, Any] | None = None
    ) -> Request:
        request = super().format(inputs, demos, options)
        if not self._formats_messages:
            return request
        with _using(self.signature, _InUse(self.layout, self, demos, inputs)):
            messages = self._user_adapter.format(self.signature, list(demos), dict(inputs))
        return replace(request, messages=decode_messages(split_message_content_for_custom_types(messages)))

    def parse(self, choice: Choice) -> ParsedChoice:
        if not self._parses or choice.tool_calls or not self.layout.outputs:
            return super().parse(choice)
        check_finish_reason(choice)
        with _using(self.signature, _InUse(self.layout, self)):
            fields = dict(self._user_adapter.parse(self.signature, choice.text))
        return ParsedChoice({**self.fields_outside_text(choice), **fields})


@dataclass(frozen=True)
class ChatAdapter(Adapter, chat.ChatAdapter):  # pyright: ignore[reportIncompatibleMethodOverride]
    """``sigwire.ChatAdapter`` with DSPy's options and methods."""


@cache
def default_adapter() -> ChatAdapter:
    """Return the adapter of a ``Predict`` of the door if the settings have none."""
    return ChatAdapter()


@dataclass(frozen=True)
class JSONAdapter(Adapter, json.JSONAdapter):  # pyright: ignore[reportIncompatibleMethodOverride]
    """``sigwire.JSONAdapter`` with DSPy's options and methods."""


@dataclass(frozen=True)
class BAMLAdapter(JSONAdapter):
    """``JSONAdapter`` by the name of DSPy's adapter with compact types, which are the default of every adapter here."""


@dataclass(frozen=True)
class XMLAdapter(Adapter, xml.XMLAdapter):  # pyright: ignore[reportIncompatibleMethodOverride]
    """``sigwire.XMLAdapter`` with DSPy's options and methods."""


@dataclass(frozen=True)
class TwoStepAdapter(Adapter, two_step.TwoStepAdapter):  # pyright: ignore[reportIncompatibleMethodOverride]
    """``sigwire.TwoStepAdapter`` with DSPy's options."""

    fixed_methods: ClassVar[Mapping[str, str]] = dict.fromkeys(
        _HOOKS, "override them in an adapter of one step, such as ChatAdapter"
    )

    def __post_init__(self, *options: Any) -> None:
        object.__setattr__(self, "extraction_model", as_model(self.extraction_model))
        super().__post_init__(*options)


add_paths(__name__, "base baml_adapter chat_adapter json_adapter two_step_adapter utils xml_adapter")


def parse_value(value: object, annotation: FieldValue) -> FieldValue:
    """Return a value of the type, read as a field of an answer is read. Raises ``AdapterParseError``, or ``ValueError``.

    >>> parse_value("[1, 2]", list[int]), parse_value("4", int), parse_value("no", bool)
    ([1, 2], 4, False)
    """
    if not isinstance(value, str):
        return str(value) if annotation is str else TypeAdapter(annotation).validate_python(value)
    if cast(object, get_origin(annotation)) is Literal and (
        named := re.fullmatch(r"(?:Literal|str)\[(.*)\]", value.strip())
    ):
        value = named[1]
    signature = make_signature({"value": (annotation, OutputField())}, "Read the value.")
    return ChatAdapter().parse(signature, f"[[ ## value ## ]]\n{value}\n\n[[ ## completed ## ]]")["value"]


_TYPES = "audio base_type citation code document file history image reasoning"
add_paths("sigwire.dspy.types", " ".join(["types", *(f"types.{name}" for name in _TYPES.split())]), __name__)
add_paths("sigwire.dspy.tools", "types.tool", __name__)
