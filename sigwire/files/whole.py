"""Files that are written whole: a reader finds the old one or the new one, never a part, also after a crash."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing", "write_whole"]


def write_whole(path: str | os.PathLike[str], data: bytes | str, *, private: bool = False) -> None:
    """Replace a file by ``data``, as ``replacing`` does.

    A text is written in UTF-8. A half of a surrogate pair, which a model may answer and UTF-8 cannot encode, is written as its
    escape: the file is not lost for it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "state.json"), b"{}")
    ...     Path(folder, "state.json").read_bytes()
    b'{}'
    """
    with replacing(path, private=private) as file:
        file.write(data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data)


@contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool = False) -> Generator[BinaryIO]:
    """Give a new file, which replaces the one at ``path`` when the block ends; after an error the old one stays.

    The new file is in the same folder, forced to the disk, and has the permissions of the old one; without an old one those of
    any new file, ``private``: for its user alone. A link keeps leading to the file. A device or a pipe is written as it is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600 if private else None
    temporary = target.with_name(f".{target.name}.{os.urandom(8).hex()}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
