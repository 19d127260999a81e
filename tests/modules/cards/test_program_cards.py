"""Reprs and cards of predictors and programs."""

from __future__ import annotations

import io
import re
from typing import Annotated

from pydantic import BaseModel

import sigwire
from sigwire.core.example import Example
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.show.card import HasCard


def text_of(shown: HasCard) -> str:
    file = io.StringIO()
    shown.show(file, width=80)
    return file.getvalue()


def find(order: int) -> str:
    return str(order)


class Support(Module):
    def __init__(self) -> None:
        super().__init__()
        self.triage = Predict("message -> topic")
        self.agent = ReAct("message -> reply", tools=[find])
        self.again = [self.triage]

    def forward(self, message: str) -> str:
        return message


def test_repr_of_a_predictor_has_demos_and_options() -> None:
    predict = Predict("message -> topic, order", temperature=0.2)
    assert repr(predict) == "Predict('message -> topic, order', temperature=0.2)"
    predict.demos = [Example(message="a", topic="b")] * 4
    assert repr(predict) == "Predict('message -> topic, order', demos=4, temperature=0.2)"


def test_repr_of_a_program_has_a_line_for_each_predictor() -> None:
    assert repr(Support()).splitlines() == [
        "triage = Predict('message -> topic')",
        "agent.react = Predict('message, history, tools -> tool_calls')",
        "agent.extract.predict = Predict('message, trajectory -> reasoning, reply')",
    ]


def test_card_of_a_program_is_a_table_with_shared_parts_once() -> None:
    program = Support()
    program.agent._compiled = True
    lines = text_of(program).splitlines()
    assert lines[0] == "Support  1 predictor"
    assert lines[1] == "  model  of the settings"
    cells = [line.split() for line in lines[2:]]
    assert cells[0] == ["part", "class", "signature", "tools", "notes"]
    assert cells[1] == ["self", "Support"]
    assert cells[2] == ["triage", "Predict", "message", "->", "topic"]
    assert cells[3][:2] == ["agent", "ReAct"]
    assert cells[3][-1] == "frozen"
    assert cells[-1] == ["again[0]", "=", "triage"]


def test_card_of_a_program_names_models_that_differ() -> None:
    program = Support()
    program.triage.lm = FakeLM()
    text = text_of(program)
    assert "fake" in text
    assert "of the settings" in text


def test_card_of_a_predictor_folds_signature_and_demos() -> None:
    predict = Predict("message -> topic", max_reasks=2, stop=["x"])
    predict.demos = [{"message": "Where is my parcel?", "topic": "delivery"}]
    assert text_of(predict).splitlines() == [
        "Predict  message -> topic",
        "  model    of the settings",
        "  options  stop=['x']",
        "  re-asks  2",
        "  demos    1",
    ]
    assert "Where is my parcel?" in predict._repr_html_()


def test_class_of_the_user_may_have_a_card_of_its_own() -> None:
    class Small(sigwire.Prediction):
        def _card(self) -> sigwire.show.card.Card:
            return sigwire.show.card.Card("Small")

    assert text_of(Small(a=1)) == "Small\n"


def test_card_of_a_signature_has_the_criteria_of_its_outputs() -> None:
    class Part(BaseModel):
        loud: Annotated[bool, sigwire.Criteria({True: "shouts"})] | None

    class Triage(sigwire.Signature):
        """Sort a ticket."""

        ticket: str = sigwire.InputField()
        urgent: Annotated[bool, sigwire.Criteria({True: "service is down"})] = sigwire.OutputField()
        harm: Annotated[int, sigwire.Criteria("none", ("severe", "someone is hurt"))] = sigwire.OutputField()
        part: Part = sigwire.OutputField()

    text = text_of(Triage)
    assert re.search(r"urgent criteria +true: service is down", text)
    assert re.search(r"harm criteria +none\n +severe: someone is hurt", text)
    assert re.search(r"part.loud criteria +true: shouts", text)
    changed = Triage.load_state({"criteria": {"part.loud": {"true": "many marks"}, "harm": {"none": "well"}}})
    assert re.search(r"part.loud criteria +true: many marks", text_of(changed))
    assert re.search(r"harm criteria +none: well", text_of(changed))
    assert "part.loud: true: many marks" in repr(changed.spec.by_name["part"].metadata)
