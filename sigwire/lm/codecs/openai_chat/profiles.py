"""Hosts that speak OpenAI's chat completions: one ``ChatProfile`` each, as data. The codec is ``openai_chat``.

A row says only where a host differs from its base: ``OPENAI`` for OpenAI's own service, ``COMPATIBLE`` for everybody
else. A new host is ``dataclasses.replace(COMPATIBLE, family="my-host", ...)``. Base URLs, keys and what models can do
are in the provider table, not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.names import NameRules
from sigwire.lm.codecs.shared.call_ids import CallIdRules
from sigwire.lm.codecs.shared.history import HistoryRules
from sigwire.lm.codecs.shared.interface import WireProfile
from sigwire.lm.codecs.shared.options import Drop, Option, Place
from sigwire.lm.codecs.shared.schema import SchemaRules

__all__ = [
    "AZURE",
    "CEREBRAS",
    "COMPATIBLE",
    "DEEPSEEK",
    "DIALECTS",
    "FIREWORKS",
    "GEMINI_CHAT",
    "GROQ",
    "LLAMACPP",
    "LM_STUDIO",
    "MISTRAL",
    "OLLAMA_CHAT",
    "OPENAI",
    "OPENROUTER",
    "TOGETHER",
    "VLLM",
    "XAI",
    "ChatProfile",
    "ReasoningNames",
]


@dataclass(frozen=True, kw_only=True)
class ReasoningNames:
    """How a host is asked to think.

    ``efforts`` are the words it takes, weakest first, "off" included when it can be switched off; none: it cannot be
    asked. ``effort`` and ``budget`` are places in the body, ``on`` and ``off`` are merged into it.
    """

    efforts: tuple[str, ...] = ()
    effort: str = "reasoning_effort"
    budget: str | None = None
    on: JsonObject = field(default_factory=dict[str, JsonValue])
    off: JsonObject = field(default_factory=lambda: {"reasoning_effort": "none"})


_EVERY_EFFORT = ReasoningNames(efforts=("off", "minimal", "low", "medium", "high", "xhigh", "max"))
_USUAL_EFFORTS = ReasoningNames(efforts=("off", "low", "medium", "high"))
_NAMES = NameRules()
_OBJECT_ROOT = SchemaRules(root="union")


@dataclass(frozen=True, kw_only=True)
class ChatProfile(WireProfile):
    """How one host speaks chat completions. The defaults are api.openai.com.

    ``options``: over the wire's table, ``None`` for an option the host refuses. ``required``: its word for a forced
    call. ``none``: how calls are forbidden, by that word or by sending no tools. ``forced_choice``: whether a call
    can be forced. ``allowed_tools``: whether the choice can name several tools, else the others are not sent.
    ``parallel``: sent as ``parallel_tool_calls`` when tools are offered and the caller left it open. ``structured``:
    the output formats the host has. ``structured_with_tools``: whether beside tools. ``many``: whether it takes
    ``n``. ``media``: what a user turn may hold beside text. ``text_lists``: whether content may be a list where there
    is only text. ``reasoning``: how thinking is asked for. ``replay``: where thinking goes back ("chunk": a content
    part). ``broken_arguments``: whether a call's arguments may be text that is no JSON. ``think_tags``: whether
    thinking may come as ``<think>`` in the text. ``usage_in_streams``: whether a stream can be asked for usage.
    ``cache_key``: whether ``prompt_cache_key`` is taken. ``cache_mark``: the field that marks the end of a cached
    prefix, for models that take marks.
    """

    family: str = "openai-chat"
    path: str = "/chat/completions"
    names: NameRules = _NAMES
    output_schema: SchemaRules = _OBJECT_ROOT
    history_rules: HistoryRules = HistoryRules(result_media="user")
    options: Mapping[str, Option | None] = field(default_factory=dict[str, "Option | None"])
    required: str = "required"
    none: Literal["word", "drop"] = "word"
    forced_choice: bool = True
    allowed_tools: bool = True
    parallel: bool | None = None
    structured: tuple[Literal["json_schema", "json_object"], ...] = ("json_schema", "json_object")
    structured_with_tools: bool = True
    many: bool = True
    media: frozenset[str] = frozenset({"image", "audio", "file"})
    text_lists: bool = True
    reasoning: ReasoningNames = _EVERY_EFFORT
    replay: Literal["", "reasoning_content", "reasoning", "chunk"] = ""
    broken_arguments: bool = True
    think_tags: bool = False
    usage_in_streams: bool = True
    cache_key: bool = True
    cache_mark: str = "prompt_cache_breakpoint"


# --- rows --------------------------------------------------------------------------------------------------

_CAP: Mapping[str, Option | None] = {"max_tokens": Place("max_tokens")}
_LOCAL: Mapping[str, Option | None] = {**_CAP, "top_k": Place("top_k"), "service_tier": None, "metadata": None}
_ONE_SYSTEM = HistoryRules(result_media="user", system="front")  # chat templates fail on a second system turn

OPENAI = ChatProfile()
AZURE = replace(OPENAI, family="azure", path="/openai/deployments/{model}/chat/completions")
COMPATIBLE = ChatProfile(
    family="openai-compatible",
    options=_CAP,
    allowed_tools=False,
    text_lists=False,
    reasoning=_USUAL_EFFORTS,
    broken_arguments=False,
    cache_key=False,
    cache_mark="cache_control",
)
GROQ = replace(
    COMPATIBLE,
    family="groq",
    options={"logprobs": None, "top_logprobs": None},
    many=False,
    media=frozenset({"image"}),
    reasoning=_USUAL_EFFORTS,
)
MISTRAL = replace(
    COMPATIBLE,
    family="mistral",
    options={**_CAP, "seed": Place("random_seed"), "user": None, "service_tier": None},
    history_rules=HistoryRules(result_media="user", ids=CallIdRules(allowed="A-Za-z0-9", exact=9)),
    required="any",
    none="drop",
    text_lists=True,
    reasoning=ReasoningNames(efforts=("off", "high")),
    replay="chunk",
    usage_in_streams=False,
)
DEEPSEEK = replace(
    COMPATIBLE,
    family="deepseek",
    options={**_CAP, "seed": Drop("the host has no seed; it was left out.")},
    many=False,
    structured=("json_object",),
    media=frozenset[str](),
    reasoning=ReasoningNames(
        efforts=("off", "low", "high", "max"),
        on={"thinking": {"type": "enabled"}},
        off={"thinking": {"type": "disabled"}},
    ),
    replay="reasoning_content",
)
OPENROUTER = replace(
    COMPATIBLE,
    family="openrouter",
    options={**_CAP, "top_k": Place("top_k")},
    text_lists=True,
    reasoning=ReasoningNames(
        efforts=("off", "minimal", "low", "medium", "high", "xhigh"),
        effort="reasoning.effort",
        budget="reasoning.max_tokens",
        off={"reasoning": {"enabled": False}},
    ),
)
TOGETHER = replace(COMPATIBLE, family="together", options=_LOCAL, think_tags=True)
FIREWORKS = replace(COMPATIBLE, family="fireworks", options=_LOCAL, think_tags=True)
XAI = replace(COMPATIBLE, family="xai", media=frozenset({"image"}))
CEREBRAS = replace(
    COMPATIBLE,
    family="cerebras",
    options={"frequency_penalty": None, "presence_penalty": None, "metadata": None},
    media=frozenset[str](),
)
VLLM = replace(
    COMPATIBLE,
    family="vllm",
    options=_LOCAL,
    history_rules=_ONE_SYSTEM,
    reasoning=ReasoningNames(
        efforts=("off", "low", "medium", "high"), off={"chat_template_kwargs": {"enable_thinking": False}}
    ),
    think_tags=True,
)
LLAMACPP = replace(
    COMPATIBLE, family="llamacpp", options=_LOCAL, history_rules=_ONE_SYSTEM, parallel=True, think_tags=True
)
LM_STUDIO = replace(
    COMPATIBLE,
    family="lmstudio",
    options=_LOCAL,
    history_rules=_ONE_SYSTEM,
    none="drop",
    reasoning=ReasoningNames(efforts=("off", "low", "medium", "high", "xhigh")),
    think_tags=True,
)
OLLAMA_CHAT = replace(
    COMPATIBLE,
    family="ollama-chat-completions",
    options={**_CAP, "service_tier": None, "metadata": None},
    none="drop",
    forced_choice=False,
    many=False,
    media=frozenset({"image"}),
    reasoning=ReasoningNames(efforts=("off", "low", "medium", "high", "max")),
    replay="reasoning",
    think_tags=True,
)
GEMINI_CHAT = replace(COMPATIBLE, family="gemini-chat-completions", media=frozenset({"image", "audio"}))

DIALECTS: Mapping[str, ChatProfile] = {
    "openai": OPENAI,
    "azure": AZURE,
    "compatible": COMPATIBLE,
    "groq": GROQ,
    "mistral": MISTRAL,
    "deepseek": DEEPSEEK,
    "openrouter": OPENROUTER,
    "together": TOGETHER,
    "fireworks": FIREWORKS,
    "xai": XAI,
    "cerebras": CEREBRAS,
    "vllm": VLLM,
    "llamacpp": LLAMACPP,
    "lmstudio": LM_STUDIO,
    "ollama-chat": OLLAMA_CHAT,
    "gemini-chat": GEMINI_CHAT,
}
"""Every row by the name the provider table uses."""
