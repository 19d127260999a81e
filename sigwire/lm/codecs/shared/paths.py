"""Texts in URLs: the name of a model in the path, a value in the query."""

from __future__ import annotations

import functools
import re

from sigwire.errors import ConfigurationError

__all__ = ["model_in_path", "value_in_query"]

_UNSAFE = re.compile(r"[^\w.~/:@!$&'()*+,;=-]", re.ASCII)


@functools.lru_cache(maxsize=256)  # each request has the name of its model
def model_in_path(model: str) -> str:
    """Return the name of a model as part of a path. Slashes stay: some names have collections.

    Raises ``ConfigurationError`` for a segment that a server would resolve to another address.

    >>> model_in_path("tunedModels/mine"), model_in_path("a b?c")
    ('tunedModels/mine', 'a%20b%3Fc')
    >>> model_in_path("../files")
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: The model '../files' has the path segment '..' (writing the address). ...
    """
    if wrong := next((part for part in model.split("/") if part in (".", "..")), None):
        raise ConfigurationError(
            f"The model {model!r:.120} has the path segment {wrong!r} (writing the address). Pass the name of a model."
        )
    return _UNSAFE.sub(_escape, model)


def value_in_query(text: str) -> str:
    """Return a text as a value of a query.

    >>> value_in_query("a+b/c=&d")
    'a%2Bb%2Fc%3D%26d'
    """
    return re.sub(r"[^\w.~-]", _escape, text, flags=re.ASCII)


def _escape(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())
