"""Chat completions: every option, finish reason, count and error code, by the wire's name."""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.core.response import FinishReason
from sigwire.errors import (
    ContextWindowExceededError,
    LMBillingError,
    LMContentFilteredError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMUnsupportedModelError,
)
from sigwire.lm.codecs.shared.errors import CONTEXT_TEXTS, ErrorRule
from sigwire.lm.codecs.shared.options import OptionTable, Place, Skip

__all__ = ["ERRORS", "FINISH_REASONS", "OPTIONS", "SAMPLING", "USAGE"]


SAMPLING = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs")

OPTIONS: OptionTable = {
    "cache": Skip(),  # automatic; a key is encoded with the rest of the cache hints
    "frequency_penalty": Place("frequency_penalty"),
    "logprobs": Place("logprobs"),
    "max_tokens": Place("max_completion_tokens"),
    "metadata": Place("metadata"),
    "n": Place("n"),
    "presence_penalty": Place("presence_penalty"),
    "reasoning": Skip(),
    "seed": Place("seed"),
    "service_tier": Place("service_tier"),
    "stop": Place("stop"),
    "temperature": Place("temperature"),
    "top_logprobs": Place("top_logprobs"),
    "top_p": Place("top_p"),
    "user": Place("user"),
}

FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "error": "error",
    "insufficient_system_resource": "error",
}

USAGE: Mapping[str, str | tuple[str, ...]] = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cached_tokens": (
        "prompt_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "num_cached_tokens",
        "cached_tokens",
    ),
    "cache_write_tokens": "prompt_tokens_details.cache_write_tokens",
    "reasoning_tokens": "completion_tokens_details.reasoning_tokens",
    "cost": "cost",
}

_BILLING = frozenset({"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "402"})

ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(
        ContextWindowExceededError,
        codes=frozenset({"context_length_exceeded", "exceed_context_size_error"}),
        hint="Shorten the request or use a model with a larger context.",
    ),
    ErrorRule(ContextWindowExceededError, frozenset({400, 413, 422, 500}), texts=CONTEXT_TEXTS),
    ErrorRule(
        LMBillingError, codes=_BILLING, hint="Check the account's balance and limits; trying again does not help."
    ),
    ErrorRule(
        LMContentFilteredError,
        codes=frozenset({"content_filter", "content_policy_violation"}),
        hint="Change what is sent; trying again does not help.",
    ),
    ErrorRule(
        LMUnsupportedModelError,
        codes=frozenset({"model_not_found"}),
        hint="Check the model's name: {provider} does not serve {model!r} to this key.",
    ),
    # The host's own check of a call failed, and what the model wrote tells no call (see ``refused``): it may do better.
    ErrorRule(LMInvalidRequestError, codes=frozenset({"tool_use_failed"}), retry=True),
    ErrorRule(LMRateLimitError, codes=frozenset({"rate_limit_exceeded", "rate_limit_error", "slow_down"})),
    ErrorRule(LMServerError, codes=frozenset({"server_error", "server_is_overloaded", "insufficient_system_resource"})),
)
