"""A writing model for tests: it answers requests for instructions, summaries and rules from a list of phrases."""

from __future__ import annotations

import threading
from typing import Any

from sigwire.core.request import Request
from sigwire.lm.fake import FakeLM
from tests.optimizers.stub import HINT, share

__all__ = ["Writer"]

PHRASES = ("Be brief.", "Answer with a colour.", HINT, "Think of paint.", "Read the question twice.", "Be polite.")


class Writer(FakeLM):
    """Writes a phrase that depends on the request alone. ``asked`` has the texts that it was sent."""

    def __init__(self, phrases: tuple[str, ...] = PHRASES) -> None:
        super().__init__(self._respond)
        self.phrases, self.asked = phrases, list[str]()
        self._lock = threading.Lock()

    def _respond(self, request: Request) -> Any:
        text = "\n".join(message.text for message in request.messages)
        with self._lock:
            self.asked.append(text)
            number = len(self.asked)
        wanted = (
            "rules"
            if "`rules`" in text or "## rules ##" in text
            else "summary"
            if "## summary ##" in text
            else "instruction"
        )
        phrase = self.phrases[int(share(f"{text}/{request.options}/{number}") * len(self.phrases)) % len(self.phrases)]
        return {wanted: [phrase] if wanted == "rules" else phrase}
