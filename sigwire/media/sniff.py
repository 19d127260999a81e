"""The type of a file by its first bytes, and the pixels of an image by its header. Nothing is decoded.

Types are those of the table at https://mimesniff.spec.whatwg.org/#matching-a-mime-type-pattern (2026-11), and TIFF, HEIC,
AVIF, FLAC, QuickTime by their specifications. Names of files and headers of HTTP are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

__all__ = ["pixels_of", "sniff"]

_MAGIC: Mapping[bytes, str] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"BM": "image/bmp",
    b"II*\x00": "image/tiff",
    b"MM\x00*": "image/tiff",
    b"%PDF-": "application/pdf",
    b"OggS\x00": "audio/ogg",
    b"fLaC": "audio/flac",
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"\xff\xf3": "audio/mpeg",
    b"\xff\xf2": "audio/mpeg",
    b"\x1aE\xdf\xa3": "video/webm",
}
_CHUNKS: Mapping[tuple[bytes, bytes], str] = {  # the first four bytes, and bytes 8 to 12
    (b"RIFF", b"WEBP"): "image/webp",
    (b"RIFF", b"WAVE"): "audio/wav",
    (b"FORM", b"AIFF"): "audio/aiff",
    (b"FORM", b"AIFC"): "audio/aiff",
}
_BRANDS: Mapping[bytes, str] = {  # of ISO base media files
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"hevx", b"mif1", b"msf1"), "image/heic"),
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"M4A ": "audio/mp4",
    b"qt  ": "video/quicktime",
}


def sniff(content: bytes) -> str | None:
    """Return the media type of a file by its first bytes; ``None`` if they are unknown, as those of text.

    >>> sniff(b"GIF89a..."), sniff(b"RIFF....WAVEfmt "), sniff(b"Hello")
    ('image/gif', 'audio/wav', None)
    """
    if content[4:8] == b"ftyp":
        return _BRANDS.get(content[8:12], "video/mp4")
    chunk = _CHUNKS.get((content[:4], content[8:12]))
    return chunk or next((kind for magic, kind in _MAGIC.items() if content.startswith(magic)), None)


def pixels_of(content: bytes) -> tuple[int, int] | None:
    """Return width and height by the header; ``None`` for another type, and for a header that is truncated.

    >>> pixels_of(b"GIF89a" + bytes([3, 0, 2, 0]))
    (3, 2)
    """
    measure = _MEASURES.get(sniff(content) or "")
    size = measure(content) if measure else None
    return size if size and min(size) > 0 else None


def _png(content: bytes) -> tuple[int, int] | None:
    return _pair(content, 16, 4, "big")


def _gif(content: bytes) -> tuple[int, int] | None:
    return _pair(content, 6, 2, "little")


def _bmp(content: bytes) -> tuple[int, int] | None:
    if content[14:18] == b"\x0c\x00\x00\x00":  # the header of OS/2
        return _pair(content, 18, 2, "little")
    width, height = (int.from_bytes(content[at : at + 4], "little", signed=True) for at in (18, 22))
    return (width, abs(height)) if len(content) >= 26 else None  # a negative height: rows from top to bottom


def _webp(content: bytes) -> tuple[int, int] | None:
    kind = content[12:16]
    if kind == b"VP8X":
        size = _pair(content, 24, 3, "little")
        return size and (size[0] + 1, size[1] + 1)
    if kind == b"VP8L":
        bits = int.from_bytes(content[21:25], "little")
        return ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1) if len(content) >= 25 else None
    size = _pair(content, 26, 2, "little")
    return size and (size[0] & 0x3FFF, size[1] & 0x3FFF)


def _jpeg(content: bytes) -> tuple[int, int] | None:
    """Walk the segments up to the start of the frame, which has the size."""
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = int.from_bytes(content[at + 5 : at + 7]), int.from_bytes(content[at + 7 : at + 9])
            return width, height
        else:
            at += 2 + int.from_bytes(content[at + 2 : at + 4])
    return None


def _pair(content: bytes, at: int, width: int, order: Literal["big", "little"]) -> tuple[int, int] | None:
    """Return two numbers of ``width`` bytes each."""
    end = at + width
    if len(content) < end + width:
        return None
    return int.from_bytes(content[at:end], order), int.from_bytes(content[end : end + width], order)


_MEASURES: Mapping[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/bmp": _bmp,
    "image/webp": _webp,
}
