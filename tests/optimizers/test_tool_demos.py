"""Demos of agents and of tools: runs with calls, results and errors become demos that every wire can send."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import sigwire
from sigwire.core.capabilities import Capabilities
from sigwire.core.example import Example
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.predict import Predict
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.settings import context
from sigwire.testing.fake_provider import FakeProvider

pytestmark = pytest.mark.filterwarnings("ignore::sigwire.errors.ToolWarning")

MODELS = {
    "openai": "openai/gpt-4.1-mini",
    "openai-responses": "openai/gpt-4.1-mini",
    "anthropic": "anthropic/claude-haiku-4-5",
    "gemini": "gemini/gemini-3-flash",
    "ollama": "ollama/qwen3",
}
WIRES: dict[str, Any] = {"openai-responses": {"wire": "responses"}}
LOCK = threading.Lock()  # cannot be copied or pickled


def find(query: str) -> str:
    """Find a fact."""
    with LOCK:
        if query == "bad":
            raise ValueError("no such fact")
        return f"fact {query}"


async def save(fact: str) -> str:
    """Save a fact."""
    return "saved"


CALLS = (
    [ToolCall("c1", "find", {"query": "bad"}), ToolCall("c2", "find", {"query": "x"})],
    [ToolCall("c3", "save", {"fact": "x"})],
    [ToolCall("c4", "submit", {"answer": "x"})],
)
ROWS = [Example(question=f"q{at}", answer="x").with_inputs("question") for at in range(4)]


def answer(request: Request) -> Any:
    """Return the calls of the next turn of the conversation ."""
    names = {result.name for result in request.messages[-1].tool_results}
    return CALLS[2 if "save" in names else 1 if names else 0]


def metric(example: Any, prediction: Any, trace: object = None) -> bool:
    return bool(example.answer == prediction.answer)


def agent(lm: object) -> ReAct[Any, Any]:
    program = ReAct("question -> answer", tools=[find, save])
    program.set_lm(lm)  # type: ignore[arg-type]
    return program


@pytest.fixture(scope="module")
def compiled() -> ReAct[Any, Any]:
    optimizer = BootstrapFewShot(metric, max_bootstrapped_demos=1, max_labeled_demos=0)
    return optimizer.compile(agent(FakeLM(answer)), trainset=ROWS)


def check_demo(request: Request) -> None:
    """Check that a request shows the whole run of the demo: both turns, ids that match, the error flag."""
    calls = [call for message in request.messages for call in message.tool_calls]
    results = [result for message in request.messages for result in message.tool_results]
    assert [call.name for call in calls] == ["find", "find", "save", "submit"]
    assert [result.is_error for result in results] == [True, False, False, False]
    assert [call.id for call in calls] == [result.id for result in results]
    assert len({call.id for call in calls}) == 4
    assert "no such fact" in str(results[0].content)


def test_run_of_an_agent_is_one_demo_with_calls_results_and_errors(compiled: ReAct[Any, Any]) -> None:
    (demo,) = compiled.react.demos
    assert demo.tools == ["find", "save", "submit"]
    assert isinstance(demo.tool_calls, ToolCalls)
    assert demo.augmented is True
    lm = FakeLM(answer)
    compiled.set_lm(lm)
    assert compiled(question="new").answer == "x"
    check_demo(lm.requests[0])


@pytest.mark.parametrize("steps", ["last", "sampled", "all"])
def test_turns_of_one_run_are_never_shown_twice(steps: Any) -> None:
    optimizer = BootstrapFewShot(metric, max_bootstrapped_demos=2, max_labeled_demos=0, steps=steps)
    program = optimizer.compile(agent(FakeLM(answer)), trainset=ROWS)
    assert len(program.react.demos) == 2


def test_demo_of_a_run_is_equal_after_saving_and_loading(compiled: ReAct[Any, Any], tmp_path: Any) -> None:
    compiled.set_lm(None)
    compiled.save(tmp_path / "agent.json")
    loaded = agent(None)
    loaded.load(tmp_path / "agent.json")
    requests = []
    for program in (compiled, loaded):
        lm = FakeLM(answer)
        with context(lm=lm):
            program(question="new")
        requests.append(lm.requests)
    assert requests[0] == requests[1]


@pytest.mark.parametrize("wire", MODELS)
def test_demo_of_a_run_is_sent_on_every_wire(compiled: ReAct[Any, Any], wire: str) -> None:
    with FakeProvider(answer) as provider:
        lm = sigwire.LM(MODELS[wire], base_url=provider.url(wire), api_key="any", **WIRES.get(wire, {}))
        compiled.set_lm(None)
        with context(lm=lm):
            assert compiled(question="new").answer == "x"
    assert [record.status for record in provider.requests] == [200] * 3
    first = provider.requests[0].request
    assert first is not None
    names = [call.name for message in first.messages for call in message.tool_calls]
    results = [str(result.content) for message in first.messages for result in message.tool_results]
    assert names == ["find", "find", "save", "submit"]
    assert "no such fact" in results[0]
    assert len(results) == 4


def test_demo_of_a_run_is_text_when_a_model_has_no_native_tools(compiled: ReAct[Any, Any]) -> None:
    lm = FakeLM(lambda request: [*CALLS[2]], capabilities=Capabilities())
    compiled.set_lm(lm)
    assert compiled(question="new").answer == "x"
    texts = [message.text for message in lm.requests[0].messages]
    assert "no such fact" in texts[3]
    assert not any(message.tool_calls for message in lm.requests[0].messages)


# --- predictors with an input for tools


class Choose(sigwire.Signature):
    """Choose a tool."""

    question: str = sigwire.InputField()
    tools: list[Tool] = sigwire.InputField()
    calls: ToolCalls = sigwire.OutputField()


def tool_name(spec: Any) -> Any:
    return spec["function"]["name"]


def chosen(example: Any, prediction: Any, trace: object = None) -> bool:
    return [call.name for call in prediction.calls] == [example.name]


def test_tools_in_training_rows_are_named_in_demos_and_shared_with_programs() -> None:
    tools = [Tool(find), Tool(save)]
    rows = [Example(question=f"q{at}", tools=tools, name="find").with_inputs("question", "tools") for at in range(3)]
    lm = FakeLM(lambda request: ToolCall("k", "find", {"query": "y"}))
    program = BootstrapFewShot(chosen, max_bootstrapped_demos=2, max_labeled_demos=0).compile(
        Predict(Choose, lm=lm), trainset=rows
    )
    assert [demo.tools for demo in program.demos] == [["find", "save"]] * 2
    assert all(row.tools is tools for row in rows)
    prediction = program(question="new", tools=tools)
    assert prediction.calls[0].name == "find"
    sent = lm.requests[-1]
    assert [call.name for message in sent.messages for call in message.tool_calls] == ["find", "find"]
    assert [tool_name(tool) for tool in sent.tools] == ["find", "save"]


def test_results_of_a_demo_keep_their_error_flag() -> None:
    lm = FakeLM(lambda request: ToolCall("k", "find", {"query": "y"}))
    demo = Example(
        question="q",
        tools=["find"],
        calls=ToolCalls([ToolCall("a", "find", {"query": "bad"})]),
        tool_results=[ToolResult("a", "find", "no", is_error=True)],
        augmented=True,
    )
    predict = Predict(Choose, lm=lm)
    predict.demos = [demo]
    predict(question="new", tools=[Tool(find)])
    (result,) = [result for message in lm.requests[0].messages for result in message.tool_results]
    assert result.is_error
    assert result.content == "no"
