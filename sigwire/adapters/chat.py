"""ChatAdapter: a section for each field, the form that every chat model can write.

    [[ ## answer ## ]]
    Paris

    [[ ## completed ## ]]

A header stands at the start of a line; what follows up to the next header is the value. Values that hold headers are
guarded (``guards``). When an answer has no header at all but is a JSON object with the outputs, it is read as that, and the
repair is listed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sigwire.adapters.base import Adapter
from sigwire.adapters.prompts.layout import INPUT_HEADERS, FieldReadings, Layout, VisibleFields
from sigwire.adapters.values.objects import ObjectCodec
from sigwire.adapters.values.type_text import field_type_text
from sigwire.core.capabilities import Capabilities
from sigwire.core.response import Repair

if TYPE_CHECKING:
    from sigwire.adapters.field_events import FieldEvents, OutputReader

__all__ = ["ChatAdapter", "ChatLayout"]

# A literal newline before the header, and not "^": the pattern's search then skips from line to line, which on a long answer
# is ten times faster. ``read`` puts one before the text.
_HEADER = re.compile(r"\n[ \t]*\[\[[ \t]*##[ \t]*(\w+)[ \t]*##[ \t]*\]\]")
_LONG_TYPE = 40


@dataclass(frozen=True)
class ChatAdapter(Adapter):
    """Fields as sections under ``[[ ## name ## ]]`` headers. The adapter that is used when none is configured.

    >>> from sigwire.signatures import Signature
    >>> request = ChatAdapter().format(Signature("question -> answer"), {"question": "Capital of France?"})
    >>> print(request.messages[-1].text)
    [[ ## question ## ]]
    Capital of France?
    <BLANKLINE>
    Reply with [[ ## answer ## ]], then [[ ## completed ## ]].
    >>> ChatAdapter().parse(Signature("question -> answer"), "[[ ## answer ## ]]\\nParis")
    {'answer': 'Paris'}
    """

    def layout(self, visible: VisibleFields, capabilities: Capabilities) -> Layout:
        """Sections, whatever the model can do."""
        return ChatLayout(visible)


class ChatLayout(Layout):
    """Outputs as sections."""

    def __init__(self, visible: VisibleFields) -> None:
        super().__init__(visible)
        self._end = "end_of_answer" if "completed" in self.codecs else "completed"
        self._done = f"[[ ## {self._end} ## ]]"
        self._object = ObjectCodec(visible.outputs)
        self._sections = tuple((name, f"[[ ## {name} ## ]]\n", codec.render) for name, codec in self.outputs)

    def format_instructions(self) -> str:
        shown = [f"[[ ## {name} ## ]]\n{{{name}}}" for name, _ in self.outputs]
        form = INPUT_HEADERS
        if shown:
            form += f" Reply with only the output fields, in this form and order.{self.value_rule()}\n\n"
            form += "\n\n".join([*shown, self._done])
        return "\n\n".join([*self.describe_fields(), form])

    def format_reminder(self) -> str:
        if not self.outputs:
            return ""
        names = ", ".join(f"[[ ## {spec.name} ## ]]{_short_type(spec)}" for spec in self.visible.outputs)
        return f"Reply with {names}, then {self._done}."

    def write(self, values: Mapping[str, Any]) -> str:
        guard = self.guard.on
        sections = [opening + guard(render(values[name])) for name, opening, render in self._sections if name in values]
        if not sections:
            return ""
        sections.append(self._done)
        return "\n\n".join(sections)

    def starts_outputs(self, text: str) -> bool:
        return _HEADER.match("\n" + text) is not None

    def output_reader(self, told: FieldEvents) -> OutputReader:
        from sigwire.adapters.streaming.chat_sections import ChatSectionReader

        return ChatSectionReader(self.outputs, self._end, self.guard, told)

    def read(self, text: str, strict: bool) -> FieldReadings:
        pieces = _HEADER.split("\n" + text)
        if len(pieces) == 1:
            return self._read_bare(text, strict)
        reading = FieldReadings({}, [], {})
        texts: dict[str, str] = {}
        stray_calls = ""
        for position in range(1, len(pieces), 2):
            name = pieces[position]
            if name in self.codecs and name not in texts:
                texts[name] = pieces[position + 1]
            elif name == self.visible.calls_name and name not in self.codecs:
                stray_calls = stray_calls or pieces[position + 1].strip()
            elif name != self._end:
                self._odd_section(name, strict, reading)
            elif position + 2 < len(pieces) or pieces[position + 1].strip():
                self._outside("after the end mark", strict, reading)
                break
        if pieces[0].strip():
            self._outside("before the first section", strict, reading)
        self.read_values(texts, strict, reading)
        if stray_calls:
            self._stray_calls(strict, reading)
        return reading

    def _odd_section(self, name: str, strict: bool, reading: FieldReadings) -> None:
        known = name in self.codecs
        what = (
            "the section is repeated; only the first is used" if known else f"{name!r} is not an output field; ignored"
        )
        if strict:
            reading.problems[name] = what
        else:
            reading.repairs.append(Repair(name if known else None, what))

    def _stray_calls(self, strict: bool, reading: FieldReadings) -> None:
        """Calls that could be read are no longer in the text: what stands in their section is none."""
        name = self.visible.calls_name
        if strict or reading.problems:
            what = "this section contains no valid tool call; write a valid tool call or omit the section"
            reading.problems[name] = what
        else:
            reading.repairs.append(Repair(name, "no tool call could be read in the section; it was left out"))

    def _outside(self, where: str, strict: bool, reading: FieldReadings) -> None:
        if strict:
            reading.problems[""] = f"unexpected text {where}"
        else:
            reading.repairs.append(Repair(None, f"text {where} was left out"))

    def _read_bare(self, text: str, strict: bool) -> FieldReadings:
        """An answer without any header: nothing was found, unless it is the outputs as a JSON object."""
        if not strict and "{" in text:
            reading = self._object.read(text, strict=False)
            if not reading.problems:
                repair = Repair(None, "the answer was a JSON object instead of sections")
                return FieldReadings(dict(reading.values), [repair, *reading.repairs])
        return self.read_values({}, strict, FieldReadings())


def _short_type(spec: Any) -> str:
    """The type of an output that is not plain text, where it is short enough to repeat."""
    kind = field_type_text(spec, "compact")
    return f" ({kind})" if kind != "string" and len(kind) <= _LONG_TYPE and "\n" not in kind else ""
