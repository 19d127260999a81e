"""The rows of the provider table: address, keys, wires, capabilities, and rules by model name, one screen a provider.

Hosts differ here or in a codec's profiles, models in ``families``, and nowhere else. ``ROWS`` assembles the table.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sigwire.core.capabilities import Capabilities
from sigwire.errors import LMTransportError
from sigwire.lm.codecs.shared.interface import ModelFacts
from sigwire.lm.providers.compatible_rows import COMPATIBLE
from sigwire.lm.providers.families import CLAUDE_RULES, GEMINI_RULES, GPT_OSS
from sigwire.lm.providers.openai_rows import AZURE, OPENAI
from sigwire.lm.providers.row import NO_THINKING, AddressForm, ApiKey, ModelRule, Provider, Wire, without_slash

__all__ = ["GEMINI_CAPABILITIES", "ROWS"]

# --- Anthropic

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

_GEMINI_DECIDES = Capabilities(images=True, audio=True, files=True, decides="only")

_GEMINI = Provider(
    prefix="gemini",
    base_url="https://generativelanguage.googleapis.com",
    base_variables=("GOOGLE_GEMINI_BASE_URL",),
    addresses=(
        AddressForm(r"/v1(?:beta)?/models/(?P<model>[^/:]+):\w+", query=False),
        AddressForm("/v1(?:beta)?(?:/decisions)?"),
    ),
    keys=(ApiKey("GOOGLE_API_KEY", "x-goog-api-key", "{}"), ApiKey("GEMINI_API_KEY", "x-goog-api-key", "{}")),
    wires={
        "generate": Wire("gemini", "gemini:GEMINI"),
        "decisions": Wire("decisions", "decisions:GEMINI", capabilities=_GEMINI_DECIDES),
    },
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
    ModelRule.of(
        "gpt-oss*cloud",
        GPT_OSS,
        reasoning=True,
        images=False,
        json_schema=False,
        json_object=False,
        schema_on_demand=True,
    ),
    ModelRule.of("*-cloud *:cloud", json_schema=False, json_object=False, schema_on_demand=True),
    ModelRule.of("gpt-oss*", GPT_OSS, reasoning=True, images=False),
    ModelRule.of("qwen3-vl*", ModelFacts(default_effort="medium"), reasoning=True, images=True),
    ModelRule.of(
        "deepseek-r1* deepseek-v3.1* magistral* qwq*",
        ModelFacts(default_effort="medium"),
        reasoning=True,
        images=False,
    ),
    ModelRule.of("qwen3*", ModelFacts(default_effort="medium"), reasoning=True),
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
        images=False,
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
    capabilities=Capabilities(
        native_tools=True, parallel_tool_calls=True, json_schema=True, json_object=True, images=True
    ),
    rules=_OLLAMA_RULES,
    shows_reasoning=True,
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


# --- System One: hosts of decision models

_SYSTEM_ONE = Provider(
    prefix="system-one",
    base_variables=("SYSTEM_ONE_BASE_URL",),
    tidy=lambda url: without_slash(url).removesuffix("/v1"),
    addresses=(AddressForm("/v1/systemone"),),
    keys=(ApiKey("SYSTEM_ONE_API_KEY"),),
    key="optional",
    own_host=True,
    wires={"decisions": Wire("decisions", "decisions:SYSTEM_ONE")},
    capabilities=Capabilities(decides="only"),
)
_TYPESAFE = replace(
    _SYSTEM_ONE,
    prefix="typesafe",
    base_url="https://api.typesafe.ai",
    base_variables=("TYPESAFE_BASE_URL",),
    keys=(ApiKey("TYPESAFE_API_KEY"),),
    key="needed",
    own_host=False,
    wires={"decisions": Wire("decisions", "decisions:TYPESAFE")},
)


# --- without HTTP

_LEXICAL = replace(Provider(prefix="").capabilities, images=False, schema_on_demand=False, decides="also")
_OFFLINE = Provider(prefix="offline", backend="embedded", capabilities=_LEXICAL, models={"lexical": _LEXICAL})
_LITELLM = Provider(
    prefix="litellm",
    backend="bridge",
    needs="litellm",
    capabilities=Capabilities(native_tools=True, parallel_tool_calls=True, tool_choice=True, images=True),
)

ROWS: tuple[Provider, ...] = (
    OPENAI, AZURE, _ANTHROPIC, _GEMINI, _OLLAMA, _OLLAMA_CLOUD, _FOREMAN, *COMPATIBLE, _SYSTEM_ONE, _TYPESAFE, _OFFLINE,
    _LITELLM,
)  # fmt: skip
"""The rows without those of two clouds (``cloud_rows``)."""
