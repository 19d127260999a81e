"""The optimizers and evaluations of a script that was written for DSPy."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.core.request import Request

ROWS = [dspy.Example(question=f"q{n}", answer=str(n)).with_inputs("question") for n in range(6)]


def exact(example: Any, prediction: Any, trace: object = None) -> bool:
    return bool(example.answer == prediction.answer)


def told_exact(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> bool:
    return bool(gold.answer == pred.answer)


def answer(request: Request) -> Any:
    return {"answer": request.messages[-1].text.splitlines()[1].removeprefix("q")}


def student() -> Any:
    return dspy.Predict("question -> answer", lm=dspy.FakeLM(answer))


class Listener(dspy.BaseCallback):
    """Collects what callbacks get."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def on_compile_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        super().on_compile_start(call_id, instance, inputs)
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


class Split(First):
    """Compiles in a task of its own, or again by the compile that it overrides."""

    async def compile(self, student: Any, *, trainset: Any, others: int = 0) -> Any:  # type: ignore[override]
        if others:
            return await asyncio.create_task(self.compile(student, trainset=trainset))
        return super().compile(student, trainset=trainset)


async def test_callbacks_see_the_compilation_of_another_task_of_the_same_optimizer() -> None:
    listener = Listener()
    with dspy.context(callbacks=[listener]):
        await Split().compile(student(), trainset=ROWS, others=1)
        assert [name for name, _ in listener.seen] == ["Split", "Split", "Predict", "Predict"]
        await Split().compile(student(), trainset=ROWS)  # calls super in its own task
    assert len(listener.seen) == 6


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


