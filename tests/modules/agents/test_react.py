"""ReAct: one loop, the same scenarios with native tools and with tools as text; every run has outputs or a clear error.

``player`` returns the model of these tests: it plays turns of calls and texts, natively or in the text protocol, depending on
the model's capabilities, and records its requests.
"""

from __future__ import annotations

import asyncio
import datetime
import inspect
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.json import dumps
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.errors import (
    AgentStopped,
    ConfigurationError,
    ContextWindowExceededError,
    InputError,
    LMServerError,
    Refused,
    SignatureError,
    ToolWarning,
)
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents import conversation
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.run import AgentRun, ReActStep
from sigwire.modules.context.compaction import Compaction, clear_results
from sigwire.modules.turn_text import as_text
from sigwire.settings import context
from sigwire.signatures import InputField, OutputField, Signature
from sigwire.signatures.types import History, Image

pytestmark = pytest.mark.filterwarnings("ignore::sigwire.errors.ToolWarning")

NATIVE = Capabilities(native_tools=True, parallel_tool_calls=True)
TEXT = Capabilities()
BOTH_PROTOCOLS = pytest.mark.parametrize("capabilities", [NATIVE, TEXT], ids=["native", "text"])


def say(*calls: tuple[str, dict[str, Any]], text: str = "") -> tuple[str, tuple[tuple[str, dict[str, Any]], ...]]:
    """A turn: a text and calls, independent of the protocol."""
    return text, calls


def submit(**outputs: Any) -> Any:
    return say(("submit", outputs))


def written(turn: Any, capabilities: Capabilities) -> Any:
    """Return a turn in the protocol of the model."""
    if not isinstance(turn, tuple):
        return turn
    text, calls = turn
    if capabilities.native_tools:
        made = tuple(ToolCall("", name, arguments) for name, arguments in calls)
        return Choice(text=text, tool_calls=made, finish_reason="tool_calls" if made else "stop")
    blocks = [f"~~~tool_call\n{dumps({'name': name, 'arguments': arguments})}\n~~~" for name, arguments in calls]
    return Choice(text="\n\n".join([*([text] if text else []), *blocks]))


def player(turns: list[Any], capabilities: Capabilities = NATIVE) -> FakeLM:
    return FakeLM(
        [written(turn, capabilities) for turn in turns],
        capabilities=capabilities,
        usage=Usage(input_tokens=10, output_tokens=1),
    )


async def play(
    make: Callable[[], ReAct[..., Any]], turns: list[Any], capabilities: Capabilities, /, **inputs: Any
) -> Any:
    """Run blocking in a thread, awaited, and blocking inside the running loop; compare the three results."""
    results = []
    for kind in ("thread", "awaited", "inside"):
        agent = make()
        agent.set_lm(player(turns, capabilities))
        if kind == "awaited":
            results.append(await agent.acall(**inputs))
        elif kind == "thread":
            results.append(await asyncio.to_thread(agent, **inputs))
        else:
            results.append(agent(**inputs))
    plain = [
        (r.termination_reason, r.history, [(s.thought, s.calls, s.results, s.error) for s in r.steps]) for r in results
    ]
    assert plain[0] == plain[1] == plain[2]
    return results[0]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def double(n: int) -> int:
    """Double a number."""
    await asyncio.sleep(0)
    return 2 * n


def fail(reason: str) -> str:
    """Fail on purpose."""
    raise ValueError(reason)


class Sum(Signature):
    """Compute the sum."""

    question: str = InputField()
    answer: int = OutputField(ge=0)
    unit: Literal["eur", "usd"] = OutputField(default="eur")


def summing(**options: Any) -> ReAct[..., Any]:
    return ReAct(Sum, tools=[add, double, fail], **options)


# --- the same scenarios in both protocols -----------------------------------------------------------------


@BOTH_PROTOCOLS
async def test_react_runs_calls_and_returns_submitted_outputs(capabilities: Capabilities) -> None:
    turns = [say(("add", {"a": 1, "b": 2}), text="First add."), say(("double", {"n": 3})), submit(answer=6)]
    result = await play(summing, turns, capabilities, question="(1+2)*2?")
    assert (result.answer, result.unit, result.termination_reason) == (6, "eur", "submit")
    run = AgentRun.of(result)
    assert [step.thought for step in run.steps] == ["First add.", "", ""]
    assert [[call.name for call in step.calls] for step in run.steps] == [["add"], ["double"], ["submit"]]
    assert [step.results[0].content for step in run.steps] == [3, 6, "Completed."]
    assert [message.role for message in result.history if isinstance(message, Message)] == ["assistant", "tool"] * 3


