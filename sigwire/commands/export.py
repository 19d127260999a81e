"""Write the records of an evaluation in another format: a log for Inspect, CSV, or the HTML report."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

__all__ = ["add", "run"]

HELP = "write records in another format"
SUFFIXES = {"inspect": ".inspect.json", "csv": ".csv", "html": ".html"}


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire export``."""
    parser.add_argument("path", metavar="RECORDS", help="a file of records")
    parser.add_argument("--to", required=True, choices=SUFFIXES, help="the format")
    parser.add_argument(
        "--out", metavar="FILE", help="the file to write (default: that of the records, with another suffix)"
    )


def run(options: Namespace) -> int:
    """Write the file, print its path, and return the exit status."""
    from sigwire.evaluate.evaluation import load_records

    result: Any = load_records(options.path)
    out = Path(options.out or Path(options.path).with_suffix(SUFFIXES[options.to]))
    written = getattr(result, f"to_{options.to}")(out)
    print(written or out)
    return 0
