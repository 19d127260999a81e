"""Fixtures of the tests of models: hosts on this machine that close with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lm.loopback import Host


@pytest.fixture
def serve() -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def start(*replies: Any) -> Host:
        hosts.append(Host(*replies))
        return hosts[-1]

    yield start
    for host in hosts:
        host.close()
