"""Sort tickets with probabilities: sources, calibration, a fitted threshold, a certificate, and the price of a cascade.

Two simulated models know how probable it is that a ticket is urgent; the dear one knows more. No key and no network.

    python examples/triage.py [--page page.html]
"""

from __future__ import annotations

import math
import random
import re
import sys
from typing import Any

import sigwire
from sigwire import Calibrate, Cascade, Choice, Evaluate, Example, FakeLM, InputField, OutputField, Predict, Signature
from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request

PRICES = {"cheap": 1.0, "dear": 12.0}  # of a call, in tenths of a cent
DETAIL = {"cheap": 2.4, "dear": 3.6}  # how far from 0.5 the probabilities of a model are


class Triage(Signature):
    """Sort a ticket."""

    ticket: str = InputField()
    urgent: bool = OutputField(desc="Must someone act within the hour?")


def tickets(first: int, count: int) -> list[Example]:
    """Return tickets with the right answer."""
    rows = [Example(ticket=f"ticket {n}", urgent=random.Random(n).random() < 0.5) for n in range(first, first + count)]
    return [row.with_inputs("ticket") for row in rows]


def probability(number: int, name: str) -> float:
    """Return P(urgent) of a model, by Bayes: it sees a signal that is the clearer, the more detail the model reads."""
    truth = random.Random(number).random() < 0.5
    detail = DETAIL[name]
    signal = random.Random(f"{name}/{number}").gauss(detail / 2 if truth else -detail / 2, 1)
    return 1 / (1 + math.exp(-detail * signal))


def model(name: str, source: str) -> FakeLM:
    """Return a simulated model, which gives its probabilities by one source."""

    def answer(request: Request) -> Any:
        number = int(re.findall(r"ticket (\d+)", request.messages[-1].text)[-1])
        p = probability(number, name)
        draws = random.Random(f"draws/{name}/{number}")
        if source == "sampled":
            return [text(draws.random() < p) for _ in range(5)]
        if source == "stated":  # people and models round what they state
            return {"urgent": p >= 0.5, "evidence_": {"urgent": round(p, 1)}}
        if source == "logprob":
            return Choice(text(p >= 0.5), logprobs={"content": [*tokens(p)]})
        evidence: Any = {"urgent": {"values": [True, False], "probabilities": [p, 1 - p]}}
        return Choice('{"urgent": true}' if p >= 0.5 else '{"urgent": false}', evidence=evidence)

    measures = Capabilities(decides="only" if source == "measured" else "no")
    return FakeLM(answer, model=f"simulated/{name}", capabilities=measures)


def text(urgent: bool) -> str:
    """Return an answer as text."""
    return "".join(part for part, _ in parts(urgent))


def parts(urgent: bool) -> list[tuple[str, bool]]:
    """Return the tokens of an answer, and whether a token is the value."""
    return [
        ("[[ ## urgent ## ]]\n", False),
        ("true" if urgent else "false", True),
        ("\n\n[[ ## completed ## ]]", False),
    ]


def tokens(p: float) -> list[dict[str, Any]]:
    """Return the log probabilities of the tokens of an answer, as OpenAI's chat completions have them."""
    found: list[dict[str, Any]] = []
    for part, is_value in parts(p >= 0.5):
        own = max(p, 1 - p) if is_value else 1.0
        other = "false" if p >= 0.5 else "true"
        listed = [{"token": part, "logprob": math.log(own)}]
        listed += [{"token": other, "logprob": math.log(1 - own)}] if is_value and own < 1 else []
        found.append({"token": part, "logprob": math.log(own), "top_logprobs": listed})
    return found


def right(example: Example, prediction: Any) -> float:
    """Return 1 for the right answer."""
    return float(example.urgent == prediction.urgent)


def costly(example: Example, prediction: Any) -> float:
    """A missed ticket costs five times a false alarm."""
    return 1.0 if example.urgent == prediction.urgent else 0.0 if example.urgent else 0.8


def predictor(name: str, source: str = "measured") -> Predict[..., Any]:
    """Return a predictor that asks a model for evidence."""
    return Predict(Triage, lm=model(name, source), evidence=source)  # type: ignore[arg-type]


def evaluate(program: Any, metric: Any, rows: list[Example]) -> sigwire.EvaluationResult:
    """Score a program."""
    return Evaluate(devset=rows, metric=metric, progress=False)(program)


def price(result: sigwire.EvaluationResult) -> float:
    """Return the price of the calls of a cascade; a ticket without an answer was asked everywhere."""
    attempts = [attempt for _, prediction, _ in result.results for attempt in prediction.attempts]
    unanswered = round((1 - result.coverage) * len(result.results))
    asked = sum(PRICES[str(attempt.model).partition("/")[2]] for attempt in attempts)
    return asked + unanswered * sum(PRICES.values())


def main(page: str | None = None) -> None:
    """Print each step; write the page of the evaluation with its reliability plot."""
    test = tickets(10_000, 200)
    print("Sources of the cheap model")
    for source in ("measured", "logprob", "sampled", "stated"):
        result = evaluate(predictor("cheap", source), right, test)
        print(f"  {result.calibration('urgent')}")
        if page and source == "measured":
            result.to_html(page)
    offline = Predict(Triage, lm=sigwire.LM("offline/lexical"), evidence="auto")
    source = offline(ticket="ticket 1: the shop is down").evidence["urgent"].source
    print(f"  offline/lexical, without a model: {source}")

    print("\nA threshold for costs of 5 to 1")
    student = predictor("cheap")
    best = Calibrate(costly, progress=False).compile(student, trainset=tickets(0, 300))
    before, after = (evaluate(each, costly, test).mean for each in (student, best))
    print(f"  {best.optimization.winner.summary}: {before:.3f} → {after:.3f} on {len(test)} fresh tickets")

    print("\nA cascade with a bound: at most 8 % of the answered tickets are wrong")
    cascade = Cascade([predictor("cheap"), predictor("dear")])
    certified = Calibrate(right, risk=0.08, progress=False).compile(cascade, trainset=tickets(1_000, 600))
    print(f"  {certified.optimization.certificate}")
    fresh = Cascade([predictor("cheap"), predictor("dear")], least=certified.least)
    answered = evaluate(fresh, right, test)
    dear = evaluate(predictor("dear"), right, test)
    times = len(test) * PRICES["dear"] / price(answered)
    print(f"  fresh tickets: {answered.coverage:.0%} answered, {answered.answered_score:.1f} % of them right")
    print(f"  the dear model alone: {dear.score:.1f} % right, at {times:.1f} times the price")


if __name__ == "__main__":
    main(sys.argv[2] if sys.argv[1:2] == ["--page"] else None)
    sys.exit()
