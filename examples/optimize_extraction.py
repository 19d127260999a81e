"""Optimize the reading of support mail: `python examples/optimize_extraction.py`, with no key and no network.

A program of two steps reads the topic of a message and the number of its order. The data are 168 written messages
(`support_mail.py`) in three parts that share none. First the demos of the whole program are searched, then those of the step
that the baseline gets wrong. The gain is measured once, on the test messages, which no search sees.

The default model is `offline/lexical`: rules about words, not a language model. `SIGWIRE_LM=openai/gpt-5-mini` runs the same
script with another model. A journal holds each run that was paid: the script goes on where it was killed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from support_mail import split

import sigwire
from sigwire import Example, InputField, OptimizationReport, OutputField, Prediction, Score, Signature

Topic = Literal["delivery", "billing", "refund", "damage", "account", "product"]


class ReadTopic(Signature):
    """Choose the topic of the customer's message."""

    message: str = InputField()
    topic: Topic = OutputField()


class ReadOrder(Signature):
    """Read the number of the order in the message; 0 if it has none."""

    message: str = InputField()
    order: int = OutputField()


class ReadMail(sigwire.Module):
    """Reads the topic and the order of a message."""

    def __init__(self) -> None:
        super().__init__()
        self.topic = sigwire.Predict(ReadTopic)
        self.order = sigwire.Predict(ReadOrder)

    def forward(self, message: str) -> Prediction:
        return Prediction(topic=self.topic(message=message).topic, order=self.order(message=message).order)


def both_right(example: Example, prediction: Prediction, trace: object = None) -> Score:
    """Score half a point for the topic, and half a point for the order."""
    parts = {name: float(prediction[name] == example[name]) for name in ("topic", "order")}
    return Score(sum(parts.values()) / len(parts), subscores=parts)


def topic_right(example: Example, prediction: Prediction, trace: object = None) -> bool:
    return bool(prediction.topic == example.topic)


def main() -> int:
    model = os.environ.get("SIGWIRE_LM") or "offline/lexical"
    try:
        sigwire.configure(lm=sigwire.LM(model))
        optimize(model, Path("runs"))
    except (sigwire.ConfigurationError, sigwire.LMError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


def optimize(model: str, folder: Path) -> None:
    train, val, test = split()
    print(f"{model}: {len(train)} messages for training, {len(val)} for the choice, {len(test)} for the test")
    name = model.replace("/", "-")

    # The whole program: each candidate gives demos to both steps.
    student = ReadMail()
    search = sigwire.BootstrapFewShotWithRandomSearch(
        both_right, max_labeled_demos=48, num_candidate_programs=2, budget=2_000, journal=folder / f"mail-{name}.jsonl"
    )
    print(f"\n1. Demos for both steps. The plan: {search.plan(student, train, val)}")
    OptimizationReport.of(search.compile(student, trainset=train, valset=val)).show()

    # The step that is wrong most often.
    search = sigwire.BootstrapFewShotWithRandomSearch(
        topic_right,
        max_labeled_demos=60,
        num_candidate_programs=4,
        budget=2_000,
        journal=folder / f"topic-{name}.jsonl",
    )
    print(f"\n2. Demos for the topic. The plan: {search.plan(student.topic, train, val)}")
    optimized = ReadMail()
    optimized.topic = search.compile(student.topic, trainset=train, valset=val)
    OptimizationReport.of(optimized.topic).show()

    # The test: both programs on the messages that no search has seen.
    evaluate = sigwire.Evaluate(devset=test, metric=both_right)
    baseline = evaluate(student, log=folder / f"mail-{name}-baseline.jsonl")
    comparison = sigwire.compare(
        {"baseline": baseline, "optimized": evaluate(optimized, log=folder / f"mail-{name}-optimized.jsonl")}
    )
    print("\n3. The test")
    comparison.show()
    print(comparison["optimized"].sentence)


if __name__ == "__main__":
    sys.exit(main())
