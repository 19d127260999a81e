"""Messages that records keep: of which rows, masked, by reference, bounded, the same however a program runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import Evaluate, Example, FakeLM, Image, Module, Predict, ReAct
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError, LMServerError
from sigwire.evaluate import calls
from sigwire.evaluate.calls import RecordedCall, RowCalls, whole_calls
from sigwire.lm.preview.call_log import CallRecord
from tests.evaluate.schema import VALIDATOR

PLANTED = "planted-key-8765-xyz"
DEVSET = [Example(question=f"{n}+{n}?", answer=str(2 * n)).with_inputs("question") for n in range(2)]


def exact(example: Example, prediction: Any) -> bool:
    return bool(example.answer == prediction.answer)


def run_blocking(evaluate: Evaluate, program: object) -> Any:
    return evaluate(program)


def run_awaited(evaluate: Evaluate, program: object) -> Any:
    return asyncio.run(evaluate.acall(program))


def run_streamed(evaluate: Evaluate, program: object) -> Any:
    return [*evaluate.stream(program)][-1].value  # type: ignore[union-attr]


RUNS = [run_blocking, run_awaited, run_streamed]


class Outer(Module):
    """A program around a predictor, with a direct call of a model."""

    def __init__(self, lm: FakeLM) -> None:
        super().__init__()
        self.inner = Predict("question -> answer", lm=lm)
        self.direct = lm

    def forward(self, question: str) -> Any:
        self.direct("Think.")
        return self.inner(question=question)


def sent(cell: Any) -> list[list[str]]:
    return [[part["text"] for message in call.messages for part in message["parts"]] for call in cell.calls]


@pytest.mark.parametrize("run", RUNS)
def test_evaluation_keeps_the_messages_of_nested_and_direct_calls(
    run: Callable[[Evaluate, object], Any], tmp_path: Path
) -> None:
    lm = FakeLM(["Well.", {"answer": "0"}, "Well.", {"answer": "3"}])
    path = tmp_path / "log.jsonl"
    evaluate = Evaluate(devset=DEVSET, metric=exact, requests=True, log=path, num_threads=1, progress=False)
    result = run(evaluate, Outer(lm))
    found = [call for record in result.records for call in record.cell.calls]
    assert [call.path for call in found] == ["", "inner"] * 2
    texts = [text for record in result.records for call in sent(record.cell) for text in call]
    assert texts == [message.text for request in lm.requests for message in request.messages]
    assert found[0].choices[0]["parts"] == [{"type": "text", "text": "Well."}]
    stored = sigwire.load_records(path)
    assert [record.cell.calls for record in stored.records] == [record.cell.calls for record in result.records]
    for line in path.read_text(encoding="utf-8").splitlines():
        VALIDATOR.validate(json.loads(line))


@pytest.mark.parametrize(("requests", "kept"), [(True, [1, 1]), ("failed", [0, 1]), (False, [0, 0])])
def test_messages_of_rows_are_kept_by_the_option(requests: Any, kept: list[int]) -> None:
    lm = FakeLM([{"answer": "0"}, "no answer at all", "none"])
    evaluate = Evaluate(devset=DEVSET, metric=exact, requests=requests, num_threads=1, progress=False)
    result = evaluate(Predict("question -> answer: int", lm=lm, max_reasks=0))
    assert [min(len(record.cell.calls), 1) for record in result.records] == kept


def test_failed_rows_keep_their_messages_without_an_option_also_if_the_metric_failed() -> None:
    def metric(example: Example, prediction: Any) -> bool:
        raise KeyError("answer")

    lm = FakeLM([{"answer": "0"}, LMServerError("overloaded")])
    evaluate = Evaluate(devset=DEVSET, metric=metric, num_threads=1, progress=False, max_errors=9)
    first, second = (record.cell for record in evaluate(Predict("question -> answer", lm=lm)).records)
    assert first.calls[0].choices[0]["finish_reason"] == "stop"
    assert second.calls[0].error == "LMServerError: overloaded"
    assert second.calls[0].choices == ()


def test_option_of_another_kind_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="requests of an Evaluate is True, False or"):
        Evaluate(devset=DEVSET, metric=exact, requests="all")  # type: ignore[arg-type]


def test_secrets_are_masked_in_what_is_kept() -> None:
    def look(question: str) -> str:
        return f"the key is {PLANTED}, send Bearer abcdefghij0123456789"

    answers = [_calling("look", question=PLANTED), _calling("submit", answer="0")]
    lm = FakeLM(answers, extra_headers={"authorization": f"Bearer {PLANTED}"})
    evaluate = Evaluate(devset=DEVSET[:1], metric=exact, requests=True, progress=False)
    result = evaluate(ReAct("question -> answer", tools=[look], lm=lm))
    kept = json.dumps([call.to_json() for record in result.records for call in record.cell.calls])
    assert "the key is ***, send Bearer ***" in kept
    assert PLANTED not in kept


def _calling(name: str, **arguments: str) -> sigwire.ToolCall:
    return sigwire.ToolCall("c", name, {**arguments})


@pytest.mark.parametrize(
    "options",
    [{"api_key": PLANTED}, {"headers": {"x-team": PLANTED}}, {"base_url": f"http://me:{PLANTED}@127.0.0.1/v1"}],
)
def test_model_masks_each_secret_that_it_was_given(options: dict[str, Any]) -> None:
    assert sigwire.LM("openai/gpt-5-mini", **options).masked(f"it is {PLANTED}.") == "it is ***."


def test_media_are_references_in_what_is_kept() -> None:
    data = "iVBORw0KGgo" * 500
    devset = [Example(picture=Image(f"data:image/png;base64,{data}"), answer="0").with_inputs("picture")]
    evaluate = Evaluate(devset=devset, metric=exact, requests=True, progress=False)
    result = evaluate(Predict("picture: Image -> answer", lm=FakeLM([{"answer": "0"}])))
    kept = json.dumps(result.records[0].cell.calls[0].to_json())
    assert data[:40] not in kept
    assert '"sha256"' in kept


def record_of(texts: Sequence[str], asker: object = "self") -> CallRecord:
    return CallRecord("m", "chat", Request(tuple(map(Message.user, texts))), asker=asker)


def test_calls_of_a_conversation_share_the_messages_of_the_call_before_from_their_module() -> None:
    row = RowCalls()
    for texts, asker in ((["a"], "one"), (["x"], "two"), (["a", "b"], "one"), (["a", "b", "c"], "one")):
        row.add(record_of(texts, asker))
    found = row.recorded(None)
    assert [(call.like, call.shared, len(call.messages)) for call in found] == [
        (None, 0, 1), (None, 0, 1), (0, 1, 1), (2, 2, 1),
    ]  # fmt: skip
    assert [len(call.messages) for call in whole_calls(found)] == [1, 1, 2, 3]
    assert [RecordedCall.from_json(call.to_json()) for call in found] == list(found)


def test_kept_messages_of_a_row_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_IN_TEXT", 10)
    monkeypatch.setattr(calls, "MOST_IN_ROW", 25)
    row = RowCalls()
    for number in range(300):
        row.add(record_of([f"{number} " * 20]))
    found = row.recorded(None)
    assert len(found) == 200
    assert found[0].is_cut
    texts = [call.messages[0]["parts"][0]["text"].partition("…")[0] for call in found]  # type: ignore[index, call-overload, union-attr]
    assert (len(texts[0]), sum(map(len, texts))) == (10, 25)
    assert {call.messages[0]["parts"][0]["type"] for call in found} == {"text"}  # type: ignore[index, call-overload, union-attr]


def test_image_of_a_result_of_a_tool_is_a_reference() -> None:
    result = sigwire.ToolResult("c", "draw", {"data": "kept"}, media=(ImagePart(data="QUJD", media_type="image/png"),))
    row = RowCalls()
    row.add(CallRecord("m", "chat", Request((Message.tool(result),))))
    (call,) = row.recorded(None)
    assert call.messages[0]["parts"] == [
        {
            "type": "tool_result",
            "id": "c",
            "name": "draw",
            "content": {"data": "kept"},
            "media": [{"type": "image", "content": {"bytes": 3, "sha256": _digest("QUJD")}, "media_type": "image/png"}],
        }
    ]


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()
