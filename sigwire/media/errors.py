"""The errors of media: a fetch that is refused or fails, and media that a model cannot take."""

from __future__ import annotations

from sigwire.errors import CallerError, UnsupportedFeature

__all__ = ["FetchError", "UnsupportedMedia"]


class FetchError(CallerError, ValueError):
    """A URL was not fetched. The message has no content of an answer.

    Attributes: ``host`` of the URL that failed; ``rule``, the broken rule: "url", "scheme", "credentials", "host", "redirects",
    "status", "encoding", "size", "seconds", "type", "connection", or a rule of addresses such as "loopback" or "metadata".
    """

    def __init__(self, host: str, rule: str, message: str) -> None:
        self.host, self.rule = host, rule
        super().__init__(f"{message} (fetching from {host!r}; rule: {rule}).")


class UnsupportedMedia(UnsupportedFeature):
    """An image, sound or file exceeds a limit of the provider and cannot be made to fit; nothing was sent."""
