"""The plan of a chaos run: which exchange of which call fails, and how. A seed decides everything.

A call is a number; its wire and its mode follow from the number. ``answer`` is what the provider sends for an exchange,
``expected`` what the client must return, and after how many exchanges.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from sigwire.testing import Answer, Delivered, Fault, Raw, Streamed

__all__ = [
    "MODES",
    "WIRES",
    "Expected",
    "Mode",
    "Outcome",
    "Plan",
    "mode_of",
    "number_of",
    "prompt",
    "text_of",
    "wire_of",
]

Mode: TypeAlias = Literal["thread", "thread stream", "task", "task stream"]
Outcome: TypeAlias = Literal["good", "retried", "final"]
"""Of one exchange: the answer, a failure before the first event of the answer, or a failure that ends the call."""

MODES: tuple[Mode, ...] = ("thread", "thread stream", "task", "task stream")
WIRES = ("openai", "openai-responses", "anthropic", "gemini", "ollama")


def mode_of(number: int) -> Mode:
    return MODES[number % len(MODES)]


def wire_of(number: int) -> str:
    return WIRES[number // len(MODES) % len(WIRES)]


def prompt(number: int) -> str:
    return f"Which answer has call {number}?"


def number_of(prompt: str) -> int:
    return int(prompt.removeprefix("Which answer has call ").removesuffix("?"))


def text_of(number: int) -> str:
    """Return the only right answer to a call."""
    return f"Call {number} has answer {random.Random(number).randrange(10**9)}, no other."


class Kind(NamedTuple):
    """A fault: what is sent in place of the answer ``good``, and the outcome for a whole answer and for a stream."""

    answer: Callable[[str], Answer]
    whole: Outcome
    streamed: Outcome


def _constant(answer: Answer) -> Callable[[str], Answer]:
    return lambda good: answer


KINDS: dict[str, Kind] = {
    "server": Kind(_constant(Fault("server")), "retried", "retried"),
    "502": Kind(_constant(Fault(status=502)), "retried", "retried"),
    "overloaded": Kind(_constant(Fault("overloaded", retry_after=0.1)), "retried", "retried"),
    "timeout": Kind(_constant(Fault("timeout")), "retried", "retried"),
    "bad request": Kind(_constant(Fault("bad_request")), "final", "final"),
    "billing": Kind(_constant(Fault("billing")), "final", "final"),
    "no reply": Kind(lambda good: Delivered(good, stop="head"), "retried", "retried"),
    "reset": Kind(lambda good: Delivered(good, stop="head", reset=True), "retried", "retried"),
    "cut": Kind(lambda good: Delivered(good, stop="body"), "retried", "final"),
    "cut by a reset": Kind(lambda good: Delivered(good, stop="body", reset=True), "retried", "final"),
    "garbled": Kind(_constant(Raw('{"choices": [{"mess')), "retried", "retried"),
    "silence": Kind(lambda good: Delivered(good, after=math.inf), "retried", "retried"),
    "no event": Kind(lambda good: Streamed(good, stop_after=0), "good", "retried"),
    "error event": Kind(lambda good: Streamed(good, fault=Fault("overloaded")), "good", "retried"),
    "late error event": Kind(lambda good: Streamed(good, stop_after=6, fault=Fault("overloaded")), "good", "final"),
    "no end": Kind(lambda good: Streamed(good, stop_after=6, clean=True), "good", "final"),
    "closed after": Kind(lambda good: Delivered(good, close=True), "good", "good"),
    "late": Kind(lambda good: Delivered(good, after=0.1), "good", "good"),
    "small packets": Kind(lambda good: Streamed(good, packets=40), "good", "good"),
}


class Expected(NamedTuple):
    """The outcome that a call must have (``None`` if a policy decides), and its exchanges that reach the provider."""

    outcome: Outcome | None
    exchanges: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of a run: ``share`` of all exchanges fail, by ``seed``.

    ``silence``: its weight among the faults; each costs the timeout of an exchange.
    """

    seed: int
    silence: float = 0.25
    share: float = 0.1

    def kind(self, number: int, exchange: int) -> str | None:
        """Return the name of the fault of an exchange (from 0), ``None`` for none."""
        chance = random.Random(f"{self.seed}.{number}.{exchange}")
        weights = [self.silence if name == "silence" else 1.0 for name in KINDS]
        return chance.choices([*KINDS], weights)[0] if chance.random() < self.share else None

    def answer(self, number: int, exchange: int) -> Answer:
        """Return what the provider sends."""
        name = self.kind(number, exchange)
        return KINDS[name].answer(text_of(number)) if name else text_of(number)

    def expected(self, number: int, retries: int) -> Expected:
        """Return what a call with ``retries`` must do. More failures than that are the policy's decision."""
        for exchange in range(retries + 1):
            name = self.kind(number, exchange)
            kind = KINDS[name] if name else None
            outcome = "good" if kind is None else kind.streamed if "stream" in mode_of(number) else kind.whole
            if outcome != "retried":
                return Expected(outcome, exchange + 1)
        return Expected(None, 0)

    def story(self, number: int) -> str:
        """Return the planned exchanges of a call, for a message of a failed test."""
        names = [self.kind(number, exchange) or "good" for exchange in range(4)]
        return f"Plan({self.seed}) call {number}, {wire_of(number)}, {mode_of(number)}: {', '.join(names)}"
