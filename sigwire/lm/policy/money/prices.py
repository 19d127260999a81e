"""Prices of models, and the cost of an exchange.

The first source that has a price counts: what the provider sent, ``LM(price=)``, ``prices.register`` and the file of
``SIGWIRE_PRICES``, zero for servers of the user, genai-prices, LiteLLM's table. Else the cost is ``None``: unknown, not zero.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import cast

from sigwire.core.json import loads
from sigwire.core.response import Usage
from sigwire.errors import ConfigurationError
from sigwire.keywords import ChecksKeywords
from sigwire.lm.policy.money.catalogs import HOUR_WRITE, LITELLM_SOURCE, Cost, is_loaded, is_local, known_cost

__all__ = ["Price", "Prices", "cost_of", "prices"]

_MILLION = 1_000_000
_MOST_COSTS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Price(ChecksKeywords):
    """The price of a model: US dollars for a million tokens.

    ``cached``: input tokens read from the provider's prompt cache; ``cache_write``: those written into it. Both are ``input``
    if they are not given. ``hour_write``: those written for an hour, by default 1.6 times ``cache_write``, as at Anthropic.
    Output includes reasoning.

    >>> Price(input=0.25, output=2.0).cost(Usage(input_tokens=1_000_000, output_tokens=100_000))
    0.45
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    hour_write: float | None = None

    def __post_init__(self) -> None:
        for name in _NAMES:
            value: object = getattr(self, name)
            optional = value is None and name not in ("input", "output")
            if not optional and not _is_price(value):
                raise ConfigurationError(
                    f"{name} of a Price is dollars for a million tokens, 0 or more, not {value!r:.80} (making it)."
                )

    def cost(self, usage: Usage) -> float:
        """Return the cost of a usage in dollars. Unknown counts are zero."""
        return float(self.exact_cost(usage))

    def exact_cost(self, usage: Usage) -> Decimal:
        """Return ``cost`` without rounding."""
        cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        hour = min(usage.hour_write_tokens or 0, written)
        plain = max((usage.input_tokens or 0) - cached - written, 0)
        write = Decimal(str(self.input if self.cache_write is None else self.cache_write))
        rows = (
            (plain, self.input),
            (cached, self.input if self.cached is None else self.cached),
            (written - hour, write),
            (hour, write * HOUR_WRITE if self.hour_write is None else self.hour_write),
            (usage.output_tokens or 0, self.output),
        )
        return sum((count * Decimal(str(price)) for count, price in rows), Decimal()) / _MILLION


_NAMES = tuple(field.name for field in fields(Price))


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


class Prices:
    """The user's table of prices: ``sigwire.prices``. One for the process; a forked child has a copy.

    The environment variable ``SIGWIRE_PRICES`` names a JSON file of more rows:
    ``{"openai/gpt-5*": {"input": 0.25, "output": 2.0}}``. Rows of ``register`` are asked before those of the file.

    >>> table = Prices()
    >>> table.register("acme/large*", Price(input=1.0, output=5.0))
    >>> table.cost("acme/large-2", Usage(input_tokens=2_000, output_tokens=100))
    0.0025
    >>> table.cost("acme/small", Usage(input_tokens=2_000, output_tokens=100)) is None
    True
    """

    def __init__(self) -> None:
        self._rows: tuple[tuple[str, Price], ...] = ()
        self._file: tuple[str, tuple[tuple[str, Price], ...]] = ("", ())
        self._costs: dict[tuple[str, Usage], float] = {}  # calls of one program have similar counts

    def register(self, pattern: str, price: Price) -> None:
        """Set the price of the models whose name fits ``pattern`` (``provider/model``, with ``*`` and ``?``). The last row
        that fits counts."""
        if not isinstance(price, Price):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise ConfigurationError(
                f"The price of {pattern!r} is a Price, not {type(price).__name__} (registering it). Write "
                "Price(input=0.25, output=2.0)."
            )
        self._rows = ((pattern.lower(), price), *self._rows)
        self._costs = {}

    def cost(self, model: str, usage: Usage, *, may_import: bool = True) -> float | None:
        """Return the cost of a usage in dollars; ``None`` if no price of the model is known. May import genai-prices."""
        return self.price_of(model, usage, may_import)

    def price_of(self, model: str, usage: Usage, may_import: bool) -> float | None:
        """Return ``cost``; costs are kept."""
        self._rows_of_file()  # forgets the costs if the file is another one
        if (known := self._costs.get((model, usage))) is not None:
            return known
        found = cost_of(model, usage, table=self, may_import=may_import)
        if found is None:
            return None
        cost = float(found.money)
        if found.source != LITELLM_SOURCE and len(self._costs) < _MOST_COSTS:  # a program may change LiteLLM's table
            self._costs[model, usage] = cost
        return cost

    def source(self, model: str) -> str | None:
        """Return where the price of a model comes from; ``None`` if no price is known.

        >>> Prices().source("ollama/qwen3")
        'a server of the user'
        """
        found = cost_of(model, Usage(input_tokens=1, output_tokens=1), table=self)
        return found and found.source

    def find(self, model: str) -> tuple[Price, str] | None:
        """Return the row of the user's table for a model, and its source."""
        name = model.lower()
        tables = ((self._rows, "prices.register"), (self._rows_of_file(), "the file of SIGWIRE_PRICES"))
        rows = ((pattern, price, source) for table, source in tables for pattern, price in table)
        return next(((price, source) for pattern, price, source in rows if fnmatchcase(name, pattern)), None)

    def _rows_of_file(self) -> tuple[tuple[str, Price], ...]:
        path = (
            os.environ.get("SIGWIRE_PRICES", "") if "SIGWIRE_PRICES" in os.environ else ""
        )  # a missing one takes long
        if path != self._file[0]:
            self._file = (path, tuple(_read_rows(path)) if path else ())
            self._costs = {}
        return self._file[1]


def _read_rows(path: str) -> list[tuple[str, Price]]:
    try:
        data: object = loads(Path(path).read_bytes())
        if not isinstance(data, Mapping):
            raise TypeError("it is no JSON object")
        rows = cast("Mapping[str, Mapping[str, float]]", data)
        return [(pattern.lower(), Price(**row)) for pattern, row in rows.items()]
    except (OSError, TypeError, ValueError) as error:  # a ConfigurationError of Price is a ValueError
        raise ConfigurationError(
            f"The prices of SIGWIRE_PRICES could not be read from {path} (looking for a price): {error}. It is a JSON file: "
            '{"openai/gpt-5*": {"input": 0.25, "output": 2.0}}.'
        ) from error


prices = Prices()


def cost_of(
    model: str, usage: Usage, price: Price | None = None, *, table: Prices = prices, may_import: bool = True
) -> Cost | None:
    """Return the cost of a usage of ``model`` (``provider/name``) and the source of the price; ``None`` if it is unknown.

    ``price`` is that of ``LM(price=)``. May import genai-prices.
    """
    if usage.cost is not None:
        return Cost(Decimal(str(usage.cost)), "sent by the provider")
    if price is not None:
        return Cost(price.exact_cost(usage), "LM(price=)")
    if (row := table.find(model)) is not None:
        return Cost(row[0].exact_cost(usage), row[1])
    if is_local(model):
        return Cost(Decimal(), "a server of the user")
    return known_cost(model, usage) if may_import or is_loaded() else None
