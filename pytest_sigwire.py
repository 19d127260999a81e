"""The pytest plugin of sigwire: the fixture ``cassette`` and the option ``--cassette``.

A module of its own: pytest imports it at each start, and sigwire is imported only by the first test with the fixture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sigwire.cassettes.cassette import Cassette

__all__ = ["cassette", "cassette_options", "pytest_addoption"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--cassette``."""
    parser.getgroup("sigwire").addoption(
        "--cassette",
        choices=("replay", "record", "new"),
        default="replay",
        help="what the fixture cassette does: replay (ask no model), record (ask, and replace the files), "
        "new (ask only what the files lack)",
    )


@pytest.fixture
def cassette_options() -> dict[str, Any]:
    """Return the options of ``Cassette`` for the fixture ``cassette``, such as ``redact``; a test suite overrides it."""
    return {}


@pytest.fixture
def cassette(request: pytest.FixtureRequest, cassette_options: dict[str, Any]) -> Iterator[Cassette]:
    """A cassette around the test: ``cassettes/<module>/<test>.jsonl`` beside the test's file."""
    from sigwire.cassettes.cassette import Cassette

    test = re.sub(r"[^\w.-]+", "-", request.node.nodeid.partition("::")[2]).strip("-")
    path = request.path.parent / "cassettes" / request.path.stem / f"{test}.jsonl"
    mode: Any = request.config.getoption(
        "--cassette", default="replay"
    )  # a plugin of one test file comes too late for it
    opened = Cassette(path, mode, **cassette_options)
    failed = request.session.testsfailed
    opened.__enter__()
    yield opened
    # A failed test keeps the recording before it, and its unused lines are no finding.
    opened.__exit__(None if request.session.testsfailed == failed else AssertionError, None, None)
