"""The requests that vendors refuse for a family of models, whichever host serves it: rules over the parsed request.

The names, the limits and the texts are stated here a second time, from the vendors' pages and answers, and not read from
``lm.providers.families``: with one table for both sides no test would find a mistake in it. ``RULES`` has a row for each rule,
with its source.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall
from sigwire.testing.request_node import InvalidValue
from sigwire.testing.wire import ParsedRequest

__all__ = ["RULES", "FamilyRule", "check_family"]


class FamilyRule(NamedTuple):
    """A rule: the names of its models, and a function that returns the vendor's text if a request breaks it.

    ``place``: the member of the request that is wrong.
    """

    place: str
    models: re.Pattern[str]
    check: Callable[[ParsedRequest], str | None]
    source: str


def check_family(parsed: ParsedRequest, host: str) -> None:
    """Refuse a request that the vendor of the model refuses. Every model at a host of Anthropic's wire is a Claude."""
    name = parsed.model.rpartition("/")[2].lower()
    name = f"claude {name}" if host in ("anthropic", "vertex-claude") else name
    for rule in RULES:
        if rule.models.search(name) and (text := rule.check(parsed)):
            raise InvalidValue("value", (rule.place,), text=text)


def _option(parsed: ParsedRequest, name: str) -> Any:
    return parsed.request.options.get(name)


def _budget(parsed: ParsedRequest) -> int | None:
    asked = parsed.request.options.get("reasoning")
    budget = asked.get("budget") if isinstance(asked, dict) else None
    return budget if isinstance(budget, int) else None


# --- Claude


def _too_hot(parsed: ParsedRequest) -> str | None:
    heat = _option(parsed, "temperature")
    return "temperature: range: 0..1" if heat is not None and heat > 1 else None


def _both(parsed: ParsedRequest) -> str | None:
    if _option(parsed, "temperature") is None or _option(parsed, "top_p") is None:
        return None
    return "`temperature` and `top_p` cannot both be specified for this model. Please use only one."


def _samples(parsed: ParsedRequest) -> str | None:
    given = [name for name in ("temperature", "top_p", "top_k") if _option(parsed, name) is not None]
    return f"`{given[0]}` is deprecated for this model." if given else None


def _blank_stop(parsed: ParsedRequest) -> str | None:
    stop = _option(parsed, "stop")
    stops = [stop] if isinstance(stop, str) else stop or []
    return (
        "stop_sequences: each stop sequence must contain non-whitespace" if any(not s.strip() for s in stops) else None
    )


def _starts_thinking_inside(parsed: ParsedRequest) -> str | None:
    messages = parsed.request.messages
    if not _thinks_by_budget(parsed) or messages[-1].role != "tool":
        return None
    loop = [*itertools.takewhile(lambda turn: turn.role in ("assistant", "tool"), reversed(messages))]
    first = loop[-1].parts[0]
    if isinstance(first, ThinkingPart):
        return None
    found = "tool_use" if isinstance(first, ToolCall) else first.kind
    return (
        f"Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final `assistant` "
        "message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
    )


def _thinks_by_budget(parsed: ParsedRequest) -> bool:
    """Return True if the request enables thinking by a budget; a gateway makes one of an effort."""
    asked = _option(parsed, "reasoning")
    return isinstance(asked, dict) or (asked not in (None, "off") and _BUDGET.search(parsed.model) is not None)


def _no_room(parsed: ParsedRequest) -> str | None:
    budget, limit = _budget(parsed), _option(parsed, "max_tokens")
    if budget is None or limit is None or budget < limit:
        return None
    return "`max_tokens` must be greater than `thinking.budget_tokens`."


def _forces(parsed: ParsedRequest) -> str | None:
    choice = parsed.request.tool_choice
    if not _thinks_by_budget(parsed) or choice is None or choice.mode != "required":
        return None
    return "Thinking may not be enabled when tool_choice forces tool use."


def _samples_while_thinking(parsed: ParsedRequest) -> str | None:
    if not _thinks_by_budget(parsed) or _option(parsed, "temperature") in (None, 1):
        return None
    return "`temperature` may only be set to 1 when thinking is enabled."


def _prefills(parsed: ParsedRequest) -> str | None:
    last = parsed.request.messages[-1]
    if last.role != "assistant" or not isinstance(last.parts[-1], TextPart | ThinkingPart):
        return None
    return "This model does not support assistant message prefill. The conversation must end with a user message."


def _prefills_blank(parsed: ParsedRequest) -> str | None:
    last = parsed.request.messages[-1]
    if last.role != "assistant" or not last.text.endswith((" ", "\n", "\t")):
        return None
    return "final assistant content cannot end with trailing whitespace"


# --- OpenAI


def _stops(parsed: ParsedRequest) -> str | None:
    given = _option(parsed, "stop") is not None
    return "Unsupported parameter: 'stop' is not supported with this model." if given else None


