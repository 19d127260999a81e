"""``dspy.datasets``: seeded data sets, the loader, the metric of GSM8K."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.dspy import datasets
from sigwire.dspy.datasets import DataLoader, Dataset
from sigwire.dspy.datasets.gsm8k import gsm8k_metric

ROWS = [{"question": str(number), "answer": str(number)} for number in range(10)]


class Numbers(Dataset):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._train, self._dev = ROWS, ROWS[:2]


def test_data_set_is_shuffled_by_its_seed_and_cut() -> None:
    first, second = Numbers(train_seed=1, train_size=4), Numbers(train_seed=1, train_size=4)
    assert first.train == second.train
    assert (len(first.train), len(first.dev), first.test, first.name) == (4, 2, [], "Numbers")
    assert first.train is first.train
    assert [each.answer for each in Numbers(train_seed=2).train] != [
        each.answer for each in Numbers(train_seed=3).train
    ]


def test_data_set_marks_its_inputs() -> None:
    (example,) = Numbers(train_size=1, input_keys=["question"]).train
    assert list(example.inputs().keys()) == ["question"]
    assert list(example.labels().keys()) == ["answer"]


@pytest.mark.parametrize("name", ["rows.csv", "rows.json"])
def test_loader_reads_files(name: str, tmp_path: Path) -> None:
    text = "question,answer\\n1,a\\n" if name.endswith("csv") else '[{"question": "1", "answer": "a"}]'
    (tmp_path / name).write_text(text.replace("\\n", "\n"), encoding="utf-8")
    load = DataLoader().from_csv if name.endswith("csv") else DataLoader().from_json
    (example,) = load(tmp_path / name, fields=["question", "answer"], input_keys=("question",))
    assert (example.inputs().question, example.answer) == ("1", "a")


def test_loader_takes_data_frames_and_data_sets_of_hugging_face(monkeypatch: pytest.MonkeyPatch) -> None:
    loader, frame = DataLoader(), SimpleNamespace(to_dict=lambda form: ROWS if form == "records" else None)
    assert len(loader.from_pandas(frame, input_keys=["question"])) == 10
    asked: list[Any] = []

    def load_dataset(name: str, *args: Any, **options: Any) -> Any:
        asked.append((name, options))
        return ROWS if "split" in options else {"train": ROWS[:3], "test": ROWS[3:]}

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert {name: len(part) for name, part in loader.from_huggingface("n/d").items()} == {"train": 3, "test": 7}
    assert len(loader.from_huggingface("n/d", split="train", fields=("answer",))) == 10
    assert asked == [("n/d", {}), ("n/d", {"split": "train"})]


def test_loader_splits_by_share_and_by_number() -> None:
    loader, examples = DataLoader(), [dspy.Example(row) for row in ROWS]
    parts = loader.train_test_split(examples, train_size=0.7, test_size=2, random_state=1)
    assert (len(parts["train"]), len(parts["test"])) == (7, 2)
    assert parts == loader.train_test_split(examples, train_size=7, test_size=2, random_state=1)
    assert len(loader.sample(examples, 3)) == 3
    for sizes in ({"train_size": 1.5}, {"train_size": 8, "test_size": 3}):
        with pytest.raises(dspy.InputError, match="splitting"):
            loader.train_test_split(examples, **sizes)  # type: ignore[arg-type]


def test_metric_of_gsm8k_compares_the_last_number() -> None:
    gold = dspy.Example(answer="42")
    assert gsm8k_metric(gold, dspy.Prediction(answer="So 40 + 2 = $42.00"))
    assert not gsm8k_metric(gold, dspy.Prediction(answer="24"))
    assert not gsm8k_metric(gold, dspy.Prediction(answer="unknown"))


def test_gsm8k_has_the_parts_of_dspy(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"question": f"q{number}", "answer": f"Add\nthem. #### 1,{number:03}"} for number in range(600)]
    loaded = {"train": rows, "test": rows[:5]}
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=lambda *names: loaded))
    data, again = datasets.GSM8K(), datasets.GSM8K()
    assert (len(data.train), len(data.dev), len(data.test)) == (200, 300, 5)
    assert data.train == again.train
    example = data.train[0]
    assert (example.gold_reasoning, example.answer) == ("Add them.", f"1{int(example.question[1:]):03}")
    assert list(example.inputs().keys()) == ["question"]


def test_math_has_the_parts_and_the_metric_of_dspy(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"problem": f"p{number}", "solution": rf"It is $\boxed{{{number}}}$."} for number in range(9)]
    asked: list[Any] = []

    def load_dataset(*names: str) -> Any:
        asked.append(names)
        return {"train": rows, "test": rows}

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    monkeypatch.setitem(sys.modules, "math_equivalence", None)
    data = datasets.MATH("algebra")
    assert (asked[0][1], len(data.train), len(data.dev), len(data.test)) == ("algebra", 3, 3, 3)
    example = data.train[0]
    assert (example.question, example.reasoning[:5]) == (f"p{example.answer}", "It is")
    with pytest.raises(dspy.ConfigurationError, match="needs math_equivalence"):
        data.metric(example, example)
    monkeypatch.setitem(sys.modules, "math_equivalence", SimpleNamespace(is_equiv=lambda one, other: one == other))
    assert data.metric(example, dspy.Prediction(answer=example.answer))


@pytest.mark.parametrize(
    ("options", "train", "dev"),
    [
        ({}, {"question", "answer"}, {"question", "answer", "gold_titles"}),
        ({"keep_details": False}, {"question", "answer"}, {"question", "answer"}),
        ({"keep_details": True}, {"id", "type", "context", "question", "answer", "gold_titles"}, None),
    ],
)
def test_hotpotqa_has_the_hard_rows_in_three_parts(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], train: set[str], dev: set[str] | None
) -> None:
    def row(number: int, level: str = "hard") -> dict[str, Any]:
        facts = {"title": ["A", "B", "A"], "sent_id": [0, 1, 2]}
        texts = {"id": str(number), "question": f"q{number}", "answer": "a", "type": "bridge", "context": {}}
        return {**texts, "level": level, "supporting_facts": facts}

    rows = {"train": [*map(row, range(8)), row(9, "easy")], "validation": [row(20)]}
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=lambda *names: rows))
    found = datasets.HotPotQA(**options, input_keys=["question"])
    assert (len(found.train), len(found.dev), len(found.test)) == (6, 2, 1)
    assert {each.answer for each in found.train} == {"a"}
    assert "q9" not in {each.question for each in found.train + found.dev}
    assert {*found.train[0].keys()} == train
    assert {*found.dev[0].keys()} == (train if dev is None else dev)
    assert (found.test[0].gold_titles, *found.test[0].inputs().keys()) == ({"A", "B"}, "question")
