"""Forks, and the state of a process: the only ``os.register_at_fork`` of the package.

Threads of the parent do not exist in a forked child, and hold their locks for ever. So the child resets module state
(``on_fork``), then live objects (``reset_when_forked``). An object that a child could not repair, such as an open database, is
paused before each fork (``pause_when_forking``); the parent resumes it, the child resets it last.

Each function and object is called, also if one before it raises. The system prints that error; the fork is made. An interrupt
(Ctrl-C) while objects are paused is delivered when the fork is over: the system would print it as well, and go on.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from types import FrameType
from typing import Any, ClassVar, Generic, Protocol, TypeVar
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
_functions: list[Callable[[], object]] = []
_owners = LiveOwners[Resettable]()
_pausable = LiveOwners[Pausable]()


class _Forking(threading.local):
    """The objects that a fork of this thread has paused."""

    owners: tuple[Pausable, ...] = ()
    shield: _Shield | None = None


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
    _Interrupt.__call__ = int
    owners = tuple(_pausable.all())
    if not owners:
        return
    _forking.shield = _Shield()
    _forking.owners = owners
    end = time.monotonic() + SECONDS
    _call(partial(owner.pause_for_fork, end) for owner in owners)


def _after_in_parent() -> None:
    owners, _forking.owners = _forking.owners, ()
    _call(owner.resume_after_fork for owner in reversed(owners))
    shield, _forking.shield = _forking.shield, None
    if shield is not None and shield.end():
        _Interrupt.__call__ = _thread.interrupt_main


def _after_in_child() -> None:
    _forking.owners = ()
    _call((*_functions, *(owner.reset_after_fork for owner in (*_owners.all(), *_pausable.all()))))
    shield, _forking.shield = _forking.shield, None
    if shield is not None:
        shield.end()


class _Shield:
    """Notes interrupts, which only the main thread gets, instead of their handler."""

    def __init__(self) -> None:
        self._noted = False
        self._handler: Any = None
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._handler = signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = True

    def end(self) -> bool:
        """Set the handler again. Return whether there was an interrupt."""
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        return self._noted


class _Interrupt:
    """The last thing that a fork calls in the parent. The call is one of the interpreter itself: it runs no line of Python.

    So the interrupt that it makes is raised behind ``os.fork``, where the program can see it.
    """

    __call__: ClassVar[Any] = int  # does nothing


def _call(actions: Iterable[Callable[[], object]]) -> None:
    with ExitStack() as calls:
        for action in reversed(tuple(actions)):  # a stack calls the last one first
            calls.callback(action)


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
    os.register_at_fork(after_in_parent=_Interrupt())
