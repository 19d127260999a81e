"""Perform effects in another way than by ``run``: the seam of the journal and of engines for durable work.

Most effects are performed by the driver of their steps. A *recordable* effect (a question to a model, a tool run, a clock) is
yielded as ``performed(effect)``: a frame, if ``performing`` set one, performs the effect; otherwise its own ``run`` does.

Each performed effect has a *place*: its path in the tree of programs, such as ``ReAct.0/turn.2/tool.1``. Names are counted
within their parent. Programs that run at once have frames of their own (the children of ``Gather`` by position), so a place
does not depend on which of two threads is first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import count
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from sigwire.effects.loops import block_on, to_thread
from sigwire.effects.steps import Effect, FunctionEffect, Steps, arun, run

__all__ = [
    "Frame", "PerformSteps", "Recordable", "adrive", "current_frame", "drive", "in_frame", "in_parts", "passed_on",
    "performed", "performing",
]  # fmt: skip

T = TypeVar("T")


class Recordable(Effect[T], Protocol[T]):
    """An effect whose value can be recorded, and given again without the effect.

    ``kind`` is its name in places. ``fingerprint`` returns the JSON that identifies the effect: equal fingerprints at a place
    are the same effect. ``dump`` returns the value as JSON, ``load`` the effect that gives a dumped value, emits its events
    and does nothing else. ``dump_error`` returns the JSON of an error that a repetition would raise again, else ``None``.
    """

    @property
    def kind(self) -> str: ...

    def fingerprint(self) -> dict[str, Any]: ...

    def dump(self, value: T) -> Any: ...

    def dump_error(self, error: Exception) -> Any: ...

    def load(self, data: Any) -> Effect[T]: ...


PerformSteps: TypeAlias = "Callable[[Recordable[Any], Frame], Steps[Any]]"
"""Returns the steps that perform an effect at the place of a frame. The steps may yield the effect."""
Around: TypeAlias = "Callable[[Steps[Any]], Steps[Any]]"


class Frame:
    """A place in the tree of programs, and the way in which effects below it are performed.

    ``run`` names the run. ``around`` wraps the steps of the outermost program.

    >>> frame = Frame(lambda effect, at: iter(()), "order-1042")
    >>> frame.child("ReAct").child("turn").path, frame.child("ReAct").path
    ('ReAct.0/turn.0', 'ReAct.1')
    """

    __slots__ = ("_around", "_counts", "path", "perform", "run")

    def __init__(self, perform: PerformSteps, run: str = "", path: str = "", around: Around | None = None) -> None:
        self.perform, self.run, self.path, self._around = perform, run, path, around
        self._counts: dict[str, count[int]] = {}

    def child(self, name: str, number: int | None = None) -> Frame:
        """Return the frame of the next child of this name, or of the child with this number."""
        if number is None:
            number = next(self._counts.setdefault(name, count()))  # atomic: threads may share a frame
        return Frame(self.perform, self.run, f"{self.path}/{name}.{number}" if self.path else f"{name}.{number}")

    def program(self, name: str, start: Callable[..., Steps[T]], *args: Any) -> Steps[T]:
        """Return the steps ``start(*args)`` of a program, in a frame of their own."""
        steps = in_frame(self.child(name), start, *args)
        return steps if self._around is None else self._around(steps)


_frame: ContextVar[Frame | None] = ContextVar("sigwire_frame", default=None)


current_frame: Callable[[], Frame | None] = _frame.get
"""Return the frame of the running code; ``None`` if effects are performed by their drivers."""


@contextmanager
def performing(frame: Frame | None) -> Generator[None]:
    """Inside the block, ``frame`` performs the effects."""
    before = _frame.get()
    _frame.set(frame)
    try:
        yield
    finally:
        if _frame.get() is frame:  # an abandoned generator may be closed in another context
            _frame.set(before)


def in_frame(frame: Frame, start: Callable[..., Steps[T]], *args: Any) -> Steps[T]:
    """Return the steps ``start(*args)``, which run in a frame."""
    with performing(frame):
        return (yield from start(*args))


def in_parts(steps: Sequence[Steps[T]]) -> list[Steps[T]]:
    """Return steps that are about to run at once, each in a frame of its own, with its position in the place."""
    frame = _frame.get()
    if frame is None:
        return list(steps)
    frame = frame.child("gather")
    return [_in_part(frame.child("part", at), part) for at, part in enumerate(steps)]


def _in_part(frame: Frame, steps: Steps[T]) -> Steps[T]:
    with performing(frame):
        return (yield from steps)


def performed(effect: Recordable[T], place: Frame | None = None) -> Effect[T]:
    """Return the effect to yield: the effect itself, or one that the frame performs, at ``place`` or the next of its kind."""
    frame = _frame.get()
    return effect if frame is None else _Performed(effect, place or frame.child(effect.kind))


def passed_on(effect: Recordable[Any], place: str, outer: Frame | None) -> Steps[Any]:
    """Perform an effect as the frame around the performing one does, such as that of a cassette; without one by itself."""
    if outer is None:
        return (yield effect)
    frame = Frame(outer.perform, path=place)
    return (yield from in_frame(frame, frame.perform, effect, frame))


class _Performed(Generic[T]):
    """An effect that a frame performs, under every driver."""

    __slots__ = ("_effect", "_frame")

    def __init__(self, effect: Recordable[T], frame: Frame) -> None:
        self._effect, self._frame = effect, frame

    def run(self) -> T:
        return run(self.streamed())

    async def arun(self) -> T:
        return await arun(self.streamed())

    def streamed(self) -> Steps[T]:
        return in_frame(self._frame, self._frame.perform, self._effect, self._frame)


def drive(steps: Callable[[], Steps[T]], perform: Callable[[Recordable[Any], str], Any], run_id: str = "") -> T:
    """Run steps, blocking; ``perform(effect, place)`` performs their recordable effects, by default with ``effect.run()``.

    ``steps`` is a function, because the places of effects are counted from its call on. ``run_id`` names the run in
    ``current_call()``.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    >>> def perform(effect, place):
    ...     print("performing", place)
    ...     return effect.run()
    >>> drive(lambda: predict.call_steps(question="2+2?"), perform).answer
    performing Predict.0/ask.0
    '4'
    """

    def blocking(effect: Recordable[Any], frame: Frame) -> Steps[Any]:
        call = partial(perform, effect, frame.path)

        async def awaited() -> Any:
            return await to_thread(call)

        return (yield _Nesting(call, awaited))

    with performing(Frame(blocking, run_id)):
        return run(steps())


async def adrive(
    steps: Callable[[], Steps[T]], perform: Callable[[Recordable[Any], str], Awaitable[Any]], run_id: str = ""
) -> T:
    """``drive``, awaited: ``perform`` is an async function, which awaits ``effect.arun()``."""

    def awaiting(effect: Recordable[Any], frame: Frame) -> Steps[Any]:
        async def awaited() -> Any:
            return await perform(effect, frame.path)

        def blocking() -> Any:
            return block_on(awaited())

        return (yield _Nesting(blocking, awaited))

    with performing(Frame(awaiting, run_id)):
        return await arun(steps())


class _Nesting(FunctionEffect[T]):
    __slots__ = ()

    nests = True  # the performed effect may emit
