"""The options of a call for the cache of responses: ``cache``, ``fresh`` and ``rollout_id``.

Every call reads this file and most programs nothing else of the cache, so it loads nothing. Whether the cache is off is read
once: from ``configure_cache``, else from ``$SIGWIRE_CACHE``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from sigwire.errors import ConfigurationError

if TYPE_CHECKING:
    from sigwire.core.json import JsonObject

__all__ = [
    "CACHE_OPTIONS",
    "CHECKED_OPTIONS",
    "CacheChoice",
    "CacheMode",
    "check_choice",
    "choice_of",
    "is_off",
    "read_choice",
    "read_settings_from",
    "set_off",
    "with_settings",
]

CacheMode: TypeAlias = 'bool | Literal["on"]'
CACHE_OPTIONS = frozenset({"cache", "fresh", "rollout_id"})
"""Options of a request that are for the cache. No provider gets them."""
_SWITCHES = frozenset({"fresh", "strict_history", "strict_window"})
CHECKED_OPTIONS = CACHE_OPTIONS | _SWITCHES
"""Options that ``check_choice`` looks at."""


class CacheChoice(NamedTuple):
    """The cache options of one call. ``cache``: True, False, or "on" for requests whose answers change with time as well."""

    cache: Any = True
    fresh: bool = False
    rollout_id: Any = None


_USUAL = CacheChoice()


def choice_of(cache: object) -> CacheChoice:
    """Return the choice of a call without cache options; ``cache`` is the model's."""
    return _USUAL if cache is True else CacheChoice(cache)


def read_choice(options: Mapping[str, Any], cache: object) -> tuple[JsonObject, CacheChoice]:
    """Return the options without those for the cache, and the choice that they make. ``cache`` is the model's.

    >>> read_choice({"temperature": 1.0, "rollout_id": 3}, True)
    ({'temperature': 1.0}, CacheChoice(cache=True, fresh=False, rollout_id=3))
    """
    check_choice(options)
    given = options.get("cache")
    choice = CacheChoice(cache if given is None else given, bool(options.get("fresh")), options.get("rollout_id"))
    return {name: value for name, value in options.items() if name not in CACHE_OPTIONS}, choice


def check_choice(options: Mapping[str, Any], what: str = "calling a model") -> None:
    """Raise ``ConfigurationError`` for a cache option, or a switch of sigwire's own, of the wrong form.

    >>> check_choice({"cache": "always"})
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: cache is True, False or "on", not 'always' (calling a model). The mark for ...
    """
    cache, rollout_id = options.get("cache"), options.get("rollout_id")
    if cache is not None and cache is not True and cache is not False and cache != "on":
        raise ConfigurationError(
            f'cache is True, False or "on", not {cache!r:.80} ({what}). The mark for the provider\'s prompt cache is '
            "prompt_cache=."
        )
    for name in _SWITCHES:
        if not isinstance(options.get(name), (bool, NoneType)):
            raise ConfigurationError(f"{name} is True or False, not {options[name]!r:.80} ({what}).")
    if rollout_id is not None and not isinstance(rollout_id, (int, str)):
        raise ConfigurationError(f"rollout_id is a number or a text, not {rollout_id!r:.80} ({what}).")


# --- the process: shared by its threads and tasks, inherited by a forked child

_off: bool | None = None  # None: not read yet


def is_off() -> bool:
    """Return True if the process has no cache."""
    global _off
    if _off is None:
        _off = os.environ.get("SIGWIRE_CACHE", "").strip().lower() == "off"
    return _off


def set_off(off: bool | None) -> None:
    """Set whether the process has no cache; ``None``: the environment decides."""
    global _off
    _off = off


class _CacheSettings(Protocol):
    @property
    def fresh(self) -> bool: ...
    @property
    def rollout_id(self) -> object: ...


def _no_settings() -> _CacheSettings:
    return _USUAL


_settings: Callable[[], _CacheSettings] = _no_settings


def read_settings_from(source: Callable[[], _CacheSettings]) -> None:
    """Set the function that returns the settings."""
    global _settings
    _settings = source


def with_settings(choice: CacheChoice) -> tuple[bool, object]:
    """Return whether a stored answer may not be read, and the sample that a call asks for; ``None``: the common one.

    The settings ``fresh`` and ``rollout_id`` add to the options of the call.
    """
    settings = _settings()
    own, setting = choice.rollout_id, settings.rollout_id
    return choice.fresh or settings.fresh, own if setting is None else setting if own is None else [own, setting]
