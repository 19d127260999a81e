"""DSPy's loop in text: which agents run it, what its predictors get, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pydantic
import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.core.events import ToolDone
from sigwire.errors import ConfigurationError, ContextWindowExceededError
from sigwire.journal.errors import ApprovalNeeded


def weigh(fruit: str) -> str:
    return f"{fruit}: 80 g"


def turn(name: str, **arguments: Any) -> Any:
    return dspy.Prediction(next_thought=f"I call {name}.", next_tool_name=name, next_tool_args=arguments)


class Planner:
    """Stands in for a predictor: gives scripted answers, and keeps what it was called with."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.given = list(answers), list[dict[str, Any]]()

    def __call__(self, **given: Any) -> Any:
        self.given.append(given)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class AsyncPlanner(Planner):
    async def acall(self, **given: Any) -> Any:
        await asyncio.sleep(0)
        return super().__call__(**given)

    def __call__(self, **given: Any) -> Any:
        raise AssertionError("called blocking")


class PlannerModule(dspy.Module):
    def forward(self, **given: Any) -> Any:
        return turn("finish") if "80 g" in given["trajectory"] else turn("weigh", fruit="fig")


def make_agent(react: Any = None, extract: Any = None, kind: Any = dspy.ReAct, **options: Any) -> Any:
    agent = kind("fruit -> grams: int", **{"tools": [weigh], **options})
    agent.react = react or agent.react
    agent.extract = extract or agent.extract
    return agent


def test_replaced_predictors_get_inputs_and_trajectory() -> None:
    planner, reader = Planner(turn("weigh", fruit="fig"), turn("finish")), Planner(dspy.Prediction(grams=80))
    result = make_agent(planner, reader)(fruit="fig")
    assert (result.grams, result.termination_reason, len(result.steps)) == (80, "submit", 2)
    assert planner.given[0] == {"fruit": "fig", "trajectory": ""}
    assert "fig: 80 g" in planner.given[1]["trajectory"]
    assert reader.given[0].keys() == {"fruit", "trajectory"}
    assert result.trajectory["tool_args_0"] == {"fruit": "fig"}
    assert (result.trajectory["tool_name_1"], result.trajectory["observation_1"]) == ("finish", "Completed.")


def test_awaited_run_awaits_replaced_predictors() -> None:
    agent = make_agent(AsyncPlanner(turn("finish")), AsyncPlanner(dspy.Prediction(grams=1)))
    assert asyncio.run(agent.acall(fruit="fig")).grams == 1


def test_module_in_the_place_of_the_predictor_runs() -> None:
    result = make_agent(PlannerModule(), Planner(dspy.Prediction(grams=80)))(fruit="fig")
    assert (result.grams, result.trajectory["observation_0"]) == (80, "fig: 80 g")


def test_replaced_extraction_gives_the_outputs_of_a_model_that_plans() -> None:
    agent = make_agent(extract=Planner(dspy.Prediction(grams=3)))
    agent.react.lm = lm = dspy.DummyLM([dict(turn("weigh", fruit="fig")), dict(turn("finish"))])
    assert agent(fruit="fig").grams == 3
    assert "weigh" in lm.history[0]["messages"][0]["content"]


def test_planner_that_names_no_tool_gets_the_error_as_observation() -> None:
    result = make_agent(Planner(turn("taste"), turn("finish")), Planner(dspy.Prediction(grams=0)))(fruit="fig")
    assert "taste" in result.trajectory["observation_0"]


def test_oldest_call_is_removed_from_a_trajectory_that_is_too_long() -> None:
    planner = Planner(
        turn("weigh", fruit="fig"), turn("weigh", fruit="kiwi"), ContextWindowExceededError("full"), turn("finish")
    )
    result = make_agent(planner, Planner(dspy.Prediction(grams=9)))(fruit="fig")
    assert "fig: 80 g" not in planner.given[-1]["trajectory"]
    assert {name[-1] for name in result.trajectory} == {"1", "2"}


