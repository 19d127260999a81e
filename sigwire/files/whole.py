"""Files that are written whole: a reader finds the old one or the new one, never a part, also after a crash.

A file whose folder cannot be written, and one that is mounted alone, cannot be replaced. It is written in place, after the new
content is complete and has its space on the disk; a crash in that moment may leave a part. So are devices and pipes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

__all__ = ["FULL_DISK", "replacing", "write_whole"]

FULL_DISK = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})
_IN_PLACE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV}
)  # no file can be made or renamed


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Replace a file by ``data``, as ``replacing`` does.

    A text is written in UTF-8. A half of a surrogate pair, which a model may answer and UTF-8 cannot encode, is written as its
    escape: the file is not lost for it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "state.json"), b"{}")
    ...     Path(folder, "state.json").read_bytes()
    b'{}'
    """
    with replacing(path) as file:
        file.write(data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """Give a new file, which replaces the one at ``path`` when the block ends; after an error the old one stays.

    The new file is in the same folder, forced to the disk, and has the permissions of the old one; without an old one those of
    any new file. A link keeps leading to the file. A device, a pipe, and an open file of a process such as ``/dev/stdout`` are
    written as they are.
    """
    mode = _mode(path)
    if mode is not None and (not stat.S_ISREG(mode) or _is_open_file(path)):
        with open(path, "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.urandom(8).hex()}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600)
    except OSError as error:
        if mode is None or error.errno not in _IN_PLACE:
            raise
        import tempfile  # rare

        with target.open("r+b"), tempfile.TemporaryFile() as content:  # the first one: it may be written
            yield content
            _write_in_place(content, target)
        return
    try:
        with open(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            if mode is not None:
                temporary.chmod(stat.S_IMODE(mode))
            try:
                temporary.replace(target)
            except OSError as error:
                if mode is None or error.errno not in _IN_PLACE:
                    raise
                _write_in_place(file, target)
    finally:
        temporary.unlink(missing_ok=True)


def _mode(path: str | os.PathLike[str]) -> int | None:
    try:
        return os.stat(path).st_mode  # follows links, also those in /proc, which lead to no path
    except FileNotFoundError:
        return None


def _is_open_file(path: str | os.PathLike[str]) -> bool:
    """Return True for a name of an open file, such as ``/dev/stdout``, and for links to one: others write into it as well."""
    name = os.fspath(path)
    for _ in range(40):  # links
        folder = os.path.realpath(os.path.dirname(os.path.abspath(name)))
        if folder in ("/dev", "/proc") or folder.startswith("/proc/"):
            return True
        name = os.path.join(folder, os.path.basename(name))
        if not os.path.islink(name):
            return False
        name = os.path.join(folder, os.readlink(name))
    return False


def _write_in_place(content: IO[bytes], target: Path) -> None:
    """Write a complete content over the old one, if the disk has the space."""
    size, _ = content.seek(0, os.SEEK_END), content.seek(0)
    with target.open("r+b") as file:
        _reserve(file.fileno(), size)
        while data := content.read(1 << 20):
            file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def _reserve(descriptor: int, size: int) -> None:
    old = os.fstat(descriptor).st_size
    if size <= old or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(descriptor, old)
        if error.errno in FULL_DISK:
            raise
