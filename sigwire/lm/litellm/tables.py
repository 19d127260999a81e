"""LiteLLM's tables: its differences from the chat wire, by upstream, and its exceptions as errors. Data only.

An upstream is the provider behind LiteLLM, named by the prefix of LiteLLM's model string.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sigwire.errors import (
    ContextWindowExceededError,
    LMAuthenticationError,
    LMBillingError,
    LMContentFilteredError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnsupportedModelError,
)
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile, ReasoningNames
from sigwire.lm.codecs.shared.errors import BALANCE_HINT, CONTEXT_HINT, CONTEXT_TEXTS, ErrorRule
from sigwire.lm.codecs.shared.options import Option, Place
from sigwire.lm.codecs.shared.reasoning import EFFORTS
from sigwire.lm.codecs.shared.usage import UsageTable

__all__ = [
    "DROPPED_OPTIONS", "ERRORS", "LITELLM", "MARKS_CACHE", "NO_KEY", "PROFILES", "REFUSED_OPTIONS",
    "REFUSED_RELEASES", "SEARCH", "SIGNS_TEXT", "THINKING_BUDGET", "UNKNOWN_PROVIDER", "USAGE", "LiteLLMProfile",
]  # fmt: skip

REFUSED_RELEASES = frozenset({"1.82.7", "1.82.8"})
"""Releases that stole credentials (24 March 2026); 1.82.8 did so at the start of every Python beside it."""

THINKING_BUDGET = "thinking.budget_tokens"


@dataclass(frozen=True, kw_only=True)
class LiteLLMProfile(ChatProfile):
    """The differences of LiteLLM from the chat wire, for one upstream.

    ``parallel_choice``: whether calls can be limited to one at a time. ``web_search``: whether there is a built-in one.
    """

    family: str = "litellm"
    tool_fields: frozenset[str] = frozenset({"cache_control", "strict"})
    # ``metadata`` is for LiteLLM's callbacks; the provider does not receive it.
    options: Mapping[str, Option | None] = field(
        default_factory=lambda: {"max_tokens": Place("max_tokens"), "top_k": Place("top_k"), "metadata": None}
    )
    allowed_tools: bool = False
    text_lists: bool = False
    reasoning: ReasoningNames = ReasoningNames(efforts=EFFORTS, budget=THINKING_BUDGET)
    broken_arguments: bool = False
    cache_key: bool = False
    cache_mark: str = "cache_control"
    parallel_choice: bool = True
    web_search: bool = True


LITELLM = LiteLLMProfile()

PROFILES: Mapping[str, LiteLLMProfile] = {
    # LiteLLM flattens content to text for this host: an image would be dropped silently.
    "deepseek": replace(LITELLM, media=frozenset[str](), replay="reasoning_content", no_reasoning=""),
    "moonshot": replace(LITELLM, replay="reasoning_content", no_reasoning=" "),
    # LiteLLM drops a forced choice silently.
    "ollama": replace(LITELLM, forced_choice=False, media=frozenset({"image"})),
    "ollama_chat": replace(LITELLM, forced_choice=False, media=frozenset({"image"})),
}
"""Upstreams that differ from ``LITELLM``."""

SEARCH = frozenset({"allowed_domains", "blocked_domains", "max_uses", "search_context_size", "user_location"})
"""The settings of a web search that are passed on, refused, or dropped with a warning."""

MARKS_CACHE = frozenset({"anthropic", "bedrock"})
"""Upstreams that cache the prompt up to a mark, for models of an unknown family."""

SIGNS_TEXT = frozenset({"gemini", "vertex_ai"})
"""Upstreams that sign texts as well as calls, and need the signatures again."""

DROPPED_OPTIONS = ("frequency_penalty", "presence_penalty", "seed", "stop", "temperature", "top_p")
"""Options that are left out, with a warning, if LiteLLM knows that the model does not take them."""

REFUSED_OPTIONS = ("logprobs", "service_tier", "top_logprobs")
"""Options that raise ``UnsupportedOption`` in that case."""

NO_KEY = "not-given"
"""Sent to a ``base_url`` without ``api_key``: LiteLLM would send the environment's key otherwise."""

