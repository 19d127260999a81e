"""``CacheHealth``: what a provider's prompt cache read of the calls of a program, where it was broken, why, and at what price.

Two sources are compared. The **requests**: the part of a request that others repeat (``Request.repeated``) is compared with the
latest request of the same model and origin, segment by segment: tools, settings, instructions, demos, each message. The
**usage**: fewer tokens were read than the latest answer had established, by 2,000 tokens and 5 %. A change of bytes that cost
nothing is no break, and of equal bytes without counts nothing is claimed.

    fold, on_turn   the agent shortened or replaced the conversation      tools found   tools were added behind the others
    edited          another part of the prompt changed                    settings      options of the prefix changed
    model           another model answered                                expired       the cache keeps a prompt less long
    unexplained     equal bytes that were not read                        not cached    nothing is marked, and nothing is read
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast

from sigwire.core.json import Value
from sigwire.core.request import Request
from sigwire.core.response import LMWarning, Response, Usage
from sigwire.errors import InputError
from sigwire.keywords import ChecksKeywords
from sigwire.lm.policy.money.prices import prices
from sigwire.show.card import Card, HasCard
from sigwire.show.numbers import count as shown_count
from sigwire.show.values import call_line

__all__ = [
    "CacheBreak",
    "CacheHealth",
    "CachedCall",
    "cache_health",
    "cache_health_card",
    "cache_health_line",
    "find_break",
]

Why: TypeAlias = Literal[
    "fold", "tools found", "on_turn", "edited", "settings", "model", "expired", "unexplained", "not cached"
]
UNPLANNED: frozenset[Why] = frozenset({"edited", "unexplained", "not cached"})
"""The reasons that a change of the program can remove: results of agents have a warning of them."""
_LEAST, _SHARE = 2_000, 0.05  # tokens, and the share of the established ones
_WORTH_A_MARK = 4_096  # tokens: every provider caches prompts of this length
_SECONDS: Mapping[object, float] = {"1h": 3_600.0}
_USUAL_SECONDS = 300.0
_SETTINGS = ("reasoning", "reasoning_effort", "thinking", "prompt_cache", "response_format")


class CachedCall(Protocol):
    """A call of a model: a ``CallRecord``. ``moved``: why an agent changed the prefix ("" if it did not)."""

    model: str
    request: Request
    response: Response
    time: float
    moved: str

    @property
    def path(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class CacheBreak(Value):
    """A request that the cache did not serve as the one before allowed. ``request``: its number, from 0.

    ``place``: the first segment that changed ("tools", "settings", "instructions", "demos", "turn 14"), or "" of equal bytes.
    ``missed_cost``: US dollars, ``None`` if the prices are unknown.
    """

    request: int
    place: str
    why: Why
    missed_tokens: int = 0
    missed_cost: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class CacheHealth(Value, HasCard, ChecksKeywords):
    """The tokens of some calls that the prompt cache read, and its breaks.

    ``hit_share``: of the input tokens; ``None`` if no answer has counts.

    >>> CacheHealth(requests=2, input_tokens=9000, cached_tokens=4500).hit_share
    0.5
    """

    _shown_by = "sigwire.lm.preview.cache_health:cache_health"
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int | None = None
    breaks: tuple[CacheBreak, ...] = ()

    @property
    def hit_share(self) -> float | None:
        """The share of the input tokens that were read from the cache."""
        return None if self.cached_tokens is None or not self.input_tokens else self.cached_tokens / self.input_tokens

    @property
    def missed_tokens(self) -> int:
        """The tokens that were read again although the cache had them."""
        return sum(each.missed_tokens for each in self.breaks)

    @property
    def missed_cost(self) -> float | None:
        """The price of ``missed_tokens`` in US dollars; ``None`` if that of one break is unknown."""
        costs = [each.missed_cost for each in self.breaks]
        return None if any(cost is None for cost in costs) else sum((cost or 0.0 for cost in costs), 0.0)


def cache_health(calls: Iterable[CachedCall] | str | os.PathLike[str]) -> CacheHealth:
    """Return what the prompt cache read of calls in their order: ``lm.history.records``, or the file of a ``Cassette``.

    Answers of sigwire's own cache are left out. Raises ``InputError`` for a file that is no cassette.

    >>> from sigwire.lm.fake import FakeLM
    >>> lm = FakeLM(["Hello!"])
    >>> _ = lm("Hi")
    >>> cache_health(lm.history.records)
    CacheHealth(1 request)
    """
    given = _recorded(Path(calls)) if isinstance(calls, (str, os.PathLike)) else calls
    seen: dict[str | None, list[CachedCall]] = {}
    total, known, breaks, number = Usage(), False, list[CacheBreak](), -1
    for call in given:
        if call.response.cache == "hit" or not call.response.choices:
            continue
        number += 1
        total, known = total + call.response.usage, known or call.response.usage.cached_tokens is not None
        before = seen.setdefault(call.path, [])
        if (found := find_break(before, call, number)) is not None:
            breaks.append(found)
        before[:] = [other for other in before if other.model != call.model] + [call]
    cached = (total.cached_tokens or 0) if known else None
    return CacheHealth(number + 1, total.input_tokens or 0, cached, tuple(breaks))


def find_break(before: Sequence[CachedCall], call: CachedCall, number: int = 0) -> CacheBreak | None:
    """Return the break at a call; ``None`` if there is none. ``before``: the latest calls of its origin, by model, in order."""
    if not before:
        return None
    latest = before[-1]
    if latest.model != call.model:
        return _made(latest, call, number, "settings", "model")
    place, why = _first_change(latest.request, call.request)
    if why is None:
        return _break_of_equal_bytes(latest, call, number)
    if place.startswith("turn"):
        if call.moved:
            return _made(latest, call, number, place, cast("Why", call.moved))
        if place == "turn 0":  # another conversation
            return None
    if why == "tools found" and call.moved == "fold":  # the first fold adds the tools that find what it leaves out
        why = "fold"
    return _made(latest, call, number, place, why)


def _break_of_equal_bytes(latest: CachedCall, call: CachedCall, number: int) -> CacheBreak | None:
    usage, before = call.response.usage, latest.response.usage
    options = call.request.options.get("prompt_cache")
    is_marked = options is not False and (bool(call.request.repeated) or isinstance(options, dict))
    if (
        not is_marked
        and usage.cached_tokens == 0
        and not _established(latest)
        and (before.input_tokens or 0) >= _WORTH_A_MARK
    ):
        tokens = _shared_tokens(latest, call)
        return (
            CacheBreak(number, "", "not cached", tokens, _cost(call.model, tokens)) if tokens >= _WORTH_A_MARK else None
        )
    ttl = _SECONDS.get(options.get("ttl") if isinstance(options, dict) else None, _USUAL_SECONDS)
    return _made(latest, call, number, "", "expired" if call.time - latest.time > ttl else "unexplained")


def _made(latest: CachedCall, call: CachedCall, number: int, place: str, why: Why) -> CacheBreak | None:
    """Return a break, unless the counts show that it cost nothing, or equal bytes have no counts."""
    established, cached = _established(latest), call.response.usage.cached_tokens
    if established is None or cached is None:
        return CacheBreak(number, place, why) if place and why != "model" else None
    missed = min(established, call.response.usage.input_tokens or 0) - cached
    if missed < max(_LEAST, _SHARE * established):
        return None
    return CacheBreak(number, place, why, missed, _cost(call.model, missed))


def _established(call: CachedCall) -> int | None:
    """Return the tokens that the cache had after a call; ``None`` without counts."""
    usage = call.response.usage
    if usage.cached_tokens is None and usage.cache_write_tokens is None:
        return None
    return (usage.cached_tokens or 0) + (usage.cache_write_tokens or 0)


def _shared_tokens(latest: CachedCall, call: CachedCall) -> int:
    """Return the tokens at the start of both requests, estimated by the shares of the messages."""
    some, others = latest.request.messages, call.request.messages
    shared = next((at for at, (a, b) in enumerate(zip_longest(some, others)) if a != b), len(some))
    sizes = [len(message.text) + 1 for message in some]
    return int((latest.response.usage.input_tokens or 0) * sum(sizes[:shared]) / (sum(sizes) or 1))


def _cost(model: str, tokens: int) -> float | None:
    """Return the price of tokens that were sent again, above that of reading them from the cache."""
    full, read = (
        prices.cost(model, Usage(input_tokens=tokens, output_tokens=0, cached_tokens=cached)) for cached in (0, tokens)
    )
    return None if full is None or read is None else max(full - read, 0.0)


# --- requests


def _first_change(before: Request, now: Request) -> tuple[str, Why | None]:
    """Return the first segment of the repeated part that changed, and why."""
    if before.tools != now.tools:
        is_longer = len(now.tools) > len(before.tools) and now.tools[: len(before.tools)] == before.tools
        return "tools", "tools found" if is_longer else "edited"
    if _settings(before) != _settings(now):
        return "settings", "settings"
    ends = before.repeated or (_instructions(before),)
    for at in range(min(ends[-1], len(before.messages), len(now.messages))):
        one, other = before.messages[at], now.messages[at]
        if one is not other and one != other:
            is_start = at < ends[0]
            return (
                "instructions" if one.role == "system" else "demos"
            ) if is_start else f"turn {at - ends[0]}", "edited"
    return "", None


def _settings(request: Request) -> list[object]:
    options: Iterator[object] = (request.options.get(name) for name in _SETTINGS)
    return [request.tool_choice, request.parallel_tool_calls, request.response_format, *options]


def _instructions(request: Request) -> int:
    """Return the number of system messages at the start."""
    roles = [message.role for message in request.messages]
    return next((at for at, role in enumerate(roles) if role != "system"), len(roles))


# --- the file of a cassette


class _CassetteCall(NamedTuple):
    model: str
    request: Request
    response: Response
    path: str | None
    time: float = 0.0
    moved: str = ""


_NUMBER = re.compile(r"\.\d+")


def _recorded(path: Path) -> Iterator[CachedCall]:
    """Yield the calls of a cassette. The origin of a call is its place without numbers."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        heads = [json.loads(lines[0])] if lines else []
    except (OSError, ValueError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read: {error} (reading calls). Name the file of a Cassette."
        ) from error
    if not heads or not isinstance(heads[0], dict) or "cassette" not in heads[0]:
        raise InputError(f"{str(path)!r} is no cassette (reading calls). Record one: with Cassette('calls.jsonl'): ...")
    for number, line in enumerate(lines[1:], 2):
        try:
            data: dict[str, Any] = json.loads(line)
            if "lm" in data and "response" in data:
                origin = _NUMBER.sub("", str(data.get("place", "")))
                request, response = Request.from_json(data["request"]), Response.from_json(data["response"])
                yield cast("CachedCall", _CassetteCall(str(data["model"]), request, response, origin))
        except ValueError as error:
            if number == len(lines):  # torn by a crash
                return
            raise InputError(f"{str(path)!r}, line {number}: {error} (reading calls). Remove the line.") from error


