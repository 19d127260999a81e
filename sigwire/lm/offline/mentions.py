"""Mentions: the values that a text names, found by their form. Pure.

A ``Mention`` is a number with its unit, a date, a time, a quoted text, a name, an id, a list, an address or, weakest
of all, a plain phrase. Readers run in the order of ``_READERS``: what an earlier one has
read, a later one does not read again.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from sigwire.core.json import JsonValue
from sigwire.lm.offline.places import CITIES, COUNTRIES
from sigwire.lm.offline.words import STOP_WORDS

__all__ = ["Date", "Kind", "Mention", "find_mentions", "read_date"]

Kind: TypeAlias = Literal[
    "object", "list", "url", "email", "quoted", "pair", "date", "time", "id", "number", "name", "phrase", "currency"
]


@dataclass(frozen=True, slots=True)
class Date:
    """A day, or as much of it as the text says."""

    year: int | None
    month: int | None
    day: int | None


@dataclass(frozen=True, slots=True)
class Mention:
    """A value in a text: what it is, where it stands, how it was written. Numbers have a unit in lower case, or ``""``."""

    kind: Kind
    value: Any
    start: int
    end: int
    text: str
    unit: str = ""


_Reader: TypeAlias = "Callable[[str, re.Match[str]], Mention | None]"

MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct|"
        "november nov|december dec".split("|"), 1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_NUMBER_WORDS: dict[str, float] = {
    **{word: n for n, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty".split())},
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
    "thousand": 1000, "twice": 2, "dozen": 12, "half": 0.5,
}  # fmt: skip
_SCALES = {
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "million": 1e6,
    "mn": 1e6,
    "b": 1e9,
    "billion": 1e9,
    "bn": 1e9,
    "trillion": 1e12,
}
_UNIT = r"%|percent\b|°\s?[CF]\b|°|[a-zµμ]+(?:/[a-z]+)?(?:\^\d)?"
_BRACKETS = r"\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]"


def _quoted(text: str, match: re.Match[str]) -> Mention | None:
    value = next(group for group in match.groups() if group is not None)
    kind: Kind = "url" if re.fullmatch(f"{_URL}|{_HOST}", value) else "quoted"
    return Mention(kind, value, match.start(), match.end(), match[0])


def _list(text: str, match: re.Match[str]) -> Mention | None:
    return Mention("list", _read_list(match[0]), match.start(), match.end(), match[0])


def _read_list(text: str) -> JsonValue:
    for candidate in (text, text.replace("'", '"')):
        try:
            value = json.loads(candidate)
        except ValueError:
            continue
        return cast(JsonValue, value)
    return [_scalar(part.strip().strip("'\"")) for part in text[1:-1].split(",") if part.strip()]


def _scalar(text: str) -> JsonValue:
    return _number_value(text) if re.fullmatch(r"-?\d+(?:\.\d+)?", text) else text


def _object(text: str, match: re.Match[str]) -> Mention | None:
    for candidate in (match[0], match[0].replace("'", '"')):
        try:
            return Mention("object", json.loads(candidate), match.start(), match.end(), match[0])
        except ValueError:
            continue
    return None


def _pair(text: str, match: re.Match[str]) -> Mention | None:
    numbers = [
        _number_value(number) * (-1 if side in "SW" and side else 1)
        for number, side in re.findall(r"(-?\d+(?:\.\d+)?)\s*°?\s*([NSEW]?)", match[0])
    ]
    return Mention("pair", numbers, match.start(), match.end(), match[0])


def _plain(kind: Kind) -> _Reader:
    return lambda text, match: Mention(kind, match[0], match.start(), match.end(), match[0])


def _date(text: str, match: re.Match[str]) -> Mention | None:
    value = read_date(match[0])
    return Mention("date", value, match.start(), match.end(), match[0]) if value else None


_DATE_FORMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), order)
    for pattern, order in [
        (r"\b(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d])", "y-md"),
        (rf"\b(\d{{4}}),?\s+({_MONTH})\.?\s+(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?\b", "ymd"),
        (r"\b(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})\b", "mdy"),
        (rf"\b({_MONTH})(?:\.\s*|\s+)(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?\b(?:\s*,?\s*(?:of\s+)?(\d{{4}}))?", "mdy"),
        (rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})\b\.?(?:\s*,?\s*(?:of\s+)?(\d{{4}}))?", "dmy"),
        (rf"\b({_MONTH})\.?\s*,?\s+(?:of\s+)?(\d{{4}})\b", "my"),
    ]
)


def read_date(text: str) -> Date | None:
    """The first date in a text.

    >>> read_date("the 10th of March 2023")
    Date(year=2023, month=3, day=10)
    """
    for pattern, order in _DATE_FORMS:
        if match := pattern.search(text):
            return _date_of(match, order)
    return None


def _date_of(match: re.Match[str], order: str) -> Date | None:
    parts: dict[str, Any] = dict(zip(order, match.groups(), strict=True))
    month = MONTHS.get(parts["m"].lower()) or int(parts["m"])
    year = int(parts["y"]) if parts.get("y") else None
    day = int(parts["d"]) if parts.get("d") else None
    if month > 12 and day is not None and day <= 12:  # 25/12/2023: the first number cannot be a month
        month, day = day, month
    return Date(year, month, day) if month <= 12 and (day or 1) <= 31 else None


def _time(text: str, match: re.Match[str]) -> Mention | None:
    hour, minute, half = (
        int(match["hour"] or match["only"]),
        int(match["minute"] or 0),
        (match["half"] or match["half2"] or "").lower(),
    )
    if hour > 24 or minute > 59:
        return None
    hour = hour % 12 + 12 if half.startswith("p") else 0 if half.startswith("a") and hour == 12 else hour
    return Mention("time", f"{hour:02d}:{minute:02d}", match.start(), match.end(), match[0])


def _number(text: str, match: re.Match[str]) -> Mention | None:
    scale, unit = (match["scale"] or "").lower(), (match["unit"] or "").strip()
    value = _number_value(match["number"].replace(",", ""))
    end = match.end("number")
    if scale == "k" and not match["money"] and "temperat" in text.lower():
        scale, unit = "", "k"
    if scale and (scale in _SCALES) and (len(scale) > 1 or match["money"] or match["scale"] in "kKMB"):
        value = _whole(value * _SCALES[scale])
        end = match.end("scale")
        unit = unit or ""
    elif scale and not unit:
        unit = match["scale"]
    if unit.lower() in STOP_WORDS or unit.lower() in _SCALES:
        unit = "" if unit.lower() != "m" else unit
    if unit and match["unit"]:
        end = match.end("unit")
    unit = match["money"] or unit
    start = match.start("money") if match["money"] else match.start("number")
    return Mention("number", value, start, end, text[start:end], unit.lower().replace(" ", ""))


def _number_word(text: str, match: re.Match[str]) -> Mention | None:
    first, second, unit = match["tens"].lower(), (match["ones"] or "").lower(), (match["unit"] or "").lower()
    value = _NUMBER_WORDS[first] + (_NUMBER_WORDS[second] if second and _NUMBER_WORDS[first] >= 20 else 0)
    if first in ("half", "hundred", "thousand") and not unit.startswith(_TIME_UNITS):
        return None  # "half the price": seldom a value
    return Mention(
        "number", _whole(value), match.start(), match.end("tens"), match["tens"], "" if unit in STOP_WORDS else unit
    )


_TIME_UNITS = ("second", "minute", "hour", "day", "week", "month", "year")


def _number_value(text: str) -> int | float:
    return float(text) if re.search(r"[.eE]", text) else int(text)


def _whole(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value


def _name(text: str, match: re.Match[str]) -> Mention | None:
    start, value = match.start(), match[0]
    head, _, rest = value.partition(" ")
    if _starts_sentence(text, start):
        if not rest and not _is_name(head, text[match.end() : match.end() + 2]):
            return None
        if head.lower() in STOP_WORDS or head.lower() in _OPENERS:
            start += len(head) + 1 + len(rest) - len(rest.lstrip())
            value = rest.lstrip()
    while (head := value.split(" ", 1)[0].lower()) in STOP_WORDS and " " in value and head not in ("the",):
        start, value = start + len(head) + 1, value.split(" ", 1)[1]
    value = re.sub(r"(?:'s|’s)$", "", value)
    if not value or value in ("I", "I'm", "I'd", "I've", "OK") or value.lower() in STOP_WORDS:
        return None
    return Mention("name", value, start, start + len(value), value)


def _is_name(word: str, after: str) -> bool:
    """Whether a single word with a capital that begins a sentence is a name all the same."""
    known = word.lower() in CITIES or word.lower() in COUNTRIES
    return known or (word.isupper() and len(word) > 1) or after.startswith(("'s", "’s"))


def _starts_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip()
    return not before or before[-1] in ".!?:\n" or text[:start].endswith("\n")


_OPENERS = frozenset(
    """find calculate compute determine what what's whats who how when where which why is are can could would should do does did
    please get retrieve fetch search list show give tell identify generate create make play book buy order send check convert
    analyze predict estimate plot draw sort perform translate provide evaluate compare simulate solve measure look add remove
    delete update set turn open close start stop help hello hi hey i i'm i'd let's use given if in on for from to at the a an
    my also then and after before with ask invite call meet visit email write read tell pay ship deliver pick choose
    recommend draft report count sum suppose assume reserve schedule explain describe display locate track order""".split()
)


def _city(text: str, match: re.Match[str]) -> Mention | None:
    """A known city written without capitals."""
    return (
        Mention("name", match[0].title(), match.start(), match.end(), match[0].title()) if match[0].islower() else None
    )


_KNOWN_CITIES = "|".join(re.escape(city) for city in sorted(CITIES, key=len, reverse=True) if len(city) > 3)
_COUNTRY_NAMES = "|".join(country.title() for country in sorted(COUNTRIES) if len(country) > 3)
_NAME_WORD = r"(?:[A-ZÀ-ÖØ-Þ][\w'’&.-]*[\w&]|[A-ZÀ-ÖØ-Þ]\b\.?)"
_QUOTES = (
    r"""\"([^"\n\0]+)\"|(?<!\w)'((?:[^'\n\0]|(?<=\w)'(?=\w))+)'(?!\w)|`([^`\n\0]+)`"""
    r"""|“([^”\n\0]+)”|‘([^’\n\0]+)’|«([^»\n\0]+)»"""
)
_URL = r"""https?://[^\s,'"<>)]+[^\s,'"<>).?!]"""
_HOST = r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:[\w-]+\.)+(?:com|org|net|io|gov|edu|dev|co)\b(?:/[\w./-]*\w)?"
_COORDINATE = r"-?\d+(?:\.\d+)?\s*°?\s*[NSEW]?"
_TIME = (
    r"\b(?:(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::\d{2})?\s*(?P<half>[ap]\.?m\b\.?)?"
    r"|(?P<only>\d{1,2})\s*(?P<half2>[ap]\.?m\b\.?))"
)
_ID = (
    r"#\d+\b|\b\d{4}\s?[-–/]\s?\d{2,4}\b|\b\d+/[A-Z]+\d+\b"
    r"|\b(?=[A-Za-z_-]*\d)(?=\d*[A-Z_-]*[A-Z])[A-Z0-9]+(?:[-_][A-Za-z0-9]+)*\b(?<![0-9][KMBG])(?<!\d[ckm]m)"
)
_NUMBER = (
    r"(?P<money>[$€£¥₹])?\s?(?<![\w.])(?P<number>-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"(?:\s*-?(?P<scale>[kKMBm]\b(?!/|\^)|thousand\b|million\b|billion\b|trillion\b|mn\b|bn\b))?"
    rf"(?:\s*-?\s*(?P<unit>{_UNIT}))?"
)
_IN_WORDS = (
    rf"\b(?P<tens>{'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))})\b"
    r"(?:[\s-](?P<ones>one|two|three|four|five|six|seven|eight|nine)\b)?(?:[\s-]+(?P<unit>[a-z]+))?"
)
_NAME = (
    rf"{_NAME_WORD}(?:(?:\s|,\s(?=(?:[A-Z]{{2,3}}|{_COUNTRY_NAMES})\b)|\s(?:of|the|de|del|la|von|van|and the|du|di|al|for)\s)+"
    rf"{_NAME_WORD})*(?:\s\d{{1,4}}\b(?!\s*[a-z%:]))?"
)

