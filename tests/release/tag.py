"""Check the tag of a release: it is ``v`` and the version, and the changelog and CITATION.cff have the version.

    python tests/release/tag.py v0.2.0                     exit code 1 and a line if something does not fit
    python tests/release/tag.py v0.2.0 --notes notes.md    writes the notes of the release as well

Standard library only: it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["main", "notes_of", "problems"]

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Check a tag; return the exit code."""
    parser = argparse.ArgumentParser(description="Check the tag of a release.")
    parser.add_argument("tag")
    parser.add_argument("--notes", type=Path)
    options = parser.parse_args(arguments)
    found = list(problems(options.tag, root))
    for each in found:
        print(each, file=sys.stderr)
    if not found and options.notes:
        options.notes.write_text(notes_of(options.tag.removeprefix("v"), root) + "\n", encoding="utf-8")
    return 1 if found else 0


def problems(tag: str, root: Path = ROOT) -> Iterator[str]:
    """Yield a sentence for each file that does not fit the tag."""
    front_door = (root / "sigwire" / "__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', front_door, re.MULTILINE)
    version = match[1] if match else "unknown"
    if tag != f"v{version}":
        yield f"The tag is {tag} and sigwire.__version__ is {version}. Tag v{version}, or change the version first."
    if f"\nversion: {version}\n" not in (root / "CITATION.cff").read_text(encoding="utf-8"):
        yield f"CITATION.cff does not have version: {version}."
    notes = notes_of(version, root)
    if not notes:
        yield f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'."
    elif "(unreleased)" in notes.partition("\n")[0]:
        yield f"CHANGELOG.md calls {version} unreleased. Write the date."


def notes_of(version: str, root: Path = ROOT) -> str:
    """Return the section of a version in the changelog, "" if there is none."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    match = re.search(rf"^## {re.escape(version)} .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return match[0].strip() if match else ""


if __name__ == "__main__":
    raise SystemExit(main())
