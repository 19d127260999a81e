"""The report of a search travels with its program: ``save``, ``load``, ``save_program``; what a load refuses is a warning."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import FakeLM, OptimizationReport, Predict, StateError, load_program, save_program
from sigwire.lm.client import LM
from tests.optimizers.stub import Stub
from tests.optimizers.table import TABLE, TRAIN, VAL, student


@pytest.fixture(scope="module")
def program() -> Any:
    optimizer = TABLE["BootstrapFewShotWithRandomSearch"](progress=False)
    return optimizer.compile(student(Stub()), trainset=TRAIN, valset=VAL)


def saved(program: Any, path: Path) -> Any:
    program.set_lm(LM("offline/lexical"))
    program.save(path)
    loaded = Predict("question -> answer")
    loaded.load(path)
    return loaded


def saved_whole(program: Any, path: Path) -> Any:
    program.set_lm(LM("offline/lexical"))
    save_program(program, path)
    return load_program(path)


@pytest.mark.parametrize("store", [saved, saved_whole])
def test_report_travels_with_its_program(store: Any, program: Any, tmp_path: Path) -> None:
    report = OptimizationReport.of(program)
    once = store(program.deepcopy(), tmp_path / "once.json")
    twice = store(once, tmp_path / "twice.json")
    for loaded in (once, twice):
        found = OptimizationReport.of(loaded)
        assert found.headline == report.headline
        assert loaded.optimization is found
        assert loaded.optimization._repr_html_() == report._repr_html_()
        assert found.to_json() == report.to_json()
    assert once.demos == twice.demos


def test_program_that_no_search_made_has_no_report(tmp_path: Path) -> None:
    loaded = saved(Predict("question -> answer"), tmp_path / "plain.json")
    assert loaded.optimization is None
    with pytest.raises(sigwire.InputError, match="has no report"):
        OptimizationReport.of(loaded)


def test_report_that_no_search_wrote_is_refused_when_it_is_read(program: Any, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    saved(program.deepcopy(), path)
    data = json.loads(path.read_text())
    data["metadata"]["optimization"] = {"optimizer": 3}
    path.write_text(json.dumps(data))
    loaded = Predict("question -> answer")
    loaded.load(path)
    with pytest.raises(StateError):
        OptimizationReport.of(loaded)
    with pytest.raises(StateError):
        loaded.optimization  # noqa: B018


@pytest.mark.parametrize(
    ("lm", "reason"),
    [(FakeLM(), "FakeLM"), (LM("openai/gpt-5-mini", base_url="http://gpu-box.example/v1"), "gpu-box.example")],
)
@pytest.mark.parametrize(
    ("save", "load"),
    [
        (Predict.save, lambda path, **given: Predict("question -> answer").load(path, **given)),
        (save_program, load_program),
    ],
    ids=["state", "program"],
)
def test_saving_warns_of_what_a_plain_load_refuses(save: Any, load: Any, lm: Any, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with pytest.warns(UserWarning, match=f"a plain load refuses the file: .*{reason}.*lm=") as caught:
        save(Predict("question -> answer", lm=lm), path)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(StateError):
        load(path)
    load(path, lm=FakeLM())


def test_save_warns_of_no_model_that_is_loaded(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Predict("question -> answer", lm=LM("offline/lexical")).save(tmp_path / "p.json")
