"""Data URIs: base64 data with a media type (https://www.rfc-editor.org/rfc/rfc2397)."""

from __future__ import annotations

import base64
import binascii
import re

from sigwire.errors import InputError

__all__ = ["checked_base64", "data_uri", "kind_of", "shorten", "split_data_uri"]

_DATA_URI = re.compile(r"data:(?P<type>[^;,]*)(?P<parameters>(?:;[^;,]*)*),(?P<data>.*)", re.DOTALL)


def data_uri(content: str | bytes, media_type: str) -> str:
    """Return bytes or base64 text as a data URI.

    >>> data_uri(b"hi", "image/png")
    'data:image/png;base64,aGk='
    """
    data = base64.b64encode(content).decode("ascii") if isinstance(content, bytes) else checked_base64(content)
    return f"data:{media_type};base64,{data}"


def checked_base64(text: str) -> str:
    """Return the text. Raises ``InputError`` if it is not base64."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(
            f"{shorten(text)!r} is not base64 data ({error}). Read files with from_path(...), and pass bytes as bytes."
        ) from None
    return text


def split_data_uri(uri: str) -> tuple[str, str]:
    """Return media type and base64 data of a data URI. Raises ``InputError`` for another text."""
    match = _DATA_URI.fullmatch(uri)
    if match is None or ";base64" not in match["parameters"].lower():
        raise InputError(f"{shorten(uri)!r} is not a base64 data URI such as data:image/png;base64,iVBORw...")
    return match["type"] or "application/octet-stream", match["data"]


def kind_of(value: object) -> str:
    """Return the type of a value that is no medium, for an error text."""
    name = type(value).__name__
    return "a coroutine: await sigwire.fetch(url), and pass its content" if name == "coroutine" else name


def shorten(text: str) -> str:
    """Return a text, or its start and its length, for error messages."""
    return text if len(text) <= 60 else f"{text[:50]}... ({len(text)} characters)"
