"""ChatAdapter: one section for each field, a form that every chat model can write.

    [[ ## answer ## ]]
    Paris

    [[ ## completed ## ]]

A header is at the start of a line; the text up to the next header is the value. Headers inside values are escaped
(``prompts.escaping``). An answer that has no header but is a JSON object with the outputs is read as one; that is a repair.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sigwire.adapters.base import Adapter
from sigwire.adapters.prompts.layout import INPUT_HEADERS, Layout, VisibleFields, spelled_names, value_place
from sigwire.adapters.values.objects import FieldReadings, ObjectCodec
from sigwire.adapters.values.type_text import type_suffix
from sigwire.core.capabilities import Capabilities
from sigwire.core.record import FieldValues
from sigwire.core.response import Repair

if TYPE_CHECKING:
    from sigwire.adapters.field_events import FieldEvents, OutputReader

__all__ = ["ChatAdapter", "ChatLayout"]

# A literal newline instead of "^": the search skips from line to line, ten times faster on a long answer. ``read`` adds one
# in front of the text.
_HEADER = re.compile(r"\n[ \t]*\[\[[ \t]*##[ \t]*(\w+)[ \t]*##[ \t]*\]\]")
_MAX_TYPE = 40


@dataclass(frozen=True)
class ChatAdapter(Adapter):
    """Fields as sections under ``[[ ## name ## ]]`` headers. The default adapter.

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
        """Return a layout of sections, for every model."""
        return ChatLayout(visible)


class ChatLayout(Layout):
    """Outputs as sections."""

    def __init__(self, visible: VisibleFields) -> None:
        super().__init__(visible)
        self._end = "end_of_answer" if "completed" in self.codecs else "completed"
        self._done = f"[[ ## {self._end} ## ]]"
        self._object = ObjectCodec(visible.outputs)
        self._names = spelled_names([*self.codecs, self._end])
        self._sections = tuple((name, f"[[ ## {name} ## ]]\n", codec.render) for name, codec in self.outputs)

    def format_instructions(self) -> str:
        shown = [f"[[ ## {name} ## ]]\n{{{name}}}" for name, _ in self.outputs]
        form = INPUT_HEADERS
        if shown:
            form += f" Reply with only the output fields, in this form and order.{self.value_rule()}\n\n"
            form += "\n\n".join([*shown, self._done])
        return "\n\n".join([*self.describe_fields(), form])

    def format_reminder(self) -> str:
        names = ", ".join(f"[[ ## {s.name} ## ]]{type_suffix(s, _MAX_TYPE)}" for s in self.visible.outputs)
        return f"Reply with {names}, then {self._done}."

    def write(self, values: FieldValues) -> str:
        escape = self.escaper.escape
        sections = [
            opening + escape(render(values[name])) for name, opening, render in self._sections if name in values
        ]
        return "\n\n".join([*sections, self._done]) if sections else ""

    def starts_outputs(self, text: str) -> bool:
        return _HEADER.match("\n" + text) is not None

    def places(self, text: str) -> dict[str, tuple[int, int]]:
        found = list(_HEADER.finditer("\n" + text))  # positions are one too high
        ends = [each.start() - 1 for each in found[1:]] + [len(text)]
        return {
            self._names.get(each[1].lower(), each[1]): value_place(text, max(each.end() - 1, 0), max(end, 0))
            for each, end in reversed(list(zip(found, ends, strict=True)))
        }

    def output_reader(self, events: FieldEvents) -> OutputReader:
        from sigwire.adapters.streaming.chat_sections import ChatSectionReader

        return ChatSectionReader(self.outputs, self._end, self.escaper, events, self._names)

    def read(self, text: str, strict: bool) -> FieldReadings:
        before, *sections = _HEADER.split("\n" + text)
        if not sections:
            return self._read_without_headers(text, strict)
        reading = FieldReadings()
        texts, calls_text = self._texts_of(sections, strict, reading)
        if before.strip():
            self._add_outside("before the first section", strict, reading)
        self.read_values(texts, strict, reading)
        if calls_text:
            self._add_unread_calls(strict, reading)
        return reading

    def _texts_of(self, sections: list[str], strict: bool, reading: FieldReadings) -> tuple[dict[str, str], str]:
        """Return the texts of the outputs, and the text under the name of the output for calls."""
        texts: dict[str, str] = {}
        calls_text = ""
        for position in range(0, len(sections), 2):
            written, text = sections[position], sections[position + 1]
            name = written if strict else self._names.get(written.lower(), written)
            if name != written and name not in texts:
                reading.repairs.append(Repair(name, f"the section was named {written!r}"))
            if name in self.codecs and name not in texts:
                texts[name] = text
            elif name == self.visible.calls_name and name not in self.codecs:
                calls_text = calls_text or text.strip()
            elif name != self._end:
                self._add_odd_section(name, strict, reading)
            elif position + 2 < len(sections) or text.strip():
                self._add_outside("after the end mark", strict, reading)
                break
        return texts, calls_text

    def _add_odd_section(self, name: str, strict: bool, reading: FieldReadings) -> None:
        known = name in self.codecs
        what = (
            "the section is repeated; only the first is used" if known else f"{name!r} is not an output field; ignored"
        )
        reading.add_deviation(name if known or strict else None, what, strict)

    def _add_unread_calls(self, strict: bool, reading: FieldReadings) -> None:
        """Valid calls were taken out of the text before: text that is left in their section is no call."""
        name = self.visible.calls_name
        if strict or reading.problems:
            what = "this section contains no valid tool call; write a valid tool call or omit the section"
            reading.problems[name] = what
        else:
            reading.repairs.append(Repair(name, "no tool call could be read in the section; it was left out"))

    def _add_outside(self, where: str, strict: bool, reading: FieldReadings) -> None:
        reading.add_deviation(None, f"unexpected text {where}" if strict else f"text {where} was left out", strict)

    def _read_without_headers(self, text: str, strict: bool) -> FieldReadings:
        """Read an answer without headers: the outputs are missing, unless the answer is a JSON object with the outputs."""
        if not strict and "{" in text:
            reading = self._object.read(text, strict=False)
            if not reading.problems:
                reading.repairs.insert(0, Repair(None, "the answer was a JSON object instead of sections"))
                return reading
        return self.read_values({}, strict, FieldReadings())
