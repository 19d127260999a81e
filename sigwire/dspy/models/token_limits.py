"""The limit of tokens of OpenAI's reasoning models, DSPy's ``max_completion_tokens``: its name and its least value. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.errors import ConfigurationError
from sigwire.lm.providers.registry import find_provider

__all__ = ["check_reasoning_options", "name_limit"]

_HOSTS = ("azure", "openai")
_LEAST = 16_000


def _reasons(model: str) -> bool:
    row, name = find_provider(model)
    return row.prefix in _HOSTS and row.capabilities_of(name).reasoning


def check_reasoning_options(model: str, temperature: float | None, max_tokens: int | None) -> None:
    """Raise ``ConfigurationError`` for a temperature or a limit with which DSPy makes no reasoning model.

    >>> check_reasoning_options("openai/gpt-5-mini", 1.0, 20_000)
    """
    if ((temperature and temperature != 1) or (max_tokens and max_tokens < _LEAST)) and _reasons(model):
        raise ConfigurationError(
            f"OpenAI's reasoning models require passing temperature=1.0 or None and max_tokens >= {_LEAST} or None, not "
            f"temperature={temperature!r} and max_tokens={max_tokens!r} (making LM({model!r})): reasoning counts as output."
        )


def name_limit(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a model; those of a reasoning model have ``max_completion_tokens`` in place of ``max_tokens``.

    Options that give both are returned as they are: a call refuses them.

    >>> name_limit("openai/o3", {"temperature": None, "max_tokens": 16_000})
    {'temperature': None, 'max_completion_tokens': 16000}
    >>> name_limit("openai/gpt-4o", {"max_tokens": 10})
    {'max_tokens': 10}
    """
    limits = [options.get(name) for name in ("max_tokens", "max_completion_tokens")]
    if None not in limits or not _reasons(model):
        return dict(options)
    rest = {name: value for name, value in options.items() if name != "max_tokens"}
    return {**rest, "max_completion_tokens": next((limit for limit in limits if limit is not None), None)}
