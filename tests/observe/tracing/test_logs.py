"""Records of ``logging``: which are written, their facts, and what stays out of them."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import sigwire
from sigwire import Evaluate, Example, FakeLM, ToolCall
from sigwire.core.response import Usage
from sigwire.errors import LMServerError
from sigwire.lm.policy.cache.cache import read_environment
from sigwire.observe.tracing.logs import log_to_stderr, log_warning
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Kept, Warned
from sigwire.optimizers.progress import SearchLog
from sigwire.testing import FakeProvider, Fault

ROOT = Path(__file__).resolve().parents[3]
PRIVATE = "the patient's name is Ada"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """The records of every logger of sigwire, from DEBUG on."""
    with caplog.at_level(logging.DEBUG, logger="sigwire"):
        yield caplog


def lines(log: pytest.LogCaptureFixture, name: str, level: int | None = None) -> list[str]:
    """The messages of a logger."""
    found = [record for record in log.records if record.name == name and level in (None, record.levelno)]
    return [record.getMessage() for record in found]


def facts(record: Any, *names: str) -> list[object]:
    return [getattr(record, name, None) for name in names]


class Desk(sigwire.Module):
    """Sorts a message."""

    def __init__(self) -> None:
        self.sort = sigwire.ChainOfThought("message -> topic")

    def forward(self, message: str) -> sigwire.Prediction:
        return self.sort(message=message)


def desk(*answers: Any) -> Desk:
    program = Desk()
    usage = Usage(input_tokens=185, output_tokens=29)
    program.set_lm(FakeLM(answers or [{"reasoning": PRIVATE, "topic": PRIVATE}], model="openai/gpt-5", usage=usage))
    return program


def test_call_of_a_model_is_one_line_with_model_path_tokens_and_milliseconds(log: pytest.LogCaptureFixture) -> None:
    desk()(message=PRIVATE)
    (record,) = log.records
    assert (record.name, record.levelno) == ("sigwire.lm", logging.DEBUG)
    milliseconds = record.milliseconds  # type: ignore[attr-defined]
    assert record.getMessage() == f"openai/gpt-5 at sort.predict: 185 in, 29 out, {milliseconds} ms"
    assert facts(record, "model", "path", "input_tokens", "output_tokens", "cache", "attempts") == [
        "openai/gpt-5", "sort.predict", 185, 29, "off", 1,
    ]  # fmt: skip


def test_failed_call_names_the_class_of_its_error_only(log: pytest.LogCaptureFixture) -> None:
    with pytest.raises(LMServerError):
        desk(LMServerError(PRIVATE))(message="x")
    (line,) = lines(log, "sigwire.lm")
    assert line.endswith("ms, LMServerError")
    assert facts(log.records[0], "error_type") == ["LMServerError"]


@pytest.mark.parametrize("given", [None, "0", "yes"])
def test_no_content_is_logged_without_the_variable(
    log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    if given is None:
        monkeypatch.delenv("SIGWIRE_LOG_CONTENT", raising=False)
    else:
        monkeypatch.setenv("SIGWIRE_LOG_CONTENT", given)
    run_agent_with_a_bug()
    assert PRIVATE not in log.text
    assert all(PRIVATE not in str(vars(record)) for record in log.records)


def test_content_is_logged_with_the_variable_and_made_visible(
    log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGWIRE_LOG_CONTENT", "1")
    FakeLM(["red \x1b[31m"])("Hello")
    (line,) = lines(log, "sigwire.lm")
    assert '"content": "Hello"' in line
    assert "\x1b" not in line
    run_agent_with_a_bug()
    assert any(f"LookupError: '{PRIVATE}'" in line or PRIVATE in line for line in lines(log, "sigwire.tool"))


def test_no_key_is_logged(log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-canary-4f1d2c3b4a"
    monkeypatch.setenv("SIGWIRE_LOG_CONTENT", "1")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    options: Any = {"headers": {"x-key": key}, "extra_body": {"token": key}, "retry": sigwire.RetryPolicy(1, 0.01)}
    lm = sigwire.LM("openai/gpt-5", api_key=key, base_url=f"http://user:{key}@localhost:9/v1", **options)
    with pytest.raises(sigwire.LMError):
        sigwire.Predict("q -> a", lm=lm)(q="x")
    assert {record.name for record in log.records} == {"sigwire.lm", "sigwire.retry"}
    assert all(key not in f"{record.getMessage()} {vars(record)}" for record in log.records)


def run_agent_with_a_bug() -> None:
    def read(record: str) -> str:
        raise LookupError(PRIVATE)

    agent = sigwire.ReAct("note -> answer", tools=[read])
    agent.set_lm(FakeLM([ToolCall("a", "read", {"record": PRIVATE}), ToolCall("b", "submit", {"answer": PRIVATE})]))
    with pytest.warns(sigwire.ToolWarning):
        agent(note=PRIVATE)


def test_bug_of_a_tool_is_a_warning_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    run_agent_with_a_bug()
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("sigwire.tool", logging.WARNING)
    text = record.getMessage()
    assert text.startswith(f"read raised LookupError at test_logs.py:{record.line}; the run continued\n")  # type: ignore[attr-defined]
    assert "raise LookupError(PRIVATE)" in text
    assert facts(record, "tool", "error_type") == ["read", "LookupError"]


def test_run_of_a_tool_is_a_line(log: pytest.LogCaptureFixture) -> None:
    agent = sigwire.ReAct("note -> answer", tools=[len])
    agent.set_lm(FakeLM([ToolCall("a", "len", {"obj": "abc"}), ToolCall("b", "submit", {"answer": "3"})]))
    agent(note="x")
    (line,) = lines(log, "sigwire.tool")
    assert line.startswith("len: ")
    assert line.endswith(" ms")


def test_calls_of_an_agent_in_an_evaluation_have_turn_and_example(log: pytest.LogCaptureFixture) -> None:
    agent = sigwire.ReAct("note -> answer", tools=[len])
    agent.set_lm(FakeLM([ToolCall("a", "len", {"obj": "abc"}), ToolCall("b", "submit", {"answer": "3"})]))
    devset = [Example(note="x", answer="3").with_inputs("note")]
    result = Evaluate(devset=devset, metric=sigwire.answer_exact_match, display_progress=False)(agent)
    calls = [record for record in log.records if record.name == "sigwire.lm"]
    own = result.records[0].id
    assert [facts(call, "path", "turn", "example") for call in calls] == [["react", 0, own], ["react", 1, own]]


def test_level_of_one_logger_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="sigwire.tool"):
        assert sigwire.Tool(len)(obj="abc") == 3
        FakeLM(["x"])("Hello")
    assert [record.name for record in caplog.records] == ["sigwire.tool"]


def test_retry_is_a_line_before_the_wait(log: pytest.LogCaptureFixture) -> None:
    with FakeProvider([Fault("server"), "4"]) as provider:
        lm = sigwire.LM("openai/gpt-5", api_key="any", base_url=provider.url("openai"))
        lm.copy(retry=sigwire.RetryPolicy(first_wait=0.01))("2+2?")
    (line,) = lines(log, "sigwire.retry", logging.INFO)
    assert re.match(r"openai/gpt-5: retry 1 in [\d.]+ ms after LMServerError 5", line)
    (call,) = lines(log, "sigwire.lm")
    assert call.endswith("2 attempts")


def test_stored_answer_is_a_line_of_the_cache(log: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    sigwire.configure_cache(disk_cache_dir=tmp_path)
    try:
        with FakeProvider(["4"]) as provider:
            lm = sigwire.LM("openai/gpt-5", api_key="any", base_url=provider.url("openai"))
            assert lm("2+2?") == lm("2+2?")
    finally:
        read_environment()
    assert lines(log, "sigwire.cache") == ["openai/gpt-5: answer from the cache"]
    assert "from the cache" in lines(log, "sigwire.lm")[1]


def evaluate(metric: Any) -> None:
    devset = [Example(message=str(number), topic="x").with_inputs("message") for number in range(2)]
    program = desk({"reasoning": "", "topic": "x"}, {"reasoning": "", "topic": "y"})
    Evaluate(devset=devset, metric=metric, display_progress=False, num_threads=1)(program)


def test_evaluation_has_milestones_and_a_line_for_each_example(log: pytest.LogCaptureFixture) -> None:
    evaluate(lambda example, prediction, trace=None: example.topic == prediction.topic)
    first, last = lines(log, "sigwire.evaluate", logging.INFO)
    assert first == "evaluating Desk on 2 examples"
    assert last.startswith("Desk: score 50.0, 2 scored, complete, ")
    assert len(lines(log, "sigwire.evaluate", logging.DEBUG)) == 2
    assert lines(log, "sigwire.evaluate", logging.WARNING) == []


def test_runs_without_a_score_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    def broken(example: Any, prediction: Any, trace: object = None) -> float:
        raise ZeroDivisionError(PRIVATE)

    evaluate(broken)
    (line,) = lines(caplog, "sigwire.evaluate")
    assert line == "Desk: 2 runs without a score (failures: 2 ZeroDivisionError)"


def test_compilation_has_milestones(log: pytest.LogCaptureFixture) -> None:
    student = sigwire.Predict("question -> answer", lm=FakeLM(lambda request: {"answer": "4"}))
    trainset = [Example(question="2+2?", answer="4").with_inputs("question")]
    sigwire.LabeledFewShot(k=1).compile(student, trainset=trainset)
    texts = lines(log, "sigwire.optimize", logging.INFO)
    assert texts[0] == "LabeledFewShot compiles Predict"
    assert texts[-1].startswith("LabeledFewShot: finished after ")


def test_candidate_that_a_search_keeps_is_a_milestone(log: pytest.LogCaptureFixture) -> None:
    search = SearchLog(
        cast(Any, SimpleNamespace(total=None)), None, cast(Any, SimpleNamespace(event=lambda event: None))
    )
    search.add(Kept(Candidate(), "0.900 on 8 rows"))
    search.add(Warned("Nothing was tuned."))
    (kept,) = lines(log, "sigwire.optimize", logging.INFO)
    assert kept.startswith("candidate ")
    assert kept.endswith(" is kept: 0.900 on 8 rows")
    assert lines(log, "sigwire.optimize", logging.WARNING) == ["Nothing was tuned."]


def test_folder_that_the_cache_refuses_is_a_warning(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    sigwire.configure_cache(disk_cache_dir=folder)
    try:
        with FakeProvider(["4"]) as provider, pytest.warns(UserWarning, match="in memory only"):
            sigwire.LM("openai/gpt-5", api_key="any", base_url=provider.url("openai"))("2+2?")
    finally:
        read_environment()
    assert "in memory only: " in lines(caplog, "sigwire.cache", logging.WARNING)[0]


# --- switching on and off ------------------------------------------------------------------------------


def test_log_to_stderr_writes_lines_and_none_stops(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("debug")
    log_to_stderr("DEBUG")
    try:
        FakeLM(["x"], model="openai/gpt-5")("Hello")
    finally:
        log_to_stderr(None)
    FakeLM(["x"])("Hello")
    (line,) = capsys.readouterr().err.splitlines()
    assert " DEBUG sigwire.lm openai/gpt-5: " in line
    assert logging.getLogger("sigwire").level == logging.NOTSET


@pytest.mark.parametrize("level", ["LOUD", 1.5, True])
def test_log_to_stderr_refuses_an_unknown_level(level: Any) -> None:
    with pytest.raises(sigwire.ConfigurationError, match='A level is "DEBUG", "INFO"'):
        log_to_stderr(level)


PROGRAM = """
import sys
import sigwire
assert "logging" not in sys.modules
lm = sigwire.FakeLM(["a", "b", "c"])
lm("Hello")
assert "logging" not in sys.modules, "a call loads logging"
import logging
lm("Hello")
logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s")
lm("Hello")
"""


@pytest.mark.long
def test_basic_config_is_enough_and_logging_is_not_loaded_without_need() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=ROOT)
    (line,) = done.stderr.splitlines()
    assert line.startswith("sigwire.lm fake: ")


def test_warning_without_any_configuration_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    handlers = logging.getLogger("sigwire").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)
    log_warning("cache", "in memory only")
    assert capsys.readouterr().err == ""
