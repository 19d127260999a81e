"""Refuse the keywords that a constructor does not know, with the nearest name of those that it knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any, ClassVar, Self

from sigwire.errors import ConfigurationError, suggest

__all__ = ["ChecksKeywords", "check_keywords"]


class ChecksKeywords:
    """Base of classes whose constructor refuses an unknown keyword in words, and not with a bare ``TypeError``."""

    __slots__ = ()
    renamed: ClassVar[Mapping[str, str]] = {}
    """Keywords of other libraries, and what to write instead."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            kwargs = dict.fromkeys(kwargs)  # names only: the traceback of an error shows the local variables
            check_keywords(cls.__name__, cls.__init__, kwargs, cls.renamed)
        return super().__new__(cls)


def check_keywords(
    owner: str, function: object, given: Iterable[str], renamed: Mapping[str, str] = {}, *, misspelt_only: bool = False
) -> None:
    """Raise ``ConfigurationError`` for a keyword that a function of Python does not take.

    ``misspelt_only``: raise only for a keyword that is similar to a parameter, if the function takes any keyword.
    """
    if not isinstance(function, FunctionType):
        return
    code = function.__code__
    takes_any = bool(code.co_flags & _TAKES_ANY_KEYWORD)
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = tuple(name for name in known if name not in ("self", "cls"))
    for name in [] if takes_any and not misspelt_only else [name for name in given if name not in known]:
        hint = f"Did you mean {renamed[name]}? " if name in renamed else suggest(name, known)
        if hint or not misspelt_only:
            raise ConfigurationError(
                f"{owner} has no option {name!r} (making it). {hint}Its options are {', '.join(known) or 'none'}."
            )


_TAKES_ANY_KEYWORD = 8  # inspect.CO_VARKEYWORDS; importing inspect is slow
