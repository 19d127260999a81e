"""Every optimizer: same results for any number of threads, budgets, plans, untouched inputs, honest errors."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.core.example import Example, Prediction
from sigwire.core.json import dumps
from sigwire.core.tools.calls import ToolCall
from sigwire.evaluate.scores import MetricError
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.reports.report import StopReason
from sigwire.settings import context, current
from tests.optimizers.stub import Stub, exact, share
from tests.optimizers.table import CALLS, CHOOSES, TABLE, TRAIN, UNLISTED, VAL, outcome, student

ROOT = Path(__file__).parents[2]
SLOW = {"BetterTogether", "BootstrapFewShotWithOptuna", "InferRules", "MIPROv2", "SIMBA"}
"""Optimizers whose rows `make test` leaves out; the tests of their rules are in it."""


def rows_of(table: Iterable[str]) -> Any:
    names = [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in table]
    return pytest.mark.parametrize("name", names)


EVERY, RUNS = rows_of(TABLE), rows_of(CALLS)


def compiled(name: str, lm: Any = None, metric: Any = exact, **options: Any) -> Any:
    return TABLE[name](metric, **options).compile(student(lm or Stub()), trainset=TRAIN, valset=VAL)


# --- 1: the same seed


@EVERY
@pytest.mark.long
def test_same_seed_gives_the_same_result_for_any_number_of_threads(name: str) -> None:
    first = outcome(compiled(name, num_threads=1))
    assert outcome(compiled(name, num_threads=4)) == first
    assert outcome(compiled(name, num_threads=16)) == first


@EVERY
async def test_awaited_search_gives_the_result_of_the_blocking_one(name: str) -> None:
    optimizer = TABLE[name](num_threads=4)
    awaited = await optimizer.acompile(student(Stub()), trainset=TRAIN, valset=VAL)
    assert outcome(awaited) == outcome(await asyncio.to_thread(compiled, name, num_threads=2))


@pytest.mark.parametrize("name", ["BootstrapFewShotWithRandomSearch", "LabeledFewShot"])
def test_another_seed_gives_other_demos(name: str) -> None:
    found = {dumps(outcome(compiled(name, seed=seed))[1]) for seed in range(4)}
    assert len(found) > 1


_CHILD = """
import json
from tests.optimizers.table import TABLE, TRAIN, VAL, student
from tests.optimizers.stub import Stub
found = {}
for name, make in TABLE.items():
    report = make(num_threads=3).compile(student(Stub()), trainset=TRAIN, valset=VAL).optimization
    found[name] = [report.found.digest, [trial.candidate.digest for trial in report.trials], report.spent.runs]
print(json.dumps(found))
"""


@pytest.mark.long
def test_hash_seed_of_the_process_changes_no_result() -> None:
    found = []
    for seed in ("1", "77"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", _CHILD], env=env, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]


# --- 3: plans and budgets


@EVERY
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.long
def test_calls_are_within_the_plan(name: str, seed: int) -> None:
    lm = Stub()
    optimizer = TABLE[name](seed=seed)
    plan = optimizer.plan(student(lm), TRAIN, VAL)
    assert lm.requests == []
    report = optimizer.compile(student(lm), trainset=TRAIN, valset=VAL).optimization
    assert plan.calls.min <= report.spent.calls <= plan.calls.max
    assert report.spent.runs == len(lm.requests) + report.reused


@RUNS
@pytest.mark.parametrize("budget", [1, 7, 20, 33, 60])
def test_budget_is_never_exceeded_and_the_best_until_then_is_returned(name: str, budget: int) -> None:
    lm = Stub()
    program = compiled(name, lm, budget=budget, num_threads=4)
    assert len(lm.requests) <= budget
    report = program.optimization
    assert report.spent.calls == len(lm.requests) + report.spent.writing_calls <= budget
    assert report.reason in (StopReason.BUDGET, StopReason.FINISHED)


@rows_of(CHOOSES)
@pytest.mark.long
def test_budget_of_the_most_planned_calls_changes_nothing(name: str) -> None:
    most = TABLE[name]().plan(student(Stub()), TRAIN, VAL).calls.max
    assert outcome(compiled(name, budget=most + 1)) == outcome(compiled(name))


# --- 4: nothing of the caller is changed


class Stateful:
    """A tool's resource that cannot be copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls = 0

    def look(self, word: str) -> str:
        """Look up a word."""
        with self.lock:
            self.calls += 1
        return f"about {word}"

    async def save(self, word: str) -> str:
        """Save a word."""
        await asyncio.sleep(0)
        return "saved"


