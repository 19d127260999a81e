"""Histories whose every text, call, result, item and medium has a mark of its own, and where the marks are."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Message, Part, Role
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.lm.histories.losses import Loss, Losses

__all__ = ["KINDS", "Mark", "marked_history", "marks_of", "unfounded", "unreported"]

IDS = ("a", "b", "call.1", "x" * 70)


def data_of(mark: str, *, start: bytes = b"\x89PNG\r\n\x1a\n") -> str:
    return base64.b64encode(start + mark.encode() * 3).decode()


def own_item(mark: str, family: str) -> OpaquePart:
    items: Mapping[str, JsonObject] = {
        "openai-chat": {"reasoning_details": [{"type": "reasoning.text", "text": mark}]},
        "openai-responses": {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": mark}]},
        "gemini": {"executableCode": {"language": "PYTHON", "code": mark}},
        "ollama": {"extras": [{"text": mark}]},
        "bedrock": {"guardContent": {"text": {"text": mark}}},
        "litellm/cohere": {"thinking_blocks": [{"type": "thinking", "thinking": mark}]},
    }
    return OpaquePart(family, items.get(family, {"type": "server_tool_use", "id": mark, "name": "s", "input": {}}))


KINDS: Mapping[Role, Mapping[str, Callable[[str, str], Part]]] = {
    "system": {
        "text": lambda mark, family: TextPart(mark),
        "image": lambda mark, family: ImagePart(data=data_of(mark), media_type="image/png"),
    },
    "user": {
        "text": lambda mark, family: TextPart(mark),
        "blank": lambda mark, family: TextPart(" \n"),
        "image": lambda mark, family: ImagePart(data=data_of(mark), media_type="image/png"),
        "detail": lambda mark, family: ImagePart(data=data_of(mark), media_type="image/png", detail=f"low{mark}"),
        "file": lambda mark, family: FilePart(
            data=data_of(mark, start=b"%PDF-"), media_type="application/pdf", filename=f"{mark}.pdf"
        ),
        "document": lambda mark, family: FilePart(
            data=data_of(mark, start=b""), media_type="text/plain", filename=f"name{mark}"
        ),
        "sound": lambda mark, family: AudioPart(data_of(mark, start=b"RIFF")),
    },
    "assistant": {
        "text": lambda mark, family: TextPart(mark),
        "call": lambda mark, family: ToolCall(IDS[int(mark, 36) % len(IDS)], "add", {"x": mark}),
        "thinking": lambda mark, family: ThinkingPart(mark, provider=family),
        "signed thinking": lambda mark, family: ThinkingPart(mark, "U2lnbmVk", provider=family),
        "thinking of no provider": lambda mark, family: ThinkingPart(mark),
        "item": own_item,
        "note": lambda mark, family: OpaquePart(family, {"citations": [{"cited_text": mark}]}),
        "image": lambda mark, family: ImagePart(data=data_of(mark), media_type="image/png"),
    },
    "tool": {
        "result": lambda mark, family: ToolResult(IDS[int(mark, 36) % len(IDS)], "add", mark),
        "image": lambda mark, family: ToolResult(
            IDS[int(mark, 36) % len(IDS)], "add", mark, media=(ImagePart(data=data_of(mark), media_type="image/png"),)
        ),
    },
}
"""Kinds of parts by the role of their turn: from a mark and the family of the provider that made the turn."""


def marked_history(turns: Sequence[tuple[Role, Sequence[str]]], family: str) -> list[Message]:
    """Return the turns with parts of these kinds, and a user turn behind them."""
    history: list[Message] = []
    for number, (role, kinds) in enumerate(turns):
        marks = (f"Q{number:x}P{place:x}Z" for place in range(len(kinds)))
        parts = (KINDS[role][kind](mark, family) for kind, mark in zip(kinds, marks, strict=False))
        history.append(Message(role, tuple(parts)))
    return [*history, Message.user("And now?")]


class Mark(NamedTuple):
    """A part of a history: a request has it, or a loss names it. ``what``: the loss, ``needles``: its forms in JSON."""

    message: int
    part: int
    what: str
    needles: tuple[str, ...]


def marks_of(history: Sequence[Message]) -> Iterator[Mark]:
    """Yield all marks. Thinking beside an item of reasoning is in that item, which some wires send in its place."""
    for number, message in enumerate(history):
        for place, part in enumerate(message.parts):
            items = _reasoning_of(part.provider, message) if isinstance(part, ThinkingPart) else []
            for what, *needles in _needles(part):
                if needles[0].strip():
                    yield Mark(number, place, what, (*needles, *items))


def _reasoning_of(provider: str | None, message: Message) -> list[str]:
    found = [part.data for part in message.parts if isinstance(part, OpaquePart) and part.provider == provider]
    return [_mark_in(data) for data in found if any(word in dumps(data) for word in ("reasoning", "thinking"))]


def _needles(part: Part) -> Iterator[tuple[str, ...]]:
    match part:
        case TextPart(text):
            yield "text", text
        case ThinkingPart(text):
            yield "thinking", text
        case ToolCall(arguments=arguments):
            yield "call", str((arguments or {})["x"])
        case ToolResult(content=content, media=media):
            yield "result", str(content)
            for inner in media:
                yield from _needles(inner)
        case OpaquePart(data=data):
            yield "opaque", _mark_in(data)
        case ImagePart() | AudioPart() | FilePart():
            yield from _media_needles(part)


def _media_needles(part: ImagePart | AudioPart | FilePart) -> Iterator[tuple[str, ...]]:
    data = part.data or ""
    text = base64.b64decode(data).decode("latin-1")
    yield ("media", data, *([text] if isinstance(part, FilePart) and text.isascii() and "%" not in text else ()))
    if isinstance(part, ImagePart) and part.detail:
        yield "detail", part.detail
    if isinstance(part, FilePart) and part.filename:
        yield "filename", part.filename


def _mark_in(data: JsonValue) -> str:
    text = dumps(data)
    start = text.index("Q")
    return text[start : text.index("Z", start) + 1]


_NAMES = {"thinking": {"thinking"}, "opaque": {"opaque", "thinking"}, "filename": {"filename", "media"}}
"""By the mark: the losses that name it; by default those of its own name."""


def is_named(mark: Mark, loss: Loss) -> bool:
    """Return True if a loss names a mark. An image that became a note took its detail with it."""
    names = _NAMES.get(mark.what, {mark.what, "media"} if mark.what == "detail" else {mark.what})
    return (loss.message, loss.part) == (mark.message, mark.part) and loss.what in names


def is_there(mark: Mark, body: str) -> bool:
    return any(dumps(needle)[1:-1] in body for needle in mark.needles)


def unreported(history: Sequence[Message], losses: Losses, body: str) -> list[Mark]:
    """Return the marks that the request has not and no loss names."""
    return [
        mark
        for mark in marks_of(history)
        if not is_there(mark, body) and not any(is_named(mark, loss) for loss in losses)
    ]


def unfounded(history: Sequence[Message], losses: Losses, body: str) -> list[Loss]:
    """Return the losses of a part that name nothing, or a mark that the request has."""
    return [loss for loss in losses if loss.part is not None and not _is_founded(loss, history, body)]


def _is_founded(loss: Loss, history: Sequence[Message], body: str) -> bool:
    if loss.what == "text":
        part = history[loss.message].parts[loss.part or 0]
        return isinstance(part, TextPart) and not part.text.strip()
    named = [mark for mark in marks_of(history) if is_named(mark, loss)]
    missing = [mark for mark in named if not is_there(mark, body)]
    # A note in place of a file names it.
    return bool(missing) and (loss.what == "media" or missing == named)
