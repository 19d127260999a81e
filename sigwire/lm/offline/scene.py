"""A scene: one text, read once, with its words and everything it mentions. Pure.

To the mentions that are found by their form come two more kinds: currencies by name, and plain phrases (runs of content
words), the weakest candidates of all. Mentions may touch: "150 euros" is a number and names a currency.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sigwire.lm.offline.mentions import Mention, find_mentions
from sigwire.lm.offline.places import CURRENCIES
from sigwire.lm.offline.words import STOP_WORDS, Word, words

__all__ = ["Scene", "enumeration", "touch"]


@dataclass(frozen=True, slots=True)
class Scene:
    """A text with its tokens and everything it mentions."""

    text: str
    tokens: tuple[Word, ...]
    mentions: tuple[Mention, ...]
    stems: frozenset[str]
    about: frozenset[str]

    @classmethod
    def of(cls, text: str, about: frozenset[str]) -> Scene:
        """Read a text; ``about`` has the stems of what is asked for, whose words are seldom values."""
        if len(text) > _READ:  # slots x mentions x words: long texts are read at both ends only
            text = f"{text[: _READ // 2]}\n{text[-_READ // 2 :]}"
        tokens = words(text)
        mentions = find_mentions(text)
        found = (*mentions, *_currencies(text), *_phrases(text, tokens, mentions))
        return cls(text, tokens, found, frozenset(word.stem for word in tokens), about)

    def before(self, mention: Mention, limit: int = 7) -> list[Word]:
        """The tokens before a mention, nearest first, up to a sentence's end."""
        at = bisect_right(self.tokens, mention.start, key=lambda word: word.end)
        return _until(reversed(self.tokens[max(0, at - limit) : at]), ".;?!")

    def after(self, mention: Mention, limit: int = 4) -> list[Word]:
        """The tokens after a mention up to the next clause."""
        at = bisect_left(self.tokens, mention.end, key=lambda word: word.start)
        return _until(self.tokens[at : at + limit], ".;?!,")


_READ = 6000


def _until(tokens: Iterator[Word] | Sequence[Word], stops: str) -> list[Word]:
    found: list[Word] = []
    for word in tokens:
        if word.text in stops:
            break
        found.append(word)
    return found


_CURRENCY_NAMES = sorted((name for name in CURRENCIES if name.isascii() and name != "$"), key=len, reverse=True)
_CURRENCY = re.compile(rf"(?<![\w])(?:{'|'.join(map(re.escape, _CURRENCY_NAMES))})\b", re.IGNORECASE)


def _currencies(text: str) -> Iterator[Mention]:
    """Currencies by name; they may stand inside other mentions ("150 euros")."""
    for match in _CURRENCY.finditer(text):
        yield Mention("currency", CURRENCIES[match[0].lower()], match.start(), match.end(), match[0])


def _phrases(text: str, tokens: tuple[Word, ...], mentions: tuple[Mention, ...]) -> Iterator[Mention]:
    """Runs of plain content words between stop words, punctuation and mentions: the weakest candidates for a string."""
    run: list[Word] = []
    taken = bytearray(len(text) + 1)
    for mention in mentions:
        taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    for position, word in enumerate((*tokens, Word(".", ".", len(text), len(text)))):
        plain = word.text[0].isalpha() and word.text.lower() not in STOP_WORDS
        if plain and not taken[word.start] and not (position == 0 and word.text[0].isupper()):
            run.append(word)
            continue
        if run:
            yield _phrase(text, run)
            yield from (_phrase(text, part) for part in _parts(run))
        run = []


def _parts(run: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The shorter phrases in a run of a few words."""
    for size in range(min(len(run) - 1, 3), 0, -1):
        for start in range(len(run) - size + 1):
            yield run[start : start + size]


def _phrase(text: str, run: Sequence[Word]) -> Mention:
    start, end = run[0].start, run[-1].end
    return Mention("phrase", text[start:end], start, end, text[start:end])


def touch(a: Mention, b: Mention) -> bool:
    """Whether two mentions share a part of the text."""
    return a.start < b.end and b.start < a.end


_JOINT = re.compile(r"^\s*(?:,|and|or|&|,\s*and|,\s*or|;|vs\.?|versus)\s*(?:the\s|a\s)?\s*$")


def enumeration(mention: Mention, mentions: Sequence[Mention], text: str) -> list[Mention]:
    """The run of mentions of one kind, joined by commas and "and", that a mention belongs to."""
    peers = [m for m in mentions if m.kind == mention.kind]
    run: list[Mention] = []
    found = False
    for peer in peers:
        if run and not _JOINT.match(text[run[-1].end : peer.start]):
            if found:
                break
            run = []
        run.append(peer)
        found = found or peer is mention
    return run if found else [mention]
