"""The folder of the cache: its default place and its permissions."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from sigwire.files.database import make_private

__all__ = ["RefusedFolder", "check_file", "default_folder", "make_folder"]


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
    make_private(path)
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
        raise RefusedFolder(f"{path} is a link, or belongs to another user")
