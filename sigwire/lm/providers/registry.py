"""The provider table: find the row of a model string such as ``openai/gpt-5-mini``, or register one.

The text before the first slash names a row, the rest is the provider's name of the model. A row is data: ``row`` has its
shape, ``rows`` the rows of sigwire.

    from sigwire.lm.providers.registry import ApiKey, Provider, register
    register(Provider(prefix="acme", base_url="https://llm.acme.example/v1", keys=(ApiKey("ACME_API_KEY"),)))
    lm = LM("acme/some-model")
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from sigwire.errors import ConfigurationError, similar_name, suggest
from sigwire.lm.providers.cloud_rows import CLOUD_ROWS
from sigwire.lm.providers.row import ApiKey, ModelRule, Provider, UrlVariable, Wire
from sigwire.lm.providers.rows import ROWS

__all__ = [
    "PROVIDERS", "ApiKey", "ModelRule", "Provider", "UrlVariable", "Wire", "find_provider", "register",
    "suggest_provider",
]  # fmt: skip

_rows: dict[str, Provider] = {}
_prefixes: dict[str, str] = {}  # prefixes and aliases

PROVIDERS: Mapping[str, Provider] = MappingProxyType(_rows)
"""Every row by its prefix: a read-only view of what ``register`` added."""


def register(provider: Provider, *, replace: bool = False) -> None:
    """Add a row for the whole process: ``LM("prefix/...")`` then finds it, in every thread.

    Existing models keep their row. Raises ``ConfigurationError`` for a prefix that is registered, unless ``replace``, and
    for one that cannot stand in a model string.

    >>> register(Provider(prefix="openai", base_url="https://elsewhere.example/v1"))
    Traceback (most recent call last):
        ...
    sigwire.errors.ConfigurationError: There is a provider 'openai' already. Choose another prefix, or pass replace=True.
    """
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", provider.prefix):
        raise ConfigurationError(
            f"{provider.prefix!r} cannot begin a model string. Use letters, digits, '_', '.' and '-'."
        )
    if provider.prefix in _rows and not replace:
        raise ConfigurationError(
            f"There is a provider {provider.prefix!r} already. Choose another prefix, or pass replace=True."
        )
    _rows[provider.prefix] = provider
    _prefixes.update(dict.fromkeys((*provider.aliases, provider.prefix), provider.prefix))


def find_provider(model: str) -> tuple[Provider, str]:
    """Return the row and the provider's model name for a model string. A prefix without a row belongs to LiteLLM.

    A name without a slash gets the row that lists it, if that is one row only (``_rows_listing``). Raises
    ``ConfigurationError``, which lists the known names.

    >>> row, name = find_provider("offline/lexical")
    >>> row.prefix, name
    ('offline', 'lexical')
    >>> row, name = find_provider("gpt-4o")
    >>> row.prefix, name
    ('openai', 'gpt-4o')
    >>> row, name = find_provider("sagemaker/some-model")
    >>> row.prefix, name
    ('litellm', 'sagemaker/some-model')
    """
    prefix, slash, name = model.partition("/")
    if not (prefix and slash and name):
        listing = () if slash else _rows_listing(model)
        if len(listing) == 1:
            return listing[0], model
        several = f"{', '.join(row.prefix for row in listing)} have one of that name. " if listing else ""
        raise ConfigurationError(
            f"No provider for the model {model!r} (making an LM). {several}Write provider/model with one of the providers "
            f"{', '.join(sorted(_rows))}, for example 'openai/gpt-5-mini' or 'offline/lexical'; for your own client "
            "subclass BaseLM."
        )
    row = _rows.get(_prefixes.get(prefix, ""))
    if row is None:
        return _rows["litellm"], model
    if row.models and name not in row.models:
        known = ", ".join(f"{prefix}/{known}" for known in row.models)
        hint = suggest(model, [f"{prefix}/{listed}" for listed in row.models])
        raise ConfigurationError(
            f"{prefix} has no model {name!r} (making an LM from {model!r}). {hint}Use one of {known}."
        )
    return row, name


def _rows_listing(model: str) -> tuple[Provider, ...]:
    """Return the rows that list a model by name, of those that need nothing but a key.

    Rows of clouds need a project or a resource as well, and rows of users' servers list the models that a server may have.
    """
    plain = (row for row in _rows.values() if row.base_url and not row.variables and row.key == "needed")
    return tuple(row for row in plain if row.lists_model(model) and row.rule_for(model).names != ("*",))


def suggest_provider(model: str) -> str:
    """Return a sentence for an error text that names a similar provider; "" if no name is similar.

    >>> suggest_provider("opnai/gpt-5"), suggest_provider("sagemaker/some-model")
    ("Did you mean 'openai/gpt-5'? ", '')
    """
    prefix, _, name = model.partition("/")
    similar = None if prefix in _prefixes else similar_name(prefix, _prefixes)
    return "" if similar is None else f"Did you mean '{similar}/{name}'? "


for _row in (*ROWS, *CLOUD_ROWS):
    register(_row)
