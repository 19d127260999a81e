"""``Database``: new files, foreign files, transactions, threads, forks, full disks."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sigwire.effects import forks as forks_module
from sigwire.files.database import Database, Form, OtherForm, make_private
from tests.files.processes import at_once, busy_threads, fork, statuses

FORM = Form(
    "CREATE TABLE notes (text TEXT);\nCREATE INDEX by_text ON notes (text)",
    application=77,
    number=3,
    settings=("synchronous = FULL",),
)
FORMS = {"rollback journal": FORM, "write-ahead log": replace(FORM, wal=True)}
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(params=FORMS.values(), ids=list(FORMS))
def database(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    made = Database(tmp_path / "notes.sqlite3", request.param)
    yield made
    made.close()


def add(database: Database, text: str = "kept") -> None:
    with database.writing() as connection:
        connection.execute("INSERT INTO notes VALUES (?)", (text,))


def count(database: Database) -> int:
    with database.reading() as connection:
        return int(connection.execute("SELECT count(*) FROM notes").fetchone()[0])


# --- the form of a file


def test_new_file_is_private_and_has_marks_and_schema(database: Database) -> None:
    add(database)
    assert database.path.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(database.path)) as connection:
        marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        texts = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema")]
    assert (marks, texts) == ([77, 3], FORM.schema.split(";\n"))


def other_database(path: Path, *statements: str) -> bytes:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path.read_bytes()


@pytest.mark.parametrize("form", [*FORMS.values(), replace(FORM, application=0), replace(FORM, exclusive=True)])
@pytest.mark.parametrize(
    ("statements", "number"),
    [
        (["CREATE TABLE stock (a)"], None),
        (["PRAGMA user_version = 3"], None),
        (["CREATE TABLE notes (text TEXT)", "PRAGMA user_version = 4"], None),
        (["CREATE TABLE notes (text TEXT)", "PRAGMA user_version = 4", "PRAGMA application_id = 77"], 4),
    ],
    ids=["tables", "a mark", "a later number without a mark", "a later number"],
)
def test_file_of_another_form_is_refused_and_keeps_its_bytes(
    form: Form, statements: list[str], number: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "shop.sqlite3"
    before = other_database(path, *statements)
    with pytest.raises(OtherForm) as caught, Database(path, form).reading():
        pass
    assert caught.value.number == (number if form.application else None)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["shop.sqlite3"]


def test_file_without_an_application_mark_is_known_by_number_and_tables(tmp_path: Path) -> None:
    other_database(tmp_path / "old.sqlite3", "CREATE TABLE notes (text TEXT)", "PRAGMA user_version = 3")
    with Database(tmp_path / "old.sqlite3", replace(FORM, application=0)).reading() as connection:
        assert connection.execute("SELECT * FROM notes").fetchall() == []


def test_text_and_folder_are_refused_and_stay(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database " * 100)
    with pytest.raises(sqlite3.DatabaseError), Database(path, FORM).reading():
        pass
    with pytest.raises(IsADirectoryError), Database(tmp_path, FORM).reading():
        pass
    assert path.read_text() == "no database " * 100


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.long)])
@forks
def test_processes_that_open_a_new_file_at_once_both_work(database: Database, rounds: int) -> None:
    for number in range(rounds):
        path = database.path.with_name(f"{number}.sqlite3")
        made = Database(path, database._form)
        assert at_once(lambda: add(made), lambda: add(made)) == [0, 0]  # noqa: B023
        assert count(made) == 2
        made.close()


def test_prepare_gets_each_connection_and_its_error_closes_the_connection(tmp_path: Path) -> None:
    seen: list[sqlite3.Connection] = []

    def prepare(connection: sqlite3.Connection) -> None:
        seen.append(connection)
        if len(seen) == 2:
            raise ValueError("not mine")

    made = Database(tmp_path / "notes.sqlite3", FORM, prepare)
    add(made)
    add(made)
    made.close()
    with pytest.raises(ValueError, match="not mine"):
        add(made)
    assert not made.is_open
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        seen[1].execute("SELECT 1")


def test_make_private_changes_no_file_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    path.chmod(0o644)
    make_private(path)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("text", 0o644)


# --- transactions


def test_error_rolls_back_its_transaction(database: Database) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"), database.writing() as connection:
        connection.executemany("INSERT INTO notes VALUES (?)", [("lost",)]).execute("INSERT INTO none VALUES (1)")
    add(database)
    assert count(database) == 1


def test_transaction_inside_a_transaction_of_the_thread_fails_alone(database: Database) -> None:
    with database.writing() as connection:
        connection.execute("INSERT INTO notes VALUES ('outer')")
        with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
            add(database, "inner")
    assert count(database) == 1


def test_threads_share_the_connection(database: Database) -> None:
    with busy_threads(lambda: add(database)):
        while count(database) < 30:
            pass
    with database.reading() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("forked", [False, True])
@pytest.mark.parametrize("replaced", [False, True])
@forks
def test_file_that_was_removed_or_emptied_is_refused_until_close(
    database: Database, replaced: bool, forked: bool
) -> None:
    add(database)
    database.path.unlink()
    if replaced:
        database.path.touch()

    def is_refused() -> None:
        for _ in range(2):
            with pytest.raises(FileNotFoundError, match="removed or replaced"):
                add(database)

    if forked:
        assert statuses([fork(is_refused)]) == [0]
    is_refused()
    assert database.path.exists() == replaced
    database.close()
    if replaced:
        return
    add(database)
    assert count(database) == 1


@forks
def test_file_is_made_again_if_its_form_restarts(tmp_path: Path) -> None:
    made = Database(tmp_path / "notes.sqlite3", replace(FORM, restarts=True))
    add(made)
    made.path.unlink()
    assert statuses([fork(lambda: add(made))]) == [0]
    assert count(made) == 1
    made.close()


@forks
@pytest.mark.parametrize("forked", [False, True])
def test_backup_that_is_put_in_place_is_opened(database: Database, forked: bool) -> None:
    add(database)
    database.close()
    backup = Path(shutil.copy(database.path, database.path.with_name("backup")))
    for _ in range(2):
        add(database)
    if database._form.wal:  # the log of the file before would be written into the backup
        backup_and_log(database, backup)
        return
    backup.replace(database.path)
    if forked:
        assert statuses([fork(lambda: add(database))]) == [0]
    add(database)
    assert count(database) == 2 + forked


def backup_and_log(database: Database, backup: Path) -> None:
    other = sqlite3.connect(database.path)
    other.execute("SELECT * FROM notes").fetchall()  # keeps the log
    backup.replace(database.path)
    with pytest.raises(FileNotFoundError, match="removed or replaced"):
        add(database)
    other.close()
    for end in ("-wal", "-shm"):
        Path(f"{database.path}{end}").unlink(missing_ok=True)
    add(database)
    assert count(database) == 2


def test_link_to_a_file_that_does_not_exist_makes_a_private_file(database: Database, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    database.path.symlink_to(tmp_path / "data" / "notes.sqlite3")
    before = os.umask(0o022)
    try:
        add(database)
    finally:
        os.umask(before)
    assert (tmp_path / "data" / "notes.sqlite3").stat().st_mode & 0o777 == 0o600


@forks
def test_full_disk_is_the_error_and_keeps_what_stood(database: Database) -> None:
    add(database)

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        with pytest.raises(sqlite3.OperationalError, match=r"disk is full|disk I/O error"):  # noqa: PT012
            while True:
                add(database, "x" * 10_000)
        assert count(database) > 1

    assert statuses([fork(fill)]) == [0]
    add(database)
    with database.reading() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# --- forks


@forks
def test_children_that_are_forked_while_threads_write_work(database: Database) -> None:
    with busy_threads(lambda: add(database)):
        children = [fork(lambda: add(database, "of a child")) for _ in range(10)]
        assert statuses(children) == [0] * 10
    with database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM notes WHERE text != 'kept'").fetchone() == (10,)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@forks
def test_fork_inside_a_transaction_keeps_the_transaction(database: Database) -> None:
    with database.writing() as connection:
        connection.execute("INSERT INTO notes VALUES ('mine')")
        assert statuses([fork(lambda: None)]) == [0]
    assert count(database) == 1


@forks
def test_fork_does_not_wait_for_ever_for_a_transaction(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks_module, "SECONDS", 0.01)
    inside, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with database.writing() as connection:
            connection.execute("INSERT INTO notes VALUES ('slow')")
            inside.set()
            ended.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(60)
    free: list[Callable[[], bool]] = [lambda: database._state.lock.acquire(blocking=False)]
    assert statuses([fork(lambda: os._exit(0 if free[0]() else 3))]) == [0]
    assert not free[0]()  # the parent has not freed the lock of its thread
    ended.set()
    thread.join()
    assert count(database) == 1


@forks
def test_interrupt_while_a_fork_waits_is_raised_behind_the_fork(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Database.pause_for_fork

    def pause(self: Database, end: float) -> None:
        if self is database:
            signal.raise_signal(signal.SIGINT)
        real(self, end)

    add(database)
    monkeypatch.setattr(Database, "pause_for_fork", pause)
    pid = 0
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        pid = os.fork()
        if not pid:
            os._exit(0)
        threading.Event().wait(60)
    monkeypatch.undo()
    assert statuses([pid]) == [0]
    assert statuses([fork(lambda: add(database))]) == [0]  # no interrupt is left, and no lock
    with busy_threads(lambda: add(database), 1):
        pass
    add(database)


@forks
def test_all_databases_together_hold_up_a_fork_for_one_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[float] = []
    monkeypatch.setattr(Database, "pause_for_fork", lambda self, end: ends.append(end))
    made = [Database(tmp_path / name, FORM) for name in "abc"]
    assert statuses([fork(lambda: None)]) == [0]
    assert len(ends) >= len(made)
    assert len(set(ends)) == 1


@forks
def test_child_that_ends_does_not_change_the_transaction_of_its_parent(database: Database) -> None:
    """The parent is killed in a transaction of which a part is in the file: the next process must roll it back."""
    code = f"""
