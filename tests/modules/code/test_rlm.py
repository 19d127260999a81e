"""Inputs of any length are variables of a session; requests have their beginnings, and what code printed."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import pytest

import sigwire
from sigwire import (
    AgentRun,
    AgentStopped,
    AskStart,
    Budget,
    BudgetSpent,
    ConfigurationError,
    ContextWindowExceededError,
    FakeLM,
    FieldDelta,
    FieldPartial,
    InputError,
    ToolDone,
    Usage,
)
from sigwire.errors import LMAuthenticationError, LMContentFilteredError, LMInvalidRequestError, LMServerError
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.monty import MontyInterpreter
from sigwire.modules.code.rlm import RLM
from sigwire.modules.context.compaction import Compaction, drop_oldest
from tests.modules.code.driving import MODES, called, events, size_of

LOG = "ok\n" * 1000 + "ERROR disk full"


def turn(code: str) -> dict[str, str]:
    return {"reasoning": f"Run {len(code)} characters.", "code": code}


def reader(*turns: Any, answers: Any = (), **options: Any) -> tuple[Any, FakeLM, FakeLM]:
    """Return a module, the model of its turns and the model that its code asks."""
    lm, sub = FakeLM(turns, usage=Usage(100, 10)), FakeLM(answers, model="sub", usage=Usage(5, 1))
    program = RLM("log -> cause, lines: int", sub_lm=sub, **options)
    program.set_lm(lm)
    return program, lm, sub


TURNS = (
    turn("lines = log.splitlines()\nprint(len(lines))\nlines[-1]"),
    turn("cause = llm_query('The cause? ' + lines[-1])"),
    turn("print(cause)"),
    turn("submit(cause=cause, lines=len(lines))"),
)


@pytest.mark.parametrize("mode", MODES)
def test_run_reads_asks_and_submits(mode: str) -> None:
    program, lm, sub = reader(*TURNS, answers=["the disk"])
    result = called(mode, program, log=LOG)
    assert (result.cause, result.lines, result.termination_reason) == ("the disk", 1001, "submit")
    assert [step.results[0].text for step in result.steps] == [
        "1001\n'ERROR disk full'",
        "(The code printed nothing. Print what you need to see.)",
        "the disk",
        "Submitted.",
    ]
    assert [request.messages[-1].text for request in sub.requests] == ["The cause? ERROR disk full"]
    assert lm.requests[1].messages[-1].text == "1001\n'ERROR disk full'"
    assert [attempt.model for attempt in result.attempts] == ["fake", "fake", "sub", "fake", "fake"]
    assert (AgentRun.of(result).usage.input_tokens, result.steps[1].usage.input_tokens) == (405, 105)


def test_conversation_is_only_appended_to() -> None:
    program, lm, _ = reader(*TURNS, answers=["the disk"])
    program(log=LOG)
    for earlier, later in zip(lm.requests, lm.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_input_of_10_megabytes_never_reaches_a_prompt(mode: str) -> None:
    code = "parts = [log[n:n + 1000] for n in range(0, len(log), 2_500_000)]\nfound = llm_query_batched(parts)\nlog"
    program, lm, sub = reader(
        turn("print(log)"), turn(code), turn("submit(cause=found[3], lines=len(log))"), answers=lambda request: "seen"
    )
    result = called(mode, program, log="a line of the log\n" * 600_000)
    assert (result.cause, result.lines) == ("seen", 10_800_000)
    assert max(size_of(request) for request in lm.requests) < 30_000  # two results of at most 10,000 characters
    assert size_of(lm.requests[0]) < 3_000
    assert [size_of(request) for request in sub.requests] == [1000] * 5


def test_printed_text_is_cut_for_the_model() -> None:
    program, lm, _ = reader(turn("print(log)\nlog"), turn("submit('x', 1)"), max_output_chars=100)
    program(log=LOG)
    shown = lm.requests[1].messages[-1].text
    assert "more characters)" in shown
    assert len(shown) < 300


def test_types_and_beginnings_of_inputs_are_in_the_first_message() -> None:
    lm = FakeLM([turn("submit(answer=table['a'][1] + k)")])
    program = RLM("table: dict[str, list[int]], k: int -> answer: int", lm=lm)
    assert program(table={"a": [1, 2]}, k=3).answer == 5
    assert "table: dict of 1 keys: {'a': [1, 2]}\nk: int: 3" in lm.requests[0].messages[1].text


@pytest.mark.parametrize("mode", MODES)
def test_texts_of_a_batch_are_asked_and_answered_in_order(mode: str) -> None:
    program, _, sub = reader(
        turn("submit(cause=' '.join(llm_query_batched(['a', 'b', 'c'])), lines=len(llm_query_batched([])))"),
        answers=lambda request: request.messages[-1].text.upper(),
    )
    assert called(mode, program, log="").cause == "A B C"
    assert sorted(request.messages[-1].text for request in sub.requests) == ["a", "b", "c"]


def test_failed_text_of_a_batch_is_an_error_in_its_place() -> None:
    def answer(request: Any) -> Any:
        return LMContentFilteredError("no") if "bad" in request.messages[-1].text else "fine"

    program, _, _ = reader(turn("submit(cause=str(llm_query_batched(['good', 'bad'])), lines=0)"), answers=answer)
    result = program(log="")
    assert result.cause == "['fine', '[ERROR] LMContentFilteredError: no']"


def test_failed_text_is_an_exception_that_code_can_catch() -> None:
    code = "try:\n    llm_query('x')\nexcept RuntimeError as error:\n    submit(cause=str(error), lines=0)"
    program, _, _ = reader(turn(code), answers=[ContextWindowExceededError("too long")])
    assert program(log="").cause == "ContextWindowExceededError: too long"


@pytest.mark.parametrize("error", [LMServerError("down"), BudgetSpent])
def test_error_that_is_not_of_one_text_ends_the_run(error: Any) -> None:
    program, lm, _ = reader(
        turn("x = 1"), turn("llm_query('x')"), answers=[error] if error is not BudgetSpent else ["y"]
    )
    budget = Budget(calls=2) if error is BudgetSpent else Budget()
    with pytest.raises((LMServerError, BudgetSpent)) as raised, budget:
        program(log="")
    run = AgentRun.of(raised.value)
    assert [step.results[0].text.split(".")[0] for step in run.steps] == [
        "(The code printed nothing", "The code was interrupted",
    ]  # fmt: skip
    assert len(lm.requests) == 2


@pytest.mark.parametrize("code", ["for n in range(3): llm_query(str(n + 1))", "llm_query_batched(['1', '2', '3'])"])
def test_calls_above_the_limit_are_an_error_for_the_code(code: str) -> None:
    program, lm, sub = reader(
        turn("llm_query('first')"), turn(code), turn("submit('x', 0)"), answers=lambda request: "y", max_llm_calls=2
    )
    result = program(log="")
    assert "above the limit" in lm.requests[2].messages[-1].text
    assert len(sub.requests) == (2 if "for" in code else 1)
    assert len(result.attempts) == 3 + len(sub.requests)


@pytest.mark.parametrize("given", ["''", "3", "None", "['a', 4]"])
def test_queries_without_text_are_refused_and_not_counted(given: str) -> None:
    code = f"try:\n    llm_query({given})\nexcept ValueError as error:\n    submit(cause=str(error), lines=0)"
    program, _, sub = reader(turn(code))
    assert "text that is not empty" in program(log="").cause
    assert sub.requests == []


def test_code_asks_the_model_of_the_module_by_default() -> None:
    lm = FakeLM([turn("submit(llm_query('Why?'), 0)"), "because"])
    program = RLM("log -> cause, lines: int")
    with sigwire.context(lm=lm):
        assert program(log="").cause == "because"


def test_run_needs_no_model_beside_functions_in_place_of_its_predictors() -> None:
    program: Any = RLM("log -> cause, lines: int", tools=[len], max_iters=1)
    program.generate_action = lambda **inputs: sigwire.Prediction(reasoning="r", code="log + '!'")
    program.extract = lambda **inputs: sigwire.Prediction(cause=inputs["session"][-2:-1], lines=0)
    assert program(log="disk").cause == "!"
    assert list(program.tools) == ["len"]


def test_invalid_outputs_are_sent_back() -> None:
    program, lm, _ = reader(turn("submit(cause=1)"), turn("submit(cause='x', lines=7)"))
    assert program(log="").lines == 7
    assert "lines: missing" in lm.requests[1].messages[-1].text


def test_inputs_are_variables_again_after_a_limit_ended_the_session() -> None:
    interpreter = MontyInterpreter(CodeLimits(seconds=0.05))
    program, lm, _ = reader(
        turn("mine = 1\nwhile True: pass"), turn("len(log)"), turn("mine"), turn("submit('x', len(log))"),
        interpreter=interpreter,
    )  # fmt: skip
    assert program(log=LOG).lines == len(LOG)
    assert "variables of earlier code are lost" in lm.requests[1].messages[-1].text
    assert "NameError" in lm.requests[3].messages[-1].text


def test_input_that_code_changed_stays_changed() -> None:
    program, _, _ = reader(turn("log = log.upper()"), turn("submit(cause=log, lines=1)"))
    assert program(log="disk").cause == "DISK"


@pytest.mark.parametrize("mode", MODES)
def test_outputs_are_extracted_after_the_last_turn(mode: str) -> None:
    program, lm, _ = reader(turn("1 + 1"), turn("print('disk')"), {"cause": "disk", "lines": 2}, max_iters=2)
    result = called(mode, program, log=LOG)
    assert (result.cause, result.termination_reason) == ("disk", "limit")
    assert [attempt.purpose for attempt in result.attempts] == ["ask", "ask", "extract"]
    asked = lm.requests[-1].messages[-1].text
    assert "1 + 1\n-> 2\n\nprint('disk')\n-> disk" in asked
    assert "log: str of 3,015 characters" in asked


def test_run_without_outputs_stops_if_nothing_is_extracted() -> None:
    program, _, _ = reader(turn("1"), max_iters=1, extract=False)
    with pytest.raises(AgentStopped, match="the limit max_iters=1 is used up") as raised:
        program(log="")
    assert (raised.value.reason, len(raised.value.steps)) == ("limit", 1)
    program, _, _ = reader(turn("1"), "no fields", max_iters=1)
    with pytest.raises(AgentStopped, match="could not be extracted") as raised:
        program(log="")
    assert len(AgentRun.of(raised.value).attempts) == 2


def test_replies_without_code_end_the_loop_after_three_in_a_row() -> None:
    program, lm, _ = reader("Hm.", turn("1"), "Hm.", "Hm.", "Hm.", {"cause": "?", "lines": 0})
    result = program(log="")
    assert result.termination_reason == "parse_error"
    assert "Your reply is invalid: there is no closed block of Python" in lm.requests[1].messages[-1].text
    assert len(result.steps) == 5


def test_old_turns_are_left_out_if_the_conversation_is_too_long() -> None:
    too_long = ContextWindowExceededError("too long")
    turns = [turn("print('alpha ' * 150)"), turn("print('b' * 900)"), too_long]
    code = "print(search_conversation('alpha'))\nsubmit('x', 1)"
    program, lm, _ = reader(*turns, turn(code), compaction=Compaction([drop_oldest()]))
    result = program(log="")
    assert (result.cause, len(result.history.messages)) == ("x", 6)
    _, note, reply, last = lm.requests[-1].messages[1:]
    assert "the 2 earliest turns of this conversation were left out" in note.text
    assert 'search_conversation(query="...")' in note.text
    assert (reply.role, last.text) == ("assistant", "b" * 900)
    assert "alpha alpha" in result.steps[-1].results[1].text


def test_latest_result_is_kept_in_a_conversation_that_is_too_long() -> None:
    too_long = ContextWindowExceededError("too long")
    program, lm, _ = reader(turn("print('a' * 900)"), too_long, {"cause": "x", "lines": 1})
    result = program(log="")
    assert (result.termination_reason, len(lm.requests)) == ("context_window_exceeded", 3)
    assert lm.requests[1].messages[-1].text == "a" * 900


def test_outputs_are_extracted_if_the_conversation_cannot_be_shortened() -> None:
    program, _, _ = reader(turn("1"), ContextWindowExceededError("too long"), {"cause": "x", "lines": 1})
    assert program(log="").termination_reason == "context_window_exceeded"


@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_stream_has_the_queries_and_results_of_each_turn(mode: str) -> None:
    def grep(pattern: str) -> int:
        return len(pattern)

    program, _, _ = reader(turn("grep('abc')\nllm_query('x')"), turn("submit('x', 1)"), answers=["y"], tools=[grep])
    seen = events(mode, program, log="")
    assert [event.model for event in seen if isinstance(event, AskStart)] == ["fake", "sub", "fake"]
    done = [(event.result.name, event.turn, event.path) for event in seen if isinstance(event, ToolDone)]
    assert done == [("grep", 0, "self"), ("python", 0, "self"), ("python", 1, "self")]
    outputs = [event for event in seen if isinstance(event, FieldDelta | FieldPartial) and event.path == "self"]
    assert outputs == [
        FieldDelta("cause", "x", path="self", turn=1), FieldPartial("lines", 1, path="self", turn=1),
    ]  # fmt: skip


def test_tools_are_functions_of_the_session() -> None:
    async def price(item: str) -> float:
        """Return the price of an item."""
        return {"lamp": 20.5}[item]

    program, lm, _ = reader(turn("price('lamp') * 2"), turn("price('sofa')"), turn("submit('x', 1)"), tools=[price])
    with pytest.warns(sigwire.ToolWarning):
        result = program(log="")
    assert [[call.name for call in step.calls] for step in result.steps] == [["python", "price"]] * 2 + [["python"]]
    assert "def price(item: str) -> float\n    Return the price of an item." in lm.requests[0].messages[1].text
    assert lm.requests[1].messages[-1].text == "41.0"
    assert "KeyError: sofa" in lm.requests[2].messages[-1].text


def test_instructions_of_an_optimizer_keep_functions_and_variables() -> None:
    program, lm, _ = reader(turn("submit('x', 1)"))
    program.generate_action.signature = program.generate_action.signature.with_instructions("Find the cause.")
    program(log=LOG)
    text = "\n".join(message.text for message in lm.requests[0].messages)
    assert "def submit(cause: str, lines: int)" in text
    assert "log: str of 3,015 characters" in text


def test_constructor_refuses_what_cannot_work() -> None:
    for name in ("max_iters", "max_output_chars", "parallel", "max_llm_calls"):
        with pytest.raises(ConfigurationError, match=name):
            reader(**{name: -1})
    with pytest.raises(ConfigurationError, match="'llm_query' is the name of two things"):
        RLM("llm_query -> cause")
    with pytest.raises(ConfigurationError, match="'log' is the name of two things"):
        RLM("log -> cause", tools={"log": len})
    with pytest.raises(InputError, match="by name"):
        RLM("log -> cause")("text")


def test_copies_share_the_interpreter_and_can_be_pickled() -> None:
    program, _, _ = reader()
    program.set_lm(None)
    program.sub_lm = None
    assert copy.deepcopy(program).interpreter is program.interpreter
    assert pickle.loads(pickle.dumps(program)).max_llm_calls == 50


def test_closed_stream_ends_the_run_with_its_steps() -> None:
    program, lm, _ = reader(*TURNS, answers=["the disk"])
    stream = program.stream(log=LOG)
    next(event for event in stream if isinstance(event, ToolDone))
    stream.close()
    run = AgentRun.of(stream.error)
    assert (run.termination_reason, len(run.steps), len(lm.requests)) == ("cancelled", 1, 1)
    assert run.history.messages[-1] is not None


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_runs_at_once_have_sessions_of_their_own(mode: str) -> None:
    def answer(request: Any) -> Any:
        return turn("mine = log") if len(request.messages) == 2 else turn("submit(cause=mine, lines=len(log))")

    program = RLM("log -> cause, lines: int", lm=FakeLM(answer))
    logs = [{"log": "x" * number} for number in range(6)]
    results = program.batch(logs) if mode == "sync" else asyncio.run(program.abatch(logs))
    assert [result.cause for result in results] == [given["log"] for given in logs]


def test_texts_up_to_the_limit_are_asked_whatever_the_limit_of_the_interpreter() -> None:
    code = "submit(answer=''.join(llm_query('part ' + str(n)) for n in range(4)))"
    rlm = RLM(
        "text -> answer",
        max_llm_calls=5,
        sub_lm=FakeLM(list("abcd")),
        interpreter=MontyInterpreter(CodeLimits(calls=1)),
    )
    rlm.set_lm(FakeLM([{"reasoning": "", "code": code}]))
    assert rlm(text="x").answer == "abcd"


@pytest.mark.parametrize("ask", ["llm_query('?')", "llm_query_batched(['?', '?'])"])
@pytest.mark.parametrize("error", [LMAuthenticationError("key"), LMInvalidRequestError("form"), LMServerError("503")])
def test_code_cannot_catch_an_error_of_a_query_that_ends_the_run(error: Exception, ask: str) -> None:
    program, _, _ = reader(turn(f"try:\n    {ask}\nexcept BaseException:\n    submit('none', 0)"), answers=[error] * 2)
    with pytest.raises(type(error)) as found:
        program(log="x")
    assert found.value is error


@pytest.mark.parametrize("mode", MODES)
def test_history_of_a_run_continues_in_the_next(mode: str) -> None:
    program, lm, _ = reader(turn("submit(cause='disk', lines=3)"), turn("submit(cause='still', lines=4)"))
    first = called(mode, program, log="first log")
    second = called(mode, program, log="second log", history=first.history.to_json())
    assert (second.cause, len(second.history)) == ("still", 2 * len(first.history))
    assert second.history.messages[: len(first.history)] == first.history.messages
    sent = [message.text for message in lm.requests[1].messages]
    assert sum("first log" in text for text in sent) == sum("second log" in text for text in sent) == 1
    assert any("submit(cause='disk', lines=3)" in text for text in sent)


@pytest.mark.parametrize("mode", MODES)
def test_history_field_of_the_signature_is_the_conversation(mode: str) -> None:
    program = RLM("chat: History, log -> cause")
    program.set_lm(lm := FakeLM([turn("submit(cause=log)"), turn("submit(cause=log)")]))
    first = called(mode, program, log="one")
    assert called(mode, program, log="two", chat=first.history).cause == "two"
    assert "chat" not in lm.requests[1].messages[-1].text
    chat = sigwire.ChatSession(program)
    program.set_lm(FakeLM([turn("submit(cause=log)"), turn("submit(cause=log)")]))
    assert (chat(log="three").cause, chat(log="four").cause, len(chat.conversation)) == ("three", "four", 4)


def test_extracted_outputs_end_the_history() -> None:
    program, lm, _ = reader(
        turn("print(1)"), {"cause": "disk", "lines": 3}, turn("submit(cause='x', lines=1)"), max_iters=1
    )
    result = program(log="log")
    assert result.history.messages[-1].text == '{"cause":"disk","lines":3}'
    program(log="log", history=result.history)
    assert any('"cause":"disk"' in message.text for message in lm.requests[-1].messages)


def test_history_of_an_error_continues_in_the_next_run() -> None:
    program, _, _ = reader(turn("print(1)"), turn("submit(cause='x', lines=1)"), max_iters=1, extract=False)
    with pytest.raises(AgentStopped, match=r"history=error\.history") as raised:
        program(log="log")
    assert program(log="log", history=raised.value.history).cause == "x"
    with pytest.raises(InputError):
        program(log="log", history=3)
