"""generateContent: the sources of a text as flat citations, with positions in characters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of, value_at

__all__ = ["decode_citations"]


def decode_citations(candidate: JsonObject, wires: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield each source of each supported text range, then unused sources, quotations and pages that were read."""
    grounding = candidate.get("groundingMetadata")
    chunks = objects_of(value_at(grounding, "groundingChunks"))
    cited, answer = set[int](), _Answer(wires)
    for support in objects_of(value_at(grounding, "groundingSupports")):
        indices = support.get("groundingChunkIndices")
        for index in indices if isinstance(indices, list) else ():
            if isinstance(index, int) and 0 <= index < len(chunks):
                cited.add(index)
                yield {**_source(chunks[index]), **answer.span(support.get("segment"))}
    yield from (_source(chunk) for number, chunk in enumerate(chunks) if number not in cited)
    quoted = candidate.get("citationMetadata")
    for citation in (*objects_of(value_at(quoted, "citations")), *objects_of(value_at(quoted, "citationSources"))):
        yield {**_source({"web": citation}), **answer.span(citation)}
    for page in objects_of(value_at(candidate, "urlContextMetadata.urlMetadata")):
        yield {"type": "url_citation", "url": page.get("retrievedUrl")}


def _source(chunk: JsonObject) -> JsonObject:
    kind, facts = next(((kind, chunk[kind]) for kind in _SOURCES if kind in chunk), ("web", None))
    found: JsonObject = {
        "url": string_of(facts, "uri") or string_of(facts, "sourceUri"),
        "title": string_of(facts, "title"),
    }
    return {"type": _SOURCES[kind], **{name: value for name, value in found.items() if value is not None}}


_SOURCES: Mapping[str, str] = {
    "web": "url_citation",
    "maps": "url_citation",
    "image": "url_citation",
    "retrievedContext": "file_citation",
}


_MOST_SEARCHED = 20_000_000
"""Characters that are searched for quoted texts without a true offset; later citations of an answer have no position."""


class _Answer:
    """The text of an answer, in which citations have their ranges. Each part is encoded once."""

    def __init__(self, wires: Sequence[JsonObject]) -> None:
        self._texts = [_answer_text(wire) for wire in wires]
        self._offsets = list(accumulate(map(len, self._texts), initial=0))
        self._whole, self._searched = "".join(self._texts), 0
        self._encoded: dict[int | None, _Utf8Text] = {}  # by number of the part; the whole is None

    def span(self, segment: JsonValue) -> JsonObject:
        """Return the cited range in characters of the whole text."""
        # The wire counts UTF-8 bytes: of one part in its documentation, of the whole answer after thoughts in recordings. So an
        # offset counts only if the quoted text is there; a quoted text that occurs once needs no offset.
        quoted = string_of(segment, "text")
        start, end, number = (_count(segment, name) for name in ("startIndex", "endIndex", "partIndex"))
        for text, offset in ((self._part(number), self._offset(number)), (self._part(None), 0)):
            found = text.content[start:end].decode("utf-8", "replace")
            if found and found == (quoted or found):
                return _range(offset + text.characters_before(start), found)
        if quoted and self._searched < _MOST_SEARCHED:
            self._searched += len(self._whole)
            if self._whole.count(quoted) == 1:
                return _range(self._whole.index(quoted), quoted)
        return {"text": quoted} if quoted else {}

    def _part(self, number: int | None) -> _Utf8Text:
        if number not in self._encoded:
            text = self._whole if number is None else "".join(self._texts[number : number + 1])
            self._encoded[number] = _Utf8Text.of(text)
        return self._encoded[number]

    def _offset(self, number: int) -> int:
        return self._offsets[min(number, len(self._offsets) - 1)]


class _Utf8Text(NamedTuple):
    """A text as UTF-8. ``starts``: where its characters begin; ``None`` if each has one byte."""

    content: bytes
    starts: Sequence[int] | None

    @classmethod
    def of(cls, text: str) -> _Utf8Text:
        content = text.encode("utf-8", "replace")
        if len(content) == len(text):
            return cls(content, None)
        return cls(content, [at for at, byte in enumerate(content) if byte & 0xC0 != 0x80])

    def characters_before(self, end: int) -> int:
        """Return how many characters begin before a byte."""
        return min(end, len(self.content)) if self.starts is None else bisect_left(self.starts, end)


def _range(start: int, text: str) -> JsonObject:
    return {"start_index": start, "end_index": start + len(text), "text": text}


def _count(data: JsonValue, name: str) -> int:
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, int) and value > 0 else 0


def _answer_text(wire: JsonObject) -> str:
    return "" if wire.get("thought") is True else string_of(wire, "text") or ""
