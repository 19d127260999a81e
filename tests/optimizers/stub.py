"""A model whose accuracy depends on what optimizers change: instructions, demos and texts of tools.

It is a pure function of the request, so that any order of runs gives the same answers.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

from sigwire.core.example import Example
from sigwire.core.request import Request
from sigwire.errors import LMServerError
from sigwire.lm.fake import FakeLM
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict

LABELS = ("red", "green", "blue", "grey")
HINT = "Divide by four."


def label(number: int) -> str:
    """Return the right answer of the task of the stub."""
    return LABELS[number % 4]


def rows(count: int, first: int = 0) -> list[Example]:
    """Return examples of the task."""
    numbers = range(first, first + count)
    return [Example(question=f"colour of {n}?", answer=label(n)).with_inputs("question") for n in numbers]


def exact(example: Any, prediction: Any, trace: object = None) -> bool:
    """Return True for the right answer."""
    return bool(example.answer == prediction.answer)


def share(text: str) -> float:
    """Return a number from 0 to 1 that depends on a text."""
    return int(sha256(text.encode()).hexdigest()[:8], 16) / 0x1_0000_0000


def skill_of(request: Request) -> float:
    """Return the probability of a right answer: more with right demos, with the hint, and with long descriptions of tools."""
    system = request.messages[0].text if request.messages[0].role == "system" else ""
    right = sum(is_right_demo(asked.text, answer.text) for asked, answer in _pairs(request))
    described = sum(len(str(tool)) > 300 for tool in request.tools)
    return min(0.97, 0.3 + 0.12 * min(right, 4) + 0.25 * (HINT in system) + 0.1 * min(described, 1))


def is_right_demo(asked: str, answer: str) -> bool:
    """Return True if a demo shows the right answer."""
    number = number_of(asked)
    return number is not None and label(number) in answer


def _pairs(request: Request) -> list[tuple[Any, Any]]:
    messages = request.messages
    return [
        (first, second) for first, second in pairwise(messages) if (first.role, second.role) == ("user", "assistant")
    ]


def number_of(text: str) -> int | None:
    found = re.findall(r"colour of (\d+)", text)
    return int(found[-1]) if found else None


class Stub(FakeLM):
    """The model of the task. ``failing``: the share of requests at which the provider fails once. ``skill``: its accuracy."""

    def __init__(self, failing: float = 0.0, skill: Callable[[Request], float] = skill_of, **options: Any) -> None:
        super().__init__(self._respond, **options)
        self._failing, self._skill = failing, skill
        self._lock, self._failed = threading.Lock(), set[str]()

    def __reduce__(self) -> Any:
        raise TypeError("a model with a lock cannot be copied")

    def _respond(self, request: Request) -> Any:
        text = request.messages[-1].text
        number = number_of(text)
        mark = f"{number}/{request.options.get('temperature', 0)}"
        if self._failing:
            whole = repr([(message.role, message.text) for message in request.messages]) + mark
            with self._lock:
                is_new = whole not in self._failed
                self._failed.add(whole)
            if is_new and share(f"fails/{whole}") < self._failing:
                raise LMServerError("The provider has a problem.", model="stub", provider="stub")
        assert number is not None, text
        is_right = share(mark) < self._skill(request)
        return {"answer": label(number if is_right else number + 1)}


class TwoSteps(Module):
    """Names a colour by two predictors of equal signatures; the second one decides."""

    def __init__(self) -> None:
        super().__init__()
        self.name = Predict("question -> answer", lm=Stub())
        self.check = Predict("question -> answer", lm=Stub())

    def forward(self, question: str) -> Any:
        self.name(question=question)
        return self.check(question=question)


def scores(program: Any, examples: Sequence[Example]) -> float:
    """Return the mean accuracy of a program."""
    return sum(exact(each, program(**each.inputs())) for each in examples) / len(examples)


PHRASES = ("Be brief.", "Answer with a colour.", HINT, "Think of paint.", "Read the question twice.", "Be polite.")


def pure_writer() -> FakeLM:
    """Return a writing model that fills each output with a phrase that depends on the request alone."""

    def write(request: Request) -> Any:
        text = repr([(message.role, message.text) for message in request.messages]) + repr(
            sorted(request.options.items())
        )
        asked = request.messages[-1].text.rpartition("Reply with")[2]
        names = [name for name in re.findall(r"\[\[ ## (\w+) ## \]\]", asked) if name != "completed"]
        phrases = {name: PHRASES[int(share(f"{name}/{text}") * len(PHRASES))] for name in names}
        fields = {name: json.dumps([phrase]) if name == "rules" else phrase for name, phrase in phrases.items()}
        return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in fields.items())

    return FakeLM(write)
