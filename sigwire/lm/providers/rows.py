"""The rows of the provider table: address, keys, wires, capabilities, and rules by model name, one screen a provider.

Providers and models differ here or in a codec's profiles, and nowhere else. The rules of a family stand before its row; a
new model is a new name in a rule, or a new rule above those that would fit it as well. ``ROWS`` assembles the table.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sigwire.core.capabilities import Capabilities
from sigwire.errors import LMTransportError
from sigwire.lm.codecs.shared.interface import ModelFacts
from sigwire.lm.providers.compatible_rows import COMPATIBLE, GPT_OSS
from sigwire.lm.providers.openai_rows import AZURE, OPENAI
from sigwire.lm.providers.row import NO_THINKING, AddressForm, ApiKey, ModelRule, Provider, Wire, without_slash

__all__ = ["CLAUDE_RULES", "GEMINI_CAPABILITIES", "GEMINI_RULES", "ROWS"]

# --- Anthropic


_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_CLAUDE_3 = ModelFacts(thinking="none")
_CLAUDE_4 = ModelFacts(sampling="unless_reasoning", thinking="budget", forced_choice_with_reasoning=False)
_CLAUDE_4_6 = ModelFacts(sampling="unless_reasoning", efforts=("off", "low", "medium", "high", "max"), prefill=False)
_CLAUDE_4_7 = ModelFacts(sampling="never", efforts=("off", *_EFFORTS), prefill=False)
_CLAUDE_4_8 = replace(_CLAUDE_4_7, later_system=True)
_CLAUDE_ALWAYS_THINKS = ModelFacts(
    sampling="never",
    efforts=_EFFORTS,
    default_effort="high",
    forced_choice=False,
    later_system=True,
    prefill=False,
    default_max_tokens=16384,  # thinking counts against it and cannot be switched off
)

CLAUDE_RULES = (
    ModelRule.of(
        "*claude-3-7* *claude-3.7*", _CLAUDE_4, json_schema=False, tools_with_json_schema=False, reasoning=True
    ),
    ModelRule.of("*claude-3* *claude-2* *claude-instant*", _CLAUDE_3, json_schema=False, tools_with_json_schema=False),
    ModelRule.of("*claude-*-4-5* *claude-*-4.5* *claude-opus-4-1* *claude-opus-4.1*", _CLAUDE_4, reasoning=True),
    ModelRule.of("*claude-*-4-6* *claude-*-4.6*", _CLAUDE_4_6, reasoning=True),
    ModelRule.of("*claude-*-4-7* *claude-*-4.7*", _CLAUDE_4_7, reasoning=True),
    ModelRule.of("*claude-*-4-8* *claude-*-4.8*", _CLAUDE_4_8, reasoning=True),
    ModelRule.of(
        "*claude-sonnet-4 *claude-sonnet-4-* *claude-opus-4 *claude-opus-4-*",
        _CLAUDE_4,
        json_schema=False,
        tools_with_json_schema=False,
        reasoning=True,
    ),
    ModelRule.of("*claude-haiku-5-5* *claude-haiku-5.5*", _CLAUDE_4_8, reasoning=True),
    ModelRule.of("*mythos-preview*", replace(_CLAUDE_ALWAYS_THINKS, later_system=False), reasoning=True),
    ModelRule.of("*claude-*-5-5* *claude-*-5.5* *fable* *mythos*", _CLAUDE_ALWAYS_THINKS, reasoning=True),
    ModelRule.of("*claude-opus-5*", _CLAUDE_4_8, reasoning=True),
    ModelRule.of("*claude-*", _CLAUDE_4_7, reasoning=True),
)

_ANTHROPIC = Provider(
    prefix="anthropic",
    base_url="https://api.anthropic.com",
    base_variables=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
    tidy=lambda url: without_slash(url).removesuffix("/v1"),
    addresses=(AddressForm("/v1/messages"),),
    keys=(ApiKey("ANTHROPIC_API_KEY", "x-api-key", "{}"), ApiKey("ANTHROPIC_AUTH_TOKEN")),
    wires={"messages": Wire("anthropic", "anthropic:ANTHROPIC")},
    capabilities=Capabilities(
        native_tools=True,
        parallel_tool_calls=True,
        tool_choice=True,
        json_schema=True,
        tools_with_json_schema=True,
        images=True,
        files=True,
    ),
    rules=CLAUDE_RULES,
)


# --- Gemini

_GEMINI_2 = ModelFacts(thinking="none", builtin_with_functions=False, media_in_results=False)
_GEMINI_2_5 = replace(_GEMINI_2, thinking="budget", budgets=(0, 24576), default_effort="medium")
_GEMINI_3 = ModelFacts(
    efforts=("low", "medium", "high"), default_effort="high", signed_calls=True, media_in_results=True
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
    ModelRule.of("*gemma*", _GEMINI_2, native_tools=False, json_schema=False, tools_with_json_schema=False),
    ModelRule.of("*gemini*", _GEMINI_3, reasoning=True, tools_with_json_schema=True),
)
GEMINI_CAPABILITIES = Capabilities(
    native_tools=True,
    parallel_tool_calls=True,
    tool_choice=True,
    json_schema=True,
    json_object=True,
    images=True,
    audio=True,
    files=True,
)

_GEMINI = Provider(
    prefix="gemini",
    base_url="https://generativelanguage.googleapis.com",
    base_variables=("GOOGLE_GEMINI_BASE_URL",),
    addresses=(AddressForm(r"/v1(?:beta)?/models/(?P<model>[^/:]+):\w+", query=False), AddressForm("/v1(?:beta)?")),
    keys=(ApiKey("GOOGLE_API_KEY", "x-goog-api-key", "{}"), ApiKey("GEMINI_API_KEY", "x-goog-api-key", "{}")),
    wires={"generate": Wire("gemini", "gemini:GEMINI")},
    capabilities=GEMINI_CAPABILITIES,
    rules=GEMINI_RULES,
)


# --- Ollama


def _ollama_base(host: str) -> str:
    """Return the base URL of ``OLLAMA_HOST``: without a scheme the port defaults to Ollama's, else to the scheme's."""
    scheme, _, rest = host.strip().removeprefix("//").rpartition("://")
    place, slash, path = rest.partition("/")
    name, _, port = place.rpartition(":") if re.search(r":\d+$", place) else (place.removesuffix(":"), "", "")
    name = "127.0.0.1" if name in ("", "0.0.0.0") else name  # a server listens on it; a client cannot call it
    port = port or {"": "11434", "http": "80", "https": "443"}.get(scheme.lower(), "11434")
    return f"{scheme or 'http'}://{name}:{port}{slash}{path}".rstrip("/")


_OLLAMA_RULES = (
    ModelRule.of("gpt-oss*cloud", GPT_OSS, reasoning=True, json_schema=False, json_object=False, schema_on_demand=True),
    ModelRule.of("*-cloud *:cloud", json_schema=False, json_object=False, schema_on_demand=True),
    ModelRule.of("gpt-oss*", GPT_OSS, reasoning=True),
    ModelRule.of("qwen3-vl*", ModelFacts(default_effort="medium"), reasoning=True, images=True),
    ModelRule.of(
        "deepseek-r1* deepseek-v3.1* magistral* qwen3* qwq*", ModelFacts(default_effort="medium"), reasoning=True
    ),
    ModelRule.of(
        "bakllava* gemma3* llava* minicpm-v* moondream*",
        NO_THINKING,
        images=True,
        native_tools=False,
        parallel_tool_calls=False,
    ),
    ModelRule.of("llama3.2-vision* llama4* mistral-small3* qwen2.5vl*", NO_THINKING, images=True),
    ModelRule.of(
        "codegemma* codellama* falcon* gemma gemma:* gemma2* llama2* llama3 llama3:* neural-chat* orca* phi "
        "phi:* phi3* phi4 phi4:* starling* tinyllama* vicuna* wizard* yi* zephyr*",
        NO_THINKING,
        native_tools=False,
        parallel_tool_calls=False,
    ),
)

_OLLAMA = Provider(
    prefix="ollama",
    base_url="http://127.0.0.1:11434",
    base_variables=("OLLAMA_HOST", "OLLAMA_API_BASE"),
    tidy=_ollama_base,
    addresses=(AddressForm("/api/(?:chat|generate)"),),
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
    capabilities=Capabilities(native_tools=True, parallel_tool_calls=True, schema_on_demand=True),
    rules=(ModelRule.of("gpt-oss*", GPT_OSS, reasoning=True),),
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
    hints={LMTransportError: "Is Foreman running at the address of FOREMAN_HOST or base_url?"},
    aliases=(),
)


# --- without HTTP

_LEXICAL = replace(Provider(prefix="").capabilities, images=False, schema_on_demand=False)
_OFFLINE = Provider(prefix="offline", backend="embedded", capabilities=_LEXICAL, models={"lexical": _LEXICAL})
_LITELLM = Provider(
    prefix="litellm",
    backend="bridge",
    needs="litellm",
    capabilities=Capabilities(native_tools=True, parallel_tool_calls=True, tool_choice=True, images=True),
)

ROWS: tuple[Provider, ...] = (
    OPENAI, AZURE, _ANTHROPIC, _GEMINI, _OLLAMA, _OLLAMA_CLOUD, _FOREMAN, *COMPATIBLE, _OFFLINE, _LITELLM,
)  # fmt: skip
"""The rows without those of two clouds (``cloud_rows``)."""
