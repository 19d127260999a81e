"""The cost of deciding: a call with evidence beside one without (u1), 400 questions of a decision wire (u2), a search (u3).

u4 has the opcodes of u1's calls: the cost of evidence for a call that asks for none is a few of the floor's.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from benchmarks.timing import FLOOR, SIGWIRE, Job, opcodes
from sigwire.core.capabilities import Capabilities
from sigwire.core.example import Example
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response
from sigwire.lm.codecs.decisions import OPENAI, decode, encode
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.optimizers.rules.calibrate import Calibrate
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature

__all__ = ["jobs"]

ROWS, QUESTIONS, TOKENS = 1_000, 400, 200
QUEUES = ("billing", "shipping", "account", "other")


class Triage(Signature):
    """Sort a ticket."""

    ticket: str = InputField()
    reply: str = OutputField()
    urgent: bool = OutputField()
    queue: Literal["billing", "shipping", "account", "other"] = OutputField()
    spam: bool = OutputField()


def jobs() -> Iterator[Job]:
    """Yield the jobs."""
    yield (call := _call())
    yield _wire()
    yield _search()
    yield replace(call, name="u4", what="opcodes of the calls of u1", target="", unit="", sample=opcodes, most_rounds=1)


# --- a call


def _call() -> Job:
    lm = FakeLM(lambda request: answer)
    answer = _answer_of_tokens()
    plain, decided = Predict(Triage, lm=lm), Predict(Triage, lm=lm, evidence="logprob")
    assert decided(ticket="ticket 1").evidence["queue"].p("billing") == 0.75
    assert plain(ticket="ticket 1").evidence == {}
    contestants = {FLOOR: lambda: plain(ticket="ticket 1"), SIGWIRE: lambda: decided(ticket="ticket 1")}
    return Job("u1", f"3 outputs with logprobs in {TOKENS} tokens, beside a call without", "+500", contestants)


def _answer_of_tokens() -> Choice:
    """Return an answer of about 200 tokens, each with 20 alternatives, as a host sends them with ``top_logprobs``."""
    values = {"urgent": ("true", "false"), "queue": QUEUES, "spam": ("false", "true")}
    texts: list[tuple[str, tuple[str, ...]]] = [("[[ ## reply ## ]]\n", ())]
    texts += [("word ", ())] * (TOKENS - 2 * len(values) - 2)
    for name, labels in values.items():
        texts += [(f"\n\n[[ ## {name} ## ]]\n", ()), (labels[0], labels[1:])]
    tokens: list[JsonValue] = [_token(text, others) for text, others in (*texts, ("\n\n[[ ## completed ## ]]", ()))]
    return Choice("".join(text for text, _ in texts) + "\n\n[[ ## completed ## ]]", logprobs={"content": tokens})


def _token(text: str, others: tuple[str, ...]) -> JsonObject:
    rest: list[tuple[str, float]] = [(other, 0.25 / len(others)) for other in others]
    alternatives = [(text, 0.75 if others else 1 - 1e-6), *rest, *((f"other {n}", 1e-9) for n in range(19 - len(rest)))]
    top: list[JsonValue] = [{"token": other, "logprob": math.log(p)} for other, p in alternatives]
    return {"token": text, "logprob": math.log(alternatives[0][1]), "top_logprobs": top}


# --- a wire


def _wire() -> Job:
    names = [f"q{number}" for number in range(QUESTIONS)]
    schema: JsonObject = {
        "type": "object",
        "properties": {name: {"enum": [*QUEUES], "type": "string"} for name in names},
        "required": [*names],
    }
    request = Request((Message.user("Which queue?"),), response_format=ResponseFormat(schema))
    target = Target("openai", "m", OPENAI)
    shares: list[JsonValue] = [
        {"value": queue, "probability": p} for queue, p in zip(QUEUES, (0.7, 0.1, 0.1, 0.1), strict=True)
    ]
    answers: list[JsonValue] = [
        {"type": "choice", "name": name, "choice": "billing", "probabilities": shares} for name in names
    ]
    reply: JsonObject = {"id": "d", "model": "m", "answers": answers}
    body = encode(request, target).body

    def both() -> Response:
        return decode(reply, encode(request, target), target)

    evidence: Any = both().choices[0].evidence
    assert len(evidence) == QUESTIONS
    assert evidence["q7"]["probabilities"] == [0.7, 0.1, 0.1, 0.1]
    contestants = {FLOOR: lambda: json.loads(json.dumps(body)), SIGWIRE: both}
    return Job("u2", f"encode and decode {QUESTIONS} questions, beside JSON of the body", "3,000", contestants)


# --- a search


def _search() -> Job:
    rows = [_row(number) for number in range(ROWS)]
    lm = FakeLM(_measured, capabilities=Capabilities(decides="only"))
    student = Predict(Triage, lm=lm)

    def search() -> Any:
        return Calibrate(_mean, num_threads=1, progress=False).compile(student, trainset=rows)

    best = search()
    assert len(lm.requests) == len(rows)
    assert {*best.decisions} == {"urgent", "queue", "spam"}
    assert best.decisions["urgent"].threshold > 0.7
    contestants = {FLOOR: lambda: [student(ticket=row.ticket) for row in rows], SIGWIRE: search}
    what = f"Calibrate on {ROWS} rows and 3 outputs, beside a call for each"
    return Job("u3", what, "20,000", contestants, "ms", most_rounds=3)


def _shares(number: int) -> tuple[float, float, list[float]]:
    """Return p(urgent), p(spam) and the probabilities of the queues of a row."""
    source = random.Random(number)
    urgent, spam, masses = source.random(), source.random(), [source.random() for _ in QUEUES]
    return urgent, spam, [mass / sum(masses) for mass in masses]


def _row(number: int) -> Example:
    urgent, spam, queues = _shares(number)
    weighted = [p * weight for p, weight in zip(queues, (1.0, 3.0, 0.5, 1.5), strict=True)]
    queue = QUEUES[weighted.index(max(weighted))]
    return Example(ticket=f"ticket {number}", urgent=urgent > 0.8, spam=spam > 0.3, queue=queue).with_inputs("ticket")


def _measured(request: Request) -> Choice:
    number = int(request.messages[-1].text.split("ticket ")[-1].split()[0])
    urgent, spam, queues = _shares(number)
    evidence: Any = {
        "urgent": {"values": [True, False], "probabilities": [urgent, 1 - urgent]},
        "queue": {"values": [*QUEUES], "probabilities": queues},
        "spam": {"values": [True, False], "probabilities": [spam, 1 - spam]},
    }
    text = '{"reply": "", "urgent": true, "queue": "billing", "spam": false}'
    return Choice(text, evidence=evidence)


def _mean(example: Example, prediction: Any) -> float:
    return math.fsum(prediction[name] == example[name] for name in ("urgent", "queue", "spam")) / 3
