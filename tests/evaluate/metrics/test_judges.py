"""Judges: their scores and feedback; blocking, awaited and streamed; what a failing judge raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import sigwire
from sigwire import CompleteAndGrounded, Example, FakeLM, JudgeError, Prediction, SemanticF1
from sigwire.effects.steps import run
from sigwire.evaluate.metric_plan import MetricPlan
from sigwire.evaluate.metrics.verdicts import MajorityJudge, PairwiseJudge
from sigwire.evaluate.scores import MetricError, read_score

EXAMPLE = Example(question="Who built it, and when?", response="Gustave Eiffel, in 1889.")
ANSWER = Prediction(response="Eiffel.", context=["Built by Eiffel.", "Opened in 1889."])
IDEAS = {"ground_truth_key_ideas": "Eiffel; 1889", "system_response_key_ideas": "Eiffel"}
OVERLAP = {"reasoning": "No year.", "recall": 0.5, "precision": 1.0}
COMPLETE = {"reasoning": "r", **IDEAS, "discussion": "No year.", "completeness": 0.5}
GROUNDED = {"reasoning": "r", "system_response_claims": "Eiffel", "discussion": "Passage 1.", "groundedness": 1.0}

Call = Callable[..., Any]


def blocked(judge: sigwire.Module, *args: Any, **kwargs: Any) -> Any:
    return judge(*args, **kwargs)


def awaited(judge: sigwire.Module, *args: Any, **kwargs: Any) -> Any:
    return asyncio.run(judge.acall(*args, **kwargs))


def streamed(judge: sigwire.Module, *args: Any, **kwargs: Any) -> Any:
    *events, last = judge.stream(*args, **kwargs)
    assert any(isinstance(event, sigwire.FieldDelta | sigwire.FieldPartial) for event in events)
    return last.value


async def _astream(judge: sigwire.Module, *args: Any, **kwargs: Any) -> Any:
    events = [event async for event in judge.astream(*args, **kwargs)]
    return events[-1].value


def astreamed(judge: sigwire.Module, *args: Any, **kwargs: Any) -> Any:
    return asyncio.run(_astream(judge, *args, **kwargs))


CALLS = pytest.mark.parametrize("call", [blocked, awaited, streamed, astreamed])


def answering(request: sigwire.Request) -> Any:
    """Answer each request of a judge by the fields that it asks for."""
    text = request.messages[0].text
    fields = {**OVERLAP, **COMPLETE, **GROUNDED, "discussion": "Discussed."}
    return {name: value for name, value in fields.items() if f"[[ ## {name} ## ]]" in text}


def with_lm(judge: Any, answers: Any) -> tuple[Any, FakeLM]:
    lm = FakeLM(answers)
    judge.set_lm(lm)
    return judge, lm


# --- SemanticF1 --------------------------------------------------------------------------------------


@CALLS
def test_semantic_f1_is_the_harmonic_mean(call: Call) -> None:
    judge, lm = with_lm(SemanticF1(), [OVERLAP])
    found = call(judge, EXAMPLE, ANSWER)
    assert found.score == pytest.approx(2 / 3)
    assert found.feedback == "recall 0.50, precision 1.00. No year."
    assert found.subscores == {"recall": 0.5, "precision": 1.0}
    sent = lm.requests[0].messages[-1].text
    assert all(text in sent for text in ("Who built it, and when?", "Gustave Eiffel, in 1889.", "Eiffel."))


@pytest.mark.parametrize(
    ("recall", "precision", "score"), [(0.5, 1.0, 2 / 3), (0, 0, 0), (7, 1, 1), (-1, 1, 0), (1, 0.4, 4 / 7)]
)
def test_shares_are_cut_to_0_and_1(recall: float, precision: float, score: float) -> None:
    judge, _ = with_lm(SemanticF1(), [{**OVERLAP, "recall": recall, "precision": precision}])
    assert judge(EXAMPLE, ANSWER).score == pytest.approx(score)


@pytest.mark.parametrize(("threshold", "expected"), [(0.66, True), (0.67, False)])
def test_score_is_a_bool_when_a_trace_is_given(threshold: float, expected: bool) -> None:
    judge, _ = with_lm(SemanticF1(threshold), [OVERLAP])
    assert judge(EXAMPLE, ANSWER, trace=[]).score is expected


@CALLS
def test_decompositional_judge_asks_for_ideas_and_gives_the_discussion_as_feedback(call: Call) -> None:
    judge, _ = with_lm(SemanticF1(decompositional=True), [{**OVERLAP, **IDEAS, "discussion": "The year is missing."}])
    assert call(judge, EXAMPLE, ANSWER).feedback == "recall 0.50, precision 1.00. The year is missing."


def test_fields_are_renamed() -> None:
    judge, lm = with_lm(SemanticF1(fields={"response": "answer", "question": "query"}), [OVERLAP])
    judge(Example(query="Q?", answer="gold"), Prediction(answer="mine"))
    assert all(text in lm.requests[0].messages[-1].text for text in ("Q?", "gold", "mine"))
    judge, lm = with_lm(SemanticF1(fields={"ground_truth": "gold"}), [OVERLAP])
    judge(Example(question="Q?", gold="label"), Prediction(response="mine"))
    assert "label" in lm.requests[0].messages[-1].text


def test_an_unknown_field_and_no_repeats_are_refused() -> None:
    with pytest.raises(sigwire.ConfigurationError, match=r"no field 'respons'\. Did you mean response\?"):
        SemanticF1(fields={"respons": "answer"})
    with pytest.raises(sigwire.ConfigurationError, match="repeats is 1 or more"):
        SemanticF1(repeats=0)


def test_a_missing_field_names_the_judge() -> None:
    judge, _ = with_lm(SemanticF1(), [])
    with pytest.raises(sigwire.InputError, match=r"SemanticF1 reads 'response' of the prediction; it has answer\."):
        judge(EXAMPLE, Prediction(answer="x"))


@CALLS
def test_repeats_are_averaged_and_the_feedback_is_the_nearest_one(call: Call) -> None:
    answers = [{**OVERLAP, "recall": recall, "reasoning": f"r{recall}"} for recall in (0.0, 1.0, 0.5)]
    judge, lm = with_lm(SemanticF1(repeats=3), lambda request: answers.pop())
    found = call(judge, EXAMPLE, ANSWER)
    assert found.score == pytest.approx((0 + 1 + 2 / 3) / 3)
    assert found.subscores["recall"] == pytest.approx(0.5)
    assert found.feedback.endswith("r0.5")
    assert len(lm.requests) == 3


def test_repeats_are_other_samples_of_the_cache() -> None:
    seen: list[Any] = []

    def answer(request: sigwire.Request) -> Any:
        seen.append(sigwire.settings.rollout_id)
        return OVERLAP

    judge, _ = with_lm(SemanticF1(repeats=2), answer)
    judge(EXAMPLE, ANSWER)
    with sigwire.context(rollout_id=7):
        judge(EXAMPLE, ANSWER)
    assert sorted(map(str, seen)) == ["1", "7", "7/1", "None"]


# --- CompleteAndGrounded -----------------------------------------------------------------------------


@CALLS
def test_complete_and_grounded_asks_two_predictors(call: Call) -> None:
    judge, lm = with_lm(CompleteAndGrounded(), answering)
    found = call(judge, EXAMPLE, ANSWER)
    assert found.score == pytest.approx(2 / 3)
    assert found.feedback == "completeness 0.50, groundedness 1.00. Discussed. Discussed."
    assert found.subscores == {"completeness": 0.5, "groundedness": 1.0}
    sent = "".join(request.messages[-1].text for request in lm.requests)
    assert "[1] Built by Eiffel.\n[2] Opened in 1889." in sent


def test_complete_and_grounded_is_a_bool_when_a_trace_is_given() -> None:
    judge, _ = with_lm(CompleteAndGrounded(threshold=0.7), answering)
    assert judge(EXAMPLE, ANSWER, trace=[]).score is False


def test_state_of_a_judge_is_saved_and_loaded() -> None:
    judge = CompleteAndGrounded()
    judge.groundedness_module.predict.demos = [Example(question="Q")]
    other = CompleteAndGrounded()
    other.load_state(judge.dump_state())
    assert [demo["question"] for demo in other.groundedness_module.predict.demos] == ["Q"]


# --- failures ----------------------------------------------------------------------------------------


@CALLS
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (sigwire.LMRateLimitError("slow down"), "provider"),
        (sigwire.LMServerError("down"), "provider"),
        ("no fields at all", "model"),
        ({**OVERLAP, "recall": "many"}, "model"),
        ({**OVERLAP, "recall": "NaN"}, "model"),
    ],
)
def test_a_failing_judge_raises_a_metric_error_and_scores_nothing(call: Call, failure: Any, kind: str) -> None:
    judge, _ = with_lm(SemanticF1(), [failure])
    with pytest.raises(MetricError, match="The judge SemanticF1 gave no verdict") as caught:
        call(judge, EXAMPLE, ANSWER)
    assert isinstance(caught.value, JudgeError)
    assert caught.value.kind == kind


@pytest.mark.parametrize("error", [sigwire.LMAuthenticationError("no key"), sigwire.LMBillingError("no money")])
def test_errors_of_the_caller_pass(error: Exception) -> None:
    judge, _ = with_lm(SemanticF1(), [error])
    with pytest.raises(type(error)):
        judge(EXAMPLE, ANSWER)


def test_a_judge_without_a_model_is_an_error_of_the_caller() -> None:
    with pytest.raises(sigwire.LMNotConfigured):
        SemanticF1()(EXAMPLE, ANSWER)


# --- as metrics --------------------------------------------------------------------------------------


def test_plan_of_a_judge_reads_score_and_feedback_and_keeps_the_trace_clean() -> None:
    judge, _ = with_lm(SemanticF1(), [OVERLAP])
    with sigwire.context(trace=[]):
        score = run(MetricPlan(judge).steps(EXAMPLE, ANSWER))
        assert sigwire.settings.trace == []
    assert score.value == pytest.approx(2 / 3)
    assert score.feedback.endswith("No year.")
    assert score.subscores == {"recall": 0.5, "precision": 1.0}


# --- majority ----------------------------------------------------------------------------------------


async def awaited_yes(example: Example, prediction: Any) -> bool:
    return True


def no(example: Example, prediction: Any) -> bool:
    return False


@pytest.mark.parametrize("call", [blocked, awaited])
def test_majority_of_metrics_of_every_form(call: Call) -> None:
    judge, _ = with_lm(sigwire.majority_judge(SemanticF1(), awaited_yes, no), [OVERLAP])
    found = call(judge, EXAMPLE, ANSWER)
    assert found.score == 1
    assert found.feedback == "2 of 3 verdicts in favour. recall 0.50, precision 1.00. No year."
    assert found.subscores == {"share": pytest.approx(2 / 3)}


@pytest.mark.parametrize(("judges", "expected"), [((no, awaited_yes), 0.0), ((no,), 0.0), ((awaited_yes,), 1.0)])
def test_a_tie_is_no_majority(judges: Any, expected: float) -> None:
    judge = sigwire.majority_judge(*judges)
    assert judge(EXAMPLE, ANSWER).score == expected
    assert judge(EXAMPLE, ANSWER, trace=[]).score is bool(expected)


def test_majority_of_one_judge_asks_it_several_times() -> None:
    answers = [{**OVERLAP, "recall": recall} for recall in (1, 1, 0)]
    judge, lm = with_lm(sigwire.majority_judge(SemanticF1(), repeats=3), lambda request: answers.pop())
    assert judge(EXAMPLE, ANSWER).score == 1
    assert len(lm.requests) == 3
    assert len(judge.named_predictors()) == 1


@CALLS
def test_one_failing_judge_fails_the_majority(call: Call) -> None:
    judge, _ = with_lm(sigwire.majority_judge(SemanticF1(), awaited_yes, awaited_yes), [sigwire.LMServerError("down")])
    with pytest.raises(JudgeError):
        call(judge, EXAMPLE, ANSWER)


def test_majority_refuses_no_metrics_and_what_is_none() -> None:
    with pytest.raises(sigwire.ConfigurationError, match="at least one metric"):
        sigwire.majority_judge()
    with pytest.raises(sigwire.ConfigurationError):
        sigwire.majority_judge(len)
    with pytest.raises(sigwire.ConfigurationError, match="'nonsense'"):
        MajorityJudge(no, nonsense=1)  # type: ignore[call-arg]


# --- pairs -------------------------------------------------------------------------------------------


@CALLS
@pytest.mark.parametrize(
    ("first", "second", "score"),
    [("A", "B", 1.0), ("B", "A", 0.0), ("A", "A", 0.5), ("B", "B", 0.5), ("tie", "tie", 0.5), ("A", "tie", 0.5)],
)
def test_pairwise_judge_asks_both_orders(call: Call, first: str, second: str, score: float) -> None:
    def answer(request: sigwire.Request) -> Any:
        sent = request.messages[-1].text
        mine_first = sent.index("Eiffel.") < sent.index("Gustave Eiffel, in 1889.")
        return {"reasoning": "Better.", "better": first if mine_first else second}

    judge, lm = with_lm(sigwire.pairwise_judge("more complete"), answer)
    found = call(judge, EXAMPLE, ANSWER)
    assert found.score == score
    stable = (first, second) in (("A", "B"), ("B", "A"), ("tie", "tie"))
    assert found.feedback == ("Better." if stable else "The preference changes with the order of the answers.")
    assert len(lm.requests) == 2
    assert all("more complete" in request.messages[-1].text for request in lm.requests)


def test_pairwise_judge_is_a_bool_when_a_trace_is_given() -> None:
    judge, _ = with_lm(sigwire.pairwise_judge(), [{"reasoning": "", "better": "tie"}] * 2)
    assert judge(EXAMPLE, ANSWER, trace=[]).score is False
    assert read_score(judge.deepcopy().criteria == judge.criteria).value == 1


def test_a_failing_pairwise_judge_raises_a_judge_error() -> None:
    judge, _ = with_lm(sigwire.pairwise_judge(fields={"response": "response"}), [{"reasoning": "", "better": "C"}] * 2)
    with pytest.raises(JudgeError, match="PairwiseJudge gave no verdict"):
        judge(EXAMPLE, ANSWER)
    with pytest.raises(sigwire.ConfigurationError, match="'nonsense'"):
        PairwiseJudge(nonsense=1)  # type: ignore[call-arg]


# --- a judge that the program asks ----------------------------------------------------------------------


class Checked(sigwire.Module):
    """A program that asks a judge about its own answer, which is not read by the metric."""

    def __init__(self) -> None:
        super().__init__()
        self.judge = SemanticF1()

    def forward(self, question: str) -> Prediction:
        return Prediction(response="Eiffel.", reward=self.judge(EXAMPLE, ANSWER).score)


class Outer(sigwire.Module):
    """The same, as a part of another program."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Checked()

    def forward(self, question: str) -> Prediction:
        return self.inner(question=question)


def evaluated_stream(evaluate: sigwire.Evaluate, program: sigwire.Module) -> Any:
    *_, last = evaluate.stream(program)
    return last.value


@pytest.mark.parametrize("make", [Checked, Outer])
@pytest.mark.parametrize(
    "evaluated",
    [lambda run, it: run(it), lambda run, it: asyncio.run(run.acall(it)), evaluated_stream],
    ids=["blocking", "awaited", "streamed"],
)
def test_silent_judge_of_the_program_is_no_failure_of_the_program(evaluated: Call, make: Any) -> None:
    program = make()
    program.set_lm(FakeLM([{**OVERLAP, "recall": float("nan")}]))
    evaluate = sigwire.Evaluate(
        devset=[EXAMPLE.with_inputs("question")],
        metric=lambda example, prediction, trace=None: 1.0,
        display_progress=False,
    )
    result = evaluated(evaluate, program)
    (record,) = result.records
    assert (record.cell.failure.kind, record.cell.failure.type, record.cell.score) == ("metric", "JudgeError", None)
    assert (result.scored, result.unscored) == (0, 1)
