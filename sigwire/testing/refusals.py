"""The histories that the fake provider refuses, each with its source: the rules of ``testing.wires`` as a table.

``basis``: "documented" by the provider, or "reported": the address shows the provider's answer to a user of another client.
A rule without a source is no rule: the fake provider accepts what only a guess forbids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

__all__ = ["REFUSALS", "HistoryRefusal"]

_GITHUB = "https://github.com/"


class HistoryRefusal(NamedTuple):
    """A rule of one wire. ``text``: the part of the provider's message that names it."""

    wire: str
    text: str
    source: str
    basis: Literal["documented", "reported"] = "reported"


REFUSALS: Mapping[str, HistoryRefusal] = {
    # --- OpenAI: chat completions
    "id of 41 characters": HistoryRefusal(
        "openai", "string too long. Expected a string with maximum length 40", f"{_GITHUB}agno-agi/agno/issues/5382"
    ),
    "call without a result": HistoryRefusal(
        "openai", "must be followed by tool messages responding to each", f"{_GITHUB}aliasrobotics/cai/issues/111"
    ),
    "result without a call": HistoryRefusal(
        "openai", "must be a response to a preceeding message with 'tool_calls'", f"{_GITHUB}simonw/llm/issues/937"
    ),
    "result with another id": HistoryRefusal(
        "openai",
        "not found in 'tool_calls' of previous message",
        f"{_GITHUB}cline/cline/blob/main/src/core/api/transform/openai-format.ts",
    ),
    "user turn without content": HistoryRefusal(
        "openai", "expected a string, but got null", f"{_GITHUB}docker/docker-agent/issues/63"
    ),
    # --- OpenAI: Responses
    "call_id of 65 characters": HistoryRefusal(
        "openai-responses",
        "string too long. Expected a string with maximum length 64",
        f"{_GITHUB}openai/codex/issues/14355",
    ),
    "reasoning at the end": HistoryRefusal(
        "openai-responses",
        "was provided without its required following item",
        f"{_GITHUB}openai/openai-node/issues/1567",
    ),
    "item without a result": HistoryRefusal(
        "openai-responses", "No tool output found for function call", f"{_GITHUB}massgen/MassGen/issues/590"
    ),
    "output without a call": HistoryRefusal(
        "openai-responses",
        "No tool call found for function call output with call_id",
        f"{_GITHUB}continuedev/continue/issues/10092",
    ),
    # --- Anthropic
    "no messages": HistoryRefusal(
        "anthropic", "at least one message is required", f"{_GITHUB}devoxx/DevoxxGenieIDEAPlugin/issues/567"
    ),
    # Bedrock's Messages refuse it; api.anthropic.com has accepted it at times.
    "assistant first": HistoryRefusal(
        "anthropic",
        'first message must use the "user" role',
        f"{_GITHUB}anthropics/anthropic-sdk-typescript/issues/622",
    ),
    "prefill with a blank at its end": HistoryRefusal(
        "anthropic",
        "final assistant content cannot end with trailing whitespace",
        "https://platform.claude.com/docs/en/build-with-claude/prompt-engineering/prefill-claudes-response",
        "documented",
    ),
    "turn without content": HistoryRefusal(
        "anthropic", "messages must have non-empty content", f"{_GITHUB}anthropics/claude-code/issues/6774"
    ),
    "text of white space": HistoryRefusal(
        "anthropic",
        "text content blocks must contain non-whitespace text",
        f"{_GITHUB}anthropics/claude-code/issues/23369",
    ),
    "empty text": HistoryRefusal(
        "anthropic", "text content blocks must be non-empty", f"{_GITHUB}anthropics/claude-code/issues/59812"
    ),
    "unsigned thinking": HistoryRefusal(
        "anthropic", "Invalid `signature` in `thinking` block", f"{_GITHUB}anthropics/claude-code/issues/10627"
    ),
    "loop without thinking": HistoryRefusal(
        "anthropic",
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
        f"{_GITHUB}anomalyco/opencode/issues/3077",
    ),
    "id with a point": HistoryRefusal("anthropic", "String should match pattern", f"{_GITHUB}HKUDS/nanobot/pull/4356"),
    "result of another call": HistoryRefusal(
        "anthropic", "unexpected `tool_use_id` found", f"{_GITHUB}router-for-me/CLIProxyAPI/issues/497"
    ),
    "two results of one call": HistoryRefusal(
        "anthropic", "each tool_use must have a single result", f"{_GITHUB}RooCodeInc/Roo-Code/pull/9248"
    ),
    "use without a result": HistoryRefusal(
        "anthropic",
        "ids were found without `tool_result` blocks immediately after",
        f"{_GITHUB}anthropics/claude-code/issues/1237",
    ),
    "id twice": HistoryRefusal(
        "anthropic", "`tool_use` ids must be unique", f"{_GITHUB}anthropics/claude-code/issues/20901"
    ),
    # --- Gemini
    "call behind a turn of the model": HistoryRefusal(
        "gemini",
        "function call turn comes immediately after a user turn or after a function response turn",
        f"{_GITHUB}google-gemini/gemini-cli/issues/26486",
    ),
    "fewer responses than calls": HistoryRefusal(
        "gemini",
        "the number of function response parts is equal to the number of function call parts",
        f"{_GITHUB}google-gemini/gemini-cli/issues/4217",
    ),
    "unsigned call": HistoryRefusal(
        "gemini",
        "Function call is missing a thought_signature in functionCall parts",
        "https://ai.google.dev/gemini-api/docs/thought-signatures",
        "documented",
    ),
    "part without data": HistoryRefusal(
        "gemini",
        "required oneof field 'data' must have one initialized field",
        f"{_GITHUB}genkit-ai/genkit/issues/3816",
    ),
    "name with a digit first": HistoryRefusal("gemini", "Invalid function name", f"{_GITHUB}kaitranntt/ccs/issues/25"),
    # --- Ollama
    "other role": HistoryRefusal("ollama", "invalid role", "https://docs.ollama.com/api/chat", "documented"),
    "image as a URL": HistoryRefusal("ollama", "illegal base64 data", f"{_GITHUB}BerriAI/litellm/issues/18338"),
}
"""By what is wrong with the history."""
