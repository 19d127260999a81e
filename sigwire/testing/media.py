"""The media that the fake provider refuses, as the real ones do: types, sizes, pixels, and the total of a request.

The numbers are written again here, from the texts of real refusals: the tables of ``sigwire.lm.media`` are tested with them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping

from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolResult
from sigwire.media.sniff import pixels_of, sniff
from sigwire.testing.answers import Fault
from sigwire.testing.wire import Rejected

__all__ = ["check_media"]


def check_media(wire: str, request: Request) -> None:
    """Raise ``Rejected`` for media that the provider of a wire refuses. Images of unknown bytes pass."""
    if check := _CHECKS.get(wire):
        check(list(_media(request)))


def _media(request: Request) -> Iterator[ImagePart | AudioPart | FilePart]:
    for message in request.messages:
        for part in message.parts:
            inner = part.media if isinstance(part, ToolResult) else (part,)
            yield from (each for each in inner if isinstance(each, ImagePart | AudioPart | FilePart))


def _anthropic(media: list[ImagePart | AudioPart | FilePart]) -> None:
    images = [part for part in media if isinstance(part, ImagePart)]
    for image in images:
        if text := _anthropic_refusal(image, 2000 if len(images) > 20 else 8000):
            _refuse(text)
    if sum(len(part.data or "") for part in media) > 32_000_000:
        raise Rejected(Fault("too_large", "Request exceeds the maximum size"))


def _anthropic_refusal(image: ImagePart, longest: int) -> str:
    content, size = _content(image), len(image.data or "")
    if size > 5_242_880:
        return f"image exceeds 5 MB maximum: {size} bytes > 5242880 bytes"
    if sniff(content) not in (None, image.media_type):
        return f"Image does not match the provided media type {image.media_type}"
    if max(pixels_of(content) or (0,)) > longest:
        many = " for many-image requests" if longest == 2000 else ""
        return f"At least one of the image dimensions exceed max allowed size{many}: {longest} pixels"
    return ""


def _openai(media: list[ImagePart | AudioPart | FilePart]) -> None:
    _check_types(media, "png jpeg gif webp", "You uploaded an unsupported image.")
    for part in media:
        if isinstance(part, AudioPart) and sniff(base64.b64decode(part.data)) not in (None, _SOUND.get(part.format)):
            _refuse("The data provided for 'input_audio' is not of valid " + part.format + " format.")


def _gemini(media: list[ImagePart | AudioPart | FilePart]) -> None:
    _check_types(media, "png jpeg webp heic heif", "Unsupported MIME type: {}")
    if sum(len(part.data or "") for part in media) > 20_000_000:
        _refuse("Request payload size exceeds the limit: 20971520 bytes.")


def _ollama(media: list[ImagePart | AudioPart | FilePart]) -> None:
    _check_types(media, "png jpeg webp", "Failed to load image or audio file")


def _check_types(media: list[ImagePart | AudioPart | FilePart], types: str, text: str) -> None:
    for part in media:
        found = sniff(_content(part)) if isinstance(part, ImagePart) else None
        if found is not None and found.removeprefix("image/") not in types.split():
            _refuse(text.format(found))


def _content(image: ImagePart) -> bytes:
    try:
        return base64.b64decode(image.data or "")
    except ValueError:
        return b""


def _refuse(text: str) -> None:
    raise Rejected(Fault("bad_request", text))


_SOUND: Mapping[str, str] = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_CHECKS: Mapping[str, Callable[[list[ImagePart | AudioPart | FilePart]], None]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "openai-responses": _openai,
    "azure": _openai,
    "azure-responses": _openai,
    "gemini": _gemini,
    "vertex": _gemini,
    "ollama": _ollama,
}
