"""The ledgers of budgets, and the queue of calls that wait for a reservation, under any interleaving."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.lm.policy.money.ledger import MemoryLedger
from sigwire.lm.policy.money.queue import BudgetAccount, Held, reserve, withdraw
from sigwire.lm.policy.money.store import FileLedger
from sigwire.lm.policy.money.sums import BudgetLimits, Refusal, Sums, units
from tests.files.processes import fork, statuses

ONE = Sums(calls=1)


def account(**limits: int) -> BudgetAccount:
    return BudgetAccount(BudgetLimits(**limits), MemoryLedger())


def held_of(outcome: Held | Future[Held] | Refusal) -> Held:
    assert isinstance(outcome, Held)
    return outcome


def future_of(outcome: Held | Future[Held] | Refusal) -> Future[Held]:
    assert isinstance(outcome, Future)
    return outcome


def refusal_of(outcome: Held | Future[Held] | Refusal) -> Refusal:
    assert isinstance(outcome, Refusal)
    return outcome


def test_units_round_up() -> None:
    assert units(1e-13) == 1
    assert units(0.1) * 3 == units(0.3)


def test_reservation_waits_while_the_rest_is_reserved() -> None:
    both = (account(calls=1),)
    first = held_of(reserve(both, ONE, ()))
    second = future_of(reserve(both, ONE, ()))
    assert not second.done()
    first.settle(Sums())
    assert second.done()
    second.result().settle(ONE)
    assert both[0].totals() == (ONE, Sums())


def test_waiting_calls_get_budget_spent_when_the_budget_is_spent() -> None:
    only = (account(calls=1),)
    first = held_of(reserve(only, ONE, ()))
    waiting = [future_of(reserve(only, ONE, ())) for _ in range(3)]
    first.settle(ONE)
    for future in waiting:
        with pytest.raises(BudgetSpent, match="1 of 1 calls"):
            future.result(0)


def test_reservation_is_refused_at_once_when_it_never_fits() -> None:
    only = (account(tokens=100),)
    refusal = refusal_of(reserve(only, Sums(1, 101), ()))
    assert refusal == Refusal("tokens", 0, 100, 101, True)


def test_reservation_is_refused_at_once_when_the_caller_holds_the_rest() -> None:
    only = (account(calls=1),)
    held = held_of(reserve(only, ONE, ()))
    assert refusal_of(reserve(only, ONE, (held,))).final
    future_of(reserve(only, ONE, ()))


def test_waiting_calls_are_served_in_order() -> None:
    only = (account(tokens=10),)
    first = held_of(reserve(only, Sums(1, 8), ()))
    large = future_of(reserve(only, Sums(1, 9), ()))
    small = future_of(reserve(only, Sums(1, 1), ()))
    assert not small.done()
    first.settle(Sums())
    assert large.done()
    assert small.done()


def test_nested_accounts_are_taken_all_or_none() -> None:
    outer, inner = account(calls=5), account(calls=1)
    held_of(reserve((outer, inner), ONE, ())).settle(ONE)
    assert refusal_of(reserve((outer, inner), ONE, ())).limit == 1
    assert outer.totals() == (ONE, Sums())
    future_of_outer = held_of(reserve((outer,), ONE, ()))
    future_of_outer.settle(ONE)
    assert outer.totals()[0].calls == 2


def test_final_refusal_of_an_inner_account_comes_before_a_wait_for_the_outer() -> None:
    outer, inner = account(calls=1), account(calls=0)
    held_of(reserve((outer,), ONE, ()))
    assert refusal_of(reserve((outer, inner), ONE, ())).final


def test_blocked_queue_blocks_later_queues_that_share_an_account() -> None:
    outer, inner = account(tokens=10), account(tokens=100)
    first = held_of(reserve((outer,), Sums(1, 6), ()))
    large = future_of(reserve((outer, inner), Sums(1, 9), ()))
    other = held_of(reserve((outer,), Sums(1, 4), ()))
    first.settle(Sums())
    assert not large.done()
    other.settle(Sums())
    assert large.done()


def test_withdrawing_from_the_queue_lets_the_next_call_pass() -> None:
    only = (account(tokens=10),)
    held_of(reserve(only, Sums(1, 5), ()))
    large = future_of(reserve(only, Sums(1, 9), ()))
    small = future_of(reserve(only, Sums(1, 5), ()))
    withdraw(large)
    assert large.cancelled()
    assert small.done()


def test_withdrawing_gives_back_a_reservation_that_was_just_made() -> None:
    only = (account(calls=1),)
    first = held_of(reserve(only, ONE, ()))
    second = future_of(reserve(only, ONE, ()))
    first.settle(Sums())
    withdraw(second)
    assert only[0].totals() == (Sums(), Sums())


def test_second_settlement_changes_nothing() -> None:
    only = (account(calls=3),)
    held = held_of(reserve(only, ONE, ()))
    held.settle(ONE)
    held.settle(ONE)
    assert only[0].totals() == (ONE, Sums())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_forked_child_forgets_reservations_and_queues_of_its_parent() -> None:
    only = (account(calls=2),)
    held_of(reserve(only, ONE, ())).settle(ONE)
    held = held_of(reserve(only, ONE, ()))
    future_of(reserve(only, ONE, ()))
    child = os.fork()
    if child == 0:
        good = False
        with contextlib.suppress(BaseException):
            held.settle(ONE)  # the parent's, left in a generator of the child
            good = only[0].totals() == (ONE, Sums()) and isinstance(reserve(only, ONE, ()), Held)
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    held.settle(Sums())


# --- the model: no interleaving exceeds a limit of calls


_ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(1, 4), st.integers(0, 3)),
        st.tuples(st.just("settle"), st.integers(0, 9), st.integers(0, 4)),
        st.tuples(st.just("withdraw"), st.integers(0, 9), st.just(0)),
    ),
    max_size=40,
)


@example([("reserve", 2, 0), ("reserve", 3, 1), ("reserve", 4, 0), ("reserve", 1, 1)], (4, 4))
@given(actions=_ACTIONS, limits=st.tuples(st.integers(0, 6), st.integers(0, 6)))
def test_ledger_never_exceeds_its_limits(actions: list[tuple[str, int, int]], limits: tuple[int, int]) -> None:
    outer, inner = account(tokens=limits[0]), account(tokens=limits[1])
    chains = ((outer,), (outer, inner), (inner,), (outer, inner))
    under_way: list[tuple[Held, int]] = []
    waiting: list[tuple[Future[Held], int]] = []
    charged = {outer: 0, inner: 0}
    for action, first, second in actions:
        if action == "reserve":
            outcome = reserve(chains[second], Sums(0, first), ())
            if isinstance(outcome, Held):
                under_way.append((outcome, first))
            elif isinstance(outcome, Future):
                waiting.append((outcome, first))
        elif action == "settle" and under_way:
            held, need = under_way.pop(first % len(under_way))
            accounts = [taken for taken, _ in held.tickets]
            used = min(second, need)
            held.settle(Sums(0, used))
            for taken in accounts:
                charged[taken] += used
        elif action == "withdraw" and waiting:
            future, _ = waiting.pop(first % len(waiting))
            withdraw(future)
        granted = [(future, need) for future, need in waiting if future.done() and not future.exception()]
        under_way += [(future.result(), need) for future, need in granted]
        waiting = [entry for entry in waiting if not entry[0].done()]
        for place, taken in enumerate((outer, inner)):
            spent, reserved = taken.totals()
            assert spent.tokens == charged[taken]
            assert spent.tokens + reserved.tokens <= limits[place]
            assert reserved.tokens == sum(
                need for held, need in under_way if any(one is taken for one, _ in held.tickets)
            )
    for held, _ in under_way:
        held.settle(Sums())
    while waiting:  # a call may wait for one that came later, to other accounts
        served = [future for future, _ in waiting if future.done()]
        assert served
        waiting = [entry for entry in waiting if not entry[0].done()]
        for future in served:
            if not future.exception():
                future.result().settle(Sums())
    assert [taken.totals()[1] for taken in (outer, inner)] == [Sums(), Sums()]


def test_threads_never_exceed_a_limit() -> None:
    only = (account(calls=50),)
    counts: list[str] = []

    def work(number: int) -> None:
        for _ in range(20):
            outcome = reserve(only, ONE, ())
            if isinstance(outcome, Refusal):
                counts.append("refused")
                continue
            try:
                held = outcome if isinstance(outcome, Held) else outcome.result(60)
            except BudgetSpent:
                counts.append("refused")
            else:
                counts.append("held")
                held.settle(ONE)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts.count("held") == 50
    assert only[0].totals() == (Sums(calls=50), Sums())


# --- the file


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "budget.sqlite3")


def test_file_ledger_is_shared_and_goes_on(path: str) -> None:
    first, second = FileLedger(path), FileLedger(path)
    ticket = first.take(ONE, BudgetLimits(calls=2), ())
    assert not isinstance(ticket, Refusal)
    assert second.totals() == (Sums(), ONE)
    second.settle(ticket, Sums(1, 30, units(0.25)))
    assert FileLedger(path).totals() == (Sums(1, 30, units(0.25)), Sums())


def test_file_ledger_refuses_a_reservation_when_the_caller_holds_the_rest(path: str) -> None:
    ledger = FileLedger(path)
    ticket = ledger.take(ONE, BudgetLimits(calls=1), ())
    assert not isinstance(ticket, Refusal)
    for own, final in (((), False), ((ticket,), True)):
        refusal = ledger.check(ONE, BudgetLimits(calls=1), own)
        assert refusal is not None
        assert refusal.final == final


def test_call_waits_for_the_disk_once(path: str) -> None:
    ledger, statements = FileLedger(path), list[str]()
    with ledger._database.reading() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.set_trace_callback(statements.append)
    ticket = ledger.take(ONE, BudgetLimits(calls=1), ())
    assert not isinstance(ticket, Refusal)
    ledger.settle(ticket, ONE)
    ends = [each for each in statements if each.startswith("PRAGMA synchronous") or each == "COMMIT"]
    assert ends == ["PRAGMA synchronous = FULL", "COMMIT", "PRAGMA synchronous = NORMAL", "COMMIT"]
    assert any(each.startswith("INSERT INTO reserved") for each in statements[: statements.index("COMMIT")])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_settlement_survives_the_kill_of_its_process(path: str) -> None:
    FileLedger(path)

    def settle_and_die() -> None:
        ledger = FileLedger(path)
        for _ in range(3):
            ticket = ledger.take(ONE, BudgetLimits(), ())
            assert not isinstance(ticket, Refusal)
        ledger.settle(ticket, Sums(1, 30))
        os.kill(os.getpid(), signal.SIGKILL)

    assert statuses([fork(settle_and_die)]) == [-signal.SIGKILL]
    ledger = FileLedger(path)
    assert ledger.check(ONE, BudgetLimits(), ()) is None
    assert ledger.totals() == (Sums(3, 30, estimated=2), Sums())


def test_ledger_of_an_earlier_version_goes_on_and_waits_for_the_disk_once(path: str) -> None:
    FileLedger(path)._database.close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
        database.execute("UPDATE spent SET calls = 4")
        database.commit()
    ledger = FileLedger(path)
    assert ledger.totals()[0].calls == 4
    with ledger._database.reading() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_file_ledger_is_readable_by_its_owner_only(path: str) -> None:
    FileLedger(path)
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_file_ledger_refuses_a_file_that_is_no_ledger(path: str) -> None:
    Path(path).write_text("not a database, but long enough to be read as one" * 100)
    with pytest.raises(ConfigurationError, match="cannot be used"):
        FileLedger(path)


def test_file_ledger_refuses_a_newer_format(path: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(ConfigurationError, match="another version"):
        FileLedger(path)


def test_file_ledger_refuses_another_database_without_a_change(path: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE stock (a)")
        database.execute("PRAGMA user_version = 1")
    before = Path(path).read_bytes()
    with pytest.raises(ConfigurationError, match="another kind of database"):
        FileLedger(path)
    assert Path(path).read_bytes() == before


def test_file_ledger_keeps_its_file_when_the_process_changes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = FileLedger("budget.sqlite3")
    monkeypatch.chdir("/")
    assert not isinstance(ledger.take(ONE, BudgetLimits(calls=1), ()), Refusal)


def test_reservation_of_another_boot_counts_as_spent(path: str) -> None:
    ledger = FileLedger(path)
    ledger.take(Sums(1, 500), BudgetLimits(), ())
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE reserved SET process = 'another-boot 1 5'")
    assert ledger.check(ONE, BudgetLimits(calls=2), ()) is None
    assert ledger.totals() == (Sums(1, 500, estimated=1), Sums())


def test_settling_a_missing_file_raises_nothing() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = FileLedger(f"{folder}/b.sqlite3")
        ticket = ledger.take(ONE, BudgetLimits(), ())
    assert not isinstance(ticket, Refusal)
    ledger.settle(ticket, ONE)
