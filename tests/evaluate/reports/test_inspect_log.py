"""Results as logs of Inspect AI: the order of keys, and logs read back by its package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sigwire import Example, FakeLM, Predict
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.evaluation import Evaluate
from sigwire.evaluate.failures import Failure
from sigwire.evaluate.reports.inspect_log import inspect_log
from sigwire.modules.agents.run import ReActStep
from tests.evaluate.reports.pages import HEADER, agent_cell, asked_cell, mixed_result
from tests.evaluate.runs import failed_cell, make_result


def log_of(result: Any, path: Path) -> dict[str, Any]:
    return json.loads(Path(result.to_inspect(path)).read_text(encoding="utf-8"))


@pytest.mark.parametrize("status", ["complete", "aborted"])
def test_every_header_key_of_the_log_stands_before_the_samples(status: str, tmp_path: Path) -> None:
    result = make_result([[1, 0], [0, failed_cell("program", score=0.0)]], status=status, header=HEADER)
    keys = list(log_of(result, tmp_path))
    assert keys[-1] == "samples"
    assert {"version", "status", "eval", "plan", "results", "stats", "reductions"} <= set(keys)
    assert ("error" in keys) == (status == "aborted")


def test_log_is_not_trusted_by_the_viewer(tmp_path: Path) -> None:
    log = log_of(mixed_result(), tmp_path)
    assert log["eval"]["viewer"] == {"trust_content": False}
    assert log["version"] == 2


@pytest.mark.parametrize(
    ("status", "shown"),
    [("complete", "success"), ("cancelled", "cancelled"), ("budget", "cancelled"), ("aborted", "error")],
)
def test_status_of_the_log_is_one_that_inspect_knows(status: str, shown: str) -> None:
    assert inspect_log(make_result([1], status=status).run)["status"] == shown


def test_name_of_a_log_in_a_folder_starts_with_its_time(tmp_path: Path) -> None:
    path = Path(mixed_result().to_inspect(tmp_path / "logs"))
    assert path.name.startswith("2026-11-21T23-00-12+00-00_support_")
    assert path.suffix == ".json"
    assert mixed_result().to_inspect(tmp_path / "logs") == str(path)
    assert mixed_result().to_inspect(tmp_path / "mine.json") == str(tmp_path / "mine.json")


def test_record_without_a_score_has_no_scores_and_no_null_value(tmp_path: Path) -> None:
    samples = log_of(mixed_result(), tmp_path)["samples"]
    assert [sample["scores"] and sample["scores"]["exact"]["value"] for sample in samples] == [1, 0, 0, None, 1, None]
    assert samples[1]["scores"]["exact"]["explanation"]
    assert all(set(sample["error"]) == {"message", "traceback", "traceback_ansi"} for sample in samples[2:4])
    assert samples[2]["error"]["message"].endswith("(at support.react)")


def test_conversation_of_an_agent_has_its_calls_and_their_results(tmp_path: Path) -> None:
    messages = log_of(make_result([agent_cell(1.0)], header=HEADER), tmp_path)["samples"][0]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    call = messages[1]["tool_calls"][0]
    assert call == {"id": "c1", "function": "find_order", "type": "function", "arguments": {"order": 7}}
    assert messages[2]["tool_call_id"] == "c1"
    assert messages[2]["content"] == '{"status":"shipped"}'
    assert messages[3]["error"]["type"] == "unknown"


def test_conversation_of_an_agent_that_failed_has_its_turns(tmp_path: Path) -> None:
    call, found = ToolCall("c", "find", {"q": 1}), ToolResult("c", "find", "nothing")
    cell = Cell(0.0, failure=Failure("program", "Refused", "no"), steps=(ReActStep("I look.", (call,), (found,)),))
    messages = log_of(make_result([cell], header=HEADER), tmp_path)["samples"][0]["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool"]
    assert (messages[0]["content"], messages[0]["tool_calls"][0]["function"]) == ("I look.", "find")


def test_log_has_the_messages_that_were_sent_and_no_invented_ones(tmp_path: Path) -> None:
    devset = [Example(question="2+2?", answer="4").with_inputs("question")]
    lm = FakeLM([{"answer": "4"}] * 2)
    for requests in (True, False):
        evaluate = Evaluate(devset=devset, metric=lambda example, prediction: True, progress=False, requests=requests)
        (sample,) = log_of(evaluate(Predict("question -> answer", lm=lm)), tmp_path)["samples"]
        if requests:
            sent = [message.text for message in lm.requests[0].messages]
            assert [message["content"] for message in sample["messages"][:-1]] == sent
            assert sample["messages"][-1]["content"].startswith("[[ ## answer ## ]]\n4")
            assert sample["output"]["choices"][0]["message"]["content"] == sample["messages"][-1]["content"]
            (event,) = sample["events"]
            assert (event["model"], len(event["input"])) == ("fake", len(sent))
        else:
            assert sample["messages"] == []
            assert sample["metadata"]["messages"].startswith("not recorded")


def test_stop_reason_of_a_live_prediction_is_that_of_its_answer(tmp_path: Path) -> None:
    devset = [Example(question="2+2?", answer="4").with_inputs("question")]
    evaluate = Evaluate(devset=devset, metric=lambda example, prediction: True, progress=False)
    result = evaluate(Predict("question -> answer", lm=FakeLM([{"answer": "4"}])))
    assert log_of(result, tmp_path)["samples"][0]["output"]["choices"][0]["stop_reason"] == "stop"
    stored = log_of(mixed_result(), tmp_path)["samples"]
    reasons = [sample["output"]["choices"][0]["stop_reason"] for sample in stored[:4]]
    assert reasons == ["unknown", "unknown", "max_tokens", "unknown"]


def test_result_without_scores_has_no_mean_in_the_log() -> None:
    (score,) = inspect_log(make_result([failed_cell("provider")] * 2).run)["results"]["scores"]  # type: ignore[index, call-overload]
    assert score["metrics"] == {}  # type: ignore[index, call-overload]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_log_is_read_by_inspect_whole_by_header_by_sample_and_in_a_list(tmp_path: Path) -> None:
    reader = pytest.importorskip("inspect_ai.log", reason="inspect_ai is of the dev extra")
    repeats = [
        [agent_cell(1.0), failed_cell("program", score=0.0), agent_cell(0.0)],
        [Cell(0.25, outputs={"answer": 4}, feedback="half", subscores={"exact": 0.25, "f1": 0.5}), 1, 0],
        [failed_cell("provider", "LMServerError")] * 3,
        [failed_cell("metric", "KeyError"), 1, 1],
    ]
    repeats[1][1] = asked_cell()
    result = make_result(
        repeats, name="Support", header={**HEADER, "git": {"commit": "b807a4b"}}, reduce="max", seconds=3.5
    )
    path = result.to_inspect(tmp_path)

    log = reader.read_eval_log(path)
    assert (log.status, len(log.samples)) == ("success", 12)
    metrics = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert metrics == result.metrics
    assert [(each.sample_id, each.value) for each in log.reductions[0].samples] == [("id0", 1), ("id1", 1), ("id3", 1)]
    assert log.samples[3].scores["f1"].value == 0.5

    header = reader.read_eval_log(path, header_only=True)
    assert header.samples is None
    assert header.eval.viewer.trust_content is False
    assert (header.eval.model, header.eval.config.epochs) == ("openai/gpt-5-mini", 3)
    assert header.stats.model_usage["openai/gpt-5-mini"].input_tokens_cache_read == 300

    sample = reader.read_eval_log_sample(path, id="id0", epoch=1)
    assert sample.messages[1].tool_calls[1].function == "rate"
    assert sample.messages[3].error.type == "unknown"
    assert sample.target == "answer: a1"
    failed = reader.read_eval_log_sample(path, id="id0", epoch=2)
    assert failed.error.message.startswith("OutputTruncated")
    assert reader.read_eval_log_sample(path, id="id2", epoch=1).scores is None
    asked = reader.read_eval_log_sample(path, id="id1", epoch=2)
    assert [message.role for message in asked.messages] == ["user", "assistant", "tool", "assistant"]
    assert [event.event for event in asked.events] == ["model", "model"]
    assert asked.events[1].tools[0].name == "find"

    (listed,) = reader.list_eval_logs(str(tmp_path))
    assert (listed.task, listed.name.endswith(".json")) == ("support", True)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_log_of_hostile_values_is_turned_into_inspects_own_format(tmp_path: Path) -> None:
    reader = pytest.importorskip("inspect_ai.log", reason="inspect_ai is of the dev extra")
    path = mixed_result(status="aborted").to_inspect(tmp_path)
    log = reader.read_eval_log(path)
    reader.write_eval_log(log, str(tmp_path / "log.eval"))
    again = reader.read_eval_log(str(tmp_path / "log.eval"))
    assert (again.status, len(again.samples), again.error.message) == ("error", 6, "KeyError: 'a'")
