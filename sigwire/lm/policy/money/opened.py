"""The budgets that are open in a context, the outermost first. A call without a budget loads nothing else of this folder.

Threads of the library, tasks and ``bind`` copy the context variable; the budgets are shared, not copied.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from sigwire.errors import ConfigurationError

if TYPE_CHECKING:
    from sigwire.lm.policy.money.queue import BudgetAccount

__all__ = ["OpenBudget", "check_price", "close_budget", "find_budget_with", "open_budget", "open_budgets"]


class OpenBudget(Protocol):
    """A ``Budget``, as the layer sees it."""

    account: BudgetAccount
    strict: bool

    @property
    def needs_price(self) -> bool: ...

    def deadline(self) -> float | None: ...


_opened: ContextVar[tuple[OpenBudget, ...]] = ContextVar("sigwire_budgets", default=())


def _nothing() -> OpenBudget | None:
    return None


_configured: Callable[[], OpenBudget | None] = _nothing


def check_price(price: object) -> None:
    """Raise ``ConfigurationError`` for a price of a model that is no ``Price``. Loads nothing if there is none."""
    if price is None:
        return
    from sigwire.lm.policy.money.prices import Price

    if not isinstance(price, Price):
        raise ConfigurationError(
            f"price is a Price, not {type(price).__name__} (making an LM). Write Price(input=0.25, output=2.0): dollars for a "
            "million tokens."
        )


def find_budget_with(find: Callable[[], OpenBudget | None]) -> None:
    """Set the function that returns the budget of the settings."""
    global _configured
    _configured = find


def open_budgets() -> tuple[OpenBudget, ...]:
    """Return the open budgets, each once: that of the settings, then those of ``with`` blocks."""
    opened, configured = _opened.get(), _configured()
    if configured is not None:
        opened = (configured, *opened)
    return opened if len(opened) < 2 else tuple(dict.fromkeys(opened))


def open_budget(budget: OpenBudget) -> None:
    """Add a budget to those of the context."""
    opened = _opened.get()
    _opened.set((*opened, budget))


def close_budget(budget: OpenBudget) -> None:
    """Remove the last entry of a budget from those of the context."""
    opened = list(_opened.get())
    if budget in opened:  # False in a context that was not copied from that of the ``with`` block
        del opened[len(opened) - 1 - opened[::-1].index(budget)]
        _opened.set(tuple(opened))
