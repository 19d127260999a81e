"""generateContent: the sources of a text as flat citations, with positions in characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of, value_at

__all__ = ["decode_citations"]


def decode_citations(candidate: JsonObject, wires: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield each source of each supported text range, then unused sources, quotations and pages that were read."""
    grounding = candidate.get("groundingMetadata")
    chunks = objects_of(value_at(grounding, "groundingChunks"))
    cited: set[int] = set()
    for support in objects_of(value_at(grounding, "groundingSupports")):
        indices = support.get("groundingChunkIndices")
        for index in indices if isinstance(indices, list) else ():
            if isinstance(index, int) and 0 <= index < len(chunks):
                cited.add(index)
                yield {**_source(chunks[index]), **_span(support.get("segment"), wires)}
    yield from (_source(chunk) for number, chunk in enumerate(chunks) if number not in cited)
    quoted = candidate.get("citationMetadata")
    for citation in (*objects_of(value_at(quoted, "citations")), *objects_of(value_at(quoted, "citationSources"))):
        yield {**_source({"web": citation}), **_span(citation, wires)}
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


def _span(segment: JsonValue, wires: Sequence[JsonObject]) -> JsonObject:
    """Return the cited range in characters of the whole text."""
    # The wire counts UTF-8 bytes: of one part in its documentation, of the whole answer after thoughts in recordings. So an
    # offset counts only if the quoted text is there; a quoted text that occurs once needs no offset.
    quoted = string_of(segment, "text")
    start, end, number = (_count(segment, name) for name in ("startIndex", "endIndex", "partIndex"))
    texts = [_answer_text(wire) for wire in wires]
    whole = "".join(texts)
    for text, offset in (("".join(texts[number : number + 1]), sum(map(len, texts[:number]))), (whole, 0)):
        encoded = text.encode("utf-8", "replace")
        found = encoded[start:end].decode("utf-8", "replace")
        if found and found == (quoted or found):
            return _range(offset + len(encoded[:start].decode("utf-8", "replace")), found)
    if quoted and whole.count(quoted) == 1:
        return _range(whole.index(quoted), quoted)
    return {"text": quoted} if quoted else {}


def _range(start: int, text: str) -> JsonObject:
    return {"start_index": start, "end_index": start + len(text), "text": text}


def _count(data: JsonValue, name: str) -> int:
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, int) and value > 0 else 0


def _answer_text(wire: JsonObject) -> str:
    return "" if wire.get("thought") is True else string_of(wire, "text") or ""
