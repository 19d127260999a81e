"""Parts of resumed runs: their headers, the models that answered in them, and what no fingerprint compares."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import (
    LM,
    ChatAdapter,
    Evaluate,
    Example,
    FakeLM,
    JSONAdapter,
    Module,
    Predict,
    Prediction,
    compare,
    context,
    load_records,
)
from sigwire.core.events import collect
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.evaluate.examples import content_digest
from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.jobs.job import Job
from sigwire.jobs.journal import RowAttempt
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.profiles import OPENAI
from sigwire.lm.codecs.shared.interface import Target
from sigwire.observe.usage import record_response
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.testing import FakeProvider
from tests.evaluate.schema import VALIDATOR
from tests.evaluate.test_records import awaited, blocking, devset, exact, rows_of, streamed
from tests.jobs import app
from tests.jobs.engines import InlineExecutor

CANARY = "sk-canary-0123456789abcdef"


def answering(name: str, fingerprint: str | None = None) -> FakeLM:
    """Return a model whose answers report a name, and a fingerprint of its system."""

    def answer(request: Any) -> Response:
        raw = {"system_fingerprint": fingerprint}
        return Response((Choice("[[ ## answer ## ]]\n1"),), model=name, raw=raw)

    return FakeLM(answer, model="p/m")


def predict(lm: Any, **options: Any) -> Predict[..., Prediction]:
    return Predict("question -> answer", lm=lm, **options)


# --- headers


class Two(Module):
    """Asks two models."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = predict(first), predict(second, seed=7)

    def forward(self, question: str) -> Prediction:
        self.first(question=question)
        return self.second(question=question)


def evaluated(path: Path, program: Module) -> None:
    Evaluate(devset=devset(2), metric=exact, log=path, progress=False)(program)


def mapped(path: Path, program: Module) -> None:
    job = Job.of(program, app.exact)
    map_rows(job, [], path, executor=InlineExecutor())


def searched(path: Path, program: Module) -> None:
    BootstrapFewShot(exact, journal=path, max_bootstrapped_demos=1).compile(program, trainset=devset(2))


