"""Slots that no single mention fills: the whole text decides on an option, a flag or a unit. Pure.

Each answers with a value and how good the reason for it is, or with ``None`` where the text says nothing of the slot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from sigwire.core.json import JsonValue
from sigwire.lm.offline.places import UNITS
from sigwire.lm.offline.scene import Scene
from sigwire.lm.offline.scores import near_cue
from sigwire.lm.offline.slots import Slot
from sigwire.lm.offline.words import STOP_WORDS, name_words, stem

__all__ = ["Reasoned", "flag", "is_mentioned", "option", "option_shown", "unit"]

Reasoned: TypeAlias = "tuple[JsonValue, float]"
"""A value, and how good the reason for it is."""


def option(slot: Slot, scene: Scene, taken: Sequence[JsonValue] = ()) -> Reasoned | None:
    """The option of an enum that the text names; those that are ``taken`` are none."""
    return _option(slot, [value for value in slot.options if value not in taken], scene)


def option_shown(slot: Slot, scene: Scene) -> Reasoned | None:
    """The option that the text names word for word, among those that the slot's description quotes."""
    return None if _is_quoted(slot, scene) else _option(slot, slot.soft, scene, exact=True)


def _is_quoted(slot: Slot, scene: Scene) -> bool:
    """Whether the text gives the slot a value in quotes; then examples in its description are no options."""
    return any(m.kind in ("quoted", "url") and near_cue(slot, m, scene) >= 1.5 for m in scene.mentions)


def _option(slot: Slot, options: Sequence[Any], scene: Scene, *, exact: bool = False) -> Reasoned | None:
    if not options:
        return None
    scored = [(_mentioned(str(option), scene, exact), -place, option) for place, option in enumerate(options)]
    if slot.roles & {"origin", "target"} and not exact:
        scored = [
            (score + _direction(slot, str(option), scene), place, option) for score, place, option in scored if score
        ]
    score, _, best = max(scored, key=lambda item: item[:2], default=(0.0, 0, None))
    if score <= 0 and not exact and (pick := _number_option(options, slot, scene)) is not None:
        return pick, 2.0
    return (best, score) if score > (0 if slot.required else 0.9) else None


def _direction(slot: Slot, option: str, scene: Scene) -> float:
    """Whether an option stands where the slot wants it: "to pounds" for a target, "12 kilograms" or "from ..." for an
    origin.
    """
    at = scene.text.lower().find(option.lower())
    before = next((word.text.lower() for word in reversed(scene.tokens) if word.end <= at), "")
    if before in ("to", "in", "into", "as"):
        role = "target"
    else:
        role = "origin" if before == "from" or before[:1].isdigit() else ""
    return 0.0 if not role else 1.0 if role in slot.roles else -9.0


def _mentioned(option: str, scene: Scene, exact: bool) -> float:
    """How plainly a text names an option: its words as they are, or most of their stems."""
    if len(option) > 1 and re.search(rf"(?<!\w){re.escape(option)}(?!\w)", scene.text, re.IGNORECASE):
        return 3.0 + len(option) / 100
    if exact:
        return 0.0
    stems = [s for s in name_words(option) if s not in STOP_WORDS]
    hits = sum(1 for s in stems if len(s) > 3 and s in scene.stems) or _begins(option, scene)
    return 2.0 * hits / len(stems) if stems and hits * 2 > len(stems) - 1 else 0.0


def is_mentioned(option: str, scene: Scene) -> bool:
    """Whether a text names an option plainly: its words as they are, or all of their stems."""
    return _mentioned(option, scene, exact=False) >= 2.0


def _begins(option: str, scene: Scene) -> bool:
    """Whether the text has a word made from the option: "musical" from "music"."""
    return len(option) > 4 and any(word.text.lower().startswith(option.lower()) for word in scene.tokens)


def _number_option(options: Sequence[Any], slot: Slot, scene: Scene) -> JsonValue | None:
    numbers = {m.value for m in scene.mentions if m.kind == "number" and near_cue(slot, m, scene) > 0.5}
    return next(
        (o for o in options if o in numbers or (isinstance(o, str) and o.isdecimal() and int(o) in numbers)), None
    )


def flag(slot: Slot, scene: Scene) -> Reasoned | None:
    """Whether something is wanted: the text speaks of it, and does not say "no" or "without"."""
    parts = [s for s in slot.names if s not in STOP_WORDS and s not in _FLAG_WORDS]
    hits = [s for s in parts if s in scene.stems]
    if parts and len(hits) * 3 >= len(parts) * 2:
        place = next(i for i, word in enumerate(scene.tokens) if word.stem in hits)
        near = {word.text.lower() for word in scene.tokens[max(0, place - 4) : place]}
        return not (near & _NEGATIONS), 1.5
    return (bool(slot.schema.get("default", True)), 0.2) if slot.required and not slot.has_default else None


_NEGATIONS = frozenset({"not", "no", "without", "never", "exclude", "excluding", "don't", "doesn't", "disable", "skip"})
_FLAG_WORDS = frozenset(
    stem(w) for w in "is has include included show return use enable allow with should get want as format".split()
)


def unit(slot: Slot, scene: Scene) -> Reasoned | None:
    """The unit asked for: an option of the description that the text names, or "in miles" without a number."""
    if (found := _option(slot, slot.soft, scene, exact=True) if slot.soft else None) is not None:
        return found
    for before, word in zip(scene.tokens, scene.tokens[1:], strict=False):
        known = UNITS.get(word.text.lower())
        if before.text.lower() in ("in", "to", "into", "as") and known and len(word.text) > 1:
            return next((o for o in slot.soft if UNITS.get(o.lower()) == known), word.text), 2.0
    if not slot.required:
        return None
    measured = next((m.unit for m in scene.mentions if m.kind == "number" and m.unit in UNITS), "")
    return (measured, 0.5) if measured else None
