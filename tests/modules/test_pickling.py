"""Programs in other processes: the standard pickle and cloudpickle, copies, spawned processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.core.tools.calls import ToolCall
from sigwire.signatures.signature import SignatureMeta


class Rate(sigwire.Signature):
    """Rate the review."""

    review: str = sigwire.InputField()
    stars: int = sigwire.OutputField(desc="how good", ge=1, le=5)

    def label(self) -> str:
        return f"{self.stars} stars"


def double(n: int) -> int:
    return 2 * n


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def cloudpickled(value: Any) -> Any:
    cloudpickle = pytest.importorskip("cloudpickle")
    return pickle.loads(cloudpickle.dumps(value))


TRAVEL = pytest.mark.parametrize("travel", [pickled, cloudpickled, copy.copy, copy.deepcopy])

SIGNATURES: list[Any] = [
    sigwire.Signature("question -> answer"),
    sigwire.Signature("question, k: int -> answers: list[str], kind: Literal['a', 'b'], best: str | None", "Be brief."),
    sigwire.Signature(
        "history: History, tools: list[Tool] -> calls: ToolCalls, thought: Reasoning, code: Code['java']"
    ),
    sigwire.make_signature(
        {"text": sigwire.InputField(), "n": (int, sigwire.OutputField(ge=3, desc="how many"))}, "Count."
    ),
    Rate,
    Rate.with_instructions("Be kind."),
    Rate.append("why", sigwire.OutputField(), str).with_updated_fields("stars", le=10),
]


@TRAVEL
@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda made: made.signature)
def test_signature_class_travels(travel: Callable[[Any], Any], signature: Any) -> None:
    again = travel(signature)
    assert isinstance(again, SignatureMeta)
    assert again.equals(signature)
    assert (again.__name__, again.__module__, again.__doc__) == (
        signature.__name__,
        signature.__module__,
        signature.__doc__,
    )
    assert again.dump_state() == signature.dump_state()


@TRAVEL
def test_declared_signature_travels_by_its_name(travel: Callable[[Any], Any]) -> None:
    assert travel(Rate) is Rate
    assert issubclass(travel(Rate.with_instructions("Be kind.")), Rate)


PROGRAMS: list[tuple[Callable[[], Any], dict[str, Any]]] = [
    (lambda: sigwire.Predict("question -> answer"), {"question": "?"}),
    (lambda: sigwire.ChainOfThought("question -> answer"), {"question": "?"}),
    (lambda: sigwire.ReAct("question -> answer", tools=[double]), {"question": "?"}),
    (lambda: sigwire.ChainOfThought(Rate.with_instructions("Be kind.")), {"review": "Lovely."}),
    (lambda: dspy.ReAct("question -> answer", tools=[dspy.Tool(double)]), {"question": "?"}),
    (lambda: dspy.Predict("question -> answer: Literal['yes', 'no']"), {"question": "?"}),
]


def lm() -> sigwire.LM:
    return sigwire.LM("offline/lexical")


@TRAVEL
@pytest.mark.parametrize("called", [False, True], ids=["new", "called"])
@pytest.mark.parametrize(("make", "inputs"), PROGRAMS)
def test_program_travels_before_and_after_a_call(
    travel: Callable[[Any], Any], called: bool, make: Callable[[], Any], inputs: dict[str, Any]
) -> None:
    program = make()
    program.set_lm(lm())
    expected = outcome(program, inputs) if called else None
    again = travel(program)
    assert again.dump_state() == program.dump_state()
    assert outcome(again, inputs) == (expected or outcome(program, inputs))


def outcome(program: Any, inputs: dict[str, Any]) -> Any:
    try:
        return {name: value for name, value in program(**inputs).items() if isinstance(value, (str, int))}
    except sigwire.SigwireError as error:
        return type(error)


def test_agent_rejects_and_accepts_outputs_after_travelling() -> None:
    agent = pickled(sigwire.ReAct("question -> answer: int", tools=[double]))
    calls = [
        ToolCall("a", "submit", {"answer": "?"}),
        ToolCall("b", "double", {"n": 2}),
        ToolCall("c", "submit", {"answer": 4}),
    ]
    agent.set_lm(sigwire.FakeLM(calls))
    result = agent(question="?")
    assert (result.answer, len(result.steps)) == (4, 3)


def answer_of(program: Any) -> Any:
    return outcome(program, {"question": "?"})


@pytest.mark.long
def test_program_runs_in_a_spawned_process() -> None:
    program = sigwire.Predict("question -> answer", lm=lm())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(answer_of, (program,)) == answer_of(program)


@pytest.mark.parametrize("module", [sigwire, dspy])
@TRAVEL
def test_public_modules_travel_by_name(travel: Callable[[Any], Any], module: Any) -> None:
    assert travel(module) is module


# In __main__, as in a notebook: cloudpickle takes the functions by value, and with them the modules they refer to.
NOTEBOOK = """
import pickle, sys
import cloudpickle
import sigwire
import sigwire.dspy as dspy
from sigwire import Predict

class Ask(sigwire.Signature):
    question: str = sigwire.InputField()
    answer: str = sigwire.OutputField()

class Program(sigwire.Module):
    def __init__(self):
        self.ask = sigwire.ChainOfThought(Ask.with_instructions("Be brief."), lm=sigwire.LM("offline/lexical"))
        self.text = Predict("question -> answer")

    def forward(self, question):
        with sigwire.context(lm=sigwire.LM("offline/lexical")):
            return self.ask(question=question).answer, self.text(question=question).answer

class Upper(sigwire.BaseLM):
    def forward(self, request):
        return "[[ ## answer ## ]]\\nYES"

def task():
    predict = sigwire.Predict("question -> answer", lm=Upper("upper"))
    return predict(question="?").answer, dspy.settings is sigwire.settings, dspy.ReAct.__name__, Program()(question="?")

sys.stdout.buffer.write(cloudpickle.dumps(task) + b"END" + cloudpickle.dumps((task(), Program(), Upper("m"), Ask)))
"""


@pytest.mark.long
def test_functions_and_classes_of_a_notebook_travel_by_cloudpickle() -> None:
    pytest.importorskip("cloudpickle")
    made = subprocess.run([sys.executable, "-c", textwrap.dedent(NOTEBOOK)], capture_output=True, check=True)
    task, _, values = made.stdout.partition(b"END")
    expected, program, model, signature = pickle.loads(values)
    assert pickle.loads(task)() == expected
    assert program(question="?") == expected[3]
    assert model("hi") == ["[[ ## answer ## ]]\nYES"]
    assert sigwire.Predict(signature, lm=model)(question="?").answer == "YES"
