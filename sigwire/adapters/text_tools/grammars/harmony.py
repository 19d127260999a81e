"""gpt-oss's messages: the header of each names its recipient and its channel.

    <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>OBJ<|call|>

A message to a tool is a call; ``analysis`` is reasoning; ``final``, and ``commentary`` without a recipient, is text, which is
emitted as it arrives and not read for calls. The recipient may precede the channel. Servers that strip special tokens leave
little more than ``to=functions.NAME json{...}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sigwire.adapters.text_tools.cursor import Cursor, Finder, Wait
from sigwire.adapters.text_tools.grammar import TRUNCATED, CallBlock, Grammar, ToolCatalog, broken_call, unknown_call
from sigwire.adapters.text_tools.grammars.tagged_json import read_named_call
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, is_object_next
from sigwire.core.events import ReasoningDelta, TextDelta
from sigwire.core.tools.calls import ToolCall

__all__ = ["HARMONY"]

_STRIPPED = "to=functions."
_HEADER = re.compile(r"[^<{\n]*")
_NAME = re.compile(r"[\w.\- ]*")
_LONGEST = 200
_WORDS = frozenset({"analysis", "code", "commentary", "json"})
_MAX_HEADER_PARTS = 6
_RECIPIENT = re.compile(r"to=([\w.\-]+)")
_CHANNEL = re.compile(r"\b(analysis|commentary|final)\b")
_ENDS = ("<|end|>", "<|return|>", "<|call|>")
_BEGINS = ("<|start|>", "<|channel|>")
_TERMINATORS = Finder([*_ENDS, *_BEGINS])
_CLOSERS = ClosingMarkers(*_ENDS, *_BEGINS)


def _read(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    header = yield from _read_header(cursor, opener)
    if header is None:
        return None
    text, is_complete = header
    recipient = _RECIPIENT.search(text)
    if opener == _STRIPPED and not is_complete and not _is_truncated(text, catalog):
        return None
    if recipient is not None and recipient[1] != "assistant":
        return (yield from _read_call(cursor, recipient[1], catalog, is_complete))
    channels = _CHANNEL.findall(text)
    if not is_complete or not channels:
        return None
    yield from _read_body(cursor, ReasoningDelta if channels[-1] == "analysis" else TextDelta)
    return CallBlock()


def _is_truncated(text: str, catalog: ToolCatalog) -> bool:
    """Return True if a header ended before its message: a tool's name, and no words of prose behind it."""
    recipient, *words = text.removeprefix("to=").split()
    return catalog.declared_name(recipient) is not None and _WORDS.issuperset(words)


def _read_header(cursor: Cursor, opener: str) -> Wait[tuple[str, bool] | None]:
    """Pass the text before a message. Return it, and whether it was complete; ``None`` if this is no header."""
    text = start = opener if opener == _STRIPPED else ""
    for _ in range(_MAX_HEADER_PARTS):
        text += yield from cursor.run(_NAME if start else _HEADER, _LONGEST)
        if (yield from cursor.accept("<|message|>")):
            return text, True
        if (yield from cursor.accept_any(("<|constrain|>", "<|channel|>"))) is not None:
            text += " "
            continue
        here = yield from cursor.peek()
        if here == "{" and start:  # servers strip the markers; "json" may precede
            return text, True
        return (text, False) if not here and _STRIPPED in text else None
    return None


def _read_body(cursor: Cursor, event: Callable[[str], TextDelta | ReasoningDelta]) -> Wait[None]:
    """Emit a message's text as it arrives, up to its end."""
    while True:
        match = _TERMINATORS.pattern.search(cursor.text, cursor.position)
        end = match.start() if match else len(cursor.text) if cursor.closed else _safe_end(cursor)
        if end > cursor.position:
            text, cursor.position = cursor.text[cursor.position : end], end
            yield event(text)
        if match is not None:
            yield from cursor.accept_any(_ENDS)
            return
        if cursor.closed:
            return
        yield None


def _safe_end(cursor: Cursor) -> int:
    """Return the position before which the text can hold no part of a terminator."""
    mark = cursor.text.rfind("<", max(cursor.position, len(cursor.text) - _TERMINATORS.width))
    return len(cursor.text) if mark < 0 else mark


def _read_call(cursor: Cursor, recipient: str, catalog: ToolCatalog, is_complete: bool) -> Wait[CallBlock]:
    name = catalog.declared_name(recipient)
    if not is_complete:
        return CallBlock((broken_call(recipient, TRUNCATED, name),))
    if (yield from is_object_next(cursor, lists=False)):
        block = yield from read_named_call(cursor, recipient, catalog, _CLOSERS)
        yield from cursor.skip_space()
        yield from cursor.accept_any(_ENDS)
        return block
    start = cursor.position
    match = yield from cursor.find(_TERMINATORS)
    end, terminator = (match.start(), match[0]) if match else (len(cursor.text), "")
    cursor.position = end + (len(terminator) if terminator in _ENDS else 0)
    raw = cursor.text[start:end]
    if name is None:
        return CallBlock((unknown_call(recipient, raw, catalog),))
    if terminator == "<|call|>" and not raw.strip():
        return CallBlock((ToolCall("", name, {}),))
    return CallBlock((broken_call(raw, "The message to the tool is not a JSON object", name),))


HARMONY = Grammar("harmony", ("<|channel|>", "<|start|>assistant", _STRIPPED), _read)
