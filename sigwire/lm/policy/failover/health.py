"""``Health``: the rules of penalties. ``Circuit``: the penalties of one target, and whether calls may ask it now.

Each failure adds its weight to a penalty that halves every ``half_life`` seconds. At ``limit`` the circuit opens, and no call
asks the target. When it is due, it is half open: one call is the probe, others pass by. A success of the probe closes it, a
failure opens it again, for twice as long.

No clock is read: each method gets the time. The circuits of providers belong to the process: all threads and event loops share
them, other processes do not. A forked child forgets all penalties.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakSet

from sigwire.effects.forks import on_fork
from sigwire.errors import ConfigurationError
from sigwire.keywords import ChecksKeywords
from sigwire.lm.policy.guard import Guard
from sigwire.lm.policy.registry import ProcessTable

if TYPE_CHECKING:
    from sigwire.lm.policy.call import TargetKey
from sigwire.show.numbers import seconds_text

__all__ = ["Admission", "Circuit", "CircuitState", "Health", "circuit_of", "health_reset"]

Admission: TypeAlias = Literal["call", "probe", "forced"]
"""A common call; the one call that asks a half-open target; a call that asks an open target because all are open."""
CircuitState: TypeAlias = Literal["closed", "half open", "open"]
_SETTLED_TOGETHER = 1e-9  # of a penalty: less is none


@dataclass(frozen=True, slots=True)
class Health(ChecksKeywords):
    """The rules by which a router leaves a target alone: ``Router([...], health=Health(limit=5))``. Times are in seconds.

    ``half_life`` of a penalty. ``limit``: the penalty that opens the circuit; a server error and a lost connection weigh 1, a
    timeout 2, a rate limit 0.5. ``first_open``, doubled each time up to ``longest_open``: how long it stays open, less a
    random part of up to ``jitter``. ``rest``: how long it is open after a refused key, a spent account or an unknown model; a
    wait that the provider states is kept up to that bound. ``random`` draws from 0 to 1.

    The values of 3 failures and 5 s are those of LiteLLM's router (``litellm/constants.py``). Raises ``ConfigurationError`` for
    a value that is no number of 0 or more.

    >>> Health().limit, Health(first_open=1.0).longest_open
    (3.0, 120.0)
    """

    half_life: float = 30.0
    limit: float = 3.0
    first_open: float = 5.0
    longest_open: float = 120.0
    jitter: float = 0.2
    rest: float = 600.0
    random: Callable[[], float] = field(default=random.random)

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            number = getattr(self, name)
            if not isinstance(number, (int, float)) or isinstance(number, bool) or not 0 <= number < float("inf"):
                raise ConfigurationError(f"Health({name}=...) is a number, 0 or more, not {number!r:.80}.")
        if not self.half_life or self.jitter > 1:
            raise ConfigurationError(f"Health takes a half_life above 0 and a jitter of at most 1, not {self!r:.200}.")

    def dump(self) -> dict[str, float]:
        """Return the numbers by name, as JSON."""
        return {name: getattr(self, name) for name in _NUMBERS}


_NUMBERS = ("half_life", "limit", "first_open", "longest_open", "jitter", "rest")


class Circuit:
    """The health of one target.

    >>> circuit = Circuit(Health(jitter=0.0))
    >>> for second in range(4):
    ...     admission = circuit.enter(second)
    ...     circuit.fail(second, admission, weight=1.0)
    >>> circuit.refusal(3.5), circuit.enter(3.5)
    ('open 4.5 s', None)
    >>> circuit.enter(8.0), circuit.enter(8.0)
    ('probe', None)
    >>> circuit.succeed(8.5, "probe")
    >>> circuit.state(8.5), circuit.refusal(8.5)
    ('closed', None)
    """

    __slots__ = (
        "__weakref__",
        "_at",
        "_due",
        "_guard",
        "_health",
        "_opened",
        "_penalty",
        "_probed_until",
        "answers",
        "failures",
        "last",
    )

    def __init__(self, health: Health) -> None:
        self._health = health
        self.reset()
        _CIRCUITS.add(self)

    def reset(self) -> None:
        """Forget everything."""
        self._guard = Guard()
        self._penalty = self._at = 0.0
        self._due: float | None = None  # the time from which an open circuit is half open; None: closed
        self._probed_until = self._opened = 0.0
        self.answers = self.failures = 0
        self.last: str | None = None  # the short name of the latest failure

    def __deepcopy__(self, memo: object) -> Circuit:
        return self  # copies of a model share its health

    # --- reading

    def state(self, now: float) -> CircuitState:
        """Return whether calls may ask the target, one call may, or none."""
        due = self._due
        return "closed" if due is None else "half open" if now >= due else "open"

    def penalty(self, now: float) -> float:
        """Return the penalty at a time."""
        halvings = max(now - self._at, 0.0) / self._health.half_life
        return self._penalty * math.exp2(-halvings)

    def wait(self, now: float) -> float:
        """Return the seconds until a call may ask the target; 0 if one may."""
        due = self._due
        return 0.0 if due is None else max(due - now, self._probed_until - now, 0.0)

    def refusal(self, now: float) -> str | None:
        """Return why a call may not ask the target now, such as "open 4.2 s"; ``None`` if it may."""
        seconds = self.wait(now)
        if not seconds:
            return None
        return f"open {seconds_text(seconds)}" if self.state(now) == "open" else "probed by another call"

    # --- a call: ``enter``, then one of ``succeed``, ``fail`` and ``withdraw``

    def enter(self, now: float) -> Admission | None:
        """Admit a call, as the probe if the circuit is half open. ``None``: it may not ask."""
        return "call" if self._due is None else self._guard.use(self._enter, now)

    def succeed(self, now: float, admission: Admission) -> None:
        """Count an answer."""
        self._guard.use(self._succeed, now, admission)

    def fail(self, now: float, admission: Admission, *, weight: float, rest: float = 0.0, what: str = "") -> None:
        """Count a failure. ``rest``: the least seconds for which the circuit opens at once; ``what``: its short name."""
        self._guard.use(self._fail, now, admission, weight, min(rest, self._health.rest), what)

    def withdraw(self, admission: Admission) -> None:
        """End a call that shows nothing about the target. Never waits, so that ``finally`` and a closed stream may call it."""
        if admission == "probe":
            self._guard.release(self._end_probe)

    def _enter(self, now: float) -> Admission | None:
        if self._due is None:
            return "call"
        if self.wait(now):
            return None
        # The bound of a probe whose stream is never read to its end.
        self._probed_until = now + max(self._health.longest_open, 1.0)
        return "probe"

    def _succeed(self, now: float, admission: Admission) -> None:
        self._decay(now)
        self.answers += 1
        if admission == "call":
            self._penalty = max(self._penalty - 1.0, 0.0)
            return
        self._penalty /= 2
        self._end_probe()
        self._due, self._opened = None, 0

    def _fail(self, now: float, admission: Admission, weight: float, rest: float, what: str) -> None:
        self._decay(now)
        self._penalty += weight
        self.failures += 1
        self.last = what or None
        is_closed = self._due is None
        if admission == "probe" or (is_closed and (rest or self._penalty >= self._health.limit)):
            self._open(now, rest)
        elif self._due is not None:  # a call that began before the circuit opened
            self._due = max(self._due, now + rest)

    def _open(self, now: float, rest: float) -> None:
        health = self._health
        seconds = min(health.first_open * 2.0 ** min(self._opened, 64), health.longest_open)
        self._opened += 1
        self._due = now + max(seconds * (1.0 - health.jitter * health.random()), rest)
        self._end_probe()

    def _end_probe(self) -> None:
        self._probed_until = 0.0

    def _decay(self, now: float) -> None:
        penalty = self.penalty(now)
        self._penalty, self._at = (0.0 if penalty < _SETTLED_TOGETHER else penalty), max(now, self._at)


# --- the process

_CIRCUITS: WeakSet[Circuit] = WeakSet()
_by_target: ProcessTable[tuple[object, ...], Circuit] = ProcessTable(4096, Circuit.reset)


def circuit_of(target: TargetKey, health: Health, clock: Callable[[], float]) -> Circuit:
    """Return the circuit of a target of the process. Routers with equal rules and one clock share it."""
    return _by_target.find((*target, health, clock), lambda: Circuit(health))


@on_fork
def health_reset() -> None:
    """Forget the penalties of all targets."""
    for circuit in list(_CIRCUITS):
        circuit.reset()
