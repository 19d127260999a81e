"""Module: the base of every program. What it calls, what it contains, how it is copied, saved and run many times.

A subclass defines one entry; the nearest class in the method resolution order that defines any decides:

    forward(...)            plain Python, blocking; awaited calls run it off the event loop
    aforward(...)           plain Python, awaited; blocking calls run it on a loop of our own, also in a notebook
    forward and aforward    each serves its own kind of call
    steps(**inputs)         a generator of effects (see ``sigwire.effects.steps``), for both: the library's own modules

``module(...)`` blocks, ``await module.acall(...)`` awaits, ``yield from module.call_steps(...)`` calls from a program.
All three report to callbacks, count usage and remember requests where the settings ask for it, and cost nothing where
they do not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TextIO, TypeVar, overload

from sigwire.core.example import Example
from sigwire.core.json import JsonObject
from sigwire.effects.gather import Gather
from sigwire.effects.loops import block_on, to_thread
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import ConfigurationError, InputError, StateError
from sigwire.modules.ask import recording_calls
from sigwire.modules.program_stream import AsyncProgramStream, ProgramStream
from sigwire.modules.tree import saving as states
from sigwire.modules.tree.copying import copy_value
from sigwire.modules.tree.walk import AttributeStep, Parameter, Path, Walkable, contained, name_of
from sigwire.observe.callbacks import watched_call
from sigwire.observe.usage import UsageTracker, track_usage
from sigwire.settings import Settings, current

if TYPE_CHECKING:
    from sigwire.lm.call_log import CallLog

__all__ = ["Module", "StepsModule"]

M = TypeVar("M", bound="Module")

_ENTRIES = ("steps", "forward", "aforward")
_counting: ContextVar[bool] = ContextVar("sigwire_counting_usage", default=False)


class Module(Walkable):
    """A program: plain Python that calls other modules.

    ``callbacks`` and the private parts exist whether or not a subclass calls ``super().__init__()``. A module with
    ``_compiled = True`` keeps its parameters from the modules around it.

    >>> class Shout(Module):
    ...     def forward(self, text: str) -> str:
    ...         return text.upper() + "!"
    >>> Shout()(text="hello")
    'HELLO!'
    """

    callbacks: list[Any]
    _compiled: bool
    _log: CallLog | None
    _entries: ClassVar[frozenset[str]] = frozenset()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        self.callbacks = []
        self._compiled = False
        self._log = None
        return self

    def __init__(self, callbacks: Sequence[Any] | None = None) -> None:
        if callbacks is not None and not isinstance(callbacks, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]  # a model, now and then
            raise ConfigurationError(
                f"{type(self).__name__} takes a list of callbacks there, not {type(callbacks).__name__}. "
                "Write callbacks=[...]; a model goes into lm=."
            )
        self.callbacks = list(callbacks or ())

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        nearest = next((base for base in cls.__mro__ if any(name in vars(base) for name in _ENTRIES)), cls)
        found = {name for name in _ENTRIES if name in vars(nearest)}
        if "forward" in found and inspect.iscoroutinefunction(vars(nearest)["forward"]):
            found = {*found - {"forward"}, "async forward"}
        cls._entries = frozenset(found)

    # --- calling -------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run, blocking. Works in any thread, also inside a running event loop."""
        return run(self.call_steps(*args, **kwargs))

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Run, awaited."""
        return await arun(self.call_steps(*args, **kwargs))

    def stream(self, *args: Any, **kwargs: Any) -> ProgramStream[Any]:
        """Run, blocking, and read what is told on the way; the last event is ``Finished``. See ``sigwire.modules.program_stream``.

        The program runs as its events are read; leaving early stops it.

        >>> from sigwire.lm.fake import FakeLM
        >>> from sigwire.modules.predict import Predict
        >>> shout = Predict("text -> answer", lm=FakeLM([{"answer": "HELLO THERE"}]))
        >>> *_, last = shout.stream(text="hello there")
        >>> last.value.answer
        'HELLO THERE'
        """
        return ProgramStream(self, lambda: self.call_steps(*args, **kwargs))

    def astream(self, *args: Any, **kwargs: Any) -> AsyncProgramStream[Any]:
        """``stream``, awaited."""
        return AsyncProgramStream(self, lambda: self.call_steps(*args, **kwargs))

    def call_steps(self, *args: Any, **kwargs: Any) -> Steps[Any]:
        """The call as a program, to be used with ``yield from`` in another program."""
        values = current()
        if self.callbacks or values.callbacks or values.track_usage or values.max_history_size:
            return self._watched(values, args, kwargs)
        return self._program(args, kwargs)

    def _program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Steps[Any]:
        if "steps" in self._entries:
            steps: Callable[..., Steps[Any]] = getattr(self, "steps")  # noqa: B009  # only some subclasses have it
            return steps(*args, **kwargs)
        return self._forwarded(args, kwargs)

    def _forwarded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Steps[Any]:
        return (yield _ForwardEffect(self, args, kwargs))

    def _watched(self, values: Settings, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Steps[Any]:
        with (
            watched_call("module", self, lambda: self._named_inputs(args, kwargs)) as end,
            recording_calls(self._history_log(values)),
            _totals(values) as totals,
        ):
            outputs = yield from self._program(args, kwargs)
            if totals is not None and hasattr(outputs, "set_lm_usage"):
                outputs.set_lm_usage(totals.get_total_tokens())
            end(outputs)
        return outputs

    def _named_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        entry = getattr(self, "forward" if self._entries & {"forward", "async forward"} else "aforward", None)
        if not args or entry is None:
            return kwargs
        try:
            return dict(inspect.signature(entry).bind(*args, **kwargs).arguments)
        except TypeError:  # the call itself is about to say so, better
            return {"args": args, **kwargs}

    # --- what is inside --------------------------------------------------------------------------------

    def named_parameters(self) -> list[tuple[str, Parameter]]:
        """Every parameter with its name: ``a``, ``a.b``, ``xs[0]``, ``d['k']``; a shared one once, under its first name.

        Parameters of sub-modules with ``_compiled = True`` are left out. A parameter's own name is ``self``.
        """
        return [(name_of(path) if path else "self", parameter) for path, parameter in self._parameters()]

    def _parameters(self) -> Iterator[tuple[Path, Parameter]]:
        if isinstance(self, Parameter):
            yield (), self
            return
        seen = {id(self)}
        waiting: list[Iterator[tuple[Path, Walkable]]] = [contained(self)]
        prefixes: list[Path] = [()]
        while waiting:
            entry = next(waiting[-1], None)
            if entry is None:
                waiting.pop()
                prefixes.pop()
                continue
            path, part = (*prefixes[-1], *entry[0]), entry[1]
            if id(part) in seen:
                continue
            seen.add(id(part))
            if isinstance(part, Parameter):
                yield path, part
            elif not getattr(part, "_compiled", False):
                waiting.append(contained(part))
                prefixes.append(path)

    def parameters(self) -> list[Parameter]:
        """Every parameter."""
        return [parameter for _, parameter in self.named_parameters()]

    def named_predictors(self) -> list[tuple[str, Any]]:
        """The parameters that are ``Predict``, with their names."""
        from sigwire.modules.predict import Predict

        return [(name, part) for name, part in self.named_parameters() if isinstance(part, Predict)]

    def predictors(self) -> list[Any]:
        """The parameters that are ``Predict``."""
        return [predictor for _, predictor in self.named_predictors()]

    @overload
    def named_sub_modules(self, type_: None = None, skip_compiled: bool = False) -> Iterator[tuple[str, Module]]: ...
    @overload
    def named_sub_modules(self, type_: type[M], skip_compiled: bool = False) -> Iterator[tuple[str, M]]: ...
    def named_sub_modules(
        self, type_: type[Any] | None = None, skip_compiled: bool = False
    ) -> Iterator[tuple[str, Any]]:
        """This module (``self``) and those inside it, nearest first: ``self.a``, ``self.xs[0]``, ``self.d[k]``."""
        wanted = type_ or Module
        seen = {id(self)}
        level: list[tuple[str, Walkable]] = [("self", self)]
        for name, module in level:  # grows while it is walked: breadth first
            if isinstance(module, wanted):
                yield name, module
            if skip_compiled and getattr(module, "_compiled", False) and module is not self:
                continue
            for path, part in contained(module):
                if id(part) not in seen:
                    seen.add(id(part))
                    level.append((name_of((AttributeStep(name), *path), quoted=False), part))

    def set_lm(self, lm: Any) -> None:
        """Give every predictor inside this model."""
        for predictor in self.predictors():
            predictor.lm = lm

    def get_lm(self) -> Any:
        """The model that all predictors have (``None``: that of the settings). Raises ``ValueError`` if they differ."""
        found = {id(predictor.lm): predictor.lm for predictor in self.predictors()}
        if len(found) > 1:
            models = ", ".join(sorted(str(getattr(lm, "model", lm)) for lm in found.values()))
            raise ConfigurationError(
                f"{type(self).__name__} has predictors with different models ({models}). Read predictor.lm of each."
            )
        return next(iter(found.values()), None)

    # --- copies ----------------------------------------------------------------------------------------

    def deepcopy(self) -> Self:
        """A copy with its own structure, demos and settings of every part; models, tools and clients are shared."""
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in vars(self).items():
            made.__dict__[name] = copy_value(value, memo)
        made._log = None
        return made

    # --- many inputs -------------------------------------------------------------------------------------

    @overload
    def batch(
        self,
        examples: Iterable[Example | Mapping[str, Any]],
        num_threads: int | None = None,
        *,
        return_exceptions: bool = False,
        return_failed_examples: Literal[False] = False,
    ) -> list[Any]: ...
    @overload
    def batch(
        self,
        examples: Iterable[Example | Mapping[str, Any]],
        num_threads: int | None = None,
        *,
        return_failed_examples: Literal[True],
    ) -> tuple[list[Any], list[Any], list[Exception]]: ...
    def batch(
        self,
        examples: Iterable[Example | Mapping[str, Any]],
        num_threads: int | None = None,
        *,
        return_exceptions: bool = False,
        return_failed_examples: bool = False,
    ) -> Any:
        """Call with each of many inputs, several at once; results come in the order of the inputs.

        An input is an ``Example`` (its inputs are used) or a dict. At most ``num_threads`` calls are under way, as the
        settings say where it is not given. The first error is raised and what has not begun is dropped. With
        ``return_exceptions=True`` errors stand in the list as values; with ``return_failed_examples=True`` there are three
        lists: results with ``None`` for failures, the examples that failed, and their errors.

        >>> class Double(Module):
        ...     def forward(self, n: int) -> int:
        ...         return 2 * n
        >>> Double().batch([{"n": 1}, {"n": 2}])
        [2, 4]
        >>> Double().batch([{"n": 1}, {"m": 2}], return_failed_examples=True)[:2]
        ([2, None], [{'m': 2}])
        """
        return run(self._batch(examples, num_threads, return_exceptions, return_failed_examples))

    @overload
    async def abatch(
        self,
        examples: Iterable[Example | Mapping[str, Any]],
        num_threads: int | None = None,
        *,
        return_exceptions: bool = False,
        return_failed_examples: Literal[False] = False,
    ) -> list[Any]: ...
    @overload
    async def abatch(
        self,
        examples: Iterable[Example | Mapping[str, Any]],
        num_threads: int | None = None,
        *,
        return_failed_examples: Literal[True],
    ) -> tuple[list[Any], list[Any], list[Exception]]: ...
    async def abatch(
        self,
        examples: Iterable[Example | Mapping[str, Any]],
        num_threads: int | None = None,
        *,
        return_exceptions: bool = False,
        return_failed_examples: bool = False,
    ) -> Any:
        """``batch``, awaited."""
        return await arun(self._batch(examples, num_threads, return_exceptions, return_failed_examples))

    def _batch(
        self,
        examples: Iterable[Example | Mapping[str, Any]],
        limit: int | None,
        keep_errors: bool,
        apart: bool,
    ) -> Steps[Any]:
        if limit is not None and limit < 1:
            raise ConfigurationError(
                f"num_threads is a number above 0, not {limit} (a batch of {type(self).__name__})."
            )
        asked = list(examples)
        programs = [self._one(_inputs_of(example), keep_errors or apart) for example in asked]
        if not programs:
            return ([], [], []) if apart else []
        results: list[Any] = yield Gather(programs, limit=limit or current().num_threads)
        return _apart(asked, results) if apart else results

    def _one(self, inputs: dict[str, Any], keep_error: bool) -> Steps[Any]:
        try:
            return (yield from self.call_steps(**inputs))
        except Exception as error:
            if not keep_error:
                raise
            return error

    # --- looking back --------------------------------------------------------------------------------------

    @property
    def history(self) -> Sequence[dict[str, Any]]:
        """What was asked of models during this module's calls, oldest first; empty unless ``max_history_size`` is set."""
        return self._log or ()

    def inspect_history(self, n: int = 1, file: TextIO | None = None) -> None:
        """Print the last ``n`` requests made during this module's calls.

        Nothing is remembered unless ``max_history_size`` is set (``configure(max_history_size=100)``).
        """
        from sigwire.lm.call_log import print_entries

        if not self.history:
            print(
                f"{type(self).__name__} remembers nothing. Write configure(max_history_size=100) before the call; "
                "a model's own lm.inspect_history() works without.",
                file=file,
            )
        print_entries(self.history[-n:] if n > 0 else [], file)

    def _history_log(self, values: Settings) -> CallLog | None:
        size = values.max_history_size
        if not size:
            return None
        if self._log is None or self._log.size != size:
            from sigwire.lm.call_log import CallLog

            self._log = CallLog(size)
        return self._log

    # --- state -----------------------------------------------------------------------------------------

    def dump_state(self) -> JsonObject:
        """The state of every parameter by name, as JSON and without secrets."""
        return {name: states.dump(parameter) for name, parameter in self.named_parameters()}

    def load_state(self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False) -> Self:
        """Take over a state from ``dump_state``, all of it or nothing; gives the module back.

        Raises ``StateError`` (a ``KeyError`` too, where names are missing) before anything is changed.
        ``allow_unsafe_lm_state`` lets the state name model classes and endpoints; see ``BaseLM.load_state``.
        """
        for change in self._prepare(state, allow_unsafe_lm_state):
            change()
        return self

    def _prepare(self, state: Mapping[str, Any], unsafe: bool) -> list[Callable[[], None]]:
        return states.prepare(type(self).__name__, dict(self.named_parameters()), state, unsafe)

    def save(self, path: str | PathLike[str], save_program: bool = False) -> None:
        """Write the state as a ``.json`` file. Raises ``StateError`` for other suffixes, and for ``save_program=True``, which
        would pickle the code: nothing is ever pickled.
        """
        if save_program:
            raise StateError(
                f"{type(self).__name__} cannot be saved with its code (saving a program): that takes pickle. Save the state, "
                "save('program.json'), and load it into a program made by the same code."
            )
        states.write(path, self.dump_state())

    def load(
        self, path: str | PathLike[str], allow_pickle: bool = False, *, allow_unsafe_lm_state: bool = False
    ) -> None:
        """Read a state that ``save`` wrote, all of it or nothing. No code is run and nothing is contacted.

        ``allow_pickle`` is there for programs that pass it; pickles are not read.
        """
        self.load_state(states.read(path), allow_unsafe_lm_state=allow_unsafe_lm_state)

    def __repr__(self) -> str:
        lines = [f"{name} = {parameter!r}" for name, parameter in self.named_parameters()]
        return "\n".join(lines) or f"{type(self).__name__}()"


