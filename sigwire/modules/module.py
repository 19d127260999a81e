"""Module, the base of every program: its call, its parts, copies, batches and saved state.

A subclass defines one entry. The nearest class in the method resolution order that defines any entry decides:

    forward(...)            blocking code; ``acall`` runs it in a thread
    aforward(...)           awaited code; a blocking call runs it on an event loop of the library, also in a notebook
    forward and aforward    ``forward`` serves blocking calls, ``aforward`` awaited calls
    steps(**inputs)         a generator of effects (``sigwire.effects.steps``) for both: modules of the library

``module(...)`` blocks, ``await module.acall(...)`` awaits, ``yield from module.call_steps(...)`` calls from other steps.
Callbacks, usage totals and call records cost nothing unless the settings or the module enable them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TextIO, TypeVar, overload

from sigwire.core.json import JsonObject
from sigwire.core.record import FieldValues
from sigwire.core.tools.injected import Injection, injected_parameters, values_of
from sigwire.effects.loops import block_on, to_thread
from sigwire.effects.performing import current_frame
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import ConfigurationError, OverrideError, StateError
from sigwire.keywords import ChecksKeywords
from sigwire.lm.preview.call_log import recording_calls
from sigwire.modules.ask import usage_totals
from sigwire.modules.program_stream import AsyncProgramStream, ProgramStream
from sigwire.modules.tree import (
    AttributeStep,
    Memo,
    Parameter,
    Path,
    Predictor,
    Walkable,
    copy_attributes,
    is_held,
    name_of,
    path_between,
    saving,
    walk,
)
from sigwire.modules.where import locate
from sigwire.observe.callbacks import EVERYWHERE, LOG_CHECKS, watched_call
from sigwire.observe.place import Running, enter, find_paths_with, running
from sigwire.observe.reports import collected, is_collecting
from sigwire.overriding import check_overrides
from sigwire.settings import Settings, current
from sigwire.show.card import HasCard

if TYPE_CHECKING:
    from sigwire.lm.base import LanguageModel
    from sigwire.lm.preview.call_log import CallLog
    from sigwire.lm.preview.preview import Preview
    from sigwire.modules.batch import BatchExamples, BatchFailures, BatchResults
    from sigwire.modules.exports import ExportForm
    from sigwire.modules.inputs import InputReader, UnknownInputs

__all__ = ["Module", "ReadsInputs", "StepsModule", "held_names", "module_paths", "unknown_policy"]

M = TypeVar("M", bound="Module")
_ENTRIES = {"steps", "forward", "aforward"}


class Module(ChecksKeywords, Walkable, HasCard):
    """A program: Python code that calls other modules.

    ``callbacks`` and the private attributes exist even if a subclass does not call ``super().__init__()``. The parameters of
    a module with ``_compiled = True`` are hidden from the modules that contain it.

    >>> class Shout(Module):
    ...     def forward(self, text: str) -> str:
    ...         return text.upper() + "!"
    >>> Shout()(text="hello")
    'HELLO!'
    """

    _shown_by = "sigwire.modules.cards.tree:module"
    callbacks: list[object]
    _compiled: bool
    _log: CallLog | None
    _entries: ClassVar[frozenset[str]] = frozenset()
    _is_program: ClassVar[bool] = True  # False: it holds no module, and its path in itself is "self"
    _collects: ClassVar[bool] = True  # False: its calls have no report of their own beside that of the module they call
    _hooks: ClassVar[Sequence[str]] = ("tool_source", "unknown_inputs")
    fixed_methods: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("__call__", "acall", "stream", "astream", "call_steps"), "define forward and aforward"),
        "deepcopy": "define __deepcopy__",
    }

    unknown_inputs: UnknownInputs = "error"
    """The policy for inputs that the signature of a call does not have, if the setting of that name is ``None``."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls, *args, **kwargs)
        self.callbacks = []
        self._compiled = False
        self._log = None
        return self

    @property
    def optimization(self) -> Any:
        """The ``OptimizationReport`` of the search that made the program, also after ``load``; ``None`` without a search.

        ``OptimizationReport.of(program)`` has the type for checkers. Raises ``StateError`` for a report of a file
        that no search wrote.
        """
        report = vars(self).get("optimization")
        if isinstance(report, saving.SavedReport):
            report = self.optimization = report.decode()
        return report

    @optimization.setter
    def optimization(self, report: Any) -> None:
        vars(self)["optimization"] = report

    def __init__(self, callbacks: Sequence[object] | None = None) -> None:
        if callbacks is not None and not isinstance(callbacks, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]  # a model, by mistake
            raise ConfigurationError(
                f"{type(self).__name__} takes a list of callbacks there, not {type(callbacks).__name__}. "
                "Write callbacks=[...]; a model is passed as lm=."
            )
        self.callbacks = list(callbacks or ())

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        check_overrides(cls)
        nearest = next((base for base in cls.__mro__ if not vars(base).keys().isdisjoint(_ENTRIES)), cls)
        found = vars(nearest).keys() & _ENTRIES
        if "forward" in found and inspect.iscoroutinefunction(vars(nearest)["forward"]):
            found = {*found - {"forward"}, "async forward"}
        if len(found) > 1 and "steps" in found and nearest.__module__ != __name__:  # StepsModule has all
            raise OverrideError(
                f"{nearest.__name__} defines steps and {max(found - {'steps'})}, and calls would bypass the latter "
                "(creating the class). Define one of them."
            )
        cls._entries = frozenset(found)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run, blocking. Works in any thread, also inside a running event loop."""
        is_outermost = self._is_program and enter(self)
        try:
            return run(self.call_steps(*args, **kwargs))
        except Exception as error:
            self._locate(error)
            raise
        finally:
            if is_outermost:
                running.set(Running())

    async def acall(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run, awaited."""
        is_outermost = self._is_program and enter(self)
        try:
            return await arun(self.call_steps(*args, **kwargs))
        except Exception as error:
            self._locate(error)
            raise
        finally:
            if is_outermost:
                running.set(Running())

    def stream(self, /, *args: Any, **kwargs: Any) -> ProgramStream[Any]:
        """Run, blocking, and yield events; the last is ``Finished``. See ``sigwire.modules.program_stream``.

        The program runs as its events are read. Closing the stream early cancels the program.

        >>> from sigwire.lm.fake import FakeLM
        >>> from sigwire.modules.predict import Predict
        >>> shout = Predict("text -> answer", lm=FakeLM([{"answer": "HELLO THERE"}]))
        >>> *_, last = shout.stream(text="hello there")
        >>> last.value.answer
        'HELLO THERE'
        """
        return ProgramStream(module_paths(self), lambda: self._located_steps(args, kwargs))

    def astream(self, /, *args: Any, **kwargs: Any) -> AsyncProgramStream[Any]:
        """``stream``, awaited."""
        return AsyncProgramStream(module_paths(self), lambda: self._located_steps(args, kwargs))

    def preview(self, /, *args: Any, **kwargs: Any) -> Preview:
        """Return the first request of a call, and send nothing. Also takes ``lm=``, ``demos=`` and ``config=``."""
        from sigwire.modules.driving import first_preview

        return first_preview(self, module_paths, args, kwargs)

    @overload
    def export(self, form: Literal["openai"], /, *args: Any, **inputs: Any) -> JsonObject: ...
    @overload
    def export(self, form: Literal["messages"], /, *args: Any, **inputs: Any) -> list[JsonObject]: ...
    @overload
    def export(self, form: Literal["markdown"], /, *args: Any, **inputs: Any) -> str: ...
    def export(self, form: ExportForm, /, *args: Any, **inputs: Any) -> JsonObject | list[JsonObject] | str:
        """Return the first request of a call as data, for code without sigwire. Nothing is sent.

        "openai": the JSON body that the call sends to an OpenAI endpoint. "messages": its messages, as dicts with role and
        content. "markdown": a page for people. An input that is not given is a placeholder: ``{question}`` in the place of a
        text, ``"{k}"`` in the place of other JSON. Secrets are ``***``. Also takes ``lm=``, ``demos=`` and ``config=``.

        Raises ``ConfigurationError`` if the model is not reached over a wire of OpenAI ("openai").

        >>> from sigwire.lm.client import LM
        >>> from sigwire.modules.predict import Predict
        >>> predict = Predict("question -> answer", lm=LM("openai/gpt-4.1-mini"), temperature=0.0)
        >>> body = predict.export("openai", question="2+2?")
        >>> body["model"], body["temperature"], [message["role"] for message in body["messages"]]
        ('gpt-4.1-mini', 0.0, ['system', 'user'])
        >>> "{question}" in predict.export("messages")[-1]["content"]
        True
        """
        from sigwire.modules.exports import exported

        return exported(self, form, args, inputs)

    def call_steps(self, /, *args: object, **kwargs: object) -> Steps[Any]:
        """Return the steps of one call, for ``yield from`` in other steps."""
        if (frame := current_frame()) is not None:
            return frame.program(type(self).__name__, self._watched_steps, current(), args, kwargs)
        values = current()
        is_watched = self.callbacks or values.callbacks or EVERYWHERE or LOG_CHECKS["module"]()
        if is_watched or values.track_usage or values.max_history_size:
            return self._watched_steps(values, args, kwargs)
        return self._entry_steps(args, kwargs)

    def _located_steps(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Steps[object]:
        enter(self)  # a stream has a context of its own
        try:
            return (yield from self.call_steps(*args, **kwargs))
        except Exception as error:
            self._locate(error)
            raise

    def _locate(self, error: Exception, **facts: Any) -> None:
        """Add the path of the module inside this one that an error came from, and other facts."""
        with suppress(Exception):  # attributes of a user's module may raise; the error must not be lost
            locate(error, self, module_paths(self), **facts)

    def _entry_steps(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Steps[object]:
        if "steps" not in self._entries:
            return collected(self, lambda: self._forward_steps(args, kwargs))
        steps: Callable[..., Steps[object]] = getattr(self, "steps")  # noqa: B009  # only some subclasses have it
        return collected(self, lambda: steps(*args, **kwargs)) if self._collects else steps(*args, **kwargs)

    def _forward_steps(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Steps[object]:
        return (yield _ForwardEffect(self, self._entries, args, kwargs))

    def _watched_steps(self, values: Settings, args: tuple[object, ...], kwargs: dict[str, object]) -> Steps[object]:
        with (
            watched_call("module", self, lambda: self._named_inputs(args, kwargs)) as end,
            recording_calls(self._history_log(values)),
            usage_totals(values) as totals,
        ):
            outputs: Any = yield from self._entry_steps(args, kwargs)
            if totals is not None and hasattr(outputs, "set_lm_usage"):
                outputs.set_lm_usage(totals.get_total_tokens())
            end(outputs)
        return outputs

    def _named_inputs(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        entry = getattr(self, "forward" if self._entries & {"forward", "async forward"} else "aforward", None)
        if not args or entry is None:
            return kwargs
        try:
            return dict(inspect.signature(entry).bind(*args, **kwargs).arguments)
        except TypeError:  # the call itself raises a better error
            return {"args": args, **kwargs}

    def tool_source(self) -> object:
        """Return what describes this module as a tool (``Tool(module)``): ``forward``, a signature, or ``None``.

        ``forward`` (or ``aforward``) if the class defines it; else the signature of the module, or that of the one program
        inside it. A subclass may override it.

        >>> from sigwire.modules.predict import Predict
        >>> Predict("question -> answer").tool_source().spec.outputs[0].name
        'answer'
        """
        if entries := self._entries - {"steps"}:
            return getattr(self, "forward" if entries - {"aforward"} else "aforward")
        if hasattr(own := getattr(self, "signature", None), "spec"):
            return own
        inside = [part for part in vars(self).values() if isinstance(part, Module)]
        return inside[0].tool_source() if len(inside) == 1 else None

    def named_parameters(self) -> list[tuple[str, Parameter]]:
        """Return every parameter with its name: ``a``, ``a.b``, ``xs[0]``, ``d['k']``; a shared one once, by its first name.

        What the function of a tool holds is part of the program: ``tools['ask']`` is the module that is the tool ``ask``, or
        whose method it is; ``tools['ask'].sub`` one in its closure, defaults or ``functools.partial``. Parameters of
        sub-modules with ``_compiled = True`` are omitted. The name of a parameter in itself is ``self``.
        """
        return [(name_of(path) if path else "self", parameter) for path, parameter in self._parameters()]

    def _parameters(self) -> Iterator[tuple[Path, Parameter]]:
        if isinstance(self, Parameter):
            yield (), self
            return
        for path, part in walk(self, _is_open):
            if isinstance(part, Parameter):
                yield path, part

    def parameters(self) -> list[Parameter]:
        """Return every parameter."""
        return [parameter for _, parameter in self.named_parameters()]

    def named_predictors(self) -> list[tuple[str, Any]]:
        """Return the ``Predict`` parameters with their names."""
        return [(name, part) for name, part in self.named_parameters() if isinstance(part, Predictor)]

    def predictors(self) -> list[Any]:
        """Return the ``Predict`` parameters."""
        return [predictor for _, predictor in self.named_predictors()]

    @overload
    def named_sub_modules(self, type_: None = None, skip_compiled: bool = False) -> Iterator[tuple[str, Module]]: ...
    @overload
    def named_sub_modules(self, type_: type[M], skip_compiled: bool = False) -> Iterator[tuple[str, M]]: ...
    def named_sub_modules(
        self, type_: type[Module] | None = None, skip_compiled: bool = False
    ) -> Iterator[tuple[str, Module]]:
        """Yield this module (``self``) and those inside it, breadth first: ``self.a``, ``self.xs[0]``, ``self.d[k]``.

        Modules that only tools hold are last: ``self.tools['ask']``.
        """
        wanted, root = type_ or Module, (AttributeStep("self"),)
        parts = walk(self, lambda part: not (skip_compiled and _is_compiled(part)), breadth_first=True)
        return ((name_of((*root, *path), quoted=False), part) for path, part in parts if isinstance(part, wanted))

    def set_lm(self, lm: LanguageModel | None) -> None:
        """Set the model of every predictor, also of those in tools."""
        for predictor in self.predictors():
            predictor.lm = lm

    def get_lm(self) -> Any:
        """Return the model of all predictors, ``None`` for that of the settings.

        Raises ``ConfigurationError`` if the predictors have different models.
        """
        found = {id(predictor.lm): predictor.lm for predictor in self.predictors()}
        if len(found) > 1:
            models = ", ".join(sorted(str(getattr(lm, "model", lm)) for lm in found.values()))
            raise ConfigurationError(
                f"{type(self).__name__} has predictors with different models ({models}). Read predictor.lm of each."
            )
        return next(iter(found.values()), None)

    def deepcopy(self) -> Self:
        """Return a copy with its own structure, demos and options. Models and clients are shared, and tools without modules.

        The functions of the copy's tools hold copies: a module, or a method of one; ``functools.partial``; closures and
        defaults. Modules that functions use by global names are shared.

        >>> from sigwire.modules.agents.react import ReAct
        >>> from sigwire.modules.predict import Predict
        >>> class Team(Module):
        ...     def __init__(self):
        ...         self.inner, self.outer = Predict("topic -> fact"), ReAct("task -> text", tools=[self.research])
        ...
        ...     def research(self, topic: str) -> str:
        ...         return self.inner(topic=topic).fact
        >>> copied = Team().deepcopy()
        >>> copied.outer.tools["research"].handler == copied.research
        True
        """
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: Memo) -> Self:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        copy_attributes(self, made, memo)
        made._log = None
        return made

    @overload
    def batch(
        self,
        examples: BatchExamples,
        num_threads: int | None = None,
        *,
        return_exceptions: bool = False,
        return_failed_examples: Literal[False] = False,
        timeout: float | None = None,
    ) -> BatchResults: ...
    @overload
    def batch(
        self,
        examples: BatchExamples,
        num_threads: int | None = None,
        *,
        return_failed_examples: Literal[True],
        timeout: float | None = None,
    ) -> BatchFailures: ...
    def batch(
        self,
        examples: BatchExamples,
        num_threads: int | None = None,
        *,
        return_exceptions: bool = False,
        return_failed_examples: bool = False,
        timeout: float | None = None,
    ) -> BatchResults | BatchFailures:
        """Call with each of many inputs, several at once; return the results in the order of the inputs.

        An example is an ``Example`` (its inputs are used) or a dict of inputs. At most ``num_threads`` calls run at once, by
        default as many as the setting of that name. The first error is raised, and calls that have not started are dropped;
        ``BatchRun.of(error)`` has what is finished, also after an interrupt. ``return_exceptions=True`` returns errors as
        results. ``return_failed_examples=True`` returns three lists: results with ``None`` for failures, the failed examples,
        and their errors. ``timeout``: seconds of one call; a call that takes longer fails with a ``TimeoutError``, and code
        that blocks is left behind in its thread.

        >>> class Double(Module):
        ...     def forward(self, n: int) -> int:
        ...         return 2 * n
        >>> Double().batch([{"n": 1}, {"n": 2}])
        [2, 4]
        >>> Double().batch([{"n": 1}, {"m": 2}], return_failed_examples=True)[:2]
        ([2, None], [{'m': 2}])
        """
        return run(self._batch_steps(examples, num_threads, return_exceptions, return_failed_examples, timeout))

    @overload
    async def abatch(
        self,
        examples: BatchExamples,
        num_threads: int | None = None,
        *,
        return_exceptions: bool = False,
        return_failed_examples: Literal[False] = False,
        timeout: float | None = None,
    ) -> BatchResults: ...
    @overload
    async def abatch(
        self,
        examples: BatchExamples,
        num_threads: int | None = None,
        *,
        return_failed_examples: Literal[True],
        timeout: float | None = None,
    ) -> BatchFailures: ...
    async def abatch(
        self,
        examples: BatchExamples,
        num_threads: int | None = None,
        *,
        return_exceptions: bool = False,
        return_failed_examples: bool = False,
        timeout: float | None = None,
    ) -> BatchResults | BatchFailures:
        """``batch``, awaited."""
        return await arun(self._batch_steps(examples, num_threads, return_exceptions, return_failed_examples, timeout))

    def _batch_steps(
        self, examples: BatchExamples, limit: int | None, keep_errors: bool, split: bool, timeout: float | None
    ) -> Steps[BatchResults | BatchFailures]:
        from sigwire.modules.batch import batch_steps, split_failures

        examples, owner = list(examples), type(self).__name__
        results = yield from batch_steps(
            self.call_steps,
            examples,
            limit,
            owner=owner,
            keep_errors=keep_errors or split,
            on_error=self._locate,
            timeout=timeout,
        )
        return split_failures(examples, results) if split else results

    @property
    def history(self) -> Sequence[dict[str, Any]]:
        """The records of model calls in this module's calls, oldest first; empty unless ``max_history_size`` is set."""
        return self._log or ()

    def inspect_history(self, n: int = 1, file: TextIO | None = None) -> None:
        """Print the last ``n`` model calls; they are recorded after ``configure(max_history_size=100)``."""
        from sigwire.lm.preview.printing import print_log

        print_log(type(self).__name__, self._log, n, file)

    def _history_log(self, values: Settings) -> CallLog | None:
        size = values.max_history_size
        if not size:
            return None
        if self._log is None or self._log.size != size:
            from sigwire.lm.preview.call_log import CallLog

            self._log = CallLog(size)
        return self._log

    def dump_state(self) -> JsonObject:
        """Return the state of every parameter by name, as JSON without secrets.

        The predictor of summaries of an agent is omitted unless it was changed.
        """
        known = self.named_parameters()
        return {
            name: parameter.dump_state() for name, parameter in known if not getattr(parameter, "is_default", False)
        }

    def load_state(
        self, state: FieldValues, *, lm: LanguageModel | None = None, allow_unsafe_lm_state: bool = False
    ) -> Self:
        """Load a state of ``dump_state``, completely or not at all; return the module.

        ``lm``: used in place of each model that the state has. ``allow_unsafe_lm_state`` lets the state name model classes
        and addresses; see ``BaseLM.load_state``. Raises ``StateError`` (a ``KeyError`` too, if names are missing) before
        anything is changed, also for an address of a model that is not trusted.
        """
        given = state if lm is None else saving.with_model(state, lm)
        for change in self._prepare(given, allow_unsafe_lm_state):
            change()
        return self

    def _prepare(self, state: FieldValues, unsafe: bool) -> list[Callable[[], None]]:
        known = dict(self.named_parameters())
        given: Any = state  # of any type, which saving.prepare refuses
        if isinstance(given, Mapping) and (
            unknown := [str(name) for name in given if name not in known and str(name).endswith("summary")]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        ):
            self._make_summaries(unknown)
            known = dict(self.named_parameters())
        return saving.prepare(type(self).__name__, known, state, unsafe, held_names(self))

    def _make_summaries(self, names: Sequence[str]) -> None:
        """Make the predictors of summaries that a state has: an agent makes its own at first use."""
        paths = {f"self.{name}".rpartition(".")[0] for name in names}
        for path, part in list(self.named_sub_modules()):
            if path in paths and hasattr(part, "compaction"):
                getattr(part, "summary", None)

    def save(self, path: str | PathLike[str], save_program: bool = False) -> None:
        """Write the state to a ``.json`` file. Raises ``StateError`` for other suffixes and for ``save_program=True``.

        Code is not saved: that needs pickle, which the library never uses. The report of a search (``optimization``) is in the
        file. Warns of what ``load`` without options refuses: a model of a class that is not sigwire's ``LM``, or at an address
        that is not trusted.
        """
        if save_program:
            raise StateError(
                f"{type(self).__name__} cannot be saved with its code (saving a program): that needs pickle. Save its class by "
                "name, arguments and state with sigwire.save_program(program, 'program.json'), or the state alone with save()."
            )
        state = self.dump_state()
        saving.write(path, state, saving.report_of(self))
        saving.warn_of_refusal(type(self).__name__, lambda: self._prepare(state, unsafe=False))

    def load(
        self, path: str | PathLike[str], *, lm: LanguageModel | None = None, allow_unsafe_lm_state: bool = False
    ) -> None:
        """Load a file of ``save``, completely or not at all; see ``load_state``. Runs no code and opens no connection.

        >>> import tempfile, pathlib
        >>> from sigwire.lm.client import LM
        >>> from sigwire.modules.predict import Predict
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "p.json")
        ...     Predict("a -> b", lm=LM("openai/gpt-5-mini")).save(path)
        ...     loaded = Predict("a -> b")
        ...     loaded.load(path, lm=LM("offline/lexical"))
        >>> loaded.lm
        LM('offline/lexical')
        """
        state, report = saving.read(path)
        self.load_state(state, lm=lm, allow_unsafe_lm_state=allow_unsafe_lm_state)
        if report is not None:
            self.optimization = report


class StepsModule(Module):
    """Base of modules with the entry ``steps``. Subclasses may call or override ``forward`` and ``aforward``."""

    def steps(self, /, *args: Any, **kwargs: Any) -> Steps[Any]:
        """Return the steps of one call, without callbacks and call records."""
        raise ConfigurationError(f"{type(self).__name__} defines no steps.")

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the steps, blocking."""
        return run(self._own_steps(args, kwargs))

    async def aforward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the steps, awaited."""
        return await arun(self._own_steps(args, kwargs))

    def _own_steps(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Steps[Any]:
        """Return the steps of a call of ``forward``: with a report, unless a subclass's ``forward`` runs them."""
        if not self._collects or is_collecting(self):
            return self.steps(*args, **kwargs)
        return collected(self, lambda: self.steps(*args, **kwargs))


class ReadsInputs(StepsModule):
    """A module that reads the inputs of its calls. A module that passes them on to another has no ``prepare_inputs``."""

    _hooks: ClassVar[Sequence[str]] = ("prepare_inputs",)

    def prepare_inputs(
        self, reader: InputReader, given: dict[str, object], *, check_types: bool = True
    ) -> dict[str, object]:
        """Return the inputs of a call: checked, with defaults. A subclass may read them otherwise.

        ``reader`` has the rules of the signature. Raises ``InputError``.
        """
        return reader.read(type(self).__name__, given, check_types=check_types, unknown=unknown_policy(self))


def unknown_policy(module: object) -> UnknownInputs:
    """Return what calls of a module do with inputs that its signature does not have: by the setting, else by its class.

    >>> unknown_policy(Module())
    'error'
    """
    own: UnknownInputs = getattr(module, "unknown_inputs", "error")
    return current().unknown_inputs or own


def module_paths(module: Module) -> dict[int, str]:
    """Return the paths of a module and of those inside it, by the id of the module."""
    paths = {id(part): name.removeprefix("self.") for name, part in reversed(list(module.named_sub_modules()))}
    return {**paths, id(module): "self"}


def held_names(module: Module) -> list[str]:
    """Return the names of the parameters that only tools hold."""
    return [name_of(path) for path, _ in module._parameters() if is_held(path)]  # pyright: ignore[reportPrivateUsage]


find_paths_with(module_paths, path_between)


def _is_compiled(part: object) -> bool:
    return bool(getattr(part, "_compiled", False))


def _is_open(part: object) -> bool:
    return not isinstance(part, Parameter) and not _is_compiled(part)


class _ForwardEffect:
    """An effect: call the user's ``forward`` or ``aforward``."""

    __slots__ = ("_args", "_entries", "_kwargs", "_module")

    nests = True

    def __init__(self, module: Module, entries: frozenset[str], args: tuple[object, ...], kwargs: FieldValues) -> None:
        self._module, self._entries, self._args, self._kwargs = module, entries, args, kwargs

    def run(self) -> object:
        if "forward" in self._entries:
            return self._call("forward")
        return block_on(self._call(self._awaited_entry()))

    async def arun(self) -> object:
        if "forward" in self._entries and "aforward" not in self._entries:
            return await to_thread(self._call, "forward")
        return await self._call(self._awaited_entry())

    def _call(self, entry: str) -> Any:
        forward = getattr(self._module, entry)
        if injected := injected_parameters(forward):
            return forward(*self._args, **self._with_injected(forward, injected))
        return forward(*self._args, **self._kwargs)

    def _with_injected(self, forward: Callable[..., Any], injected: Mapping[str, Injection]) -> Mapping[str, Any]:
        """Return the keywords of the call with the injected parameters that it does not give."""
        given = inspect.signature(forward).bind_partial(*self._args, **self._kwargs).arguments
        missing = [each for name, each in injected.items() if name not in given]
        return {**self._kwargs, **values_of(missing, type(self._module).__name__, "calling it")}

    def _awaited_entry(self) -> str:
        if not self._entries:
            name = type(self._module).__name__
            raise ConfigurationError(f"{name} cannot be called: define forward(...) or aforward(...) in it.")
        return "aforward" if "aforward" in self._entries else "forward"
