"""``current_commit``: the git commit of the working folder, read from its files. No process is started."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

__all__ = ["current_commit"]

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def current_commit(folder: Path | None = None) -> str | None:
    """Return the commit that is checked out in a folder or the nearest folder above; ``None`` if there is none.

    >>> current_commit(Path("/"))
    """
    start = (folder or Path()).absolute()
    with suppress(OSError, UnicodeDecodeError):
        for each in (start, *start.parents):
            if (each / ".git").exists():
                return _commit_of(_git_folder(each / ".git"))
    return None


def _git_folder(path: Path) -> Path:
    """Return the folder of a repository; in a worktree ``.git`` is a file with its path."""
    if path.is_dir():
        return path
    return path.parent / path.read_text(encoding="utf-8").removeprefix("gitdir:").strip()


def _commit_of(folder: Path) -> str | None:
    head = (folder / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref: "):
        return head if _COMMIT.fullmatch(head) else None
    name = head.removeprefix("ref: ")
    shared = folder / "commondir"
    folders = [folder, folder / shared.read_text(encoding="utf-8").strip()] if shared.exists() else [folder]
    for each in folders:
        if (each / name).is_file():
            text = (each / name).read_text(encoding="utf-8").strip()
            return text if _COMMIT.fullmatch(text) else None
    return _packed(folders[-1] / "packed-refs", name)


def _packed(path: Path, name: str) -> str | None:
    for line in path.read_text(encoding="utf-8").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name and _COMMIT.fullmatch(commit):
            return commit
    return None
