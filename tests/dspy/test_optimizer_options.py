"""Arguments that the optimizers take and refuse as DSPy's do, and the optimizers that only DSPy has."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.dspy.teleprompt import GRPO, BootstrapFinetune

ROWS = [dspy.Example(word=word, size=str(len(word))).with_inputs("word") for word in ("ant", "bear", "mouse")]


def same(example: Any, prediction: Any, trace: object = None) -> bool:
    return bool(example.size == prediction.size)


def sizing() -> Any:
    return dspy.Predict("word -> size", lm=dspy.FakeLM(lambda request: {"size": "3"}))


def test_an_optimizer_of_weights_is_made_and_its_compile_raises_the_reason() -> None:
    program = dspy.ChainOfThought("word -> size")
    with pytest.raises(ValueError, match=r"BootstrapFinetune is not in sigwire .* trains weights"):
        BootstrapFinetune(same, multitask=False).compile(program, ROWS)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_steps_of_reinforcement_take_each_row_equally_often_in_another_order(size: int) -> None:
    choose = GRPO(num_dspy_examples_per_grpo_step=size).select_training_sample_and_update_shuffled_trainset
    steps = [choose(ROWS, number) for number in range(12)]
    assert {len(step) for step in steps} == {size}
    assert set(Counter(row.word for step in steps for row in step).values()) == {4 * size}
    assert steps == [choose(ROWS, number) for number in range(12)]
    assert len({tuple(row.word for row in step) for step in steps}) > 1


def test_better_together_has_both_optimizers_of_dspy_and_refuses_to_train_before_any_request() -> None:
    lm = dspy.FakeLM(lambda request: {"size": "3"})
    optimizer = dspy.BetterTogether(metric=same)
    assert [*map(type, optimizer.optimizers.values())] == [dspy.BootstrapFewShotWithRandomSearch, BootstrapFinetune]
    for strategy in (None, "w", "p -> w -> p"):
        with pytest.raises(dspy.ConfigurationError, match=r"step 'w' is BootstrapFinetune, which .* trains weights"):
            optimizer.compile(dspy.Predict("word -> size", lm=lm), trainset=ROWS, valset=ROWS, strategy=strategy)
    assert lm.requests == []


def test_better_together_runs_the_steps_of_prompts() -> None:
    optimizer = dspy.BetterTogether(
        same, runs=dspy.BootstrapFewShot(same, max_labeled_demos=0), rows=dspy.LabeledFewShot(1), w=BootstrapFinetune()
    )
    program: Any = optimizer.compile(sizing(), trainset=ROWS[:2], valset=ROWS[2:], strategy="runs -> rows")
    assert {entry["strategy"] for entry in program.candidate_programs} == {"", "runs", "runs -> rows"}


def test_better_together_refuses_what_is_no_optimizer_as_a_wrong_type() -> None:
    with pytest.raises(TypeError, match="'gepa' must be a Teleprompter, not str"):
        dspy.BetterTogether(same, gepa="light")


@pytest.mark.parametrize(
    ("rows", "options", "match"),
    [
        ([], {"valset": ROWS}, "trainset cannot be empty"),
        (ROWS, {"valset_ratio": 1.5}, r"valset_ratio must be in range \[0, 1\), not 1.5"),
        (ROWS, {"valset_ratio": -1, "valset": ROWS}, "valset_ratio must be in range"),
    ],
)
def test_better_together_refuses_wrong_rows_as_a_wrong_value(rows: Any, options: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        dspy.BetterTogether(same).compile(sizing(), trainset=rows, **options)


def test_labeled_few_shot_without_rows_makes_no_demos_and_warns() -> None:
    shown = dspy.Predict("question -> answer")
    shown.demos = [dspy.Example(question="q", answer="a")]
    with pytest.warns(UserWarning, match="trainset is empty"):
        found = dspy.LabeledFewShot(k=3).compile(shown, trainset=iter([]))
    assert (found.demos, len(shown.demos)) == ([], 1)


def test_callbacks_of_labeled_few_shot_get_the_arguments_of_dspy() -> None:
    class Inputs(dspy.BaseCallback):
        def on_compile_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
            seen.append(inputs)

    seen: list[Any] = []
    program = sizing()
    with dspy.context(callbacks=[Inputs()]):
        dspy.LabeledFewShot(k=1).compile(program, trainset=ROWS)
        asyncio.run(dspy.LabeledFewShot(k=1).acompile(program, trainset=ROWS, sample=False))
    assert seen == [{"student": program, "trainset": ROWS, "sample": sample} for sample in (True, False)]


def test_random_search_takes_seeds_once_and_an_only_row() -> None:
    optimizer = dspy.BootstrapFewShotWithRandomSearch(same, num_candidate_programs=2, max_labeled_demos=1)
    program: Any = optimizer.compile(sizing(), trainset=ROWS[:1], restrict=(seed for seed in (-2, 40)))
    assert [entry["seed"] for entry in program.candidate_programs] == [-3, -2]
    with pytest.raises(ValueError, match=r"restrict has no seed of a candidate, only \[2, 9\].* -3 to 1"):
        optimizer.compile(sizing(), trainset=ROWS, restrict=iter([9, 2]))
    assert dspy.BootstrapRS is dspy.BootstrapFewShotWithRandomSearch


def test_models_for_samples_differ_by_their_rollout_and_may_start_with_a_teacher() -> None:
    prepare = import_module("sigwire.dspy.teleprompt.simba_utils").prepare_models_for_resampling
    lm, teacher = dspy.DummyLM([], rollout_id=4), dspy.DummyLM([])
    with dspy.context(lm=lm):
        program = dspy.Predict("question -> answer")
        assert [each.kwargs["rollout_id"] for each in prepare(program, 3)] == [4, 5, 6]
        first, second = prepare(program, 2, {"lm": teacher})
    assert first is teacher
    assert (second.kwargs["temperature"], second.kwargs["rollout_id"]) == (1.0, 5)


def test_choices_of_rows_and_samples_need_rows_and_a_model() -> None:
    with pytest.raises(sigwire.InputError, match="no training rows"):
        GRPO().select_training_sample_and_update_shuffled_trainset([], 0)
    with dspy.context(lm=None), pytest.raises(sigwire.LMNotConfigured, match="resampling"):
        dspy.teleprompt.prepare_models_for_resampling(dspy.Predict("a -> b"), 2)
