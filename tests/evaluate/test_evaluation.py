"""``Evaluate``: the kinds of failures, every driver, refusals, budgets, repeats, timeouts, callbacks and files."""

from __future__ import annotations

import asyncio
import csv
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sigwire import (
    BaseCallback,
    Budget,
    CallerError,
    ConfigurationError,
    ContextWindowExceededError,
    Example,
    FakeLM,
    Finished,
    InputError,
    LMAuthenticationError,
    LMBillingError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnsupportedModelError,
    Module,
    OutputTruncated,
    Predict,
    Prediction,
    Refused,
    Usage,
    context,
)
from sigwire.core.request import Request
from sigwire.evaluate.evaluation import Evaluate, load_records
from sigwire.evaluate.result import EvaluationResult
from sigwire.evaluate.running.run import EvaluationAborted, ExampleDone
from sigwire.lm.client import LM
from sigwire.lm.policy.cache.cache import configure_cache
from sigwire.lm.policy.money.opened import open_budgets
from sigwire.settings import current
from sigwire.testing import Delivered, FakeProvider, Fault

DEVSET = [Example(question=f"number {n}", answer=str(n)).with_inputs("question") for n in range(5)]


def exact(example: Example, prediction: Prediction, trace: object = None) -> bool:
    return bool(example.answer == prediction.answer)


def asked(request: Request) -> int:
    return int(request.messages[-1].text.split("number ")[1].split()[0])


def echo(request: Request) -> Any:
    return {"answer": str(asked(request))}


def program_of(answer: Callable[[Request], Any] = echo, **options: Any) -> Predict[..., Prediction]:
    return Predict("question -> answer", lm=FakeLM(answer, **options))


def failing(error: Exception, *numbers: int) -> Callable[[Request], Any]:
    """Answer right, except for some numbers."""
    return lambda request: error if asked(request) in numbers else echo(request)


# --- drivers

DRIVERS: dict[str, Callable[..., EvaluationResult]] = {}


def driver(function: Callable[..., EvaluationResult]) -> Callable[..., EvaluationResult]:
    DRIVERS[function.__name__] = function
    return function


@driver
def blocking(evaluate: Evaluate, program: object, **changes: Any) -> EvaluationResult:
    return evaluate(program, **changes)


@driver
def calling_thread(evaluate: Evaluate, program: object, **changes: Any) -> EvaluationResult:
    return evaluate(program, num_threads=1, **changes)


@driver
def awaited(evaluate: Evaluate, program: object, **changes: Any) -> EvaluationResult:
    return asyncio.run(evaluate.acall(program, **changes))


@driver
def streamed(evaluate: Evaluate, program: object, **changes: Any) -> EvaluationResult:
    *_, last = evaluate.stream(program, **changes)
    assert isinstance(last, Finished)
    result: EvaluationResult = last.value
    return result


@driver
def streamed_awaited(evaluate: Evaluate, program: object, **changes: Any) -> EvaluationResult:
    async def last() -> Any:
        return [event async for event in evaluate.astream(program, **changes)][-1]

    result: EvaluationResult = asyncio.run(last()).value
    return result


every_driver = pytest.mark.parametrize("drive", DRIVERS.values(), ids=list(DRIVERS))


@every_driver
def test_evaluation_scores_every_example_in_order(drive: Callable[..., EvaluationResult]) -> None:
    def wrong_on_three(request: Request) -> Any:
        return {"answer": "none"} if asked(request) == 3 else echo(request)

    result = drive(Evaluate(devset=DEVSET, metric=exact), program_of(wrong_on_three))
    assert (result.score, result.status) == (80.0, "complete")
    assert [(example.answer, score) for example, _, score in result.results] == [
        ("0", 1.0), ("1", 1.0), ("2", 1.0), ("3", 0.0), ("4", 1.0),
    ]  # fmt: skip
    assert [prediction.answer for _, prediction, _ in result.results] == ["0", "1", "2", "none", "4"]


