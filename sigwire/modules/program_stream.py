"""A program streamed: ``program.stream(...)`` and ``program.astream(...)``, and where in it an event comes from.

    for event in program.stream(question="..."):
        match event:
            case FieldDelta(field="answer", text=text): print(text, end="")
            case Finished(value=prediction): ...

A stream runs its program as it is read, in a context of its own: what the program sets is not seen by the reader in between.
Leaving it early (``close()``, the end of a ``with`` block, ``break`` and forgetting it) stops the program where it is: the
connection is closed, what an agent had done stands in ``stream.left``, what the model had said in ``stream.partial``.

Events name the module they come from as the streamed program does (``named_sub_modules``).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar, cast

from sigwire.core.response import Response
from sigwire.effects.emitting import Returned, astream, stream
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError

if TYPE_CHECKING:
    from sigwire.core.events import Finished, ProgramEvent
    from sigwire.modules.module import Module

__all__ = [
    "AsyncProgramStream",
    "EventPath",
    "ProgramStream",
    "event_path_of",
    "is_streamed",
    "module_paths",
    "set_submit_listener",
    "set_turn",
    "submit_listener_of",
]

T = TypeVar("T")


class EventPath(NamedTuple):
    """Where in a program something happens: the module by name, and the turn of the agent around it."""

    path: str
    turn: int | None


# The names of the streamed program's modules by identity; None where nothing is streamed.
_names: ContextVar[Mapping[int, str] | None] = ContextVar("sigwire_streamed_names", default=None)
_turn: ContextVar[int | None] = ContextVar("sigwire_streamed_turn", default=None)
# The module whose answers somebody else hears too, and who.
_beside: ContextVar[tuple[object, Any] | None] = ContextVar("sigwire_streamed_beside", default=None)


def is_streamed() -> bool:
    """Whether somebody reads what is told here."""
    return _names.get() is not None


def event_path_of(module: object) -> EventPath:
    """Where in the streamed program a module stands. One that it does not hold has the name of its class."""
    names = _names.get() or {}
    return EventPath(names.get(id(module)) or type(module).__name__, _turn.get())


def set_turn(number: int | None) -> int | None:
    """From now on events are of this turn; gives the turn before. Does nothing where nothing is streamed."""
    if not is_streamed():
        return None
    before = _turn.get()
    _turn.set(number)
    return before


def set_submit_listener(module: object, listener: Any) -> None:
    """From now on ``listener`` hears what ``module`` is answered, through the reader that its ``beside`` gives for another one;
    ``None`` is nobody.
    """
    _beside.set(None if listener is None else (module, listener))


def submit_listener_of(module: object) -> Any:
    """Who hears what this module is answered, or ``None``."""
    heard = _beside.get()
    return heard[1] if heard is not None and heard[0] is module else None


def module_paths(module: Module) -> dict[int, str]:
    """The names of a module and of those it holds, by identity."""
    named = {id(part): name.removeprefix("self.") for name, part in reversed(list(module.named_sub_modules()))}
    return {**named, id(module): "self"}


@dataclass(slots=True)
class _StreamOutcome(Generic[T]):
    """How a stream ended: nothing yet, a value, or left early."""

    value: T | None = None
    finished: bool = False
    left: BaseException | None = None

    def leave(self, error: BaseException) -> None:
        if not isinstance(error, GeneratorExit):  # the program was told ``StreamLeft``
            self.left = error

    def finish(self, value: T) -> Finished:
        from sigwire.core.events import Finished

        self.value, self.finished = value, True
        return Finished(value)

    def get(self, kind: str) -> T:
        if not self.finished:
            raise ConfigurationError(f"The {kind} has no value before its end. Read all of its events first.")
        return cast(T, self.value)


class _Stream(Generic[T]):
    """What blocking and awaited streams share."""

    def __init__(self, module: Module) -> None:
        self._outcome: _StreamOutcome[T] = _StreamOutcome()
        self._context: Context = copy_context()
        self._context.run(_names.set, module_paths(module))
        self._context.run(_turn.set, None)

    @property
    def value(self) -> T:
        """The program's value, once everything was read. Raises ``ConfigurationError`` before."""
        return self._outcome.get("stream")

    @property
    def left(self) -> BaseException | None:
        """What ended the program early: ``StreamCancelled``, a cancellation, an error. ``AgentRun.of(left)``: an agent's run."""
        return self._outcome.left

    @property
    def partial(self) -> Response | None:
        """What the model had answered when the program ended early: text, finished calls, tokens as far as they were told."""
        return getattr(self._outcome.left, "partial", None)


class ProgramStream(_Stream[T], Iterator["ProgramEvent"]):
    """The events of a program, blocking. The last is ``Finished``; an error of the program is raised in its place."""

    def __init__(self, module: Module, begin: Callable[[], Steps[T]]) -> None:
        super().__init__(module)
        self._events = _told(begin, self._outcome)

    def __next__(self) -> ProgramEvent:
        return self._context.run(next, self._events)

    def close(self) -> None:
        """Leave the stream. The program stops where it is."""
        self._context.run(self._events.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _told(begin: Callable[[], Steps[T]], outcome: _StreamOutcome[T]) -> Generator[ProgramEvent]:
    try:
        value = yield from stream(begin(), on_cancelled=outcome.leave)
    except BaseException as error:
        outcome.leave(error)
        raise
    yield outcome.finish(value)


class AsyncProgramStream(_Stream[T], AsyncIterator["ProgramEvent"]):
    """The events of a program, awaited."""

    def __init__(self, module: Module, begin: Callable[[], Steps[T]]) -> None:
        super().__init__(module)
        self._events = _atold(begin, self._outcome)

    def __anext__(self) -> Coroutine[Any, Any, ProgramEvent]:
        return _within(self._context, self._events.__anext__())

    async def aclose(self) -> None:
        """Leave the stream. The program stops where it is."""
        await _within(self._context, self._events.aclose())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _atold(begin: Callable[[], Steps[T]], outcome: _StreamOutcome[T]) -> AsyncGenerator[ProgramEvent, None]:
    events = astream(begin(), on_cancelled=outcome.leave)
    try:
        async for event in events:
            yield outcome.finish(cast(Any, event).value) if type(event) is Returned else event
    except BaseException as error:
        outcome.leave(error)
        raise
    finally:
        await events.aclose()


async def _within(context: Context, awaited: Awaitable[T]) -> T:
    """Await something in a context of its own, in the task that awaits."""
    steps = awaited.__await__()
    try:
        waiting = context.run(next, steps)
    except StopIteration as stop:  # there was nothing to wait for, as for nearly every event
        return cast(T, stop.value)
    return cast(T, await _InContext(context, steps, waiting))


class _InContext:
    """What is left of something that waits."""

    __slots__ = ("_context", "_steps", "_waiting")

    def __init__(self, context: Context, steps: Generator[Any, Any, Any], waiting: Any) -> None:
        self._context, self._steps, self._waiting = context, steps, waiting

    def __await__(self) -> Generator[Any, Any, Any]:
        run, steps, waiting = self._context.run, self._steps, self._waiting
        try:
            while True:
                try:
                    sent = yield waiting
                except BaseException as error:
                    waiting = run(steps.throw, error)
                else:
                    waiting = run(steps.send, sent)
        except StopIteration as stop:
            return stop.value
