"""Decision endpoints: options that no host has, and token counts."""

from __future__ import annotations

from sigwire.lm.codecs.shared.options import OptionTable, Skip
from sigwire.lm.codecs.shared.usage import UsageTable

__all__ = ["OPTIONS", "USAGE"]

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
