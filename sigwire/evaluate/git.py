"""``git_state``: the commit of the working directory, and whether the program differs from it, for the header of records.

``git_details`` has more, for the record of an experiment: it identifies the difference.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from hashlib import sha256

from sigwire.core.json import JsonObject
from sigwire.evaluate.fingerprint.reading import is_users_file

__all__ = ["git_details", "git_state"]

_LIMIT = 60.0  # seconds: on a busy machine git takes some, and only a git that hangs takes so many
_STATUS = ("git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch", "--untracked-files=no")
_COMMIT = "# branch.oid "


def git_state() -> JsonObject | None:
    """Return the commit of the working directory, and whether it is ``dirty``; ``None`` if the commit is unknown.

    It is dirty if a tracked file differs, or a module that is loaded from the repository is not tracked. Writes nothing into
    the repository. Without an answer of git in a minute, the commit is unknown.
    """
    lines = _answer_of(_STATUS)
    commit = next((line.removeprefix(_COMMIT) for line in lines if line.startswith(_COMMIT)), "(initial)")
    if not lines or commit == "(initial)":
        return None
    return {"commit": commit, "dirty": any(not line.startswith("#") for line in lines) or bool(_untracked())}


def git_details() -> JsonObject | None:
    """Return ``git_state`` with the digest of the difference from the commit, and the untracked files that are imported.

    Files are named from the root of the repository: their folders outside of it are no part of a record.
    """
    if (state := git_state()) is None:
        return None
    found = {**state}
    if difference := _answer_of(("git", "diff", "HEAD", "--no-ext-diff", "--no-color")):
        found["difference"] = sha256("\n".join(difference).encode()).hexdigest()[:16]
    if untracked := _untracked():
        found["untracked"] = [*untracked]
    return found


def _untracked() -> Sequence[str]:
    """Return the files of loaded modules that are in the repository and not tracked."""
    # Compared as text: a program has thousands of modules.
    here = os.path.normcase(os.path.join(os.getcwd(), ""))
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    own = [
        each
        for each in files
        if isinstance(each, str) and os.path.normcase(each).startswith(here) and is_users_file(each)
    ]
    return _answer_of(("git", "ls-files", "--others", "--", *sorted(own))) if own else ()


def _answer_of(command: Sequence[str]) -> Sequence[str]:
    import subprocess  # lazy: only logged evaluations need it

    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):  # no git, no repository, one that hangs
        return ()
    return done.stdout.splitlines()
