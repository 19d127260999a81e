"""Responses: every option, finish reason, count and error code, by the wire's name."""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.core.json import JsonObject
from sigwire.core.response import FinishReason
from sigwire.errors import LMContentFilteredError, LMInvalidRequestError, LMTimeoutError
from sigwire.lm.codecs.shared.errors import OPENAI_ERRORS, ErrorRule
from sigwire.lm.codecs.shared.options import Drop, OptionTable, Place, Skip
from sigwire.lm.codecs.shared.usage import UsageTable

__all__ = [
    "CALL_FIELDS", "ENCRYPTED", "ERRORS", "FINISH_REASONS", "JSON_MODE", "LOGPROBS", "MARK", "OPTIONS", "SAMPLING", "USAGE",
]  # fmt: skip

SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")

OPTIONS: OptionTable = {
    "logprobs": Skip(),  # an entry of ``include``
    "max_tokens": Place("max_output_tokens"),
    "metadata": Place("metadata"),
    "n": Skip(),  # a reply has one choice
    "reasoning": Skip(),
    "seed": Drop("this wire has no seed; it was left out."),
    "service_tier": Place("service_tier"),
    "stop": Drop("this wire has no stop sequences; the text is truncated at the first one after the reply arrives."),
    "temperature": Place("temperature"),
    "top_logprobs": Place("top_logprobs"),
    "top_p": Place("top_p"),
    "safety_identifier": Place("safety_identifier"),
    "user": Place("user"),
    "verbosity": Place("text.verbosity"),
}

FINISH_REASONS: Mapping[str, FinishReason] = {
    "completed": "stop",
    "incomplete": "length",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "max_messages": "stop",
    "steered": "stop",
    "cancelled": "error",
    "queued": "error",
    "in_progress": "error",
}
"""By the reason of an incomplete reply, else by its status."""

USAGE: UsageTable = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_tokens": "input_tokens_details.cached_tokens",
    "cache_write_tokens": "input_tokens_details.cache_write_tokens",
    "reasoning_tokens": "output_tokens_details.reasoning_tokens",
    "cost": "cost",
}

_BAD_INPUT = frozenset({
    "data_residency_mismatch", "empty_image_file", "failed_to_download_image", "image_file_not_found",
    "image_file_too_large", "image_parse_error", "image_too_large", "image_too_small", "invalid_base64_image",
    "invalid_image", "invalid_image_format", "invalid_image_mode", "invalid_image_url",
    "unsupported_image_media_type",
})  # fmt: skip

ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(
        LMContentFilteredError,
        codes=frozenset({"invalid_prompt", "policy"}),
        hint="Change the request; a retry does not help.",
    ),
    ErrorRule(LMInvalidRequestError, codes=_BAD_INPUT),
    ErrorRule(LMTimeoutError, codes=frozenset({"vector_store_timeout"})),
    *OPENAI_ERRORS,
)

ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
MARK: JsonObject = {"mode": "explicit"}
JSON_MODE: JsonObject = {"text": {"format": {"type": "json_object"}}}
CALL_FIELDS = frozenset({"type", "call_id", "name", "arguments", "input"})
