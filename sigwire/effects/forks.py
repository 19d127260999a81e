"""Objects that a forked child resets: threads of the parent do not exist there, and hold their locks for ever."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["Resettable", "reset_when_forked"]


class Resettable(Protocol):
    """An object with locks, threads or sockets of its process."""

    def reset_after_fork(self) -> None:
        """Forget what belongs to the parent. Runs in the child."""


_known: weakref.WeakSet[Resettable] = weakref.WeakSet()


def reset_when_forked(owner: Resettable) -> None:
    """Reset ``owner`` in every child that is forked while it lives.

    >>> class Pool:
    ...     def reset_after_fork(self) -> None: ...
    >>> reset_when_forked(Pool())
    """
    _known.add(owner)


def _reset_all() -> None:
    for owner in list(_known):
        owner.reset_after_fork()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_reset_all)
