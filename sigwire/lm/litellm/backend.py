"""The LiteLLM backend: answers for models of every provider without a row of its own (ADR 0017).

LiteLLM is an extra; the first request imports it, which takes seconds. Its settings: no price table from the network,
no telemetry, one exchange a call, no tool runs. Releases that were tampered with are refused before their import.
``codec`` has the JSON, ``effects`` the calls.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
import threading
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.gather import Gather
from sigwire.effects.loops import to_thread
from sigwire.effects.steps import FunctionEffect, Steps, run
from sigwire.errors import ConfigurationError, LMAuthenticationError
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.shared.choices import join_responses
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.http.reply_mask import ReplyMask, mask_of, sent_secrets
from sigwire.lm.litellm.codec import (
    ENCODING_VERSION,
    LiteLLMDecoder,
    decode_answer,
    encode_call,
    target_for,
    translate_error,
)
from sigwire.lm.litellm.effects import CompletionEffect, LiteLLMStream, emit_stream, to_json_value
from sigwire.lm.litellm.tables import LITELLM, NO_KEY, REFUSED_RELEASES, LiteLLMProfile
from sigwire.lm.policy.call import Call, answer_once
from sigwire.lm.policy.deadlines import shorter
from sigwire.lm.secrets import Secret, redact_url
from sigwire.lm.stream_events import emit_response

if TYPE_CHECKING:
    from sigwire.lm.providers.connection import ConnectionOptions

__all__ = ["LiteLLM", "check_release", "connect"]

_MAX_PARALLEL = 8  # exchanges at once for the choices of one call


def connect(name: str, connection: ConnectionOptions) -> LiteLLM:
    """Return the backend for one of LiteLLM's models ("bedrock/..."). Imports nothing and opens nothing.

    Raises ``ConfigurationError`` if LiteLLM is not installed or was tampered with, and for the connection options that it
    does not support, ``transport`` and ``wire``.
    """
    check_release()
    for setting in ("transport", "wire"):
        if getattr(connection, setting) is not None:
            raise ConfigurationError(
                f"litellm/{name} goes through LiteLLM, which does not support {setting}=... (making an LM). Leave it out, "
                "or use a provider with a row of its own."
            )
    return LiteLLM(name, connection)


class _Prepared(NamedTuple):
    litellm: Any
    target: Target[LiteLLMProfile]
    arguments: JsonObject
    sent: EncodedRequest


class LiteLLM:
    """Answers through LiteLLM for one model. LiteLLM takes any option, its own and those of the upstream."""

    takes_any_option = True

    def __init__(self, model: str, connection: ConnectionOptions) -> None:
        self._model, self._connection = model, connection
        self._target: Target[LiteLLMProfile] | None = None

    def answer(self, call: Call) -> Steps[Response]:
        """Answer a call. Raises ``CallerError`` before anything is sent, and ``LMError`` for a failed call."""
        return answer_once(call, partial(self._exchange, call))

    def first_arguments(self, call: Call) -> tuple[JsonObject, EncodedRequest]:
        """Return the arguments of LiteLLM's function, without a key, and the encoded request of a call."""
        unkeyed = replace(self._connection, api_key=None)
        prepared = run(LiteLLM(self._model, unkeyed)._prepare(call))
        return prepared.arguments, prepared.sent

    def identity(self, request: Request) -> bytes | None:
        """Return what decides an answer beside the request, as JSON."""
        from sigwire.lm.policy.cache.keys import canonical_bytes, plain_headers

        base_url = self._connection.base_url
        where = None if base_url is None else redact_url(base_url)
        return canonical_bytes(
            ["litellm", ENCODING_VERSION, self._model, where, plain_headers(self._connection.headers)]
        )

    def close(self) -> None:
        """Do nothing: LiteLLM owns its connections."""

    def option_names(self) -> Iterable[Collection[str] | None]:
        """Return the options of all upstreams. Those of this upstream are known when LiteLLM is imported."""
        rows = {**openai_chat.OPTIONS, **LITELLM.options}
        return ({name for name, option in rows.items() if option is not None},)

    def _exchange(self, call: Call) -> Steps[Response]:
        call.begin()
        prepared = yield from self._prepare(call, stream=call.streamed)
        try:
            return (yield from self._answer(call, prepared))
        except LMAuthenticationError as error:
            fresh = self._connection.fresh_key()
            error.key_changed = error.status != 403 and fresh not in (None, prepared.arguments.get("api_key"))
            raise

    def _answer(self, call: Call, prepared: _Prepared) -> Steps[Response]:
        if call.streamed and prepared.sent.repeat == 1:
            litellm, target, arguments, sent = prepared
            translate = partial(translate_error, target=target, arguments=arguments)
            stream = LiteLLMStream(litellm, arguments)
            decoder = LiteLLMDecoder(sent, target, _mask(arguments))
            return (yield from emit_stream(call, stream, decoder, translate))
        if call.streamed:
            prepared = yield from self._prepare(call)
        response = yield from _complete_all(prepared)
        if call.streamed:
            yield emit_response(call, response)
        return response

    def target_of(self, request: Request) -> Target[LiteLLMProfile]:
        """Return the target for which the request would be encoded; LiteLLM's list of options is not read."""
        return self._target or target_for(self._model, None)

    def _prepare(self, call: Call, *, stream: bool = False) -> Steps[_Prepared]:
        litellm = yield FunctionEffect(_load, _aload)
        target = self._target = self._target or target_for(self._model, _listed_parameters(litellm, self._model))
        arguments, sent = encode_call(call.request, target, stream=stream)
        arguments |= self._endpoint_arguments(sent)
        if (seconds := shorter(self._connection.limits().exchange, call.remaining())) is not None:
            arguments["timeout"] = seconds
        return _Prepared(litellm, target, arguments, sent)

    def _endpoint_arguments(self, sent: EncodedRequest) -> JsonObject:
        connection = self._connection
        key = Secret(connection.api_key()) if callable(connection.api_key) else connection.api_key
        if key is None and connection.base_url is not None:
            key = NO_KEY
        arguments: JsonObject = {
            "api_key": key,
            "api_base": connection.base_url,
            "extra_headers": {**connection.headers, **sent.headers} or None,
        }
        return {name: value for name, value in arguments.items() if value is not None}


