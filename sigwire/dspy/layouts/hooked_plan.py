"""Plans of adapters whose methods a user overrides: the messages, the texts and the parse come from these methods.

``in_use`` has the call whose messages are being formatted, since DSPy's methods get a signature and no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from sigwire.adapters.finish import check_finish_reason
from sigwire.adapters.plan import ParsedChoice, Plan
from sigwire.adapters.plan_parts import PlanSetup
from sigwire.adapters.prompts.layout import Layout
from sigwire.core.messages import Message, Part
from sigwire.core.record import FieldValues
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.dspy.types import split_message_content_for_custom_types
from sigwire.lm.openai_dicts import decode_messages, encode_messages
from sigwire.signatures.signature import SignatureClass

__all__ = [
    "HOOKS",
    "CallInUse",
    "HookedAdapter",
    "HookedPlan",
    "MessageSections",
    "call_in_use",
    "content_of",
    "sections_of",
    "using",
]

# The methods that decide the messages of a request, in ``format``; those of its texts, in the layout; the one that parses.
_MESSAGE_HOOKS = (
    "format", "format_conversation_history", "format_demos", "format_system_message", "format_task_description",
)  # fmt: skip
_TEXT_HOOKS = (
    "format_assistant_message_content", "format_field_description", "format_field_structure",
    "format_user_message_content",
)  # fmt: skip
HOOKS = (*_MESSAGE_HOOKS, *_TEXT_HOOKS, "parse")


class CallInUse(NamedTuple):
    """The call whose messages are being formatted. ``plan`` is ``None`` while it is being made."""

    layout: Layout
    plan: Plan | None = None
    demos: Sequence[object] = ()
    inputs: FieldValues = MappingProxyType({})


_in_use: ContextVar[tuple[object, CallInUse] | None] = ContextVar("sigwire_dspy_adapter_call", default=None)


@contextmanager
def using(signature: SignatureClass, call: CallInUse) -> Generator[None]:
    """Set the running call of a signature."""
    token = _in_use.set((signature.spec, call))
    try:
        yield
    finally:
        _in_use.reset(token)


def call_in_use(signature: SignatureClass) -> CallInUse | None:
    """Return the running call of a signature."""
    running = _in_use.get()
    return running[1] if running is not None and running[0] is signature.spec else None


def content_of(parts: Sequence[Part]) -> Any:
    """Return the parts of a user's message as DSPy has them: text, with media a list of parts."""
    return encode_messages([Message("user", tuple(parts))])[0]["content"]


class HookedAdapter(Protocol):
    """The methods of DSPy that a user may override."""

    def format_field_description(self, signature: SignatureClass) -> str: ...
    def format_field_structure(self, signature: SignatureClass) -> str: ...
    def format_assistant_message_content(self, signature: SignatureClass, outputs: FieldValues) -> str: ...
    def format_user_message_content(
        self, signature: SignatureClass, inputs: FieldValues, prefix: str, suffix: str, main_request: bool
    ) -> Any: ...
    def format(
        self, signature: SignatureClass, demos: Sequence[object], inputs: FieldValues
    ) -> list[dict[str, Any]]: ...
    def parse(self, signature: SignatureClass, completion: str) -> Mapping[str, Any]: ...


class MessageSections(NamedTuple):
    """The messages of a request by their origin. ``current``: those of the current inputs, none if the call continues."""

    system: Message
    demos: Sequence[Message]
    history: Sequence[Message]
    current: Sequence[Message]


def sections_of(plan: Plan, demos: Sequence[object], inputs: FieldValues) -> MessageSections:
    parts = plan.parts
    messages = Plan.format(plan, inputs, demos).messages
    exchanges = () if parts.demos_in_system else parts.demos.exchanges(demos)
    past: list[Message] = []
    history = plan.spec.history_field
    if history is not None and inputs.get(history.name):
        parts.history.extend(past, inputs[history.name])
    before = 1 + sum(map(len, exchanges))
    return MessageSections(messages[0], messages[1:before], past, messages[before + len(past) :])


class HookedPlan(Plan):
    """A plan that formats and parses by the methods that a subclass of an adapter overrides."""

    def __init__(self, setup: PlanSetup, adapter: HookedAdapter, hooks: frozenset[str]) -> None:
        self._user_adapter = adapter
        self._formats_messages, self._parses = not hooks.isdisjoint(_MESSAGE_HOOKS), "parse" in hooks
        self._hook_layout(setup.layout, setup.signature, hooks)
        super().__init__(setup)

    def _hook_layout(self, layout: Layout, signature: SignatureClass, hooks: Iterable[str]) -> None:
        """Replace the methods of this plan's layout that have hooks; ``type(layout)`` has the original ones."""
        adapter = self._user_adapter

        def instructions() -> str:
            with using(signature, CallInUse(layout)):
                parts = adapter.format_field_description(signature), adapter.format_field_structure(signature)
            return "\n\n".join(part for part in parts if part)

        def write(values: FieldValues) -> str:
            outputs = {name: values[name] for name in layout.codecs if name in values}
            with using(signature, CallInUse(layout)):
                return adapter.format_assistant_message_content(signature, outputs) if outputs else ""

        def write_inputs(values: FieldValues, before: str = "", after: str = "") -> tuple[Part, ...]:
            inputs = {name: value for name, value in values.items() if name in layout.input_names}
            with using(signature, CallInUse(layout)):
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
        with using(self.signature, CallInUse(self.layout, self, demos, inputs)):
            messages = self._user_adapter.format(self.signature, list(demos), dict(inputs))
        return replace(request, messages=decode_messages(split_message_content_for_custom_types(messages)))

    def parse(self, choice: Choice) -> ParsedChoice:
        if not self._parses or choice.tool_calls or not self.layout.outputs:
            return super().parse(choice)
        check_finish_reason(choice)
        with using(self.signature, CallInUse(self.layout, self)):
            fields = dict(self._user_adapter.parse(self.signature, choice.text))
        return ParsedChoice({**self.fields_outside_text(choice), **fields})