def _heats(parsed: ParsedRequest) -> str | None:
    heat = _option(parsed, "temperature")
    if heat in (None, 1):
        return None
    return f"Unsupported value: 'temperature' does not support {heat} with this model. Only the default (1) value is supported."


# --- Nova


def _too_hot_for_nova(parsed: ParsedRequest) -> str | None:
    heat = _option(parsed, "temperature")
    if heat is None or heat <= 1:
        return None
    return f"Malformed input request: #/inferenceConfig/temperature: {heat} is not less or equal to 1, please reformat."


# --- limits of the answer


def _longest(most: int, text: str) -> Callable[[ParsedRequest], str | None]:
    def check(parsed: ParsedRequest) -> str | None:
        limit = _option(parsed, "max_tokens")
        return text.format(limit=limit, most=most, model=parsed.model) if limit is not None and limit > most else None

    return check


def _limits(rows: Iterable[tuple[str, int]], text: str, source: str) -> tuple[FamilyRule, ...]:
    return tuple(FamilyRule("max_tokens", re.compile(names), _longest(most, text), source) for names, most in rows)


_CLAUDE = re.compile(r"claude")
_BUDGET = re.compile(r"claude-(3-7|3\.7|opus-4(-2|-1|\.1|-5|\.5|$|@)|(sonnet|haiku)-4(-2|-5|\.5|$|@))")
_CLAUDE_DOCS = "https://platform.claude.com/docs/en/"
_THINKING = f"{_CLAUDE_DOCS}build-with-claude/extended-thinking"
_MIGRATION = f"{_CLAUDE_DOCS}about-claude/models/migration-guide"
_OPENAI_DOCS = "https://platform.openai.com/docs/"

RULES: tuple[FamilyRule, ...] = (
    FamilyRule("temperature", _CLAUDE, _too_hot, f"{_CLAUDE_DOCS}api/messages"),
    FamilyRule(
        "top_p",
        re.compile(r"claude-(opus-4(-1|\.1)|\w+-4(-|\.)[56])"),
        _both,
        "https://github.com/aws-samples/bedrock-access-gateway/issues/191",
    ),
    FamilyRule("temperature", re.compile(r"claude-\w+-4(-|\.)[78]"), _samples, _MIGRATION),
    FamilyRule("stop_sequences", _CLAUDE, _blank_stop, f"{_CLAUDE_DOCS}api/messages"),
    FamilyRule("messages", _CLAUDE, _starts_thinking_inside, "https://github.com/anomalyco/opencode/issues/3077"),
    FamilyRule("max_tokens", _CLAUDE, _no_room, _THINKING),
    FamilyRule("thinking", _CLAUDE, _forces, _THINKING),
    FamilyRule("temperature", _CLAUDE, _samples_while_thinking, _THINKING),
    FamilyRule("messages", re.compile(r"claude-\w+-4(-|\.)[678]"), _prefills, _MIGRATION),
    FamilyRule(
        "messages",
        _CLAUDE,
        _prefills_blank,
        f"{_CLAUDE_DOCS}build-with-claude/prompt-engineering/prefill-claudes-response",
    ),
    FamilyRule(
        "stop",
        re.compile(r"^(o3(?!-mini)|o4|gpt-5(?!\.?\d?-chat))"),
        _stops,
        f"{_OPENAI_DOCS}api-reference/chat/create",
    ),
    FamilyRule(
        "temperature", re.compile(r"^(o1|o3|o4|gpt-5(-mini|-nano)?$)"), _heats, f"{_OPENAI_DOCS}guides/reasoning"
    ),
    *_limits(
        [
            (r"claude-3-(opus|sonnet|haiku)", 4096),
            (r"claude-3-5", 8192),
            (r"claude-opus-4(-2|-1|\.1|$|@)", 32_000),
            (r"claude-(sonnet-4(-2|-5|\.5|$|@)|(haiku|opus)-4(-|\.)5)", 64_000),
        ],
        "max_tokens: {limit} > {most}, which is the maximum allowed number of output tokens for {model}",
        f"{_CLAUDE_DOCS}about-claude/models/overview",
    ),
    *_limits(
        [(r"gpt-4\.1", 32_768), (r"gpt-4o", 16_384), (r"^o3", 100_000), (r"gpt-5(-mini|-nano|\.\d)?$", 128_000)],
        "max_tokens is too large: {limit}. This model supports at most {most} completion tokens, whereas you provided {limit}.",
        f"{_OPENAI_DOCS}models",
    ),
    FamilyRule(
        "temperature",
        re.compile(r"nova-"),
        _too_hot_for_nova,
        "https://docs.aws.amazon.com/nova/latest/userguide/complete-request-schema.html",
    ),
    *_limits(
        [(r"nova-(micro|lite|pro)", 10_000)],
        "The maximum tokens you requested exceeds the model limit of {most}. Try again with a maximum tokens value that is "
        "lower than {most}.",
        "https://docs.aws.amazon.com/nova/latest/userguide/what-is-nova.html",
    ),
)
"""In the order of the checks."""
