"""Signed thinking of turns that a fold keeps, in the requests of four wires: providers refuse thinking that was changed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from sigwire import LM, AgentRun, Choice, Compaction, ReAct, ToolCall
from sigwire.compaction import drop_oldest, summarize
from sigwire.core.json import dumps
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.testing import FakeProvider
from tests.modules.context.test_folding import page

PLACES: dict[str, tuple[str, str, dict[str, Any]]] = {  # the model, the turns of a body, and options
    "anthropic": ("anthropic/claude-sonnet-4-5", "messages", {"reasoning": "low"}),
    "bedrock": ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "messages", {"region": "eu-west-1"}),
    "gemini": ("gemini/gemini-3-flash", "contents", {}),
    "openai-responses": ("openai/gpt-5.5", "input", {"wire": "responses"}),
}
MARKS = ("signature", "thoughtSignature", "encrypted_content")


def is_summary(request: Any) -> bool:
    return "the new summary" in "\n".join(message.text for message in request.messages)


def signed(request: Any) -> Choice | str:
    """Return the next turn of a model that thinks, and reads pages; or a summary."""
    if is_summary(request):
        return "Pages were read."
    known = [result.text for message in request.messages for result in message.tool_results]
    latest = known[-1].split("fact f")[1].split()[0] if known else "-1"
    number = int(latest) + 1
    thought = ThinkingPart(f"Page {number} is next.", "U2ln" + f"{number:04d}")
    if number >= 24:
        return Choice.from_parts((thought, ToolCall("end", "submit", {"answer": "read"})))
    return Choice.from_parts((thought, TextPart("I read."), ToolCall(f"call_{number}", "page", {"n": number})))


def signed_turns(body: Any, key: str) -> list[str]:
    """Return the turns of a body that have a signature, as they were sent."""
    return [text for turn in body[key] if any(f'"{mark}":' in (text := dumps(turn)) for mark in MARKS)]


@pytest.mark.parametrize("steps", [[drop_oldest()], [summarize(tokens=100)]], ids=["drop", "summary"])
@pytest.mark.parametrize("wire", PLACES)
def test_signed_thinking_of_kept_turns_is_sent_with_the_bytes_that_it_had(wire: str, steps: Any) -> None:
    model, key, options = PLACES[wire]
    with FakeProvider(signed) as provider:
        agent: Any = ReAct(
            "question -> answer", tools=[page], max_iters=40, compaction=Compaction(steps, window=3_000, to=0.6)
        )
        agent.set_lm(LM(model, base_url=provider.url(wire), api_key="k", cache=False, **options))
        result = agent(question="Read all pages.")
    assert result.answer == "read"
    assert len(AgentRun.of(result).history.folds) >= 2
    assert [each.status for each in provider.requests] == [200] * len(provider.requests)  # refuses changed signatures
    turns = [signed_turns(each.body, key) for each in provider.requests if not is_summary(each.request)]
    answered, kept = set[str](), 0
    for before, after in pairwise(turns):
        assert set(after[:-1]) <= answered  # the last one is sent for the first time
        answered |= set(after)
        kept += len(after) - 1 if len(after) <= len(before) else 0
    assert kept >= 2
