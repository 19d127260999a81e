"""``to_provider`` by examples: each loss, the refusal of losses, and the targets."""

from __future__ import annotations

import pickle

import pytest

from sigwire import LM, FakeLM, HistoryLoss, Loss, Message, Request, Router, to_provider
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import ConfigurationError, UnsupportedFeature
from sigwire.testing import FakeProvider

PICTURE = ImagePart(data="iVBORw0KGgo=", media_type="image/png")
ASKED = Message.user("q")
THOUGHT = Message("assistant", (ThinkingPart("deep", "U2ln", provider="anthropic"), TextPart("hello")))
LONG = "x" * 70
CHAT, CLAUDE = "openai/gpt-4.1-mini", "anthropic/claude-haiku-4-5"

LOSSES: dict[str, tuple[str, list[Message], list[tuple[int, int | None, str, str]]]] = {
    "foreign thinking": (CHAT, [ASKED, THOUGHT], [(1, 0, "thinking", "content")]),
    "thinking of a cut stream": (
        CLAUDE,
        [ASKED, Message("assistant", (ThinkingPart("deep", provider="anthropic"), TextPart("hello")))],
        [(1, 0, "thinking", "content")],
    ),
    "signature alone": (
        CHAT,
        [ASKED, Message("assistant", (TextPart("a"), ThinkingPart(signature="U2ln", redacted="", provider="gemini")))],
        [(1, 1, "opaque", "none")],
    ),
    "item of a tool of the provider": (
        CHAT,
        [ASKED, Message("assistant", (OpaquePart("anthropic", {"type": "server_tool_use"}), TextPart("a")))],
        [(1, 0, "opaque", "content")],
    ),
    "call without a result": (
        CHAT,
        [ASKED, Message.assistant(tool_calls=[ToolCall("a", "f", {})])],
        [(1, None, "tool_results", "form")],
    ),
    "result without a call": (
        CHAT,
        [ASKED, Message.tool(ToolResult("a", "f", "1"))],
        [(1, None, "tool_results", "form")],
    ),
    "results in another order": (
        CHAT,
        [
            ASKED,
            Message.assistant(tool_calls=[ToolCall("a", "f", {}), ToolCall("b", "f", {})]),
            Message.tool(ToolResult("b", "f", "2"), ToolResult("a", "f", "1")),
        ],
        [(1, None, "tool_results", "none")],
    ),
    "long id": (
        CHAT,
        [ASKED, Message.assistant(tool_calls=[ToolCall(LONG, "f", {})]), Message.tool(ToolResult(LONG, "f", "1"))],
        [(1, None, "call_id", "none")],
    ),
    "later system turn": (CLAUDE, [ASKED, Message.system("S"), ASKED], [(1, None, "system", "form")]),
    "image of a result": (
        CHAT,
        [
            ASKED,
            Message.assistant(tool_calls=[ToolCall("a", "f", {})]),
            Message.tool(ToolResult("a", "f", "1", media=(PICTURE,))),
        ],
        [(2, None, "result_media", "form")],
    ),
    "image for a model of text": ("deepseek/deepseek-chat", [Message.user("q", PICTURE)], [(0, 1, "media", "content")]),
    "sound": (CLAUDE, [Message.user("q", AudioPart("AAAA"))], [(0, 1, "media", "content")]),
    "image in a turn of the model": (CHAT, [ASKED, Message("assistant", (PICTURE,))], [(1, 0, "media", "content")]),
    "empty text": (CHAT, [Message("user", (TextPart(""), TextPart("q")))], [(0, 0, "text", "none")]),
    "first turn of the model": ("gemini/gemini-3-flash", [Message.assistant("a")], [(0, None, "messages", "form")]),
}


@pytest.mark.parametrize(("target", "history", "lost"), LOSSES.values(), ids=LOSSES)
def test_each_change_is_one_loss(
    target: str, history: list[Message], lost: list[tuple[int, int | None, str, str]]
) -> None:
    _, losses = to_provider(history, target)
    assert [(loss.message, loss.part, loss.what, loss.severity) for loss in losses] == lost


@pytest.mark.parametrize(("name", "most"), [(CHAT, 40), ("openai/gpt-5.5", 64)])
def test_long_ids_that_differ_at_their_end_stay_distinct(name: str, most: int) -> None:
    calls = [ToolCall(LONG + end, "f", {}) for end in "ab"]
    turns = [
        ASKED,
        Message.assistant(tool_calls=calls),
        Message.tool(*(ToolResult(c.id, "f", c.id[-1]) for c in calls)),
    ]
    messages, _ = to_provider(turns, name)
    ids = [call.id for call in messages[1].tool_calls]
    assert [len(id) for id in ids] == [most, most]
    assert len(set(ids)) == 2
    assert [(result.id, result.content) for result in messages[2].tool_results] == list(zip(ids, "ab", strict=True))


