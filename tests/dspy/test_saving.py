"""Reading files that DSPy saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sigwire.dspy.modules import Module, Predict, ReAct
from sigwire.dspy.saving import name_fields
from sigwire.errors import StateError
from sigwire.modules import predict as core
from sigwire.signatures.signature import Signature

QA = Signature("question, k: int -> answer, score: float")


def add(a: int, b: int) -> int:
    return a + b


def state_of(count: int) -> dict[str, Any]:
    return {"instructions": "Old.", "fields": [{"prefix": f"P{n}:", "description": f"d{n}"} for n in range(count)]}


def test_an_agent_saved_by_dspy_loads_its_extraction_and_warns_of_its_loop() -> None:
    def part(*names: str) -> dict[str, Any]:
        fields = [{"prefix": f"{name}:", "description": f"${{{name}}}"} for name in names]
        return {
            "traces": [],
            "train": [],
            "demos": [],
            "signature": {"instructions": "Old.", "fields": fields},
            "lm": None,
        }

    loop = part("question", "trajectory", "next_thought", "next_tool_name", "next_tool_args")
    agent = ReAct("question -> answer", tools=[add])
    instructions = agent.react.signature.instructions
    with pytest.warns(UserWarning, match="next_tool_name"):
        agent.load_state({"react": loop, "extract.predict": part("question", "trajectory", "reasoning", "answer")})
    assert agent.extract.predict.signature.instructions == "Old."
    assert agent.react.signature.instructions == instructions


def test_fields_without_names_are_matched_by_position(tmp_path: Path) -> None:
    class Program(Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = Predict(QA)

    program, path = Program(), tmp_path / "program.json"
    state = {"traces": [], "train": [], "demos": [{"question": "q"}], "signature": state_of(4), "lm": None}
    path.write_text(json.dumps({"ask": state, "metadata": {"dependency_versions": {"dspy": "3.0.4"}}}))
    program.load(path)
    loaded = program.ask.signature
    assert loaded.instructions == "Old."
    assert [(spec.prefix, spec.description) for spec in loaded.spec.fields] == [(f"P{n}:", f"d{n}") for n in range(4)]
    assert program.ask.demos == [{"question": "q"}]


def test_a_state_written_by_dspy_loads_into_a_bare_predictor() -> None:
    fields = [{"prefix": "Question:", "description": "${question}"}, {"prefix": "Answer:", "description": "short"}]
    state = {
        "traces": [],
        "train": [],
        "demos": [],
        "signature": {"instructions": "Old.", "fields": fields},
        "lm": None,
    }
    predict = Predict("question -> answer")
    predict.load_state({**state, "metadata": {"dependency_versions": {"dspy": "3.0.4"}}})
    assert predict.signature.instructions == "Old."
    assert predict.signature.spec.outputs[0].description == "short"


def test_a_state_with_another_number_of_fields_is_refused_and_changes_nothing() -> None:
    predict = Predict(QA)
    with pytest.raises(StateError, match=r"1 fields without names, and .* has 4"):
        predict.load_state({"signature": state_of(1)})
    assert predict.signature is QA


@pytest.mark.parametrize("fields", [["text"], "text", [{"name": "question", "prefix": "Q:"}]])
def test_a_state_of_the_core_and_one_of_wrong_types_are_left_to_the_core(fields: Any) -> None:
    assert name_fields(QA, {"fields": fields}) == {"fields": fields}


def test_the_core_refuses_fields_without_names_and_names_the_door() -> None:
    with pytest.raises(StateError, match=r"without names .*sigwire\.dspy"):
        core.Predict(QA).load_state({"signature": state_of(4)})
