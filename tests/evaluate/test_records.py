"""Files of records: torn lines, refused headers, two writers, hostile text, secrets, and rescoring."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sigwire import Budget, ConfigurationError, Example, FakeLM, Finished, Image, Predict, Prediction, ReAct
from sigwire.core.request import Request
from sigwire.core.response import Attempt, Repair
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import LMContentFilteredError, LMTransportError
from sigwire.evaluate.cell import Cell, TraceStep
from sigwire.evaluate.evaluation import Evaluate, load_records
from sigwire.evaluate.failures import Failure
from sigwire.evaluate.git import git_state
from sigwire.evaluate.records import ExampleRecord, RecordFile
from sigwire.lm.client import LM
from sigwire.modules.agents.run import ReActStep
from sigwire.modules.module import Module
from sigwire.testing import FakeProvider
from tests.evaluate.schema import SCHEMA, VALIDATOR

HOSTILE = '\x1b[2J\u202e</script><img src=x onerror=alert(1)>\u2028\ud800"'
CANARY = "sk-canary-0123456789abcdef"


def exact(example: Example, prediction: Prediction) -> bool:
    return bool(example.answer == prediction.answer)


def devset(count: int = 5) -> list[Example]:
    return [Example(question=f"number {n}", answer=str(n)).with_inputs("question") for n in range(count)]


def echo(request: Request) -> Any:
    return {"answer": request.messages[-1].text.split("number ")[1].split()[0]}


def program(**options: Any) -> Predict[..., Prediction]:
    return Predict("question -> answer", lm=FakeLM(echo, **options))


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8", errors="surrogatepass").split("\n") if line]


def test_file_has_a_header_a_line_for_each_example_and_an_end(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    Evaluate(devset=devset(), metric=exact, log=path)(program())
    rows = rows_of(path)
    assert [row["type"] for row in rows] == ["run", *["record"] * 5, "end"]
    assert (rows[0]["metrics"], rows[0]["devset"]["n"], rows[-1]["status"]) == (["exact"], 5, "complete")
    for row in rows:
        VALIDATOR.validate(row)


def run_git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_header_has_the_commit_and_whether_tracked_files_or_loaded_modules_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    evaluate = Evaluate(devset=devset(1), metric=exact, log="log.jsonl", resume="append")

    def header() -> dict[str, Any]:
        evaluate(program(), resume=False)
        row = [row for row in rows_of(tmp_path / "log.jsonl") if row["type"] == "run"][-1]
        VALIDATOR.validate(row)
        return row

    assert "git" not in header()  # no repository
    run_git(tmp_path, "init", "-q")
    assert "git" not in header()  # no commit
    source = tmp_path / "program.py"
    source.write_text("1")
    run_git(tmp_path, "add", "program.py")
    run_git(tmp_path, "commit", "-q", "-m", "first")
    commit = run_git(tmp_path, "rev-parse", "HEAD")
    assert header()["git"] == {"commit": commit, "dirty": False}
    with monkeypatch.context() as loaded:
        for place, is_dirty in ((tmp_path.with_name(f"{tmp_path.name}_beside"), False), (tmp_path, True)):
            place.mkdir(exist_ok=True)
            module = ModuleType(f"helper of {place.name}")
            module.__file__ = str(place / "helper.py")
            Path(module.__file__).write_text("")
            loaded.setitem(sys.modules, module.__name__, module)
            assert header()["git"] == {"commit": commit, "dirty": is_dirty}  # no tracked file of the repository
    source.write_text("2")
    assert header()["git"] == {"commit": commit, "dirty": True}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git" not in header()  # no git


@pytest.mark.skipif(os.name == "nt", reason="a script stands for git")
def test_header_has_the_commit_of_a_slow_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "git"
    script.write_text("#!/bin/sh\n[ $1 = ls-files ] && exit\nsleep 1.2\necho '# branch.oid abc'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert git_state() == {"commit": "abc", "dirty": False}


def test_records_with_failures_attempts_repairs_and_traces_are_of_the_schema(tmp_path: Path) -> None:
    failing = Cell(
        0.0,
        failure=Failure(
            "program", "AdapterParseError", "no answer", path="self", turn=2, traceback="Trace", is_bug=True
        ),
        attempts=(Attempt("ask", "fake", error="LMServerError: 500", status=500), Attempt("repair", "fake")),
        repairs=(Repair(None, "a trailing comma"), Repair("answer", "a number as text")),
        trace=(TraceStep("self", {"fields": {"q": 1}}),),
        feedbacks={"self": "Be brief."},
        steps=(ReActStep("Look.", (ToolCall("c", "find", {"q": 1}),), (ToolResult("c", "find", "here"),)),),
        subscores={"f1": 0.5},
        usage={"fake": {"input_tokens": 1}},
        cost=0.1,
    )
    record = ExampleRecord("a", 0, 1, {"q": 1}, {}, failing, "2026-11-21T23:00:12.000Z", kept=True)
    row = json.loads(json.dumps(record.to_json()))
    VALIDATOR.validate(row)
    assert ExampleRecord.from_json(row) == record
    (known,) = [each["properties"] for each in SCHEMA["oneOf"] if each["properties"]["type"].get("const") == "record"]
    assert set(row) <= set(known)


def test_reasks_are_in_the_record_of_their_example() -> None:
    lm = FakeLM(["[[ ## answer ## ]]\nx", {"answer": "0"}])
    result = Evaluate(devset=devset(1), metric=exact, progress=False)(
        Predict("question -> answer: int", lm=lm, max_reasks=1)
    )
    assert [attempt.purpose for attempt in result.records[0].cell.attempts] == ["repair"]


def test_turns_of_an_agent_that_failed_are_in_its_record() -> None:
    def find(q: str) -> str:
        return f"found {q}"

    lm = FakeLM([ToolCall("c1", "find", {"q": "x"}), LMContentFilteredError("no", model="fake", provider="fake")])
    agent = ReAct("question -> answer", tools=[find], lm=lm)
    (record,) = Evaluate(devset=devset(1), metric=exact, progress=False)(agent).records
    assert (record.outputs, [call.name for step in record.cell.steps for call in step.calls]) == (None, ["find"])
    assert record.cell.steps[0].results[0].content == "found x"


def test_log_true_chooses_a_file_below_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = Evaluate(devset=devset(), metric=exact, log=True)(program())
    assert [str(path.relative_to(tmp_path)) for path in (tmp_path / "runs" / "Predict").iterdir()] == [
        f"runs/Predict/{path.name}" for path in (tmp_path / "runs" / "Predict").iterdir()
    ]
    assert result.path is not None
    assert Path(result.path).exists()


@pytest.mark.parametrize("torn", ['{"type":"record","id":"x', "\x00\x00\x00", '{"type"', '{"type":"rec\n'])
def test_torn_last_line_is_dropped_and_its_example_runs_again(torn: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    asked = program()
    Evaluate(devset=devset(), metric=exact, log=path, num_threads=1)(asked)
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:5], torn]))
    assert len(load_records(path).records) == 4
    result = Evaluate(devset=devset(), metric=exact, log=path)(asked)
    assert len(asked.lm.requests) == 6
    assert [record.cell.score for record in result.records] == [1.0] * 5
    assert all(json.loads(line) for line in path.read_text().split("\n") if line)


def blocking(evaluate: Evaluate, tried: Any) -> Any:
    return evaluate(tried)


def awaited(evaluate: Evaluate, tried: Any) -> Any:
    return asyncio.run(evaluate.acall(tried))


def streamed(evaluate: Evaluate, tried: Any) -> Any:
    *_, end = evaluate.stream(tried)
    assert isinstance(end, Finished)
    return end.value


@pytest.mark.parametrize("way", [blocking, awaited, streamed])
@pytest.mark.parametrize("errors", ["score", "raise"])
def test_metric_that_failed_runs_again_and_the_program_does_not(way: Any, errors: Any, tmp_path: Path) -> None:
    repaired = tmp_path / "repaired"

    def fragile(example: Example, prediction: Prediction) -> bool:
        if not repaired.exists() and example.answer in ("1", "3"):
            raise RuntimeError("the judge is out")
        return exact(example, prediction)

    path, first = tmp_path / "log.jsonl", program()
    evaluate = Evaluate(devset=devset(), metric=fragile, log=path, progress=False, num_threads=1, errors=errors)
    with pytest.raises(RuntimeError, match="the judge is out") if errors == "raise" else nullcontext():
        way(evaluate, first)
    repaired.touch()
    resumed = program()
    result = way(evaluate, resumed)
    assert isinstance(first.lm, FakeLM)
    assert isinstance(resumed.lm, FakeLM)
    assert len(first.lm.requests) + len(resumed.lm.requests) == 5
    assert len(first.lm.requests) == (2 if errors == "raise" else 5)
    assert [record.cell.score for record in result.records] == [1.0] * 5
    assert result.usage == load_records(path).usage  # of the runs that were paid for
    assert [record.score for record in load_records(path).records] == [1.0] * 5
    assert [each.records for each in load_records(path).segments] == ([2, 3] if errors == "raise" else [5])
    for row in rows_of(path):
        VALIDATOR.validate(row)


def test_outputs_are_kept_if_their_judge_meets_a_spent_budget(tmp_path: Path) -> None:
    judge, ask = Predict("answer -> right: bool", lm=FakeLM(lambda _: {"right": True})), program()

    def judged(example: Example, prediction: Prediction) -> bool:
        return bool(judge(answer=prediction.answer).right)

    evaluate = Evaluate(devset=devset(3), metric=judged, log=tmp_path / "log.jsonl", progress=False, num_threads=1)
    assert evaluate(ask, budget=Budget(calls=3)).status == "budget"
    assert evaluate(ask).mean == 1.0
    assert isinstance(ask.lm, FakeLM)
    assert len(ask.lm.requests) == 3


def test_broken_line_in_the_middle_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"type":"run"}\nnot json\n{"type":"end"}\n{"type":"end"}\n')
    with pytest.raises(ConfigurationError, match=r"Line 2 of log\.jsonl"):
        RecordFile.read(path)


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "program": ({}, {"temperature": 1.0}, "options is new"),
    "metric": ({"metric": lambda example, prediction: 1}, {}, "metrics"),
}


@pytest.mark.parametrize(("changes", "options", "words"), CHANGES.values(), ids=list(CHANGES))
def test_file_of_another_run_is_refused_with_the_difference(
    changes: dict[str, Any], options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    evaluate = Evaluate(devset=devset(), metric=exact, log=path)
    evaluate(program())
    before = path.read_bytes()
    other = program(**options)
    with pytest.raises(ConfigurationError, match=words):
        evaluate(other, **changes)
    assert (path.read_bytes(), other.lm.requests) == (before, [])
    evaluate(other, resume="append", **changes)
    assert [row["type"] for row in rows_of(path)].count("run") == 2
    assert path.read_bytes().startswith(before)


def test_resume_false_runs_every_example_and_keeps_the_old_run(tmp_path: Path) -> None:
    asked = program()
    evaluate = Evaluate(devset=devset(), metric=exact, log=tmp_path / "log.jsonl")
    evaluate(asked)
    evaluate(asked, resume=False)
    assert len(asked.lm.requests) == 10
    assert len(load_records(tmp_path / "log.jsonl").records) == 5


def test_more_repeats_run_only_what_is_missing(tmp_path: Path) -> None:
    asked = program()
    evaluate = Evaluate(devset=devset(), metric=exact, log=tmp_path / "log.jsonl")
    evaluate(asked)
    result = evaluate(asked, repeat=2)
    assert len(asked.lm.requests) == 10
    assert len(result.records) == 10


def test_changed_label_of_an_id_runs_the_example_again(tmp_path: Path) -> None:
    asked = program()
    examples = [example.copy(id=number) for number, example in enumerate(devset())]
    evaluate = Evaluate(devset=examples, metric=exact, log=tmp_path / "log.jsonl")
    evaluate(asked)
    changed = [examples[0].copy(answer="none"), *examples[1:]]
    assert evaluate(asked, devset=changed).records[0].cell.score == 0.0
    assert len(asked.lm.requests) == 6
    assert [record.score for record in load_records(tmp_path / "log.jsonl").records] == [0.0, *[1.0] * 4]


def test_failed_example_that_left_the_devset_is_not_among_the_records(tmp_path: Path) -> None:
    def last_fails(request: Request) -> Any:
        if "number 4" in request.messages[-1].text:
            raise LMTransportError("no")
        return echo(request)

    asked = Predict("question -> answer", lm=FakeLM(last_fails))
    examples = [example.copy(id=number) for number, example in enumerate(devset())]
    evaluate = Evaluate(devset=examples, metric=exact, log=tmp_path / "log.jsonl")
    assert evaluate(asked).unscored == 1
    for found in (evaluate(asked, devset=examples[:4]), load_records(tmp_path / "log.jsonl")):
        assert (len(found.records), found.unscored) == (4, 0)


@pytest.mark.parametrize("way", [blocking, awaited, streamed])
def test_plain_value_of_a_program_is_scored_again_as_it_was(way: Any, tmp_path: Path) -> None:
    class Length(Module):
        def forward(self, question: str) -> int:
            return len(question)

    repaired, path = tmp_path / "repaired", tmp_path / "log.jsonl"

    def fragile(example: Example, prediction: object) -> bool:
        if not repaired.exists():
            raise RuntimeError("the judge is out")
        return prediction == 8

    evaluate = Evaluate(devset=devset(2), metric=fragile, log=path, progress=False)
    way(evaluate, Length())
    repaired.touch()
    for result in (way(evaluate, Length()), way(evaluate, Length()), load_records(path).rescore(fragile)):
        assert [(prediction, score) for _, prediction, score in result.results] == [(8, 1.0)] * 2
    for row in rows_of(path):
        VALIDATOR.validate(row)


@pytest.mark.parametrize("name", ["", "none.jsonl"])
def test_folder_and_missing_file_are_refused_as_records(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no file that can be read \(reading records"):
        load_records(tmp_path / name)


def test_second_writer_of_a_file_is_refused(tmp_path: Path) -> None:
    first = RecordFile(tmp_path / "log.jsonl")
    with pytest.raises(ConfigurationError, match="open in another evaluation"):
        RecordFile(tmp_path / "log.jsonl")
    first.close()
    RecordFile(tmp_path / "log.jsonl").close()


def test_hostile_text_and_values_without_json_survive_the_file(tmp_path: Path) -> None:
    class Odd:
        def __repr__(self) -> str:
            raise ValueError("no repr")

    path = tmp_path / "log.jsonl"
    example = Example(question=f"number {HOSTILE}", answer=HOSTILE, odd=Odd(), nan=float("nan")).with_inputs("question")
    answer = FakeLM(lambda request: {"answer": HOSTILE})
    result = Evaluate(devset=[example], metric=exact, log=path)(Predict("question -> answer", lm=answer))
    (record,) = load_records(path).records
    assert record.labels == {"answer": HOSTILE, "odd": "<Odd>", "nan": "nan"}
    assert record.cell == result.records[0].cell
    assert path.read_bytes().count(b"\n") == 3


def test_media_are_references(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    example = Example(question="number 1", picture=Image(b"GIF89a" + b"x" * 9999), answer="1").with_inputs("question")
    Evaluate(devset=[example], metric=exact, log=path)(program())
    assert path.stat().st_size < 2_000
    (record,) = load_records(path).records
    assert record.labels["picture"].keys() == {"media", "bytes", "sha256"}  # type: ignore[union-attr]


def test_canary_key_is_in_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    path = tmp_path / "log.jsonl"

    def metric(example: Example, prediction: Prediction) -> bool:
        raise RuntimeError(f"refused: token={CANARY} for https://me:{CANARY}@llm.example")

    with FakeProvider(lambda request: "[[ ## answer ## ]]\n1", key=CANARY) as provider:
        lm = LM(
            "openai/gpt-4o-mini",
            base_url=provider.url("openai"),
            api_key=CANARY,
            headers={"x-secret": CANARY},
        )
        Evaluate(devset=devset(2), metric=metric, log=path, provide_traceback=False)(
            Predict("question -> answer", lm=lm)
        )
    assert "RuntimeError" in path.read_text()
    assert CANARY not in path.read_text()


def test_record_is_read_as_it_was_written() -> None:
    record = ExampleRecord("id", 3, 2, {"q": 1}, {"a": None}, started="now")
    assert ExampleRecord.from_json({**record.to_json(), "later": 1}, kept=False) == record


def test_rescore_calls_no_model_and_keeps_ids(tmp_path: Path) -> None:
    asked = program()
    result = Evaluate(devset=devset(), metric=exact, log=tmp_path / "log.jsonl")(asked)
    for before in (result, load_records(tmp_path / "log.jsonl")):
        after = before.rescore(lambda example, prediction: prediction.answer == "3")
        assert [record.cell.score for record in after.records] == [0.0, 0.0, 0.0, 1.0, 0.0]
        assert [record.id for record in after.records] == [record.id for record in before.records]
    assert len(asked.lm.requests) == 5


def test_lines_of_many_threads_are_whole(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "log.jsonl")
    threads = [
        threading.Thread(target=lambda: [file.append({"type": "record", "text": "x" * 5_000}) for _ in range(20)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file.close()
    file.append({"type": "late"})
    assert len(RecordFile.read(tmp_path / "log.jsonl")) == 160


def test_failed_evaluation_frees_its_log_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write, room = tmp_path / "log.jsonl", os.write, [3_000]

    def write_in_room(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", write_in_room)
    evaluate = Evaluate(devset=devset(40), metric=exact, log=path, num_threads=1, display_progress=False)
    with pytest.raises(OSError, match=r"No space left on device: .*log.jsonl") as caught:
        evaluate(program())
    monkeypatch.undo()
    kept = load_records(path).records
    assert path.read_bytes().endswith(b"\n")
    assert len(vars(caught.value)["result"].records) >= len(kept) > 0
    assert evaluate(program()).status == "complete"
