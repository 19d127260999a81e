"""``Guard``: the lock of shared state that ``finally`` blocks change.

The garbage collector closes an abandoned stream inside any code of any thread: also of a thread that has this lock, or a lock
that its holder waits for. So a release never waits. It is appended, and applied by the thread that has the lock, at once if
that is the releasing one; each ``use`` sees the releases before it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Guard"]

T = TypeVar("T")
_AT_ONCE = (False,)


class Guard:
    """A lock, and the releases that are not applied yet. A forked child makes a new one.

    >>> guard, free = Guard(), ["a slot"]
    >>> guard.use(free.pop)
    'a slot'
    >>> guard.use(lambda: guard.release(free.append, "a slot") or list(free))
    []
    >>> free
    ['a slot']
    """

    __slots__ = ("_lock", "_releases")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._releases: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()

    def use(self, action: Callable[..., T], *arguments: object) -> T:
        """Call an action under the lock. It must not use the guard again."""
        try:
            with self._lock:
                if self._releases:
                    self._apply()
                return action(*arguments)
        finally:
            if self._releases:
                self.release(_nothing)

    def release(self, action: Callable[..., object], *arguments: object) -> None:
        """Call an action under the lock, later if the lock is taken. It must not raise."""
        self._releases.append((action, arguments))
        # The other holder of the lock looks at the releases after it has freed the lock.
        while self._releases:
            # Unpacking acquires without a call of the interpreter, after which an interrupt might come before ``try``.
            [is_mine] = map(self._lock.acquire, _AT_ONCE)
            if not is_mine:
                return
            try:
                self._apply()
            finally:
                self._lock.release()

    def _apply(self) -> None:
        while self._releases:
            action, arguments = self._releases.popleft()
            action(*arguments)


def _nothing() -> None:
    return None
