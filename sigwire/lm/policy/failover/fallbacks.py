"""``Fallbacks``: the models of ``LM(..., fallbacks=[...])`` behind the model itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from sigwire.core.json import JsonValue
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, StateError
from sigwire.lm.policy.failover.health import Health
from sigwire.lm.policy.failover.records import HealthTable
from sigwire.lm.policy.failover.routing import Routing
from sigwire.lm.policy.failover.targets import Inheriting, RouteTarget, inherited, targets_of

__all__ = ["Fallbacks", "dump_models", "read_models"]


class Fallbacks:
    """The targets behind a model, and their routing. A name becomes a model with the options of the first that it knows."""

    def __init__(self, lm: Inheriting, models: object, total: float | None) -> None:
        self.targets = tuple(target for model in read_models(models, "fallbacks") for target in _targets(lm, model))
        self._routing = Routing(Health(), total=total)

    def __deepcopy__(self, memo: object) -> Fallbacks:
        return self  # copies of a model share its health

    def steps(self, own: RouteTarget, request: Request, *, streamed: bool) -> Steps[Response]:
        """Answer by the model itself, or by the first fallback that does."""
        return self._routing.steps((own, *self.targets), request, streamed=streamed)

    def table(self, own: RouteTarget) -> HealthTable:
        """Return the health of the model and its fallbacks."""
        return self._routing.table((own, *self.targets))


def read_models(models: object, name: str) -> Sequence[Any]:
    """Return a list of models as it was given. Raises ``ConfigurationError`` for another form."""
    if not isinstance(models, list | tuple):
        raise ConfigurationError(
            f"{name} is a list of models or of their names, not {type(models).__name__} (making a model). Write "
            f"{name}=['anthropic/claude-opus-5']."
        )
    return cast("Sequence[Any]", models)


def _targets(lm: Inheriting, model: object) -> Sequence[RouteTarget]:
    if not isinstance(model, str):
        return targets_of(model, "reading fallbacks")
    made, dropped = inherited(lm, model)
    return (made.own_target(dropped),)


def dump_models(models: Iterable[Any]) -> list[JsonValue]:
    """Return models as JSON without secrets, names as they are. Raises ``StateError`` for a model without ``dump_state``."""
    dumped: list[JsonValue] = []
    for model in models:
        if not isinstance(model, str) and not hasattr(model, "dump_state"):
            raise StateError(
                f"A target of the class {type(model).__name__} cannot be saved (dumping a router): it has no dump_state. "
                "Save the program without its model, and pass the model after loading."
            )
        dumped.append(model if isinstance(model, str) else model.dump_state())
    return dumped
