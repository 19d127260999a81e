"""The optimizers and evaluations of a script that was written for DSPy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.core.request import Request

ROWS = [dspy.Example(question=f"q{n}", answer=str(n)).with_inputs("question") for n in range(6)]


def exact(example: Any, prediction: Any, trace: object = None) -> bool:
    return bool(example.answer == prediction.answer)


def answer(request: Request) -> Any:
    return {"answer": request.messages[-1].text.splitlines()[1].removeprefix("q")}


def student() -> Any:
    return dspy.Predict("question -> answer", lm=dspy.FakeLM(answer))


class Listener(dspy.BaseCallback):
    """Collects what callbacks get."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def on_compile_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        self.seen.append((type(instance).__name__, sorted(inputs)))

    def on_compile_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.seen.append((type(outputs).__name__, exception))

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        self.seen.append((type(instance).__name__, inputs))


# --- an optimizer of the user


class First(dspy.Teleprompter):
    """The first rows as demos."""

    def __init__(self, k: int = 2) -> None:
        super().__init__()
        self.k = k

    def compile(self, student: Any, *, trainset: Any, teacher: Any = None, valset: Any = None, **options: Any) -> Any:
        made = student.reset_copy()
        for predictor in made.predictors():
            predictor.demos = trainset[: self.k]
        return made


class Calling(First):
    """Calls the compile that it overrides."""

    def compile(self, student: Any, *, trainset: Any, **options: Any) -> Any:
        return super().compile(student, trainset=trainset)


class CallingOurs(dspy.LabeledFewShot):
    """Calls the compile of an optimizer of the package."""

    def compile(self, student: Any, *, trainset: Any, sample: bool = False) -> Any:  # type: ignore[override]
        return super().compile(student, trainset=trainset, sample=sample)


class ReplacingOurs(dspy.LabeledFewShot):
    """Does not call the compile that it overrides."""

    def compile(self, student: Any, *, trainset: Any) -> Any:  # type: ignore[override]
        return student


class Failing(dspy.Teleprompter):
    """Raises."""

    def compile(self, student: Any, **options: Any) -> Any:
        raise KeyError("no demos")


@pytest.mark.parametrize("optimizer", [First, Calling, CallingOurs, ReplacingOurs, dspy.LabeledFewShot])
def test_callbacks_see_a_compilation_once_also_if_an_override_calls_super(optimizer: Any) -> None:
    listener = Listener()
    with dspy.context(callbacks=[listener]):
        optimizer(2).compile(student(), trainset=ROWS)
    (started, inputs), ended = listener.seen
    assert started == optimizer.__name__
    assert {"student", "trainset"} <= set(inputs)
    assert ended == ("Predict", None)


def test_callbacks_see_compilations_that_fail_and_that_are_awaited() -> None:
    listener = Listener()
    with dspy.context(callbacks=[listener]):
        with pytest.raises(KeyError, match="no demos"):
            Failing().compile(student(), trainset=ROWS)
        asyncio.run(dspy.LabeledFewShot(2).acompile(student(), trainset=ROWS))
    assert [name for name, _ in listener.seen] == ["Failing", "NoneType", "LabeledFewShot", "Predict"]
    assert isinstance(listener.seen[1][1], KeyError)


def test_callbacks_see_a_compilation_inside_another_one() -> None:
    class Two(dspy.Teleprompter):
        def compile(self, student: Any, *, trainset: Any, **options: Any) -> Any:
            return First(1).compile(First(2).compile(student, trainset=trainset), trainset=trainset)

    listener = Listener()
    with dspy.context(callbacks=[listener]):
        Two().compile(student(), trainset=ROWS)
    assert [name for name, _ in listener.seen] == ["Two", "First", "Predict", "First", "Predict", "Predict"]


def test_an_optimizer_of_the_user_has_its_parameters_and_needs_compile() -> None:
    assert First(3).get_params() == {"k": 3}
    with pytest.raises(NotImplementedError, match="Teleprompter has no compile"):
        dspy.Teleprompter().compile(student(), trainset=ROWS)


# --- Evaluate


def test_evaluate_takes_the_arguments_of_a_call_by_position_as_dspy_does(tmp_path: Path) -> None:
    listener = Listener()
    evaluate = dspy.Evaluate(devset=ROWS, save_as_csv=tmp_path / "kept.csv")
    with dspy.context(callbacks=[listener]):
        result = evaluate(student(), exact, ROWS[:2], 1, False, False, {"epoch": 1}, None, tmp_path / "given.json")
    assert (result.score, len(result.results)) == (100.0, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given.json", "kept.csv"]
    assert list(json.loads((tmp_path / "given.json").read_text())[0])[-1] == "exact"
    assert listener.seen[0][1]["callback_metadata"] == {"epoch": 1}


def test_the_table_has_the_columns_of_dspy(capsys: pytest.CaptureFixture[str]) -> None:
    dspy.Evaluate(devset=ROWS[:2], metric=exact, display_table=True)(student())
    assert capsys.readouterr().out.splitlines()[0].split(" | ") == [
        "question",
        "example_answer",
        "pred_answer",
        "exact",
    ]


def test_a_result_that_a_test_makes_has_the_two_fields_of_dspy() -> None:
    result = dspy.evaluate.EvaluationResult(score=50.0, results=[])
    assert repr(result) == "EvaluationResult(score=50.0, results=<list of 0 results>)"
    assert dspy.evaluate.EvaluationResult(50.0, []) == result
