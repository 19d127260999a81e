"""``CodeAct``: turns of code, tools as functions, submit, errors, limits, histories, streams and copies."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import warnings
from typing import Any

import pytest

from sigwire import (
    RLM,
    AgentRun,
    AgentStopped,
    Budget,
    BudgetSpent,
    CodeAct,
    ConfigurationError,
    FakeLM,
    History,
    LMServerError,
    Message,
    MontyInterpreter,
    ProgramOfThought,
    RetryTool,
    StateError,
    Tool,
    ToolDefinitionError,
    ToolWarning,
    load_program,
    save_program,
)
from sigwire.core.events import FieldEnd, FieldPartial, ToolDone
from sigwire.interpreters import monty
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.subprocess_interpreter import SubprocessInterpreter
from sigwire.modules.code.host_tools import python_name
from sigwire.observe.usage import track_usage
from tests.modules.code.driving import MODES, called, events

STOCK = {"apples": 3, "pears": 4}


def stock(item: str) -> int:
    """Return the stock of an item.

    Args:
        item: its name
    """
    return STOCK[item]


async def price(item: str, day: int = 1) -> dict[str, float]:
    """Return the price of an item."""
    await asyncio.sleep(0)
    return {"eur": 2.5 * day}


def turn(code: str) -> dict[str, str]:
    return {"reasoning": "next", "code": code}


def agent_of(*answers: Any, tools: Any = (stock, price), **options: Any) -> Any:
    made: Any = CodeAct("question -> total: float", tools=tools, **options)
    made.set_lm(FakeLM(list(answers)))
    return made


def requests_of(agent: Any) -> Any:
    return agent.react.lm.requests


TWO_TURNS = (
    turn("have = {item: stock(item) for item in ('apples', 'pears')}\nprint(have)"),
    turn("submit(total=sum(n * price(item, day=2)['eur'] for item, n in have.items()))"),
)


@pytest.mark.parametrize("mode", MODES)
def test_code_calls_tools_over_turns_and_submits(mode: str) -> None:
    result = called(mode, agent_of(*TWO_TURNS), question="worth?")
    assert (result.total, result.termination_reason) == (35.0, "submit")
    first, second = result.steps
    assert [call.name for call in first.calls] == ["python", "stock", "stock"]
    assert [each.content for each in first.results] == ["{'apples': 3, 'pears': 4}", 3, 4]
    assert [call.arguments for call in second.calls[1:]] == [{"item": item, "day": 2} for item in ("apples", "pears")]
    assert first.thought == "next"
    assert len({call.id for step in result.steps for call in step.calls}) == 6
    assert AgentRun.of(result).steps == result.steps


@pytest.mark.parametrize("mode", MODES)
def test_tracker_counts_code_and_the_tools_that_it_calls(mode: str) -> None:
    agent = agent_of(turn("stock('plums')"), *TWO_TURNS)
    with track_usage() as tracker, warnings.catch_warnings():
        warnings.simplefilter("ignore", ToolWarning)
        result = called(mode, agent, question="worth?")
    found = [(each.name, each.is_error) for step in result.steps for each in step.results]
    assert sorted(tracker.tool_calls) == sorted(found)
    assert tracker.tool_calls.count(("stock", True)) == tracker.tool_calls.count(("python", True)) == 1
    assert tracker.warnings == ["tool"]


@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_stream_has_each_tool_and_the_submitted_outputs(mode: str) -> None:
    seen = events(mode, agent_of(*TWO_TURNS), question="worth?")
    done = [(event.turn, event.result.name) for event in seen if isinstance(event, ToolDone)]
    assert done == [(0, "stock"), (0, "stock"), (0, "python"), (1, "price"), (1, "price"), (1, "python")]
    fields = [event.field for event in seen if isinstance(event, FieldEnd)]
    assert fields == ["reasoning", "code", "reasoning", "code", "total"]
    assert [event.value for event in seen if isinstance(event, FieldPartial) and event.field == "total"] == [35.0]


def test_prompt_lists_functions_as_python_signatures_in_the_task() -> None:
    agent = agent_of(*TWO_TURNS)
    agent(question="worth?")
    system, task = requests_of(agent)[0].messages
    assert "def stock(item: str) -> int\n    Return the stock of an item. item: its name" in task.text
    assert "def price(item: str, day: int = 1) -> dict[str, float]" in task.text
    assert "def submit(total: float)" in task.text
    assert "no files" in system.text
    again = requests_of(agent)[1].messages
    assert again[:2] == (system, task)  # a stable beginning, which providers cache
    assert again[-1].text == "Result of the code:\n{'apples': 3, 'pears': 4}"


def test_fenced_block_of_a_reply_without_fields_is_the_code() -> None:
    result = agent_of("I add them.\n```python\nsubmit(total=stock('apples'))\n```")(question="?")
    assert (result.total, result.termination_reason) == (3.0, "submit")


def test_reply_without_code_is_sent_back_and_three_end_the_loop() -> None:
    agent = agent_of("No code.", turn("submit(1)"))
    assert agent(question="?").total == 1.0
    assert "Write one block of Python, or the field code." in requests_of(agent)[1].messages[-1].text
    with pytest.raises(AgentStopped, match="3 answers in a row could not be read") as stopped:
        agent_of("No.", "No.", "No.", extract=False)(question="?")
    assert AgentRun.of(stopped.value).termination_reason == "parse_error"


def test_text_of_a_field_other_than_code_never_runs() -> None:
    calls: list[int] = []
    agent = agent_of(
        {"reasoning": "```python\nping()\n```", "code": "submit(2)"}, tools=[Tool(lambda: calls.append(1), "ping")]
    )
    assert agent(question="?").total == 2.0
    assert calls == []


def test_error_of_the_code_goes_back_to_the_model() -> None:
    agent = agent_of(turn("x = 1\nstock('apples') / 0"), turn("submit(total=x)"))
    result = agent(question="?")
    assert result.total == 1.0
    assert result.steps[0].results[0].is_error
    assert requests_of(agent)[1].messages[-1].text.endswith("ZeroDivisionError: division by zero")


def test_rejected_submission_is_an_exception_and_the_run_goes_on() -> None:
    agent = agent_of(turn("submit(total='many')"), turn("submit(total=5, more=1)"), turn("submit(total=5)"))
    result = agent(question="?")
    assert (result.total, len(result.steps)) == (5.0, 3)
    assert "Rejected. total:" in result.steps[0].results[0].text
    assert "more: not an output field" in result.steps[1].results[0].text


def no_stock() -> None:
    raise KeyError("plums")


def busy() -> None:
    raise RetryTool("busy, call again")


def out_of_stock() -> None:
    raise type("OutOfStock", (Exception,), {})("no plums")


@pytest.mark.parametrize(
    ("tool", "call", "kind", "text"),
    [
        (no_stock, "no_stock()", "KeyError", "'plums'"),
        (busy, "busy()", "RuntimeError", "busy, call again"),
        (out_of_stock, "out_of_stock()", "RuntimeError", "OutOfStock: no plums"),
        (stock, "stock(item=[1])", "RuntimeError", "item"),
        (stock, "stock('apples', 'pears')", "TypeError", "stock() takes 1 arguments"),
        (stock, "stock('apples', item='pears')", "TypeError", "two values for the argument 'item'"),
        (stock, "stock(name='apples')", "RuntimeError", "name"),
    ],
)
@pytest.mark.filterwarnings("ignore::sigwire.ToolWarning")
def test_error_of_a_tool_is_an_exception_that_code_catches(tool: Any, call: str, kind: str, text: str) -> None:
    code = f"try:\n    {call}\nexcept Exception as error:\n    print(type(error).__name__, error)\nsubmit(1)"
    agent = agent_of(turn(code.replace("submit(1)", "")), turn("submit(1)"), tools=[tool])
    seen = agent(question="?").steps[0].results[0].text
    assert seen.startswith(f"{kind} ")
    assert text in seen


def test_abort_raises_the_exception_of_a_tool() -> None:
    with pytest.raises(KeyError, match="plums") as error:
        agent_of(turn("try:\n    no_stock()\nexcept KeyError: pass"), tools=[no_stock], on_tool_error="abort")(
            question="?"
        )
    last = AgentRun.of(error.value).history.messages[-1]
    assert isinstance(last, Message)
    assert "interrupted" in last.text


def test_calls_above_max_calls_are_refused_in_a_turn() -> None:
    loop = "for n in range(9):\n    stock('apples')"
    agent = agent_of(turn(loop), turn("stock('apples')\nsubmit(2)"), max_calls=3)
    result = agent(question="?")
    assert result.total == 2.0
    assert len(result.steps[0].calls) == 4  # python and three calls
    assert "the limit of 3 calls of functions is used up" in result.steps[0].results[0].text


def test_used_turns_end_in_an_extraction() -> None:
    agent = agent_of(turn("print(stock('apples'))"), {"reasoning": "r", "total": 3}, max_iters=1)
    result = agent(question="?")
    assert (result.total, result.termination_reason) == (3.0, "limit")
    assert "Result of the code:\n3" in requests_of(agent)[-1].messages[-1].text
    with pytest.raises(AgentStopped, match="the limit of 1 turn is used up"):
        agent_of(turn("1"), max_iters=1, extract=False)(question="?")


def test_next_run_continues_from_the_history_in_a_new_session() -> None:
    agent = agent_of(turn("x = 1\nsubmit(x)"), turn("submit(x)"), turn("submit(2)"))
    first = agent(question="one?")
    second = agent(question="two?", history=History.from_json(json.loads(json.dumps(first.history.to_json()))))
    assert second.total == 2.0
    assert "NameError" in second.steps[0].results[0].text
    assert 'Submitted: {"total":1.0}' in [message.text for message in requests_of(agent)[-1].messages][3]


def test_failed_request_keeps_the_turns_and_closes_the_session() -> None:
    agent = agent_of(turn("print(stock('apples'))"), LMServerError("down"))
    with pytest.raises(LMServerError) as error:
        agent(question="?")
    run = AgentRun.of(error.value)
    assert [step.results[0].content for step in run.steps] == ["3"]
    agent.set_lm(FakeLM([turn("submit(4)")]))
    assert agent(history=run.history).total == 4.0


@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_closed_stream_runs_no_further_tool(mode: str) -> None:
    asked: list[str] = []
    agent = agent_of(turn("look('a')\nlook('b')"), tools=[Tool(lambda item: asked.append(item), "look")])

    async def first_tool() -> None:
        stream = agent.astream(question="?")
        async for event in stream:
            if isinstance(event, ToolDone):
                break
        await stream.aclose()

    if mode == "astream":
        asyncio.run(first_tool())
    else:
        stream = agent.stream(question="?")
        assert any(isinstance(event, ToolDone) for event in stream)
        stream.close()
    assert asked == ["a"]


def test_budget_limits_the_requests_of_a_run() -> None:
    agent = agent_of(turn("print(1)"), turn("print(2)"))
    with Budget(calls=1), pytest.raises(BudgetSpent):
        agent(question="?")


def test_large_result_of_a_tool_reaches_the_code_whole() -> None:
    agent = agent_of(turn("submit(len(page()))"), tools=[Tool(lambda: "x" * 100_000, "page", "A page.")])
    assert agent(question="?").total == 100_000.0


def test_names_of_tools_that_python_does_not_allow_are_changed() -> None:
    tools = [Tool.from_schema("get-weather", "Weather.", handler=lambda: 21), Tool(lambda: 7, "sum", "Seven.")]
    result = agent_of(turn("submit(get_weather() + sum_())"), tools=tools)(question="?")
    assert result.total == 28.0
    assert [call.name for call in result.steps[0].calls] == ["python", "get-weather", "sum"]
    assert python_name("class") == "class_"
    with pytest.raises(ToolDefinitionError, match="both 'a_b' in code"):
        agent_of(tools=[Tool(stock, "a-b"), Tool(stock, "a_b")])


def test_tool_of_the_provider_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="'web_search' runs at the provider"):
        CodeAct("question -> answer", tools=[Tool.web_search()])


def test_program_without_tools_runs_code_alone() -> None:
    assert agent_of(turn("submit(sum(range(10)))"), tools=())(question="?").total == 45.0


@pytest.mark.skipif(os.name != "posix", reason="SubprocessInterpreter needs POSIX")
def test_own_interpreter_runs_the_code() -> None:
    with SubprocessInterpreter(CodeLimits(seconds=5)) as interpreter:
        agent = agent_of(turn("import textwrap\nsubmit(stock('apples'))"), interpreter=interpreter)
        assert agent(question="?").total == 3.0


def test_names_of_fields_of_the_task_are_not_taken() -> None:
    agent: Any = CodeAct("code, functions -> reasoning, total: int")
    agent.set_lm(FakeLM([{"reasoning_": "r", "code_": "submit(reasoning='because', total=1)"}]))
    result = agent(code="a", functions="b")
    assert (result.reasoning, result.total) == ("because", 1)


def test_copies_and_pickles_run_and_saved_programs_load() -> None:
    agent = agent_of(turn("submit(stock('apples'))"), max_iters=3, max_calls=7)
    assert copy.deepcopy(agent)(question="?").total == 3.0
    again = pickle.loads(pickle.dumps(CodeAct("question -> total: int", tools=[stock])))
    again.set_lm(FakeLM([turn("submit(stock('pears'))")]))
    assert again(question="?").total == 4
    agent.load_state(agent.dump_state(), allow_unsafe_lm_state=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert agent.load_result(json.loads(json.dumps(agent_of(*TWO_TURNS)(question="?").to_json()))).total == 35.0


def test_saved_program_loads_with_its_options(tmp_path: Any) -> None:
    agent = CodeAct("question -> total: int", max_iters=3, max_calls=7)
    save_program(agent, tmp_path / "agent.json")
    loaded: Any = load_program(tmp_path / "agent.json")
    assert (type(loaded), loaded.max_iters, loaded.max_calls) == (CodeAct, 3, 7)
    with pytest.raises(StateError, match="interpreter"):
        save_program(CodeAct("q -> a", interpreter=SubprocessInterpreter()), tmp_path / "agent.json")


def test_missing_extra_is_named_when_the_agent_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monty, "find_spec", dict[str, object]().get)
    monty.default_interpreter.cache_clear()
    with pytest.raises(ConfigurationError, match=r'pip install "sigwire\[code\]"'):
        CodeAct("question -> answer")


@pytest.mark.parametrize("options", [{"parallel": 2}, {"max_output": 5}, {"large_results": "cut"}, {"max_cals": 3}])
def test_option_that_code_does_not_have_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"CodeAct has no option '{next(iter(options))}'"):
        CodeAct("question -> answer", **options)


@pytest.mark.parametrize("made", [CodeAct, ProgramOfThought, RLM])
@pytest.mark.parametrize("interpreter", [3, MontyInterpreter], ids=["number", "class"])
def test_interpreter_that_is_none_is_refused(made: Any, interpreter: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"interpreter is an object .* \(making {made.__name__}\)"):
        made("question -> answer", interpreter=interpreter)


def test_limit_of_calls_below_one_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_calls"):
        CodeAct("question -> answer", max_calls=0)


def test_submission_is_no_call_of_a_turn() -> None:
    code = "submit(total=sum([stock('lamp'), stock('shelf')]))"
    agent = CodeAct("question -> total: int", tools=[Tool(lambda item: 2, name="stock")], max_calls=2)
    agent.set_lm(FakeLM([{"reasoning": "", "code": code}]))
    assert agent(question="?").total == 4
