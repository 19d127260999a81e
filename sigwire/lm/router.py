"""``Router``: several models as one. ``lm.policy.failover`` decides which of them a call asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.lm.base import BaseLM, LanguageModel, named_in_files
from sigwire.lm.client import LM
from sigwire.lm.policy.deadlines import Timeout, resolve_timeout
from sigwire.lm.policy.failover.fallbacks import dump_models, load_models, read_models
from sigwire.lm.policy.failover.health import Health
from sigwire.lm.policy.failover.records import HealthTable
from sigwire.lm.policy.failover.routing import OnFilter, Routing, check_on_filter
from sigwire.lm.policy.failover.targets import RouteTarget, targets_of, unknown_options
from sigwire.lm.secrets import wrap_secrets

if TYPE_CHECKING:
    from sigwire.lm.policy.limits.limiter import Limiter
    from sigwire.lm.preview.preview import Preview

__all__ = ["Router"]


@named_in_files("sigwire.lm.router.router.Router")
class Router(BaseLM):
    """Several models as one: each call asks the first that can take it and is well, and goes on to the next if it fails.

    ``targets``: models, or names ``provider/model``. The first name gets the further keyword arguments, as ``LM`` does; other
    names those that they know, and ``api_key`` and ``base_url`` if the provider is the same. A router gives its targets.
    ``model``: the name of the router, by default the names of its targets. ``capabilities`` are those of the first target, and
    programs are planned for them. ``health``: the rules by which a target is left alone. ``patience``: the most seconds of
    waits between retries of a target while another one is left. ``timeout``: that of the targets given as text, and in
    seconds of the whole call. ``on_filter="next"``: another target is asked if a filter refuses the request, or
    stops the answer before its first content.
    ``clock`` returns the seconds of the circuits.

    ``response.attempts`` has each target in order with the reason, ``response.model`` is the model that answered, and
    ``health()`` the state of each target. Once an event of a stream with content is emitted, no other target is asked.

    Raises ``ConfigurationError`` for no targets, for an object that is no model, and for an option without a target given as
    text. A call raises the error of the last target that failed.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.errors import LMServerError
    >>> router = Router([FakeLM([LMServerError()], model="a"), FakeLM(["Hello"], model="b")])
    >>> response = router.respond(Request())
    >>> response.choices[0].text, response.model
    ('Hello', 'b')
    >>> [(attempt.purpose, attempt.model, attempt.error) for attempt in response.attempts]
    [('ask', 'a', 'server'), ('fallback', 'b', None)]
    >>> Router(["openai/gpt-5-mini", "anthropic/claude-haiku-4-5"], temperature=0.0).model
    'openai/gpt-5-mini, anthropic/claude-haiku-4-5'
    """

    def __init__(
        self,
        targets: Sequence[str | LanguageModel],
        *,
        model: str | None = None,
        health: Health | Mapping[str, Any] | None = None,
        patience: float = 2.0,
        on_filter: OnFilter = "raise",
        clock: Callable[[], float] = time.monotonic,
        callbacks: Sequence[Any] | None = None,
        timeout: float | Timeout | None = None,
        **options: Any,
    ) -> None:
        options = dict(wrap_secrets(options))
        self._models = _read_models(read_models(targets, "targets"), options, timeout)
        self._targets = _all_targets(self._models)
        names = ", ".join(target.lm.model for target in self._targets)
        super().__init__(model or names, callbacks=callbacks)
        check_on_filter(on_filter, "making a Router")
        if not isinstance(patience, (int, float)) or patience < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"patience is a number of seconds, 0 or more, not {patience!r:.80} (making a Router)."
            )
        rules = Health(**health) if isinstance(health, Mapping) else health
        if not isinstance(rules, Health | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"health is a Health, not {health!r:.80} (making a Router). Write Health(limit=5)."
            )
        total = None if timeout is None else resolve_timeout(timeout).total
        self._routing = Routing(rules, clock, patience=patience, on_filter=on_filter, total=total)

    # --- calls

    def _steps(self, request: Request, *, streamed: bool) -> Steps[Response]:
        return self._routing.steps(self._targets, request, streamed=streamed)

    def targets(self) -> Sequence[RouteTarget]:
        """Return the targets in their order, for a router around this one."""
        return super().targets() if self._overrides else self._targets

    def health(self) -> HealthTable:
        """Return the health of each target, in the order in which a call asks them."""
        return self._routing.table(self._targets)

    def preview(self, request: Request | str) -> Preview:
        """Return a request as the first target would send it; see ``Preview``."""
        preview: Callable[..., Preview] = getattr(self._targets[0].lm, "preview", super().preview)
        return preview(request)

    def check_options(self, options: Iterable[str], stage: str = "making a Router") -> None:
        """Raise ``UnsupportedOption`` for a name that no target knows."""
        names = set(options)
        for target in self._targets:
            names &= {*unknown_options(target.lm, names)}
        if names:
            check: Callable[[Iterable[str], str], None] = getattr(
                self._targets[0].lm, "check_options", super().check_options
            )
            check(names, stage)

    def close(self) -> None:
        """Close the idle connections of each target."""
        for target in self._targets:
            close: Callable[[], None] | None = getattr(target.lm, "close", None)
            if close is not None:
                close()

    @property
    def _limiter(self) -> Limiter | None:
        """The limiter of the first target, which suggests how many examples an evaluation runs at once."""
        limiter: Limiter | None = getattr(self._targets[0].lm, "_limiter", None)
        return limiter

    def default_capabilities(self) -> Capabilities:
        """Return the capabilities of a model that is made without ``capabilities``."""
        return self._targets[0].lm.capabilities

    def __repr__(self) -> str:
        routing = vars(self).get("_routing")  # without it if the making of the router failed
        name = "" if self.model == ", ".join(each.lm.model for each in self._targets) else f", model={self.model!r}"
        return object.__repr__(self) if routing is None else f"Router({self._models!r}{name})"

    # --- copies and state

    def copy(self, **updates: Any) -> Self:
        """Return the router with changes: ``model`` and ``callbacks`` are its own, other options are those of its targets.

        >>> Router(["openai/gpt-5-mini", "anthropic/claude-haiku-4-5"]).copy(temperature=1.0)
        Router([LM('openai/gpt-5-mini', temperature=1.0), LM('anthropic/claude-haiku-4-5', temperature=1.0)])
        """
        updates = dict(wrap_secrets(updates))
        new = super().copy(**{name: updates.pop(name) for name in ("model", "callbacks") if name in updates})
        self.check_options({*updates} - _ARGUMENTS, "copying a Router")
        new._models = [_copied(model, updates) for model in self._models] if updates else self._models
        new._targets, new._capabilities = _all_targets(new._models), None
        return new

    def __getstate__(self) -> dict[str, object]:
        state = super().__getstate__()
        del state["_targets"]
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._targets = _all_targets(self._models)

    def dump_state(self) -> JsonObject:
        """Return the state that rebuilds the router, as JSON: no key, no clock and no function. The circuits are not stored.

        Raises ``StateError`` for a target without ``dump_state``.
        """
        routing, kind = self._routing, super().dump_state()["class"]
        facts: JsonObject = {"patience": routing.patience, "on_filter": routing.on_filter, "timeout": routing.total}
        facts["health"] = {**routing.health.dump()}
        return {"class": kind, "model": self.model, "targets": dump_models(self._models), **facts}

    @classmethod
    def _options_of(cls, state: Mapping[str, object], trusted: bool) -> dict[str, Any]:
        targets = load_models(state.get("targets"), partial(BaseLM.load_state, allow_unsafe_lm_state=trusted))
        return {**super()._options_of({**state, "targets": []}, trusted), "targets": targets}


def _read_models(given: Sequence[object], options: Mapping[str, Any], timeout: Any) -> list[LanguageModel]:
    """Return the models. The first name becomes an ``LM`` with the options, and the others siblings of it."""
    first: LM | None = None
    models: list[LanguageModel] = []
    for each in given:
        if not isinstance(each, str):
            models.append(cast(LanguageModel, each))
            continue
        models.append(LM(each, timeout=timeout, **options) if first is None else first.sibling(each))
        first = first or cast(LM, models[-1])
    if not given or (options and first is None):
        problem = f"has no option {min(options)!r} of its own" if given else "needs a target"
        raise ConfigurationError(
            f"A Router {problem} (making a Router). Write Router(['openai/gpt-5-mini', ...], temperature=0.0): options "
            "are those of targets that are given as text."
        )
    return models


def _all_targets(models: Sequence[LanguageModel]) -> tuple[RouteTarget, ...]:
    return tuple(target for model in models for target in targets_of(model))


def _copied(model: LanguageModel, updates: Mapping[str, Any]) -> LanguageModel:
    copy: Callable[..., LanguageModel] | None = getattr(model, "copy", None)
    unknown = unknown_options(model, updates.keys() - _ARGUMENTS)
    return model if copy is None else copy(**{name: each for name, each in updates.items() if name not in unknown})


_ARGUMENTS = frozenset(LM.__init__.__kwdefaults__ or ()) - {"on_filter"} | {"api_base"}
