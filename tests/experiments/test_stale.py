"""Numbers that could be stale or flattered: each is refused by name, measured again, or marked in the result."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sigwire.errors import ConfigurationError, StateError
from sigwire.experiments.experiment import Experiment
from sigwire.experiments.folder import load_experiment
from sigwire.experiments.reproducing import reproduce
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.money.budget import Budget
from sigwire.modules.predict import Predict
from sigwire.optimizers.rules.better_together import BetterTogether
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.settings import context
from tests.experiments.grid import CountingLM, calls, data, exact, grid, random_search, table


def one(**changes: Any) -> Experiment:
    """Return a grid of one arm, whose model counts."""
    given: dict[str, Any] = {
        "programs": Predict("question -> answer"),
        "models": {"m": CountingLM(model="m")},
        "optimizers": None,
        "datasets": data(test=2),
        **changes,
    }
    return grid(**given)


def named(model: str) -> FakeLM:
    return FakeLM(lambda request: {"good": True}, model=model)


JUDGE = Predict("question, answer -> good: bool")


def judged(example: Any, prediction: Any, trace: object = None) -> bool:
    return bool(JUDGE(question=example.question, answer=prediction.answer).good)


SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    "the model that writes for an optimizer": (
        {"optimizers": {"gepa": GEPA(exact, max_metric_calls=9)}},
        {"lm": named("a")}, {"lm": named("b")}, "optimizer `gepa`, model of `the settings`: was a, is b",
    ),
    "the model that writes for a step of an optimizer": (
        {"optimizers": {"both": BetterTogether(exact, a=GEPA(exact, max_metric_calls=9))}},
        {"lm": named("a")}, {"lm": named("b")}, "optimizer `both`, model of `the settings`: was a, is b",
    ),
    "a model that writes where the program's own did": (
        {"optimizers": {"gepa": GEPA(exact, max_metric_calls=9)}},
        {}, {"lm": named("b")}, "optimizer `gepa`, model of `the settings` is new",
    ),
    "the judge of an optimizer": (
        {"optimizers": {"random": random_search(judged)}},
        {"lm": named("a")}, {"lm": named("b")}, "optimizer `random`, model of `the settings`: was a, is b",
    ),
    "the sample": ({}, {"rollout_id": 7}, {}, "rollout_id was 7, is None"),
}  # fmt: skip


@pytest.mark.parametrize("case", SETTINGS)
def test_change_of_the_settings_around_a_run_is_refused_by_name(case: str, tmp_path: Path) -> None:
    changes, before, after, words = SETTINGS[case]
    with context(**before):
        one(**changes).run(tmp_path / "run", progress=False, budget=Budget(calls=0))
    again = one(**changes, seeds=(0, 1))
    with context(**after), pytest.raises(ConfigurationError, match=words):
        again.run(tmp_path / "run", progress=False)
    assert calls(again) == 0


def test_unused_model_of_the_settings_may_change(tmp_path: Path) -> None:
    for model in ("a", "b"):
        again = one(optimizers={"labeled": LabeledFewShot(2)})
        with context(lm=named(model)):
            assert again.run(tmp_path / "run", progress=False).status == "complete"
    assert calls(again) == 0


# --- files


def test_measurement_whose_first_line_was_torn_is_made_again(tmp_path: Path) -> None:
    whole = one().run(tmp_path / "run", progress=False)
    (path,) = tmp_path.glob("run/points/*/records.jsonl")
    path.write_bytes(path.read_bytes()[:300])
    assert load_experiment(tmp_path / "run").status == "partial"
    again = one()
    assert table(again.run(tmp_path / "run", progress=False)) == table(whole)
    assert calls(again) == 0  # the cassette has the answers


@pytest.mark.parametrize(
    "read", [load_experiment, lambda folder: one().run(folder, progress=False)], ids=["load", "run"]
)
def test_unreadable_file_of_a_point_is_named_with_its_folder(read: Callable[[Path], object], tmp_path: Path) -> None:
    one().run(tmp_path / "run", progress=False)
    (path,) = tmp_path.glob("run/points/*/records.jsonl")
    path.write_bytes(b"garbage\n" + path.read_bytes())
    with pytest.raises(
        ConfigurationError, match=rf"A point cannot be read \(in .*{path.parent.name}\): Line 1 of records"
    ):
        read(tmp_path / "run")


def test_record_that_lacks_a_part_is_refused_by_the_name_of_the_part(tmp_path: Path) -> None:
    one().run(tmp_path, progress=False, budget=Budget(calls=0))
    path = tmp_path / "experiment.json"
    record = json.loads(path.read_text())
    for name in ("fingerprint", "environments"):
        path.write_text(json.dumps({key: value for key, value in record.items() if key != name}))
        with pytest.raises(ConfigurationError, match=f"no whole record of an experiment: it lacks {name}"):
            load_experiment(tmp_path)
        with pytest.raises(ConfigurationError, match=f"lacks {name}"):
            one().run(tmp_path, progress=False)
        with pytest.raises(ConfigurationError, match=f"lacks {name}"):
            one().plan(tmp_path)


@contextmanager
def full_disk(size: int) -> Generator[None]:
    """No file of this process grows above a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(("size", "file"), [(200, "experiment.json"), (9_500, r"search\.cassette\.jsonl")])
