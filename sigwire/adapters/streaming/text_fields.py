r"""A text field in chunks: blanks and escapes at its ends are removed as it arrives.

Equal to ``FieldCodec.read`` of a whole text (see ``edges``). Blanks are held, which may be the last ones, and the backslashes
after them; at the start, text that can be an escape or a word for ``None``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.edges import EDGES, restore_edges
from sigwire.adapters.values.type_shape import compile_type
from sigwire.errors import ValueReadError

__all__ = ["TextFieldReader", "WholeFieldReader", "emit_text", "emit_value", "is_streamable_text"]


_EDGE = "".join(sorted(EDGES))
_BLANK = re.compile(r"\s")
_ESCAPED_BLANK = re.compile(r"\\+\s")
_UNDECIDED: Mapping[bool, re.Pattern[str]] = {  # key: whether the field may be None
    False: re.compile(r"\\*"),
    True: re.compile(r"\\*(?:n(?:u(?:ll?)?)?|N(?:o(?:ne?)?)?|(?:null|None)\s+)?"),
}


def is_streamable_text(codec: FieldCodec) -> bool:
    """Return True if a prefix of an output's text is a prefix of its value: no constraint changes the text."""
    return codec.form == "text" and all(map(_is_check, codec.field.metadata))


_CHECKS = frozenset({"Len", "MaxLen", "MinLen", "PydanticGeneralMetadata", "StringConstraints"})
_CHANGING = ("strip_whitespace", "to_lower", "to_upper")


def _is_check(constraint: object) -> bool:
    changes = any(getattr(constraint, change, None) for change in _CHANGING)
    return type(constraint).__name__ in _CHECKS and not changes


class TextFieldReader:
    r"""A text output, emitted in deltas.

    >>> from sigwire.signatures.signature import Signature
    >>> events = FieldEvents()
    >>> text = TextFieldReader(FieldCodec(Signature("question -> answer").spec.outputs[0]), events)
    >>> for chunk in ("\n", "\\ P", "aris ", "\n"):
    ...     text.feed(chunk)
    >>> text.close()
    >>> [event.text for event in events.take()[:-1]]
    [' P', 'aris']
    """

    __slots__ = ("_codec", "_events", "_has_started", "_head", "_holds_word", "_lookahead", "_name", "_nullable")

    def __init__(self, codec: FieldCodec, events: FieldEvents) -> None:
        self._codec, self._events = codec, events
        self._name, self._nullable = codec.field.name, codec.field.nullable
        self._has_started = self._holds_word = False
        self._head: list[str] = []
        self._lookahead: list[str] = []

    def feed(self, text: str) -> None:
        if not self._has_started:
            text = self._start(text)
        if not text:
            return
        safe_end = len(text) if text[-1] not in EDGES else self._safe_end(text)
        if safe_end:
            self._events.text(self._name, "".join([*self._lookahead, text[:safe_end]]))
            self._lookahead = []
        if safe_end < len(text):
            self._lookahead.append(text[safe_end:])

    def close(self) -> None:
        if not self._has_started:
            emit_text(self._codec, "".join(self._head), self._events)
            return
        if self._lookahead:
            # The held text starts with a blank; the dot keeps an escape at its end visible.
            rest = restore_edges("." + "".join(self._lookahead).rstrip())[1:]
            if rest:
                self._events.text(self._name, rest)
        self._events.end(self._name)

    def _safe_end(self, text: str) -> int:
        """Return the length of the part that later text cannot change, of a text that ends in blanks or backslashes."""
        body = len(text.rstrip(_EDGE))
        if not body and self._lookahead:
            return 0
        blank = _BLANK.search(text, body)
        return blank.start() if blank else len(text)

    def _start(self, text: str) -> str:
        """Return the text from its certain start; nothing while that is open."""
        if not self._head and not (text := text.lstrip()):
            return ""
        self._head.append(text)
        if not text.strip("\\") or (self._holds_word and text.isspace()):
            return ""
        whole = "".join(self._head)
        if _UNDECIDED[self._nullable].fullmatch(whole):
            self._holds_word = whole[-1].isspace() or whole.endswith(("null", "None"))
            return ""
        self._has_started, self._head = True, []
        self._events.started_texts.add(self._name)
        return whole[1:] if _ESCAPED_BLANK.match(whole) else whole


class WholeFieldReader:
    """An output that is readable only as a whole, and emitted at its end."""

    __slots__ = ("_chunks", "_codec", "_events")

    def __init__(self, codec: FieldCodec, events: FieldEvents) -> None:
        self._codec, self._events = codec, events
        self._chunks: list[str] = []

    def feed(self, text: str) -> None:
        self._chunks.append(text)

    def close(self) -> None:
        emit_text(self._codec, "".join(self._chunks), self._events)


def emit_text(codec: FieldCodec, text: str, events: FieldEvents) -> None:
    """Emit the value of a field's whole text. An unreadable text is not emitted: the parse of the answer has the error.

    A user's validators run once for an answer, in its parse. A value that they check is emitted after the parse.
    """
    if compile_type(codec.field).runs_users_code:
        return
    with suppress(ValueReadError):
        emit_value(codec, codec.read(text).value, events)


def emit_value(codec: FieldCodec, value: object, events: FieldEvents) -> None:
    """Emit a complete value: text as text, anything else as JSON."""
    name = codec.field.name
    if codec.form != "text":
        events.partial(name, codec.dump(value))
    elif isinstance(value, str) and value:
        events.text(name, str.__str__(value))
    events.end(name)
