"""URLs of requests taken apart, proxies of the environment, TLS contexts.

Opens no connection. The only file of the transport that reads the environment and certificate files.
"""

from __future__ import annotations

import importlib.util
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from sigwire.errors import ConfigurationError
from sigwire.lm.secrets import Secret, redact_url, wrap_url

if TYPE_CHECKING:
    import ssl

__all__ = ["Certificate", "Origin", "Proxy", "ServerUrl", "parse_url", "proxy_from_env", "tls_context"]

Certificate: TypeAlias = "str | os.PathLike[str] | tuple[str | os.PathLike[str], ...]"
_PORTS = {"http": 80, "https": 443}
_PROXY_PORTS = {**_PORTS, "socks5": 1080, "socks5h": 1080}


class Origin(NamedTuple):
    """``scheme``: http or https; ``host``: in ASCII, without brackets; ``port``: of the URL, or the scheme's default."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """A parsed URL. ``shown`` is the form for errors: no user, no query. The other parts hide what they hold of both."""

    origin: Origin
    authority: str
    target: str
    shown: str
    authorization: Mapping[str, str]

    @property
    def absolute(self) -> str:
        """The absolute target, which a proxy for plain HTTP needs (RFC 9112 3.2.2)."""
        return wrap_url(f"{self.origin.scheme}://{self.authority}{self.target}")


@lru_cache(maxsize=256)
def parse_url(url: str) -> ServerUrl:
    """Parse a URL. Raises ``ConfigurationError`` if it is not an HTTP URL.

    >>> parse_url("http://me:secret@LocalHost:8080/v1/models?key=k").shown
    'http://localhost:8080/v1/models'
    """
    try:
        parts = urlsplit(url)
        default = _PORTS[parts.scheme]
        host, port = parts.hostname or "", parts.port or default
        host = host if host.isascii() else host.encode("idna").decode()
    except (KeyError, ValueError):
        host, port, default, parts = "", 0, 0, urlsplit("")
    if not _HOST.fullmatch(host):
        del parts  # a traceback would show its password
        raise ConfigurationError(f"{redact_url(url)} is not an HTTP address. Write http:// or https:// and a host.")
    authority = _bracketed(host) if port == default else f"{_bracketed(host)}:{port}"
    path = quote(parts.path or "/", safe=_PATH)
    query = "?" * bool(parts.query) + quote(parts.query, safe=_QUERY)
    return ServerUrl(
        origin=Origin(parts.scheme, host, port),
        authority=authority,
        target=wrap_url(path + query),
        shown=f"{parts.scheme}://{authority}{path}",
        authorization=_basic("authorization", unquote(parts.username or ""), unquote(parts.password or "")),
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


_HOST = re.compile(r"[\w.:%-]+")  # a name, an IPv4 or an IPv6 address
_PATH = "/%:@!$&'()*+,;=~"  # not quoted in a path; % keeps escapes of the caller
_QUERY = _PATH + "?"


def _basic(header: str, username: str, password: str) -> dict[str, str]:
    pair = b64encode(f"{username}:{password}".encode()).decode()
    return {header: Secret(f"Basic {pair}")} if username else {}


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy. It resolves the target's name, over SOCKS as well; the repr has no password.

    >>> Proxy.parse("socks5://me:secret@proxy.corp")
    Proxy(socks5://proxy.corp:1080)
    """

    scheme: str
    host: str
    port: int
    username: str = ""
    password: str = ""

    @classmethod
    def parse(cls, url: str) -> Proxy:
        """Parse a proxy URL; without a scheme it is an HTTP proxy. Raises ``ConfigurationError``."""
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            host, port = parts.hostname, parts.port or _PROXY_PORTS[parts.scheme]
        except (KeyError, ValueError):
            host, port, parts = None, 0, None
        if not host or not parts or parts.scheme not in _PROXY_PORTS:
            del parts  # a traceback would show its password
            raise ConfigurationError(
                f"A proxy's URL cannot be used (opening a connection). Write scheme://host:port with one of the schemes "
                f"{', '.join(_PROXY_PORTS)}, in proxy= or in the environment."
            )
        return cls(parts.scheme, host, port, unquote(parts.username or ""), unquote(parts.password or ""))

    def __repr__(self) -> str:
        return f"Proxy({self.scheme}://{self.host}:{self.port})"

    @property
    def authorization(self) -> dict[str, str]:
        """The header with the user and password for an HTTP proxy."""
        return _basic("proxy-authorization", self.username, self.password)

    @property
    def is_socks(self) -> bool:
        """Whether the proxy carries bytes instead of HTTP requests."""
        return self.scheme.startswith("socks")

    def reads_requests(self, end: ServerUrl) -> bool:
        """Return True if the proxy reads the request itself: an HTTP proxy and a server without TLS."""
        return end.origin.scheme == "http" and not self.is_socks

    @property
    def url(self) -> str:
        """The URL without user and password."""
        return f"{self.scheme}://{_bracketed(self.host)}:{self.port}"


