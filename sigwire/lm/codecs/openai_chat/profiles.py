"""Hosts of OpenAI's chat completions wire: one ``ChatProfile`` each, as data.

A row has the differences from its base: ``OPENAI`` for OpenAI's service, ``COMPATIBLE`` for all others. A new host is
``dataclasses.replace(COMPATIBLE, family="my-host", ...)``. The provider table has base URLs, keys and facts of models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.names import NameRules
from sigwire.lm.codecs.shared.history import HistoryRules
from sigwire.lm.codecs.shared.interface import WireProfile
from sigwire.lm.codecs.shared.options import Drop, Option, Place
from sigwire.lm.codecs.shared.schema import STRICT_SCHEMA, SchemaRules
from sigwire.lm.histories.call_ids import MISTRAL_IDS, OPENAI_IDS

__all__ = [
    "AZURE", "CEREBRAS", "CEREBRAS_GPT_OSS", "COMPATIBLE", "CRUSOE", "DEEPSEEK", "FIREWORKS", "GEMINI_CHAT", "GROQ",
    "LLAMACPP", "LM_STUDIO", "MISTRAL", "MOONSHOT", "OLLAMA_CHAT", "OPENAI", "OPENROUTER", "PROFILES", "TOGETHER", "VLLM",
    "XAI", "ChatProfile", "ReasoningNames",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReasoningNames:
    """The names and values of a host's option for reasoning.

    ``efforts`` are the names that the host takes, weakest first, with "off" if reasoning can be switched off; empty if
    there is no option. ``effort`` and ``budget`` are paths in the body; ``on`` and ``off`` are merged into the body.
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
    """The differences of one host from chat completions. The defaults are api.openai.com.

    ``options``: rows that replace those of the wire's table, None for an option that the host rejects.
    ``required``: its name for a forced call. ``none``: how calls are forbidden, by that word or by sending no tools.
    ``forced_choice``: whether a call can be forced. ``named_choice``, ``allowed_tools``: whether the choice can name one
    tool, several tools; if not, only those are sent. ``structured``: the output formats of the host;
    ``structured_with_tools``: whether tools may be sent with them. ``many``: whether the host
    takes ``n``. ``media``: kinds of media in user turns. ``text_lists``: whether content may be a list of text parts
    only. ``reasoning``: the names of the reasoning options. ``replay``: the field of reasoning in history ("chunk": a
    content part; "tags": in ``<think>``, before the text; "text": before the text); without one, reasoning is lost.
    ``no_reasoning``: the reasoning of a call turn that has none, ``None`` to leave the field out.
    ``broken_arguments``: whether arguments of a call may be invalid JSON. ``think_tags``: whether the text may start with
    reasoning in ``<think>``. ``usage_in_streams``: whether a stream can have usage. ``cache_key``: whether the host takes
    ``prompt_cache_key``. ``cache_mark``: the field that marks the end of a cached prefix. ``server_tools``: the start of the
    types of tools that the host runs ("openrouter:").
    """

    family: str = "openai-chat"
    path: str = "/chat/completions"
    names: NameRules = _NAMES
    output_schema: SchemaRules = _OBJECT_ROOT
    strict_schema: SchemaRules | None = STRICT_SCHEMA
    tool_fields: frozenset[str] = frozenset({"strict"})
    history_rules: HistoryRules = HistoryRules(result_media="user", ids=OPENAI_IDS)
    temperature: float | None = 2.0
    options: Mapping[str, Option | None] = field(default_factory=dict[str, "Option | None"])
    required: str = "required"
    none: Literal["word", "drop"] = "word"
    forced_choice: bool = True
    named_choice: bool = True
    allowed_tools: bool = True
    structured: tuple[Literal["json_schema", "json_object"], ...] = ("json_schema", "json_object")
    structured_with_tools: bool = True
    many: bool = True
    media: frozenset[str] = frozenset({"image", "audio", "file"})
    text_lists: bool = True
    reasoning: ReasoningNames = _EVERY_EFFORT
    replay: Literal["", "reasoning_content", "reasoning", "chunk", "tags", "text"] = ""
    no_reasoning: str | None = None
    broken_arguments: bool = True
    think_tags: bool = False
    usage_in_streams: bool = True
    cache_key: bool = True
    cache_mark: str = "prompt_cache_breakpoint"
    server_tools: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        thinking: Literal["any", "items"] = "any" if self.replay else "items"
        rules = replace(self.history_rules, untagged_thinking=self.replay != "", thinking=thinking, filenames="data")
        object.__setattr__(self, "history_rules", rules)


