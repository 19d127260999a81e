"""The errors of recorded runs, and ``PendingCall``, a call that waits for a decision."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

from sigwire.core.json import JsonObject
from sigwire.errors import AgentStopped, CallerError, StateError, Whose
from sigwire.show.card import BoundedRepr

__all__ = ["ApprovalNeeded", "JournalDivergence", "PendingCall", "RunIsLive", "ToolInterrupted"]


@dataclass(frozen=True, slots=True)
class PendingCall(BoundedRepr):
    """A tool call that waits for a decision. ``id`` is its key among the decisions: the id of the call, after the ids of the
    calls around it if an inner agent made it (``call_0/call_1``); in a run with a journal the place in the run.

    ``kind``: "approval", before the call runs; or "crash": the process ended while the tool ran, so its effect may have
    happened, wholly or in part.
    """

    id: str
    name: str
    arguments: JsonObject
    why: str
    kind: Literal["crash", "approval"] = "crash"


class ApprovalNeeded(AgentStopped):
    """A run waits for decisions about tool calls. ``pending`` has the calls; ``state`` is JSON from which the run continues.

    Decide about each id of ``pending``: ``"approve"``, ``{"deny": "why"}`` or ``{"edit": {arguments}}`` for a call of the kind
    "approval", with ``agent.resume(state, decisions)``, or, for a run with a journal, ``journal.resume(program, run,
    decisions)``. For the kind "crash": ``"rerun"``, ``{"result": value}`` or ``{"deny": "why"}``.
    """

    whose: ClassVar[Whose] = "run"

    def __init__(self, run: str, pending: Sequence[PendingCall], inner: Mapping[str, JsonObject] | None = None) -> None:
        self.run, self.pending, self.inner = run, tuple(pending), dict(inner or {})
        self.state: JsonObject = {"format": 1, "run": run, "pending": [asdict(call) for call in pending]}
        calls = "; ".join(f"{call.name} at {call.id}" for call in pending)
        how = "journal.resume(program, run, decisions)" if run else "agent.resume(error.state, decisions)"
        is_crash = any(call.kind == "crash" for call in pending)
        super().__init__(
            f"The run {run!r} ended while tools ran, and their effects may have happened: {calls} (starting the run). Decide "
            'with journal.resume(program, run, {id: "rerun"}), {"result": value} or {"deny": "why"} for each id in '
            "error.pending."
            if is_crash
            else f"Calls wait for approval: {calls} (running the tools). Decide with {how}: "
            '{id: "approve"}, {"deny": "why"} or {"edit": {arguments}} for each id in error.pending.',
            reason="approval",
        )


class ToolInterrupted(AgentStopped):
    """A process ended while a tool with ``on_crash="fail"`` ran. ``pending`` has the calls."""

    whose: ClassVar[Whose] = "run"

    def __init__(self, run: str, pending: Sequence[PendingCall]) -> None:
        self.pending = tuple(pending)
        calls = "; ".join(f"{call.name} at {call.id}" for call in pending)
        super().__init__(
            f"The run {run!r} ended while tools ran that must not run again: {calls} (starting the run). Begin another run, "
            "or decide with journal.resume as for ApprovalNeeded.",
            reason="interrupted",
        )


class RunIsLive(CallerError, RuntimeError):
    """Another process or thread is running this run. Attributes: its ``pid``, and ``since`` (seconds of ``time.time()``)."""

    whose: ClassVar[Whose] = "run"

    def __init__(self, run: str, pid: int | None, since: float | None) -> None:
        self.run, self.pid, self.since = run, pid, since
        owner = "another process" if pid is None else "this process" if pid == os.getpid() else f"process {pid}"
        super().__init__(
            f"The run {run!r} is going on in {owner} (starting the run). Wait for its end, or use another run=."
        )


class JournalDivergence(StateError):
    """A program does something else at a place than its recorded run did.

    Attributes: ``place``, ``recorded`` and ``now`` (fingerprints as JSON), ``diff`` (a text).
    """

    whose: ClassVar[Whose] = "run"

    def __init__(self, place: str, recorded: JsonObject, now: JsonObject, what: str, diff: str) -> None:
        self.place, self.recorded, self.now, self.diff = place, recorded, now, diff
        super().__init__(
            f"{what} (replaying {place}). The program or its inputs changed since the run was recorded. Undo the change, begin "
            f'another run, or continue as a new run with on_change="fork".\n{diff}'.rstrip()
        )
