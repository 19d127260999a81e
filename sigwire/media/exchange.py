"""The exchanges of a fetch: the checks of a URL, one look-up of its host, one request; the same for each redirect.

Every address of a host is checked, and the connection goes to a checked address: a second look-up, which could give another
address (https://en.wikipedia.org/wiki/DNS_rebinding), does not happen. TLS and Host keep the name. Proxies, cookies, netrc and
credentials are not used.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from ipaddress import ip_address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from sigwire.effects.network import check_network
from sigwire.media.addresses import Address, broken_rule, literal_of
from sigwire.media.errors import FetchError
from sigwire.media.policy import FetchedFile, FetchPolicy
from sigwire.media.sniff import sniff

__all__ = ["follow"]

_HEADERS: Mapping[str, str] = {
    "accept": "image/*, audio/*, video/*, application/pdf",
    "accept-encoding": "identity",  # a small compressed answer can be a large file
    "user-agent": "sigwire",
}


async def follow(text: str, policy: FetchPolicy) -> FetchedFile:
    """Return the file behind a URL and its redirects. Raises ``FetchError``."""
    try:
        url = URL(text)
    except ValueError:
        raise FetchError("", "url", "The text is not a URL") from None
    try:
        async with asyncio.timeout(policy.seconds):
            return await _follow(url, policy)
    except TimeoutError:
        raise FetchError(_host(url), "seconds", f"No whole file within {policy.seconds:g} seconds") from None


async def _follow(url: URL, policy: FetchPolicy) -> FetchedFile:
    """Fetch a URL and the targets of its redirects."""
    for _ in range(policy.redirects + 1):
        answer = await _exchange(url, policy)
        if isinstance(answer, bytes):
            return _file(answer, url)
        if url.scheme == "https" and answer.scheme != "https":
            raise FetchError(_host(answer), "scheme", "A redirect leads from https to http")
        url = answer
    raise FetchError(_host(url), "redirects", f"More than {policy.redirects} redirects")


def _file(content: bytes, url: URL) -> FetchedFile:
    media_type = sniff(content)
    if media_type is None:
        raise FetchError(_host(url), "type", "The answer is no image, sound, video or PDF by its first bytes")
    return FetchedFile(content, media_type, str(url))


# --- one exchange


async def _exchange(url: URL, policy: FetchPolicy) -> URL | bytes:
    """Return the target of a redirect, or the content."""
    check_network("file", _host(url))
    addresses = await _checked_addresses(url, policy)
    connector = aiohttp.TCPConnector(resolver=_Pinned(addresses), use_dns_cache=False, force_close=True)
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            ) as session,
            session.get(url.with_fragment(None), headers=_HEADERS, allow_redirects=False) as reply,
        ):
            if reply.status in (301, 302, 303, 307, 308):
                return _redirect_target(reply, url)
            return await _content(reply, url, policy)
    except (aiohttp.ClientError, OSError) as error:
        if isinstance(error, TimeoutError):
            raise
        raise FetchError(_host(url), "connection", f"No answer: {type(error).__name__}") from error


def _redirect_target(reply: aiohttp.ClientResponse, url: URL) -> URL:
    try:
        return url.join(URL(reply.headers["location"]))
    except (KeyError, ValueError):
        raise FetchError(_host(url), "redirects", "A redirect without a valid target") from None


async def _content(reply: aiohttp.ClientResponse, url: URL, policy: FetchPolicy) -> bytes:
    if reply.status != 200:
        raise FetchError(_host(url), "status", f"The status is {reply.status}, not 200")
    if reply.headers.get("content-encoding", "identity") != "identity":
        raise FetchError(_host(url), "encoding", "The answer is compressed")
    content = bytearray()
    if (reply.content_length or 0) <= policy.most_bytes:
        async for chunk in reply.content.iter_any():
            content += chunk
            if len(content) > policy.most_bytes:
                break
        else:
            return bytes(content)
    raise FetchError(_host(url), "size", f"The file has more than {policy.most_bytes} bytes")


# --- the addresses of a host


async def _checked_addresses(url: URL, policy: FetchPolicy) -> Sequence[Address]:
    """Return every address of the host. Raises ``FetchError`` if a rule forbids the URL or one of the addresses."""
    host = _host(url)
    if url.scheme not in (("https", "http") if policy.http else ("https",)):
        raise FetchError(
            host, "scheme", f"The scheme is {url.scheme!r}; only https is fetched, http by FetchPolicy(http=True)"
        )
    if url.raw_user or url.raw_password:
        raise FetchError(host, "credentials", "The URL holds a user or a password")
    addresses = await _addresses_of(host, url.port or 443)
    for address in () if host in policy.private_hosts else addresses:
        if rule := broken_rule(address):
            raise FetchError(host, rule, f"The address {address} is not public")
    return addresses


async def _addresses_of(host: str, port: int) -> Sequence[Address]:
    try:
        literal = literal_of(host)
    except ValueError as error:
        raise FetchError(host, "host", str(error)) from None
    return [literal] if literal else await _resolve(host, port)


def _host(url: URL) -> str:
    return url.raw_host or ""


async def _resolve(host: str, port: int) -> Sequence[Address]:
    if not host:
        raise FetchError(host, "host", "The URL has no host")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(host, "connection", "The name has no address") from error
    return [ip_address(entry[4][0]) for entry in found]


class _Pinned(AbstractResolver):
    """A resolver that returns checked addresses and looks nothing up."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [_result(host, port, address) for address in self._addresses]

    async def close(self) -> None:
        pass


def _result(host: str, port: int, address: Address) -> ResolveResult:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return ResolveResult(
        hostname=host, host=str(address), port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST
    )
