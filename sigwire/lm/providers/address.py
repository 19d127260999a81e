"""Where the requests for one model go, and which key goes along: a row of the table, what the user said, the environment.

Whose key it is decides where it goes: one from the environment goes to the row's own host, or where the environment says;
to any other ``base_url`` only a key that was given in code. Addresses and keys are read whenever a request is sent; only what
was made of them is kept, for as long as they read the same. Knows no codec and no transport.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit

from sigwire.errors import ConfigurationError, LMAuthenticationError
from sigwire.lm.providers.connection import ConnectionOptions
from sigwire.lm.providers.row import ApiKey, Provider

__all__ = ["EndpointResolver", "ServiceEndpoint"]


class ServiceEndpoint(NamedTuple):
    """Where one request goes and what it carries beside its body. ``key`` is the key itself, never to be shown."""

    base: str
    headers: Mapping[str, str]
    key: str
    about_key: str


class _ResolvedKey(NamedTuple):
    """A key, the header that carries it, and a sentence about where it is from, or why there is none."""

    key: str = ""
    headers: Mapping[str, str] = MappingProxyType({})
    about: str = ""


def _found(place: ApiKey, key: str, origin: str) -> _ResolvedKey:
    return _ResolvedKey(key, place.headers(key), f"It was {origin}.")


# What a way was made of, beside what never changes: the variables' values, and the request's own headers.
_FamilyView: TypeAlias = "tuple[list[str | None], dict[str, str]]"


class EndpointResolver:
    """How one model of a row is reached."""

    def __init__(self, provider: Provider, name: str, connection: ConnectionOptions, model: str) -> None:
        self._provider, self._name, self._connection, self.model = provider, name, connection, model
        self._variables: tuple[str, ...] | None = None
        self._last: tuple[_FamilyView, ServiceEndpoint] | None = None

    def base(self) -> tuple[str, bool]:
        """The base URL, and whether it was given in code."""
        row, given = self._provider, self._connection.base_url
        if given:
            return row.tidy(given), True
        for name in row.base_variables:
            if url := os.environ.get(name, "").strip():
                return row.tidy(url), False
        if callable(row.base_url):
            return row.tidy(row.base_url(self._filled())), False
        if not row.base_url:
            raise ConfigurationError(
                f"There is no address for {self.model}. Set {' or '.join(row.base_variables) or 'a base_url'} "
                f"in the environment, or pass LM({self.model!r}, base_url=...)."
            )
        return row.tidy(row.base_url.format_map(self._filled(row.base_url))), False

    def query(self, query: Mapping[str, str]) -> str:
        """The query of a URL, with its variables filled in."""
        filled = self._filled("".join(query.values()))
        pairs = (f"{name}={quote(value.format_map(filled), safe='')}" for name, value in query.items())
        return "?" + "&".join(pairs)

    def _filled(self, template: str | None = None) -> dict[str, str]:
        """Values for the variables of a template, of all without one."""
        known = self._provider.variables
        return {name: self._value(name) for name in known if template is None or f"{{{name}}}" in template}

    def _value(self, name: str) -> str:
        variable = self._provider.variables[name]
        found = self._connection.variables.get(name) or next(
            (value for env in variable.variables if (value := os.environ.get(env, "").strip())), variable.default
        )
        if not found:
            raise ConfigurationError(
                f"{self.model} needs a {name}. Set {' or '.join(variable.variables)} in the environment, "
                f"or pass LM({self.model!r}, {name}=...)."
            )
        if not re.fullmatch(r"[\w.-]+", found):  # it becomes part of a URL, and must not make it another one
            raise ConfigurationError(
                f"{found!r} is no {name} for {self.model}: letters, digits, '.', '_' and '-' only."
            )
        return found

    # --- with which key

    def endpoint(self, headers: Mapping[str, str]) -> ServiceEndpoint:
        """Where to and with which headers, those of one request among them. Reads the environment, and the key."""
        if callable(self._connection.api_key):
            return self._endpoint(headers)
        variables = self._variables
        if variables is None:
            variables = self._variables = self._read_variables()
        seen = ([os.environ.get(name) for name in variables], {**headers})
        last = self._last
        if last is None or last[0] != seen:
            last = self._last = (seen, self._endpoint(headers))
        return last[1]

    def _read_variables(self) -> tuple[str, ...]:
        """The environment variables that have a say in the way."""
        row, connection = self._provider, self._connection
        keys = [key.variable for key in row.keys] if connection.api_key is None else []
        if not connection.base_url:
            named = [name for variable in row.variables.values() for name in variable.variables]
            return (*row.base_variables, *named, *row.header_variables.values(), *keys)
        at_home = self.is_own_host(row.tidy(connection.base_url))
        return (*(row.header_variables.values() if at_home else ()), *keys)

    def _endpoint(self, headers: Mapping[str, str]) -> ServiceEndpoint:
        base, given = self.base()
        extra = {**self._connection.headers, **headers}
        own = {name.lower(): value for name, value in extra.items()}
        found = self._key(base, given, own)
        every = {"content-type": _JSON, **self._named_headers(base, given), **found.headers, **own}
        return ServiceEndpoint(base, every, found.key, found.about)

    def _named_headers(self, base: str, given: bool) -> dict[str, str]:
        """Headers from the environment that say whose account it is; they go where the key goes."""
        if given and not self.is_own_host(base):
            return {}
        named = self._provider.header_variables
        return {header: value for header, variable in named.items() if (value := os.environ.get(variable))}

    def _key(self, base: str, given: bool, own: Mapping[str, str]) -> _ResolvedKey:
        """The key for a base URL: of the user's own headers, of the code, of the environment; or why there is none."""
        row, explicit = self._provider, self._connection.api_key
        if own and any(place.header in own for place in row.keys):
            return _ResolvedKey(about="It was sent in a header of yours.")
        if explicit is not None:
            place = row.keys[0] if row.keys else ApiKey("")
            return _found(place, self._checked(explicit() if callable(explicit) else explicit), "given as api_key")
        there = {place: key for place in row.keys if (key := os.environ.get(place.variable, "").strip())}
        for place, key in there.items():
            if self._belongs(place, base, given):
                return _found(place, key, f"read from {place.variable}")
        if there:
            variable = next(iter(there)).variable
            return _ResolvedKey(
                about=f"The key in {variable} was not sent, as it is not {_place(base)}'s. Pass api_key=... for that host."
            )
        if row.key == "needed" and (row.own_host or self.is_own_host(base)):
            raise self._no_key()
        return _ResolvedKey(about="No key was sent; pass api_key=... if the host wants one.")

    def _checked(self, key: object) -> str:
        if not isinstance(key, str):
            raise ConfigurationError(
                f"The api_key of {self.model} is a {type(key).__name__}. Pass text, or a function of nothing."
            )
        if not key.strip():
            raise self._no_key()
        return key.strip()

    def _no_key(self) -> LMAuthenticationError:
        variables = [key.variable for key in self._provider.keys]
        where = f"Set {' or '.join(variables)} in the environment, or pass" if variables else "Pass"
        return LMAuthenticationError(
            f"No key for {self.model}, so nothing was sent. {where} LM({self.model!r}, api_key=...).",
            provider=self._provider.prefix,
            model=self._name,
        )

    def _belongs(self, key: ApiKey, base: str, given: bool) -> bool:
        if key.host is not None:
            return _is_host(base, key.host)
        return self._provider.own_host or not given or self.is_own_host(base)

    def is_own_host(self, base: str) -> bool:
        """Whether a URL is at the row's own host, as safely as the row's."""
        return any(_is_host(base, host) for host in self._provider.own_hosts)


@functools.lru_cache(maxsize=256)
def _parts(url: str) -> tuple[str, str]:
    """Scheme and host in lower case; empty where the text is no URL, which the transport says."""
    try:
        parts = urlsplit(url)
        return parts.scheme, (parts.hostname or "").lower()
    except ValueError:
        return "", ""


def _place(url: str) -> str:
    """A host as errors name it, with the scheme where that says that nothing is encrypted."""
    scheme, host = _parts(url)
    return f"http://{host}" if scheme == "http" and host not in _HERE else host


def _is_host(url: str, home: str) -> bool:
    """Whether a URL is at a host or below it. One for TLS is not met by a URL without it."""
    scheme, host = _parts(url)
    wanted = home.removeprefix("*")
    fits = host.endswith(wanted) if home.startswith("*") else host == home or host.endswith(f".{home}")
    return fits and (scheme == "https" or host in _HERE)


_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


_JSON = "application/json"
