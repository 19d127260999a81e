"""Searches whose metric raises: only the metric runs again. The sums of tools and warnings of a search."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import FakeLM, ReAct, ToolCall
from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.evaluate.scores import Score
from sigwire.jobs.errors import JobRefused
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from sigwire.testing import FakeProvider
from tests.jobs import app
from tests.jobs.engines import InlineExecutor, answer_text
from tests.optimizers.stub import Stub, exact, pure_writer, rows
from tests.optimizers.table import CALLS, TRAIN, VAL, outcome, student


class Fragile:
    """A metric that raises for one question until ``mark`` is there; ``traces``: the traces that it got, by question."""

    def __init__(self, question: str, mark: Path) -> None:
        self.question, self.mark = question, mark
        self.traces: list[tuple[str, Any]] = []

    def check(self, example: Any, trace: Any) -> bool:
        if trace is not None:
            calls = [(type(each).__name__, dict(inputs), dict(found.items())) for each, inputs, found in trace]
            self.traces.append((example.question, calls))
        if example.question == self.question and not self.mark.exists():
            raise RuntimeError("the judge is out")
        return True


def fragile_metric(fragile: Fragile, name: str) -> Any:
    def plain(example: Any, prediction: Any, trace: Any = None) -> Any:
        return fragile.check(example, trace) and exact(example, prediction)

    def explaining(
        example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        if pred_name is not None:
            fragile.check(example, trace)
        return Score(exact(example, prediction), feedback=f"for {pred_name}")

    return explaining if name == "GEPA" else plain


METRIC_FAILS = {
    "BootstrapFewShotWithRandomSearch": VAL[3],
    "BootstrapFewShot": TRAIN[3],
    "GEPA": TRAIN[2],
    "COPRO": VAL[2],
}


@pytest.mark.filterwarnings("ignore:.*search.jsonl is resumed")
@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.parametrize("name", METRIC_FAILS)
def test_resumed_search_scores_the_run_whose_metric_raised(name: str, is_awaited: bool, tmp_path: Path) -> None:
    def search(lm: Stub, fragile: Fragile, **options: Any) -> Any:
        made = CALLS[name](fragile_metric(fragile, name), num_threads=1, **options)
        made.prompt_model = pure_writer()  # an answer depends on its request alone
        given = {"trainset": TRAIN, "valset": VAL}
        return asyncio.run(made.acompile(student(lm), **given)) if is_awaited else made.compile(student(lm), **given)

    whole, calm = Stub(), Fragile("", tmp_path)
    expected = search(whole, calm)
    lm, fragile = Stub(), Fragile(METRIC_FAILS[name].question, tmp_path / "repaired")
    with pytest.raises(RuntimeError, match="the judge is out"):
        search(lm, fragile, journal=tmp_path / "search.jsonl")
    assert 0 < len(lm.requests) < len(whole.requests)
    fragile.mark.touch()
    found = search(lm, fragile, journal=tmp_path / "search.jsonl")
    assert outcome(found) == outcome(expected)
    assert found.optimization.spent.calls == expected.optimization.spent.calls
    assert len(lm.requests) == len(whole.requests)
    assert dict(fragile.traces) == dict(calm.traces)  # read back as they were


def test_resumed_search_on_an_executor_scores_the_run_whose_metric_raised(tmp_path: Path) -> None:
    mark = tmp_path / "repaired"
    rows_of_mark = [app.read_marked(str(mark)), app.read_marked(str(mark)).copy(question="number 3")]
    asked: list[str] = []

    def answer(request: Request) -> str:
        asked.append(request.messages[-1].text)
        return answer_text(request)

    with FakeProvider(answer) as provider, pytest.MonkeyPatch.context() as patch:
        lm = sigwire.LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", cache=False)
        patch.setattr("sigwire.jobs.worker._lm_of", lambda job: lm)

        def search() -> Any:
            made = BootstrapFewShot(app.fragile, journal=tmp_path / "search.jsonl", executor=InlineExecutor())
            with sigwire.context(lm=lm):
                return made.compile(app.Answer(), trainset=rows_of_mark)

        with pytest.raises(JobRefused, match="weight"):
            search()
        first = len(asked)
        mark.touch()
        report = search().optimization
    assert first > 0
    assert len(asked) == len({*asked}) == report.spent.calls == 2


def test_failure_of_a_metric_that_is_scored_is_no_run_to_make_again(tmp_path: Path) -> None:
    lm, mark = Stub(), tmp_path / "repaired"

    def metric(example: Any, prediction: Any, trace: Any = None) -> bool:
        if example.question == VAL[3].question and not mark.exists():
            raise RuntimeError("the judge is out")
        return exact(example, prediction)

    def search() -> Any:
        options: Any = {"num_candidate_programs": 2, "journal": tmp_path / "search.jsonl", "errors": "score"}
        made = BootstrapFewShotWithRandomSearch(metric, **options)
        return made.compile(student(lm), trainset=TRAIN, valset=VAL)

    first = search()
    sent = len(lm.requests)
    mark.touch()
    again = search()
    assert outcome(again) == outcome(first)
    assert len(lm.requests) == sent
    assert any("RuntimeError" in each for each in again.optimization.warnings)


# --- tools and warnings


@pytest.mark.filterwarnings("ignore::sigwire.errors.ToolWarning")
@pytest.mark.parametrize("is_awaited", [False, True])
def test_report_sums_tools_and_warnings_of_the_search_and_of_the_winner(is_awaited: bool, tmp_path: Path) -> None:
    journal = tmp_path / "search.jsonl"

    def search() -> Any:
        made = BootstrapFewShotWithRandomSearch(exact, num_candidate_programs=1, journal=journal)
        given: Any = {"trainset": rows(4), "valset": rows(4, 100)}
        agent = searching()
        return asyncio.run(made.acompile(agent, **given)) if is_awaited else made.compile(agent, **given)

    report = search().optimization
    found = report.calls
    assert found.tools["find"].calls == found.tools["find"].errors == found.warnings["tool"] == report.spent.runs
    winner = report.costs[report.winner.digest].runs
    assert report.winner_calls.tools == {"find": (winner, winner)}
    assert 0 < winner < report.spent.runs
    card = dict(report._card().rows)
    assert card["tools"] == [f"find: {report.spent.runs} calls, {report.spent.runs} errors"]
    assert card["tools of the winner"] == [f"find: {winner} calls, {winner} errors"]
    assert card["warnings"] == [f"{report.spent.runs} tool"]
    report.to_html(tmp_path / "search.html")
    page = (tmp_path / "search.html").read_text(encoding="utf-8").partition("<script")[0]
    assert card["tools"][0] in page
    assert "tools of the winner" in page
    again = search().optimization  # from the journal
    for other in (again, OptimizationReport.load(journal), OptimizationReport.from_json(report.to_json())):
        assert (other.calls, other.winner_calls) == (report.calls, report.winner_calls)
    old = {
        name: each
        for name, each in report.to_json().items()
        if name not in ("calls", "winner_calls", "segments", "subscores")
    }
    assert OptimizationReport.from_json(old).calls.tools == {}  # of an earlier version


def searching() -> Any:
    """Return an agent whose tool raises, and that answers all the same."""

    def play(request: Request) -> Choice:
        has_searched = request.messages[-1].role != "user"
        call = ToolCall("2", "submit", {"answer": "red"}) if has_searched else ToolCall("1", "find", {"query": "x"})
        return Choice(tool_calls=(call,), finish_reason="tool_calls")

    lm = FakeLM(play, capabilities=Capabilities(native_tools=True, parallel_tool_calls=True))
    agent: Any = ReAct("question -> answer", tools=[app.find])
    agent.set_lm(lm)
    return agent
