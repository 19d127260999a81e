"""``streamify``: a program as a function that returns a stream, with listeners for fields and messages about progress.

    StreamListener           the text of one output, as a series of StreamResponse
    StatusMessageProvider    the messages for the start and the end of a tool, a module or a model, as StatusMessage
    streaming_response       the items of a stream, as server-sent events for a browser

It uses ``program.stream`` and ``program.astream``, which emit more events and need no listeners.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, overload

from sigwire.core.events import AskStart, FieldDelta, FieldEnd, Finished, ProgramEvent
from sigwire.core.example import Prediction
from sigwire.core.record import FieldValues, plain_of
from sigwire.dspy.callback import BaseCallback
from sigwire.dspy.settings import context
from sigwire.effects.emitting import Emit
from sigwire.effects.emitting import stream as blocking_stream
from sigwire.effects.loops import block_on
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import ConfigurationError
from sigwire.modules.answer import meta_of
from sigwire.modules.module import Module, module_paths
from sigwire.modules.predict import Predict
from sigwire.modules.program_stream import AsyncProgramStream, ProgramStream
from sigwire.settings import current

if TYPE_CHECKING:
    from sigwire.modules.agents.react import ReAct

__all__ = [
    "SendStream",
    "StatusMessage",
    "StatusMessageProvider",
    "StreamListener",
    "StreamResponse",
    "apply_sync_streaming",
    "streamify",
    "streaming_response",
    "sync_send_to_stream",
]


# --- items of a stream ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StreamResponse:
    """A chunk of an output's text. The chunks joined are the text; the last one may be empty."""

    predict_name: str
    signature_field_name: str
    chunk: str
    is_last_chunk: bool


@dataclass(frozen=True, slots=True)
class StatusMessage:
    """A message for people about the progress of the program."""

    message: str


class StatusMessageProvider:
    """Messages about progress. Override methods; ``None`` and ``""`` send no message. By default only tools have messages.

    >>> class Short(StatusMessageProvider):
    ...     def tool_start_status_message(self, instance, inputs):
    ...         return f"{instance.name}..."
    """

    def tool_start_status_message(self, instance: Any, inputs: FieldValues) -> str | None:
        """Return the message for the start of a tool."""
        return f"Running the tool {instance.name}..."

    def tool_end_status_message(self, outputs: Any) -> str | None:
        """Return the message for the end of a tool."""
        return "The tool is done; its result goes to the model."

    def module_start_status_message(self, instance: Any, inputs: FieldValues) -> str | None:
        """Return the message for the start of a module."""
        return None

    def module_end_status_message(self, outputs: Any) -> str | None:
        """Return the message for the end of a module."""
        return None

    def lm_start_status_message(self, instance: Any, inputs: FieldValues) -> str | None:
        """Return the message for the start of a model call."""
        return None

    def lm_end_status_message(self, outputs: Any) -> str | None:
        """Return the message for the end of a model call."""
        return None


class _StatusEmitter(BaseCallback):
    """Emits the messages of a provider."""

    def __init__(self, provider: StatusMessageProvider) -> None:
        self._provider = provider

    def on_tool_start(self, call_id: str, instance: Any, inputs: FieldValues) -> None:
        _emit(self._provider.tool_start_status_message(instance, inputs))

    def on_tool_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        _emit(self._provider.tool_end_status_message(outputs))

    def on_module_start(self, call_id: str, instance: Any, inputs: FieldValues) -> None:
        _emit(self._provider.module_start_status_message(instance, inputs))

    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        _emit(self._provider.module_end_status_message(outputs))

    def on_lm_start(self, call_id: str, instance: Any, inputs: FieldValues) -> None:
        _emit(self._provider.lm_start_status_message(instance, inputs))

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        _emit(self._provider.lm_end_status_message(outputs))


def _emit(message: str | None) -> None:
    if message:
        Emit(StatusMessage(message)).run()


class SendStream:
    """``dspy.settings.send_stream``: a user's model sends chunks to the consumer of the stream."""

    async def send(self, item: Any) -> None:
        """Emit an item, from awaited code."""
        Emit(item).run()

    def send_nowait(self, item: Any) -> None:
        """Emit an item."""
        Emit(item).run()


