"""The four adapters with DSPy's options and methods, as subclasses of the core's.

``use_native_function_calling`` is another name for ``native_tools``. ``native_response_types`` without ``Reasoning`` keeps
an output of that type from switching the model's own reasoning on, and is a warning for other types. If an answer cannot be
read, ``use_json_adapter_fallback`` makes one more request with ``JSONAdapter``; both requests are in ``prediction.attempts``.

A subclass may override ``format``, ``parse`` and the ``format_...`` methods in ``HOOKS``; every call uses them. Messages
are dicts in OpenAI's form, whose content is text or a list of parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

from pydantic.fields import FieldInfo

from sigwire.adapters import base, chat, json, two_step, xml
from sigwire.adapters.plan import Plan
from sigwire.adapters.plan_parts import PlanSetup
from sigwire.adapters.prompts.layout import Layout, VisibleFields
from sigwire.core.capabilities import Capabilities
from sigwire.core.record import FieldValue, FieldValues
from sigwire.core.response import Choice
from sigwire.dspy.called_models import as_model
from sigwire.dspy.layouts.asking import ask_steps, parse_steps, read_value, signature_of_values
from sigwire.dspy.layouts.formats import described, with_formats
from sigwire.dspy.layouts.hooked_plan import (
    HOOKS,
    CallInUse,
    HookedPlan,
    MessageSections,
    call_in_use,
    content_of,
    sections_of,
    using,
)
from sigwire.dspy.layouts.shown_tools import with_shown_tools
from sigwire.dspy.layouts.turns import with_answered_calls
from sigwire.dspy.paths import add_paths
from sigwire.dspy.tools import Tool, ToolCallResults, ToolCalls
from sigwire.dspy.types import Audio, Code, File, History, Image, Reasoning, Type, is_reasoning
from sigwire.effects.steps import arun, run
from sigwire.errors import warn_user
from sigwire.lm.base import LanguageModel
from sigwire.lm.openai_dicts import encode_messages
from sigwire.signatures.signature import SignatureClass

__all__ = [
    "COMMENT_SYMBOL", "Adapter", "Audio", "BAMLAdapter", "ChatAdapter", "Code", "FieldInfoWithName", "File", "History", "Image",
    "JSONAdapter", "Reasoning", "Tool", "ToolCallResults", "ToolCalls", "TwoStepAdapter", "Type", "XMLAdapter", "parse_value",
]  # fmt: skip

_NO_NATIVE_TYPES = (
    "native_response_types has an effect for Reasoning only: outputs of other types are read from the text of the answer. A "
    "model reasons if its capabilities have it."
)
_CALLS = ("__call__", "acall")
_Dicts: TypeAlias = list[dict[str, Any]]
COMMENT_SYMBOL = "//"
"""The mark in front of the description of a field in a type."""


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

    fixed_methods: ClassVar[Mapping[str, str]] = dict.fromkeys((*HOOKS, *_CALLS), "")
    _hooks: ClassVar[frozenset[str]] = frozenset()

    use_native_function_calling: InitVar[bool | None] = None
    use_json_adapter_fallback: InitVar[bool | None] = None
    native_response_types: InitVar[Sequence[Any] | None] = None
    native_reasoning: bool = field(default=True, init=False, repr=False)
    falls_back: bool = field(default=False, init=False, repr=False)
    _json: JSONAdapter | None = field(default=None, init=False, repr=False, compare=False)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._hooks = frozenset(name for name in HOOKS if getattr(cls, name) is not getattr(Adapter, name))

    def __post_init__(
        self,
        use_native_function_calling: bool | None,
        use_json_adapter_fallback: bool | None,
        native_response_types: Sequence[Any] | None,
    ) -> None:
        if use_native_function_calling is not None:
            object.__setattr__(self, "native_tools", use_native_function_calling)
        super().__post_init__()
        if use_json_adapter_fallback is not None:
            object.__setattr__(self, "falls_back", use_json_adapter_fallback)
        if native_response_types is not None:
            others = [kind for kind in native_response_types if not is_reasoning(kind)]
            object.__setattr__(self, "native_reasoning", len(others) < len(native_response_types))
            if others:
                warn_user(_NO_NATIVE_TYPES)

    def fallback(self) -> JSONAdapter | None:
        """Return the JSON adapter with the options of this one, for an answer that cannot be parsed."""
        if self.falls_back and self._json is None:
            named = {each.name for each in fields(JSONAdapter) if each.init and each.name in vars(self)}
            made = JSONAdapter(**{name: getattr(self, name) for name in named})
            object.__setattr__(made, "native_reasoning", self.native_reasoning)
            object.__setattr__(self, "_json", made)
        return self._json

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
        return with_answered_calls(HookedPlan(setup, self, self._hooks) if self._hooks else super().make_plan(setup))

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
        return run(ask_steps(self, lm, lm_kwargs, signature, demos, inputs, reasons=self.native_reasoning))

    async def acall(
        self,
        lm: LanguageModel,
        lm_kwargs: FieldValues,
        signature: SignatureClass,
        demos: Sequence[object],
        inputs: FieldValues,
    ) -> _Dicts:
        """``adapter(...)``, awaited."""
        return await arun(ask_steps(self, lm, lm_kwargs, signature, demos, inputs, reasons=self.native_reasoning))

    def _call(self, signature: SignatureClass) -> CallInUse:
        """Return the running call, or one without demos and inputs."""
        if (running := call_in_use(signature)) is not None:
            return running
        plan = self.plan(signature)
        return CallInUse(plan.layout, plan)

    def _sections(self, signature: SignatureClass, demos: Sequence[object], inputs: FieldValues) -> MessageSections:
        return sections_of(self._call(signature).plan or self.plan(signature), demos, inputs)

    def format(  # type: ignore[override]
        self, signature: SignatureClass, demos: Sequence[object], inputs: FieldValues
    ) -> _Dicts:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the messages of a request: system, demos, history, inputs."""
        with using(signature, self._call(signature)._replace(demos=demos, inputs=inputs)):
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
        return run(parse_steps(plan, choice, partial(Plan.parse, plan)))

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
        return content_of(type(layout).write_inputs(layout, inputs, prefix, suffix))

    def format_assistant_message_content(
        self, signature: SignatureClass, outputs: FieldValues, missing_field_message: str | None = None
    ) -> str:
        """Return the outputs as the model should write them. Missing outputs are omitted."""
        layout = self._call(signature).layout
        return type(layout).write(layout, outputs)

    def format_field_with_value(self, fields_with_values: Mapping[FieldInfoWithName, object]) -> str:
        """Return the values as the model should write them, without a closing mark."""
        signature = signature_of_values({field.name: field.info.annotation for field in fields_with_values})
        values = {field.name: value for field, value in fields_with_values.items()}
        text = self.format_assistant_message_content(signature, values)
        return text.removesuffix("[[ ## completed ## ]]").rstrip()


