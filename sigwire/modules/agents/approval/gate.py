"""``CallGate``: which calls of a turn run, in which order, and which wait for a decision.

A valid call passes the limits, then the approval. Calls that need none run and are kept. What stands after a waiting call in
an order that ``parallel=False`` fixes waits as well. ``ApprovalNeeded`` is raised when the last call of the turn has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias, cast

from sigwire.core.json import JsonObject
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.effects.gather import Gather
from sigwire.effects.performing import Frame, Recordable, current_frame, performed
from sigwire.effects.steps import Effect, Steps
from sigwire.journal.errors import ApprovalNeeded, PendingCall
from sigwire.journal.verdicts import CallVerdict
from sigwire.modules.agents.approval.asking import AskApproval
from sigwire.modules.agents.approval.limits import CallCounts, CallRules
from sigwire.modules.agents.tool_run import ToolRun

__all__ = ["CallGate", "PreparedCall", "RunsCalls"]


class PreparedCall(Effect[ToolRun], Protocol):
    """A call that is ready to run, or has its result: ``is_known``."""

    @property
    def call(self) -> ToolCall: ...
    @property
    def tool(self) -> Tool | None: ...
    @property
    def is_known(self) -> bool: ...


class RunsCalls(Protocol):
    """A toolbox, as the gate sees it."""

    @property
    def parallel(self) -> int: ...

    def prepare(self, call: ToolCall) -> PreparedCall: ...
    def refused(self, call: ToolCall, tool: Tool, problem: str) -> PreparedCall: ...
    def known(self, done: ToolRun) -> PreparedCall: ...


_Wrap: TypeAlias = Callable[[Effect[ToolRun]], Effect[ToolRun]]
_Admitted: TypeAlias = "tuple[PreparedCall, Effect[ToolRun] | None]"
"""A call with its effect; ``None``: it waits for a decision."""


class CallGate:
    """The gate of one run: its rules, what it has counted, and what is decided about the calls of its turn."""

    def __init__(self, rules: CallRules, counts: CallCounts | None = None) -> None:
        self.rules, self.counts = rules, counts or CallCounts()
        self.verdicts: dict[str, CallVerdict] = {}  # by the id of the call
        self.kept: dict[str, ToolRun] = {}  # of the turn, before the run was resumed
        self.inner: dict[str, _Wrap] = {}  # how calls run whose inner agents are resumed

    def run(self, box: RunsCalls, calls: Sequence[ToolCall]) -> Steps[tuple[ToolRun, ...]]:
        """Run the calls of a turn. Raises ``ApprovalNeeded`` if some wait; its ``inner`` has the states of inner agents.

        The first error in call order is raised after the calls that run together have ended, also if others wait.
        """
        pending: list[PendingCall] = []
        admitted = yield from self._admitted(box, [box.prepare(call) for call in calls], pending)
        done: dict[int, ToolRun] = {}
        errors: list[Exception] = []
        inner: dict[str, JsonObject] = {}
        for group in _groups([item for item, _ in admitted], box.parallel):
            effects = {at: effect for at in group if (effect := admitted[at][1]) is not None}
            found = yield from _performed_together(list(effects.values()), box.parallel)
            for at, result in zip(effects, found, strict=True):
                if isinstance(result, ApprovalNeeded):
                    _add_inner(admitted[at][0].call.id, result, pending, inner)
                elif isinstance(result, Exception):
                    errors.append(result)
                else:
                    done[at] = result
            if len(done) < group[-1] + 1:
                break  # the next group is later in an order that is fixed
        if errors:
            raise errors[0]
        self.counts.add([run for at, run in done.items() if not admitted[at][0].is_known], self.rules)
        if pending:
            frame = current_frame()
            raise ApprovalNeeded(frame.run if frame is not None else "", pending, inner)
        return tuple(done[at] for at in range(len(calls)))

    def _admitted(
        self, box: RunsCalls, items: Sequence[PreparedCall], pending: list[PendingCall]
    ) -> Steps[list[_Admitted]]:
        frame = current_frame()
        # A place is that of the call, whatever is decided about the calls before it.
        places = [None if frame is None or item.is_known else frame.child("tool") for item in items]
        admitted: list[_Admitted] = []
        planned: Counter[str] = Counter()
        for prepared, place in zip(items, places, strict=True):
            item, waiting = yield from self._decided(box, prepared, planned, place)
            if waiting is not None:
                pending.append(waiting)
            admitted.append((item, None if waiting is not None else self._effect(item, place)))
        self.counts.end_turn(planned)
        return admitted

    def _decided(
        self, box: RunsCalls, item: PreparedCall, planned: Counter[str], place: Frame | None
    ) -> Steps[tuple[PreparedCall, PendingCall | None]]:
        """Return the call to run, or its known result; and the pending call, if it waits."""
        call, tool = item.call, item.tool
        if (kept := self.kept.get(call.id)) is not None:
            return box.known(kept), None
        if item.is_known or tool is None:
            return item, None
        if problem := self.counts.refusal(call, tool, self.rules, planned):
            return box.refused(call, tool, problem), None
        verdict = yield from self._verdict(call, tool, place)
        if verdict.answer == "deny":
            return box.refused(call, tool, f"The call was denied: {verdict.why or 'no reason was given'}"), None
        planned[tool.name] += 1
        if verdict.answer == "ask":
            id = f"{place.path}/approval.0" if place is not None and place.run else call.id
            return item, PendingCall(id, call.name, call.arguments or {}, verdict.why, "approval")
        if verdict.answer == "edit":
            return box.prepare(replace(call, arguments=verdict.arguments, raw_arguments=None)), None
        return item, None

    def _verdict(self, call: ToolCall, tool: Tool, place: Frame | None) -> Steps[CallVerdict]:
        approve = self.rules.approve if tool.approve is None else tool.approve
        if not approve:
            return CallVerdict("approve")
        if (known := self.verdicts.get(call.id)) is None:
            asked = AskApproval(call, tool, approve)
            known = yield asked if place is None else performed(asked, place.child("approval"))
            if known.answer != "ask":
                self.verdicts[call.id] = known
        return known

    def _effect(self, item: PreparedCall, place: Frame | None) -> Effect[ToolRun]:
        if item.is_known:
            return item
        effect = item if place is None else performed(cast("Recordable[ToolRun]", item), place)
        return self.inner.get(item.call.id, _unchanged)(effect)


def _unchanged(effect: Effect[ToolRun]) -> Effect[ToolRun]:
    return effect


def _groups(items: Sequence[PreparedCall], parallel: int) -> Sequence[list[int]]:
    """Return the indexes of calls that run together: neighbours in parallel. A tool with ``parallel=False`` runs alone."""
    groups: list[list[int]] = []
    together: list[int] = []
    for at, item in enumerate(items):
        if parallel > 1 and (item.tool is None or item.tool.parallel):
            together.append(at)
            continue
        if together:
            groups.append(together)
            together = []
        groups.append([at])
    return [*groups, together] if together else groups


def _performed_together(effects: Sequence[Effect[ToolRun]], limit: int) -> Steps[list[ToolRun | Exception]]:
    if len(effects) > 1:
        return list((yield Gather([_one_run(effect) for effect in effects], limit=limit)))
    return [(yield from _one_run(effects[0]))] if effects else []


def _one_run(effect: Effect[ToolRun]) -> Steps[ToolRun | Exception]:
    """Run a call. Return its error, or that an agent inside it waits for a decision: the calls beside it end first."""
    try:
        done: ToolRun = yield effect
    except Exception as error:
        return error
    return done


def _add_inner(id: str, error: ApprovalNeeded, pending: list[PendingCall], inner: dict[str, JsonObject]) -> None:
    """Add the calls of an inner agent. In a journal their ids are places, which need no prefix."""
    prefix = "" if error.run else f"{id}/"
    pending.extend(replace(call, id=f"{prefix}{call.id}") for call in error.pending)
    inner[id] = error.state
