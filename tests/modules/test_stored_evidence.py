"""Evidence of a run whose process is killed: the journal gives it again, and no model is asked twice."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.evidence import DecisionRule
from sigwire.core.example import Prediction
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.errors import Unsure
from sigwire.journal.journal import Journal
from sigwire.lm.fake import FakeLM
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from tests.modules.deciding import in_a_process
from tests.modules.test_deciding import MEASURED, PATHS, STATED, WRITTEN, Triage, tokens_of

RULES = {"urgent": DecisionRule(threshold=0.8), "mood": DecisionRule(weights={"sad": 3})}


class Desk(Module):
    """Sorts a ticket, then asks for a reply, sure or not."""

    def __init__(self, source: Any, sort: FakeLM, reply: FakeLM, rules: dict[str, DecisionRule]) -> None:
        super().__init__()
        self.sort: Any = Predict(Triage, lm=sort, evidence=source, decisions=rules)
        self.reply: Any = Predict("mood -> reply", lm=reply)

    def forward(self, text: str) -> Prediction:
        try:
            found: Prediction = self.sort(text=text)
        finally:
            self.reply(mood="sad")
        return found


def answers_of(source: str, note: Callable[[], None]) -> FakeLM:
    """Return a model that gives its evidence by one source and notes each request."""

    def answer(request: Request) -> Any:
        note()
        if source == "stated":
            return {**WRITTEN, "evidence_": STATED}
        text = str(ChatAdapter().plan(Triage).layout.write(WRITTEN))
        if source == "sampled":
            return [{**WRITTEN, "urgent": number % 2 == 0} for number in range(5)]
        return Choice(text, evidence=MEASURED) if source == "measured" else Choice(text, logprobs=tokens_of(text))

    return FakeLM(answer, capabilities=Capabilities(decides="also" if source == "measured" else "no"))


@pytest.mark.parametrize("source", ["measured", "logprob", "sampled", "stated"])
@pytest.mark.parametrize("rules", [RULES, {"urgent": DecisionRule(least=0.999)}], ids=["decided", "unsure"])
def test_resumed_run_has_the_evidence_of_the_run_that_was_killed(
    source: str, rules: dict[str, DecisionRule], tmp_path: Path
) -> None:
    asked, kept = tmp_path / "asked", tmp_path / "kept"

    def life(kill: bool) -> None:
        def reply(request: Request) -> Any:
            if kill:
                os.kill(os.getpid(), signal.SIGKILL)
            return {"reply": "Soon."}

        def note() -> None:
            with asked.open("a") as file:
                file.write("x")

        desk = Desk(source, answers_of(source, note), FakeLM(reply), rules)
        with Journal(tmp_path / "runs.sqlite3") as journal:
            try:
                found: Prediction | Unsure = journal.run(desk, run="one", text="x")
            except Unsure as error:
                found = error
        evidence = found.evidence
        kept.write_text(json.dumps({path: each.to_json() for path, each in evidence.items()}))

    assert [in_a_process(partial(life, kill)) for kill in (True, False, False)] == [signal.SIGKILL, 0, 0]
    assert asked.read_text() == "x"
    lm = answers_of(source, lambda: None)
    try:
        direct: Any = Predict(Triage, lm=lm, evidence=source, decisions=rules)(text="x")  # type: ignore[arg-type]
    except Unsure as error:
        direct = error
    assert [*direct.evidence] == PATHS
    assert json.loads(kept.read_text()) == {path: each.to_json() for path, each in direct.evidence.items()}
