"""One image made to fit: decoded, turned, scaled and encoded by Pillow, the extra ``media``. Same bytes in, same bytes out.

Pillow is imported by the first image that has to change.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from sigwire.media.errors import UnsupportedMedia
from sigwire.media.sniff import pixels_of

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

__all__ = ["MOST_PIXELS", "Encoded", "convert"]

MOST_PIXELS = 50_000_000
"""An image of more pixels is not decoded: a small file can hold an image that fills the memory."""
_QUALITY = 90
_SMALLER = (85, 75, 60)
_SCALE = 0.75


class Encoded(NamedTuple):
    """An encoded image. ``size`` is its width and height in pixels."""

    content: bytes
    media_type: str
    size: tuple[int, int]


def convert(content: bytes, edge: int | None, most_bytes: int | None) -> Encoded:
    """Return an image as PNG if it has transparent pixels, else as JPEG of quality 90, no longer than ``edge`` pixels.

    While it has more than ``most_bytes``: JPEG of quality 85, 75, 60, then edges of three quarters each. EXIF data
    turn it; all metadata are left out. An animation becomes its first frame. Raises ``UnsupportedMedia`` if Pillow is
    missing or cannot decode the image, or if it has more than ``MOST_PIXELS``.
    """
    for encoded in _candidates(_decode(content), edge):
        if most_bytes is None or len(encoded.content) <= most_bytes:
            return encoded
    raise UnsupportedMedia(
        f"No form of the image has at most {most_bytes} bytes (encoding the request). Send a smaller one."
    )


def _decode(content: bytes) -> Picture:
    """Return the first frame, turned, without metadata."""
    _check_pixels(pixels_of(content))
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise UnsupportedMedia(
            "Pillow, which converts images, is not installed (encoding the request). "
            'Install it with pip install "sigwire[media]", or convert the image.'
        ) from None
    try:
        with Image.open(io.BytesIO(content)) as image:
            _check_pixels(image.size)  # by the header: the image is decoded below
            turned = ImageOps.exif_transpose(image)
            mode = "RGBA" if turned.has_transparency_data else "RGB"
            clean = turned.convert(mode)
            clean.info = {}
            return clean
    except UnsupportedMedia:
        raise
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnsupportedMedia(
            f"Pillow cannot decode the image: {type(error).__name__} (encoding the request). Convert it to PNG or JPEG."
        ) from error


def _check_pixels(size: tuple[int, int] | None) -> None:
    if size is not None and size[0] * size[1] > MOST_PIXELS:
        raise UnsupportedMedia(
            f"An image of {size[0]} x {size[1]} pixels is not decoded; the limit is {MOST_PIXELS} pixels (encoding the "
            "request). Send a smaller one."
        )


def _candidates(image: Picture, edge: int | None) -> Iterator[Encoded]:
    """Yield ever smaller forms, the best first."""
    image = _scaled(image, min(1.0, (edge or max(image.size)) / max(image.size)))
    yield _png(image) if image.mode == "RGBA" else _jpeg(image, _QUALITY)
    image = _opaque(image)
    for quality in _SMALLER:
        yield _jpeg(image, quality)
    while max(image.size) > 1:
        image = _scaled(image, _SCALE)
        yield _jpeg(image, _SMALLER[-1])


def _scaled(image: Picture, factor: float) -> Picture:
    from PIL import Image

    if factor == 1.0:
        return image
    width, height = (max(1, int(length * factor)) for length in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)


def _opaque(image: Picture) -> Picture:
    """Return the image on white, without transparent pixels."""
    from PIL import Image

    if image.mode != "RGBA":
        return image
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")


def _png(image: Picture) -> Encoded:
    return _encode(image, "PNG")


def _jpeg(image: Picture, quality: int) -> Encoded:
    return _encode(image, "JPEG", quality)


def _encode(image: Picture, form: str, quality: int = _QUALITY) -> Encoded:
    buffer = io.BytesIO()
    image.save(buffer, form, quality=quality)
    return Encoded(buffer.getvalue(), f"image/{form.lower()}", image.size)
