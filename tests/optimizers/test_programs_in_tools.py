"""Optimizers tune what tools hold: a planted instruction or demo of an inner predictor is found; the trace has its calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sigwire.core.example import Example
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.predict import Predict
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.infer_rules import InferRules
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.simba import SIMBA
from sigwire.signatures.signature import make_signature
from tests.modules.tree.holders import Team
from tests.optimizers.writer import Writer

INNER = "tools['ask'].sub"


def respond(request: Request, planted: str = "SHOUT", is_sampled: bool = False) -> Any:
    """The agent passes the task on and submits the fact. It is GOOD with the planted text, and of lucky topics.

    ``is_sampled``: of lucky topics only at a temperature.
    """
    last = request.messages[-1]
    if not request.tools:
        seen = "\n".join(message.text for message in request.messages)
        is_lucky = "lucky" in last.text and (not is_sampled or bool(request.options.get("temperature")))
        return {"fact": "GOOD" if planted in seen or is_lucky else "bad"}
    if last.role == "tool":
        return ToolCall("s", "submit", {"text": last.tool_results[0].text})
    return ToolCall("a", "ask", {"topic": last.text.partition("task ## ]]")[2].split("[[")[0].strip()})


def student(**options: Any) -> Any:
    sub: Any = Predict(make_signature("topic -> fact", "Say a fact."))

    def ask(topic: str) -> str:
        """Ask for a fact."""
        return str(sub(topic=topic).fact)

    agent = ReAct("task -> text", tools=[ask])
    agent.set_lm(FakeLM(partial(respond, **options)))
    return agent


def rows(*topics: str) -> list[Example]:
    return [Example(task=topic, text="GOOD").with_inputs("task") for topic in topics]


PLAIN = rows(*(f"topic {number}" for number in range(12)))
TRACES = list[Any]()


def exact(example: Any, prediction: Any, trace: Any = None) -> bool:
    if trace is not None:
        TRACES.append([(part.signature.signature, inputs) for part, inputs, _ in trace])
    return bool(example.text == prediction.text)


FINDERS: dict[str, Callable[[], Optimizer]] = {
    "COPRO": lambda: COPRO(FakeLM(lambda request: {"instruction": "SHOUT."}), exact, breadth=2, depth=1),
    "GEPA": lambda: GEPA(exact, max_metric_calls=120, reflection_lm=Writer(("SHOUT.",))),
    "SIMBA": lambda: SIMBA(
        metric=exact, bsize=6, num_candidates=3, max_steps=2, max_demos=0, prompt_model=Writer(("SHOUT.",))
    ),
    "MIPROv2": lambda: MIPROv2(
        exact, prompt_model=Writer(("SHOUT.",)), auto=None, num_candidates=2, max_bootstrapped_demos=0,
        max_labeled_demos=0,
    ),
    "InferRules": lambda: InferRules(
        metric=exact, prompt_model=Writer(("SHOUT.",)), num_candidates=1, max_labeled_demos=0
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINDERS)
def test_planted_instruction_of_an_inner_predictor_is_found(name: str) -> None:
    program = student()
    options = {"num_trials": 8} if name == "MIPROv2" else {}
    train = [*PLAIN, *rows("lucky 1", "lucky 2")] if name == "InferRules" else PLAIN
    best: Any = FINDERS[name]().compile(program, trainset=train, valset=PLAIN, **options)
    assert "SHOUT." in dict(best.named_predictors())[INNER].signature.instructions
    assert best(task="topic").text == "GOOD"
    assert program(task="topic").text == "bad"
    assert best.optimization.warnings == () or not any("copies share" in each for each in best.optimization.warnings)


def test_copro_finds_the_instruction_of_a_predictor_whose_method_is_the_tool() -> None:
    team = Team()
    team.set_lm(FakeLM(respond))
    copro = COPRO(FakeLM(lambda request: {"instruction": "SHOUT."}), exact, breadth=2, depth=1)
    best: Any = copro.compile(team, trainset=PLAIN, valset=PLAIN)
    assert best.inner.signature.instructions == "SHOUT."
    assert [each(task="t").text for each in (best, team)] == ["GOOD", "bad"]


@pytest.mark.parametrize("name", ["BootstrapFewShot", "SIMBA"])
def test_demo_of_an_inner_predictor_is_found_and_the_trace_has_its_call(name: str) -> None:
    optimizers: dict[str, Callable[[], Optimizer]] = {
        "BootstrapFewShot": lambda: BootstrapFewShot(exact, max_bootstrapped_demos=2, max_labeled_demos=0),
        "SIMBA": lambda: SIMBA(
            metric=exact, bsize=6, num_candidates=3, max_steps=2, max_demos=2, prompt_model=Writer(("Be brief.",))
        ),
    }
    program = student(planted="GOOD", is_sampled=name == "SIMBA")
    TRACES.clear()
    best: Any = optimizers[name]().compile(
        program, trainset=[*rows("lucky 1", "lucky 2", "lucky 3", "lucky 4"), *PLAIN]
    )
    demos = dict(best.named_predictors())[INNER].demos
    assert demos
    assert all("lucky" in demo.topic and demo.fact == "GOOD" for demo in demos)
    assert [each(task="topic").text for each in (best, program)] == ["GOOD", "bad"]
    if name == "BootstrapFewShot":
        assert TRACES
        inner = [[inputs["topic"] for signature, inputs in trace if signature == "topic -> fact"] for trace in TRACES]
        assert all(len(topics) == 1 for topics in inner)


def test_labels_of_the_inner_outputs_are_demos() -> None:
    labelled = [Example(topic="a", fact="GOOD", task="t", text="GOOD").with_inputs("task")]
    best: Any = LabeledFewShot(1).compile(student(), trainset=labelled)
    assert [demo.fact for demo in dict(best.named_predictors())[INNER].demos] == ["GOOD"]


@pytest.mark.parametrize("name", ["GEPA", "SIMBA"])
def test_reflection_on_an_inner_predictor_shows_the_outer_call(name: str) -> None:
    writer = Writer(("Be brief.",))
    optimizers: dict[str, Callable[[], Optimizer]] = {
        "GEPA": lambda: GEPA(exact, max_metric_calls=60, reflection_lm=writer),
        "SIMBA": lambda: SIMBA(metric=exact, bsize=6, num_candidates=3, max_steps=2, max_demos=0, prompt_model=writer),
    }
    optimizers[name]().compile(student(), trainset=[*PLAIN, *rows("lucky 1", "lucky 2")], valset=PLAIN)
    shown = [text for text in writer.asked if "input topic: topic" in text]
    assert shown
    assert all('called by the tool call: ask(topic="topic ' in text for text in shown)
    assert not any("called by" in text for text in writer.asked if "input topic: " not in text)


def test_modules_that_candidates_share_are_named_once() -> None:
    agent = ReAct("task -> text", tools=[ask_by_name])
    agent.set_lm(FakeLM(lambda request: ToolCall("s", "submit", {"text": "bad"})))
    copro = COPRO(FakeLM(lambda request: {"instruction": "SHOUT."}), exact, breadth=2, depth=1)
    best: Any = copro.compile(agent, trainset=PLAIN, valset=PLAIN)
    text = (
        "the tool 'ask_by_name' uses the module 'SUB' by a global name; copies share it. Pass Tool(sub) or a closure."
    )
    assert best.optimization.warnings.count(text) == 1


SUB: Any = Predict("topic -> fact")


def ask_by_name(topic: str) -> str:
    return str(SUB(topic=topic).fact)
