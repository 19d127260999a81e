"""``shorten``: the content of a tool result as a model sees it, if the content is too long. Pure."""

from __future__ import annotations

from sigwire.core.json import JsonValue, dumps

__all__ = ["shorten"]


def shorten(content: JsonValue, characters: int | None, reader: str = "", call_id: str = "") -> JsonValue:
    """Return the content; if its text has more characters than allowed, the start and end of the text around a note.

    ``reader``: the tool that reads the whole text. The note then has the call that returns the omitted part.

    >>> shorten("abcdefghij" * 3, 10)
    'abcdefg\\n[... 20 of 30 characters omitted ...]\\nhij'
    >>> print(shorten("abcdefghij" * 3, 10, "read_result", "a"))
    abcdefg
    [... 20 of 30 characters omitted; read_result(id="a", start=7) returns them ...]
    hij
    """
    if characters is None:
        return content
    text = content if isinstance(content, str) else dumps(content)
    if len(text) <= characters:
        return content
    head = characters * 2 // 3 + 1 if characters else 0
    tail = characters - head
    call = f'; {reader}(id="{call_id}", start={head}) returns them' if reader else ""
    note = f"[... {len(text) - characters} of {len(text)} characters omitted{call} ...]"
    return f"{text[:head]}\n{note}\n{text[len(text) - tail :]}"