# --- rows

_Options: TypeAlias = Mapping[str, "Option | None"]


def _places(names: str) -> _Options:
    """Return rows for options that the host has by these names, separated by spaces."""
    return {name: Place(name) for name in names.split()}


_CAP: _Options = {"max_tokens": Place("max_tokens")}
_OPEN_MODEL = _places("min_p repetition_penalty top_k")  # sampling of open models, by the names of most hosts
_LOCAL: _Options = {**_CAP, **_OPEN_MODEL, "service_tier": None, "metadata": None, "safety_identifier": None}
_NOT_OPENAI: _Options = dict.fromkeys(("logit_bias", "prediction", "safety_identifier", "verbosity"))
# https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html (SGLang has most of them)
_VLLM_OPTIONS = _places(
    "allowed_token_ids bad_words chat_template chat_template_kwargs guided_choice guided_grammar guided_json guided_regex "
    "ignore_eos include_stop_str_in_output length_penalty min_tokens priority prompt_logprobs skip_special_tokens "
    "stop_token_ids structured_outputs"
)
# https://openrouter.ai/docs/api/reference/parameters and .../features/provider-routing
_OPENROUTER_OPTIONS = _places("models plugins provider route top_a transforms web_search_options")
# https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md: those of /completion, too
_LLAMACPP_OPTIONS = _places(
    "cache_prompt chat_template_kwargs grammar mirostat mirostat_eta mirostat_tau n_probs repeat_last_n repeat_penalty "
    "samplers typical_p"
)
_WEAK = HistoryRules(result_media="user", media_roles=frozenset({"user", "system"}))
# Chat templates of models fail on a second system turn, and on two user turns in a row.
_TEMPLATE = replace(_WEAK, system="front", merge=frozenset({"user"}))

