"""``/api/chat``: its hosts, and every option, finish reason, count and error, by its name on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.response import FinishReason
from sigwire.core.tools.names import NameRules
from sigwire.errors import (
    ContextWindowExceededError,
    LMAuthenticationError,
    LMInvalidRequestError,
    LMServerError,
    LMUnsupportedModelError,
)
from sigwire.lm.codecs.shared.errors import CONTEXT_TEXTS, ErrorRule
from sigwire.lm.codecs.shared.history import HistoryRules
from sigwire.lm.codecs.shared.interface import WireProfile
from sigwire.lm.codecs.shared.options import OptionTable, Place, Skip
from sigwire.lm.codecs.shared.reasoning import EFFORTS
from sigwire.lm.codecs.shared.schema import SchemaRules, const_to_enum, merge_all_of, one_of_to_any_of
from sigwire.lm.codecs.shared.usage import UsageTable

__all__ = [
    "ERRORS", "FINISH_REASONS", "OLLAMA", "OLLAMA_CLOUD", "OPTIONS", "THINK", "TOOL_SCHEMA", "USAGE", "OllamaProfile",
]  # fmt: skip


TOOL_SCHEMA = SchemaRules(
    keep=frozenset({"type", "properties", "required", "items", "enum", "anyOf", "description"}),
    rewrite=(const_to_enum, one_of_to_any_of, merge_all_of),
    inline_refs=True,
    recursion="open",
    root="object",
)
"""The keywords that the server passes to a model's template; it ignores all others."""


@dataclass(frozen=True, kw_only=True)
class OllamaProfile(WireProfile):
    """The differences of one host from ``/api/chat``. The defaults are a local server.

    ``names``: the characters that every template reproduces. ``defaults``: fields of every request; the caller's options
    replace them. ``asks_for_window``: whether the host opens a small context window unless a request asks for a larger
    one. ``efforts``: names of reasoning efforts, weakest first.
    """

    family: str = "ollama"
    path: str = "/api/chat"
    names: NameRules = NameRules(allowed="a-zA-Z0-9_.-", max_length=128)
    history_rules: HistoryRules = HistoryRules(
        result_media="user", system="front", detail=False, media_roles=frozenset({"user", "assistant", "system"})
    )
    tool_schema: SchemaRules = TOOL_SCHEMA
    defaults: JsonObject = field(default_factory=lambda: {"truncate": False, "shift": False})
    media: frozenset[str] = frozenset({"image"})
    asks_for_window: bool = True
    efforts: tuple[str, ...] = ("off", "low", "medium", "high", "max")


OLLAMA = OllamaProfile()
OLLAMA_CLOUD = OllamaProfile(asks_for_window=False)


# --- tables


_SAMPLING = (
    "frequency_penalty", "min_p", "num_ctx", "presence_penalty", "repeat_penalty", "seed", "temperature", "top_k", "top_p",
)  # fmt: skip

OPTIONS: OptionTable = {
    **{name: Place(name) for name in ("keep_alive", "logprobs", "shift", "top_logprobs", "truncate")},
    **{name: Place(f"options.{name}") for name in _SAMPLING},
    "max_tokens": Place("options.num_predict"),
    "n": Skip(),  # a reply has one choice; the client sends the request several times
    "reasoning": Skip(),
    "stop": Place("options.stop", lambda stop: [stop] if isinstance(stop, str) else stop),
}

FINISH_REASONS: Mapping[str, FinishReason] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}

USAGE: UsageTable = {"input_tokens": "prompt_eval_count", "output_tokens": "eval_count"}
"""The server omits a count of zero, so a missing count is unknown. It has no count of cached tokens."""

THINK: Mapping[str, JsonValue] = {**{effort: effort for effort in EFFORTS}, "off": False}

ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(
        ContextWindowExceededError,
        texts=CONTEXT_TEXTS,
        hint="Raise the option num_ctx as far as the model and the memory allow, or shorten the request.",
    ),
    ErrorRule(
        LMInvalidRequestError,
        texts=("does not support tools",),
        hint="Use a model with tools: `ollama show {model}` lists the capabilities of a model.",
    ),
    ErrorRule(
        LMInvalidRequestError,
        texts=("does not support thinking",),
        hint="Leave out the option reasoning, or use a model that reasons.",
    ),
    ErrorRule(
        LMInvalidRequestError,
        frozenset({404}),
        texts=("page not found",),
        hint="Check the address: a current Ollama server has /api/chat, and its base URL does not end in /v1.",
    ),
    ErrorRule(
        LMUnsupportedModelError,
        frozenset({404}),
        hint="Download it with `ollama pull {model}`, or use a model that `ollama list` shows.",
    ),
    ErrorRule(
        LMAuthenticationError,
        frozenset({401, 403}),
        hint="Sign in with `ollama signin`, or set OLLAMA_API_KEY to a key of ollama.com.",
    ),
    ErrorRule(LMServerError, frozenset({200})),
)
