"""A model with one immediate answer: the time of a call is the library's cost."""

from __future__ import annotations

from collections.abc import Sequence

from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall

__all__ = ["StubLM", "sections"]


class StubLM:
    """A language model with one canned answer."""

    def __init__(
        self, text: str = "", calls: Sequence[ToolCall] = (), capabilities: Capabilities | None = None
    ) -> None:
        self.model = "stub"
        self.capabilities = capabilities or Capabilities()
        choice = Choice(text=text, tool_calls=tuple(calls), finish_reason="tool_calls" if calls else "stop")
        self._response = Response((choice,))

    def respond(self, request: Request) -> Response:
        """Return the canned answer."""
        return self._response

    async def arespond(self, request: Request) -> Response:
        """Return the canned answer."""
        return self._response


def sections(**fields: str) -> str:
    """Return a reply in the chat adapter's sections."""
    return "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in fields.items()) + "[[ ## completed ## ]]\n"
