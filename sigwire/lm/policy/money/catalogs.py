"""Price tables of other packages: genai-prices (the extra ``prices``) and LiteLLM's, if the program has imported LiteLLM.

genai-prices takes 0.3 to 0.6 s to import. ``load`` imports it; no call without a budget does. Its update over the network is
never started: the prices are those of the installed release.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from sigwire.core.response import Usage

__all__ = [
    "GENAI_PROVIDERS",
    "HOUR_WRITE",
    "LITELLM_SOURCE",
    "Cost",
    "is_loaded",
    "is_local",
    "known_cost",
    "load",
    "output_limit",
]

_LOCAL = frozenset(
    {"foreman", "llamacpp", "lm_studio", "lmstudio", "hosted_vllm", "offline", "ollama", "ollama_chat", "vllm"}
)
"""Prefixes of servers of the user, and of the embedded model: no token costs money."""

GENAI_PROVIDERS: Mapping[str, str] = {
    "bedrock": "aws",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "moonshot": "moonshotai",
    "together_ai": "together",
    "vertex": "google",
    "vertex_ai": "google",
    "xai": "x-ai",
}
"""Prefixes of sigwire whose providers have another name in genai-prices."""


LITELLM_SOURCE = "LiteLLM's table"

HOUR_WRITE = Decimal("1.6")
"""The price of a token in Anthropic's cache for an hour, in terms of one for five minutes (2 and 1.25 times input)."""


class Cost(NamedTuple):
    """The cost of an exchange in US dollars, and where the price comes from."""

    money: Decimal
    source: str


def is_local(model: str) -> bool:
    """Return True for a model on a server of the user, and for the embedded model."""
    return model.removeprefix("litellm/").partition("/")[0] in _LOCAL


def known_cost(model: str, usage: Usage) -> Cost | None:
    """Return the cost by genai-prices, else by LiteLLM's table if LiteLLM is imported; ``None`` for an unlisted model."""
    prefix, _, name = model.removeprefix("litellm/").partition("/")
    if not name:
        return None
    if usage.unbilled_tokens:  # the tables price a model, not its endpoints
        billed = max((usage.output_tokens or 0) - usage.unbilled_tokens, 0)
        usage = replace(usage, output_tokens=billed, unbilled_tokens=None)
    cost = _genai_cost(GENAI_PROVIDERS.get(prefix, prefix), name, usage) or _litellm_cost(f"{prefix}/{name}", usage)
    hour = usage.hour_write_tokens
    if cost is None or not hour:
        return cost
    # Both packages price these tokens as those that are kept for five minutes: add the difference.
    more = known_cost(model, Usage(input_tokens=hour, output_tokens=0, cache_write_tokens=hour))
    return cost if more is None else cost._replace(money=cost.money + more.money * (HOUR_WRITE - 1))


def is_loaded() -> bool:
    """Return True if ``load`` has nothing to import."""
    return load.cache_info().currsize > 0


@functools.cache
def load() -> Any:
    """Import and return genai-prices; ``None`` if it is not installed."""
    return importlib.import_module("genai_prices") if importlib.util.find_spec("genai_prices") else None


@functools.cache
def _source() -> str:
    return f"prices of genai-prices {importlib.metadata.version('genai-prices')}"


def _genai_cost(provider: str, name: str, usage: Usage) -> Cost | None:
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)
    return None if load() is None else _genai_cost_of(provider, name, counts)


_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@functools.lru_cache(4096)  # the package takes 70 µs, and calls of one program have similar counts
def _genai_cost_of(provider: str, name: str, counts: tuple[int | None, ...]) -> Cost | None:
    package = load()
    known = {part: count for part, count in zip(_COUNTS, counts, strict=True) if count}
    try:
        found = package.calc_price(package.Usage(**known), model_ref=name, provider_id=provider)
    except (LookupError, ValueError):  # an unlisted provider or model; counts that contradict each other
        return None
    return Cost(Decimal(found.total_price), _source())


def _litellm_cost(model: str, usage: Usage) -> Cost | None:
    package: Any = sys.modules.get("litellm")
    if package is None:
        return None
    try:
        parts = package.cost_per_token(
            model=model,
            prompt_tokens=usage.input_tokens or 0,
            completion_tokens=usage.output_tokens or 0,
            cache_read_input_tokens=usage.cached_tokens or 0,
            cache_creation_input_tokens=usage.cache_write_tokens or 0,
        )
        return Cost(sum((Decimal(str(part)) for part in parts), Decimal()), LITELLM_SOURCE)
    except Exception:  # an unlisted model, or a package that another thread is importing
        return None


def output_limit(model: str) -> int | None:
    """Return the most output tokens of a model, if LiteLLM is imported and lists it."""
    table: Mapping[str, Mapping[str, Any]] = getattr(sys.modules.get("litellm"), "model_cost", {})
    name = model.removeprefix("litellm/")
    row = table.get(name) or table.get(name.partition("/")[2]) or {}
    limit: object = row.get("max_output_tokens")
    return limit if isinstance(limit, int) else None
