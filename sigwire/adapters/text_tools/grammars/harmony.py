"""gpt-oss's messages: every one says in its header who it is for, and through which channel.

    <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>OBJ<|call|>

A message to a tool is a call; ``analysis`` is reasoning; ``final``, and ``commentary`` to nobody, is text, which goes out as it
comes and is not looked into. The recipient may stand before the channel, and servers that strip special tokens leave little
more than ``to=functions.NAME json{...}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sigwire.adapters.text_tools.cursor import Cursor, Finder, Wait
from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, ToolCatalog, broken, unknown
from sigwire.adapters.text_tools.grammars.tagged_json import arguments_block
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, opens_object
from sigwire.core.events import ReasoningDelta, TextDelta
from sigwire.core.tools.calls import ToolCall

__all__ = ["HARMONY"]

_STRIPPED = "to=functions."
_HEADER = re.compile(r"[^<{\n]*")
_NAME = re.compile(r"[\w.\- ]*")
_LONGEST = 200
_WORDS = frozenset({"analysis", "code", "commentary", "json"})
_MAX_PIECES = 6
_RECIPIENT = re.compile(r"to=([\w.\-]+)")
_CHANNEL = re.compile(r"\b(analysis|commentary|final)\b")
_ENDS = ("<|end|>", "<|return|>", "<|call|>")
_BEGINS = ("<|start|>", "<|channel|>")
_TERMINATORS = Finder([*_ENDS, *_BEGINS])
_CLOSERS = ClosingMarkers(*_ENDS, *_BEGINS)


def _read(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    header = yield from _header(cursor, opener if opener == _STRIPPED else "")
    if header is None:
        return None
    text, whole = header
    recipient = _RECIPIENT.search(text)
    if opener == _STRIPPED and not whole and not _is_cut(text, offer):
        return None
    if recipient is not None and recipient[1] != "assistant":
        return (yield from _call(cursor, recipient[1], offer, whole))
    channels = _CHANNEL.findall(text)
    if not whole or not channels:
        return None
    yield from _body(cursor, ReasoningDelta if channels[-1] == "analysis" else TextDelta)
    return CallBlock()


def _is_cut(text: str, offer: ToolCatalog) -> bool:
    """Whether what is left of a header ended before its message: a tool's name, and no words of prose behind it."""
    recipient, *words = text.removeprefix("to=").split()
    return offer.declared(recipient) is not None and _WORDS.issuperset(words)


def _header(cursor: Cursor, begun: str) -> Wait[tuple[str, bool] | None]:
    """Pass what stands before a message, and whether all of it was there."""
    text = begun
    for _ in range(_MAX_PIECES):
        text += yield from cursor.run(_NAME if begun else _HEADER, _LONGEST)
        if (yield from cursor.takes("<|message|>")):
            return text, True
        if (yield from cursor.takes_any(("<|constrain|>", "<|channel|>"))) is not None:
            text += " "
            continue
        here = yield from cursor.peek()
        if here == "{" and begun:  # "json" may stand before, and no mark is left
            return text, True
        return (text, False) if not here and _STRIPPED in text else None
    return None


def _body(cursor: Cursor, event: Callable[[str], TextDelta | ReasoningDelta]) -> Wait[None]:
    """Let out a message's text as it comes, up to its end."""
    while True:
        match = _TERMINATORS.pattern.search(cursor.text, cursor.position)
        end = match.start() if match else len(cursor.text) if cursor.closed else _safe(cursor)
        if end > cursor.position:
            text, cursor.position = cursor.text[cursor.position : end], end
            yield event(text)
        if match is not None:
            yield from cursor.takes_any(_ENDS)
            return
        if cursor.closed:
            return
        yield None


def _safe(cursor: Cursor) -> int:
    """Up to where the text can hold no part of a terminator."""
    mark = cursor.text.rfind("<", max(cursor.position, len(cursor.text) - _TERMINATORS.width))
    return len(cursor.text) if mark < 0 else mark


def _call(cursor: Cursor, recipient: str, offer: ToolCatalog, whole: bool) -> Wait[CallBlock]:
    name = offer.declared(recipient)
    if not whole:
        return CallBlock((broken(recipient, "The text ended inside the call", name),))
    if (yield from opens_object(cursor, lists=False)):
        block = yield from arguments_block(cursor, recipient, offer, _CLOSERS)
        yield from cursor.space()
        yield from cursor.takes_any(_ENDS)
        return block
    start = cursor.position
    match = yield from cursor.find(_TERMINATORS)
    cursor.position = match.end() if match and match[0] in _ENDS else match.start() if match else len(cursor.text)
    raw = cursor.text[start : match.start() if match else len(cursor.text)]
    if name and match and match[0] == "<|call|>" and not raw.strip():
        return CallBlock((ToolCall("", name, {}),))
    if name is None:
        return CallBlock((unknown(recipient, raw, offer),))
    return CallBlock((broken(raw, "The message to the tool is not a JSON object", name),))


HARMONY = Grammar("harmony", ("<|channel|>", "<|start|>assistant", _STRIPPED), _read)
