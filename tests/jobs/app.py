"""The program of the tests of jobs, which workers import."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from sigwire import Example, Module, Predict, Prediction

__all__ = ["Answer", "double", "exact", "key"]


class Answer(Module):
    """Answers a question; a question with the word "poison" kills the process."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = Predict("question -> answer")

    async def aforward(self, question: str) -> Prediction:
        if "poison" in question:
            os.kill(os.getpid(), signal.SIGKILL)
        if "victim" in question and not (mark := Path(question.split()[-1])).exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if "fault" in question:
            raise ValueError(f"no answer to {question}")
        return await self.answer.acall(question=question)


def exact(example: Example, prediction: Prediction) -> bool:
    return bool(example.answer == prediction.answer)


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def key() -> str:
    """Return the API key of the worker: it is in no job."""
    return os.environ.get("TEST_KEY", "canary-key-of-the-worker")
