"""Fixtures of every test: no network, a clean provider table, and the shared fixtures if they exist.

``fixtures`` is the directory of recorded traffic and dialect cases that conformance tests read in place: the environment
variable ``SIGWIRE_FIXTURES``, else ``../shared/fixtures`` beside the checkout. If the directory is absent, tests that use it
are skipped with a message.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from sigwire.lm.policy.cache import choice
from sigwire.lm.policy.failover.health import health_reset
from sigwire.lm.policy.limits import registry as limits
from sigwire.lm.policy.throttle import throttle_reset
from sigwire.lm.providers import registry as providers
from tests.parsing import guard_parsing
from tests.sampling import mark_rest

ROOT = Path(__file__).resolve().parent.parent

# Machines that run tests are shared and slow at times: a deadline would test the machine. ``make test`` takes the profile
# "short", the long suites of ``.ci/run`` the profile "long".
for _name, _examples in (("short", 6), ("long", 100)):
    settings.register_profile(
        _name, max_examples=_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))

# A failed test is named, whatever other threads do.
guard_parsing()

# Most tests ask twice for two answers. Tests of the cache of responses call ``configure_cache``.
os.environ["SIGWIRE_CACHE"] = "off"

# A shell's background jobs and their children ignore SIGINT; the tests that send SIGINT need the default handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection(session: pytest.Session) -> None:
    """Import a share of the test files first, in a worker: all workers would compile all files, in one order, at one time."""
    worker: Mapping[str, Any] = getattr(session.config, "workerinput", {})
    if not worker:
        return
    own, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    folders = [ROOT / each for each in session.config.args]  # of a file, none is below
    for path in sorted({path for each in folders for path in each.rglob("test_*.py")})[own::count]:
        with suppress(Exception, pytest.skip.Exception):  # the collection reports it
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)  # before cases are deselected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most cases of long tables to the long suite."""
    mark_rest(items, str(ROOT / "tests"))


def pytest_collectstart() -> None:
    """Pause garbage collection until the tests are collected: each pass would scan all of them, and find nothing."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection: each ``gc.collect()`` of a test would scan all tests."""
    gc.freeze()
    gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Report once for a test that passes, in a worker: six messages for each take a quarter of a processor."""
    if not hasattr(item.config, "workerinput") or item.config.getoption("durations") is not None:
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Let the terminal end its line, in the process that collects the reports of workers."""
    node = getattr(report, "node", None)
    if node is not None and node.config.getoption("durations") is None:
        node.config.hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """After the last test of a file, collect its garbage and exempt what it has imported: tests call ``gc.collect()`` often."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Look for examples only in files that have some: a search goes through every object of a module."""
    found = yield
    if ">>> " in file_path.read_text(encoding="utf-8", errors="replace"):
        return found
    return [each for each in found if not isinstance(each, pytest.Collector) or "Doctest" not in type(each).__name__]


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The shared fixtures' directory; skips the test if the directory is absent."""
    path = Path(os.environ.get("SIGWIRE_FIXTURES") or ROOT.parent / "shared" / "fixtures")
    if not path.is_dir():
        pytest.skip(f"no shared fixtures: SIGWIRE_FIXTURES is unset and {path.name}/ is not beside the checkout")
    return path


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Restore the provider table, forget the failures and switch the cache of responses off after each test.

    Tests share names of models, and so limiters and budgets of retries. One fixture: each costs 0.1 ms in each test.
    """
    tables = [providers._rows, providers._prefixes]
    before = [dict(table) for table in tables]
    yield
    for table, rows in zip(tables, before, strict=True):
        if table != rows:
            table.clear()
            table.update(rows)
    throttle_reset()
    health_reset()
    limits._limiters.clear()
    if choice._off is False:
        from sigwire.lm.policy.cache.cache import configure_cache

        configure_cache(False, False)


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Fail a test that connects to another machine, with the address in the message."""
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to connect to {address}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", local_only)
        yield
