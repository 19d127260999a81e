"""One image made to fit: decoded, turned, scaled and encoded by Pillow, the extra ``media``. Same bytes in, same bytes out.

    decode     the first frame, turned by its EXIF data, in 8 bits of sRGB: levels of all depths, colours by their profile
    scale      to the longest edge
    encode     ever smaller, until it fits

What a person sees of the file is what the model gets; what had to change is in ``Encoded.done``.
Pillow is imported by the first image that has to change.
"""

from __future__ import annotations

import io
import math
from array import array
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sigwire.media.errors import UnsupportedMedia
from sigwire.media.sniff import pixels_of, sniff

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

__all__ = ["MOST_PIXELS", "Encoded", "convert"]

MOST_PIXELS = 50_000_000
"""An image of more pixels is not decoded: a small file can hold an image that fills the memory. A JPEG is decoded at a half,
a quarter or an eighth of its edges, which takes the memory of the result."""
_LEAST_SCALE = 8
_QUALITY = 90
_SMALLER = (85, 75, 60)
_SCALE = 0.75


class Encoded(NamedTuple):
    """An encoded image. ``size`` is its width and height in pixels, ``done`` what was done to what it shows."""

    content: bytes
    media_type: str
    size: tuple[int, int]
    done: tuple[str, ...] = ()


def convert(content: bytes, edge: int | None, most_bytes: int | None) -> Encoded:
    """Return an image as PNG if it has transparent pixels, else as JPEG of quality 90, no longer than ``edge`` pixels.

    While it has more than ``most_bytes``: JPEG of quality 85, 75, 60, then edges of three quarters each. EXIF data
    turn it; all metadata are left out. An animation becomes its first frame. Levels of more than 8 bits become 0 to 255:
    of whole numbers of 16 bits the whole range, of floats 0 to 1 if all are in it, else from the lowest to the highest
    level of the image. Colours with a profile (ICC) become sRGB. Raises ``UnsupportedMedia`` if Pillow is
    missing or cannot decode the image, or if it has more than ``MOST_PIXELS``.
    """
    image, done = _decode(content)
    for encoded in _candidates(image, edge):
        if most_bytes is None or len(encoded.content) <= most_bytes:
            return encoded._replace(done=done)
    raise UnsupportedMedia(
        f"No form of the image has at most {most_bytes} bytes (encoding the request). Send a smaller one."
    )


