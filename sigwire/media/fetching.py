"""``fetch``: the file behind a URL that the calling program chose. No other code opens a URL of media."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sigwire.keywords import ChecksKeywords

__all__ = ["FetchPolicy", "FetchedFile", "fetch"]


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


_DEFAULT = FetchPolicy()


async def fetch(url: str, policy: FetchPolicy | None = None) -> FetchedFile:
    """Return the image, sound, video or PDF behind a URL.

    Never pass a URL that a model wrote. Raises ``FetchError``, which names the host and the rule: for a host that is not public
    (see ``FetchPolicy``), a file that is too large (default: 20 MB), of an unknown type or too slow (default: 20 seconds), more
    than 3 redirects, a status other than 200, a lost connection.

    >>> import asyncio
    >>> asyncio.run(fetch("https://10.0.0.1/a.png"))
    Traceback (most recent call last):
    sigwire.media.errors.FetchError: The address 10.0.0.1 is not public (fetching from '10.0.0.1'; rule: private).
    """
    from sigwire.media.exchange import follow  # loads aiohttp

    return await follow(url, policy or _DEFAULT)
