"""The cost of deciding: a call with evidence beside one without (u1), the questions of a decision wire (u2), a search (u3)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any, Literal

from benchmarks.timing import FLOOR, SIGWIRE, Job
from sigwire.core.capabilities import Capabilities
from sigwire.core.evidence import Question, read_evidence
from sigwire.core.example import Example
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.optimizers.rules.calibrate import Calibrate
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature

__all__ = ["jobs"]

ROWS = 200
QUEUES = ("billing", "shipping", "account", "other")


class Triage(Signature):
    """Sort a ticket."""

    ticket: str = InputField()
    urgent: bool = OutputField()
    queue: Literal["billing", "shipping", "account", "other"] = OutputField()
    spam: bool = OutputField()


TEXT = '{"urgent": true, "queue": "billing", "spam": false}'


def jobs() -> Iterator[Job]:
    """Yield the jobs."""
    plain, decided = (_predictor(evidence) for evidence in (False, True))
    assert decided(ticket="ticket 1").evidence["urgent"].p(True) == 0.9
    assert plain(ticket="ticket 1").urgent is True
    contestants = {FLOOR: lambda: plain(ticket="ticket 1"), SIGWIRE: lambda: decided(ticket="ticket 1")}
    yield Job("u1", "a call with measured evidence of 3 outputs, beside one without", "+0.5 ms", contestants)
    questions = [Question(f"q{number}", "choice", QUEUES) for number in range(400)]
    data: dict[str, Any] = {
        each.path: {"values": [*QUEUES], "probabilities": [0.7, 0.1, 0.1, 0.1]} for each in questions
    }
    contestants = {
        FLOOR: lambda: [tuple(each["probabilities"]) for each in data.values()],
        SIGWIRE: lambda: [read_evidence(data[each.path], each) for each in questions],
    }
    yield Job("u2", "the evidence of 400 questions, beside their numbers", "3 ms", contestants)
    rows = [Example(ticket=f"ticket {number}", urgent=_p(number) > 0.8).with_inputs("ticket") for number in range(ROWS)]
    search = _search(rows)
    assert search().decisions["urgent"].threshold > 0.7
    contestants = {FLOOR: lambda: [decided(ticket=row.ticket) for row in rows], SIGWIRE: search}
    yield Job("u3", f"Calibrate on {ROWS} rows, beside a call for each", "", contestants, "ms", most_rounds=3)


def _predictor(evidence: bool) -> Predict[..., Any]:
    probabilities = {"urgent": [0.9, 0.1], "queue": [0.7, 0.1, 0.1, 0.1], "spam": [0.2, 0.8]}
    values: dict[str, list[Any]] = {"urgent": [True, False], "queue": [*QUEUES], "spam": [True, False]}
    found: dict[str, Any] = {name: {"values": values[name], "probabilities": probabilities[name]} for name in values}
    return Predict(Triage, lm=_model(Choice(TEXT, evidence=found if evidence else None), measures=evidence))


def _model(choice: Choice, *, measures: bool) -> FakeLM:
    chat = "".join(
        f"[[ ## {name} ## ]]\n{value}\n\n"
        for name, value in (("urgent", "true"), ("queue", "billing"), ("spam", "false"))
    )
    answer = choice if measures else Choice(f"{chat}[[ ## completed ## ]]")
    return FakeLM(lambda request: answer, capabilities=Capabilities(decides="only" if measures else "no"))


def _p(number: int) -> float:
    return random.Random(number).random()


def _search(rows: list[Example]) -> Any:
    def answer(request: Request) -> Choice:
        p = _p(int(request.messages[-1].text.split("ticket ")[-1].split()[0]))
        evidence: Any = {"urgent": {"values": [True, False], "probabilities": [p, 1 - p]}}
        return Choice(TEXT, evidence=evidence)

    def metric(example: Example, prediction: Any) -> float:
        return math.fsum([prediction.urgent == example.urgent])

    student = Predict(Triage, lm=FakeLM(answer, capabilities=Capabilities(decides="only")))
    return lambda: Calibrate(metric, num_threads=1, progress=False).compile(student, trainset=rows)
