"""Files that are written whole: errors, permissions, links, devices, full disks."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from sigwire.files.whole import replacing, write_whole
from tests.files.processes import fork, statuses


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def test_file_is_replaced_and_nothing_is_left_beside_it(path: Path) -> None:
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
