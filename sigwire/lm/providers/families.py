"""The rules of model families: what a vendor's models accept and refuse, as data, once for every host that serves them.

    CLAUDE_RULES    Anthropic, Vertex AI, Amazon Bedrock, gateways       GEMINI_RULES   Gemini API, Vertex AI, gateways
    OPENAI_RULES    OpenAI, Azure OpenAI, gateways                       NOVA           Amazon Bedrock, gateways
    GPT_OSS         OpenAI's open models, on every host

A row of the table names the rules of the families that it serves, with its own differences. A gateway (OpenRouter, LiteLLM, a
proxy at the address of an OpenAI row) serves every family: its models that no rule of its row names have those of
``FAMILIES``. A new model is a new name in a rule, or a new rule above those that would fit it as well.

Sources of the limits of answers (``max_output``): the page of each model under
https://platform.claude.com/docs/en/about-claude/models/overview, https://platform.openai.com/docs/models,
https://ai.google.dev/gemini-api/docs/models, https://docs.aws.amazon.com/nova/latest/userguide/what-is-nova.html, compared with
``max_output_tokens`` of LiteLLM 1.110.2; a comment names the source of a limit on which they disagree. Where hosts differ, the
largest limit stands: a request above that of a host is refused with its reason, one below the model's would be cut in silence.
A model without a documented limit has none here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sigwire.lm.codecs.shared.interface import ModelFacts
from sigwire.lm.providers.row import NO_THINKING, ModelRule, facts_among

__all__ = ["CLAUDE_RULES", "FAMILIES", "GEMINI_RULES", "GPT_OSS", "NOVA", "NOVA_2", "OPENAI_RULES", "family_facts"]

# --- Claude

_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_CLAUDE = ModelFacts(family="claude", temperature=1.0, blank_stops=False, trims_prefill=True)
_CLAUDE_3 = replace(_CLAUDE, thinking="none", max_output=4096)
_CLAUDE_3_5 = replace(_CLAUDE_3, max_output=8192)
_CLAUDE_4 = replace(
    _CLAUDE,
    sampling="unless_reasoning",
    thinking="budget",
    forced_choice_with_reasoning=False,
    thinks_first=True,
    cache_breakpoints=True,
    max_output=64_000,
)
_CLAUDE_OPUS_4 = replace(_CLAUDE_4, max_output=32_000)
# Opus 4.1 is the first model that refuses both.
_CLAUDE_4_1 = replace(_CLAUDE_OPUS_4, temperature_or_top_p=True)
_CLAUDE_4_5 = replace(_CLAUDE_4, temperature_or_top_p=True, tool_search=True)
# Sonnet 4.6: 128,000 at Anthropic, 64,000 on Bedrock and Vertex AI (LiteLLM).
_CLAUDE_4_6 = replace(
    _CLAUDE,
    sampling="unless_reasoning",
    efforts=("off", "low", "medium", "high", "max"),
    prefill=False,
    temperature_or_top_p=True,
    cache_breakpoints=True,
    tool_search=True,
    max_output=128_000,
)
_CLAUDE_4_7 = replace(
    _CLAUDE,
    sampling="never",
    efforts=("off", *_EFFORTS),
    prefill=False,
    cache_breakpoints=True,
    tool_search=True,
    max_output=128_000,
)
_CLAUDE_4_8 = replace(_CLAUDE_4_7, later_system=True)
_CLAUDE_ALWAYS_THINKS = replace(
    _CLAUDE,
    sampling="never",
    efforts=_EFFORTS,
    default_effort="high",
    forced_choice=False,
    later_system=True,
    prefill=False,
    cache_breakpoints=True,
    tool_search=True,
    default_max_tokens=16384,  # thinking counts against it and cannot be switched off
    max_output=128_000,
)

CLAUDE_RULES = (
    ModelRule.of(
        "*claude-3-7* *claude-3.7*",
        replace(_CLAUDE_4, max_output=128_000),  # with a beta header; 64,000 without
        json_schema=False,
        tools_with_json_schema=False,
        reasoning=True,
    ),
    ModelRule.of(
        "*claude-3-5-haiku* *claude-3.5-haiku*",
        replace(_CLAUDE_3_5, cache_breakpoints=True),
        json_schema=False,
        tools_with_json_schema=False,
    ),
    ModelRule.of("*claude-3-5* *claude-3.5*", _CLAUDE_3_5, json_schema=False, tools_with_json_schema=False),
    ModelRule.of("*claude-3* *claude-2* *claude-instant*", _CLAUDE_3, json_schema=False, tools_with_json_schema=False),
    ModelRule.of("*claude-opus-4-1* *claude-opus-4.1*", _CLAUDE_4_1, reasoning=True),
    ModelRule.of("*claude-*-4-5* *claude-*-4.5*", _CLAUDE_4_5, reasoning=True),
    ModelRule.of("*claude-*-4-6* *claude-*-4.6*", _CLAUDE_4_6, reasoning=True),
    ModelRule.of("*claude-*-4-7* *claude-*-4.7*", _CLAUDE_4_7, reasoning=True),
    ModelRule.of("*claude-*-4-8* *claude-*-4.8*", _CLAUDE_4_8, reasoning=True),
    ModelRule.of(
        "*claude-sonnet-4 *claude-sonnet-4-*",
        _CLAUDE_4,
        json_schema=False,
        tools_with_json_schema=False,
        reasoning=True,
    ),
    ModelRule.of(
        "*claude-opus-4 *claude-opus-4-*",
        _CLAUDE_OPUS_4,
        json_schema=False,
        tools_with_json_schema=False,
        reasoning=True,
    ),
    ModelRule.of("*claude-haiku-5-5* *claude-haiku-5.5*", _CLAUDE_4_8, reasoning=True),
    ModelRule.of("*mythos-preview*", replace(_CLAUDE_ALWAYS_THINKS, later_system=False), reasoning=True),
    ModelRule.of("*claude-*-5-5* *claude-*-5.5* *fable* *mythos*", _CLAUDE_ALWAYS_THINKS, reasoning=True),
    ModelRule.of("*claude-opus-5*", _CLAUDE_4_8, reasoning=True),
    ModelRule.of("*claude-sonnet-5*", _CLAUDE_4_7, reasoning=True),
    ModelRule.of("*claude-*", replace(_CLAUDE_4_7, max_output=None), reasoning=True),
)

# --- Gemini

_GEMINI_2 = ModelFacts(thinking="none", builtin_with_functions=False, media_in_results=False, max_output=8192)
_GEMINI_2_5 = replace(_GEMINI_2, thinking="budget", budgets=(0, 24576), default_effort="medium", max_output=65_536)
_GEMINI_3 = ModelFacts(
    efforts=("low", "medium", "high"),
    default_effort="high",
    signed_calls=True,
    media_in_results=True,
    max_output=65_536,
)

GEMINI_RULES = (
    ModelRule.of("*gemini-1* *gemini-2.0* *gemini-2-0*", _GEMINI_2),
    ModelRule.of(
        "*gemini-2.5-pro*", replace(_GEMINI_2_5, efforts=("minimal", *_EFFORTS), budgets=(128, 32768)), reasoning=True
    ),
    ModelRule.of(
        "*gemini-2.5-flash-lite*", replace(_GEMINI_2_5, budgets=(512, 24576), default_effort="off"), reasoning=True
    ),
    ModelRule.of("*gemini-2.5*", _GEMINI_2_5, reasoning=True),
    ModelRule.of(
        "*gemini-3-pro*", replace(_GEMINI_3, efforts=("low", "high")), reasoning=True, tools_with_json_schema=True
    ),
    ModelRule.of(
        "*gemini-3-flash* *gemini-3.[1-6]-flash*",
        replace(_GEMINI_3, efforts=("minimal", "low", "medium", "high")),
        reasoning=True,
        tools_with_json_schema=True,
    ),
    # Gemma 4: 32,768 at Google, up to 262,144 at others (LiteLLM).
    ModelRule.of(
        "*gemma*",
        replace(_GEMINI_2, max_output=None),
        native_tools=False,
        json_schema=False,
        tools_with_json_schema=False,
    ),
    ModelRule.of("*gemini*", replace(_GEMINI_3, max_output=None), reasoning=True, tools_with_json_schema=True),
)

# --- OpenAI

# https://platform.openai.com/docs/api-reference/chat/create: stop is "not supported with latest reasoning models o3 and
# o4-mini"; o1 and o3-mini take it.
_O1 = ModelFacts(sampling="never", efforts=("low", "medium", "high"), default_effort="medium", max_output=100_000)
_O_SERIES = replace(_O1, stop=False)
_GPT_5 = replace(_O_SERIES, efforts=("minimal", "low", "medium", "high"), max_output=128_000)
_GPT_5_1 = ModelFacts(
    sampling="unless_reasoning",
    stop=False,
    efforts=("off", "low", "medium", "high"),
    default_effort="off",
    max_output=128_000,
)
_GPT_5_2 = replace(_GPT_5_1, efforts=("off", "low", "medium", "high", "xhigh"))
# Since GPT-5.4 chat completions refuses tools with reasoning; the Responses API takes both, and searches tools.
# https://developers.openai.com/api/docs/guides/tools-tool-search
_GPT_5_4 = replace(_GPT_5_2, tools_with_reasoning=False, tool_search=True)
_GPT_5_5 = replace(_GPT_5_4, default_effort="medium")
_GPT_5_6 = replace(
    _GPT_5_5, cache_breakpoints=True, max_output=None
)  # 128,000 each until GPT-6.1; the rule has later ones
_ALWAYS_REASONS = replace(_GPT_5_6, sampling="never", efforts=("low", "medium", "high", "xhigh"))
_NO_THINKING_4K = replace(NO_THINKING, max_output=4096)
_NO_THINKING_16K = replace(NO_THINKING, max_output=16_384)

OPENAI_RULES = (
    ModelRule.of("*gpt-4-turbo*", _NO_THINKING_4K, json_schema=False),
    ModelRule.of("*gpt-3.5* *gpt-35*", _NO_THINKING_4K, json_schema=False, images=False),
    ModelRule.of("*gpt-4-1106* *gpt-4-0125*", _NO_THINKING_4K, json_schema=False, images=False),
    # OpenAI's page of gpt-4: 8,192 for question and answer together; 4,096 in LiteLLM.
    ModelRule.of("gpt-4 gpt-4-*", replace(NO_THINKING, max_output=8192), json_schema=False, images=False),
    # https://platform.openai.com/docs/guides/structured-outputs: schemas since gpt-4o-2024-08-06.
    ModelRule.of("*gpt-4o-2024-05-13*", _NO_THINKING_4K, json_schema=False, files=True),
    ModelRule.of("gpt-4o-audio* gpt-audio*", _NO_THINKING_16K, json_schema=False, images=False, audio=True),
    ModelRule.of("*gpt-4.1*", replace(NO_THINKING, max_output=32_768), files=True),
    ModelRule.of("*gpt-4* chatgpt-* gpt-5-chat* gpt-5.?-chat*", _NO_THINKING_16K, files=True),
    ModelRule.of("o?-deep-research* o?-*-deep-research*", _O_SERIES, wire="responses", reasoning=True),
    ModelRule.of("computer-use-*", replace(_O_SERIES, max_output=1024), wire="responses", reasoning=True),
    ModelRule.of(
        "o1-mini* o1-preview*",
        replace(_O_SERIES, thinking="none", max_output=65_536),
        reasoning=True,
        native_tools=False,
        json_schema=False,
        json_object=False,
        images=False,
    ),
    ModelRule.of("o1-pro* o3-pro* codex-*", _O_SERIES, wire="responses", reasoning=True, files=True),
    ModelRule.of("o3-mini*", _O1, reasoning=True, images=False),
    ModelRule.of("o1*", _O1, reasoning=True, files=True),
    ModelRule.of("o3* o4*", _O_SERIES, reasoning=True, files=True),
    ModelRule.of(
        "gpt-5-pro*",
        replace(_GPT_5, efforts=("high",), default_effort="high", max_output=272_000),
        wire="responses",
        reasoning=True,
        files=True,
    ),
    ModelRule.of("gpt-5-codex*", replace(_O_SERIES, max_output=128_000), wire="responses", reasoning=True, files=True),
    ModelRule.of(
        "gpt-?.?-pro* gpt-?-pro* gpt-?.?-codex* gpt-?-codex*",
        replace(_ALWAYS_REASONS, cache_breakpoints=False, tool_search=False),
        wire="responses",
        reasoning=True,
        files=True,
    ),
    ModelRule.of("gpt-5 gpt-5-*", _GPT_5, reasoning=True, files=True),
    ModelRule.of("gpt-5.1*", _GPT_5_1, reasoning=True, files=True),
    ModelRule.of("gpt-5.[23]*", _GPT_5_2, reasoning=True, files=True),
    ModelRule.of("gpt-5.4*", _GPT_5_4, tools_wire="responses", reasoning=True, files=True),
    ModelRule.of("gpt-5.5*", _GPT_5_5, tools_wire="responses", reasoning=True, files=True),
    ModelRule.of("gpt-6-astra* gpt-6.1-sol*", _ALWAYS_REASONS, tools_wire="responses", reasoning=True, files=True),
    ModelRule.of("gpt-5.[6-9]* gpt-[6-9]*", _GPT_5_6, tools_wire="responses", reasoning=True, files=True),
)

GPT_OSS = ModelFacts(efforts=("low", "medium", "high"), default_effort="medium")

# --- Nova

NOVA = ModelFacts(thinking="none", temperature=1.0, cache_breakpoints=True, max_output=10_000)
# https://docs.aws.amazon.com/nova/latest/nova2-userguide/using-converse-api.html: maxTokens up to 65,000; 64,000 in LiteLLM.
NOVA_2 = replace(
    NOVA,
    thinking="effort",
    efforts=("off", "low", "medium", "high"),
    default_effort="off",
    sampling="unless_reasoning",
    max_output=65_000,
)

# --- gateways


def _behind_gateways(rules: Iterable[ModelRule], **changes: Any) -> tuple[ModelRule, ...]:
    """Return the rules as they hold behind a gateway, which chooses the wire of the vendor itself."""
    return tuple(
        replace(rule, facts=replace(rule.facts, tools_with_reasoning=True, builtin_with_functions=True, **changes))
        for rule in rules
    )


FAMILIES: tuple[ModelRule, ...] = (
    *_behind_gateways(CLAUDE_RULES),
    *_behind_gateways(GEMINI_RULES),
    ModelRule.of("*gpt-oss*", GPT_OSS),
    *_behind_gateways(OPENAI_RULES, cache_breakpoints=False),  # gateways have the marks of Anthropic only
    ModelRule.of("*nova-2*", NOVA_2),
    ModelRule.of("*nova-micro* *nova-lite* *nova-pro* *nova-premier*", NOVA),
)
"""The rules of every family, for the models of gateways. Only names and facts count."""


def family_facts(model: str) -> ModelFacts:
    """Return what is known of a model by its family, on any host; the defaults if its family is unknown.

    >>> family_facts("openrouter/anthropic/claude-sonnet-4.5:beta").thinks_first, family_facts("acme/large").max_output
    (True, None)
    """
    return facts_among(FAMILIES, model)
