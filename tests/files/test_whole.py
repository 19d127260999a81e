"""Files that are written whole: errors, permissions, links, devices, full disks."""

from __future__ import annotations

import ast
import os
import resource
from pathlib import Path

import pytest

from sigwire.files.whole import replacing, write_whole
from tests.figures import PACKAGE, trees
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


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("old", [None, 0o640, 0o600])
def test_permissions_are_those_of_the_old_file_or_as_asked(path: Path, old: int | None, private: bool) -> None:
    before = os.umask(0o022)
    try:
        if old is not None:
            path.touch()
            path.chmod(old)
        write_whole(path, b"new", private=private)
        assert path.stat().st_mode & 0o777 == (old or (0o600 if private else 0o644))
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


def test_no_room_writes_a_file_in_another_way() -> None:
    """``sigwire.testing`` writes no files of users; ``wave`` writes into memory."""
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}"
        for path, tree in trees().items()
        if path.relative_to(PACKAGE).parts[0] not in ("testing", "files")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and writes(node) and "wave.open" not in ast.unparse(node)
    }
    assert found == set()
