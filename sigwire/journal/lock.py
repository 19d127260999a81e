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

from sigwire.errors import ConfigurationError
from sigwire.files.lock import HeldFile
from sigwire.journal.errors import RunIsLive

__all__ = ["RunLock"]


class RunLock:
    """A held lock. ``acquire`` raises ``RunIsLive`` if a process or thread holds the lock already."""

    def __init__(self, path: Path, file: HeldFile) -> None:
        self._path, self._file = path, file

    @classmethod
    def acquire(cls, folder: Path, run: str) -> RunLock:
        for missing in (folder.parent, folder):
            missing.mkdir(mode=0o700, exist_ok=True)
        path = folder / sha256(run.encode()).hexdigest()[:32]
        try:
            file = HeldFile(path)
        except BlockingIOError:
            raise _live_error(run, path) from None
        if not file.is_locked:
            file.close()
            raise ConfigurationError(
                "A Journal needs locks (flock), which Windows and some file systems of networks lack (locking the run). Name a "
                "file on a local disk."
            )
        os.ftruncate(file.descriptor, 0)
        os.pwrite(file.descriptor, json.dumps({"pid": os.getpid(), "since": time.time()}).encode(), 0)
        return cls(path, file)

    def release(self) -> None:
        """Remove the lock file and free the lock."""
        if self._file.descriptor >= 0:
            with suppress(OSError):
                self._path.unlink()
            self._file.close()


def _live_error(run: str, path: Path) -> RunIsLive:
    pid = since = None
    with suppress(OSError, ValueError, KeyError, TypeError):  # the owner may be about to write, or to remove the file
        owner = json.loads(path.read_bytes())
        pid, since = int(owner["pid"]), float(owner["since"])
    return RunIsLive(run, pid, since)