@pytest.mark.parametrize("make", [evaluated, mapped, searched])
def test_headers_have_models_seed_adapter_texts_versions_and_commit(make: Any, tmp_path: Path) -> None:
    with FakeProvider(lambda request: "[[ ## answer ## ]]\n1") as provider:
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key=CANARY, seed=7)
        with context(adapter=JSONAdapter(strict=True)):
            make(tmp_path / "log.jsonl", predict(lm).deepcopy())
    header = rows_of(tmp_path / "log.jsonl")[0]
    assert header["lm"]["model"] == "openai/gpt-4o-mini"
    assert header["lm"]["options"]["seed"] == 7
    assert header["seed"] == (0 if make is searched else 7)  # a search has a seed of its own
    assert "JSONAdapter" in header["adapter"]
    assert "strict=True" in header["adapter"]
    assert header["texts"] == {"self": "Use `question` to write `answer`."}
    assert {"started", "sigwire", "python", "packages"} <= header.keys()
    assert CANARY not in (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    if make is not searched:
        VALIDATOR.validate(header)


def test_header_names_each_model_of_a_program_and_the_adapter_that_is_not_set(tmp_path: Path) -> None:
    with context(lm=FakeLM([], model="of/settings")):
        evaluated(tmp_path / "log.jsonl", Two(answering("a"), FakeLM(lambda _: {"answer": "1"}, model="p/other")))
    header = rows_of(tmp_path / "log.jsonl")[0]
    assert (header["lm"]["model"], header["seed"]) == ("p/m, p/other", None)
    assert header["lm"]["by_predictor"]["second"] == {"model": "p/other", "options": {"seed": 7}}
    assert header["adapter"] == repr(ChatAdapter())
    VALIDATOR.validate(header)


def test_header_of_a_job_names_that_workers_may_have_other_versions(tmp_path: Path) -> None:
    for number, allowed in enumerate((True, False)):
        job = Job(program="tests.jobs.app:shout", allow_versions=allowed)
        map_rows(job, [], tmp_path / f"{number}.jsonl", executor=InlineExecutor())
        header = rows_of(tmp_path / f"{number}.jsonl")[0]
        VALIDATOR.validate(header)
        assert header.get("allow_versions", False) is allowed


# --- what answered


@pytest.mark.parametrize("is_streamed", [False, True])
def test_name_and_fingerprint_of_a_reply_are_counted(is_streamed: bool) -> None:
    target = Target("openai", "m", OPENAI)
    sent = openai_chat.encode(Request((Message.user("2+2?"),)), target, stream=is_streamed)
    facts: Any = {"model": "m-2026-01-01", "system_fingerprint": "fp_44"}
    if is_streamed:
        decoding = openai_chat.decoder(sent, target)
        deltas: list[Any] = [{"delta": {"content": "4"}}, {"delta": {}, "finish_reason": "stop"}]
        events = [event for each in deltas for event in decoding.feed({**facts, "choices": [{"index": 0, **each}]})]
        response = collect([*events, *decoding.close()])
    else:
        message = {"role": "assistant", "content": "4"}
        choice: Any = {"index": 0, "message": message, "finish_reason": "stop"}
        response = openai_chat.decode({**facts, "choices": [choice]}, sent, target)
    with sigwire.track_usage() as tracker:
        record_response("openai/m", response)
        record_response("openai/m", replace(response, raw=[response.raw, None]))  # of several requests
    assert tracker.served == ["m-2026-01-01 fp_44"] * 2


def resumed(way: Callable[[Evaluate, Any], Any], path: Path) -> Any:
    """Evaluate three of five examples by one system, and the others by another one."""
    for count, fingerprint in ((3, "fp_1"), (5, "fp_2")):
        evaluate = Evaluate(devset=devset(count), metric=exact, log=path, progress=False)
        result = way(evaluate, predict(answering("m-2026", fingerprint)))
    return result


@pytest.mark.parametrize("way", [blocking, awaited, streamed])
def test_result_shows_the_parts_of_a_resumed_run_with_what_answered(way: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    result = resumed(way, path)
    loaded = load_records(path)
    result.to_jsonl(tmp_path / "copy.jsonl")
    for found in (result, loaded, load_records(tmp_path / "copy.jsonl")):
        assert [(each.records, each.served) for each in found.segments] == [
            (3, {"m-2026 fp_1": 3}),
            (2, {"m-2026 fp_2": 2}),
        ]
        assert "segments=2" in repr(found)
        text = found.to_markdown()
        assert "3 records · m-2026 fp_1" in text
        found.to_html(tmp_path / "run.html")
        page = (tmp_path / "run.html").read_text(encoding="utf-8").partition("<script")[0]
        assert "2 records · m-2026 fp_2" in page
    for row in rows_of(tmp_path / "copy.jsonl"):
        VALIDATOR.validate(row)


def test_comparison_and_run_of_one_part_show_what_answered_in_place_of_the_model_asked(tmp_path: Path) -> None:
    evaluate = Evaluate(devset=devset(3), metric=exact, progress=False)
    drifted, plain = evaluate(predict(answering("m-2027", "fp_3"))), evaluate(predict(answering("m")))
    assert "| served by | m-2027 fp_3: 3 answers |" in drifted.to_markdown()
    assert "served by" not in plain.to_markdown()  # it reports the name that was asked for
    resumed(blocking, tmp_path / "log.jsonl")
    text = compare({"plain": plain, "old": tmp_path / "log.jsonl"}, common=True).to_markdown()
    assert "old: segments" in text
    assert "plain: segments" not in text


def test_models_of_a_metric_are_counted_as_such() -> None:
    judge = predict(answering("judge-2026"))

    def metric(example: Example, prediction: Prediction) -> bool:
        return bool(judge(question=prediction.answer).answer)

    result = Evaluate(devset=devset(2), metric=metric, progress=False)(predict(answering("m")))
    assert result.segments[0].reported == {"judge-2026 (metric)": 2}


# --- parts of a search and of a job


def test_report_of_a_search_shows_its_parts(tmp_path: Path) -> None:
    path, stops = tmp_path / "search.jsonl", [True]

    def answer(request: Any) -> Response:
        if stops and len(lm.requests) > 2:
            raise KeyboardInterrupt
        return Response((Choice("[[ ## answer ## ]]\n1"),), model="m-2026")

    lm = FakeLM(answer, model="p/m")

    def search() -> Any:
        made = BootstrapFewShot(exact, journal=path, num_threads=1, max_bootstrapped_demos=2)
        return made.compile(predict(lm), trainset=devset(4)).optimization

    with pytest.raises(KeyboardInterrupt):
        search()
    stops.clear()
    for report in (search(), OptimizationReport.load(path)):
        assert [(each.records, each.served) for each in report.segments] == [(2, {"m-2026": 2}), (2, {"m-2026": 2})]
        assert "2: " in str([line for label, lines in report._card().rows if label == "segments" for line in lines])
        report.to_html(tmp_path / "search.html")
        assert "2 records · m-2026" in (tmp_path / "search.html").read_text(encoding="utf-8").partition("<script")[0]
    assert [row["type"] for row in rows_of(path)].count("segment") == 1


def test_records_that_a_killed_job_left_in_its_journal_are_of_its_part(tmp_path: Path) -> None:
    path, rows = tmp_path / "out.jsonl", [{"question": f"q{number}"} for number in range(3)]
    job = Job(program="tests.jobs.app:shout")
    map_rows(job, rows[:1], path, executor=InlineExecutor())
    (tmp_path / "out.jsonl.journal" / "b").mkdir(parents=True)
    attempt = RowAttempt(tmp_path / "out.jsonl.journal" / "b")
    own = next(map(_id_of, rows[1:]))
    line = {
        "id": own,
        "index": 1,
        "repeat": 1,
        "inputs": rows[1],
        "labels": {},
        "score": None,
        "outputs": {"answer": "Q1"},
    }
    attempt.done(line)
    attempt.close()
    result = map_rows(job, rows, path, executor=InlineExecutor())
    assert (result.rows, result.kept) == (3, 1)
    assert [each.records for each in load_records(path).segments] == [2, 1]
    for row in rows_of(path):
        VALIDATOR.validate(row)


def _id_of(row: dict[str, str]) -> str:
    return content_digest(Example(row))[:10]


# --- what cannot be compared


class Counting(Module):
    """Counts its calls, which no fingerprint has."""

    def __init__(self) -> None:
        self.ask, self.calls = predict(FakeLM(lambda _: {"answer": "1"})), 0

    def forward(self, question: str) -> Prediction:
        self.calls += 1
        return self.ask(question=question)


@pytest.mark.parametrize("make", [evaluated, searched])
def test_resuming_warns_once_of_the_parts_that_cannot_be_compared(make: Any, tmp_path: Path) -> None:
    for program, expected in ((Counting(), 1), (predict(FakeLM(lambda _: {"answer": "1"})), 0)):
        path = tmp_path / f"{expected}.jsonl"
        make(path, program)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make(path, program)
        texts = [str(each.message) for each in caught]
        assert len(texts) == expected
        assert all(text.count("attribute `calls`") == 1 and f"{expected}.jsonl is resumed" in text for text in texts)


def test_resumed_job_warns_of_what_only_its_workers_can_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(program="tests.jobs.app:shout", metric="tests.jobs.app:exact")

    def mapped_to(name: str) -> None:
        map_rows(job, [{"question": "a", "answer": "A"}], tmp_path / name, executor=InlineExecutor())

    mapped_to("known.jsonl")
    mapped_to("known.jsonl")  # without a warning

    def missing(path: str) -> Any:
        raise ImportError(path)

    monkeypatch.setattr("sigwire.evaluate.rows.map_rows.load_path", missing)
    mapped_to("out.jsonl")
    with pytest.warns(
        UserWarning, match="`tests.jobs.app:exact`, which this process cannot import; `tests.jobs.app:shout`"
    ):
        mapped_to("out.jsonl")


# --- a devset that lost rows


def test_stored_result_is_without_the_rows_that_the_devset_lost(tmp_path: Path) -> None:
    path, ask = tmp_path / "log.jsonl", predict(FakeLM(lambda _: {"answer": "1"}))
    evaluate = Evaluate(devset=devset(5), metric=exact, log=path, progress=False)
    whole = evaluate(ask)
    part = evaluate(ask, devset=devset(5)[1:3])
    assert (load_records(path).mean, len(load_records(path).records)) == (part.mean, 2)
    assert load_records(path).mean != whole.mean
    for row in rows_of(path):
        VALIDATOR.validate(row)
    lm: Any = ask.lm
    lm.requests.clear()
    again = evaluate(ask)
    assert (lm.requests, again.mean, load_records(path).mean) == ([], whole.mean, whole.mean)
