"""Modules that run as tools of agents: their results, drivers, streams, limits, journals, and what the outer model reads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sigwire import (
    LM,
    RLM,
    ApprovalNeeded,
    BestOfN,
    ChainOfThought,
    Choice,
    CodeAct,
    FakeLM,
    InputField,
    Journal,
    Module,
    OutputField,
    Predict,
    Prediction,
    ReAct,
    Signature,
    Tool,
    ToolCall,
    ToolCallEnd,
    ToolDefinitionError,
    WebSearch,
)
from sigwire.core.events import FieldDelta
from sigwire.modules.agents.tool_results import encode
from sigwire.modules.agents.toolbox import Toolbox, as_tools
from sigwire.signatures.types import Reasoning
from sigwire.testing import FakeProvider
from tests.modules.code.driving import MODES, called, events

DONE = ToolCall("s", "submit", {"a": "done"})


def one_call(name: str, **arguments: Any) -> FakeLM:
    """Return a model that makes one call, then submits."""
    return FakeLM([ToolCall("c", name, arguments), DONE])


def own_lm(agent: Any, lm: Any) -> Any:
    """Set the model of an agent's own predictors, not that of the programs in its tools; return the agent."""
    for part in (getattr(agent, name, None) for name in ("react", "generate_action", "extract")):
        if isinstance(part, Module):
            part.set_lm(lm)
    return agent


