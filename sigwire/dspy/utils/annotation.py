"""``experimental`` of ``dspy.utils.annotation``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["experimental"]


def experimental(f: Any = None, version: str | None = None) -> Any:
    """Return a function, class or property with a notice in its docstring; without ``f``, the decorator that does so.

    >>> @experimental(version="2.0")
    ... def search(): "Find."
    >>> print(search.__doc__)
    Experimental: this may change in any release (since 2.0).
    <BLANKLINE>
    Find.
    """
    if f is None:
        decorate: Callable[[Any], Any] = lambda api: experimental(api, version)  # noqa: E731
        return decorate
    since = f" (since {version})" if version else ""
    f.__doc__ = f"Experimental: this may change in any release{since}.\n\n{f.__doc__ or ''}".rstrip()
    return f
