"""Modules with DSPy's methods, as subclasses of the core's.

Module                   map_named_predictors, reset_copy, batch with DSPy's options
Predict, ChainOfThought  the same; Predict has get_config and update_config and reads states of DSPy

A ``ChainOfThought`` of the door holds a ``Predict`` of the door. ``agents`` has ``ReAct``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Self, TypeVar, cast, overload

from sigwire.core import tools as core
from sigwire.core.example import Example, Prediction
from sigwire.core.paths import AttributeStep, ItemStep, Path
from sigwire.core.record import FieldValues
from sigwire.dspy.adapters import default_adapter, own_call
from sigwire.dspy.called_models import as_model
from sigwire.dspy.inputs import read_as_dspy
from sigwire.dspy.layouts.thinking import with_thinking
from sigwire.dspy.saving import read_state, read_states, text_loops, write_program
from sigwire.dspy.tools import ToolCalls
from sigwire.effects.steps import Steps
from sigwire.errors import warn_user
from sigwire.lm.secrets import wrap_secrets
from sigwire.modules import chain_of_thought, module, predict
from sigwire.modules.ask import resolve_lm
from sigwire.modules.calling import called_steps
from sigwire.modules.inputs import InputReader, UnknownInputs
from sigwire.modules.tree.walk import is_held
from sigwire.settings import Settings, context, current
from sigwire.signatures.signature import ensure_signature

if TYPE_CHECKING:
    from sigwire.adapters.base import Adapter
    from sigwire.adapters.plan import Plan
    from sigwire.core.json import JsonObject
    from sigwire.lm.base import LanguageModel
    from sigwire.modules.deciding import Deciding
    from sigwire.signatures.signature import Signature, SignatureMeta

__all__ = ["ChainOfThought", "Module", "Predict", "options_with_effect"]

P = ParamSpec("P")
S = TypeVar("S")


class Module(module.Module):
    """``sigwire.Module`` with DSPy's methods. A subclass may name its ``forward`` ``__call__``, and ``aforward`` ``acall``.

    >>> class Double(Module):
    ...     def __call__(self, n):
    ...         return 2 * n
    >>> Double()(4)
    8
    """

    unknown_inputs: UnknownInputs = "warn"

    def __init_subclass__(cls, **kwargs: object) -> None:
        for name, entry in (("__call__", "forward"), ("acall", "aforward")):
            if name in cls.__dict__ and getattr(cls, entry, None) is getattr(module.Module, entry, None):
                setattr(cls, entry, cls.__dict__[name])
                delattr(cls, name)
        super().__init_subclass__(**kwargs)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The records of ``sigwire.Module.history``, as a list.

        >>> Module().history
        []
        """
        return list(super().history)

    def map_named_predictors(self, function: Callable[[Any], Any]) -> Self:
        """Replace every predictor inside by ``function(predictor)``, but for those in tools; returns the module."""
        for path, part in list(self._parameters()):
            if path and isinstance(part, predict.Predict) and not is_held(path):
                _replace(self, path, function(part))
        return self

    def reset_copy(self) -> Self:
        """Return a copy whose predictors have no demos, traces and models."""
        made = self.deepcopy()
        for predictor in made.predictors():
            predictor.reset()
        return made

    def batch(
        self, examples: Iterable[Example | Mapping[str, Any]], num_threads: int | None = None, **options: Any
    ) -> Any:
        """Call with each of many inputs; see ``sigwire.Module.batch``. DSPy's options without effect are a warning."""
        return cast(Any, super()).batch(examples, num_threads, **options_with_effect("batch", options))

    async def abatch(
        self, examples: Iterable[Example | Mapping[str, Any]], num_threads: int | None = None, **options: Any
    ) -> Any:
        """``batch``, awaited."""
        return await cast(Any, super()).abatch(examples, num_threads, **options_with_effect("batch", options))

    def save(
        self,
        path: str | PathLike[str],
        save_program: bool = False,
        modules_to_serialize: Iterable[object] | None = None,
    ) -> None:
        """Write the state to a ``.json`` file, or the whole program to a folder, for ``dspy.load``; see ``save_program``.

        No file holds code: ``modules_to_serialize`` has no effect. Raises ``StateError`` for a path of the wrong kind.
        """
        if save_program:
            write_program(self, path)
        else:
            super().save(path)

    def load(
        self,
        path: str | PathLike[str],
        allow_pickle: bool = False,
        *,
        lm: LanguageModel | None = None,
        allow_unsafe_lm_state: bool = False,
    ) -> None:
        """Load a file of ``save``, completely or not at all. ``allow_pickle`` has no effect: pickles are not read.

        A model of the file with an address that is not trusted is loaded with a warning, and sends nothing: its first
        request raises ``ConfigurationError``.
        """
        super().load(path, lm=lm, allow_unsafe_lm_state=allow_unsafe_lm_state)

    def load_state(
        self, state: Mapping[str, Any], *, lm: LanguageModel | None = None, allow_unsafe_lm_state: bool = False
    ) -> Self:
        """Load a state of ``dump_state``, also one of DSPy; see ``sigwire.Module.load_state`` and ``load``."""
        with text_loops(self, state):
            return super().load_state(read_states(self, state), lm=lm, allow_unsafe_lm_state=allow_unsafe_lm_state)


