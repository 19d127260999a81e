"""Promises of every store in SQLite: its form on disk, a foreign file, a new file that two processes open, and forks.

``forms.json`` has the schema texts and marks that files of the first formats have.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sigwire.errors import ConfigurationError, StateError
from sigwire.journal.records import EffectRow
from sigwire.journal.store import Store
from sigwire.lm.batch.store import FORM, BatchStore
from sigwire.lm.policy.cache.store import DiskStore
from sigwire.lm.policy.money.ledger import Reserved
from sigwire.lm.policy.money.store import FileLedger
from sigwire.lm.policy.money.sums import BudgetLimits, Sums
from sigwire.modules.memory import Memory
from tests.files.processes import at_once, busy_threads, fork, statuses

FORMS: dict[str, Any] = json.loads(Path(__file__).with_name("forms.json").read_text())
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


class Kind(NamedTuple):
    """A kind of store. ``write`` makes an entry with a name; ``count`` returns how many there are."""

    open: Callable[[Path], Any]
    write: Callable[[Any, str], object]
    count: Callable[[Any], int]
    error: type[Exception] | None = None  # for a foreign file
    old: tuple[str, ...] = ()  # statements behind the schema in a file of an earlier version
    close: Callable[[Any], object] = lambda store: store.close()
    file: str = "file"


def reserve(ledger: FileLedger, name: str) -> None:
    ticket = ledger.take(Sums(1), BudgetLimits(), ())
    assert isinstance(ticket, Reserved)
    ledger.settle(ticket, Sums(1, 30))


def put(store: Store, name: str) -> None:
    store.put("run", EffectRow(name, "ask", "f", "done", 1, None, b"k", None, None, 0.0, None), {name: b"text"})


def keep(store: DiskStore, name: str) -> None:
    """Store an answer. A write that waits for another process for 50 ms is dropped, and made again here."""
    key = name.zfill(32).encode()
    while store.get(key) is None:
        store.put(key, b"{}")


KINDS = {
    "journal": Kind(Store, put, lambda store: len(store.rows("run")), StateError),
    "budget": Kind(
        lambda path: FileLedger(str(path)), reserve, lambda ledger: ledger.totals()[0].calls, ConfigurationError,
        ("INSERT INTO spent VALUES (0, 0, 0, 0, 0)",), lambda ledger: ledger._database.close(),
    ),
    "batches": Kind(
        BatchStore, lambda store, name: store.keep(name, 200, b"{}"),
        lambda store: sum(store.find(str(number)) is not None for number in range(100)), ConfigurationError,
    ),
    "memory": Kind(
        Memory, lambda store, name: store.add(name), lambda store: len(store.notes()), StateError,
    ),
    "cache": Kind(
        lambda path: DiskStore(path.parent, 1 << 30), keep,
        lambda store: store.size()[0], file="cache-1.sqlite3",
    ),
}  # fmt: skip


@pytest.fixture(params=list(KINDS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kind(name: str) -> Kind:
    return KINDS[name]


def form_of(path: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as connection:
        marks = ("application_id", "user_version", "auto_vacuum", "journal_mode")
        form = {mark: connection.execute(f"PRAGMA {mark}").fetchone()[0] for mark in marks}
        return {**form, "schema": [list(row) for row in connection.execute("SELECT name, sql FROM sqlite_schema")]}


def make_old(path: Path, form: dict[str, Any], statements: tuple[str, ...]) -> None:
    """Make a file as an earlier version made it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA auto_vacuum = {form['auto_vacuum']}")
        connection.execute(f"PRAGMA journal_mode = {form['journal_mode']}")
        for _, sql in form["schema"]:
            if sql and "sqlite_sequence" not in sql:
                connection.execute(sql)
        for statement in statements:
            connection.execute(statement)
        for mark in ("application_id", "user_version"):
            connection.execute(f"PRAGMA {mark} = {form[mark]}")


def test_new_file_has_the_form_of_every_version(name: str, kind: Kind, tmp_path: Path) -> None:
    store = kind.open(tmp_path / kind.file)
    kind.write(store, "1")
    kind.close(store)
    assert form_of(tmp_path / kind.file) == FORMS[name]


