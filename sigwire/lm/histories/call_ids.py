"""Tool call ids that a wire accepts: which fit, and how a call and its result get the same new id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sigwire.core.messages import Message, Part
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.lm.histories.losses import Loss, Turn

__all__ = ["MISTRAL_IDS", "OPENAI_IDS", "RESPONSES_IDS", "CallIdRules", "are_valid_ids", "rewrite_call_ids"]


@dataclass(frozen=True, slots=True)
class CallIdRules:
    """The call ids that a wire accepts: ``allowed`` characters (inside a regular expression's brackets) and length.

    An id with forbidden characters gets ``_`` in their place; if ``exact`` is set, a digest of the id replaces it.
    """

    allowed: str = "A-Za-z0-9_-"
    max_length: int | None = None
    exact: int | None = None

    def accepts(self, call_id: str) -> bool:
        length = f"{{{self.exact}}}" if self.exact else f"{{1,{self.max_length or ''}}}"
        return re.fullmatch(f"[{self.allowed}]{length}", call_id) is not None

    def rewrite(self, call_id: str, attempt: int = 0) -> str:
        """Return an accepted id made from this id, a different one for each attempt.

        >>> CallIdRules().rewrite("call.1"), CallIdRules().rewrite("call.1", 1), len(CallIdRules(exact=9).rewrite("call_0"))
        ('call_1', 'call_1_2', 9)
        """
        if self.exact:
            alphabet = "".join(re.findall(f"[{self.allowed}]", _DIGITS))
            return _digest(f"{attempt}:{call_id}", alphabet)[: self.exact]
        clean = re.sub(f"[^{self.allowed}]", "_", call_id) or "call"
        suffix = f"_{attempt + 1}" if attempt else ""
        return (clean[: self.max_length - len(suffix)] if self.max_length else clean) + suffix


MISTRAL_IDS = CallIdRules(allowed="A-Za-z0-9", exact=9)
"""Mistral's API and the chat templates of Mistral's models refuse any other id."""

OPENAI_IDS = CallIdRules(allowed=r"\s\S", max_length=40)
"""OpenAI's chat completions: "Expected a string with maximum length 40", code ``string_above_max_length``."""

RESPONSES_IDS = CallIdRules(allowed=r"\s\S", max_length=64)
"""OpenAI's Responses refuse a longer ``call_id`` by the same code."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _digest(text: str, alphabet: str) -> str:
    import hashlib  # slow to import, and most ids are accepted

    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest(), "big")
    digits: list[str] = []
    while number:
        number, digit = divmod(number, len(alphabet))
        digits.append(alphabet[digit])
    return "".join(digits)


def are_valid_ids(ids: Sequence[str], rules: CallIdRules | None) -> bool:
    """Return True if the wire accepts every id and none repeats. Without rules any id that is not empty is accepted."""
    return len(set(ids)) == len(ids) and all(ids if rules is None else map(rules.accepts, ids))


def rewrite_call_ids(turns: Iterable[Turn], rules: CallIdRules | None, losses: list[Loss]) -> list[Turn]:
    """Give every call an accepted id of its own, and each result the id of its call.

    The results of a turn must follow their calls directly and in call order.
    """
    used: set[str] = set()
    rewritten: list[Turn] = []
    latest: list[str] = []
    for number, turn in turns:
        if calls := turn.tool_calls:
            latest = [_free_id(call.id, rules, used) for call in calls]
            losses += [
                Loss(number, None, "call_id", f"The call id {call.id!r} became {new!r}.", "none")
                for call, new in zip(calls, latest, strict=True)
                if call.id != new
            ]
        rewritten.append((number, _with_ids(turn, latest) if calls or turn.role == "tool" else turn))
    return rewritten


def _free_id(call_id: str, rules: CallIdRules | None, used: set[str]) -> str:
    is_valid = are_valid_ids((call_id,), rules)
    chosen, attempt = call_id, 0
    while not is_valid or chosen in used:
        chosen = (rules or CallIdRules()).rewrite(call_id, attempt)
        is_valid, attempt = True, attempt + 1
    used.add(chosen)
    return chosen


def _with_ids(turn: Message, ids: Sequence[str]) -> Message:
    remaining = iter(ids)
    parts = tuple(
        _with_id(part, next(remaining)) if isinstance(part, ToolCall | ToolResult) else part for part in turn.parts
    )
    return turn if all(new is old for new, old in zip(parts, turn.parts, strict=True)) else Message(turn.role, parts)


def _with_id(part: ToolCall | ToolResult, call_id: str) -> Part:
    return part if part.id == call_id else replace(part, id=call_id)