def sync_send_to_stream(stream: SendStream, message: Any) -> None:
    """Emit an item to the consumer of a stream, from blocking code."""
    stream.send_nowait(message)


# --- listeners -------------------------------------------------------------------------------------------


class StreamListener:
    """Selects one text output of a program.

    ``predict`` is the predictor of the output, ``predict_name`` its name in the program; without either the output's name
    must be unique there. The first call of that predictor in a run is streamed; ``allow_reuse`` streams every call. An
    agent's output is streamed from its ``submit`` call. After a repair the chunks start again, after the last chunk.
    """

    def __init__(
        self,
        signature_field_name: str,
        predict: Any = None,
        predict_name: str | None = None,
        allow_reuse: bool = False,
    ) -> None:
        self.signature_field_name = signature_field_name
        self.predict = predict
        self.predict_name = predict_name
        self.allow_reuse = allow_reuse

    def __repr__(self) -> str:
        return f"StreamListener({self.signature_field_name!r}, predict_name={self.predict_name!r})"


@dataclass(slots=True)
class _ActiveListener:
    """A listener in one run: the paths of its field, the module whose calls count, and its state.

    After the end of the field, deltas are ignored until the next request: a repair, or another call if ``reused``.
    """

    name: str
    paths: Collection[str]
    caller: Module
    field: str
    reused: bool
    ended: bool = False
    closed: bool = False

    def read(self, event: FieldDelta | FieldEnd | AskStart) -> Generator[StreamResponse]:
        if event.path not in self.paths or self.closed:
            return
        if isinstance(event, AskStart):
            self.ended = False
        elif event.field == self.field and not event.choice and not self.ended:
            self.ended = isinstance(event, FieldEnd)
            yield StreamResponse(self.name, self.field, "" if isinstance(event, FieldEnd) else event.text, self.ended)

    def start_call(self) -> None:
        """Note the start of a call of the module."""
        self.closed = self.ended and not self.reused


@dataclass(frozen=True, slots=True)
class _ModuleStart:
    """The start of a module's call; for listeners only."""

    module: object


class _ModuleStarts(BaseCallback):
    """Emits the start of every module."""

    def on_module_start(self, call_id: str, instance: Any, inputs: FieldValues) -> None:
        Emit(_ModuleStart(instance)).run()


def _resolve_all(program: Module, listeners: Sequence[StreamListener]) -> list[_ActiveListener]:
    """Resolve listeners; an agent runs DSPy's loop from then on if a listener wants a field of that loop.

    Raises ``ConfigurationError`` for a field that is missing, not text or not unique.
    """
    for listener in listeners:
        _use_text_loops(program, listener)
    predictors = dict(program.named_predictors())
    paths, agents = module_paths(program), _agents_of(program)
    return [_resolve(listener, predictors, paths, agents) for listener in listeners]


def _use_text_loops(program: Module, listener: StreamListener) -> None:
    """Make the agents of a program run DSPy's loop if a listener wants the thought that only that loop asks for."""
    if (wanted := listener.signature_field_name) != "next_thought":
        return
    meant = {name: predictor for name, predictor in program.named_predictors() if _is_meant(listener, name, predictor)}
    if any(wanted in predictor.signature.output_fields for predictor in meant.values()):
        return
    agents: list[Any] = [part for _, part in program.named_sub_modules() if hasattr(part, "takes_text_loop")]
    for agent in agents:
        if any(agent.react is each for each in meant.values()) and agent.takes_text_loop():
            agent.use_text_loop()


def _is_meant(listener: StreamListener, name: str, predictor: Predict[..., Any]) -> bool:
    is_named = listener.predict_name is None or name == listener.predict_name
    return is_named and (listener.predict is None or predictor is listener.predict)


def _agents_of(program: Module) -> dict[int, ReAct[..., Any]]:
    """Return the agents by the identity of their extraction predictor."""
    from sigwire.modules.agents.react import ReAct

    agents: list[ReAct[..., Any]] = [module for _, module in program.named_sub_modules() if isinstance(module, ReAct)]
    return {id(agent.extract.predict): agent for agent in agents}