def test_full_disk_is_an_error_that_names_the_file_and_the_run_goes_on(size: int, file: str, tmp_path: Path) -> None:
    def made() -> Experiment:
        return one(optimizers={"random": random_search()})

    first = made()
    with full_disk(size), pytest.raises(StateError, match=rf"{file} cannot be .*Free space"):
        first.run(tmp_path / "run", progress=False)
    again, alone = made(), made()
    result = again.run(tmp_path / "run", progress=False)
    assert table(result) == table(alone.run(tmp_path / "alone", progress=False))
    assert calls(again) < calls(alone) or not calls(first)


def test_point_whose_folder_cannot_be_made_ends_the_run_with_the_result(tmp_path: Path) -> None:
    one().run(tmp_path / "run", progress=False, budget=Budget(calls=0))
    shutil.rmtree(tmp_path / "run" / "points")
    (tmp_path / "run" / "points").touch()
    with pytest.raises(StateError, match=r"program\.json cannot be written") as caught:
        one().run(tmp_path / "run", progress=False)
    assert getattr(caught.value, "result").status == "partial"  # noqa: B009
    (tmp_path / "run" / "points").unlink()
    assert one().run(tmp_path / "run", progress=False).status == "complete"


# --- other versions


def test_versions_that_measured_the_points_of_one_result_are_named(tmp_path: Path) -> None:
    again = one(seeds=(0, 1))
    result = again.run(tmp_path / "run", progress=False)
    assert "measured by" not in result.to_markdown()
    path = sorted(tmp_path.glob("run/points/*/records.jsonl"))[0]
    head, _, rest = path.read_text().partition("\n")
    path.write_text(json.dumps({**json.loads(head), "sigwire": "0.0.9"}) + "\n" + rest)
    text = load_experiment(tmp_path / "run").to_markdown()
    assert "| measured by | sigwire 0.0.9, Python" in text
    assert text.count(": 2 records") == 2


def test_reproduction_names_what_changed_since_each_run(tmp_path: Path) -> None:
    one().run(tmp_path / "run", progress=False, budget=Budget(calls=0))
    path = tmp_path / "run" / "experiment.json"
    record = json.loads(path.read_text())
    (here,) = record["environments"]
    path.write_text(json.dumps({**record, "environments": [{**here, "sigwire": "0.0.9"}, here, here]}))
    (changed,) = reproduce(tmp_path / "run", one()).changed
    assert changed.startswith("sigwire was 0.0.9, is ")


def test_live_reproduction_refuses_a_copy_of_the_folder_whose_answers_are_the_old_ones(tmp_path: Path) -> None:
    one().run(tmp_path / "run", progress=False)
    copy = shutil.copytree(tmp_path / "run", tmp_path / "copy")
    with pytest.raises(ConfigurationError, match="a copy of it"):
        reproduce(tmp_path / "run", one(), live=True, out=copy)
