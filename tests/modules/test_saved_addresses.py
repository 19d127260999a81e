"""Addresses of models in files: an error unless the loader trusts them or gives a model; never another host.

Saving warns of them.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire import (
    LM,
    ConfigurationError,
    FakeLM,
    Module,
    Predict,
    ReAct,
    Router,
    StateError,
    load_program,
    save_program,
)
from sigwire.commands import programs
from sigwire.lm.base import LanguageModel

ADDRESS = "http://gpu-box.example/v1"
REFUSED = rf"a plain load refuses the file: .*base_url='{re.escape(ADDRESS)}'.*lm=, or with allow_unsafe_lm_state=True"


def model() -> LM:
    return LM("openai/gpt-5-mini", base_url=ADDRESS, api_key="canary")


def search(query: str) -> str:
    """Search."""
    return query


class Team(Module):
    def __init__(self) -> None:
        super().__init__()
        self.draft = Predict("topic -> text")
        self.agents = [ReAct("text -> score: int", tools=[search])]


MODELS: dict[str, Callable[[], LanguageModel]] = {
    "plain": model,
    "router": lambda: Router(["openai/gpt-5", model()]),
    "fallback": lambda: LM("openai/gpt-5", fallbacks=[model()]),
    "fallback in a router": lambda: Router([LM("openai/gpt-5", fallbacks=[model()]), "openai/gpt-5-nano"]),
}
PROGRAMS: dict[str, Callable[[], Module]] = {"predictor": lambda: Predict("topic -> text"), "nested": Team}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_address_of_a_saved_model_is_refused_trusted_or_replaced(name: str, kind: str, tmp_path: Path) -> None:
    program, path, mine = PROGRAMS[name](), tmp_path / "p.json", FakeLM()
    program.set_lm(MODELS[kind]())
    with pytest.warns(UserWarning, match=REFUSED):
        program.save(path)
    loaded = PROGRAMS[name]()
    with pytest.raises(StateError, match=r"base_url='http://gpu-box\.example/v1'.*lm=LM.*Nothing was changed"):
        loaded.load(path)
    assert {predictor.lm for predictor in loaded.predictors()} == {None}
    loaded.load(path, allow_unsafe_lm_state=True)
    assert loaded.dump_state() == program.dump_state()
    loaded.load(path, lm=mine)
    assert {predictor.lm for predictor in loaded.predictors()} == {mine}


def test_given_model_replaces_only_models_that_the_file_has(tmp_path: Path) -> None:
    program, loaded, mine = Team(), Team(), FakeLM()
    program.draft.lm = model()
    with pytest.warns(UserWarning, match=REFUSED):
        program.save(tmp_path / "p.json")
    loaded.load(tmp_path / "p.json", lm=mine)
    assert [predictor.lm for predictor in loaded.predictors()] == [mine, *[None] * (len(loaded.predictors()) - 1)]


def test_address_in_the_file_of_a_whole_program_is_refused_trusted_or_replaced(tmp_path: Path) -> None:
    program, path, mine = ReAct("topic -> text", tools=[search]), tmp_path / "p.json", FakeLM()
    program.set_lm(model())
    with pytest.warns(UserWarning, match=REFUSED):
        save_program(program, path)
    with pytest.raises(StateError, match="gpu-box"):
        load_program(path, functions=[search])
    trusted: Any = load_program(path, functions=[search], allow_unsafe_lm_state=True)
    assert {predictor.lm.address for predictor in trusted.predictors()} == {ADDRESS}
    assert load_program(path, functions=[search], lm=mine).get_lm() is mine


def test_folder_of_a_whole_program_of_the_door_sends_nothing_to_another_host(tmp_path: Path) -> None:
    program, mine = dspy.Predict("topic -> text"), FakeLM()
    program.set_lm(dspy.LM("openai/gpt-5-mini", base_url=ADDRESS))
    with pytest.warns(UserWarning, match="base_url, which would get your key"):
        program.save(tmp_path, save_program=True)
    with pytest.warns(UserWarning, match="base_url, which would get your key"):
        loaded: Any = dspy.load(tmp_path)
    with pytest.raises(ConfigurationError, match="base_url"):
        loaded(topic="tea")
    trusted: Any = dspy.load(tmp_path, allow_unsafe_lm_state=True)
    assert trusted.get_lm().address == ADDRESS
    assert dspy.load(tmp_path, lm=mine).get_lm() is mine


def test_command_line_takes_the_given_model_in_place_of_an_address_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with pytest.warns(UserWarning, match=REFUSED):
        Predict("topic -> text", lm=model()).save(path)
    options = {"program": f"{__name__}:PREDICT", "load": str(path)}
    with pytest.raises(StateError, match="gpu-box"):
        programs.load_program(argparse.Namespace(**options, lm=None))
    assert programs.load_program(argparse.Namespace(**options, lm="offline/lexical")).lm.model == "offline/lexical"


PREDICT = Predict("topic -> text")
