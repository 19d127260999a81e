"""The command line: ``sigwire fake-provider`` runs a fake provider until interrupted.

sigwire fake-provider                          answers with the embedded model
sigwire fake-provider --answer Hello --port 8080    answers every request with that text
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Sequence

from sigwire.core.request import Request
from sigwire.lm.base import LanguageModel
from sigwire.lm.client import LM
from sigwire.testing.fake_provider import PLACES, FakeProvider

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    answers: LanguageModel | Callable[[Request], str] = LM(options.lm)
    if options.answer is not None:
        answers = _constant_answer(options.answer)
    provider = FakeProvider(answers, key=options.key, host=options.host, port=options.port)
    try:
        with provider:
            for wire in PLACES:
                print(f"{wire:<17} {provider.url(wire)}", flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        print(f"{len(provider.requests)} requests")
    except OSError as error:
        print(f"Cannot listen on {options.host}:{options.port} ({error}). Use another --port, or 0 for a free one.")
        return 1
    return 0


def _constant_answer(text: str) -> Callable[[Request], str]:
    return lambda request: text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sigwire", description="Typed signatures for language models.")
    commands = parser.add_subparsers(dest="command", required=True)
    fake = commands.add_parser("fake-provider", help="a provider on the loopback interface for every wire")
    fake.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    fake.add_argument("--port", type=int, default=8808, help="port, 0 for a free one (default: %(default)s)")
    fake.add_argument("--lm", default="offline/lexical", help="the language model that answers (default: %(default)s)")
    fake.add_argument("--answer", help="answer every request with this text")
    fake.add_argument("--key", help="the only key that is taken (default: any)")
    return parser
