"""Outputs whose class holds the evidence: what is asked, what the value is made of, and where such a class is no question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import BaseModel

from sigwire.adapters.json import JSONAdapter
from sigwire.core.evidence import DecisionRule, Evidence
from sigwire.core.report import CallReport
from sigwire.errors import Unsure
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.settings import context
from sigwire.signatures.criteria import Criteria, deciding_outputs
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from tests.modules.deciding import choice, deciding_model


@dataclass(frozen=True)
class Sure:
    """A bool with its probability."""

    decided_type: ClassVar[Any] = Annotated[bool, Criteria({True: "someone is hurt"})]
    value: bool
    p: float

    @classmethod
    def of_evidence(cls, evidence: Evidence, rule: DecisionRule) -> Sure:
        return cls(value=evidence.value, p=evidence.p(True))


class Grave(Signature):
    ticket: str = InputField()
    grave: Sure = OutputField()
    calm: Sure | None = OutputField()
    shown: Annotated[bool, Sure] = OutputField()


class Parts(BaseModel):
    grave: Sure


def blocking(predict: Any) -> Any:
    return predict(ticket="row 1")


def awaited(predict: Any) -> Any:
    return asyncio.run(predict.acall(ticket="row 1"))


def streamed(predict: Any) -> Any:
    return [*predict.stream(ticket="row 1")][-1].value


@pytest.mark.parametrize("ask", [blocking, awaited, streamed])
def test_value_is_made_of_the_evidence(ask: Callable[[Any], Any]) -> None:
    shares = {True: 0.75, False: 0.25}
    predict = Predict(
        Grave, lm=deciding_model(lambda row: choice(grave=shares, calm=shares, shown=shares)), evidence="auto"
    )
    predict.decisions = {"grave": DecisionRule(threshold=0.8), "calm": DecisionRule(least=0.9)}
    found = ask(predict)
    assert (found.grave, found.calm, found.shown) == (Sure(False, 0.75), None, True)
    assert CallReport.of(found).evidence["grave"].value is False  # type: ignore[index]


def test_output_that_cannot_abstain_is_unsure_with_a_partial_value() -> None:
    predict = Predict(
        Grave, lm=deciding_model(lambda row: choice(grave={True: 0.75, False: 0.25}, calm=True, shown=True))
    )
    predict.evidence, predict.decisions = "measured", {"grave": DecisionRule(least=0.9)}
    with pytest.raises(Unsure) as caught:
        predict(ticket="row 1")
    assert caught.value.partial.grave == Sure(True, 0.75)


def test_model_of_texts_is_asked_for_the_type_and_its_criteria() -> None:
    lm = FakeLM(['{"grave": true, "calm": null, "shown": false, "evidence_": {"grave": 0.75}}'])
    predict = Predict(Grave, lm=lm, evidence="stated")
    with context(adapter=JSONAdapter()):
        found = predict(ticket="row 1")
    assert found.grave == Sure(True, 0.75)
    assert lm.requests[0].messages[0].text.count("someone is hurt") == 2


def test_class_as_metadata_gives_its_criteria_and_inside_of_a_model_it_is_no_question() -> None:
    outputs = {each.path: each for each in deciding_outputs(Grave.spec)}
    assert [(each.kind, each.made_by) for each in outputs.values()] == [
        ("bool", Sure),
        ("choice", Sure),
        ("bool", None),
    ]
    assert {each.criteria for each in outputs.values()} == {Criteria({True: "someone is hurt"})}

    class Nested(Signature):
        ticket: str = InputField()
        parts: Parts = OutputField()

    assert deciding_outputs(Nested.spec) == ()
