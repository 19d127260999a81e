"""Probabilities of a model that knows p(y given x): evidence has them, and shows that an overconfident model is one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict

LEAD, END = "[[ ## urgent ## ]]\n", "\n\n[[ ## completed ## ]]"


def p_of(request: Request) -> float:
    """Return the p(urgent) that a request states."""
    return float(request.messages[-1].text.partition("p=")[2].split()[0])


def measured(p: float) -> Choice:
    text = "true" if p >= 0.5 else "false"
    return Choice(f"{LEAD}{text}{END}", evidence={"urgent": {"values": [True, False], "probabilities": [p, 1 - p]}})


def by_tokens(p: float) -> Choice:
    text = "true" if p >= 0.5 else "false"
    top: list[Any] = [{"token": "true", "logprob": math.log(p)}, {"token": "false", "logprob": math.log(1 - p)}]
    share = math.log(max(p, 1 - p))
    tokens: list[Any] = [
        {"token": LEAD, "logprob": 0.0},
        {"token": text, "logprob": share, "top_logprobs": top},
        {"token": END, "logprob": 0.0},
    ]
    return Choice(f"{LEAD}{text}{END}", logprobs={"content": tokens})


def overconfident(p: float) -> float:
    return p**3 / (p**3 + (1 - p) ** 3)


def expected_calibration_error(pairs: list[tuple[float, bool]]) -> float:
    bins: dict[int, list[tuple[float, bool]]] = {}
    for p, label in pairs:
        bins.setdefault(min(int(p * 10), 9), []).append((p, label))
    gaps = [abs(sum(p - label for p, label in each)) for each in bins.values()]
    return sum(gaps) / len(pairs)


def pairs_of(source: Any, answer: Callable[[float], Choice], rows: int) -> list[tuple[float, bool]]:
    chance = random.Random(7)
    lm = FakeLM(lambda request: answer(p_of(request)), capabilities=Capabilities(decides="also"))
    predict = Predict("text -> urgent: bool", lm=lm, evidence=source)
    pairs: list[tuple[float, bool]] = []
    for _ in range(rows):
        p = chance.uniform(0.02, 0.98)
        pairs.append((predict(text=f"p={p} x").evidence["urgent"].p(True), chance.random() < p))
    return pairs


@pytest.mark.parametrize(("source", "answer"), [("measured", measured), ("logprob", by_tokens)])
@pytest.mark.parametrize("rows", [300, pytest.param(5_000, marks=pytest.mark.long)])
def test_probabilities_of_a_calibrated_model_stay_calibrated(source: str, answer: Any, rows: int) -> None:
    honest = expected_calibration_error(pairs_of(source, answer, rows))
    assert honest <= (0.02 if rows == 5_000 else 0.08)
    if rows == 5_000:
        assert expected_calibration_error(pairs_of(source, lambda p: answer(overconfident(p)), rows)) > 0.05


def test_frequencies_of_twenty_answers_are_near_the_probability() -> None:
    chance = random.Random(3)
    lm = FakeLM(lambda request: {"urgent": chance.random() < p_of(request)})
    predict = Predict("text -> urgent: bool", lm=lm, evidence="sampled", n=20)
    errors = [abs(predict(text=f"p={p / 21} x").evidence["urgent"].p(True) - p / 21) for p in range(1, 21)]
    assert sum(errors) / len(errors) <= 0.1
