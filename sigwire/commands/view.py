"""Write the HTML report of an evaluation, of a comparison of several, of a search, or of an experiment.

The report is one file that needs no server and no network.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from sigwire.commands.arguments import in_arguments
from sigwire.commands.experiment import experiment_folder
from sigwire.commands.output import UsageError, keep_input
from sigwire.errors import ConfigurationError

__all__ = ["add", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire view``."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="RECORDS",
        help="records of evaluations (the first is the baseline), a journal, or the folder of an experiment",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the report (default: that of the last records, with .html; in the folder of an experiment)",
    )
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
    folder = experiment_folder(options.paths[-1])
    out = Path(options.out or (folder / "experiment.html" if folder else Path(options.paths[-1]).with_suffix(".html")))
    keep_input(out, options.paths if folder is None else [str(folder / "experiment.json")])
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
    folders = [folder for path in options.paths if (folder := experiment_folder(path)) is not None]
    if folders and others:
        raise UsageError(
            f"{folders[0]} is a folder, which is shown alone (reading the arguments). Name only it, or files."
        )
    if folders:
        from sigwire.experiments.folder import load_experiment

        return load_experiment(folders[0])
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
