"""Pictures of the user: shown only if the bytes are a small image of a known format."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode

from sigwire.show.cleaning import cut, inline
from sigwire.show.lines import PictureLine

__all__ = ["MOST_BYTES", "data_uri", "picture_text", "size_text"]

MOST_BYTES = 200_000
_BY_MAGIC = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF87a": "gif", b"GIF89a": "gif"}


def data_uri(picture: PictureLine) -> str | None:
    """Return a URI of the image; ``None`` if it is large, or if its first bytes are of no known format.

    The media type comes from the bytes, and the text is encoded again: nothing that was declared reaches the page.

    >>> data_uri(PictureLine("image/svg+xml", "R0lGODlh")), data_uri(PictureLine("image/png", "PHN2Zz4="))
    ('data:image/gif;base64,R0lGODlh', None)
    """
    if str.__len__(picture.data) > MOST_BYTES * 4 // 3 + 4:
        return None
    try:
        content = b64decode(cut(picture.data, MOST_BYTES * 2), validate=True)
    except (binascii.Error, ValueError):
        return None
    kind = next((kind for magic, kind in _BY_MAGIC.items() if content.startswith(magic)), None)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "webp"
    return f"data:image/{kind};base64,{b64encode(content).decode()}" if kind else None


def picture_text(picture: PictureLine) -> str:
    """Return the type and size of an image.

    >>> picture_text(PictureLine("image/png", "A" * 1_600_000))
    'image/png · 1.2 MB'
    """
    return f"{inline(picture.media_type, 60)} · {size_text(len(picture.data) * 3 // 4)}"


def size_text(size: int) -> str:
    """Return a number of bytes for people.

    >>> size_text(512), size_text(20_480), size_text(1_200_000)
    ('512 bytes', '20 KB', '1.2 MB')
    """
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1_000:.0f} KB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
