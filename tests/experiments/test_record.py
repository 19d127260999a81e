"""The record of an experiment: a label keeps its meaning, no secret is in a file, and files alone give the result."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.example import Example
from sigwire.core.request import Request
from sigwire.data.splitting import DataSplit
from sigwire.errors import ConfigurationError
from sigwire.experiments.experiment import Experiment
from sigwire.experiments.folder import load_experiment
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.signatures.signature import make_signature
from sigwire.testing import FakeProvider
from tests.experiments.grid import CountingLM, calls, data, exact, grid, random_search


def scored(bonus: float) -> Callable[..., float]:
    def metric(example: Any, prediction: Any, trace: object = None) -> float:
        return float(example.answer == prediction.answer) * bonus

    return metric


def base(**changes: Any) -> Experiment:
    given: dict[str, Any] = {
        "programs": {"short": Predict("question -> answer")},
        "models": {"mini": CountingLM(model="mini", temperature=0.5)},
        "optimizers": {"none": None, "labeled": LabeledFewShot(3)},
        "datasets": {"colours": data(test=3)},
        "options": {"warm": {"top_p": 0.5}},
        "wordings": {"plain": {"self.instructions": "Name the colour."}},
        "metric": scored(1.0),
        **changes,
    }
    return Experiment(**given)


def changed_test_row() -> DataSplit:
    split = data(test=3)
    first = Example(question=split.test[0]["question"], answer="other").with_inputs("question")
    return DataSplit(split.train, split.dev, (first, *split.test[1:]))


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "the closure of a metric": ({"metric": scored(0.5)}, "metric `metric`, .*closure `bonus`"),
    "the metric": ({"metric": exact}, "the metrics were metric, are exact"),
    "a label of a row": ({"datasets": {"colours": changed_test_row()}}, "dataset `colours`, test: row 0 changed"),
    "the number of rows": ({"datasets": {"colours": data(test=4)}}, "dataset `colours`, test: 3 rows were, 4 are"),
    "a training row": ({"datasets": {"colours": data(train=9, test=3)}}, "dataset `colours`, train"),
    "an option of a model": (
        {"models": {"mini": CountingLM(model="mini", temperature=0.7)}}, "model `mini`, options: was .*0.5.* is .*0.7",
    ),
    "a model": ({"models": {"mini": CountingLM(model="maxi", temperature=0.5)}}, "model `mini`, model: was mini, is maxi"),
    "a program": (
        {"programs": {"short": Predict(make_signature("question -> answer", "Other."))}}, "program `short`, signature",
    ),
    "an option of requests": ({"options": {"warm": {"top_p": 0.6}}}, "options `warm`"),
    "a wording": ({"wordings": {"plain": {"self.instructions": "Say the colour."}}}, "wording `plain`"),
    "an optimizer": ({"optimizers": {"none": None, "labeled": LabeledFewShot(4)}}, "optimizer `labeled`, option `k`"),
    "the class of an optimizer": (
        {"optimizers": {"none": None, "labeled": random_search()}}, "optimizer `labeled`, optimizer: was LabeledFewShot",
    ),
    "repeats": ({"repeat": 2}, "repeat was 1, is 2"),
    "a label that is gone": ({"optimizers": {"labeled": LabeledFewShot(3)}}, "optimizer `none` is gone"),
    "a seed that is gone": ({"seeds": (1,)}, "the seed 0 is gone"),
    "an arm that is left out": (
        {"where": lambda labels: labels["optimizer"] == "none"}, "where= leaves out an arm",
    ),
}  # fmt: skip


def contents(folder: Path) -> dict[str, str]:
    """Return the digest of each file below a folder."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("base") / "run"
    base().run(path, progress=False)
    return path


@pytest.mark.parametrize("case", CHANGES)
def test_change_under_a_label_is_refused_by_name_and_no_file_changes(case: str, folder: Path) -> None:
    changes, words = CHANGES[case]
    one = base(**changes)
    before = contents(folder)
    with pytest.raises(ConfigurationError, match=words):
        one.run(folder, progress=False)
    with pytest.raises(ConfigurationError, match=words):
        one.plan(folder)
    assert contents(folder) == before
    assert calls(one) == 0


def test_equal_declaration_of_another_process_is_accepted(folder: Path) -> None:
    one = base()
    assert one.run(folder, progress=False).status == "complete"
    assert calls(one) == 0


def test_budget_threads_and_files_of_an_optimizer_may_change(tmp_path: Path) -> None:
    base(optimizers={"random": random_search(num_threads=1)}).run(tmp_path / "run", progress=False)
    one = base(optimizers={"random": random_search(num_threads=4, progress=False)})
    one.run(tmp_path / "run", progress=False)
    assert calls(one) == 0


def test_files_alone_give_the_result(folder: Path) -> None:
    result = base().run(folder, progress=False)
    loaded = load_experiment(folder)
    assert loaded.rows() == result.rows()
    assert loaded.to_markdown() == result.to_markdown()
    assert [each.point for each in loaded.measured] == [each.point for each in result.measured]
    assert loaded.record == result.record


