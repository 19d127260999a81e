"""Image, Audio, File: media as references or base64 data.

Only ``from_path`` opens a file, and only ``from_url(..., fetch=True)`` opens a URL: other URLs are sent to the provider. A
string is never guessed to be a path; the error for a plain path has the name of the method that reads files.
"""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from sigwire.core.json import JsonObject, Value
from sigwire.core.narrow import is_mapping
from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.errors import InputError, suggest
from sigwire.media.data_uris import checked_base64, data_uri, kind_of, shorten, split_data_uri
from sigwire.media.sniff import sniff
from sigwire.signatures.types.base import FieldType

if TYPE_CHECKING:
    from sigwire.media.policy import FetchedFile, FetchPolicy

__all__ = ["Audio", "File", "Image"]

_REMOTE = re.compile(r"(?:https?|gs|s3)://", re.IGNORECASE)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Image(Value, FieldType):
    """An image: an ``http(s)`` URL, a data URI, bytes, or a PIL image. ``url`` holds a URL or a data URI.

    ``media_type`` is required for bytes of an unknown format. ``detail`` is a hint for some providers ("low"). Raises
    ``InputError`` for other sources. Local paths are read by ``Image.from_path``.

    >>> Image("https://example.com/cat.png").part()
    ImagePart(url='https://example.com/cat.png', data=None, media_type=None, detail=None, file_id=None)
    >>> Image(b"GIF89a").media_type
    'image/gif'
    """

    url: str
    detail: str | None = None

    def __init__(
        self,
        source: object = None,
        /,
        *,
        url: str | None = None,
        data: str | bytes | None = None,
        media_type: str | None = None,
        detail: str | None = None,
    ) -> None:
        given = _one_of("Image", source, url, data)
        text = data_uri(data, media_type or "image/png") if isinstance(data, str) else _image_url(given, media_type)
        object.__setattr__(self, "url", text)
        object.__setattr__(self, "detail", detail)

    @classmethod
    def from_path(cls, path: str | os.PathLike[str], *, detail: str | None = None) -> Self:
        """Read an image file."""
        content, media_type = _read_file(path)
        return cls(data=content, media_type=sniff(content) or media_type, detail=detail)

    @classmethod
    def from_url(cls, url: str, *, detail: str | None = None, fetch: FetchPolicy | bool = False) -> Self:
        """Return an image by its URL, which the provider fetches; with ``fetch``, its bytes, which ``sigwire.fetch`` returns.

        ``fetch`` may be a ``FetchPolicy``. It blocks the thread; async code awaits ``sigwire.fetch``. Raises ``FetchError``.
        """
        return cls(_fetched(url, fetch).content, detail=detail) if fetch else cls(url=url, detail=detail)

    @property
    def media_type(self) -> str | None:
        """The media type, if the image has data."""
        return split_data_uri(self.url)[0] if self.url.startswith("data:") else None

    @property
    def data(self) -> str | None:
        """The base64 data, if the image has data."""
        return split_data_uri(self.url)[1] if self.url.startswith("data:") else None

    def part(self) -> ImagePart:
        """Return the image as a part of a message."""
        if not self.url.startswith("data:"):
            return ImagePart(url=self.url, detail=self.detail)
        media_type, data = split_data_uri(self.url)
        return ImagePart(data=data, media_type=media_type, detail=self.detail)

    @classmethod
    def read(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        return cls(**_keywords("Image", value)) if is_mapping(value) else cls(value)

    @classmethod
    def json_schema(cls) -> JsonObject:
        return _object_schema("An image: an http(s) URL or a data URI.", ["url"], detail="string")

    def __repr__(self) -> str:
        return f"Image(url={shorten(self.url)!r})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Audio(Value, FieldType):
    """Sound: base64 text, bytes or a data URI, and the short name of its format.

    Without ``audio_format`` the first bytes decide, as for an ``Image``. Raises ``InputError`` if they are unknown.

    >>> Audio(data=b"RIFF", audio_format="wav").part()
    AudioPart(data='UklGRg==', format='wav')
    >>> Audio(b"ID3...").audio_format
    'mp3'
    """

    data: str
    audio_format: str = ""  # never empty, so it is in the JSON of every sound

    def __init__(self, source: object = None, /, *, data: object = None, audio_format: str | None = None) -> None:
        given = _one_of("Audio", source, data)
        text, found = _audio_data(given)
        object.__setattr__(self, "data", text)
        object.__setattr__(self, "audio_format", audio_format or found or _known_sound(text))

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> Self:
        """Read a sound file. The format is the suffix of the name."""
        content, _ = _read_file(path)
        return cls(data=content, audio_format=os.path.splitext(path)[1].lstrip(".").lower() or None)

    @classmethod
    def from_url(cls, url: str, *, fetch: FetchPolicy | bool = False) -> Self:
        """Return sound from a data URI, or with ``fetch`` from a URL. Providers accept no URL of a sound."""
        if url.startswith("data:"):
            return cls(data=url)
        if fetch:
            content, media_type, _ = _fetched(url, fetch)
            return cls(data_uri(content, media_type))
        raise InputError(f"Audio is sent as data, and {shorten(url)} is not fetched. Download it, or pass fetch=True.")

    @classmethod
    def from_array(cls, samples: Iterable[float], sampling_rate: int) -> Self:
        """Return one channel of samples between -1 and 1 as a 16-bit WAV.

        >>> Audio.from_array([0.0, 0.5], 8000).audio_format
        'wav'
        """
        frames = [round(max(-1.0, min(1.0, float(sample))) * 32767) for sample in samples]
        import struct
        import wave

        buffer = io.BytesIO()
        with wave.open(buffer, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(sampling_rate)
            file.writeframes(struct.pack(f"<{len(frames)}h", *frames))
        return cls(data=buffer.getvalue(), audio_format="wav")

    def part(self) -> AudioPart:
        """Return the sound as a part of a message."""
        return AudioPart(self.data, self.audio_format)

    @classmethod
    def read(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        return cls(**_keywords("Audio", value)) if is_mapping(value) else cls(value)

    @classmethod
    def json_schema(cls) -> JsonObject:
        return _object_schema("Sound as base64 data.", ["data"], audio_format="string")

    def __repr__(self) -> str:
        return f"Audio(data={shorten(self.data)!r}, audio_format={self.audio_format!r})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class File(Value, FieldType):
    """A document: bytes, a data URI or an ``http(s)`` URL; or the id of a file at the provider.

    ``file_data`` is a data URI, base64 text with ``media_type``, or bytes. At least one of data, id, url and name is
    required. Raises ``InputError`` for other sources. Local paths are read by ``File.from_path``.

    >>> File(file_id="file-1", filename="a.pdf").part().file_id
    'file-1'
    >>> File(b"%PDF-1.7").part().media_type, File("https://example.com/a.pdf").url
    ('application/pdf', 'https://example.com/a.pdf')
    """

    _renamed: ClassVar[Mapping[str, str]] = {
        "data": "file_data",
        "id": "file_id",
        "name": "filename",
        "path": "File.from_path",
    }

    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None
    url: str | None = None

    def __init__(
        self,
        source: object = None,
        /,
        *,
        file_data: str | bytes | None = None,
        file_id: str | None = None,
        filename: str | None = None,
        url: str | None = None,
        media_type: str | None = None,
    ) -> None:
        if source is not None:
            _one_of("File", source, file_data, url, file_id)
            file_data, file_id, filename, url = _file_source(source, filename)
        if file_data is None and file_id is None and filename is None and url is None:
            raise InputError(
                "A File needs file_data, file_id, url or filename (creating a File). Write File(bytes), "
                "File(url=...) or File.from_path(path)."
            )
        if url is not None and not _REMOTE.match(url):
            raise InputError(
                f"{shorten(url)!r} is not a URL (creating a File). A local file is read by File.from_path(...)."
            )
        if isinstance(file_data, bytes):
            media_type = media_type or _guess(filename) or sniff(file_data)
        if isinstance(file_data, bytes) or (file_data is not None and not file_data.startswith("data:")):
            file_data = data_uri(file_data, media_type or _guess(filename) or "application/octet-stream")
        for name, value in (("file_data", file_data), ("file_id", file_id), ("filename", filename), ("url", url)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_path(cls, path: str | os.PathLike[str], *, filename: str | None = None) -> Self:
        """Read a file. The file name is sent with the data."""
        content, media_type = _read_file(path)
        return cls(file_data=content, filename=filename or os.path.basename(path), media_type=media_type)

    @classmethod
    def from_bytes(cls, content: bytes, *, filename: str | None = None, media_type: str | None = None) -> Self:
        """Return a file made of bytes."""
        return cls(file_data=content, filename=filename, media_type=media_type)

    @classmethod
    def from_file_id(cls, file_id: str, *, filename: str | None = None) -> Self:
        """Return a file that was uploaded to the provider before."""
        return cls(file_id=file_id, filename=filename)

    @classmethod
    def from_url(cls, url: str, *, filename: str | None = None, fetch: FetchPolicy | bool = False) -> Self:
        """Return a file by its URL, which the provider fetches; with ``fetch``, its data, which ``sigwire.fetch`` returns."""
        if not fetch:
            return cls(url=url, filename=filename)
        content, media_type, _ = _fetched(url, fetch)
        return cls(file_data=content, filename=filename, media_type=media_type)

    def part(self) -> FilePart:
        """Return the file as a part of a message."""
        media_type, data = split_data_uri(self.file_data) if self.file_data else (_guess(self.filename), None)
        return FilePart(data, self.url, self.file_id, self.filename, media_type)

    @classmethod
    def read(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if is_mapping(value):
            return cls(**_keywords("File", value))
        data, file_id, filename, url = _file_source(value, None)
        return cls(file_data=data, file_id=file_id, filename=filename, url=url)

    @classmethod
    def json_schema(cls) -> JsonObject:
        return _object_schema("A document.", [], file_data="string", file_id="string", filename="string", url="string")

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={shorten(str(value))!r}" for name, value in self.to_json().items())
        return f"File({facts})"


def _one_of(kind: str, *sources: object) -> object:
    given = [source for source in sources if source is not None]
    if len(given) != 1:
        raise InputError(
            f"{kind} is made of exactly one source, got {len(given)} (creating one). Write {kind}(source), or read a local "
            f"file with {kind}.from_path(path)."
        )
    return given[0]


def _not_made_of(kind: str, sources: str, given: object) -> InputError:
    """Return the error for a source of another type."""
    hint = f"A local file is read by {kind}.from_path(...)."
    return InputError(f"{kind} is made of {sources}, not {kind_of(given)} (creating one). {hint}")


_FileFields: TypeAlias = "tuple[str | bytes | None, str | None, str | None, str | None]"


def _file_source(source: object, filename: str | None) -> _FileFields:
    """Return data, id, name and URL of a file."""
    if isinstance(source, File):
        return source.file_data, source.file_id, filename or source.filename, source.url
    if isinstance(source, (bytes, bytearray)):
        return bytes(source), None, filename, None
    if isinstance(source, str):
        return (source, None, filename, None) if source.startswith("data:") else (None, None, filename, source)
    raise _not_made_of("File", "bytes, a data URI or a URL", source)


_KEYWORDS: Mapping[str, frozenset[str]] = {
    "Image": frozenset({"url", "data", "media_type", "detail"}),
    "Audio": frozenset({"data", "audio_format"}),
    "File": frozenset({"file_data", "file_id", "filename", "url", "media_type"}),
}


def _keywords(kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := sorted(map(str, value.keys() - _KEYWORDS[kind])):
        hint = suggest(unknown[0], _KEYWORDS[kind])
        raise InputError(
            f"{kind} has no {unknown[0]!r} (reading one). {hint}It is made of {', '.join(sorted(_KEYWORDS[kind]))}."
        )
    return dict(value)


def _image_url(source: object, media_type: str | None) -> str:
    if isinstance(source, Image):
        return source.url
    if isinstance(source, str):
        return _checked_url(source)
    if isinstance(source, (bytes, bytearray)):
        return data_uri(bytes(source), media_type or _known_image(bytes(source)))
    if callable(getattr(source, "save", None)) and hasattr(source, "mode"):
        return _pil_uri(source)
    raise _not_made_of("Image", "a URL, a data URI, bytes or a PIL image", source)


def _checked_url(text: str) -> str:
    if text.startswith("data:"):
        split_data_uri(text)
        return text
    if _REMOTE.match(text):
        return text
    raise InputError(
        f"Unrecognized image {shorten(text)!r}, not a URL and not a data URI (reading an Image). A local file is "
        "read by Image.from_path(...); base64 text is given as Image(data=..., media_type=...)."
    )


def _pil_uri(image: Any) -> str:
    buffer = io.BytesIO()
    file_format = image.format if image.format in ("JPEG", "PNG", "GIF", "WEBP") else "PNG"
    image.save(buffer, format=file_format)
    return data_uri(buffer.getvalue(), f"image/{file_format.lower()}")


def _fetched(url: str, policy: FetchPolicy | bool) -> FetchedFile:
    from sigwire.effects.loops import block_on
    from sigwire.media.fetching import fetch

    return block_on(fetch(url, None if isinstance(policy, bool) else policy))


def _known_image(content: bytes) -> str:
    if (media_type := sniff(content)) and media_type.startswith("image/"):
        return media_type
    raise InputError("Unknown image format of bytes (creating an Image). Pass it: Image(data, media_type='image/...').")


def _known_sound(data: str) -> str:
    """Return the short name of the format of base64 data. Raises ``InputError`` if its first bytes are unknown."""
    media_type = sniff(base64.b64decode(data[:_HEAD]))
    if media_type in _SOUNDS:
        return _SOUNDS[media_type]
    raise InputError("Unknown audio format of bytes (creating an Audio). Pass it: Audio(data, audio_format='wav').")


_HEAD = 64  # characters of base64, a multiple of four
_SOUNDS: Mapping[str | None, str] = {
    "audio/aiff": "aiff", "audio/flac": "flac", "audio/mp4": "m4a", "audio/mpeg": "mp3", "audio/ogg": "ogg", "audio/wav": "wav",
    "video/mp4": "mp4", "video/webm": "webm",
}  # fmt: skip


def _audio_data(source: object) -> tuple[str, str | None]:
    if isinstance(source, Audio):
        return source.data, source.audio_format
    if isinstance(source, (bytes, bytearray)):
        return base64.b64encode(bytes(source)).decode("ascii"), None
    if not isinstance(source, str):
        raise _not_made_of("Audio", "bytes, base64 text or a data URI", source)
    if source.startswith("data:"):
        media_type, data = split_data_uri(source)
        return data, media_type.partition("/")[2].removeprefix("x-") or None
    return checked_base64(source), None


def _read_file(path: str | os.PathLike[str]) -> tuple[bytes, str]:
    with open(path, "rb") as file:
        return file.read(), _guess(os.fspath(path)) or "application/octet-stream"


def _guess(filename: str | None) -> str | None:
    import mimetypes

    return mimetypes.guess_type(filename)[0] if filename else None


def _object_schema(description: str, required: list[str], **optional: str) -> JsonObject:
    properties: JsonObject = {name: {"type": "string"} for name in (*required, *optional)}
    return {"type": "object", "description": description, "properties": properties, "required": [*required]}
