"""``Parallel``, ``MultiChainComparison`` and ``Refine`` of the door."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import sigwire.dspy as dspy


def test_parallel_runs_in_a_parallel() -> None:
    lm = dspy.DummyLM([{"output": str(number)} for number in range(4)])
    predict, parallel = dspy.Predict("input -> output", lm=lm), dspy.Parallel(num_threads=2)
    given = dspy.Example(input="x").with_inputs("input")
    pairs = [(predict, given), (parallel, [(predict, given), (predict, given)]), (predict, given)]
    first, inner, last = parallel(pairs)
    assert {first.output, last.output, *(each.output for each in inner)} == set("0123")
    lm = predict.lm = dspy.DummyLM([{"output": "again"}] * 4)
    assert asyncio.run(parallel.acall(pairs))[1][1].output == "again"


def test_parallel_takes_the_options_of_dspy_and_keeps_them_in_a_file(tmp_path: Path) -> None:
    parallel = dspy.Parallel(2, None, True, True, provide_traceback=True, disable_progress_bar=True)
    assert parallel([(len, ("ab",)), (len, (1,))])[:2] == ([2, None], [(1,)])
    parallel.save(tmp_path / "program", save_program=True)
    loaded: Any = dspy.load(tmp_path / "program")
    assert (loaded.num_threads, loaded.return_failed_examples, loaded.provide_traceback) == (2, True, True)


def test_parallel_warns_of_options_that_would_run_a_call_twice() -> None:
    with pytest.warns(UserWarning, match="a slow call is not run a second time"):
        assert dspy.Parallel(timeout=120)([(len, ("ab",))]) == [2]
    with pytest.warns(UserWarning, match="straggler_limit: nothing is run twice"):
        dspy.Parallel(straggler_limit=3)
    with pytest.raises(dspy.ConfigurationError, match="no option 'stragglers'"):
        dspy.Parallel(stragglers=3)  # type: ignore[call-arg]


def test_call_of_a_parallel_has_a_usage_tracker_of_its_own_beside_the_open_one() -> None:
    predict = dspy.Predict("input -> output")
    lm = dspy.DummyLM([{"output": "x"}] * 3)

    def count(entries: int) -> int:
        predict(input="y")
        for _ in range(entries):
            dspy.settings.usage_tracker.add_usage("mine", {"pages": 10})
        return dspy.settings.usage_tracker.get_total_tokens()["mine"]["pages"]

    with dspy.context(lm=lm), dspy.track_usage() as tracker:
        tracker.add_usage("mine", {"pages": 1})
        assert dspy.Parallel()([(count, {"entries": 1}), (count, (3,)), (predict, {"input": "z"})])[:2] == [10, 30]
    assert tracker.get_total_tokens()["mine"] == {"pages": 1}
    assert len(tracker.attempts["dummy"]) == 3


def test_comparison_needs_the_answer_of_each_completion() -> None:
    compare = dspy.MultiChainComparison("city -> country, river", M=2)
    compare.set_lm(dspy.DummyLM([{"rationale": "Both.", "country": "Egypt", "river": "Nile"}]))
    rivers = [dspy.Prediction(river="Nile"), {"reasoning": "By map.", "river": "Niger"}]
    assert compare(rivers, city="Cairo").river == "Nile"
    with pytest.raises(KeyError, match="no 'river'") as caught:
        compare([*rivers[:1], {"country": "Egypt"}], city="Cairo")
    assert isinstance(caught.value, dspy.InputError)


def test_refine_goes_on_without_advice_that_cannot_be_read() -> None:
    lm = dspy.DummyLM([{"answer": "two words"}, {"answer": "no advice"}, {"answer": "word"}])
    refine = dspy.Refine(
        dspy.Predict("question -> answer"), N=3, reward_fn=lambda _, pred: float(" " not in pred.answer), threshold=1.0
    )
    with dspy.context(lm=lm), pytest.warns(UserWarning, match="advice cannot be read"):
        assert refine(question="?").answer == "word"
