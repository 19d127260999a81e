"""Progress of searches: log lines, a terminal's line, a function; and the tokens and money of a plan."""

from __future__ import annotations

import asyncio
import io
import json
from functools import reduce
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.example import Example
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.money.estimates import input_bound
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.engine.search import Rows
from sigwire.optimizers.engine.spending import Spending, read_budget
from sigwire.optimizers.events import Dropped, Kept, Measured, Proposed, SearchEvent, Spent, Warned
from sigwire.optimizers.judge import Judge, ScoreTable
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.progress import SearchProgress, SearchReporter
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from sigwire.optimizers.task import Task
from sigwire.signatures.types.history import History
from tests.optimizers.stub import Stub, exact, pure_writer, rows
from tests.optimizers.table import CALLS, TRAIN, VAL, student


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SIGWIRE_PROGRESS", "CI", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class FakeSearch:
    """A search on a fake clock: each run takes ten seconds, and costs two calls and ten cents."""

    def __init__(self, mode: object, stream: io.StringIO, budget: object = None, expect: Any = lambda: 40) -> None:
        self.now, table = 0.0, ScoreTable()
        self.spending = Spending(read_budget(budget), self.clock)
        self.task = Task(
            Candidate(),
            Candidate(),
            {},
            {},
            (),
            tuple("abcdefgh"),
            Judge(table),
            0,
            "",
            frozenset(),
            lambda row: rows(1)[0],
        )
        self.reporter = SearchReporter(
            "Search", "exact", self.task, self.spending, expect, mode, clock=self.clock, stream=stream
        )
        self.candidates: dict[str, Candidate] = {}

    def clock(self) -> float:
        return self.now

    def measure(self, candidate: Candidate, score: float = 1.0) -> None:
        self.candidates[candidate.digest] = candidate
        for row in self.task.val:
            self.now += 10
            self.task.judge.table.put(candidate.digest, row, 0, score)
            cost = Spent(runs=1, calls=2, money=0.1)
            self.reporter.ran(cost)
            self.spending.add(cost)
        self.reporter.settle(self.candidates)

    def tell(self, *events: SearchEvent) -> None:
        for event in events:
            self.reporter.event(event)


BETTER = Candidate({"self.instructions": "Better."})


def test_log_has_a_line_for_each_trial_with_score_calls_money_and_the_time_left() -> None:
    stream = io.StringIO()
    search = FakeSearch("log", stream)
    search.measure(search.task.baseline, 0.5)
    search.tell(Proposed(BETTER))
    search.measure(BETTER)
    search.tell(Measured(BETTER, 1.0, 4), Measured(BETTER, 1.0, 8), Kept(BETTER, "better"))
    search.reporter.close("finished")
    lines = [line for line in stream.getvalue().splitlines() if "trial 1" in line or "finished" in line]
    assert lines == [
        "sigwire.optimize trial 1  exact 1.000±0.186 on 8 rows  measured  32 calls  $1.60  ≈4:00 left",
        "sigwire.optimize trial 1  exact 1.000±0.186 on 8 rows  kept: better  32 calls  $1.60  ≈4:00 left",
        "sigwire.optimize Search 100%  trials 1  exact 1.000±0.186 (student 0.500)  32 calls  $1.60  2:40 elapsed, finished",
    ]


def test_terminal_has_one_line_that_is_rewritten_and_a_line_for_each_trial() -> None:
    stream = Terminal()
    search = FakeSearch("auto", stream)
    search.measure(search.task.baseline, 0.5)
    search.tell(Proposed(BETTER), Dropped(BETTER, "worse"))
    search.reporter.close("budget")
    stays, last = [line.split("\r")[-1] for line in stream.getvalue().strip().split("\n")]
    assert "trial 1  exact …  dropped: worse" in stays
    assert last.startswith("100%")
    assert last.rstrip().endswith("1:20 budget")