KINDS: dict[str, tuple[Exception, str]] = {
    "truncated": (OutputTruncated("cut"), "program"),
    "refused": (Refused("no"), "program"),
    "context window": (ContextWindowExceededError("long"), "program"),
    "own exception": (KeyError("answer"), "program"),
    "rate limit": (LMRateLimitError("slow"), "provider"),
    "server": (LMServerError("down"), "provider"),
    "timeout": (LMTimeoutError("late"), "provider"),
    "transport": (LMTransportError("reset"), "provider"),
}


@every_driver
@pytest.mark.parametrize(("error", "kind"), KINDS.values(), ids=list(KINDS))
def test_failure_of_one_example_is_kept_by_its_kind(
    error: Exception, kind: str, drive: Callable[..., EvaluationResult]
) -> None:
    result = drive(
        Evaluate(devset=DEVSET, metric=exact, provide_traceback=False), program_of(failing(error, 2), num_retries=0)
    )
    cell = result.records[2].cell
    assert cell.failure is not None
    assert (cell.failure.kind, cell.failure.type) == (kind, type(error).__name__)
    assert cell.score == (0.0 if kind == "program" else None)
    assert result.mean == (0.8 if kind == "program" else 1.0)
    assert result.score == 80.0  # of DSPy: every failure has failure_score


BAD_SCORES: dict[str, Callable[[], object]] = {
    "raises": lambda: [][0],
    "none": lambda: None,
    "nan": lambda: float("nan"),
    "infinite": lambda: float("inf"),
    "text": lambda: "good",
}


@every_driver
@pytest.mark.parametrize("bad", BAD_SCORES.values(), ids=list(BAD_SCORES))
def test_example_of_a_failing_metric_is_unscored(
    bad: Callable[[], object], drive: Callable[..., EvaluationResult]
) -> None:
    def metric(example: Example, prediction: Prediction) -> object:
        return bad() if example.answer == "3" else True

    result = drive(Evaluate(devset=DEVSET, metric=metric, provide_traceback=False), program_of())
    cells = [record.cell for record in result.records]
    assert [cell.score for cell in cells] == [1.0, 1.0, 1.0, None, 1.0]
    assert cells[3].failure is not None
    assert cells[3].failure.kind == "metric"
    assert cells[3].outputs == {"answer": "3"}
    assert result.mean == 1.0


CALLER_ERRORS = [
    LMAuthenticationError("no such key"),
    LMBillingError("no money"),
    LMUnsupportedModelError("no such model"),
    ConfigurationError("no such setting"),
]


@pytest.mark.parametrize("error", CALLER_ERRORS, ids=lambda error: type(error).__name__)
def test_failure_of_the_caller_aborts_after_one_call(error: Exception) -> None:
    program = program_of(lambda request: error)
    with pytest.raises(EvaluationAborted, match=type(error).__name__) as caught:
        Evaluate(devset=DEVSET, metric=exact, num_threads=1)(program)
    assert len(program.lm.requests) == 1
    assert caught.value.__cause__ is error
    assert caught.value.result is not None
    assert caught.value.result.status == "aborted"


def test_three_failures_of_the_metric_at_the_start_abort() -> None:
    program = program_of()
    with pytest.raises(EvaluationAborted, match="metric failed on the first 3 examples"):
        Evaluate(devset=DEVSET, metric=lambda example, prediction: None, num_threads=1)(program)
    assert len(program.lm.requests) == 3


def test_more_failures_than_max_errors_abort_with_the_finished_examples() -> None:
    program = program_of(failing(OutputTruncated("cut"), 1, 2, 3, 4))
    with pytest.raises(EvaluationAborted, match="max_errors=2") as caught:
        Evaluate(devset=DEVSET, metric=exact, max_errors=2, num_threads=1)(program)
    result = caught.value.result
    assert result is not None
    assert [record.index for record in result.records] == [0, 1, 2, 3]
    Evaluate(devset=DEVSET, metric=exact, max_errors=4, num_threads=1)(program)


