"""Teleprompter, the base of everything with ``compile``: callbacks see each compilation once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from importlib import import_module
from typing import Any

from sigwire.core.example import Example
from sigwire.effects.loops import running_loop
from sigwire.modules.module import Module
from sigwire.observe.callbacks import watched_call
from sigwire.overriding import check_overrides

__all__ = ["Teleprompter"]


class Teleprompter:
    """Base for an optimizer of your own: override ``compile(student, *, trainset, teacher=None, valset=None)``.

    Callbacks get ``on_compile_start`` and ``on_compile_end`` once for each call, also if an override calls ``super().compile``.
    A subclass of ``Optimizer`` needs a ``rule`` only, and has budget, journal and report besides.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_overrides(cls)
        for name in ("compile", "acompile"):
            if function := cls.__dict__.get(name):
                setattr(cls, name, _watched(function))

    def compile(
        self,
        student: Module,
        *,
        trainset: Iterable[Example],
        teacher: Module | None = None,
        valset: Iterable[Example] | None = None,
        **options: Any,
    ) -> Any:
        """Return a better copy of the student. A subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no compile (compiling). Define it.")

    def get_params(self) -> dict[str, Any]:
        """Return the options by name."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


_compiling: ContextVar[tuple[object, ...]] = ContextVar("sigwire_compiling", default=())  # ids of optimizers, and tasks


def _watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a ``compile`` or ``acompile`` that callbacks see."""
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def acompile(self: object, *args: Any, **options: Any) -> Any:
            with _compilation(self, function, args, options) as end:
                end(program := await function(self, *args, **options))
                return program

        return acompile

    @wraps(function)
    def compile(self: object, *args: Any, **options: Any) -> Any:
        with _compilation(self, function, args, options) as end:
            end(program := function(self, *args, **options))
            return program

    return compile


@contextmanager
def _compilation(
    optimizer: object, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Generator[Callable[[object], None]]:
    active, loop = _compiling.get(), running_loop()
    this = id(optimizer), loop and import_module("asyncio").current_task(loop)  # asyncio is imported if a loop runs
    if this in active:  # an override called super().compile
        yield lambda program: None
        return
    token = _compiling.set((*active, this))
    try:
        with watched_call("compile", optimizer, partial(_inputs, function, optimizer, args, options)) as end:
            yield end
    finally:
        _compiling.reset(token)


def _inputs(
    function: Callable[..., Any], optimizer: object, args: tuple[Any, ...], options: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the arguments of a compilation by name, with their defaults; a call that does not fit raises by itself."""
    try:
        bound = inspect.signature(function).bind(optimizer, *args, **options)
    except TypeError:
        return options
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:  # without self
        kind = bound.signature.parameters[name].kind
        found |= {} if kind is kind.VAR_POSITIONAL else value if kind is kind.VAR_KEYWORD else {name: value}
    return found
