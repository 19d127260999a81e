"""``FailoverLM``: the part of ``LM`` that goes on to other models, as a class between ``BaseLM`` and ``LM``.

A model without fallbacks loads nothing for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import LMWarning, Response
from sigwire.effects.steps import Steps
from sigwire.lm.base import BaseLM, LanguageModel
from sigwire.lm.policy.call import NO_HASTE, Haste, TargetKey

if TYPE_CHECKING:
    from sigwire.lm.policy.failover.fallbacks import Fallbacks
    from sigwire.lm.policy.failover.records import HealthTable
    from sigwire.lm.policy.failover.targets import RouteTarget

__all__ = ["FailoverLM"]


class FailoverLM(BaseLM):
    """A model with fallbacks. A subclass answers a request itself in ``_own_steps``, and calls ``_load_fallbacks``."""

    _fallbacks: Sequence[str | LanguageModel] = ()
    _on_filter: Literal["raise", "next"] = "raise"
    _failover: Fallbacks | None = None
    _dropped: tuple[str, ...] = ()
    _target: TargetKey

    def health(self) -> HealthTable:
        """Return the health of the model and its fallbacks, in the order in which a call asks them.

        The health of a model is kept while it has fallbacks or is a target of a router.
        """
        from sigwire.lm.policy.failover.routing import Routing

        own = self._own_target()
        return Routing().table([own]) if self._failover is None else self._failover.table(own)

    def targets(self) -> Sequence[RouteTarget]:
        """Return the models that a call may ask, in their order."""
        if self._overrides:  # the override is around all of them
            return super().targets()
        return (self._own_target(), *(() if self._failover is None else self._failover.targets))

    def _own_target(self) -> RouteTarget:
        """Return the model without its fallbacks."""
        from sigwire.lm.policy.failover.targets import RouteTarget

        warnings = tuple(
            LMWarning(name, f"{self.model} has no option {name}; it was left out.") for name in self._dropped
        )
        return RouteTarget(self, self._own_steps, self._holds, self._target, warnings)

    def sibling(self, model: str) -> Self:
        """Return a model of another name with the options of this one that it knows; its answers warn of the others.

        Capabilities, price and limits are of one model, and not inherited; key and base URL are if the provider is the same.
        """
        from sigwire.lm.policy.failover.targets import unknown_options

        own = {"fallbacks": (), "on_filter": "raise", "capabilities": None, "limit": None, "price": None}
        plain = self.copy(model=model, **own, **dict.fromkeys(self.kwargs))
        unknown = unknown_options(plain, [name for name, value in self.kwargs.items() if value is not None])
        new = self.copy(model=model, **own, **dict.fromkeys(unknown))
        new._dropped = unknown
        return new

    def _load_fallbacks(self, total: float | None) -> None:
        """Make the targets behind the model. ``total``: seconds of a whole call."""
        self._failover = None
        if self._on_filter != "raise":
            from sigwire.lm.policy.failover.routing import check_on_filter

            check_on_filter(self._on_filter, "making an LM")
        if self._fallbacks:
            from sigwire.lm.policy.failover.fallbacks import Fallbacks

            self._failover = Fallbacks(
                self._fallbacks, lambda name: self.sibling(name)._own_target(), total, self._on_filter
            )

    def _steps(self, request: Request, *, streamed: bool) -> Steps[Response]:
        if self._failover is None:
            return self._own_steps(request, streamed)
        return self._failover.steps(self._own_target(), request, streamed=streamed)

    def _own_steps(self, request: Request, streamed: bool, haste: Haste = NO_HASTE) -> Steps[Response]:
        """Answer without fallbacks."""
        raise NotImplementedError

    def _holds(self, request: Request) -> bool:
        """Return True if the cache has the answer."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = f", fallbacks={[*self._fallbacks]!r}" if self._fallbacks else ""
        shown += "" if self._on_filter == "raise" else f", on_filter={self._on_filter!r}"
        return f"{super().__repr__()[:-1]}{shown})"

    def copy(self, **updates: Any) -> Self:
        fallbacks: Sequence[str | LanguageModel] = updates.pop("fallbacks", self._fallbacks)
        on_filter = updates.pop("on_filter", self._on_filter)
        new = super().copy(**updates)
        new._fallbacks, new._on_filter = fallbacks, on_filter
        return new

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in super().__getstate__().items() if name != "_failover"}

    def dump_state(self) -> JsonObject:
        """Return the state that rebuilds the model and its fallbacks."""
        if not self._fallbacks:
            return super().dump_state()
        from sigwire.lm.policy.failover.fallbacks import dump_models

        models = dump_models(self._fallbacks)
        rest: JsonObject = {} if self._on_filter == "raise" else {"on_filter": self._on_filter}
        return {**super().dump_state(), "fallbacks": models, **rest}

    @classmethod
    def _options_of(cls, state: Mapping[str, object], trusted: bool) -> dict[str, Any]:
        if "fallbacks" not in state:
            return super()._options_of(state, trusted)
        from sigwire.lm.policy.failover.fallbacks import load_models

        models = load_models(state["fallbacks"], partial(BaseLM.load_state, allow_unsafe_lm_state=trusted))
        return {**super()._options_of({**state, "fallbacks": []}, trusted), "fallbacks": models}
