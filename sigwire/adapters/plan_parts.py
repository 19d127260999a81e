"""The parts of a plan: ``PlanSetup``, the choices of its adapter, and ``PlanParts``, what a plan makes of them once.

Both are frozen. The writers of ``PlanParts`` cache what they wrote; a call fills in values only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from sigwire.adapters.options import AdapterOptions, ToolsMode
from sigwire.adapters.prompts.demos import EXAMPLE, DemoWriter
from sigwire.adapters.prompts.history import HistoryWriter
from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.prompts.tool_prompt import ToolPromptWriter
from sigwire.adapters.prompts.turns import TurnWriter
from sigwire.adapters.text_tools.styles import CallStyle, style_named
from sigwire.core.capabilities import Capabilities
from sigwire.core.request import ResponseFormat
from sigwire.core.response import LMWarning
from sigwire.signatures.fields import FieldSpec, SignatureSpec
from sigwire.signatures.signature import SignatureClass

if TYPE_CHECKING:
    from sigwire.adapters.text_tools.scan.output_buffer import CallsAlone

__all__ = ["PlanParts", "PlanSetup"]

_THOUGHT_TAGS = (
    ("think", "<think>", "</think>"),
    ("thinking", "<thinking>", "</thinking>"),
    ("", "[THINK]", "[/THINK]"),
)


@dataclass(frozen=True, slots=True)
class PlanSetup:
    """The parts of a plan, as its adapter chose them for a signature and a model.

    ``mode``: how outputs are requested, "native_schema", "schema, not enforced", "native_json", "prompt", or "decisions" from
    a model that answers questions only. ``tools_mode``: how
    tools are offered, "native", "text", or ``None`` if the signature has none. ``warnings``: options that the model cannot
    satisfy. ``written``: the layout of answers, which may have reasoning that the prompt does not ask for.
    """

    adapter: AdapterOptions
    signature: SignatureClass
    capabilities: Capabilities
    layout: Layout
    tools_mode: ToolsMode | None
    mode: str
    warnings: tuple[LMWarning, ...]
    written: Layout


@dataclass(frozen=True, slots=True)
class PlanParts:
    """The writers of a plan, and the facts that its setup decides.

    ``tools_name``, ``calls_name`` and ``history_name``: the fields with these roles. ``reasoning``: outputs with this role;
    ``thinking``: those that the text of an answer does not have; ``thoughts``: pairs of tags around them. ``reads_calls``: a
    text is read for calls; ``calls_alone``: those that count only without other text.
    """

    spec: SignatureSpec
    tools_name: str | None
    calls_name: str | None
    history_name: str | None
    reasoning: tuple[FieldSpec, ...]
    thinking: tuple[FieldSpec, ...]
    thoughts: tuple[tuple[str, str], ...]
    reads_calls: bool
    calls_alone: CallsAlone
    response_format: ResponseFormat | None
    style: CallStyle
    turns: TurnWriter
    demos_in_system: bool
    demos: DemoWriter
    history: HistoryWriter
    tool_prompts: ToolPromptWriter

    @classmethod
    def of(cls, setup: PlanSetup) -> Self:
        """Make the parts of a plan."""
        adapter, layout, tools_mode, spec = setup.adapter, setup.layout, setup.tools_mode, setup.signature.spec
        calls_name, history_name = _name_of(spec.calls_field), _name_of(spec.history_field)
        reasoning = tuple(field for field in spec.outputs if field.role == "reasoning")
        thinking = reasoning if setup.written is not layout else ()
        style = style_named(adapter.text_tools)
        native = setup.capabilities.native_tools and tools_mode != "text"
        turns = TurnWriter(layout, calls_name, native, style)
        in_system = adapter.demos == "system" and not layout.unprompted
        of_demos, mark = (replace(turns, native=False), EXAMPLE) if in_system else (turns, "")
        return cls(
            spec=spec,
            tools_name=_name_of(spec.tools_field),
            calls_name=calls_name,
            history_name=history_name,
            reasoning=reasoning,
            thinking=thinking,
            thoughts=() if adapter.strict else _thought_tags(layout),
            reads_calls=layout.visible.calls,
            calls_alone=_calls_alone(adapter, tools_mode),
            response_format=layout.response_format() if setup.mode != "prompt" else None,
            style=style,
            turns=turns,
            demos_in_system=in_system,
            demos=DemoWriter(of_demos, mark, spec.by_name, thinking, history=history_name, strict=adapter.strict),
            history=HistoryWriter(turns, frozenset(spec.by_name)),
            tool_prompts=ToolPromptWriter(layout, adapter, style, tools_mode, spec.instructions, calls_name),
        )

    @property
    def has_fields_outside_text(self) -> bool:
        """Whether an answer has calls or reasoning beside its text."""
        return bool(self.calls_name or self.thinking)


def _name_of(field: FieldSpec | None) -> str | None:
    return field.name if field else None


def _thought_tags(layout: Layout) -> tuple[tuple[str, str], ...]:
    return tuple((opening, closing) for name, opening, closing in _THOUGHT_TAGS if name not in layout.codecs)


def _calls_alone(options: AdapterOptions, tools_mode: ToolsMode | None) -> CallsAlone:
    """Return which calls in a text count only without other text. A model with native tools may repeat a text with calls."""
    if options.calls_alone is not None:
        return options.calls_alone
    return "families" if tools_mode == "native" else "fences"
