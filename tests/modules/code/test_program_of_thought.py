"""A program of the model computes the outputs; a program that fails is repaired, within a limit."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import sigwire
from sigwire import (
    AgentStopped,
    Budget,
    BudgetSpent,
    ConfigurationError,
    FakeLM,
    FieldEnd,
    InputError,
    SignatureError,
    ToolDone,
    Usage,
)
from sigwire.errors import LMServerError
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.monty import MontyInterpreter
from sigwire.modules.code.program_of_thought import ProgramOfThought
from tests.modules.code.driving import MODES, called, events

RIGHT = {"reasoning": "Add.", "generated_code": "```python\nsubmit(answer=sum(range(limit)))\n```"}
WRONG = {"reasoning": "Guess.", "generated_code": "submit(answer=limit / 0)"}


def thinker(*answers: Any, max_iters: int = 3, **options: Any) -> tuple[Any, FakeLM]:
    lm = FakeLM(answers, usage=Usage(10, 1))
    program = ProgramOfThought("question, limit: int -> answer: int", max_iters, **options)
    program.set_lm(lm)
    return program, lm


def ask(program: Any, mode: str = "sync") -> Any:
    return called(mode, program, question="The sum?", limit=10)


@pytest.mark.parametrize("mode", MODES)
def test_program_that_works_needs_one_request(mode: str) -> None:
    program, lm = thinker(RIGHT)
    result = ask(program, mode)
    assert (result.answer, len(lm.requests), len(result.attempts)) == (45, 1, 1)
    (step,) = result.steps
    assert step.calls[0].arguments == {"code": "submit(answer=sum(range(limit)))"}
    assert (step.thought, step.results[0].text, step.usage.input_tokens) == ("Add.", "Submitted.", 10)


@pytest.mark.parametrize("mode", MODES)
def test_failed_program_is_sent_back_with_its_error(mode: str) -> None:
    program, lm = thinker(WRONG, RIGHT)
    result = ask(program, mode)
    asked = lm.requests[1].messages[-1].text
    assert result.answer == 45
    assert "submit(answer=limit / 0)" in asked
    assert "ZeroDivisionError" in asked
    assert [step.results[0].is_error for step in result.steps] == [True, False]
    assert result.get_lm_usage()["fake"]["prompt_tokens"] == 20


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"reasoning": "r", "generated_code": "submit(answer='ten')"}, "answer: should be a valid integer"),
        ({"reasoning": "r", "generated_code": "submit(total=1)"}, "total: not an output field"),
        ({"reasoning": "r", "generated_code": "submit(1, 2)"}, "takes 1 values at most"),
        ({"reasoning": "r", "generated_code": "pass"}, "did not call submit"),
        ({"reasoning": "r", "generated_code": "import os\nos.system('ls')"}, "Error"),
        ({"reasoning": "r", "generated_code": "for"}, "SyntaxError"),
        ("I would rather answer: 45.", "there is no closed block of Python"),
    ],
)
def test_problem_of_a_program_is_sent_back(reply: Any, problem: str) -> None:
    program, lm = thinker(reply, RIGHT)
    assert ask(program).answer == 45
    assert problem in lm.requests[1].messages[-1].text


def test_reply_without_fields_is_run_if_it_has_one_block() -> None:
    program, _ = thinker("So:\n```python\nsubmit(answer=limit)\n```")
    assert ask(program).answer == 10


@pytest.mark.parametrize("code", ["print('the sum is', sum(range(limit)))", "text = f'the sum is {sum(range(limit))}'"])
def test_printed_or_assigned_result_is_read_by_one_more_request(code: str) -> None:
    program, lm = thinker({"reasoning": "Show.", "generated_code": code}, {"reasoning": "It says so.", "answer": 45})
    result = ask(program)
    assert (result.answer, result.steps[0].results[0].text.strip("'")) == (45, "the sum is 45")
    assert "the sum is 45" in lm.requests[1].messages[-1].text


@pytest.mark.parametrize("mode", MODES)
def test_program_stops_after_its_last_repair(mode: str) -> None:
    program, lm = thinker(WRONG, WRONG, max_iters=2)
    with pytest.raises(AgentStopped, match=r"No program of 2 .*division by zero") as raised:
        ask(program, mode)
    assert (len(lm.requests), len(raised.value.steps), raised.value.reason) == (2, 2, "limit")
    assert len(raised.value.attempts) == 2  # type: ignore[attr-defined]


def test_variables_of_a_failed_program_do_not_hide_the_inputs() -> None:
    program, _ = thinker({"reasoning": "r", "generated_code": "limit = 99\n1 / 0"}, RIGHT)
    assert ask(program).answer == 45


def test_endless_program_is_ended_and_repaired() -> None:
    limits = CodeLimits(seconds=0.05)
    program, lm = thinker(
        {"reasoning": "r", "generated_code": "while True: pass"}, RIGHT, interpreter=MontyInterpreter(limits)
    )
    assert ask(program).answer == 45
    assert "0.05 seconds" in lm.requests[1].messages[-1].text


def test_streamed_program_emits_its_code_and_results() -> None:
    program, _ = thinker(WRONG, RIGHT)
    seen = events("stream", program, question="The sum?", limit=10)
    assert [event.result.is_error for event in seen if isinstance(event, ToolDone)] == [True, False]
    assert [event.field for event in seen if isinstance(event, FieldEnd)] == ["reasoning", "generated_code"] * 2 + [
        "answer"
    ]


def test_errors_of_the_provider_and_of_budgets_end_the_run() -> None:
    program, _ = thinker(WRONG, LMServerError("down"))
    with pytest.raises(LMServerError) as raised:
        ask(program)
    assert len(raised.value.steps) == 1  # type: ignore[attr-defined]
    program, _ = thinker(WRONG, RIGHT)
    with pytest.raises(BudgetSpent), Budget(calls=1):
        ask(program)


def test_inputs_are_checked_before_anything_is_asked() -> None:
    program, lm = thinker(RIGHT)
    with pytest.raises(InputError, match="'limit'"):
        program(question="?")
    with pytest.raises(InputError, match="by name"):
        program("?")
    with pytest.raises(InputError, match="JSON"), sigwire.context(warn_on_type_mismatch=False):
        program(question=object(), limit=1)
    assert lm.requests == []


def test_constructor_refuses_what_cannot_work() -> None:
    with pytest.raises(ConfigurationError, match="max_iters"):
        ProgramOfThought("question -> answer", 0)
    with pytest.raises(SignatureError, match="no outputs"):
        ProgramOfThought(sigwire.Signature({"question": sigwire.InputField()}))


def test_fields_of_the_task_keep_their_names() -> None:
    program = ProgramOfThought("code_output, error -> generated_code, steps: int", lm=FakeLM(
        [{"reasoning": "r", "generated_code_": "submit(generated_code=error + code_output, steps=2)"}]
    ))  # fmt: skip
    result = program(code_output="a", error="b")
    assert (result.generated_code, result.steps, len(result.run_steps)) == ("ba", 2, 1)


def test_copies_and_saved_states_keep_the_prompts() -> None:
    program, _ = thinker(RIGHT)
    program.code_generate.predict.signature = program.code_generate.predict.signature.with_instructions("Compute.")
    loaded, lm = thinker(RIGHT)
    program.set_lm(None)
    loaded.load_state(program.dump_state())
    loaded.set_lm(lm)
    assert ask(loaded).answer == 45
    assert "Compute." in lm.requests[0].messages[0].text
    assert copy.deepcopy(program).interpreter is program.interpreter
    assert pickle.loads(pickle.dumps(program)).max_iters == 3
