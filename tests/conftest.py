"""What every test gets: no network, a clean settings slate, and the shared fixtures where they exist.

``fixtures`` is the directory of recorded traffic and dialect cases that conformance tests read in place: the environment
variable ``SIGWIRE_FIXTURES``, else ``../shared/fixtures`` beside the checkout. Tests that ask for it are skipped with a
message where it is absent.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from sigwire.lm.providers import registry as providers

ROOT = Path(__file__).resolve().parent.parent

# Machines that run tests are shared and slow at times: a deadline would test the machine.
settings.register_profile("sigwire", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sigwire")

# A shell's background jobs, and what they start, are deaf to Ctrl-C; the tests that send one are not run to find that out.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The shared fixtures' directory; the test is skipped where there is none."""
    path = Path(os.environ.get("SIGWIRE_FIXTURES") or ROOT.parent / "shared" / "fixtures")
    if not path.is_dir():
        pytest.skip(f"no shared fixtures: SIGWIRE_FIXTURES is unset and {path.name}/ is not beside the checkout")
    return path


@pytest.fixture(autouse=True)
def no_providers_left_behind() -> Iterator[None]:
    """A provider that a test registers is gone with the test."""
    tables = [providers._rows, providers._prefixes]
    before = [dict(table) for table in tables]
    yield
    for table, rows in zip(tables, before, strict=True):
        table.clear()
        table.update(rows)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that reaches for another machine fails at once, with the address it wanted."""
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to connect to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local_only)
