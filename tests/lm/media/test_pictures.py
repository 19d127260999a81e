"""The model gets what a person sees of a file: every mode that Pillow reads, compared by content."""

from __future__ import annotations

import base64
import io
import math
import struct
from array import array

import pytest
from PIL import Image, ImageChops, ImageCms, ImageStat

import sigwire
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart
from sigwire.lm.media import pictures
from sigwire.lm.media.fitting import fit_media

SIZE = (64, 8)
SEEN = Image.frombytes("L", SIZE, bytes(column * 255 // 63 for column in range(64)) * 8)
"""A gradient from black to white."""


def saved(image: Image.Image, form: str = "TIFF", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def sent(content: bytes) -> tuple[Image.Image, tuple[str, ...]]:
    """The image that the model gets, and what was done."""
    encoded = pictures.convert(content, None, None)
    image = Image.open(io.BytesIO(encoded.content))
    image.load()
    return image, encoded.done


def difference(one: Image.Image, other: Image.Image) -> float:
    """The mean distance of levels, 0 to 255, over all pixels and bands."""
    mode = "RGBA" if "RGBA" in (one.mode, other.mode) else "RGB"
    return max(ImageStat.Stat(ImageChops.difference(one.convert(mode), other.convert(mode))).mean)


def levels(low: float, high: float, mode: str) -> Image.Image:
    """The gradient as levels from ``low`` to ``high``."""
    values = [low + value * (high - low) / 255 for value in SEEN.tobytes()]
    if mode == "F":
        return Image.frombytes("F", SIZE, array("f", values).tobytes())
    whole = [round(value) for value in values]
    if mode == "I":
        return Image.frombytes("I", SIZE, array("i", whole).tobytes())
    return Image.frombytes(mode, SIZE, struct.pack(f"{'>' if mode == 'I;16B' else '<'}{len(whole)}H", *whole))


DEEP = {
    "16-bit PNG": (lambda: saved(levels(0, 65535, "I;16"), "PNG"), "0 to 65535"),
    "16-bit TIFF": (lambda: saved(levels(0, 65535, "I;16")), "0 to 65535"),
    "16-bit TIFF, high byte first": (lambda: saved(levels(0, 65535, "I;16B")), "0 to 65535"),
    "16-bit TIFF, white first": (lambda: saved(levels(65535, 0, "I;16"), tiffinfo={262: 0}), "0 to 65535"),
    "32-bit TIFF": (lambda: saved(levels(-70_000, 900_000, "I")), "-70000 to 900000"),
    "floats from 0 to 1": (lambda: saved(levels(0, 1, "F")), "0 to 1"),
    "floats of any range": (lambda: saved(levels(-3, 5000, "F")), "-3 to 5000"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_levels_of_more_than_8_bits_are_rescaled(name: str) -> None:
    make, range_text = DEEP[name]
    image, done = sent(make())
    assert difference(image, SEEN) < 2
    assert done == (f"its levels from {range_text} became 0 to 255",)


def test_levels_keep_their_meaning_where_only_a_part_of_the_range_is_used() -> None:
    """A dark image stays dark: 16 bits and floats within 0 to 1 have a black and a white of their own."""
    dark = SEEN.point(lambda value: value / 4)
    for content in (saved(levels(0, 65535 / 4, "I;16"), "PNG"), saved(levels(0, 0.25, "F"))):
        assert difference(sent(content)[0], dark) < 2


@pytest.mark.parametrize(("mode", "value", "level"), [("I", 7, 255), ("I", 0, 0), ("F", 0.5, 128), ("F", 9.0, 255)])
def test_one_level_alone_is_no_division_by_zero(mode: str, value: float, level: int) -> None:
    image, _ = sent(saved(Image.new(mode, SIZE, value)))
    assert image.convert("L").getextrema() == (level, level)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_level_that_is_no_number_does_not_hide_the_others(odd: float) -> None:
    given = levels(10, 20, "F")
    given.putpixel((0, 0), odd)
    assert difference(sent(saved(given))[0], SEEN) < 3


def test_transparent_level_of_16_bits_stays_transparent() -> None:
    image, _ = sent(saved(levels(0, 65535, "I;16"), "PNG", transparency=65535))
    alpha = image.getchannel("A")
    assert alpha.tobytes() == bytes(0 if value == 255 else 255 for value in SEEN.tobytes())
    assert difference(image.convert("RGB"), SEEN) < 2


COLORS = Image.merge("RGB", (SEEN, SEEN.transpose(Image.Transpose.ROTATE_180), Image.new("L", SIZE, 90)))
CLEAR = COLORS.copy()
CLEAR.putalpha(SEEN)


def _palette_with_alpha() -> Image.Image:
    image = SEEN.convert("P")
    image.putalpha(SEEN)
    assert image.mode == "PA"
    return image


def _lab() -> Image.Image:
    to_lab = ImageCms.createProfile("LAB")
    made = ImageCms.profileToProfile(COLORS, ImageCms.createProfile("sRGB"), to_lab, outputMode="LAB")
    assert made is not None
    return made


MODES = {
    "1": (lambda: saved(SEEN.convert("1")), SEEN.convert("1")),
    "L": (lambda: saved(SEEN), SEEN),
    "LA": (lambda: saved(Image.merge("LA", (SEEN, SEEN))), Image.merge("LA", (SEEN, SEEN))),
    "PA": (lambda: saved(_palette_with_alpha()), Image.merge("LA", (SEEN, SEEN))),
    "P": (lambda: saved(SEEN.convert("P"), "GIF"), SEEN),
    "RGBA": (lambda: saved(CLEAR), CLEAR),
    "CMYK": (lambda: saved(COLORS.convert("CMYK")), COLORS.convert("CMYK").convert("RGB")),
    "CMYK in JPEG": (lambda: saved(COLORS.convert("CMYK"), "JPEG", quality=95), COLORS),
    "YCbCr": (lambda: saved(COLORS.convert("YCbCr")), COLORS),
    "LAB": (lambda: saved(_lab()), COLORS),
}  # fmt: skip


@pytest.mark.parametrize("name", MODES)
def test_every_mode_shows_the_same(name: str) -> None:
    make, seen = MODES[name]
    image, _ = sent(make())
    assert difference(image, seen) < 6
    assert (image.mode == "RGBA") == (seen.mode in ("LA", "RGBA"))


def test_transparent_color_of_a_palette_stays_transparent() -> None:
    given = SEEN.convert("1").convert("P")
    black = given.getpixel((0, 0))
    image, _ = sent(saved(given, "PNG", transparency=black))
    wanted = bytes(0 if value == 0 else 255 for value in SEEN.convert("1").convert("L").tobytes())
    assert image.getchannel("A").tobytes() == wanted


def test_hsv_shows_the_same() -> None:
    """No file of Pillow has this mode; an extension of Pillow can give it."""
    image, done = pictures._to_srgb(COLORS.convert("HSV"))
    assert difference(image, COLORS) < 3
    assert not done


def _swapped_profile() -> bytes:
    """A profile of sRGB whose red is blue, and whose blue is red."""
    content = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    content = bytearray(bytes(content).replace(b"rXYZ", b"?XYZ").replace(b"bXYZ", b"rXYZ").replace(b"?XYZ", b"bXYZ"))
    return bytes(content).replace("sRGB".encode("utf-16-be"), "Swap".encode("utf-16-be"))


def test_colors_of_a_profile_are_those_that_a_person_sees() -> None:
    red, green, blue = COLORS.split()
    image, done = sent(saved(Image.merge("RGB", (blue, green, red)), icc_profile=_swapped_profile()))
    assert difference(image, COLORS) < 6
    assert done == ("its colours became sRGB",)


def test_damaged_profile_is_not_used_and_that_of_srgb_changes_nothing() -> None:
    plain = pictures.convert(saved(COLORS), None, None)
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for profile in (b"damaged", srgb):
        assert pictures.convert(saved(COLORS, icc_profile=profile), None, None) == plain


def test_first_frame_of_an_animation_is_sent_with_a_warning() -> None:
    content = saved(SEEN, "GIF", save_all=True, append_images=[Image.new("L", SIZE, 9), Image.new("L", SIZE, 200)])
    image, done = sent(content)
    assert difference(image, SEEN) < 4
    assert done == ("the first of 3 frames is sent",)


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
@pytest.mark.parametrize("mode", ["L", "I;16"])
def test_image_is_turned_by_its_exif_data(mode: str, form: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn clockwise by a quarter
    given = SEEN if mode == "L" else levels(0, 65535, mode)
    options = {"tiffinfo": {274: 6}} if form == "TIFF" else {"exif": exif}
    image, _ = sent(saved(given, form, **options))
    assert difference(image, SEEN.transpose(Image.Transpose.ROTATE_270)) < 4


def test_warning_names_what_was_done_also_for_an_image_that_was_converted_before() -> None:
    part = ImagePart(data=base64.b64encode(saved(levels(0, 1, "F"))).decode(), media_type="image/tiff")
    for _ in range(2):
        warnings: list[sigwire.LMWarning] = []
        fit_media([Message.user("Describe.", part)], "anthropic", warnings)
        assert [warning.detail for warning in warnings] == [
            "An image was converted: its type is image/tiff, not one of image/gif, image/jpeg, image/png, image/webp; "
            "its levels from 0 to 1 became 0 to 255."
        ]