def proxy_from_env(end: ServerUrl) -> Proxy | None:
    """Return the proxy for a server by curl's rules: lower case first, and no HTTP_PROXY in CGI, where a client can set it."""
    exempt = _env("no_proxy").replace(",", " ").lower().split()
    if _is_loopback(end.origin.host) or any(_matches_entry(entry, end.origin) for entry in exempt):
        return None
    is_cgi = end.origin.scheme == "http" and "REQUEST_METHOD" in os.environ
    url = _env(f"{end.origin.scheme}_proxy", upper=not is_cgi) or _env("all_proxy")
    return Proxy.parse(url) if url else None


def _env(name: str, *, upper: bool = True) -> str:
    return wrap_url(os.environ.get(name) or (os.environ.get(name.upper()) if upper else None) or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _matches_entry(entry: str, end: Origin) -> bool:
    """Return True if an entry of NO_PROXY matches: ``*``, a domain, an address or a network, with or without a port."""
    if entry == "*":
        return True
    try:
        return ip_address(end.host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass
    name, colon, port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
    domain = name.removeprefix("*").removeprefix(".")
    return (end.host == domain or end.host.endswith(f".{domain}")) and (not colon or port == str(end.port))


def tls_context(
    ca: str | os.PathLike[str] | None, certificate: Certificate | None, trust_env: bool = True
) -> ssl.SSLContext:
    """Return a context that trusts the system's authorities and ``ca``, and sends ``certificate``.

    As in requests, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE replaces the system's authorities; OpenSSL reads SSL_CERT_FILE.
    Raises ``ConfigurationError`` if a file cannot be loaded.
    """
    import ssl  # plain HTTP never loads ssl

    bundle = (os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")) if trust_env else None
    try:
        context = ssl.create_default_context(**_location(bundle))
        context.set_alpn_protocols(["http/1.1"])
        if not bundle:
            _load_certifi_if_empty(context)
        if ca is not None:
            context.load_verify_locations(**_location(ca))
        if certificate is not None:
            chain: tuple[Any, ...] = certificate if isinstance(certificate, tuple) else (certificate,)
            context.load_cert_chain(*chain)
    except (OSError, TypeError) as error:
        raise ConfigurationError(
            f"Certificates cannot be loaded ({error}). The ca and certificate of HttpTransport, and REQUESTS_CA_BUNDLE and "
            "CURL_CA_BUNDLE in the environment, are paths of PEM files."
        ) from error
    return context


def _location(path: str | os.PathLike[str] | None) -> dict[str, Any]:
    return {"capath" if os.path.isdir(path) else "cafile": path} if path else {}


def _load_certifi_if_empty(context: ssl.SSLContext) -> None:
    """Load certifi's authorities if there are no others: Python from python.org for macOS has none of its own."""
    import ssl

    paths = ssl.get_default_verify_paths()
    has_some = paths.cafile or paths.capath or context.cert_store_stats()["x509_ca"]
    if not has_some and importlib.util.find_spec("certifi") is not None:
        context.load_verify_locations(importlib.import_module("certifi").where())
