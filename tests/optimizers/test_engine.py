"""The engine: resuming after a kill, budgets, failures of the provider, and the honesty of its comparison."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from sigwire.core.example import Example
from sigwire.core.request import Request
from sigwire.errors import LMServerError, StateError
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.money.budget import Budget
from sigwire.modules.predict import Predict
from sigwire.optimizers.errors import OptimizationInterrupted, SearchPaused
from sigwire.optimizers.reports.report import StopReason
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from sigwire.testing.fake_provider import FakeProvider
from tests.optimizers.stub import Stub, exact, label, number_of, rows, share, skill_of
from tests.optimizers.table import CALLS, TRAIN, VAL, outcome, student

ROOT = Path(__file__).parents[2]

# --- kill and resume -----------------------------------------------------------------------------------

_CHILD = """
import json, sys
import sigwire
from tests.optimizers.stub import pure_writer
from tests.optimizers.table import TABLE, TRAIN, VAL, student

url, name, journal, threads = *sys.argv[1:4], int(sys.argv[4])
lm = sigwire.LM("openai/gpt-4.1-mini", base_url=url, api_key="any", cache=False)
optimizer = TABLE[name](journal=journal, num_threads=threads)
optimizer.prompt_model = pure_writer()  # an answer depends on its request alone
program = optimizer.compile(student(lm), trainset=TRAIN, valset=VAL)
report = program.optimization
found = [trial.candidate.digest for trial in report.trials]
print(json.dumps([report.found.to_json(), report.winner.digest, found, report.scores, report.spent.runs]))
"""


class Search:
    """Searches in processes, against one counting server."""

    def __init__(self, provider: FakeProvider, journal: Path, name: str) -> None:
        self._provider, self._journal, self._name = provider, journal, name

    @property
    def requests(self) -> int:
        return len(self._provider.requests)

    def start(self, threads: int, hash_seed: int) -> subprocess.Popen[str]:
        arguments = [self._provider.url("openai"), self._name, str(self._journal), str(threads)]
        return subprocess.Popen(
            [sys.executable, "-c", _CHILD, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, threads: int, hash_seed: int = 0) -> Any:
        process = self.start(threads, hash_seed)
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        return json.loads(output)

    def kill_after(self, requests: int, threads: int, hash_seed: int) -> bool:
        """Kill a search after some requests; return False if it ended before."""
        process = self.start(threads, hash_seed)
        before = self.requests
        while process.poll() is None and self.requests < before + requests:
            time.sleep(0.001)
        is_alive = process.poll() is None
        if is_alive:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        return is_alive


class Draws:
    """A model that draws its answers at a temperature: by the ``seed`` of a request, else a new one for each request."""

    def __init__(self) -> None:
        self._count = count()

    def __call__(self, request: Request) -> str:
        time.sleep(0.004)
        number = number_of(request.messages[-1].text)
        assert number is not None
        draw = request.options.get("seed", next(self._count)) if request.options.get("temperature") else 0
        right = share(f"{number}/{draw}") < skill_of(request)
        return f"[[ ## answer ## ]]\n{label(number if right else number + 1)}\n\n[[ ## completed ## ]]"


def check_resumes(folder: Path, kills: int, seed: int, name: str = "BootstrapFewShotWithRandomSearch") -> None:
    source = random.Random(seed)
    with FakeProvider(Draws()) as provider:
        whole = Search(provider, folder / "whole.jsonl", name)
        expected = whole.finish(threads=4)
        paid = whole.requests
        search = Search(provider, folder / "killed.jsonl", name)
        in_flight = 0
        for number in range(kills):
            threads = source.choice((1, 2, 4, 8))
            if search.kill_after(source.randint(1, max(2, paid // kills)), threads, number):
                in_flight += threads
        assert search.finish(threads=source.choice((1, 3, 16)), hash_seed=99) == expected
        again = search.requests - paid
    assert paid <= again <= paid + in_flight
    assert search.requests == provider_count(provider)


def provider_count(provider: FakeProvider) -> int:
    return sum(record.status == 200 for record in provider.requests)


@pytest.mark.long
def test_killed_search_resumes_to_the_same_result_and_pays_no_run_twice(tmp_path: Path) -> None:
    check_resumes(tmp_path, kills=1, seed=0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "kills"),
    [
        ("BootstrapFewShotWithRandomSearch", 6),
        *((name, 2) for name in ("COPRO", "GEPA", "InferRules", "MIPROv2", "SIMBA")),
    ],
)
def test_search_that_is_killed_often_resumes_to_the_same_result(tmp_path: Path, name: str, kills: int) -> None:
    check_resumes(tmp_path, kills, 1, name)


@pytest.mark.parametrize("name", [*CALLS, "two rounds"])
def test_samples_of_a_search_have_seeds(name: str) -> None:
    made = BootstrapFewShot(exact, max_bootstrapped_demos=16, max_rounds=2) if name == "two rounds" else CALLS[name]()
    lm = Stub()
    made.compile(student(lm), trainset=TRAIN, valset=VAL)
    sampled = [request for request in lm.requests if request.options.get("temperature")]
    assert all("seed" in request.options for request in sampled)
    assert len(sampled) > 0 or name not in ("SIMBA", "two rounds")


def optimizer(**options: Any) -> BootstrapFewShotWithRandomSearch:
    return BootstrapFewShotWithRandomSearch(exact, max_labeled_demos=2, num_candidate_programs=4, **options)


def test_finished_search_is_read_from_its_journal_without_a_request(tmp_path: Path) -> None:
    journal, lm = tmp_path / "search.jsonl", Stub()
    first = optimizer(journal=journal, num_threads=3).compile(student(lm), trainset=TRAIN, valset=VAL)
    sent = len(lm.requests)
    again = optimizer(journal=journal, num_threads=1).compile(student(lm), trainset=TRAIN, valset=VAL)
    assert len(lm.requests) == sent
    assert outcome(again) == outcome(first)
    assert again.optimization.resumed == first.optimization.spent.runs


def test_torn_last_line_of_a_journal_is_one_run_more(tmp_path: Path) -> None:
    journal, lm = tmp_path / "search.jsonl", Stub()
    first = optimizer(journal=journal).compile(student(lm), trainset=TRAIN, valset=VAL)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-3]) + lines[-3][:40])
    lm = Stub()
    again = optimizer(journal=journal).compile(student(lm), trainset=TRAIN, valset=VAL)
    assert outcome(again) == outcome(first)
    assert 1 <= len(lm.requests) <= 3


@pytest.mark.parametrize("change", ["seed", "student", "rows", "option"])
def test_journal_of_another_search_is_refused_with_the_difference(tmp_path: Path, change: str) -> None:
    journal = tmp_path / "search.jsonl"
    optimizer(journal=journal).compile(student(Stub()), trainset=TRAIN, valset=VAL)
    program, train, other = student(Stub()), TRAIN, optimizer(journal=journal, seed=int(change == "seed"))
    if change == "student":
        program.signature = program.signature.with_instructions("Other.")
    if change == "rows":
        train = TRAIN[1:]
    if change == "option":
        other.max_rounds = 2
    wanted = {"option": "options"}.get(change, change)
    with pytest.raises(StateError, match=wanted):
        other.compile(program, trainset=train, valset=VAL)


# --- interrupts, budgets, the provider -----------------------------------------------------------------


class Interrupting(Stub):
    """The model of the task; Ctrl-C comes with its request number ``at``."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def _respond(self, request: Any) -> Any:
        if len(self.requests) == self.at:
            raise KeyboardInterrupt
        return super()._respond(request)


