"""An input may have any name of a field, also that of the first parameter of methods."""

from __future__ import annotations

import pytest

from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.predict import Predict

SIGNATURE = "self -> answer"
ANSWER = {"answer": "x", "reasoning": "r"}
MODULES = {
    "Predict": lambda: Predict(SIGNATURE),
    "ChainOfThought": lambda: ChainOfThought(SIGNATURE),
    "ReAct": lambda: ReAct(SIGNATURE, tools=[]),
}  # fmt: skip


@pytest.mark.parametrize("how", ["blocking", "awaited", "streamed", "awaited stream"])
@pytest.mark.parametrize("module", MODULES)
async def test_input_is_named_self(module: str, how: str) -> None:
    program, lm = MODULES[module](), FakeLM([ANSWER] * 4)
    program.set_lm(lm)
    match how:
        case "blocking":
            answer = program(self="v").answer
        case "awaited":
            answer = (await program.acall(self="v")).answer
        case "streamed":
            answer = list(program.stream(self="v"))[-1].value.answer
        case _:
            answer = [event async for event in program.astream(self="v")][-1].value.answer
    assert answer == "x"


def test_preview_takes_an_input_named_self() -> None:
    assert "[[ ## self ## ]]" in str(Predict(SIGNATURE, lm=FakeLM([ANSWER])).preview(self="v").request.messages)