def test_scores_of_a_metric_with_feedback_have_score_and_feedback_and_are_numbers() -> None:
    def told(example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
        return dspy.Prediction(score=0.5, feedback="half")

    result = dspy.Evaluate(devset=ROWS[:2], metric=told)(student())
    for score in [score for _, _, score in pickle.loads(pickle.dumps(result)).results]:
        assert (score, score.score, score.feedback) == (0.5, 0.5, "half")
        assert json.dumps(score) == "0.5"


# --- the optimizers of DSPy


def test_metric_gets_a_trace_while_demos_are_collected_and_none_in_an_evaluation() -> None:
    traces: list[Any] = []

    def traced(example: Any, prediction: Any, trace: Any = None) -> bool:
        traces.append(trace)
        return True

    program = dspy.BootstrapFewShot(traced, max_bootstrapped_demos=1, max_labeled_demos=2, num_threads=1).compile(
        student(), trainset=ROWS
    )
    ((_, inputs, prediction),) = traces[0]
    assert (dict(inputs), prediction.answer) == ({"question": "q0"}, "0")
    traces.clear()
    dspy.Evaluate(devset=ROWS[:1], metric=traced)(program)
    assert traces == [None]
    assert [demo.get("augmented", False) for demo in program.demos] == [True, False]
    assert program._compiled is True


# What ``save`` of DSPy 3.4.1 writes for a bootstrapped ChainOfThought, without the metadata.
DSPY_STATE: dict[str, Any] = {
    "predict": {
        "traces": [],
        "train": [],
        "demos": [
            {"augmented": True, "question": "q0", "reasoning": "r0", "answer": "0"},
            {"question": "q4", "answer": "4"},
        ],
        "signature": {
            "instructions": "Given the fields `question`, produce the fields `answer`.",
            "fields": [
                {"prefix": "Question:", "description": "${question}"},
                {"prefix": "Reasoning:", "description": "${reasoning}"},
                {"prefix": "Answer:", "description": "${answer}"},
            ],
        },
        "lm": None,
    }
}


def test_states_of_bootstrapped_programs_have_the_keys_of_dspy_and_those_of_dspy_load() -> None:
    program = dspy.ChainOfThought("question -> answer")
    program.load_state(DSPY_STATE)
    state: Any = program.dump_state()["predict"]
    assert state["demos"] == DSPY_STATE["predict"]["demos"]
    assert state["signature"]["instructions"] == DSPY_STATE["predict"]["signature"]["instructions"]
    assert state.keys() == DSPY_STATE["predict"].keys()


def test_gepa_calls_proposer_selector_and_metric_with_the_arguments_of_dspy() -> None:
    seen: dict[str, Any] = {}

    def propose(candidate: Any, reflective_dataset: Any, components_to_update: Any) -> dict[str, str]:
        seen["proposer"] = candidate, reflective_dataset, components_to_update
        return dict.fromkeys(components_to_update, "Be right.")

    def select(state: Any, trajectories: Any, subsample_scores: Any, candidate_idx: int, candidate: Any) -> list[str]:
        seen["selector"] = trajectories, subsample_scores, candidate_idx
        return list(candidate)

    def told(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
        seen.setdefault("metric", set()).add((pred_name, trace is None, pred_trace is None))
        return dspy.Prediction(score=float(gold.answer == pred.answer), feedback="wrong")

    def reply(request: Request) -> Any:
        return answer(request) if "Be right." in request.messages[0].text else {"answer": "?"}

    off: dict[str, Any] = {"log_dir": None, "use_wandb": False, "seed": None}
    program: Any = dspy.GEPA(
        metric=told,
        max_metric_calls=30,
        reflection_lm=dspy.FakeLM([]),
        instruction_proposer=propose,
        component_selector=select,
        track_stats=True,
        num_threads=1,
        **off,
    ).compile(dspy.Predict("question -> answer", lm=dspy.FakeLM(reply)), trainset=ROWS, valset=ROWS)
    assert program.signature.instructions == "Be right."
    candidate, dataset, components = seen["proposer"]
    assert components == [*candidate] == [*dataset]
    assert sorted(dataset[components[0]][0]) == ["Feedback", "Generated Outputs", "Inputs"]
    trajectories, scores, number = seen["selector"]
    assert (scores, number) == ([0.0, 0.0, 0.0], 0)
    assert {trajectory["score"] for trajectory in trajectories} == {0.0}
    assert trajectories[0]["prediction"].answer == "?"
    assert seen["metric"] == {(None, True, True), ("self", False, False)}
    found = program.detailed_results
    assert (found.best_idx, found.val_aggregate_scores, found.best_outputs_valset) == (1, [0.0, 1.0], None)


@pytest.mark.parametrize(
    "option", [{"use_wandb": True}, {"track_best_outputs": True}, {"gepa_kwargs": {"a": 1}}, {"code_proposer": print}]
)
def test_gepa_refuses_options_of_dspy_that_it_lacks_with_the_reason(option: dict[str, Any]) -> None:
    (name,) = option
    with pytest.raises(dspy.ConfigurationError, match=rf"GEPA does not take {name} \(making it\): \w+"):
        dspy.GEPA(metric=told_exact, auto="light", **option)


def test_copro_lists_the_student_among_its_candidates() -> None:
    unwritten = dspy.FakeLM(lambda request: "no text")
    optimizer = dspy.COPRO(metric=exact, prompt_model=unwritten, breadth=2, depth=1, num_threads=1)
    program: Any = optimizer.compile(student(), trainset=ROWS, eval_kwargs={"num_threads": 1})
    (entry,) = program.candidate_programs
    assert (entry["score"], entry["instruction"]) == (100.0, "Use `question` to write `answer`.")


def test_miprov2_numbers_its_trials_from_the_student() -> None:
    optimizer = dspy.MIPROv2(
        metric=exact, auto=None, num_candidates=2, max_bootstrapped_demos=1, max_labeled_demos=1, num_threads=1
    )
    writer = dspy.FakeLM(lambda request: "no text")
    optimizer.prompt_model = writer
    program: Any = optimizer.compile(student(), trainset=ROWS[:3], valset=ROWS[3:], num_trials=2)
    assert program.trial_logs[1]["full_eval_score"] == 100.0
    assert [*program.trial_logs] == list(range(1, len(program.trial_logs) + 1))


def test_infer_rules_takes_its_arguments_by_position_as_dspy_does() -> None:
    optimizer = dspy.InferRules(3, 4, 1, metric=exact)
    assert (optimizer.num_candidates, optimizer.num_rules, optimizer.num_threads) == (3, 4, 1)


def test_majority_compares_normalized_texts_and_returns_a_prediction() -> None:
    def chosen(*answers: str) -> Any:
        return dspy.majority([dspy.Prediction(answer=each) for each in answers]).answer

    assert [chosen("A", "b", " B."), chosen("a", "the cat", "Cat!"), chosen("A", "A", "B")] == ["b", "the cat", "A"]
    assert dspy.majority([{"answer": "x"}]) == dspy.Prediction(answer="x")
    assert dspy.majority([{"answer": ""}]) == dspy.Prediction(answer="")


def test_gepa_makes_no_more_runs_than_max_metric_calls_if_a_child_joins_late() -> None:
    texts = iter(range(1000))

    def propose(candidate: Any, reflective_dataset: Any, components_to_update: Any) -> dict[str, str]:
        return {name: f"text {next(texts) + 1}" for name in components_to_update}

    def drawn(gold: Any, pred: Any, trace: Any, pred_name: Any, pred_trace: Any) -> bool:
        better = 110 + 3 * int(pred.answer.removeprefix("text ") if pred.answer.startswith("text ") else 0)
        return hashlib.sha256((gold.question + pred.answer).encode()).digest()[0] < better

    valset = [dspy.Example(question=f"v{n}").with_inputs("question") for n in range(40)]
    trainset = [dspy.Example(question=f"t{n}").with_inputs("question") for n in range(12)]
    for seed in range(3):
        lm = dspy.FakeLM(lambda request: {"answer": request.messages[0].text.splitlines()[-1]})
        optimizer = dspy.GEPA(
            drawn, max_metric_calls=150, reflection_lm=lm, instruction_proposer=propose, seed=seed, num_threads=1
        )
        program: Any = optimizer.compile(dspy.Predict("question -> answer", lm=lm), trainset=trainset, valset=valset)
        assert 40 < program.optimization.spent.runs <= 150


def test_labeled_few_shot_takes_rows_that_declare_no_inputs() -> None:
    class Asking(dspy.Module):
        def __init__(self) -> None:
            self.ask = dspy.ChainOfThought("question -> answer")

        def forward(self, question: str, k: int = 1) -> Any:
            return self.ask(question=question)

    rows = [dspy.Example(question="1?", answer="a"), dspy.Example(question="2?", answer="b").with_inputs("question")]
    for student in (Asking(), dspy.Predict("question -> answer"), dspy.ChainOfThought("question -> answer")):
        found = dspy.LabeledFewShot(k=2).compile(student, trainset=rows, sample=False)
        assert [demo.answer for demo in found.predictors()[0].demos] == ["a", "b"]
    assert dspy.teleprompt.LabeledFewShot is dspy.LabeledFewShot


def test_rows_of_labeled_few_shot_may_hold_images_of_pil() -> None:
    pil = pytest.importorskip("PIL.Image").new("RGB", (2, 2))
    rows = [dspy.Example(image=pil, caption="red")]
    tuned: Any = dspy.LabeledFewShot(k=1).compile(dspy.Predict("image: dspy.Image -> caption"), trainset=rows)
    assert dspy.Image(tuned.demos[0].image) == dspy.Image(pil)


def test_knn_few_shot_has_the_search_of_its_rows() -> None:
    rows = [dspy.Example(animal=name).with_inputs("animal") for name in ("ant", "cat")]
    search = dspy.KNNFewShot(k=1, trainset=rows).KNN
    assert (search.k, len(search.trainset), search(animal="a cat")[0].animal) == (1, 2, "cat")


@pytest.mark.parametrize("tracks", [False, True])
def test_copro_tracks_statistics_of_each_predictor(tracks: bool) -> None:
    writer = dspy.FakeLM([{"instruction": "Answer with the number."}, {"instruction": "Say it."}])
    lm = dspy.FakeLM(lambda request: {"answer": "7"})
    program = dspy.Predict("question -> answer")
    program.set_lm(lm)
    optimizer = dspy.COPRO(metric=exact, prompt_model=writer, breadth=2, depth=1, track_stats=tracks, num_threads=1)
    found: Any = optimizer.compile(program, trainset=ROWS, eval_kwargs={})
    assert hasattr(found, "results_best") == hasattr(found, "results_latest") == tracks
    if tracks:
        (best,) = found.results_best.values()
        assert best == {"depth": [0], "max": [0.0], "min": [0.0], "average": [0.0], "std": [0.0]}
        assert [*found.results_latest] == [id(found)]
