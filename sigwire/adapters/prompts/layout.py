"""Layout: how fields stand in the text of a message, written and read. One per plan; holds what calls do not change.

``Layout`` has what the layouts share: the description of fields for the system message, and inputs between an opening and a
closing mark, media in their place among the text. A subclass says how outputs are taught, written and read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from sigwire.adapters.prompts.escaping import AnyEscaper, line_guard
from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.type_text import field_type_text
from sigwire.core.messages import Part
from sigwire.core.parts import TextPart
from sigwire.core.request import ResponseFormat
from sigwire.core.response import Repair
from sigwire.errors import ValueReadError
from sigwire.signatures.fields import FieldSpec

if TYPE_CHECKING:
    from sigwire.adapters.field_events import FieldEvents, OutputReader

__all__ = ["ABSENT", "INPUT_HEADERS", "FieldReadings", "Layout", "TypeStyle", "VisibleFields"]

TypeStyle: TypeAlias = Literal["compact", "schema"]
ABSENT = "the field is missing"
INPUT_HEADERS = "Each input field follows a header line [[ ## name ## ]]."


@dataclass(frozen=True, slots=True)
class VisibleFields:
    """The fields that stand in the prompt, and how. ``calls``: the answer's text may hold tool calls as well.

    ``calls_name`` is the output that calls fill, should a model write it like the others.
    """

    inputs: tuple[FieldSpec, ...]
    outputs: tuple[FieldSpec, ...]
    types: TypeStyle = "compact"
    calls: bool = False
    calls_name: str = ""


@dataclass(slots=True)
class FieldReadings:
    """What was read from a text: values by field, what was repaired, what is wrong by field."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    repairs: list[Repair] = field(default_factory=list[Repair])
    problems: dict[str, str] = field(default_factory=dict[str, str])


class Layout(ABC):
    """Fields as text, both ways. ``free``: the answer is free text, and no outputs stand in it."""

    free: ClassVar[bool] = False

    def __init__(self, visible: VisibleFields) -> None:
        self.visible = visible
        self.guard: AnyEscaper = self.make_guard()
        self.outputs = tuple((spec.name, FieldCodec(spec)) for spec in visible.outputs)
        self.codecs = dict(self.outputs)
        self._inputs = tuple(
            (spec.name, self.opening(spec.name), self.closing(spec.name), FieldCodec(spec)) for spec in visible.inputs
        )
        self.input_names = frozenset(name for name, *_ in self._inputs)
        self._has_media = any(codec.has_media for *_, codec in self._inputs)
        self._plain: tuple[tuple[str, str, str, Callable[[Any], str]], ...] = tuple(
            (name, opening, closing, codec.render_input) for name, opening, closing, codec in self._inputs
        )

    # --- what a subclass decides -------------------------------------------------------------------

    @abstractmethod
    def format_instructions(self) -> str:
        """The part of the system message that shows the form of inputs and outputs."""

    @abstractmethod
    def format_reminder(self) -> str:
        """The last line of the last user message: which outputs, in which order."""

    @abstractmethod
    def write(self, values: Mapping[str, Any]) -> str:
        """The outputs that ``values`` has, as the model should write them."""

    @abstractmethod
    def read(self, text: str, strict: bool) -> FieldReadings:
        """The outputs in what the model wrote. Raises nothing: what is wrong stands in the reading's problems."""

    def starts_outputs(self, text: str) -> bool:
        """Whether a text begins as outputs do, so that nothing can stand before them."""
        return False

    def output_reader(self, told: FieldEvents) -> OutputReader | None:
        """What reads an answer in pieces; ``None``: its outputs are told at its end."""
        return None

    def opening(self, name: str) -> str:
        """What stands before an input's value."""
        return f"[[ ## {name} ## ]]\n"

    def closing(self, name: str) -> str:
        """What stands after an input's value."""
        return ""

    def make_guard(self) -> AnyEscaper:
        """What keeps values apart from marks."""
        return line_guard(calls=self.visible.calls)

    def response_format(self) -> ResponseFormat | None:
        """Structured output to ask the provider for."""
        return None

    # --- inputs --------------------------------------------------------------------------------------

    def write_inputs(self, values: Mapping[str, Any], before: str = "", after: str = "") -> tuple[Part, ...]:
        """The inputs that ``values`` has, between two texts, as the parts of a message."""
        if self._has_media:
            return self._write_media(values, before, after)
        guard = self.guard.on
        pieces = [before] if before else []
        for name, opening, closing, render in self._plain:
            if name in values:
                pieces.append(opening + guard(render(values[name])) + closing)
        if after:
            pieces.append(after)
        return (TextPart("\n\n".join(pieces)),)

    def _write_media(self, values: Mapping[str, Any], before: str, after: str) -> tuple[Part, ...]:
        pieces: list[str | Part] = [before] if before else []
        for name, opening, closing, codec in self._inputs:
            if name in values:
                pieces.append(("\n\n" if pieces else "") + opening)
                pieces.extend(self.guard.on(p) if isinstance(p, str) else p for p in codec.parts(values[name]))
                pieces.append(closing)
        if after:
            pieces.append(("\n\n" if pieces else "") + after)
        return _merged(pieces)

    # --- descriptions ----------------------------------------------------------------------------------

    def describe_fields(self) -> list[str]:
        """Inputs and outputs, each with its type, what it means and its limits, as paragraphs."""
        groups = (("Input fields:", self.visible.inputs), ("Output fields:", self.visible.outputs))
        return ["\n".join([title, *map(self._describe, specs)]) for title, specs in groups if specs]

    def value_rule(self) -> str:
        """How to write values; empty if every output is plain text."""
        if all(field_type_text(spec) == "string" for spec in self.visible.outputs):
            return ""
        return " Write text values without quotes and values of other types as JSON."

    def _describe(self, spec: FieldSpec) -> str:
        meaning = "; ".join(text for text in (_one_line(spec.description), _one_line(spec.constraints)) if text)
        kind = field_type_text(spec, self.visible.types)
        if "\n" in kind or len(kind) > 60:
            below = kind.replace("\n", "\n  ")
            return f"- {spec.name}{': ' + meaning if meaning else ''}\n  type: {below}"
        return f"- {spec.name} ({kind}){': ' + meaning if meaning else ''}"

    # --- reading ---------------------------------------------------------------------------------------

    def read_values(self, texts: Mapping[str, str], strict: bool, reading: FieldReadings) -> FieldReadings:
        """Read each output from its text; the ones without a text get their default or a problem."""
        off = self.guard.off
        for name, codec in self.outputs:
            text = texts.get(name)
            if text is None:
                self.missing_fields(name, reading)
                continue
            try:
                value = codec.read(off(text), strict=strict)
            except ValueReadError as fault:
                reading.problems[name] = str(fault)
            else:
                reading.values[name] = value.value
                if value.repairs:
                    reading.repairs.extend(value.repairs)
        return reading

    def missing_fields(self, name: str, reading: FieldReadings) -> None:
        """Give an output that the answer does not have its default, or say that it is missing."""
        spec = self.codecs[name].field
        if spec.required:
            reading.problems[name] = ABSENT
        else:
            reading.values[name] = spec.default_value() if spec.has_default else None


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _merged(pieces: Iterable[str | Part]) -> tuple[Part, ...]:
    """Adjacent texts as one part; media where they stand."""
    parts: list[Part] = []
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        if text:
            parts.append(TextPart(text))
        parts.append(piece)
        text = ""
    if text:
        parts.append(TextPart(text))
    return tuple(parts)
