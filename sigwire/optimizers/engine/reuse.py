"""Answers of models that a search has paid for: an equal question at an equal place of an equal run is asked once.

Candidates differ in a few texts. What a program asks before the first changed text, it asks for each candidate again.
A question is equal if the row, the repetition, the place in the program, the model and the request are. Repetitions have
answers of their own, so the estimate of a candidate is as unbiased as with a request each. Tools always run; their results
are in the requests. Nothing is saved: after a kill the journal of the search has the finished runs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar, cast

from sigwire.core.json import dumps
from sigwire.core.response import Response, cost_of_attempts
from sigwire.effects.performing import Frame, Recordable, current_frame, in_frame, passed_on
from sigwire.effects.steps import Steps
from sigwire.lm.policy.cache.answers import as_hit
from sigwire.lm.policy.cache.memory import MemoryStore
from sigwire.lm.policy.cache.single_flight import SingleFlight
from sigwire.lm.policy.call import Call, TargetKey
from sigwire.modules.ask import Ask

__all__ = ["AnswerStore"]

T = TypeVar("T")

_MOST_ANSWERS = 20_000  # the least recently used are dropped first: they are asked again


class AnswerStore:
    """The answers of one search. ``reused`` counts the questions that were not asked. Used from any thread."""

    def __init__(self) -> None:
        self._answers = MemoryStore(_MOST_ANSWERS)
        self._models: dict[int, object] = {}  # kept: the id of a freed model could be that of another one
        self._flights = SingleFlight()
        self.reused = 0

    def around(self, run: str, steps: Steps[T]) -> Steps[T]:
        """Return the steps of a run, whose questions are answered from here if they are known. ``run``: row and repetition."""
        outer = current_frame()
        return in_frame(Frame(partial(self._perform, run, outer)), lambda: steps)

    def _perform(self, run: str, outer: Frame | None, effect: Recordable[Any], frame: Frame) -> Steps[Any]:
        if not isinstance(effect, Ask):
            return (yield from passed_on(effect, frame.path, outer))
        key = self._key(run, frame.path, effect)
        answer, is_known = self._answers.get(key), True
        if answer is None:

            def ask() -> Steps[Response]:
                nonlocal is_known
                if (stored := self._answers.get(key)) is not None:  # since the look above: its flight has ended
                    return stored
                is_known = False
                made: Response = yield from passed_on(effect, frame.path, outer)
                self._answers.put(key, _priced(made), 0, 0.0)  # before the flight ends
                return made

            call = Call(effect.request, TargetKey("", None, None, effect.lm.model))
            answer = yield from self._flights.fly(key, call, ask)
        if not is_known:
            return answer
        self.reused += 1
        return (yield effect.answered(as_hit(answer)))

    def _key(self, run: str, place: str, effect: Ask) -> bytes:
        self._models[id(effect.lm)] = effect.lm
        question = [run, place, id(effect.lm), cast(Any, effect.fingerprint())]
        return sha256(dumps(question).encode(errors="surrogatepass")).digest()


def _priced(answer: Response) -> Response:
    """Return an answer whose usage has the cost of its exchanges, which a hit does not have."""
    cost = cost_of_attempts(answer.attempts) if answer.attempts and answer.usage.cost is None else None
    return answer if cost is None else replace(answer, usage=replace(answer.usage, cost=cost))
