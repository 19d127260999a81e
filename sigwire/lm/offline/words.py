"""Words: how text is cut, stemmed and weighed. Pure; no idea of tools or requests.

A ``Word`` is a token with its place in the text and its stem. Stems are crude on purpose: they only have to bring
"calculates", "calculation" and "calculate" together. ``SYNONYMS`` brings a few dozen everyday words together on top.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["GENERIC", "STOP_WORDS", "Word", "content_stems", "name_words", "overlap", "sentences", "stem", "words"]


class Word(NamedTuple):
    """A token: its text, stem, and place in characters."""

    text: str
    stem: str
    start: int
    end: int


STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both but by can
    cannot could did do does doing down during each either else for from further had has have having he her here hers him his
    how i if im in into is it its itself just let like lets ll may me might mine more most must my need no nor not now of off
    on once only or other our ours out over own per please re s same she should so some such t than thank thanks that the
    their theirs them then there these they this those through to too under until up us ve very via want was we were what when
    where whether which while who whom whose why will with would you your yours
    give tell show know help d m us using use used given many much several few""".split()
)

# Verbs and nouns that say that something is asked for, not what: they decide nothing between tools.
_GENERIC_WORDS = """get find search retrieve fetch lookup look calculate compute determine provide list return display check
    information info detail data value result function specific certain particular based number name type various different
    parameter optional default format set example new current id"""

SYNONYM_GROUPS = """
movie film cinema | buy purchase order | book reserve reservation booking | cost price expense | begin start starting
origin departure | end finish final destination arrival | delete remove erase | create add make new insert | weather
forecast climate temperature | song music track tune | person people individual passenger guest | doctor physician |
photo picture image | vehicle car | speed velocity | mass weight weigh heavy | price expensive | house home apartment
| job position | sum addition total | average mean | email mail | restaurant dining eat food cuisine | concert show
event play performance | hotel accommodation lodging | trip travel journey | customer client | stock inventory | phone
telephone mobile | country nation | town city | quick fast | biggest largest | company firm business corporation |
update modify change edit | send transmit | theater theatre | convert conversion translate | answer reply response |
director directed direct | actor actress star stars starring starred cast featuring featured feature | author wrote
written writer | highest maximum max top | lowest minimum min | schedule appointment | lawyer attorney | gps
coordinate | gcd divisor | lcm multiple | hcf divisor | dollar usd | euro eur | pound gbp | yen jpy | spending spent
spend | earning revenue
"""

_WORD = re.compile(r"[^\W\d_]+(?:['’](?:s|t|re|ll|ve|d|m)\b)?|\d+(?:\.\d+)?|[^\w\s]", re.UNICODE)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_SUFFIXES = (
    ("ational", "ate"), ("ization", "ize"), ("ations", "ate"), ("ation", "ate"), ("ities", "ity"), ("ments", "ment"),
    ("ingly", ""), ("ings", ""), ("ing", ""), ("ions", ""), ("ion", ""), ("ies", "y"), ("ied", "y"), ("edly", ""),
    ("ed", ""), ("ers", "er"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("s", ""),
    ("ally", "al"), ("ly", ""),
)  # fmt: skip


@functools.lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """The stem of a word, after synonyms.

    >>> stem("Calculates") == stem("calculation") == stem("calculating")
    True
    >>> stem("film") == stem("movies")
    True
    """
    plain = _plain_stem(word)
    return _SYNONYMS.get(plain, plain)


def _plain_stem(word: str) -> str:
    word = word.lower().replace("’", "'")
    word = word.removesuffix("'s")
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith(("ss", "us", "is")):
            word = word[: len(word) - len(suffix)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sle":
        word = word[:-1]
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 2 and word.endswith("y") else word


def _synonyms() -> dict[str, str]:
    table: dict[str, str] = {}
    for group in SYNONYM_GROUPS.split("|"):
        members = [_plain_stem(word) for word in group.split()]
        for member in members:
            table.setdefault(member, table.get(members[0], members[0]))
    return table


_SYNONYMS = _synonyms()
GENERIC = frozenset(stem(word) for word in _GENERIC_WORDS.split())


@functools.lru_cache(maxsize=256)
def words(text: str) -> tuple[Word, ...]:
    """The tokens of a text, punctuation included.

    >>> [word.text for word in words("It's 3.5 km.")]
    ["It's", '3.5', 'km', '.']
    """
    return tuple(Word(m[0], stem(m[0]), m.start(), m.end()) for m in _WORD.finditer(text))


@functools.lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """The stems of an identifier, cut at dots, underscores and capitals.

    >>> name_words("zoo_api.getLionDen")
    ('zoo', 'api', 'get', 'lion', 'den')
    """
    return tuple(stem(part) for part in _CAMEL.findall(name))


def content_stems(text: str) -> list[str]:
    """The stems of a text that carry meaning: no stop words, numbers or punctuation."""
    return [
        word.stem
        for word in words(text)
        if word.text[0].isalpha() and word.text.lower().split("'")[0] not in STOP_WORDS
    ]


_SENTENCE = re.compile(r"(?<=[^\s.][.!?;])\s+(?=[A-Z\d\"'])|\n+")


def sentences(text: str) -> list[str]:
    """The sentences of a text.

    >>> sentences("It rains. Take the bus!")
    ['It rains.', 'Take the bus!']
    """
    return [part for part in (piece.strip() for piece in _SENTENCE.split(text)) if part]


def overlap(left: Iterable[str], right: Iterable[str]) -> float:
    """How much two bags of stems share, from 0 to 1 (Dice's coefficient of the sets)."""
    a, b = set(left), set(right)
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0
