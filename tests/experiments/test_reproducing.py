"""An experiment is run again from its files: what is the same, and what differs by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import ConfigurationError, LMServerError
from sigwire.experiments.experiment import Experiment
from sigwire.experiments.folder import PointFiles
from sigwire.experiments.reproducing import Reproduction, reproduce
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.predict import Predict
from sigwire.signatures.signature import make_signature
from tests.experiments.grid import CountingLM, calls, data, exact, grid, random_search


def declared(**changes: Any) -> Experiment:
    given: dict[str, Any] = {
        "programs": Predict("question -> answer"),
        "optimizers": {"none": None, "random": random_search(strategy="greedy")},
        "models": {"mini": CountingLM(model="mini"), "large": CountingLM(0.3, model="large")},
        "seeds": (0, 1),
        **changes,
    }
    return grid(**given)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "run"
    declared().run(path, progress=False)
    return path


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


def dead(model: str) -> FakeLM:
    def refuse(request: Request) -> Any:
        raise AssertionError("a replay asks no model")

    return FakeLM(refuse, model=model)


def test_replay_asks_nothing_and_every_point_is_the_same(folder: Path) -> None:
    one = declared(models={"mini": dead("mini"), "large": dead("large")})
    found = reproduce(folder, one)
    assert found.differs == ()
    assert found.ok
    assert len(found.same) == len(one.points)


@pytest.mark.parametrize("outputs", ["answer", "answer, steps: int | None"])
def test_replay_of_an_agent_is_the_same_though_its_turns_take_other_times(tmp_path: Path, outputs: str) -> None:
    def look(word: str) -> str:
        """Look a word up."""
        return f"{word} is red"

    def turn(request: Request) -> Any:
        is_first = not request.messages[-1].tool_results
        return (
            ToolCall("1", "look", {"word": "sky"})
            if is_first
            else ToolCall("2", "submit", {"answer": "red", "steps": 1} if "steps" in outputs else {"answer": "red"})
        )

    one = declared(programs=ReAct(f"question -> {outputs}", tools=[look]), models=FakeLM(turn), optimizers=None)
    one.run(tmp_path / "run", progress=False)
    assert reproduce(tmp_path / "run", one).differs == ()
    folder = PointFiles(tmp_path / "run", one.points[0])
    text = folder.records.read_text(encoding="utf-8")
    folder.records.write_text(text.replace("sky is red", "sky is blue"), encoding="utf-8")
    assert len(reproduce(tmp_path / "run", one).differs) == 1


@pytest.mark.long
def test_replay_of_the_same_declaration_finds_no_change(folder: Path) -> None:
    one = declared()
    found = reproduce(folder, one)
    assert (found.ok, found.changed, calls(one)) == (True, (), 0)


def test_replay_of_a_run_that_a_failing_provider_ended_and_that_went_on_is_the_same(tmp_path: Path) -> None:
    failed: set[str] = set()

    def answer(request: Request) -> Any:
        text = request.messages[-1].text
        if any(number in text for number in ("200", "202", "102")) and text not in failed:
            failed.add(text)
            raise LMServerError("busy", model="shaky", provider="fake")
        return {"answer": "red"}

    def made() -> Experiment:
        return declared(models={"shaky": FakeLM(answer, model="shaky")}, seeds=(0,))

    made().run(tmp_path / "run", progress=False)
    result = made().run(tmp_path / "run", progress=False)
    assert all(not each.evaluation.not_scored for each in result.measured)
    assert reproduce(tmp_path / "run", made()).differs == ()


def change_answer(folder: Path) -> None:
    """Change one recorded answer of a measurement."""
    for path in sorted(folder.glob("points/*/test.cassette.jsonl")):
        lines = path.read_text().splitlines()
        at = next(number for number, line in enumerate(lines) if "colour of 201" in line and '"lm"' in line)
        data = json.loads(lines[at])
        text = json.dumps(data["response"]).replace("\\n", "\\n")
        for name in ("red", "green", "blue", "grey"):
            text = text.replace(f"\\n{name}\\n", "\\nblack\\n")
        data["response"] = json.loads(text)
        lines[at] = json.dumps(data)
        path.write_text("\n".join(lines) + "\n")
        return


def remove_cassette(folder: Path) -> None:
    next(iter(sorted(folder.glob("points/*/test.cassette.jsonl")))).unlink()


def scored(bonus: float) -> Callable[..., float]:
    def metric(example: Any, prediction: Any, trace: object = None) -> float:
        return bonus * exact(example, prediction)

    return metric


CASES: dict[str, tuple[Callable[[Path], None], dict[str, Any], str, str]] = {
    "a changed answer": (change_answer, {}, "other outputs in 1 row, ", ""),
    "a missing cassette": (remove_cassette, {}, "test.cassette.jsonl is missing", ""),
    "a changed metric": (lambda folder: None, {"metric": scored(0.5)}, "other scores in", "the metrics were exact, are metric"),
    "a changed instruction": (
        lambda folder: None, {"programs": Predict(make_signature("question -> answer", "Other."))}, "was not recorded",
        "program `default`, signature",
    ),
    "a label that is gone": (
        lambda folder: None, {"models": {"mini": CountingLM(model="mini")}}, "the declaration has no model `large`", "is gone",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_reproduction_names_what_differs(case: str, folder: Path) -> None:
    disturb, changes, differs, changed = CASES[case]
    disturb(folder)
    one = declared(**changes)
    found = reproduce(folder, one)
    assert not found.ok
    assert any(differs in each for each in found.differs), found.differs
    assert any(changed in each for each in found.changed) or not changed, found.changed
    assert calls(one) == 0


@pytest.mark.long
def test_reproduction_names_another_winner(folder: Path) -> None:
    one = declared()
    point = next(each for each in one.points if each.labels["optimizer"] == "random")
    path = PointFiles(folder, point).search
    lines = path.read_text().splitlines()
    end = json.loads(lines[-1])
    assert end["type"] == "end"
    end["report"]["winner"] = {"texts": {"self.instructions": "Another winner."}}
    path.write_text("\n".join([*lines[:-1], json.dumps(end)]) + "\n")
    found = reproduce(folder, one)
    assert any("the winner of the search differs in texts self.instructions" in each for each in found.differs), (
        found.differs
    )


def test_reproduction_needs_a_declaration(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"reproduce\(folder, experiment\)"):
        reproduce(folder)


@pytest.mark.long
def test_declaration_that_the_record_names_is_imported(folder: Path) -> None:
    path = folder / "experiment.json"
    record = json.loads(path.read_text())
    for source, words in (
        ("tests.experiments.test_reproducing:NAMED", None),
        ("tests.nothing:x", "cannot be imported"),
    ):
        path.write_text(json.dumps({**record, "source": source}))
        if words is None:
            assert reproduce(folder).ok
        else:
            with pytest.raises(ConfigurationError, match=words):
                reproduce(folder)


NAMED = declared()


def test_run_without_cassettes_cannot_be_replayed(tmp_path: Path) -> None:
    declared(seeds=(0,)).run(tmp_path / "run", progress=False, cassettes=False)
    found = reproduce(tmp_path / "run", declared(seeds=(0,)))
    assert len(found.differs) == 4
    assert "cassette.jsonl is missing" in found.differs[0]


@pytest.mark.long
def test_live_run_with_equal_answers_is_ok_and_names_the_smallest_difference(folder: Path, tmp_path: Path) -> None:
    one = declared()
    found = reproduce(folder, one, live=True, out=tmp_path / "again")
    assert (found.ok, found.differs) == (True, ())
    assert len(found.same) == 4
    assert calls(one) > 0


def test_live_run_with_other_answers_differs(tmp_path: Path) -> None:
    split = data(test=30)
    given: dict[str, Any] = {"optimizers": None, "datasets": split, "programs": Predict("question -> answer")}
    grid(models={"m": CountingLM(1.0, model="m")}, **given).run(tmp_path / "run", progress=False)
    worse = grid(models={"m": CountingLM(-1.0, model="m")}, **given)
    found = reproduce(tmp_path / "run", worse, live=True, out=tmp_path / "again")
    assert not found.ok
    assert "worse" in found.differs[0]


def test_live_run_needs_a_folder(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="out="):
        reproduce(folder, declared(), live=True)


def test_text_of_a_reproduction_names_all() -> None:
    found = Reproduction(("a, seed 0",), ("b, seed 0: other scores",), ("python was 3.11, is 3.12",))
    assert str(found).splitlines() == [
        "the same: 1 point", "differs: b, seed 0: other scores", "changed since: python was 3.11, is 3.12",
    ]  # fmt: skip