def _decode(content: bytes) -> tuple[Picture, tuple[str, ...]]:
    """Return the first frame, turned, as RGB or RGBA without metadata, and what was done to what it shows."""
    _check_pixels(pixels_of(content), content)
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise UnsupportedMedia(
            "Pillow, which converts images, is not installed (encoding the request). "
            'Install it with pip install "sigwire[media]", or convert the image.'
        ) from None
    try:
        with Image.open(io.BytesIO(content)) as image:
            given = image.size
            if given[0] * given[1] > MOST_PIXELS:
                scale = _scale_of(given)
                image.draft("RGB", (given[0] // scale, given[1] // scale))
            _check_pixels(image.size)  # by the header: the image is decoded below
            frames = int(getattr(image, "n_frames", 1))
            done = [f"the first of {frames} frames is sent"] if frames > 1 else []
            done += [f"it was decoded at {image.size[0]} x {image.size[1]} pixels"] if image.size != given else []
            turned = ImageOps.exif_transpose(image)
            alpha = _alpha(turned)
            if turned.mode in ("I", "F") or turned.mode.startswith("I;16"):
                turned, text = _to_8_bits(turned, getattr(image, "tag_v2", None) or {}, image.format)
                done.append(text)
            clean, text = _to_srgb(turned)
            done += [text] if text else []
            if alpha is not None:
                clean.putalpha(alpha)
            clean.info = {}
            return clean, tuple(done)
    except UnsupportedMedia:
        raise
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnsupportedMedia(
            f"Pillow cannot decode the image: {type(error).__name__} (encoding the request). Convert it to PNG or JPEG."
        ) from error


# --- what the pixels show


def _alpha(image: Picture) -> Picture | None:
    """Return how opaque the pixels are, in mode L; ``None`` if no pixel can be transparent."""
    if not image.has_transparency_data:
        return None
    if image.mode != "I" and not image.mode.startswith("I;16"):
        return (image.convert("LA") if image.mode == "La" else image).convert("RGBA").getchannel("A")
    # One level is transparent. Pixels of other levels are above or below it; conversion to L cuts off at 0 and 255.
    from PIL import ImageChops

    level, levels = image.info["transparency"], image.convert("F")
    above = levels.point(lambda value: value * 255 - level * 255)
    below = levels.point(lambda value: value * -255 + level * 255)
    return ImageChops.lighter(above.convert("L"), below.convert("L"))


def _to_8_bits(image: Picture, tags: Mapping[int, Any], form: str | None) -> tuple[Picture, str]:
    """Return a grey image of more than 8 bits in mode L, and the range of its levels. ``tags``: those of a TIFF."""
    levels = image.convert("F")
    lowest, highest = _range_of(image.mode, levels, tags, form)
    text = f"its levels from {lowest:g} to {highest:g} became 0 to 255"
    if tags.get(_PHOTOMETRIC, 1) == 0:  # white is the lowest level; Pillow inverts images of 8 bits only
        lowest, highest = highest, lowest
    scale = 255 / (highest - lowest)
    offset = 0.5 - lowest * scale  # conversion to L cuts off fractions
    return levels.point(lambda value: value * scale + offset).convert("L"), text


_BITS, _PHOTOMETRIC = 258, 262  # tags of TIFF 6.0


def _range_of(mode: str, levels: Picture, tags: Mapping[int, Any], form: str | None) -> tuple[float, float]:
    """Return the levels of black and white."""
    if mode.startswith("I;16") or (mode == "I" and form == "PNG"):
        return 0.0, float(2 ** (tags.get(_BITS) or (16,))[0] - 1)
    lowest, highest = cast("tuple[float, float]", levels.getextrema())
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        finite = [value for value in array("f", levels.tobytes()) if math.isfinite(value)]
        lowest, highest = min(finite, default=0.0), max(finite, default=1.0)
    if lowest == highest or (mode == "F" and lowest >= 0 and highest <= 1):
        lowest, highest = min(lowest, 0.0), max(highest, 1.0)
    return lowest, highest


def _to_srgb(image: Picture) -> tuple[Picture, str]:
    """Return the image in mode RGB, and what became of its colours. A damaged profile is not used."""
    profile = image.info.get("icc_profile")
    if image.mode != "LAB" and not profile:
        return image.convert("RGB"), ""
    from PIL import ImageCms

    colors: Any = ImageCms  # Pillow has no types of its profiles
    source = image if image.mode in ("L", "CMYK", "LAB") else image.convert("RGB")
    try:
        space = colors.ImageCmsProfile(io.BytesIO(profile)) if profile else colors.createProfile("LAB")
        if profile and "sRGB" in colors.getProfileDescription(space):
            return image.convert("RGB"), ""
        made = colors.profileToProfile(source, space, colors.createProfile("sRGB"), outputMode="RGB")
    except (OSError, ImageCms.PyCMSError):
        return image.convert("RGB"), ""
    return made, "its colours became sRGB"


def _scale_of(size: tuple[int, int]) -> int:
    """Return the least of the scales of JPEG at which an image has few enough pixels."""
    pixels = size[0] * size[1]
    return next((scale for scale in (2, 4) if pixels / scale**2 <= MOST_PIXELS), _LEAST_SCALE)


def _check_pixels(size: tuple[int, int] | None, content: bytes = b"") -> None:
    scale = _LEAST_SCALE if sniff(content) == "image/jpeg" else 1
    if size is not None and size[0] * size[1] > MOST_PIXELS * scale**2:
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
