"""Locks of files: two holders, removed files, forked children."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sigwire.files import lock
from sigwire.files.lock import HeldFile, lock_file
from tests.files.processes import fork, statuses

pytest.importorskip("fcntl")


def test_second_holder_is_refused_until_the_first_one_closes(tmp_path: Path) -> None:
    first = HeldFile(tmp_path / "lock")
    with pytest.raises(BlockingIOError, match="lock"):
        HeldFile(tmp_path / "lock")
    first.close()
    second = HeldFile(tmp_path / "lock")
    assert second.is_locked
    second.close()
    assert second.descriptor == -1


def test_shared_lock_becomes_exclusive_when_it_is_alone(tmp_path: Path) -> None:
    one, other = (HeldFile(tmp_path / "lock", shared=True) for _ in range(2))
    assert lock_file(one.descriptor) == "busy"
    other.close()
    assert lock_file(one.descriptor) == "locked"
    one.close()


def test_file_is_private_and_its_lines_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    HeldFile(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("owner")
    HeldFile(path).close()
    assert path.read_text() == "owner"


def test_lock_of_a_removed_file_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, locked = tmp_path / "lock", list[int]()

    def removing(descriptor: int, *, shared: bool = False) -> lock.LockState:
        if not locked:  # the holder before removes its file between the open and the lock
            path.unlink()
        locked.append(descriptor)
        return lock_file(descriptor, shared=shared)

    monkeypatch.setattr(lock, "lock_file", removing)
    held = HeldFile(path)
    assert len(locked) == 2
    assert os.path.samestat(os.fstat(held.descriptor), path.stat())
    held.close()


def test_file_system_without_locks_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    one, other = (HeldFile(tmp_path / "lock") for _ in range(2))
    assert not one.is_locked
    one.close()
    other.close()


def test_file_that_is_always_replaced_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_is_at", lambda path, descriptor: False)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(BlockingIOError, match="lock"):
        HeldFile(tmp_path / "lock")
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_child_that_is_forked_while_a_file_is_locked_has_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ready, is_ready), (end, ended), children = os.pipe(), os.pipe(), list[int]()

    def forking(descriptor: int, *, shared: bool = False) -> str:
        state = lock_file(descriptor, shared=shared)
        children.append(fork(lambda: (os.close(ended), os.write(is_ready, b"!"), os.read(end, 1))))
        assert os.read(ready, 1) == b"!"  # the child has forgotten what belongs to the parent
        return state

    monkeypatch.setattr(lock, "lock_file", forking)
    HeldFile(tmp_path / "lock").close()
    monkeypatch.undo()
    HeldFile(tmp_path / "lock").close()
    for descriptor in (ready, is_ready, ended, end):
        os.close(descriptor)
    assert statuses(children) == [0]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_does_not_hold_or_free_the_lock_of_its_parent(tmp_path: Path) -> None:
    path, (ready, is_ready), (end, ended) = tmp_path / "lock", os.pipe(), os.pipe()
    held = HeldFile(path)

    def child() -> None:
        assert held.descriptor == -1
        with pytest.raises(BlockingIOError):
            HeldFile(path)
        os.close(ended)
        os.write(is_ready, b"!")
        os.read(end, 1)  # lives on while the parent frees its lock

    children = [fork(child)]
    os.close(is_ready)
    assert os.read(ready, 1) == b"!"
    with pytest.raises(BlockingIOError):
        HeldFile(path)
    held.close()
    HeldFile(path).close()
    for descriptor in (ended, end, ready):
        os.close(descriptor)
    assert statuses(children) == [0]
