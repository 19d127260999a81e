"""``ConnectionOptions``: the user's settings for reaching a provider, separate from the options of a model.

Its secrets are not shown, copied or stored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from sigwire.errors import ConfigurationError
from sigwire.lm.policy.deadlines import Timeout, is_limit, resolve_timeout
from sigwire.lm.secrets import Secret, is_secret, redact_url, without_secrets, wrap_headers, wrap_url

if TYPE_CHECKING:
    from sigwire.lm.http.messages import Transport

__all__ = ["HOST_BOUND_OPTIONS", "ConnectionOptions"]


@dataclass(frozen=True, slots=True, repr=False)
class ConnectionOptions:
    """The settings for reaching a model that replace those of the row. Its repr masks secrets.

    ``api_key``: the key, or a function that returns it for each request (tokens that expire). ``base_url``: another base
    URL; ``timeout``: a ``Timeout``, its limits by name, or seconds for a whole call; ``headers`` of every request; ``wire``:
    the name of one of the row's wires; ``variables``: values for the row's URL; ``base_model``: the model whose rules count, if
    the name is that of a deployment or a resource.

    >>> ConnectionOptions(api_key="k", base_url="https://me:pass@llm.example/v1", headers={"x-team": "a"})
    ConnectionOptions(base_url='https://llm.example/v1', api_key=***, headers=***)
    """

    api_key: str | Callable[[], str] | None = None
    base_url: str | None = None
    transport: Transport | None = None
    timeout: float | Timeout | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    wire: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    base_model: str | None = None

    def __post_init__(self) -> None:
        for name, (fits, what) in _CHECKS.items():
            if (value := getattr(self, name)) is not None and not fits(value):
                shown = repr(value) if name == "timeout" else type(value).__name__
                raise ConfigurationError(f"{name} is {what}, not {shown} (making an LM).")
        keep = partial(object.__setattr__, self)
        if isinstance(self.timeout, Mapping):  # of a saved model
            keep("timeout", Timeout(**cast("Mapping[str, float]", self.timeout)))
        keep("headers", wrap_headers(self.headers))  # a copy: the caller may change the mapping later
        if isinstance(self.api_key, str):
            keep("api_key", Secret(self.api_key))
        if self.base_url is not None:
            keep("base_url", wrap_url(self.base_url))

    def limits(self) -> Timeout:
        """Return the time limits of calls."""
        return resolve_timeout(self.timeout, self.transport)

    def fresh_key(self) -> str | None:
        """Return the key of a function that returns keys; ``None`` if the key is none, or the function fails."""
        try:
            return str(self.api_key()).strip() if callable(self.api_key) else None
        except Exception:  # the user's function: the error that led here is the one to raise
            return None

    def masked_arguments(self) -> list[str]:
        """Return the given settings as the text of arguments, secrets as ``***``."""
        secret = {"api_key": self.api_key, "headers": self.headers}
        plain = {"base_url": self.base_url and redact_url(self.base_url), "timeout": self.timeout, "wire": self.wire}
        plain["base_model"] = self.base_model
        return [
            *(f"{name}={value!r}" for name, value in {**plain, **self.variables}.items() if value is not None),
            *([f"transport={type(self.transport).__name__}"] if self.transport is not None else ()),
            *(f"{name}=***" for name, value in secret.items() if value),
        ]

    def __repr__(self) -> str:
        return f"ConnectionOptions({', '.join(self.masked_arguments())})"

    def without_secrets(self) -> ConnectionOptions:
        """Return a copy without secrets. A function that returns the key stays: a pickle holds only its name."""
        return replace(
            self,
            api_key=self.api_key if inspect.isfunction(self.api_key) else None,
            base_url=None if is_secret("", self.base_url) else self.base_url,
            headers=without_secrets(self.headers),
        )

    def foreign_host(self) -> ConnectionOptions:
        """Return the options that also hold for another provider: no key, headers or URL."""
        return ConnectionOptions(transport=self.transport, timeout=self.timeout)

    def __deepcopy__(self, memo: object) -> ConnectionOptions:
        return self  # copies of a program share the transport, and the key is not copied


def _are_headers(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    headers = cast("Mapping[object, object]", value)
    return all(isinstance(text, str) for text in (*headers, *headers.values()))


_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "api_key": (lambda value: isinstance(value, str) or callable(value), "a text or a function that returns one"),
    "base_url": (lambda value: isinstance(value, str), "an address, such as 'https://llm.example/v1'"),
    "transport": (lambda value: hasattr(value, "send") or hasattr(value, "asend"), "an object with send(request)"),
    "timeout": (
        lambda value: isinstance(value, Timeout | Mapping) or is_limit(value),
        "a number of seconds above 0, or a Timeout",
    ),
    "headers": (_are_headers, "a mapping of names and values, both texts"),
    "wire": (lambda value: isinstance(value, str), "the name of one of the provider's wires"),
    "base_model": (lambda value: isinstance(value, str), "the name of a model, such as 'gpt-5.4'"),
}


HOST_BOUND_OPTIONS = frozenset({"api_key", "base_model", "base_url", "headers", "wire"})
"""Options that another provider does not get (``variables`` among them)."""