_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (re.compile(r"\{[^{}]*\}"), _object),
    (re.compile(_BRACKETS), _list),
    (re.compile(_QUOTES), _quoted),
    (re.compile(_URL), _plain("url")),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), _plain("email")),
    (re.compile(_HOST), _plain("url")),
    (re.compile(rf"\(\s*{_COORDINATE}\s*(?:,\s*{_COORDINATE}\s*)+\)"), _pair),
    *((pattern, _date) for pattern, _ in _DATE_FORMS),
    (re.compile(_TIME, re.IGNORECASE), _time),
    (re.compile(_ID), _plain("id")),
    (re.compile(_NUMBER, re.IGNORECASE), _number),
    (re.compile(_IN_WORDS, re.IGNORECASE), _number_word),
    (re.compile(rf"\b(?:{_KNOWN_CITIES})\b"), _city),
    (re.compile(_NAME), _name),
)


@functools.lru_cache(maxsize=128)
def find_mentions(text: str) -> tuple[Mention, ...]:
    """All mentions of a text in reading order.

    >>> [(mention.kind, mention.value) for mention in find_mentions("Send 3 kg to Rome by 5 pm, code 'X 1'.")]
    [('number', 3), ('name', 'Rome'), ('time', '17:00'), ('quoted', 'X 1')]
    """
    free, found = text, list[Mention]()
    for pattern, read in _READERS:
        new = [mention for match in pattern.finditer(free) if (mention := read(free, match)) is not None]
        if new:
            characters = list(free)
            for mention in new:
                characters[mention.start : mention.end] = "\0" * (mention.end - mention.start)
            free = "".join(characters)
            found += new
    return tuple(sorted(found, key=lambda mention: mention.start))