@BOTH_PROTOCOLS
async def test_react_only_appends_to_the_conversation(capabilities: Capabilities) -> None:
    lm = player([say(("add", {"a": 1, "b": 2})), say(("double", {"n": 3})), submit(answer=6)], capabilities)
    agent = summing()
    agent.set_lm(lm)
    agent(question="?")
    first, second, third = (request.messages for request in lm.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert [message.role for message in first] == ["system", "user"]
    assert bool(lm.requests[0].tools) is capabilities.native_tools


@BOTH_PROTOCOLS
async def test_parallel_calls_have_results_in_order_and_unique_ids(capabilities: Capabilities) -> None:
    turns = [say(("add", {"a": 1, "b": 1}), ("double", {"n": 2}), ("add", {"a": 1, "b": 1})), submit(answer=8)]
    result = await play(summing, turns, capabilities, question="?")
    step = result.steps[0]
    assert [item.content for item in step.results] == [2, 4, 2]
    assert [item.id for item in step.results] == [call.id for call in step.calls]
    ids = [call.id for step in result.steps for call in step.calls]
    assert len(set(ids)) == len(ids) == 4


FAULTY: list[tuple[str, Any, str]] = [
    ("an unknown tool", ("subtract", {"a": 1}), "Unknown tool 'subtract'. The tools are: add, double, fail"),
    ("wrong arguments", ("add", {"a": "x", "b": 1}), "a"),
    ("a missing argument", ("add", {"a": 1}), "b"),
    ("a failing tool", ("fail", {"reason": "on purpose"}), "The tool failed. ValueError: on purpose"),
]


@BOTH_PROTOCOLS
@pytest.mark.parametrize(("name", "bad", "message"), FAULTY, ids=[case[0] for case in FAULTY])
async def test_invalid_call_gets_error_result_and_run_continues(
    capabilities: Capabilities, name: str, bad: Any, message: str
) -> None:
    result = await play(summing, [say(bad), submit(answer=1)], capabilities, question="?")
    assert result.answer == 1
    assert result.steps[0].results[0].is_error
    assert message in result.steps[0].results[0].text


@BOTH_PROTOCOLS
async def test_invented_names_of_any_length_are_bounded_in_the_conversation(capabilities: Capabilities) -> None:
    long = "x" * 100_000
    turns = [
        say((long, {}), ("submit", {"answer": 1})),
        submit(**{long: 1} | {f"o{n}": n for n in range(500)}),
        submit(answer=3),
    ]
    result = await play(summing, turns, capabilities, question="?")
    first, second, _ = result.history.messages[2::2]
    assert len(as_text([first])) < 1_000
    assert len(as_text([second])) < 2_000
    assert first.tool_results[0].name == result.steps[0].calls[0].name


@BOTH_PROTOCOLS
async def test_malformed_arguments_get_error_result_next_to_valid_calls(capabilities: Capabilities) -> None:
    if capabilities.native_tools:
        calls = (ToolCall.read("", "add", '{"a": 1, "b"'), ToolCall("", "double", {"n": 2}))
        turn = Choice(tool_calls=calls, finish_reason="tool_calls")
    else:
        good = '~~~tool_call\n{"name": "double", "arguments": {"n": 2}}\n~~~'
        turn = Choice(text=f'~~~tool_call\n{{"name": "add", "arguments": {{"a": 1, "b"}}}}\n~~~\n\n{good}')
    result = await play(summing, [turn, submit(answer=4)], capabilities, question="?")
    first, second = result.steps[0].results
    assert (first.is_error, second.content) == (True, 4)
    assert "JSON" in first.text


@BOTH_PROTOCOLS
async def test_invalid_outputs_are_rejected_by_field_and_submitted_again(capabilities: Capabilities) -> None:
    turns = [submit(answer=-1), submit(result=3), submit(answer=3, unit="yen"), submit(answer=3, unit="usd")]
    result = await play(summing, turns, capabilities, question="?")
    assert (result.answer, result.unit) == (3, "usd")
    texts = [step.results[0].text for step in result.steps]
    assert "answer: " in texts[0]
    assert "answer: missing" in texts[1]
    assert "result: not an output field" in texts[1]
    assert "unit: " in texts[2]
    assert [step.results[0].is_error for step in result.steps] == [True, True, True, False]


@BOTH_PROTOCOLS
async def test_submit_counts_when_no_other_call_of_the_turn_failed(capabilities: Capabilities) -> None:
    both = say(("submit", {"answer": 3}), ("add", {"a": 1, "b": 2}))
    result = await play(summing, [both], capabilities, question="?")
    assert [item.content for item in result.steps[0].results] == ["Completed.", 3]
    failed = say(("fail", {"reason": "no"}), ("submit", {"answer": 3}))
    result = await play(summing, [failed, submit(answer=4)], capabilities, question="?")
    assert result.answer == 4
    assert "fail failed in this turn" in result.steps[0].results[1].text


@BOTH_PROTOCOLS
async def test_first_valid_of_two_submissions_counts(capabilities: Capabilities) -> None:
    turn = say(("submit", {"answer": -3}), ("submit", {"answer": 3}), ("submit", {"answer": 4}))
    result = await play(summing, [turn], capabilities, question="?")
    assert result.answer == 3
    assert [item.is_error for item in result.steps[0].results] == [True, False, True]


@BOTH_PROTOCOLS
async def test_plain_answer_is_the_output_when_output_is_one_text(capabilities: Capabilities) -> None:
    def make() -> ReAct[..., Any]:
        return ReAct("question -> answer", tools=[add])

    result = await play(make, [say(("add", {"a": 1, "b": 2})), say(text=" It is 3. ")], capabilities, question="?")
    assert (result.answer, result.termination_reason, len(result.attempts)) == ("It is 3.", "no_calls", 2)


@BOTH_PROTOCOLS
async def test_plain_answer_is_extracted_by_one_request_when_outputs_are_typed(capabilities: Capabilities) -> None:
    extracted = {"reasoning": "It said so.", "answer": 3, "unit": "usd"}
    result = await play(summing, [say(text="Three dollars."), extracted], capabilities, question="?")
    assert (result.answer, result.unit, result.termination_reason) == (3, "usd", "no_calls")
    assert [attempt.purpose for attempt in result.attempts] == ["ask", "extract"]


@BOTH_PROTOCOLS
async def test_limit_counts_turns_and_results_are_extracted(capabilities: Capabilities) -> None:
    again = say(("add", {"a": 1, "b": 2}))
    extracted = {"reasoning": "The sum was found.", "answer": 3, "unit": "eur"}
    result = await play(lambda: summing(max_iters=3), [again, again, again, extracted], capabilities, question="?")
    assert (result.answer, result.termination_reason, len(result.steps)) == (3, "limit", 3)
    result = await play(summing, [again, extracted], capabilities, question="?", max_iters=1)
    assert (result.termination_reason, len(result.steps)) == ("limit", 1)


async def test_extraction_prompt_has_inputs_and_all_results() -> None:
    extracted = {"reasoning": "r", "answer": 3, "unit": "eur"}
    lm = player([say(("add", {"a": 1, "b": 2}), text="Let me add."), extracted])
    agent = summing(max_iters=1)
    agent.set_lm(lm)
    result = agent(question="What is 1+2?")
    shown = lm.requests[-1].messages[-1].text
    assert all(text in shown for text in ("What is 1+2?", "Let me add.", 'add({"a":1,"b":2})', "-> 3"))
    assert result.reasoning == "r"
    assert lm.requests[-1].tools == ()


@BOTH_PROTOCOLS
@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        ([say(("add", {"a": 1, "b": 2}))], "limit"),
        ([say(text="Three.")], "no_calls"),
        ([Choice(text="")] * 3, "parse_error"),
    ],
)
async def test_run_without_outputs_raises_agent_stopped_when_extract_is_off(
    capabilities: Capabilities, turns: list[Any], reason: str
) -> None:
    agent = summing(extract=False, max_iters=3 if reason == "parse_error" else 1)
    agent.set_lm(player(turns, capabilities))
    with pytest.raises(AgentStopped) as caught:
        agent(question="?")
    run = AgentRun.of(caught.value)
    assert caught.value.reason == run.termination_reason == reason
    assert len(run.steps) == len(run.attempts) == len(turns)
    assert isinstance(run.history, History)
    agent.set_lm(player(turns, capabilities))
    with pytest.raises(AgentStopped, match="answer"):
        await agent.acall(question="?")
    agent.set_lm(player(turns, capabilities))
    with pytest.raises(AgentStopped) as streamed:
        list(agent.stream(question="?"))
    assert AgentRun.of(streamed.value).termination_reason == reason


