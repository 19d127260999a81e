"""Messages: the warnings of one request, as they come up."""

from __future__ import annotations

from sigwire.core.response import LMWarning
from sigwire.lm.codecs.anthropic.profiles import MessagesDialect
from sigwire.lm.codecs.shared.interface import Target

__all__ = ["Notes"]


class Notes:
    """The warnings of one request as they come up."""

    def __init__(self) -> None:
        self.warnings: list[LMWarning] = []

    def add(self, *warnings: LMWarning) -> None:
        self.warnings.extend(warnings)

    def say(self, feature: str, target: Target[MessagesDialect], detail: str) -> None:
        self.add(LMWarning(feature, f"{target.shown} {detail}"))
