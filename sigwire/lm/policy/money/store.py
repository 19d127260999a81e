"""The ledger of a budget in an SQLite file, which several processes share: one row for each reservation.

A row names its process by boot, pid and start time. Reservations of processes that have ended count as spent, at their upper
bound: the exchange may have been billed. One host only. ``files/database.py`` has the connection.

A reservation is on disk before its call is sent. A settlement only reaches the operating system: it survives the end of the
process, and after a loss of power the reservation stands in its place, at its upper bound. So a call waits for the disk once
(https://sqlite.org/pragma.html#pragma_synchronous: in WAL mode "full" forces each commit to the disk, "normal" none).
"""

from __future__ import annotations

import functools
import os
import sqlite3
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from sigwire.errors import ConfigurationError
from sigwire.files.database import Database, Form, OtherForm, trouble_of
from sigwire.lm.policy.money.ledger import Reserved
from sigwire.lm.policy.money.sums import BudgetLimits, Refusal, Sums

__all__ = ["FileLedger"]

_SCHEMA = """
CREATE TABLE spent (calls INTEGER, tokens INTEGER, money INTEGER, unpriced INTEGER, estimated INTEGER);
CREATE TABLE reserved (
  number INTEGER PRIMARY KEY AUTOINCREMENT, process TEXT,
  calls INTEGER, tokens INTEGER, money INTEGER, unpriced INTEGER, estimated INTEGER
);
INSERT INTO spent VALUES (0, 0, 0, 0, 0);
"""
_FORM = Form(
    _SCHEMA,
    application=0x51677732,  # "sgw2"
    settings=("trusted_schema = OFF",),
    wal=True,
)
_COUNTS = ("calls", "tokens", "money", "unpriced", "estimated")
_SUM = f"SELECT {', '.join(f'COALESCE(SUM({name}), 0)' for name in _COUNTS)} FROM reserved"

_HINTS = {
    "full": "Free space on its disk; what was spent before is kept.",
    "busy": "End the process that holds the file, or use a file of its own, Budget(path=...).",
}


class FileLedger:
    """A ledger in a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = FileLedger(f"{folder}/budget.sqlite3")
    ...     ticket = ledger.take(Sums(calls=1), BudgetLimits(calls=5), ())
    ...     ledger.settle(ticket, Sums(calls=1, tokens=30))
    ...     FileLedger(f"{folder}/budget.sqlite3").totals()[0]
    Sums(calls=1, tokens=30, money=0, unpriced=0, estimated=0)
    """

    shared = True

    def __init__(self, path: str) -> None:
        self._given, self._database = path, Database(Path(path), _FORM, _switch_to_wal)
        with self._transaction():  # a file that is no ledger is refused here
            pass

    def totals(self) -> tuple[Sums, Sums]:
        with self._transaction() as database:
            return _totals(database)

    def check(self, need: Sums, limits: BudgetLimits, own: Iterable[Reserved]) -> Refusal | None:
        with self._transaction() as database:
            return _check(database, need, limits, own)

    def take(self, need: Sums, limits: BudgetLimits, own: Iterable[Reserved]) -> Reserved | Refusal:
        with self._transaction() as database:
            if (refusal := _check(database, need, limits, own)) is not None:
                return refusal
            row = database.execute(
                "INSERT INTO reserved (process, calls, tokens, money, unpriced, estimated) VALUES (?, ?, ?, ?, ?, ?)",
                (_process_name(os.getpid()), *need),
            )
            return Reserved(row.lastrowid or 0, os.getpid())

    def settle(self, ticket: Reserved, charge: Sums) -> None:
        # Called in ``finally``: a failure must not replace the error of the call. The row then stays, at its upper bound.
        with suppress(ConfigurationError):
            if ticket.pid == os.getpid():
                with self._transaction("NORMAL") as database:
                    database.execute("DELETE FROM reserved WHERE number = ?", (ticket.number,))
                    _spend(database, charge)

    @contextmanager
    def _transaction(self, synchronous: Literal["FULL", "NORMAL"] = "FULL") -> Generator[sqlite3.Connection]:
        try:
            with self._database.writing(f"synchronous = {synchronous}") as database:
                yield database
        except OtherForm as error:
            raise ConfigurationError(
                f"{self._given} is another kind of database, or was written by another version of sigwire (opening a "
                "budget). Use another file: Budget(path=...)."
            ) from error
        except (OSError, sqlite3.Error) as error:
            hint = _HINTS.get(trouble_of(error), "Use a file of its own on a local disk, Budget(path=...).")
            raise ConfigurationError(
                f"The ledger {self._database.path} cannot be used (reserving the cost of a call): {error}. {hint}"
            ) from error


def _switch_to_wal(database: sqlite3.Connection) -> None:
    """Switch a ledger of an earlier version, unless another process has it: then the next one to open it does."""
    with suppress(sqlite3.OperationalError):
        database.execute("PRAGMA journal_mode = WAL").fetchall()


def _check(database: sqlite3.Connection, need: Sums, limits: BudgetLimits, own: Iterable[Reserved]) -> Refusal | None:
    _charge_ended_processes(database)
    spent, reserved = _totals(database)
    mine = Sums()
    for ticket in own:
        mine = mine.plus(_sums(database.execute(f"{_SUM} WHERE number = ?", (ticket.number,))))
    return limits.refusal(need, spent, reserved, mine)


def _totals(database: sqlite3.Connection) -> tuple[Sums, Sums]:
    return _sums(database.execute("SELECT * FROM spent")), _sums(database.execute(_SUM))


def _sums(rows: sqlite3.Cursor) -> Sums:
    return Sums(*map(int, rows.fetchone()))


def _spend(database: sqlite3.Connection, charge: Sums) -> None:
    database.execute(
        "UPDATE spent SET calls = calls + ?, tokens = tokens + ?, money = money + ?, unpriced = unpriced + ?, "
        "estimated = estimated + ?",
        charge,
    )


def _charge_ended_processes(database: sqlite3.Connection) -> None:
    for (process,) in database.execute("SELECT DISTINCT process FROM reserved").fetchall():
        if not _is_running(process):
            held = _sums(database.execute(f"{_SUM} WHERE process = ?", (process,)))
            _spend(database, held._replace(estimated=held.calls))
            database.execute("DELETE FROM reserved WHERE process = ?", (process,))


# --- processes


def _process_name(pid: int) -> str:
    return f"{_boot_id()} {pid} {_start_time(pid)}"


def _is_running(process: str) -> bool:
    """Return False if the process has surely ended. Its row otherwise stays reserved."""
    boot, _, pid = process.rpartition(" ")[0].rpartition(" ")
    if boot != _boot_id() or not pid.isdecimal():
        return False
    if sys.platform == "win32":  # no signal 0 there: os.kill would end the process
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process == _process_name(int(pid))


@functools.cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:  # no Linux
        return "-"


def _start_time(pid: int) -> str:
    """Return the start of a process in ticks: a pid may be used again."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "-"
