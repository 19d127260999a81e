"""Print what the provider's prompt cache read of recorded calls, and where it was broken.

RECORDS is the file of a ``Cassette``. The exit status is 1 if a break was not planned (a change of the program, or no mark).
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

__all__ = ["add", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire cache``."""
    parser.add_argument("path", metavar="RECORDS", help="the file of a cassette")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> int:
    """Print the health, and return the exit status."""
    from sigwire.core.json import dumps
    from sigwire.lm.preview.cache_health import UNPLANNED, cache_health

    health = cache_health(options.path)
    if options.json:
        totals = {name: getattr(health, name) for name in ("hit_share", "missed_tokens", "missed_cost")}
        print(dumps({**health.to_json(), **totals}))
    else:
        health.show()
    return int(any(each.why in UNPLANNED for each in health.breaks))
