"""Poll the provider's batches of a store, keep the results of those that ended, and list all.

The program that asked need not run: the next run of it reads the results from the store.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sigwire.commands.output import UsageError, add_json, print_json, print_table

__all__ = ["add", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire batch``."""
    parser.add_argument("model", metavar="MODEL", help="the model of the store, such as openai/gpt-5-mini")
    parser.add_argument("store", metavar="STORE", help="the file of a BatchLM, such as out.jsonl.batch")
    parser.add_argument("--wait", action="store_true", help="poll until no batch runs")
    parser.add_argument(
        "--every", type=float, default=60, metavar="SECONDS", help="between polls (default: %(default)s)"
    )
    parser.add_argument("--cancel", action="store_true", help="cancel the batches that run")
    parser.add_argument(
        "--again",
        action="store_true",
        help="ask again for results that the provider did not have, and forget lost lines: a program pays for them again",
    )
    add_json(parser)


def run(options: Namespace) -> int:
    """Print the batches; return the exit status."""
    from datetime import UTC, datetime
    from pathlib import Path

    from sigwire.effects.waiting import sleep
    from sigwire.lm.batch.model import BatchLM

    if not Path(options.store).is_file():
        raise UsageError(f"There is no file {options.store!r} (opening the store). Pass the store of a BatchLM.")
    lm = BatchLM(options.model, options.store)
    found = lm.batches(cancel=options.cancel, again=options.again)
    while options.wait and any(batch.state == "running" for batch in found):
        sleep(options.every)
        found = lm.batches()
    if options.json:
        print_json([batch._asdict() for batch in found])
        return 0
    created = (datetime.fromtimestamp(batch.created, UTC).strftime("%Y-%m-%d %H:%M") for batch in found)
    rows = [
        [batch.state, str(batch.lines), when, batch.name or "-"] for batch, when in zip(found, created, strict=True)
    ]
    print_table([["state", "lines", "created (UTC)", "name"], *rows])
    return 0
