"""The check before anything is sent over a network: a block that replays a recording refuses it.

Each way to a network calls ``check_network``: exchanges with models of every backend, the transport, MCP servers over HTTP,
fetched media, and models of a user's class.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

__all__ = ["NetworkUse", "check_network", "refusing_network"]

NetworkUse: TypeAlias = Literal["model", "tool", "file"]
"""The user of the network: a question to a model, a server of tools, or the file behind a URL."""


@contextmanager
def refusing_network(refusal: Callable[[NetworkUse, str], Exception | None]) -> Generator[None]:
    """Refuse the network in the block's context. ``refusal`` returns the error for a use and its target; ``None`` allows it.

    >>> with refusing_network(lambda use, target: LookupError(target)):
    ...     check_network("model", "openai/gpt-5-mini")
    Traceback (most recent call last):
    LookupError: openai/gpt-5-mini
    """
    token = _refusal.set(refusal)
    try:
        yield
    finally:
        _refusal.reset(token)


def check_network(use: NetworkUse, target: str) -> None:
    """Raise the error of the innermost block that refuses this use of the network. ``target``: without secrets."""
    if (refusal := _refusal.get()) is not None and (error := refusal(use, target)) is not None:
        raise error


_refusal: ContextVar[Callable[[NetworkUse, str], Exception | None] | None] = ContextVar(
    "sigwire_refused_network", default=None
)
