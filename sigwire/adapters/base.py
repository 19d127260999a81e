"""Adapter: how a signature is asked of a model, and how the answer is read. Options only; no model inside.

``plan`` compiles an adapter for one signature and one model's capabilities, once; modules keep the plan. ``format``,
``normalize`` and ``parse`` are the same three steps for callers who have no use for a plan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sigwire.adapters.plan import FollowUp, ParsedChoice, Plan, ToolsMode
from sigwire.adapters.prompts.demos import DemoLayout
from sigwire.adapters.prompts.layout import Layout, TypeStyle, VisibleFields
from sigwire.adapters.text_tools.render import ToolSchemas
from sigwire.adapters.text_tools.styles import style_named
from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.core.tools.tool import Tool
from sigwire.errors import UnsupportedFeature
from sigwire.signatures.fields import FieldSpec

__all__ = ["Adapter", "FollowUp", "ParsedChoice", "Plan"]

_HIDDEN = frozenset({"tools", "tool_calls", "history"})
_LEAST = Capabilities()
_PLANS_KEPT = 256


@dataclass(frozen=True, kw_only=True)
class Adapter(ABC):
    """Base of the adapters; a subclass gives the layout of fields.

    ``strict``: refuse every answer that needs a repair, and every downgrade. ``native_tools``: offer tools natively
    (``None``: where the model can). ``types``: how types are shown, "compact" or "schema" (JSON Schema). ``demos``: examples
    as marked "turns" or in the "system" message. ``parallel_tool_calls`` is the default of that request option.
    ``callbacks`` hear of every format and parse that a module makes with this adapter.

    For a model that is offered tools as text: ``tool_schemas`` shows them in "full" or "compact"; ``text_tools`` is the form
    of calls and results, "fenced" or a model family's own such as "hermes" (``text_tools.styles``). ``calls_alone``: calls
    written as text, in whatever form, count only in a message that is nothing else; for tools that can do harm.
    """

    strict: bool = False
    native_tools: bool | None = None
    types: TypeStyle = "compact"
    tool_schemas: ToolSchemas = "full"
    text_tools: str = "fenced"
    calls_alone: bool = False
    demos: DemoLayout = "turns"
    parallel_tool_calls: bool | None = None
    callbacks: Sequence[Any] | None = field(default=None, repr=False, compare=False)
    _plans: dict[Any, Plan] = field(default_factory=dict[Any, Plan], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        style_named(self.text_tools)

    def __getstate__(self) -> dict[str, Any]:
        # Plans are found by the identity of objects of this process, so a copy makes its own.
        return {**self.__dict__, "_plans": {}}

    @abstractmethod
    def layout(self, visible: VisibleFields, capabilities: Capabilities) -> Layout:
        """The layout for these fields."""

    def mode(self, layout: Layout, capabilities: Capabilities, tools_mode: ToolsMode | None) -> tuple[str, str | None]:
        """How outputs are asked for, and why in no better way; ``None`` when there is nothing to say."""
        return "prompt", None

    def plan(self, signature: Any, capabilities: Capabilities = _LEAST) -> Plan:
        """The adapter compiled for a signature and a model; the same object for the same arguments.

        Raises ``UnsupportedFeature`` when ``strict`` and the model lacks what the options ask for.
        """
        # A signature that is edited gets a new spec, so the spec says which signature this is; the plan keeps it alive.
        key = (id(signature.spec), capabilities)
        plan = self._plans.get(key)
        if plan is None:
            plan = self.compile(signature, capabilities)
            if len(self._plans) >= _PLANS_KEPT:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def compile(self, signature: Any, capabilities: Capabilities) -> Plan:
        """A new plan. Most callers want ``plan``."""
        spec = signature.spec
        notes: list[LMWarning] = []
        tools_mode = self._tools_mode(capabilities, notes) if spec.tools_field else None
        scans = tools_mode is not None and not capabilities.runs_own_tools
        visible = VisibleFields(
            tuple(field for field in spec.inputs if field.role not in _HIDDEN),
            tuple(field for field in spec.outputs if not _is_hidden_output(field, capabilities)),
            self.types,
            scans,
            spec.calls_field.name if spec.calls_field else "",
        )
        layout = self.layout(visible, capabilities)
        mode, why = self.mode(layout, capabilities, tools_mode)
        if why is not None:
            notes.append(LMWarning("structured_output", why))
        return self.make_plan(signature, capabilities, layout, tools_mode, mode, tuple(notes))

    def make_plan(
        self,
        signature: Any,
        capabilities: Capabilities,
        layout: Layout,
        tools_mode: ToolsMode | None,
        mode: str,
        warnings: tuple[LMWarning, ...],
    ) -> Plan:
        """The plan of these pieces; an adapter with a plan class of its own says so here."""
        return Plan(self, signature, capabilities, layout, tools_mode, mode, warnings)

    def _tools_mode(self, capabilities: Capabilities, notes: list[LMWarning]) -> ToolsMode:
        if self.native_tools is None:
            return "native" if capabilities.native_tools else "text"
        if self.native_tools and not capabilities.native_tools:
            self._degrade("native_tools", "the model has no native tools; they are offered as text", notes)
            return "text"
        return "native" if self.native_tools else "text"

    def _degrade(self, feature: str, why: str, notes: list[LMWarning]) -> None:
        if self.strict:
            raise UnsupportedFeature(f"{feature}: {why}. Choose another model, or an adapter without strict=True.")
        notes.append(LMWarning(feature, why))

    # --- without a plan --------------------------------------------------------------------------------

    def format(
        self,
        signature: Any,
        inputs: Mapping[str, Any],
        demos: Sequence[Any] = (),
        history: Any = None,
        capabilities: Capabilities = _LEAST,
        **options: Any,
    ) -> Request:
        """The request for these inputs; inputs with a default need not be given. ``options`` are the request's."""
        plan = self.plan(signature, capabilities)
        values = {field.name: field.default_value() for field in signature.spec.inputs if field.has_default}
        values.update(inputs)
        if history is not None and signature.spec.history_field is not None:
            values[signature.spec.history_field.name] = history
        return plan.format(values, demos, options or None)

    def normalize(
        self,
        response: Response,
        signature: Any,
        tools: Iterable[Tool] = (),
        capabilities: Capabilities = _LEAST,
    ) -> tuple[Choice, ...]:
        """The response's choices: text, tool calls, raw; calls written as text are calls."""
        return self.plan(signature, capabilities).normalize(response, tools).choices

    def parse(self, signature: Any, choice: Choice | str, capabilities: Capabilities = _LEAST) -> dict[str, Any]:
        """The fields of a choice, or of a text."""
        choice = Choice(text=choice) if isinstance(choice, str) else choice
        return self.plan(signature, capabilities).parse(choice).fields


def _is_hidden_output(spec: FieldSpec, capabilities: Capabilities) -> bool:
    return spec.role in _HIDDEN or (spec.role == "reasoning" and capabilities.reasoning)
