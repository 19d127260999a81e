"""The objects of the pictures in README and docs: the run of an agent, and an evaluation. ``docs/pictures.py`` shows them."""

from __future__ import annotations

from pathlib import Path

from optimize_extraction import ReadMail, both_right
from shop import Shop
from support_mail import split

import sigwire
from sigwire import EvaluationResult, Prediction

__all__ = ["agent_run", "evaluation"]


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
