"""``CodeLimits``: what one run of code may use."""

from __future__ import annotations

from dataclasses import dataclass

from sigwire.errors import ConfigurationError
from sigwire.keywords import ChecksKeywords

__all__ = ["CodeLimits", "limits_of"]


@dataclass(frozen=True, slots=True)
class CodeLimits(ChecksKeywords):
    """The limits of one run of code. Raises ``ConfigurationError`` for a limit that is not above 0.

    ``seconds`` of execution, without the time of host calls; ``memory`` in bytes; ``calls`` of the host; ``output``: characters
    that the code prints, the rest is dropped.

    >>> CodeLimits(seconds=1).memory // 2**20
    256
    """

    seconds: float = 5
    memory: int = 256 * 2**20
    calls: int = 50
    output: int = 10_000

    def __post_init__(self) -> None:
        for name in ("seconds", "memory", "calls", "output"):
            value: object = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise ConfigurationError(f"{name} is a limit above 0, not {value!r} (making CodeLimits).")


def limits_of(given: object) -> CodeLimits:
    """Return the limits of an interpreter, the usual ones for ``None``. Raises ``ConfigurationError`` for other objects."""
    if given is not None and not isinstance(given, CodeLimits):
        raise ConfigurationError(
            f"limits is a CodeLimits, not {given!r:.80} (making an interpreter). Write limits=CodeLimits(seconds=5)."
        )
    return given or CodeLimits()