def test_changed_metric_of_the_same_name_does_not_resume(tmp_path: Path) -> None:
    def compile_with(metric: Any) -> None:
        BootstrapFewShot(metric, journal=tmp_path / "search.jsonl").compile(student(Stub()), trainset=TRAIN)

    compile_with(lambda example, prediction: example.answer == prediction.answer)
    compile_with(lambda example, prediction: example.answer == prediction.answer)
    with pytest.raises(StateError, match="metric `<lambda>`, `<lambda>`: body changed"):
        compile_with(lambda example, prediction: example.answer in {prediction.answer, "red", "blue"})


def test_interrupted_search_has_the_best_program_and_resumes(tmp_path: Path) -> None:
    lm, journal = Interrupting(at=60), tmp_path / "search.jsonl"
    whole = outcome(optimizer().compile(student(Stub()), trainset=TRAIN, valset=VAL))
    interrupted = optimizer(journal=journal, num_threads=1)
    with pytest.raises(OptimizationInterrupted, match="journal=") as caught:
        interrupted.compile(student(lm), trainset=TRAIN, valset=VAL)
    assert caught.value.report.reason is StopReason.INTERRUPTED
    assert isinstance(caught.value.program, Predict)
    again = optimizer(journal=journal).compile(student(lm), trainset=TRAIN, valset=VAL)
    assert outcome(again) == whole
    assert len(lm.requests) <= whole[-1] + 1


