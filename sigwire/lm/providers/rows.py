"""The rows of the provider table: address, keys, wires, abilities and rules by model name, one screen a provider.

What is told apart by provider or by model name is told apart here or in a codec's dialects, and nowhere else. Each family's
model rules stand before its row; a new model is a new name in a rule, or a new rule above those that would fit it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sigwire.core.capabilities import Capabilities
from sigwire.errors import LMAuthenticationError, LMTransportError
from sigwire.lm.codecs.shared.interface import ModelFacts
from sigwire.lm.providers.row import ApiKey, ModelRule, Provider, UrlVariable, Wire, without_slash

__all__ = ["ROWS"]

# --- OpenAI --------------------------------------------------------------------------------------------------

_NO_THINKING = ModelFacts(thinking="none")
_REASONS: Mapping[str, Any] = {"reasoning": True}
_O_SERIES = ModelFacts(sampling="never", stop=False, efforts=("low", "medium", "high"), default_effort="medium")
_GPT_5 = replace(_O_SERIES, efforts=("minimal", "low", "medium", "high"))
_GPT_5_1 = ModelFacts(
    sampling="unless_reasoning", stop=False, efforts=("off", "low", "medium", "high"), default_effort="off"
)
_GPT_5_2 = replace(_GPT_5_1, efforts=("off", "low", "medium", "high", "xhigh"))
# Chat completions refuses tools beside reasoning from here on; the Responses API takes both.
_GPT_5_4 = replace(_GPT_5_2, tools_with_reasoning=False)
_GPT_5_5 = replace(_GPT_5_4, default_effort="medium")
_GPT_5_6 = replace(_GPT_5_5, cache_breakpoints=True)
_ALWAYS_REASONS = replace(_GPT_5_6, sampling="never", efforts=("low", "medium", "high", "xhigh"))
_FILES: Mapping[str, Any] = {"files": True}
_REASONS_AND_READS: Mapping[str, Any] = {"reasoning": True, "files": True}

_OPENAI_RULES = (
    ModelRule(names=("*gpt-4-turbo*",), facts=_NO_THINKING, capabilities={"json_schema": False}),
    ModelRule(
        names=("*gpt-3.5*", "*gpt-35*", "gpt-4", "gpt-4-*"),
        facts=_NO_THINKING,
        capabilities={"json_schema": False, "images": False},
    ),
    ModelRule(
        names=("gpt-4o-audio*", "gpt-audio*"),
        facts=_NO_THINKING,
        capabilities={"json_schema": False, "images": False, "audio": True},
    ),
    ModelRule(names=("*gpt-4*", "chatgpt-*", "gpt-5-chat*", "gpt-5.?-chat*"), facts=_NO_THINKING, capabilities=_FILES),
    ModelRule(names=("*deep-research*", "computer-use-*"), facts=_O_SERIES, capabilities=_REASONS, wire="responses"),
    ModelRule(
        names=("o1-mini*", "o1-preview*"),
        facts=replace(_O_SERIES, thinking="none"),
        capabilities={**_REASONS, "native_tools": False, "json_schema": False, "json_object": False, "images": False},
    ),
    ModelRule(
        names=("o1-pro*", "o3-pro*", "codex-*"), facts=_O_SERIES, capabilities=_REASONS_AND_READS, wire="responses"
    ),
    ModelRule(names=("o3-mini*",), facts=_O_SERIES, capabilities={**_REASONS, "images": False}),
    ModelRule(names=("o1*", "o3*", "o4*"), facts=_O_SERIES, capabilities=_REASONS_AND_READS),
    ModelRule(
        names=("gpt-5-pro*",),
        facts=replace(_GPT_5, efforts=("high",), default_effort="high"),
        capabilities=_REASONS_AND_READS,
        wire="responses",
    ),
    ModelRule(names=("gpt-5-codex*",), facts=_O_SERIES, capabilities=_REASONS_AND_READS, wire="responses"),
    ModelRule(
        names=("gpt-?.?-pro*", "gpt-?-pro*", "gpt-?.?-codex*", "gpt-?-codex*"),
        facts=replace(_ALWAYS_REASONS, cache_breakpoints=False),
        capabilities=_REASONS_AND_READS,
        wire="responses",
    ),
    ModelRule(names=("gpt-5", "gpt-5-*"), facts=_GPT_5, capabilities=_REASONS_AND_READS),
    ModelRule(names=("gpt-5.1*",), facts=_GPT_5_1, capabilities=_REASONS_AND_READS),
    ModelRule(names=("gpt-5.[23]*",), facts=_GPT_5_2, capabilities=_REASONS_AND_READS),
    ModelRule(names=("gpt-5.4*",), facts=_GPT_5_4, capabilities=_REASONS_AND_READS, tools_wire="responses"),
    ModelRule(names=("gpt-5.5*",), facts=_GPT_5_5, capabilities=_REASONS_AND_READS, tools_wire="responses"),
    ModelRule(
        names=("gpt-6-astra*", "gpt-6.1-sol*"),
        facts=_ALWAYS_REASONS,
        capabilities=_REASONS_AND_READS,
        tools_wire="responses",
    ),
    ModelRule(
        names=("gpt-5.[6-9]*", "gpt-[6-9]*"), facts=_GPT_5_6, capabilities=_REASONS_AND_READS, tools_wire="responses"
    ),
)

_OPENAI = Provider(
    prefix="openai",
    base_url="https://api.openai.com/v1",
    base_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    keys=(ApiKey("OPENAI_API_KEY"),),
    header_variables={"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"},
    wires={
        # ``LM("openai/some-model", base_url=...)`` is how hosts without a row are asked; a gateway has OpenAI's own models.
        "chat": Wire("openai_chat", "openai_chat.profiles:OPENAI", foreign_host="openai_chat.profiles:COMPATIBLE"),
        "responses": Wire("openai_responses", "openai_responses:OPENAI", foreign_host="openai_responses:COMPATIBLE"),
    },
    builtin_wire="responses",
    rules=_OPENAI_RULES,
)

_AZURE = Provider(
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


# --- Anthropic -------------------------------------------------------------------------------------------------


def _without_v1(url: str) -> str:
    return without_slash(url).removesuffix("/v1")


_EVERY_WORD = ("low", "medium", "high", "xhigh", "max")
_CLAUDE_3 = ModelFacts(thinking="none")
_CLAUDE_4 = ModelFacts(sampling="unless_reasoning", thinking="budget", forced_choice_with_reasoning=False)
_CLAUDE_4_6 = ModelFacts(sampling="unless_reasoning", efforts=("off", "low", "medium", "high", "max"), prefill=False)
_CLAUDE_4_7 = ModelFacts(sampling="never", efforts=("off", *_EVERY_WORD), prefill=False)
_CLAUDE_4_8 = replace(_CLAUDE_4_7, later_system=True)
_CLAUDE_ALWAYS_THINKS = ModelFacts(
    sampling="never",
    efforts=_EVERY_WORD,
    default_effort="high",
    forced_choice=False,
    later_system=True,
    prefill=False,
    default_max_tokens=16384,  # thinking counts against it, and cannot be switched off
)
_NO_SCHEMA: Mapping[str, Any] = {"json_schema": False, "tools_with_json_schema": False}

_CLAUDE_RULES = (
    ModelRule(names=("*claude-3-7*", "*claude-3.7*"), facts=_CLAUDE_4, capabilities={**_NO_SCHEMA, **_REASONS}),
    ModelRule(names=("*claude-3*", "*claude-2*", "*claude-instant*"), facts=_CLAUDE_3, capabilities=_NO_SCHEMA),
    ModelRule(
        names=("*claude-*-4-5*", "*claude-*-4.5*", "*claude-opus-4-1*", "*claude-opus-4.1*"),
        facts=_CLAUDE_4,
        capabilities=_REASONS,
    ),
    ModelRule(names=("*claude-*-4-6*", "*claude-*-4.6*"), facts=_CLAUDE_4_6, capabilities=_REASONS),
    ModelRule(names=("*claude-*-4-7*", "*claude-*-4.7*"), facts=_CLAUDE_4_7, capabilities=_REASONS),
    ModelRule(names=("*claude-*-4-8*", "*claude-*-4.8*"), facts=_CLAUDE_4_8, capabilities=_REASONS),
    ModelRule(
        names=("*claude-sonnet-4", "*claude-sonnet-4-*", "*claude-opus-4", "*claude-opus-4-*"),
        facts=_CLAUDE_4,
        capabilities={**_NO_SCHEMA, **_REASONS},
    ),
    ModelRule(names=("*claude-haiku-5-5*", "*claude-haiku-5.5*"), facts=_CLAUDE_4_8, capabilities=_REASONS),
    ModelRule(
        names=("*mythos-preview*",), facts=replace(_CLAUDE_ALWAYS_THINKS, later_system=False), capabilities=_REASONS
    ),
    ModelRule(
        names=("*claude-*-5-5*", "*claude-*-5.5*", "*fable*", "*mythos*"),
        facts=_CLAUDE_ALWAYS_THINKS,
        capabilities=_REASONS,
    ),
    ModelRule(names=("*claude-opus-5*",), facts=_CLAUDE_4_8, capabilities=_REASONS),
    ModelRule(names=("*claude-*",), facts=_CLAUDE_4_7, capabilities=_REASONS),
)

_ANTHROPIC = Provider(
    prefix="anthropic",
    base_url="https://api.anthropic.com",
    base_variables=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
    tidy=_without_v1,
    keys=(ApiKey("ANTHROPIC_API_KEY", "x-api-key", "{}"), ApiKey("ANTHROPIC_AUTH_TOKEN")),
    wires={"messages": Wire("anthropic", "anthropic:ANTHROPIC")},
    capabilities=Capabilities(
        native_tools=True, parallel_tool_calls=True, tool_choice=True, json_schema=True, tools_with_json_schema=True,
        images=True, files=True,
    ),
    rules=_CLAUDE_RULES,
)  # fmt: skip


# --- Gemini ------------------------------------------------------------------------------------------------------

_GEMINI_2 = ModelFacts(thinking="none", builtin_with_functions=False, media_in_results=False)
_GEMINI_2_5 = replace(_GEMINI_2, thinking="budget", budgets=(0, 24576), default_effort="medium")
_GEMINI_3 = ModelFacts(
    efforts=("low", "medium", "high"), default_effort="high", signed_calls=True, media_in_results=True
)

_GEMINI_RULES = (
    ModelRule(names=("*gemini-1*", "*gemini-2.0*", "*gemini-2-0*"), facts=_GEMINI_2),
    ModelRule(
        names=("*gemini-2.5-pro*",),
        facts=replace(_GEMINI_2_5, efforts=("minimal", *_EVERY_WORD), budgets=(128, 32768)),
        capabilities=_REASONS,
    ),
    ModelRule(
        names=("*gemini-2.5-flash-lite*",),
        facts=replace(_GEMINI_2_5, budgets=(512, 24576), default_effort="off"),
        capabilities=_REASONS,
    ),
    ModelRule(names=("*gemini-2.5*",), facts=_GEMINI_2_5, capabilities=_REASONS),
    ModelRule(
        names=("*gemini-3-pro*",),
        facts=replace(_GEMINI_3, efforts=("low", "high")),
        capabilities={**_REASONS, "tools_with_json_schema": True},
    ),
    ModelRule(
        names=("*gemini-3-flash*", "*gemini-3.[1-6]-flash*"),
        facts=replace(_GEMINI_3, efforts=("minimal", "low", "medium", "high")),
        capabilities={**_REASONS, "tools_with_json_schema": True},
    ),
    ModelRule(names=("*gemma*",), facts=_GEMINI_2, capabilities={"native_tools": False, **_NO_SCHEMA}),
    ModelRule(names=("*gemini*",), facts=_GEMINI_3, capabilities={**_REASONS, "tools_with_json_schema": True}),
)
_GEMINI_ABILITIES = Capabilities(
    native_tools=True, parallel_tool_calls=True, tool_choice=True, json_schema=True, json_object=True,
    images=True, audio=True, files=True,
)  # fmt: skip

_GEMINI = Provider(
    prefix="gemini",
    base_url="https://generativelanguage.googleapis.com",
    base_variables=("GOOGLE_GEMINI_BASE_URL",),
    keys=(ApiKey("GOOGLE_API_KEY", "x-goog-api-key", "{}"), ApiKey("GEMINI_API_KEY", "x-goog-api-key", "{}")),
    wires={"generate": Wire("gemini", "gemini:GEMINI")},
    capabilities=_GEMINI_ABILITIES,
    rules=_GEMINI_RULES,
)


def _vertex_base(filled: Mapping[str, str]) -> str:
    place = filled["location"]
    host = "aiplatform.googleapis.com" if place == "global" else f"{place}-aiplatform.googleapis.com"
    return f"https://{host}/v1/projects/{filled['project']}/locations/{place}"


_VERTEX = Provider(
    prefix="vertex",
    base_url=_vertex_base,
    variables={
        "project": UrlVariable(("GOOGLE_CLOUD_PROJECT",)),
        "location": UrlVariable(("GOOGLE_CLOUD_LOCATION",), "global"),
    },
    keys=(ApiKey("GOOGLE_OAUTH_ACCESS_TOKEN"), ApiKey("CLOUDSDK_AUTH_ACCESS_TOKEN")),
    hosts=("aiplatform.googleapis.com", "*-aiplatform.googleapis.com"),
    wires={"generate": Wire("gemini", "gemini:VERTEX")},
    capabilities=_GEMINI_ABILITIES,
    rules=_GEMINI_RULES,
    hints={
        LMAuthenticationError: "Access tokens last an hour: pass api_key as a function that gives a fresh one "
        "(`gcloud auth print-access-token` prints one)."
    },
)


# --- Ollama --------------------------------------------------------------------------------------------------------


def _ollama_base(host: str) -> str:
    """What ``OLLAMA_HOST`` means: without a scheme the port is Ollama's, with one it is the scheme's own.

    >>> _ollama_base("gpu-box"), _ollama_base("http://gpu-box"), _ollama_base(":9999"), _ollama_base("0.0.0.0")
    ('http://gpu-box:11434', 'http://gpu-box:80', 'http://127.0.0.1:9999', 'http://127.0.0.1:11434')
    """
    scheme, _, rest = host.strip().rpartition("://")
    place, slash, path = rest.partition("/")
    name, _, port = place.rpartition(":") if re.search(r":\d+$", place) else (place.removesuffix(":"), "", "")
    name = "127.0.0.1" if name in ("", "0.0.0.0") else name  # the address a server listens on is none to call
    port = port or {"": "11434", "http": "80", "https": "443"}.get(scheme.lower(), "11434")
    return f"{scheme or 'http'}://{name}:{port}{slash}{path}".rstrip("/")


_SEES: Mapping[str, Any] = {"images": True}
_GPT_OSS = ModelFacts(efforts=("low", "medium", "high"), default_effort="medium")
_UNHELD: Mapping[str, Any] = {"json_schema": False, "json_object": False}

_OLLAMA_RULES = (
    ModelRule(names=("gpt-oss*cloud",), facts=_GPT_OSS, capabilities={**_REASONS, **_UNHELD}),
    ModelRule(names=("*-cloud", "*:cloud"), capabilities=_UNHELD),
    ModelRule(names=("gpt-oss*",), facts=_GPT_OSS, capabilities=_REASONS),
    ModelRule(
        names=("qwen3-vl*",), facts=ModelFacts(default_effort="medium"), capabilities={**_REASONS, **_SEES}
    ),
    ModelRule(
        names=("deepseek-r1*", "deepseek-v3.1*", "magistral*", "qwen3*", "qwq*"),
        facts=ModelFacts(default_effort="medium"),
        capabilities=_REASONS,
    ),
    ModelRule(
        names=("bakllava*", "gemma3*", "llava*", "minicpm-v*", "moondream*"),
        facts=_NO_THINKING,
        capabilities={**_SEES, "native_tools": False, "parallel_tool_calls": False},
    ),
    ModelRule(names=("llama3.2-vision*", "llama4*", "mistral-small3*", "qwen2.5vl*"), facts=_NO_THINKING, capabilities=_SEES),
    ModelRule(
        names=(
            "codegemma*", "codellama*", "falcon*", "gemma", "gemma:*", "gemma2*", "llama2*", "llama3", "llama3:*",
            "neural-chat*", "orca*", "phi", "phi:*", "phi3*", "phi4", "phi4:*", "starling*", "tinyllama*", "vicuna*",
            "wizard*", "yi*", "zephyr*",
        ),
        facts=_NO_THINKING,
        capabilities={"native_tools": False, "parallel_tool_calls": False},
    ),
)  # fmt: skip

_OLLAMA = Provider(
    prefix="ollama",
    base_url="http://127.0.0.1:11434",
    base_variables=("OLLAMA_HOST", "OLLAMA_API_BASE"),
    tidy=_ollama_base,
    keys=(ApiKey("OLLAMA_API_KEY", host="ollama.com"),),
    key="optional",
    wires={"chat": Wire("ollama", "ollama:OLLAMA")},
    capabilities=Capabilities(native_tools=True, parallel_tool_calls=True, json_schema=True, json_object=True),
    rules=_OLLAMA_RULES,
    hints={
        LMTransportError: "Is Ollama running? Start it with `ollama serve`, or name another server in OLLAMA_HOST or "
        "base_url."
    },
    aliases=("ollama_chat",),
)

_OLLAMA_CLOUD = replace(
    _OLLAMA,
    prefix="ollama-cloud",
    base_url="https://ollama.com",
    base_variables=(),
    keys=(ApiKey("OLLAMA_API_KEY"),),
    key="needed",
    wires={"chat": Wire("ollama", "ollama:OLLAMA_CLOUD")},
    capabilities=Capabilities(native_tools=True, parallel_tool_calls=True),
    rules=(ModelRule(names=("gpt-oss*",), facts=_GPT_OSS, capabilities=_REASONS),),
    hints={},
    aliases=(),
)

_FOREMAN = replace(
    _OLLAMA,
    prefix="foreman",
    base_url="",
    base_variables=("FOREMAN_HOST",),
    keys=(ApiKey("FOREMAN_API_KEY"),),
    own_host=True,
    hints={LMTransportError: "Is Foreman running where FOREMAN_HOST or base_url says?"},
    aliases=(),
)


# --- hosts that speak chat completions -----------------------------------------------------------------------------


def _chat(dialect: str) -> Mapping[str, Wire]:
    return {"chat": Wire("openai_chat", f"openai_chat.profiles:{dialect}")}


_TEXT_ONLY: Mapping[str, Any] = {"images": False}
_OPEN_MODELS = (
    ModelRule(names=("*gpt-oss*",), facts=_GPT_OSS, capabilities={**_REASONS, **_TEXT_ONLY}),
    ModelRule(
        names=("*deepseek-r1*", "*kimi-k2-thinking*", "*magistral*", "*qwq*", "*-thinking*"),
        facts=ModelFacts(default_effort="medium"),
        capabilities={**_REASONS, **_TEXT_ONLY},
    ),
    ModelRule(names=("*llama-4*", "*llama4*", "*vision*", "*-vl-*", "*-vl", "*gemma-3*"), facts=_NO_THINKING),
    ModelRule(names=("*qwen3*", "*qwen-3*", "*glm*"), capabilities={**_REASONS, **_TEXT_ONLY}),
    ModelRule(
        names=("*llama*", "*mixtral*", "*mistral*", "*gemma*", "*qwen2*", "*qwen-2*", "*phi*"),
        facts=_NO_THINKING,
        capabilities=_TEXT_ONLY,
    ),
)
_USUAL = Provider(prefix="").capabilities
_BY_SCHEMA: Mapping[str, Any] = {"json_schema": True}

_GROQ = Provider(
    prefix="groq",
    base_url="https://api.groq.com/openai/v1",
    base_variables=("GROQ_API_BASE",),
    keys=(ApiKey("GROQ_API_KEY"),),
    wires=_chat("GROQ"),
    capabilities=replace(_USUAL, json_schema=False, tools_with_json_schema=False, images=False),
    rules=(
        ModelRule(names=("*gpt-oss*",), facts=_GPT_OSS, capabilities={**_REASONS, **_BY_SCHEMA}),
        # It thinks or it does not; there is no more or less of it.
        ModelRule(
            names=("*qwen3*",),
            facts=ModelFacts(efforts=("off",), default_effort="medium"),
            capabilities={**_REASONS, **_BY_SCHEMA},
        ),
        ModelRule(names=("*llama-4*",), facts=_NO_THINKING, capabilities={**_SEES, **_BY_SCHEMA}),
        ModelRule(names=("*kimi-k2*",), facts=_NO_THINKING, capabilities=_BY_SCHEMA),
        ModelRule(names=("*compound*",), facts=_NO_THINKING, capabilities={"native_tools": False}),
        ModelRule(names=("*",), facts=_NO_THINKING),
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
            capabilities=_REASONS,
        ),
    ),
)
_DEEPSEEK = Provider(
    prefix="deepseek",
    base_url="https://api.deepseek.com",
    base_variables=("DEEPSEEK_API_BASE",),
    keys=(ApiKey("DEEPSEEK_API_KEY"),),
    wires=_chat("DEEPSEEK"),
    capabilities=replace(_USUAL, json_schema=False, tools_with_json_schema=False, images=False, reasoning=True),
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
    capabilities=replace(_USUAL, files=True, reasoning=True),
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
            capabilities={**_REASONS, **_TEXT_ONLY},
        ),
        ModelRule(names=("*non-reasoning*", "grok-2*", "grok-3*"), facts=_NO_THINKING),
        # They reason as much as they like; there is no word for it.
        ModelRule(
            names=("grok-*",),
            facts=ModelFacts(thinking="none", default_effort="medium", stop=False),
            capabilities=_REASONS,
        ),
    ),
)
_CEREBRAS = Provider(
    prefix="cerebras",
    base_url="https://api.cerebras.ai/v1",
    base_variables=("CEREBRAS_API_BASE",),
    keys=(ApiKey("CEREBRAS_API_KEY"),),
    wires=_chat("CEREBRAS"),
    capabilities=replace(_USUAL, tools_with_json_schema=False, images=False),
    rules=_OPEN_MODELS,
)


# --- servers of one's own --------------------------------------------------------------------------------------------


def _local(
    prefix: str, dialect: str, port: int, name: str, *, key: str, base: str, aliases: tuple[str, ...] = ()
) -> Provider:
    return Provider(
        prefix=prefix,
        base_url=f"http://localhost:{port}/v1",
        base_variables=(base,),
        keys=(ApiKey(key),),
        key="optional",
        own_host=True,
        wires=_chat(dialect),
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


# --- not over HTTP of ours ---------------------------------------------------------------------------------------------

_OFFLINE = Provider(
    prefix="offline",
    backend="sigwire.lm.offline:connect",
    models={"lexical": replace(_USUAL, images=False)},
)
_LITELLM = Provider(
    prefix="litellm",
    backend="sigwire.lm.litellm.backend:connect",
    needs="litellm",
    capabilities=Capabilities(native_tools=True, parallel_tool_calls=True, tool_choice=True, images=True),
)

ROWS: tuple[Provider, ...] = (
    _OPENAI, _AZURE, _ANTHROPIC, _GEMINI, _VERTEX, _OLLAMA, _OLLAMA_CLOUD, _FOREMAN, _GROQ, _MISTRAL, _DEEPSEEK,
    _OPENROUTER, _TOGETHER, _FIREWORKS, _XAI, _CEREBRAS, *_LOCAL, _OFFLINE, _LITELLM,
)  # fmt: skip
"""Every row that sigwire knows by itself."""
