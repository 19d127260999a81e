"""The XML layout in chunks: a tag around each output.

Equal to ``XMLLayout.read``: the last closing tag before the next opening one closes a value. A value is emitted up to its
first closing tag; the text after that is held until it is known to be part of the value or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import ClassVar

from sigwire.adapters.field_events import FieldEvents, FieldSink
from sigwire.adapters.prompts.escaping import AnyEscaper, MarkPattern
from sigwire.adapters.streaming.lookahead import Lookahead
from sigwire.adapters.streaming.object_fields import make_sink
from sigwire.adapters.streaming.unescape import Unescaper
from sigwire.adapters.values.codecs import FieldCodec

__all__ = ["XmlTagReader"]


class XmlTagReader:
    """Tags of one answer. A value is "open" before any tag, "closed" after its closing tag, "doubtful" after the opening tag of
    another output: that tag may be part of the value, or the closing tag may be missing.
    """

    __slots__ = (
        "_escaper",
        "_events",
        "_lookahead",
        "_name",
        "_opener",
        "_outputs",
        "_partial_tag",
        "_sink",
        "_state",
        "_tag",
        "_tail",
    )

    def __init__(self, outputs: Iterable[tuple[str, FieldCodec]], escaper: AnyEscaper, events: FieldEvents) -> None:
        self._outputs, self._escaper, self._events = dict(outputs), escaper, events
        openers = [MarkPattern.of("<", *map(re.escape, name), r"\s*", ">") for name in self._outputs]
        closers = [MarkPattern.literal(f"</{name}>") for name in self._outputs]
        self._opener = rf"(?P<opener>{'|'.join(mark.whole for mark in openers)})"
        self._partial_tag = re.compile(rf"(?:{'|'.join(mark.prefix for mark in (*openers, *closers))})\Z")
        self._tag = re.compile(self._opener)
        self._lookahead = Lookahead()
        self._sink: FieldSink | None = None
        self._name = ""
        self._state = "outside"
        self._tail: list[str] = []  # the last closing tag and the text after it, which may be part of the value

    def opens(self, text: str) -> bool | None:
        """Return True if a text starts with an opening tag."""
        if self._tag.match(text):
            return True
        return None if self._partial_tag.match(text) else False

    def feed(self, text: str) -> None:
        if not self._lookahead.text and "<" not in text:
            self._feed_sink(text)
        elif (joined := self._lookahead.join(text)) is not None:
            self._read(joined)

    def close(self) -> None:
        # In doubt, the closing tag was missing and the held text is not part of the value; the parse emits outputs in it.
        self._feed_sink(self._lookahead.release())
        self._end_value()

    def _read(self, text: str) -> None:
        at = 0
        while (tag := self._tag.search(text, at)) is not None:
            self._feed_sink(text[at : tag.start()])
            self._STEPS[self._state, bool(tag.groupdict().get("opener"))](self, tag[0])
            at = tag.end()
        mark = text.rfind("<", at)
        safe_end = mark if mark >= 0 and self._partial_tag.match(text, mark) else len(text)
        self._feed_sink(text[at:safe_end])
        if safe_end < len(text):
            self._lookahead.hold(text[safe_end:])

    def _feed_sink(self, text: str) -> None:
        if not text:
            return
        if self._state == "open":
            if self._sink is not None:
                self._sink.feed(text)
        elif self._state != "outside":
            self._tail.append(text)

    def _start_value(self, tag: str) -> None:
        """Start a value. The second value of a name is skipped."""
        self._name = tag[1:-1].rstrip()
        codec = self._outputs.pop(self._name, None)
        self._sink = None if codec is None else Unescaper.by(self._escaper, make_sink(codec, self._events))
        self._set_state("open")

    def _start_next_value(self, tag: str) -> None:
        """Start another value: the last closing tag did close."""
        self._end_value()
        self._start_value(tag)

    def _end_value(self, tag: str = "") -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None
        self._tail = []
        self._set_state("outside")

    def _end_tentatively(self, tag: str) -> None:
        self._set_state("closed")
        self._tail = [tag]

    def _extend_and_end_tentatively(self, tag: str) -> None:
        """Read another closing tag: the previous one was part of the value."""
        self._feed_tail()
        self._end_tentatively(tag)

    def _question_value(self, tag: str) -> None:
        self._set_state("doubtful")
        self._tail = [tag]

    def _extend_and_end(self, tag: str) -> None:
        """Read the closing tag: the opening tags before it were part of the value."""
        self._feed_tail()
        self._end_value()

    def _feed_tail(self) -> None:
        held, self._tail = "".join(self._tail), []
        if self._sink is not None:
            self._sink.feed(held)

    def _set_state(self, state: str) -> None:
        """Set the tags that count: outside, opening ones; in a value also its closing tag; in doubt only that one."""
        self._state = state
        closer = re.escape(f"</{self._name}>")
        expression = {"outside": self._opener, "doubtful": closer}.get(state, f"{self._opener}|{closer}")
        self._tag = re.compile(expression)

    # key: state, and whether the tag is an opening one
    _STEPS: ClassVar[dict[tuple[str, bool], Callable[[XmlTagReader, str], None]]] = {
        ("outside", True): _start_value,
        ("open", True): _question_value,
        ("open", False): _end_tentatively,
        ("closed", True): _start_next_value,
        ("closed", False): _extend_and_end_tentatively,
        ("doubtful", False): _extend_and_end,
    }
