"""The rows of hosts whose wire is OpenAI's chat completions: services, and servers that users run.

A new model is a new name in a rule, or a new rule above those that would fit it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sigwire.errors import LMTransportError
from sigwire.lm.codecs.shared.interface import ModelFacts
from sigwire.lm.providers.row import NO_THINKING, REASONS, ApiKey, ModelRule, Provider, Wire

__all__ = ["COMPATIBLE", "GPT_OSS", "SEES"]


def _chat(profile: str) -> Mapping[str, Wire]:
    return {"chat": Wire("openai_chat", f"openai_chat.profiles:{profile}")}


GPT_OSS = ModelFacts(efforts=("low", "medium", "high"), default_effort="medium")
SEES: Mapping[str, bool] = {"images": True}
_TEXT_ONLY: Mapping[str, bool] = {"images": False}
_OPEN_MODELS = (
    ModelRule(names=("*gpt-oss*",), facts=GPT_OSS, capabilities={**REASONS, **_TEXT_ONLY}),
    ModelRule(
        names=("*deepseek-r1*", "*kimi-k2-thinking*", "*magistral*", "*qwq*", "*-thinking*"),
        facts=ModelFacts(default_effort="medium"),
        capabilities={**REASONS, **_TEXT_ONLY},
    ),
    ModelRule(names=("*llama-4*", "*llama4*", "*vision*", "*-vl-*", "*-vl", "*gemma-3*"), facts=NO_THINKING),
    ModelRule(names=("*qwen3*", "*qwen-3*", "*glm*"), capabilities={**REASONS, **_TEXT_ONLY}),
    ModelRule(
        names=("*llama*", "*mixtral*", "*mistral*", "*gemma*", "*qwen2*", "*qwen-2*", "*phi*"),
        facts=NO_THINKING,
        capabilities=_TEXT_ONLY,
    ),
)
_DEFAULTS = Provider(prefix="").capabilities
_BY_SCHEMA: Mapping[str, bool] = {"json_schema": True}

_GROQ = Provider(
    prefix="groq",
    base_url="https://api.groq.com/openai/v1",
    base_variables=("GROQ_API_BASE",),
    keys=(ApiKey("GROQ_API_KEY"),),
    wires=_chat("GROQ"),
    capabilities=replace(_DEFAULTS, json_schema=False, tools_with_json_schema=False, images=False),
    rules=(
        ModelRule(names=("*gpt-oss*",), facts=GPT_OSS, capabilities={**REASONS, **_BY_SCHEMA}),
        # Thinking is on or off; there are no efforts.
        ModelRule(
            names=("*qwen3*",),
            facts=ModelFacts(efforts=("off",), default_effort="medium"),
            capabilities={**REASONS, **_BY_SCHEMA},
        ),
        ModelRule(names=("*llama-4*",), facts=NO_THINKING, capabilities={**SEES, **_BY_SCHEMA}),
        ModelRule(names=("*kimi-k2*",), facts=NO_THINKING, capabilities=_BY_SCHEMA),
        ModelRule(names=("*compound*",), facts=NO_THINKING, capabilities={"native_tools": False}),
        ModelRule(names=("*",), facts=NO_THINKING),
    ),
)
_MISTRAL = Provider(
    prefix="mistral",
    base_url="https://api.mistral.ai/v1",
    base_variables=("MISTRAL_API_BASE",),
    keys=(ApiKey("MISTRAL_API_KEY"),),
    wires=_chat("MISTRAL"),
    rules=(
        ModelRule(
            names=("magistral*",),
            facts=ModelFacts(efforts=("off", "high"), default_effort="high"),
            capabilities=REASONS,
        ),
    ),
)
_DEEPSEEK = Provider(
    prefix="deepseek",
    base_url="https://api.deepseek.com",
    base_variables=("DEEPSEEK_API_BASE",),
    keys=(ApiKey("DEEPSEEK_API_KEY"),),
    wires=_chat("DEEPSEEK"),
    capabilities=replace(_DEFAULTS, json_schema=False, tools_with_json_schema=False, images=False, reasoning=True),
    rules=(
        ModelRule(names=("deepseek-chat",), facts=ModelFacts(forced_choice_with_reasoning=False)),
        ModelRule(names=("*",), facts=ModelFacts(default_effort="high", forced_choice_with_reasoning=False)),
    ),
)
_OPENROUTER = Provider(
    prefix="openrouter",
    base_url="https://openrouter.ai/api/v1",
    base_variables=("OPENROUTER_API_BASE",),
    keys=(ApiKey("OPENROUTER_API_KEY"),),
    wires=_chat("OPENROUTER"),
    capabilities=replace(_DEFAULTS, files=True, reasoning=True),
    rules=(ModelRule(names=("anthropic/*",), facts=ModelFacts(cache_breakpoints=True)),),
)
_TOGETHER = Provider(
    prefix="together",
    base_url="https://api.together.xyz/v1",
    base_variables=("TOGETHER_API_BASE", "TOGETHERAI_API_BASE"),
    keys=(ApiKey("TOGETHER_API_KEY"), ApiKey("TOGETHERAI_API_KEY")),
    wires=_chat("TOGETHER"),
    rules=_OPEN_MODELS,
    aliases=("together_ai",),
)
_FIREWORKS = Provider(
    prefix="fireworks",
    base_url="https://api.fireworks.ai/inference/v1",
    base_variables=("FIREWORKS_API_BASE",),
    keys=(ApiKey("FIREWORKS_API_KEY"), ApiKey("FIREWORKS_AI_API_KEY")),
    wires=_chat("FIREWORKS"),
    rules=_OPEN_MODELS,
    aliases=("fireworks_ai",),
)
_XAI = Provider(
    prefix="xai",
    base_url="https://api.x.ai/v1",
    base_variables=("XAI_API_BASE",),
    keys=(ApiKey("XAI_API_KEY"),),
    wires=_chat("XAI"),
    rules=(
        ModelRule(
            names=("grok-3-mini*",),
            facts=ModelFacts(stop=False, efforts=("low", "high"), default_effort="low"),
            capabilities={**REASONS, **_TEXT_ONLY},
        ),
        ModelRule(names=("*non-reasoning*", "grok-2*", "grok-3*"), facts=NO_THINKING),
        # They always reason, and take no effort.
        ModelRule(
            names=("grok-*",),
            facts=ModelFacts(thinking="none", default_effort="medium", stop=False),
            capabilities=REASONS,
        ),
    ),
)
_CEREBRAS = Provider(
    prefix="cerebras",
    base_url="https://api.cerebras.ai/v1",
    base_variables=("CEREBRAS_API_BASE",),
    keys=(ApiKey("CEREBRAS_API_KEY"),),
    wires=_chat("CEREBRAS"),
    capabilities=replace(_DEFAULTS, tools_with_json_schema=False, images=False),
    rules=_OPEN_MODELS,
)


# --- servers of the user


def _local(
    prefix: str, profile: str, port: int, name: str, *, key: str, base: str, aliases: tuple[str, ...] = ()
) -> Provider:
    return Provider(
        prefix=prefix,
        base_url=f"http://localhost:{port}/v1",
        base_variables=(base,),
        keys=(ApiKey(key),),
        key="optional",
        own_host=True,
        wires=_chat(profile),
        rules=_OPEN_MODELS,
        hints={
            LMTransportError: f"Is {name} running there? Name another server in {base} or base_url (it ends with /v1)."
        },
        aliases=aliases,
    )


_LOCAL = (
    _local("vllm", "VLLM", 8000, "vLLM", key="VLLM_API_KEY", base="VLLM_API_BASE", aliases=("hosted_vllm",)),
    _local("llamacpp", "LLAMACPP", 9931, "llama.cpp's server", key="LLAMA_API_KEY", base="LLAMA_API_BASE"),
    _local(
        "lmstudio", "LM_STUDIO", 1234, "LM Studio",
        key="LM_STUDIO_API_KEY", base="LM_STUDIO_API_BASE", aliases=("lm_studio",),
    ),
)  # fmt: skip

COMPATIBLE: tuple[Provider, ...] = (
    _GROQ, _MISTRAL, _DEEPSEEK, _OPENROUTER, _TOGETHER, _FIREWORKS, _XAI, _CEREBRAS, *_LOCAL,
)  # fmt: skip
