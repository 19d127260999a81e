"""Make the pictures of README and docs from real objects: ``python docs/pictures.py [FOLDER]``, by default ``docs/pictures``.

The objects of ``examples/shown_objects.py`` are made with the embedded model, shown by headless Chromium on a light page and
written as PNG with a palette. The files differ a little between runs, because they show durations.
"""

from __future__ import annotations

import re
import runpy
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import sigwire

__all__ = ["PICTURES", "browser", "chromium", "main", "with_palette"]

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ("run.png", "evaluation.png", "report.png", "calibration.png", "offline-calibration.png")
PAGE = """<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light">
<body style="margin:12px;background:#fff;color:#1f2328">{html}"""
CARD_WIDTH = 700


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else ROOT / "docs" / "pictures"
    if browser() is None:
        print("No Chromium was found on the path (making the pictures). Install it, and run again.", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures():
        (folder / name).write_bytes(picture)
        print(f"{name}: {len(picture):,} bytes")
    return 0


def browser() -> str | None:
    """Return the path of a Chromium; None if there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def pictures() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each picture."""
    sys.path.insert(0, str(ROOT / "examples"))
    make = runpy.run_path(str(ROOT / "examples" / "shown_objects.py"))
    with tempfile.TemporaryDirectory() as name, sigwire.context(lm=sigwire.LM("offline/lexical")):
        folder = Path(name)
        result = make["evaluation"]()
        pages = {"run.png": make["agent_run"](folder)._repr_html_(), "evaluation.png": result._repr_html_()}
        for picture, html in pages.items():
            page = folder / f"{picture}.html"
            page.write_text(PAGE.format(html=html), encoding="utf-8")
            yield picture, photographed(page, CARD_WIDTH)
        result.to_html(folder / "report.html")
        yield "report.png", photographed(folder / "report.html", 1080, height=860, scale=1.2)
        for picture, results in (("calibration.png", make["triage"]()), ("offline-calibration.png", make["offline"]())):
            page = folder / f"{picture}.html"
            page.write_text(reliability_page(results, folder / "run.html"), encoding="utf-8")
            yield picture, photographed(page, CARD_WIDTH if len(results) > 1 else 500)


def reliability_page(results: Iterable[sigwire.EvaluationResult], page: Path) -> str:
    """Return a page with the reliability plots of the reports of some evaluations. ``page``: where a report is written."""
    figures, style = list[str](), ""
    for result in results:
        result.to_html(page)
        text = page.read_text(encoding="utf-8")
        style = text[text.index("<style>") : text.index("</style>") + len("</style>")]
        figures += re.findall(r"<figure><figcaption>calibration .*?</figure>", text, re.DOTALL)
    return PAGE.format(html=f'{style}<div class="plots">{"".join(figures)}</div>')


# --- the browser -------------------------------------------------------------------------------------


def photographed(page: Path, width: int, *, height: int | None = None, scale: float = 1.5) -> bytes:
    """Return the picture of a page, by default in its full height."""
    if height is None:
        measure = "<script>document.title = document.documentElement.scrollHeight</script>"
        probe = page.with_suffix(".probe.html")
        probe.write_text(page.read_text(encoding="utf-8") + measure, encoding="utf-8")
        dom = chromium(probe.as_uri(), page.parent / "profile", "--dump-dom", f"--window-size={width},100")
        height = int(dom.partition("<title>")[2].partition("</title>")[0])
    picture = page.with_suffix(".png")
    size = [f"--window-size={width},{height}", f"--force-device-scale-factor={scale}"]
    chromium(page.as_uri(), page.parent / "profile", f"--screenshot={picture}", *size)
    return with_palette(picture.read_bytes())


def chromium(url: str, profile: Path, *options: str) -> str:
    """Open a page in a browser that reaches this machine only, and return what it prints."""
    command = [
        browser() or "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={profile}",
    ]  # fmt: skip
    done = subprocess.run([*command, *options, url], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


# --- PNG with a palette: a third of the bytes (PNG specification, 3rd edition) -------------------------


def with_palette(png: bytes) -> bytes:
    """Return a screenshot (8 bits, red, green and blue) with a palette of at most 256 colours."""
    chunks = dict(chunks_of(png))
    width, height, depth, kind = struct.unpack(">IIBB", chunks["IHDR"][:10])
    if (depth, kind) not in {(8, 2), (8, 6)}:
        return png
    size = 3 if kind == 2 else 4
    pixels = [
        row[place : place + 3] for row in rows_of(chunks["IDAT"], width, size) for place in range(0, len(row), size)
    ]
    numbers = palette_of(Counter(pixels))
    table = bytearray(3 * (max(numbers.values()) + 1))
    for colour, number in reversed(list(numbers.items())):
        table[3 * number : 3 * number + 3] = colour
    places = bytes(numbers[pixel] for pixel in pixels)
    lines = b"".join(b"\0" + places[start : start + width] for start in range(0, len(places), width))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = {"IHDR": header, "PLTE": bytes(table), "IDAT": zlib.compress(lines, 9), "IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, data) for name, data in parts.items())


def palette_of(counts: Counter[bytes]) -> Mapping[bytes, int]:
    """Return the number of each colour: the 256 most frequent ones, other colours with the nearest of them."""
    common = [colour for colour, _ in counts.most_common(256)]
    numbers = {colour: number for number, colour in enumerate(common)}
    for colour in counts:
        if colour not in numbers:
            numbers[colour] = min(range(len(common)), key=lambda place: distance(common[place], colour))
    return numbers


def distance(first: bytes, second: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True))


def chunks_of(png: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the data of each chunk; the data of pixels together."""
    pixels, place = b"", 8
    while place < len(png):
        length, name = struct.unpack(">I4s", png[place : place + 8])
        data = png[place + 8 : place + 8 + length]
        if name == b"IDAT":
            pixels += data
        else:
            yield name.decode(), data
        place += length + 12
    yield "IDAT", pixels


def chunk(name: str, data: bytes) -> bytes:
    body = name.encode() + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def rows_of(data: bytes, width: int, size: int) -> Iterator[bytes]:
    """Yield the rows of pixels without their filters (section 9 of the specification)."""
    raw, above = zlib.decompress(data), bytes(width * size)
    for start in range(0, len(raw), width * size + 1):
        row = unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + width * size]), above, size)
        yield row
        above = row


def unfiltered(kind: int, row: bytearray, above: bytes, size: int) -> bytes:
    for place in range(len(row) if kind else 0):
        left = row[place - size] if place >= size else 0
        corner = above[place - size] if place >= size else 0
        row[place] = (row[place] + predicted(kind, left, above[place], corner)) & 255
    return bytes(row)


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    """Return the value that a filter subtracted: sub, up, average or Paeth."""
    if kind == 4:
        base = left + up - corner
        return min((left, up, corner), key=lambda value: abs(base - value))
    return (0, left, up, (left + up) // 2)[kind]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
