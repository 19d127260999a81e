"""Run a fake provider on the loopback interface, for every wire, until it is interrupted."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

__all__ = ["add", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire fake-provider``."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8808, help="port, 0 for a free one (default: %(default)s)")
    parser.add_argument(
        "--lm", default="offline/lexical", help="the language model that answers (default: %(default)s)"
    )
    parser.add_argument("--answer", help="answer every request with this text")
    parser.add_argument("--key", help="the only key that is taken (default: any)")


def run(options: Namespace) -> int:
    """Serve until interrupted; return the exit status."""
    import threading

    from sigwire.effects.waiting import wait_for
    from sigwire.lm.client import LM
    from sigwire.testing.fake_provider import FakeProvider
    from sigwire.testing.places import PLACES

    answers: Any = LM(options.lm)
    if options.answer is not None:
        answers = _constant(options.answer)
    provider = FakeProvider(answers, key=options.key, host=options.host, port=options.port)
    try:
        with provider:
            for wire in PLACES:
                print(f"{wire:<17} {provider.url(wire)}", flush=True)
            wait_for(threading.Event().wait)
    except KeyboardInterrupt:
        print(f"{len(provider.requests)} requests")
    except OSError as error:
        print(f"Cannot listen on {options.host}:{options.port} ({error}). Use another --port, or 0 for a free one.")
        return 1
    return 0


def _constant(text: str) -> Callable[[object], str]:
    return lambda request: text
