"""generateContent: every option, built-in tool, finish reason and token count, by the wire's name."""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.core.response import FinishReason
from sigwire.core.tools.specs import GEMINI_TOOLS
from sigwire.lm.codecs.shared.options import OptionTable, Place, Skip
from sigwire.lm.codecs.shared.usage import SumOf, UsageTable

__all__ = [
    "BUILTIN", "CONTINUED", "FINISH_REASONS", "JSON_TYPE", "MODES", "OPTIONS", "SAMPLING", "SIGNATURE",
    "UNSIGNED", "USAGE",
]  # fmt: skip


OPTIONS: OptionTable = {
    "cached_content": Place("cachedContent"),
    "frequency_penalty": Place("generationConfig.frequencyPenalty"),
    "logprobs": Place("generationConfig.responseLogprobs"),
    "max_tokens": Place("generationConfig.maxOutputTokens"),
    "n": Place("generationConfig.candidateCount"),
    "presence_penalty": Place("generationConfig.presencePenalty"),
    "reasoning": Skip(),
    "safety_settings": Place("safetySettings"),
    "seed": Place("generationConfig.seed"),
    "service_tier": Place("serviceTier"),
    "stop": Place("generationConfig.stopSequences", lambda stop: stop if isinstance(stop, list) else [stop]),
    "temperature": Place("generationConfig.temperature"),
    "top_k": Place("generationConfig.topK"),
    "top_logprobs": Place("generationConfig.logprobs"),
    "top_p": Place("generationConfig.topP"),
}
SAMPLING = ("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty")

BUILTIN: Mapping[str, str] = {"web_search": "googleSearch", **{kind: kind for kind in sorted(GEMINI_TOOLS)}}
"""Tools that the provider runs: the canonical kind, or that of the provider, to the key in ``tools``."""

MODES: Mapping[str, str] = {"auto": "AUTO", "required": "ANY", "none": "NONE"}

_FILTERED = (
    "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION "
    "MODEL_ARMOR ESCALATION PUP_LIMITED_DISABLED"
).split()
_FAILED = (
    "MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE MISSING_THOUGHT_SIGNATURE "
    "NO_IMAGE IMAGE_OTHER LANGUAGE"
).split()
CONTINUED = "CONTINUATION"
"""The finish reason of a reply that needs a continuation."""

FINISH_REASONS: Mapping[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    CONTINUED: "length",
    **dict.fromkeys(_FILTERED, "content_filter"),
    **dict.fromkeys(_FAILED, "error"),
}
"""For any other reason (OTHER, unspecified, new ones) the content decides."""

USAGE: UsageTable = {
    "input_tokens": SumOf(["promptTokenCount", "toolUsePromptTokenCount"]),
    "output_tokens": SumOf(["candidatesTokenCount", "thoughtsTokenCount"]),
    "cached_tokens": "cachedContentTokenCount",
    "reasoning_tokens": "thoughtsTokenCount",
}
"""Canonical counts as sums: the wire counts results of built-in tools beside the prompt, thoughts beside the answer."""

UNSIGNED = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""The stand-in signature for calls of other providers: ``skip_thought_signature_validator`` in base64."""

JSON_TYPE = "application/json"
SIGNATURE = "thoughtSignature"
