"""Write the records of an evaluation, or an experiment, in another format.

Records: a log for Inspect, CSV, Markdown, or the HTML report. An experiment: its points as CSV, its table of arms as
Markdown or LaTeX, or its page.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from sigwire.commands.experiment import experiment_folder
from sigwire.commands.output import UsageError, keep_input

__all__ = ["add", "run"]

FORMATS = {"inspect": "", "csv": ".csv", "markdown": ".md", "latex": ".tex", "html": ".html"}
"""The formats, with the ends of their files. A log of Inspect gets a name of its own: its viewer lists logs by names."""


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire export``."""
    parser.add_argument("path", metavar="RECORDS", help="a file of records, or the folder of an experiment")
    parser.add_argument("--to", required=True, choices=[*FORMATS], help="the format")
    parser.add_argument("--out", metavar="FILE", help="the file to write (default: beside the records)")


def run(options: Namespace) -> int:
    """Write the file, print its path, and return the exit status."""
    from sigwire.evaluate.figures.exports import write_text

    folder = experiment_folder(options.path)
    records = Path(options.path) if folder is None else folder / "experiment.json"
    out = options.out or (records.with_suffix(FORMATS[options.to]) if FORMATS[options.to] else records.parent)
    write = getattr(_result(options.path, folder), f"to_{options.to}", None)
    if write is None:
        what, others = (
            ("An experiment", "csv, markdown, latex, html")
            if folder
            else ("A file of records", "inspect, csv, markdown, html")
        )
        raise UsageError(f"{what} cannot be written as {options.to} (reading --to). Use {others}.")
    keep_input(out, [str(records)])
    if options.to in ("markdown", "latex"):
        write_text(out, f"{write()}\n")
        print(out)
    else:
        print(write(out) or out)
    return 0


def _result(path: str, folder: Path | None) -> Any:
    if folder is not None:
        from sigwire.experiments.folder import load_experiment

        return load_experiment(folder)
    from sigwire.evaluate.evaluation import load_records

    return load_records(path)
