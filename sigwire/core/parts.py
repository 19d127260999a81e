"""The parts of a message other than tool calls and results: text, media, thinking, opaque items of a provider.

Media are references or base64 data; this file opens no file and no URL.
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
    """Sound as base64 data; ``format`` is the short name of the file format ("wav", "mp3")."""

    kind: ClassVar[str] = "audio"
    data: str
    format: str = "wav"


@dataclass(frozen=True, slots=True)
class FilePart(Value):
    """A document: base64 data, a URL, or the id of a file at the provider."""

    kind: ClassVar[str] = "file"
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class ThinkingPart(Value):
    """Reasoning of a model. ``signature`` and ``redacted`` data are sent back unchanged, only to their ``provider``."""

    kind: ClassVar[str] = "thinking"
    text: str = ""
    signature: str | None = None
    redacted: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True)
class OpaquePart(Value):
    """An item of a provider without a canonical form, kept as it is and sent back only to the same ``provider``."""

    kind: ClassVar[str] = "opaque"
    provider: str
    data: JsonValue


MediaPart: TypeAlias = TextPart | ImagePart | AudioPart | FilePart
