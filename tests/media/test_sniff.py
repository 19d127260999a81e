"""Types by first bytes, and pixels by headers: Pillow writes the files."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sigwire.media.sniff import pixels_of, sniff

FORMS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp", "BMP": "image/bmp"}


def written(form: str, size: tuple[int, int], mode: str = "RGB", **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, 128).save(buffer, form, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("form", FORMS)
@given(width=st.integers(1, 300), height=st.integers(1, 300))
def test_type_and_pixels_are_those_of_the_written_image(form: str, width: int, height: int) -> None:
    content = written(form, (width, height))
    assert sniff(content) == FORMS[form]
    assert pixels_of(content) == (width, height)


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x00"}),
        ("JPEG", {"progressive": True}),
        ("JPEG", {"exif": b"Exif\x00\x00" + bytes(60_000)}),
    ],
)
def test_pixels_are_read_from_other_headers_of_a_type(form: str, options: dict[str, object]) -> None:
    assert pixels_of(written(form, (70, 30), **options)) == (70, 30)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"II*\x00", "image/tiff"),
        (b"\x00\x00\x00\x18ftypheic", "image/heic"),
        (b"\x00\x00\x00\x18ftypavif", "image/avif"),
        (b"\x00\x00\x00\x18ftypM4A ", "audio/mp4"),
        (b"\x00\x00\x00\x18ftypisom", "video/mp4"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"ID3\x04", "audio/mpeg"),
        (b"%PDF-1.7", "application/pdf"),
        (b"<svg xmlns=", None),
        (b"", None),
    ],
)
def test_type_of_first_bytes(content: bytes, expected: str | None) -> None:
    assert sniff(content) == expected


@given(st.sampled_from(sorted(FORMS)), st.integers(0, 60))
def test_truncated_header_has_no_wrong_pixels(form: str, length: int) -> None:
    assert pixels_of(written(form, (70, 30))[:length]) in (None, (70, 30))


@given(
    st.binary(max_size=80), st.sampled_from([b"", b"\xff\xd8\xff", b"BM", b"RIFF0000WEBPVP8X", b"\x89PNG\r\n\x1a\n"])
)
def test_any_bytes_are_sniffed_without_an_error(content: bytes, magic: bytes) -> None:
    sniff(magic + content)
    size = pixels_of(magic + content)
    assert size is None or min(size) > 0