def _resolve(
    listener: StreamListener,
    predictors: Mapping[str, Predict[..., Any]],
    paths: Mapping[int, str],
    agents: Mapping[int, ReAct[..., Any]],
) -> _ActiveListener:
    wanted = listener.signature_field_name
    found = {
        name: predictor
        for name, predictor in predictors.items()
        if wanted in predictor.signature.output_fields and _is_meant(listener, name, predictor)
    }
    if not found:
        raise ConfigurationError(
            f"No predictor of the program writes {wanted!r} (streamify). They write: "
            + "; ".join(f"{name}: {', '.join(part.signature.output_fields)}" for name, part in predictors.items())
            + "."
        )
    if len(found) > 1:
        raise ConfigurationError(
            f"Several predictors write {wanted!r}: {', '.join(found)} (streamify). "
            f"Name one: StreamListener({wanted!r}, predict_name={next(iter(found))!r})."
        )
    ((name, predictor),) = found.items()
    spec = predictor.signature.spec.by_name[wanted]
    if spec.role != "reasoning" and spec.annotation not in (str, str | None):
        raise ConfigurationError(
            f"{wanted!r} of {name} is not a text, and a listener takes text only (streamify). "
            "Use program.stream(...), which emits partial values."
        )
    agent = agents.get(id(predictor))
    writers = (predictor,) if agent is None else (predictor, agent.react)
    return _ActiveListener(
        name, {paths[id(part)] for part in writers}, agent or predictor, wanted, listener.allow_reuse
    )


# --- the stream --------------------------------------------------------------------------------------------

_PROGRAM_EVENTS = get_args(ProgramEvent)
AsyncStreamer: TypeAlias = Callable[..., AsyncGenerator[Any, None]]
Streamer: TypeAlias = Callable[..., Generator[Any]]


@overload
def streamify(
    program: Module | Callable[..., Any],
    status_message_provider: StatusMessageProvider | None = None,
    stream_listeners: Iterable[StreamListener] | None = None,
    include_final_prediction_in_output_stream: bool = True,
    is_async_program: bool = False,
    async_streaming: Literal[True] = True,
) -> AsyncStreamer: ...
@overload
def streamify(
    program: Module | Callable[..., Any],
    status_message_provider: StatusMessageProvider | None = None,
    stream_listeners: Iterable[StreamListener] | None = None,
    include_final_prediction_in_output_stream: bool = True,
    is_async_program: bool = False,
    *,
    async_streaming: Literal[False],
) -> Streamer: ...
def streamify(
    program: Module | Callable[..., Any],
    status_message_provider: StatusMessageProvider | None = None,
    stream_listeners: Iterable[StreamListener] | None = None,
    include_final_prediction_in_output_stream: bool = True,
    is_async_program: bool = False,
    async_streaming: bool = True,
) -> AsyncStreamer | Streamer:
    """Return a function that takes the program's inputs and returns a stream.

    The stream has a ``StreamResponse`` for each chunk of a selected field, a ``StatusMessage`` for each message of the
    provider, and the items that a user's model sends to ``settings.send_stream``. The last item is the prediction, omitted
    on request if text was streamed. Without listeners it has the events of ``program.stream`` instead. An error
    of the program is raised. Each call is a separate run; runs may overlap.

    ``async_streaming=False`` returns an ordinary generator. ``is_async_program`` has no effect: the entry that a program
    defines decides. Raises ``ConfigurationError`` for listeners that fit no field.

    >>> from sigwire.lm.fake import FakeLM
    >>> ask = Predict("question -> answer", lm=FakeLM([{"answer": "In Oslo."}]))
    >>> stream = streamify(ask, stream_listeners=[StreamListener("answer")], async_streaming=False)
    >>> [item.chunk for item in stream(question="Where?") if isinstance(item, StreamResponse)]
    ['In', ' Oslo.', '']
    """
    module = program if isinstance(program, Module) else _FunctionModule(program)
    listeners = list(stream_listeners or ())
    _resolve_all(module, listeners)  # raise here, not in the first run
    make = partial(
        _Run,
        module,
        listeners,
        status_message_provider or StatusMessageProvider(),
        include_final_prediction_in_output_stream,
    )
    if async_streaming:
        return lambda *args, **kwargs: make(args, kwargs).astream_items()
    return lambda *args, **kwargs: make(args, kwargs).stream_items()


