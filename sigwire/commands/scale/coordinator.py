"""Serve the limits of a run to the workers of all machines, until it is interrupted.

The first line is the URL for map_rows(coordinator=...). It has a token: treat it as a secret.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

__all__ = ["add", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire coordinator``."""
    parser.add_argument("--rate", type=float, metavar="N", help="requests a second")
    parser.add_argument("--calls", type=int, metavar="N", help="requests in all")
    parser.add_argument("--budget", type=float, metavar="DOLLARS", help="money in all")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port (default: a free one)")
    parser.add_argument("--address", metavar="NAME", help="the name of this machine for workers (default: --host)")


def run(options: Namespace) -> int:
    """Serve until interrupted, print what was used, and return the exit status."""
    import threading

    from sigwire.effects.waiting import wait_for
    from sigwire.jobs.coordinator import Coordinator

    given = {name: getattr(options, name) for name in ("rate", "calls", "budget", "host", "port", "address")}
    with Coordinator(**given) as coordinator:
        try:
            print(coordinator.url, flush=True)
            wait_for(threading.Event().wait)
        except KeyboardInterrupt:
            print(coordinator.spent)
    return 0