def test_file_of_an_earlier_version_is_read_and_written(name: str, kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / kind.file
    make_old(path, FORMS[name], kind.old)
    assert form_of(path) == FORMS[name]
    for number in range(2):
        store = kind.open(path)
        assert kind.count(store) == number
        kind.write(store, str(number))
        kind.close(store)
    assert form_of(path) == FORMS[name]


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_foreign_file_is_refused_or_renamed_and_keeps_its_bytes(kind: Kind, mode: str, tmp_path: Path) -> None:
    path = tmp_path / kind.file
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE stock (item TEXT)")
        connection.execute("PRAGMA user_version = 1")
    before = path.read_bytes()
    if kind.error is None:
        for name in "12":
            kind.write(kind.open(path), name)
        (path,) = tmp_path.glob("*.broken-*")
    else:
        with pytest.raises(kind.error):
            kind.write(kind.open(path), "1")
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", [KINDS["journal"], KINDS["budget"]], ids=["journal", "budget"])
@forks
def test_two_processes_that_open_a_new_file_at_once_both_work(kind: Kind, tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / str(number)
        works = [lambda each=each: kind.write(kind.open(path), each) for each in "12"]  # type: ignore[misc] # noqa: B023
        assert at_once(*works) == [0, 0]
        store = kind.open(path)
        assert kind.count(store) == 2
        kind.close(store)


@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=pytest.mark.long)])
@forks
def test_ten_children_that_are_forked_while_threads_use_a_store_can_use_the_store(
    name: str, kind: Kind, rounds: int, tmp_path: Path
) -> None:
    path = tmp_path / kind.file
    store, numbers = kind.open(path), iter(range(100_000, 1_000_000))

    def child(number: int) -> None:
        mine = kind.open(tmp_path / f"{number}") if name == "batches" else store  # one process at a time
        kind.write(mine, str(number))
        assert kind.count(mine) >= 1

    for each in range(rounds):
        with busy_threads(lambda: kind.write(store, str(next(numbers)))):
            children = [fork(lambda number=number: child(number)) for number in range(10 * each, 10 * each + 10)]  # type: ignore[misc]
            assert statuses(children) == [0] * 10
    assert kind.count(store) >= 10 or name == "batches"
    kind.close(store)
    assert form_of(path) == FORMS[name]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@forks
def test_child_is_refused_the_batches_that_its_parent_holds(tmp_path: Path) -> None:
    fast = replace(FORM, busy_seconds=0.01)
    store = BatchStore(tmp_path / "file", fast)

    def child() -> None:
        for use in (lambda: BatchStore(tmp_path / "file", fast), lambda: store.keep("1", 200, b"{}")):
            with pytest.raises(ConfigurationError, match="Another process or BatchLM may use it"):
                use()

    assert statuses([fork(child)]) == [0]
    store.keep("1", 200, b"{}")
    store.close()


def test_settling_inside_a_transaction_of_the_thread_keeps_the_upper_bound(tmp_path: Path) -> None:
    ledger = FileLedger(str(tmp_path / "budget"))
    ticket = ledger.take(Sums(1, 500), BudgetLimits(), ())
    assert isinstance(ticket, Reserved)
    with ledger._transaction():
        ledger.settle(ticket, Sums(1, 30))  # as a generator does that is collected here
    assert ledger.totals() == (Sums(), Sums(1, 500))


def test_full_disk_is_named_by_the_journal(tmp_path: Path) -> None:
    import resource

    store = Store(tmp_path / "journal")
    put(store, "before")

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        with pytest.raises(StateError, match=r"cannot be written: .*Free space on its disk") as caught:  # noqa: PT012
            for number in range(1000):
                store.put(
                    "run",
                    EffectRow(str(number), "ask", "f", "done", 1, None, os.urandom(9000), None, None, 0.0, None),
                    {},
                )
        assert "not a journal" not in str(caught.value)

    assert statuses([fork(fill)]) == [0]
    put(store, "after")
    assert len(store.rows("run")) >= 2
    store.close()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("journal", "Free space on its disk"),
        ("budget", "Free space on its disk"),
        ("batches", "Free space on its disk"),
    ],
)
def test_full_disk_is_named_by_each_store(name: str, text: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    store = kind.open(tmp_path / "file")
    kind.write(store, "1")
    with store._database.reading() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    with pytest.raises((StateError, ConfigurationError), match=text) as caught:  # noqa: PT012
        if name == "budget":
            while True:
                store.take(Sums(1), BudgetLimits(), ())
        for number in range(2, 2000):
            kind.write(store, str(number))
    assert "Another process" not in str(caught.value)
    kind.close(store)


def test_ledger_that_is_foreign_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as connection:
        connection.execute("CREATE TABLE stock (item TEXT)")
    with pytest.raises(ConfigurationError, match=r"^shop\.db is another kind"):
        FileLedger("shop.db")


@forks
def test_ledger_that_was_removed_does_not_begin_from_nothing_after_a_fork(tmp_path: Path) -> None:
    ledger = FileLedger(str(tmp_path / "budget"))
    reserve(ledger, "1")
    (tmp_path / "budget").unlink()
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="removed or replaced"):
            ledger.totals()
        assert statuses([fork(lambda: None)]) == [0]
