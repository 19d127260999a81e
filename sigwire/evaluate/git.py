"""``git_state``: the commit of the working directory, for the header of records."""

from __future__ import annotations

import os

from sigwire.core.json import JsonObject

__all__ = ["git_state"]

_LIMIT = 60.0  # seconds: on a busy machine git takes some, and only a git that hangs takes so many
_STATUS = ("git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch", "--untracked-files=no")
_COMMIT = "# branch.oid "


def git_state() -> JsonObject | None:
    """Return the commit of the working directory, and whether tracked files differ from it; ``None`` if unknown.

    Writes nothing into the repository. Without an answer of git in a minute, the commit is unknown.
    """
    import subprocess  # lazy: only logged evaluations need it

    try:
        done = subprocess.run(
            _STATUS,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):  # no git, no repository, one that hangs
        return None
    lines = done.stdout.splitlines()
    commit = next((line.removeprefix(_COMMIT) for line in lines if line.startswith(_COMMIT)), "(initial)")
    return (
        None if commit == "(initial)" else {"commit": commit, "dirty": any(not line.startswith("#") for line in lines)}
    )
