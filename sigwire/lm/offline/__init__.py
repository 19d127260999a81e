"""The embedded model ``offline/lexical``: no weights, no key, no network, the same answer every time.

It is not a large language model. It compares words and fills slots by rules; docs/offline.md says what it can do and cannot.
"""

from __future__ import annotations

from sigwire.core.request import Request
from sigwire.core.response import Choice, Response

__all__ = ["Lexical", "connect"]

ABSTAIN = "I am offline/lexical, a word-matching stand-in and not a language model; I found nothing here that I can answer."


class Lexical:
    """The backend of ``LM("offline/lexical")``."""

    def answer(self, request: Request) -> Response:
        """Answer by rules."""
        return Response((Choice(ABSTAIN),), model="offline/lexical")

    async def aanswer(self, request: Request) -> Response:
        """The same, awaited."""
        return self.answer(request)


def connect(name: str) -> Lexical:
    """The backend for a model of the ``offline`` row."""
    return Lexical()
