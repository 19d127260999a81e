"""Tune the descriptions of tools: `python examples/optimize_tools.py`, with no key and no network.

A support desk has eight tools whose descriptions are those of its developers ("Open inbound RMA."); customers use other words.
GEPA rewrites the descriptions of tools that failing runs confuse. The data are 120 written requests (`support_tools.py`) in
three parts that share none. The gain is measured on the test requests, which the search does not see.

The default model is `offline/lexical`: rules about words, not a language model. It cannot write, so `words_of_customers` below
writes the descriptions. `SIGWIRE_LM=openai/gpt-5-mini` runs the same script with another model, which writes its own. A journal
holds each run that was paid: the script goes on where it was killed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support_tools import split

import sigwire
from sigwire import InputField, OptimizationReport, OutputField, Signature, Tool, ToolCalls


class ChooseCall(Signature):
    """Choose the tool call that serves the customer's request."""

    request: str = InputField()
    tools: list[Tool] = InputField()
    tool_calls: ToolCalls = OutputField()


COMMON = frozenset(
    "a all am an and any are as at be been but by can could did do does for from get go had has have how i if in is it its "
    "me my no not of on one or our please so that the their them there they this to two until was we what when where which "
    "will with would yet you your".split()
)


def words_of_customers(
    candidate: Mapping[str, str],
    reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
    components_to_update: Sequence[str],
) -> dict[str, str]:
    """Return new texts: to the description of a tool, add the words of the requests that needed it and missed it."""
    texts: dict[str, str] = {}
    for slot in components_to_update:
        if not slot.endswith(".desc"):
            continue
        tool = slot.split(".")[-2]
        missed = [
            run["Inputs"]["request"] for run in reflective_dataset[slot] if f"expected {tool}(" in run["Feedback"]
        ]
        known = set(re.findall(r"[a-z]+", candidate[slot].lower()))
        words = dict.fromkeys(word for text in missed for word in re.findall(r"[a-z]+", text.lower()))
        new = [word for word in words if word not in COMMON | known]
        if new:
            texts[slot] = f"{candidate[slot]} {' '.join(new)}"
    return texts


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
    print(f"{model}: {len(train)} requests for training, {len(val)} for the choice, {len(test)} for the test")

    student = sigwire.Predict(ChooseCall, tool_choice="required")
    search = sigwire.GEPA(
        sigwire.tool_call_match(),
        auto="medium",
        reflection_minibatch_size=6,
        tune={"tools"},
        instruction_proposer=words_of_customers if model.startswith("offline/") else None,
        budget=2_000,
        journal=folder / f"tools-{model.replace('/', '-')}.jsonl",
    )
    print(f"The plan: {search.plan(student, train, val, testset=test)}")
    optimized = search.compile(student, trainset=train, valset=val, testset=test)
    report = OptimizationReport.of(optimized)
    report.show()
    page = folder / f"tools-{model.replace('/', '-')}.html"
    report.to_html(page)
    print(f"\nThe test: {report.headline}")
    print(f"The report: {page}")


if __name__ == "__main__":
    sys.exit(main())
