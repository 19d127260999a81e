"""The number of re-asks: of the call, else of the module, the model, the adapter, the settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.errors import AdapterParseError, ConfigurationError
from sigwire.lm.base import BaseLM
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.settings import context
from tests.ways import in_every_way

PLACES = ("call", "module", "model", "adapter", "setting")


class Program(Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.inner = Predict("question -> answer: int", **options)

    def forward(self, config: dict[str, Any]) -> Any:
        return self.inner(question="?", config=config)


def asked(way: Callable[..., Any], numbers: dict[str, int]) -> int:
    """Return the number of requests of a program whose model never answers readably."""
    options: dict[str, dict[str, Any]] = {
        place: {"max_reasks": numbers[place]} if place in numbers else {} for place in PLACES
    }
    lm = FakeLM(lambda request: "[[ ## answer ## ]]\nmany", **options["model"])
    adapter = ChatAdapter(**options["adapter"])
    with context(lm=lm, adapter=adapter, **options["setting"]), pytest.raises(AdapterParseError):
        way(Program(**options["module"]), config=options["call"])
    return len(lm.requests)


@in_every_way
@pytest.mark.parametrize("place", PLACES)
def test_each_place_decides_about_reasks(way: Callable[..., Any], place: str) -> None:
    assert asked(way, {place: 2}) == 3


@pytest.mark.parametrize("first", range(len(PLACES) - 1))
def test_nearer_place_wins_also_with_none(first: int) -> None:
    assert asked(lambda module, **inputs: module(**inputs), {PLACES[first]: 0, PLACES[first + 1]: 2}) == 1


def test_readable_answer_after_a_reask_of_the_setting_is_in_the_attempts() -> None:
    with context(lm=FakeLM(["[[ ## answer ## ]]\nmany", {"answer": 4}]), max_reasks=1):
        prediction = Predict("question -> answer: int")(question="?")
    assert (prediction.answer, [attempt.purpose for attempt in prediction.attempts]) == (4, ["ask", "repair"])


@pytest.mark.parametrize("number", [-1, "2", True])
def test_number_of_reasks_of_a_model_and_of_an_adapter_is_checked(number: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_reasks"):
        FakeLM([], max_reasks=number)
    with pytest.raises(ConfigurationError, match="max_reasks"), context(adapter=ChatAdapter(max_reasks=number)):
        Predict("question -> answer", lm=FakeLM(["x"]))(question="?")


def test_number_of_a_model_is_kept_in_copies_and_files() -> None:
    lm = LM("offline/lexical", max_reasks=2)
    assert BaseLM.load_state(lm.copy(temperature=0.0).dump_state()).max_reasks == 2
    assert LM("offline/lexical").copy(max_reasks=1).max_reasks == 1
    assert "max_reasks" not in LM("offline/lexical").dump_state()
