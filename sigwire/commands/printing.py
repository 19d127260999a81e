"""Output of commands: tables for people, JSON for machines. Both on stdout."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["add_json", "print_json", "print_table"]


def add_json(parser: Any) -> None:
    """Add ``--json`` to a parser."""
    parser.add_argument("--json", action="store_true", help="print JSON on stdout instead of text")


def print_json(value: object) -> None:
    """Print a value as JSON. NaN and infinity are null."""
    print(json.dumps(_finite(value), ensure_ascii=False, indent=2, default=str))


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; the first row is the head."""
    from sigwire.show.cleaning import display_width, inline

    clean = [[inline(value, 100) for value in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*clean, strict=True)]
    for row in clean:
        print("  ".join(v + " " * (w - display_width(v)) for v, w in zip(row, widths, strict=True)).rstrip())


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
