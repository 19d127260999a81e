"""Refuse keywords that a constructor does not know, with the nearest name of those that it knows, and numbers out of bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from reprlib import repr as short
from types import FunctionType
from typing import Any, ClassVar, Self

from sigwire.errors import ConfigurationError, suggest

__all__ = ["ChecksKeywords", "check_keywords", "check_whole"]


class ChecksKeywords:
    """Base of classes whose constructor refuses an unknown keyword in words, and not with a bare ``TypeError``."""

    __slots__ = ()
    _renamed: ClassVar[Mapping[str, str]] = {}  # keywords of other libraries, and what to write instead

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            kwargs = dict.fromkeys(kwargs)  # names only: the traceback of an error shows the local variables
            check_keywords(cls.__name__, cls.__init__, kwargs, cls._renamed)
        return super().__new__(cls)


def check_keywords(
    owner: str, function: object, given: Iterable[str], renamed: Mapping[str, str] = {}, *, misspelt_only: bool = False
) -> None:
    """Raise ``ConfigurationError`` for a keyword that a function of Python does not take.

    ``misspelt_only``: raise only for a keyword that is similar to a parameter, if the function takes any keyword.
    """
    known, takes_any = _parameters(function)
    unknown = () if takes_any and not misspelt_only else [name for name in given if name not in known]
    for name in unknown:
        hint = f"Did you mean {renamed[name]}? " if name in renamed else suggest(name, known)
        if hint or not misspelt_only:
            raise ConfigurationError(
                f"{owner} has no option {name!r} (making it). {hint}Its options are {', '.join(known)}."
            )


def check_whole(
    name: str, given: object, where: str, *, of: str, least: int = 0, most: int = 1_000_000, optional: bool = False
) -> None:
    """Raise ``ConfigurationError`` unless ``given`` is a whole number in these bounds, or ``None`` if it is ``optional``.

    A file that names a number must not make a program that runs for ever, or that needs more memory than there is.

    >>> check_whole("max_iters", 10**30, "making ReAct", of="turns")
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: max_iters is a number of turns from 0 to 1,000,000, not \
1000000000000000000000000000000 (making ReAct). Pass such a number.
    """
    if given is None and optional:
        return
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise ConfigurationError(
            f"{name} is a number of {of} from {least:,} to {most:,}, not {short(given)} ({where}). Pass such a number."
        )


def _parameters(function: object) -> tuple[Sequence[str], bool]:
    """Return the names of the parameters, and True if the function takes any keyword (or is not one of Python)."""
    if not isinstance(function, FunctionType):
        return (), True
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [name for name in names if name not in ("self", "cls")], bool(code.co_flags & _TAKES_ANY_KEYWORD)


_TAKES_ANY_KEYWORD = 8  # inspect.CO_VARKEYWORDS; importing inspect is slow
