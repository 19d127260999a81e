"""LiteLLM's options of a model, which programs for DSPy pass to ``LM``: their names here, and what becomes of them. Data first.

``read_options`` is for the making of a model, ``translate`` for each request. Models of ``litellm/...`` pass the options on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from sigwire.core.json import JsonValue
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError, warn_user
from sigwire.lm.openai_dicts import decode_response_format, get
from sigwire.lm.providers.registry import find_provider
from sigwire.lm.providers.row import Provider

__all__ = ["TRANSLATED", "ModelOptions", "chat_name", "read_options", "translate"]

# Arguments of ``LM`` by LiteLLM's names.
_ARGUMENTS: Mapping[str, str] = {
    "aws_bedrock_runtime_endpoint": "base_url",
    "azure_ad_token": "api_key",
    "azure_ad_token_provider": "api_key",
    "request_timeout": "timeout",
}
# Variables of rows. They have no effect on other rows, as with LiteLLM.
_VARIABLES: Mapping[str, str] = {
    "api_version": "api_version",
    "aws_profile_name": "profile",
    "aws_region_name": "region",
    "vertex_ai_location": "location",
    "vertex_ai_project": "project",
    "vertex_location": "location",
    "vertex_project": "project",
}
_OPTIONS: Mapping[str, str] = {"guardrailConfig": "guardrail_config", "guardrailIdentifier": "guardrail_identifier"}
_HEADERS: Mapping[str, str] = {"organization": "OpenAI-Organization"}

# Options that sign requests. They are secrets by their names: no file holds them, or is read for them.
_GOOGLE_KEYS = ("vertex_credentials", "vertex_ai_credentials")
_AWS_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_NO_EFFECT = frozenset(
    "base_model caching context_window_fallback_dict cooldown_time custom_prompt_dict force_timeout input_cost_per_second "
    "input_cost_per_token litellm_call_id litellm_metadata litellm_session_id litellm_trace_id logger_fn max_parallel_requests "
    "max_retries merge_reasoning_content_in_choices model_info output_cost_per_second output_cost_per_token retry_policy "
    "retry_strategy rpm ssl_verify stream stream_options stream_timeout supports_system_message tags tpm ttl "
    "turn_off_message_logging use_litellm_proxy verbose".split()
)
_INSTEAD: Mapping[str, str] = {
    "mock_response": "Use DummyLM, which answers without a provider.",
    **dict.fromkeys(
        ("aws_external_id", "aws_role_name", "aws_session_name", "aws_sts_endpoint", "aws_web_identity_token"),
        "Name a profile with the role (aws_profile_name=...), or pass transport=sigwire.lm.providers.aws.aws_transport(...).",
    ),
    **dict.fromkeys(
        ("azure_password", "azure_scope", "azure_username", "client_id", "client_secret", "tenant_id"),
        "Pass azure_ad_token_provider=..., a function of azure-identity.",
    ),
}

TRANSLATED = _NO_EFFECT | frozenset(
    "additional_drop_params allowed_openai_params cache_control_injection_points drop_params response_format".split()
)
"""Options of a model or a request that ``translate`` handles."""

# What drop_params leaves out if the host does not have it.
_OPENAI_PARAMS = frozenset(
    "frequency_penalty logit_bias logprobs metadata parallel_tool_calls prediction presence_penalty safety_identifier seed "
    "service_tier top_logprobs user verbosity".split()
)
_TEXT = "text-completion-openai/"


class ModelOptions(NamedTuple):
    """The name and the options of a model, as ``sigwire.LM`` takes them."""

    model: str
    options: dict[str, Any]


def read_options(model: str, model_type: str, given: Mapping[str, Any]) -> ModelOptions:
    """Return the model and its options by the names of ``sigwire.LM``.

    A model of ``model_type="text"`` is reached through LiteLLM. Raises ``ConfigurationError`` for an option that would
    change what a call does and has no counterpart.

    >>> read_options("vertex_ai/gemini-2.5-pro", "chat", {"vertex_project": "p", "request_timeout": 3}).options == {
    ...     "project": "p", "timeout": 3
    ... }
    True
    >>> read_options("gpt-4o", "chat", {"custom_llm_provider": "azure"}).model
    'azure/gpt-4o'
    """
    options = dict(given)
    provider = options.pop("custom_llm_provider", None)
    if provider and model.partition("/")[0] != provider:
        model = f"{provider}/{model}"
    if model_type == "text" and not model.startswith(_TEXT):
        model = _TEXT + model.partition("/")[2] if "/" in model else _TEXT + model
    row, _ = find_provider(model)
    for name, argument in _ARGUMENTS.items():
        _rename(options, name, argument)
    headers = {header: options.pop(name) for name, header in _HEADERS.items() if options.get(name) is not None}
    if headers:
        options["headers"] = {**headers, **(options.get("headers") or {})}
    if row.backend != "bridge":
        _read_for_host(model, row, options)
    return ModelOptions(model, options)


def chat_name(model: str, model_type: str) -> str:
    """Return the name of a model for chats, also of a model of ``model_type="text"``.

    >>> chat_name("text-completion-openai/davinci", "text")
    'openai/davinci'
    """
    return _TEXT.removeprefix("text-completion-") + model.removeprefix(_TEXT) if model_type == "text" else model


def _read_for_host(model: str, row: Provider, options: dict[str, Any]) -> None:
    """Change the options of a model that LiteLLM does not reach."""
    for name in sorted(_INSTEAD.keys() & options.keys()):
        raise ConfigurationError(f"{name} is not supported (creating LM({model!r})). {_INSTEAD[name]}")
    for name, argument in _VARIABLES.items():
        if argument in row.variables:
            _rename(options, name, argument)
        else:
            options.pop(name, None)
    for name, argument in _OPTIONS.items():
        _rename(options, name, argument)
    if ignored := sorted(_NO_EFFECT & options.keys()):
        warn_user(
            f"{', '.join(ignored)} would steer LiteLLM, which does not reach {model!r}. Leave it out: it has no effect."
        )
    for name in ignored:
        del options[name]
    keys = {name: options.pop(name) for name in (*_AWS_KEYS, *_GOOGLE_KEYS) if name in options}
    if (signer := _SIGNERS.get(row.authorize)) is not None:
        found = {name: value for name, value in keys.items() if name in signer.names and value}
        if found:
            options["transport"] = signer.make(found, options)


def _rename(options: dict[str, Any], name: str, argument: str) -> None:
    value = options.pop(name, None)
    if value is not None and options.get(argument) is None:
        options[argument] = value


def _aws(keys: Mapping[str, Any], options: Mapping[str, Any]) -> object:
    from sigwire.lm.providers.aws import AWSKeys, aws_transport  # few models have keys of their own

    access, secret, token = (keys.get(name) for name in _AWS_KEYS)
    if not (access and secret):
        raise ConfigurationError(
            "aws_access_key_id and aws_secret_access_key belong together (creating an LM). Pass both, or neither."
        )
    found = AWSKeys(access, secret, token)
    return aws_transport(lambda: found, region=options.get("region"), transport=options.get("transport"))


def _google(keys: Mapping[str, Any], options: Mapping[str, Any]) -> object:
    from sigwire.lm.providers.google import google_transport

    return google_transport(next(iter(keys.values())), transport=options.get("transport"))


class _Signer(NamedTuple):
    """The credentials that requests of a row may be given, and the function that returns a transport with them."""

    names: frozenset[str]
    make: Callable[[Mapping[str, Any], Mapping[str, Any]], object]


_SIGNERS: Mapping[str, _Signer] = {
    "sigwire.lm.providers.aws:sign": _Signer(frozenset(_AWS_KEYS), _aws),
    "sigwire.lm.providers.google:access_token": _Signer(frozenset(_GOOGLE_KEYS), _google),
}
"""By the function that authorizes the requests of a row."""


def translate(request: Request, known: Callable[[], Collection[str]], *, passes_on: bool) -> Request:
    """Return the request with sigwire's form of the options in ``TRANSLATED``.

    ``known``: returns the options of the model. ``passes_on``: LiteLLM gets the options that steer LiteLLM.

    >>> asked = Request(options={"response_format": {"type": "json_object"}, "drop_params": True, "logit_bias": {}, "top_k": 4})
    >>> translate(asked, lambda: {"top_p"}, passes_on=False).options
    {'top_k': 4}
    """
    if TRANSLATED.isdisjoint(request.options):
        return request
    options: dict[str, Any] = dict(request.options)
    wanted = decode_response_format(options.pop("response_format", None))
    if wanted is not None and request.response_format is None:
        request = replace(request, response_format=wanted)
    if not passes_on:
        points, drops, allowed, dropped = (
            options.pop(name, None)
            for name in (
                "cache_control_injection_points",
                "drop_params",
                "allowed_openai_params",
                "additional_drop_params",
            )
        )
        if points:
            lives = [get(get(point, "control"), "ttl") for point in points]
            options.setdefault("prompt_cache", {"ttl": "1h" if "1h" in lives else "5m"})
        unknown = (_OPENAI_PARAMS & options.keys()) - {*(allowed or ())} - {*known()} if drops else set[str]()
        omitted = unknown.union(dropped or (), _NO_EFFECT)
        options = {name: value for name, value in options.items() if name not in omitted}
    return request.with_options(cast("dict[str, JsonValue]", options))
