"""The pictures of README and docs are small, and ``docs/pictures.py`` makes them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from docs import pictures

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 60_000


def test_every_picture_of_the_docs_is_made_by_the_script_and_small() -> None:
    files = sorted((ROOT / "docs" / "pictures").iterdir())
    assert [file.name for file in files] == sorted(pictures.PICTURES)
    assert [file.name for file in files if file.stat().st_size > MOST_BYTES] == []


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("size", [3, 4])
def test_palette_keeps_the_pixels_of_each_filter(kind: int, size: int) -> None:
    rows = [[(10, 20, 30), (200, 100, 0)], [(10, 20, 30), (255, 255, 255)], [(1, 2, 3), (4, 5, 6)]]
    flat = [bytes(value for pixel in row for value in (*pixel, *([255] * (size - 3)))) for row in rows]
    lines, above = b"", bytes(len(flat[0]))
    for row in flat:
        left = bytes(size) + row[:-size]
        corner = bytes(size) + above[:-size]
        guesses = [pictures.predicted(kind, *around) for around in zip(left, above, corner, strict=True)]
        lines += bytes([kind, *((value - guess) & 255 for value, guess in zip(row, guesses, strict=True))])
        above = row
    header = struct.pack(">IIBBBBB", 2, 3, 8, 2 if size == 3 else 6, 0, 0, 0)
    parts = [("IHDR", header), ("IDAT", zlib.compress(lines)), ("IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n" + b"".join(pictures.chunk(*part) for part in parts)
    chunks = dict(pictures.chunks_of(pictures.with_palette(png)))
    raw, table = zlib.decompress(chunks["IDAT"]), chunks["PLTE"]
    numbers = [raw[start + 1 : start + 3] for start in range(0, len(raw), 3)]
    assert [[tuple(table[3 * n : 3 * n + 3]) for n in row] for row in numbers] == rows


@pytest.mark.long
def test_script_makes_every_picture(tmp_path: Path) -> None:
    if pictures.browser() is None:
        pytest.skip("no Chromium: install Debian's package chromium to make the pictures")
    assert pictures.main([str(tmp_path)]) == 0
    made = {file.name: file.stat().st_size for file in tmp_path.iterdir()}
    assert sorted(made) == sorted(pictures.PICTURES)
    assert {name: size for name, size in made.items() if not 5_000 < size < MOST_BYTES} == {}
