"""Errors of evidence, rules and cascades: what happened, where, what to do next; no secret, no text of a row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from sigwire.adapters.two_step import TwoStepAdapter
from sigwire.core.evidence import DecisionRule
from sigwire.errors import SigwireError
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.router import Router
from sigwire.modules.agents.react import ReAct
from sigwire.modules.cascade import Cascade
from sigwire.modules.predict import Predict
from sigwire.settings import context
from sigwire.signatures.criteria import Criteria
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import make_signature

SECRET, ROW, OTHER = "sk-canary", "the text of a row", "the text of another row"


def model(name: str = "groq/llama-3.3-70b-versatile", **more: Any) -> LM:
    return LM(name, api_key=SECRET, base_url=f"http://user:{SECRET}@127.0.0.1:9", num_retries=0, **more)


def predict(signature: str = "ticket -> urgent: bool", **more: Any) -> Predict[..., Any]:
    text = f"[[ ## urgent ## ]]\ntrue\n\n[[ ## evidence_ ## ]]\n{json.dumps({'urgent': 0.62})}\n\n[[ ## completed ## ]]"
    found: Predict[..., Any] = Predict(signature, **{"lm": FakeLM([text] * 9), **more})
    return found


def ruled(**rule: Any) -> Predict[..., Any]:
    return predict(evidence="stated", decisions={"urgent": DecisionRule(**rule)})


def levels(*given: Any, kind: Any = float) -> Any:
    return make_signature({"ticket": (str, InputField()), "harm": (Annotated[kind, Criteria(*given)], OutputField())})


DECIDER = {"wire": "decisions"}
CALLS: dict[str, Callable[[str], object]] = {
    "source of another name": lambda text: predict(evidence="logprobs"),
    "source of another name in a call": lambda text: predict()(ticket=text, config={"evidence": "no"}),
    "model without log probabilities": lambda text: predict(evidence="logprob", lm=model())(ticket=text),
    "model that does not measure": lambda text: predict(evidence="measured", lm=model())(ticket=text),
    "decider asked for texts": lambda text: predict(evidence="stated", lm=model("openai/m", **DECIDER))(ticket=text),
    "fallback without log probabilities": lambda text: predict(
        evidence="logprob", lm=LM("deepseek/deepseek-chat", api_key=SECRET, fallbacks=[model()])
    )(ticket=text),
    "router to a decider asked for texts": lambda text: predict(
        evidence="stated", lm=Router([model("openai/m", **DECIDER), model()])
    )(ticket=text),
    "layout of plain text": lambda text: _in_two_steps(text),
    "one sample": lambda text: predict(evidence="sampled", n=1)(ticket=text),
    "agent": lambda text: ReAct("ticket -> urgent: bool", tools=[], evidence="auto"),
    "rule of no output": lambda text: predict(evidence="stated", decisions={"urgnt": DecisionRule()})(ticket=text),
    "rule of another kind": lambda text: ruled(weights={"true": 2.0})(ticket=text),
    "rule that is a number": lambda text: predict(evidence="stated", decisions={"urgent": 0.8})(ticket=text),
    "rules without paths": lambda text: predict(evidence="stated", decisions=[DecisionRule()]),
    "rules that were set to nothing": lambda text: _without_rules(text),
    "rules of a call": lambda text: predict()(ticket=text, config={"decisions": {"urgent": DecisionRule()}}),
    "rule without evidence": lambda text: predict(decisions={"urgent": DecisionRule(least=0.9)})(ticket=text),
    "rule out of range": lambda text: DecisionRule(least=1.5),
    "unsure output": lambda text: ruled(least=0.9)(ticket=text),
    "state of a rule": lambda text: predict().load_state(
        {**predict(lm=None).dump_state(), "decisions": {"urgent": {"least": 7}}}
    ),
    "unsure cascade": lambda text: Cascade([predict(evidence="stated")], least=0.9)(ticket=text),
    "stage without evidence": lambda text: Cascade([predict()], least=0.9)(ticket=text),
    "person without a journal": lambda text: Cascade([predict(evidence="stated")], least=0.9, person=True)(ticket=text),
    "person that decides nothing": lambda text: Cascade(
        [predict(evidence="stated")], least=0.9, person=lambda call: False
    )(ticket=text),
    "edit of a person": lambda text: Cascade(
        [predict(evidence="stated")], least=0.9, person=lambda call: {"urgent": "soon"}
    )(ticket=text),
    "value that an output lacks": lambda text: predict(evidence="stated")(ticket=text).evidence["urgent"].p("soon"),
    "mean of a bool": lambda text: predict(evidence="stated")(ticket=text).evidence["urgent"].expected,
    "one level": lambda text: levels("none"),
    "equal levels": lambda text: levels("none", "none"),
    "levels of a text": lambda text: levels("none", "some", kind=str),
    "criterion of no value": lambda text: levels({"soon": "now"}, kind=bool),
}


def _in_two_steps(text: str) -> object:
    with context(adapter=TwoStepAdapter(FakeLM())):
        return predict(evidence="stated")(ticket=text)


def _without_rules(text: str) -> object:
    found = predict(evidence="stated")
    found.decisions = None  # type: ignore[assignment]
    return found(ticket=text)


@pytest.mark.parametrize("case", CALLS)
def test_error_names_what_where_and_what_next_without_secrets_and_rows(case: str) -> None:
    with pytest.raises(SigwireError):  # an error that holds the other row would show it later
        CALLS[case](OTHER)
    with pytest.raises(SigwireError) as caught:
        CALLS[case](ROW)
    said = str(caught.value)
    shown = [said, repr(caught.value), *map(str, getattr(caught.value, "__notes__", ()))]
    assert re.match(r"[^()].*\([^()]+( [^()]*)*\)[.:]? \S.*", said, re.DOTALL), said
    assert [text for text in (SECRET, ROW, OTHER) if any(text in each for each in shown)] == []
