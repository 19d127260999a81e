"""Run an experiment again from its folder, with the recorded answers, and compare outputs, scores and winners.

The exit status is 1 if anything differs, and 2 if the experiment cannot be run again. With --live the models are asked
again, into another folder, and arms are compared.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from sigwire.commands.experiment import confirmed_plan, declared
from sigwire.commands.output import Status, UsageError, add_json, print_json
from sigwire.commands.programs import RUNS_CODE

if TYPE_CHECKING:
    from sigwire.experiments.experiment import Experiment

__all__ = ["add", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire reproduce``."""
    parser.add_argument("folder", metavar="DIR", help="the folder of the experiment")
    parser.add_argument(
        "experiment",
        nargs="?",
        help=f"module:name of the Experiment (default: the one that sigwire experiment ran). {RUNS_CODE}",
    )
    parser.add_argument("--live", action="store_true", help="ask the models again, which may cost money")
    parser.add_argument("--out", metavar="DIR", help="the folder of the new run, with --live")
    parser.add_argument("--yes", action="store_true", help="do not ask before a live run above 1 dollar")
    add_json(parser)


def run(options: Namespace) -> int:
    """Run the experiment again, print what differs, and return the exit status."""
    from sigwire.experiments.reproducing import reproduce

    if options.live != bool(options.out):
        raise UsageError(
            "A live run is written into a folder of its own (reading the arguments). Write --live --out DIR, or neither."
        )
    experiment = _experiment(options)
    if options.live and confirmed_plan(options, experiment) is None:
        return Status.ABORTED
    found = reproduce(options.folder, experiment, live=options.live, out=options.out)
    if not found.same and not found.differs:
        raise UsageError(f"{options.folder} has no finished point (reproducing it). Run the experiment first.")
    if options.json:
        names = ("ok", "same", "differs", "changed", "smallest")
        print_json({name: getattr(found, name) for name in names})
    else:
        print(found)
    return Status.DONE if found.ok else Status.BELOW


def _experiment(options: Namespace) -> Experiment:
    from sigwire.experiments.folder import load_experiment, read_record

    record = read_record(Path(options.folder))
    if record is None:
        load_experiment(options.folder)  # raises
    source = options.experiment or (record or {}).get("source")
    if not isinstance(source, str):
        raise UsageError(
            f"{options.folder} was not run by sigwire experiment, and names no declaration (reproducing it). Add it behind the "
            "folder, such as app:experiment."
        )
    return declared(source)
