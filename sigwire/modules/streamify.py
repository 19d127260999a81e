"""``streamify``: a program as a function that gives a stream, with listeners for single fields and messages about progress.

    StreamListener           the text of one output, as StreamResponse after StreamResponse
    StatusMessageProvider    what to say when a tool, a module or a model begins and ends, as StatusMessage
    streaming_response       what came, as server-sent events for a browser

It stands on ``program.stream`` and ``program.astream``, which tell more and need no listeners.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, overload

from sigwire.core.events import AskStart, FieldDelta, FieldEnd, Finished, ProgramEvent
from sigwire.core.example import Prediction
from sigwire.core.record import to_plain
from sigwire.effects.emitting import Emit
from sigwire.effects.emitting import stream as blocking_stream
from sigwire.effects.steps import Steps, arun, block_on, run
from sigwire.errors import ConfigurationError
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.modules.program_stream import AsyncProgramStream, ProgramStream, module_paths
from sigwire.observe.callbacks import BaseCallback
from sigwire.settings import context, current

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


# --- what is said ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StreamResponse:
    """More text of an output that is listened to. The chunks put together are its text; the last one may be empty."""

    predict_name: str
    signature_field_name: str
    chunk: str
    is_last_chunk: bool


@dataclass(frozen=True, slots=True)
class StatusMessage:
    """Something about the program's progress, for people."""

    message: str


class StatusMessageProvider:
    """What is said about progress. Override what you need; ``None`` and ``""`` say nothing. By default only tools speak.

    >>> class Short(StatusMessageProvider):
    ...     def tool_start_status_message(self, instance, inputs):
    ...         return f"{instance.name}..."
    """

    def tool_start_status_message(self, instance: Any, inputs: Mapping[str, Any]) -> str | None:
        """Before a tool is run."""
        return f"Running the tool {instance.name}..."

    def tool_end_status_message(self, outputs: Any) -> str | None:
        """After a tool was run."""
        return "The tool is done; its result goes to the model."

    def module_start_status_message(self, instance: Any, inputs: Mapping[str, Any]) -> str | None:
        """Before a module is called."""
        return None

    def module_end_status_message(self, outputs: Any) -> str | None:
        """After a module was called."""
        return None

    def lm_start_status_message(self, instance: Any, inputs: Mapping[str, Any]) -> str | None:
        """Before a model is asked."""
        return None

    def lm_end_status_message(self, outputs: Any) -> str | None:
        """After a model answered."""
        return None


class _Status(BaseCallback):
    """Tells the stream around it what a provider says."""

    def __init__(self, provider: StatusMessageProvider) -> None:
        self._provider = provider

    def on_tool_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        _say(self._provider.tool_start_status_message(instance, inputs))

    def on_tool_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        _say(self._provider.tool_end_status_message(outputs))

    def on_module_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        _say(self._provider.module_start_status_message(instance, inputs))

    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        _say(self._provider.module_end_status_message(outputs))

    def on_lm_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        _say(self._provider.lm_start_status_message(instance, inputs))

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        _say(self._provider.lm_end_status_message(outputs))


def _say(message: str | None) -> None:
    if message:
        Emit(StatusMessage(message)).run()


class SendStream:
    """Where a model of your own may put chunks for whoever reads the stream: ``settings.send_stream``, ``None`` elsewhere."""

    async def send(self, item: Any) -> None:
        """Tell the reader, from awaited code."""
        Emit(item).run()

    def send_nowait(self, item: Any) -> None:
        """Tell the reader."""
        Emit(item).run()


def sync_send_to_stream(stream: SendStream, message: Any) -> None:
    """Tell the reader of a stream something, from blocking code."""
    stream.send_nowait(message)


# --- who listens -------------------------------------------------------------------------------------------


