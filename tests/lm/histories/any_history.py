"""Any history that providers, callers and truncation leave behind: the input of the laws."""

from __future__ import annotations

from hypothesis import strategies as st

from sigwire.core.messages import Message, Part
from sigwire.core.parts import ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult

__all__ = ["TARGETS", "WIRES_OF", "histories"]

TARGETS = {
    "openai": "openai/gpt-4.1-mini",
    "openai-responses": "openai/gpt-5.5",
    "anthropic": "anthropic/claude-haiku-4-5",
    "gemini": "gemini/gemini-3-flash",
    "ollama": "ollama/qwen3-vl",
    "bedrock": "bedrock/us.amazon.nova-lite-v1:0",
    "litellm": "litellm/cohere/command-r",
}
"""A model of each wire, of Bedrock, and of LiteLLM."""

WIRES_OF = {"openai-responses": "responses"}
"""The option ``wire`` of these models."""

words = st.sampled_from(["blue", "tea at 5", "1\n2", "na\u00efve", "", " \n"])
families = st.sampled_from(["anthropic", "gemini", "openai-responses", "deepseek", None])
ids = st.sampled_from(["", "a", "b", "call.1", "toolu_01", "x" * 70, "x" * 69 + "y"])
picture = ImagePart(data="iVBORw0KGgo=", media_type="image/png")
thinking = st.builds(ThinkingPart, words, st.sampled_from([None, "U2lnbmVk"]), st.none(), families)
items = st.sampled_from(
    [
        OpaquePart("anthropic", {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}),
        OpaquePart("openai-responses", {"type": "web_search_call", "id": "ws_1", "status": "completed"}),
        OpaquePart("elsewhere", {"type": "message", "content": [{"type": "output_text"}]}),
    ]
)
calls = st.builds(ToolCall, ids, st.sampled_from(["add", "look.up"]), st.sampled_from([{}, {"x": 1}]))
results = st.builds(
    ToolResult, ids, st.sampled_from(["add", "look.up"]), st.sampled_from(["three", {"y": 2}]), st.booleans(),
    st.sampled_from([(), (), (picture,)]),
)  # fmt: skip


def turn_of(role: str, *parts: st.SearchStrategy[Part]) -> st.SearchStrategy[Message]:
    return st.lists(st.one_of(*parts), max_size=3).map(lambda found: Message(role, tuple(found)))  # type: ignore[arg-type]


texts = words.map(TextPart)
turns = st.one_of(
    turn_of("user", texts, st.just(picture)),
    turn_of("assistant", thinking, texts, calls, items),
    turn_of("assistant", texts, calls),
    turn_of("tool", results),
    turn_of("system", texts),
)
first = st.sampled_from(
    [Message.user("begin"), Message.user("begin"), Message.assistant("begin"), Message.system("begin")]
)
histories = st.tuples(first, st.lists(turns, max_size=7)).map(lambda found: [found[0], *found[1]])
