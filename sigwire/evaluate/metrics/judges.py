"""Judges: metrics that ask a model. ``SemanticF1`` and ``CompleteAndGrounded``.

A judge is a module: a call blocks, is awaited or streamed, its model is that of ``set_lm`` or the settings, and its state is
saved with ``save``. It returns ``Prediction(score=, feedback=, subscores=)``; if ``trace`` is given, ``score`` is a bool. If
the judge's model fails, ``JudgeError`` is raised: the example is not scored, and in particular not with 0.

A judge prefers some texts for their length or their place. ``agreement`` measures how far its verdicts are those of people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from statistics import fmean
from typing import Any, Literal, TypeVar

from sigwire.core.example import Prediction
from sigwire.core.narrow import is_items
from sigwire.effects.gather import Gather
from sigwire.effects.steps import Steps
from sigwire.errors import (
    ConfigurationError,
    LMAuthenticationError,
    LMBillingError,
    LMError,
    LMUnsupportedModelError,
    ModelError,
    suggest,
)
from sigwire.evaluate.metrics.reading import read_field
from sigwire.evaluate.scores import MetricError
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.module import Module
from sigwire.settings import context, sample_in_context
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature

__all__ = [
    "CompleteAndGrounded", "JudgeError", "SemanticF1", "ask_judge", "check_repeats", "field_names", "read_fields",
    "sample",
]  # fmt: skip

T = TypeVar("T")


class JudgeError(MetricError):
    """The model of a judge gave no verdict. ``kind``: the "provider" did not answer, or the "model" answered unusably."""

    def __init__(self, message: str, kind: Literal["provider", "model"] = "model") -> None:
        super().__init__(message)
        self.kind = kind


class MeasureOverlap(Signature):
    """Compare a system's response with the ground truth for the same question.

    Judge facts and ideas, not wording, length or order.
    """

    question: str = InputField()
    ground_truth: str = InputField()
    system_response: str = InputField()
    recall: float = OutputField(desc="share of the ground truth's ideas that the system response has, from 0 to 1")
    precision: float = OutputField(desc="share of the system response's ideas that the ground truth has, from 0 to 1")


class MeasureIdeaOverlap(Signature):
    """Compare a system's response with the ground truth for the same question, idea by idea.

    List the key ideas of both texts first, discuss which of them the other text has, and then measure. Judge facts and ideas,
    not wording, length or order.
    """

    question: str = InputField()
    ground_truth: str = InputField()
    system_response: str = InputField()
    ground_truth_key_ideas: str = OutputField(desc="the key ideas of the ground truth, as a list")
    system_response_key_ideas: str = OutputField(desc="the key ideas of the system response, as a list")
    discussion: str = OutputField(desc="which ideas both texts have, and which only one of them has")
    recall: float = OutputField(desc="share of the ground truth's ideas that the system response has, from 0 to 1")
    precision: float = OutputField(desc="share of the system response's ideas that the ground truth has, from 0 to 1")


class MeasureCompleteness(Signature):
    """Measure how much of the ground truth a system's response covers.

    List the key ideas of both texts first and discuss which ideas of the ground truth are in the response. Further ideas of the
    response do not count against it.
    """

    question: str = InputField()
    ground_truth: str = InputField()
    system_response: str = InputField()
    ground_truth_key_ideas: str = OutputField(desc="the key ideas of the ground truth, as a list")
    system_response_key_ideas: str = OutputField(desc="the key ideas of the system response, as a list")
    discussion: str = OutputField(desc="which ideas of the ground truth the system response has, and which it lacks")
    completeness: float = OutputField(
        desc="share of the ground truth's ideas that the system response has, from 0 to 1"
    )


class MeasureGroundedness(Signature):
    """Measure how much of a system's response the retrieved documents support, or common knowledge.

    List the checkable claims of the response first and discuss for each claim which passage supports it.
    """

    question: str = InputField()
    retrieved_context: str = InputField()
    system_response: str = InputField()
    system_response_claims: str = OutputField(desc="the checkable claims of the system response, as a list")
    discussion: str = OutputField(desc="for each claim, the passage that supports or contradicts it")
    groundedness: float = OutputField(desc="share of the claims that are supported, from 0 to 1")


class SemanticF1(Module):
    """A judge: F1 of the ideas that ``pred.response`` and ``example.response`` share. One request a repeat.

    The model estimates recall and precision, each cut to 0..1, and the score is their harmonic mean; with ``trace``, whether
    it is ``threshold`` or more. ``decompositional=True`` asks for the key ideas of both texts first. ``fields`` renames the
    fields that are read: ``question``, ``response``, and ``ground_truth``, which has the name of ``response`` by default.
    ``repeats``: how many verdicts are averaged, each another sample of the cache (``rollout_id``).

    >>> from sigwire.core.example import Example
    >>> from sigwire.lm.fake import FakeLM
    >>> judge = SemanticF1(fields={"response": "answer"})
    >>> judge.set_lm(FakeLM([{"reasoning": "The year is missing.", "recall": 0.5, "precision": 1.0}]))
    >>> verdict = judge(Example(question="Who, when?", answer="Eiffel, 1889"), Prediction(answer="Eiffel"))
    >>> round(verdict.score, 2), verdict.feedback
    (0.67, 'recall 0.50, precision 1.00. The year is missing.')
    """

    def __init__(
        self,
        threshold: float = 0.66,
        decompositional: bool = False,
        *,
        fields: Mapping[str, str] | None = None,
        repeats: int = 1,
    ) -> None:
        super().__init__()
        self.threshold = threshold
        self.fields = field_names(fields, ("question", "response", "ground_truth"))
        self.repeats = check_repeats(repeats)
        self.module = ChainOfThought(MeasureIdeaOverlap if decompositional else MeasureOverlap)

    def steps(self, example: object, pred: object, trace: object = None) -> Steps[Prediction]:
        """Return the steps of one verdict."""
        inputs = read_fields(self, self.fields, {"question": example, "ground_truth": example, "response": pred})
        inputs["system_response"] = inputs.pop("response")
        verdicts = yield Gather([self._verdict_steps(inputs, repeat) for repeat in range(self.repeats)])
        return _overall(verdicts, self.threshold, trace)

    def _verdict_steps(self, inputs: Mapping[str, str], repeat: int) -> Steps[_Verdict]:
        answer = yield from ask_judge(self, self.module, inputs, repeat)
        shares = {name: _share(answer, name, self) for name in ("recall", "precision")}
        return _verdict(shares, [answer])


class CompleteAndGrounded(Module):
    """A judge: whether ``pred.response`` covers ``example.response`` and is supported by ``pred.context``. Two requests a
    repeat.

    The score is the harmonic mean of completeness and groundedness, each cut to 0..1; with ``trace``, whether it is
    ``threshold`` or more. ``fields`` renames the fields that are read: ``question``, ``response``, ``context``, and
    ``ground_truth``, which has the name of ``response`` by default. ``repeats``: how many verdicts are averaged.
    """

    def __init__(self, threshold: float = 0.66, *, fields: Mapping[str, str] | None = None, repeats: int = 1) -> None:
        super().__init__()
        self.threshold = threshold
        self.fields = field_names(fields, ("question", "response", "ground_truth", "context"))
        self.repeats = check_repeats(repeats)
        self.completeness_module = ChainOfThought(MeasureCompleteness)
        self.groundedness_module = ChainOfThought(MeasureGroundedness)

    def steps(self, example: object, pred: object, trace: object = None) -> Steps[Prediction]:
        """Return the steps of one verdict."""
        sources = {"question": example, "ground_truth": example, "response": pred, "context": pred}
        inputs = read_fields(self, self.fields, sources)
        verdicts = yield Gather([self._verdict_steps(inputs, repeat) for repeat in range(self.repeats)])
        return _overall(verdicts, self.threshold, trace)

    def _verdict_steps(self, inputs: Mapping[str, str], repeat: int) -> Steps[_Verdict]:
        asked = {"question": inputs["question"], "system_response": inputs["response"]}
        complete, grounded = yield Gather(
            [
                ask_judge(self, self.completeness_module, {**asked, "ground_truth": inputs["ground_truth"]}, repeat),
                ask_judge(self, self.groundedness_module, {**asked, "retrieved_context": inputs["context"]}, repeat),
            ]
        )
        shares = {
            "completeness": _share(complete, "completeness", self),
            "groundedness": _share(grounded, "groundedness", self),
        }
        return _verdict(shares, [complete, grounded])


# --- asking ------------------------------------------------------------------------------------------

_CALLERS = (LMAuthenticationError, LMBillingError, LMUnsupportedModelError)  # no other example can succeed


def ask_judge(judge: Module, predictor: Module, inputs: Mapping[str, object], repeat: int = 0) -> Steps[Any]:
    """Return the steps of a request of a judge. Raises ``JudgeError`` if its model fails, other errors unchanged.

    ``repeat`` above 0 asks for another sample of the cache.
    """
    try:
        with sample(repeat):
            return (yield from predictor.call_steps(**inputs))
    except _CALLERS:
        raise
    except (LMError, ModelError) as error:
        kind: Literal["provider", "model"] = "provider" if isinstance(error, LMError) else "model"
        raise JudgeError(
            f"The judge {type(judge).__name__} gave no verdict: {type(error).__name__}: {error} (scoring). "
            "The example has no score; run it again, or choose another model with judge.set_lm(...).",
            kind,
        ) from error


def sample(repeat: int) -> AbstractContextManager[None]:
    """Return a context whose calls share no stored answers with those of another ``repeat``. 0 changes nothing."""
    return context(rollout_id=sample_in_context(repeat)) if repeat else nullcontext()


def read_fields(judge: object, fields: Mapping[str, str], sources: Mapping[str, object]) -> dict[str, str]:
    """Return the texts that a judge reads, by its own names. Lists become numbered passages."""
    metric = type(judge).__name__
    return {name: _text(read_field(source, fields[name], metric)) for name, source in sources.items()}


def _text(value: object) -> str:
    if is_items(value):
        return "\n".join(f"[{at}] {passage}" for at, passage in enumerate(value, 1))
    return "" if value is None else str(value)


def field_names(given: Mapping[str, str] | None, known: Sequence[str]) -> dict[str, str]:
    given = dict(given or {})
    if unknown := given.keys() - {*known}:
        name = min(unknown)
        raise ConfigurationError(
            f"A judge reads no field {name!r}. {suggest(name, known)}fields renames {', '.join(known)}."
        )
    names = {name: given.get(name, name) for name in known}
    names["ground_truth"] = given.get("ground_truth", names["response"])
    return names


def check_repeats(repeats: int) -> int:
    if repeats < 1:
        raise ConfigurationError(f"repeats is 1 or more, not {repeats!r}.")
    return repeats


# --- verdicts ----------------------------------------------------------------------------------------


class _Verdict:
    """One answer of a judge: its score, the shares behind it, its text."""

    __slots__ = ("feedback", "score", "shares")

    def __init__(self, score: float, shares: Mapping[str, float], feedback: str) -> None:
        self.score, self.shares, self.feedback = score, shares, feedback


def _verdict(shares: Mapping[str, float], answers: Sequence[Prediction]) -> _Verdict:
    texts = [str(answer.get("discussion") or answer.get("reasoning") or "") for answer in answers]
    numbers = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    first, second = shares.values()
    score = 2 * first * second / (first + second) if first + second else 0.0
    return _Verdict(score, shares, " ".join([f"{numbers}.", *filter(None, texts)]))


def _share(answer: Prediction, name: str, judge: object) -> float:
    """Return a number of the judge, cut to 0..1. Raises ``JudgeError`` if it is NaN."""
    number = float(answer[name])
    if math.isnan(number):
        raise JudgeError(
            f"The judge {type(judge).__name__} gave no verdict: {name} is NaN (scoring). Run the example again."
        )
    return min(max(number, 0.0), 1.0)


def _overall(verdicts: Sequence[_Verdict], threshold: float, trace: object) -> Prediction:
    """Return the mean of the verdicts, with the text of the verdict that is nearest to it."""
    score = fmean(verdict.score for verdict in verdicts)
    typical = min(verdicts, key=lambda verdict: abs(verdict.score - score))
    subscores = {name: fmean(verdict.shares[name] for verdict in verdicts) for name in typical.shares}
    shown = score if trace is None else score >= threshold
    return Prediction(score=shown, feedback=typical.feedback, subscores=subscores)
