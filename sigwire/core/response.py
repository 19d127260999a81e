"""Response: the canonical answer of a model, with the provider's raw JSON.

A choice is one candidate. Most code reads ``text``, ``tool_calls`` and ``reasoning``; ``parts`` has the same content in the
order of the provider, empty for the usual order: reasoning, text, calls. ``raw`` is the provider's JSON and is never
rebuilt. Dropped or approximated features are typed warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from sigwire.core.json import JsonObject, JsonValue, Value
from sigwire.core.messages import Message, Part
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall
from sigwire.show.card import HasCard

__all__ = [
    "IMPOSSIBLE", "Attempt", "Choice", "FinishReason", "LMWarning", "Repair", "Response", "Usage", "cost_of_attempts",
    "known_cost_of", "price_with",
]  # fmt: skip

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "error"]


@dataclass(frozen=True, slots=True, repr=False)
class Usage(Value, HasCard):
    """Tokens, as integers; ``None`` is unknown, not zero. In a sum, a count known on one side only is that count.

    ``input_tokens`` and ``output_tokens`` are totals, which include cached, cache-write and reasoning tokens. ``cost`` is
    in US dollars, if the provider sent it. ``hour_write_tokens``: the cache-write tokens that are kept for an hour; they cost
    more. ``unbilled_tokens``: the output tokens that the provider charges nothing for, though the model's price has output.
    ``prompt_tokens`` and ``completion_tokens`` are the totals by OpenAI's names.

    >>> Usage(input_tokens=3, output_tokens=1) + Usage(input_tokens=4)
    Usage(7 in, 1 out)
    """

    _shown_by = "sigwire.core.cards.messages:usage"
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    hour_write_tokens: int | None = None
    unbilled_tokens: int | None = None

    @property
    def total_tokens(self) -> int | None:
        """Input and output tokens."""
        total: int | None = _add(self.input_tokens, self.output_tokens)
        return total

    @property
    def prompt_tokens(self) -> int | None:
        """Input tokens."""
        return self.input_tokens

    @property
    def completion_tokens(self) -> int | None:
        """Output tokens."""
        return self.output_tokens

    def counts(self) -> dict[str, Any]:
        """Return the known counts by name, OpenAI's names included.

        >>> Usage(input_tokens=3).counts()
        {'input_tokens': 3, 'prompt_tokens': 3, 'total_tokens': 3}
        """
        return {name: count for name, count in zip(_COUNT_NAMES, _all_counts(self), strict=True) if count is not None}

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(_add, _counts(self), _counts(other)))


_NO_USAGE = Usage()
_NAMES = tuple(field.name for field in fields(Usage))
_COUNT_NAMES = (*_NAMES, "prompt_tokens", "completion_tokens", "total_tokens")
_counts, _all_counts = attrgetter(*_NAMES), attrgetter(*_COUNT_NAMES)


def _add(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return first + second


@dataclass(frozen=True, slots=True)
class LMWarning(Value):
    """A feature that was dropped or approximated; ``detail`` is a sentence for people, ``sent`` the mode used instead."""

    feature: str
    detail: str
    sent: str | None = None


IMPOSSIBLE = "usage"
"""The feature of a warning about a number of a provider that no request can have."""


@dataclass(frozen=True, slots=True)
class Repair(Value):
    """A deviation of an answer from the requested form that the parser accepted; ``what`` describes the repair.

    ``field`` is ``None`` if the repair concerns the whole answer. With ``strict=True`` an answer that needs one is refused.
    """

    field: str | None
    what: str


@dataclass(frozen=True, slots=True)
class Attempt(Value):
    """An entry in the log of a call: one exchange, with its error if it failed, or the decision to make none.

    A "redial" repeats an exchange whose reused connection the server had closed; a "fallback" asks another model. "skip" and
    "joined" made no exchange: it was refused, or the call waited for an equal one; ``why`` has the reason. In seconds: ``at``
    is the begin of the exchange in its call, ``seconds`` its duration, ``first`` that until the first event; ``queued`` in the
    limiter and ``waited`` between retries came before. ``cost``: US dollars. Equality ignores times, status and request id.
    """

    purpose: Literal["ask", "repair", "extract", "summarize", "retry", "redial", "fallback", "skip", "joined"] = "ask"
    model: str | None = None
    usage: Usage = Usage()
    error: str | None = None
    status: int | None = field(default=None, compare=False)
    request_id: str | None = field(default=None, compare=False)
    at: float | None = field(default=None, compare=False)
    seconds: float | None = field(default=None, compare=False)
    queued: float = field(default=0.0, compare=False)
    waited: float = field(default=0.0, compare=False)
    cost: float | None = None
    why: str | None = None
    first: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class Choice(Value, HasCard):
    """One candidate of a response. ``evidence``: the distributions of a backend that answers with them, by path of the output.

    >>> Choice(text="4").message()
    Message(role='assistant', parts=(TextPart(text='4'),))
    """

    _shown_by = "sigwire.core.cards.messages:choice"
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    refusal: str | None = None
    finish_reason: FinishReason = "stop"
    logprobs: JsonValue = None
    citations: tuple[JsonObject, ...] = ()
    parts: tuple[Part, ...] = ()
    raw: JsonValue = None
    evidence: JsonObject | None = None

    @classmethod
    def from_parts(cls, parts: Iterable[Part], **rest: Any) -> Choice:
        """Return a choice with the text, calls and reasoning of the parts.

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
        """Return the choice as a message of a conversation."""
        if self.parts:
            return Message("assistant", self.parts)
        thinking: tuple[Part, ...] = (ThinkingPart(self.reasoning),) if self.reasoning else ()
        text: tuple[Part, ...] = (TextPart(self.text),) if self.text else ()
        return Message("assistant", (*thinking, *text, *self.tool_calls))


