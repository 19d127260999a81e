"""Where the values of a JSON text stand in it. Reads texts as models write them, up to the first error."""

from __future__ import annotations

import re
from contextlib import suppress

__all__ = ["places_in_json"]

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_JSON_SCALAR = re.compile(r'[^\s,\[\]{}":]+')
_BLANKS = re.compile(r"\s*")


def places_in_json(text: str, start: int) -> dict[tuple[str | int, ...], tuple[int, int]]:
    """Return start and end of the values in a JSON text, by keys and numbers; those in front of an error.

    >>> places_in_json('{"a": [true]}', 0)
    {('a', 0): (7, 11), ('a',): (6, 12), (): (0, 13)}
    """
    places: dict[tuple[str | int, ...], tuple[int, int]] = {}

    def skip(at: int) -> int:
        found = _BLANKS.match(text, at)
        return at if found is None else found.end()

    def walk(at: int, path: tuple[str | int, ...]) -> int:
        begin = at = skip(at)
        opening = text[at]
        if opening not in "{[" or len(path) > _MOST_DEPTH:
            found = (_JSON_STRING if opening == '"' else _JSON_SCALAR).match(text, at)
            if found is None:
                raise ValueError
            places.setdefault(path, (begin, found.end()))
            return found.end()
        at, number = skip(at + 1), 0
        while text[at] not in "}]":
            key: str | int = number
            if opening == "{":
                found = _JSON_STRING.match(text, at)
                if found is None:
                    raise ValueError
                key, at = found[0][1:-1], skip(found.end())
                if text[at] != ":":
                    raise ValueError
                at += 1
            at = skip(walk(at, (*path, key)))
            number += 1
            at = skip(at + 1) if text[at] == "," else at
        places.setdefault(path, (begin, at + 1))
        return at + 1

    with suppress(IndexError, ValueError):  # a text that needs repairs
        walk(start, ())
    return places


_MOST_DEPTH = 40
