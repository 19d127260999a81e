"""Decision endpoints: options that no host has, token counts and errors."""

from __future__ import annotations

from sigwire.errors import LMAuthenticationError, LMBillingError, LMTimeoutError
from sigwire.lm.codecs.shared.errors import KEY_HINT, ErrorRule
from sigwire.lm.codecs.shared.options import OptionTable, Skip
from sigwire.lm.codecs.shared.usage import UsageTable

__all__ = ["GEMINI_ERRORS", "OPTIONS", "USAGE"]

OPTIONS: OptionTable = {"n": Skip()}
"""The profiles have the options of their hosts. More than one choice is refused."""

USAGE: UsageTable = {
    "input_tokens": ("input_tokens", "total_input_tokens"),
    "output_tokens": ("output_tokens", "total_output_tokens"),
    "cached_tokens": ("input_tokens_details.cached_tokens", "total_cached_tokens"),
    "cache_write_tokens": "input_tokens_details.cache_write_tokens",
    "reasoning_tokens": ("output_tokens_details.reasoning_tokens", "total_thought_tokens"),
    "cost": "cost",
}

GEMINI_ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(LMAuthenticationError, codes=frozenset({"api_key_invalid"}), hint=KEY_HINT),
    ErrorRule(LMAuthenticationError, frozenset({400}), texts=("api key not valid", "api key expired"), hint=KEY_HINT),
    ErrorRule(
        LMBillingError,
        frozenset({400}),
        codes=frozenset({"failed_precondition"}),
        texts=("billing",),
        hint="Check the project's billing.",
    ),
    ErrorRule(LMTimeoutError, frozenset({504})),
)
