"""The folder of the cache: its default place, its permissions, and the lock that its processes share."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["FileLock", "RefusedFolder", "check_file", "default_folder", "make_folder"]


class RefusedFolder(Exception):
    """The folder is not safe: other users could change the answers in it."""


def default_folder() -> Path:
    """Return ``$SIGWIRE_CACHE_DIR``, else the platform's folder for caches."""
    if given := os.environ.get("SIGWIRE_CACHE_DIR"):
        return Path(given).expanduser()
    user = Path("~").expanduser()
    if sys.platform == "darwin":
        return user / "Library" / "Caches" / "sigwire"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or user / "AppData" / "Local") / "sigwire" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or user / ".cache") / "sigwire"


def make_folder(folder: Path) -> None:
    """Make the folder, for this user alone. Raises ``RefusedFolder`` if other users own it, or can write in it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not hasattr(os, "geteuid"):
        return
    for found in (folder.lstat(), folder.stat()):  # the link, and what it names
        if found.st_uid != os.geteuid():
            raise RefusedFolder(f"{folder} belongs to another user")
    if not folder.is_dir():
        raise RefusedFolder(f"{folder} is no folder")
    if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RefusedFolder(f"other users can write in {folder}")


def check_file(path: Path) -> None:
    """Make the file, for this user alone, if there is none. Raises ``RefusedFolder`` for a link or another user's file."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
        raise RefusedFolder(f"{path} is a link, or belongs to another user")


class FileLock:
    """A lock that every process with the cache open shares. Without ``flock`` (Windows) it is never exclusive."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
        self.make_shared()

    def make_shared(self) -> None:
        """Share the lock. Raises ``BlockingIOError`` if a process has it alone, which replaces the file."""
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks
            return

    def make_exclusive(self) -> bool:
        """Take the lock alone. Return False if another process has it."""
        if fcntl is None:
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Release the lock."""
        os.close(self._file)
