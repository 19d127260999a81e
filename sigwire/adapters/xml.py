r"""XMLAdapter: a tag around each field.

    <answer>
    Paris
    </answer>

Values are written without entities: code and comparisons need none, and models do not write entities reliably. Only tags of
the signature's fields are escaped inside values (``<\answer>``). Values of other types than text are JSON; nested tags, which
some models write instead, are read as a repair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sigwire.adapters.base import Adapter
from sigwire.adapters.prompts.escaping import AnyEscaper, EscaperPair, line_escaper, tag_escaper
from sigwire.adapters.prompts.layout import Layout, VisibleFields, value_place
from sigwire.adapters.values.nested_tags import read_tags, with_lists
from sigwire.adapters.values.objects import FieldReadings
from sigwire.adapters.values.type_shape import compile_type
from sigwire.adapters.values.type_text import type_suffix
from sigwire.core.capabilities import Capabilities
from sigwire.core.record import FieldValues
from sigwire.core.response import Repair
from sigwire.errors import ValueReadError

if TYPE_CHECKING:
    from sigwire.adapters.field_events import FieldEvents, OutputReader

__all__ = ["XMLAdapter", "XMLLayout"]

_MAX_TYPE = 40


@dataclass(frozen=True)
class XMLAdapter(Adapter):
    """Fields between tags.

    >>> from sigwire.signatures import Signature
    >>> XMLAdapter().parse(Signature("question -> answer"), "<answer>1 < 2 && 2 < 3</answer>")
    {'answer': '1 < 2 && 2 < 3'}
    """

    def layout(self, visible: VisibleFields, capabilities: Capabilities) -> Layout:
        """Return a layout of tags, for every model."""
        return XMLLayout(visible)


class XMLLayout(Layout):
    """Outputs between tags."""

    def __init__(self, visible: VisibleFields) -> None:
        super().__init__(visible)
        names = "|".join(re.escape(name) for name, _ in self.outputs)
        self._opener = re.compile(rf"<({names})\s*>") if names else None
        self._tags = tuple((name, f"<{name}>\n", f"\n</{name}>", codec.render) for name, codec in self.outputs)

    def make_escaper(self) -> AnyEscaper:
        names = tuple(spec.name for spec in (*self.visible.inputs, *self.visible.outputs))
        tags = tag_escaper(names)
        return EscaperPair(tags, line_escaper(calls=True, headers=False)) if self.visible.calls else tags

    def text_before(self, name: str) -> str:
        return f"<{name}>\n"

    def text_after(self, name: str) -> str:
        return f"\n</{name}>"

    def field_tags(self, names: Iterable[str]) -> Mapping[str, str]:
        return {f"<{name}>": f"</{name}>" for name in (*self.codecs, *names)}

    def format_instructions(self) -> str:
        form = "Each field is in a tag with its name."
        if self.outputs:
            shown = "\n\n".join(f"<{name}>\n{{{name}}}\n</{name}>" for name, _ in self.outputs)
            form += " Reply with only the output fields, in this form and order. Write <, not &lt;."
            form += f"{self.value_rule()}\n\n{shown}"
        return "\n\n".join([*self.describe_fields(), form])

    def format_reminder(self) -> str:
        return f"Reply with {', '.join(f'<{s.name}>{type_suffix(s, _MAX_TYPE)}' for s in self.visible.outputs)}."

    def write(self, values: FieldValues) -> str:
        escape = self.escaper.escape
        return "\n\n".join(
            opening + escape(render(values[name])) + closing
            for name, opening, closing, render in self._tags
            if name in values
        )

    def starts_outputs(self, text: str) -> bool:
        return self._opener is not None and self._opener.match(text) is not None

    def places(self, text: str) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for name in self.codecs:
            start = text.find(f"<{name}>")
            end = text.find(f"</{name}>", start)
            if 0 <= start < end:
                found[name] = value_place(text, start + len(name) + 2, end)
        return found

    def output_reader(self, events: FieldEvents) -> OutputReader | None:
        from sigwire.adapters.streaming.xml_tags import XmlTagReader

        return XmlTagReader(self.outputs, self.escaper, events) if self.outputs else None

    def read(self, text: str, strict: bool) -> FieldReadings:
        reading = FieldReadings()
        texts: dict[str, str] = {}
        position, outside = 0, ""
        # Found once: searching a missing tag for each section would be quadratic.
        last_closings = {name: text.rfind(f"</{name}>") for name in self.codecs}
        while self._opener and (opener := self._opener.search(text, position)):
            outside += text[position : opener.start()]
            name = opener[1]
            value, position = self._value(text, name, opener.end(), last_closings[name], strict, reading)
            if name in texts:
                reading.add_deviation(name, "the tag is repeated; only the first is used", strict)
            texts.setdefault(name, value)
        outside += text[position:]
        if outside.strip() and texts:
            reading.add_deviation(None, "text outside the tags is ignored", strict)
        self.read_values(texts, strict, reading)
        empty = dict.fromkeys(re.findall(r"(?m)^\s*<(\w+)\s*/>\s*$", outside), "")
        return reading if strict else self._retry_as_tags({**empty, **texts}, reading)

    def _value(
        self, text: str, name: str, start: int, last_closing: int, strict: bool, reading: FieldReadings
    ) -> tuple[str, int]:
        """Return the text between the tags and its end. A closing tag inside an unescaped value does not end it."""
        tag = f"</{name}>"
        following = self._opener.search(text, start) if self._opener else None
        limit = following.start() if following else len(text)
        if last_closing < start:
            reading.add_deviation(name, f"the closing tag {tag} is missing", strict)
            return text[start:limit], limit
        end = text.find(tag, start)
        last = text.rfind(tag, end, limit)
        if last > end:
            reading.add_deviation(name, f"{tag} is also inside the value; the last one closes it", strict)
            end = last
        return text[start:end], end + len(tag)

    def _retry_as_tags(self, texts: Mapping[str, str], reading: FieldReadings) -> FieldReadings:
        """Read values with problems as nested tags; an empty tag is an empty list, object or text."""
        for name in [name for name in reading.problems if texts.get(name, "?").lstrip()[:1] in ("", "<")]:
            codec = self.codecs[name]
            try:
                value = codec.load(with_lists(compile_type(codec.field).shape, read_tags(texts[name])), strict=False)
            except ValueReadError:
                continue
            del reading.problems[name]
            reading.values[name] = value.value
            reading.repairs += [Repair(name, "nested tags were read as JSON"), *value.repairs]
        return reading