USAGE: UsageTable = {
    **openai_chat.USAGE,
    "cached_tokens": ("prompt_tokens_details.cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens"),
    "cache_write_tokens": (
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_creation_tokens",
        "cache_creation_input_tokens",
    ),
}


UNKNOWN_PROVIDER = "unknown to sigwire and to litellm"
"""The text, in lower case, that replaces LiteLLM's long one."""


def _codes(*names: str) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


_NO_KEY_TEXTS = ("missing credentials", "api_key client option must be set")
_QUOTA_TEXTS = ("insufficient_quota", "exceeded your current quota", "check your plan and billing", "perday")
_LONG_CONTEXT = _codes("ContextWindowExceededError", "context_length_exceeded")
_FILTERED = _codes("ContentPolicyViolationError", "RejectedRequestError", "content_filter", "content_policy_violation")
_UNPAID = _codes(
    "PaymentRequiredError",
    "BudgetExceededError",
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_error",
    "credit_balance_exhausted",
    "contract_spend_limit_reached",
    "enforced_spend_limit_reached",
)
_UNREACHABLE = ("connection error", "connection refused", "cannot connect", "name or service not known")
_REACH_HINT = "Check that the server runs and can be reached from here; base_url names another one."
_CONTENT_HINT = "Change what is sent; a retry does not help."
_OPTION_HINT = "Leave the option out, or pass extra_body={{'drop_params': True}} to have LiteLLM drop it."
_SPELLING_HINT = "Check the spelling of {model!r}."
_MODEL_HINT = "Check the model's name: it is not served as {model!r} to this key."
_KEY_HINT = "Check the API key: LiteLLM reads the provider's usual environment variable, or pass api_key=..."

ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(LMBillingError, codes=_UNPAID, hint=BALANCE_HINT),
    ErrorRule(LMBillingError, codes=_codes("RateLimitError"), texts=_QUOTA_TEXTS, hint=BALANCE_HINT),
    ErrorRule(ContextWindowExceededError, codes=_LONG_CONTEXT, hint=CONTEXT_HINT),
    ErrorRule(ContextWindowExceededError, codes=_codes("BadRequestError"), texts=CONTEXT_TEXTS),
    ErrorRule(LMContentFilteredError, codes=_FILTERED, hint=_CONTENT_HINT),
    ErrorRule(LMInvalidRequestError, codes=_codes("UnsupportedParamsError"), hint=_OPTION_HINT),
    ErrorRule(LMUnsupportedModelError, codes=_codes("BadRequestError"), texts=(UNKNOWN_PROVIDER,), hint=_SPELLING_HINT),
    ErrorRule(LMAuthenticationError, codes=_codes("AuthenticationError", "PermissionDeniedError"), hint=_KEY_HINT),
    # OpenAI's client raises without a key; LiteLLM reports that as a server error.
    ErrorRule(LMAuthenticationError, codes=_codes("InternalServerError"), texts=_NO_KEY_TEXTS, hint=_KEY_HINT),
    ErrorRule(LMUnsupportedModelError, codes=_codes("NotFoundError"), hint=_MODEL_HINT),
    ErrorRule(LMTimeoutError, codes=_codes("Timeout", "APITimeoutError")),
    ErrorRule(LMRateLimitError, codes=_codes("RateLimitError")),
    ErrorRule(LMTransportError, codes=_codes("InternalServerError"), texts=_UNREACHABLE, hint=_REACH_HINT),
    ErrorRule(LMServerError, codes=_codes("InternalServerError", "ServiceUnavailableError", "BadGatewayError")),
    ErrorRule(LMTransportError, codes=_codes("APIConnectionError"), hint=_REACH_HINT),
    ErrorRule(LMInvalidRequestError, codes=_codes("BadRequestError", "UnprocessableEntityError")),
    ErrorRule(LMServerError, codes=_codes("APIResponseValidationError"), retry=False),
    # 402, 403 and 529 have no class; their status decides.
    ErrorRule(LMServerError, frozenset({500}), codes=_codes("APIError"), retry=False),
)
"""By the exception's class and its base classes, in lower case; the first rule that fits counts."""
