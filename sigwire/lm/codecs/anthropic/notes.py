"""Messages: the warnings of one request, as they come up."""

from __future__ import annotations

from sigwire.core.response import LMWarning
from sigwire.lm.codecs.anthropic.profiles import MessagesProfile
from sigwire.lm.codecs.shared.interface import Target

__all__ = ["WarningList"]


class WarningList:
    """The warnings of one request as they come up."""

    def __init__(self) -> None:
        self.warnings: list[LMWarning] = []

    def add(self, *warnings: LMWarning) -> None:
        self.warnings.extend(warnings)

    def say(self, feature: str, target: Target[MessagesProfile], detail: str) -> None:
        self.add(LMWarning(feature, f"{target.label} {detail}"))
