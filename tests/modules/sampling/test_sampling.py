"""``BestOfN``, ``Refine``, ``MultiChainComparison``: which run is returned, what a model reads, what errors do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import sigwire
from sigwire import FakeLM, Prediction, Request
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.modules.sampling.best_of_n import BestOfN
from sigwire.modules.sampling.multi_chain import MultiChainComparison
from sigwire.modules.sampling.refine import Refine

Drive = Callable[..., Any]


async def blocking(program: Module, **inputs: Any) -> Any:
    return program(**inputs)


async def awaited(program: Module, **inputs: Any) -> Any:
    return await program.acall(**inputs)


async def streamed(program: Module, **inputs: Any) -> Any:
    *_, last = program.stream(**inputs)
    return last.value


async def streamed_awaited(program: Module, **inputs: Any) -> Any:
    return [event async for event in program.astream(**inputs)][-1].value


DRIVES = [blocking, awaited, streamed, streamed_awaited]


def answers(*texts: str) -> FakeLM:
    return FakeLM([{"answer": text} for text in texts])


def length(inputs: Mapping[str, Any], prediction: Any) -> float:
    return float(len(prediction.answer))


@pytest.mark.parametrize("drive", DRIVES)
async def test_best_of_n_returns_the_first_result_at_the_threshold(drive: Drive) -> None:
    lm = answers("a", "abcd", "abcdef")
    best = BestOfN(Predict("question -> answer", lm=lm), 3, length, threshold=3)
    assert (await drive(best, question="q")).answer == "abcd"
    assert len(lm.requests) == 2


@pytest.mark.parametrize("drive", DRIVES)
async def test_best_of_n_returns_the_first_of_the_best_results_below_the_threshold(drive: Drive) -> None:
    best = BestOfN(Predict("question -> answer", lm=answers("a", "abc", "xyz")), 3, length, threshold=9)
    assert (await drive(best, question="q")).answer == "abc"


def test_rewards_may_be_async_functions_modules_and_scores() -> None:
    async def reward(inputs: Mapping[str, Any], prediction: Any) -> float:
        return length(inputs, prediction)

    class Reward(Module):
        def forward(self, inputs: Mapping[str, Any], prediction: Any) -> Prediction:
            return Prediction(score=length(inputs, prediction), feedback="longer")

    for each in (reward, Reward()):
        best = BestOfN(Predict("question -> answer", lm=answers("a", "abc")), 2, each, threshold=3)
        assert best(question="q").answer == "abc"


def test_reward_that_is_no_number_is_an_error_with_the_value() -> None:
    best = BestOfN(Predict("question -> answer", lm=answers("a")), 1, lambda inputs, prediction: "good", threshold=1)
    with pytest.raises(sigwire.ConfigurationError, match="'good'"):
        best(question="q")


def test_failed_runs_are_tolerated_up_to_fail_count() -> None:
    def module(*replies: object) -> Predict[..., Any]:
        return Predict("question -> answer: int", lm=FakeLM(list(replies)))  # type: ignore[arg-type]

    assert BestOfN(module("no", {"answer": 7}), 2, lambda inputs, prediction: 1.0, 1)(question="q").answer == 7
    with pytest.raises(sigwire.AdapterParseError):
        BestOfN(module("no", {"answer": 7}), 2, lambda inputs, prediction: 1.0, 1, fail_count=0)(question="q")
    with pytest.raises(sigwire.AdapterParseError):
        BestOfN(module("no", "no"), 2, lambda inputs, prediction: 1.0, 1)(question="q")


def test_fail_count_is_the_same_for_every_call() -> None:
    lm = FakeLM(["no", {"answer": 1}, "no", {"answer": 2}])
    best = BestOfN(Predict("question -> answer: int", lm=lm), 2, lambda inputs, prediction: 1.0, 1, fail_count=1)
    assert [best(question="q").answer for _ in range(2)] == [1, 2]


def test_error_of_the_caller_ends_the_runs() -> None:
    lm = answers("a", "b")
    best = BestOfN(Predict("question -> answer", lm=lm), 2, length, threshold=9)
    with pytest.raises(sigwire.InputError):
        best(wrong="q")
    assert lm.requests == []


def test_trace_has_the_calls_of_the_returned_run_only() -> None:
    trace: list[Any] = []
    best = BestOfN(Predict("question -> answer", lm=answers("a", "abc")), 2, length, threshold=3)
    with sigwire.context(trace=trace):
        best(question="q")
    assert [prediction.answer for _, _, prediction in trace] == ["abc"]


def test_each_run_asks_the_cache_for_another_sample() -> None:
    seen: list[object] = []

    class Program(Module):
        def forward(self, question: str) -> Prediction:
            seen.append(sigwire.settings.rollout_id)
            return Prediction(answer="a")

    with sigwire.context(rollout_id=4):
        BestOfN(Program(), 3, length, threshold=9)(question="q")
    BestOfN(Program(), 2, length, threshold=9)(question="q")
    assert seen == [4, "4/best-1", "4/best-2", None, "best-1"]


@pytest.mark.parametrize("drive", DRIVES)
async def test_refine_adds_advice_to_the_next_run_and_does_not_change_the_module(drive: Drive) -> None:
    texts: list[str] = []

    def reply(request: Request) -> Mapping[str, Any]:
        texts.append("\n".join(message.text for message in request.messages))
        return [{"answer": "a"}, {"advice": {"self": "Write three letters."}}, {"answer": "abc"}][len(texts) - 1]

    predict = Predict("question -> answer", lm=FakeLM(reply))  # type: ignore[arg-type]
    refine = Refine(predict, 2, length, threshold=3)
    assert (await drive(refine, question="why?")).answer == "abc"
    assert "why?" in texts[1]
    assert "Write three letters." in texts[2]
    assert "Write three letters." not in predict.signature.instructions


def test_refine_asks_for_no_advice_after_the_last_run() -> None:
    lm = FakeLM([{"answer": "a"}, {"advice": {}}, {"answer": "b"}])
    assert Refine(Predict("question -> answer", lm=lm), 2, length, threshold=3)(question="q").answer == "a"
    assert len(lm.requests) == 3


def test_refine_names_the_predictors_of_a_program() -> None:
    class Two(Module):
        def __init__(self, lm: FakeLM) -> None:
            super().__init__()
            self.draft, self.final = Predict("question -> draft", lm=lm), Predict("draft -> answer", lm=lm)

        def forward(self, question: str) -> Any:
            return self.final(draft=self.draft(question=question).draft)

    lm = FakeLM([{"draft": "d"}, {"answer": "a"}, {"advice": {"final": "Be long."}}, {"draft": "d"}, {"answer": "abc"}])
    assert Refine(Two(lm), 2, length, threshold=3)(question="q").answer == "abc"
    asked = lm.requests[2].messages[-1].text
    assert "draft" in asked
    assert "final" in asked
    assert "Be long." in "".join(message.text for message in lm.requests[4].messages)


@pytest.mark.parametrize("drive", DRIVES)
async def test_comparison_shows_whole_reasoning_and_answers(drive: Drive) -> None:
    lm = FakeLM([{"rationale": "Two say blue.", "answer": "blue"}])
    compare = MultiChainComparison("question -> answer", M=2, lm=lm)
    given = [Prediction(reasoning="One.\nTwo.", answer="blue"), {"rationale": "Dusk.", "answer": "red"}]
    result = await drive(compare, completions=given, question="Which?")
    assert (result.rationale, result.answer) == ("Two say blue.", "blue")
    text = lm.requests[0].messages[-1].text
    assert "One.\nTwo.\nanswer: blue" in text
    assert "Dusk.\nanswer: red" in text


def test_comparison_takes_a_prediction_with_completions_and_refuses_another_number() -> None:
    lm = FakeLM([{"rationale": "r", "answer": "a"}])
    compare = MultiChainComparison("question -> answer", M=2, lm=lm)
    sampled = Prediction.from_completions([{"reasoning": "x", "answer": "a"}, {"reasoning": "y", "answer": "b"}])
    assert compare(sampled, question="q").answer == "a"
    with pytest.raises(sigwire.InputError, match="compares 2 answers, not 1"):
        compare([{"answer": "a"}], question="q")


@pytest.mark.parametrize(
    "make", [lambda: BestOfN(Predict("q -> a"), 0, length, 1), lambda: BestOfN("q -> a", 1, length, 1)]
)  # type: ignore[arg-type]
def test_best_of_n_refuses_no_runs_and_no_module(make: Callable[[], object]) -> None:
    with pytest.raises(sigwire.ConfigurationError):
        make()