class StreamListener:
    """Listens to one text output of a program.

    ``predict`` is the predictor that writes it, ``predict_name`` its name in the program; without either the output's name
    must be unique there. Of several calls of that predictor in one run only the first is told, unless ``allow_reuse``. An
    agent's output is told as it hands it in. What has to be asked for again (a repair, outputs that did not fit) comes again
    after its last chunk.
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
    """A listener at work in one run: where its field comes from, the module whose calls count, and what was told already.

    After the field's end nothing is heard before the model is asked again: for the same call, whose answer could not be used,
    or for another one, which only counts where it may.
    """

    name: str
    paths: Collection[str]
    caller: Module
    field: str
    again: bool
    ended: bool = False
    told: bool = False

    def hear(self, event: FieldDelta | FieldEnd | AskStart) -> Generator[StreamResponse]:
        if event.path not in self.paths or self.told:
            return
        if isinstance(event, AskStart):
            self.ended = False
        elif event.field == self.field and not event.choice and not self.ended:
            self.ended = isinstance(event, FieldEnd)
            yield StreamResponse(self.name, self.field, "" if isinstance(event, FieldEnd) else event.text, self.ended)

    def called(self) -> None:
        """Another call of the module begins."""
        self.told = self.ended and not self.again


@dataclass(frozen=True, slots=True)
class _ModuleStart:
    """A module is called. Told to listeners only."""

    module: object


class _ModuleStarts(BaseCallback):
    """Tells the stream around it which modules are called."""

    def on_module_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        Emit(_ModuleStart(instance)).run()


def _resolved(program: Module, listeners: Sequence[StreamListener]) -> list[_ActiveListener]:
    """Each listener with its predictor. Raises ``ConfigurationError`` for a field that is not there, not text or not unique."""
    predictors = dict(program.named_predictors())
    paths, agents = module_paths(program), _agents_of(program)
    return [_resolve(listener, predictors, paths, agents) for listener in listeners]


def _agents_of(program: Module) -> dict[int, ReAct[..., Any]]:
    """The agents, each by the identity of the predictor that writes its outputs where its turns did not hand them in."""
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
        if wanted in predictor.signature.output_fields
        and (listener.predict is None or predictor is listener.predict)
        and (listener.predict_name is None or name == listener.predict_name)
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
            f"Say which: StreamListener({wanted!r}, predict_name={next(iter(found))!r})."
        )
    ((name, predictor),) = found.items()
    spec = predictor.signature.spec.by_name[wanted]
    if spec.role != "reasoning" and spec.annotation not in (str, str | None):
        raise ConfigurationError(
            f"{wanted!r} of {name} is no text, and only text can be listened to (streamify). "
            "program.stream(...) gives partial values."
        )
    agent = agents.get(id(predictor))
    writers = (predictor,) if agent is None else (predictor, agent.react)
    return _ActiveListener(
        name, {paths[id(part)] for part in writers}, agent or predictor, wanted, listener.allow_reuse
    )


# --- the stream --------------------------------------------------------------------------------------------

_OURS = get_args(ProgramEvent)
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
    """A function that takes the program's inputs and gives a stream of what happens.

    The stream has a ``StreamResponse`` for each piece of a field that is listened to, a ``StatusMessage`` for each thing
    that the provider says, whatever a model of your own puts into ``settings.send_stream``, and last the prediction (left
    out on request, where a listener heard something). Without listeners it has the events of ``program.stream`` instead.
    An error of the program is raised. Each call is a run of its own; any number may go on at once.

    ``async_streaming=False`` gives an ordinary generator. ``is_async_program`` is there for programs that pass it: what a
    program is called by follows from what it defines. Raises ``ConfigurationError`` for listeners that fit no field.

    >>> from sigwire.lm.fake import FakeLM
    >>> ask = Predict("question -> answer", lm=FakeLM([{"answer": "In Oslo."}]))
    >>> stream = streamify(ask, stream_listeners=[StreamListener("answer")], async_streaming=False)
    >>> [item.chunk for item in stream(question="Where?") if isinstance(item, StreamResponse)]
    ['In', ' Oslo.', '']
    """
    module = program if isinstance(program, Module) else _Function(program)
    listeners = list(stream_listeners or ())
    _resolved(module, listeners)  # what is wrong with them shows here, and not in the first run
    make = partial(
        _Run,
        module,
        listeners,
        status_message_provider or StatusMessageProvider(),
        include_final_prediction_in_output_stream,
    )
    if async_streaming:
        return lambda *args, **kwargs: make(args, kwargs).awaited()
    return lambda *args, **kwargs: make(args, kwargs).blocking()


class _Function(Module):
    """A plain function as a program."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


class _ListenEffect:
    """The effect of running a program where all that it says can be heard: its callbacks and models, too."""

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
    """One run: the program's events, sorted out for listeners."""

    program: Module
    listeners: Sequence[StreamListener]
    provider: StatusMessageProvider
    with_end: bool
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    heard: bool = False
    active: list[_ActiveListener] = field(default_factory=list[_ActiveListener])

    def blocking(self) -> Generator[Any]:
        self.active = _resolved(self.program, self.listeners)
        with ProgramStream(self.program, self._steps) as events:
            for event in events:
                yield from self._said(event)

    async def awaited(self) -> AsyncGenerator[Any, None]:
        self.active = _resolved(self.program, self.listeners)
        async with AsyncProgramStream(self.program, self._steps) as events:
            async for event in events:
                for said in self._said(event):
                    yield said

    def _steps(self) -> Steps[Any]:
        begin = partial(self.program.call_steps, *self.args, **self.kwargs)
        calls = (_ModuleStarts(),) if self.active else ()
        return (yield _ListenEffect(begin, *calls, _Status(self.provider)))

    def _said(self, event: Any) -> Generator[Any]:
        if isinstance(event, Finished):
            if self.with_end or not self.heard:
                yield event.value
        elif isinstance(event, _ModuleStart):
            for listener in self.active:
                if listener.caller is event.module:
                    listener.called()
        elif not self.active or not isinstance(event, _OURS):  # what is not ours: a status, a chunk of a user's model
            yield event
        elif isinstance(event, AskStart | FieldDelta | FieldEnd):
            for listener in self.active:
                for response in listener.hear(event):
                    self.heard = True
                    yield response


def apply_sync_streaming(stream: AsyncIterable[Any]) -> Generator[Any]:
    """An awaited stream as an ordinary generator, for blocking code. Its items are made in a thread of their own.

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
    """The effect of reading an awaited stream to its end, telling its items."""

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
    """What a stream gives, as server-sent events: ``data: {...}`` for each item, ``data: [DONE]`` at the end.

    A prediction is ``{"prediction": {its fields}}``, a ``StatusMessage`` ``{"status": "..."}``, a ``StreamResponse``
    ``{"chunk": {...}}``, an event ``{"event": {...}}``; a text that is such a line already passes as it is. Raises
    ``TypeError`` for what is no JSON.
    """
    async for item in stream:
        yield item if isinstance(item, str) and item.startswith("data:") else f"data: {_as_json(item)}\n\n"
    yield "data: [DONE]\n\n"


def _as_json(item: Any) -> str:
    match item:
        case Prediction():
            # The fields alone: how they came about (requests, what the provider sent) is not for a browser.
            data: Any = {"prediction": {name: to_plain(value) for name, value in item.items()}}
        case StatusMessage():
            data = {"status": item.message}
        case StreamResponse():
            data = {"chunk": asdict(item)}
        case _ if hasattr(item, "to_json"):
            data = {"event": item.to_json()}
        case _:
            data = {"chunk": item}
    return json.dumps(data, ensure_ascii=False)