def test_media_that_the_model_refuses_become_notes() -> None:
    file = FilePart(data="aGk=", media_type="application/pdf", filename="bill.pdf")
    result = ToolResult("a", "f", "see", media=(TextPart("note"), PICTURE))
    history = [Message.user("q", file), Message.assistant(tool_calls=[ToolCall("a", "f", {})]), Message.tool(result)]
    messages, losses = to_provider(history, "deepseek/deepseek-chat")
    assert messages[0].parts == (TextPart("q"), TextPart("[file left out: bill.pdf]"))
    assert messages[2].tool_results[0].content == "see\nnote\n[image left out]"
    assert [loss.severity for loss in losses] == ["content", "content", "none"]
    assert to_provider(history[:1], CHAT).losses == ()


def test_thinking_is_kept_as_text_on_request() -> None:
    messages, losses = to_provider([ASKED, THOUGHT], CHAT, keep_thinking="text")
    assert messages[1].parts == (TextPart("deep"), TextPart("hello"))
    assert [loss.severity for loss in losses] == ["form"]


def test_strict_raises_for_lost_content_only() -> None:
    with pytest.raises(
        HistoryLoss, match=r"message 1: Thinking that only anthropic understands was left out\."
    ) as raised:
        to_provider([ASKED, THOUGHT], CHAT, strict=True)
    (loss,) = raised.value.losses
    assert loss == Loss(1, 0, "thinking", "Thinking that only anthropic understands was left out.", "content")
    assert Loss.from_json(loss.to_json()) == loss
    assert pickle.loads(pickle.dumps(raised.value)).losses == (loss,)
    assert to_provider([ASKED, THOUGHT], CHAT, strict=True, keep_thinking="text").losses[0].severity == "form"


@pytest.mark.parametrize("wire", ["openai", "gemini", "ollama", "openai-responses"])
async def test_call_with_strict_history_sends_nothing_when_content_would_be_lost(wire: str) -> None:
    names = {"openai": CHAT, "gemini": "gemini/gemini-3-flash", "ollama": "ollama/qwen3", "openai-responses": CHAT}
    request = Request((ASKED, THOUGHT, ASKED))
    with FakeProvider(["ok", "ok"]) as provider:
        kept = "responses" if wire == "openai-responses" else None
        lm = LM(names[wire], base_url=provider.url(wire), api_key="k", strict_history=True, wire=kept)
        with pytest.raises(HistoryLoss):
            lm.respond(request)
        with pytest.raises(HistoryLoss):
            list(lm.stream(request))
        with pytest.raises(HistoryLoss):
            await lm.arespond(request)
        assert provider.requests == ()
        assert lm.respond(Request((ASKED, Message.assistant("hello"), ASKED))).choices[0].text == "ok"


def test_router_asks_the_provider_that_loses_nothing() -> None:
    with FakeProvider(["ok"]) as provider:
        models = [
            LM(name, base_url=provider.url(wire), api_key="k", strict_history=True)
            for name, wire in ((CHAT, "openai"), (CLAUDE, "anthropic"))
        ]
        response = Router(models).respond(Request((ASKED, THOUGHT, ASKED)))
    assert [sent.wire for sent in provider.requests] == ["anthropic"]
    assert response.warnings == () or all(warning.feature != "thinking" for warning in response.warnings)


@pytest.mark.parametrize("target", [FakeLM(["a"]), Router([CHAT])])
def test_model_without_a_wire_is_refused(target: FakeLM | Router) -> None:
    with pytest.raises(ConfigurationError, match="has no wire of its own"):
        to_provider([ASKED], target)


def test_media_are_refused_by_a_call_and_not_replaced() -> None:
    with FakeProvider(["ok"]) as provider:
        lm = LM(CLAUDE, base_url=provider.url("anthropic"), api_key="k")
        with pytest.raises(UnsupportedFeature, match="audio"):
            lm.respond(Request((Message.user("q", AudioPart("AAAA")),)))


# --- thinking inside a loop of calls

LOOP = (ASKED, Message.assistant(tool_calls=[ToolCall("a", "f", {})]), Message.tool(ToolResult("a", "f", "1")))
SECOND = (Message.assistant(tool_calls=[ToolCall("b", "f", {})]), Message.tool(ToolResult("b", "f", "2")))
SIGNED = Message("assistant", (ThinkingPart("deep", "U2ln", provider="anthropic"), ToolCall("a", "f", {})))


@pytest.mark.parametrize(
    ("history", "thinks"),
    [
        (LOOP, False),
        ((*LOOP, Message.user("and?")), False),
        ((*LOOP, Message.assistant("t"), ASKED), True),
        ((ASKED, SIGNED, LOOP[2]), True),
        ((ASKED, SIGNED, LOOP[2], *SECOND), True),
        ((ASKED,), True),
    ],
    ids=["foreign loop", "foreign loop and text", "ended loop", "own loop", "own second step", "no calls"],
)  # fmt: skip
def test_claude_does_not_start_to_think_inside_a_loop_of_calls(history: tuple[Message, ...], thinks: bool) -> None:
    with FakeProvider(["ok"]) as provider:
        lm = LM(CLAUDE, base_url=provider.url("anthropic"), api_key="k", reasoning="low")
        response = lm.respond(Request(history))
        (sent,) = provider.requests
    assert isinstance(sent.body, dict)
    assert sent.body["thinking"]["type"] == ("enabled" if thinks else "disabled")  # type: ignore[index, call-overload]
    assert [warning.feature for warning in response.warnings] == ([] if thinks else ["reasoning"])
