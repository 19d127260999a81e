"""The place of an error in an evaluation, and a tool's bug end to end: what the model sees, and what the author sees."""

from __future__ import annotations

from typing import Any

import pytest

from sigwire import (
    LM,
    AdapterParseError,
    CallReport,
    Evaluate,
    Example,
    FakeLM,
    Module,
    Predict,
    ReAct,
    ToolCall,
    ToolWarning,
)  # fmt: skip
from sigwire.errors import Where
from sigwire.testing import FakeProvider
from tests.modules.preview.test_first_request import MODELS


class Two(Module):
    def __init__(self, lm: Any) -> None:
        super().__init__()
        self.first = Predict("n -> m", lm=lm)
        self.second = Predict("m -> k: int", lm=lm)

    def forward(self, n: str) -> Any:
        return self.second(m=self.first(n=n).m)


def test_parse_error_in_an_evaluation_names_path_model_and_example() -> None:
    lm = FakeLM(
        lambda request: {"m": "1"} if "`k`" not in request.messages[0].text else "no number", model="fake/words"
    )
    devset = [Example(id="odd-7", n="1", k=1).with_inputs("n")]
    evaluate = Evaluate(devset=devset, metric=lambda example, pred: True, errors="raise", display_progress=False)
    with pytest.raises(AdapterParseError) as caught:
        evaluate(Two(lm))
    assert caught.value.where == Where("second", "Predict 'm -> k'", model="fake/words", example="odd-7")
    assert caught.value.__notes__ == ["at second (Predict 'm -> k') · model fake/words · example odd-7"]


def rate(currency: str) -> float:
    """The rate of a currency."""
    return {"EUR": 1.0}[currency]


@pytest.mark.filterwarnings("always::sigwire.errors.ToolWarning")
@pytest.mark.parametrize("wire", MODELS)
def test_bug_of_a_tool_shows_no_frame_path_or_line_to_the_model(wire: str) -> None:
    model, own = MODELS[wire]
    script = [ToolCall(f"call_{number}", "rate", {"currency": "USD"}) for number in range(2)]
    with FakeProvider([*script, ToolCall("call_3", "submit", {"answer": "unknown"})]) as provider:
        agent = ReAct("question -> answer", tools=[rate])
        agent.set_lm(LM(model, base_url=provider.url(wire), api_key="any", wire=own, cache=False))
        with pytest.warns(ToolWarning) as caught:
            result = agent(question="How much is a dollar?")
        sent = " ".join(str(request.body) for request in provider.requests)
    assert "KeyError" in sent
    assert [word for word in ("Traceback", ".py", ", line ", "rate.__", __file__) if word in sent] == []
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, rate.__code__.co_firstlineno + 2)]
    warnings = CallReport.of(result).warnings
    assert any(each.feature == "tool" and "KeyError('USD') at test_places.py:" in each.detail for each in warnings)
