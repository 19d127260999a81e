"""``GEPA`` of the door: what DSPy's metrics, proposers of instructions and adapters of candidates may rely on."""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.core.parts import ImagePart
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError

PHOTOS = [dspy.Image(url=f"https://zoo.example/{name}.png") for name in ("ibex", "lynx")]
ROWS = [dspy.Example(photo=photo, animal="?").with_inputs("photo") for photo in PHOTOS]
proposals: Any = import_module("sigwire.dspy.teleprompt.gepa.instruction_proposal")
adapters: Any = import_module("sigwire.dspy.teleprompt.gepa.gepa_utils")


def wrong(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
    return dspy.Prediction(score=0.5, feedback="Look at the horns.")


def labelled() -> Any:
    return dspy.Predict("photo: dspy.Image -> animal", lm=dspy.FakeLM(lambda request: {"animal": "goat"}))


def tuned(**options: Any) -> Any:
    optimizer = dspy.GEPA(wrong, max_metric_calls=40, num_threads=1, seed=3, **options)
    return optimizer.compile(labelled(), trainset=ROWS, valset=ROWS)


@pytest.mark.parametrize("metric", [lambda gold, pred: 1, lambda gold, pred, trace=None: 1])
def test_metric_of_fewer_than_five_arguments_is_a_type_error(metric: Any) -> None:
    with pytest.raises(TypeError, match="five arguments, gold, pred, trace, pred_name, pred_trace") as caught:
        dspy.GEPA(metric, auto="light")
    assert isinstance(caught.value, ConfigurationError)


@pytest.mark.parametrize("metric", [wrong, lambda *arguments: 1.0, max])
def test_metric_that_can_take_five_arguments_is_taken(metric: Any) -> None:
    assert dspy.GEPA(metric, auto="light").metric is metric


def test_proposer_gets_the_images_of_the_rows_and_the_reflection_model() -> None:
    seen: list[Any] = []
    writer = dspy.FakeLM([])

    def propose(candidate: Any, reflective_dataset: Any, components_to_update: Any) -> dict[str, str]:
        seen.append([run["Inputs"]["photo"] for run in reflective_dataset["self"]])
        assert dspy.settings.lm is writer
        return {}

    tuned(reflection_lm=writer, instruction_proposer=propose)
    assert {photo.url for photo in seen[0]} == {photo.url for photo in PHOTOS}
    assert all(isinstance(photo, dspy.Image) for photo in seen[0])


def test_proposer_gets_the_images_in_a_list_of_an_input() -> None:
    seen: list[Any] = []

    def propose(candidate: Any, reflective_dataset: Any, components_to_update: Any) -> dict[str, str]:
        seen.extend(photo for run in reflective_dataset["self"] for photo in run["Inputs"]["photos"])
        return {}

    album = dspy.Predict("photos: list[dspy.Image] -> animal", lm=dspy.FakeLM(lambda request: {"animal": "goat"}))
    rows = [dspy.Example(photos=[photo], animal="?").with_inputs("photos") for photo in PHOTOS]
    optimizer = dspy.GEPA(wrong, max_metric_calls=40, reflection_lm=dspy.FakeLM([]), instruction_proposer=propose)
    optimizer.compile(album, trainset=rows, valset=rows)
    assert {photo.url for photo in seen} == {photo.url for photo in PHOTOS}


async def test_async_proposer_is_awaited_on_the_loop_of_the_caller() -> None:
    awaited: list[Any] = []
    loop = asyncio.get_running_loop()

    async def propose(candidate: Any, reflective_dataset: Any, components_to_update: Any) -> dict[str, str]:
        awaited.append((dspy.settings.lm is writer, components_to_update, asyncio.get_running_loop() is loop))
        return dict.fromkeys(components_to_update, "Count the horns.")

    writer = dspy.FakeLM([])
    optimizer = dspy.GEPA(wrong, max_metric_calls=40, reflection_lm=writer, instruction_proposer=propose)
    await optimizer.acompile(labelled(), trainset=ROWS, valset=ROWS)
    assert awaited[0] == (True, ["self"], True)


def test_multi_modal_proposer_shows_each_image_to_the_reflection_model() -> None:
    asked: list[Request] = []

    def write(request: Request) -> Any:
        asked.append(request)
        return {"improved_instruction": "Name the horns first."}

    program = tuned(reflection_lm=dspy.FakeLM(write), instruction_proposer=proposals.MultiModalInstructionProposer())
    parts = [part for message in asked[0].messages for part in message.parts]
    assert {part.url for part in parts if isinstance(part, ImagePart)} == {photo.url for photo in PHOTOS}
    text = asked[0].messages[-1].text
    assert ('"photo":{"image":1}' in text.replace(" ", ""), "Look at the horns." in text) == (True, True)
    assert program.optimization.trials[0].candidate.texts == {"self.instructions": "Name the horns first."}


def measured(score: float, brevity: float) -> dspy.Prediction:
    return dspy.Prediction(score=score, feedback="Say goat.", objective_scores={"brevity": brevity})


def test_detailed_results_have_the_objective_scores_of_the_metric() -> None:
    def metric(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
        return measured(*((1.0, 0.25) if pred.animal == "goat" else (0.0, 0.75)))

    lm = dspy.FakeLM(lambda request: {"animal": "goat" if "Say goat." in request.messages[0].text else "cat"})
    program: Any = dspy.GEPA(
        metric, max_metric_calls=30, track_stats=True, num_threads=1,
        reflection_lm=dspy.FakeLM(lambda request: {"instruction": "Say goat."}),
    ).compile(dspy.Predict("photo: dspy.Image -> animal", lm=lm), trainset=ROWS, valset=ROWS)  # fmt: skip
    found = program.detailed_results
    assert found.val_aggregate_subscores == [{"brevity": 0.75}, {"brevity": 0.25}]
    assert found.objective_pareto_front == {"brevity": 0.75}
    assert found.per_objective_best_candidates == {"brevity": [0]}
    assert json.loads(json.dumps(found.to_dict()))["objective_pareto_front"] == {"brevity": 0.75}


def test_too_few_metric_calls_make_one_turn_and_warn() -> None:
    writer = dspy.FakeLM(lambda request: {"instruction": "Say goat."})
    optimizer = dspy.GEPA(wrong, max_metric_calls=3, reflection_lm=writer, num_threads=1)
    with pytest.warns(
        UserWarning, match="max_metric_calls=3 allows no turn of GEPA on 2 validation rows: it makes one"
    ):
        program: Any = optimizer.compile(labelled(), trainset=ROWS, valset=ROWS)
    assert len(writer.history) == 1
    assert 3 < program.optimization.spent.runs <= 16


def test_adapter_makes_and_scores_the_program_of_a_candidate(capsys: pytest.CaptureFixture[str]) -> None:
    def reply(request: Request) -> Any:
        if "lynx" in str(request.messages[-1]):
            raise ValueError("no lynx")
        return {"animal": str("Say what you see." in request.messages[0].text)}

    student: Any = dspy.Predict("photo: dspy.Image -> animal", lm=dspy.FakeLM(reply))
    adapter = adapters.DspyAdapter(
        student_module=student, metric_fn=wrong, feedback_map={}, failure_score=0.1, num_threads=1
    )
    runs = adapter.evaluate(batch=ROWS, candidate={"self": "Say what you see."}, capture_traces=True)
    assert "no lynx" in capsys.readouterr().err
    assert runs.scores == [0.5, 0.1]
    assert (runs.outputs[0].animal, runs.outputs[1]) == ("True", None)
    assert [run["example_ind"] for run in runs.trajectories] == [0]
    assert adapter.evaluate(ROWS[:1], {}).trajectories is None
    assert runs.objective_scores is None
    adapter = adapters.DspyAdapter(student_module=student, metric_fn=lambda *_: measured(0.5, 0.25))
    assert adapter.evaluate(ROWS[:1], {}).objective_scores == [{"brevity": 0.25}]
    assert "Say what you see." not in student.signature.instructions


@pytest.mark.parametrize(("size", "metadata"), [(None, {"metric_key": "eval_full"}), (2, {"disable_logging": True})])
def test_adapter_marks_the_evaluation_of_a_minibatch(
    monkeypatch: pytest.MonkeyPatch, size: int | None, metadata: dict[str, Any]
) -> None:
    given: list[Any] = []

    def run(*arguments: Any, callback_metadata: Any, **options: Any) -> list[Any]:
        given.append(callback_metadata)
        return []

    monkeypatch.setattr(adapters, "bootstrap_trace_data", run)
    adapter = adapters.DspyAdapter(student_module=labelled(), metric_fn=wrong, reflection_minibatch_size=size)
    assert adapter.evaluate(ROWS, {}).scores == [0.0, 0.0]
    assert given == [metadata]
