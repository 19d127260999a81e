"""Errors of a search: rows that do not fit the program, options of a wrong kind, journals of another model, and cancelling."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sigwire.core.example import Example
from sigwire.errors import ConfigurationError, InputError, StateError
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.money.budget import Budget
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from tests.optimizers.stub import Stub, exact, rows
from tests.optimizers.table import student

MISSPELT = [Example(qestion="colour of 3?", answer="grey").with_inputs("qestion")]


class NamedStub(Stub):
    """A stub with a name of its own."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self.model = model


def search(metric: Any = exact, **options: Any) -> BootstrapFewShotWithRandomSearch:
    return BootstrapFewShotWithRandomSearch(metric, num_candidate_programs=1, **options)


@pytest.mark.parametrize("part", ["trainset", "valset", "testset"])
def test_rows_with_inputs_that_the_student_lacks_are_refused_before_any_call(part: str) -> None:
    sets: dict[str, Any] = {"trainset": rows(4), "valset": rows(4, 100), part: MISSPELT}
    lm = Stub()
    with pytest.raises(InputError, match=f"Example 0 of the {part} .* Did you mean question?"):
        search().compile(student(lm), **sets)
    with pytest.raises(InputError, match=part):
        search().plan(student(lm), **sets)
    assert not lm.requests


@pytest.mark.parametrize("is_awaited", [False, True])
def test_rows_by_position_are_refused_with_what_to_write(is_awaited: bool) -> None:
    optimizer: Any = search()

    def compiled() -> object:
        arguments = student(Stub()), rows(4)
        return asyncio.run(optimizer.acompile(*arguments)) if is_awaited else optimizer.compile(*arguments)

    with pytest.raises(ConfigurationError, match=r"rows by name \(compiling\).*compile\(program, trainset=rows\)"):
        compiled()


def test_teacher_that_is_no_module_is_refused() -> None:
    teacher: Any = exact
    with pytest.raises(InputError, match="A teacher of BootstrapFewShotWithRandomSearch is a module of sigwire"):
        search().compile(student(Stub()), trainset=rows(4), teacher=teacher)


@pytest.mark.parametrize("option", ["confidence", "timeout", "tune"])
def test_option_of_another_type_is_refused_by_name(option: str) -> None:
    options: dict[str, Any] = {option: 7 if option == "tune" else "0.9"}
    with pytest.raises(ConfigurationError, match=f"{option} is "):
        search(**options)


@pytest.mark.parametrize("option", ["task_model", "prompt_model", "teacher_settings"])
def test_journal_of_a_search_with_another_model_is_refused(option: str, tmp_path: Path) -> None:
    def compiled(name: str) -> object:
        lm: Any = NamedStub(name)
        options: dict[str, Any] = {option: {"lm": lm} if option == "teacher_settings" else lm}
        return search(journal=tmp_path / "search.jsonl", **options).compile(student(Stub()), trainset=rows(4))

    compiled("first")
    with pytest.raises(StateError, match=r"was first, is second"):
        compiled("second")


def test_report_counts_failed_runs_by_class() -> None:
    def broken(example: Any, prediction: Any, trace: object = None) -> float:
        raise KeyError("order")

    report = search(broken, errors="score").compile(student(Stub()), trainset=rows(4), valset=rows(4, 9)).optimization
    assert any("runs of the program failed" in each and "KeyError" in each for each in report.warnings)


def test_report_counts_answers_of_the_writing_model_that_cannot_be_used() -> None:
    writer = FakeLM(lambda request: "no idea")
    report = COPRO(writer, exact, breadth=2, depth=1).compile(student(Stub()), trainset=rows(8)).optimization
    assert any("answers of the writing model could not be used" in each for each in report.warnings)


def test_cancelled_search_has_the_best_program_until_then() -> None:
    async def cancelled() -> BaseException | None:
        asked = asyncio.Event()

        async def metric(example: Any, prediction: Any, trace: object = None) -> bool:
            asked.set()
            await asyncio.sleep(60)
            return False

        task = asyncio.ensure_future(search(metric).acompile(student(Stub()), trainset=rows(4)))
        await asked.wait()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            return error
        return None

    error: Any = asyncio.run(cancelled())
    assert error.report.reason == "interrupted"
    assert error.program.optimization is error.report


def test_search_whose_seconds_are_over_starts_no_further_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [0.0]

    def metric(example: Any, prediction: Any, trace: object = None) -> bool:
        seconds[0] += 1.0
        return exact(example, prediction)

    monkeypatch.setattr("sigwire.optimizers.optimizer.time", SimpleNamespace(monotonic=lambda: seconds[0]))
    lm = Stub()
    program = search(metric, budget=Budget(seconds=10), num_threads=1).compile(
        student(lm), trainset=rows(8), valset=rows(60, 100)
    )
    assert (program.optimization.reason, len(lm.requests)) == ("budget", 10)
