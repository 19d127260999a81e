"""The npm package ``ai`` as a client of ``FakeProvider``: its parsers refuse what they do not know.

One process of node asks all questions to one wire (``ai_client.mjs``), each of its own provider.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.testing import FakeProvider, Fault, Streamed

WIRES = ["openai", "openai-responses", "anthropic", "gemini", "compatible"]
HELLO = Response((Choice("Hello there", reasoning="Hm"),), Usage(7, 3, 2, None, 1))
CALLS = Choice("Sums.", (ToolCall("", "add", {"a": 1, "b": 2}), ToolCall("", "add", {"a": 3, "b": 4})), "Two sums")
JOBS: dict[str, tuple[str, list[Any]]] = {
    **{
        f"{task} {name}": (task, answers)
        for task in ("text", "stream")
        for name, answers in {
            "hello": [HELLO],
            "calls": [CALLS, "Done"],
            "refusal": [Choice(refusal="No.")],
            "length": [Choice("Lo", finish_reason="length")],
            "fault": [Fault("rate_limit")],
        }.items()
    },
    "stream broken": ("stream", [Streamed("Hello there", stop_after=2, fault=Fault("server", "It failed."))]),
    "object": ("object", ['{"name": "Oslo", "people": 7}']),
}


@pytest.fixture(scope="module", params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def replies(wire: str, node_modules: Path) -> dict[str, Any]:
    """The results of the client on one wire by the name of the job, with the requests that the provider received."""
    with ExitStack() as stack:
        providers = {name: stack.enter_context(FakeProvider(answers)) for name, (_, answers) in JOBS.items()}
        jobs = [{"wire": wire, "url": providers[name].url(wire), "task": task} for name, (task, _) in JOBS.items()]
        done = subprocess.run(
            ["node", str(Path(__file__).with_name("ai_client.mjs"))],
            input=json.dumps(jobs),
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "SIGWIRE_INTEROP_NODE": str(node_modules)},
        )
    assert done.returncode == 0, done.stderr
    results = zip(JOBS, json.loads(done.stdout), strict=True)
    return {name: {**result, "requests": providers[name].requests} for name, result in results}


each_way = pytest.mark.parametrize("how", ["text", "stream"])


@each_way
def test_text_reasoning_and_usage_are_read(wire: str, replies: dict[str, Any], how: str) -> None:
    reply = replies[f"{how} hello"]
    assert (reply["text"], reply["finish"]) == ("Hello there", "stop"), reply
    assert reply["reasoning"] == (None if wire == "openai" else "Hm")
    usage = reply["usage"]
    assert (usage["inputTokens"], usage["outputTokens"], usage["cachedInputTokens"]) == (7, 3, 2)


@each_way
def test_parallel_calls_and_their_results_make_a_turn(wire: str, replies: dict[str, Any], how: str) -> None:
    reply = replies[f"{how} calls"]
    assert reply["text"] == "Done", reply
    assert reply["steps"][0] == {"calls": [{"a": 1, "b": 2}, {"a": 3, "b": 4}], "results": [3, 7]}
    sent = reply["requests"][1].request
    assert [call.arguments for call in sent.messages[1].tool_calls] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert [str(result.content) for result in sent.messages[2].tool_results] == (
        ["{'name': 'add', 'content': 3}", "{'name': 'add', 'content': 7}"] if wire == "gemini" else ["3", "7"]
    )


def test_text_is_streamed_in_deltas(replies: dict[str, Any]) -> None:
    assert replies["stream hello"]["deltas"] == ["Hello", " there"]


def test_structured_output_is_read(replies: dict[str, Any]) -> None:
    reply = replies["object"]
    assert reply.get("object") == {"name": "Oslo", "people": 7}, reply
    assert reply["requests"][0].request.response_format is not None


@each_way
def test_refusal_and_truncated_text_are_read(wire: str, replies: dict[str, Any], how: str) -> None:
    # The parser of compatible hosts ignores OpenAI's field for refusals.
    assert replies[f"{how} refusal"]["finish"] == ("stop" if wire == "compatible" else "content-filter")
    assert (replies[f"{how} length"]["text"], replies[f"{how} length"]["finish"]) == ("Lo", "length")


@each_way
def test_fault_is_an_error_with_its_status(replies: dict[str, Any], how: str) -> None:
    reply = replies[f"{how} fault"]
    assert (reply["status"], "rate_limit" in reply["error"]) == (429, True), reply


def test_error_inside_a_stream_is_an_error(replies: dict[str, Any]) -> None:
    assert "It failed." in replies["stream broken"]["error"]
