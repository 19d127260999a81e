"""Adapter: formats a signature as a request and parses the answer. Holds options; holds no model.

``plan`` compiles an adapter for one signature and one model's capabilities, once; modules keep the plan. ``format``,
``normalize`` and ``parse`` are the three steps of a plan, for callers without one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from sigwire.adapters.options import AdapterOptions, ToolsMode
from sigwire.adapters.plan import Plan
from sigwire.adapters.plan_parts import PlanSetup
from sigwire.adapters.prompts.layout import Layout, VisibleFields
from sigwire.adapters.text_tools import style_named
from sigwire.adapters.values.type_text import TypeStyle
from sigwire.core.capabilities import Capabilities
from sigwire.core.foreign_names import DOOR
from sigwire.core.record import FieldValues
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.core.tools.tool import Tool
from sigwire.errors import UnsupportedFeature
from sigwire.keywords import ChecksKeywords
from sigwire.overriding import check_overrides
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.signature import SignatureClass

__all__ = ["Adapter"]

_HIDDEN_ROLES = frozenset({"tools", "tool_calls", "history"})
_NO_CAPABILITIES = Capabilities()
_MAX_PLANS = 256
# Methods that adapters of another library override.
_FOREIGN_METHODS = (
    "__call__", "acall", "format_assistant_message_content", "format_conversation_history", "format_demos",
    "format_field_description", "format_field_structure", "format_field_with_value", "format_finetune_data",
    "format_system_message", "format_task_description", "format_user_message_content",
)  # fmt: skip
_PlanKey: TypeAlias = tuple[int, Capabilities]


@dataclass(frozen=True, kw_only=True)
class Adapter(ChecksKeywords, AdapterOptions, ABC):
    """Base of the adapters; a subclass gives the layout of fields.

    ``strict``: refuse every answer that needs a repair, and every downgrade. ``native_tools``: offer tools natively
    (``None``: if the model can). ``types``: how types are shown, "compact" or "schema" (JSON Schema). ``demos``: demos as
    marked "turns" or in the "system" message. ``parallel_tool_calls``: the default of that request option. ``callbacks``
    receive every format and parse that a module makes with this adapter.

    For a model that is offered tools as text: ``tool_schemas`` shows them in "full" or "compact"; ``text_tools`` is the form
    of calls and results, "fenced" or a model family's own such as "hermes" (``text_tools.styles``).

    ``max_reasks``: re-asks after an unreadable answer, for modules and models without a number (``None``: the setting).

    ``calls_alone``: calls written as text count only in a message without other text; ``False``: wherever they are not
    quoted. ``None``: the former if tools are offered natively (``~~~tool_call`` blocks may follow text), else the latter.
    """

    fixed_methods: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("format", "normalize", "parse", *_FOREIGN_METHODS),
        "override layout, whose Layout writes and reads the fields, or make_plan, whose Plan formats, normalizes and parses",
    )
    _renamed = {"use_native_function_calling": f"native_tools, or the adapter of {DOOR}"}  # noqa: RUF012

    native_tools: bool | None = None
    types: TypeStyle = "compact"
    callbacks: Sequence[Any] | None = field(default=None, repr=False, compare=False)
    _plans: dict[_PlanKey, Plan] = field(default_factory=dict[_PlanKey, Plan], init=False, repr=False, compare=False)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        check_overrides(cls)

    def __post_init__(self) -> None:
        style_named(self.text_tools)

    def __getstate__(self) -> dict[str, Any]:
        # Plans are found by the identity of objects of this process, so a copy makes new plans.
        return {**self.__dict__, "_plans": {}}

    @abstractmethod
    def layout(self, visible: VisibleFields, capabilities: Capabilities) -> Layout:
        """Return the layout for these fields."""

    def mode(self, layout: Layout, capabilities: Capabilities, tools_mode: ToolsMode | None) -> tuple[str, str | None]:
        """Return how outputs are requested, and why no better way is possible (``None``: nothing to warn of)."""
        return "prompt", None

    def plan(self, signature: SignatureClass, capabilities: Capabilities = _NO_CAPABILITIES) -> Plan:
        """Return the adapter compiled for a signature and a model; the same object for the same arguments.

        Raises ``UnsupportedFeature`` if ``strict`` is set and the model lacks what the options ask for.
        """
        # An edited signature gets a new spec, so the spec identifies it; the plan keeps the spec alive.
        key = (id(signature.spec), capabilities)
        plan = self._plans.get(key)
        if plan is None:
            plan = self.compile(signature, capabilities)
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def compile(self, signature: SignatureClass, capabilities: Capabilities) -> Plan:
        """Return a new plan. Most callers want ``plan``."""
        spec = signature.spec
        warnings: list[LMWarning] = []
        tools_mode = self._tools_mode(capabilities, warnings) if spec.tools_field else None
        visible = VisibleFields(
            tuple(field for field in spec.inputs if field.role not in _HIDDEN_ROLES),
            tuple(field for field in spec.outputs if not _is_hidden_output(field, capabilities)),
            self.types,
            tools_mode is not None and not capabilities.runs_own_tools,
            spec.calls_field.name if spec.calls_field else "",
        )
        if capabilities.decides == "only":
            from sigwire.adapters.decisions import decisions_setup  # few models

            return Plan(decisions_setup(self, signature, capabilities, visible))
        layout = self.layout(visible, capabilities)
        mode, reason = self.mode(layout, capabilities, tools_mode)
        if reason is not None:
            warnings.append(LMWarning("structured_output", reason))
        thoughts = _thoughts_of(spec.outputs, capabilities)
        written = (
            self.layout(replace(visible, outputs=thoughts + visible.outputs), capabilities) if thoughts else layout
        )
        return self.make_plan(
            PlanSetup(self, signature, capabilities, layout, tools_mode, mode, tuple(warnings), written)
        )

    def make_plan(self, setup: PlanSetup) -> Plan:
        """Return the plan of this setup. An adapter with its own plan class overrides this method."""
        return Plan(setup)

    def fallback(self) -> Adapter | None:
        """Return the adapter of one more request after an answer that cannot be parsed; ``None`` for none.

        A subclass may override it. The second request has the signature, the inputs and the demos of the first.
        """
        return None

    def reading_model(self) -> Any:
        """Return the model that writes the outputs as fields; ``None``: that of the call. A subclass may override it."""
        return None

    def _tools_mode(self, capabilities: Capabilities, warnings: list[LMWarning]) -> ToolsMode:
        wanted = capabilities.native_tools if self.native_tools is None else self.native_tools
        if not wanted or capabilities.native_tools:
            return "native" if wanted else "text"
        problem = "the model has no native tools; they are offered as text"
        if self.strict:
            raise UnsupportedFeature(
                f"native_tools: {problem}. Choose another model, or an adapter without strict=True."
            )
        warnings.append(LMWarning("native_tools", problem))
        return "text"

    def format(
        self,
        signature: SignatureClass,
        inputs: FieldValues,
        demos: Sequence[object] = (),
        history: object = None,
        capabilities: Capabilities = _NO_CAPABILITIES,
        **options: Any,
    ) -> Request:
        """Return the request for these inputs. Defaults of inputs are filled in; ``options`` are request options."""
        spec = signature.spec
        values: dict[str, object] = {field.name: field.default_value() for field in spec.inputs if field.has_default}
        values.update(inputs)
        if history is not None and spec.history_field is not None:
            values[spec.history_field.name] = history
        return self.plan(signature, capabilities).format(values, demos, options or None)

    def normalize(
        self,
        response: Response,
        signature: SignatureClass,
        tools: Iterable[Tool] = (),
        capabilities: Capabilities = _NO_CAPABILITIES,
    ) -> tuple[Choice, ...]:
        """Return the response's choices: text, tool calls, raw. Calls written as text become tool calls."""
        return self.plan(signature, capabilities).normalize(response, tools).choices

    def parse(
        self, signature: SignatureClass, choice: Choice | str, capabilities: Capabilities = _NO_CAPABILITIES
    ) -> dict[str, Any]:
        """Return the fields of a choice, or of a text. Raises what ``Plan.parse`` raises."""
        choice = Choice(text=choice) if isinstance(choice, str) else choice
        return self.plan(signature, capabilities).parse(choice).fields


def _is_hidden_output(spec: FieldSpec, capabilities: Capabilities) -> bool:
    return spec.role in _HIDDEN_ROLES or _is_thought(spec, capabilities)


def _is_thought(spec: FieldSpec, capabilities: Capabilities) -> bool:
    return spec.role == "reasoning" and capabilities.reasoning and not capabilities.reasoning_hidden


def _thoughts_of(outputs: Iterable[FieldSpec], capabilities: Capabilities) -> tuple[FieldSpec, ...]:
    """Return the outputs that a thinking model need not write."""
    return tuple(replace(field, required=False) for field in outputs if _is_thought(field, capabilities))
