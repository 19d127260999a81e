"""The end of a run that waits for approval: its state, and the events of its stream."""

from __future__ import annotations

from sigwire.core.events import ApprovalAsked
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.journal.errors import ApprovalNeeded
from sigwire.modules.agents.approval.states import StateOwner, dump_run, signed
from sigwire.modules.agents.run_state import RunState
from sigwire.modules.agents.running_call import current_call
from sigwire.modules.program_stream import event_path_of, is_streamed

__all__ = ["suspend"]


def suspend(agent: StateOwner, state: RunState, limit: int, error: ApprovalNeeded) -> Steps[None]:
    """Set the state of the error, and emit an event for each pending call, if no outer agent does."""
    if agent.resumes and not error.run:
        try:
            error.state = signed(dump_run(agent, state, limit, error), agent.secret)
        except (ValueError, TypeError, RecursionError) as problem:
            error.state["problem"] = f"the run has a value without a JSON form ({problem})"
    if is_streamed() and not current_call().name:
        place = event_path_of(agent)
        asked = (
            ApprovalAsked(call.id, call.name, call.arguments, call.why, path=place.path, turn=state.turn)
            for call in error.pending
        )
        yield Emit(*asked)