def test_run_is_paid_once_in_all_phases_of_a_search() -> None:
    lm = Stub()
    program = optimizer().compile(student(lm), trainset=TRAIN, valset=VAL, testset=rows(10, 500))
    assert len(lm.requests) == program.optimization.spent.runs
    messages = [repr(request.messages) for request in lm.requests]
    assert len(messages) - len(set(messages)) <= 4  # two candidates that differ in a row's own demo make one request


def test_provider_failures_are_made_again_and_never_scored() -> None:
    lm = Stub(failing=0.4)
    program = optimizer().compile(student(lm), trainset=TRAIN, valset=VAL)
    calm = optimizer().compile(student(Stub()), trainset=TRAIN, valset=VAL)
    assert program.optimization.scores == calm.optimization.scores
    assert program.optimization.spent.runs == calm.optimization.spent.runs


def test_paused_search_resumes_from_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "search.jsonl"
    stub, limit = Stub(), 40

    def answer(request: Request) -> Any:
        if len(lm.requests) > limit:
            raise LMServerError("down", model="m", provider="p")
        return stub._respond(request)

    lm = FakeLM(answer)
    with pytest.raises(SearchPaused, match="journal="):
        optimizer(journal=journal, num_threads=2).compile(student(lm), trainset=TRAIN, valset=VAL)
    paused, limit = len(lm.requests), 10_000
    program = optimizer(journal=journal).compile(student(lm), trainset=TRAIN, valset=VAL)
    assert outcome(program) == outcome(optimizer().compile(student(Stub()), trainset=TRAIN, valset=VAL))
    assert len(lm.requests) - paused == program.optimization.spent.runs - 40


def test_bootstrap_ends_at_enough_successes() -> None:
    lm = Stub(skill=lambda request: 1.0)
    BootstrapFewShot(exact, max_bootstrapped_demos=2).compile(student(lm), trainset=TRAIN)
    assert len(lm.requests) == 8  # one wave


# --- honesty: a task on which nothing can gain ---------------------------------------------------------


def null_search(seed: int) -> Any:
    """Search where the answer depends on the request by chance only."""

    def answer(request: Request) -> Any:
        return {"answer": "right" if share(f"{seed}/{request.messages!r}") < 0.5 else "wrong"}

    examples = [Example(question=f"q{seed}-{at}", answer="right").with_inputs("question") for at in range(80)]
    program = Predict("question -> answer", lm=FakeLM(answer))
    made = BootstrapFewShotWithRandomSearch(exact, num_candidate_programs=6, seed=seed, num_threads=1)
    return made.compile(program, trainset=examples[:20], valset=examples[20:50], testset=examples[50:])


@pytest.mark.parametrize("left", [0, 20])
def test_search_whose_last_runs_meet_a_budget_around_it_ends_with_that_reason(left: int) -> None:
    """``left``: calls of the budget beside those of the search until its rule has ended."""
    whole, test = optimizer().compile(student(Stub()), trainset=TRAIN, valset=VAL), rows(30, 500)
    calls = whole.optimization.spent.calls
    with Budget(calls=calls + left):
        found = optimizer().compile(student(Stub()), trainset=TRAIN, valset=VAL, testset=test).optimization
    assert (whole.optimization.reason, found.reason) == (StopReason.FINISHED, StopReason.BUDGET)
    assert found.spent.calls == calls + left


def check_honesty(reports: Sequence[Any], nominal: float) -> None:
    """Check that few searches return something else than the student, and which estimates are biased."""
    changed = sum(report.winner.digest != report.baseline.digest for report in reports)
    count = len(reports)
    assert changed <= nominal * count + 2 * (nominal * (1 - nominal) * count) ** 0.5
    selections = [report.estimate.selection - 0.5 for report in reports if report.found != report.baseline]
    tests = [report.estimate.test - 0.5 for report in reports if report.found != report.baseline]
    error = stdev(tests) / len(tests) ** 0.5
    assert abs(mean(tests)) <= 3 * error
    assert mean(selections) > (3 * stdev(selections) / len(selections) ** 0.5 if count >= 100 else 0)


def test_search_without_anything_to_gain_returns_the_student() -> None:
    check_honesty([null_search(seed).optimization for seed in range(5)], nominal=0.1)


@pytest.mark.long
def test_search_without_anything_to_gain_returns_the_student_over_100_seeds() -> None:
    check_honesty([null_search(seed).optimization for seed in range(100)], nominal=0.1)
