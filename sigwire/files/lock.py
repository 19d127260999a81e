"""Locks on files: held by an open file, and freed by the kernel when its process ends. Nothing here waits.

Windows, and some file systems of networks, have no such locks: the caller decides whether it goes on without one.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from sigwire.effects.forks import reset_when_forked

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["HeldFile", "LockState", "lock_file"]

LockState: TypeAlias = Literal["locked", "busy", "unsupported"]
"""``busy``: another open file has the lock. ``unsupported``: there are no locks here."""


def lock_file(descriptor: int, *, shared: bool = False) -> LockState:
    """Lock an open file, or change its lock. Never waits.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     lock_file(file.fileno())
    'locked'
    """
    if fcntl is None:
        return "unsupported"
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return "busy"
    except OSError:  # a file system without locks
        return "unsupported"
    return "locked"


_TRIES = 100  # each one lost to a holder that removed or replaced the file


class HeldFile:
    """A file that is open for reading and writing, with its lock. Made if it is missing, with the permissions ``mode``.

    ``flags``: of ``os.open``, such as ``os.O_APPEND``.
    ``descriptor`` is -1 after ``close``, and in a forked child, which closes the file without freeing the parent's lock.
    ``is_locked`` is False where files have no locks. Raises ``BlockingIOError`` if another open file has the lock.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     held = HeldFile(Path(folder, "lock"))
    ...     try:
    ...         HeldFile(Path(folder, "lock"))
    ...     except BlockingIOError:
    ...         print("busy")
    ...     held.close()
    busy
    """

    def __init__(self, path: Path, *, shared: bool = False, flags: int = 0, mode: int = 0o600) -> None:
        self.descriptor, self.is_locked = -1, False
        reset_when_forked(self)  # first: another thread may fork as soon as the file is open
        flags |= os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        try:
            for _ in range(_TRIES):
                self.descriptor = os.open(path, flags, mode)
                state = lock_file(self.descriptor, shared=shared)
                if state != "busy" and _is_at(path, self.descriptor):
                    self.is_locked = state == "locked"
                    return
                self.close()
                if state == "busy":
                    break
        except BaseException:
            self.close()
            raise
        raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), str(path))

    def close(self) -> None:
        """Close the file, which frees its lock."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def reset_after_fork(self) -> None:
        """Close the file. The open file of the parent keeps the lock."""
        self.close()


def _is_at(path: Path, descriptor: int) -> bool:
    """Return True if an open file is the one that a path names."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    return False
