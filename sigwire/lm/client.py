"""``LM("provider/model")``: the model object for the rows of the provider table.

Decides which options go with a request (the model's own, then the request's) and how often a failed trip is made again.
How the provider is reached is a ``ConnectionOptions``, kept apart from the options: nothing of it is sent as one, and nothing
secret in it is shown or stored. What answers is the row's backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.lm.backend import make_backend
from sigwire.lm.base import BaseLM
from sigwire.lm.http.urls import redact_url
from sigwire.lm.option_aliases import canonical_options
from sigwire.lm.policy.call import Call, TargetKey
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.lm.providers.connection import HOST_BOUND_OPTIONS, ConnectionOptions
from sigwire.lm.providers.registry import find_provider
from sigwire.lm.secrets import storable_options

if TYPE_CHECKING:
    from sigwire.lm.http.messages import Transport

__all__ = ["LM"]


class LM(BaseLM):
    """A language model by its name: ``provider/model``.

    ``temperature``, ``max_tokens`` and further keyword arguments go with every request and live in ``kwargs``; options of a
    single request win over them. ``capabilities`` replaces what the table says the model can do.

    How the provider is reached, each only where it is not as the table says: ``api_key`` (else read from the environment
    when a request is sent; a function is called for each request), ``base_url`` (``api_base`` is the same), ``timeout``
    in seconds for a whole request, ``headers`` for every request, ``transport`` (a client of your own), ``wire`` (which
    of the provider's wires to use), and what the row's URL needs (``project``, ``location``, ``api_version``).
    ``num_retries`` is how often a failed trip is made again; ``retry`` says it in full.

    Making one opens nothing and reads no key. Raises ``ConfigurationError`` for a model that nothing serves.

    >>> lm = LM("offline/lexical")
    >>> lm.capabilities.native_tools
    True
    >>> LM("openai/gpt-5-mini", api_key="a secret", base_url="https://llm.example/v1")
    LM('openai/gpt-5-mini', base_url='https://llm.example/v1', api_key=***)
    """

    def __init__(
        self,
        model: str,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        cache: bool = True,
        callbacks: Sequence[Any] | None = None,
        num_retries: int = 3,
        api_key: str | Callable[[], str] | None = None,
        base_url: str | None = None,
        transport: Transport | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
        wire: str | None = None,
        retry: RetryPolicy | None = None,
        capabilities: Capabilities | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(model, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # users hand in anything
            raise ConfigurationError(f"LM needs a model string such as 'offline/lexical', not {type(model).__name__}.")
        same = kwargs.pop("api_base", None)
        base_url = base_url if base_url is not None else same
        variables = {name: kwargs.pop(name) for name in find_provider(model)[0].variables.keys() & kwargs.keys()}
        super().__init__(
            model, temperature=temperature, max_tokens=max_tokens, cache=cache, callbacks=callbacks,
            num_retries=retry.retries if retry else num_retries, capabilities=capabilities, **kwargs,
        )  # fmt: skip
        self._retry = retry or RetryPolicy(num_retries)
        self._given = capabilities
        self._connection = ConnectionOptions(api_key, base_url, transport, timeout, headers or {}, wire, variables)
        self._connect()

    def _connect(self) -> None:
        row, name = find_provider(self.model)
        self._capabilities = self._given or row.capabilities_of(name)
        connection = self._connection
        self._backend = make_backend(row, name, connection, self._capabilities, self.model)
        key, base_url = connection.api_key, connection.base_url
        self._target = TargetKey(
            row.prefix, base_url and redact_url(base_url), hash(key) if isinstance(key, str) else None, self.model
        )

    # --- asking ----------------------------------------------------------------------------------------

    def _steps(self, request: Request, *, streamed: bool) -> Steps[Response]:
        return self._backend.answer(
            Call(self._with_options(request), self._target, streamed=streamed, layers=(self._policy(),))
        )

    def _with_options(self, request: Request) -> Request:
        if self._left_out:
            raise ConfigurationError(
                f"{self.model} came out of a pickle, which holds no secrets: {', '.join(self._left_out)} was left out. "
                f"Give it again, lm.copy({self._left_out[0]}=...), or keep keys in the environment."
            )
        own = {name: value for name, value in self.kwargs.items() if value is not None}
        if not (own or request.options):
            return request
        options = {**canonical_options(own), **canonical_options(request.options)}
        if misplaced := options.keys() & _OF_THE_MODEL:
            name = min(misplaced)
            raise ConfigurationError(
                f"{name} is no option of one request (asking {self.model}). Give it to the model: "
                f"LM({self.model!r}, {name}=...) or lm.copy({name}=...)."
            )
        return replace(request, options=options) if options != request.options else request

    def _policy(self) -> RetryPolicy:
        if self._retry.retries != self.num_retries:
            self._retry = replace(self._retry, retries=self.num_retries)
        return self._retry

    def close(self) -> None:
        """Close idle connections to the provider, those of other models that share the client too.

        Nobody has to: they close by themselves after a while. The model can be used again.
        """
        self._backend.close()

    # --- what is known of it -----------------------------------------------------------------------------

    @property
    def base_url(self) -> str | None:
        """The address that was given; ``None`` where the provider table or the environment says."""
        return self._connection.base_url

    @property
    def timeout(self) -> float | None:
        """Seconds for a whole request; ``None`` leaves it to the transport."""
        return self._connection.timeout

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return super().capabilities

    @capabilities.setter
    def capabilities(self, capabilities: Capabilities) -> None:
        self._given = capabilities
        self._connect()

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}{''.join(f', {piece}' for piece in self._connection.masked_arguments())})"

    # --- copies and state --------------------------------------------------------------------------------

    def copy(self, **updates: Any) -> Self:
        """The same model with changes, to how it is reached too; another ``model`` is looked up in the table again.

        A model of another provider is reached as the table says, or as is said here: the key, the headers and the address that
        were given are the first provider's.

        >>> LM("openai/gpt-5-mini", temperature=0.5).copy(base_url="https://llm.example/v1", temperature=1.0)
        LM('openai/gpt-5-mini', temperature=1.0, base_url='https://llm.example/v1')
        """
        if "api_base" in updates:
            updates["base_url"] = updates.pop("api_base")
        row, _ = find_provider(updates.get("model", self.model))
        reached = {name: updates.pop(name) for name in _CONNECTION & updates.keys()}
        variables = {name: updates.pop(name) for name in row.variables.keys() & updates.keys()}
        retry, capabilities = updates.pop("retry", None), updates.pop("capabilities", self._given)
        new = super().copy(**updates)
        known = self._connection if _host(new.model) == _host(self.model) else self._connection.foreign_host()
        settled = {*reached, *(HOST_BOUND_OPTIONS if known is not self._connection else ())}
        new._left_out = tuple(name for name in new._left_out if name not in settled)
        new._connection = replace(known, **reached, variables={**known.variables, **variables})
        if retry is not None:
            new._retry, new.num_retries = retry, retry.retries
        new._given = capabilities
        new._connect()
        return new

    def __getstate__(self) -> dict[str, Any]:
        state, bare = super().__getstate__(), self._connection.without_secrets()
        lost = [
            name
            for name in ("api_key", "base_url", "headers")
            if getattr(bare, name) != getattr(self._connection, name)
        ]
        del state["_backend"], state["_target"]
        return {**state, "_connection": bare, "_left_out": (*state["_left_out"], *lost)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._connect()

    def dump_state(self) -> JsonObject:
        """What is needed to build the model again, as JSON: no key, no headers, no client."""
        connection = self._connection
        reached = {"base_url": connection.base_url, "timeout": connection.timeout, "wire": connection.wire}
        given = {name: value for name, value in reached.items() if value is not None}
        return {**super().dump_state(), **storable_options({**given, **connection.variables})}


_CONNECTION = frozenset({"api_key", "base_url", "headers", "timeout", "transport", "wire"})
_OF_THE_MODEL = (_CONNECTION | {"api_base"}) - {"wire"}


def _host(model: str) -> tuple[str, str]:
    """Who is asked for a model: its row, and behind a row that passes names on, the provider there."""
    row, name = find_provider(model)
    return row.prefix, name.partition("/")[0] if row.backend else ""
