"""``ModelCall``: one call of a model in the history, finished or failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import Attempt, Response, Usage, cost_of_attempts
from sigwire.lm.preview.call_log import CallRecord
from sigwire.lm.secrets import storable_options
from sigwire.show.card import Card, HasCard
from sigwire.show.cleaning import inline, visible
from sigwire.show.numbers import seconds_text

__all__ = ["ModelCall"]


@dataclass(frozen=True, slots=True, repr=False)
class ModelCall(HasCard):
    """One call of a model: ``sigwire.history(n)``.

    ``path``: that of the asking module in its program, ``None`` for a direct call. ``turn`` of the agent, from 0. ``example``:
    position in a batch, id in an evaluation. ``response`` is ``None`` and ``error`` set if the call failed.
    """

    path: str | None
    turn: int | None
    example: int | str | None
    model: str
    request: Request
    response: Response | None
    error: Exception | None
    time: float

    @classmethod
    def of(cls, record: CallRecord) -> ModelCall:
        """Return the call of a record."""
        response = record.response if record.error is None else getattr(record.error, "partial", None)
        _, turn, example = record.running
        return cls(record.path, turn, example, record.model, record.request, response, record.error, record.time)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every exchange of the call, failed ones included."""
        found: Any = getattr(self.response if self.error is None else self.error, "attempts", ())
        return tuple(found)

    @property
    def usage(self) -> Usage:
        """The tokens of the response."""
        return Usage() if self.response is None else self.response.usage

    @property
    def seconds(self) -> float | None:
        """The seconds from the begin of the call to the end of its last exchange; ``None`` if they were not measured."""
        last = self.attempts[-1] if self.attempts else None
        return None if last is None or last.at is None or last.seconds is None else last.at + last.seconds

    @property
    def cost(self) -> float | None:
        """The cost of all exchanges in US dollars; ``None`` if that of one is not known."""
        return (
            self.response.cost if self.error is None and self.response is not None else cost_of_attempts(self.attempts)
        )

    @property
    def cache(self) -> Literal["hit", "miss", "off"]:
        """Whether the answer is from the cache of responses ("hit"), could be stored there ("miss"), or neither ("off")."""
        return "off" if self.response is None else self.response.cache

    def facts(self) -> Iterator[str]:
        """Yield the known facts of the call for people: path, turn, example, tokens, seconds, cache."""
        if self.path is not None:
            yield inline(self.path)
        place = (("turn", self.turn), ("example", self.example))
        yield from (inline(f"{name} {value}") for name, value in place if value is not None)
        usage = self.usage
        counts = ((usage.input_tokens, "in"), (usage.output_tokens, "out"), (usage.cached_tokens, "cached"))
        if tokens := [f"{count:,} {name}" for count, name in counts if count is not None]:
            yield ", ".join(tokens)
        if self.seconds is not None:
            yield seconds_text(self.seconds)
        if self.cache == "hit":
            yield "cache hit"

    def problem(self) -> str | None:
        """Return the class and the text of the error."""
        return None if self.error is None else f"{type(self.error).__name__}: {self.error}"

    def to_json(self) -> JsonObject:
        """Return the call as JSON, without secrets."""
        request: JsonObject = {**self.request.to_json(), "options": storable_options(self.request.options)}
        return {
            "model": self.model,
            "time": self.time,
            "path": self.path,
            "turn": self.turn,
            "example": self.example,
            "request": request,
            "response": None if self.response is None else self.response.to_json(),
            "error": self.problem(),
            "seconds": self.seconds,
            "cache": self.cache,
        }

    def __repr__(self) -> str:
        facts = [inline(self.model, 80), *self.facts(), *([inline(self.problem() or "", 80)] if self.error else ())]
        return f"ModelCall({', '.join(facts)})"

    def _card(self) -> Card:
        texts = [(message.role, visible(message.text[:20_000]).splitlines()) for message in self.request.messages]
        answers = [("answer", choice.text[:20_000].splitlines()) for choice in self._choices()]
        calls = [
            ("call", [f"{call.name}({call.arguments_text})"]) for each in self._choices() for call in each.tool_calls
        ]
        failed = [("error", [self.problem() or ""])] if self.error is not None else []
        children = [Card(f"{len(texts)} messages", rows=texts)]
        return Card(
            "Call", inline(self.model), [("facts", [" · ".join(self.facts())]), *answers, *calls, *failed], (), children
        )

    def _choices(self) -> Iterable[Any]:
        return () if self.response is None else self.response.choices
