"""Run a grid as one experiment: `python examples/experiment.py`, with no key and no network.

Two programs choose the topic of a support mail, each as it is and with 48 demos, which a seed draws from the training mails.
The plan is printed before any call. The table is that of the 60 test mails, over three seeds: as text, as LaTeX for a paper,
and on the page that the last line names.

The default model is `offline/lexical`: rules about words, not a language model. `SIGWIRE_LM=openai/gpt-5-mini` runs the same
grid with another model, for at most one dollar. The folder holds each run that was paid: the script goes on where it was
killed. In the folder of this file, `sigwire experiment experiment:experiment --out DIR` runs the same grid, and
`sigwire reproduce DIR` runs it again from the recorded answers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from support_mail import split

import sigwire
from sigwire import (
    Budget,
    DataSplit,
    Example,
    Experiment,
    ExperimentResult,
    InputField,
    OutputField,
    Prediction,
    Signature,
)

MODEL = os.environ.get("SIGWIRE_LM") or "offline/lexical"


class ReadTopic(Signature):
    """Choose the topic of the customer's message."""

    message: str = InputField()
    topic: Literal["delivery", "billing", "refund", "damage", "account", "product"] = OutputField()


def topic_right(example: Example, prediction: Prediction, trace: object = None) -> bool:
    return bool(prediction.topic == example.topic)


train, val, test = split()
experiment = Experiment(
    programs={"direct": sigwire.Predict(ReadTopic), "reasons": sigwire.ChainOfThought(ReadTopic)},
    models={MODEL: sigwire.LM(MODEL)},
    optimizers={"none": None, "demos": sigwire.LabeledFewShot(k=48)},
    datasets=DataSplit(tuple(train), tuple(val), tuple(test)),
    metric=topic_right,
    seeds=range(3),
)


def main() -> int:
    folder = Path("runs") / f"experiment-{MODEL.replace('/', '-')}"
    try:
        print(experiment.plan(folder))
        result = experiment.run(folder, budget=Budget(money=1.0))
    except (sigwire.ConfigurationError, sigwire.LMError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    show(result, folder)
    return 0


def show(result: ExperimentResult, folder: Path) -> None:
    print()
    result.show()
    print()
    for sentence in result.compare("optimizer", baseline="none").sentences:
        print(sentence)
    print(f"\n{result.to_latex()}\n")
    page = folder / "experiment.html"
    result.to_html(page)
    print(page)


if __name__ == "__main__":
    sys.exit(main())
