"""The rows of OpenAI's models: OpenAI and Azure OpenAI.

A new model is a new name in a rule, or a new rule above those that would fit it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sigwire.lm.codecs.shared.interface import ModelFacts
from sigwire.lm.providers.row import NO_THINKING, REASONS, ApiKey, ModelRule, Provider, UrlVariable, Wire

__all__ = ["AZURE", "OPENAI"]

_O_SERIES = ModelFacts(sampling="never", stop=False, efforts=("low", "medium", "high"), default_effort="medium")
_GPT_5 = replace(_O_SERIES, efforts=("minimal", "low", "medium", "high"))
_GPT_5_1 = ModelFacts(
    sampling="unless_reasoning", stop=False, efforts=("off", "low", "medium", "high"), default_effort="off"
)
_GPT_5_2 = replace(_GPT_5_1, efforts=("off", "low", "medium", "high", "xhigh"))
# Since GPT-5.4 chat completions refuses tools with reasoning; the Responses API takes both.
_GPT_5_4 = replace(_GPT_5_2, tools_with_reasoning=False)
_GPT_5_5 = replace(_GPT_5_4, default_effort="medium")
_GPT_5_6 = replace(_GPT_5_5, cache_breakpoints=True)
_ALWAYS_REASONS = replace(_GPT_5_6, sampling="never", efforts=("low", "medium", "high", "xhigh"))
_FILES: Mapping[str, bool] = {"files": True}
_REASONS_WITH_FILES: Mapping[str, bool] = {"reasoning": True, "files": True}

_OPENAI_RULES = (
    ModelRule(names=("*gpt-4-turbo*",), facts=NO_THINKING, capabilities={"json_schema": False}),
    ModelRule(
        names=("*gpt-3.5*", "*gpt-35*", "gpt-4", "gpt-4-*"),
        facts=NO_THINKING,
        capabilities={"json_schema": False, "images": False},
    ),
    ModelRule(
        names=("gpt-4o-audio*", "gpt-audio*"),
        facts=NO_THINKING,
        capabilities={"json_schema": False, "images": False, "audio": True},
    ),
    ModelRule(names=("*gpt-4*", "chatgpt-*", "gpt-5-chat*", "gpt-5.?-chat*"), facts=NO_THINKING, capabilities=_FILES),
    ModelRule(names=("*deep-research*", "computer-use-*"), facts=_O_SERIES, capabilities=REASONS, wire="responses"),
    ModelRule(
        names=("o1-mini*", "o1-preview*"),
        facts=replace(_O_SERIES, thinking="none"),
        capabilities={**REASONS, "native_tools": False, "json_schema": False, "json_object": False, "images": False},
    ),
    ModelRule(
        names=("o1-pro*", "o3-pro*", "codex-*"), facts=_O_SERIES, capabilities=_REASONS_WITH_FILES, wire="responses"
    ),
    ModelRule(names=("o3-mini*",), facts=_O_SERIES, capabilities={**REASONS, "images": False}),
    ModelRule(names=("o1*", "o3*", "o4*"), facts=_O_SERIES, capabilities=_REASONS_WITH_FILES),
    ModelRule(
        names=("gpt-5-pro*",),
        facts=replace(_GPT_5, efforts=("high",), default_effort="high"),
        capabilities=_REASONS_WITH_FILES,
        wire="responses",
    ),
    ModelRule(names=("gpt-5-codex*",), facts=_O_SERIES, capabilities=_REASONS_WITH_FILES, wire="responses"),
    ModelRule(
        names=("gpt-?.?-pro*", "gpt-?-pro*", "gpt-?.?-codex*", "gpt-?-codex*"),
        facts=replace(_ALWAYS_REASONS, cache_breakpoints=False),
        capabilities=_REASONS_WITH_FILES,
        wire="responses",
    ),
    ModelRule(names=("gpt-5", "gpt-5-*"), facts=_GPT_5, capabilities=_REASONS_WITH_FILES),
    ModelRule(names=("gpt-5.1*",), facts=_GPT_5_1, capabilities=_REASONS_WITH_FILES),
    ModelRule(names=("gpt-5.[23]*",), facts=_GPT_5_2, capabilities=_REASONS_WITH_FILES),
    ModelRule(names=("gpt-5.4*",), facts=_GPT_5_4, capabilities=_REASONS_WITH_FILES, tools_wire="responses"),
    ModelRule(names=("gpt-5.5*",), facts=_GPT_5_5, capabilities=_REASONS_WITH_FILES, tools_wire="responses"),
    ModelRule(
        names=("gpt-6-astra*", "gpt-6.1-sol*"),
        facts=_ALWAYS_REASONS,
        capabilities=_REASONS_WITH_FILES,
        tools_wire="responses",
    ),
    ModelRule(
        names=("gpt-5.[6-9]*", "gpt-[6-9]*"), facts=_GPT_5_6, capabilities=_REASONS_WITH_FILES, tools_wire="responses"
    ),
)

OPENAI = Provider(
    prefix="openai",
    base_url="https://api.openai.com/v1",
    base_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    keys=(ApiKey("OPENAI_API_KEY"),),
    header_variables={"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"},
    wires={
        # ``LM("openai/some-model", base_url=...)`` reaches hosts without a row. A gateway serves OpenAI's models.
        "chat": Wire("openai_chat", "openai_chat.profiles:OPENAI", foreign_host="openai_chat.profiles:COMPATIBLE"),
        "responses": Wire("openai_responses", "openai_responses:OPENAI", foreign_host="openai_responses:COMPATIBLE"),
    },
    builtin_wire="responses",
    rules=_OPENAI_RULES,
)

AZURE = Provider(
    prefix="azure",
    base_variables=("AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"),
    variables={"api_version": UrlVariable(("OPENAI_API_VERSION", "AZURE_API_VERSION"), "2024-10-21")},
    keys=(
        ApiKey("AZURE_OPENAI_API_KEY", "api-key", "{}"),
        ApiKey("AZURE_API_KEY", "api-key", "{}"),
        ApiKey("AZURE_OPENAI_AD_TOKEN"),
    ),
    own_host=True,
    wires={
        "chat": Wire("openai_chat", "openai_chat.profiles:AZURE", query={"api-version": "{api_version}"}),
        "responses": Wire("openai_responses", "openai_responses:AZURE", path="/openai/v1/responses"),
    },
    builtin_wire="responses",
    rules=_OPENAI_RULES,
)
