"""Rows on executors of this process: what is sent, kept, lost, repeated and refused."""

from __future__ import annotations

import asyncio
import datetime
import io
import json
import subprocess
import sys
import tracemalloc
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigwire
from sigwire import LM, ConfigurationError, Evaluate, Example, InputError, Predict, ReAct, Tool, dspy
from sigwire.errors import ToolWarning
from sigwire.evaluate.evaluation import load_records
from sigwire.evaluate.rows.map_rows import amap_rows, map_rows
from sigwire.evaluate.rows.rows import example_of, row_of
from sigwire.evaluate.rows.worker import RowRunner
from sigwire.jobs import worker
from sigwire.jobs.driver import chunks_of
from sigwire.jobs.errors import JobRefused
from sigwire.jobs.job import Job
from sigwire.jobs.journal import RowAttempt, read_block
from sigwire.jobs.worker import run_chunk
from sigwire.testing import FakeProvider
from tests.evaluate.schema import VALIDATOR
from tests.grids import grid
from tests.jobs import app
from tests.jobs.engines import InlineExecutor, answer_text, job_of, questions

SHOUT = Job(program="tests.jobs.app:shout")
SHOUT_ALL = Job(program="tests.jobs.app:shout_row")


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(answer_text) as found:
        yield found


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def texts_below(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


# --- records ---------------------------------------------------------------------------------------


def test_records_equal_those_of_one_process(provider: FakeProvider, out: Path) -> None:
    devset = questions(12)
    with ThreadPoolExecutor(2) as executor:
        result = map_rows(job_of(provider), devset, out, executor=executor, chunk=5)
    lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
    with sigwire.context(lm=lm):
        whole = Evaluate(devset=devset, metric=app.exact, progress=False)(app.Answer())
    found = load_records(out)
    assert (result.status, result.rows, found.score) == ("complete", 12, whole.score)
    for one, other in zip(found.records, whole.records, strict=True):
        assert (one.id, one.index, one.inputs, one.labels) == (other.id, other.index, other.inputs, other.labels)
        assert (one.score, one.outputs, one.cell.usage) == (other.score, other.outputs, other.cell.usage)
    assert result.usage["openai/gpt-4o-mini"] == whole.usage["openai/gpt-4o-mini"]
    assert not out.with_name("out.jsonl.journal").exists()


def test_records_have_the_evidence_of_one_process(out: Path) -> None:
    devset = questions(24)
    result = map_rows(Job(program="tests.jobs.app:Triage"), devset, out, executor=InlineExecutor(), chunk=7)
    whole = Evaluate(devset=devset, metric=lambda example, prediction: 1.0, progress=False)(app.Triage())
    found = load_records(out).records
    assert [record.cell.evidence for record in found] == [record.cell.evidence for record in whole.records]
    assert all(record.cell.evidence["urgent"]["source"] == "stated" for record in found)
    assert result.failures == whole.failures == {"Unsure": whole.failures["Unsure"]}


async def test_awaited_run_has_the_same_records(provider: FakeProvider, out: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        result = await amap_rows(job_of(provider), questions(4), out, executor=executor, chunk=2)
    assert (result.rows, len(provider.requests)) == (4, 4)


async def test_cancelled_run_keeps_what_is_finished(out: Path) -> None:
    task = asyncio.ensure_future(amap_rows(SHOUT, [{"question": "a"}], out, executor=NoWorkers()))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert map_rows(SHOUT, [{"question": "a"}], out, executor=InlineExecutor()).rows == 1


def test_program_faults_are_records(provider: FakeProvider, out: Path) -> None:
    result = map_rows(job_of(provider), questions(4, {1: "fault"}), out, executor=InlineExecutor())
    assert (result.rows, result.failures) == (4, {"ValueError": 1})
    assert [record.score for record in load_records(out).records] == [1.0, 0.0, 1.0, 0.0]


def test_repeats_of_a_row_are_records_of_their_own(provider: FakeProvider, out: Path) -> None:
    map_rows(job_of(provider), questions(2), out, executor=InlineExecutor(), repeat=2)
    assert [(record.index, record.repeat) for record in load_records(out).records] == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_second_run_of_a_row_asks_for_another_sample(out: Path) -> None:
    job = Job(program="tests.jobs.app:sample")
    map_rows(job, [{"question": "a"}], out, executor=InlineExecutor(), repeat=2)
    assert [record.outputs for record in load_records(out).records] == [{"answer": "None"}, {"answer": "2"}]


def test_rows_are_drawn_as_chunks_go_out(out: Path) -> None:
    drawn: list[int] = []
    ahead: list[int] = []

    def rows() -> Iterator[dict[str, str]]:
        for number in range(100):
            drawn.append(number)
            yield {"question": str(number)}

    def note(count: int, answer: dict[str, Any]) -> dict[str, Any]:
        ahead.append(len(drawn) - 5 * (count - 1))
        return answer

    assert map_rows(SHOUT, rows(), out, executor=InlineExecutor(note), chunk=5, in_flight=3).rows == 100
    assert max(ahead) <= 5 * 3


def test_values_that_are_not_json_reach_the_program_with_their_types() -> None:
    image = sigwire.Image(url="https://images.example/a.png")
    program = Predict("picture: Image, on: datetime.date -> answer", custom_types={"datetime": datetime})
    example = Example(picture=image, on=datetime.date(2026, 1, 2), answer=("a",)).with_inputs("picture", "on")
    row = json.loads(json.dumps(row_of(example, "7", 0, 1)))
    found = example_of(row, program)
    assert (found.picture, found.on, found.answer) == (image, datetime.date(2026, 1, 2), ["a"])
    assert row["inputs"]["picture"]["media"] == "image"


def test_member_of_an_enumeration_reaches_the_program_as_a_member() -> None:
    class Color(StrEnum):
        RED = "red"

    program = Predict("color: Color -> answer", custom_types={"Color": Color})
    row = json.loads(json.dumps(row_of(Example(color=Color.RED).with_inputs("color"), "7", 0, 1)))
    assert example_of(row, program).color is Color.RED


def test_two_rows_of_one_id_are_refused(out: Path) -> None:
    with pytest.raises(InputError, match="'a'"):
        map_rows(SHOUT, [{"id": "a", "question": "1"}, {"id": "a", "question": "2"}], out, executor=InlineExecutor())


PRIVATE = Job(program="tests.jobs.app:shout", metric="tests.jobs.app:shouted", rows="tests.jobs.app:read_row")


def test_rows_that_workers_read_reach_the_driver_as_outputs_only(out: Path) -> None:
    executor = InlineExecutor()
    result = map_rows(PRIVATE, ["a", "b"], out, executor=executor, repeat=2)
    sent = [row for chunk in executor.submitted for row in chunk["rows"]]
    assert [(row["id"], row["repeat"], row["inputs"], row["labels"]) for row in sent[:2]] == [
        ("a", 1, {}, {}),
        ("a", 2, {}, {}),
    ]
    assert (result.rows, result.failures) == (4, {})
    for record in load_records(out).records:
        assert (record.inputs, record.labels, record.outputs, record.score) == (
            {},
            {},
            {"answer": "PRIVATE NUMBER 7"},
            1.0,
        )
    assert "private" not in texts_below(out.parent)


def test_numbers_are_ids_of_rows(out: Path) -> None:
    assert map_rows(PRIVATE, range(3), out, executor=InlineExecutor()).rows == 3
    assert [record.id for record in load_records(out).records] == ["0", "1", "2"]


def test_row_that_cannot_be_read_is_a_record_and_read_again(out: Path) -> None:
    names = ["a", f"late{out.parent / 'mark'}", "nothing"]
    first = map_rows(PRIVATE, names, out, executor=InlineExecutor())
    assert (first.rows, first.failures) == (3, {"OSError": 1, "InputError": 1})
    again = map_rows(PRIVATE, names, out, executor=InlineExecutor())
    assert (again.rows, again.kept, again.failures) == (3, 1, {"InputError": 1})


def test_storage_that_no_row_can_use_ends_the_run(out: Path) -> None:
    with pytest.raises(JobRefused, match="no storage is configured"):
        map_rows(PRIVATE, ["misfit", "a"], out, executor=InlineExecutor())


def test_refused_run_has_the_result_of_the_rows_before(out: Path) -> None:
    with pytest.raises(JobRefused) as refused:
        map_rows(PRIVATE, ["a", "misfit", "b"], out, executor=InlineExecutor(), chunk=1, in_flight=1)
    result: Any = refused.value.result
    assert (result.rows, result.status) == (1, "refused")


@pytest.mark.parametrize(("rows", "text"), [([{"question": "a"}], "is no id"), (["a", "a"], "the id 'a'")])
def test_rows_that_are_no_ids_are_refused(out: Path, rows: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        map_rows(PRIVATE, rows, out, executor=InlineExecutor())


# --- losses ----------------------------------------------------------------------------------------


def test_run_chunk_called_again_makes_no_second_call(provider: FakeProvider, tmp_path: Path) -> None:
    rows = [row_of(example, str(n), n, 1) for n, example in enumerate(questions(3))]
    text = job_of(provider).text(journal=tmp_path)
    (chunk,) = chunks_of([(text, row) for row in rows], 10)
    first, again = (json.loads(run_chunk(text, chunk.text())) for _ in range(2))
    assert sorted(map(str, first["records"])) == sorted(map(str, again["records"]))
    assert len(provider.requests) == 3


def test_rows_that_kill_their_worker_are_one_record_each(provider: FakeProvider, out: Path) -> None:
    job = job_of(provider, concurrency=2)
    result = map_rows(job, questions(12, {4: "death", 9: "death"}), out, executor=InlineExecutor(), chunk=5)
    assert (result.status, result.rows, result.failures, result.lost) == ("complete", 12, {"WorkerLost": 2}, 6)
    for failed, index in zip(load_records(out).not_scored, (4, 9), strict=True):
        assert failed.cell.failure is not None
        assert (failed.index, failed.cell.failure.kind, failed.score) == (index, "worker", None)
    for line in out.read_text(encoding="utf-8").splitlines():
        VALIDATOR.validate(json.loads(line))
    assert len(provider.requests) <= 10 + 2 * 2


def test_engine_that_runs_lost_chunks_again_loses_three_workers_by_a_row(provider: FakeProvider, out: Path) -> None:
    class Again(InlineExecutor):
        """Runs the chunk of a lost worker three times more before it reports the loss, as Dask does."""

        deaths = 0

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            for _ in range(4):
                if (future := super().submit(fn, *args)).exception() is None:
                    break
                self.deaths += 1
            return future

    executor = Again()
    result = map_rows(job_of(provider, concurrency=2), questions(12, {4: "death"}), out, executor=executor, chunk=5)
    assert (result.status, result.rows, result.failures, result.lost) == ("complete", 12, {"WorkerLost": 1}, 3)
    assert executor.deaths == 3
    assert len(provider.requests) <= 11 + 2


def test_row_of_an_attempt_that_goes_on_is_not_lost(tmp_path: Path) -> None:
    attempt = RowAttempt(tmp_path)
    attempt.start({"id": "a", "repeat": 1})
    assert (read_block(tmp_path).lost, read_block(tmp_path).started) == (set(), {("a", 1)})
    attempt.close()
    assert read_block(tmp_path).lost == {("a", 1)}
    attempt = RowAttempt(tmp_path)
    attempt.done({"id": "a", "repeat": 1})
    attempt.close()
    assert read_block(tmp_path).lost == set()


def test_lost_chunk_runs_again_without_its_finished_rows(provider: FakeProvider, out: Path) -> None:
    def lose_first(count: int, answer: dict[str, Any]) -> dict[str, Any]:
        if count == 1:
            raise RuntimeError("the worker is gone")
        return answer

    result = map_rows(job_of(provider), questions(10), out, executor=InlineExecutor(lose_first), chunk=5)
    assert (result.rows, result.lost, len(provider.requests)) == (10, 1, 10)


def test_record_that_comes_twice_is_counted(out: Path) -> None:
    def twice(count: int, answer: dict[str, Any]) -> dict[str, Any]:
        return {"records": answer["records"] * 2}

    result = map_rows(SHOUT, [{"question": "a"}, {"question": "b"}], out, executor=InlineExecutor(twice))
    assert (result.rows, result.duplicates) == (2, 2)


def test_engine_that_runs_equal_calls_once_runs_a_lost_chunk_again(out: Path) -> None:
    class Pure(InlineExecutor):
        """Returns the old future for equal arguments, as Dask does by default."""

        futures: dict[tuple[Any, ...], Future[Any]]

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            return self.futures.setdefault(args, super().submit(fn, *args))

    def lose_first(count: int, answer: dict[str, Any]) -> dict[str, Any]:
        if count == 1:
            raise RuntimeError("the worker is gone")
        return {"records": []} if count == 2 else answer

    executor = Pure(lose_first)
    executor.futures = {}
    job = Job(program="tests.jobs.app:shout")
    assert map_rows(job, [{"question": "a"}], out, executor=executor).rows == 1
    texts = [chunk.text() for chunk in [*chunks_of([("", {"id": "1"})], 1)] * 2]
    assert texts[0] != texts[1]


class NoWorkers(Executor):
    """An engine whose futures never end."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        return Future()


def test_engine_without_workers_ends_as_stalled(out: Path) -> None:
    result = map_rows(SHOUT, [{"question": "a"}], out, executor=NoWorkers(), stall=0.02)
    assert (result.status, result.rows) == ("stalled", 0)
    assert "workers" in result.detail
    assert load_records(out).status == "stalled"


def test_cancelled_chunks_end_the_run_as_a_lost_engine(out: Path) -> None:
    def cancel(count: int, answer: dict[str, Any]) -> dict[str, Any]:
        raise CancelledError

    class Gone(NoWorkers):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = super().submit(fn)
            future.cancel()
            return future

    assert map_rows(SHOUT, [{"question": "a"}], out, executor=Gone()).status == "engine-lost"


def test_broken_executor_ends_the_run_unless_it_can_be_replaced(out: Path) -> None:
    class Broken(InlineExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise BrokenExecutor

    assert map_rows(SHOUT, [{"question": "a"}], out, executor=Broken()).status == "engine-lost"
    executors = iter([Broken(), InlineExecutor()])
    result = map_rows(SHOUT, [{"question": "a"}], out, executor=lambda: next(executors), in_flight=1)
    assert (result.status, result.rows) == ("complete", 1)


def test_workers_that_die_before_their_first_row_end_the_run(out: Path) -> None:
    class Dying(NoWorkers):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = super().submit(fn)
            future.set_exception(RuntimeError("out of memory"))
            return future

    result = map_rows(SHOUT, [{"question": "a"}], out, executor=Dying(), in_flight=2)
    assert result.status == "engine-lost"
    assert "out of memory" in result.detail


# --- resuming --------------------------------------------------------------------------------------


def test_journal_of_a_row_with_a_record_adds_no_record(out: Path) -> None:
    map_rows(SHOUT, [{"id": "a", "question": "1"}], out, executor=InlineExecutor())
    (record,) = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines() if '"record"' in line)
    attempt = RowAttempt(out.with_name("out.jsonl.journal") / "block")
    attempt.done(record)
    attempt.close()
    result = map_rows(SHOUT, [{"id": "a", "question": "1"}], out, executor=InlineExecutor())
    assert (result.rows, out.read_text(encoding="utf-8").count('"type":"record"')) == (1, 1)


def test_second_run_makes_no_call_for_rows_with_records(provider: FakeProvider, out: Path) -> None:
    map_rows(job_of(provider), questions(4), out, executor=InlineExecutor())
    result = map_rows(job_of(provider), questions(6), out, executor=InlineExecutor())
    assert (result.rows, result.kept, len(provider.requests)) == (6, 4, 6)


RESUMED: dict[str, Any] = {"fields": None, "ids": "tests.jobs.app:read_marked"}


@grid("reader, is_awaited", RESUMED.values(), [False, True])
def test_metric_that_failed_runs_again_and_the_program_does_not(
    reader: Any, is_awaited: bool, provider: FakeProvider, out: Path
) -> None:
    mark = out.with_name("repaired")
    job = replace(job_of(provider, rows=reader), metric=app.fragile)
    rows: Any = [str(mark)] if reader else [app.read_marked(str(mark))]

    def mapped() -> Any:
        given = {"executor": InlineExecutor(), "repeat": 2}
        return asyncio.run(amap_rows(job, rows, out, **given)) if is_awaited else map_rows(job, rows, out, **given)

    first = mapped()
    assert (first.failures, bool(first.cost), len(provider.requests)) == ({"KeyError": 2}, True, 2)
    assert mapped().failures == {"KeyError": 2}  # scored again, in vain
    mark.touch()
    again = mapped()
    assert (again.rows, again.failures, again.usage, again.cost) == (2, {}, {}, 0.0)
    assert len(provider.requests) == 2
    found = load_records(out)
    assert [record.score for record in found.records] == [1.0, 1.0]
    assert found.usage == first.usage
    assert [each.records for each in found.segments] == [2]  # the program answered in the first part
    assert mapped().kept == 2
    for line in out.read_text(encoding="utf-8").splitlines():
        VALIDATOR.validate(json.loads(line))


def test_row_whose_fields_changed_under_its_id_runs_again(out: Path) -> None:
    rows = [{"id": 1, "question": "a"}, {"id": 2, "question": "b"}]
    map_rows(SHOUT_ALL, rows, out, executor=InlineExecutor())
    again = map_rows(SHOUT_ALL, [rows[0], {"id": 2, "question": "c"}], out, executor=InlineExecutor())
    assert [record.outputs for record in load_records(out).records] == [{"answer": "A"}, {"answer": "C"}]
    assert again.kept == 2  # as many records had the file


def test_result_and_its_card_have_tools_warnings_and_cost_of_the_run(out: Path) -> None:
    with pytest.warns(ToolWarning):
        result = map_rows(Job(program="tests.jobs.app:searching"), questions(3), out, executor=InlineExecutor())
    assert (result.tools, result.warnings) == ({"find": (3, 3)}, {"tool": 3})
    assert "tool_errors=3" in repr(result)
    page = result._repr_html_()
    shown = io.StringIO()
    result.show(file=shown)
    for text in (page, shown.getvalue()):
        lines = "".join(text.split())  # a long path of the test is broken over lines
        assert all(part in lines for part in ("find:3calls,3errors", "3tool", "3rows", "unknown", "out.jsonl"))
    assert load_records(out).tools == result.tools


@pytest.mark.long
def test_resumed_run_keeps_200_bytes_a_row_at_most(out: Path) -> None:
    count, rows = 18_000, ({"id": f"row {number}", "question": "a" * 200} for number in range(18_000))
    map_rows(SHOUT, [{"id": "row 0", "question": "a" * 200}], out, executor=InlineExecutor())
    header, record, *_ = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    ids = ((number, f"row {number}") for number in range(1, count))
    lines = (json.dumps({**record, "id": own, "index": n, "inputs": {**record["inputs"], "id": own}}) for n, own in ids)
    out.write_text("\n".join([json.dumps(header), json.dumps(record), *lines]) + "\n", encoding="utf-8")
    map_rows(SHOUT, [], out, executor=InlineExecutor())  # what is imported late
    tracemalloc.start()
    result = map_rows(SHOUT, rows, out, executor=(executor := InlineExecutor()))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (result.rows, result.kept, executor.submitted) == (count, count, [])
    assert most < 200 * count


def test_records_of_another_job_are_refused(provider: FakeProvider, out: Path) -> None:
    map_rows(SHOUT, [{"question": "a"}], out, executor=InlineExecutor())
    with pytest.raises(ConfigurationError, match="`Answer`: bases is new"):
        map_rows(job_of(provider), questions(1), out, executor=InlineExecutor())


# --- refusals --------------------------------------------------------------------------------------


def test_worker_of_another_version_refuses_once(monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    monkeypatch.setattr(worker, "version", lambda: "9.9.9")
    executor = InlineExecutor()
    rows = [{"question": str(n)} for n in range(50)]
    with pytest.raises(JobRefused, match=r"sigwire 9\.9\.9.*sigwire 0\.1\.0.*allow_versions"):
        map_rows(SHOUT, rows, out, executor=executor, chunk=1, in_flight=1)
    assert len(executor.submitted) == 1
    allowed = Job(program="tests.jobs.app:shout", allow_versions=True)
    assert map_rows(allowed, rows, out, executor=executor).rows == 50


def test_worker_with_another_file_of_the_program_refuses() -> None:
    text = json.loads(SHOUT.text())
    assert set(text["versions"]) == {"python", "sigwire", "tests.jobs.app"}
    text["versions"]["tests.jobs.app"] = "0" * 16
    refused = json.loads(run_chunk(json.dumps(text), '{"block": "b", "rows": []}'))["refused"]
    assert refused["kind"] == "versions"
    assert "another file of tests.jobs.app" in refused["message"]


def test_program_that_no_worker_can_import_is_refused_before_any_chunk(out: Path) -> None:
    job = Job(program="tests.jobs.missing:build")
    with pytest.raises(JobRefused, match=r"No module named 'tests\.jobs\.missing'"):
        map_rows(job, [{"question": "a"}], out, executor=InlineExecutor())


def test_fault_of_the_caller_ends_the_run_with_what_is_finished(out: Path) -> None:
    with FakeProvider(answer_text, key="another key") as provider, pytest.raises(JobRefused) as refused:
        map_rows(job_of(provider), questions(20), out, executor=InlineExecutor(), chunk=2)
    assert "LMAuthenticationError" in str(refused.value)
    assert app.CANARY not in str(refused.value)


def test_function_without_a_name_is_refused() -> None:
    def local(example: Example, prediction: object) -> float:
        return 1.0

    for metric in (lambda example, prediction: 1.0, local):
        with pytest.raises(ConfigurationError, match="making a job"):
            Job(program="tests.jobs.app:shout", metric=metric)


def test_names_of_main_are_refused_with_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.exact, "__module__", "__main__")
    with pytest.raises(ConfigurationError, match=r"__main__.*%%writefile.*Predict or ReAct"):
        Job(program="tests.jobs.app:shout", metric=app.exact)
    with pytest.raises(ConfigurationError, match="__main__"):
        Job(program="__main__:program")


def test_module_whose_arguments_are_unknown_asks_for_a_factory() -> None:
    with pytest.raises(ConfigurationError, match="factory='app:build'"):
        Job.of(app.Scaled(2))
    assert Job.of(app.Scaled(2), factory="tests.jobs.app:build").program == "tests.jobs.app:build"


def test_settings_that_do_not_travel_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="The setting callbacks does not travel"):
        Job(program="tests.jobs.app:shout", settings={"callbacks": []})


# --- jobs ------------------------------------------------------------------------------------------


def test_predictors_and_agents_without_a_module_travel_as_json(out: Path) -> None:
    lm = LM("offline/lexical")
    agent = ReAct("question -> answer: int", tools=[app.double, Tool(app.shout)], max_iters=3)
    job = Job.of(agent, lm=lm)
    assert isinstance(job.program, dict)
    assert job.program["names"] == {"double": "tests.jobs.app:double", "shout": "tests.jobs.app:shout"}
    result = map_rows(job, [{"question": "Double 21."}], out, executor=InlineExecutor())
    with sigwire.context(lm=lm):
        assert load_records(out).records[0].outputs is not None
    assert result.failures == {}


def test_programs_of_the_door_travel_as_what_they_are(provider: FakeProvider, out: Path) -> None:
    program = dspy.ChainOfThought("question -> answer")
    job = Job.of(program, lm=dspy.LM("openai/gpt-4o-mini", api_base=provider.url("openai")), key="tests.jobs.app:key")
    assert isinstance(job.program, dict)
    assert job.program["names"] == {"dspy.ChainOfThought": "sigwire.dspy.modules:ChainOfThought"}
    map_rows(job, questions(1), out, executor=InlineExecutor())
    assert len(provider.requests) == 2  # the answer cannot be read, and the door asks again with JSON


def test_state_adapter_and_settings_travel(provider: FakeProvider, out: Path) -> None:
    program = Predict("question -> answer")
    program.lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), temperature=0.5)
    program.demos = [Example(question="number 1", answer="one").with_inputs("question")]
    with sigwire.context(lm=LM("offline/lexical"), adapter=sigwire.XMLAdapter(), rollout_id="second"):
        job = Job.of(program, key="tests.jobs.app:key")
    assert job.settings == {"rollout_id": "second"}
    map_rows(job, questions(1), out, executor=InlineExecutor())
    request = provider.requests[0].request
    assert request is not None
    assert request.options["temperature"] == 0.5
    assert "<answer>\none\n</answer>" in "".join(message.text for message in request.messages)


def test_model_of_a_worker_may_be_a_name_or_a_function(out: Path) -> None:
    job = Job(program={"$program": "Predict", "arguments": {"signature": "question -> answer"}}, lm="offline/lexical")
    assert map_rows(job, [{"question": "2+2?"}], out, executor=InlineExecutor()).failures == {}


def test_key_is_in_no_job_journal_or_record(provider: FakeProvider, out: Path) -> None:
    seen: list[str] = []

    class Watched(InlineExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = super().submit(fn, *args)
            seen.extend((*args, str(future.exception() or future.result()), texts_below(out.parent)))
            return future

    secret = LM(
        "openai/gpt-4o-mini", base_url=provider.url("openai"), api_key=app.CANARY, headers={"x-key": app.CANARY}
    )
    job = Job.of(app.Answer(), app.exact, lm=secret, key="tests.jobs.app:key")
    map_rows(job, questions(4, {2: "death"}), out, executor=Watched())
    assert len(provider.requests) >= 3
    assert app.CANARY not in "".join((*seen, texts_below(out.parent), repr(job)))


def test_executor_is_checked_before_any_row_is_drawn(out: Path) -> None:
    with pytest.raises(ConfigurationError, match="executor is a PEP 3148 executor"):
        map_rows(SHOUT, [], out, executor=4)  # type: ignore[arg-type]


def test_function_that_makes_no_executor_is_refused(out: Path) -> None:
    with pytest.raises(ConfigurationError, match="executor is a PEP 3148 executor or a function that makes one, not 3"):
        map_rows(SHOUT, questions(1), out, executor=lambda: 3)  # type: ignore[arg-type]


def test_program_in_place_of_a_job_is_refused(out: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"takes a Job, not Predict .* Write Job.of\(program\)"):
        map_rows(Predict("question -> answer"), [], out, executor=InlineExecutor())  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", ["rows.jsonl", {"question": "2+2?"}, None], ids=["text", "mapping", "none"])
def test_rows_that_are_one_value_are_refused(out: Path, rows: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"rows is an iterable .* load_examples\(path\)"):
        map_rows(SHOUT, rows, out, executor=InlineExecutor())


def rows_text(*rows: str) -> str:
    """Return the text of a chunk of rows, by ids or questions."""
    data = [
        {"id": row, "index": index, "repeat": 1, "inputs": {"question": row}, "labels": {}}
        for index, row in enumerate(rows)
    ]
    return json.dumps({"block": "b", "rows": data})


def test_no_row_starts_after_a_row_that_refuses_the_job() -> None:
    job = Job(program="tests.jobs.app:shout", rows="tests.jobs.app:read_row", concurrency=1)
    answer = json.loads(run_chunk(job.text(), rows_text("misfit", "a", "b")))
    assert (answer["records"], answer["refused"]["kind"]) == ([], "job")


@pytest.mark.parametrize("path", ["build", "SHARED"], ids=["factory", "instance"])
def test_state_is_loaded_into_a_program_of_the_job_alone(provider: FakeProvider, path: str) -> None:
    program = app.Answer()
    program.answer.demos = [Example(question="number 3", answer="3")]
    job = replace(job_of(provider), program=f"tests.jobs.app:{path}", state=program.dump_state(), metric=None)
    (record,) = json.loads(run_chunk(job.text(), rows_text("number 6")))["records"]
    assert record["outputs"] == {"answer": "2"}
    assert provider.requests[0].request is not None
    assert "number 3" in provider.requests[0].request.messages[1].text
    assert app.SHARED.answer.demos == []


def test_worker_keeps_the_jobs_that_it_built_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_KEPT_JOBS", 2)
    monkeypatch.setattr(worker, "_workers", OrderedDict())
    for concurrency in range(1, 5):
        run_chunk(replace(SHOUT, concurrency=concurrency).text(), rows_text("a"))
    assert [each._concurrency for each in worker._workers.values()] == [3, 4]


@pytest.mark.parametrize("broken", ["{", "[]", "{}", '{"block": "b", "rows": [{"id": "1"}]}'])
def test_broken_text_is_a_refusal_of_run_chunk(broken: str) -> None:
    for name, texts in (("job_text", (broken, "{}")), ("chunk_text", (SHOUT.text(), broken))):
        refused = json.loads(run_chunk(*texts))["refused"]
        assert refused["kind"] == "job"
        assert refused["message"].startswith("ConfigurationError: ")
        assert f"{name} is" in refused["message"] or "of chunk_text" in refused["message"]


def test_stored_job_names_the_runner_by_its_old_path() -> None:
    stored = {**json.loads(SHOUT.text()), "runner": "sigwire.evaluate.mapping.row_runner:RowRunner"}
    (record,) = json.loads(run_chunk(json.dumps(stored), rows_text("a")))["records"]
    assert record["outputs"] == {"answer": "A"}
    stored["runner"] = "sigwire.evaluate.mapping.missing:RowRunner"
    assert "No module named" in json.loads(run_chunk(json.dumps(stored), rows_text("a")))["refused"]["message"]


def test_job_without_a_runner_has_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigwire.jobs.job._usual_runner", None)
    with pytest.raises(ConfigurationError, match="names no runner of rows"):
        Job(program="tests.jobs.app:shout").text()
    given = Job.of(app.Answer(), lm="offline/lexical", runner=RowRunner)
    assert json.loads(given.text())["runner"] == "sigwire.evaluate.rows.worker:RowRunner"


@pytest.mark.parametrize(
    "name",
    [
        "sigwire.dspy.Job",
        pytest.param("sigwire.Job", marks=pytest.mark.long),
        pytest.param("sigwire.evaluate.rows.map_rows.Job", marks=pytest.mark.long),
    ],
)
def test_pickled_job_of_a_public_name_has_its_runner_in_a_process_that_only_unpickles(name: str) -> None:
    module = name.removesuffix(".Job")
    make = (
        f"import pickle, sys; from {module} import Job; from sigwire import LM, Predict; "
        "sys.stdout.buffer.write(pickle.dumps(Job.of(Predict('question -> answer'), lm=LM('offline/lexical'))))"
    )
    read = (
        "import json, pickle, sys; job = pickle.load(sys.stdin.buffer); "
        "print(json.loads(job.text())['runner'], job.to_json()['runner'])"
    )
    made = subprocess.run([sys.executable, "-c", make], check=True, capture_output=True)
    done = subprocess.run([sys.executable, "-c", read], check=True, capture_output=True, input=made.stdout)
    assert done.stdout.decode().split() == ["sigwire.evaluate.rows.worker:RowRunner"] * 2


def test_folder_is_refused_as_the_file_of_records(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no file that can be written"):
        map_rows(SHOUT, [], tmp_path, executor=InlineExecutor())


def test_file_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="no file that can be written"):
        map_rows(SHOUT, [], tmp_path / "file" / "out.jsonl", executor=InlineExecutor())


def test_folder_of_the_records_is_made(tmp_path: Path) -> None:
    assert map_rows(SHOUT, [], tmp_path / "new" / "out.jsonl", executor=InlineExecutor()).status == "complete"


def test_file_of_rows_is_refused_as_the_file_of_records(out: Path) -> None:
    out.write_text('{"question": "a"}\n', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="other lines than records"):
        map_rows(SHOUT, [], out, executor=InlineExecutor())
    assert out.read_text(encoding="utf-8") == '{"question": "a"}\n'


def test_program_that_is_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"Job\.of"):
        Job(program=None)  # type: ignore[arg-type]


def test_row_that_is_no_mapping_is_refused_by_its_number(out: Path) -> None:
    rows: Any = [{"question": "2+2?"}, 7]
    with pytest.raises(InputError, match="Row 1 is no Example and no mapping but int"):
        map_rows(SHOUT, rows, out, executor=InlineExecutor())


def test_model_of_a_job_is_checked() -> None:
    with pytest.raises(
        ConfigurationError, match="lm is a model of sigwire, 'provider/model' or 'module:function', not 3"
    ):
        Job(program="tests.jobs.app:shout", lm=3)  # type: ignore[arg-type]


# --- properties --------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text("abc", min_size=1), VALUES, min_size=1, max_size=3))
def test_example_of_json_values_is_the_same_in_a_worker(fields: dict[str, Any]) -> None:
    example = Example(fields).with_inputs(min(fields))
    row = json.loads(json.dumps(row_of(example, "1", 0, 1)))
    found = example_of(row, None)
    assert found.toDict() == example.toDict()
    assert found.inputs().toDict() == example.inputs().toDict()


@given(st.integers(0, 400))
def test_journal_that_is_cut_has_a_prefix_of_its_records(cut: int) -> None:
    records: list[dict[str, Any]] = [{"id": str(n), "repeat": 1, "text": "\ud800é"} for n in range(4)]
    with TemporaryDirectory() as folder:
        attempt = RowAttempt(Path(folder))
        for record in records:
            attempt.start(record)
            attempt.done(record)
        attempt.close()
        (file,) = Path(folder).iterdir()
        file.write_bytes(file.read_bytes()[:cut])
        state = read_block(Path(folder))
    assert [*state.done.values()] == records[: len(state.done)]
    assert 0 <= len(state.started) - len(state.done) <= 1
