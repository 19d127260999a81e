"""Describe the difference between two fingerprints: one sentence, and a diff of texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.journal.errors import JournalDivergence

__all__ = ["difference", "divergence"]


def divergence(place: str, recorded: JsonObject, now: JsonObject) -> JournalDivergence:
    """Return the error for a place where two fingerprints differ.

    >>> print(divergence("ReAct.0/turn.2/tool.0", {"arguments": {"n": 1}}, {"arguments": {"n": 2}}))
    turn 3: the arguments differ (replaying ReAct.0/turn.2/tool.0). The program or its inputs changed since the run was ...
    --- recorded
    +++ now
    @@ -1 +1 @@
    -{"n":1}
    +{"n":2}
    """
    what, diff = difference(recorded, now)
    turn = re.search(r"turn\.(\d+)/[^/]*(?:/ask\.\d+)?$", place)
    return JournalDivergence(place, recorded, now, (f"turn {int(turn[1]) + 1}: " if turn else "") + what, diff)


def difference(recorded: JsonObject, now: JsonObject) -> tuple[str, str]:
    """Return the first difference of two fingerprints as a sentence, and as a diff.

    >>> difference({"model": "a"}, {"model": "b"})[0]
    'the model differs'
    """
    for name in {**now, **recorded}:
        if recorded.get(name) != now.get(name):
            return _difference(name, recorded.get(name), now.get(name))
    return "the effect is of another kind", ""


def _difference(name: str, recorded: JsonValue, now: JsonValue) -> tuple[str, str]:
    if name != "messages" or not isinstance(recorded, list) or not isinstance(now, list):
        verb = "differ" if name.endswith("s") else "differs"
        return f"the {name.replace('_', ' ')} {verb}", _diff(recorded, now)
    pairs = zip(recorded, now, strict=False)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(recorded), len(now)))
    one, other = (side[at] if at < len(side) else None for side in (recorded, now))
    role = other.get("role") if isinstance(other, dict) else None
    why = " (instructions changed)" if role == "system" else ""
    if one is None or other is None:
        why = f" (it had {len(recorded)} messages and has {len(now)})"
    return f"the request's message {at + 1} differs{why}", _diff(one, other)


def _diff(recorded: JsonValue, now: JsonValue) -> str:
    from difflib import unified_diff

    before, after = (_text(side).splitlines() for side in (recorded, now))
    return "\n".join(unified_diff(before, after, "recorded", "now", lineterm="", n=1))


def _text(value: JsonValue) -> str:
    """Return the text parts of a message as they are, other JSON as JSON."""
    if isinstance(value, dict) and isinstance(parts := value.get("parts"), list):
        return "\n".join(_part_text(part) for part in parts)
    return value if isinstance(value, str) else "" if value is None else dumps(value)


def _part_text(part: JsonValue) -> str:
    text = cast("Mapping[str, JsonValue]", part).get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else dumps(part)
