"""Tool names that a wire forbids, mapped to names it takes and back.

Providers restrict what a tool may be called: which characters, how many of them, which first, whether case tells two names
apart. A tool keeps its own name everywhere in sigwire; a codec maps names on the way out and back on the way in:

    names = NameMap([tool names], NameRules())      names.encode("math.circle_area") == "math_circle_area"
                                                    names.decode("math_circle_area") == "math.circle_area"

Rules are data. Promises: a name that the rules allow stays itself, unless another one keeps it that differs by case only;
no two names meet; the same names give the same map in whatever order they come. Where mapped names would meet, each gets a
few characters of its own hash.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["NameMap", "NameRules"]


@dataclass(frozen=True, slots=True)
class NameRules:
    """What a wire allows of a tool's name. ``allowed`` and ``first`` are the insides of a regular expression's ``[...]``.

    ``replacement`` stands for a character that is not allowed, and ``prefix`` goes before a first character that may not be
    first. The defaults are what most providers take: ``^[a-zA-Z0-9_-]{1,64}$``.

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
            raise ValueError(f"Names of at most {self.max_length} characters cannot be told apart; allow {_SHORTEST}.")
        if not (self._fits(self.prefix) and self._fits(f"{self.prefix}{self.replacement}0a")):
            raise ValueError(
                f"The prefix {self.prefix!r}, the replacement {self.replacement!r}, a digit and a letter must themselves be "
                f"allowed by [{self.allowed}], and the prefix be allowed first. Choose others."
            )

    def _fits(self, name: str) -> bool:
        forbidden, first = _patterns(self)
        return bool(name) and not forbidden.search(name) and first.match(name) is not None

    def candidate(self, name: str) -> str:
        """The name with what is forbidden replaced and what is too long cut off; two names may have the same one."""
        forbidden, first = _patterns(self)
        name = forbidden.sub(self.replacement, name)
        return (name if first.match(name) else self.prefix + name)[: self.max_length]

    def key(self, name: str) -> str:
        """What must differ for the wire to tell two names apart."""
        return name if self.case_sensitive else name.casefold()


_HASH_LENGTH = 8
_SHORTEST = 16


@functools.lru_cache(maxsize=64)
def _patterns(rules: NameRules) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(f"[^{rules.allowed}]"), re.compile(f"[{rules.first or rules.allowed}]")


class NameMap:
    """One request's tool names, ours to the wire's and back. A name given twice counts once.

    >>> names = NameMap(["db.find", "db_find", "ping"], NameRules())
    >>> names.encode("db_find"), names.encode("ping"), names.encode("db.find")
    ('db_find', 'ping', 'db_find_cb656556')
    >>> names.decode("db_find_cb656556"), names.decode("unheard_of")
    ('db.find', 'unheard_of')
    """

    __slots__ = ("_ours", "_rules", "_wire")

    def __init__(self, names: Iterable[str], rules: NameRules) -> None:
        self._rules = rules
        self._wire: dict[str, str] = {}
        self._ours: dict[str, str] = {}
        contested: list[str] = []
        for contenders in _contenders(names, rules):
            keeper = _keeper(contenders, rules)
            contested += [name for name in contenders if name != keeper]
            if keeper is not None:
                self._settle(keeper, rules.candidate(keeper))
        for name in sorted(contested):
            self._settle(name, self._own(name))

    def encode(self, name: str) -> str:
        """The wire's name. One that was not among the names (a call in an old history) gets one that nobody has."""
        known = self._wire.get(name)
        if known is not None:
            return known
        candidate = self._rules.candidate(name)
        return candidate if self._is_free(candidate) else self._own(name)

    def decode(self, name: str) -> str:
        """Our name. One that the wire made up stays as it is, for whoever looks it up to refuse."""
        return self._ours.get(self._rules.key(name), name)

    def _settle(self, name: str, wire: str) -> None:
        self._wire[name] = wire
        self._ours[self._rules.key(wire)] = name

    def _own(self, name: str) -> str:
        """A free name made of this one and its hash."""
        return next(wire for wire in _hashed(name, self._rules) if self._is_free(wire))

    def _is_free(self, wire: str) -> bool:
        return self._rules.key(wire) not in self._ours


def _contenders(names: Iterable[str], rules: NameRules) -> Iterable[list[str]]:
    """The names in groups that the wire could not tell apart once mapped; in a fixed order within a group."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(set(names)):
        groups[rules.key(rules.candidate(name))].append(name)
    return groups.values()


def _keeper(contenders: list[str], rules: NameRules) -> str | None:
    """Who gets the plain mapped name: the only contender, else the first that is allowed as it stands, else nobody."""
    if len(contenders) == 1:
        return contenders[0]
    return next((name for name in contenders if rules.candidate(name) == name), None)


def _hashed(name: str, rules: NameRules) -> Iterator[str]:
    """Names for one name, each longer or saltier than the last, so that one of them is free."""
    import hashlib  # slow to import, and few names meet

    salt = 0
    while True:
        salted = f"{salt or ''}{name}".encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(salted).hexdigest()[:_HASH_LENGTH]
        room = rules.max_length - len(rules.replacement) - _HASH_LENGTH
        yield f"{rules.candidate(name)[:room]}{rules.replacement}{digest}"
        salt += 1
