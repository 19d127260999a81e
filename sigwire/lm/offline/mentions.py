"""Mentions: the values in a text, found by their form; ``ParsedText`` adds the tokens and the plain phrases. Pure.

A ``Mention`` is a number with its unit, a date, a time, a quoted text, a name, an id, a list, an address or a phrase.
Readers run in the order of ``_READERS``; a reader skips the text that an earlier reader has matched.
"""

from __future__ import annotations

import functools
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, TypeAlias

from sigwire.core.json import JsonValue
from sigwire.lm.offline.words import CITIES, COUNTRIES, STOP_WORDS, Word, words

__all__ = ["Date", "Kind", "Mention", "ParsedText", "coverage", "find_mentions", "overlap"]

Kind: TypeAlias = Literal["list", "url", "email", "quoted", "date", "time", "id", "number", "name", "phrase"]


@dataclass(frozen=True, slots=True)
class Date:
    """A date; ``year`` is None if the text omits it."""

    year: int | None
    month: int
    day: int


@dataclass(frozen=True, slots=True)
class Mention:
    """A value in a text: its kind, value, place and spelling. ``unit`` is in lower case, ``""`` if there is none."""

    kind: Kind
    value: JsonValue | Date
    start: int
    end: int
    text: str
    unit: str = ""


_Reader: TypeAlias = "Callable[[str, re.Match[str]], Mention | None]"


def _plain_text(kind: Kind) -> _Reader:
    return lambda text, match: Mention(kind, match[0], match.start(), match.end(), match[0])


def _quoted_text(text: str, match: re.Match[str]) -> Mention | None:
    value = next(group for group in match.groups() if group is not None)
    kind: Kind = "url" if re.fullmatch(_URL, value) else "quoted"
    return Mention(kind, value, match.start(), match.end(), match[0])


def _list(text: str, match: re.Match[str]) -> Mention | None:
    try:
        value: JsonValue = json.loads(match[0].replace("'", '"'))
    except ValueError:
        parts = (part.strip().strip("'\"") for part in match[0][1:-1].split(","))
        value = [_read_number(part) if re.fullmatch(r"-?\d+(?:\.\d+)?", part) else part for part in parts if part]
    return Mention("list", value, match.start(), match.end(), match[0])


_MONTH_NAMES = "january february march april may june july august september october november december".split()
_MONTHS = {form: number for number, name in enumerate(_MONTH_NAMES, 1) for form in (name, name[:3])} | {"sept": 9}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DATE_FORMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), order)
    for pattern, order in [
        (r"\b(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d])", "y-md"),
        (rf"\b({_MONTH})(?:\.\s*|\s+)(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?\b(?:\s*,?\s*(?:of\s+)?(\d{{4}}))?", "mdy"),
        (rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})\b\.?(?:\s*,?\s*(?:of\s+)?(\d{{4}}))?", "dmy"),
    ]
)
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "billion": 1e9, "trillion": 1e12}
_NUMBER_WORDS: Sequence[str] = "zero one two three four five six seven eight nine ten eleven twelve".split()
_SENTENCE_START = re.compile(r"(?:\A|[.!?:\n])\s*\Z")


def _date(order: str) -> _Reader:
    def read(text: str, match: re.Match[str]) -> Mention | None:
        parts = dict(zip(order, match.groups(), strict=True))
        month = _MONTHS.get(str(parts["m"]).lower()) or int(str(parts["m"]))
        date = Date(int(parts["y"]) if parts["y"] else None, month, int(parts["d"]))
        is_date = month <= 12 and date.day <= 31
        return Mention("date", date, match.start(), match.end(), match[0]) if is_date else None

    return read


def _time(text: str, match: re.Match[str]) -> Mention | None:
    hour, minute = int(match["hour"] or match["only"]), int(match["minute"] or 0)
    if hour > 24 or minute > 59:
        return None
    if half := (match["half"] or match["half2"] or "").lower():
        hour = hour % 12 + 12 * half.startswith("p")
    return Mention("time", f"{hour:02d}:{minute:02d}", match.start(), match.end(), match[0])


def _number(text: str, match: re.Match[str]) -> Mention | None:
    parts = match.groupdict("")
    money, scale, unit = parts["money"], parts["scale"], parts["unit"].strip().lower()
    if unit in STOP_WORDS - {"m"}:
        unit = ""
    value, start = _read_number(parts["number"].replace(",", "")), match.start("money" if money else "number")
    end = match.end("unit" if unit else "scale" if scale else "number")
    if len(scale) > 1 or (scale and money):
        value = int(value * _SCALES[scale.lower()])
    else:  # 298K is a temperature, $298K is money
        unit = unit or scale.lower()
    return Mention("number", value, start, end, text[start:end], money or unit.replace(" ", ""))


