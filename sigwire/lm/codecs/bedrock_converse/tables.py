"""Converse: profiles, and every option, stop reason, token count and error, by the wire's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sigwire.core.json import JsonValue
from sigwire.core.response import FinishReason
from sigwire.core.tools.names import NameRules
from sigwire.errors import (
    LMBillingError,
    LMRateLimitError,
    LMServerError,
    LMUnsupportedModelError,
)
from sigwire.lm.codecs.shared.errors import BALANCE_HINT, ErrorRule
from sigwire.lm.codecs.shared.history import HistoryRules
from sigwire.lm.codecs.shared.interface import WireProfile
from sigwire.lm.codecs.shared.options import Drop, Option, OptionTable, Place, Skip, drop_options
from sigwire.lm.codecs.shared.schema import OUTPUT_SCHEMA, SchemaRules
from sigwire.lm.codecs.shared.usage import SumOf, UsageTable
from sigwire.lm.histories.call_ids import CallIdRules

__all__ = [
    "CLAUDE", "CONVERSE", "ERRORS", "EXCEPTIONS", "EXTRA", "FINISH_REASONS", "NOVA", "OPTIONS", "SAMPLING", "USAGE",
    "WITHOUT_TOP_K", "ConverseProfile",
]  # fmt: skip

EXTRA = "additionalModelRequestFields"
"""The member of a body for fields that only some models have."""


@dataclass(frozen=True, kw_only=True)
class ConverseProfile(WireProfile):
    """The models of one vendor on the Converse wire. The defaults are what every model accepts.

    ``options``: rows over the wire's table. ``thinking``: the vendor's field that requests reasoning. ``cache_ttl``: whether a
    point of the prompt cache may have a time. ``result_status``: whether a result may have a status.
    """

    family: str = "bedrock"
    path: str = "/model/{model}/{method}"
    names: NameRules = NameRules()
    history_rules: HistoryRules = HistoryRules(
        ids=CallIdRules(allowed="A-Za-z0-9_.:-", max_length=64),
        system="front",
        untagged_thinking=False,
        thinking="none",
        first_user="Continue.",
        blank_text=False,
        detail=False,
        filenames="plain",
        document_text="See the attached document.",
    )
    tool_schema: SchemaRules = SchemaRules(root="object")
    output_schema: SchemaRules = OUTPUT_SCHEMA
    tool_fields: frozenset[str] = frozenset({"strict"})
    media: frozenset[str] = frozenset({"image", "file"})
    temperature: float | None = 1.0  # of the service model
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    thinking: Literal["reasoning_effort", "reasoningConfig", "thinking"] = "reasoning_effort"
    cache_ttl: bool = False
    result_status: bool = False


CONVERSE = ConverseProfile()
CLAUDE = replace(
    CONVERSE,
    thinking="thinking",
    cache_ttl=True,
    result_status=True,
    history_rules=replace(CONVERSE.history_rules, thinking="signed"),
)
# https://docs.aws.amazon.com/nova/latest/userguide/using-converse-api.html
NOVA = replace(
    CONVERSE,
    thinking="reasoningConfig",
    result_status=True,
    options={"top_k": Place(f"{EXTRA}.inferenceConfig.topK")},
)
# Models whose parameters have no top_k: Llama, Titan, DeepSeek and OpenAI's open models refuse an unknown field.
WITHOUT_TOP_K = replace(CONVERSE, options={"top_k": Drop("the model has no top_k; it was left out.")})

SAMPLING = ("temperature", "top_p", "top_k")


def _tier(value: JsonValue) -> JsonValue:
    return {"type": value}


def _listed(value: JsonValue) -> JsonValue:
    return value if isinstance(value, list) else [value]


OPTIONS: OptionTable = {
    **drop_options(["seed"], "the wire has no seed; it was left out."),
    **drop_options(
        ["user"], "the wire has no place for the id of a user; it was left out. metadata is kept in its logs."
    ),
    "guardrail_config": Place("guardrailConfig"),
    "max_tokens": Place("inferenceConfig.maxTokens"),
    "metadata": Place("requestMetadata"),
    "n": Skip(),  # the request is repeated
    "reasoning": Skip(),
    "service_tier": Place("serviceTier", _tier),
    "stop": Place("inferenceConfig.stopSequences", _listed),
    "temperature": Place("inferenceConfig.temperature"),
    "top_k": Place(f"{EXTRA}.top_k"),
    "top_p": Place("inferenceConfig.topP"),
}

FINISH_REASONS: Mapping[str, FinishReason] = {
    "content_filtered": "content_filter",
    "end_turn": "stop",
    "guardrail_intervened": "content_filter",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
}

USAGE: UsageTable = {
    "input_tokens": SumOf(["inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"]),
    "output_tokens": "outputTokens",
    "cached_tokens": "cacheReadInputTokens",
    "cache_write_tokens": "cacheWriteInputTokens",
}

EXCEPTIONS: Mapping[str, int] = {
    "accessdeniedexception": 403,
    "internalserverexception": 500,
    "modelerrorexception": 424,
    "modelnotreadyexception": 429,
    "modelstreamerrorexception": 424,
    "modeltimeoutexception": 408,
    "resourcenotfoundexception": 404,
    "serviceunavailableexception": 503,
    "throttlingexception": 429,
    "validationexception": 400,
}
"""The status of an exception, for exceptions inside a stream."""

_PROFILE_HINT = (
    "Name the model by an inference profile, which starts with an area (us., eu., apac., global.), or by its ARN."
)

ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(
        LMUnsupportedModelError,
        codes=frozenset({"validationexception"}),
        texts=("on-demand throughput",),
        hint=_PROFILE_HINT,
    ),
    ErrorRule(
        LMUnsupportedModelError,
        codes=frozenset({"validationexception"}),
        texts=("model identifier is invalid",),
        hint="Check the model's name, and that it is served in this region.",
    ),
    # A subscription without a means of payment has the status of missing access.
    ErrorRule(
        LMBillingError, codes=frozenset({"accessdeniedexception"}), texts=("payment_instrument",), hint=BALANCE_HINT
    ),
    ErrorRule(LMServerError, codes=frozenset({"modelnotreadyexception"})),
    ErrorRule(LMServerError, codes=frozenset({"modelerrorexception", "modelstreamerrorexception"})),
    ErrorRule(LMRateLimitError, codes=frozenset({"servicequotaexceededexception"})),
)
"""By the name of the exception, in lower case; any other exception by its status."""
