"""The steps of a verification: each probe once (behaviour several times), then those that disagree with the table again.

Questions are effects (``Ask``), so cassettes, budgets and journals see them. A request that fails on its way decides
nothing; two failures in a row, or a refused key, end the verification, as does a spent limit. Knows no wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple, TypeAlias, cast

from sigwire.core.events import StreamEvent
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.emitting import Returned, astream, stream
from sigwire.effects.performing import performed
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.errors import (
    BudgetSpent,
    LMAuthenticationError,
    LMBillingError,
    LMError,
    LMInvalidRequestError,
    LMServerError,
    LMUnexpectedError,
)
from sigwire.lm.client import LM
from sigwire.modules.ask import Ask
from sigwire.probes.promises import Planned
from sigwire.probes.report import ProbeRow, Verdict
from sigwire.probes.table import NOT_REFUSED, Probe, Sighting, whole_stream

__all__ = ["ProbeRun"]

_Streamed: TypeAlias = tuple[Response, Sequence[StreamEvent]]
_MOST_FAILURES = 2  # in a row
_DECISIVE = (LMInvalidRequestError, LMUnexpectedError)
"""The errors that show how a model takes a request; the others are of the key, the account or the network."""


class _Seen(NamedTuple):
    sighting: Sighting
    evidence: str


class _LimitReached(Exception):
    """No further request may be sent."""


class ProbeRun:
    """One verification under way. ``sent``: requests; ``stopped``: why the rest is not sent."""

    def __init__(self, plan: Sequence[Planned], requests: int, repeat: int) -> None:
        self.plan, self._requests, self._repeat = plan, requests, repeat
        self.sent, self.stopped = 0, ""
        self._failures, self._failure = 0, ""
        self._seen: dict[str, list[_Seen]] = {each.name: [] for each in plan}

    def steps(self) -> Steps[None]:
        """Ask all probes, then again those that disagree, until ``repeat`` answers or a majority of them decide."""
        try:
            for each in self.plan:
                for _ in range(each.times(self._repeat)):
                    yield from self._ask_probe(each)
            for each in self.plan:
                while self._is_open(each):
                    yield from self._ask_probe(each)
        except (_LimitReached, BudgetSpent) as end:
            self.stopped = str(end)

    def _ask_probe(self, planned: Planned) -> Steps[None]:
        self._seen[planned.name].append((yield from self._observe(planned)))

    def _is_open(self, planned: Planned) -> bool:
        """Return True if more answers could decide a disagreement with the table."""
        against = self._against(planned)
        decided = [each for each in self._seen[planned.name] if each.sighting.holds is not None]
        most = max(against, len(decided) - against)
        return against > 0 and len(self._seen[planned.name]) < self._repeat and most <= self._repeat // 2

    def _against(self, planned: Planned) -> int:
        if planned.probe.is_behaviour:
            return 0
        return sum(each.sighting.holds is (not planned.promised) for each in self._seen[planned.name])

    # --- one probe

    def _observe(self, planned: Planned) -> Steps[_Seen]:
        probe, request = planned.probe, planned.request
        try:
            response, events = yield from self._send(planned.lm, request, probe.streamed)
            if probe.then is not None:
                request = probe.then(request, response)
                response, events = yield from self._send(planned.lm, request, probe.streamed)
        except LMError as error:
            sighting = self._sighting_of_error(probe, error)
            return _Seen(sighting, f"{type(error).__name__}, status {error.status}: {error.message}"[:300])
        self._failures = 0
        return _Seen(_sighting(planned.name, probe, response, events), _evidence(response))

    def _send(self, lm: LM, request: Request, streamed: bool) -> Steps[_Streamed]:
        if self.sent >= self._requests:
            raise _LimitReached(f"the limit of {self._requests} requests is reached")
        if self._failures >= _MOST_FAILURES:
            raise _LimitReached(f"no answer: {self._failure}")
        self.sent += 1
        ask = Ask(lm, request)
        try:
            if not streamed:
                return (yield from _asked(ask)), ()
            read: _Streamed = yield FunctionEffect(partial(_collect, ask), partial(_acollect, ask))
        except BudgetSpent:
            self.sent -= 1
            raise
        return read

    def _sighting_of_error(self, probe: Probe, error: LMError) -> Sighting:
        """Return what an error shows: of a probe for errors its class, of another one a refusal, or nothing."""
        name = type(error).__name__
        decides = _DECISIVE if probe.error is None else (*_DECISIVE, LMAuthenticationError, LMServerError)
        if not isinstance(error, decides):
            is_final = isinstance(error, LMAuthenticationError | LMBillingError)  # of every request
            self._failures, self._failure = _MOST_FAILURES if is_final else self._failures + 1, str(error)
            return Sighting(None, name)
        self._failures = 0
        if probe.error is not None:
            return Sighting(isinstance(error, probe.error), name)
        return Sighting(False, f"refused ({name})" if isinstance(error, LMInvalidRequestError) else name)

    # --- rows

    def rows(self) -> tuple[ProbeRow, ...]:
        """Return a row for each probe, with what was seen until now."""
        return tuple(map(self._row, self.plan))

    def _row(self, planned: Planned) -> ProbeRow:
        probe, seen = planned.probe, self._seen[planned.name]
        verdict, why = self._verdict(planned)
        decisive = [each for each in seen if each.sighting.holds is not None] or seen
        shown = decisive[-1].sighting.seen if decisive else ""
        if verdict == "behaviour":
            shown = (
                f"{sum(each.sighting.holds is True for each in seen)}/{len(decisive)} ({shown})"
                if probe.is_behaviour
                else shown
            )
        table = "" if probe.is_behaviour else "yes" if planned.promised else "no"
        return ProbeRow(planned.name, probe.feature, table, shown, verdict, why, tuple(each.evidence for each in seen))

    def _verdict(self, planned: Planned) -> tuple[Verdict, str]:
        probe, seen = planned.probe, self._seen[planned.name]
        decided = [each for each in seen if each.sighting.holds is not None]
        if planned.why_not:
            return "not sent", f"the wire has no place for it: {planned.why_not}"
        if not seen:
            return "not sent", self.stopped
        if not decided:
            if seen[-1].sighting is NOT_REFUSED:
                return "behaviour", "the host does not check it"
            return "unclear", seen[-1].sighting.seen
        if probe.is_behaviour:
            return "behaviour", ""
        against = self._against(planned)
        if not against:
            return "agrees", ""
        count = f"{against} of {len(decided)} answers disagree"
        if against > self._repeat // 2:
            return ("worse" if planned.promised else "better"), count
        settled = len(decided) - against > self._repeat // 2
        return ("agrees", count) if settled else ("unclear", "; ".join(filter(None, (count, self.stopped))))


def _sighting(name: str, probe: Probe, response: Response, events: Sequence[StreamEvent]) -> Sighting:
    reasons = [choice.finish_reason for choice in response.choices]
    if "content_filter" in reasons or ("length" in reasons and name != "length"):
        return Sighting(None, f"the answer ended by {reasons[0]}")
    if probe.streamed and (problem := whole_stream(response, events)):
        return Sighting(False, problem)
    return probe.judge(response)


def _evidence(response: Response) -> str:
    """Return an answer as one line: its finish reason, its text, its calls."""
    choices = response.choices[:1]
    calls = [f"{call.name}({call.arguments_text})" for choice in choices for call in choice.tool_calls]
    texts = [part for choice in choices for part in (choice.finish_reason, repr(choice.text[:160]))]
    return " ".join([*texts, *calls])[:300]


# --- a stream inside steps: its events are read here, whatever drives the steps


def _asked(ask: Ask) -> Steps[Response]:
    response: Response = yield performed(ask)
    return response


def _collect(ask: Ask) -> _Streamed:
    events, generator = list[StreamEvent](), stream(_asked(ask))
    while True:
        try:
            events.append(next(generator))
        except StopIteration as end:
            response: Response = end.value
            return response, events


async def _acollect(ask: Ask) -> _Streamed:
    events = list[StreamEvent]()
    async with aclosing(astream(_asked(ask))) as answers:
        async for event in answers:
            if type(event) is Returned:
                return cast("Returned[Response]", event).value, events
            events.append(event)
    raise AssertionError("a stream ends with its value")
