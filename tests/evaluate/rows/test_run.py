"""``RowRun``: records and journals of searches are equal in threads, in one thread, in tasks and on an executor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import COPRO, GEPA, BootstrapRS, Evaluate, Example, MIPROv2, Predict, Prediction
from sigwire.effects.emitting import Emit, stream
from sigwire.effects.steps import Steps, run
from sigwire.errors import BudgetSpent
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.rows.in_flight import RowsInFlight
from sigwire.evaluate.rows.run import FinishedRow, Row, RowExecutor, RowRun, RowsCaller
from sigwire.jobs.errors import JobRefused
from sigwire.jobs.journal import RowAttempt
from sigwire.lm.policy.money.budget import Budget
from sigwire.lm.policy.money.opened import open_budgets
from sigwire.settings import current
from tests.jobs import app
from tests.jobs.engines import InlineExecutor
from tests.optimizers.stub import Stub, exact, pure_writer, rows

_TIMES = frozenset({"started", "seconds", "num_threads"})


@contextmanager
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Answer by a pure model, also in workers: those of the test are threads."""
    lm = Stub()
    monkeypatch.setattr("sigwire.jobs.worker._lm_of", lambda job: lm)
    with sigwire.context(lm=lm):
        yield


@contextmanager
def executor(kind: str) -> Iterator[Any]:
    if kind == "executor":
        with ThreadPoolExecutor(2) as pool:
            yield pool
    else:
        yield None


def blanked(value: Any) -> Any:
    """Return JSON without times, and the last lines of tracebacks alone: the frames above are those of the place of the run."""
    if isinstance(value, list):
        return [blanked(item) for item in value]
    if not isinstance(value, dict):
        return value
    shown = {name: item for name, item in value.items() if name not in _TIMES}
    return {name: item.splitlines()[-2:] if name == "traceback" else blanked(item) for name, item in shown.items()}


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file of records in the order of their text: rows end in any order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return sorted(json.dumps(blanked(json.loads(line)), sort_keys=True) for line in lines)


# --- evaluations and searches ------------------------------------------------------------------------

_ODD = [Example(question=f"colour of {n}? fault", answer="red").with_inputs("question") for n in (3, 7)]
EVALUATIONS: dict[str, dict[str, Any]] = {
    "plain": {"devset": rows(12)},
    "repeats": {"devset": rows(5), "repeat": 3},
    "fresh": {"devset": rows(6), "fresh": True},
    "failures that are skipped": {"devset": [*rows(6), *_ODD], "errors": "skip"},
}