# --- what people see


def warning_of(found: CacheBreak) -> LMWarning:
    """Return the warning of a break on the result of an agent."""
    price = "" if found.missed_cost is None else f", ${found.missed_cost:.4f}"
    where = f" at {found.place}" if found.place else ""
    detail = (
        f"The prompt cache was not used{where} ({found.why}): {found.missed_tokens:,} tokens were read again{price}. "
        "AgentRun.of(result).cache has the breaks."
    )
    return LMWarning("prompt_cache", detail)


def _facts(health: CacheHealth) -> list[str]:
    facts = [shown_count(health.requests, "request")]
    if health.hit_share is not None:
        facts.append(f"{health.hit_share:.0%} of {health.input_tokens:,} tokens cached")
    if health.breaks:
        facts.append(shown_count(len(health.breaks), "break"))
        facts.append(f"{health.missed_tokens:,} tokens missed")
    return facts


def cache_health_line(health: CacheHealth) -> str:
    """Return ``CacheHealth(12 requests, 81% of 90,210 tokens cached, 1 break, 7,120 tokens missed)``."""
    return call_line("CacheHealth", _facts(health))


def cache_health_card(health: CacheHealth) -> Card:
    """Return the card: a row for each break."""
    rows = [
        [str(each.request), each.why, each.place or "-", f"{each.missed_tokens:,}", _dollars(each.missed_cost)]
        for each in health.breaks
    ]
    table = [["request", "why", "place", "missed tokens", "cost"], *rows] if rows else []
    return Card("CacheHealth", ", ".join(_facts(health)), table=table, is_open=True)


def _dollars(cost: float | None) -> str:
    return "?" if cost is None else f"${cost:.4f}"