OPENAI = ChatProfile()
AZURE = replace(OPENAI, family="azure", path="/openai/deployments/{model}/chat/completions")
COMPATIBLE = ChatProfile(
    family="openai-compatible",
    temperature=None,
    # Any host may be behind the URL; it refuses, or ignores, what it does not know.
    options={**_CAP, **_OPEN_MODEL, **_VLLM_OPTIONS, **_LLAMACPP_OPTIONS, **_OPENROUTER_OPTIONS},
    allowed_tools=False,
    text_lists=False,
    reasoning=_USUAL_EFFORTS,
    broken_arguments=False,
    cache_key=False,
    cache_mark="cache_control",
    history_rules=_WEAK,
)
GROQ = replace(
    COMPATIBLE,
    family="groq",
    temperature=2.0,
    options={**_NOT_OPENAI, **_places("include_reasoning reasoning_format"), "logprobs": None, "top_logprobs": None},
    many=False,
    media=frozenset({"image"}),
    replay="reasoning",
)
MISTRAL = replace(
    COMPATIBLE, family="mistral", options={
        **_CAP, **_NOT_OPENAI, **_places("prediction prompt_mode safe_prompt"), "seed": Place("random_seed"), "user": None,
        "service_tier": None,
    },
    temperature=1.5, history_rules=replace(_WEAK, ids=MISTRAL_IDS), required="any", none="drop", text_lists=True,
    reasoning=ReasoningNames(efforts=("off", "high")), replay="chunk", usage_in_streams=False,
)  # fmt: skip
DEEPSEEK = replace(
    COMPATIBLE,
    family="deepseek",
    temperature=2.0,
    options={**_CAP, **_NOT_OPENAI, "seed": Drop("the host has no seed; it was left out.")},
    many=False,
    structured=("json_object",),
    media=frozenset[str](),
    reasoning=ReasoningNames(
        efforts=("off", "low", "high", "max"),
        on={"thinking": {"type": "enabled"}},
        off={"thinking": {"type": "disabled"}},
    ),
    replay="reasoning_content",
    no_reasoning="",  # without the field, a call turn is an error while the model thinks
)
OPENROUTER = replace(
    COMPATIBLE,
    family="openrouter",
    server_tools="openrouter:",
    temperature=2.0,
    tool_fields=frozenset({"cache_control", "strict"}),
    options={**_CAP, **_OPEN_MODEL, **_OPENROUTER_OPTIONS},
    text_lists=True,
    reasoning=ReasoningNames(
        efforts=("off", "minimal", "low", "medium", "high", "xhigh"),
        effort="reasoning.effort",
        budget="reasoning.max_tokens",
        off={"reasoning": {"enabled": False}},
    ),
)
TOGETHER = replace(
    COMPATIBLE, family="together", options={**_LOCAL, **_places("chat_template_kwargs safety_model")}, think_tags=True
)
FIREWORKS = replace(
    COMPATIBLE,
    family="fireworks",
    options={**_LOCAL, **_places("context_length_exceeded_behavior prompt_truncate_len")},
    think_tags=True,
    replay="reasoning_content",
)
XAI = replace(
    COMPATIBLE,
    family="xai",
    temperature=2.0,
    options={**_CAP, **_places("search_parameters")},
    media=frozenset({"image"}),
)
CEREBRAS = replace(
    COMPATIBLE, family="cerebras", options={
        **_NOT_OPENAI, **_places("logit_bias prediction reasoning_format"), "frequency_penalty": None, "presence_penalty": None,
        "metadata": None,
    },
    media=frozenset[str](), replay="tags",  # reasoning_content in history is an error of the host
)  # fmt: skip
CEREBRAS_GPT_OSS = replace(CEREBRAS, replay="text")
MOONSHOT = replace(
    COMPATIBLE,
    family="moonshot",
    media=frozenset({"image"}),
    reasoning=ReasoningNames(
        efforts=("off",), on={"thinking": {"type": "enabled"}}, off={"thinking": {"type": "disabled"}}
    ),
    replay="reasoning_content",
    no_reasoning=" ",  # the host takes an empty text for a missing one
)
VLLM = replace(
    COMPATIBLE,
    family="vllm",
    options={**_LOCAL, **_VLLM_OPTIONS},
    history_rules=_TEMPLATE,
    reasoning=ReasoningNames(
        efforts=("off", "low", "medium", "high"), off={"chat_template_kwargs": {"enable_thinking": False}}
    ),
    replay="reasoning",
    think_tags=True,
)
CRUSOE = replace(VLLM, family="crusoe")
LLAMACPP = replace(
    COMPATIBLE,
    family="llamacpp",
    options={**_LOCAL, **_LLAMACPP_OPTIONS},
    history_rules=_TEMPLATE,
    named_choice=False,
    think_tags=True,
    replay="reasoning_content",
)
LM_STUDIO = replace(
    COMPATIBLE,
    family="lmstudio",
    options={**_LOCAL, **_places("repeat_penalty ttl")},
    history_rules=_TEMPLATE,
    none="drop",
    named_choice=False,  # an object is an error of the host
    reasoning=ReasoningNames(efforts=("off", "low", "medium", "high", "xhigh")),
    think_tags=True,
)
OLLAMA_CHAT = replace(
    COMPATIBLE, family="ollama-chat-completions", options={
        **_CAP, **_NOT_OPENAI, "service_tier": None, "metadata": None
    }, none="drop",
    forced_choice=False, many=False, media=frozenset({"image"}),
    reasoning=ReasoningNames(efforts=("off", "low", "medium", "high", "max")), replay="reasoning", think_tags=True,
)  # fmt: skip
GEMINI_CHAT = replace(
    COMPATIBLE, family="gemini-chat-completions", options={**_CAP, **_NOT_OPENAI}, media=frozenset({"image", "audio"})
)

PROFILES: Mapping[str, ChatProfile] = {
    "openai": OPENAI, "azure": AZURE, "compatible": COMPATIBLE, "groq": GROQ, "mistral": MISTRAL, "deepseek": DEEPSEEK,
    "openrouter": OPENROUTER, "together": TOGETHER, "fireworks": FIREWORKS, "xai": XAI, "cerebras": CEREBRAS,
    "cerebras-gpt-oss": CEREBRAS_GPT_OSS, "moonshot": MOONSHOT, "crusoe": CRUSOE,
    "vllm": VLLM, "llamacpp": LLAMACPP, "lmstudio": LM_STUDIO, "ollama-chat": OLLAMA_CHAT, "gemini-chat": GEMINI_CHAT,
}  # fmt: skip
"""Every row by the name in the provider table."""
