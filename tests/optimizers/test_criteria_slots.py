"""Criteria of outputs are texts that searches tune."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest

from sigwire.errors import ConfigurationError
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.optimizers.candidate import Candidate, applied, slots
from sigwire.signatures.criteria import Criteria
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature


class Triage(Signature):
    """Sort."""

    text: str = InputField()
    urgent: Annotated[bool, Criteria({True: "service is down"})] = OutputField()
    tags: Annotated[list[Literal["spam", "bill"]], Criteria({"bill": "money"})] = OutputField()


def test_candidates_change_criteria_in_the_family_of_fields() -> None:
    student = Predict(Triage, lm=FakeLM([{"urgent": True, "tags": []}]))
    found = {slot: text for slot, text in slots(student, tune=["fields"]).items() if ".criteria." in slot}
    assert found == {"self.fields.urgent.criteria.true": "service is down", "self.fields.tags.criteria.bill": "money"}
    program = applied(student, Candidate({"self.fields.urgent.criteria.true": "people wait"}))
    program(text="x")
    system = student.lm.requests[0].messages[0].text
    assert "// true: people wait" in system
    assert "// bill: money" in system
    assert "criteria" in str(student.dump_state())
    for slot in ("self.fields.urgent.criteria.odd", "self.fields.odd.criteria.true"):
        with pytest.raises(ConfigurationError, match="slot"):
            applied(student, Candidate({slot: "x"}))
