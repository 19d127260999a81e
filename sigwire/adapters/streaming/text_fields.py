r"""A field's text in pieces: blanks at its ends, and what its ends were guarded with, are taken off on the way.

The same as ``FieldCodec.read`` does with a whole text (see ``edges``). Held back are blanks, which may be the last ones, and
the backslashes after them; at the beginning what may be a guard or a word for ``None``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.edges import EDGES, restore_edges
from sigwire.adapters.values.type_shape import compiled
from sigwire.errors import ValueReadError

__all__ = ["TextFieldReader", "WholeFieldReader", "emit_text", "emit_value", "is_streamable_text"]


_EDGE = "".join(sorted(EDGES))
_BLANK = re.compile(r"\s")
_OPENED = re.compile(r"\\+\s")
_UNDECIDED: Mapping[bool, re.Pattern[str]] = {  # by whether the field may be None
    False: re.compile(r"\\*"),
    True: re.compile(r"\\*(?:n(?:u(?:ll?)?)?|N(?:o(?:ne?)?)?|(?:null|None)\s+)?"),
}


def is_streamable_text(codec: FieldCodec) -> bool:
    """Whether the beginning of an output's text is the beginning of its value: no constraint of it changes the text."""
    return codec.form == "text" and all(map(_only_checks, codec.field.metadata))


_CHECKS = frozenset({"Len", "MaxLen", "MinLen", "PydanticGeneralMetadata", "StringConstraints"})
_CHANGES = ("strip_whitespace", "to_lower", "to_upper")


def _only_checks(constraint: object) -> bool:
    changes = any(getattr(constraint, change, None) for change in _CHANGES)
    return type(constraint).__name__ in _CHECKS and not changes


class TextFieldReader:
    r"""A text output, told as it comes.

    >>> from sigwire.signatures.signature import Signature
    >>> events = FieldEvents()
    >>> text = TextFieldReader(FieldCodec(Signature("question -> answer").spec.outputs[0]), events)
    >>> for chunk in ("\n", "\\ P", "aris ", "\n"):
    ...     text.feed(chunk)
    >>> text.close()
    >>> [event.text for event in events.take()[:-1]]
    [' P', 'aris']
    """

    __slots__ = ("_codec", "_events", "_head", "_lookahead", "_name", "_nullable", "_started", "_waits")

    def __init__(self, codec: FieldCodec, events: FieldEvents) -> None:
        self._codec, self._events = codec, events
        self._name, self._nullable = codec.field.name, codec.field.nullable
        self._started = self._waits = False
        self._head: list[str] = []
        self._lookahead: list[str] = []

    def feed(self, text: str) -> None:
        """More of it."""
        if not self._started:
            text = self._begin(text)
        if not text:
            return
        cut = len(text) if text[-1] not in EDGES else self._sure(text)
        if cut:
            self._feed_sink(text[:cut])
        if cut < len(text):
            self._lookahead.append(text[cut:])

    def close(self) -> None:
        """The end of it."""
        if not self._started:
            emit_text(self._codec, "".join(self._head), self._events)
            return
        if self._lookahead:
            # What is held begins with a blank, so that a guard at its end is seen as one.
            rest = restore_edges("." + "".join(self._lookahead).rstrip())[1:]
            if rest:
                self._events.text(self._name, rest)
        self._events.end(self._name)

    def _feed_sink(self, text: str) -> None:
        if self._lookahead:
            text, self._lookahead = "".join([*self._lookahead, text]), []
        self._events.text(self._name, text)

    def _sure(self, text: str) -> int:
        """How much of a text that ends in blanks or backslashes cannot be touched by what comes."""
        body = len(text.rstrip(_EDGE))
        if not body and self._lookahead:
            return 0
        blank = _BLANK.search(text, body)
        return blank.start() if blank else len(text)

    def _begin(self, text: str) -> str:
        """The text from where it surely begins; nothing while that is open."""
        if not self._head and not (text := text.lstrip()):
            return ""
        self._head.append(text)
        if not text.strip("\\") or (self._waits and text.isspace()):
            return ""
        whole = "".join(self._head)
        if _UNDECIDED[self._nullable].fullmatch(whole):
            self._waits = whole[-1].isspace() or whole.endswith(("null", "None"))
            return ""
        self._started, self._head = True, []
        self._events.started_texts.add(self._name)
        return whole[1:] if _OPENED.match(whole) else whole


class WholeFieldReader:
    """An output that can only be read whole: told at its end."""

    __slots__ = ("_chunks", "_codec", "_events")

    def __init__(self, codec: FieldCodec, events: FieldEvents) -> None:
        self._codec, self._events = codec, events
        self._chunks: list[str] = []

    def feed(self, text: str) -> None:
        """More of it."""
        self._chunks.append(text)

    def close(self) -> None:
        """The end of it."""
        emit_text(self._codec, "".join(self._chunks), self._events)


def emit_text(codec: FieldCodec, text: str, events: FieldEvents) -> None:
    """Tell what a field's whole text says. What cannot be read is told by nobody: the answer's reader says what is wrong.

    A user's validators run once for an answer, when it is read; so what they check is told then.
    """
    if compiled(codec.field).runs_users_code:
        return
    try:
        value = codec.read(text).value
    except ValueReadError:
        return
    emit_value(codec, value, events)


def emit_value(codec: FieldCodec, value: object, events: FieldEvents) -> None:
    """Tell a value that is whole: text as text, anything else as JSON."""
    name = codec.field.name
    if codec.form != "text":
        events.partial(name, codec.dump(value))
    elif isinstance(value, str) and value:
        events.text(name, str.__str__(value))
    events.end(name)