@pytest.mark.parametrize(("budget", "share"), [(None, 0.2), (32, 0.5), (8, 0.99)])
def test_share_is_that_of_the_plan_or_of_the_budget(budget: int | None, share: float) -> None:
    seen: list[SearchProgress] = []
    search = FakeSearch(seen.append, io.StringIO(), budget)
    search.measure(search.task.baseline)
    search.reporter.ran(Spent())
    assert (seen[-1].share, seen[-1].spent.runs, seen[-1].expected_runs) == (share, 8, 40)


def test_finished_runs_of_a_journal_do_not_count_as_quick_ones() -> None:
    seen: list[SearchProgress] = []
    search = FakeSearch(seen.append, io.StringIO(), 40)
    search.spending.add(Spent(runs=10, calls=20))
    search.reporter.settle({})
    search.measure(search.task.baseline)
    assert (seen[-1].share, seen[-1].remaining) == (0.9, pytest.approx(20.0))


def test_time_left_is_unknown_when_the_plan_fails() -> None:
    seen: list[SearchProgress] = []
    search = FakeSearch(seen.append, io.StringIO(), expect=lambda: 1 // 0)
    search.measure(search.task.baseline)
    search.reporter.close("finished")
    assert (seen[-1].expected_runs, seen[-1].remaining) == (None, None)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("is_async", [False, True])
def test_function_receives_the_progress_of_each_optimizer(name: str, is_async: bool) -> None:
    seen: list[SearchProgress] = []
    optimizer = CALLS[name](progress=seen.append, num_threads=2)
    if is_async:
        program: Any = asyncio.run(optimizer.acompile(student(Stub()), trainset=TRAIN, valset=VAL))
    else:
        program = optimizer.compile(student(Stub()), trainset=TRAIN, valset=VAL)
    report = program.optimization
    assert [each.status for each in seen[:-1]] == ["running"] * (len(seen) - 1)
    assert seen[-1].status == "finished"
    assert seen[-1].spent == report.spent
    assert seen[-1].trials == sum(trial.origin != "" for trial in report.trials)
    assert len(seen) == report.spent.runs + 1


def test_search_that_fails_ends_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(example: Any, prediction: Any, trace: object = None) -> bool:
        raise KeyError("broken")

    with pytest.raises(Exception, match="broken"):
        BootstrapFewShotWithRandomSearch(broken, progress="log").compile(student(Stub()), trainset=TRAIN, valset=VAL)
    assert capsys.readouterr().err.splitlines()[-1].endswith("interrupted")


@pytest.mark.parametrize("mode", [3, "bar"])
def test_unknown_mode_is_refused_before_any_call(mode: Any) -> None:
    lm = Stub()
    with pytest.raises(ConfigurationError, match="progress"):
        BootstrapFewShot(exact, progress=mode).compile(student(lm), trainset=TRAIN)
    assert lm.requests == []


# --- warnings and reasons


@pytest.mark.parametrize("changes", [{}, {"answer": "another label"}])
def test_overlap_of_training_and_validation_rows_is_a_warning_at_the_start(
    changes: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[SearchEvent] = []
    val = [Example(**{**dict(row.items()), **changes}).with_inputs("question") for row in TRAIN[:4]]
    optimizer = BootstrapFewShotWithRandomSearch(
        exact, num_candidate_programs=1, max_labeled_demos=0, on_event=seen.append, progress="log"
    )
    report = optimizer.compile(student(Stub()), trainset=TRAIN, valset=[*val, *VAL]).optimization
    assert isinstance(seen[0], Warned)
    assert seen[0].text.startswith(f"4 of {len(VAL) + 4} validation rows are training rows too")
    assert seen[0].text in report.warnings
    assert f"sigwire.optimize warning: {seen[0].text}" in capsys.readouterr().err


@pytest.mark.parametrize("value", [Message.user, lambda text: History([{"question": text}])])
def test_rows_whose_long_inputs_differ_at_their_ends_do_not_overlap(value: Any) -> None:
    train, val = ([Example(text=value("x" * 1_000 + end), answer="a").with_inputs("text")] for end in "ab")
    assert Rows.of(train, val, []).warnings() == []
    assert len(Rows.of(train, train, []).warnings()) == 1


def test_report_names_the_reason_when_no_candidate_was_better() -> None:
    optimizer = BootstrapFewShotWithRandomSearch(lambda example, prediction, trace=None: 0.0, num_candidate_programs=1)
    report = optimizer.compile(student(Stub()), trainset=TRAIN, valset=VAL).optimization
    assert report.winner == report.baseline
    assert report.kept_student
    assert report.kept_student in report.headline


# --- tokens and money of a plan


@pytest.fixture(autouse=True)
def prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Price the models "cheap" and "dear"."""
    path = tmp_path / "prices.json"
    table = {"cheap": {"input": 1.0, "output": 4.0}, "dear": {"input": 1000.0, "output": 4000.0}}
    path.write_text(json.dumps(table))
    monkeypatch.setenv("SIGWIRE_PRICES", str(path))


def priced(lm: Any = None) -> Any:
    return Predict("question -> answer", lm=lm or Stub(model="cheap", max_tokens=50))


def test_plan_has_bounds_of_tokens_and_money_that_hold() -> None:
    def make() -> Optimizer:
        return BootstrapFewShotWithRandomSearch(exact, num_candidate_programs=4, max_labeled_demos=0, reuse=False)

    lm = Stub(model="cheap", max_tokens=50)
    plan = make().plan(priced(lm), TRAIN, VAL)
    assert lm.requests == []
    make().compile(priced(lm), trainset=TRAIN, valset=VAL)
    read, written = sum(input_bound(each) for each in lm.requests) / 1.15, 15 * len(lm.requests)
    money = (read + 4 * written) / 1e6
    assert plan.tokens is not None
    assert plan.money is not None
    assert plan.tokens.min <= read + written <= plan.tokens.max
    assert plan.tokens.min < plan.tokens.expected < plan.tokens.max
    assert plan.money.min <= money <= plan.money.max
    assert f"{plan.tokens} tokens; {plan.money}" in str(plan)


def test_plan_counts_the_demos_of_candidates() -> None:
    def most(demos: int) -> int:
        optimizer = BootstrapFewShotWithRandomSearch(
            exact, num_candidate_programs=4, max_labeled_demos=0, max_bootstrapped_demos=demos
        )
        tokens = optimizer.plan(priced(LM("openai/gpt-4.1-mini", max_tokens=50)), TRAIN, VAL).tokens
        assert tokens is not None
        return tokens.max

    assert most(8) > 2 * most(1)


def test_plan_counts_the_writing_model_with_its_own_price() -> None:
    def money(model: str) -> float:
        writer = FakeLM(lambda request: "", model=model)
        found = COPRO(writer, exact, breadth=3, depth=2).plan(priced(), TRAIN, VAL).money
        assert found is not None
        return found.expected

    assert money("dear") > 10 * money("cheap")


def test_plan_without_a_price_or_a_model_has_no_money() -> None:
    optimizer = BootstrapFewShot(exact)
    unpriced = optimizer.plan(student(Stub()), TRAIN)
    assert (unpriced.tokens is not None, unpriced.money) == (True, None)
    without = optimizer.plan(Predict("question -> answer"), TRAIN)
    assert (without.tokens, without.money, without.calls.max) == (None, None, len(TRAIN))


def test_plan_runs_no_code_of_the_program_and_asks_no_model() -> None:
    class Program(Module):
        def __init__(self) -> None:
            super().__init__()
            self.step = priced(lm)

        def forward(self, question: str) -> Any:
            raise AssertionError("the program ran")

    def refuse(request: Request) -> Any:
        raise AssertionError("a model was asked")

    lm = FakeLM(refuse, model="cheap")
    plan = COPRO(pure_writer(), exact, breadth=3, depth=2).plan(Program(), TRAIN, VAL)
    assert plan.tokens is not None
    assert plan.tokens.expected > plan.calls.expected * 50


def test_money_of_runs_is_the_same_in_any_order() -> None:
    costs = [0.1, 0.2, 0.3, 0.0000264, 0.0011121]
    totals = {reduce(Spent.plus, [Spent(money=cost) for cost in order]).money for order in permutations(costs)}
    assert totals == {0.6011385}