class StepsModule(Module):
    """Base of modules whose entry is ``steps``; ``forward`` and ``aforward`` are there for subclasses to call and override."""

    def steps(self, *args: Any, **kwargs: Any) -> Steps[Any]:
        """The program."""
        raise ConfigurationError(f"{type(self).__name__} defines no steps.")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program, blocking."""
        return run(self.steps(*args, **kwargs))

    async def aforward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program, awaited."""
        return await arun(self.steps(*args, **kwargs))


class _ForwardEffect:
    """An effect: call a user's ``forward`` or ``aforward``, whichever suits."""

    __slots__ = ("_args", "_kwargs", "_module")

    nests = True

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._module, self._args, self._kwargs = module, args, kwargs

    def run(self) -> Any:
        if "forward" in self._module._entries:
            return self._module.forward(*self._args, **self._kwargs)
        return block_on(self._awaited()(*self._args, **self._kwargs))

    async def arun(self) -> Any:
        if "forward" in self._module._entries and "aforward" not in self._module._entries:
            return await to_thread(self._module.forward, *self._args, **self._kwargs)
        return await self._awaited()(*self._args, **self._kwargs)

    def _awaited(self) -> Any:
        if not self._module._entries:
            name = type(self._module).__name__
            raise ConfigurationError(f"{name} cannot be called: it defines neither forward(...) nor aforward(...).")
        return self._module.aforward if "aforward" in self._module._entries else self._module.forward


@contextmanager
def _totals(values: Settings) -> Generator[UsageTracker | None]:
    """A tracker for the outermost module, where the settings ask for totals."""
    if not values.track_usage or _counting.get():
        yield None
        return
    _counting.set(True)
    try:
        with track_usage() as tracker:
            yield tracker
    finally:
        _counting.set(False)


def _apart(examples: Sequence[Any], results: Sequence[Any]) -> tuple[list[Any], list[Any], list[Exception]]:
    """Results with ``None`` for failures, the examples that failed, their errors."""
    failed = [
        (example, result) for example, result in zip(examples, results, strict=True) if isinstance(result, Exception)
    ]
    good = [None if isinstance(result, Exception) else result for result in results]
    return good, [example for example, _ in failed], [error for _, error in failed]


def _inputs_of(example: Example | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(example, Example):
        return dict(example.inputs().items())
    if isinstance(example, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # users hand in anything
        return dict(example)
    raise InputError(f"batch takes Examples with inputs, or dicts of inputs; not {type(example).__name__}.")
