"""The limits of a fetch, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sigwire.keywords import ChecksKeywords

__all__ = ["FetchPolicy", "FetchedFile"]


@dataclass(frozen=True, slots=True)
class FetchPolicy(ChecksKeywords):
    """The limits of ``fetch``.

    ``http``: whether URLs without TLS are fetched; a redirect from https to http is refused in any case. ``private_hosts``:
    hosts whose addresses may be private, loopback or otherwise not public, such as a file server of the company; exact names.
    ``most_bytes`` of the file; ``seconds`` for the whole fetch; ``redirects``: the greatest number of redirects.

    >>> FetchPolicy(private_hosts=frozenset({"files.corp.example"})).seconds
    20.0
    """

    http: bool = False
    private_hosts: frozenset[str] = frozenset()
    most_bytes: int = 20_000_000
    seconds: float = 20.0
    redirects: int = 3


class FetchedFile(NamedTuple):
    """A fetched file: its bytes, its media type by the first bytes, and its URL behind all redirects."""

    content: bytes
    media_type: str
    url: str

    def __repr__(self) -> str:
        from sigwire.show.values import fields_line  # needed when a file is shown

        return fields_line("FetchedFile", self._asdict())
