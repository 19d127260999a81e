"""Verdicts of several judgements: a majority of judges, and a pair of answers in both orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sigwire.core.example import Example, Prediction
from sigwire.effects.gather import Gather
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.evaluate.metric_plan import Metric, MetricPlan
from sigwire.evaluate.metrics.judges import ask_judge, check_repeats, field_names, read_fields, sample
from sigwire.evaluate.scores import Score
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.module import Module
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature

__all__ = ["MajorityJudge", "PairwiseJudge", "majority_judge", "pairwise_judge"]


def majority_judge(*judges: Metric, repeats: int = 1, threshold: float = 0.66) -> MajorityJudge:
    """Return a metric: 1 if more than half of the verdicts of these metrics are ``threshold`` or more, else 0.

    Each metric, a judge or a function, gives ``repeats`` verdicts; each repeat is another sample of the cache. The verdicts are
    asked for at once. The feedback is that of the majority; the subscore ``share`` is the share of verdicts in favour. A judge
    without a verdict raises ``JudgeError``: the rest does not decide.

    >>> def short(example, prediction):
    ...     return len(prediction.answer) < 10
    >>> def polite(example, prediction):
    ...     return "please" in prediction.answer
    >>> majority_judge(short, polite, short)(Example(), Prediction(answer="Go!")).score
    1.0
    """
    return MajorityJudge(*judges, repeats=repeats, threshold=threshold)


class MajorityJudge(Module):
    """The module of ``majority_judge``. ``judges`` are its metrics."""

    def __init__(self, *judges: Metric, repeats: int = 1, threshold: float = 0.66) -> None:
        super().__init__()
        if not judges:
            raise ConfigurationError(
                "majority_judge takes at least one metric. Write majority_judge(SemanticF1(), repeats=3)."
            )
        for judge in judges:
            MetricPlan(judge)  # raises for what is no metric
        self.judges = list(judges)
        self.repeats = check_repeats(repeats)
        self.threshold = threshold

    def steps(self, example: Example, pred: object, trace: object = None) -> Steps[Prediction]:
        """Return the steps of all verdicts and their count."""
        asked = [(judge, repeat) for judge in self.judges for repeat in range(self.repeats)]
        scores: list[Score] = yield Gather([_score_steps(judge, repeat, example, pred) for judge, repeat in asked])
        votes = [score.value >= self.threshold for score in scores]
        share = sum(votes) / len(votes)
        is_yes = share > 0.5
        texts = [score.feedback for score, vote in zip(scores, votes, strict=True) if vote is is_yes and score.feedback]
        feedback = " ".join([f"{sum(votes)} of {len(votes)} verdicts in favour.", *dict.fromkeys(texts)])
        score = float(is_yes) if trace is None else is_yes
        return Prediction(score=score, feedback=feedback, subscores={"share": share})


def _score_steps(judge: Metric, repeat: int, example: Example, pred: object) -> Steps[Score]:
    with sample(repeat):
        return (yield from MetricPlan(judge).steps(example, pred))


def pairwise_judge(criteria: str = "", *, fields: Mapping[str, str] | None = None) -> PairwiseJudge:
    """Return a metric: whether a judge prefers ``pred.response`` to ``example.response``; both orders are asked.

    1 if the prediction is preferred in both orders, 0 if the example's response is, 0.5 for a tie or a preference that changes
    with the order. ``criteria`` states what is better. ``fields`` renames the fields that are read: ``question``, ``response``,
    and ``ground_truth``, which has the name of ``response`` by default. Two requests, at once.

    >>> from sigwire.lm.fake import FakeLM
    >>> judge = pairwise_judge("shorter is better")
    >>> judge.set_lm(FakeLM([{"reasoning": "", "better": "A"}, {"reasoning": "", "better": "A"}]))
    >>> judge(Example(question="2+2?", response="It is 4."), Prediction(response="4")).feedback
    'The preference changes with the order of the answers.'
    """
    return PairwiseJudge(criteria, fields=fields)


class ChooseAnswer(Signature):
    """Choose the better of two answers to a question, by the criteria.

    Judge the content only. The order of the answers and their length do not count.
    """

    question: str = InputField()
    criteria: str = InputField()
    answer_a: str = InputField()
    answer_b: str = InputField()
    better: Literal["A", "B", "tie"] = OutputField()


class PairwiseJudge(Module):
    """The module of ``pairwise_judge``. ``module`` is its predictor."""

    def __init__(self, criteria: str = "", *, fields: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.criteria = criteria or "the answer that is more correct and more helpful"
        self.fields = field_names(fields, ("question", "response", "ground_truth"))
        self.module = ChainOfThought(ChooseAnswer)

    def steps(self, example: object, pred: object, trace: object = None) -> Steps[Prediction]:
        """Return the steps of both orders."""
        texts = read_fields(self, self.fields, {"question": example, "ground_truth": example, "response": pred})
        mine, other = texts["response"], texts["ground_truth"]
        asked = {"question": texts["question"], "criteria": self.criteria}
        orders = ({**asked, "answer_a": mine, "answer_b": other}, {**asked, "answer_a": other, "answer_b": mine})
        first, second = yield Gather([ask_judge(self, self.module, order) for order in orders])
        values = (_VALUES[first.better], 1 - _VALUES[second.better])
        is_stable = values[0] == values[1]
        value = values[0] if is_stable else 0.5
        feedback = str(first.reasoning or "") if is_stable else "The preference changes with the order of the answers."
        return Prediction(
            score=value if trace is None else value > 0.5,
            feedback=feedback,
            subscores={"first": values[0], "second": values[1]},
        )


_VALUES = {"A": 1.0, "B": 0.0, "tie": 0.5}
