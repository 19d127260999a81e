"""DSPy's loop in text: which agents run it, what its predictors get, and how it ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pydantic
import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.core.events import ToolDone
from sigwire.dspy.streaming import StreamListener, StreamResponse
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


# --- the switch

ENDED = [dict(turn("weigh", fruit="fig")), dict(turn("finish")), {"reasoning": "It was weighed.", "grams": 80}]
FIELDS = ["next_thought", "next_tool_name", "next_tool_args"]


def made_by_option() -> Any:
    return make_agent(text_loop=True)


def made_by_setting() -> Any:
    with dspy.context(text_loop=True):
        return make_agent()


def made_by_file(folder: Path) -> Any:
    make_agent(text_loop=True).save(folder / "agent.json")
    agent = make_agent()
    agent.load(folder / "agent.json")
    return agent


@pytest.mark.parametrize("how", ["blocking", "awaited", "streamed", "nested"])
@pytest.mark.parametrize("make", [made_by_option, made_by_setting, made_by_file])
async def test_agent_of_the_switch_runs_the_loop_in_text(make: Any, how: str, tmp_path: Path) -> None:
    agent = make(tmp_path) if make is made_by_file else make()
    agent.set_lm(lm := dspy.DummyLM(ENDED))
    program = Nested(agent) if how == "nested" else agent
    if how == "streamed":
        async with agent.astream(fruit="fig") as stream:
            async for _ in stream:
                pass
        result = stream.value
    else:
        result = await program.acall(fruit="fig") if how == "awaited" else program(fruit="fig")
    assert (result.grams, result.reasoning, len(lm.history)) == (80, "It was weighed.", 3)
    assert [result.trajectory[f"tool_name_{number}"] for number in (0, 1)] == ["weigh", "finish"]
    assert list(agent.tools) == ["weigh", "finish"]


class Nested(dspy.Module):
    def __init__(self, agent: Any) -> None:
        super().__init__()
        self.agent = agent

    def forward(self, fruit: str) -> Any:
        return self.agent(fruit=fruit)


def test_agent_keeps_the_loop_of_the_core_when_its_option_refuses_the_setting() -> None:
    with dspy.context(text_loop=True):
        agent = make_agent(text_loop=False)
    assert list(agent.tools) == ["weigh", "submit"]


@pytest.mark.parametrize(("kind", "value"), [(dspy.ReAct, "yes"), (dspy.ReActV2, True)])
def test_switch_of_another_value_is_refused(kind: Any, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"text_loop of {kind.__name__} is .*, not {value!r}"):
        make_agent(kind=kind, text_loop=value)


def test_whole_program_keeps_the_switch(tmp_path: Path) -> None:
    for given, fields in ((True, FIELDS), (False, ["tool_calls"]), (None, ["tool_calls"])):
        make_agent(text_loop=given).save(tmp_path / f"{given}", save_program=True)
        loaded: Any = dspy.load(tmp_path / f"{given}", functions=[weigh])
        assert (list(loaded.react.signature.output_fields), loaded.text_loop) == (fields, given)


def loop_of_dspy(**changes: Any) -> Any:
    """Return a state of DSPy's ``ReAct("fruit -> grams: int")`` with a demo."""
    names = ("fruit", "trajectory", *FIELDS)
    fields = [{"prefix": f"{name}:", "description": f"${{{name}}}"} for name in names]
    demo = {"fruit": "kiwi", "trajectory": "", **dict(turn("weigh", fruit="kiwi"))}
    loop = {"traces": [], "train": [], "demos": [demo], "lm": None}
    extract = [{"prefix": f"{name}:", "description": name} for name in ("fruit", "trajectory", "reasoning", "grams")]
    return {
        "react": {**loop, "signature": {"instructions": "You are an Agent. Weigh.", "fields": fields}},
        "extract.predict": {**loop, "demos": [], "signature": {"instructions": "Read.", "fields": extract}},
        **changes,
    }


def test_agent_that_loads_a_loop_of_dspy_shows_its_instructions_and_demos() -> None:
    agent = make_agent()
    agent.load_state(loop_of_dspy())
    agent.set_lm(lm := dspy.DummyLM(ENDED))
    assert agent(fruit="fig").grams == 80
    texts = [str(message["content"]) for message in lm.history[0]["messages"]]
    assert "You are an Agent. Weigh." in texts[0]
    assert any("kiwi" in text for text in texts[1:-1])
    assert agent.dump_state()["react"]["demos"] == loop_of_dspy()["react"]["demos"]


def test_agent_keeps_its_loop_when_the_rest_of_the_state_is_refused() -> None:
    agent = make_agent()
    before = agent.dump_state()
    state = loop_of_dspy()
    with pytest.raises(sigwire.StateError):
        agent.load_state({**state, "extract.predict": {**state["extract.predict"], "demos": 3}})
    assert (agent.dump_state(), agent.text_loop, list(agent.tools)) == (before, None, ["weigh", "submit"])


class TwoAgents(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = make_agent(), make_agent()

    def forward(self, fruit: str) -> Any:
        return self.second(fruit=fruit)


@pytest.mark.parametrize("is_async", [False, True])
async def test_listener_of_the_thought_makes_its_agent_run_the_loop_in_text(is_async: bool) -> None:
    program = TwoAgents()
    program.set_lm(sigwire.FakeLM(ENDED))
    listener = StreamListener("next_thought", predict=program.second.react, allow_reuse=True)
    stream: Any = dspy.streamify(program, stream_listeners=[listener], async_streaming=cast(Any, is_async))(fruit="fig")
    items = [item async for item in stream] if is_async else list(stream)
    chunks = [item for item in items if isinstance(item, StreamResponse)]
    assert "".join(item.chunk for item in chunks) == "I call weigh.I call finish."
    assert {item.predict_name for item in chunks} == {"second.react"}
    assert items[-1].grams == 80
    assert (list(program.first.tools), list(program.second.tools)) == (["weigh", "submit"], ["weigh", "finish"])


def test_listener_of_the_thought_is_refused_when_the_option_of_its_agent_is_false() -> None:
    with pytest.raises(ConfigurationError, match="No predictor of the program writes 'next_thought'"):
        dspy.streamify(make_agent(text_loop=False), stream_listeners=[StreamListener("next_thought")])
