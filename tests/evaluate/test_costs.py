"""A cost of which a part is unknown, in every place that shows a cost: what is known is a lower bound, and never nothing."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwire import Evaluate, Example, FakeLM, Module, Predict, Prediction, compare
from sigwire.core.response import Attempt, Choice, Response, Usage
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.progress import progress_reporter
from sigwire.evaluate.rows.map_result import MapResult
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from tests.evaluate.runs import make_result, scored_cell


def priced(cost: float | None) -> FakeLM:
    """Return a model whose requests cost so much; ``None``: the price is unknown."""
    usage = Usage(input_tokens=3, cost=cost)
    return FakeLM(lambda request: Response((Choice("[[ ## answer ## ]]\n1"),), usage), model="no/price")


class Two(Module):
    """Asks a model of a known price and one of an unknown price."""

    def __init__(self) -> None:
        self.known, self.unknown = (Predict("question -> answer", lm=priced(cost)) for cost in (0.06, None))

    def forward(self, question: str) -> Prediction:
        self.known(question=question)
        return self.unknown(question=question)


ROWS = [Example(question="q", answer="1").with_inputs("question")]
KNOWN, UNKNOWN = scored_cell(1.0, cost=0.06), scored_cell(1.0)


def metric(example: Example, prediction: Prediction, trace: Any = None) -> bool:
    return bool(example.answer == prediction.answer)


def judged(example: Example, prediction: Prediction) -> bool:
    return bool(Two()(question="right?").answer)


def evaluated(program: Any, **options: Any) -> Any:
    return Evaluate(**{"devset": ROWS, "metric": metric, "progress": False, **options})(program)


def searched(cells: Any = None) -> Any:
    made = BootstrapFewShot(metric, max_bootstrapped_demos=1)
    report: Any = made.compile(Two(), trainset=ROWS).optimization
    return report


def mapped() -> MapResult:
    result = MapResult("out.jsonl")
    for cell in (KNOWN, UNKNOWN):
        result.add(cell)
    return result


def shown(found: Any) -> str:
    file = io.StringIO()
    found.show(file=file)
    return file.getvalue()


def paged(found: Any, tmp_path: Path) -> str:
    found.to_html(tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8").partition("<script")[0]


def progress() -> str:
    file = io.StringIO()
    reporter = progress_reporter("log", 2, "exact", stream=file, clock=lambda: 0.0)
    for cell in (KNOWN, UNKNOWN):
        reporter.update(cell)
    reporter.close("complete")
    return file.getvalue()


def answered() -> Prediction:
    attempts = (Attempt(cost=0.06), Attempt("retry", model="no/price", usage=Usage(input_tokens=3)))
    lm = FakeLM(lambda request: Response((Choice("[[ ## answer ## ]]\n1"),), Usage(input_tokens=3), attempts=attempts))
    return Predict("question -> answer", lm=lm)(question="q")


PLACES: dict[str, Callable[[Path], str]] = {
    "card of a result": lambda folder: shown(make_result([KNOWN, UNKNOWN])),
    "card of a result whose rows are partly known": lambda folder: shown(evaluated(Two())),
    "cost of a metric": lambda folder: shown(evaluated(lambda question: Prediction(answer="1"), metric=judged)),
    "page of a result": lambda folder: paged(make_result([KNOWN, UNKNOWN]), folder),
    "comparison": lambda folder: compare(
        {"a": make_result([KNOWN, UNKNOWN]), "b": make_result([1.0, 1.0])}
    ).to_markdown(),
    "progress": lambda folder: progress(),
    "map_rows": lambda folder: shown(mapped()),
    "card of a search": lambda folder: shown(searched()),
    "page of a search": lambda folder: paged(searched(), folder),
    "card of an answer": lambda folder: shown(answered()),
}


@pytest.mark.parametrize("place", PLACES)
def test_known_part_of_a_cost_is_shown_as_a_lower_bound(place: str, tmp_path: Path) -> None:
    text = PLACES[place](tmp_path).replace("\\", "").replace("$ ", "").replace("$", "")
    assert "≥ 0.0" in text or "≥ 30.00" in text
    assert not any(wrong in text for wrong in ("≥ 0.00 ", "cost      unknown", " 0.0 · "))


def test_sums_have_the_known_part_and_name_it_partial() -> None:
    cell = evaluated(Two()).records[0].cell
    assert (cell.cost, cell.known_cost) == (None, 0.06)
    assert Cell.from_json(cell.to_json()) == cell
    result, spent, rows = evaluated(Two()), searched().spent, mapped()
    assert (result.cost, result.is_cost_partial) == (0.06, True)
    assert (spent.money, spent.is_partial) == (0.06, True)
    assert (rows.cost, rows.is_cost_partial) == (0.06, True)


def test_cost_of_requests_without_any_price_is_unknown_beside_hits() -> None:
    hit = scored_cell(1.0, requests=0, hits=1, cost=0.0)
    rows = MapResult("out.jsonl")
    for cell in (hit, UNKNOWN):
        rows.add(cell)
    assert (rows.cost, make_result([hit, UNKNOWN]).cost) == (None, None)
    assert all("unknown" in shown(each) for each in (rows, make_result([hit, UNKNOWN])))
