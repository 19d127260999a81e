"""Write the gallery: ``python -m sigwire.testing.gallery gallery.html``."""

from __future__ import annotations

import sys
from pathlib import Path

from sigwire.testing.gallery.page import SPECIMENS, gallery_page

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Write the page to the file that the first argument names; return the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m sigwire.testing.gallery FILE.html", file=sys.stderr)
        return 2
    path = Path(arguments[0])
    path.write_text(gallery_page(), encoding="utf-8")
    print(f"{len(SPECIMENS)} classes written to {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