def _state(program: Any) -> Any:
    return (
        dumps(program.dump_state()),
        [(id(each.signature), id(each.lm), each.config, list(each.demos)) for each in program.predictors()],
        program._compiled,
    )


def _world() -> Any:
    loggers = {
        name: (logging.getLogger(name).level, logging.getLogger(name).disabled, tuple(logging.getLogger(name).filters))
        for name in ("", "optuna", "optuna.storages._in_memory", "httpx")
    }
    return random.getstate(), loggers, repr(current())


@EVERY
@pytest.mark.parametrize("fails", [False, True])
def test_search_changes_nothing_of_the_caller(name: str, fails: bool) -> None:
    def metric(example: Any, prediction: Any, trace: object = None) -> bool:
        if fails and example.question == TRAIN[9].question:
            raise ZeroDivisionError
        return exact(example, prediction)

    lm = Stub()
    program = student(lm)
    program.demos = [Example(question="colour of 4?", answer="red")]
    train, val = list(TRAIN), list(VAL)
    texts = [dumps(each.to_json()) for each in (*train, *val)]
    before = _state(program), _world()
    try:
        made = TABLE[name](metric).compile(program, trainset=train, valset=val)
    except ZeroDivisionError:
        assert fails
    else:
        assert made is not program
        assert made.lm is lm
    assert (_state(program), _world()) == before
    assert train == TRAIN
    assert val == VAL
    assert [dumps(each.to_json()) for each in (*train, *val)] == texts


# --- 5: errors are no scores


@RUNS
@pytest.mark.parametrize("value", [None, float("nan"), "good"])
def test_metric_without_a_score_stops_the_search_at_once(name: str, value: Any) -> None:
    lm = Stub()
    with pytest.raises(MetricError):
        compiled(name, lm, lambda example, prediction, trace=None: value, num_threads=2)
    assert len(lm.requests) <= 8


@RUNS
def test_exception_of_the_metric_stops_the_search_with_its_traceback(name: str) -> None:
    def metric(example: Any, prediction: Any, trace: object = None) -> bool:
        raise KeyError("my own mistake")

    lm = Stub()
    with pytest.raises(KeyError, match="my own mistake") as caught:
        compiled(name, lm, metric, num_threads=2)
    assert "metric" in [entry.name for entry in caught.traceback]
    assert len(lm.requests) <= 8


@RUNS
@pytest.mark.long
def test_provider_that_fails_for_a_fifth_changes_no_score(name: str) -> None:
    calm, failing = compiled(name, Stub()), compiled(name, Stub(failing=0.2))
    assert outcome(failing)[:-1] == outcome(calm)[:-1]


@RUNS
def test_provider_that_never_answers_pauses_the_search(name: str) -> None:
    lm = FakeLM(lambda request: sigwire.errors.LMServerError("down", model="m", provider="p"))
    with pytest.raises(sigwire.errors.LMError, match="down"):
        compiled(name, lm)
    assert len(lm.requests) < 200


# --- 6: successes


@pytest.mark.parametrize("name", ["BootstrapFewShot", "KNNFewShot", "BootstrapFewShotWithRandomSearch"])
def test_score_of_zero_with_feedback_never_makes_a_demo(name: str) -> None:
    def metric(example: Any, prediction: Any, trace: object = None) -> Any:
        return Prediction(score=0.0, feedback="wrong, but a true object")

    program = compiled(name, metric=metric, if_worse="return")
    assert not any(demo.get("augmented") for demo in program.demos)


def test_threshold_of_zero_counts_as_a_threshold() -> None:
    optimizer = TABLE["BootstrapFewShot"](lambda *_: 0.0)
    optimizer.metric_threshold = 0.0
    program = optimizer.compile(student(Stub()), trainset=TRAIN)
    assert sum(bool(demo.get("augmented")) for demo in program.demos) == 4


