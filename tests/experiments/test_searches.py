"""The rows that searches of an experiment see: no row of the test set, whatever the optimizer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.request import Request
from sigwire.experiments.experiment import Experiment
from sigwire.experiments.folder import point_key
from sigwire.modules.predict import Predict
from tests.experiments.grid import CountingLM, data, exact
from tests.optimizers.stub import number_of
from tests.optimizers.table import TABLE

TEST_NUMBERS = {number_of(row["question"]) for row in data().test}


class Watching(CountingLM):
    """Keeps the text of each request."""

    def __init__(self) -> None:
        super().__init__(model="watching")
        self.texts: list[str] = []

    def _respond(self, request: Request) -> Any:
        self.texts.append("\n".join(message.text for message in request.messages))
        return super()._respond(request)


@pytest.mark.parametrize("name", TABLE)
def test_no_search_sends_the_inputs_of_a_test_row(name: str, tmp_path: Path) -> None:
    lm = Watching()
    one = Experiment(
        programs=Predict("question -> answer"),
        models={"watching": lm},
        optimizers={name: TABLE[name]()},
        datasets=data(train=16, dev=8, test=3),
        metric=exact,
    )
    events = list(one.stream(tmp_path / "run", progress=False, num_threads=1))
    (point,) = one.points
    texts = (tmp_path / "run" / "points" / point_key(point) / "search.jsonl").read_text()
    cassette = tmp_path / "run" / "points" / point_key(point) / "search.cassette.jsonl"
    searched = texts + (cassette.read_text() if cassette.exists() else "")
    assert not any(f"colour of {number}?" in searched for number in TEST_NUMBERS)
    asked = [text for text in lm.texts if any(f"colour of {number}?" in text for number in TEST_NUMBERS)]
    assert len(asked) == 3, "the measurement alone asks them"
    assert len(events) == 2


@pytest.mark.parametrize("name", TABLE)
def test_search_of_any_optimizer_goes_on_without_a_call(name: str, tmp_path: Path) -> None:
    def made() -> Experiment:
        return Experiment(
            programs=Predict("question -> answer"),
            models={"counting": CountingLM()},
            optimizers={name: TABLE[name]()},
            datasets=data(train=16, dev=8, test=3),
            metric=exact,
            seeds=(2,),
        )

    first, second = made(), made()
    rows = asyncio.run(first.arun(tmp_path / "run", progress=False)).rows()
    assert second.run(tmp_path / "run", progress=False).rows() == rows
    assert second.models["counting"].asked == []
