"""Runs that wait for approval: the state of a run that is suspended, and the resumption of a state with its decisions.

A state and its decisions reach the agent by a context variable, so that a resumed run is a call like any other: blocking,
awaited, streamed, with callbacks. The states of inner agents reach them in the tool call around them in the same way: the code
of the tool runs again, and the agent's run at the place of the state goes on. Runs before it are made again, unless a person
decided about their calls: those give their results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from sigwire.core.events import ApprovalAsked
from sigwire.core.report import CallReport
from sigwire.effects.emitting import Emit
from sigwire.effects.performing import current_frame
from sigwire.effects.steps import Effect, Steps
from sigwire.errors import ConfigurationError, StateError
from sigwire.journal.errors import ApprovalNeeded
from sigwire.modules.agents.approval import states
from sigwire.modules.agents.run_state import RunState
from sigwire.modules.agents.running_call import current_call
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.modules.calling import called_steps
from sigwire.modules.program_stream import event_path_of, is_streamed
from sigwire.observe.reports import add_entry, with_report

__all__ = [
    "Resumption", "begin_run", "decided_result", "give_decided", "keep_decided", "resumption_of", "state_secret", "suspend",
]  # fmt: skip


def state_secret(secret: str | bytes | None) -> bytes | None:
    """Return the key that signs states; its repr is ``***``."""
    return None if secret is None else _SecretBytes(secret.encode() if isinstance(secret, str) else secret)


class _SecretBytes(bytes):
    def __repr__(self) -> str:
        return "***"


def suspend(agent: states.StateOwner, state: RunState, limit: int, error: BaseException) -> Steps[None]:
    """Set the state of ``ApprovalNeeded``, and emit an event for each pending call, if no outer agent does."""
    if not isinstance(error, ApprovalNeeded):
        return
    if agent.resumes and not error.run:
        try:
            error.state = states.signed(states.dump_run(agent, state, limit, error), agent.secret)
        except (ValueError, TypeError, RecursionError) as problem:
            error.state["problem"] = f"the run has a value without a JSON form ({problem})"
    if is_streamed() and not current_call().name:
        place = event_path_of(agent)
        asked = (
            ApprovalAsked(
                call.id, call.name, call.arguments, call.why, path=place.path, turn=state.turn, within=place.within
            )
            for call in error.pending
        )
        yield Emit(*asked)


class Resumption:
    """A state with its decisions, for one run of one agent. Without ``agent``: of an inner agent, found by its place."""

    def __init__(
        self,
        state: Mapping[str, Any],
        decisions: Mapping[str, object],
        claim: Callable[[str], object] | None = None,
        agent: states.StateOwner | None = None,
    ) -> None:
        self._state, self._decisions, self._claim, self._agent = state, decisions, claim, agent
        self._free = threading.Semaphore(1)
        self._around = current_call()

    def take(self, agent: states.StateOwner, place: str) -> bool:
        """Return True if the run of an agent that begins at ``place`` is that of this state; once."""
        if self._agent is None:
            fits = self._is_around() and place == (self._state.get("place") or _first_place(self._state["signature"]))
        else:
            fits = agent is self._agent
        return fits and self._free.acquire(blocking=False)

    def decided(self, place: str) -> Any:
        """Return the JSON of the result of a run before that of this state, ``None`` if the run is made again."""
        return self._state.get("decided", {}).get(place) if self._agent is None and self._is_around() else None

    def check_taken(self) -> None:
        """Raise ``StateError`` if no run was that of this state."""
        if self._free.acquire(blocking=False):
            calls = ", ".join(str(call["id"]) for call in self._state["pending"])
            raise StateError(
                f"The tool did not run the agent that waits ({self._state.get('place', '')}), so the decisions about {calls} "
                "were not used (resuming). Resume with the program that was suspended; a tool must run its agents in the "
                "same order again."
            )

    def _is_around(self) -> bool:
        """Return True if the running code is that of the call whose state this is, and not of a call inside it."""
        outer = current_call().outer
        return outer is self._around or (outer is None and not self._around.name)

    def run(self, agent: states.StateOwner) -> Steps[tuple[RunState, int]]:
        """Return the run of the state, with the decisions about its calls, and the most turns that it may have."""
        if (frame := current_frame()) is not None and frame.run:
            raise ConfigurationError(
                "A state of ApprovalNeeded is resumed without a journal (resuming). Runs of a journal continue with "
                "journal.resume(program, run, decisions)."
            )
        data = states.check_state(agent, self._state, agent.secret)
        verdicts, inner = states.own_decisions(agent, data, self._decisions)
        run = states.load_run(agent, data)
        run.gate.verdicts.update(verdicts)
        for id, decisions in inner.items():
            run.gate.inner[id] = partial(_Inside, Resumption(data["inner"][id], decisions))
        if self._claim is not None and not (yield from called_steps(self._claim, [data["id"]], {})):
            raise StateError("The state is claimed: its run was resumed before (resuming). Use the result of that run.")
        return run, data["max_iters"]

    @contextmanager
    def active(self) -> Generator[None]:
        """Make the first call of the agent inside the block continue the run."""
        token = _resumption.set(self)
        try:
            yield
        finally:
            _resumption.reset(token)


def resumption_of(agent: states.StateOwner, place: str) -> Resumption | None:
    """Return what the run of an agent at a place continues, ``None`` if it begins one."""
    found = _resumption.get()
    return found if found is not None and found.take(agent, place) else None


def begin_run(agent: states.StateOwner) -> str:
    """Return the place of a run that begins in the running tool call; empty outside of one."""
    call = current_call()
    return call.begin_run(states.signature_digest(agent)[:16]) if call.name else ""


def _first_place(signature: str) -> str:
    """Return the place in states of earlier versions, which had none."""
    return f"{signature[:16]}.0"


def decided_result(place: str) -> Any:
    """Return the JSON of the result of the run at a place whose calls a person decided about, before the call was resumed."""
    found = _resumption.get() if place else None
    return None if found is None else found.decided(place)


def keep_decided(place: str, result: object, report: CallReport) -> None:
    """Keep the result of a run with decisions of a person for the states of later runs in the same tool call."""
    if place:
        current_call().decided[place] = with_report(result, report)


def give_decided(place: str, result: object) -> None:
    """Keep a result that is given again, and add what ran for it to the running call."""
    report = CallReport.of(result)
    for inner in report.inner:
        add_entry(inner)
    for warning in report.own_warnings:
        add_entry(warning)
    keep_decided(place, result, report)


_resumption: ContextVar[Resumption | None] = ContextVar("sigwire_resumption", default=None)


class _Inside:
    """The effect of a tool call in which an inner agent is resumed."""

    nests = True

    def __init__(self, resumption: Resumption, effect: Effect[ToolRun]) -> None:
        self._resumption, self._effect = resumption, effect

    def run(self) -> ToolRun:
        with self._resumption.active():
            done = self._effect.run()
        self._resumption.check_taken()
        return done

    async def arun(self) -> ToolRun:
        with self._resumption.active():
            done = await self._effect.arun()
        self._resumption.check_taken()
        return done
