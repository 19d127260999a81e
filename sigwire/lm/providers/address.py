"""Resolve the endpoint of a request: URL, headers and key, from a row, connection options and the environment.

The origin of a key decides where it is sent. A key from the environment goes to the row's own hosts and to the base URL of the
environment; any other ``base_url`` gets only a key given in code. The environment is read for each request; the endpoint made
of it is kept until it changes. Knows no codec and no transport.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from sigwire.errors import ConfigurationError, LMAuthenticationError
from sigwire.lm.http.reply_mask import ReplyMask, mask_of, sent_secrets
from sigwire.lm.providers.connection import ConnectionOptions
from sigwire.lm.providers.row import AddressForm, ApiKey, Provider
from sigwire.lm.secrets import Secret, redact_url, wrap_url

__all__ = ["EndpointResolver", "ResolvedKey", "ServiceEndpoint"]


class ServiceEndpoint(NamedTuple):
    """URL and headers of a request, secrets as ``Secret``; ``about_key`` is a sentence for error texts.

    ``query`` is that of the base URL, from its question mark on.
    """

    base: str
    query: str
    headers: Mapping[str, str]
    about_key: str


class ResolvedKey(NamedTuple):
    """The header that carries a key, and a sentence about the origin of the key or its absence."""

    headers: Mapping[str, str] = MappingProxyType({})
    about: str = ""


class EndpointResolver:
    """Resolves the endpoint of one model of a row."""

    def __init__(self, provider: Provider, name: str, connection: ConnectionOptions, model: str) -> None:
        self._provider, self._name, self._connection, self.model = provider, name, connection, model
        names = () if connection.base_url else provider.base_variables
        named = [name for variable in provider.variables.values() for name in variable.variables]
        self._location_keys = [*map(_encode_key, (*names, *named))]
        self._keys: list[object] | None = None
        # An endpoint behind what it was made of: the values of environment variables, and the headers of the request.
        self._last: tuple[list[object], dict[str, str], ServiceEndpoint] | None = None
        self._last_location: tuple[list[object], str] | None = None
        self._last_mask: tuple[ServiceEndpoint, object, ReplyMask] | None = None

    def base(self) -> tuple[str, bool]:
        """Return the base URL, its query included, and True if it was given in code."""
        row, given = self._provider, self._connection.base_url
        if given:
            return self._tidy(given), True
        for name in row.base_variables:
            if url := wrap_url(os.environ.get(name, "").strip()):
                return self._tidy(url), False
        if callable(row.base_url):
            return self._tidy(row.base_url(self._variable_values())), False
        if not row.base_url:
            raise ConfigurationError(
                f"{self.model} has no base URL (sending the request). Set {' or '.join(row.base_variables) or 'a base_url'} "
                f"in the environment, or pass LM({self.model!r}, base_url=...)."
            )
        return self._tidy(row.base_url.format_map(self._variable_values(row.base_url))), False

    def location(self) -> str:
        """Return where requests go, without secrets: base URL and variables. Reads the environment."""
        values, last = _raw_values(self._location_keys), self._last_location
        if last is None or last[0] != values:
            pairs = [f"{name}={self._find(name) or ''}" for name in sorted(self._provider.variables)]
            last = self._last_location = (values, " ".join([redact_url(self.base()[0]), *pairs]))
        return last[1]

    def _tidy(self, url: str) -> str:
        path, mark, query = url.strip().partition("?")
        form, base, _ = self._read_address(path)
        return wrap_url(self._provider.tidy(base) + (mark + query if form is None or form.query else ""))

    def _read_address(self, path: str) -> tuple[AddressForm | None, str, str | None]:
        for form in self._provider.addresses:
            if (found := form.match(path)) is not None:
                return form, *found
        return None, path, None

    def pasted(self) -> tuple[str | None, str | None]:
        """Return the wire and the model that the user's address names, ``None`` each if it is a plain base URL."""
        variables = (os.environ.get(name, "").strip() for name in self._provider.base_variables)
        url = self._connection.base_url or next(filter(None, variables), "")
        form, _, model = self._read_address(url.partition("?")[0])
        return None if form is None else form.wire, model

    def query(self, query: Mapping[str, str], given: str = "") -> str:
        """Return the query of a URL: the ``given`` one, and what it does not name, with the values of its variables."""
        named = {pair.partition("=")[0] for pair in given.split("&")}
        added = {name: value for name, value in query.items() if name not in named}
        values = self._variable_values("".join(added.values()))
        pairs = [f"{name}={quote(value.format_map(values), safe='')}" for name, value in added.items()]
        return "?" + "&".join([given, *pairs] if given else pairs)

    def _variable_values(self, template: str | None = None) -> dict[str, str]:
        known = self._provider.variables
        return {name: self._value(name) for name in known if template is None or f"{{{name}}}" in template}

    def _find(self, name: str) -> str | None:
        variable = self._provider.variables[name]
        return self._connection.variables.get(name) or next(
            (value for env in variable.variables if (value := os.environ.get(env, "").strip())), variable.default
        )

    def _value(self, name: str) -> str:
        variable, found = self._provider.variables[name], self._find(name)
        if not found:
            raise ConfigurationError(
                f"{self.model} needs a {name}. Set {' or '.join(variable.variables)} in the environment, "
                f"or pass LM({self.model!r}, {name}=...)."
            )
        if not re.fullmatch(r"[\w.-]+", found):  # must not change the rest of the URL
            raise ConfigurationError(
                f"{found!r} is no {name} for {self.model}: letters, digits, '.', '_' and '-' only."
            )
        return found

    def endpoint(self, headers: Mapping[str, str]) -> ServiceEndpoint:
        """Return the endpoint of a request with ``headers``. Reads the environment; calls the function that returns the key."""
        if callable(self._connection.api_key):
            return self._resolve(headers)
        keys = self._keys
        if keys is None:
            keys = self._keys = [*map(_encode_key, self._variable_names())]
        values, last = _raw_values(keys), self._last
        if last is None or last[0] != values or last[1] != headers:
            last = self._last = (values, {**headers}, self._resolve(headers))
        return last[2]

    def mask(self, endpoint: ServiceEndpoint, options: Mapping[str, object], transport: object) -> ReplyMask:
        """Return the mask of the secrets that a request sent. ``transport``: with ``secrets`` of its own, if it has any."""
        own, extra, last = getattr(transport, "secrets", ()), options.get("extra_body"), self._last_mask
        if last is None or last[0] is not endpoint or last[1] is not own or extra is not None:
            mask = mask_of(sent_secrets(endpoint.headers, [endpoint.base, endpoint.query], extra, *own))
            last = self._last_mask = (endpoint, own if extra is None else None, mask)
        return last[2]

    def _variable_names(self) -> tuple[str, ...]:
        row, connection = self._provider, self._connection
        keys = [key.variable for key in row.keys] if connection.api_key is None else []
        if not connection.base_url:
            named = [name for variable in row.variables.values() for name in variable.variables]
            return (*row.base_variables, *named, *row.header_variables.values(), *keys)
        is_own = self.is_own_host(self.base()[0])
        return (*(row.header_variables.values() if is_own else ()), *keys)

    def _resolve(self, headers: Mapping[str, str]) -> ServiceEndpoint:
        base, given = self.base()
        extra = {**self._connection.headers, **headers}
        users = {name.lower(): value for name, value in extra.items()}
        key = self._key(base, given, users)
        every = {"content-type": "application/json", **self._account_headers(base, given), **key.headers, **users}
        path, mark, query = base.partition("?")
        return ServiceEndpoint(wrap_url(path), wrap_url(mark + query), every, key.about)

    def _account_headers(self, base: str, given: bool) -> dict[str, str]:
        """Return the headers from the environment that name the account; they are sent where the key is sent."""
        if given and not self.is_own_host(base):
            return {}
        named = self._provider.header_variables
        return {header: value for header, variable in named.items() if (value := os.environ.get(variable))}

    def _key(self, base: str, given: bool, users: Mapping[str, str]) -> ResolvedKey:
        """Return the key for a base URL: in the user's headers, in code, or in the environment."""
        row, explicit = self._provider, self._connection.api_key
        if users and any(key.header in users for key in row.keys):
            return ResolvedKey(about="It was sent in a header of yours.")
        if explicit is None:
            return self._environment_key(base, given)
        secret = self._check_key(explicit() if callable(explicit) else explicit)
        return ResolvedKey(self._given_key(secret), "It was given as api_key.")

    def _given_key(self, secret: str) -> Mapping[str, str]:
        """Return the header of a key given in code: in the form for keys that start so, else in the first form of the row."""
        keys = self._provider.keys or (ApiKey(""),)
        return next((key for key in keys if key.start and secret.startswith(key.start)), keys[0]).headers(secret)

    def _environment_key(self, base: str, given: bool) -> ResolvedKey:
        row = self._provider
        found = {key: secret for key in row.keys if (secret := Secret(os.environ.get(key.variable, "").strip()))}
        for key, secret in found.items():
            if self._may_send(key, base, given):
                return ResolvedKey(key.headers(secret), f"It was read from {key.variable}.")
        if found:
            variable = next(iter(found)).variable
            return ResolvedKey(
                about=f"The key in {variable} was not sent, as it is not {_host_name(base)}'s. Pass api_key=... for that host."
            )
        if row.key == "needed" and (row.own_host or self.is_own_host(base)):
            raise self._missing_key()
        return ResolvedKey(about="No key was sent; pass api_key=... if the host wants one.")

    def key_has_changed(self, endpoint: ServiceEndpoint) -> bool:
        """Return True if the key is a function, and returns another key than the endpoint has."""
        fresh = self._connection.fresh_key()
        sent: Mapping[str, str] = self._given_key(Secret(fresh)) if fresh else {}
        return any(endpoint.headers.get(name) != value for name, value in sent.items())

    def _check_key(self, key: object) -> str:
        if not isinstance(key, str):
            raise ConfigurationError(
                f"The api_key of {self.model} is a {type(key).__name__}. Pass text, or a function without parameters."
            )
        if not key.strip():
            raise self._missing_key()
        return Secret(key.strip())

    def _missing_key(self) -> LMAuthenticationError:
        variables = [key.variable for key in self._provider.keys]
        where = f"Set {' or '.join(variables)} in the environment, or pass" if variables else "Pass"
        return LMAuthenticationError(
            f"No key for {self.model}, so nothing was sent. {where} LM({self.model!r}, api_key=...).",
            provider=self._provider.prefix,
            model=self._name,
        )

    def _may_send(self, key: ApiKey, base: str, given: bool) -> bool:
        if key.host is not None:
            return _is_host(base, key.host)
        return self._provider.own_host or not given or self.is_own_host(base)

    def is_own_host(self, base: str) -> bool:
        """Return True if a URL is at one of the row's own hosts, over TLS or on this machine."""
        return any(_is_host(base, host) for host in self._provider.own_hosts)


