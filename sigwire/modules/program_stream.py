"""Streams of a program's events: ``program.stream(...)`` and ``program.astream(...)``, and the path of each event.

    for event in program.stream(question="..."):
        match event:
            case FieldDelta(field="answer", text=text): print(text, end="")
            case Finished(value=prediction): ...

A stream runs its program step by step as the consumer reads, in a copy of the context: the consumer does not see context
variables that the program sets. Closing the stream early (``close()``, the end of a ``with`` block, ``break``) cancels the
program and closes its connection. Then ``stream.error`` has the run of an agent and ``stream.partial`` the partial response.

Events name their module by its path in the streamed program (``named_sub_modules``). The caller passes these paths.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast

from sigwire.core.response import Response
from sigwire.effects.emitting import Returned, astream, stream
from sigwire.effects.loops import await_in
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.observe.callbacks import ACTIVE_TOOL_CALL
from sigwire.observe.place import Running, running

if TYPE_CHECKING:
    from sigwire.core.events import Finished, ProgramEvent, StreamEvent

__all__ = [
    "AsyncProgramStream", "EventPath", "EventReader", "ProgramStream", "event_path_of", "is_streamed",
    "set_submit_listener", "set_turn", "submit_listener_of",
]  # fmt: skip

T = TypeVar("T")


class EventPath(NamedTuple):
    """The module path of an event, the turn of the agent around the module, and the ids of the tool calls around it."""

    path: str
    turn: int | None
    within: str = ""

    def stamp(self, events: Iterable[ProgramEvent]) -> Iterable[ProgramEvent]:
        """Return the events of the module, with the calls around it."""
        if not self.within:
            return events
        return [replace(cast("StreamEvent", event), within=self.within) for event in events]


# Module paths by the id of the module; None if nothing is streamed.
_paths: ContextVar[Mapping[int, str] | None] = ContextVar("sigwire_streamed_paths", default=None)


def is_streamed() -> bool:
    """Return True if the running code is part of a program stream."""
    return _paths.get() is not None


def event_path_of(module: object) -> EventPath:
    """Return the path of a module in the streamed program. A module outside the program has the name of its class."""
    paths = _paths.get() or {}
    within = getattr(ACTIVE_TOOL_CALL.get(), "within", "")
    return EventPath(paths.get(id(module)) or type(module).__name__, running.get().turn, within)


def set_turn(number: int | None) -> int | None:
    """Set the turn of the events and calls that follow; return the turn before."""
    before = running.get()
    running.set(before._replace(turn=number))
    return before.turn


class EventReader(Protocol):
    """Converts the events of a response to events of the program."""

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]: ...

    def close(self) -> Iterable[ProgramEvent]: ...


_ReaderWrapper: TypeAlias = Callable[[EventReader], EventReader]
_submit_listener: ContextVar[tuple[object, _ReaderWrapper] | None] = ContextVar("sigwire_submit_listener", default=None)


def set_submit_listener(module: object, listener: _ReaderWrapper | None) -> None:
    """Set the listener to the responses that ``module`` gets: a wrapper of its event readers. ``None`` removes the listener."""
    _submit_listener.set(None if listener is None else (module, listener))


def submit_listener_of(module: object) -> _ReaderWrapper | None:
    """Return the listener to the responses of a module."""
    entry = _submit_listener.get()
    return entry[1] if entry is not None and entry[0] is module else None


@dataclass(slots=True)
class _StreamOutcome(Generic[T]):
    """The state of a stream: running, finished with a value, or failed with an error."""

    value: T | None = None
    finished: bool = False
    error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        if not isinstance(error, GeneratorExit):  # the program got a StreamCancelled, which is kept
            self.error = error

    def finish(self, value: T) -> Finished:
        from sigwire.core.events import Finished

        self.value, self.finished = value, True
        return Finished(value)


class _Stream(Generic[T]):
    """The attributes that blocking and awaited streams share."""

    def __init__(self, paths: Mapping[int, str]) -> None:
        self._outcome: _StreamOutcome[T] = _StreamOutcome()
        self._context: Context = copy_context()
        self._context.run(_paths.set, paths)
        self._context.run(running.set, Running(example=running.get().example))

    @property
    def value(self) -> T:
        """The program's value. Raises ``ConfigurationError`` until all events are read."""
        if not self._outcome.finished:
            raise ConfigurationError("The stream has no value before its end. Read all of its events first.")
        return cast(T, self._outcome.value)

    @property
    def error(self) -> BaseException | None:
        """The exception that ended the program, ``StreamCancelled`` after ``close``. ``AgentRun.of`` reads an agent's run."""
        return self._outcome.error

    @property
    def partial(self) -> Response | None:
        """The response until the program ended early: text, finished calls, and tokens if the provider sent them."""
        return getattr(self._outcome.error, "partial", None)


class ProgramStream(_Stream[T], Iterator["ProgramEvent"]):
    """The events of a program, blocking. The last is ``Finished``; an error of the program is raised in its place.

    ``paths`` are the paths of the program's modules by id; ``start`` returns the program's steps.
    """

    def __init__(self, paths: Mapping[int, str], start: Callable[[], Steps[T]]) -> None:
        super().__init__(paths)
        self._events = _run_stream(start, self._outcome)

    def __next__(self) -> ProgramEvent:
        return self._context.run(next, self._events)

    def close(self) -> None:
        """Cancel the program and close the stream."""
        self._context.run(self._events.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _run_stream(start: Callable[[], Steps[T]], outcome: _StreamOutcome[T]) -> Generator[ProgramEvent]:
    try:
        value = yield from stream(start(), on_cancelled=outcome.fail)
    except BaseException as error:
        outcome.fail(error)
        raise
    yield outcome.finish(value)


class AsyncProgramStream(_Stream[T], AsyncIterator["ProgramEvent"]):
    """The events of a program, awaited; the arguments are those of ``ProgramStream``."""

    def __init__(self, paths: Mapping[int, str], start: Callable[[], Steps[T]]) -> None:
        super().__init__(paths)
        self._events = _arun_stream(start, self._outcome)

    def __anext__(self) -> Awaitable[ProgramEvent]:
        return await_in(self._context, self._events.__anext__())

    async def aclose(self) -> None:
        """Cancel the program and close the stream."""
        await await_in(self._context, self._events.aclose())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


async def _arun_stream(start: Callable[[], Steps[T]], outcome: _StreamOutcome[T]) -> AsyncGenerator[ProgramEvent, None]:
    events = astream(start(), on_cancelled=outcome.fail)
    try:
        async for event in events:
            yield outcome.finish(cast("Returned[T]", event).value) if type(event) is Returned else event
    except BaseException as error:
        outcome.fail(error)
        raise
    finally:
        await events.aclose()
