"""Write the HTML report of an evaluation, of a comparison of several, or of a search.

The report is one file that needs no server and no network.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from sigwire.commands.arguments import in_arguments
from sigwire.commands.output import UsageError, keep_input
from sigwire.errors import ConfigurationError

__all__ = ["add", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire view``."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="RECORDS",
        help="records of evaluations (the first is the baseline), or a journal",
    )
    parser.add_argument("--out", metavar="FILE", help="the report (default: that of the last records, with .html)")
    parser.add_argument("--common", action="store_true", help="compare the examples that all files share")
    parser.add_argument(
        "--markdown", action="store_true", help="print Markdown for a pull request, and write no report"
    )
    parser.add_argument("--open", action="store_true", help="open the report in a browser")


def run(options: Namespace) -> int:
    """Write the report, print its path, and return the exit status."""
    shown = _shown(options)
    if options.markdown:
        print(shown.to_markdown())
        return 0
    out = Path(options.out or Path(options.paths[-1]).with_suffix(".html"))
    keep_input(out, options.paths)
    shown.to_html(out)
    shown.show(file=sys.stderr)
    print(out)
    if options.open:
        import webbrowser

        webbrowser.open(out.resolve().as_uri())
    return 0


def _shown(options: Namespace) -> Any:
    """Return the result of the records, their comparison, or the report of a journal."""
    from sigwire.evaluate.comparison import compare
    from sigwire.evaluate.evaluation import load_records

    first, *others = options.paths
    if not others and _is_journal(first):
        from sigwire.optimizers.reports.report import OptimizationReport

        return OptimizationReport.load(first)
    if len(set(options.paths)) < len(options.paths):
        raise UsageError("The same file is given twice (reading the arguments). Name each file of records once.")
    results = [load_records(path) for path in options.paths]
    if not others:
        return results[0]
    try:
        return compare(dict(zip(_names(options.paths), results, strict=True)), common=options.common)
    except ConfigurationError as error:
        raise UsageError(in_arguments(str(error), options)) from error


def _is_journal(path: str) -> bool:
    with open(path, encoding="utf-8", errors="replace") as file:
        return '"optimization"' in file.readline(100)


def _names(paths: list[str]) -> list[str]:
    """Return a name for each file: its stem, or its path if two stems are equal."""
    stems = [Path(path).stem for path in paths]
    return stems if len(set(stems)) == len(stems) else paths