# --- 7: rows of the validation set


@RUNS
def test_no_candidate_is_run_on_its_own_demos_and_shows_no_validation_row(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, frozenset[str]]] = []
    lm = Stub()

    def check(request: Any) -> Any:
        *_, asked = request.messages
        shown.append((asked.text, frozenset(each.text for each in request.messages[:-1] if each.role == "user")))
        return lm._respond(request)

    compiled(name, FakeLM(check))
    numbers = {"".join(filter(str.isdigit, each.question)) for each in VAL}
    for asked, demos in shown:
        seen = {"".join(filter(str.isdigit, text)) for text in demos}
        assert seen.isdisjoint(numbers)
        assert "".join(filter(str.isdigit, asked)) not in seen


# --- 8: tools


@EVERY
def test_tools_with_locks_and_async_handlers_are_shared_and_work(name: str) -> None:
    resource = Stateful()
    tools = [resource.look, resource.save]

    def answer(request: Any) -> Any:
        number = "".join(filter(str.isdigit, str(request.messages)))[-1:] or "0"
        names = {result.name for result in request.messages[-1].tool_results}
        if "save" in names:
            return ToolCall(f"s{number}", "submit", {"answer": "x" if share(repr(request.messages)) < 0.7 else "y"})
        if names:
            return ToolCall(f"b{number}", "save", {"word": "x"})
        return ToolCall(f"a{number}", "look", {"word": "x"})

    examples = [Example(question=f"q{at}", answer="x").with_inputs("question") for at in range(20)]
    agent = ReAct("question -> answer", tools=tools)
    agent.set_lm(FakeLM(answer))
    program = TABLE[name](num_threads=3, if_worse="return").compile(agent, trainset=examples[:8], valset=examples[8:])
    assert all(program.toolbox.tools[key] is tool for key, tool in agent.toolbox.tools.items())
    before = resource.calls
    assert program(question="new").answer in ("x", "y")
    assert resource.calls == before + 1


# --- 11: results


@EVERY
def test_saved_program_makes_the_same_request(name: str, tmp_path: Path) -> None:
    program = compiled(name, if_worse="return")
    program.lm = None
    program.save(tmp_path / "program.json")
    loaded: Any = Predict("question -> answer")
    loaded.load(tmp_path / "program.json")
    sent = []
    for each in (program, loaded):
        lm = Stub()
        with context(lm=lm):
            each(question="colour of 999?")
        sent.append(lm.requests)
    assert sent[0] == sent[1]


@EVERY
def test_candidate_programs_are_scored_best_first_and_plain(name: str) -> None:
    program = compiled(name)
    report = program.optimization
    json.dumps([report.winner.to_json(), report.scores, [trial.mean for trial in report.trials]])
    listed = getattr(program, "candidate_programs", None)
    if listed is None:
        assert name not in CHOOSES or name in UNLISTED
        return
    json.dumps(listed.to_json())
    full = [each["score"] for each in listed if len(each["subscores"]) == len(VAL)]
    assert full == sorted(full, reverse=True)
    assert full[0] == max(full)
    assert isinstance(listed[0]["program"], Module)
    assert listed[0]["program"] is not listed[0]["program"]
    assert "candidate_programs" not in vars(listed[0]["program"])


@EVERY
def test_compiled_program_can_be_compiled_again(name: str) -> None:
    again = TABLE[name]().compile(compiled(name), trainset=TRAIN, valset=VAL)
    assert len(again.demos) <= 18


@pytest.mark.parametrize("cls", [type(make()) for make in TABLE.values()], ids=lambda cls: cls.__name__)
def test_optimizer_states_its_cost(cls: type[Optimizer]) -> None:
    text = cls.__doc__ or ""
    assert "Cost:" in text or "Cost," in text or "No call is made" in text


def test_rules_open_no_file() -> None:
    folder = Path(sys.modules[Optimizer.__module__].__file__ or "").parent / "rules"
    for path in sorted(folder.glob("*.py")):
        assert "open(" not in path.read_text(), path.name
