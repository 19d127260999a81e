"""The parts of a message that are not about tools: text, media, thinking, and what only a provider understands.

Media are references or base64 data; nothing here opens a file or a URL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from sigwire.core.json import JsonValue, Value

__all__ = ["AudioPart", "FilePart", "ImagePart", "MediaPart", "OpaquePart", "TextPart", "ThinkingPart"]


@dataclass(frozen=True, slots=True)
class TextPart(Value):
    """Plain text."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class ImagePart(Value):
    """An image: a URL (never fetched by sigwire), base64 data with its media type, or the id of a file at the provider."""

    kind: ClassVar[str] = "image"
    url: str | None = None
    data: str | None = None
    media_type: str | None = None
    detail: str | None = None
    file_id: str | None = None


@dataclass(frozen=True, slots=True)
class AudioPart(Value):
    """Sound as base64 data; ``format`` is the file format's short name ("wav", "mp3")."""

    kind: ClassVar[str] = "audio"
    data: str
    format: str = "wav"


@dataclass(frozen=True, slots=True)
class FilePart(Value):
    """A document: base64 data, a URL, or the id of a file that the provider already has."""

    kind: ClassVar[str] = "file"
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class ThinkingPart(Value):
    """What the model reasoned before it answered. ``signature`` and ``redacted`` data go back to their ``provider`` unread."""

    kind: ClassVar[str] = "thinking"
    text: str = ""
    signature: str | None = None
    redacted: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True)
class OpaquePart(Value):
    """A provider's own item, kept byte for byte and sent back only to the same ``provider``."""

    kind: ClassVar[str] = "opaque"
    provider: str
    data: JsonValue


MediaPart: TypeAlias = TextPart | ImagePart | AudioPart | FilePart
