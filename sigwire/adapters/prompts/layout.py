"""Layout: writes fields into the text of a message and reads fields from it. One per plan, without state of a call.

``Layout`` has what all layouts share: the description of fields for the system message, and inputs between an opening and
a closing mark, with media in their place. A subclass decides how outputs are described, written and read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, cast

from sigwire.adapters.prompts.escaping import AnyEscaper, line_escaper
from sigwire.adapters.text_tools.render import one_line
from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.objects import FieldReadings
from sigwire.adapters.values.type_text import TypeStyle, field_type_text, has_criteria
from sigwire.core.messages import Part
from sigwire.core.parts import TextPart
from sigwire.core.record import FieldValues
from sigwire.core.request import ResponseFormat
from sigwire.errors import ValueReadError
from sigwire.signatures.fields import FieldSpec

if TYPE_CHECKING:
    from sigwire.adapters.field_events import FieldEvents, OutputReader

__all__ = ["INPUT_HEADERS", "Layout", "VisibleFields", "spelled_names", "value_place"]

INPUT_HEADERS = "Each input field follows a header line [[ ## name ## ]]."


@dataclass(frozen=True, slots=True)
class VisibleFields:
    """The fields in the prompt, and the style of their types. ``calls``: the answer's text may hold tool calls.

    ``calls_name`` is the output of type ``ToolCalls``, which a model may write as a field.
    """

    inputs: tuple[FieldSpec, ...]
    outputs: tuple[FieldSpec, ...]
    types: TypeStyle = "compact"
    calls: bool = False
    calls_name: str = ""


class Layout(ABC):
    """Fields as text, both ways. ``free``: the answer is plain text without outputs. ``unprompted``: no form is stated."""

    free: ClassVar[bool] = False
    unprompted: ClassVar[bool] = False

    def __init__(self, visible: VisibleFields) -> None:
        self.visible = visible
        self.escaper: AnyEscaper = self.make_escaper()
        self.outputs = tuple((spec.name, FieldCodec(spec)) for spec in visible.outputs)
        self.codecs = dict(self.outputs)
        self._inputs = tuple(
            (spec.name, self.text_before(spec.name), self.text_after(spec.name), FieldCodec(spec))
            for spec in visible.inputs
        )
        self._repeated = frozenset(spec.name for spec in visible.inputs if spec.repeats)
        self.input_names = frozenset(name for name, *_ in self._inputs)
        self._has_media = any(codec.has_media for *_, codec in self._inputs)
        self._plain: tuple[tuple[str, str, str, Callable[[object], str]], ...] = tuple(
            (name, opening, closing, codec.render_input) for name, opening, closing, codec in self._inputs
        )

    @abstractmethod
    def format_instructions(self) -> str:
        """Return the part of the system message that shows the form of inputs and outputs."""

    @abstractmethod
    def format_reminder(self) -> str:
        """Return the last line of the last user message: which outputs, in which order. Not called without outputs."""

    @abstractmethod
    def write(self, values: FieldValues) -> str:
        """Return the outputs in ``values`` as the model should write them."""

    @abstractmethod
    def read(self, text: str, strict: bool) -> FieldReadings:
        """Read the outputs in a model's text. Raises nothing: problems are in the result."""

    def starts_outputs(self, text: str) -> bool:
        """Return True if a text starts with outputs, so that no thinking precedes them."""
        return False

    def places(self, text: str) -> Mapping[str, tuple[int, int]]:
        """Return where the values of outputs stand in an answer, as start and end; an output of unknown place is left out."""
        return {}

    def output_reader(self, events: FieldEvents) -> OutputReader | None:
        """Return a reader of a streamed answer; ``None``: outputs are emitted at the end of the answer."""
        return None

    def text_before(self, name: str) -> str:
        """Return the text in front of an input's value."""
        return f"[[ ## {name} ## ]]\n"

    def text_after(self, name: str) -> str:
        """Return the text behind an input's value."""
        return ""

    def field_tags(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return the tags around the outputs and fields with these names, closing by opening tag; empty without tags."""
        return {}

    def make_escaper(self) -> AnyEscaper:
        """Return the escaper of marks inside values."""
        return line_escaper(calls=self.visible.calls)

    def response_format(self) -> ResponseFormat | None:
        """Return the structured output to request from the provider; ``None``: plain text."""
        return None

    @property
    def has_repeated(self) -> bool:
        """Whether an input is one that many calls repeat."""
        return bool(self._repeated)

    def repeated_parts(self, values: FieldValues) -> int:
        """Return how many of the first parts of a message with these inputs other calls repeat."""
        repeated = {name: values[name] for name in self._repeated if name in values}
        return len(self._write(repeated)) if repeated else 0

    def write_inputs(self, values: FieldValues, before: str = "", after: str = "") -> tuple[Part, ...]:
        """Return the inputs in ``values``, between two texts, as the parts of a message.

        Inputs that many calls repeat are first, as parts of their own.
        """
        if not self._repeated or self._repeated.isdisjoint(values):
            return self._write(values, before, after)
        others = {name: value for name, value in values.items() if name not in self._repeated}
        first = self._write({name: value for name, value in values.items() if name in self._repeated}, before)
        if self.input_names.isdisjoint(others) and not after:
            return first
        rest, last = self._write(others, "", after), first[-1]
        if isinstance(last, TextPart):
            return (*first[:-1], TextPart(f"{last.text}\n\n"), *rest)
        return (*first, *rest)

    def _write(self, values: FieldValues, before: str = "", after: str = "") -> tuple[Part, ...]:
        if self._has_media:
            return self._write_media(values, before, after)
        escape = self.escaper.escape
        paragraphs = [before] if before else []
        for name, opening, closing, render in self._plain:
            if name in values:
                paragraphs.append(opening + escape(render(values[name])) + closing)
        if after:
            paragraphs.append(after)
        return (TextPart("\n\n".join(paragraphs)),)

    def _write_media(self, values: FieldValues, before: str, after: str) -> tuple[Part, ...]:
        parts: list[str | Part] = [before] if before else []
        for name, opening, closing, codec in self._inputs:
            if name in values:
                parts.append(("\n\n" if parts else "") + opening)
                parts.extend(self.escaper.escape(p) if isinstance(p, str) else p for p in codec.parts(values[name]))
                parts.append(closing)
        if after:
            parts.append(("\n\n" if parts else "") + after)
        return _merge_texts(parts)

    def describe_fields(self) -> list[str]:
        """Return inputs and outputs as paragraphs, each field with its type, description and limits."""
        groups = (("Input fields:", self.visible.inputs), ("Output fields:", self.visible.outputs))
        return ["\n".join([title, *map(self._describe, specs)]) for title, specs in groups if specs]

    def value_rule(self) -> str:
        """Return how to write values; empty if every output is plain text."""
        if all(field_type_text(spec) == "string" for spec in self.visible.outputs):
            return ""
        return " Write text values without quotes and values of other types as JSON."

    def _describe(self, spec: FieldSpec) -> str:
        meaning = "; ".join(one_line(text) for text in (spec.description, spec.constraints) if text.strip())
        kind = field_type_text(spec, self.visible.types)
        if "\n" in kind or len(kind) > 60 or has_criteria(spec):
            below = kind.replace("\n", "\n  ")
            return f"- {spec.name}{': ' + meaning if meaning else ''}\n  type: {below}"
        return f"- {spec.name} ({kind}){': ' + meaning if meaning else ''}"

    def read_values(self, texts: Mapping[str, str], strict: bool, reading: FieldReadings) -> FieldReadings:
        """Read each output from its text. An output without a text has its default or a problem."""
        unescape = self.escaper.unescape
        for name, codec in self.outputs:
            text = texts.get(name)
            try:
                value = codec.load_member({}) if text is None else codec.read(unescape(text), strict=strict)
            except ValueReadError as fault:
                reading.problems[name] = str(fault)
            else:
                reading.values[name] = value.value
                if value.repairs:
                    reading.repairs.extend(value.repairs)
        return reading


def value_place(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of a value between two marks, without white space around it.

    >>> value_place("a:  yes ;", 2, 8)
    (4, 7)
    """
    value = text[start:end]
    start += len(value) - len(value.lstrip())
    return start, start + len(value.strip())


def spelled_names(names: Iterable[str]) -> dict[str, str]:
    """Return names by their lower case; those that differ in case alone are left out.

    >>> spelled_names(["answer", "Kind", "kind"])
    {'answer': 'answer'}
    """
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.lower(), []).append(name)
    return {lower: same[0] for lower, same in found.items() if len(same) == 1}


def _merge_texts(mixed: Iterable[str | Part]) -> tuple[Part, ...]:
    """Return parts with adjacent texts merged; media keep their place."""
    parts: list[Part] = []
    for is_text, group in groupby(mixed, lambda part: isinstance(part, str)):
        if not is_text:
            parts += cast("Iterable[Part]", group)
        elif text := "".join(cast("Iterable[str]", group)):
            parts.append(TextPart(text))
    return tuple(parts)
