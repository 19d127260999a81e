"""The rows of hosts whose wire is OpenAI's chat completions: services, and servers that users run.

A new model is a new name in a rule, or a new rule above those that would fit it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sigwire.errors import LMTransportError
from sigwire.lm.codecs.shared.interface import ModelFacts
from sigwire.lm.providers.families import FAMILIES, GPT_OSS
from sigwire.lm.providers.row import NO_THINKING, ApiKey, ModelRule, Provider, Wire

__all__ = ["COMPATIBLE"]


def _chat(profile: str) -> Mapping[str, Wire]:
    return {"chat": Wire("openai_chat", f"openai_chat.profiles:{profile}")}


_GPT_OSS_RULE = ModelRule.of("*gpt-oss*", GPT_OSS, reasoning=True, images=False)
_OPEN_MODELS = (
    _GPT_OSS_RULE,
    ModelRule.of(
        "*deepseek-r1* *kimi-k2-thinking* *magistral* *qwq* *-thinking*",
        ModelFacts(default_effort="medium"),
        reasoning=True,
        images=False,
    ),
    ModelRule.of("*llama-4* *llama4* *vision* *-vl-* *-vl *gemma-3*", NO_THINKING),
    ModelRule.of("*qwen3* *qwen-3* *glm*", reasoning=True, images=False),
    ModelRule.of("*llama* *mixtral* *mistral* *gemma* *qwen2* *qwen-2* *phi*", NO_THINKING, images=False),
)
_DEFAULTS = Provider(prefix="").capabilities
_ENFORCING = replace(_DEFAULTS, schema_on_demand=False)  # they compile each schema to a grammar


def _service(prefix: str, base_url: str) -> Provider:
    """Return the row of a service; its profile and its environment variables (``GROQ_API_KEY``) have the name of its prefix."""
    name = prefix.upper()
    return Provider(
        prefix=prefix,
        base_url=base_url,
        base_variables=(f"{name}_API_BASE",),
        keys=(ApiKey(f"{name}_API_KEY"),),
        wires=_chat(name),
        shows_reasoning=True,
    )


_GROQ = replace(
    _service("groq", "https://api.groq.com/openai/v1"),
    capabilities=replace(_DEFAULTS, json_schema=False, tools_with_json_schema=False, images=False),
    rules=(
        ModelRule.of("*gpt-oss*", GPT_OSS, reasoning=True, json_schema=True),
        # Thinking is on or off; there are no efforts.
        ModelRule.of(
            "*qwen3*", ModelFacts(efforts=("off",), default_effort="medium"), reasoning=True, json_schema=True
        ),
        ModelRule.of("*llama-4*", NO_THINKING, images=True, json_schema=True),
        ModelRule.of("*kimi-k2*", NO_THINKING, json_schema=True),
        ModelRule.of("*compound*", NO_THINKING, native_tools=False),
        ModelRule.of("*", NO_THINKING),
    ),
)
_MISTRAL = replace(
    _service("mistral", "https://api.mistral.ai/v1"),
    rules=(ModelRule.of("magistral*", ModelFacts(efforts=("off", "high"), default_effort="high"), reasoning=True),),
)
_DEEPSEEK = replace(
    _service("deepseek", "https://api.deepseek.com"),
    capabilities=replace(_DEFAULTS, json_schema=False, tools_with_json_schema=False, images=False, reasoning=True),
    rules=(
        ModelRule.of("deepseek-chat", ModelFacts(forced_choice_with_reasoning=False)),
        ModelRule.of("*", ModelFacts(default_effort="high", forced_choice_with_reasoning=False)),
    ),
)
_OPENROUTER = replace(
    _service("openrouter", "https://openrouter.ai/api/v1"),
    capabilities=replace(_DEFAULTS, files=True, reasoning=True),
    families=FAMILIES,
    shows_reasoning=False,  # vendors that hide it do so here too
)
_TOGETHER = replace(
    _service("together", "https://api.together.xyz/v1"),
    base_variables=("TOGETHER_API_BASE", "TOGETHERAI_API_BASE"),
    keys=(ApiKey("TOGETHER_API_KEY"), ApiKey("TOGETHERAI_API_KEY")),
    capabilities=_ENFORCING,
    rules=_OPEN_MODELS,
    aliases=("together_ai",),
)
_FIREWORKS = replace(
    _service("fireworks", "https://api.fireworks.ai/inference/v1"),
    keys=(ApiKey("FIREWORKS_API_KEY"), ApiKey("FIREWORKS_AI_API_KEY")),
    capabilities=_ENFORCING,
    rules=_OPEN_MODELS,
    aliases=("fireworks_ai",),
)
_XAI = replace(
    _service("xai", "https://api.x.ai/v1"),
    capabilities=_ENFORCING,
    rules=(
        ModelRule.of(
            "grok-3-mini*",
            ModelFacts(stop=False, efforts=("low", "high"), default_effort="low"),
            reasoning=True,
            images=False,
        ),
        ModelRule.of("*non-reasoning* grok-2* grok-3*", NO_THINKING),
        # They always reason, take no effort and show no thinking.
        ModelRule.of(
            "grok-*",
            ModelFacts(thinking="none", default_effort="medium", stop=False),
            reasoning=True,
            reasoning_hidden=True,
        ),
    ),
)
_CEREBRAS = replace(
    _service("cerebras", "https://api.cerebras.ai/v1"),
    wires={**_chat("CEREBRAS"), "gpt-oss": Wire("openai_chat", "openai_chat.profiles:CEREBRAS_GPT_OSS")},
    capabilities=replace(_DEFAULTS, tools_with_json_schema=False, images=False),
    rules=(replace(_GPT_OSS_RULE, wire="gpt-oss"), *_OPEN_MODELS[1:]),
)
# Thinking is on or off, without efforts; the host fixes the temperature.
_KIMI = ModelFacts(sampling="never", efforts=("off",), default_effort="medium", forced_choice_with_reasoning=False)
_MOONSHOT = replace(
    _service("moonshot", "https://api.moonshot.ai/v1"),
    rules=(
        ModelRule.of("kimi-k2-thinking*", replace(_KIMI, efforts=()), reasoning=True, images=False),
        ModelRule.of("kimi-k2.[5-9]*", _KIMI, reasoning=True),
        ModelRule.of("moonshot-v1*vision*", NO_THINKING),
        ModelRule.of("moonshot-v1* kimi-k2-*", NO_THINKING, images=False),
        ModelRule.of("kimi-*", replace(_KIMI, efforts=()), reasoning=True),
    ),
    aliases=("kimi",),
)
_CRUSOE = replace(
    _service("crusoe", "https://api.inference.crusoecloud.com/v1"), capabilities=_ENFORCING, rules=_OPEN_MODELS
)


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
        capabilities=_ENFORCING,
        rules=_OPEN_MODELS,
        shows_reasoning=True,
        hints={
            LMTransportError: f"Is {name} running there? Name another server in {base} or base_url (it ends with /v1)."
        },
        aliases=aliases,
    )


_LOCAL = (
    _local("vllm", "VLLM", 8000, "vLLM", key="VLLM_API_KEY", base="VLLM_API_BASE", aliases=("hosted_vllm",)),
    replace(  # a schema silences the tools of the request, forced ones too
        _local("llamacpp", "LLAMACPP", 9931, "llama.cpp's server", key="LLAMA_API_KEY", base="LLAMA_API_BASE"),
        capabilities=replace(_ENFORCING, tools_with_json_schema=False),
    ),
    _local(
        "lmstudio", "LM_STUDIO", 1234, "LM Studio",
        key="LM_STUDIO_API_KEY", base="LM_STUDIO_API_BASE", aliases=("lm_studio",),
    ),
)  # fmt: skip

COMPATIBLE: tuple[Provider, ...] = (
    _GROQ, _MISTRAL, _DEEPSEEK, _OPENROUTER, _TOGETHER, _FIREWORKS, _XAI, _CEREBRAS, _MOONSHOT, _CRUSOE, *_LOCAL,
)  # fmt: skip
