"""Files that are written whole: errors, permissions, links, devices, full disks."""

from __future__ import annotations

import ast
import errno
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwire.files.whole import replacing, write_whole
from tests.figures import PACKAGE, nodes, trees
from tests.files.processes import fork, statuses


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def test_file_is_replaced_and_no_other_file_stays_in_the_folder(path: Path) -> None:
    for data in (b"old", b"new"):
        write_whole(path, data)
        assert path.read_bytes() == data
    assert list(path.parent.iterdir()) == [path]


def test_error_inside_the_block_keeps_the_old_file(path: Path) -> None:
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"%d" % (1 // (file.write(b"new") - 3)))
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("old", [None, 0o640, 0o600])
def test_permissions_are_those_of_the_old_file_or_of_any_new_one(path: Path, old: int | None) -> None:
    before = os.umask(0o022)
    try:
        if old is not None:
            path.touch()
            path.chmod(old)
        write_whole(path, b"new")
        assert path.stat().st_mode & 0o777 == (old or 0o644)
    finally:
        os.umask(before)


def test_replacement_of_a_private_file_is_private_while_it_is_written(path: Path) -> None:
    path.touch(0o600)
    with replacing(path) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600


def test_half_of_a_surrogate_pair_is_written_as_its_escape(path: Path) -> None:
    write_whole(path, "é \ud83d")
    assert path.read_bytes() == "é \\ud83d".encode()


def test_link_keeps_leading_to_the_file(path: Path) -> None:
    link = path.with_name("latest.json")
    link.symlink_to(path)
    for data in (b"new", b"newer"):
        write_whole(link, data)
        assert (link.is_symlink(), path.read_bytes()) == (True, data)


def test_device_and_folder_are_no_file_to_replace(path: Path) -> None:
    write_whole(os.devnull, b"gone")
    assert Path(os.devnull).is_char_device()
    with pytest.raises(IsADirectoryError):
        write_whole(path.parent, b"new")
    with pytest.raises(FileNotFoundError):
        write_whole(path / "below", b"new")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_full_disk_keeps_the_old_file(path: Path) -> None:
    path.write_text("old")

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
        with pytest.raises(OSError, match="File too large"):
            write_whole(path, bytes(5_000))

    assert statuses([fork(fill)]) == [0]
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


# --- files that cannot be replaced


WRITE = "import sys; from sigwire.files.whole import write_whole; write_whole(sys.argv[1], b'new')"


def test_piped_standard_output_is_written(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to("/dev/stdout")
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", str(link)):
        done = subprocess.run([sys.executable, "-c", WRITE, name], stdout=subprocess.PIPE, check=True)
        assert done.stdout == b"new"


def test_standard_output_that_is_a_file_stays_that_file(path: Path) -> None:
    with path.open("wb") as file:
        before = os.fstat(file.fileno()).st_ino
        subprocess.run([sys.executable, "-c", WRITE, "/dev/stdout"], stdout=file, check=True)
    assert (path.read_bytes(), path.stat().st_ino) == (b"new", before)
    assert list(path.parent.iterdir()) == [path]


def refuse(number: int) -> Callable[..., int]:
    def refusing(*args: object, **options: object) -> int:
        raise OSError(number, os.strerror(number))

    return refusing


@pytest.mark.parametrize(
    ("owner", "name", "number"),
    [
        (os, "open", errno.EACCES),
        (os, "open", errno.EROFS),
        (Path, "replace", errno.EBUSY),
        (Path, "replace", errno.EPERM),
    ],
)
@pytest.mark.parametrize("data", [b"", b"new", b"longer than the old one"])
def test_file_that_cannot_be_replaced_is_written_in_place(
    owner: Any, name: str, number: int, data: bytes, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("the old one")
    inode, real = path.stat().st_ino, os.open
    if name == "open":  # refuses to make files in the folder alone
        monkeypatch.setattr(
            os, name, lambda at, *a, **k: refuse(number)() if Path(at).parent == path.parent else real(at, *a, **k)
        )
    else:
        monkeypatch.setattr(owner, name, refuse(number))
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"%d" % (1 // (file.write(b"new") - 3)))
    assert path.read_text() == "the old one"
    write_whole(path, data)
    assert (path.read_bytes(), path.stat().st_ino) == (data, inode)
    with pytest.raises(OSError, match=re.escape(os.strerror(number))):
        write_whole(path.with_name("none.json"), b"new")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_full_disk_keeps_the_old_file_that_is_written_in_place(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text("old")

    def fill() -> None:
        with pytest.raises(OSError, match="File too large"), replacing(path) as file:  # noqa: PT012
            file.write(bytes(5_000))
            file.flush()
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))

    monkeypatch.setattr(Path, "replace", refuse(errno.EBUSY))
    assert statuses([fork(fill)]) == [0]
    assert path.read_text() == "old"


# --- the rooms


def writes(call: ast.Call) -> bool:
    """Return True for ``path.write_text(data)``, ``path.write_bytes(data)``, ``open(path, "w")`` and ``path.open("a")``."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("write_text", "write_bytes"):
        return isinstance(call.func, ast.Attribute) and len(call.args) == 1
    modes = [each.value for each in call.args[:2] if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return name == "open" and any(set(mode) <= set("wxab+t") and set(mode) & set("wxa") for mode in modes)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("path.write_text('x')", True),
        ("path.write_bytes(data)", True),
        ("open(path, 'wb')", True),
        ("path.open('a')", True),
        ("open(path, 'rb')", False),
        ("exports.write_text(path, text)", False),
        ("file.write('x')", False),
    ],
)
def test_writing_call_is_recognised(code: str, found: bool) -> None:
    call = ast.parse(code).body[0]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    assert writes(call.value) == found


@pytest.mark.long
def test_no_room_writes_a_file_in_another_way() -> None:
    """``sigwire.testing`` writes no files of users; ``wave`` writes into memory."""
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}"
        for path, tree in trees().items()
        if path.relative_to(PACKAGE).parts[0] not in ("testing", "files")
        for node in nodes(tree)
        if isinstance(node, ast.Call) and writes(node) and "wave.open" not in ast.unparse(node)
    }
    assert found == set()
