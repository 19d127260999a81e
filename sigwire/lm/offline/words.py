"""Words: tokens of a text, their stems, and small tables of known words. Pure; knows nothing of tools or requests.

A ``Word`` is a token with its place in the text and its stem. Stems are crude: they only have to match "calculates",
"calculation" and "calculate". ``_SYNONYM_GROUPS`` maps everyday words to one stem; tables of places end the file.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "CITIES", "COUNTRIES", "GENERIC", "STOP_WORDS", "Word", "content_stems", "is_content", "name_words", "sentences",
    "stem", "words",
]  # fmt: skip


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

# Verbs and nouns of any request: they do not distinguish tools.
_GENERIC_WORDS = """get find search retrieve fetch lookup look calculate compute determine provide list return display check
    information info detail data value result function specific certain particular based number name type various different
    parameter optional default format set example new current id"""

_SYNONYM_GROUPS = """
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
""".split("|")

_WORD = re.compile(r"[^\W\d_]+(?:['’](?:s|t|re|ll|ve|d|m)\b)?|\d+(?:\.\d+)?|[^\w\s]", re.UNICODE)
_SENTENCE = re.compile(r"(?<=[^\s.][.!?;])\s+(?=[A-Z\d\"'])|\n+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_FINAL_Y = re.compile(r"(?<=..)y\Z", re.DOTALL)
_SUFFIXES = (
    ("ational", "ate"), ("ization", "ize"), ("ations", "ate"), ("ation", "ate"), ("ities", "ity"), ("ments", "ment"),
    ("ingly", ""), ("ings", ""), ("ing", ""), ("ions", ""), ("ion", ""), ("ies", "y"), ("ied", "y"), ("edly", ""),
    ("ed", ""), ("ers", "er"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("s", ""),
    ("ally", "al"), ("ly", ""),
)  # fmt: skip


@functools.lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return the stem of a word, after synonyms."""
    plain = _plain_stem(word)
    return _SYNONYMS.get(plain, plain)


def _plain_stem(word: str) -> str:
    word = word.lower().replace("’", "'").removesuffix("'s")
    if not word.endswith(("ss", "us", "is")):
        cut = (
            word.removesuffix(end) + new for end, new in _SUFFIXES if word.endswith(end) and len(word) - len(end) > 2
        )
        word = next(cut, word)
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sle":
        word = word[:-1]
    word = word.removesuffix("e") if len(word) > 3 else word
    return _FINAL_Y.sub("i", word)


_SYNONYMS: dict[str, str] = {}
for _group in _SYNONYM_GROUPS:
    _first, *_others = map(_plain_stem, _group.split())
    for _stem in (_first, *_others):
        _SYNONYMS.setdefault(_stem, _SYNONYMS.get(_first, _first))
GENERIC = frozenset(stem(word) for word in _GENERIC_WORDS.split())


@functools.lru_cache(maxsize=256)
def words(text: str) -> tuple[Word, ...]:
    """Return the tokens of a text, punctuation included: "It's 3.5 km." has four."""
    return tuple(Word(m[0], stem(m[0]), m.start(), m.end()) for m in _WORD.finditer(text))


@functools.lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """Return the stems of an identifier, split at dots, underscores and capitals."""
    return tuple(stem(part) for part in _CAMEL.findall(name))


def content_stems(text: str) -> list[str]:
    """Return the stems of a text that carry meaning: no stop words, numbers or punctuation."""
    return [word.stem for word in words(text) if is_content(word)]


def is_content(word: Word) -> bool:
    """Return True if the word is not a stop word, a number or punctuation."""
    return word.text[0].isalpha() and word.text.lower().split("'")[0] not in STOP_WORDS


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [part for part in (sentence.strip() for sentence in _SENTENCE.split(text)) if part]


def _table(text: str) -> dict[str, str]:
    groups = (group.partition(":") for group in text.replace("\n", " ").split("|"))
    return {name.strip().lower(): key.strip() for key, _, names in groups for name in names.split(",")}


# City -> its state, or its country outside the United States: "Chicago" becomes "Chicago, IL" if a slot wants the state.
CITIES: Mapping[str, str] = _table("""
NY: New York, New York City, NYC, Buffalo, Rochester | CA: Los Angeles, San Francisco, San Diego, San Jose,
Sacramento, Oakland, Fresno, Berkeley, Long Beach, Santa Rosa, Anaheim, Santa Barbara, Monterey, Palo Alto, Sunnyvale,
Mountain View, Santa Clara, Fremont, Hayward, Concord, Napa, Santa Cruz, Antioch, Richmond, Vallejo, Daly City | IL:
Chicago | TX: Houston, Dallas, Austin, San Antonio, Fort Worth, El Paso | AZ: Phoenix, Tucson | PA: Philadelphia,
Pittsburgh | FL: Miami, Orlando, Tampa, Jacksonville | OH: Columbus, Cleveland, Cincinnati | NC: Charlotte, Raleigh |
IN: Indianapolis | WA: Seattle, Spokane | CO: Denver, Boulder | MA: Boston, Cambridge | TN: Nashville, Memphis | MI:
Detroit | OR: Portland | NV: Las Vegas, Reno | MD: Baltimore | WI: Milwaukee | NM: Albuquerque | MO: Kansas City, St.
Louis | GA: Atlanta | MN: Minneapolis | LA: New Orleans | HI: Honolulu | AK: Anchorage | UT: Salt Lake City | DC:
Washington | UK: London, Manchester, Edinburgh, Birmingham, Glasgow, Liverpool, Oxford | France: Paris, Lyon,
Marseille, Nice | Germany: Berlin, Munich, Hamburg, Frankfurt, Cologne | Italy: Rome, Milan, Venice, Naples, Florence
| Spain: Madrid, Barcelona | Japan: Tokyo, Osaka, Kyoto | China: Beijing, Shanghai, Shenzhen, Guangzhou | India:
Mumbai, Delhi, New Delhi, Bangalore, Noida, Chennai, Kolkata, Pune, Gurgaon | Australia: Sydney, Melbourne, Brisbane,
Perth | Canada: Toronto, Vancouver, Montreal, Ottawa | Russia: Moscow | Brazil: Rio de Janeiro, Sao Paulo | Egypt:
Cairo | Turkey: Istanbul | UAE: Dubai | Singapore: Singapore | Netherlands: Amsterdam | Belgium: Brussels | Austria:
Vienna | Switzerland: Zurich, Geneva | Sweden: Stockholm | Norway: Oslo | Denmark: Copenhagen | Poland: Warsaw |
Portugal: Lisbon | Greece: Athens | Ireland: Dublin | Korea: Seoul | Thailand: Bangkok | Indonesia: Jakarta |
Malaysia: Kuala Lumpur | Mexico: Mexico City | Argentina: Buenos Aires | Kenya: Nairobi
""")
COUNTRIES = frozenset(
    name.strip()
    for name in """
united states, usa, us, uk, united kingdom, england, scotland, france, germany, italy, spain, portugal, japan, china,
india, brazil, canada, mexico, australia, russia, egypt, turkey, greece, norway, sweden, finland, denmark, poland,
netherlands, belgium, austria, switzerland, ireland, kenya, nigeria, south africa, argentina, chile, peru, colombia,
thailand, vietnam, indonesia, malaysia, singapore, south korea, korea, ukraine, israel, iran, iraq, saudi arabia,
pakistan, bangladesh, new zealand, cuba, morocco, ethiopia, philippines, hungary, romania
""".split(",")
)