@pytest.mark.parametrize("options", EVALUATIONS.values(), ids=EVALUATIONS)
def test_records_do_not_depend_on_the_place_of_the_runs(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found: dict[str, list[str]] = {}
    for kind, threads in (("threads", 4), ("one thread", 1), ("executor", 4)):
        log = tmp_path / f"{kind}.jsonl"
        with stub(monkeypatch), executor(kind) as pool:
            Evaluate(metric=exact, progress=False, log=log, executor=pool, num_threads=threads, **options)(app.Answer())
        found[kind] = lines_of(log)
    assert len(found["threads"]) == len(options["devset"]) * options.get("repeat", 1) + 2
    assert found["one thread"] == found["threads"]
    assert found["executor"] == found["threads"]


SEARCHES: dict[str, Callable[..., Any]] = {
    "BootstrapRS": lambda **options: BootstrapRS(metric=exact, num_candidate_programs=2, **options),
    "MIPROv2": lambda **options: MIPROv2(metric=exact, prompt_model=pure_writer(), auto="light", **options),
    "GEPA": lambda **options: GEPA(metric=exact, max_metric_calls=40, reflection_lm=pure_writer(), **options),
    "COPRO": lambda **options: COPRO(prompt_model=pure_writer(), metric=exact, breadth=2, depth=1, **options),
}


@pytest.mark.parametrize("make", SEARCHES.values(), ids=SEARCHES)
def test_journal_of_a_search_does_not_depend_on_the_place_of_the_runs(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found: dict[str, Any] = {}
    for kind in ("threads", "executor"):
        journal = tmp_path / f"{kind}.jsonl"
        with stub(monkeypatch), executor(kind) as pool:
            optimizer = make(journal=journal, executor=pool, num_threads=4)
            program = optimizer.compile(Predict("question -> answer"), trainset=rows(8), valset=rows(8, 100))
        found[kind] = lines_of(journal), program.dump_state()
    assert len(found["threads"][0]) > 8
    assert found["executor"] == found["threads"]


# --- the caller --------------------------------------------------------------------------------------


class Caller(RowsCaller):
    """Keeps the ids of finished rows. ``most``: rows after which no more are wanted; ``raised``: taken errors."""

    def __init__(self, most: int = 1_000, *, takes: bool = False) -> None:
        self.kept: list[FinishedRow] = []
        self.raised: list[tuple[str, Exception]] = []
        self._most, self._takes = most, takes

    def fail(self, row: Row, error: Exception) -> None:
        if not self._takes:
            super().fail(row, error)
        self.raised.append((row.id, error))

    def keep(self, done: FinishedRow) -> Steps[None]:
        self.kept.append(done)
        yield from ()

    def is_over(self) -> bool:
        return len(self.kept) >= self._most


def rows_of(program: Any, questions: str) -> list[Row]:
    return [
        Row(lambda: program, Example(question=text).with_inputs("question"), text, index, 1, None, text)
        for index, text in enumerate(questions)
    ]


def run_here(caller: RowsCaller, program: Any, questions: str, **options: Any) -> Any:
    return run(RowRun(None, None, 1).steps(rows_of(program, questions), {**options}, caller))


def test_program_is_made_when_its_row_starts() -> None:
    made: list[str] = []

    def program_of(name: str) -> Any:
        made.append(name)
        return app.shout

    class Watching(Caller):
        def keep(self, done: FinishedRow) -> Steps[None]:
            assert made[-1] == done.row.id
            yield from super().keep(done)

    given = [
        Row(lambda name=text: program_of(name), Example(question=text).with_inputs("question"), text, index, 1, None)
        for index, text in enumerate("abc")
    ]
    caller = Watching()
    assert run(RowRun(None, None, 1).steps(given, {}, caller)).status == "complete"
    assert made == ["a", "b", "c"]


def test_no_row_starts_when_no_more_are_wanted() -> None:
    caller = Caller(most=2)
    assert run_here(caller, app.shout, "abcd").status == "stopped"
    assert [done.row.id for done in caller.kept] == ["a", "b"]


def _spent(question: str) -> Any:
    if question == "b":
        raise BudgetSpent("spent", part="calls", spent=1, limit=1, needed=1)
    return app.shout(question)


def test_error_that_is_no_failure_of_the_row_goes_to_the_caller() -> None:
    caller = Caller(takes=True)
    assert run_here(caller, _spent, "abc", raises=["caller"]).status == "complete"
    assert [name for name, _ in caller.raised] == ["b"]
    assert [done.row.id for done in caller.kept] == ["a", "c"]
    with pytest.raises(BudgetSpent):
        run_here(Caller(), _spent, "abc", raises=["caller"])


def test_prediction_is_an_object_here_and_none_on_an_executor() -> None:
    here, there = Caller(), Caller()
    run_here(here, app.shout, "a")
    run_of_rows = RowRun(None, None, 1, RowExecutor(InlineExecutor()))
    run(run_of_rows.steps(rows_of(app.shout, "a"), {}, there))
    assert here.kept[0].prediction.answer == "A"
    assert there.kept[0].prediction is None
    assert here.kept[0].record().outputs == there.kept[0].record().outputs == {"answer": "A"}


def test_end_of_a_refused_run_is_kept() -> None:
    run_of_rows = RowRun(None, None, 1, RowExecutor(InlineExecutor(), chunk=1))
    with pytest.raises(JobRefused):
        run(run_of_rows.steps(rows_of(app.faulty, "a"), {"raises": ["program", "caller", "metric"]}, Caller()))
    assert run_of_rows.end.status == "refused"


def test_rows_that_a_killed_run_left_in_the_journal_are_kept_and_not_sent(tmp_path: Path) -> None:
    journal = tmp_path / "log.jsonl.journal"
    left = [FinishedRow(row, Cell(None, outputs={"answer": "kept"}), "then", None) for row in rows_of(app.shout, "ab")]
    other = replace(left[0].row, id="c", example=Example(question="of another devset").with_inputs("question"))
    attempt = RowAttempt(journal / "block")
    for done in (*left, left[0]._replace(row=other)):
        attempt.done(done.record().to_json())
    attempt.close()
    caller, pool = Caller(), InlineExecutor()
    end = run(RowRun(None, None, 1, RowExecutor(pool)).steps(rows_of(app.shout, "abcd"), {}, caller, journal=journal))
    found = {done.row.id: (done.cell.outputs, done.started == "then") for done in caller.kept}
    assert end.status == "complete"
    assert found["a"] == found["b"] == ({"answer": "kept"}, True)
    assert found["c"] == ({"answer": "C"}, False)
    assert found.keys() == {*"abcd"}
    assert not journal.exists()


def test_rows_of_a_killed_run_are_on_disk_before_their_journal_is_removed(tmp_path: Path) -> None:
    journal = tmp_path / "log.jsonl.journal"
    attempt = RowAttempt(journal / "block")
    attempt.done(FinishedRow(rows_of(app.shout, "a")[0], Cell(1.0), "then", None).record().to_json())
    attempt.close()
    found: list[tuple[int, bool]] = []

    class Synced(Caller):
        def sync(self) -> None:
            found.append((len(self.kept), journal.exists()))

    run_of_rows = RowRun(None, None, 1, RowExecutor(InlineExecutor()))
    run(run_of_rows.steps(rows_of(app.shout, "a"), {}, Synced(), journal=journal))
    assert found[0] == (1, True)


@pytest.mark.parametrize("kind", ["one thread", "threads", "executor"])
def test_budget_and_settings_of_rows_end_before_a_row_is_kept_or_drawn(kind: str) -> None:
    def seen() -> tuple[bool, int]:
        return current().fresh, len(open_budgets())

    found: dict[str, set[tuple[bool, int]]] = {"program": set(), "keep": set(), "draw": set()}

    class Watching(Caller):
        def keep(self, done: FinishedRow) -> Steps[None]:
            found["keep"].add(seen())
            yield Emit(done.row.id)

    def program() -> Any:
        found["program"].add(seen())
        return app.shout

    def drawn() -> Iterator[Row]:
        for text in "abc":
            found["draw"].add(seen())
            yield Row(program, Example(question=text).with_inputs("question"), text, 0, 1, None)

    sending = RowExecutor(InlineExecutor(), chunk=1) if kind == "executor" else None
    run_of_rows = RowRun(None, None, 1 if kind == "one thread" else 2, sending)
    for event in stream(run_of_rows.steps(drawn(), {}, Watching(), budget=Budget(calls=9), settings={"fresh": True})):
        assert seen() == (False, 0), event
    assert found["keep"] == found["draw"] == {(False, 0)}
    assert {fresh for fresh, _ in found["program"]} == {True}


def test_row_that_kills_its_worker_has_a_failure_of_the_worker() -> None:
    caller = Caller()
    given = [
        Row(app.Answer, Example(question="death").with_inputs("question"), "1", 0, 1, None),
    ]
    end = run(RowRun(None, None, 1, RowExecutor(InlineExecutor())).steps(given, {}, caller))
    cells: list[Cell] = [done.cell for done in caller.kept]
    assert [cell.failure.kind for cell in cells if cell.failure is not None] == ["worker"]
    assert end.lost == 3


def test_rows_inside_interrupted_rows_start_no_more_and_end_by_the_interrupt() -> None:
    outer, started, inside = RowsInFlight("point"), list[int](), RowsInFlight()

    def row(number: int) -> Steps[None]:
        started.append(number)
        outer._is_interrupted = number == 1  # pyright: ignore[reportPrivateUsage]
        yield from ()

    def point() -> Steps[None]:
        yield from inside.gather([row(0), row(1), row(2)], 1, print)

    with pytest.raises(KeyboardInterrupt):
        run(outer.gather([point()], 1, print))
    assert started == [0, 1]


def test_sample_of_a_repeat_is_within_that_of_the_context() -> None:
    seen: list[object] = []

    def program(question: str) -> Prediction:
        seen.append(current().rollout_id)
        return Prediction(answer=question)

    rows = [Example(question="2+2?").with_inputs("question")]
    evaluate = Evaluate(devset=rows, metric=lambda example, prediction: True, repeat=2, progress=False, num_threads=1)
    evaluate(program)
    with sigwire.context(rollout_id=3):
        evaluate(program)
    assert seen == [None, 2, 3, "3/2"]
