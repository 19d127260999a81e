"""Make the media of a request fit its provider, just before the request is encoded.

    sniff      the declared type is corrected to that of the first bytes
    type       an image of a type that the provider does not take is converted
    pixels     an image with a longer edge than the limit is scaled
    bytes      an image that is still too large is compressed, then scaled further
    request    the media of all messages together must fit

Each step is skipped if it is not needed. Each change is a warning of the response; what cannot fit is ``UnsupportedMedia``.
Sound, video and documents are sniffed and counted only. URLs and ids of files are not touched. Messages are never changed: new
ones are made. Same bytes for the same target are the same bytes again, which prompt caches of providers need.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import operator
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.core.response import LMWarning
from sigwire.core.tools.calls import ToolResult
from sigwire.lm.media.limits import LIMITS, UNKNOWN, MediaLimits
from sigwire.media.errors import UnsupportedMedia
from sigwire.media.sniff import pixels_of, sniff

if TYPE_CHECKING:
    from sigwire.lm.media.pictures import Encoded

__all__ = ["fit_media", "fit_turns"]

P = TypeVar("P", bound=Part)

_HEADER = 2**19  # characters of base64 that have the size of nearly every image; a JPEG may have it behind its metadata
_FORMATS: Mapping[str, str] = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/flac": "flac", "audio/aiff": "aiff"}
_SPELLINGS: Mapping[str, str] = {
    "mpeg": "mp3",
    "mpga": "mp3",
    "x-wav": "wav",
    "wave": "wav",
    "x-flac": "flac",
    "aif": "aiff",
}
_SAME_TYPES: Mapping[str, str] = {"image/jpg": "image/jpeg", "image/heif": "image/heic", "image/x-ms-bmp": "image/bmp"}


def fit_media(messages: Sequence[Message], family: str, warnings: list[LMWarning]) -> list[Message]:
    """Return the messages with media that the family of hosts takes; each change is added to ``warnings``.

    Raises ``UnsupportedMedia`` for what exceeds a limit and cannot be changed.

    >>> given, warnings = Message("user", (ImagePart(data="R0lGODlhAQABAA==", media_type="image/png"),)), []
    >>> fit_media([given], "openai-chat", warnings)[0].parts[0].media_type, warnings[0].detail
    ('image/gif', 'An image declared as image/png has the first bytes of image/gif and was sent as that.')
    """
    turns = fit_turns(messages, family)
    warnings += [warning for _, changes in turns for warning in changes]
    return [message for message, _ in turns]


def fit_turns(messages: Sequence[Message], family: str) -> list[tuple[Message, list[LMWarning]]]:
    """Return each message with media that the family of hosts takes, and its changes. Raises as ``fit_media`` does."""
    limits, media = LIMITS.get(family, UNKNOWN), _media_of(messages)
    images = sum(isinstance(part, ImagePart) for part in media)
    _refuse_more(images, limits.images, "images", family)
    _refuse_more(sum(isinstance(part, FilePart) for part in media), limits.documents, "documents", family)
    edge = limits.edge_for(images)
    fitted: list[tuple[Message, list[LMWarning]]] = []
    for message in messages:
        changes: list[LMWarning] = []
        fitted.append((_with_media(message, _Fit(family, limits, edge, changes)), changes))
    size = sum(len(part.data or "") for part in _media_of([message for message, _ in fitted]))
    if limits.request_size is not None and size > limits.request_size:
        raise UnsupportedMedia(
            f"The media of the request have {size} bytes as base64; {family} takes {limits.request_size} in one request "
            "(encoding the request). Send fewer or smaller ones, or upload them to the provider and send their ids."
        )
    return fitted


def _refuse_more(count: int, most: int | None, what: str, family: str) -> None:
    if most is not None and count > most:
        raise UnsupportedMedia(
            f"The request has {count} {what}; {family} takes {most} in one request (encoding the request). Send fewer, for "
            "example in several requests, or leave those of earlier turns out."
        )


# --- where media stand: in turns, and in results of tools


def _media_of(messages: Iterable[Message]) -> list[ImagePart | AudioPart | FilePart]:
    parts = [part for message in messages for part in message.parts]
    inner: list[Part] = [each for part in parts if isinstance(part, ToolResult) for each in part.media]
    return [part for part in (*parts, *inner) if isinstance(part, ImagePart | AudioPart | FilePart)]


def _with_media(message: Message, fit: _Fit) -> Message:
    """Return the message with fitted media; the same message if nothing changes, because results are cached on it."""
    parts = tuple(
        [_with_inner(part, fit) if isinstance(part, ToolResult) else fit.part(part) for part in message.parts]
    )
    return message if all(map(operator.is_, parts, message.parts)) else Message(message.role, parts)


def _with_inner(result: ToolResult, fit: _Fit) -> ToolResult:
    media = tuple(map(fit.part, result.media))
    return result if all(map(operator.is_, media, result.media)) else replace(result, media=media)


# --- one part


class _Fit(NamedTuple):
    """The limits of one request. ``edge``: the longest edge of its images."""

    family: str
    limits: MediaLimits
    edge: int | None
    warnings: list[LMWarning]

    def part(self, part: P) -> P | ImagePart | AudioPart | FilePart:
        """Return the part as it is sent."""
        match part:
            case ImagePart(data=str(data)) if data:
                return self._image(part, data)
            case AudioPart():
                return self._sound(part)
            case FilePart(data=str(data)):
                return self._file(part, data)
            case _:
                return part

    def _image(self, part: ImagePart, data: str) -> ImagePart:
        header = _decode(data[:_HEADER])
        found = sniff(header)
        if found is None:
            return part
        size = pixels_of(header) or (pixels_of(_decode(data)) if len(data) > _HEADER else None)
        if reason := self._misfit(found, size, len(data)):
            return self._converted(part, data, reason)
        declared = part.media_type
        if declared is not None and _SAME_TYPES.get(declared, declared) != found and found.startswith("image/"):
            self._warn_type("An image", declared, found)
            return replace(part, media_type=found)
        return part

    def _misfit(self, found: str, size: tuple[int, int] | None, sent: int) -> str:
        """Return the limit that an image exceeds; "" if it fits."""
        limits = self.limits
        if limits.types and found not in limits.types and found.startswith("image/"):
            return f"its type is {found}, not one of {', '.join(sorted(limits.types))}"
        if self.edge is not None and size is not None and max(size) > self.edge:
            return f"its size is {size[0]} x {size[1]} pixels, the limit {self.edge}"
        if limits.image_size is not None and sent > limits.image_size:
            return f"it has {sent} bytes as base64, the limit is {limits.image_size}"
        return ""

    def _converted(self, part: ImagePart, data: str, reason: str) -> ImagePart:
        most = self.limits.image_size
        try:
            sent, made = _memo.convert(data, self.edge, most and most // 4 * 3)
        except UnsupportedMedia as error:
            raise UnsupportedMedia(f"{self.family} does not take an image: {reason}. {error}") from error
        text = f"{made.media_type}, {made.size[0]} x {made.size[1]} pixels"
        self.warnings.append(
            LMWarning("media", f"An image was converted: {'; '.join((reason, *made.done))}.", sent=text)
        )
        return replace(part, data=sent, media_type=made.media_type)

    def _sound(self, part: AudioPart) -> AudioPart:
        found = _FORMATS.get(sniff(_decode(part.data[:64])) or "")
        declared = part.format.lower()
        if found is None or declared == found:
            return part
        if _SPELLINGS.get(declared) != found:
            self._warn_type("Sound", part.format, found)
        return replace(part, format=found)

    def _file(self, part: FilePart, data: str) -> FilePart:
        found, declared = sniff(_decode(data[:64])), part.media_type or ""
        kind = declared.partition("/")[0]
        # Text may begin like another file, and containers are named after their contents by other programs.
        if found is None or kind in ("text", "audio", "video") or _SAME_TYPES.get(declared, declared) == found:
            return part
        if found in ("image/bmp", "audio/mpeg") or not declared:
            return part
        self._warn_type("A file", declared, found)
        return replace(part, media_type=found)

    def _warn_type(self, what: str, declared: str, found: str) -> None:
        detail = f"{what} declared as {declared} has the first bytes of {found} and was sent as that."
        self.warnings.append(LMWarning("media", detail, sent=found))


def _decode(data: str) -> bytes:
    """Return the bytes of base64 text; none if it is damaged: the provider then refuses it."""
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


# --- converted images are kept: a conversation sends its images in every request


class _Memo:
    """The converted images that were used last, by digest of the image and by limits."""

    def __init__(self, most_characters: int) -> None:
        self._most, self._size = most_characters, 0
        self._kept: OrderedDict[tuple[bytes, int | None, int | None], tuple[str, Encoded]] = OrderedDict()
        self._lock = threading.Lock()

    def convert(self, data: str, edge: int | None, most_bytes: int | None) -> tuple[str, Encoded]:
        """Return base64 text, and the image without its bytes."""
        key = (hashlib.sha256(data.encode()).digest(), edge, most_bytes)
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return kept
        from sigwire.lm.media.pictures import convert

        encoded = convert(_decode(data), edge, most_bytes)
        made = base64.b64encode(encoded.content).decode("ascii"), encoded._replace(content=b"")
        with self._lock:
            made = self._kept.setdefault(key, made)
            self._size = sum(len(text) for text, _ in self._kept.values())
            while self._size > self._most and len(self._kept) > 1:
                self._size -= len(self._kept.popitem(last=False)[1][0])
        return made


_memo = _Memo(64 * 2**20)