def _number_word(text: str, match: re.Match[str]) -> Mention | None:
    return Mention("number", _NUMBER_WORDS.index(match[0].lower()), match.start(), match.end(), match[0])


def _read_number(text: str) -> int | float:
    return float(text) if re.search(r"[.eE]", text) else int(text)


def _name(text: str, match: re.Match[str]) -> Mention | None:
    start, value = match.start(), re.sub(r"['’]s$", "", match[0])
    if " " not in value and value.lower() not in CITIES and _SENTENCE_START.search(text, max(0, start - 9), start):
        return None
    while (head := value.partition(" ")[0]).lower() in STOP_WORDS - {"the"} and " " in value:
        start, value = start + len(head) + 1, value.partition(" ")[2]
    if value in ("I'm", "I'd", "I've", "OK") or value.lower() in STOP_WORDS:
        return None
    return Mention("name", value, start, start + len(value), value)


def _city(text: str, match: re.Match[str]) -> Mention | None:
    name = match[0].title()
    return Mention("name", name, match.start(), match.end(), name) if match[0].islower() else None


_KNOWN_CITIES = "|".join(re.escape(city) for city in sorted(CITIES, key=len, reverse=True) if len(city) > 3)
_COUNTRY_NAMES = "|".join(country.title() for country in sorted(COUNTRIES) if len(country) > 3)
_NAME_WORD = r"(?:[A-ZÀ-ÖØ-Þ][\w'’&.-]*[\w&]|[A-ZÀ-ÖØ-Þ]\b\.?)"
_QUOTES = (
    r"""\"([^"\n\0]+)\"|(?<!\w)'((?:[^'\n\0]|(?<=\w)'(?=\w))+)'(?!\w)|`([^`\n\0]+)`"""
    r"""|“([^”\n\0]+)”|‘([^’\n\0]+)’|«([^»\n\0]+)»"""
)
_BRACKETS = r"\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]"
_URL = (
    r"""https?://[^\s,'"<>)]+[^\s,'"<>).?!]|\b\d{1,3}(?:\.\d{1,3}){3}\b"""
    r"|\b(?:[\w-]+\.)+(?:com|org|net|io|gov|edu|dev|co)\b(?:/[\w./-]*\w)?"
)
_TIME = (
    r"\b(?:(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::\d{2})?\s*(?P<half>[ap]\.?m\b\.?)?"
    r"|(?P<only>\d{1,2})\s*(?P<half2>[ap]\.?m\b\.?))"
)
_ID = (
    r"#\d+\b|\b\d{4}\s?[-–/]\s?\d{2,4}\b|\b\d+/[A-Z]+\d+\b"
    r"|\b(?=[A-Za-z_-]*\d)(?=\d*[A-Z_-]*[A-Z])[A-Z0-9]+(?:[-_][A-Za-z0-9]+)*\b(?<![0-9][KMBG])(?<!\d[ckm]m)"
)
_UNIT = r"%|percent\b|°\s?[CF]\b|°|[a-zµμ]+(?:/[a-z]+)?(?:\^\d)?"
_NUMBER = (
    r"(?P<money>[$€£¥₹])?\s?(?<![\w.])(?P<number>-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"(?:\s*-?(?P<scale>[kKMB]\b(?!/|\^)|(?i:thousand|million|billion|trillion)\b))?"
    rf"(?:\s*-?\s*(?P<unit>(?i:{_UNIT})))?"
)
_NAME = (
    rf"{_NAME_WORD}(?:(?:\s|,\s(?=(?:[A-Z]{{2,3}}|{_COUNTRY_NAMES})\b)|\s(?:of|the|de|del|la|von|van|and the|du|di|al|for)\s)+"
    rf"{_NAME_WORD})*(?:\s\d{{1,4}}\b(?!\s*[a-z%:]))?"
)

_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (re.compile(_BRACKETS), _list),
    (re.compile(_QUOTES), _quoted_text),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), _plain_text("email")),
    (re.compile(_URL), _plain_text("url")),
    *((pattern, _date(order)) for pattern, order in _DATE_FORMS),
    (re.compile(_TIME, re.IGNORECASE), _time),
    (re.compile(_ID), _plain_text("id")),
    (re.compile(_NUMBER), _number),
    (re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE), _number_word),
    (re.compile(rf"\b(?:{_KNOWN_CITIES})\b"), _city),
    (re.compile(_NAME), _name),
)


