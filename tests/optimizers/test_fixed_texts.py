"""Fixed passages: no candidate runs whose text lacks a passage that the student's text has, and writers know of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sigwire.core.request import Request
from sigwire.errors import ConfigurationError
from sigwire.lm.fake import FakeLM
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.errors import RuleError
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rule import Rule, measure
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.infer_rules import InferRules
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.simba import SIMBA
from sigwire.optimizers.task import Task
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from tests.optimizers.stub import HINT, Stub, exact, rows

PASSAGE = "Never name a patient."
TRAIN, VAL = rows(16), rows(8, 100)


class Guarded(Signature):
    """Name the colour. Never name a patient."""

    question: str = InputField()
    answer: str = OutputField()


class Steps(Module):
    """Two steps, of which the second one has the passage."""

    def __init__(self, lm: Any) -> None:
        super().__init__()
        self.name = Predict("question -> answer", lm=lm)
        self.check = Predict(Guarded, lm=lm)

    def forward(self, question: str) -> Any:
        self.name(question=question)
        return self.check(question=question)


def forgetful() -> FakeLM:
    """Return a writing model that keeps the passage in half of its texts."""

    def write(request: Request) -> Any:
        number = len(lm.requests)
        text = f"{HINT} Idea {number}. {PASSAGE if number % 2 else 'Never name a Patient.'}"
        return {"instruction": text, "rules": [text], "summary": "Colours.", "observations": "Colours."}

    def form(request: Request) -> Any:
        fields = write(request)
        asked = request.messages[-1].text.rpartition("Reply with")[2]
        return {name: value for name, value in fields.items() if f"{name} ##" in asked} or fields

    lm = FakeLM(form)
    return lm


MAKERS: Mapping[str, Callable[..., Optimizer]] = {
    "COPRO": lambda **options: COPRO(forgetful(), exact, breadth=4, depth=2, **options),
    "GEPA": lambda **options: GEPA(exact, max_metric_calls=150, reflection_lm=forgetful(), **options),
    "SIMBA": lambda **options: SIMBA(
        metric=exact, bsize=8, num_candidates=3, max_steps=2, prompt_model=forgetful(), **options
    ),
    "InferRules": lambda **options: InferRules(
        metric=exact, prompt_model=forgetful(), num_candidates=2, max_labeled_demos=2, **options
    ),
    "MIPROv2": lambda **options: MIPROv2(
        exact, prompt_model=forgetful(), max_labeled_demos=0, max_bootstrapped_demos=0, **options
    ),
}


def compiled(optimizer: Optimizer, program: Any) -> OptimizationReport:
    return OptimizationReport.of(optimizer.compile(program, trainset=TRAIN, valset=VAL))


@pytest.mark.parametrize("name", MAKERS)
def test_writer_reads_a_fixed_passage_and_no_candidate_without_it_runs(name: str) -> None:
    lm = Stub()
    optimizer = MAKERS[name](fixed_texts=(PASSAGE,))
    found = compiled(optimizer, Predict(Guarded, lm=lm))
    assert len(lm.requests) > len(VAL)
    assert all(PASSAGE in request.messages[0].text for request in lm.requests)
    if name not in ("SIMBA", "InferRules"):  # these add rules to the text
        assert any(PASSAGE in refused.why for refused in found.refused)
        assert any(PASSAGE in trial.candidate.texts.get("self.instructions", "") for trial in found.trials)
    asked = ["\n".join(message.text for message in request.messages) for request in optimizer.prompt_model.requests]
    about = [text for text in asked if "self: inputs" in text]
    assert about
    assert all(f"<fixed>\n{PASSAGE}\n</fixed>" in text for text in about)


def test_text_without_the_passage_may_change_freely() -> None:
    optimizer = COPRO(FakeLM(lambda request: {"instruction": HINT}), exact, breadth=3, depth=1, fixed_texts=[PASSAGE])
    found = compiled(optimizer, Steps(Stub()))
    slots = {slot for trial in found.trials for slot in trial.candidate.texts}
    assert slots == {"name.instructions"}
    assert {refused.slot for refused in found.refused if PASSAGE in refused.why} == {"check.instructions"}
    asked = ["\n".join(message.text for message in request.messages) for request in optimizer.prompt_model.requests]
    assert not any("<fixed>" in text for text in asked if "name: inputs" in text)


def test_search_without_fixed_passages_asks_what_it_asked() -> None:
    optimizer = MAKERS["GEPA"]()
    compiled(optimizer, Predict(Guarded, lm=Stub()))
    asked = ["\n".join(message.text for message in request.messages) for request in optimizer.prompt_model.requests]
    assert asked
    assert not any("fixed" in text for text in asked)


def test_passage_that_no_text_has_is_an_error_before_any_call() -> None:
    lm = Stub()
    with pytest.raises(ConfigurationError, match="No text of the program has the fixed passage"):
        compiled(MAKERS["COPRO"](fixed_texts=("Never name a doctor.",)), Predict(Guarded, lm=lm))
    assert lm.requests == []
    for given in (PASSAGE, [""], [3]):
        with pytest.raises(ConfigurationError, match="fixed_texts is a list of passages"):
            MAKERS["COPRO"](fixed_texts=given)


def test_rule_of_the_user_that_ignores_a_fixed_passage_is_stopped_before_the_run() -> None:
    class Blind(Optimizer):
        def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
            assert task.lacking("self.instructions", HINT) == PASSAGE
            candidate = Candidate({"self.instructions": HINT})
            yield from measure(candidate, task.val)
            return candidate

    lm = Stub()
    with pytest.raises(RuleError, match=r"self\.instructions lacks the fixed passage 'Never name a patient\.'"):
        compiled(Blind(exact, fixed_texts=(PASSAGE,)), Predict(Guarded, lm=lm))
    assert all(PASSAGE in request.messages[0].text for request in lm.requests)
