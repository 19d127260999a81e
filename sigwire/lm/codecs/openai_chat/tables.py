"""Chat completions: every option, finish reason, count and error code, by the wire's name."""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.core.response import FinishReason
from sigwire.lm.codecs.shared.errors import OPENAI_ERRORS
from sigwire.lm.codecs.shared.options import OptionTable, Place, Skip
from sigwire.lm.codecs.shared.usage import UsageTable

__all__ = ["ERRORS", "FINISH_REASONS", "OPTIONS", "SAMPLING", "USAGE"]


SAMPLING = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs")

OPTIONS: OptionTable = {
    **{name: Place(name) for name in SAMPLING},
    **{
        name: Place(name)
        for name in "logit_bias metadata n prediction safety_identifier seed service_tier stop user verbosity".split()
    },
    "max_tokens": Place("max_completion_tokens"),
    "reasoning": Skip(),
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

USAGE: UsageTable = {
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

ERRORS = OPENAI_ERRORS