class _FunctionModule(Module):
    """A plain function as a program."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


class _ListenEffect:
    """Effect: run a program with additional callbacks and ``send_stream``."""

    nests = True

    def __init__(self, begin: Callable[[], Steps[Any]], *callbacks: BaseCallback) -> None:
        self._begin, self._callbacks = begin, callbacks

    def run(self) -> Any:
        with context(callbacks=[*current().callbacks, *self._callbacks], send_stream=SendStream()):
            return run(self._begin())

    async def arun(self) -> Any:
        with context(callbacks=[*current().callbacks, *self._callbacks], send_stream=SendStream()):
            return await arun(self._begin())


@dataclass
class _Run:
    """One run: the program's events as the items of the stream."""

    program: Module
    listeners: Sequence[StreamListener]
    provider: StatusMessageProvider
    has_end: bool
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    responded: bool = False
    active: list[_ActiveListener] = field(default_factory=list[_ActiveListener])

    def stream_items(self) -> Generator[Any]:
        self.active = _resolve_all(self.program, self.listeners)
        with ProgramStream(module_paths(self.program), self._steps) as events:
            for event in events:
                yield from self._items_of(event)

    async def astream_items(self) -> AsyncGenerator[Any, None]:
        self.active = _resolve_all(self.program, self.listeners)
        async with AsyncProgramStream(module_paths(self.program), self._steps) as events:
            async for event in events:
                for item in self._items_of(event):
                    yield item

    def _steps(self) -> Steps[Any]:
        begin = partial(self.program.call_steps, *self.args, **self.kwargs)
        calls = (_ModuleStarts(),) if self.active else ()
        return (yield _ListenEffect(begin, *calls, _StatusEmitter(self.provider)))

    def _items_of(self, event: Any) -> Generator[Any]:
        if isinstance(event, Finished):
            if self.has_end or not self.responded:
                yield event.value
        elif isinstance(event, _ModuleStart):
            for listener in self.active:
                if listener.caller is event.module:
                    listener.start_call()
        elif not self.active or not isinstance(event, _PROGRAM_EVENTS):  # a status, a chunk of a user's model
            self.responded = self.responded or isinstance(event, FieldDelta)
            yield event
        elif isinstance(event, AskStart | FieldDelta | FieldEnd):
            for listener in self.active:
                for response in listener.read(event):
                    self.responded = True
                    yield response


def apply_sync_streaming(stream: AsyncIterable[Any]) -> Generator[Any]:
    """Return an awaited stream as an ordinary generator. A separate thread reads the awaited stream.

    >>> async def count():
    ...     for number in range(3):
    ...         yield number
    >>> list(apply_sync_streaming(count()))
    [0, 1, 2]
    """

    def steps() -> Steps[None]:
        yield _DrainEffect(stream)

    return blocking_stream(steps())


class _DrainEffect:
    """Effect: read an awaited stream to its end and emit its items."""

    nests = True

    def __init__(self, items: AsyncIterable[Any]) -> None:
        self._items = items

    def run(self) -> None:
        block_on(self.arun())

    async def arun(self) -> None:
        async for item in self._items:
            Emit(item).run()


# --- for a browser -----------------------------------------------------------------------------------------


async def streaming_response(stream: AsyncIterable[Any]) -> AsyncGenerator[str, None]:
    """Yield the items of a stream as server-sent events: ``data: {...}`` for each, ``data: [DONE]`` at the end.

    A prediction is ``{"prediction": {its fields}}``, a ``StatusMessage`` ``{"status": "..."}``, a ``StreamResponse``
    ``{"chunk": {...}}``, an event ``{"event": {...}}``; a text that starts with ``data:`` is not changed. Raises
    ``TypeError`` for an item that is not JSON.
    """
    async for item in stream:
        yield item if isinstance(item, str) and item.startswith("data:") else f"data: {_as_json(item)}\n\n"
    yield "data: [DONE]\n\n"


def _as_json(item: Any) -> str:
    match item:
        case Prediction():
            # Fields only: requests and raw data of the provider must not reach a browser.
            declared = meta_of(item).signature
            dump = plain_of if declared is None else declared.spec.dump
            data: Any = {"prediction": dump(dict(item.items()))}
        case StatusMessage():
            data = {"status": item.message}
        case StreamResponse():
            data = {"chunk": asdict(item)}
        case _ if hasattr(item, "to_json"):
            data = {"event": item.to_json()}
        case _:
            data = {"chunk": item}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
