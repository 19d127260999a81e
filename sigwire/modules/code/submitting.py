"""``submit`` as a function of code: it ends the code and the task with the output fields."""

from __future__ import annotations

from collections.abc import Sequence

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.streaming.text_fields import emit_value
from sigwire.core.events import ProgramEvent
from sigwire.core.json import JsonValue
from sigwire.core.tools.calls import ToolCall
from sigwire.effects.steps import Steps
from sigwire.interpreters.host_calls import EndCode, HostCallError
from sigwire.modules.agents.submit import Submit
from sigwire.modules.program_stream import EventPath

__all__ = ["SubmitFunction"]


class SubmitFunction:
    """The host function ``submit`` of one run. ``outputs`` are the valid outputs that code submitted."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self.outputs: dict[str, object] | None = None

    def __call__(self, /, *args: JsonValue, **kwargs: JsonValue) -> Steps[JsonValue]:
        """End the code. Raises ``HostCallError`` with the problem of each field if the outputs are invalid."""
        if len(args) > len(self._submit.codecs):
            raise HostCallError("TypeError", f"{self._submit.name}() takes {len(self._submit.codecs)} values at most.")
        arguments = {**dict(zip(self._submit.codecs, args, strict=False)), **kwargs}
        submission = self._submit.read(ToolCall("", self._submit.name, arguments))
        if submission.outputs is None:
            raise HostCallError("ValueError", submission.problem)
        self.outputs = submission.outputs
        raise EndCode(arguments)
        yield

    def events(self, place: EventPath) -> Sequence[ProgramEvent]:
        """Return the submitted outputs as events of fields."""
        made = FieldEvents(place.path, place.turn)
        for name, value in (self.outputs or {}).items():
            emit_value(self._submit.codecs[name], value, made)
        return list(place.stamp(made.take()))
