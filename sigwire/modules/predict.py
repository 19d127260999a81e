"""Predict: ask a model for the outputs of a signature, once. Format, ask, normalize, parse; no tool is run.

``Predict`` holds the learned state (signature, demos, model, options) and prepares a call; ``answer`` makes the call.
Two cases need more than one request: re-asks, which the caller enabled, and the second request of a two-step adapter. All
requests are in ``prediction.attempts``.

For type checkers ``Predict[P, S]`` takes the signature's inputs and returns the signature's outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, cast, overload

from sigwire.core.capabilities import Capabilities
from sigwire.core.example import Prediction
from sigwire.core.json import JsonObject
from sigwire.core.record import FieldValues
from sigwire.core.request import check_prompt_cache
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, InputError, StateError
from sigwire.keywords import check_whole
from sigwire.lm.secrets import wrap_secrets
from sigwire.modules.answer import CallContext, answer_steps, collector_around, meta_of
from sigwire.modules.ask import check_config, default_model_warning, resolve_lm
from sigwire.modules.inputs import InputReader, UsedCallIds
from sigwire.modules.module import ReadsInputs, StepsModule
from sigwire.modules.nearest import NearestDemos
from sigwire.modules.program_stream import AsyncProgramStream, ProgramStream
from sigwire.modules.tree import Memo, Predictor, plain_records, prepare_one
from sigwire.observe.callbacks import ACTIVE_TOOL_CALL, watched_value
from sigwire.settings import Settings, current
from sigwire.signatures.parser import caller_scope
from sigwire.signatures.signature import Signature, SignatureClass, SignatureLike, SignatureMeta, ensure_signature

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    from sigwire.adapters.base import Adapter
    from sigwire.adapters.plan import Plan
    from sigwire.core.request import Request
    from sigwire.core.tools.texts import ToolText
    from sigwire.lm.base import LanguageModel
    from sigwire.modules.deciding import Deciding, DecisionRules, EvidenceOption
    from sigwire.modules.tool_texts import ToolOverlay
else:
    from typing import ParamSpec, TypeVar

__all__ = [
    "CallParts",
    "Predict",
    "PredictorCalls",
    "PredictorClasses",
    "ReadingCalls",
    "default_adapter",
    "is_thinking",
    "signature_of",
    "without_thinking",
]

if TYPE_CHECKING:  # a signature that is text takes any inputs and returns a Prediction
    P = ParamSpec("P", default=...)
    S = TypeVar("S", default=Prediction)
else:
    P = ParamSpec("P")
    S = TypeVar("S")


class PredictorCalls(StepsModule, Generic[P, S]):
    """The typed calls of predictors: the parameters are the signature's inputs, the result has the signature's outputs."""

    _collects: ClassVar[bool] = False

    if TYPE_CHECKING:
        # A ParamSpec cannot be extended by keywords: a call with config=, demos=, lm= or signature= takes any inputs.
        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> S: ...
        @overload
        def __call__(self, *, config: FieldValues, **inputs: object) -> S: ...
        @overload
        def __call__(self, *, demos: Sequence[object], **inputs: object) -> S: ...
        @overload
        def __call__(self, *, lm: LanguageModel, **inputs: object) -> S: ...
        @overload
        def __call__(self, *, signature: str | type[Signature], **inputs: object) -> Any: ...
        def __call__(self, *args: object, **kwargs: object) -> object: ...
        @overload
        async def acall(self, *args: P.args, **kwargs: P.kwargs) -> S: ...
        @overload
        async def acall(self, *, config: FieldValues, **inputs: object) -> S: ...
        @overload
        async def acall(self, *, demos: Sequence[object], **inputs: object) -> S: ...
        @overload
        async def acall(self, *, lm: LanguageModel, **inputs: object) -> S: ...
        @overload
        async def acall(self, *, signature: str | type[Signature], **inputs: object) -> Any: ...
        async def acall(self, *args: object, **kwargs: object) -> object: ...
        @overload
        def stream(self, *args: P.args, **kwargs: P.kwargs) -> ProgramStream[S]: ...
        @overload
        def stream(self, **inputs: object) -> ProgramStream[S]: ...
        def stream(self, *args: object, **kwargs: object) -> ProgramStream[Any]: ...
        @overload
        def astream(self, *args: P.args, **kwargs: P.kwargs) -> AsyncProgramStream[S]: ...
        @overload
        def astream(self, **inputs: object) -> AsyncProgramStream[S]: ...
        def astream(self, *args: object, **kwargs: object) -> AsyncProgramStream[Any]: ...


class ReadingCalls(ReadsInputs, PredictorCalls[P, S]):
    """The typed calls of a predictor that reads its inputs itself."""


class PredictorClasses(NamedTuple):
    """The classes of the predictors that a module makes.

    ``ask``: of the one that asks; ``extract``: of the one that extracts the outputs, in a module with such a request.
    """

    ask: type[Any]
    extract: type[Any]


class CallParts(NamedTuple):
    """The parts of a call that its request is made of. ``inputs`` are checked."""

    signature: SignatureClass
    options: dict[str, Any] | None
    inputs: dict[str, Any]
    demos: Any


class Predict(ReadingCalls[P, S], Predictor):
    """Ask a model for a signature's outputs: one call, one request.

    ``signature`` is a class or text. ``config`` holds request options (``temperature``, ``n``, ...). ``max_reasks``: how often
    a response that cannot be parsed is sent back to the model with its errors; ``None``: as the model's ``max_reasks``, else
    the adapter's, else the setting. ``lm`` is the model, by default that of the
    settings. Attributes: ``signature``, ``demos``, ``lm``, ``config``, ``traces``, ``train``; ``adapter``, in place of that of
    the settings; ``chosen_options`` and ``chosen_adapter``: those of ``config``, and the class of the adapter, that a search
    chose, which are saved; and ``tool_texts``: by tool, the
    texts (``ToolText``) that the model reads in place of the tool's.

    A call takes the inputs by name. It may also take ``config=`` (merged over the module's), ``demos=``, ``lm=``,
    ``signature=``, and ``prediction={"type": "content", ...}``, unless an input has that name. If ``n`` is above 1,
    ``prediction.completions`` has all candidates. ``CallReport.of(prediction)`` has its usage, attempts and
    warnings, typed. If the signature offers tools, the model's calls are an output; they are not run.

    Raises ``InputError`` for missing and unknown inputs, ``LMNotConfigured``, and the errors of the model and its response.

    >>> from sigwire.lm.fake import FakeLM
    >>> predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    >>> predict(question="2+2?").answer
    '4'
    """

    _shown_by = "sigwire.modules.cards.predictors:predictor"
    _is_program: ClassVar[bool] = False
    fixed_methods: ClassVar[Mapping[str, str]] = {"load_state": "override prepare_state, which programs call too"}
    _hooks: ClassVar[Sequence[str]] = ("decide_call", "plan_for", "settings_of_call")
    adapter: Adapter | None = None  # attributes of the class: most predictors have neither
    chosen_options: Mapping[str, Any] = MappingProxyType({})
    chosen_adapter: str = ""

    def __init__(
        self,
        signature: str | Signature | Callable[P, S],
        callbacks: Sequence[object] | None = None,
        *,
        lm: LanguageModel | None = None,
        max_reasks: int | None = None,
        evidence: EvidenceOption = None,
        decisions: DecisionRules | None = None,
        **config: object,
    ) -> None:
        config = dict(wrap_secrets(config))
        super().__init__(callbacks)
        self.signature: SignatureClass = signature_of(signature)
        self.evidence: EvidenceOption = None if evidence is None else _check_evidence(evidence)
        self.decisions: DecisionRules = {} if decisions is None else dict(_check_decisions(decisions))
        self.config: dict[str, object] = _check_config(config)
        self.max_reasks: int | None = None if max_reasks is None else _check_reasks(max_reasks)
        check_config(Predict, config, lm)
        self.lm: Any = lm
        self.demos: list[Any] = []
        self.traces: list[Any] = []
        self.train: list[Any] = []
        self.tool_texts: dict[str, ToolText] = {}
        self.nearest: NearestDemos | None = None
        self._reader: InputReader | None = None
        self._plan: tuple[object, object, object, Plan] | None = None

    def steps(self, /, *args: object, **kwargs: object) -> Steps[Prediction]:
        """Return the steps of one call, without callbacks and call records."""
        reader = self._reader
        if reader is None or reader.spec is not self.signature.spec:
            reader = self._reader = InputReader(self.signature.spec)
        if args:
            raise reader.positional_error(type(self).__name__)
        specials: dict[str, object] = {}
        if kwargs.keys() != reader.names:
            specials = {name: kwargs.pop(name) for name in reader.specials & kwargs.keys()}
            if isinstance(config := specials.get("config"), Mapping):
                specials["config"] = config = wrap_secrets(cast(FieldValues, config))
            if (other := specials.pop("signature", None)) is not None:
                signature = ensure_signature(cast("SignatureLike", other), scope={})
                return self._signature_steps(signature, InputReader(signature.spec), kwargs, specials)
        return self._signature_steps(self.signature, reader, kwargs, specials)

    def _signature_steps(
        self, signature: SignatureClass, reader: InputReader, given: dict[str, object], specials: FieldValues
    ) -> Steps[Prediction]:
        values = type(self).settings_of_call(self)
        inputs = type(self).prepare_inputs(self, reader, given, check_types=values.warn_on_type_mismatch)
        given_lm = specials.get("lm")
        own_lm = self.lm if given_lm is None else given_lm
        lm = resolve_lm(own_lm, type(self).__name__)
        options, reasks = self._options(specials)
        demos: Any = specials.get("demos", self.demos)
        if self.nearest is not None and "demos" not in specials:
            demos = self.nearest.choose(demos, inputs, signature.spec)
        parts = CallParts(signature, options, inputs, demos)
        deciding, (signature, options, inputs, demos) = type(self).decide_call(self, lm, values, parts)
        plan = type(self).plan_for(self, signature, lm, values, options)
        overlay = self._overlay(plan, inputs) if self.tool_texts else None
        facts = {"signature": signature, "inputs": inputs, "demos": demos}
        if deciding is not None:
            options = deciding.first_options(plan, options)
        request = watched_value(
            "adapter_format", plan.setup.adapter, facts, (overlay or plan).format, inputs, demos, options
        )
        tools = overlay.tools if overlay else plan.tools_of(inputs) if reader.tools_name is not None else ()
        used_ids = UsedCallIds(inputs.get(reader.history_name)) if reader.history_name is not None else ()
        call = CallContext(self, lm, plan, tools, used_ids, overlay, deciding)
        call.warning = default_model_warning() if own_lm is None else None
        adapter = cast("Adapter", plan.setup.adapter)
        if (other := adapter.fallback()) is not None:
            call.fallback = partial(self._fallback, call, other, signature, options, inputs, demos)
        if collector_around() is not None:
            call.begin()
        try:
            prediction = yield from answer_steps(call, request, _resolve_reasks(reasks, lm, adapter, values))
        except BaseException as error:
            call.fail(error)
            if not isinstance(error, Exception):
                raise
            model, request_id = getattr(error, "model", None) or lm.model, getattr(error, "request_id", None)
            self._locate(error, is_innermost=True, model=model, request_id=request_id)
            raise
        if call.leaf is not None:
            call.leaf.end(meta_of(prediction))
        if values.trace is not None:
            append_trace(values, (self, inputs, prediction))
        return prediction

    def decide_call(self, lm: LanguageModel, values: Settings, parts: CallParts) -> tuple[Deciding | None, CallParts]:
        """Return how the call gets its evidence, ``None`` without any, and the parts of its request."""
        if self.evidence is None and not self.decisions and (parts.options is None or "evidence" not in parts.options):
            return None, parts
        from sigwire.modules.deciding import check_evidence, prepare  # few calls have evidence

        asked = dict(parts.options or {})
        given = check_evidence(asked.pop("evidence", self.evidence), "calling Predict")
        adapter = values.adapter or default_adapter()
        reader: LanguageModel = adapter.reading_model() or lm
        found, signature, options = prepare(type(self).__name__, parts.signature, reader, given, self.decisions, asked)
        return found, parts._replace(signature=signature, options=options)

    def request_of(self, inputs: FieldValues) -> tuple[LanguageModel, Plan, Request]:
        """Return the model, the plan and the request of a call with checked inputs. Nothing is asked."""
        values, given = self.settings_of_call(), dict(inputs)
        lm = resolve_lm(self.lm, type(self).__name__)
        options, _ = self._options({name: given.pop(name) for name in ("config",) if name in given})
        demos = self.demos if self.nearest is None else self.nearest.choose(self.demos, given, self.signature.spec)
        parts = CallParts(self.signature, options, given, demos)
        deciding, (signature, options, given, demos) = type(self).decide_call(self, lm, values, parts)
        plan = type(self).plan_for(self, signature, lm, values, options)
        if deciding is not None:
            options = deciding.first_options(plan, options)
        overlay = self._overlay(plan, given) if self.tool_texts else None
        return lm, plan, (overlay or plan).format(given, demos, options)

    def settings_of_call(self) -> Settings:
        """Return the settings of a call, with the adapter of the predictor."""
        values = current()
        return values if self.adapter is None else replace(values, adapter=self.adapter)

    def plan_for(
        self, signature: SignatureMeta, lm: LanguageModel, values: Settings, options: Mapping[str, Any] | None
    ) -> Plan:
        """Return the plan. Signature, adapter and capabilities decide it; each is compared by identity."""
        adapter = values.adapter or default_adapter()
        capabilities = lm.capabilities
        spec = signature.spec
        if capabilities.reasoning and spec.reasoning_field is not None and not is_thinking(lm, options):
            capabilities = without_thinking(capabilities)  # the prompt asks for the reasoning
        kept = self._plan
        if kept is not None and kept[0] is spec and kept[1] is adapter and kept[2] is capabilities:
            return kept[3]
        plan = adapter.plan(signature, capabilities)
        self._plan = (spec, adapter, capabilities, plan)
        return plan

    def _fallback(
        self,
        call: CallContext,
        adapter: Adapter,
        signature: SignatureMeta,
        options: Mapping[str, Any] | None,
        inputs: FieldValues,
        demos: Any,
    ) -> tuple[CallContext, Request]:
        """Return the call with another adapter, and its request."""
        plan = adapter.plan(signature, call.plan.setup.capabilities)
        overlay = self._overlay(plan, inputs) if self.tool_texts else None
        facts = {"signature": signature, "inputs": inputs, "demos": demos}
        request = watched_value("adapter_format", adapter, facts, (overlay or plan).format, inputs, demos, options)
        tools = overlay.tools if overlay else call.tools
        return replace(call, plan=plan, tools=tools, overlay=overlay, fallback=None), request

    def _overlay(self, plan: Plan, inputs: FieldValues) -> ToolOverlay:
        from sigwire.modules.tool_texts import ToolOverlay  # lazy: few predictors have texts

        return ToolOverlay(self.tool_texts, plan, inputs)

    def _options(self, specials: FieldValues) -> tuple[dict[str, object] | None, int | None]:
        config = specials.get("config")
        if not self.config and not config and "prediction" not in specials:
            return None, self.max_reasks
        if config is not None and not isinstance(config, Mapping):
            raise InputError(f"config is a dict of request options, not {type(config).__name__} (calling Predict).")
        options = _check_config({**self.config, **cast(FieldValues, config or {})})
        if "prediction" in specials:
            options["prediction"] = specials["prediction"]
        reasks: Any = options.pop("max_reasks", None)
        return options, self.max_reasks if reasks is None else reasks

    def reset(self) -> None:
        """Remove demos, traces, training examples and the model. Signature and options are kept."""
        self.lm = None
        self.demos, self.traces, self.train, self.nearest = [], [], [], None

    def dump_state(self) -> JsonObject:
        """Return demos, signature texts and model as JSON, without secrets. A model without ``dump_state`` is omitted."""
        dump: Callable[[], JsonObject] | None = getattr(self.lm, "dump_state", None)
        texts: JsonObject = {name: text.to_json() for name, text in self.tool_texts.items()}
        return {
            **{name: plain_records(name, getattr(self, name), self.signature.spec) for name in _LISTS},
            "signature": self.signature.dump_state(),
            "lm": dump() if dump is not None else None,
            **({"tool_texts": texts} if texts else {}),
            **({"nearest": self.nearest.to_json()} if self.nearest is not None else {}),
            **({"evidence": self.evidence} if self.evidence is not None else {}),
            **(
                {"decisions": {path: self.decisions[path].to_json() for path in self.decisions}}
                if self.decisions
                else {}
            ),
            **({"options": cast(JsonObject, {**self.chosen_options})} if self.chosen_options else {}),
            **({"adapter": self.chosen_adapter} if self.chosen_adapter else {}),
        }

    def prepare_state(self, state: FieldValues, *, allow_unsafe_lm_state: bool = False) -> Callable[[], None]:
        """Check a state; return the change that applies it. Demos are loaded as dicts of values of the declared types."""
        if not isinstance(state, Mapping) or not isinstance(state.get("signature"), Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise StateError("a predictor's state is an object with a signature.")
        lists = {name: _state_list(name, state) for name in _LISTS}
        for demo in lists["demos"]:
            if not isinstance(demo, Mapping):
                raise StateError(f"a demo is an object, not {type(demo).__name__}.")
        signature = self.signature.load_state(state["signature"])
        lists = {name: [_typed_record(record, signature) for record in records] for name, records in lists.items()}
        texts = _load_tool_texts(state.get("tool_texts"))
        nearest = NearestDemos.from_state(state.get("nearest"), lists["demos"], self.nearest)
        evidence, decisions = _load_decisions(state, signature)
        lm = _load_lm(state.get("lm"), allow_unsafe_lm_state)
        options = _load_options(state.get("options"))
        adapter = str(state.get("adapter") or "")
        if adapter and type(self.adapter).__name__ != adapter:
            raise StateError(
                f"it has the adapter {adapter}, which is not saved. Set predictor.adapter = {adapter}(...) before."
            )

        def change() -> None:
            if options:
                self.chosen_options, self.config = options, {**self.config, **options}
            if adapter:
                self.chosen_adapter = adapter
            self.signature = signature
            self.traces, self.train, self.demos = lists["traces"], lists["train"], lists["demos"]
            self.tool_texts, self.nearest, self.lm = texts, nearest, lm
            self.evidence, self.decisions = evidence, decisions

        return change

    def _prepare(self, state: FieldValues, unsafe: bool) -> list[Callable[[], None]]:
        return [prepare_one("self", self, state, unsafe)]

    def __deepcopy__(self, memo: Memo) -> Self:
        # Shared: a plan caches written prompts.
        memo.update({id(self._plan): self._plan, id(self._reader): self._reader})
        return super().__deepcopy__(memo)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_reader": None, "_plan": None}  # made again by the next call


def signature_of(given: object) -> SignatureClass:
    """Return the signature class of a constructor's argument. Text may name types that the constructor's caller sees."""
    if isinstance(given, SignatureMeta):
        return given
    return ensure_signature(cast("SignatureLike", given), scope=caller_scope(2))


@cache
def default_adapter() -> Adapter:
    """Return the adapter that is used if the settings have none."""
    from sigwire.adapters.chat import ChatAdapter

    return ChatAdapter()


def is_thinking(lm: LanguageModel, options: Mapping[str, Any] | None) -> bool:
    """Return True if a call gets the model's own reasoning: its options or those of the model ask for it, or none is needed."""
    from sigwire.lm.option_aliases import canonical_options

    defaults: Mapping[str, Any] = getattr(lm, "kwargs", None) or {}
    asked = {**canonical_options(defaults), **canonical_options(options or {})}.get("reasoning")
    return lm.capabilities.reasoning_unasked if asked is None else asked not in ("off", {"budget": 0})


@cache
def without_thinking(capabilities: Capabilities) -> Capabilities:
    """Return the capabilities of a model whose answers have no reasoning of its own."""
    return replace(capabilities, reasoning_hidden=True)


# Keywords that would be sent as request options, and what to write.
_NO_OPTIONS: Mapping[str, str] = {
    "adapter": "adapter is a setting (calling Predict). Write configure(adapter=...), or with context(adapter=...).",
    "decisions": "decisions are an attribute and no option of a call (calling Predict). Write predict.decisions = {...}.",
    "max_repairs": "max_repairs is now max_reasks (calling Predict). Write max_reasks=1.",
}


def _check_config(config: dict[str, object]) -> dict[str, object]:
    check_prompt_cache(config)
    if not config.keys().isdisjoint(_NO_OPTIONS):
        raise ConfigurationError(_NO_OPTIONS[min(config.keys() & _NO_OPTIONS)])
    return config


def _check_reasks(given: Any) -> int:
    check_whole("max_reasks", given, "calling Predict", of="re-asks", most=1_000)
    return int(given)


def _resolve_reasks(given: int | None, lm: LanguageModel, adapter: Adapter, values: Settings) -> int:
    """Return the number of re-asks: of the call or the module, else of the model, of the adapter, of the settings."""
    found = given if given is not None else getattr(lm, "max_reasks", None)
    if found is None:
        found = values.max_reasks if adapter.max_reasks is None else adapter.max_reasks
    return found if type(found) is int and 0 <= found <= 1_000 else _check_reasks(found)


class CallInTool(tuple[Any, ...]):
    """A call of a predictor in a trace, with the call of the tool that ran it."""

    tool_call: Any


def append_trace(values: Settings, entry: tuple[object, ...]) -> None:
    """Add a call of a predictor to the trace of the settings."""
    trace = cast("list[object]", values.trace)
    if (call := ACTIVE_TOOL_CALL.get()) is not None:
        entry = CallInTool(entry)
        entry.tool_call = call
    trace.append(entry)
    if len(trace) > values.max_trace_size:
        del trace[: len(trace) - values.max_trace_size]


def _state_list(name: str, state: FieldValues) -> list[object]:
    value = state.get(name)
    if value is None:
        return []
    if not issubclass(type(value), list):
        raise StateError(f"{name} is a list, not {type(value).__name__}.")
    return list(cast("list[object]", value))


def _typed_record(record: object, signature: SignatureClass) -> object:
    return signature.spec.restore(cast(FieldValues, record)) if isinstance(record, Mapping) else record


def _load_options(state: object) -> Mapping[str, Any]:
    if state is not None and not isinstance(state, Mapping):
        raise StateError(f"options is an object, not {type(state).__name__}.")
    return dict(cast("Mapping[str, Any]", state or {}))


def _load_tool_texts(state: object) -> dict[str, ToolText]:
    """Decode the saved texts of tools. Raises ``ValueError`` for other data."""
    if state is None:
        return {}
    from sigwire.core.tools.texts import ToolText

    texts = cast("Mapping[str, Any]", state)
    if not isinstance(state, Mapping) or not all(isinstance(text, Mapping) for text in texts.values()):
        raise StateError("tool_texts is an object of objects with texts.")
    return {name: ToolText.from_json(text) for name, text in texts.items()}


_LISTS = ("traces", "train", "demos")


def _check_evidence(given: object) -> EvidenceOption:
    from sigwire.modules.deciding import check_evidence

    return cast("EvidenceOption", check_evidence(given))


def _check_decisions(given: DecisionRules) -> DecisionRules:
    from sigwire.modules.deciding import check_decisions

    return check_decisions(given, "making a Predict")


def _load_lm(state: object, unsafe: bool) -> LanguageModel | None:
    if state is None or callable(getattr(state, "respond", None)):  # of ``load_state(..., lm=)``
        return cast("LanguageModel | None", state)
    if not isinstance(state, Mapping):
        raise StateError("lm is an object or null.")
    from sigwire.lm.base import BaseLM

    return BaseLM.load_state(cast(FieldValues, state), allow_unsafe_lm_state=unsafe)


def _load_decisions(state: FieldValues, signature: SignatureClass) -> tuple[EvidenceOption, DecisionRules]:
    if state.keys().isdisjoint({"evidence", "decisions"}):
        return None, {}
    from sigwire.modules.deciding import load_decisions

    return load_decisions(state, signature)
