"""Limits of models in tokens, from data with a source: genai-prices, LiteLLM's table, and the ``Capabilities`` of the model.

Nothing is loaded over the network. LiteLLM is not imported: its table is a JSON file of the package.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast

from sigwire.core.capabilities import Capabilities
from sigwire.lm.policy.money.catalogs import GENAI_PROVIDERS, is_local, load

__all__ = ["TokenLimit", "input_limit", "output_limit", "prompt_cache_minimum"]


class TokenLimit(NamedTuple):
    """A number of tokens, and the data that it comes from."""

    tokens: int
    source: str


def input_limit(model: str, capabilities: Capabilities) -> TokenLimit | None:
    """Return the smallest known limit of the input tokens of a model; ``None`` if none is known. May import genai-prices.

    >>> input_limit("acme/large", Capabilities(context_window=8_000))
    TokenLimit(tokens=8000, source='the capabilities of the model')
    """
    return min(_input_limits(model, capabilities), default=None)


def output_limit(model: str, capabilities: Capabilities) -> TokenLimit | None:
    """Return the smallest known limit of the output tokens of a model; ``None`` if none is known."""
    own = _own(capabilities.max_output_tokens)
    return min([*own, *_listed(model, "max_output_tokens")], default=None)


def prompt_cache_minimum(model: str) -> TokenLimit:
    """Return the least tokens that the provider's prompt cache keeps: 1,024 for a model that LiteLLM's table does not list.

    Models of Anthropic have 512 to 4,096, and those of OpenAI 1,024
    (https://platform.openai.com/docs/guides/prompt-caching).

    >>> prompt_cache_minimum("acme/large").tokens
    1024
    """
    return next(_listed(model, "prompt_cache_min_tokens"), TokenLimit(1024, "the usual minimum of providers"))


def _input_limits(model: str, capabilities: Capabilities) -> Iterator[TokenLimit]:
    yield from _own(capabilities.context_window)
    yield from _listed(model, "max_input_tokens")
    prefix, _, name = model.removeprefix("litellm/").partition("/")
    if name and not is_local(model) and (package := load()) is not None:
        provider = GENAI_PROVIDERS.get(prefix, prefix)
        try:
            _, found = package.data_snapshot.get_snapshot().find_provider_model(name, None, provider, None)
        except LookupError:  # an unlisted provider or model
            return
        if found.context_window:
            yield TokenLimit(found.context_window, f"genai-prices {importlib.metadata.version('genai-prices')}")


def _own(tokens: int | None) -> list[TokenLimit]:
    return [] if tokens is None else [TokenLimit(tokens, "the capabilities of the model")]


def _listed(model: str, name: str) -> Iterator[TokenLimit]:
    """Yield the limit of LiteLLM's table. The window of a server of the user is its own, and not that of the table."""
    if is_local(model):
        return
    known, table = model.removeprefix("litellm/"), _table()
    row = table.get(known) or table.get(known.partition("/")[2])
    tokens = row.get(name) if row else None
    if isinstance(tokens, int):
        yield TokenLimit(tokens, f"LiteLLM {importlib.metadata.version('litellm')}")


@functools.cache
def _table() -> Mapping[str, Mapping[str, object]]:
    found = importlib.util.find_spec("litellm")
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / "model_prices_and_context_window_backup.json"
        if path.is_file():
            return cast("Mapping[str, Mapping[str, object]]", json.loads(path.read_text(encoding="utf-8")))
    return {}
