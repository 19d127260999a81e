"""Response: what a model answered, normalized, with the raw truth beside it.

A choice is one candidate answer. ``text``, ``tool_calls`` and ``reasoning`` are what most code wants; ``parts`` keeps the
same content in the order it came (empty when the order is the usual one: reasoning, text, calls). ``raw`` is what the
provider sent and is never rebuilt. What was dropped or approximated on the way is a typed warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from sigwire.core.json import JsonObject, JsonValue, Value
from sigwire.core.messages import Message, Part, TextPart, ThinkingPart
from sigwire.core.tools.tool import ToolCall

__all__ = ["Attempt", "Choice", "FinishReason", "LMWarning", "Repair", "Response", "Usage"]

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "error"]


@dataclass(frozen=True, slots=True)
class Usage(Value):
    """Tokens, as integers; ``None`` is unknown, not zero. Parts of a sum that are known on one side only count as they are.

    ``input_tokens`` and ``output_tokens`` are everything read and written; cached, cache-write and reasoning tokens are
    part of them. ``cost`` is in US dollars, where the provider sent it.

    >>> Usage(input_tokens=3, output_tokens=1) + Usage(input_tokens=4)
    Usage(input_tokens=7, output_tokens=1, cached_tokens=None, cache_write_tokens=None, reasoning_tokens=None, cost=None)
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None

    @property
    def total_tokens(self) -> int | None:
        """Everything read and written."""
        total: int | None = _add(self.input_tokens, self.output_tokens)
        return total

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(_add, _counts(self), _counts(other)))


_counts = attrgetter(*(field.name for field in fields(Usage)))


def _add(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left + right


@dataclass(frozen=True, slots=True)
class LMWarning(Value):
    """Something was dropped or approximated: which feature, and what happened to it."""

    feature: str
    detail: str


@dataclass(frozen=True, slots=True)
class Repair(Value):
    """Something in an answer was not as asked and was read all the same: in which field, and what was done.

    ``field`` is ``None`` where the repair concerns the answer as a whole. ``strict=True`` refuses what needs a repair.
    """

    field: str | None
    what: str


@dataclass(frozen=True, slots=True)
class Attempt(Value):
    """One request that was made for a call: why, to which model, at what price, and how it failed if it did."""

    purpose: Literal["ask", "repair", "extract", "retry"] = "ask"
    model: str | None = None
    usage: Usage = Usage()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Choice(Value):
    """One candidate answer.

    >>> Choice(text="4").message()
    Message(role='assistant', parts=(TextPart(text='4'),))
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    refusal: str | None = None
    finish_reason: FinishReason = "stop"
    logprobs: JsonValue = None
    citations: tuple[JsonObject, ...] = ()
    parts: tuple[Part, ...] = ()
    raw: JsonValue = None

    @classmethod
    def from_parts(cls, parts: Iterable[Part], **rest: Any) -> Choice:
        """A choice whose text, calls and reasoning are read off its parts.

        >>> Choice.from_parts([TextPart("a"), ToolCall("call_0", "f", {}), TextPart("b")]).text
        'ab'
        """
        parts = tuple(parts)
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        thoughts = [part.text for part in parts if isinstance(part, ThinkingPart) and part.redacted is None]
        calls = tuple(part for part in parts if isinstance(part, ToolCall))
        return cls(
            text="".join(texts),
            tool_calls=calls,
            reasoning="".join(thoughts) if thoughts else None,
            parts=parts,
            **rest,
        )

    def message(self) -> Message:
        """The choice as a turn of the conversation, for sending back."""
        if self.parts:
            return Message("assistant", self.parts)
        thinking: tuple[Part, ...] = (ThinkingPart(self.reasoning),) if self.reasoning else ()
        text: tuple[Part, ...] = (TextPart(self.text),) if self.text else ()
        return Message("assistant", (*thinking, *text, *self.tool_calls))


@dataclass(frozen=True, slots=True)
class Response(Value):
    """A model's answer: one choice or several, what it cost, and what came over the wire."""

    choices: tuple[Choice, ...] = ()
    usage: Usage = Usage()
    model: str | None = None
    id: str | None = None
    warnings: tuple[LMWarning, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    raw: JsonValue = None

    def with_attempts(self, attempts: Iterable[Attempt]) -> Response:
        """The same response, with the requests that were made for it. (Every call ends here; ``replace`` is slow.)"""
        done = tuple(attempts)
        return Response(self.choices, self.usage, self.model, self.id, self.warnings, done, self.raw)

    def with_warnings(self, *warnings: LMWarning) -> Response:
        """The same response with more warnings."""
        return replace(self, warnings=self.warnings + warnings) if warnings else self