@dataclass(frozen=True, slots=True, repr=False)
class Response(Value, HasCard):
    """The canonical answer of a model: one choice or several, usage, warnings and raw JSON.

    ``cache``: whether the answer is from the cache of responses ("hit"), could be stored there ("miss"), or neither ("off"). A
    hit has a ``usage`` of zeros; ``cached_usage`` is that of the stored answer.
    """

    _shown_by = "sigwire.core.cards.messages:response"
    choices: tuple[Choice, ...] = ()
    usage: Usage = Usage()
    model: str | None = None
    id: str | None = None
    warnings: tuple[LMWarning, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    raw: JsonValue = None
    cache: Literal["hit", "miss", "off"] = "off"
    cached_usage: Usage | None = None

    @property
    def cost(self) -> float | None:
        """The cost of all exchanges in US dollars; ``None`` if that of one is not known. The first read may load prices."""
        if self.usage.cost is not None and len(self.attempts) <= 1:
            return self.usage.cost
        return cost_of_attempts(self.attempts or (Attempt(model=self.model, usage=self.usage),))

    def with_attempts(self, attempts: Iterable[Attempt]) -> Response:
        """Return a copy with other attempts. (Called by every call; ``replace`` is slow.)"""
        return Response(
            self.choices,
            self.usage,
            self.model,
            self.id,
            self.warnings,
            tuple(attempts),
            self.raw,
            self.cache,
            self.cached_usage,
        )

    def with_warnings(self, *warnings: LMWarning) -> Response:
        """Return a copy with more warnings."""
        return replace(self, warnings=self.warnings + warnings) if warnings else self


_price: Callable[[str, Usage, bool], float | None] | None = None


def price_with(price: Callable[[str, Usage, bool], float | None]) -> None:
    """Set the function that prices the usage of a model, and may import for it. This module knows no prices."""
    global _price
    _price = price


def cost_of_attempts(attempts: Iterable[Attempt], *, may_import: bool = True) -> float | None:
    """Return the cost of exchanges in US dollars; ``None`` if one is not known. Failed exchanges without a usage cost nothing.

    >>> cost_of_attempts([Attempt(error="server"), Attempt("retry", cost=0.25)])
    0.25
    >>> cost_of_attempts([Attempt(usage=Usage(input_tokens=3)), Attempt(cost=0.25)])
    """
    attempts = tuple(attempts)
    known, is_whole = known_cost_of(attempts, may_import=may_import)
    return known if attempts and is_whole else None


def known_cost_of(attempts: Iterable[Attempt], *, may_import: bool = True) -> tuple[float, bool]:
    """Return the known part of the cost of exchanges in US dollars, and whether it is all of it.

    >>> known_cost_of([Attempt(usage=Usage(input_tokens=3)), Attempt(cost=0.25)])
    (0.25, False)
    """
    costs = [_cost_of_attempt(attempt, may_import) for attempt in attempts]
    return sum((cost for cost in costs if cost is not None), 0.0), None not in costs


def _cost_of_attempt(attempt: Attempt, may_import: bool) -> float | None:
    sent = attempt.cost if attempt.cost is not None else attempt.usage.cost
    if sent is not None:
        return sent
    if attempt.usage.input_tokens is None and attempt.usage == _NO_USAGE:
        return 0.0 if attempt.error is not None or attempt.purpose in ("skip", "joined") else None
    return None if _price is None else _price(attempt.model or "", attempt.usage, may_import)