@pytest.mark.parametrize("calls", [0, 1])
def test_trajectory_that_cannot_be_shortened_ends_the_loop_and_is_extracted(calls: int) -> None:
    planner = Planner(*[turn("weigh", fruit="fig")] * calls, ContextWindowExceededError("full"))
    result = make_agent(planner, Planner(dspy.Prediction(grams=9)))(fruit="fig")
    assert (result.grams, result.termination_reason) == (9, "context_window_exceeded")
    assert len(result.trajectory) == 4 * calls


def test_extraction_that_never_fits_is_an_error() -> None:
    planner = Planner(*[turn("weigh", fruit="fig")] * 4, turn("finish"))
    agent = make_agent(planner, Planner(*[ContextWindowExceededError("full")] * 9))
    with pytest.raises(ContextWindowExceededError, match="3 attempts") as caught:
        agent(fruit="fig")
    assert len(sigwire.AgentRun.of(caught.value).steps) == 5


def test_planner_that_fails_to_answer_ends_the_loop() -> None:
    agent = make_agent(Planner(ValueError("no JSON")), Planner(dspy.Prediction(grams=0)))
    with pytest.warns(UserWarning, match=r"A turn could not be read, .* ValueError: no JSON"):
        result = agent(fruit="fig")
    assert (result.termination_reason, result.trajectory) == ("parse_error", {})


@pytest.mark.parametrize("is_replaced", [False, True])
def test_fault_of_the_caller_is_raised(is_replaced: bool) -> None:
    agent = make_agent(
        Planner(ConfigurationError("no model")) if is_replaced else None, Planner(dspy.Prediction(grams=0))
    )
    with pytest.raises(ConfigurationError):
        agent(fruit="fig")


def test_turn_that_cannot_be_read_ends_the_loop_and_is_extracted() -> None:
    agent = make_agent(tools=[])
    agent.set_lm(
        sigwire.FakeLM(lambda request: "???" if "next_tool_name" in request.messages[0].text else {"grams": 5})
    )
    agent.extract = dspy.Predict(agent.extract.predict.signature.delete("reasoning"), lm=agent.react.lm)
    result = agent(fruit="fig")
    assert (result.grams, result.termination_reason, result.trajectory) == (5, "parse_error", {})


@pytest.mark.parametrize("kind", [dspy.ReAct, dspy.ReActV2])
def test_types_of_the_caller_are_found(kind: Any) -> None:
    class Weight(pydantic.BaseModel):
        grams: int

    agent = kind("fruit -> weight: Weight", tools=[])
    agent.set_lm(dspy.DummyLM([dict(turn("finish")), {"reasoning": "Known.", "weight": {"grams": 5}}]))
    assert agent(fruit="fig").weight == Weight(grams=5)


class KeepsLatest(dspy.ReAct[..., Any]):
    def truncate_trajectory(self, trajectory: dict[str, Any]) -> dict[str, Any]:
        return dict(list(trajectory.items())[-4:])


def test_overridden_truncation_makes_the_agent_plan_in_text() -> None:
    agent = make_agent(kind=KeepsLatest)
    assert {"next_tool_name", "next_tool_args"} < agent.react.signature.output_fields.keys()
    assert {*agent.tools} == {"weigh", "finish"}
    fruits = [turn("weigh", fruit=fruit) for fruit in ("fig", "kiwi", "plum")]
    agent.react = Planner(*fruits, ContextWindowExceededError("full"), turn("finish"))
    agent.extract = Planner(dspy.Prediction(grams=2))
    assert {name[-1] for name in agent(fruit="fig").trajectory} == {"2", "3"}


def test_agent_without_tools_finishes_and_extracts() -> None:
    agent = make_agent(tools=[])
    agent.set_lm(lm := dspy.DummyLM([dict(turn("finish", grams="?")), {"reasoning": "Known.", "grams": 5}]))
    result = agent(fruit="fig")
    assert (result.grams, result.reasoning, len(lm.history)) == (5, "Known.", 2)