import os, signal
from pathlib import Path
from sigwire.files.database import Database, Form
form = Form({FORM.schema!r}, 77, 3, ("locking_mode = EXCLUSIVE", "cache_size = 5"), exclusive=True)
mine = Database(Path({str(database.path)!r}), form)
with mine.writing() as connection:
    connection.executemany("INSERT INTO notes VALUES (?)", [("kept" * 40,)] * 2000)
wait, begin = os.pipe()
child = os.fork()
if child:
    with mine.writing() as connection:
        connection.execute("UPDATE notes SET rowid = rowid + 9000")  # more pages than the connection keeps in memory
        os.write(begin, b"!")
        os.waitpid(child, 0)
        os.kill(os.getpid(), signal.SIGKILL)
os.read(wait, 1)  # the child ends as any program does, which frees all objects
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    with closing(sqlite3.connect(database.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*), max(rowid) FROM notes").fetchone() == (2000, 2000)


@pytest.mark.parametrize("fails", [False, True])
@forks
def test_child_does_not_end_the_transaction_of_its_parent(database: Database, fails: bool) -> None:
    child = 0
    try:
        with database.writing() as connection:
            connection.execute("INSERT INTO notes VALUES ('mine')")
            if not (child := os.fork()):
                signal.alarm(60)
                if fails:
                    raise ZeroDivisionError
    except (sqlite3.ProgrammingError, ZeroDivisionError) as error:
        os._exit(0 if isinstance(error, ZeroDivisionError) == fails and not child else 1)
    if not child:
        os._exit(2)
    assert statuses([child]) == [0]
    assert count(database) == 1
    with database.reading() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
