"""The turns of a run, each with its number in errors and events; and the calls of a turn: of tools, then of ``submit``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.effects.emitting import Emit
from sigwire.effects.performing import current_frame, in_frame
from sigwire.effects.steps import Steps
from sigwire.modules.agents.run import Termination
from sigwire.modules.agents.run_state import EmittingRecorder, RunState, tool_done
from sigwire.modules.agents.submit import Submit
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.modules.program_stream import event_path_of, is_streamed, set_turn
from sigwire.show.numbers import count

__all__ = ["TurnSteps", "run_calls", "run_turns"]

TurnSteps: TypeAlias = Callable[[RunState], Steps[Termination | None]]
"""One turn: the end of the run, or ``None`` to continue."""


def run_turns(
    state: RunState, limit: int, turn: TurnSteps, locate: Callable[[Exception, int], None]
) -> Steps[Termination]:
    """Run turns until one ends the run, at most ``limit``. ``locate`` adds the number of the turn to its error."""
    before, number, frame = set_turn(None), state.turn, current_frame()
    try:
        for number in range(state.turn, limit):
            set_turn(number)
            state.turn = number
            end = yield from turn(state) if frame is None else in_frame(frame.child("turn"), turn, state)
            if end is not None:
                return end
    except Exception as error:
        locate(error, number)
        raise
    finally:
        set_turn(before)
    return Termination("limit", why=f"the limit of {count(limit, 'turn')} is used up")


def run_calls(agent: object, state: RunState, submit: Submit) -> Steps[tuple[Termination | None, list[ToolRun]]]:
    """Run the open calls of a turn; return the end if ``submit`` succeeded, and all results in call order.

    A stream has the events of the results at the path of the agent.
    """
    calls = state.open_calls
    event_path = event_path_of(agent) if is_streamed() else None
    recorder = state.tool_runs if event_path is None else EmittingRecorder(state.tool_runs, event_path)
    others = [call for call in calls if call.name != submit.name]
    runs = yield from state.large.toolbox.run(others, record=recorder, gate=state.gate)
    state.large.keep(runs)
    end, submits = _submit_results(submit, calls, runs)
    if event_path is not None:  # the recorder emitted the events of the tools
        yield Emit(*(tool_done(done, event_path) for done in submits))
    waiting, submitted = iter(runs), iter(submits)
    return end, [next(submitted if call.name == submit.name else waiting) for call in calls]


def _submit_results(
    submit: Submit, calls: Sequence[ToolCall], runs: Sequence[ToolRun]
) -> tuple[Termination | None, list[ToolRun]]:
    """Return the end if a submit call succeeded, and the results of submit calls. ``runs`` are the turn's other calls."""
    failed = next((done.call.name for done in runs if done.result.is_error), None)
    end: Termination | None = None
    results: list[ToolRun] = []
    for call in calls:
        if call.name != submit.name:
            continue
        submission, is_error = submit.read(call), True
        if end is not None:
            content = "Rejected: the output fields are already submitted."
        elif submission.outputs is None:
            content = submission.problem
        elif failed is not None:
            content = f"Rejected: {failed} failed in this turn. Read its result, then submit again."
        else:
            content, is_error, end = "Completed.", False, Termination("submit", submission.outputs)
        result = ToolResult(call.id, call.name, content, is_error)
        results.append(ToolRun(call, result, result))
    return end, results
