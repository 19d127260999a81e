"""Files of lines: torn ends, edited lines, full disks, kills, two writers, forks."""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.files import lines as lines_module
from sigwire.files.lines import BrokenLine, LineFile, read_lines
from tests.files.processes import busy_threads, fork, statuses

ROWS = [{"row": 1, "text": "é"}, {"row": 2, "text": "\ud83d"}, {"row": 3}]
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def text(row: object) -> str:
    return json.dumps(row, ensure_ascii=False)


def written(path: Path, rows: list[dict[str, object]]) -> bytes:
    file = LineFile(path)
    assert all(file.append(text(row)) for row in rows)
    file.close()
    return path.read_bytes()


def test_appended_lines_are_read_by_readers_and_by_the_next_writer(path: Path) -> None:
    content = written(path, ROWS)
    assert content.count(b"\n") == 3
    assert read_lines(path) == ROWS
    file = LineFile(path)
    assert file.rows == ROWS
    file.close()
    assert path.read_bytes() == content


def test_file_that_is_cut_anywhere_keeps_its_whole_lines(path: Path) -> None:
    content = written(path, ROWS)
    for cut in range(len(content) + 1):
        whole = content[:cut].count(b"\n") + (content[cut : cut + 1] == b"\n")
        path.write_bytes(content[:cut])
        assert read_lines(path) == ROWS[:whole]
        file = LineFile(path)
        assert file.rows == ROWS[:whole]
        file.append(text({"row": 4}))
        file.close()
        assert read_lines(path) == [*ROWS[:whole], {"row": 4}]


@pytest.mark.parametrize("end", [b"\0\0\0", b"\0\0\0\n", b'\0\0"row"}\n', b'{"row'])
def test_end_that_a_crash_wrote_is_cut_off(end: bytes, path: Path) -> None:
    content = written(path, ROWS)
    path.write_bytes(content + end)
    assert read_lines(path) == ROWS
    LineFile(path).close()
    assert path.read_bytes() == content


@pytest.mark.parametrize("number", [1, 2, 3])
def test_edited_line_is_refused_with_its_number_and_stays(number: int, path: Path) -> None:
    content = written(path, ROWS).splitlines(keepends=True)
    content[number - 1] = content[number - 1].replace(b":", b"")
    path.write_bytes(b"".join(content))
    for use in (read_lines, LineFile):
        with pytest.raises(BrokenLine) as caught:
            use(path)
        assert caught.value.number == number
    assert path.read_bytes() == b"".join(content)
    path.write_bytes(b"")
    LineFile(path).close()  # the writer that was refused has freed the file


@given(st.binary(max_size=40))
def test_other_content_is_refused_or_ends_as_json(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(content)
    try:
        rows = read_lines(path)
    except BrokenLine:
        return
    file = LineFile(path)
    assert file.rows == rows
    file.append(text({}))
    file.close()
    assert read_lines(path) == [*rows, {}]


def test_second_writer_is_refused_until_the_first_one_closes(path: Path) -> None:
    first = LineFile(path)
    with pytest.raises(BlockingIOError):
        LineFile(path, empty=True)
    first.append(text({"row": 1}))
    first.close()
    assert not first.append(text({"late": 1}))
    assert written(path, [{"row": 2}]).count(b"\n") == 2


def test_emptied_file_has_only_new_lines(path: Path) -> None:
    path.write_text("no json\nat all\n")
    file = LineFile(path, empty=True, mode=0o600)
    file.append(text({"row": 1}))
    file.close()
    assert path.read_text() == '{"row": 1}\n'


def test_lines_of_threads_are_whole(path: Path) -> None:
    file = LineFile(path)
    with busy_threads(lambda: file.append(text({"text": "x" * 9_000})), 4):
        while path.stat().st_size < 2_000_000:
            pass
    file.close()
    assert {len(row["text"]) for row in read_lines(path)} == {9_000}


def test_interrupt_inside_a_line_takes_it_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = LineFile(path)
    file.append(text({"row": 1}))
    write, calls = os.write, list[int]()

    def interrupted(descriptor: int, data: bytes) -> int:
        calls.append(descriptor)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return write(descriptor, data[:5])

    monkeypatch.setattr(lines_module.os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.append(text({"row": 2}))
    monkeypatch.undo()
    file.append(text({"row": 3}))
    file.close()
    assert read_lines(path) == [{"row": 1}, {"row": 3}]


@forks
def test_full_disk_is_an_error_with_the_path_and_loses_nothing(path: Path) -> None:
    def fill() -> None:
        file = LineFile(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        count = 0
        with pytest.raises(OSError, match=r"rows\.jsonl"):  # noqa: PT012
            for count in range(1_000):
                file.append(text({"row": count, "text": "x" * 7_000}))
        assert [row["row"] for row in read_lines(path)] == list(range(count))
        file.append(text({"row": count}))  # a short line fits
        file.close()

    assert statuses([fork(fill)]) == [0]
    numbers = [row["row"] for row in read_lines(path)]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > 10


@pytest.mark.parametrize("rounds", [3, pytest.param(25, marks=pytest.mark.long)])
@forks
def test_killed_writer_loses_no_line_that_it_reported(path: Path, rounds: int) -> None:
    for each in range(rounds):
        reader, writer = os.pipe()

        def write(writer: int = writer) -> None:
            file, count = LineFile(path), len(read_lines(path))
            while True:
                file.append(text({"row": count, "text": "x" * (count % 7 * 3_000)}))
                count += 1
                os.write(writer, b"!")

        child = fork(write)
        os.close(writer)
        reported = sum(len(os.read(reader, 1)) for _ in range(5 + each))
        os.kill(child, signal.SIGKILL)
        while more := os.read(reader, 65536):
            reported += len(more)
        os.close(reader)
        assert statuses([child]) == [-signal.SIGKILL]
        rows = read_lines(path)
        assert [row["row"] for row in rows] == list(range(len(rows)))
        assert len(rows) >= reported


@forks
def test_forked_child_writes_nothing_into_the_file_of_its_parent(path: Path) -> None:
    file = LineFile(path)

    def child() -> None:
        assert not file.append(text({"child": 1}))
        file.sync()
        file.close()
        with pytest.raises(BlockingIOError):
            LineFile(path)

    with busy_threads(lambda: file.append(text({"parent": 1}))):
        assert statuses([fork(child) for _ in range(5)]) == [0] * 5
    file.close()
    assert {"parent"} == {name for row in read_lines(path) for name in row}


def test_last_line_that_is_no_json_is_dropped_with_the_option(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"row": 1}\n{"ro\n')
    with pytest.raises(BrokenLine):
        read_lines(path)
    with pytest.raises(BrokenLine):
        LineFile(path)
    assert read_lines(path, drops_last=True) == [{"row": 1}]
    file = LineFile(path, drops_last=True)
    assert file.rows == [{"row": 1}]
    file.append('{"row": 2}')
    file.close()
    assert read_lines(path) == [{"row": 1}, {"row": 2}]
    path.write_bytes(b'{"ro\n{"row": 1}\n')
    with pytest.raises(BrokenLine):
        read_lines(path, drops_last=True)
