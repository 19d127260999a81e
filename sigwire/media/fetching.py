"""``fetch``: the file behind a URL that the calling program chose. No other code opens a URL of media."""

from __future__ import annotations

from sigwire.media.policy import FetchedFile, FetchPolicy

__all__ = ["fetch"]


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
