"""How a slot wants what a text mentions: as a number, a date in its form, a city with its state, a list. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from sigwire.core.json import JsonValue
from sigwire.lm.offline.mentions import Date, Mention
from sigwire.lm.offline.places import CITIES, CURRENCIES, UNITS
from sigwire.lm.offline.scene import Scene
from sigwire.lm.offline.schemas import items_of, type_of
from sigwire.lm.offline.slots import Slot
from sigwire.lm.offline.words import stem

__all__ = ["as_number", "value_of"]


def value_of(slot: Slot, group: Sequence[Mention], scene: Scene) -> JsonValue:
    """What the mentions of a group make, in the slot's type: one value, or for an array all of them."""
    if slot.type == "array":
        if group[0].kind in ("list", "pair"):
            return cast(JsonValue, group[0].value)
        item = replace(slot, type=type_of(items_of(slot.schema)))
        return [value_of(item, [mention], scene) for mention in group]
    mention = group[0]
    if slot.type in ("integer", "number"):
        return _number(slot, mention)
    return _text(slot, mention, scene)


def _number(slot: Slot, mention: Mention) -> JsonValue:
    value = cast("int | float", as_number(slot, mention))
    if slot.type == "integer":
        return int(value)
    wants_percent = any(word in slot.description.lower() or word in slot.name.lower() for word in ("percent", "%"))
    if UNITS.get(mention.unit) == "percent" and not wants_percent:
        return round(value / 100, 10)
    return value


def as_number(slot: Slot, mention: Mention) -> int | float | None:
    """A mention as a number for this slot: a date gives its year, a time its hour or minute."""
    if mention.kind == "number":
        return cast("int | float", mention.value)
    if mention.kind == "date":
        date = cast(Date, mention.value)
        return next((getattr(date, part) for part in ("year", "month", "day") if stem(part) in slot.names), None)
    if mention.kind == "time":
        return _hour_or_minute(slot, mention)
    if mention.kind == "id" and "id" in slot.roles:
        digits = mention.text.lstrip("#")
        return int(digits) if digits.isdecimal() else None
    return None


def _hour_or_minute(slot: Slot, mention: Mention) -> int | None:
    """The part of a time that the slot names; the hour as it was said ("3 pm" is 3)."""
    if stem("hours") in slot.names:
        said = re.match(r"\d+", mention.text)
        return int(said[0]) if said else None
    return int(str(mention.value).split(":")[1]) if stem("minutes") in slot.names else None


_DATE_FORMATS: tuple[tuple[str, str], ...] = (
    ("dd-mm-yyyy", "{d:02d}-{m:02d}-{y}"), ("dd/mm/yyyy", "{d:02d}/{m:02d}/{y}"), ("mm/dd/yyyy", "{m:02d}/{d:02d}/{y}"),
    ("mm-dd-yyyy", "{m:02d}-{d:02d}-{y}"), ("yyyy/mm/dd", "{y}/{m:02d}/{d:02d}"), ("yyyy-mm-dd", "{y}-{m:02d}-{d:02d}"),
    ("yyyy-mm", "{y}-{m:02d}"),
)  # fmt: skip


def _text(slot: Slot, mention: Mention, scene: Scene) -> str:
    if mention.kind == "date":
        return _date_text(slot, _with_year(cast(Date, mention.value), slot, scene), mention.text)
    if mention.kind == "number" and mention.unit and "$€£¥₹".find(mention.unit) < 0:
        return mention.text if not slot.roles & {"id", "count"} else str(mention.value)
    if mention.kind == "name" and "place" in slot.roles:
        return _place_text(slot, mention.text)
    if mention.kind in ("name", "phrase") and "currency" in slot.roles:
        return CURRENCIES.get(mention.text.lower(), mention.text)
    return str(mention.value)


_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def _with_year(date: Date, slot: Slot, scene: Scene) -> Date:
    """A date said without its year: the year that the text says elsewhere, else the one that examples have."""
    if date.year is not None:
        return date
    sources = (scene.text, json.dumps(slot.habit.values), slot.description)
    year = next((match[0] for source in sources if (match := _YEAR.search(source))), None)
    return replace(date, year=int(year)) if year else date


def _date_text(slot: Slot, date: Date, text: str) -> str:
    if date.year is None or date.month is None:
        return text
    wanted = slot.description.lower()
    form = next((form for name, form in _DATE_FORMATS if name in wanted), "{y}-{m:02d}-{d:02d}")
    if date.day is None:
        return f"{date.year}-{date.month:02d}" if "yyyy-mm" in wanted else text
    return form.format(y=date.year, m=date.month, d=date.day)


_CITY_STATE = re.compile(r"city[ ,/]*(?:and|,)\s*(?:state|country)|[A-Z][a-z]+, [A-Z]{2}\b", re.IGNORECASE)


def _place_text(slot: Slot, text: str) -> str:
    shown = [str(value) for value in slot.habit.values if isinstance(value, str)]
    with_state = [value.rpartition(", ")[2] for value in shown if _ENDS_IN_STATE.search(value)]
    if "," in text or (len(shown) > 2 and not with_state) or not (with_state or _CITY_STATE.search(slot.description)):
        return text
    state = CITIES.get(text.lower()) or (max(with_state, key=with_state.count) if with_state else None)
    return f"{text.title() if text.islower() else text}, {state}" if state else text


_ENDS_IN_STATE = re.compile(r", [A-Z]{2}$")
