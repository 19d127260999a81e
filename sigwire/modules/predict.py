"""Predict: a signature asked once. Format, ask, normalize, parse; nothing is executed here.

``Predict`` holds what can be learned (signature, demos, model, options) and prepares a call; ``_answer`` below is the
trip itself, with the two things that may make it more than one request: repairs, which the caller asked for, and an
adapter's second question. Every request made is in ``prediction.attempts``.

Statically ``Predict[P, S]`` takes the signature's inputs and gives the signature's outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast, overload

from sigwire.core.example import Prediction
from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import Attempt, Choice, LMWarning, Response
from sigwire.core.tools.tool import Tool
from sigwire.effects.steps import Steps
from sigwire.errors import (
    AdapterParseError,
    ConfigurationError,
    EmptyResponse,
    InputError,
    MalformedToolCall,
    ModelError,
    StateError,
)
from sigwire.modules.ask import Ask, EventReader, resolve_lm
from sigwire.modules.inputs import InputReader, UsedCallIds
from sigwire.modules.module import StepsModule
from sigwire.modules.program_stream import AsyncProgramStream, ProgramStream, submit_listener_of
from sigwire.modules.tree.saving import plain, prepare_one
from sigwire.modules.tree.walk import Parameter
from sigwire.observe.callbacks import watched_call as watch
from sigwire.settings import Settings, current
from sigwire.signatures.parser import caller_scope
from sigwire.signatures.signature import Signature, SignatureMeta, ensure_signature

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from sigwire.adapters.base import Adapter
    from sigwire.adapters.plan import FollowUp, ParsedChoice, Plan
    from sigwire.adapters.streaming import FieldReader
    from sigwire.lm.base import LanguageModel

__all__ = ["Predict", "attempts_of", "default_adapter"]

P = ParamSpec("P")
S = TypeVar("S")

Purpose: TypeAlias = Literal["ask", "repair", "extract", "retry"]


class Predict(StepsModule, Parameter, Generic[P, S]):
    """Ask a model for a signature's outputs: one call, one request.

    ``signature`` is a class or text. ``config`` holds request options (``temperature``, ``n``, ...) and
    ``max_repairs``: how often an answer that cannot be read is sent back with what is wrong. ``lm`` is the model;
    without it the settings' one. Attributes: ``signature``, ``demos``, ``lm``, ``config``, ``traces``, ``train``.

    A call takes the inputs by name. It may also take ``config=`` (merged over the module's), ``demos=``, ``lm=``,
    ``signature=``, and ``prediction={"type": "content", ...}``, unless an input has that name. With ``n`` above 1 all
    candidates are in ``prediction.completions``. Where the signature offers tools, the model's calls are an output;
    nobody runs them.

    Raises ``InputError`` for missing and unknown inputs, ``LMNotConfigured``, and the errors of the model and of its
    answer.

    >>> from sigwire.lm.fake import FakeLM
    >>> predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    >>> predict(question="2+2?").answer
    '4'
    """

    @overload
    def __init__(
        self: Predict[..., Prediction],
        signature: str | Signature,
        callbacks: Sequence[Any] | None = None,
        *,
        lm: Any = None,
        max_repairs: int = 0,
        **config: Any,
    ) -> None: ...
    @overload
    def __init__(
        self,
        signature: Callable[P, S],
        callbacks: Sequence[Any] | None = None,
        *,
        lm: Any = None,
        max_repairs: int = 0,
        **config: Any,
    ) -> None: ...
    def __init__(
        self,
        signature: Any,
        callbacks: Sequence[Any] | None = None,
        *,
        lm: Any = None,
        max_repairs: int = 0,
        **config: Any,
    ) -> None:
        super().__init__(callbacks)
        scope = None if isinstance(signature, SignatureMeta) else caller_scope()
        self.signature: Any = ensure_signature(signature, scope=scope)
        self.config: dict[str, Any] = config
        self.max_repairs = max_repairs
        self.lm: Any = lm
        self.demos: list[Any] = []
        self.traces: list[Any] = []
        self.train: list[Any] = []
        self._reader: InputReader | None = None
        self._plan: tuple[Any, Any, Any, Plan] | None = None

    # --- calling -------------------------------------------------------------------------------------

    if TYPE_CHECKING:
        # A ParamSpec leaves no room for further keywords: a call with one of ours takes any inputs.
        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> S: ...
        @overload
        def __call__(self, *, config: Mapping[str, Any], **inputs: Any) -> S: ...
        @overload
        def __call__(self, *, demos: Sequence[Any], **inputs: Any) -> S: ...
        @overload
        def __call__(self, *, lm: LanguageModel, **inputs: Any) -> S: ...
        @overload
        def __call__(self, *, signature: str | type[Signature], **inputs: Any) -> Any: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

        @overload
        async def acall(self, *args: P.args, **kwargs: P.kwargs) -> S: ...
        @overload
        async def acall(self, *, config: Mapping[str, Any], **inputs: Any) -> S: ...
        @overload
        async def acall(self, *, demos: Sequence[Any], **inputs: Any) -> S: ...
        @overload
        async def acall(self, *, lm: LanguageModel, **inputs: Any) -> S: ...
        @overload
        async def acall(self, *, signature: str | type[Signature], **inputs: Any) -> Any: ...
        async def acall(self, *args: Any, **kwargs: Any) -> Any: ...

        @overload
        def stream(self, *args: P.args, **kwargs: P.kwargs) -> ProgramStream[S]: ...
        @overload
        def stream(self, **inputs: Any) -> ProgramStream[S]: ...
        def stream(self, *args: Any, **kwargs: Any) -> Any: ...

        @overload
        def astream(self, *args: P.args, **kwargs: P.kwargs) -> AsyncProgramStream[S]: ...
        @overload
        def astream(self, **inputs: Any) -> AsyncProgramStream[S]: ...
        def astream(self, *args: Any, **kwargs: Any) -> Any: ...

    def steps(self, *args: Any, **kwargs: Any) -> Steps[Prediction]:
        """One call as a program."""
        reader = self._reader
        if reader is None or reader.spec is not self.signature.spec:
            reader = self._reader = InputReader(self.signature.spec)
        if args:
            raise reader.refuse_positional(type(self).__name__)
        specials: dict[str, Any] = {}
        if kwargs.keys() != reader.names:
            specials = {name: kwargs.pop(name) for name in reader.specials & kwargs.keys()}
            if (other := specials.pop("signature", None)) is not None:
                signature = ensure_signature(other, scope={})
                return self._steps(signature, InputReader(signature.spec), kwargs, specials)
        return self._steps(self.signature, reader, kwargs, specials)

    def _steps(
        self, signature: Any, reader: InputReader, given: dict[str, Any], specials: dict[str, Any]
    ) -> Steps[Prediction]:
        values = current()
        inputs = reader.read(type(self).__name__, given, check_types=values.warn_on_type_mismatch)
        given_lm = specials.get("lm")
        lm = resolve_lm(self.lm if given_lm is None else given_lm, type(self).__name__)
        plan = self._plan_for(signature, lm, values)
        options, repairs = self._options(specials)
        demos = specials.get("demos", self.demos)
        with watch("adapter_format", plan.adapter, lambda: _format_inputs(signature, inputs, demos)) as end:
            request = plan.format(inputs, demos, options)
            end(request)
        tools = plan.tools_of(inputs) if reader.tools_name is not None else ()
        taken = UsedCallIds(inputs.get(reader.history_name)) if reader.history_name is not None else ()
        prediction = yield from _answer(_CallContext(self, lm, plan, tools, taken), request, repairs)
        if values.trace is not None:
            _remember(values, (self, inputs, prediction))
        return prediction

    def _plan_for(self, signature: Any, lm: LanguageModel, values: Settings) -> Plan:
        """The plan; looked up by identity, since it changes only when one of its makers does."""
        adapter = values.adapter or default_adapter()
        capabilities = lm.capabilities
        spec = signature.spec
        kept = self._plan
        if kept is not None and kept[0] is spec and kept[1] is adapter and kept[2] is capabilities:
            return kept[3]
        plan = adapter.plan(signature, capabilities)
        self._plan = (spec, adapter, capabilities, plan)
        return plan

    def _options(self, specials: dict[str, Any]) -> tuple[dict[str, Any] | None, int]:
        """The request's options, and how many repairs they allow."""
        config: Mapping[str, Any] | None = specials.get("config")
        if not self.config and not config and "prediction" not in specials:
            return None, _repairs(self.max_repairs)
        if config is not None and not isinstance(config, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"config is a dict of request options, not {type(config).__name__} (calling Predict).")
        options: dict[str, Any] = {**self.config, **(config or {})}
        if "prediction" in specials:
            options["prediction"] = specials["prediction"]
        repairs = options.pop("max_repairs", self.max_repairs)
        return options, _repairs(repairs)

    # --- what can be learned ---------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget demos, traces, training examples and the model. Signature and options stay."""
        self.lm = None
        self.demos, self.traces, self.train = [], [], []

    def dump_state(self) -> JsonObject:
        """Demos, signature texts and model as JSON, without secrets. A model that has no ``dump_state`` is left out."""
        dump = getattr(self.lm, "dump_state", None)
        return {
            "traces": plain("traces", self.traces),
            "train": plain("train", self.train),
            "demos": plain("demos", self.demos),
            "signature": self.signature.dump_state(),
            "lm": dump() if dump is not None else None,
        }

    def prepare_state(self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False) -> Callable[[], None]:
        """Check a state; gives the change that takes it over. Demos come back as dicts."""
        if not isinstance(state, Mapping) or not isinstance(state.get("signature"), Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise StateError("a predictor's state is an object with a signature.")
        lists = {name: _list_of(name, state) for name in ("traces", "train", "demos")}
        for demo in lists["demos"]:
            if not isinstance(demo, Mapping):
                raise StateError(f"a demo is an object, not {type(demo).__name__}.")
        signature = self.signature.load_state(state["signature"])
        lm = _loaded_lm(state.get("lm"), allow_unsafe_lm_state)

        def change() -> None:
            self.signature = signature
            self.traces, self.train, self.demos = lists["traces"], lists["train"], lists["demos"]
            self.lm = lm

        return change

    def _prepare(self, state: Mapping[str, Any], unsafe: bool) -> list[Callable[[], None]]:
        return [prepare_one("self", self, state, unsafe)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.signature.signature!r})"


# --- the trip -----------------------------------------------------------------------------------------


class _CallContext:
    """What stays the same through all requests of one call."""

    __slots__ = ("attempts", "heard", "lm", "module", "plan", "taken", "tools")

    def __init__(
        self,
        module: object,
        lm: LanguageModel,
        plan: Plan,
        tools: tuple[Tool, ...] = (),
        taken: Iterable[str] = (),
    ) -> None:
        self.module, self.lm, self.plan, self.tools, self.taken = module, lm, plan, tools, taken
        self.attempts: list[Attempt] = []
        self.heard: FieldReader | None = None

    def reader(self, path: str, turn: int | None) -> EventReader:
        """What reads an answer in pieces."""
        from sigwire.adapters.streaming import FieldReader

        self.heard = FieldReader(self.plan, self.tools, path, turn, self.taken)
        listener = submit_listener_of(self.module)
        return self.heard if listener is None else listener.beside(self.heard)

    def parse(self, number: int, choice: Choice) -> ParsedChoice:
        """The fields of a choice of the last answer."""
        return self.plan.parse(choice) if self.heard is None else self.heard.parse(number, choice)


def _attempts(response: Response, purpose: Purpose) -> tuple[Attempt, ...]:
    """The requests that the model says it made for this: it does not know what for."""
    if purpose == "ask":
        return response.attempts
    return tuple(replace(one, purpose=purpose) if one.purpose == "ask" else one for one in response.attempts)


def _answer(trip: _CallContext, request: Request, repairs: int, purpose: Purpose = "ask") -> Steps[Prediction]:
    """Ask until the answer can be read or the repairs are used up; a prediction of it."""
    plan, checks = trip.plan, repairs > 0
    while True:
        response = yield Ask(trip.lm, request, trip)
        trip.attempts.extend(_attempts(response, purpose) or (Attempt(purpose, trip.lm.model, response.usage),))
        response = plan.normalize(response, trip.tools, taken=trip.taken)
        if checks:  # a call that does not fit its tool is worth a repair, where the caller pays for repairs
            response = plan.checked(response, trip.tools)
        readings = [_read(trip, *numbered) for numbered in enumerate(response.choices or (Choice(),))]
        failure = _first_failure(readings)
        if failure is None and not (repairs > 0 and _has_wrong_calls(response)):
            break
        if failure is not None and (repairs <= 0 or not isinstance(failure, _REPAIRABLE)):
            failure.attempts = tuple(trip.attempts)
            raise failure
        choice = next(iter(response.choices), Choice())
        request, repairs, purpose = plan.reask(request, choice, failure), repairs - 1, "repair"
    return (yield from _predicted(trip, response, readings, repairs))


_REPAIRABLE = (AdapterParseError, EmptyResponse, MalformedToolCall)

_Reading: TypeAlias = "ParsedChoice | FollowUp | ModelError"


def _read(trip: _CallContext, number: int, choice: Choice) -> _Reading:
    plan = trip.plan
    try:
        follow_up = plan.follow_up(choice)
        if follow_up is not None:
            return follow_up
        with watch("adapter_parse", plan.adapter, lambda: {"signature": plan.signature, "choice": choice}) as end:
            parsed = trip.parse(number, choice)
            end(parsed.fields)
        return parsed
    except ModelError as fault:
        return fault


def _first_failure(readings: list[_Reading]) -> ModelError | None:
    """The error of the first choice, if no choice at all can be used."""
    first = readings[0]
    if not isinstance(first, ModelError) or not all(isinstance(reading, ModelError) for reading in readings):
        return None
    return first


def _has_wrong_calls(response: Response) -> bool:
    return any(call.error is not None for choice in response.choices for call in choice.tool_calls)


def _predicted(trip: _CallContext, response: Response, readings: list[_Reading], repairs: int) -> Steps[Prediction]:
    """The prediction of what was read: the first usable choice, all usable ones as completions."""
    rows: list[dict[str, Any]] = []
    first: tuple[Choice, ParsedChoice] | None = None
    for number, reading in enumerate(readings):
        if isinstance(reading, ModelError):
            told = LMWarning("choices", f"choice {number} was left out: {reading.message.splitlines()[0]}")
            response = response.with_warnings(told)
            continue
        if _is_follow_up(reading):
            reading = yield from _extracted(trip, reading, repairs)
        first = first or (response.choices[number], reading)
        rows.append(reading.fields)
    choice, parsed = cast("tuple[Choice, ParsedChoice]", first)
    return Prediction.make(
        parsed.fields,
        signature=trip.plan.signature,
        response=response,
        choice=choice,
        repairs=parsed.repairs,
        mode=trip.plan.mode,
        attempts=tuple(trip.attempts),
        completions=rows if len(readings) > 1 else None,
    )


def _is_follow_up(reading: ParsedChoice | FollowUp) -> TypeIs[FollowUp]:
    return hasattr(reading, "request")  # its class is not loaded here: declaring a predictor needs no adapter


def _extracted(trip: _CallContext, follow_up: FollowUp, repairs: int) -> Steps[ParsedChoice]:
    """The adapter's second question: fields out of a free answer."""
    lm = trip.lm if follow_up.lm is None else resolve_lm(follow_up.lm, "the adapter's second question")
    second = _CallContext(trip.module, lm, follow_up.plan)
    second.attempts = trip.attempts
    prediction = yield from _answer(second, follow_up.request, repairs, "extract")
    from sigwire.adapters.plan import ParsedChoice

    return ParsedChoice(prediction.__dict__, _repairs_of(prediction))


def attempts_of(prediction: Any) -> tuple[Attempt, ...]:
    """Every request that was made for a prediction, whatever its fields are called."""
    return tuple(prediction._meta.attempts)


def _repairs_of(prediction: Any) -> tuple[Any, ...]:
    return tuple(prediction._meta.repairs)


# --- small parts --------------------------------------------------------------------------------------


def default_adapter() -> Adapter:
    """What is used where no adapter is set."""
    global _default_adapter
    if _default_adapter is None:
        from sigwire.adapters.chat import ChatAdapter

        _default_adapter = ChatAdapter()
    return _default_adapter


_default_adapter: Adapter | None = None


def _repairs(given: Any) -> int:
    if not isinstance(given, int) or given < 0:
        raise ConfigurationError(f"max_repairs is a number, 0 or more, not {given!r} (Predict).")
    return given


def _format_inputs(signature: Any, inputs: dict[str, Any], demos: Any) -> dict[str, Any]:
    return {"signature": signature, "inputs": inputs, "demos": demos}


def _remember(values: Settings, entry: tuple[Any, ...]) -> None:
    trace = cast("list[Any]", values.trace)
    trace.append(entry)
    if len(trace) > values.max_trace_size:
        del trace[: len(trace) - values.max_trace_size]


def _list_of(name: str, state: Mapping[str, Any]) -> list[Any]:
    value = state.get(name)
    if value is None:
        return []
    if not issubclass(type(value), list):
        raise StateError(f"{name} is a list, not {type(value).__name__}.")
    return list(value)


def _loaded_lm(state: Any, unsafe: bool) -> Any:
    if state is None:
        return None
    if not isinstance(state, Mapping):
        raise StateError("lm is an object or null.")
    from sigwire.lm.base import BaseLM

    return BaseLM.load_state(cast("Mapping[str, Any]", state), allow_unsafe_lm_state=unsafe)
