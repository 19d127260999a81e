"""The pytest plugin of the command: it selects the library, refuses the network and writes the outcome of each test."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from door_as_dspy import DoorFinder
from left_out import left_out

_ON_DOOR = os.environ["SUITE_LIBRARY"] == "door"
_THEIR_RESET = "clear_settings"  # resets DSPy through dspy.dsp.utils, an internal module; ``reset_door`` does it here
if _ON_DOOR:
    sys.meta_path.insert(0, DoorFinder())

_outcomes: dict[str, str] = {}
_left_out: dict[str, str] = {}
_errors: dict[str, str] = {}
_connect = socket.socket.connect


class NetworkRefused(BaseException):
    """A test opened a connection to another machine: no ``except Exception`` of a library hides it."""


def _guarded(self: socket.socket, address: Any) -> None:
    host = address[0] if isinstance(address, tuple) else "localhost"
    if host == "localhost" or _is_loopback(str(host)):
        return _connect(self, address)
    raise NetworkRefused(f"connection to {address}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
    if host in (None, "", b"") or host == "localhost" or _is_loopback(str(host)):
        return _getaddrinfo(host, *args, **kwargs)
    raise NetworkRefused(f"address of {host}")


_getaddrinfo = socket.getaddrinfo


def pytest_configure() -> None:
    socket.socket.connect = _guarded  # type: ignore[assignment,method-assign]
    socket.getaddrinfo = _lookup


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    rules: dict[Path, dict[str, str]] = {}
    kept: list[pytest.Item] = []
    for item in items:
        rule = rules.setdefault(item.path, left_out(item.path))
        fixtures = [rule[name] for name in getattr(item, "fixturenames", ()) if name in rule]
        names = item.nodeid.partition("::")[2].partition("[")[0]
        server = "litellm" if any("litellm" in name for name in getattr(item, "fixturenames", ())) else ""
        reason = rule.get(names) or server or "".join(fixtures[:1])
        if reason:
            _left_out[item.nodeid] = reason
        else:
            if _ON_DOOR and _THEIR_RESET in getattr(item, "fixturenames", ()):
                item.fixturenames.remove(_THEIR_RESET)  # type: ignore[attr-defined]
            kept.append(item)
    items[:] = kept


@pytest.fixture(autouse=True)
def reset_door() -> Iterator[None]:
    """Reset the settings of the door after each test."""
    if not _ON_DOOR:
        yield
        return
    import dspy

    before = dspy.settings.copy()
    yield
    dspy.configure(**before)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _errors[report.nodeid] = str(report.longrepr).strip().splitlines()[-1]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        network = "NetworkRefused" in str(report.longrepr)
        _outcomes[report.nodeid] = "network" if network else "failed"
        crash = getattr(report.longrepr, "reprcrash", None)
        _errors[report.nodeid] = str(crash.message if crash else report.longrepr)[:400]
    elif report.skipped:
        _outcomes.setdefault(report.nodeid, "skipped")
    elif report.when == "call":
        _outcomes.setdefault(report.nodeid, "passed")


def pytest_sessionfinish() -> None:
    result = {"outcomes": _outcomes, "left_out": _left_out, "errors": _errors}
    Path(os.environ["SUITE_RESULT"]).write_text(json.dumps(result), encoding="utf-8")
