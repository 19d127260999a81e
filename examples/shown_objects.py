"""The objects of the pictures in README and docs: the run of an agent, and evaluations. ``docs/pictures.py`` shows them."""

from __future__ import annotations

from pathlib import Path

from optimize_extraction import ReadMail, both_right
from shop import Shop
from support_mail import examples, split
from triage import evaluate, predictor, right, tickets

import sigwire
from sigwire import EvaluationResult, Prediction

__all__ = ["agent_run", "evaluation", "offline", "triage"]


def agent_run(folder: Path) -> Prediction:
    """Return the answer of the shop's agent to a question that needs two tools."""
    agent = sigwire.ReAct("question -> answer", tools=Shop(folder / "shop.sqlite").tools())
    return agent(question="What is the weight of one oak shelf in pounds?")


def evaluation() -> EvaluationResult:
    """Return an evaluation of the two steps that read support mail, the first with demos."""
    train, val, _ = split()
    program = ReadMail()
    program.topic.demos = list(train)
    return sigwire.Evaluate(devset=val, metric=both_right, progress=False)(program)


def triage() -> list[EvaluationResult]:
    """Return evaluations of the cheap model of ``triage.py``, one for each source of its probabilities."""
    return [evaluate(predictor("cheap", source), right, tickets(10_000, 1_000)) for source in SOURCES]


SOURCES = ("measured", "logprob", "sampled", "stated")


def offline() -> list[EvaluationResult]:
    """Return an evaluation of the topic of all support mails, with the probabilities of the embedded model."""
    program = sigwire.Predict(ReadMail().topic.signature, evidence="measured")
    return [sigwire.Evaluate(devset=examples(), metric=right_topic, progress=False)(program)]


def right_topic(example: sigwire.Example, prediction: Prediction) -> float:
    return float(example.topic == prediction.topic)