@BOTH_PROTOCOLS
@pytest.mark.parametrize("bad", [Choice(text=""), Choice(text="Let me", finish_reason="length")], ids=["empty", "cut"])
async def test_unreadable_turn_is_reported_to_model_and_run_continues(capabilities: Capabilities, bad: Choice) -> None:
    result = await play(summing, [bad, bad, submit(answer=3)], capabilities, question="?")
    assert (result.answer, result.termination_reason) == (3, "submit")
    assert result.steps[0].error is not None
    assert "is invalid" in result.history.messages[-3].text
    assert len(result.attempts) == 3


async def test_long_unreadable_turn_is_shortened_in_the_conversation() -> None:
    bad = Choice(text="x" * 100_000, finish_reason="length")
    result = await play(summing, [bad, submit(answer=3)], NATIVE, question="?")
    assert sum(len(turn.text) for turn in result.history.messages[1:]) < 10_000
    assert result.steps[0].thought == bad.text


async def test_consecutive_unreadable_turns_end_loop_and_outputs_are_extracted() -> None:
    extracted = {"reasoning": "r", "answer": 0, "unit": "eur"}
    result = await play(summing, [Choice(text="")] * 3 + [extracted], NATIVE, question="?")
    assert (result.answer, result.termination_reason) == (0, "parse_error")


