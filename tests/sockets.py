"""A fixture: the sockets that a test opens."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

_listeners: list[Callable[[str], object]] = []


def _pass_on(event: str, args: object) -> None:
    if _listeners and event.startswith(("socket.", "urllib.")):
        _listeners[0](event)


sys.addaudithook(_pass_on)


@pytest.fixture
def sockets() -> Iterator[list[str]]:
    """The socket events of the test."""
    seen: list[str] = []
    _listeners.append(seen.append)
    yield seen
    _listeners.clear()
