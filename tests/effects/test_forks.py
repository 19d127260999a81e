"""The order in which a fork calls functions and owners, and errors of one of them."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sigwire.effects import forks
from sigwire.effects.forks import on_fork, pause_when_forking, reset_when_forked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")


class Owner:
    """Appends what it is asked for. ``breaks``: the call that raises."""

    def __init__(self, name: str, seen: list[str], breaks: str = "") -> None:
        self._name, self._seen, self._breaks = name, seen, breaks

    def _see(self, what: str) -> None:
        self._seen.append(f"{what} {self._name}")
        if what == self._breaks:
            raise RuntimeError(what)

    def pause_for_fork(self, end: float) -> None:
        self._see("pause")

    def resume_after_fork(self) -> None:
        self._see("resume")

    def reset_after_fork(self) -> None:
        self._see("reset")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of the owners of a test, which are the only owners."""
    monkeypatch.setattr(forks, "_functions", [])
    monkeypatch.setattr(forks, "_owners", forks.LiveOwners[Any]())
    monkeypatch.setattr(forks, "_pausable", forks.LiveOwners[Any]())
    return []


def in_child(check: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if check() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_child_resets_functions_then_objects_then_paused_objects(seen: list[str]) -> None:
    paused, live = Owner("file", seen), Owner("pool", seen)
    pause_when_forking(paused)
    reset_when_forked(live)
    on_fork(lambda: seen.append("first function"))
    on_fork(lambda: seen.append("second function"))
    assert in_child(lambda: seen == ["pause file", "first function", "second function", "reset pool", "reset file"])
    assert seen == ["pause file", "resume file"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("breaks", ["pause", "reset"])
def test_owner_that_raises_stops_no_other_owner_and_no_fork(seen: list[str], breaks: str) -> None:
    owners = [Owner("one", seen, breaks), Owner("two", seen)]
    for owner in owners:
        pause_when_forking(owner)
    assert in_child(lambda: seen[-2:] == ["reset one", "reset two"])
    assert seen == ["pause one", "pause two", "resume two", "resume one"]


def test_collected_owner_is_not_asked(seen: list[str]) -> None:
    pause_when_forking(Owner("gone", seen))
    gc.collect()
    assert in_child(lambda: seen == [])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_owners_may_be_made_while_other_threads_fork(seen: list[str]) -> None:
    ended, made = threading.Event(), list[Owner]()

    def make() -> None:
        while not ended.is_set():
            made.append(Owner("new", []))
            reset_when_forked(made[-1])
            pause_when_forking(made[-1])
            del made[:-5]

    thread = threading.Thread(target=make)
    thread.start()
    try:
        assert all(in_child(lambda: True) for _ in range(10))
    finally:
        ended.set()
        thread.join()
