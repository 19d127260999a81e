"""The declaration of a grid: its points, and what is refused before any call."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sigwire.adapters.json import JSONAdapter
from sigwire.core.example import Example
from sigwire.data.splitting import DataSplit
from sigwire.errors import ConfigurationError, InputError, SigwireError
from sigwire.experiments.experiment import Experiment
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from tests.experiments.grid import CountingLM, calls, data, exact, grid, random_search, rows


def test_points_go_seed_by_seed_with_arms_without_a_search_first() -> None:
    points = grid(seeds=(3, 1), programs=Predict("question -> answer")).points
    assert [(point.arm, point.seed) for point in points] == [
        (arm, seed) for seed in (3, 1) for arm in ("mini · none", "large · none", "mini · labeled", "large · labeled")
    ]


def test_value_that_stands_alone_has_the_label_default() -> None:
    alone = Experiment(programs=Predict("question -> answer"), datasets=data(), metric=exact, models=CountingLM())
    assert [point.arm for point in alone.points] == ["default"]
    assert alone.points[0].labels == {
        "program": "default", "dataset": "default", "model": "default", "adapter": "default", "options": "default",
        "wording": "default", "optimizer": "none",
    }  # fmt: skip


def test_where_excludes_arms() -> None:
    one = grid(where=lambda labels: labels["model"] == "mini" or labels["optimizer"] == "none")
    assert "short · large · labeled" not in {point.arm for point in one.points}
    assert len(one.points) == 6


def test_program_of_an_arm_has_its_model_options_and_texts_and_that_of_the_caller_has_not() -> None:
    program, lm = Predict("question -> answer"), CountingLM()
    one = Experiment(
        programs=program,
        datasets=data(),
        metric=exact,
        models={"mini": lm},
        options={"temperature": 0.5},
        wordings={"self.instructions": "Be brief."},
    )
    made = one.program_of(one.arms[0])
    assert (made.lm, made.config, made.signature.instructions) == (lm, {"temperature": 0.5}, "Be brief.")
    assert (program.lm, program.config) == (None, {})
    assert program.signature.instructions != "Be brief."


def test_wording_may_be_a_function_of_the_program() -> None:
    def louder(program: Predict[Any, Any]) -> Predict[Any, Any]:
        program.signature = program.signature.with_instructions("LOUD")
        return program

    one = grid(wordings={"plain": None, "loud": louder})
    found = {arm["wording"]: one.program_of(arm).signature.instructions for arm in one.arms}
    assert (found["loud"], found["plain"]) == ("LOUD", found["plain"])
    assert found["plain"] != "LOUD"


def test_experiment_does_not_follow_later_changes_of_the_program() -> None:
    program = Predict("question -> answer")
    one = grid(programs=program)
    program.signature = program.signature.with_instructions("Changed.")
    assert one.program_of(one.arms[0]).signature.instructions != "Changed."


def test_settings_of_a_point_have_its_adapter_and_the_sample_of_its_seed() -> None:
    adapter = JSONAdapter()
    one = grid(adapters={"chat": None, "json": adapter}, seeds=(0, 7))
    found = {(point.labels["adapter"], point.seed): one.settings_of(point) for point in one.points}
    assert found["chat", 0].keys() == {"lm"}
    assert found["json", 7]["adapter"] is adapter
    assert found["json", 7]["rollout_id"] == 7


class Twice(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Predict("question -> answer"), Predict("question -> answer")

    def forward(self, question: str) -> Any:
        self.first(question=question)
        return self.second(question=question)


def test_models_may_be_given_by_predictor() -> None:
    one, other = CountingLM(), CountingLM()
    made = grid(programs=Twice(), models={"mixed": {"first": one, "second": other}})
    program = made.program_of(made.arms[0])
    assert (program.first.lm, program.second.lm) == (one, other)


def plain(question: str) -> Any:
    return {"answer": question}


def leaking(**changes: Any) -> DataSplit:
    first, *rest = (row.copy(**changes) for row in rows(3))
    return DataSplit((first, *rest), (), (*rows(2, 200), first))


REFUSED: dict[str, tuple[dict[str, Any], type[SigwireError], str]] = {
    "no program": ({"programs": {}}, ConfigurationError, "programs .* has no label"),
    "no seed": ({"seeds": ()}, ConfigurationError, "seeds"),
    "a seed twice": ({"seeds": (1, 2, 1)}, ConfigurationError, "The seed 1 is there twice"),
    "a seed that is no number": ({"seeds": (1, "2")}, ConfigurationError, "whole numbers"),
    "a seed that is a truth": ({"seeds": (True,)}, ConfigurationError, "whole numbers"),
    "a label with the separator": ({"models": {"a · b": CountingLM()}}, ConfigurationError, "no label of models"),
    "a label of two lines": ({"models": {"a\nb": CountingLM()}}, ConfigurationError, "no label of models"),
    "no test rows": ({"datasets": DataSplit(tuple(rows(3)), (), ())}, InputError, "no test rows"),
    "rows in place of a split": ({"datasets": {"all": rows(3)}}, ConfigurationError, "split_examples"),
    "an optimizer without training rows": (
        {"datasets": DataSplit((), (), tuple(rows(3)))}, InputError, "no train rows, and optimizers\\['labeled'\\]",
    ),
    "test rows that are training rows": (
        {"datasets": {"trec": leaking()}}, InputError, "1 of 3 test rows of datasets\\['trec'\\] .* at position 2",
    ),
    "a test row that is a training row and has an id": (
        {"datasets": leaking(id="t-7")}, InputError, "at position 2 \\(id 't-7'\\)",
    ),
    "inputs that a data set lacks": (
        {"datasets": DataSplit((), (), (Example(text="x", answer="y").with_inputs("text"),)), "optimizers": None},
        InputError, "test of datasets\\['default'\\]",
    ),
    "no optimizer": ({"optimizers": {"best": exact}}, ConfigurationError, "optimizers\\['best'\\] is an optimizer, None"),
    "rows among the options of compile": (
        {"optimizers": {"a": (LabeledFewShot(3), {"trainset": rows(2)})}}, ConfigurationError, "Rows are those of datasets",
    ),
    "an unknown option of compile": (
        {"optimizers": {"a": (LabeledFewShot(3), {"samples": True})}}, ConfigurationError, "no option 'samples'",
    ),
    "an unknown option of requests": ({"options": {"temprature": 0}}, SigwireError, "temprature"),
    "an unknown slot": ({"wordings": {"self.instruction": "Be brief."}}, ConfigurationError, "self.instruction"),
    "an unknown predictor": (
        {"programs": Twice(), "models": {"m": {"third": CountingLM()}}}, ConfigurationError, "no predictor 'third'",
    ),
    "where that leaves nothing": ({"where": lambda labels: False}, ConfigurationError, "where leaves no arm"),
    "where that is no function": ({"where": "mini"}, ConfigurationError, "where is a function"),
    "an optimizer of a function": ({"programs": {"f": plain}}, ConfigurationError, "is a function, which optimizers"),
    "options of a function": (
        {"programs": {"f": plain}, "optimizers": None, "options": {"temperature": 0}}, ConfigurationError, "is a function",
    ),
    "an option of the measurement": ({"repeat": 0}, ConfigurationError, "repeat"),
    "an unknown cluster": ({"cluster": "customer"}, InputError, "customer"),
    "a metric that is none": ({"metric": "exact"}, ConfigurationError, "metric"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_experiment_refuses_before_any_call(case: str) -> None:
    changes, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words) as caught:
        grid(**changes)
    text = str(caught.value)
    assert re.search(r"\(.*\)", text), "the error says where"


@pytest.mark.parametrize("axis", ["programs", "datasets", "models", "adapters", "options", "wordings", "optimizers"])
def test_axis_without_a_label_is_refused(axis: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{axis} of an Experiment has no label .*: the grid would be empty"):
        grid(**{axis: {}})


def test_experiment_refuses_an_unknown_option_and_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean optimizers"):
        grid(optimisers={})


def test_experiment_names_a_missing_option() -> None:
    with pytest.raises(ConfigurationError, match="needs datasets"):
        Experiment(programs=Predict("question -> answer"), metric=exact)  # type: ignore[call-arg]


def test_declaration_and_plan_ask_nothing_and_write_nothing(tmp_path: Any) -> None:
    one = grid(optimizers={"none": None, "random": random_search()})
    one.plan(tmp_path / "run")
    assert calls(one) == 0
    assert [*tmp_path.iterdir()] == []


def test_repr_counts_what_varies() -> None:
    assert repr(grid(seeds=range(2))) == "Experiment(2 programs, 2 models, 2 optimizers, 2 seeds: 16 points)"
