"""``unfiltered``: an answer that the content filter stopped becomes an error, before any of its content is emitted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sigwire.core.response import Attempt, Response
from sigwire.effects.emitting import Emit
from sigwire.effects.relaying import relayed
from sigwire.effects.steps import Steps
from sigwire.errors import LMContentFilteredError

if TYPE_CHECKING:
    from sigwire.core.events import StreamEvent

__all__ = ["unfiltered"]


def unfiltered(steps: Steps[Response], model: str) -> Steps[Response]:
    """Run the steps of an answer; raise ``LMContentFilteredError`` if every choice ends with the filter or a refusal.

    A stream emits the end of an answer with its content or at its return. An answer with emitted content is returned.
    """
    held = _HeldEnds()
    response = yield from relayed(steps, held.change)
    reasons = {choice.finish_reason for choice in response.choices}
    if held.is_early and reasons == {"content_filter"}:
        raise _error(response, model)
    if held.ends:
        yield Emit(*held.ends)
    return response


class _HeldEnds:
    """Holds the ends of an answer back until content is emitted."""

    def __init__(self) -> None:
        self.ends: list[StreamEvent] = []
        self.is_early = True

    def change(self, emit: Emit) -> Emit:
        if self.is_early and all(event.kind in _FRAME for event in emit.events):
            self.ends += [event for event in emit.events if event.kind in _ENDS]
            return Emit(*[event for event in emit.events if event.kind not in _ENDS])
        held, self.ends, self.is_early = self.ends, [], False
        return Emit(*held, *emit.events)


_ENDS = ("choice_end", "response_end")
_FRAME = (*_ENDS, "response_start", "usage")


def _error(response: Response, model: str) -> LMContentFilteredError:
    """Return the error of a filtered answer, with the attempts of the answer: they were paid for. A hit made none."""
    refusals = [choice.refusal for choice in response.choices if choice.refusal]
    error = LMContentFilteredError(": ".join(["The content filter stopped the answer", *refusals[:1]]), model=model)
    if response.cache == "hit":
        error.attempts = (Attempt("skip", model, at=0.0, why=error.code),)
    else:
        own = response.attempts or (Attempt(model=model, usage=response.usage, at=0.0),)
        error.attempts = (*own[:-1], replace(own[-1], error=error.code))
    return error
