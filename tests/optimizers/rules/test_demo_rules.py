"""LabeledFewShot, BootstrapFewShot, random search, TPE and nearest demos: what each does beyond the table of acceptance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.core.example import Example, Prediction
from sigwire.errors import ConfigurationError, InputError, StateError
from sigwire.lm.fake import FakeLM
from sigwire.modules.module import Module
from sigwire.modules.nearest import NearestDemos
from sigwire.modules.predict import Predict
from sigwire.optimizers.rules.better_together import BetterTogether
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.ensemble import Ensemble, majority
from sigwire.optimizers.rules.knn import KNNFewShot
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch, BootstrapRS
from sigwire.optimizers.sampling import Choices, RandomChoices
from sigwire.settings import context
from tests.optimizers.stub import Stub, exact, rows, scores
from tests.optimizers.table import TRAIN, VAL, student

TEST = rows(64, 2_000)


class TwoSteps(Module):
    """A program whose second step has a field that no row has."""

    def __init__(self, lm: Any = None) -> None:
        super().__init__()
        self.first = Predict("question -> answer", lm=lm)
        self.second = Predict("answer -> remark", lm=lm)

    def forward(self, question: str) -> Any:
        answer = self.first(question=question).answer
        self.second(answer=answer)
        return Prediction(answer=answer)


# --- LabeledFewShot


def test_balance_takes_equally_many_rows_of_each_label() -> None:
    examples = [
        Example(question=str(at), answer="yes" if at < 27 else "no").with_inputs("question") for at in range(30)
    ]
    program = LabeledFewShot(6, balance=True).compile(Predict("question -> answer"), trainset=examples)
    assert sorted(demo.answer for demo in program.demos) == ["no"] * 3 + ["yes"] * 3


def test_predictor_without_usable_labels_has_no_demos_and_a_warning() -> None:
    program: Any = LabeledFewShot(3).compile(TwoSteps(), trainset=TRAIN)
    assert (len(program.first.demos), len(program.second.demos)) == (3, 0)
    (warning,) = program.optimization.warnings
    assert warning == "second has no demos: no training row has its outputs (remark)."


def test_first_rows_are_taken_without_sampling() -> None:
    program = LabeledFewShot(2).compile(Predict("question -> answer"), trainset=TRAIN, sample=False)
    assert [demo.question for demo in program.demos] == [each.question for each in TRAIN[:2]]


# --- BootstrapFewShot


def test_bootstrapped_demos_raise_the_accuracy() -> None:
    program = BootstrapFewShot(exact).compile(student(Stub()), trainset=TRAIN)
    assert scores(program, TEST) > scores(student(Stub()), TEST) + 0.2
    assert program._compiled
    assert all(demo.augmented for demo in program.demos[:4])


def test_demos_are_the_first_successes_in_the_order_of_the_rows() -> None:
    skilled = Stub(skill=lambda request: 1.0)
    program = BootstrapFewShot(exact, max_labeled_demos=0).compile(student(skilled), trainset=TRAIN)
    assert [demo.question for demo in program.demos] == [each.question for each in TRAIN[:4]]


def test_diverse_demos_differ_more_than_the_first_ones() -> None:
    texts = [
        "the red cat sat",
        "the red cat sits",
        "the red cat sat down",
        "a blue boat on the sea",
        "seven green hills",
    ]
    examples = [Example(text=text, label="x").with_inputs("text") for text in texts]
    lm = FakeLM(lambda request: {"label": "x"})
    optimizer = BootstrapFewShot(None, max_bootstrapped_demos=3, max_labeled_demos=0, prefer="diverse")
    program = optimizer.compile(Predict("text -> label", lm=lm), trainset=examples)
    assert {demo.text for demo in program.demos} == {texts[0], texts[3], texts[4]}


def test_rounds_run_failed_rows_again_as_another_sample() -> None:
    lm = Stub()
    BootstrapFewShot(exact, max_bootstrapped_demos=99, max_labeled_demos=0, max_rounds=2).compile(
        student(lm), trainset=TRAIN
    )
    temperatures = [request.options.get("temperature") for request in lm.requests]
    assert temperatures.count(None) == len(TRAIN)
    assert 0 < temperatures.count(1.0) < len(TRAIN)


def test_report_has_the_reasons_of_failed_runs() -> None:
    answers = [{"answer": "red"}, sigwire.ContentFiltered("no"), {"answer": "x"}]
    lm = FakeLM(answers)
    program: Any = BootstrapFewShot(exact, num_threads=1).compile(student(lm), trainset=TRAIN[:3])
    (warning,) = program.optimization.warnings
    assert warning.endswith("made no demo: 1 ContentFiltered, 1 scored 0.")


def test_graded_scores_without_a_threshold_are_a_warning() -> None:
    optimizer = BootstrapFewShot(lambda example, prediction, trace=None: 1.0 if "1" in example.question else 0.2)
    program: Any = optimizer.compile(student(Stub()), trainset=TRAIN)
    assert "scored below 1. metric_threshold=" in program.optimization.warnings[0]


def test_every_predictor_of_a_program_gets_its_own_calls() -> None:
    lm = FakeLM(lambda request: {"answer": "red"} if "colour" in request.messages[-1].text else {"remark": "nice"})
    program: Any = BootstrapFewShot(max_bootstrapped_demos=2, max_labeled_demos=0).compile(TwoSteps(lm), trainset=TRAIN)
    assert [(demo.answer, demo.remark) for demo in program.second.demos] == [("red", "nice")] * 2
    assert len(program.first.demos) == 2


def test_compiled_part_of_a_program_keeps_its_demos() -> None:
    inner = BootstrapFewShot(exact).compile(student(Stub()), trainset=TRAIN)

    class Outer(Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner
            self.other = Predict("question -> answer", lm=Stub())

        def forward(self, question: str) -> Any:
            self.other(question=question)
            return self.inner(question=question)

    program: Any = LabeledFewShot(1).compile(Outer(), trainset=TRAIN)
    assert len(program.other.demos) == 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"steps": "first"}, "steps is one of"),
        ({"prefer": "best"}, "prefer is one of"),
        ({"max_labeled_demos": -1}, "0 or more"),
    ],
)
def test_wrong_option_is_refused_by_name(options: Any, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        BootstrapFewShot(exact, **options)


# --- random search


def test_random_search_gains_and_lists_its_candidates_by_seed() -> None:
    program: Any = BootstrapRS(exact, max_labeled_demos=0).compile(
        student(Stub()), trainset=rows(40), valset=rows(60, 100)
    )
    assert scores(program, TEST) > scores(student(Stub()), TEST) + 0.3
    seeds = [entry["seed"] for entry in program.candidate_programs]
    assert set(seeds) <= set(range(-3, 16))
    assert -3 in seeds
    assert program.candidate_programs[0]["score"] == round(100 * program.optimization.estimate.selection, 2)


def test_random_search_needs_less_than_half_of_full_evaluations() -> None:
    lm, val = Stub(), rows(60, 100)
    BootstrapRS(exact, max_labeled_demos=0).compile(student(lm), trainset=rows(40), valset=val)
    assert len(lm.requests) < 19 * len(val) / 2


def test_restrict_makes_only_the_candidates_of_these_seeds() -> None:
    program: Any = BootstrapRS(exact).compile(student(Stub()), trainset=TRAIN, valset=VAL, restrict=[-2, 1])
    assert {entry["seed"] for entry in program.candidate_programs} <= {-3, -2, 1}


def test_search_ends_with_a_candidate_that_reaches_the_score() -> None:
    whole, ended = Stub(), Stub()
    BootstrapRS(exact).compile(student(whole), trainset=TRAIN, valset=VAL)
    BootstrapRS(exact, stop_at_score=40).compile(student(ended), trainset=TRAIN, valset=VAL)
    assert len(ended.requests) < len(whole.requests)
    perfect = Stub(skill=lambda request: 1.0)
    program: Any = BootstrapRS(exact, stop_at_score=90).compile(student(perfect), trainset=TRAIN, valset=VAL)
    assert program.demos == []
    assert len(perfect.requests) == len(VAL)


def test_candidate_programs_are_lazy_and_sliced() -> None:
    program: Any = BootstrapRS(exact, num_candidate_programs=3).compile(student(Stub()), trainset=TRAIN, valset=VAL)
    some = program.candidate_programs[1:3]
    assert len(some) == 2
    assert repr(some) == "<2 candidate programs>"
    json.dumps(some.to_json())
    assert program.deepcopy().candidate_programs is program.candidate_programs


# --- TPE


def test_tpe_finds_the_better_option_and_repeats_itself() -> None:
    found = []
    for _ in range(2):
        sampler = Choices({"a": 5, "b": 4}, seed=3)
        asked = []
        for _ in range(10):
            choices = sampler.ask(4)
            asked += choices
            for choice in choices:
                sampler.learn(choice, float(choice["a"] == 2) + float(choice["b"] == 1))
        found.append(asked)
    assert found[0] == found[1]
    assert sum(choice == {"a": 2, "b": 1} for choice in found[0][20:]) >= 5


def test_scores_of_choices_that_were_not_asked_are_learned() -> None:
    sampler = Choices({"a": 3}, seed=0)
    for _ in range(12):
        sampler.learn({"a": 1}, 1.0)
        sampler.learn({"a": 0}, 0.0)
    assert sum(choice["a"] == 1 for choice in sampler.ask(6)) >= 2


def test_random_choices_are_distinct_or_equal() -> None:
    many = RandomChoices({"a": 3, "b": 3}, 0).ask(9)
    assert len({tuple(choice.items()) for choice in many}) == 9
    assert len({tuple(choice.items()) for choice in RandomChoices({"a": 3}, 0, distinct=False).ask(5)}) == 1


def test_optuna_search_takes_demos_of_each_predictor(capfd: pytest.CaptureFixture[str]) -> None:
    optimizer = BootstrapFewShotWithOptuna(exact, max_labeled_demos=0, num_candidate_programs=8, progress=False)
    program: Any = optimizer.compile(student(Stub()), trainset=rows(40), valset=rows(60, 100), max_demos=4)
    assert scores(program, TEST) > scores(student(Stub()), TEST) + 0.2
    assert "".join(capfd.readouterr()) == ""


def test_search_without_optuna_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(ConfigurationError, match=r"sigwire\[optuna\]"):
        BootstrapFewShotWithOptuna(exact).compile(student(Stub()), trainset=TRAIN, valset=VAL)
    assert BootstrapFewShotWithOptuna(exact).plan(student(Stub()), TRAIN, VAL).calls.max > 0


# --- nearest demos

ANIMALS = [
    Example(text=text, kind=kind).with_inputs("text")
    for text, kind in (
        ("a cat sleeps on the mat", "cat"),
        ("the dog barks at night", "dog"),
        ("cats and kittens purr", "cat"),
        ("a dog chases a ball", "dog"),
        ("trains leave the station", "train"),
    )
]


def nearest(vectorizer: Any = None, k: int = 2) -> tuple[Any, FakeLM]:
    lm = FakeLM(lambda request: {"kind": "cat"})
    optimizer = KNNFewShot(k, ANIMALS, vectorizer, max_labeled_demos=16)
    return optimizer.compile(Predict("text -> kind", lm=lm)), lm


def shown(lm: FakeLM) -> list[str]:
    texts = [message.text for message in lm.requests[-1].messages[:-1] if message.role == "user"]
    return [text.split("\n")[1] for text in texts]


def vectors(texts: list[str]) -> list[list[float]]:
    return [[float("cat" in text), float("dog" in text), float("train" in text)] for text in texts]


def test_each_call_shows_the_nearest_demos_the_nearest_last() -> None:
    program, lm = nearest()
    program(text="two kittens of the cat purr")
    assert shown(lm) == ["a cat sleeps on the mat", "cats and kittens purr"]
    program(text="a dog and a ball")
    assert shown(lm)[-1] == "a dog chases a ball"
    assert len(program.demos) == 5


async def test_nearest_demos_serve_awaited_streamed_and_nested_calls() -> None:
    program, lm = nearest()
    await program.acall(text="barks of a dog")
    assert shown(lm)[-1] == "the dog barks at night"
    *_, last = program.stream(text="a train in the station")
    assert last.value.kind == "cat"
    assert shown(lm)[-1] == "trains leave the station"

    class Outer(Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = program

        def forward(self, text: str) -> Any:
            return self.inner(text=text)

    Outer().deepcopy()(text="kittens")
    assert shown(lm)[-1] == "cats and kittens purr"


def test_demos_of_a_call_are_not_chosen() -> None:
    program, lm = nearest()
    program(text="x", demos=ANIMALS)
    assert len(shown(lm)) == 5


def test_vectorizer_chooses_and_its_vectors_are_saved(tmp_path: Path) -> None:
    calls: list[int] = []

    def counted(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        return vectors(texts)

    program, lm = nearest(counted)
    program(text="my dog")
    assert {text.split()[1] for text in shown(lm)} == {"dog"}
    assert calls == [5, 1]
    program.lm = None
    program.save(tmp_path / "program.json")
    loaded: Any = Predict("text -> kind")
    loaded.nearest = NearestDemos(9, counted)
    loaded.load(tmp_path / "program.json")
    with context(lm=lm):
        loaded(text="my dog")
    assert calls == [5, 1, 1]
    assert loaded.nearest.count == 2


def test_program_that_is_loaded_without_a_vectorizer_compares_words(tmp_path: Path) -> None:
    program, lm = nearest()
    program(text="kittens")
    before = shown(lm)
    program.lm = None
    program.save(tmp_path / "program.json")
    loaded: Any = Predict("text -> kind")
    loaded.load(tmp_path / "program.json")
    with context(lm=lm):
        loaded(text="kittens")
    assert shown(lm) == before


def test_state_without_nearest_demos_removes_the_choice() -> None:
    program, _ = nearest()
    program.load_state(Predict("text -> kind").dump_state())
    assert program.nearest is None
    with pytest.raises(StateError, match="nearest"):
        program.load_state({**Predict("text -> kind").dump_state(), "nearest": 3})


def test_wrong_number_of_vectors_is_an_error() -> None:
    program, _ = nearest(lambda texts: [[1.0]])
    with pytest.raises(ConfigurationError, match="1 vectors of 5 texts"):
        program(text="x")
    with pytest.raises(ConfigurationError, match="above 0"):
        KNNFewShot(0)


def test_forecast_of_nearest_demos_is_that_of_the_rows_of_the_constructor() -> None:
    program = Predict("text -> kind", lm=FakeLM([]))
    assert KNNFewShot(2, ANIMALS).plan(program, []) == KNNFewShot(2).plan(program, ANIMALS)


def test_rows_without_a_successful_run_are_demos_by_their_labels() -> None:
    lm = FakeLM(lambda request: {"kind": "cat"})

    def metric(example: Any, prediction: Any, trace: object = None) -> bool:
        return bool(example.kind == prediction.kind)

    program = KNNFewShot(2, ANIMALS, metric=metric).compile(Predict("text -> kind", lm=lm))
    assert [bool(demo.get("augmented")) for demo in program.demos] == [True, False, True, False, False]


# --- programs together


def members(*answers: str) -> list[Any]:
    return [Predict("question -> answer", lm=FakeLM(lambda request, each=each: {"answer": each})) for each in answers]


async def test_ensemble_asks_its_members_and_reduces_their_answers() -> None:
    program = Ensemble(reduce_fn=majority).compile(members("a", "b", "b"))
    assert program(question="?").answer == "b"
    assert (await program.acall(question="?")).answer == "b"
    *_, last = program.stream(question="?")
    assert last.value.answer == "b"
    assert [each.answer for each in Ensemble().compile(members("a", "b"))(question="?")] == ["a", "b"]


def test_members_of_a_call_depend_on_its_inputs_only() -> None:
    program = Ensemble(size=2).compile(members(*"abcdef"))
    asked = [[each.answer for each in program(question=str(at))] for at in range(12)]
    assert asked == [[each.answer for each in program(question=str(at))] for at in range(12)]
    assert len({tuple(each) for each in asked}) > 3


def test_ensemble_saves_the_state_of_all_members(tmp_path: Path) -> None:
    program = Ensemble().compile([student(None), student(None)])
    program.programs[1].demos = [Example(question="colour of 4?", answer="red")]
    program.save(tmp_path / "ensemble.json")
    loaded = Ensemble().compile([student(None), student(None)])
    loaded.load(tmp_path / "ensemble.json")
    assert len(loaded.programs[1].demos) == 1


def test_ensemble_of_too_few_programs_is_refused() -> None:
    with pytest.raises(InputError, match="3 or more programs, not 2"):
        Ensemble(size=3).compile(members("a", "b"))
    with pytest.raises(ConfigurationError, match="above 0"):
        Ensemble(size=0)


def test_majority_takes_the_first_of_equally_frequent_values() -> None:
    assert majority([Prediction(answer=each) for each in "baab"]).answer == "b"
    assert majority([Prediction(answer=each) for each in ("x", "", "")], field="answer").answer == "x"
    several = student(FakeLM(lambda request: ["[[ ## answer ## ]]\n" + each for each in "abb"]))(
        question="?", config={"n": 3}
    )
    assert majority(several).answer == "b"


def test_strategy_runs_optimizers_in_turn_and_keeps_the_best() -> None:
    optimizer = BetterTogether(
        exact, p=LabeledFewShot(1), q=BootstrapFewShotWithRandomSearch(exact, max_labeled_demos=0)
    )
    program: Any = optimizer.compile(student(Stub()), trainset=rows(30), valset=rows(60, 100), strategy="p -> q -> p")
    listed = [entry["strategy"] for entry in program.candidate_programs]
    assert set(listed) == {"", "p", "p -> q", "p -> q -> p"}
    assert listed[0] == "p -> q"
    assert scores(program, TEST) > scores(student(Stub()), TEST) + 0.3


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (
            lambda: BetterTogether(exact, p=LabeledFewShot(1)).compile(
                student(Stub()), trainset=TRAIN, strategy="p -> w"
            ),
            "'w'",
        ),
        (lambda: BetterTogether(exact, p=3), "'p' is an optimizer, not int"),  # type: ignore[arg-type]
        (lambda: BetterTogether(exact, p=KNNFewShot(1)), "cannot be a step"),
        (
            lambda: BetterTogether(exact, p=LabeledFewShot(1)).compile(
                student(Stub()), trainset=TRAIN, optimizer_compile_args={"p": {"simple": 1}}
            ),
            "no option 'simple'",
        ),
    ],
)
def test_wrong_step_is_refused_by_name(make: Any, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make()
