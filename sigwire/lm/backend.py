"""Backends: the objects that answer the calls for one model, and how a row of the provider table becomes one."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Collection, Iterable
from functools import partial
from typing import Protocol, cast

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.errors import ConfigurationError
from sigwire.lm.http_backend import HttpBackend
from sigwire.lm.policy.call import Call, answer_once
from sigwire.lm.providers.connection import ConnectionOptions
from sigwire.lm.providers.registry import PROVIDERS, suggest_provider
from sigwire.lm.providers.row import Provider

__all__ = ["BACKENDS", "Backend", "SimpleBackend", "SimpleBackendAdapter", "make_backend", "move_options"]

BACKENDS = {"bridge": "sigwire.lm.litellm.backend:connect", "embedded": "sigwire.lm.offline:connect"}
"""The backends without HTTP, by their names in rows. A row of a user has ``module:function`` in place of a name."""


class Backend(Protocol):
    """Answers the calls for one model."""

    def answer(self, call: Call) -> Steps[Response]:
        """Answer, with each exchange inside the call's layers; if the call is streamed, emit the answer's events."""
        ...

    def close(self) -> None:
        """Close idle connections."""
        ...

    def option_names(self) -> Iterable[Collection[str] | None]:
        """Return collections of the options that the backend knows, in the order of use; ``None``: it may know any.

        A backend with ``takes_any_option`` gets unknown options in ``extra_body``, below its ``open_path()`` if it has one.
        """
        ...


class SimpleBackend(Protocol):
    """Answers the requests for one model, blocking and awaited."""

    def answer(self, request: Request) -> Response: ...

    async def aanswer(self, request: Request) -> Response: ...


def make_backend(
    provider: Provider, name: str, connection: ConnectionOptions, capabilities: Capabilities, model: str
) -> Backend:
    """Return the backend for a model of a row; ``model`` is the caller's name of it. Opens nothing.

    Raises ``ConfigurationError`` for a wire that the row does not have, and for an extra that is not installed.
    """
    if provider.needs and importlib.util.find_spec(provider.needs) is None:
        known = ", ".join(sorted(row for row in PROVIDERS if not PROVIDERS[row].needs))
        raise ConfigurationError(
            f"{name!r} is reached through {provider.needs}, which is not installed (making an LM). {suggest_provider(name)}"
            f'pip install "sigwire[{provider.needs}]", or use one of the providers that need nothing: {known} '
            "(for example 'offline/lexical')."
        )
    if not provider.backend:
        return HttpBackend(provider, name, connection, capabilities, model)
    module, _, function = BACKENDS.get(provider.backend, provider.backend).partition(":")
    backend = getattr(importlib.import_module(module), function)(name, connection)
    if not hasattr(backend, "aanswer"):
        return cast(Backend, backend)
    return SimpleBackendAdapter(backend, is_in_process=provider.backend == "embedded")


def move_options(options: JsonObject, names: Collection[str], path: str) -> JsonObject:
    """Return the options with those of the ``names`` moved to ``extra_body``, below ``path``. What is there already wins.

    >>> move_options({"seed": 1, "foo": 2, "extra_body": {"own": 3}}, ["foo"], "")
    {'seed': 1, 'extra_body': {'foo': 2, 'own': 3}}
    """
    from sigwire.lm.codecs.shared.options import merge_objects, set_path  # few calls have such options

    body: JsonObject = {}
    for name in [name for name in options if name in names]:
        set_path(body, f"{path}{name}", options[name])
    given = cast("JsonObject", options.get("extra_body") or {})
    kept = {name: value for name, value in options.items() if name not in names and name != "extra_body"}
    return {**kept, "extra_body": merge_objects(body, given)}


class SimpleBackendAdapter:
    """A ``SimpleBackend`` as a ``Backend``. A streamed call emits the events of the whole answer at its end."""

    def __init__(self, backend: SimpleBackend, *, is_in_process: bool = False) -> None:
        self._backend, self._is_in_process = backend, is_in_process

    def answer(self, call: Call) -> Steps[Response]:
        response = yield from answer_once(call, partial(self._exchange, call))
        if call.streamed:
            from sigwire.lm.stream_events import emit_response  # only streams need events

            yield emit_response(call, response)
        return response

    def close(self) -> None:
        """Do nothing: the row's backend owns what it opens."""

    def option_names(self) -> Iterable[Collection[str] | None]:
        names: Collection[str] | None = getattr(self._backend, "option_names", None)
        return (names,)

    def _exchange(self, call: Call) -> Steps[Response]:
        call.begin(in_process=self._is_in_process)
        request = call.request
        response: Response = yield FunctionEffect(
            partial(self._backend.answer, request), partial(self._backend.aanswer, request)
        )
        return response
