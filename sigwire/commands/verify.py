"""Ask a model what it really does, and compare it with the provider table: 40 requests at most.

The plan is printed first, with its requests and their price; nothing is sent before it is confirmed at the terminal, or with
--yes. Exit status 1: the model is worse or better than the table; 3: a probe was not sent, or no answer decided it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from sigwire.commands.confirmation import is_answered
from sigwire.commands.output import Status, UsageError, print_error

if TYPE_CHECKING:
    from sigwire.probes.report import Verification

__all__ = ["add", "run"]

HELP = "compare what a model does with what the provider table promises"


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire verify``."""
    parser.add_argument("model", metavar="MODEL", help="the model, such as openai/gpt-5-mini")
    parser.add_argument("--base-url", metavar="URL", help="the address of its API (default: that of the table)")
    parser.add_argument("--wire", metavar="NAME", help="another wire of its row, such as decisions")
    parser.add_argument("--probes", metavar="NAMES", help="only these, such as tools,named,schema")
    parser.add_argument("--requests", type=int, default=40, metavar="N", help="requests at most (default: %(default)s)")
    parser.add_argument(
        "--money", type=float, default=0.25, metavar="DOLLARS", help="dollars at most (default: %(default)s)"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before the first request")
    parser.add_argument("--json", metavar="FILE", help="write the report to this file")
    parser.add_argument("--cassette", metavar="FILE", help="record requests and answers in this file, without keys")


def run(options: Namespace) -> int:
    """Print the plan, verify, print the report; return the exit status."""
    from sigwire.lm.client import LM
    from sigwire.lm.policy.money.budget import Budget
    from sigwire.probes.report import VerificationInterrupted
    from sigwire.probes.verify import TOKENS, plan_verification, verify

    for path in filter(None, (options.json, options.cassette)):
        if not Path(path).absolute().parent.is_dir():
            raise UsageError(f"{path} cannot be written (reading the arguments). Name a file in a folder that exists.")
    lm = LM(options.model, base_url=options.base_url, wire=options.wire)
    names = None if options.probes is None else [name.strip() for name in options.probes.split(",") if name.strip()]
    plan = plan_verification(lm, probes=names, requests=options.requests)
    print(f"{plan}; the budget is ${options.money:g}.", flush=True)
    refusal = "There is no terminal for a question, and nothing was sent (asking before it). Add --yes."
    if not options.yes and not is_answered("Send them?", refusal):
        print_error(options.verb, "nothing was sent.")
        return Status.ABORTED
    budget = Budget(money=options.money, tokens=TOKENS if plan.ceiling is None else None)
    try:
        found = verify(lm, probes=names, requests=options.requests, budget=budget, cassette=options.cassette)
    except VerificationInterrupted as interrupted:
        _print(options, interrupted.verification)
        raise
    _print(options, found)
    if found.stopped:
        return Status.ABORTED
    return Status.BELOW if found.disagreements else Status.DONE if found.agrees else Status.ABORTED


def _print(options: Namespace, found: Verification) -> None:
    import json

    from sigwire.files.whole import write_whole

    found.show()
    if options.json:
        write_whole(Path(options.json), f"{json.dumps(found.to_json(), indent=2)}\n")
    files = [path for path in (options.json, options.cassette) if path]
    advice = f"send {' and '.join(files)}" if files else "run it with --json FILE --cassette FILE, and send both"
    print(f"To renew the row of the table: {advice} (docs/verify.md).")