def _complete_all(prepared: _Prepared) -> Steps[Response]:
    if prepared.sent.repeat == 1:
        return (yield from _complete(prepared))
    responses: list[Response] = yield Gather(
        [_complete(prepared) for _ in range(prepared.sent.repeat)], limit=_MAX_PARALLEL
    )
    return join_responses(responses)


def _complete(prepared: _Prepared) -> Steps[Response]:
    litellm, target, arguments, sent = prepared
    try:
        answer = yield CompletionEffect(litellm, arguments)
    except Exception as error:  # LiteLLM and the packages below it raise anything; their texts and frames show the key
        raise translate_error(error, target, arguments) from None
    return decode_answer(_mask(arguments).value(to_json_value(answer)), sent, target)


def _mask(arguments: JsonObject) -> ReplyMask:
    """Return the mask of the secrets that LiteLLM got."""
    secret = (arguments.get(name) for name in ("api_key", "api_base", "extra_headers"))
    return mask_of(sent_secrets(*secret, arguments))


def _listed_parameters(litellm: Any, model: str) -> Collection[str] | None:
    try:
        return cast("Collection[str] | None", litellm.get_supported_openai_params(model))
    except Exception:  # an unknown model: the call raises the error
        return None


def check_release() -> None:
    """Raise ``ConfigurationError`` unless LiteLLM is installed in a release that may be imported. Imports nothing."""
    try:
        release = importlib.metadata.version("litellm")
    except importlib.metadata.PackageNotFoundError:
        raise ConfigurationError(
            "This model goes through LiteLLM, which is not installed (making an LM). "
            'Run pip install "sigwire[litellm]", or use a provider with a row of its own.'
        ) from None
    if release in REFUSED_RELEASES:
        raise ConfigurationError(
            f"LiteLLM {release} is installed, a release that was tampered with and steals credentials; it was not imported. "
            "Uninstall it, replace every key and password that this machine could read, and then run "
            'pip install "sigwire[litellm]".'
        )


async def _aload() -> Any:
    """Import LiteLLM in a thread: the import takes seconds."""
    return _load() if _load.cache_info().currsize else await to_thread(_load)


_LOCAL_PRICES = "LITELLM_LOCAL_MODEL_COST_MAP"
_load_lock = threading.Lock()


@functools.cache
def _load() -> Any:
    check_release()
    with _load_lock:
        before = os.environ.get(_LOCAL_PRICES)
        os.environ[_LOCAL_PRICES] = "True"  # read during the import, which would fetch a price table over the network
        try:
            litellm: Any = importlib.import_module("litellm")
        finally:
            if before is None:
                del os.environ[_LOCAL_PRICES]
            else:
                os.environ[_LOCAL_PRICES] = before
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    return litellm