async def test_failed_extraction_raises_agent_stopped() -> None:
    agent = summing(max_iters=1)
    agent.set_lm(player([say(("add", {"a": 1, "b": 2})), "nothing of use"]))
    with pytest.raises(AgentStopped, match="could not be extracted") as caught:
        agent(question="?")
    assert (caught.value.reason, len(caught.value.steps)) == ("limit", 1)


# --- errors and interrupts----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error"), [(LMServerError("down"), LMServerError), (Choice(refusal="I will not"), Refused)]
)
async def test_error_has_steps_and_history_to_continue_from(answer: Any, error: type[Exception]) -> None:
    agent = summing()
    agent.set_lm(player([say(("add", {"a": 1, "b": 2})), answer]))
    with pytest.raises(error) as caught:
        agent(question="1+2?")
    run = AgentRun.of(caught.value)
    assert (len(run.steps), run.termination_reason) == (1, None)
    if isinstance(caught.value, Refused):
        assert len(run.attempts) == 2
    lm = player([submit(answer=3)])
    agent.set_lm(lm)
    assert agent(history=run.history).answer == 3
    assert [message.role for message in lm.requests[0].messages] == ["system", "user", "assistant", "tool"]
    assert "1+2?" in lm.requests[0].messages[1].text


async def test_cancelled_run_has_history_with_a_result_for_every_call() -> None:
    started = asyncio.Event()

    async def wait() -> None:
        started.set()
        await asyncio.sleep(10)

    async def add(a: int, b: int) -> int:  # awaited: finished in its first step, also on a busy machine
        return a + b

    agent = ReAct("question -> answer", tools=[add, wait])
    agent.set_lm(player([say(("add", {"a": 1, "b": 2}), ("wait", {}))]))
    task = asyncio.ensure_future(agent.acall(question="?"))
    await started.wait()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    run = AgentRun.of(caught.value)
    results = run.history.messages[-1].tool_results  # type: ignore[union-attr]
    assert [result.content for result in results] == [3, conversation.INTERRUPTED]
    assert [[call.name for call in step.calls] for step in run.steps] == [["add", "wait"]]
    assert run.steps[0].results == results
    assert (run.termination_reason, run.steps[0].results[0].content, len(run.attempts)) == ("cancelled", 3, 1)
    agent.set_lm(player([submit(answer="done")]))
    assert (await agent.acall(history=run.history)).answer == "done"


def test_interrupt_in_tool_propagates_with_history() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    agent = ReAct("question -> answer", tools=[stop])
    agent.set_lm(player([say(("stop", {}))]))
    with pytest.raises(KeyboardInterrupt) as caught:
        agent(question="?")
    run = AgentRun.of(caught.value)
    assert run.termination_reason == "cancelled"
    assert run.history.messages[-1].tool_results[0].is_error  # type: ignore[union-attr]


async def _blocking(agent: Any) -> Any:
    return agent(q="?")


async def _streamed(agent: Any) -> Any:
    return [*agent.stream(q="?")][-1].value


async def _streamed_awaited(agent: Any) -> Any:
    return [event async for event in agent.astream(q="?")][-1].value


DRIVES: dict[str, Callable[[Any], Any]] = {
    "blocking": _blocking, "awaited": lambda agent: agent.acall(q="?"), "streamed": _streamed,
    "streamed, awaited": _streamed_awaited,
}  # fmt: skip


