"""Forks, and the state of a process: the only ``os.register_at_fork`` of the package.

Threads of the parent do not exist in a forked child, and hold their locks for ever. So the child resets module state
(``on_fork``), then live objects (``reset_when_forked``). An object that a child could not repair, such as an open database, is
paused before each fork (``pause_when_forking``); the parent resumes it, the child resets it last.

Each function and object is called, also if one before it raises. The system prints that error; the fork is made. An interrupt
(Ctrl-C) ends the pause, and is raised again when the fork is over: the system would print it as well, and go on.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Generic, Protocol, TypeVar
from weakref import ref

__all__ = ["Pausable", "Resettable", "on_fork", "pause_when_forking", "reset_when_forked"]

F = TypeVar("F", bound=Callable[[], object])


class Resettable(Protocol):
    """An object with locks, threads or sockets of its process."""

    def reset_after_fork(self) -> None:
        """Forget what belongs to the parent. Runs in the child."""


class Pausable(Resettable, Protocol):
    """An object that must be at rest while its process forks."""

    def pause_for_fork(self, end: float) -> None:
        """Come to rest before ``end``, a time of ``time.monotonic``. Runs in the parent, in the thread that forks."""

    def resume_after_fork(self) -> None:
        """Go on. Runs in the parent, in the thread that forks."""


Owner = TypeVar("Owner", bound=Resettable)


class LiveOwners(Generic[Owner]):
    """Objects in the order of their registration, without keeping them alive."""

    def __init__(self) -> None:
        # A dict is changed and copied in one step of the interpreter: any thread may add while another one forks.
        self._refs: dict[ref[Owner], None] = {}

    def add(self, owner: Owner) -> None:
        self._refs[ref(owner, self._remove)] = None

    def _remove(self, dead: ref[Owner]) -> None:
        self._refs.pop(dead, None)

    def all(self) -> list[Owner]:
        return [owner for each in list(self._refs) if (owner := each()) is not None]


SECONDS = 5.0  # the longest time that all objects together may take to come to rest
_INTERRUPT_SECONDS = 0.05  # after which an interrupted fork is over
_functions: list[Callable[[], object]] = []
_owners = LiveOwners[Resettable]()
_pausable = LiveOwners[Pausable]()


class _Forking(threading.local):
    """The objects that a fork of this thread has paused, and whether an interrupt came meanwhile."""

    owners: tuple[Pausable, ...] = ()
    is_interrupted: bool = False


_forking = _Forking()


def on_fork(reset: F) -> F:
    """Call a function in every forked child, in the order of registration. A decorator of module functions.

    >>> @on_fork
    ... def forget() -> None: ...
    """
    _functions.append(reset)
    return reset


def reset_when_forked(owner: Resettable) -> None:
    """Reset ``owner`` in every child that is forked while it lives, after the functions of ``on_fork``.

    >>> class Pool:
    ...     def reset_after_fork(self) -> None: ...
    >>> reset_when_forked(Pool())
    """
    _owners.add(owner)


def pause_when_forking(owner: Pausable) -> None:
    """Pause ``owner`` before every fork; resume it in the parent, and reset it in the child.

    >>> class File:
    ...     def pause_for_fork(self, end: float) -> None: ...
    ...     def resume_after_fork(self) -> None: ...
    ...     def reset_after_fork(self) -> None: ...
    >>> pause_when_forking(File())
    """
    _pausable.add(owner)


def _before() -> None:
    _forking.owners = owners = tuple(_pausable.all())
    end = time.monotonic() + SECONDS
    try:
        _call(partial(owner.pause_for_fork, end) for owner in owners)
    except KeyboardInterrupt:
        _forking.is_interrupted = True


def _after_in_parent() -> None:
    owners, _forking.owners = _forking.owners, ()
    is_interrupted, _forking.is_interrupted = _forking.is_interrupted, False
    _call(owner.resume_after_fork for owner in reversed(owners))
    if is_interrupted:  # by another thread: what this function raises is printed, and lost
        interrupt = partial(signal.pthread_kill, threading.get_ident(), signal.SIGINT)
        threading.Timer(_INTERRUPT_SECONDS, interrupt).start()


def _after_in_child() -> None:
    _forking.owners, _forking.is_interrupted = (), False
    _call((*_functions, *(owner.reset_after_fork for owner in (*_owners.all(), *_pausable.all()))))


def _call(actions: Iterable[Callable[[], object]]) -> None:
    with ExitStack() as calls:
        for action in reversed(tuple(actions)):  # a stack calls the last one first
            calls.callback(action)


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
