"""``LM("provider/model")``: the model object for the rows of the provider table.

Decides only which options go with a request: the model's own, then the request's. What answers is the row's backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import ConfigurationError
from sigwire.lm.base import BaseLM
from sigwire.lm.providers import find_provider

__all__ = ["LM"]


class LM(BaseLM):
    """A language model by its name: ``provider/model``.

    ``temperature``, ``max_tokens`` and further keyword arguments go with every request and live in ``kwargs``; options of a
    single request win over them. ``capabilities`` replaces what the table says the model can do. Raises
    ``ConfigurationError`` for a model that no row of the table serves.

    >>> lm = LM("offline/lexical")
    >>> lm.capabilities.native_tools
    True
    >>> lm
    LM('offline/lexical')
    """

    def __init__(
        self,
        model: str,
        model_type: str = "chat",
        temperature: float | None = None,
        max_tokens: int | None = None,
        cache: bool = True,
        callbacks: Sequence[Any] | None = None,
        num_retries: int = 3,
        *,
        capabilities: Capabilities | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(model, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # users hand in anything
            raise ConfigurationError(f"LM needs a model string such as 'offline/lexical', not {type(model).__name__}.")
        super().__init__(
            model, model_type, temperature, max_tokens, cache,
            callbacks=callbacks, num_retries=num_retries, capabilities=capabilities, **kwargs,
        )  # fmt: skip
        self._connect(capabilities)

    def _connect(self, capabilities: Capabilities | None = None) -> None:
        provider, name = find_provider(self.model)
        self._backend = provider.connect(name)
        self._capabilities = capabilities or provider.models[name]

    def copy(self, **updates: Any) -> Self:
        """The same model with changes; another ``model`` is looked up in the table again."""
        new = super().copy(**updates)
        if new.model != self.model:
            new._connect(updates.get("capabilities"))
        return new

    def _answer(self, request: Request) -> Response:
        return self._backend.answer(self._with_options(request))

    async def _aanswer(self, request: Request) -> Response:
        return await self._backend.aanswer(self._with_options(request))

    def _with_options(self, request: Request) -> Request:
        own = {name: value for name, value in self.kwargs.items() if value is not None}
        return replace(request, options={**own, **request.options}) if own else request
