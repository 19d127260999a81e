"""``CodeLimits``: what one run of code may use."""

from __future__ import annotations

from dataclasses import dataclass

from sigwire.errors import ConfigurationError
from sigwire.keywords import ChecksKeywords

__all__ = ["CodeLimits"]


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
            if not (value := getattr(self, name)) > 0:
                raise ConfigurationError(f"{name} is a limit above 0, not {value!r} (making CodeLimits).")
