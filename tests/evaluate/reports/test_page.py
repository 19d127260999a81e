"""Reports as pages of HTML: self-contained, safe with hostile values, complete, and small."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sigwire import Example, Predict, Prediction
from sigwire.errors import InputError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.comparison import compare
from sigwire.evaluate.evaluation import Evaluate, load_records
from sigwire.evaluate.reports.page import MOST_BYTES, page_html, write_report
from sigwire.evaluate.reports.run_page import run_page
from sigwire.evaluate.result import EvaluationResult
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider
from tests.evaluate.reports.pages import HOSTILE, PageParts, data_of, mixed_result, outside_data
from tests.evaluate.runs import make_result, scored_cell

CANARY = "sk-canary-0123456789abcdef"


def page_of(report: Any, path: Path) -> str:
    report.to_html(path / "report.html")
    return (path / "report.html").read_text(encoding="utf-8")


@pytest.fixture(params=["result", "comparison"])
def page(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "result":
        return page_of(mixed_result(), tmp_path)
    return page_of(compare({"baseline": mixed_result(), HOSTILE: mixed_result()}), tmp_path)


def test_policy_of_the_page_has_the_hash_of_its_only_script(page: str) -> None:
    parts = PageParts(page)
    _, script = parts.scripts
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert parts.policy.split("; ") == [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        f"script-src 'sha256-{digest}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_page_has_no_address_outside_its_data(tmp_path: Path) -> None:
    results = make_result([1, 0, scored_cell(0.5, cost=0.1)]), make_result([0, 1, 1])
    for report in (results[0], compare({"a": results[0], "b": results[1]})):
        rest = outside_data(page_of(report, tmp_path)).replace("http-equiv", "", 1)
        assert [each for each in ("http", "src=", "href=", "url(", "@import", "//cdn") if each in rest] == []


def test_hostile_values_of_a_page_make_no_element(page: str) -> None:
    parts = PageParts(page)
    assert set(parts.tags) & {"img", "a", "iframe", "object", "link", "base", "form"} == set()
    assert parts.tags.count("script") == 2
    assert [name for name in parts.attributes if name.startswith("on")] == []
    rest = outside_data(page)
    assert [each for each in "\x1b\u202e\u2028" if each in rest] == []
    assert not re.search("[<>&\u2028\u2029]", PageParts(page).scripts[0])


def test_script_of_the_page_makes_text_nodes_only(page: str) -> None:
    script = PageParts(page).scripts[1]
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|fetch\(|XMLHttpRequest"
    assert not re.search(forbidden, script)


def test_embedded_data_of_a_page_is_the_records(tmp_path: Path) -> None:
    result = mixed_result()
    data = data_of(page_of(result, tmp_path))
    assert data["runs"] == [{"name": "Support", "records": [record.to_json() for record in result.records]}]
    compared = data_of(page_of(compare({"a": result, "b": mixed_result()}), tmp_path))
    assert [run["name"] for run in compared["runs"]] == ["a", "b"]
    assert compared["runs"][1]["records"] == data["runs"][0]["records"]
    assert compared["runs"][0]["values"] == {"exact": {record.id: record.score for record in result.records}}


def test_page_of_a_comparison_has_the_values_and_differences_of_every_metric(tmp_path: Path) -> None:
    cells = [
        [scored_cell(score, subscores={"exact": score, "topic": topic}) for score, topic in found]
        for found in ([(1, 1), (0, 1), (1, 0.5)], [(1, 0), (0, 1), (1, 1)])
    ]
    first, second = (make_result(found, metric_names=["exact", "topic"]) for found in cells)
    page = page_of(compare({"a": first, "b": second}, metric="topic"), tmp_path)
    data = data_of(page)
    assert (data["metrics"], data["first_metric"]) == (["topic", "exact"], "exact")
    assert data["runs"][1]["values"] == {
        "topic": {"id0": 0, "id1": 1, "id2": 1},
        "exact": {"id0": 1, "id1": 0, "id2": 1},
    }
    assert "b · exact" in outside_data(page)
    assert data_of(page_of(first, tmp_path))["metrics"] == ["exact", "topic"]


def test_page_without_its_script_has_figures_plots_and_the_place_of_the_records(tmp_path: Path) -> None:
    page = outside_data(page_of(mixed_result(path="runs/support.jsonl", seconds=41.2), tmp_path))
    for part in ("1 OutputTruncated", "0.500", "41 s", "6 examples", "support.jsonl", "<svg", "p95"):
        assert part in page
    assert re.search(r"<noscript>.*JavaScript\. They are in runs/support\.jsonl\.", page)


@pytest.mark.parametrize(
    ("dirty", "shown"), [(False, "commit b807a4b1c2</li>"), (True, "commit b807a4b1c2 with changes</li>")]
)
def test_page_names_the_commit_and_its_changes(dirty: bool, shown: str, tmp_path: Path) -> None:
    header = {"devset": {"n": 1}, "git": {"commit": "b807a4b1c2d3e4f5061728394a5b6c7d8e9f0a1b", "dirty": dirty}}
    assert shown in page_of(make_result([1], header=header), tmp_path)


def test_title_of_a_page_of_loaded_records_is_the_class_without_its_module(tmp_path: Path) -> None:
    assert "<h1>Support</h1>" in page_of(make_result([1], name="app.programs.Support"), tmp_path)


def test_page_of_a_comparison_has_the_sentence_and_right_against_wrong(tmp_path: Path) -> None:
    one, other = make_result([0] * 10 + [1] * 10), make_result([1] * 15 + [0] * 5)
    found = compare({"baseline": one, "optimized": other})
    page = outside_data(page_of(found, tmp_path))
    assert found.sentences[0].replace("'", "&#x27;") in page
    assert "<td>baseline right</td><td>5</td><td>5</td>" in page
    assert "<td>baseline wrong</td><td>10</td><td>0</td>" in page


def test_page_of_repeats_shows_their_agreement(tmp_path: Path) -> None:
    page = outside_data(page_of(make_result([[1, 1, 1], [0, 1, 0], [0, 0, 0]]), tmp_path))
    assert "right repeats of an example" in page
    assert "2 of 3" in page
    assert "right repeats" not in page_of(make_result([1, 0]), tmp_path)


def test_page_shows_calibration_only_if_a_probability_is_stated(tmp_path: Path) -> None:
    sure = [scored_cell(n % 2, outputs={"answer": "a", "confidence": n / 10}) for n in range(10)]
    assert "stated confidence" in page_of(make_result(sure), tmp_path)
    assert "stated" not in outside_data(page_of(make_result([1, 0]), tmp_path))


def test_page_shows_a_histogram_of_scores_only_if_they_are_no_bits(tmp_path: Path) -> None:
    assert "exact of an example" in page_of(make_result([0.2, 0.7, 1]), tmp_path)
    assert "exact of an example" not in page_of(make_result([0, 1, 1]), tmp_path)


def test_values_of_a_large_page_are_cut_and_the_page_states_the_length() -> None:
    cells = [Cell(1.0, outputs={"answer": "x" * 5_000, "tags": ["y" * 5_000]}) for _ in range(20)]
    page = page_html(run_page(make_result(cells).run), most_bytes=100_000)
    data = data_of(page)
    assert data["cut"] == 1_000
    assert data["runs"][0]["records"][0]["outputs"]["answer"] == "x" * 1_000 + "… 4,000 more characters"
    assert "The values are cut to 1,000 characters" in page
    assert "are cut to" not in page_html(run_page(make_result([1]).run))


@pytest.mark.long
def test_page_of_5000_examples_is_below_5_megabytes() -> None:
    outputs = {"topic": "billing", "reply": "Your order is on its way and arrives tomorrow, between nine and twelve."}
    usage = {"openai/gpt-5-mini": {"input_tokens": 185, "output_tokens": 29}}
    cells = [
        Cell(
            n % 3 / 2,
            outputs=outputs,
            requests=1,
            usage=usage,
            cost=0.00014,
            seconds=1.02,
            feedback="The topic differs.",
        )
        for n in range(5_000)
    ]
    fields = [
        {"question": f"Where is my parcel {n}? It was due on Monday.", "answer": "delivery"} for n in range(5_000)
    ]
    page = page_html(run_page(make_result(cells, fields=fields).run))
    assert len(page.encode()) < 5_000_000 < MOST_BYTES
    assert len(data_of(page)["runs"][0]["records"]) == 5_000


def test_page_keeps_values_without_a_json_form(tmp_path: Path) -> None:
    cells = [Cell(1.0, outputs={"answer": "\ud800", "number": float("nan"), "big": 10**400})]
    answer = data_of(page_of(make_result(cells), tmp_path))["runs"][0]["records"][0]["outputs"]
    assert (answer["answer"], answer["number"], answer["big"]) == ("\ud800", "nan", 10**400)


@pytest.mark.parametrize("result", [make_result([]), make_result([scored_cell(0, requests=0, seconds=0.0)])])
def test_page_of_few_records_is_written(result: EvaluationResult, tmp_path: Path) -> None:
    assert "<h1>Program</h1>" in page_of(result, tmp_path)


def test_other_objects_have_no_report(tmp_path: Path) -> None:
    write_report(make_result([1]), tmp_path / "reports" / "new.html")
    assert (tmp_path / "reports" / "new.html").exists()
    with pytest.raises(InputError, match="load_records"):
        write_report([1], tmp_path / "x.html")


def test_canary_key_is_in_no_report_and_no_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)

    def metric(example: Example, prediction: Prediction) -> bool:
        raise RuntimeError(f"refused: token={CANARY} for https://me:{CANARY}@llm.example")

    devset = [Example(question=f"q{n}", answer="1").with_inputs("question") for n in range(1)]
    with FakeProvider(lambda request: "[[ ## answer ## ]]\n1", key=CANARY) as provider:
        options: dict[str, Any] = {"headers": {"x-secret": CANARY}, "extra_body": {"metadata": {"api_key": CANARY}}}
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key=CANARY, **options)
        log = tmp_path / "log.jsonl"
        evaluate = Evaluate(devset=devset, metric=metric, log=log, provide_traceback=False, progress=False)
        result = evaluate(Predict("question -> answer", lm=lm))
    for each in (result, load_records(log)):
        files = [tmp_path / name for name in ("a.html", "a.csv", "a.json", "a.jsonl")]
        for write, path in zip((each.to_html, each.to_csv, each.to_inspect, each.to_jsonl), files, strict=True):
            write(path)
            assert "RuntimeError" in path.read_text()
            assert CANARY not in path.read_text()
