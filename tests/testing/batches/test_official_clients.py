"""The batch APIs of the fake provider, used through the official packages: they are the referees of its endpoints."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from sigwire.core.request import Request
from sigwire.testing import FakeProvider, Fault
from sigwire.testing.batches.desk import BatchPlan

pytestmark = pytest.mark.long  # the packages take a second each to import
IDS = ("a", "b", "c")


def answer(request: Request) -> Any:
    text = request.messages[-1].text
    return Fault("bad_request", "too odd") if "b" in text else f"heard {text}"


def test_anthropic_package_creates_polls_lists_and_reads_a_batch() -> None:
    anthropic = pytest.importorskip("anthropic", reason="the official anthropic package is not installed")
    with FakeProvider(answer, batches=BatchPlan(expire=1)) as provider:
        client = anthropic.Anthropic(api_key="k", base_url=provider.url("anthropic"), max_retries=0)
        params = {"model": "claude-haiku-4-5", "max_tokens": 9}
        batch = client.messages.batches.create(
            requests=[
                {"custom_id": id, "params": {**params, "messages": [{"role": "user", "content": id}]}} for id in IDS
            ]
        )
        assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 3)
        batch = client.messages.batches.retrieve(batch.id)
        counts = batch.request_counts
        assert (batch.processing_status, counts.succeeded, counts.errored, counts.expired) == ("ended", 1, 1, 1)
        results = {each.custom_id: each.result for each in client.messages.batches.results(batch.id)}
        assert results["a"].message.content[0].text == "heard a"
        assert results["b"].error.error.type == "invalid_request_error"
        assert results["c"].type == "expired"
        assert [each.id for each in client.messages.batches.list()] == [batch.id]
        with pytest.raises(anthropic.NotFoundError):
            client.messages.batches.retrieve("msgbatch_9")
        client.close()


def test_anthropic_package_cancels_a_batch() -> None:
    anthropic = pytest.importorskip("anthropic", reason="the official anthropic package is not installed")
    with FakeProvider(answer, batches=BatchPlan(seconds=1e9)) as provider:
        client = anthropic.Anthropic(api_key="k", base_url=provider.url("anthropic"), max_retries=0)
        params: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}]}
        batch = client.messages.batches.create(requests=[{"custom_id": "a", "params": params}])
        client.messages.batches.cancel(batch.id)
        assert client.messages.batches.retrieve(batch.id).request_counts.canceled == 1
        assert [each.result.type for each in client.messages.batches.results(batch.id)] == ["canceled"]
        client.close()


def test_openai_package_uploads_creates_polls_and_reads_a_batch() -> None:
    openai = pytest.importorskip("openai", reason="the official openai package is not installed")
    with FakeProvider(answer, batches=BatchPlan(expire=1)) as provider:
        client = openai.OpenAI(api_key="k", base_url=provider.url("openai"), max_retries=0)
        lines = [
            {
                "custom_id": id,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"model": "gpt-4.1", "messages": [{"role": "user", "content": id}]},
            }
            for id in IDS
        ]
        text = "\n".join(map(json.dumps, lines)).encode()
        file = client.files.create(file=("lines.jsonl", io.BytesIO(text)), purpose="batch")
        assert client.files.content(file.id).read() == text
        batch = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"sigwire": "x"}
        )
        assert batch.status == "in_progress"
        batch = client.batches.retrieve(batch.id)
        assert (batch.status, batch.metadata) == ("expired", {"sigwire": "x"})
        assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (3, 1, 1)
        done = [json.loads(line) for line in client.files.content(batch.output_file_id).iter_lines()]
        assert done[0]["response"]["body"]["choices"][0]["message"]["content"] == "heard a"
        failed = {
            each["custom_id"]: each for each in map(json.loads, client.files.content(batch.error_file_id).iter_lines())
        }
        assert failed["b"]["response"]["status_code"] == 400
        assert failed["c"]["error"]["code"] == "batch_expired"
        assert [each.id for each in client.batches.list()] == [batch.id]
        client.close()


def test_google_package_creates_polls_lists_and_reads_a_batch() -> None:
    genai = pytest.importorskip("google.genai", reason="google-genai is not installed")
    with FakeProvider(answer) as provider:
        client = genai.Client(api_key="k", http_options={"base_url": provider.url("gemini")})
        source = [{"contents": [{"role": "user", "parts": [{"text": id}]}], "metadata": {"key": id}} for id in IDS]
        batch = client.batches.create(model="gemini-2.5-flash", src=source, config={"display_name": "mine"})
        assert (batch.state.name, batch.display_name) == ("JOB_STATE_RUNNING", "mine")
        batch = client.batches.get(name=batch.name)
        assert batch.state.name == "JOB_STATE_SUCCEEDED"
        found = {each.metadata["key"]: each for each in batch.dest.inlined_responses}
        assert found["a"].response.candidates[0].content.parts[0].text == "heard a"
        assert found["b"].error.code == 400
        assert [each.name for each in client.batches.list()] == [batch.name]
        client.close()
