"""Text without lone surrogates: UTF-8 cannot encode half of a surrogate pair, so no provider accepts it."""

from __future__ import annotations

from sigwire.core.json import JsonValue

__all__ = ["is_unicode", "replace_surrogates", "to_unicode"]


def replace_surrogates(value: JsonValue) -> JsonValue:
    """Return the value with lone surrogates replaced; the value itself if it has none.

    >>> ascii(replace_surrogates({"a": ["ok", "\\ud800"]}))
    "{'a': ['ok', '\\\\ufffd']}"
    """
    if _is_clean(value):
        return value
    match value:
        case str():
            return to_unicode(value)
        case dict():
            return {to_unicode(key): replace_surrogates(child) for key, child in value.items()}
        case list():
            return [replace_surrogates(child) for child in value]
        case _:
            return value


def _is_clean(value: JsonValue) -> bool:
    if isinstance(value, str):
        return is_unicode(value)
    if isinstance(value, dict):
        return all(map(is_unicode, value)) and all(map(_is_clean, value.values()))
    return not isinstance(value, list) or all(map(_is_clean, value))


def is_unicode(text: str) -> bool:
    """Return True if UTF-8 can encode the text."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_unicode(text: str) -> str:
    """Return the text with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