def test_earlier_conversation_is_part_of_the_trajectory() -> None:
    planner = Planner(turn("finish"))
    before = sigwire.History([{"fruit": "kiwi"}, sigwire.Message.assistant("It weighs 70 g.")])
    make_agent(planner, Planner(dspy.Prediction(grams=1)))(fruit="fig", history=before)
    assert "It weighs 70 g." in planner.given[0]["trajectory"]


def test_approved_call_runs_after_the_decision() -> None:
    planner = Planner(turn("weigh", fruit="fig"), turn("finish"))
    agent = make_agent(planner, Planner(dspy.Prediction(grams=1)), tools=[dspy.Tool(weigh, approve=True)])
    with pytest.raises(ApprovalNeeded) as caught:
        agent(fruit="fig")
    result = agent.resume(caught.value.state, {caught.value.pending[0].id: {"edit": {"fruit": "kiwi"}}})
    assert (result.trajectory["observation_0"], result.grams) == ("kiwi: 80 g", 1)


def test_images_that_a_model_cannot_see_are_a_warning() -> None:
    def photo() -> sigwire.Image:
        return sigwire.Image("https://example.org/fig.png")

    agent = make_agent(Planner(turn("photo"), turn("finish")), Planner(dspy.Prediction(grams=1)), tools=[photo])
    with pytest.warns(UserWarning, match="does not see"):
        agent(fruit="fig")


def test_stream_of_a_run_in_text_has_its_result() -> None:
    agent = make_agent(Planner(turn("weigh", fruit="fig"), turn("finish")), Planner(dspy.Prediction(grams=4)))
    with agent.stream(fruit="fig") as stream:
        events = list(stream)
    assert stream.value.grams == 4
    assert any(isinstance(event, ToolDone) for event in events)


def test_agents_otherwise_run_the_loop_of_the_core() -> None:
    agent = make_agent()
    agent.react = dspy.ChainOfThought(agent.react.signature)
    agent.set_lm(sigwire.FakeLM([dspy.ToolCalls.ToolCall("submit", {"grams": 6})]))
    assert agent(fruit="fig").grams == 6


def test_long_results_are_cut_in_prompts_and_whole_in_the_trajectory() -> None:
    def peel(fruit: str) -> str:
        return fruit * 900

    planner = Planner(turn("peel", fruit="fig"), turn("finish"))
    result = make_agent(planner, Planner(dspy.Prediction(grams=1)), tools=[peel], max_output=30)(fruit="fig")
    assert "characters omitted" in planner.given[1]["trajectory"]
    assert len(planner.given[1]["trajectory"]) < 400
    assert result.trajectory["observation_0"] == "fig" * 900


def test_requests_that_did_not_fit_are_attempts() -> None:
    weighing = {"next_thought": "I weigh.", "next_tool_name": "weigh", "next_tool_args": {"fruit": "fig"}}
    ended = {**weighing, "next_tool_name": "finish", "next_tool_args": {}}

    class Shortened(dspy.ReAct):  # it runs the loop in text
        def truncate_trajectory(self, trajectory: dict[str, Any]) -> dict[str, Any]:
            return super().truncate_trajectory(trajectory)

    agent = make_agent(extract=Planner(dspy.Prediction(grams=1)), kind=Shortened)
    agent.react.lm = sigwire.FakeLM([weighing, weighing, ContextWindowExceededError("full"), ended])
    result = agent(fruit="fig")
    assert [attempt.error for attempt in result.attempts if attempt.error] == [ContextWindowExceededError("full").code]


def test_extraction_that_cannot_be_read_stops_the_run_with_its_reason() -> None:
    agent = make_agent(Planner(turn("weigh", fruit="fig")), max_iters=1)
    agent.set_lm(sigwire.FakeLM(["nothing"] * 2))
    with pytest.raises(sigwire.AgentStopped) as caught:
        agent(fruit="fig")
    assert caught.value.reason == "limit"