# DSPy's options of a batch, and the reason where one asks for something that is not done.
_NO_EFFECT: Mapping[str, str] = {
    "disable_progress_bar": "",
    "provide_traceback": "",
    "max_errors": "the first error is raised, or errors are collected with return_failed_examples=True",
    "timeout": "a slow call is not run a second time; sigwire.Module.batch(timeout=) ends it, Tool(timeout=) a tool",
    "straggler_limit": "nothing is run twice",
}


_OF_BATCH = {"max_errors": "the first error is raised, or errors are collected with return_failed_examples=True"}


def options_with_effect(owner: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without those that have no effect in ``owner``; a warning names one that was to have an effect.

    >>> options_with_effect("Parallel", {"num_threads": 2, "disable_progress_bar": True})
    {'num_threads': 2}
    """
    ignored = {**_NO_EFFECT, **(_OF_BATCH if owner == "batch" else {})}
    for name in options.keys() & ignored.keys():
        if options[name] and (why := ignored[name]):
            warn_user(f"{owner} takes no notice of {name}: {why}.")
    return {name: value for name, value in options.items() if name not in ignored}


def _replace(owner: Any, path: Path, value: Any) -> Any:
    """Set the value at a path; returns the owner, which is a new object if it is a tuple."""
    step, rest = path[0], path[1:]
    if isinstance(step, AttributeStep):
        setattr(owner, step.name, _replace(getattr(owner, step.name), rest, value) if rest else value)
        return owner
    index: Any = step.key if isinstance(step, ItemStep) else step
    item = _replace(owner[index], rest, value) if rest else value
    if not issubclass(type(owner), tuple):
        owner[index] = item
        return owner
    items = (*owner[:index], item, *owner[index + 1 :])
    rebuild: Any = getattr(owner, "_make", tuple)  # a named tuple keeps its class
    return rebuild(items)


class Predict(Module, predict.Predict[P, S]):
    """``sigwire.Predict`` with DSPy's methods; tool calls in its predictions are ``ToolCalls`` of the door.

    ``predict.adapter``, or ``adapter=`` of a call, takes the place of the setting; ``adapter=None`` is the setting.
    No file holds it, unless a search chose it.
    """

    adapter: Adapter | None = None

    @property
    def fields(self) -> Any:
        """By output: ``threshold``, ``cuts`` or ``weights``, ``instructions`` and ``criteria`` of its decision, as in DSPy.

        An entry makes a model of texts write probabilities. Each call checks and reads the entries, which may be changed.
        """
        return self.__dict__.setdefault("fields", {})

    @fields.setter
    def fields(self, given: Any) -> None:
        self.__dict__["fields"] = given

    def get_criteria(self, field: str) -> Any:
        """Return the criteria of an output in DSPy's form, a copy. Raises ``KeyError`` for an output that is no decision."""
        from sigwire.dspy.decisions.fields import criteria_of_output, outputs_of

        return deepcopy(criteria_of_output(outputs_of(self.signature)[field], self.fields.get(field, {})))

    def set_criteria(self, field: str, criteria: Any) -> None:
        """Set the criteria of an output, as a copy. Raises ``ConfigurationError`` for criteria that do not fit it."""
        from sigwire.dspy.decisions.fields import check_fields

        changed = {**self.fields, field: {**self.fields.get(field, {}), "criteria": deepcopy(criteria)}}
        check_fields(self.signature, changed)
        self.fields.setdefault(field, {})["criteria"] = changed[field]["criteria"]

    if TYPE_CHECKING:

        @overload
        def __init__(
            self: Predict[..., Prediction], signature: str | Signature, *args: Any, **options: Any
        ) -> None: ...
        @overload
        def __init__(self, signature: Callable[P, S], *args: Any, **options: Any) -> None: ...
        def __init__(self, *args: Any, **options: Any) -> None: ...

    def steps(self, /, *args: Any, **kwargs: Any) -> Steps[Prediction]:
        """Return the steps of one call."""
        is_given = "adapter" in kwargs and "adapter" not in self.signature.input_fields
        adapter = kwargs.pop("adapter") if is_given else self.adapter
        with nullcontext() if adapter is None else context(adapter=adapter):
            prediction = yield from self._call_steps(args, kwargs)
        for name, value in list(Prediction.items(prediction)):
            if isinstance(value, core.ToolCalls):
                prediction[name] = ToolCalls.of(value)
        return prediction

    def _call_steps(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Steps[Prediction]:
        """Return the steps of a call, which an adapter may make itself; an object of DSPy is a model."""
        values, reader = current(), self._reader
        if reader is None or reader.spec is not self.signature.spec:
            reader = self._reader = InputReader(self.signature.spec)
        names = reader.specials
        given = {name: kwargs[name] for name in names & kwargs.keys()}
        if isinstance(given.get("config"), Mapping):
            given["config"] = wrap_secrets(given["config"])
        other = given.pop("signature", None)
        signature: SignatureMeta = self.signature if other is None else ensure_signature(other, scope={})
        asked = next((lm for lm in (given.get("lm"), self.lm, values.lm) if lm is not None), None)
        lm = as_model(asked)
        if (call := own_call(values.adapter)) is not None and not args:
            inputs = {name: value for name, value in kwargs.items() if name not in names}
            return (yield from self._adapter_steps(call, signature, inputs, {**given, "lm": lm}))
        options = self._with_thinking(signature, lm, given.get("config"), values)
        if lm is not asked and "lm" in names:
            kwargs["lm"] = lm
        if options is not None and "config" in names:
            kwargs["config"] = options
        return (yield from super().steps(*args, **kwargs))

    def _adapter_steps(
        self, call: object, signature: SignatureMeta, inputs: dict[str, Any], given: Mapping[str, Any]
    ) -> Steps[Prediction]:
        """Return the steps of a call of an adapter that makes the whole call itself."""
        reader = self._reader if signature is self.signature else None
        reader = reader or InputReader(signature.spec)
        inputs = type(self).prepare_inputs(self, reader, inputs, check_types=current().warn_on_type_mismatch)
        config: dict[str, object] = {**self.config, **(given.get("config") or {})}
        demos = list(self.demos if given.get("demos") is None else given["demos"])
        lm = resolve_lm(given["lm"], type(self).__name__)
        outputs = yield from called_steps(call, (lm, config, signature, demos, inputs), {})
        return Prediction.from_completions(outputs, signature=signature)

    def prepare_inputs(
        self, reader: InputReader, given: dict[str, object], *, check_types: bool = True
    ) -> dict[str, object]:
        """Return the inputs, read as DSPy reads them."""
        own, reader = reader is self._reader, read_as_dspy(reader)
        if own:  # it knows the tools of earlier calls
            self._reader = reader
        return super().prepare_inputs(reader, given, check_types=check_types)

    def _with_thinking(self, signature: SignatureMeta, lm: Any, asked: Any, values: Settings) -> Any:
        """Return the options of a call; for an output of type ``Reasoning`` they switch on the thinking of the model."""
        adapter = values.adapter or default_adapter()
        if not hasattr(lm, "capabilities") or not getattr(adapter, "native_reasoning", False):
            return asked
        if asked is not None and not isinstance(asked, Mapping):
            return asked  # the call refuses it
        given: dict[str, object] = {**self.config, **cast("FieldValues", asked or {})}
        options = with_thinking(signature, lm, given)
        return cast("FieldValues | None", asked) if options is given else options

    def reset(self) -> None:
        """Remove demos, traces, training examples, the model and the adapter."""
        super().reset()
        self.adapter = None

    def update_config(self, **config: Any) -> None:
        """Merge request options over the module's."""
        self.config = {**self.config, **config}

    def get_config(self) -> dict[str, Any]:
        """Return the module's request options."""
        return self.config

    def settings_of_call(self) -> Settings:
        """Return the settings of a call; ``steps`` set the adapter."""
        return current()

    def plan_for(
        self, signature: SignatureMeta, lm: LanguageModel, values: Settings, options: Mapping[str, Any] | None
    ) -> Plan:
        """Return the plan; without an adapter in the settings it is that of the door's."""
        if values.adapter is None:
            values = replace(values, adapter=default_adapter())  # the core's has no formats of types
        return super().plan_for(signature, lm, values, options)

    def decide_call(
        self, lm: LanguageModel, values: Settings, parts: predict.CallParts
    ) -> tuple[Deciding | None, predict.CallParts]:
        """Return how the call gets its evidence: that of ``fields`` and of outputs of the types of decisions, or the core's."""
        from sigwire.dspy.decisions.asking import decided_call

        return decided_call(self, self.fields, lm, parts) or super().decide_call(lm, values, parts)

    def dump_state(self) -> JsonObject:
        """Return the state, with ``fields`` in DSPy's form if there are any. Raises ``ConfigurationError`` for a misfit."""
        if not self.fields:
            return super().dump_state()
        from sigwire.dspy.decisions.fields import check_fields

        check_fields(self.signature, self.fields)
        return {**super().dump_state(), "fields": deepcopy(self.fields)}

    def prepare_state(self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False) -> Callable[[], None]:
        """Check a state, with or without field names; returns the change that applies it."""
        if isinstance(state, Mapping) and isinstance(state.get("signature"), Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            state = read_state(self.signature, state)
        change = super().prepare_state(state, allow_unsafe_lm_state=allow_unsafe_lm_state)
        saved: Any = state.get("fields")
        fields: Any = deepcopy(saved) if saved else {}
        if fields:
            from sigwire.dspy.decisions.fields import check_fields

            check_fields(self.signature.load_state(state["signature"]), fields)

        def change_all() -> None:
            change()
            self.fields = fields

        return change_all


class ChainOfThought(Module, chain_of_thought.ChainOfThought[P, S]):
    """``sigwire.ChainOfThought`` with DSPy's methods."""

    predictor_classes: ClassVar[predict.PredictorClasses] = predict.PredictorClasses(Predict, Predict)

    if TYPE_CHECKING:

        @overload
        def __init__(
            self: ChainOfThought[..., Prediction], signature: str | Signature, *args: Any, **options: Any
        ) -> None: ...
        @overload
        def __init__(self, signature: Callable[P, S], *args: Any, **options: Any) -> None: ...
        def __init__(self, *args: Any, **options: Any) -> None: ...
