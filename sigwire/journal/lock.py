"""The owner of a run: a lock file for each run, which the kernel frees when its process ends.

A forked child closes the locks that it inherits, so a run does not stay live through a child of its process.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from sigwire.effects.forks import reset_when_forked
from sigwire.errors import ConfigurationError
from sigwire.journal.errors import RunIsLive

__all__ = ["RunLock"]


class RunLock:
    """A held lock. ``acquire`` raises ``RunIsLive`` if a process or thread holds the lock already."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor
        reset_when_forked(self)

    @classmethod
    def acquire(cls, folder: Path, run: str) -> RunLock:
        try:
            import fcntl
        except ImportError as error:
            raise ConfigurationError("A Journal needs flock, which Windows lacks (locking the run).") from error
        for missing in (folder.parent, folder):
            missing.mkdir(mode=0o700, exist_ok=True)
        path = folder / sha256(run.encode()).hexdigest()[:32]
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                try:
                    raise _live_error(run, descriptor) from None
                finally:
                    os.close(descriptor)
            if _is_at(path, descriptor):
                break
            os.close(descriptor)  # the owner before removed the file
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "since": time.time()}).encode(), 0)
        return cls(path, descriptor)

    def release(self) -> None:
        """Remove the lock file and free the lock."""
        if self._descriptor >= 0:
            with suppress(OSError):
                self._path.unlink()
            self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Close the file without removing it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    return False


def _live_error(run: str, descriptor: int) -> RunIsLive:
    pid = since = None
    with suppress(ValueError, KeyError, TypeError):  # the owner may be about to write
        owner = json.loads(os.pread(descriptor, 200, 0))
        pid, since = int(owner["pid"]), float(owner["since"])
    return RunIsLive(run, pid, since)
