"""Programs of the tests of jobs, which workers import."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from sigwire import ConfigurationError, DecisionRule, Example, FakeLM, Module, Predict, Prediction, ReAct, ToolCall
from sigwire.core.capabilities import Capabilities
from sigwire.core.response import Choice
from sigwire.settings import current

__all__ = [
    "CANARY", "SHARED", "Answer", "Died", "Scaled", "Triage", "build", "double", "exact", "faulty", "find", "fragile", "key",
    "process_id", "read_marked", "read_row", "sample", "searching", "shout", "shout_row", "shouted",
]  # fmt: skip

_TOOLS = Capabilities(native_tools=True, parallel_tool_calls=True)
CANARY = "canary-key-of-the-worker"


class Died(BaseException):
    """Ends a chunk in a thread as the death of a process would."""


class Answer(Module):
    """Answers a question; some words in it kill the process, or the chunk if it runs in a thread of the tests."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = Predict("question -> answer")

    async def aforward(self, question: str) -> Prediction:
        words = question.split()
        if "poison" in words:
            os.kill(os.getpid(), signal.SIGKILL)
        if "death" in words:
            raise Died
        if "victim" in words and not (mark := Path(words[-1])).exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if "fault" in words:
            raise ValueError(f"no answer to {question}")
        return await self.answer.acall(question=question)


class Scaled(Module):
    """A module whose argument a job cannot know."""

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factors = [factor]


SHARED = Answer()


def build() -> Module:
    """Make the program of a job."""
    return Answer()


def shout(question: str) -> Prediction:
    """Answer without a model."""
    return Prediction(answer=question.upper())


def shout_row(id: int, question: str) -> Prediction:
    """Answer a row with an id."""
    return shout(question)


def find(query: str) -> str:
    """Find documents."""
    raise RuntimeError("the index is gone")


def searching(question: str) -> Prediction:
    """Answer by an agent whose tool raises."""
    calls = [ToolCall("1", "find", {"query": "x"}), ToolCall("2", "submit", {"answer": "4"})]
    lm = FakeLM([Choice(tool_calls=(call,), finish_reason="tool_calls") for call in calls], capabilities=_TOOLS)
    agent: ReAct[..., Prediction] = ReAct("question -> answer", tools=[find])
    agent.set_lm(lm)
    return Prediction(answer=agent(question=question).answer)


def sample(question: str) -> Prediction:
    """Answer with the number of the sample."""
    return Prediction(answer=str(current().rollout_id))


def shouted(example: Example, prediction: Prediction) -> bool:
    """Compare the answer of ``shout`` with the question, if the example has its label."""
    return bool(example.answer == "0" and prediction.answer == example.question.upper())


def exact(example: Example, prediction: Prediction) -> bool:
    """Compare answers."""
    return bool(example.answer == prediction.answer)


def faulty(example: Example, prediction: Prediction) -> bool:
    """Fail as a metric with a bug does."""
    raise KeyError("weight")


def fragile(example: Example, prediction: Prediction) -> bool:
    """Compare answers, as soon as the file ``mark`` of the example is there."""
    if not Path(example.mark).exists():
        raise KeyError("weight")
    return exact(example, prediction)


def read_marked(name: str) -> Example:
    """Read a row whose id is the file of its mark."""
    return Example(question="number 7", answer="3", mark=name).with_inputs("question")


def read_row(name: str) -> Example:
    """Read a row from the storage of the worker."""
    if name.startswith("late") and not (mark := Path(name[4:])).exists():
        mark.touch()
        raise OSError(f"no storage for {name}")
    if name == "nothing":
        return None  # type: ignore[return-value]
    if name == "misfit":
        raise ConfigurationError("no storage is configured")
    return Example(question="private number 7", answer="0").with_inputs("question")


class Triage(Module):
    """Decides by stated probabilities and a rule; asks a model of its own."""

    def __init__(self) -> None:
        super().__init__()
        rules = {"urgent": DecisionRule(threshold=0.3, least=0.55)}
        self.sort: Any = Predict("question -> urgent: bool", evidence="stated", decisions=rules)

    def forward(self, question: str) -> Prediction:
        p = int(question.split()[1]) * 37 % 100 / 100
        found: Prediction = self.sort(question=question, lm=FakeLM([{"urgent": p > 0.5, "evidence_": {"urgent": p}}]))
        return found


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def key() -> str:
    """Return the API key of the worker, which is in no job."""
    return CANARY


def process_id() -> int:
    """Return the process of the worker."""
    return os.getpid()
