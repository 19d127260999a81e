"""Media and values that results of MCP and LangChain tools have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart

__all__ = ["describe_kind", "media_family", "media_part", "unwrap_single"]

_AUDIO_FORMATS: Mapping[str, str] = {"mpeg": "mp3", "mpga": "mp3", "vnd.wave": "wav", "wave": "wav", "x-wav": "wav"}


def media_part(
    kind: str, *, data: Any = None, url: Any = None, file_id: Any = None, mime: Any = None
) -> MediaPart | None:
    """Return a canonical media part; ``None`` if there is no part for the content."""
    if data is None and url is None and file_id is None:
        return None
    if kind == "image":
        return ImagePart(url, data, mime, file_id=file_id)
    if kind == "audio":
        subtype = str(mime or "audio/wav").partition(";")[0].partition("/")[2]
        return AudioPart(data, _AUDIO_FORMATS.get(subtype, subtype)) if data is not None else None
    return FilePart(data, url, file_id, media_type=mime)


def media_family(mime: object) -> str:
    """Return the first half of a media type: "image", "audio", ..."""
    return str(mime or "").partition("/")[0]


def unwrap_single(values: list[object]) -> object:
    """Return the only value, else the list, else an empty text."""
    return values[0] if len(values) == 1 else values or ""


def describe_kind(value: object) -> str:
    """Return the class of a value as the end of an error message."""
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
