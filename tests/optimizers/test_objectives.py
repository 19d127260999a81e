"""Several objectives of a search: what they count, the front, parents by objectives, and what is refused."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import Attempt, Choice, Response, Usage
from sigwire.errors import ConfigurationError, InputError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.failures import Failure
from sigwire.evaluate.pareto import pareto_front
from sigwire.evaluate.scores import Score
from sigwire.lm.fake import FakeLM
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.engine.search import MOST_TESTED, Rows
from sigwire.optimizers.judge import Judge, ScoreTable
from sigwire.optimizers.objectives import COSTS, costs_of, named_objectives
from sigwire.optimizers.reflective.evolution import Evolution
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.gepa import GEPA
from tests.optimizers.planted import (
    PlantedWriter,
    hypervolume,
    phrases_in,
    planted_hypervolume,
    planted_model,
    truth,
)
from tests.optimizers.stub import HINT, Stub, exact, rows
from tests.optimizers.table import CHOOSES
from tests.optimizers.writer import Writer

TRAIN, VAL, TEST = rows(16), rows(16, 100), rows(12, 500)
BOTH = ("score", "tokens")


def gepa(**options: Any) -> GEPA:
    return GEPA(exact, **{"max_metric_calls": 160, "reflection_lm": PlantedWriter(), "objectives": BOTH, **options})


def planted() -> Predict[..., Any]:
    return Predict("question -> answer", lm=planted_model())


def compiled(optimizer: Any, program: Any = None, **sets: Any) -> OptimizationReport:
    made = optimizer.compile(program or planted(), trainset=TRAIN, valset=VAL, **sets)
    return OptimizationReport.of(made)


@pytest.fixture(scope="module")
def report() -> OptimizationReport:
    return compiled(gepa(), testset=TEST)


# --- the front


def test_front_has_the_candidates_that_none_beats_on_the_same_rows(report: OptimizationReport) -> None:
    measured = {
        digest: (means["score"], -means["tokens"])
        for digest, means in report.outcomes.items()
        if len(report.scores[digest]) == len(VAL)
    }
    assert {entry.candidate.digest for entry in report.front} == set(pareto_front(measured))
    assert len(report.front) > 1
    assert report.front[0].means["score"] == report.outcomes[report.found.digest]["score"]
    for entry in report.front:
        assert entry.rows == len(VAL)
        assert entry.means == report.outcomes[entry.candidate.digest]


def test_eight_entries_at_most_run_on_test_rows_and_only_these_have_intervals(report: OptimizationReport) -> None:
    assert sum(bool(entry.test) for entry in report.front) == min(len(report.front), MOST_TESTED)
    for entry in report.front:
        score = entry.test["score"]
        assert score.rows == len(TEST)
        assert score.interval is not None
        assert score.interval.low <= score.mean <= score.interval.high


def test_entry_of_the_front_is_applied_to_a_program(report: OptimizationReport) -> None:
    for entry in report.front:
        text = entry.candidate.texts.get("self.instructions", planted().signature.instructions)
        assert entry.apply(planted()).signature.instructions == text


def test_front_is_in_json_card_page_and_plot(report: OptimizationReport, tmp_path: Any) -> None:
    again = OptimizationReport.from_json(json.loads(json.dumps(report.to_json())))
    assert again.front == report.front
    assert again.objectives == BOTH
    assert again.plot("front") == report.plot("front")
    assert report.plot("front").text.count("<circle") >= len(report.front)
    report.to_html(tmp_path / "page.html")
    assert "tokens, held out" in report._repr_html_()
    assert "of candidates over tokens" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_search_with_one_objective_has_no_front_and_the_report_that_it_had() -> None:
    found = compiled(gepa(objectives=("score",)))
    assert found.front == ()
    assert found.to_json().keys().isdisjoint({"front", "objectives", "outcomes"})
    with pytest.raises(InputError, match="objectives="):
        found.plot("front")


def test_front_is_the_same_for_any_number_of_threads_and_awaited(report: OptimizationReport) -> None:
    threaded = compiled(gepa(num_threads=8), testset=TEST)
    awaited = asyncio.run(gepa().acompile(planted(), trainset=TRAIN, valset=VAL, testset=TEST))
    assert report.front == threaded.front == OptimizationReport.of(awaited).front


@pytest.mark.parametrize(
    "name", [name if name in ("COPRO", "MIPROv2") else pytest.param(name, marks=pytest.mark.long) for name in CHOOSES]
)
def test_every_optimizer_that_chooses_has_a_front(name: str) -> None:
    lm = Stub(usage=Usage(input_tokens=10, output_tokens=4))
    found = compiled(CHOOSES[name](objectives=BOTH), Predict("question -> answer", lm=lm))
    assert found.objectives == BOTH
    assert found.front
    assert all(entry.means["tokens"] == 14 for entry in found.front)
    assert found.front[0].means["score"] == max(entry.means["score"] for entry in found.front)


def test_cheap_candidate_that_lost_a_race_runs_on_all_rows_and_is_on_the_front() -> None:
    search = COPRO(PlantedWriter(), exact, breadth=6, depth=1, objectives=BOTH)
    found = OptimizationReport.of(search.compile(planted(), trainset=TRAIN, valset=rows(32, 100)))
    dropped = {trial.candidate.digest for trial in found.trials if trial.fate.endswith(("on 8 rows", "on 16 rows"))}
    assert dropped & {entry.candidate.digest for entry in found.front}
    assert all(entry.rows == 32 for entry in found.front)


def test_calls_of_a_search_with_a_front_are_within_the_plan() -> None:
    plan = gepa().plan(planted(), TRAIN, VAL, testset=TEST)
    spent = compiled(gepa(), testset=TEST).spent
    assert plan.runs.min <= spent.runs <= plan.runs.max


# --- what objectives count


class Chain(Module):
    """Two steps whose requests have a price; a candidate changes the instruction of one of them."""

    def __init__(self) -> None:
        super().__init__()
        lm = FakeLM(self._answer)
        self.first = Predict("question -> answer", lm=lm)
        self.last = Predict("question, draft -> answer", lm=lm)

    def _answer(self, request: Request) -> Response:
        text = f"[[ ## answer ## ]]\n{'red' if HINT in request.messages[0].text else 'blue'}\n\n[[ ## completed ## ]]"
        usage = Usage(input_tokens=6, output_tokens=4)
        return Response((Choice(text),), usage, attempts=(Attempt(usage=usage, cost=0.5),))  # as of LM(price=)

    def forward(self, question: str) -> Any:
        return self.last(question=question, draft=self.first(question=question).answer)


def chain(*objectives: str, **options: Any) -> OptimizationReport:
    search = COPRO(Writer(), exact, breadth=3, depth=1, objectives=objectives, if_worse="return", **options)
    return compiled(search, Chain())


@pytest.mark.parametrize("reuse", [True, False])
def test_costs_count_answers_that_were_not_asked_again(reuse: bool) -> None:
    found = chain("score", "tokens", "calls", "cost", reuse=reuse)
    assert bool(found.reused) is reuse
    assert len(found.outcomes) > 2
    for means in found.outcomes.values():
        assert {**means, "score": None} == {"score": None, "tokens": 20, "calls": 2, "cost": 1}


def test_seconds_are_those_of_runs_whose_questions_are_all_asked() -> None:
    found = chain("seconds")
    assert found.objectives == ("score", "seconds")
    assert found.reused == 0
    assert all(means["seconds"] > 0 for means in found.outcomes.values())


def test_hits_of_a_journal_without_their_usage_have_no_known_tokens() -> None:
    asked = Cell(1.0, requests=1, usage={"m": {"input_tokens": 5, "output_tokens": 2}}, cost=0.5)
    assert costs_of(asked, tuple(COSTS)) == {"cost": 0.5, "tokens": 7.0, "calls": 1.0, "seconds": 0.0}
    assert costs_of(Cell(1.0, hits=1), tuple(COSTS)) == {"calls": 1.0, "seconds": 0.0}


def test_metrics_and_subscores_are_objectives_by_name() -> None:
    def graded(example: Any, prediction: Any, trace: Any = None) -> Score:
        return Score(float(exact(example, prediction)), subscores={"calm": float("polite" not in prediction.answer)})

    def length(example: Any, prediction: Any, trace: Any = None) -> float:
        return len(prediction.answer) / 10

    found = compiled(COPRO(PlantedWriter(), graded, breadth=3, depth=1, objectives=("graded", "calm")))
    assert all(entry.means["calm"] == 1.0 for entry in found.front)
    several = COPRO(PlantedWriter(), [exact, length], breadth=3, depth=1, objectives=("length", "exact"))
    means = compiled(several).front[0].means
    assert list(means) == ["length", "exact"]
    assert named_objectives(("f1",), "exact") == (("score", "f1"), "score")


def test_failed_run_has_the_score_of_a_failure_in_each_subscore() -> None:
    table, candidate = ScoreTable(), Candidate()
    failure = Failure("program", "ParseError", "no field")
    for row, cell in (
        ("a", Cell(1.0, subscores={"f1": 0.5})),
        ("b", Cell(0.0, failure=failure)),
        ("c", Cell(1.0, subscores={"em": 1.0})),
    ):
        table.add(candidate.digest, row, 0, cell)
    assert table.values(candidate, "f1", "abc") == {"a": 0.5, "b": 0.0}
    assert table.values(candidate, "tokens", "abc") == {}


# --- what is refused


def test_unknown_objective_is_refused_after_two_runs() -> None:
    lm = planted_model()
    with pytest.raises(ConfigurationError, match=r"no score 'tokns' .*Did you mean tokens"):
        compiled(gepa(objectives=("score", "tokns")), Predict("question -> answer", lm=lm))
    assert len(lm.requests) == 2


def test_cost_without_a_price_is_refused_and_names_other_costs() -> None:
    with pytest.raises(ConfigurationError, match=r"'cost' is not known.*Price.*\"tokens\", \"calls\""):
        compiled(gepa(objectives=("score", "cost")))


@pytest.mark.parametrize("given", [(), "tokens", ("score", "score"), (1,)])
def test_objectives_are_distinct_names(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="objectives is distinct names"):
        gepa(objectives=given)


def test_optimizer_that_compares_no_candidates_refuses_objectives() -> None:
    with pytest.raises(ConfigurationError, match="BootstrapFewShot compares no candidates"):
        BootstrapFewShot(exact, objectives=BOTH)


# --- children that join, and parents


def judged(
    scores: dict[str, list[float]], tokens: dict[str, list[float]], **options: Any
) -> tuple[Judge, dict[str, Candidate]]:
    """Return a judge of candidates by name with scores and tokens by row."""
    table, named = ScoreTable(BOTH), {name: Candidate({"self.instructions": name}) for name in scores}
    for name, candidate in named.items():
        for row, (score, count) in enumerate(zip(scores[name], tokens[name], strict=True)):
            usage: dict[str, JsonObject] = {"m": {"output_tokens": count}}
            table.add(candidate.digest, str(row), 0, Cell(score, requests=1, usage=usage))
    return Judge(table, objectives=BOTH, **options), named


door: Any = dspy.GEPA
ROWS = [str(row) for row in range(8)]


@pytest.mark.parametrize(
    ("scores", "tokens", "gains"),
    [
        ([1, 0, 1, 0, 1, 0, 1, 1], [100] * 8, True),  # a higher mean score
        ([1, 0, 1, 0, 1, 0, 1, 0], [90] * 8, True),  # an equal one for less
        ([1, 0, 1, 0, 1, 0, 0, 0], [90] * 8, True),  # a lower one for less
        ([1, 0, 1, 0, 1, 0, 1, 0], [98] * 8, False),  # for a little less
        ([1, 0, 1, 0, 1, 0, 1, 0], [60, 200, 90, 110, 40, 130, 60, 60], False),  # perhaps for less
        ([1, 0, 1, 0, 1, 0, 1, 0], [120] * 8, False),
    ],
)
def test_child_gains_by_its_score_or_by_a_cost_that_is_shown_to_be_less(
    scores: list[float], tokens: list[float], gains: bool
) -> None:
    judge, named = judged({"child": scores, "parent": [1, 0] * 4}, {"child": tokens, "parent": [100] * 8})
    assert judge.gains(named["child"], named["parent"], ROWS) is gains


def test_cheap_child_joins_the_pool_unless_it_is_shown_to_be_worse(report: OptimizationReport) -> None:
    baseline = report.outcomes[report.baseline.digest]
    joined = [trial.candidate for trial in report.trials if trial.fate == "joined the pool"]
    assert any(
        report.outcomes[each.digest]["tokens"] < baseline["tokens"]
        and report.outcomes[each.digest]["score"] <= baseline["score"]
        for each in joined
    )
    alone = compiled(gepa(objectives=("score",), max_metric_calls=160))
    kept = [trial.candidate for trial in alone.trials if trial.fate == "joined the pool"]
    assert not any(each.texts["self.instructions"] == "Be brief." for each in kept)


@pytest.mark.parametrize(
    ("frontier", "keys"),
    [
        ("rows", {"0", "1"}),
        ("objectives", {"score", "tokens"}),
        ("both", {"0", "1", "score", "tokens"}),
        ("each", {"0/score", "1/score", "0/tokens", "1/tokens"}),
    ],
)
def test_frontier_names_what_a_parent_leads_in(frontier: str, keys: set[str]) -> None:
    judge, named = judged({"good": [1, 1], "cheap": [0, 0]}, {"good": [9, 9], "cheap": [5, 5]})
    optimizer = gepa(frontier=frontier)
    task = optimizer._task(planted(), planted(), Rows.of(TRAIN, VAL, []), ScoreTable())
    task = replace(task, judge=judge, val=("0", "1"))
    search = Evolution(task, optimizer.evolution_plan(2, 2, 1))
    search.pool = {each.digest: each for each in named.values()}
    fronts, _ = search._front()
    assert fronts.keys() == keys
    names = {digest: name for name, each in named.items() for digest in [each.digest]}
    leaders = {key: [names[digest] for digest in front] for key, front in fronts.items()}
    assert leaders == {key: ["cheap"] if "tokens" in key else ["good"] for key in keys}


def test_frontier_without_objectives_takes_the_subscores_of_the_metric() -> None:
    with pytest.raises(ConfigurationError, match="needs several objectives, and the metric has no subscores"):
        compiled(gepa(objectives=("score",), frontier="objectives"))

    def metric(gold: Any, pred: Any, trace: Any, pred_name: Any, pred_trace: Any) -> Any:
        return dspy.Prediction(score=float(exact(gold, pred)), objective_scores={"style": len(pred.answer) / 10})

    made: Any = door(
        metric,
        max_metric_calls=80,
        reflection_lm=PlantedWriter(),
        gepa_kwargs={"frontier_type": "hybrid"},
        track_stats=True,
    )
    assert made.frontier == "both"
    results = made.compile(planted(), trainset=TRAIN, valset=VAL).detailed_results
    assert results.objective_pareto_front.keys() == {"style"}
    assert results.per_objective_best_candidates["style"]
    assert len(results.val_aggregate_subscores) == len(results.candidates)


@pytest.mark.parametrize("kwargs", [{"frontier_type": "all"}, {"frontier_type": "hybrid", "cache_evaluation": True}])
def test_door_refuses_other_options_of_the_gepa_package(kwargs: dict[str, Any]) -> None:
    def metric(gold: Any, pred: Any, trace: Any, pred_name: Any, pred_trace: Any) -> float:
        return 1.0

    with pytest.raises(ConfigurationError, match=r"frontier is one of|gepa_kwargs"):
        door(metric, auto="light", gepa_kwargs=kwargs)


# --- acceptance


@pytest.mark.long
def test_two_objectives_reach_the_planted_trade_offs_and_lose_nothing_in_the_headline() -> None:
    """0.95 of the planted hypervolume of accuracy and tokens, and at most a point of accuracy less, with as many runs."""

    def found(seed: int, **options: Any) -> OptimizationReport:
        optimizer = gepa(seed=seed, max_metric_calls=600, num_threads=1, **options)
        return OptimizationReport.of(optimizer.compile(planted(), trainset=rows(30), valset=rows(40, 100)))

    def true(candidate: Candidate) -> tuple[float, float]:
        return truth(phrases_in(candidate.texts.get("self.instructions", "")))

    both = [found(seed) for seed in range(5)]
    alone = [found(seed, objectives=("score",)) for seed in range(5)]
    assert all(report.spent.runs <= 600 for report in both)
    volumes = [hypervolume(true(entry.candidate) for entry in report.front) for report in both]
    assert fmean(volumes) >= 0.95 * planted_hypervolume()
    headline, before = (fmean(true(report.winner)[0] for report in reports) for reports in (both, alone))
    assert headline >= before - 0.01
