"""A planted task: phrases of an instruction decide accuracy and tokens of a model, so that the best trade-offs are known."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.evaluate.pareto import pareto_front
from sigwire.lm.fake import FakeLM
from tests.optimizers.stub import label, number_of, share

PLANTED: dict[str, tuple[float, float]] = {
    "Divide by four.": (0.3, 30.0),
    "Work out each step.": (0.2, 160.0),
    "Be brief.": (-0.05, -60.0),
    "Be polite.": (0.0, 25.0),
    "Think of paint.": (0.0, 10.0),
}
"""The gain in accuracy and the further tokens of each phrase."""

MOST = 3
"""The most phrases of an instruction."""

_ACCURACY, _TOKENS = 0.35, 100.0


def truth(phrases: Iterable[str]) -> tuple[float, float]:
    """Return accuracy and tokens of an instruction that has these phrases."""
    known = [PLANTED[phrase] for phrase in PLANTED if phrase in phrases]
    return _ACCURACY + sum(gain for gain, _ in known), _TOKENS + sum(more for _, more in known)


def phrases_in(text: str) -> tuple[str, ...]:
    return tuple(phrase for phrase in PLANTED if phrase in text)


def hypervolume(points: Iterable[tuple[float, float]]) -> float:
    """Return the area between points (accuracy, tokens) and the corner of no accuracy at 400 tokens."""
    area, last = 0.0, 0.0
    for accuracy, tokens in sorted(pareto_front({at: (at[0], -at[1]) for at in points})):
        area += (accuracy - last) * (400 - tokens)
        last = accuracy
    return area


def planted_hypervolume() -> float:
    """Return the area of all instructions."""
    every = [each for count in range(MOST + 1) for each in combinations(PLANTED, count)]
    return hypervolume(truth(each) for each in every)


def planted_model(**options: Any) -> FakeLM:
    """Return a model that answers by the phrases of its instruction."""

    def answer(request: Request) -> Response:
        number = number_of(request.messages[-1].text)
        assert number is not None
        accuracy, tokens = truth(phrases_in(request.messages[0].text))
        noise = 0.2 * (share(f"tokens/{number}") - 0.5)
        mark = share(f"{number}/{','.join(phrases_in(request.messages[0].text))}")
        mixed = 0.7 * share(f"{number}") + 0.3 * mark  # rows are hard or easy
        right = mixed < _quantile(accuracy)
        text = f"[[ ## answer ## ]]\n{label(number if right else number + 1)}\n\n[[ ## completed ## ]]"
        return Response((Choice(text),), Usage(input_tokens=0, output_tokens=round(tokens * (1 + noise))))

    return FakeLM(answer, **options)


def _quantile(share_of_rows: float) -> float:
    """Return the quantile of 0.7·U + 0.3·V."""
    low, high = 0.0, 1.0
    for _ in range(40):
        at = (low + high) / 2
        low, high = (at, high) if _below(at) < share_of_rows else (low, at)
    return low


def _below(at: float) -> float:
    a, b = 0.3, 0.7
    if at <= a:
        return at * at / (2 * a * b)
    return (at - a / 2) / b if at <= b else 1 - (1 - at) ** 2 / (2 * a * b)


class PlantedWriter(FakeLM):
    """Adds a phrase to the current instruction, or replaces one; which depends on the request alone."""

    def __init__(self) -> None:
        super().__init__(self._write)
        self._lock, self.asked = threading.Lock(), list[str]()

    def _write(self, request: Request) -> Any:
        text = "\n".join(message.text for message in request.messages)
        with self._lock:
            self.asked.append(text)
        current = re.search(r"current_instruction ## \]\]\n(.*?)\n\n", request.messages[-1].text, re.DOTALL)
        has = list(phrases_in(current[1] if current else ""))
        others = [phrase for phrase in PLANTED if phrase not in has]
        draw = f"{text}/{len(self.asked)}"
        new = others[int(share(draw) * len(others))]
        if len(has) >= MOST or (has and share(f"replace/{draw}") < 0.3):
            has.pop(int(share(f"which/{draw}") * len(has)))
        return {"instruction": " ".join([*has, new])}