def outer(tools: Any, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    lm = one_call(name, **({"question": "why?"} if arguments is None else arguments))
    return own_lm(ReAct("q -> a", tools=tools, **options), lm)


def read(result: Any) -> Any:
    return result.steps[0].results[0].content


def lookup(word: str) -> str:
    return f"secret {word}"


def inner_agent(*answers: Any) -> Any:
    agent: Any = ReAct("question -> answer", tools=[lookup])
    agent.set_lm(
        FakeLM([*answers] or [ToolCall("i", "lookup", {"word": "w"}), ToolCall("j", "submit", {"answer": "42"})])
    )
    return agent


# --- results ------------------------------------------------------------------------------------------------


def with_lm(module: Any, *answers: Any) -> Any:
    module.set_lm(FakeLM([*answers]))
    return module


def best(module: Any) -> Any:
    return BestOfN(module, 1, lambda inputs, prediction: 1.0, 1.0)


CODE = {"reasoning": "Now.", "code": "submit(answer='42')"}
RESULTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "Predict": (lambda: with_lm(Predict("question -> answer"), {"answer": "42"}), "42"),
    "two outputs": (lambda: with_lm(Predict("question -> n: int, m: float"), {"n": 4, "m": 0.5}), {"n": 4, "m": 0.5}),
    "ChainOfThought": (lambda: with_lm(ChainOfThought("question -> answer"), {"reasoning": "r", "answer": "42"}), "42"),
    "BestOfN": (lambda: best(with_lm(ChainOfThought("question -> answer"), {"reasoning": "r", "answer": "42"})), "42"),
    "ReAct": (inner_agent, "42"),
    "CodeAct": (lambda: with_lm(CodeAct("question -> answer"), CODE), "42"),
    "RLM": (lambda: with_lm(RLM("question -> answer"), CODE), "42"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("make", "value"), RESULTS.values(), ids=RESULTS)
def test_outer_model_reads_the_declared_outputs(make: Any, value: Any, mode: str) -> None:
    result = called(mode, outer({"ask": make()}, "ask"), q="x")
    assert (read(result), result.a) == (value, "done")


class Team(Module):
    """A user's module with both entries, which note their threads and loops."""

    def __init__(self, expert: Any = None) -> None:
        self.expert, self.ran = expert, list[tuple[str, int]]()

    def forward(self, question: str) -> Any:
        self.ran.append(("forward", threading.get_ident()))
        return self.expert(question=question) if self.expert else f"{question} because"

    async def aforward(self, question: str) -> Any:
        self.ran.append(("aforward", threading.get_ident()))
        return await self.expert.acall(question=question) if self.expert else f"{question} because"


@pytest.mark.parametrize("mode", MODES)
def test_users_module_runs_by_the_entry_of_the_driver(mode: str) -> None:
    team = Team(inner_agent())
    assert read(called(mode, outer([team], "team"), q="x")) == "42"
    assert [entry for entry, _ in team.ran] == ["aforward" if mode in ("async", "astream") else "forward"]


async def test_awaited_agent_awaits_a_module_on_its_own_loop() -> None:
    team = Team()
    await outer([partial(team)], "team").acall(q="x")
    assert team.ran == [("aforward", threading.get_ident())]
    assert await Tool(team).acall(question="y") == "y because"
    assert team.ran[1:] == [("aforward", threading.get_ident())]


@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_events_of_the_inner_program_come_through_the_stream(mode: str) -> None:
    seen = events(mode, outer({"ask": inner_agent(), "say": Predict("x -> y")}, "ask"), q="x")
    calls = [(event.turn, event.call.name) for event in seen if isinstance(event, ToolCallEnd)]
    assert calls == [(0, "ask"), (0, "lookup"), (1, "submit"), (1, "submit")]


@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_text_of_the_inner_program_is_streamed_before_the_tool_ends(mode: str) -> None:
    say = Predict("question -> answer", lm=FakeLM([{"answer": "one two three"}]))
    seen = events(mode, outer({"ask": say}, "ask"), q="x")
    text = "".join(event.text for event in seen if isinstance(event, FieldDelta) and event.field == "answer")
    assert text == "one two three"


@pytest.mark.parametrize("mode", MODES)
def test_wrong_call_costs_no_inner_request(mode: str) -> None:
    class Ask(Signature):
        question: str = InputField()
        most: int = InputField(ge=1)
        answer: str = OutputField()

    expert = with_lm(Predict(Ask), {"answer": "never"})
    for wrong in ({"question": "x", "most": 0}, {"question": "x"}, {"question": "x", "most": 1, "style": "odd"}):
        result = called(mode, outer([expert], "ask", wrong), q="x")
        assert result.steps[0].results[0].is_error
    assert expert.lm.requests == []


@pytest.mark.parametrize("mode", MODES)
def test_partial_gives_the_inputs_that_it_binds(mode: str) -> None:
    expert = with_lm(Predict("question, style -> answer"), {"answer": "42"})
    called(mode, outer({"ask": partial(expert, style="terse")}, "ask"), q="x")
    assert "terse" in expert.lm.requests[0].messages[-1].text


class Reasoned(Signature):
    """A signature whose user declares reasoning."""

    question: str = InputField()
    reasoning: Reasoning = OutputField()
    answer: str = OutputField()


def test_prediction_of_any_tool_is_sent_as_its_declared_outputs() -> None:
    made = {"reasoning": "because", "answer": "42"}
    prediction = with_lm(ChainOfThought("question -> answer"), made)(question="x")
    assert encode(prediction) == ("42", ())
    assert encode([prediction, {"p": prediction}]) == (["42", {"p": "42"}], ())
    assert encode(with_lm(ChainOfThought(Reasoned), made)(question="x"))[0] == made
    assert encode(Prediction(answer="42")) == ({"answer": "42"}, ())
    assert encode(inner_agent()(question="x")) == ("42", ())


# --- where tools are taken ----------------------------------------------------------------------------------


def test_modules_are_taken_wherever_tools_are() -> None:
    expert = Predict("question -> answer")
    assert [tool.name for tool in as_tools(expert)] == ["answer"]
    assert [tool.name for tool in as_tools({"law": expert, "tax": expert})] == ["law", "tax"]
    assert [*Toolbox([expert, lookup]).tools] == ["answer", "lookup"]
    for given in ([expert], {"ask": expert}, expert):
        lm = FakeLM([ToolCall("c", "x", {})])
        Predict("q, tools: list[Tool] -> calls: ToolCalls", lm=lm)(q="x", tools=given)
        function: Any = lm.requests[0].tools[0]["function"]
        assert function["name"] == ("ask" if isinstance(given, dict) else "answer")
        assert function["parameters"]["required"] == ["question"]


@pytest.mark.parametrize("make", [CodeAct, RLM])
@pytest.mark.parametrize("mode", MODES)
def test_code_calls_modules(make: Any, mode: str) -> None:
    expert = with_lm(Predict("question, n: int -> label, score: float"), {"label": "tax", "score": 0.5})
    agent = make("q -> a", tools={"ask": expert, "team": Team()})
    code = "found = ask('why?', n=3)\nsubmit(a=found['label'] + ' ' + team('so'))"
    own_lm(agent, FakeLM([{"reasoning": "Ask.", "code": code}]))
    assert called(mode, agent, q="x").a == "tax so because"


def test_code_sees_the_types_of_modules() -> None:
    agent: Any = CodeAct("q -> a", tools=[Predict("question -> n: int"), Predict("x -> label, score: float")])
    own_lm(agent, lm := FakeLM([{"reasoning": "", "code": "submit(a='')"}]))
    agent(q="x")
    text = "".join(message.text for message in lm.requests[0].messages)
    assert "def n(question: str) -> int" in text
    assert "def label_and_score(x: str) -> {'label': str, 'score': float}" in text


def test_two_tools_of_one_name_are_refused_with_the_dict_form() -> None:
    with pytest.raises(ToolDefinitionError, match=r"Two tools are named 'answer'.*tools=\{'one': f"):
        ReAct("q -> a", tools=[Predict("x -> answer"), Predict("y -> answer")])


def test_web_search_is_taken_wherever_tools_are() -> None:
    search = WebSearch(max_uses=2)
    for agent in (ReAct("q -> a", tools=[search]), ReAct("q -> a", tools=search)):
        assert agent.tools["web_search"] == Tool.web_search(search)
    for given in ([search], search, {"web_search": search}):
        lm = FakeLM([ToolCall("c", "x", {})])
        Predict("q, tools: list[Tool] -> calls: ToolCalls", lm=lm)(q="x", tools=given)
        assert lm.requests[0].tools == (Tool.web_search(search).spec,)
    for kind in (CodeAct, RLM):
        with pytest.raises(ToolDefinitionError, match="runs at the provider, and code cannot call it"):
            kind("q -> a", tools=[search])


# --- limits, approval, journal ------------------------------------------------------------------------------


class Slow(Module):
    """A module that waits until it is cancelled."""

    cancelled = False

    async def aforward(self, question: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return question


@pytest.mark.parametrize("mode", MODES)
def test_timeout_ends_a_module(mode: str) -> None:
    slow = Slow()
    result = called(mode, outer([Tool(slow, timeout=0.01)], "slow"), q="x")
    assert read(result) == "The tool did not finish within 0.01 seconds."
    assert slow.cancelled or mode in ("sync", "stream")  # a blocking call leaves its thread


@pytest.mark.parametrize("mode", MODES)
def test_options_of_tools_hold_for_modules(mode: str) -> None:
    lines = with_lm(Predict("question -> answer"), {"answer": "x" * 500}, {"answer": "y"})
    agent: Any = ReAct("q -> a", tools={"ask": Tool(lines, name="ask", max_output=100, max_calls=1)})
    own_lm(agent, FakeLM([ToolCall("c", "ask", {"question": "1"}), ToolCall("d", "ask", {"question": "2"}), DONE]))
    result = called(mode, agent, q="x")
    assert "more characters" in str(agent.react.lm.requests[1].messages) or "500" in str(
        agent.react.lm.requests[1].messages
    )
    assert "The limit of 1 call of ask is reached" in str(result.steps[1].results[0].content)
    assert len(lines.lm.requests) == 1


@pytest.mark.parametrize("mode", MODES)
def test_approval_is_asked_before_the_inner_run(mode: str) -> None:
    expert = with_lm(Predict("question -> answer"), {"answer": "42"})
    agent = outer([Tool(expert, approve=True)], "answer")
    with pytest.raises(ApprovalNeeded) as raised:
        called(mode, agent, q="x")
    assert expert.lm.requests == []
    result = agent.resume(raised.value.state, {raised.value.pending[0].id: "approve"})
    assert (read(result), len(expert.lm.requests)) == ("42", 1)


class Killed(BaseException):
    """In place of a kill: no code of the library handles it."""


class Twice(Module):
    """Ask two experts; the process is killed in the second one."""

    def __init__(self) -> None:
        self.kills = 1
        self.first = with_lm(Predict("question -> answer"), {"answer": "one"})
        self.second = Predict("question -> answer", lm=FakeLM(self._answer))

    def _answer(self, request: Any) -> Any:
        if self.kills:
            self.kills -= 1
            raise Killed
        return Choice("[[ ## answer ## ]]\ntwo")

    def forward(self, question: str) -> str:
        return self.first(question=question).answer + self.second(question=question).answer  # type: ignore[no-any-return]


@pytest.mark.parametrize("mode", ["run", "arun"])
def test_rerun_of_a_module_pays_only_the_inner_requests_that_are_missing(tmp_path: Path, mode: str) -> None:
    twice = Twice()

    def run(answers: list[Any]) -> Any:
        agent: Any = ReAct("q -> a", tools=[Tool(twice, on_crash="rerun")])
        own_lm(agent, FakeLM(answers))
        if mode == "run":
            return journal.run(agent, "one", q="x")
        return asyncio.run(journal.arun(agent, "one", q="x"))

    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(Killed):
            run([ToolCall("c", "twice", {"question": "why?"})])
        assert read(run([DONE])) == "onetwo"
        assert len(twice.first.lm.requests) == 1


def test_crash_in_a_module_waits_for_a_decision(tmp_path: Path) -> None:
    twice = Twice()
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(Killed):
            journal.run(outer([twice], "twice"), "one", q="x")
        with pytest.raises(ApprovalNeeded) as raised:
            journal.run(outer([twice], "twice"), "one")
        assert [call.name for call in raised.value.pending] == ["twice"]


# --- own context --------------------------------------------------------------------------------------------

WIRES: dict[str, tuple[str, dict[str, Any]]] = {
    "openai": ("openai/gpt-4.1-mini", {}),
    "openai-responses": ("openai/gpt-4.1-mini", {"wire": "responses"}),
    "anthropic": ("anthropic/claude-haiku-4-5", {}),
    "gemini": ("gemini/gemini-3-flash", {}),
    "ollama": ("ollama/qwen3", {}),
    "bedrock": ("bedrock/amazon.nova-lite-v1:0", {}),
}


@pytest.mark.parametrize("wire", WIRES)
def test_inner_transcript_is_in_no_byte_sent_to_the_outer_model(wire: str) -> None:
    inner = inner_agent()
    inner.set_lm(
        FakeLM(
            [
                Choice("INNER thought", (ToolCall("i", "lookup", {"word": "INNER"}),)),
                ToolCall("j", "submit", {"answer": "42"}),
            ]
        )
    )
    name, options = WIRES[wire]
    with FakeProvider([ToolCall("c", "answer", {"question": "why?"}), DONE]) as provider:
        agent: Any = ReAct("q -> a", tools=[inner])
        agent.react.lm = LM(name, base_url=provider.url(wire), api_key="any", num_retries=0, **options)
        assert agent(q="OUTER").a == "done"
        sent = "".join(repr(request.body) for request in provider.requests)
    assert len(provider.requests) == 2
    assert "42" in sent
    assert not any(word in sent for word in ("INNER", "secret", "lookup"))
    assert all("OUTER" not in str(request.messages) for request in inner.react.lm.requests)
