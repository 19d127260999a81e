"""``Parallel`` and ``Refine`` of the door."""

from __future__ import annotations

import asyncio

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


def test_refine_goes_on_without_advice_that_cannot_be_read() -> None:
    lm = dspy.DummyLM([{"answer": "two words"}, {"answer": "no advice"}, {"answer": "word"}])
    refine = dspy.Refine(
        dspy.Predict("question -> answer"), N=3, reward_fn=lambda _, pred: float(" " not in pred.answer), threshold=1.0
    )
    with dspy.context(lm=lm), pytest.warns(UserWarning, match="advice cannot be read"):
        assert refine(question="?").answer == "word"