@functools.lru_cache(maxsize=128)
def find_mentions(text: str) -> tuple[Mention, ...]:
    """Return the mentions of a text in reading order.

    >>> [(mention.kind, mention.value) for mention in find_mentions("Send 3 kg to Rome by 5 pm, code 'X 1'.")]
    [('number', 3), ('name', 'Rome'), ('time', '17:00'), ('quoted', 'X 1')]
    """
    unread, found = text, list[Mention]()
    for pattern, read in _READERS:
        new = [mention for match in pattern.finditer(unread) if (mention := read(unread, match)) is not None]
        for mention in new:
            unread = unread[: mention.start] + "\0" * (mention.end - mention.start) + unread[mention.end :]
        found += new
    return tuple(sorted(found, key=lambda mention: mention.start))


_MOST_CHARACTERS = 6000  # slots x mentions x words: of a longer text only the two ends are read
_JOINT = re.compile(r"^\s*(?:,|and|or|&|,\s*and|,\s*or|;|vs\.?|versus)\s*(?:the\s|a\s)?\s*$")


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text with its tokens, its mentions (plain phrases last) and the stems of its tokens.

    ``topic`` has the stems of the tool that the text is read for; its words are seldom values.
    """

    text: str
    tokens: tuple[Word, ...]
    mentions: tuple[Mention, ...]
    stems: frozenset[str]
    topic: frozenset[str]

    @classmethod
    def of(cls, text: str, topic: frozenset[str]) -> ParsedText:
        """Parse a text."""
        if len(text) > _MOST_CHARACTERS:
            text = f"{text[: _MOST_CHARACTERS // 2]}\n{text[-_MOST_CHARACTERS // 2 :]}"
        tokens, mentions = words(text), find_mentions(text)
        found = (*mentions, *_phrases(text, tokens, mentions))
        return cls(text, tokens, found, frozenset(word.stem for word in tokens), topic)

    def before(self, mention: Mention, limit: int = 7) -> Iterable[Word]:
        """Return the tokens before a mention, nearest first, within its sentence."""
        at = bisect_right(self.tokens, mention.start, key=lambda word: word.end)
        return takewhile(lambda word: word.text not in ".;?!", reversed(self.tokens[max(0, at - limit) : at]))

    def after(self, mention: Mention, limit: int = 4) -> Iterable[Word]:
        """Return the tokens after a mention, within its clause."""
        at = bisect_left(self.tokens, mention.end, key=lambda word: word.start)
        return takewhile(lambda word: word.text not in ".;?!,", self.tokens[at : at + limit])

    def enumeration(self, mention: Mention) -> list[Mention]:
        """Return the run of mentions of one kind, joined by commas and "and", that contains a mention."""
        run: list[Mention] = []
        for peer in (m for m in self.mentions if m.kind == mention.kind):
            if run and not _JOINT.match(self.text[run[-1].end : peer.start]):
                if mention in run:
                    break
                run = []
            run.append(peer)
        return run


def _phrases(text: str, tokens: Sequence[Word], mentions: Sequence[Mention]) -> Iterator[Mention]:
    """Yield runs of content words between stop words, punctuation and mentions, and their shorter parts."""
    run: list[Word] = []
    taken = coverage(text, mentions)
    for position, word in enumerate((*tokens, Word(".", ".", len(text), len(text)))):
        is_plain = word.text[0].isalpha() and word.text.lower() not in STOP_WORDS and not taken[word.start]
        if is_plain and (position or word.text[0].islower()):
            run.append(word)
            continue
        for size in {len(run), *range(1, min(len(run), 4))} - {0}:
            for part in (run[i : i + size] for i in range(len(run) - size + 1)):
                start, end = part[0].start, part[-1].end
                yield Mention("phrase", text[start:end], start, end, text[start:end])
        run = []


def coverage(text: str, mentions: Iterable[Mention]) -> bytearray:
    """Return a byte for each character of a text: 1 inside a mention."""
    inside = bytearray(len(text) + 1)
    for mention in mentions:
        inside[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    return inside


def overlap(a: Mention, b: Mention) -> bool:
    """Return True if two mentions share a part of the text."""
    return a.start < b.end and b.start < a.end
