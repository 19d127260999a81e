"""The start of a run: the earlier conversation with a result for every call, and the task."""

from __future__ import annotations

from collections.abc import Callable

from sigwire.modules.agents import conversation
from sigwire.modules.agents.approval.gate import CallGate
from sigwire.modules.agents.large_results.lookup import LargeResults
from sigwire.modules.agents.react_signatures import AgentSignatures
from sigwire.modules.agents.run_state import RunState
from sigwire.modules.agents.toolbox import Toolbox
from sigwire.settings import current
from sigwire.signatures.types.history import Turn

__all__ = ["start_run"]


def start_run(
    toolbox: Toolbox,
    signatures: AgentSignatures,
    inputs: dict[str, object],
    before: object,
    read: Callable[..., dict[str, object]],
) -> RunState:
    """Return a run at its start. ``before``: the history of an earlier one. ``read`` checks the inputs.

    Without inputs the run continues the task of the earlier one.
    """
    history = conversation.earlier_history(before, signatures.task.spec)
    if not inputs and len(history):
        inputs = conversation.latest_inputs(history, [field.name for field in signatures.task.spec.inputs])
    else:
        inputs = read(dict(inputs), check_types=current().warn_on_type_mismatch)
        history = history.append(Turn(inputs))
    return RunState(history, inputs, CallGate(toolbox.rules), LargeResults(toolbox))