_encode_key = os.environ.encodekey


def _raw_values(keys: Sequence[object]) -> list[object]:
    """Return the values of environment variables as the platform has them; equal lists mean that none has changed."""
    # ``os.environ.get`` raises and catches a KeyError for each variable that is not set: a tenth of a call. Its dict has no
    # public name. An object in place of ``os.environ`` may have none, and its values count as changed.
    data: dict[object, object] | None = getattr(os.environ, "_data", None)
    return [object()] if data is None else list(map(data.get, keys))


@functools.lru_cache(maxsize=256)
def _scheme_and_host(url: str) -> tuple[str, str]:
    """Return scheme and host in lower case; both empty if the text is no URL (the transport raises the error)."""
    try:
        parts = urlsplit(url)
        return parts.scheme, (parts.hostname or "").lower()
    except ValueError:
        return "", ""


def _host_name(url: str) -> str:
    """Return the host for an error text, with the scheme if it is plain HTTP."""
    scheme, host = _scheme_and_host(url)
    return f"http://{host}" if scheme == "http" and host not in _LOOPBACK else host


def _is_host(url: str, own: str) -> bool:
    """Return True if a URL is at the host ``own`` or below it, over TLS or on this machine."""
    scheme, host = _scheme_and_host(url)
    fits = host.endswith(own[1:]) if own.startswith("*") else host == own or host.endswith(f".{own}")
    return fits and (scheme == "https" or host in _LOOPBACK)


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
