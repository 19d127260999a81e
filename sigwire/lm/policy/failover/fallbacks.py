"""``Fallbacks``: the models of ``LM(..., fallbacks=[...])`` behind the model itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from sigwire.core.json import JsonValue
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, StateError
from sigwire.lm.policy.failover.health import Health
from sigwire.lm.policy.failover.records import HealthTable
from sigwire.lm.policy.failover.routing import OnFilter, Routing
from sigwire.lm.policy.failover.targets import RouteTarget, targets_of

__all__ = ["Fallbacks", "dump_models", "load_models", "read_models"]


class Fallbacks:
    """The targets behind a model, and their routing. ``named`` makes the target of a name; circuits count by ``clock``."""

    def __init__(
        self,
        models: object,
        named: Callable[[str], RouteTarget],
        total: float | None,
        on_filter: OnFilter = "raise",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        found = read_models(models, "fallbacks")
        targets = [(named(each),) if isinstance(each, str) else targets_of(each) for each in found]
        self.targets = tuple(target for part in targets for target in part)
        self._routing = Routing(Health(), clock, on_filter=on_filter, total=total)

    def __deepcopy__(self, memo: object) -> Fallbacks:
        return self  # copies of a model share its health

    def steps(self, own: RouteTarget, request: Request, *, streamed: bool) -> Steps[Response]:
        """Answer by the model itself, or by the first fallback that does."""
        return self._routing.steps((own, *self.targets), request, streamed=streamed)

    def table(self, own: RouteTarget) -> HealthTable:
        """Return the health of the model and its fallbacks."""
        return self._routing.table((own, *self.targets))


def read_models(models: object, name: str) -> Sequence[object]:
    """Return a list of models as it was given. Raises ``ConfigurationError`` for another form."""
    if not isinstance(models, list | tuple):
        raise ConfigurationError(
            f"{name} is a list of models or of their names, not {type(models).__name__} (making a model). Write "
            f"{name}=['anthropic/claude-opus-5']."
        )
    return cast("Sequence[object]", models)


def dump_models(models: Iterable[object]) -> list[JsonValue]:
    """Return models as JSON without secrets, names as they are. Raises ``StateError`` for a model without ``dump_state``."""
    return [model if isinstance(model, str) else _dumped(model) for model in models]


def _dumped(model: object) -> JsonValue:
    dump: Callable[[], JsonValue] | None = getattr(model, "dump_state", None)
    if dump is None:
        raise StateError(
            f"A target of the class {type(model).__name__} cannot be saved (dumping a router): it has no dump_state. "
            "Save the program without its model, and pass the model after loading."
        )
    return dump()


def load_models(states: object, load: Callable[[Mapping[str, object]], object]) -> list[object]:
    """Return the models of a saved list."""
    found = read_models(states, "the saved list")
    return [load(cast("Mapping[str, object]", each)) if isinstance(each, Mapping) else each for each in found]
