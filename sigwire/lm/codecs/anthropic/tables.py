"""Messages: every option, finish reason, token count and error, by the wire's name."""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.core.response import FinishReason
from sigwire.errors import LMBillingError, LMContentFilteredError, LMServerError, LMTimeoutError
from sigwire.lm.codecs.shared.errors import BALANCE_HINT, ErrorRule
from sigwire.lm.codecs.shared.options import OptionTable, Place, Skip, drop_options
from sigwire.lm.codecs.shared.usage import SumOf, UsageTable

__all__ = ["ERRORS", "FINISH_REASONS", "OPTIONS", "PAUSED", "SAMPLING", "STATUSES", "USAGE"]


SAMPLING = ("temperature", "top_p", "top_k")

OPTIONS: OptionTable = {
    **drop_options(["seed"], "the provider has no seed; it was left out."),
    "max_tokens": Skip(),  # encoded with thinking, which counts against it
    "metadata": Skip(),
    "n": Skip(),  # the request is repeated
    "reasoning": Skip(),
    "service_tier": Place("service_tier"),
    "stop": Skip(),
    "temperature": Place("temperature"),
    "top_k": Place("top_k"),
    "top_p": Place("top_p"),
    "user": Skip(),
}

FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",  # not continued: the text is incomplete
    "compaction": "length",
    "refusal": "content_filter",
}

PAUSED = frozenset({"pause_turn", "compaction"})

USAGE: UsageTable = {
    "input_tokens": SumOf(["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]),
    "output_tokens": "output_tokens",
    "cached_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
    "hour_write_tokens": "cache_creation.ephemeral_1h_input_tokens",
    "reasoning_tokens": "output_tokens_details.thinking_tokens",
}

_LIMIT_CODES = frozenset({"contract_spend_limit_reached", "enforced_spend_limit_reached"})
_LIMIT_TEXTS = ("credit balance is too low", "spend limit", "usage limits")

STATUSES: Mapping[str, int] = {  # of an error type, for errors inside status 200
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(LMBillingError, codes=frozenset({"billing_error"}) | _LIMIT_CODES, hint=BALANCE_HINT),
    # A spend limit or an empty balance has the status of a bad request.
    ErrorRule(LMBillingError, frozenset({400}), texts=_LIMIT_TEXTS, hint=BALANCE_HINT),
    ErrorRule(LMContentFilteredError, frozenset({400}), texts=("blocked by content filtering policy",)),
    ErrorRule(LMTimeoutError, codes=frozenset({"timeout_error"})),
    ErrorRule(LMServerError, frozenset({200})),
)
