"""List providers: their keys, present or not, and their addresses. With a model, its abilities and its price.

A pattern without a slash is for providers (open*); one with a slash is for models (openai/gpt-5*).
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

from sigwire.commands.output import UsageError, add_json, print_json, print_table

if TYPE_CHECKING:
    from sigwire.lm.providers.row import Provider

__all__ = ["add", "keys_of", "run"]

ABILITIES = ("native_tools", "json_schema", "images", "audio", "files", "reasoning")


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire models``."""
    parser.add_argument(
        "pattern", nargs="?", default="*", help="a provider or a model, with * and ? (default: all providers)"
    )
    add_json(parser)


def run(options: Namespace) -> int:
    """Print the table; return the exit status."""
    is_model = "/" in options.pattern
    rows = list(_models(options.pattern) if is_model else _providers(options.pattern))
    if not rows:
        raise UsageError(
            f"No {'model' if is_model else 'provider'} fits {options.pattern!r}. sigwire models lists all providers."
        )
    if options.json:
        print_json(rows)
        return 0
    head = list(rows[0])
    print_table([head, *([_cell(row[name]) for name in head] for row in rows)])
    if is_model and not _has_prices():
        print("Prices of models: pip install 'sigwire[prices]'.")
    return 0


def keys_of(row: Provider) -> dict[str, bool]:
    """Return the variables that may hold a key of a provider, and whether each is set."""
    return {key.variable: bool(os.environ.get(key.variable)) for key in row.keys}


def _providers(pattern: str) -> Iterator[dict[str, Any]]:
    from sigwire.lm.providers.registry import PROVIDERS

    for row in PROVIDERS.values():
        if any(fnmatchcase(name, pattern.lower()) for name in (row.prefix, *row.aliases)):
            yield {
                "provider": row.prefix,
                "key": keys_of(row) or None,
                "needed": bool(row.keys) and row.key == "needed",
                "address": _address(row),
            }


def _address(row: Provider) -> str:
    """Return the base URL of the table; the environment's is the user's, and may hold a password."""
    if row.backend:
        return "in this process" if not row.needs else f"package {row.needs}"
    named = next((name for name in row.base_variables if os.environ.get(name)), None)
    if named is not None:
        return f"that of {named}"
    base = row.base_url({name: f"{{{name}}}" for name in row.variables}) if callable(row.base_url) else row.base_url
    return base or "base_url="


def _models(pattern: str) -> Iterator[dict[str, Any]]:
    """Yield the models of a pattern: those with a known price, or the one that it names."""
    from sigwire.core.response import Usage
    from sigwire.lm.policy.money.prices import prices
    from sigwire.lm.providers.registry import find_provider

    priced = list(_priced(pattern))
    for name in priced or ([pattern] if "*" not in pattern and "?" not in pattern else []):
        row, model = find_provider(name)
        abilities = row.capabilities_of(model)
        yield {
            "model": name,
            "can": [each for each in ABILITIES if getattr(abilities, each, False)],
            "key": keys_of(row) or None,
            "$/M in": prices.cost(name, Usage(input_tokens=1_000_000, output_tokens=0)),
            "$/M out": prices.cost(name, Usage(input_tokens=0, output_tokens=1_000_000)),
        }


def _priced(pattern: str) -> Iterator[str]:
    """Yield the models of genai-prices that fit, by the prefixes of sigwire."""
    from sigwire.lm.policy.money.catalogs import GENAI_PROVIDERS, load
    from sigwire.lm.providers.registry import PROVIDERS

    package = load()
    if package is None:
        return
    listed = {each.id: each.models for each in package.data_snapshot.get_snapshot().providers}
    for prefix in PROVIDERS:
        for model in listed.get(GENAI_PROVIDERS.get(prefix, prefix), ()):
            if fnmatchcase(f"{prefix}/{model.id}", pattern.lower()):
                yield f"{prefix}/{model.id}"


def _has_prices() -> bool:
    from sigwire.lm.policy.money.catalogs import load

    return load() is not None


def _cell(value: object) -> str:
    if isinstance(value, dict):
        keys = cast("dict[str, bool]", value)
        return ", ".join(f"{name} {'set' if is_set else 'not set'}" for name, is_set in keys.items())
    if isinstance(value, list):
        return ", ".join(cast("list[str]", value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