def test_record_logs_and_programs_alone_give_the_table(folder: Path, tmp_path: Path) -> None:
    names = ("experiment.json", "program.json", "search.jsonl", "records.jsonl")
    for path in (each for name in names for each in folder.rglob(name)):
        target = tmp_path / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    assert load_experiment(tmp_path).to_markdown() == load_experiment(folder).to_markdown()
    assert load_experiment(tmp_path).rows() == load_experiment(folder).rows()


def test_record_has_the_runs_and_their_environment(folder: Path) -> None:
    record = json.loads((folder / "experiment.json").read_text())
    assert record["data"]["colours"]["test"]["n"] == 3
    assert len(record["data"]["colours"]["test"]["ids"]) == 3
    (here,) = record["environments"]
    assert {"started", "sigwire", "python", "platform", "packages", "cassettes"} <= here.keys()
    assert any(each.startswith("pydantic==") for each in here["packages"]["list"])
    assert len(record["points"]) == 2
    assert all(len(point["prompt"]) == 16 and len(point["program"]) == 16 for point in record["points"].values())
    assert record["models"]["mini"]["options"] == {"temperature": 0.5}


def test_each_run_that_works_adds_an_environment(tmp_path: Path) -> None:
    base().run(tmp_path / "run", progress=False)
    base(seeds=(0, 1)).run(tmp_path / "run", progress=False)
    base(seeds=(0, 1)).run(tmp_path / "run", progress=False)
    assert len(json.loads((tmp_path / "run" / "experiment.json").read_text())["environments"]) == 2


def test_record_names_the_models_that_served(tmp_path: Path) -> None:
    def text_of(request: Request) -> str:
        return "[[ ## answer ## ]]\nred\n\n[[ ## completed ## ]]"

    with FakeProvider(text_of) as provider:
        lm = LM(
            "openai/gpt-4o-mini",
            base_url=provider.url("openai"),
            api_key="sk-planted-key-123456",
            limit=False,
            cache=False,
        )
        one = Experiment(
            programs=Predict("question -> answer"), models={"mini": lm}, datasets=data(test=2), metric=exact,
            optimizers={"none": None, "labeled": LabeledFewShot(2)},
        )  # fmt: skip
        plan = one.plan()
        result = one.run(tmp_path / "run", progress=False)
    assert result.record is not None
    model: Any = result.record["models"]["mini"]  # type: ignore[index, call-overload]
    assert model["host"].startswith("http://127.0.0.1")
    assert model["served"]
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or b"planted-key" not in path.read_bytes(), path
        assert path.is_dir() or str(Path.home()).encode() not in path.read_bytes() or len(str(Path.home())) < 3, path
    assert plan.most_money is not None
    cost = sum(each.evaluation.cost or 0 for each in result.measured)
    assert 0 < cost <= plan.most_money


def test_record_of_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text('{"type": "something"}')
    with pytest.raises(ConfigurationError, match="no record of an experiment"):
        load_experiment(tmp_path)
    (tmp_path / "experiment.json").write_text("{")
    with pytest.raises(ConfigurationError, match="no record of an experiment"):
        base().run(tmp_path, progress=False)
    (tmp_path / "experiment.json").write_text('{"type": "experiment", "format": 99}')
    with pytest.raises(ConfigurationError, match="format 99"):
        base().run(tmp_path, progress=False)


def test_program_that_cannot_be_written_whole_still_has_its_state(tmp_path: Path) -> None:
    class Local(Predict[Any, Any]):
        def __init__(self, lock: object) -> None:
            super().__init__("question -> answer")
            self.lock = lock

        def __deepcopy__(self, memo: Any) -> Local:
            made = Local(self.lock)
            made.signature, made.lm, made.config, made.demos = self.signature, self.lm, self.config, list(self.demos)
            return made

    one = grid(programs={"local": Local(threading.Lock())}, models={"mini": CountingLM()}, optimizers=None)
    assert one.run(tmp_path / "run", progress=False).status == "complete"
    (point,) = (tmp_path / "run" / "points").iterdir()
    assert (point / "program.json").exists()


def test_point_with_a_row_that_the_provider_failed_runs_that_row_again(tmp_path: Path) -> None:
    from sigwire.errors import LMServerError

    failed: list[str] = []

    def answer(request: Request) -> Any:
        text = request.messages[-1].text
        if "200" in text and not failed:
            failed.append(text)
            raise LMServerError("busy", model="m", provider="fake")
        return {"answer": "red"}

    def made() -> Experiment:
        return grid(models={"m": FakeLM(answer, model="m")}, optimizers=None, programs=Predict("question -> answer"))

    first = made().run(tmp_path / "run", progress=False)
    assert len(first.measured[0].evaluation.not_scored) == 1
    second = made().run(tmp_path / "run", progress=False)
    assert len(second.measured[0].evaluation.not_scored) == 0
    assert second.measured[0].evaluation.n == len(data().test)


def test_metrics_of_a_dict_are_all_in_the_result(tmp_path: Path) -> None:
    def both(example: Any, prediction: Any, trace: object = None) -> dict[str, float]:
        return {"right": float(example.answer == prediction.answer), "short": 1.0}

    one = grid(metric=both, optimizers=None, programs=Predict("question -> answer"))
    result = one.run(tmp_path / "run", progress=False)
    assert {"right", "short"} <= result.measured[0].evaluation.metrics.keys()
    assert "short" in result.rows()[0]
