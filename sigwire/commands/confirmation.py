"""The question before what may cost money: asked at a terminal, answered by --yes, refused without both."""

from __future__ import annotations

import sys
from argparse import Namespace

from sigwire.commands.output import UsageError

__all__ = ["FREE", "is_answered", "is_confirmed"]

FREE = 1.0
"""Dollars that a command may cost without a question."""


def is_confirmed(options: Namespace, most: float, what: str, *, takes_budget: bool = True) -> bool:
    """Return True if a command may start that costs at most ``most`` dollars. ``what``: it, such as "search".

    ``takes_budget``: whether a --budget would limit it; one of money refuses models without a price.
    """
    from sigwire.show.numbers import money_text

    if options.yes or most <= FREE:
        return True
    limit = f", or a --budget of {FREE:.0f} or less" if takes_budget else ""
    cost = f"The {what} may cost more than {money_text(FREE)}, and there is no terminal for a question."
    return is_answered("Start?", f"{cost} Add --yes{limit}.")


def is_answered(question: str, refusal: str) -> bool:
    """Return True if a question is answered with y. Raises ``UsageError`` with ``refusal`` without a terminal."""
    if not sys.stdin.isatty():
        raise UsageError(refusal)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