@every_driver
def test_errors_raise_raises_the_first_failure_itself(drive: Callable[..., EvaluationResult]) -> None:
    error = OutputTruncated("cut")
    with pytest.raises(OutputTruncated) as caught:
        drive(Evaluate(devset=DEVSET, metric=exact, errors="raise"), program_of(failing(error, 2)))
    assert caught.value is error
    assert error.where is not None
    assert error.where.example is not None


def test_first_traceback_of_user_code_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    def metric(example: Example, prediction: Prediction) -> bool:
        if example.answer in "34":
            raise ZeroDivisionError("\x1b[31mred")
        return True

    Evaluate(devset=DEVSET, metric=metric, num_threads=1)(program_of())
    printed = capsys.readouterr().err
    assert printed.count("ZeroDivisionError") >= 1
    assert printed.count("Traceback") == 1
    assert "\x1b" not in printed


# --- refusals

UNSCORED = Example(question="q")
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "empty devset": (lambda: Evaluate(devset=[], metric=exact), "devset is empty"),
    "undeclared inputs": (lambda: Evaluate(devset=[UNSCORED], metric=exact), "declares no inputs"),
    "unknown input": (lambda: Evaluate(devset=[UNSCORED.with_inputs("qestion")], metric=exact), "Did you mean question"),
    "dict": (lambda: Evaluate(devset=[{"question": "q"}], metric=exact), "is a dict"),  # type: ignore[list-item]
    "metric of one argument": (lambda: Evaluate(devset=DEVSET, metric=lambda example: 1), "takes no"),
    "metric of a text": (lambda: Evaluate(devset=DEVSET, metric="exact"), "A metric is"),  # type: ignore[arg-type]
    "unknown option": (lambda: Evaluate(devset=DEVSET, metrics=exact), "Did you mean metric"),  # type: ignore[call-arg]
    "unknown option of a call": (lambda: Evaluate(devset=DEVSET)(program_of(), repeats=2), "Did you mean repeat"),
    "no metric": (lambda: Evaluate(devset=DEVSET)(program_of()), "needs a metric"),
    "wrong threads": (lambda: Evaluate(devset=DEVSET, num_threads=0), "num_threads"),
    "no score of failures": (lambda: Evaluate(devset=DEVSET, failure_score=float("nan")), "a finite number, not nan"),
    "unknown reducer": (lambda: Evaluate(devset=DEVSET, reduce="best"), "reduce='best'"),
    "unknown cluster": (lambda: Evaluate(devset=DEVSET, cluster="user"), "no field 'user'"),
    "missing input of the program": (
        lambda: Evaluate(devset=DEVSET, metric=exact)(Predict("question, context -> answer", lm=FakeLM())),
        "the input 'context' is missing",
    ),
    "two equal ids": (
        lambda: Evaluate(devset=[example.copy(id=7) for example in DEVSET], metric=exact)(program_of()),
        "the id '7'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=list(REFUSED))
def test_wrong_arguments_are_refused_before_any_call(make: Callable[[], object], words: str) -> None:
    with pytest.raises(CallerError, match=words) as caught:
        make()
    assert isinstance(caught.value, ValueError)


def test_input_of_a_users_module_is_checked_before_any_call() -> None:
    class Shout(Module):
        def forward(self, text: str) -> Prediction:
            raise AssertionError("called")

    with pytest.raises(InputError, match="does not fit Shout"):
        Evaluate(devset=DEVSET, metric=exact)(Shout())


# --- budgets, timeouts, repeats


@every_driver
def test_spent_budget_ends_with_the_finished_examples(drive: Callable[..., EvaluationResult]) -> None:
    program = program_of(usage=Usage(input_tokens=5, output_tokens=5))
    result = drive(Evaluate(devset=DEVSET, metric=exact, budget=Budget(calls=3)), program)
    assert result.status == "budget"
    assert len(result.records) == 3
    assert len(program.lm.requests) == 3


def test_budget_around_the_evaluation_aborts() -> None:
    with Budget(calls=2), pytest.raises(EvaluationAborted) as caught:
        Evaluate(devset=DEVSET, metric=exact)(program_of())
    assert caught.value.result is not None
    assert len(caught.value.result.records) == 2


class TwoCalls(Module):
    """Answers at once, then waits for a second answer if the example has the number 1."""

    def __init__(self, lm: LM) -> None:
        self.ask = Predict("question -> answer", lm=lm)

    def forward(self, question: str) -> Prediction:
        first = self.ask(question=question)
        if question == "number 1":
            self.ask(question="slow number 1")
        return first


@every_driver
def test_timeout_of_an_example_is_a_failure_of_the_program_with_partial_usage(
    drive: Callable[..., EvaluationResult],
) -> None:
    def answer(request: Request) -> Any:
        text = f"[[ ## answer ## ]]\n{asked(request)}\n\n[[ ## completed ## ]]"
        return Delivered(text, after=60) if "slow" in request.messages[-1].text else text

    with FakeProvider(answer) as provider:
        program = TwoCalls(LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", num_retries=0))
        result = drive(Evaluate(devset=DEVSET, metric=exact, timeout=0.5), program)
    cell = result.records[1].cell
    assert cell.failure is not None
    assert (cell.failure.kind, cell.failure.type, cell.score) == ("program", "ExampleTimeout", 0.0)
    assert cell.requests >= 1
    assert cell.usage["openai/gpt-4o-mini"]["input_tokens"]
    assert result.score == 80.0


def test_late_answer_of_blocking_code_is_a_timeout() -> None:
    class Slow(Module):
        def forward(self, question: str) -> Prediction:
            time.sleep(0.05)
            return Prediction(answer="0")

    result = Evaluate(devset=DEVSET[:1], metric=exact, timeout=0.01)(Slow())
    failure = result.records[0].cell.failure
    assert failure is not None
    assert failure.type == "ExampleTimeout"


def test_repeats_ask_the_cache_for_different_samples_and_a_rerun_asks_nothing(tmp_path: Path) -> None:
    configure_cache(disk_cache_dir=tmp_path / "cache")
    text = "[[ ## answer ## ]]\n{}\n\n[[ ## completed ## ]]"
    with FakeProvider([text.format(number) for number in range(3)]) as provider:
        program = Predict(
            "question -> answer", lm=LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
        )
        evaluate = Evaluate(devset=DEVSET[:1], metric=exact, repeat=3, num_threads=1)
        first, second = evaluate(program), evaluate(program)
        assert len(provider.requests) == 3
    assert [record.repeat for record in first.records] == [1, 2, 3]
    assert [record.cell.outputs for record in first.records] == [{"answer": str(number)} for number in range(3)]
    assert [record.cell.outputs for record in second.records] == [record.cell.outputs for record in first.records]
    assert [(record.cell.requests, record.cell.hits) for record in first.records] == [(1, 0)] * 3
    assert [(record.cell.requests, record.cell.hits) for record in second.records] == [(0, 1)] * 3


def test_fresh_reads_no_stored_answer(tmp_path: Path) -> None:
    configure_cache(disk_cache_dir=tmp_path / "cache")
    with FakeProvider(["[[ ## answer ## ]]\n0"] * 2) as provider:
        program = Predict(
            "question -> answer", lm=LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
        )
        for _ in range(2):
            Evaluate(devset=DEVSET[:1], metric=exact, fresh=True)(program)
        assert len(provider.requests) == 2


# --- streams, callbacks, DSPy


def test_stream_yields_an_event_for_each_example() -> None:
    *events, last = Evaluate(devset=DEVSET, metric=exact, num_threads=2).stream(program_of())
    assert all(isinstance(event, ExampleDone) for event in events)
    assert sorted(event.record.index for event in events if isinstance(event, ExampleDone)) == [0, 1, 2, 3, 4]
    assert [event.done for event in events if isinstance(event, ExampleDone)] == [1, 2, 3, 4, 5]
    assert isinstance(last, Finished)


@pytest.mark.parametrize("threads", [1, 2])
def test_consumer_of_a_stream_is_outside_of_the_budget_and_settings_of_the_rows(threads: int) -> None:
    rows: list[tuple[bool, int]] = []

    def answer(request: Request) -> Any:
        rows.append((current().fresh, len(open_budgets())))
        return echo(request)

    own = LM("offline/lexical")
    evaluate = Evaluate(devset=DEVSET[:4], metric=exact, budget=Budget(calls=4), fresh=True, num_threads=threads)
    events: list[Any] = []
    for event in evaluate.stream(program_of(answer)):
        assert (current().fresh, open_budgets()) == (False, ())
        own("a question of the consumer")
        events.append(event)
    assert len(events) == 5
    assert events[-1].value.status == "complete"
    assert rows == [(True, 1)] * 4


async def test_closed_stream_keeps_no_budget_and_no_setting() -> None:
    events = Evaluate(devset=DEVSET, metric=exact, budget=Budget(calls=5), fresh=True).astream(program_of())
    async for _ in events:
        break
    assert (current().fresh, open_budgets()) == (False, ())
    await events.aclose()


def test_closed_stream_keeps_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    events = Evaluate(devset=DEVSET, metric=exact, num_threads=1, log=path).stream(program_of())
    next(events)
    events.close()
    result = load_records(path)
    assert result.status == "cancelled"
    assert len(result.records) >= 1


def test_cancelled_evaluation_has_its_finished_examples(tmp_path: Path) -> None:
    class Waits(Module):
        async def aforward(self, question: str) -> Prediction:
            if question == "number 2":
                await asyncio.Event().wait()
            return Prediction(answer=question[-1])

    log = tmp_path / "log.jsonl"

    async def cancel() -> asyncio.CancelledError:
        task = asyncio.create_task(Evaluate(devset=DEVSET, metric=exact, log=log).acall(Waits()))
        while not log.exists() or log.read_bytes().count(b'"type":"record"') < 4:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value

    error: Any = asyncio.run(cancel())
    assert sorted(record.index for record in error.result.records) == [0, 1, 3, 4]
    assert len(load_records(log).records) == 4


def test_callbacks_get_start_and_end_with_the_metadata() -> None:
    seen: list[tuple[str, Any]] = []

    class Listener(BaseCallback):
        def on_evaluate_start(self, call_id: str, instance: object, inputs: Any) -> None:
            seen.append(("start", inputs["callback_metadata"]))

        def on_evaluate_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
            seen.append(("end", outputs.score))

    with context(callbacks=[Listener()]):
        Evaluate(devset=DEVSET, metric=exact)(program_of(), callback_metadata={"round": 1})
    assert seen == [("start", {"round": 1}), ("end", 100.0)]


SCORES: dict[str, tuple[Callable[[int], object], float]] = {
    "bools": (lambda n: n % 2 == 0, 60.0),
    "numbers": (lambda n: n / 4, 50.0),
    "predictions": (lambda n: Prediction(score=n / 4, feedback="f"), 50.0),
    "above one": (lambda n: n * 10, 2000.0),
    "thirds": (lambda n: 1 / 3, 33.33),
}


@pytest.mark.parametrize(("score", "expected"), SCORES.values(), ids=list(SCORES))
def test_score_is_the_rounded_percentage_of_the_sum_as_in_dspy(score: Callable[[int], object], expected: float) -> None:
    def metric(example: Example, prediction: Prediction) -> object:
        return score(int(example.answer))

    result = Evaluate(devset=DEVSET, metric=metric)(program_of())
    assert result.score == expected
    assert [triple[0] for triple in result.results] == DEVSET
    assert [triple[2] for triple in result.results] == [score(n) for n in range(5)]


def test_rows_merge_example_and_prediction_in_the_files_and_the_table_of_dspy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate = Evaluate(devset=DEVSET, metric=exact, save_as_csv=tmp_path / "a.csv", save_as_json=tmp_path / "a.json")

    def formula(request: Request) -> Any:
        return {"answer": "=HYPERLINK(1)"}

    evaluate(program_of(formula), display_table=2)
    with open(tmp_path / "a.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["question", "example_answer", "pred_answer", "exact"]
    assert rows[0]["pred_answer"] == "'=HYPERLINK(1)"
    assert json.loads((tmp_path / "a.json").read_text())[0]["pred_answer"] == "=HYPERLINK(1)"
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 4
    assert table[-1] == "... 3 more rows"


# --- metrics


def test_metric_requests_are_counted_apart_and_leave_the_trace() -> None:
    judge = Predict("answer -> verdict: bool", lm=FakeLM(lambda request: {"verdict": True}))

    def judged(example: Example, prediction: Prediction, trace: object = None) -> bool:
        verdict: bool = judge(answer=prediction.answer).verdict
        return verdict

    trace: list[Any] = []
    with context(trace=trace):
        result = Evaluate(devset=DEVSET, metric=judged)(program_of())
    assert {(record.cell.requests, record.cell.metric_requests) for record in result.records} == {(1, 1)}
    assert len(trace) == 5


METRICS: Sequence[Any] = [
    lambda example, prediction: True,
    lambda example, prediction, trace: trace is None,
    lambda gold, pred, trace, pred_name, pred_trace: (trace, pred_name, pred_trace) == (None, None, None),
]


@every_driver
@pytest.mark.parametrize("metric", METRICS)
def test_metric_gets_the_arguments_that_it_takes(metric: Any, drive: Callable[..., EvaluationResult]) -> None:
    assert drive(Evaluate(devset=DEVSET, metric=metric), program_of()).score == 100.0


@every_driver
def test_async_metric_and_module_metric(drive: Callable[..., EvaluationResult]) -> None:
    async def later(example: Example, prediction: Prediction) -> bool:
        await asyncio.sleep(0)
        return exact(example, prediction)

    class Judge(Module):
        def forward(self, example: Example, prediction: Prediction, trace: object = None) -> Prediction:
            return Prediction(score=exact(example, prediction))

    for metric in (later, Judge()):
        assert drive(Evaluate(devset=DEVSET, metric=metric), program_of()).score == 100.0


def test_rate_limited_examples_are_unscored_and_run_again_by_a_resumed_evaluation(tmp_path: Path) -> None:
    path, refused = tmp_path / "log.jsonl", [True]

    def answer(request: Request) -> Any:
        return LMRateLimitError("slow") if refused[0] and asked(request) == 2 else echo(request)

    program = program_of(answer, num_retries=0)
    evaluate = Evaluate(devset=DEVSET, metric=exact, log=path)
    assert evaluate(program).records[2].cell.score is None
    refused[0] = False
    before = len(program.lm.requests)
    result = evaluate(program)
    assert len(program.lm.requests) == before + 1
    assert result.records[2].cell.score == 1.0
    assert [record.kept for record in result.records] == [True, True, False, True, True]


def test_provider_failure_over_http_is_unscored_after_its_retries() -> None:
    with FakeProvider(lambda request: Fault("server")) as provider:
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", num_retries=1)
        result = Evaluate(devset=DEVSET[:1], metric=exact)(Predict("question -> answer", lm=lm))
    cell = result.records[0].cell
    assert cell.failure is not None
    assert cell.failure.kind == "provider"
    assert cell.requests == 2


@pytest.mark.parametrize("program", [None, Predict, "question -> answer"])
def test_program_that_is_no_module_is_refused_before_any_call(program: Any) -> None:
    with pytest.raises(InputError, match=r"A program is a module or a function, not .* Pass "):
        Evaluate(devset=DEVSET, metric=exact)(program)


@pytest.mark.parametrize("errors", ["score", "raise"])
def test_evaluation_whose_seconds_are_over_has_the_status_budget(errors: Any) -> None:
    """Calls that the deadline of the budget cut off are not failures of the provider."""
    devset = [Example(question=f"number {n}", answer=str(n)).with_inputs("question") for n in range(20)]
    with FakeProvider(lambda request: Delivered("late", after=30.0)) as provider:
        program = Predict(
            "question -> answer", lm=LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
        )
        evaluate = Evaluate(devset=devset, metric=exact, num_threads=16, errors=errors, display_progress=False)
        result = evaluate(program, budget=Budget(seconds=0.05))
    assert (result.status, list(result.records)) == ("budget", [])


def test_evaluation_without_seconds_left_starts_no_example() -> None:
    started: list[str] = []

    def program(question: str) -> Prediction:
        started.append(question)
        return Prediction(answer=question)

    result = Evaluate(devset=DEVSET, metric=exact, budget=Budget(seconds=0), display_progress=False)(program)
    assert (result.status, started) == ("budget", [])


def test_result_is_kept_when_its_csv_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory") as caught:
        Evaluate(devset=DEVSET, metric=exact, save_as_csv=tmp_path, display_progress=False)(program_of())
    assert vars(caught.value)["result"].status == "complete"


def test_error_of_the_program_without_a_text_is_a_failure_of_the_program() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def program(question: str) -> Prediction:
        raise Mute

    result = Evaluate(devset=DEVSET, metric=exact, display_progress=False)(program)
    assert (result.mean, dict(result.failures)) == (0.0, {"Mute": 5})


# --- several metrics


def long(example: Example, prediction: Prediction) -> float:
    return len(prediction.answer) / 2


async def named(example: Example, prediction: Prediction) -> bool:
    return True


def test_list_of_metrics_is_equal_to_a_dict_by_their_names() -> None:
    def both(example: Example, prediction: Prediction) -> dict[str, float]:
        return {"exact": exact(example, prediction), "long": long(example, prediction), "named": True}

    program = Predict("question -> answer", lm=FakeLM(echo))
    listed = Evaluate(devset=DEVSET, metric=[exact, long, named], num_threads=1)(program)
    assert [record.cell.subscores for record in listed.records] == [{"exact": 1.0, "long": 0.5, "named": 1.0}] * 5
    assert (listed.score, listed.run.metric_name, listed.run.metric_names) == (
        100.0,
        "exact",
        ("exact", "long", "named"),
    )
    assert listed.run.header["metrics"] == ["exact", "long", "named"]
    returned = Evaluate(devset=DEVSET, metric=both, num_threads=1)(program)
    assert [record.cell.subscores for record in returned.records] == [
        record.cell.subscores for record in listed.records
    ]
    assert listed.rescore([long, exact]).mean == 0.5


@pytest.mark.parametrize(
    ("metrics", "message"), [([], "not \\[\\]"), ([exact, exact], "'exact'"), ([exact, 3], "not 3")]
)
def test_list_that_holds_no_metrics_of_different_names_is_refused(metrics: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Evaluate(devset=DEVSET, metric=metrics)


@pytest.mark.parametrize("read", [lambda example: example.anser, lambda example: example["anser"]])
def test_label_that_the_examples_do_not_have_is_one_error_of_the_caller(read: Any) -> None:
    devset = [Example(q=str(number), answer="1").with_inputs("q") for number in range(8)]
    lm = FakeLM(lambda _: {"a": "1"})
    with pytest.raises(
        EvaluationAborted,
        match=r"ConfigurationError: The metric reads the field 'anser'.*Did you mean answer\? .*are q, answer",
    ):
        Evaluate(devset=devset, metric=lambda example, pred: read(example), num_threads=1, display_progress=False)(
            Predict("q -> a", lm=lm)
        )
    assert len(lm.requests) == 1


def test_attribute_error_of_a_metric_that_reads_no_example_is_a_failure_of_the_metric() -> None:
    devset = [Example(q=str(number), answer="1").with_inputs("q") for number in range(8)]
    lm = FakeLM(lambda _: {"a": "1"})

    def metric(example: Any, pred: Any) -> bool:
        return bool(pred.a.missing) if example.q == "5" else True

    result = Evaluate(devset=devset, metric=metric, display_progress=False)(Predict("q -> a", lm=lm))
    assert (result.scored, result.n) == (7, 8)
