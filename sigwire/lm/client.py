"""``LM("provider/model")``: the model object for the rows of the provider table.

Decides which options a request has (the model's, then the request's) and which layers are around its exchanges. The row's
backend answers, or a model of ``fallbacks``, which a model without them does not load. The settings for reaching the backend
are a ``ConnectionOptions``: not sent, and secrets not shown or stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.request import Request, check_prompt_cache
from sigwire.core.response import LMWarning, Response
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, StateError, UnsupportedOption, suggest
from sigwire.lm.backend import make_backend, move_options
from sigwire.lm.base import BaseLM, LanguageModel, named_in_files
from sigwire.lm.option_aliases import ALIASES, COMMON_OPTIONS, canonical_options
from sigwire.lm.policy.cache.choice import (
    CHECKED_OPTIONS,
    CacheChoice,
    CacheMode,
    check_choice,
    choice_of,
    is_off,
    read_choice,
)
from sigwire.lm.policy.cache.loading import cache_layers, cache_state
from sigwire.lm.policy.call import NO_HASTE, Call, Haste, Layer, TargetKey, through
from sigwire.lm.policy.deadlines import Timeout
from sigwire.lm.policy.limits.limit import Limit, read_limit
from sigwire.lm.policy.limits.registry import limiter_of
from sigwire.lm.policy.money.opened import check_price, open_budgets
from sigwire.lm.policy.retry import RetryPolicy, timed
from sigwire.lm.providers.connection import HOST_BOUND_OPTIONS, ConnectionOptions
from sigwire.lm.providers.registry import find_provider
from sigwire.lm.secrets import redact, redact_url, storable_options, wrap_secrets

if TYPE_CHECKING:
    from sigwire.lm.http.messages import Transport
    from sigwire.lm.policy.failover.fallbacks import Fallbacks
    from sigwire.lm.policy.failover.records import HealthTable
    from sigwire.lm.policy.failover.targets import RouteTarget
    from sigwire.lm.policy.money.prices import Price
    from sigwire.lm.preview.draft import RequestDraft

__all__ = ["LM"]


@named_in_files("sigwire.lm.client.LM", "")
class LM(BaseLM):
    """A language model by its name: ``provider/model``.

    ``temperature``, ``max_tokens`` and further keyword arguments are options of every request, kept in ``kwargs``; options of
    a request override them. ``capabilities`` replaces those of the provider table.

    These arguments override the provider table: ``api_key`` (default: from the environment, at each request; a function is
    called at each request), ``base_url`` (alias ``api_base``; the address of an operation is read, too), ``wire`` (one of the
    provider's wires), and the variables of the row's URL (``project``, ``location``, ``api_version``). ``base_model``: the
    model whose capabilities and limits count, if the name is one of yours (a deployment, a tuned endpoint, an ARN).
    ``timeout``: seconds for a whole call with its retries, or a ``Timeout``; default: ``Timeout()``, or the limits of
    ``transport``.
    ``headers`` are sent with every request; ``transport`` is another HTTP client. ``num_retries``: retries of a failed
    exchange; ``retry``: a whole ``RetryPolicy``. ``limit``: a ``Limit`` on the exchanges, or ``False`` for no limiter.
    ``price``: the model's ``Price``, before any table. ``fallbacks``: models that a call goes on to if this one fails, and with
    ``on_filter="next"`` if a content filter stops it; a name gets the options of this model. ``cache``: whether equal requests
    get the stored answer ("on": also those with web search); ``fresh=True`` reads none, ``rollout_id`` selects another.

    The constructor opens nothing and reads no key. Raises ``ConfigurationError`` for a model without a provider, and
    ``UnsupportedOption`` for an option that no wire of the model has.

    >>> lm = LM("offline/lexical")
    >>> lm.capabilities.native_tools
    True
    >>> LM("openai/gpt-5-mini", api_key="a secret", base_url="https://llm.example/v1")
    LM('openai/gpt-5-mini', base_url='https://llm.example/v1', api_key=***)
    """

    fixed_methods: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("base_url", "capabilities", "default_capabilities", "timeout"),
        "pass it to the constructor, which the backend reads",
    )
    _hooks: ClassVar[Sequence[str]] = ("open_options", "prepare_request")
    open_options: ClassVar[bool] = False
    """Whether options that no wire of the model has go into the body as they are. Models of LiteLLM take any in each case."""
    _fallbacks: Sequence[str | LanguageModel]
    _on_filter: Literal["raise", "next"]
    _failover: Fallbacks | None = None
    _dropped: tuple[str, ...] = ()  # options of another model, of which this one is a sibling

    def __init__(
        self,
        model: str,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        cache: CacheMode = True,
        callbacks: Sequence[Any] | None = None,
        num_retries: int = 3,
        api_key: str | Callable[[], str] | None = None,
        base_url: str | None = None,
        transport: Transport | None = None,
        timeout: float | Timeout | None = None,
        headers: Mapping[str, str] | None = None,
        wire: str | None = None,
        base_model: str | None = None,
        retry: RetryPolicy | None = None,
        limit: Limit | list[Any] | bool | None = None,
        capabilities: Capabilities | None = None,
        price: Price | None = None,
        fallbacks: Sequence[str | LanguageModel] = (),
        on_filter: Literal["raise", "next"] = "raise",
        **kwargs: Any,
    ) -> None:
        same = kwargs.pop("api_base", None)
        base_url = same if base_url is None else base_url
        # Rebound: the traceback of an error below shows the local variables.
        api_key, base_url, headers, kwargs = cast(
            Any,
            wrap_secrets({"api_key": api_key, "base_url": base_url, "headers": headers, "options": kwargs}).values(),
        )
        if not isinstance(model, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise ConfigurationError(f"LM needs a model string such as 'offline/lexical', not {type(model).__name__}.")
        check_choice({"cache": cache, **kwargs}, "making an LM")
        _check_arguments(retry, capabilities)
        check_price(price)
        variables = {name: kwargs.pop(name) for name in find_provider(model)[0].variables.keys() & kwargs.keys()}
        super().__init__(
            model,
            temperature=temperature,
            max_tokens=max_tokens,
            cache=cache,
            callbacks=callbacks,
            num_retries=retry.retries if retry else num_retries,
            capabilities=capabilities,
            **kwargs,
        )
        self._retry = retry or RetryPolicy(num_retries)
        self._given, self._price, self._fallbacks, self._on_filter = capabilities, price, fallbacks, on_filter
        self._limit: Limit | Literal[False] | None = read_limit(limit)
        self._connection = ConnectionOptions(
            api_key, base_url, transport, timeout, headers or {}, wire, variables, base_model
        )
        self._connect()
        self.check_options(self.kwargs)
        check_prompt_cache(self.kwargs)

    def _connect(self) -> None:
        row, name = find_provider(self.model)
        connection = self._connection
        self._capabilities = self._given or row.capabilities_of(connection.base_model or name, connection.wire)
        self._cache_layers: tuple[Layer, ...] | None = None
        self._open_names: set[str] = set()
        self._backend = make_backend(row, name, connection, self._capabilities, self.model)
        key, base_url, self._total = connection.api_key, connection.base_url, connection.limits().total
        self._target = TargetKey(
            row.prefix, base_url and redact_url(base_url), hash(key) if isinstance(key, str) else None, self.model
        )
        # A model inside this process (a backend without a package of its own) has no limits that could be met.
        self._limiter = None
        if self._limit is not False and (row.needs or not row.backend):
            start = 4 if "//localhost" in str(row.base_url) else 32
            self._limiter = limiter_of(self._target, self._limit, start=start, clock=timed(self._retry.clock))
        self._load_fallbacks(self._total)

    def _load_fallbacks(self, total: float | None) -> None:
        """Make the targets behind the model. ``total``: seconds of a whole call."""
        self._failover = None
        if self._on_filter != "raise":
            from sigwire.lm.policy.failover.routing import check_on_filter

            check_on_filter(self._on_filter, "making an LM")
        if self._fallbacks:
            from sigwire.lm.policy.failover.fallbacks import Fallbacks

            self._failover = Fallbacks(
                self._fallbacks, lambda name: self.sibling(name)._own_target(), total, self._on_filter, self._time()
            )

    def _time(self) -> Callable[[], float]:
        clock = timed(self._retry.clock)
        return time.monotonic if clock is None else clock.now

    def _steps(self, request: Request, *, streamed: bool) -> Steps[Response]:
        if self._failover is None:
            return self._own_steps(request, streamed)
        return self._failover.steps(self._own_target(), request, streamed=streamed)

    def _own_steps(self, request: Request, streamed: bool, haste: Haste = NO_HASTE) -> Steps[Response]:
        """Answer without fallbacks."""
        call, choice = self._call(request, streamed)
        if haste is not NO_HASTE:
            call.hurry(haste)
        outer = self._outer_layers(choice)
        return through(outer, call, partial(self._answer, call)) if outer else self._answer(call)

    def _holds(self, request: Request) -> bool:
        """Return True if the cache has the answer."""
        call, choice = self._call(request, streamed=False)
        return cache_state(self._backend, call.request, choice or choice_of(self.cache)) == "hit"

    def _call(self, request: Request, streamed: bool) -> tuple[Call, CacheChoice | None]:
        if self._removed:
            raise ConfigurationError(
                f"{self.model} was unpickled or loaded without {', '.join(self._removed)} (making a request): pickles hold no "
                f"secrets, and a file is not trusted with addresses. Pass it again, lm.copy({self._removed[0]}=...), or keep "
                "keys in the environment."
            )
        request, choice = self._with_options(request)
        return Call(request, self._target, streamed=streamed, timeout=self._total), choice

    def _draft(self, request: Request) -> RequestDraft:
        from sigwire.lm.preview.draft import draft_of  # only previews need it

        call, choice = self._call(request, streamed=False)
        return draft_of(self._backend, call, choice or choice_of(self.cache), self._price)

    def _answer(self, call: Call) -> Steps[Response]:
        call.layers = self._layers()  # a hit needs none
        return self._backend.answer(call)

    def _outer_layers(self, choice: CacheChoice | None) -> tuple[Layer, ...]:
        """Return the layers around a whole answer, the outermost first. ``choice``: that of the request, if it has one."""
        if choice is not None or self.cache is not True:
            return cache_layers(self._backend, choice or choice_of(self.cache))
        if self._cache_layers is None:
            self._cache_layers = cache_layers(self._backend, choice_of(True))
        return () if is_off() else self._cache_layers

    def _layers(self) -> tuple[Layer, ...]:
        """Return the layers around each exchange of an answer, the outermost first."""
        policy, limiter, budgets = self._policy(), self._limiter, open_budgets()
        if not budgets and self._price is None:
            return (policy,) if limiter is None else (policy, limiter)
        from sigwire.lm.policy.money.leases import money_layers  # only budgets and prices need it

        return policy, *money_layers(budgets, self._price, self.capabilities.max_output_tokens, limiter)

    def _with_options(self, request: Request) -> tuple[Request, CacheChoice | None]:
        """Return the request with all options but those for the cache, and their choice if there are any."""
        options = {name: value for name, value in self.kwargs.items() if value is not None}
        choice = None
        if not (request.options or options):
            return self.prepare_request(request), None
        if ALIASES.isdisjoint(options) and ALIASES.isdisjoint(request.options):
            options |= request.options
        else:
            options = {**canonical_options(options), **canonical_options(request.options)}
        if not _OWN_OPTIONS.isdisjoint(options):
            self._check_request_options(options.keys() & _MODEL_OPTIONS)
            options, choice = read_choice(options, self.cache)
        request = request if options == request.options else request.with_options(options)
        return self.prepare_request(request), choice

    def prepare_request(self, request: Request) -> Request:
        """Return the request with the options of a call in the form that the codec takes. A subclass may translate options.

        Options that no wire has are moved to ``extra_body`` if the model takes any. Raises ``UnsupportedOption`` for a
        misspelt one.
        """
        unknown = request.options.keys() - COMMON_OPTIONS if self._takes_any() else ()
        if not unknown or not (unknown := unknown - self._known_options()):
            return request
        if not unknown <= self._open_names:
            self.check_options(unknown, "making a request")
            self._open_names |= unknown
        return request.with_options(move_options(request.options, unknown, self._open_path()))

    def _takes_any(self) -> bool:
        return self.open_options or getattr(self._backend, "takes_any_option", False)

    def _known_options(self) -> frozenset[str]:
        list_names: Callable[[], Iterable[Collection[str] | None]] | None = getattr(self._backend, "option_names", None)
        return COMMON_OPTIONS.union(*(names or () for names in (list_names() if list_names is not None else ())))

    def _open_path(self) -> str:
        find: Callable[[], str] | None = getattr(self._backend, "open_path", None)
        path = find() if find is not None else ""
        return f"{path}." if path else ""

    def _check_request_options(self, names: Collection[str]) -> None:
        if names:
            raise ConfigurationError(
                f"{min(names)} is no option of one request (calling {self.model}). Give it to the model: "
                f"LM({self.model!r}, {min(names)}=...) or lm.copy({min(names)}=...)."
            )

    def check_options(self, options: Iterable[str], stage: str = "making an LM") -> None:
        """Raise ``UnsupportedOption`` for a name that no wire of the model knows. Loads a wire for uncommon names only.

        A model that takes any option refuses a name that is similar to a known one.
        """
        unknown = {*options} - COMMON_OPTIONS - self.own_options
        if not unknown:
            return
        known = set(COMMON_OPTIONS)
        list_names: Callable[[], Iterable[Collection[str] | None]] | None = getattr(self._backend, "option_names", None)
        for names in list_names() if list_names is not None else (None,):
            if names is None or unknown <= (known := known | {*names}):
                return
        hints = {name: _hint(name, known | self.own_options) for name in sorted(unknown - known)}
        refused = next((name for name, hint in hints.items() if hint or not self._takes_any()), None)
        if refused is not None:
            raise UnsupportedOption(
                provider=self._target.provider, option=refused, known=sorted(known), stage=stage, hint=hints[refused]
            )

    def logprobs_refusal(self, request: Request) -> str | None:
        """Return why a request for log probabilities of tokens would be refused or sent without; ``None`` if it is sent."""
        find: Callable[[Request], str | None] | None = getattr(self._backend, "logprobs_refusal", None)
        if find is None:
            return "no tokens come with its answers"
        return find(self._with_options(request)[0])

    def _policy(self) -> RetryPolicy:
        if self._retry.retries != self.num_retries:
            self._retry = replace(self._retry, retries=self.num_retries)
        return self._retry

    def health(self) -> HealthTable:
        """Return the health of the model and its fallbacks, in the order in which a call asks them.

        The health of a model is kept while it has fallbacks or is a target of a router.
        """
        from sigwire.lm.policy.failover.routing import Routing

        own = self._own_target()
        return Routing(clock=self._time()).table([own]) if self._failover is None else self._failover.table(own)

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections, also of models that share the transport. Optional: they expire, and new ones are opened.

        ``with LM(...) as lm:`` and ``async with`` close them at the end of the block.
        """
        self._backend.close()

    @property
    def base_url(self) -> str | None:
        """The base URL given in code; ``None`` if the provider table or the environment decides."""
        return self._connection.base_url

    @property
    def address(self) -> str | None:
        """The base URL of requests now, without secrets; ``None`` for a model inside this process."""
        return None if (find := getattr(self._backend, "address", None)) is None else find()

    def masked(self, text: str) -> str:
        """Return a text without the secrets that this model was given; a key of the environment is not looked up."""
        known = self._connection
        return redact(text, self.kwargs, known.api_key, known.base_url, known.headers, known.variables)

    @property
    def timeout(self) -> float | Timeout | None:
        """The time limits given in code; ``None`` for the defaults."""
        return self._connection.timeout

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model."""
        return self._capabilities or super().capabilities

    @capabilities.setter
    def capabilities(self, capabilities: Capabilities) -> None:
        self._given = capabilities
        self._connect()

    def __repr__(self) -> str:
        shown: list[str] = []
        if "_connection" in vars(self):  # else its making failed
            shown += [f"fallbacks={[*self._fallbacks]!r}"] if self._fallbacks else []
            shown += [f"on_filter={self._on_filter!r}"] if self._on_filter != "raise" else []
            shown += self._connection.masked_arguments()
        return f"{super().__repr__()[:-1]}{''.join(f', {setting}' for setting in shown)})"

    def copy(self, **updates: Any) -> Self:
        """Return the model with changes to its options, its connection options or its ``model``.

        A model of another provider gets the key, headers and base URL of the table or of this call.

        >>> LM("openai/gpt-5-mini", temperature=0.5).copy(base_url="https://llm.example/v1", temperature=1.0)
        LM('openai/gpt-5-mini', temperature=1.0, base_url='https://llm.example/v1')
        """
        updates = dict(wrap_secrets(updates))
        if "api_base" in updates:
            updates["base_url"] = updates.pop("api_base")
        row, _ = find_provider(updates.get("model", self.model))
        given = {name: updates.pop(name) for name in _CONNECTION & updates.keys()}
        variables = {name: updates.pop(name) for name in row.variables.keys() & updates.keys()}
        retry, capabilities = updates.pop("retry", None), updates.pop("capabilities", self._given)
        limit = read_limit(updates.pop("limit", self._limit))
        price = updates.pop("price", self._price if updates.get("model", self.model) == self.model else None)
        fallbacks, on_filter = updates.pop("fallbacks", self._fallbacks), updates.pop("on_filter", self._on_filter)
        check_choice(updates, "copying an LM")
        _check_arguments(retry, capabilities)
        check_price(price)
        new = super().copy(**updates)
        kept = self._connection if _host(new.model) == _host(self.model) else self._connection.foreign_host()
        if new.model != self.model:  # the rules are of one model
            given.setdefault("base_model", None)
        settled = {*given, *(HOST_BOUND_OPTIONS if kept is not self._connection else ())}
        new._removed = tuple(name for name in new._removed if name not in settled)
        new._connection = replace(kept, **given, variables={**kept.variables, **variables})
        if retry is not None:
            new._retry, new.num_retries = retry, retry.retries
        new._given, new._limit, new._price = capabilities, limit, price
        new._fallbacks, new._on_filter = fallbacks, on_filter
        new._connect()
        new._policy()
        new.check_options(new.kwargs, "copying an LM")
        check_prompt_cache(new.kwargs)
        return new

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

    def __getstate__(self) -> dict[str, object]:
        state, kept = super().__getstate__(), self._connection.without_secrets()
        names = ("api_key", "base_url", "headers")
        removed = [name for name in names if getattr(kept, name) != getattr(self._connection, name)]
        for made in ("_backend", "_cache_layers", "_target", "_limiter", "_failover"):
            del state[made]
        return {**state, "_connection": kept, "_removed": (*cast("tuple[str, ...]", state["_removed"]), *removed)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._connect()

    def dump_state(self) -> JsonObject:
        """Return the state that rebuilds the model, as JSON: no key, no headers, no transport.

        Raises ``StateError`` for a model that lost its address: the file would mean another host.
        """
        if "base_url" in self._removed:
            raise StateError(
                f"{self.model} was unpickled or loaded without its base_url (dumping its state): the file would mean another "
                "host. Pass it again, lm.copy(base_url=...)."
            )
        connection, limit = self._connection, list(astuple(self._limit)) if self._limit else self._limit
        timeout = connection.timeout.dump() if isinstance(connection.timeout, Timeout) else connection.timeout
        address = connection.base_url and redact_url(connection.base_url)
        settings = {"base_url": address, "timeout": timeout, "wire": connection.wire, "limit": limit}
        settings["base_model"] = connection.base_model
        given = {name: value for name, value in settings.items() if value is not None}
        return {**super().dump_state(), **self._dump_fallbacks(), **storable_options({**given, **connection.variables})}

    def _dump_fallbacks(self) -> JsonObject:
        if not self._fallbacks:
            return {}
        from sigwire.lm.policy.failover.fallbacks import dump_models

        rest: JsonObject = {} if self._on_filter == "raise" else {"on_filter": self._on_filter}
        return {"fallbacks": dump_models(self._fallbacks), **rest}

    @classmethod
    def _options_of(cls, state: Mapping[str, object], trusted: bool) -> dict[str, Any]:
        if "fallbacks" not in state:
            return super()._options_of(state, trusted)
        from sigwire.lm.policy.failover.fallbacks import load_models

        models = load_models(state["fallbacks"], partial(BaseLM.load_state, allow_unsafe_lm_state=trusted))
        return {**super()._options_of({**state, "fallbacks": []}, trusted), "fallbacks": models}


_CONNECTION = frozenset({"api_key", "base_model", "base_url", "headers", "timeout", "transport", "wire"})
_TRANSPORT_OPTIONS = frozenset(
    "ca certificate connect_timeout idle_timeout keep_alive max_reply proxy tls trust_env".split()
)
_TRANSPORT_HINT = "It is an option of the transport: LM(..., transport=sigwire.lm.http.HttpTransport({name}=...)). "
_MODEL_HINT = "It is an argument of the model: LM(..., {name}=...) or lm.copy({name}=...). "
_MODEL_OPTIONS = (_CONNECTION | {"api_base", "limit", "price", "fallbacks", "on_filter"}) - {"wire"}
_OWN_OPTIONS = _MODEL_OPTIONS | CHECKED_OPTIONS


def _hint(name: str, known: Iterable[str]) -> str:
    """Return what to write in place of an unknown option; "" if no name is similar."""
    arguments = LM.__init__.__kwdefaults__ or ()
    text = _TRANSPORT_HINT if name in _TRANSPORT_OPTIONS else _MODEL_HINT if name in arguments else ""
    return text.format(name=name) or suggest(name, [*known, *arguments])


def _check_arguments(retry: object, capabilities: object) -> None:
    for name, value, kind in (("retry", retry, RetryPolicy), ("capabilities", capabilities, Capabilities)):
        if value is not None and not isinstance(value, kind):
            raise ConfigurationError(f"{name} is a {kind.__name__}, not {type(value).__name__} (making an LM).")


def _host(model: str) -> tuple[str, str]:
    """Return the row of a model, and the provider behind a row that forwards to others."""
    row, name = find_provider(model)
    return row.prefix, name.partition("/")[0] if row.backend else ""
