"""Hypothesis strategies for the canonical values: anything they can hold, so that properties meet everything.

``json_values`` are JSON: no NaN, no infinity, and no lone surrogates, which UTF-8 cannot encode. Values are consistent, as
the package makes them: text, calls and reasoning of a choice agree with its parts.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from sigwire.core import events as ev
from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Attempt, Choice, LMWarning, Repair, Response, Usage
from sigwire.core.tools.calls import CallError, ToolCall, ToolCalls, ToolResult, WebSearch
from sigwire.core.tools.choice import ToolChoice

__all__ = [
    "any_text",
    "at_most",
    "capabilities",
    "choices",
    "events",
    "json_objects",
    "json_values",
    "messages",
    "parts",
    "plain_values",
    "requests",
    "responses",
    "texts",
    "tool_call_lists",
    "tool_calls",
    "tool_results",
]


def at_most(examples: int) -> settings:
    """Bound the examples of an expensive property, below the number that the profile gives."""
    return settings(max_examples=min(examples, settings().max_examples))


any_text = st.text(st.characters(), max_size=20)
"""Any Python text, lone surrogates included."""

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
names = st.sampled_from(["f", "math.add", "type", "Content-Type", ""]) | texts
numbers = st.none() | st.integers(0, 10**6)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
keys = st.sampled_from(["type", "kind", "id", "text"]) | texts  # includes keys of canonical values

json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(keys, json_values, max_size=3)

# --- parts -------------------------------------------------------------------------------------------

maybe_text = st.none() | texts
call_errors = st.builds(
    CallError, st.sampled_from(["malformed_json", "not_an_object", "unknown_tool", "schema_mismatch"]), texts
)
tool_calls = st.builds(
    ToolCall, texts, names, st.none() | json_objects, maybe_text, st.none() | call_errors, st.none() | json_values
)
text_parts = st.builds(TextPart, texts)
media_parts = (
    text_parts
    | st.builds(ImagePart, maybe_text, maybe_text, maybe_text, maybe_text)
    | st.builds(AudioPart, texts, texts)
    | st.builds(FilePart, maybe_text, maybe_text, maybe_text, maybe_text, maybe_text)
)
tool_results = st.builds(
    ToolResult, texts, names, json_values, st.booleans(), st.lists(media_parts, max_size=2).map(tuple)
)
thinking_parts = st.builds(ThinkingPart, texts, maybe_text, maybe_text, maybe_text)
parts = media_parts | thinking_parts | st.builds(OpaquePart, texts, json_values) | tool_calls | tool_results
tool_call_lists = st.builds(ToolCalls, st.lists(tool_calls, max_size=3), texts)

# --- messages, requests, responses -----------------------------------------------------------------

messages = st.builds(
    Message, st.sampled_from(["system", "user", "assistant", "tool"]), st.lists(parts, max_size=3).map(tuple)
)
tool_choices = st.builds(
    ToolChoice, st.sampled_from(["auto", "required", "none"]), st.lists(names, max_size=2).map(tuple)
)
tool_specs: st.SearchStrategy[JsonObject] = st.builds(
    lambda fields, name, schema: {"type": "function", "function": {**fields, "name": f"f{name}", "parameters": schema}},
    json_objects, names, json_objects,
)  # fmt: skip
requests = st.builds(
    Request,
    st.lists(messages, max_size=2).map(tuple),
    st.lists(tool_specs, max_size=2).map(tuple),
    st.none() | tool_choices,
    st.none() | st.booleans(),
    st.none() | st.builds(ResponseFormat, st.none() | json_objects, texts),
    json_objects,
)

usages = st.builds(Usage, numbers, numbers, numbers, numbers, numbers, st.none() | st.floats(0, 10))
warnings = st.lists(st.builds(LMWarning, texts, texts), max_size=2).map(tuple)
attempts = st.lists(
    st.builds(Attempt, st.sampled_from(["ask", "repair", "extract", "retry"]), maybe_text, usages, maybe_text),
    max_size=2,
).map(tuple)

choice_ends = {
    "refusal": maybe_text,
    "finish_reason": st.sampled_from(["stop", "length", "tool_calls", "content_filter", "error"]),
    "logprobs": st.none() | json_values,
    "citations": st.lists(json_objects, max_size=2).map(tuple),
    "raw": st.none() | json_values,
}
spoken_parts = text_parts | thinking_parts | tool_calls | st.builds(OpaquePart, texts, json_values)
choices = st.builds(
    Choice, text=texts, tool_calls=st.lists(tool_calls, max_size=2).map(tuple), reasoning=maybe_text, **choice_ends
) | st.builds(Choice.from_parts, st.lists(spoken_parts, min_size=1, max_size=4), **choice_ends)
responses = st.builds(
    Response,
    st.lists(choices, max_size=3).map(tuple),
    usages,
    maybe_text,
    maybe_text,
    warnings,
    attempts,
    st.none() | json_values,
)

# --- events ------------------------------------------------------------------------------------------

indices = st.integers(0, 3)
events = (
    st.builds(ev.ResponseStart, maybe_text, maybe_text)
    | st.builds(ev.TextDelta, texts, indices)
    | st.builds(ev.ReasoningDelta, texts, indices)
    | st.builds(ev.PartEnd, parts, indices)
    | st.builds(ev.ToolCallStart, indices, texts, names, indices)
    | st.builds(ev.ToolCallDelta, indices, texts, indices)
    | st.builds(ev.ToolCallEnd, indices, tool_calls, indices)
    | st.builds(ev.ChoiceEnd, choice=indices, ordered=st.booleans(), **choice_ends)
    | st.builds(ev.UsageUpdate, usages)
    | st.builds(ev.ResponseEnd, warnings, attempts, st.none() | json_values)
)

# --- every value, by its class -----------------------------------------------------------------------

capabilities = st.builds(
    Capabilities, native_tools=st.booleans(), images=st.booleans(), streaming=st.booleans(), context_window=numbers
)
plain_values = (
    parts
    | messages
    | requests
    | responses
    | choices
    | usages
    | events
    | call_errors
    | tool_choices
    | capabilities
    | st.builds(LMWarning, texts, texts)
    | st.builds(Repair, maybe_text, texts)
    | st.builds(
        WebSearch,
        st.lists(texts, max_size=2).map(tuple),
        st.lists(texts, max_size=2).map(tuple),
        numbers,
        st.none() | json_objects,
    )
)
"""A value of any class that has ``to_json``."""