@pytest.mark.filterwarnings("always::sigwire.errors.ToolWarning")
@pytest.mark.parametrize("drive", DRIVES)
async def test_bug_in_a_tool_is_kept_on_its_step_and_on_the_prediction(drive: str) -> None:
    def rate(currency: str) -> float:
        return {"EUR": 1.0}[currency]

    agent = ReAct("q -> r", tools=[rate])
    agent.set_lm(player([say(("rate", {"currency": "USD"})), submit(r="x")]))
    with pytest.warns(ToolWarning, match=r"^rate raised KeyError\('USD'\) at test_react\.py:\d+;"):
        result = await DRIVES[drive](agent)
    first, last = AgentRun.of(result).steps
    assert [warning.feature for warning in first.warnings] == ["tool"]
    assert (last.warnings, result.warnings) == ((), first.warnings)
    assert isinstance(first.results[0].exception, KeyError)
    assert ReActStep.from_json(first.to_json()) == first
    assert "test_react" not in as_text(result.history.messages)


async def test_tool_error_aborts_run_on_request() -> None:
    agent = ReAct("question -> answer", tools=[fail], on_tool_error="abort")
    for kind in ("blocking", "awaited"):
        agent.set_lm(player([say(("fail", {"reason": "no"}))]))
        with pytest.raises(ValueError, match="no"):
            await (agent.acall(question="?") if kind == "awaited" else asyncio.to_thread(agent, question="?"))


# --- context overflow ---------------------------------------------------------------------------------------


class Narrow(FakeLM):
    """A model with a context window of a few characters."""

    limit = 10**9

    def _answer(self, request: Request) -> Any:
        size = sum(len(dumps(message.to_json())) for message in request.messages)
        if size > self.limit:
            self.requests.append(request)
            raise ContextWindowExceededError("too long", model="narrow")
        return super()._answer(request)


def page(n: int) -> str:
    """Read a page."""
    return f"page {n}: " + "x" * 2000


def reading(turns: int, limit: int, **options: Any) -> tuple[ReAct[..., Any], Narrow]:
    agent = ReAct("question -> answer", tools=[page], **options)
    calls = [written(say(("page", {"n": n})), NATIVE) for n in range(turns)]
    lm = Narrow([*calls, written(submit(answer="read"), NATIVE)], capabilities=NATIVE)
    lm.limit = limit
    agent.set_lm(lm)
    return agent, lm


def test_context_overflow_clears_old_results_and_keeps_task_and_latest() -> None:
    agent, lm = reading(6, 8500, compaction=Compaction([clear_results()], to=0.6))
    result = agent(question="Read them all.")
    assert (result.answer, result.termination_reason) == ("read", "submit")
    last = lm.requests[-1].messages
    results = [message.tool_results[0].text for message in last if message.role == "tool"]
    assert results[0] == f'[Result left out: 2,008 characters; read_result(id="{result.steps[0].calls[0].id}")]'
    assert results[-1] == page(5)
    assert "Read them all." in last[1].text
    assert all(step.results[0].content == page(n) for n, step in enumerate(result.steps[:-1]))
    assert any(attempt.error == "context_length" for attempt in result.attempts)


def test_context_overflow_error_has_sizes_when_nothing_can_be_removed() -> None:
    agent, _ = reading(3, 3500)
    with pytest.raises(
        ContextWindowExceededError, match=r"instructions \d+, tools \d+, task \d+, latest turn \d+"
    ) as caught:
        agent(question="Read." * 400)
    run = AgentRun.of(caught.value)
    assert isinstance(run.history, History)
    assert run.termination_reason == "context_window_exceeded"


def test_context_overflow_drops_turns_if_their_summary_would_be_as_long() -> None:
    agent, lm = reading(3, 3500)
    result = agent(question="?")
    assert (result.answer, result.termination_reason) == ("read", "submit")
    assert [attempt.purpose for attempt in result.attempts if attempt.purpose == "summarize"] == []
    assert [fold.summary for fold in result.history.folds] == [""] * len(result.history.folds) != []
    assert [step.results[0].content for step in result.steps[:-1]] == [page(n) for n in range(3)]
    assert page(2) in [each.text for each in lm.requests[-1].messages[-1].tool_results]


def test_context_overflow_raises_agent_stopped_when_extract_is_off() -> None:
    agent, _ = reading(3, 3500, extract=False)
    with pytest.raises(AgentStopped) as caught:
        agent(question="Read." * 400)  # with the latest turn alone too long
    assert caught.value.reason == "context_window_exceeded"
    assert isinstance(caught.value.__cause__, ContextWindowExceededError)


# --- histories ----------------------------------------------------------------------------------------------


