"""Map tool names that a wire forbids to names that it accepts, and back.

Providers restrict the characters of tool names, the first character, the length and the significance of case. A tool has its
canonical name everywhere in sigwire; a codec encodes the names of a request and decodes those of the response:

    names = NameMap([tool names], NameRules())      names.encode("math.circle_area") == "math_circle_area"
                                                    names.decode("math_circle_area") == "math.circle_area"

Rules are data. Promises: an allowed name is unchanged, unless a name that differs by case only has it; two names never get
one wire name; the map does not depend on the order of names. Names that would collide get a few characters of their hash.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

__all__ = ["NameMap", "NameRules"]


@dataclass(frozen=True, slots=True)
class NameRules:
    """The tool names that a wire accepts. ``allowed`` and ``first`` are the contents of ``[...]`` in a regular expression.

    ``replacement`` replaces a forbidden character; ``prefix`` precedes a forbidden first character. Most providers accept
    the defaults: ``^[a-zA-Z0-9_-]{1,64}$``.

    >>> NameRules(first="a-zA-Z_", prefix="_").candidate("3d.plot")
    '_3d_plot'
    """

    allowed: str = "a-zA-Z0-9_-"
    first: str | None = None
    max_length: int = 64
    case_sensitive: bool = True
    replacement: str = "_"
    prefix: str = "_"

    def __post_init__(self) -> None:
        if self.max_length < _SHORTEST:
            raise ValueError(
                f"max_length={self.max_length} is too short for unique names; allow {_SHORTEST} characters."
            )
        if not (self._fits(self.prefix) and self._fits(f"{self.prefix}{self.replacement}0a")):
            raise ValueError(
                f"The prefix {self.prefix!r}, the replacement {self.replacement!r}, a digit and a letter must themselves be "
                f"allowed by [{self.allowed}], and the prefix be allowed first. Choose others."
            )

    def _fits(self, name: str) -> bool:
        forbidden, first = _patterns(self)
        return bool(name) and not forbidden.search(name) and first.match(name) is not None

    def candidate(self, name: str) -> str:
        """Return the name with forbidden characters replaced, truncated. Two names may have one candidate."""
        forbidden, first = _patterns(self)
        name = forbidden.sub(self.replacement, name)
        return (name if first.match(name) else self.prefix + name)[: self.max_length]

    def key(self, name: str) -> str:
        """Return the part of a name by which the wire distinguishes names."""
        return name if self.case_sensitive else name.casefold()


_HASH_LENGTH = 8
_SHORTEST = 16


@functools.lru_cache(maxsize=64)
def _patterns(rules: NameRules) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(f"[^{rules.allowed}]"), re.compile(f"[{rules.first or rules.allowed}]")


class NameMap:
    """The tool names of one request: canonical to wire and back. Duplicates are ignored.

    >>> names = NameMap(["db.find", "db_find", "ping"], NameRules())
    >>> names.encode("db_find"), names.encode("ping"), names.encode("db.find")
    ('db_find', 'ping', 'db_find_cb656556')
    >>> names.decode("db_find_cb656556"), names.decode("unknown")
    ('db.find', 'unknown')
    """

    __slots__ = ("_canonical", "_rules", "_wire")

    def __init__(self, names: Iterable[str], rules: NameRules) -> None:
        self._rules = rules
        self._wire: dict[str, str] = {}
        self._canonical: dict[str, str] = {}
        hashed: list[str] = []
        for group in _colliding_groups(names, rules):
            winner = _winner(group, rules)
            hashed += [name for name in group if name != winner]
            if winner is not None:
                self._add(winner, rules.candidate(winner))
        for name in sorted(hashed):
            self._add(name, self._hashed_name(name))

    def encode(self, name: str) -> str:
        """Return the wire name. An unknown name (a call in an old history) gets an unused wire name."""
        known = self._wire.get(name)
        if known is not None:
            return known
        candidate = self._rules.candidate(name)
        return candidate if self._is_free(candidate) else self._hashed_name(name)

    def decode(self, name: str) -> str:
        """Return the canonical name. An unknown wire name is returned unchanged; the look-up of the tool refuses it."""
        return self._canonical.get(self._rules.key(name), name)

    @property
    def wire_names(self) -> Collection[str]:
        """The wire names of all names."""
        return self._wire.values()

    def _add(self, name: str, wire: str) -> None:
        self._wire[name] = wire
        self._canonical[self._rules.key(wire)] = name

    def _hashed_name(self, name: str) -> str:
        return next(wire for wire in _hashed_names(name, self._rules) if self._is_free(wire))

    def _is_free(self, wire: str) -> bool:
        return self._rules.key(wire) not in self._canonical


def _colliding_groups(names: Iterable[str], rules: NameRules) -> Iterable[list[str]]:
    """Return sorted groups of names whose candidates the wire cannot distinguish."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(set(names)):
        groups[rules.key(rules.candidate(name))].append(name)
    return groups.values()


def _winner(group: list[str], rules: NameRules) -> str | None:
    """Return the name that gets its candidate: the only one, else the first allowed one, else ``None``."""
    if len(group) == 1:
        return group[0]
    return next((name for name in group if rules.candidate(name) == name), None)


def _hashed_names(name: str, rules: NameRules) -> Iterator[str]:
    """Yield wire names for a name without end, each with another salt, so that one of them is unused."""
    import hashlib  # slow to import, and few names collide

    for salt in itertools.count():
        salted = f"{salt or ''}{name}".encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(salted).hexdigest()[:_HASH_LENGTH]
        room = rules.max_length - len(rules.replacement) - _HASH_LENGTH
        yield f"{rules.candidate(name)[:room]}{rules.replacement}{digest}"
