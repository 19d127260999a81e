"""Write the records of an evaluation in another format: a log for Inspect, CSV, or the HTML report."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from sigwire.commands.output import keep_input

__all__ = ["add", "run"]

FORMATS = ("inspect", "csv", "html")


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire export``."""
    parser.add_argument("path", metavar="RECORDS", help="a file of records")
    parser.add_argument("--to", required=True, choices=FORMATS, help="the format")
    parser.add_argument("--out", metavar="FILE", help="the file to write (default: beside the records)")


def run(options: Namespace) -> int:
    """Write the file, print its path, and return the exit status."""
    from pathlib import Path

    from sigwire.evaluate.evaluation import load_records

    result: Any = load_records(options.path)
    records = Path(options.path)
    # A log of Inspect gets a name of its own in a folder: the viewer lists logs by their names.
    place = records.parent if options.to == "inspect" else records.with_suffix(f".{options.to}")
    out = options.out or place
    keep_input(out, [options.path])
    print(getattr(result, f"to_{options.to}")(out) or out)
    return 0