@BOTH_PROTOCOLS
async def test_run_continues_from_history_with_new_inputs_and_ids(capabilities: Capabilities) -> None:
    first = await play(summing, [say(("add", {"a": 1, "b": 2})), submit(answer=3)], capabilities, question="1+2?")
    before = first.history.to_json()
    second = await play(
        summing, [say(("double", {"n": 3})), submit(answer=6)], capabilities, question="Doubled?", history=first.history
    )
    assert first.history.to_json() == before
    assert len(second.history) == 2 * len(first.history)
    assert second.history.messages[: len(first.history)] == first.history.messages
    ids = [call.id for turn in second.history if isinstance(turn, Message) for call in turn.tool_calls]
    assert len(set(ids)) == len(ids) == 4
    assert len(second.steps) == 2


CONTINUE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from tests.modules.agents.test_react import NATIVE, TEXT, player, say, submit, summing

agent = summing()
lm = player([say(("double", {"n": 3})), submit(answer=6)], {"native": NATIVE, "text": TEXT}[sys.argv[2]])
agent.set_lm(lm)
result = agent(question="Doubled?", history=json.load(sys.stdin))
roles = [message.role for message in lm.requests[0].messages]
print(json.dumps({"answer": result.answer, "history": result.history.to_json(), "roles": roles}))
"""


@BOTH_PROTOCOLS
@pytest.mark.long
async def test_run_continues_from_serialized_history_in_another_process(capabilities: Capabilities) -> None:
    first = await play(summing, [say(("add", {"a": 1, "b": 2})), submit(answer=3)], capabilities, question="1+2?")
    root = Path(__file__).resolve().parents[3]
    protocol = "native" if capabilities.native_tools else "text"
    process = subprocess.run(
        [sys.executable, "-c", CONTINUE, str(root), protocol],
        input=json.dumps(first.history.to_json()),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=root,
    )
    assert process.returncode == 0, process.stderr
    there = json.loads(process.stdout)
    assert there["answer"] == 6
    tool_role = "tool" if capabilities.native_tools else "user"
    assert there["roles"] == ["system", "user", "assistant", tool_role, "assistant", tool_role, "user"]
    here = await play(
        summing, [say(("double", {"n": 3})), submit(answer=6)], capabilities, question="Doubled?", history=first.history
    )
    assert there["history"] == here.history.to_json()


class Order(pydantic.BaseModel):
    item: str
    count: int = 1
    due: datetime.date = datetime.date(2026, 1, 2)


@BOTH_PROTOCOLS
def test_serialized_history_gives_equal_requests_for_typed_inputs_and_media(capabilities: Capabilities) -> None:
    class Check(Signature):
        """Check the order."""

        order: Order = InputField()
        picture: Image = InputField()
        verdict: str = OutputField()

    requests = []
    first = ReAct(Check, tools=[add])
    first.set_lm(player([say(("add", {"a": 1, "b": 2})), submit(verdict="fine")], capabilities))
    history = first(order=Order(item="tea"), picture=Image("https://example.com/tea.png")).history
    for before in (history, json.loads(json.dumps(history.to_json()))):
        lm = player([submit(verdict="fine")], capabilities)
        first.set_lm(lm)
        first(order=Order(item="milk"), picture=Image("https://example.com/milk.png"), history=before)
        requests.append(lm.requests[0])
    assert requests[0] == requests[1]


@BOTH_PROTOCOLS
async def test_run_continues_from_any_prefix_of_a_history(capabilities: Capabilities) -> None:
    turns = [say(("add", {"a": 1, "b": 2}), ("double", {"n": 2})), say(("double", {"n": 3})), submit(answer=3)]
    whole = (await play(summing, turns, capabilities, question="?")).history
    for end in range(len(whole) + 1):
        lm = player([submit(answer=1)], capabilities)
        agent = summing()
        agent.set_lm(lm)
        result = agent(question="And now?", history=whole[:end])
        assert result.answer == 1
        messages = result.history.messages
        for at, message in enumerate(messages):
            if isinstance(message, Message) and message.tool_calls:
                answered = [item.id for item in messages[at + 1].tool_results]  # type: ignore[union-attr]
                assert answered == [call.id for call in message.tool_calls]


def test_answer_open_calls_is_idempotent_and_marks_added_results() -> None:
    call = ToolCall("call_0", "add", {})
    cut = History([{"question": "?"}, Message.assistant("", [call, ToolCall("call_1", "add", {})])])
    cut = cut.append(Message.tool(ToolResult("call_1", "add", 2), ToolResult("stray", "add", 3)), Message.tool())
    done = conversation.answer_open_calls(cut)
    assert [result.content for result in done.messages[-1].tool_results] == [conversation.INTERRUPTED, 2]  # type: ignore[union-attr]
    assert conversation.answer_open_calls(done) is done


async def test_history_with_outputs_in_turns_keeps_its_answers() -> None:
    lm = player([submit(answer=3)])
    agent = summing()
    agent.set_lm(lm)
    agent(question="And 1+2?", history={"messages": [{"question": "1+1?", "answer": 2, "unit": "usd"}]})
    assert [message.role for message in lm.requests[0].messages] == ["system", "user", "assistant", "user"]
    assert lm.requests[0].messages[2].text == '{"answer":2,"unit":"usd"}'


# --- the result ---------------------------------------------------------------------------------------------


async def test_usage_and_attempts_cover_all_turns_and_each_step_has_its_share() -> None:
    result = await play(
        summing, [say(("add", {"a": 1, "b": 2})), Choice(text=""), submit(answer=3)], NATIVE, question="?"
    )
    assert result.usage == Usage(input_tokens=30, output_tokens=3)
    assert [step.usage.input_tokens for step in result.steps] == [10, 10, 10]
    assert len(result.attempts) == 3


async def test_steps_and_result_are_equal_after_json() -> None:
    result = await play(summing, [say(("add", {"a": 1, "b": 2})), submit(answer=3)], NATIVE, question="?")
    for step in result.steps:
        assert ReActStep.from_json(json.loads(json.dumps(step.to_json()))) == step
    assert json.loads(json.dumps(result.to_json()))["fields"]["answer"] == 3


async def test_long_result_is_shortened_for_model_and_complete_in_run() -> None:
    agent = ReAct("question -> answer", tools=[page], max_output=100)
    lm = player([say(("page", {"n": 1})), submit(answer="x")])
    agent.set_lm(lm)
    result = agent(question="?")
    shown = lm.requests[1].messages[-1].tool_results[0].text
    assert "characters omitted" in shown
    assert len(shown) < 200
    assert result.steps[0].results[0].content == page(1)


def test_outputs_named_like_fields_of_the_run_have_priority() -> None:
    agent = ReAct("question -> steps: list[str], history", tools=[add])
    agent.set_lm(player([submit(steps=["a"], history="long ago")]))
    result = agent(question="?")
    assert (result.steps, result.history) == (["a"], "long ago")
    run = AgentRun.of(result)
    assert (len(run.steps), len(run.history), run.termination_reason) == (1, 3, "submit")
    with pytest.raises(InputError, match="does not come from a ReAct run"):
        AgentRun.of(object())


# --- tools and signatures ----------------------------------------------------------------------------------


def test_react_without_tools_is_a_plain_prediction() -> None:
    lm = FakeLM([{"answer": 3, "unit": "usd"}], capabilities=NATIVE)
    agent = ReAct(Sum)
    agent.set_lm(lm)
    result = agent(question="1+2?")
    assert (result.answer, result.unit, result.steps) == (3, "usd", ())
    assert len(lm.requests) == 1
    assert lm.requests[0].tools == ()
    assert len(result.history) == 2


@BOTH_PROTOCOLS
@pytest.mark.parametrize("name", ["submit", "finish"])
async def test_user_tool_may_be_named_submit_or_finish(capabilities: Capabilities, name: str) -> None:
    def submit_tool(form: str) -> str:
        return f"handed in {form}"

    def make() -> ReAct[..., Any]:
        return ReAct("question -> answer", tools=[Tool(submit_tool, name=name)])

    ending = "submit_answer" if name == "submit" else "submit"
    assert list(make().tools) == [name, ending]
    turns = [say((name, {"form": "A"})), say((ending, {"answer": "done"}))]
    result = await play(make, turns, capabilities, question="?")
    assert (result.answer, result.steps[0].results[0].content) == ("done", "handed in A")


@BOTH_PROTOCOLS
async def test_nested_outputs_are_submitted_typed(capabilities: Capabilities) -> None:
    class Shop(Signature):
        """Take the order."""

        request: str = InputField()
        orders: list[Order] = OutputField()
        note: str | None = OutputField(default=None)

    result = await play(
        lambda: ReAct(Shop, tools=[add]), [submit(orders=[{"item": "tea"}])], capabilities, request="tea, please"
    )
    assert (result.orders, result.note) == ([Order(item="tea")], None)


def test_field_names_of_signature_never_clash_with_those_of_react() -> None:
    agent = ReAct("tools, tool_calls, history, trajectory -> answer", tools=[add])
    agent.set_lm(player([say(("add", {"a": 1, "b": 2})), {"reasoning": "r", "answer": "three"}]))
    result = agent(tools="t", tool_calls="c", history="h", trajectory="j", max_iters=1)
    assert result.answer == "three"


@pytest.mark.parametrize(
    "text", ["question, tools: list[Tool] -> answer", "question, t: list[Tool] -> calls: ToolCalls"]
)
def test_react_refuses_signature_with_tools_field(text: str) -> None:
    with pytest.raises(SignatureError, match="ReAct offers tools"):
        ReAct(text, tools=[add])


async def test_react_refuses_wrong_inputs_before_any_request() -> None:
    agent = summing()
    lm = player([submit(answer=1)])
    agent.set_lm(lm)
    for wrong in ({}, {"qestion": "?"}, {"question": "?", "answer": 3}):
        with pytest.raises(InputError, match="ReAct"):
            agent(**wrong)
    with pytest.raises(InputError, match="by name"):
        agent("?")
    assert lm.requests == []


def test_react_predictors_have_dspy_names(tmp_path: Path) -> None:
    agent = summing()
    assert [name for name, _ in agent.named_predictors()] == ["react", "extract.predict"]
    agent.react.signature = agent.react.signature.with_instructions("Add carefully.")
    agent.save(tmp_path / "agent.json")
    fresh = summing()
    fresh.load(tmp_path / "agent.json")
    assert fresh.react.signature.instructions == "Add carefully."
    copied = agent.deepcopy()
    assert copied.react is not agent.react
    assert copied.toolbox is agent.toolbox


def test_runs_of_one_agent_in_several_threads_are_separate() -> None:
    agent = ReAct("question -> answer", tools=[double])
    lock = threading.Lock()

    def answer(request: Request) -> Any:
        with lock:
            number = int(request.messages[1].text.split()[-1])
            done = [message for message in request.messages if message.role == "tool"]
        if not done:
            return Choice(tool_calls=(ToolCall("", "double", {"n": number}),), finish_reason="tool_calls")
        return Choice(tool_calls=(ToolCall("", "submit", {"answer": done[-1].tool_results[0].text}),))

    with context(lm=FakeLM(answer, capabilities=NATIVE)):
        results = agent.batch([{"question": f"double {n}"} for n in range(20)], num_threads=4)
    assert [result.answer for result in results] == [str(2 * n) for n in range(20)]


@pytest.mark.parametrize("turns", [-1, "3", None])
def test_max_iters_must_be_a_number(turns: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_iters is a number of turns"):
        ReAct("question -> answer", max_iters=turns)
    if turns is not None:  # not given
        with pytest.raises(ConfigurationError, match="max_iters is a number of turns"):
            ReAct("question -> answer")(question="?", max_iters=turns)


LAID_OUT: list[tuple[Any, str, str, dict[str, Any] | None]] = [
    (ChatAdapter(), "question -> answer", "[[ ## answer ## ]]\nThree.\n\n[[ ## completed ## ]]", {"answer": "Three."}),
    (ChatAdapter(), "question -> answer", "So:\n\n[[ ## answer ## ]]\nThree.", {"answer": "Three."}),
    (
        ChatAdapter(),
        "question -> n: int, unit",
        "[[ ## n ## ]]\n3\n\n[[ ## unit ## ]]\nusd\n\n[[ ## completed ## ]]",
        {"n": 3, "unit": "usd"},
    ),
    (JSONAdapter(), "question -> answer", '{"answer": "Three."}', {"answer": "Three."}),
    (XMLAdapter(), "question -> answer", "<answer>\nThree.\n</answer>", {"answer": "Three."}),
    (
        ChatAdapter(),
        "question -> n: int",
        "[[ ## n ## ]]\nmany\n\n[[ ## completed ## ]]",
        None,
    ),  # not parsable: extracted
]


@pytest.mark.parametrize(
    ("adapter", "signature", "text", "outputs"), LAID_OUT, ids=[text[:20] for _, _, text, _ in LAID_OUT]
)
async def test_outputs_in_adapter_layout_are_parsed_without_submit(
    adapter: Any, signature: str, text: str, outputs: dict[str, Any] | None
) -> None:
    agent = ReAct(signature, tools=[add], extract=False)
    agent.set_lm(player([say(text=text)] * 2))
    with context(adapter=adapter):
        for ask in (agent, agent.acall):
            if outputs is None:
                with pytest.raises(AgentStopped):
                    await _done(ask(question="?"))
                continue
            result = await _done(ask(question="?"))
            assert {name: result[name] for name in outputs} == outputs
            assert (result.termination_reason, len(result.attempts)) == ("no_calls", 1)


async def _done(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