class FieldInfoWithName(NamedTuple):
    """The name and the declaration of a field, as a key of ``format_field_with_value``."""

    name: str
    info: FieldInfo


def own_call(adapter: object) -> object:
    """Return the overridden ``__call__``, or ``acall``, that a ``Predict`` of the door calls; ``None`` without one."""
    if not isinstance(adapter, Adapter):
        return None
    mine = (getattr(adapter, name) for name in _CALLS if getattr(type(adapter), name) is not getattr(Adapter, name))
    return next(mine, None)


@dataclass(frozen=True)
class ChatAdapter(Adapter, chat.ChatAdapter):  # pyright: ignore[reportIncompatibleMethodOverride]
    """``sigwire.ChatAdapter`` with DSPy's options and methods. By default it falls back to JSON."""

    falls_back: bool = field(default=True, init=False, repr=False)


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
    """``sigwire.XMLAdapter`` with DSPy's options and methods. By default it falls back to JSON."""

    falls_back: bool = field(default=True, init=False, repr=False)


@dataclass(frozen=True)
class TwoStepAdapter(Adapter, two_step.TwoStepAdapter):  # pyright: ignore[reportIncompatibleMethodOverride]
    """``sigwire.TwoStepAdapter`` with DSPy's options."""

    fixed_methods: ClassVar[Mapping[str, str]] = dict.fromkeys(
        HOOKS, "override them in an adapter of one step, such as ChatAdapter"
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
    return read_value(ChatAdapter(), value, annotation)


_TYPES = "audio base_type citation code document file history image reasoning"
add_paths("sigwire.dspy.types", " ".join(["types", *(f"types.{name}" for name in _TYPES.split())]), __name__)
add_paths("sigwire.dspy.tools", "types.tool", __name__)
