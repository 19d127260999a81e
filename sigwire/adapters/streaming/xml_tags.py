"""The XML layout in pieces: a tag around each output.

The same as ``XMLLayout.read``: the last closing tag before the next opening one closes a value; where that is not clear yet,
what comes after is held back. So a value is told up to its first closing tag at once, and what follows when it is known to be
the value's or not.
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
    """Tags of one answer. A value is "open" before any tag, "closed" after its own closing one, "doubtful" after another
    output's opening tag: that may stand in the value, or the closing tag may be missing.
    """

    __slots__ = (
        "_events",
        "_guard",
        "_lookahead",
        "_name",
        "_opener",
        "_outputs",
        "_sink",
        "_state",
        "_tag",
        "_tail",
        "_unsure",
    )

    def __init__(self, outputs: Iterable[tuple[str, FieldCodec]], guard: AnyEscaper, events: FieldEvents) -> None:
        self._outputs, self._guard, self._events = dict(outputs), guard, events
        openers = [MarkPattern.of("<", *map(re.escape, name), r"\s*", ">") for name in self._outputs]
        closers = [MarkPattern.literal(f"</{name}>") for name in self._outputs]
        self._opener = rf"(?P<opener>{'|'.join(mark.whole for mark in openers)})"
        self._unsure = re.compile(rf"(?:{'|'.join(mark.begun for mark in (*openers, *closers))})\Z")
        self._tag = re.compile(self._opener)
        self._lookahead = Lookahead()
        self._sink: FieldSink | None = None
        self._name = ""
        self._state = "outside"
        self._tail: list[str] = []  # after a closing tag: it, and what may be the value's as well

    def opens(self, text: str) -> bool | None:
        """Whether a text begins with an opening tag."""
        if self._tag.match(text):
            return True
        return None if self._unsure.match(text) else False

    def feed(self, text: str) -> None:
        """More of the answer."""
        if not self._lookahead.text:
            if "<" not in text:
                self._feed_sink(text)
                return
        elif (joined := self._lookahead.joined(text)) is None:
            return
        else:
            text = joined
        self._read(text)

    def close(self) -> None:
        """The end of the answer."""
        # In doubt the closing tag was missing: what was held is not the value's. Other outputs in it are told from the reading.
        self._feed_sink(self._lookahead.release())
        self._end()

    def _read(self, text: str) -> None:
        at = 0
        while (tag := self._tag.search(text, at)) is not None:
            self._feed_sink(text[at : tag.start()])
            self._STEPS[self._state, bool(tag.groupdict().get("opener"))](self, tag[0])
            at = tag.end()
        mark = text.rfind("<", at)
        cut = mark if mark >= 0 and self._unsure.match(text, mark) else len(text)
        self._feed_sink(text[at:cut])
        if cut < len(text):
            self._lookahead.keep(text[cut:])

    def _feed_sink(self, text: str) -> None:
        if not text:
            return
        if self._state == "open":
            if self._sink is not None:
                self._sink.feed(text)
        elif self._state != "outside":
            self._tail.append(text)

    # --- what a tag means --------------------------------------------------------------------------------

    def _begin(self, tag: str) -> None:
        """A value begins; the second one of a name is passed over."""
        self._name = tag[1:-1].rstrip()
        codec = self._outputs.pop(self._name, None)
        self._sink = None if codec is None else Unescaper.by(self._guard, make_sink(codec, self._events))
        self._enter("open")

    def _next(self, tag: str) -> None:
        """Another value begins, so the last closing tag did close."""
        self._end()
        self._begin(tag)

    def _end(self, tag: str = "") -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None
        self._tail = []
        self._enter("outside")

    def _maybe_end(self, tag: str) -> None:
        self._enter("closed")
        self._tail = [tag]

    def _end_later(self, tag: str) -> None:
        """A closing tag again: the one before stood in the value."""
        self._restore()
        self._maybe_end(tag)

    def _doubt(self, tag: str) -> None:
        self._enter("doubtful")
        self._tail = [tag]

    def _end_after_all(self, tag: str) -> None:
        """The closing tag: the opening tags before it stood in the value."""
        self._restore()
        self._end()

    def _restore(self) -> None:
        held, self._tail = "".join(self._tail), []
        if self._sink is not None:
            self._sink.feed(held)

    def _enter(self, state: str) -> None:
        """Which tags count from now on: outside opening ones, in a value its closing tag, too; in doubt that one only."""
        self._state = state
        closer = re.escape(f"</{self._name}>")
        expression = {"outside": self._opener, "doubtful": closer}.get(state, f"{self._opener}|{closer}")
        self._tag = re.compile(expression)

    _STEPS: ClassVar[
        dict[tuple[str, bool], Callable[[XmlTagReader, str], None]]
    ] = {  # by state, and whether it is an opening tag
        ("outside", True): _begin,
        ("open", True): _doubt,
        ("open", False): _maybe_end,
        ("closed", True): _next,
        ("closed", False): _end_later,
        ("doubtful", False): _end_after_all,
    }
