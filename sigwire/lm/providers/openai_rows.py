"""The rows of OpenAI's models: OpenAI and Azure OpenAI.

A new model is a new name in a rule, or a new rule above those that would fit it as well.
"""

from __future__ import annotations

from dataclasses import replace

from sigwire.lm.codecs.shared.interface import ModelFacts
from sigwire.lm.providers.row import NO_THINKING, AddressForm, ApiKey, ModelRule, Provider, UrlVariable, Wire

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

_OPENAI_RULES = (
    ModelRule.of("*gpt-4-turbo*", NO_THINKING, json_schema=False),
    ModelRule.of("*gpt-3.5* *gpt-35* gpt-4 gpt-4-*", NO_THINKING, json_schema=False, images=False),
    ModelRule.of("gpt-4o-audio* gpt-audio*", NO_THINKING, json_schema=False, images=False, audio=True),
    ModelRule.of("*gpt-4* chatgpt-* gpt-5-chat* gpt-5.?-chat*", NO_THINKING, files=True),
    ModelRule.of("*deep-research* computer-use-*", _O_SERIES, wire="responses", reasoning=True),
    ModelRule.of(
        "o1-mini* o1-preview*",
        replace(_O_SERIES, thinking="none"),
        reasoning=True,
        native_tools=False,
        json_schema=False,
        json_object=False,
        images=False,
    ),
    ModelRule.of("o1-pro* o3-pro* codex-*", _O_SERIES, wire="responses", reasoning=True, files=True),
    ModelRule.of("o3-mini*", _O_SERIES, reasoning=True, images=False),
    ModelRule.of("o1* o3* o4*", _O_SERIES, reasoning=True, files=True),
    ModelRule.of(
        "gpt-5-pro*",
        replace(_GPT_5, efforts=("high",), default_effort="high"),
        wire="responses",
        reasoning=True,
        files=True,
    ),
    ModelRule.of("gpt-5-codex*", _O_SERIES, wire="responses", reasoning=True, files=True),
    ModelRule.of(
        "gpt-?.?-pro* gpt-?-pro* gpt-?.?-codex* gpt-?-codex*",
        replace(_ALWAYS_REASONS, cache_breakpoints=False),
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

# Chat completions shows no thinking, and Responses a summary only to verified organizations.
_CAPABILITIES = replace(Provider(prefix="").capabilities, reasoning_hidden=True)

OPENAI = Provider(
    prefix="openai",
    base_url="https://api.openai.com/v1",
    base_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    addresses=(AddressForm("/chat/completions"), AddressForm("/responses", "responses")),
    keys=(ApiKey("OPENAI_API_KEY"),),
    header_variables={"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"},
    wires={
        # ``LM("openai/some-model", base_url=...)`` reaches hosts without a row. A gateway serves OpenAI's models.
        "chat": Wire("openai_chat", "openai_chat.profiles:OPENAI", foreign_host="openai_chat.profiles:COMPATIBLE"),
        "responses": Wire("openai_responses", "openai_responses:OPENAI", foreign_host="openai_responses:COMPATIBLE"),
    },
    builtin_wire="responses",
    capabilities=_CAPABILITIES,
    rules=_OPENAI_RULES,
)


# The portal shows "Target URIs": whole addresses of operations. The paths of ``v1`` have no dated version.
_PROJECT = "(?:/api/projects/[^/]+)?"
_AZURE_ADDRESSES = (
    AddressForm(f"{_PROJECT}/openai/deployments/(?P<model>[^/]+)(?:/chat/completions)?"),
    AddressForm(f"{_PROJECT}/openai(?:/v1)?/responses", "responses", query=False),
    AddressForm(f"{_PROJECT}/openai/v1/chat/completions", "v1"),
    AddressForm(f"{_PROJECT}/openai(?:/v1)?"),
    AddressForm("/models(?:/chat/completions)?", "models"),
    AddressForm("/api/projects/[^/]+"),
)

AZURE = Provider(
    prefix="azure",
    base_variables=("AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"),
    addresses=_AZURE_ADDRESSES,
    variables={"api_version": UrlVariable(("OPENAI_API_VERSION", "AZURE_API_VERSION"), "2024-10-21")},
    keys=(
        ApiKey("AZURE_OPENAI_API_KEY", "api-key", "{}"),
        ApiKey("AZURE_API_KEY", "api-key", "{}"),
        ApiKey("AZURE_OPENAI_AD_TOKEN", start="eyJ"),  # a token of Entra ID is a JWT; keys are letters and digits
    ),
    own_host=True,
    wires={
        "chat": Wire("openai_chat", "openai_chat.profiles:AZURE", query={"api-version": "{api_version}"}),
        "responses": Wire("openai_responses", "openai_responses:AZURE", path="/openai/v1/responses"),
        "v1": Wire("openai_chat", "openai_chat.profiles:AZURE", path="/openai/v1/chat/completions"),
        "models": Wire(  # Foundry: models of other vendors
            "openai_chat",
            "openai_chat.profiles:COMPATIBLE",
            path="/models/chat/completions",
            query={"api-version": "2024-05-01-preview"},
        ),
    },
    builtin_wire="responses",
    capabilities=_CAPABILITIES,
    rules=_OPENAI_RULES,
)
