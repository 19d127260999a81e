"""The boundary to a language model: ``Request`` in, ``Response`` out, blocking or awaited.

``LanguageModel`` is the protocol: any object with its four members is a model for sigwire. ``BaseLM`` is a base class with
``lm("prompt")``, options, a bounded history, callbacks, copies and a state that can be saved. A subclass defines
``forward(request)``, or ``aforward`` for the same awaited; both return a ``Response``, or the text of its only choice.

The other form is derived: an awaited call of ``forward`` runs it in a thread, a blocking call of ``aforward`` on an own event
loop. Every call goes through these methods; ``super()`` in them asks the model itself.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TextIO, TypeAlias, TypeVar

from sigwire.core.capabilities import Capabilities
from sigwire.core.foreign_names import DOOR, LIBRARY, NAMESPACE
from sigwire.core.json import JsonObject, is_too_deep
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage, price_with
from sigwire.effects.emitting import Emit, Returned, astream, stream
from sigwire.effects.loops import block_on_result, to_thread
from sigwire.effects.network import check_network
from sigwire.effects.steps import FunctionEffect, Steps, arun, run
from sigwire.errors import CallerError, ConfigurationError, InputError, LMUnexpectedError, OverrideError, StateError
from sigwire.lm.openai_dicts import decode_call, encode_call, encode_outputs
from sigwire.lm.policy.cache.choice import CacheMode
from sigwire.lm.preview.call_log import CallLog, CallRecord, recorded_steps
from sigwire.lm.secrets import mask_secrets, redact, redact_url, storable_options, without_secrets, wrap_secrets
from sigwire.observe.callbacks import watched_steps
from sigwire.observe.place import asked, kept_calls
from sigwire.observe.usage import counted_steps
from sigwire.overriding import check_overrides

if TYPE_CHECKING:
    from sigwire.core.events import StreamEvent
    from sigwire.lm.policy.failover.targets import RouteTarget
    from sigwire.lm.preview.draft import RequestDraft
    from sigwire.lm.preview.preview import Preview
    from sigwire.lm.preview.printing import HistoryFormat

__all__ = ["BaseLM", "Entries", "LanguageModel", "named_in_files", "untrusted_addresses"]

M = TypeVar("M", bound="BaseLM")

_Answer: TypeAlias = Callable[[Request, bool], Steps[Response]]


class LanguageModel(Protocol):
    """An object that answers requests. It needs no base class.

    >>> class Echo:
    ...     model, capabilities = "echo", Capabilities()
    ...
    ...     def respond(self, request: Request) -> Response:
    ...         return Response((Choice(request.messages[-1].text),))
    ...
    ...     async def arespond(self, request: Request) -> Response:
    ...         return self.respond(request)
    >>> lm: LanguageModel = Echo()
    """

    @property
    def model(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def respond(self, request: Request) -> Response: ...

    async def arespond(self, request: Request) -> Response: ...


class Entries:
    """The methods of a model that a subclass overrides to answer: their names and form, and the calls through them.

    ``names``: the methods; ``form``: the definition that an error asks of a subclass without one.
    """

    names: ClassVar[Sequence[str]] = ("forward", "aforward")
    form: ClassVar[str] = "forward(self, request) or aforward; return a Response or a text"

    def check(self, cls: type[BaseLM], overrides: Iterable[str]) -> None:
        """Raise ``OverrideError`` for a class whose overrides have another form."""
        for name in overrides:
            if inspect.signature(getattr(cls, name)).parameters.keys() & {"prompt", "messages"}:
                raise OverrideError(
                    f"{cls.__name__} overrides {name!r} in {LIBRARY}'s form (creating the class). Define "
                    f"{name}(self, request), which returns a Response or a text, or subclass {DOOR}'s class."
                )

    def steps(self, lm: Any, request: Request, streamed: bool) -> Steps[Response]:
        """Return the steps of an answer of a ``BaseLM``: by the method that its class overrides, or by the model itself."""
        if lm._overrides:
            check_network("model", lm.model)
            effect = FunctionEffect(partial(_forward, lm, request), partial(_aforward, lm, request))
            steps: Steps[Response] = lm._overridden_steps(effect, streamed)
        else:
            steps = lm._steps(request, streamed=streamed)
        return steps


def _forward(lm: Any, request: Request) -> Response:
    answer = lm.forward(request) if "forward" in lm._overrides else lm.aforward(request)
    return _response(lm, block_on_result(answer))


async def _aforward(lm: Any, request: Request) -> Response:
    is_blocking = "aforward" not in lm._overrides
    answer = await to_thread(lm.forward, request) if is_blocking else lm.aforward(request)
    return _response(lm, await answer if inspect.isawaitable(answer) else answer)


def _response(lm: Any, answer: object) -> Response:
    if isinstance(answer, Response):
        return answer
    if isinstance(answer, str):
        return Response((Choice(answer),), model=lm.model)
    raise LMUnexpectedError(
        f"{type(lm).__name__} answered with {type(answer).__name__} (calling {lm.model!r}). Return a Response or a "
        f"text; the BaseLM and LM of {DOOR} take OpenAI-shaped answers.",
        model=lm.model,
    )


class BaseLM:
    """Base of language models: define ``forward`` and use the instance like any other model.

    ``kwargs`` holds the generation options, always with ``temperature`` and ``max_tokens``; a subclass merges them into its
    calls. ``capabilities`` defaults to none. ``history`` holds the last ``history_size`` calls, or
    as many as the setting ``max_history_size`` if that is more; 0 keeps none.

    >>> class Shout(BaseLM):
    ...     def forward(self, request):
    ...         return request.messages[-1].text.upper()
    >>> lm = Shout("shout")
    >>> lm("hello")
    ['HELLO']
    >>> lm.history[-1]["outputs"]
    ['HELLO']
    """

    fixed_methods: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("respond", "arespond", "stream", "astream", "steps", "__call__", "acall"),
        "define forward(self, request) and aforward; or write a class with respond, arespond, model and capabilities around "
        "a model, which needs no base class",
    )
    entries: ClassVar[Entries] = Entries()
    """The methods that a subclass overrides to answer; a base class may have others."""
    _hooks: ClassVar[Sequence[str]] = ("default_capabilities", "entries", "history_limit")
    _overrides: ClassVar[frozenset[str]] = frozenset()  # the entries that a subclass overrides

    history_size: int = 50
    model_type: str = "chat"  # an entry of ``history``
    own_options: ClassVar[frozenset[str]] = frozenset()
    """The options that a subclass handles itself and does not send."""
    max_reasks: int | None = None
    """Re-asks of modules without a number of their own; ``None``: as the adapter or the setting."""
    _capabilities: Capabilities | None = None
    _removed: tuple[str, ...] = ()

    def __init__(
        self,
        model: str,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        cache: CacheMode = False,
        callbacks: Sequence[Any] | None = None,
        num_retries: int = 3,
        capabilities: Capabilities | None = None,
        max_reasks: int | None = None,
        **kwargs: Any,
    ) -> None:
        if (model_type := kwargs.pop("model_type", "chat")) != "chat":  # earlier states name it
            raise ConfigurationError(
                f"{type(self).__name__} has no model_type={model_type!r} (making {model!r}). Give wire={model_type!r} to "
                f"sigwire.LM, or use {DOOR}.LM."
            )
        if not isinstance(num_retries, int) or isinstance(num_retries, bool) or num_retries < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"num_retries is a number, 0 or more, not {num_retries!r:.80} (making {model!r}).")
        if callbacks is not None and (isinstance(callbacks, str) or not isinstance(callbacks, Sequence)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"callbacks is a list, not {type(callbacks).__name__} (making {model!r}).")
        self.model = model
        self.cache = cache
        self.num_retries = num_retries
        if max_reasks is not None:
            if type(max_reasks) is not int or not 0 <= max_reasks <= 1_000:
                raise ConfigurationError(
                    f"max_reasks is a number of re-asks, 0 to 1000, not {max_reasks!r:.80} (making {model!r})."
                )
            self.max_reasks = max_reasks
        self.callbacks: list[Any] = list(callbacks or ())
        kwargs = dict(wrap_secrets(kwargs))
        self.kwargs: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens, **kwargs}
        self._history = CallLog(self.history_size)
        self._capabilities = capabilities

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_overrides(cls)
        owners = {name: next(each for each in cls.__mro__ if name in vars(each)) for name in cls.entries.names}
        cls._overrides = frozenset(name for name, owner in owners.items() if "entries" not in vars(owner))
        cls.entries.check(cls, cls._overrides)

    def respond(self, request: Request) -> Response:
        """Answer a request, blocking."""
        request = _wrapped_request(request) if request.options else request
        return run(self.steps(request))

    async def arespond(self, request: Request) -> Response:
        """Answer a request, awaited."""
        request = _wrapped_request(request) if request.options else request
        return await arun(self.steps(request))

    def __call__(
        self, prompt: str | None = None, messages: Iterable[Message | Mapping[str, object]] | None = None, **kwargs: Any
    ) -> list[Any]:
        """Answer a prompt or messages; options apply to this call.

        Returns one item per choice: a ``str``, or a ``dict`` with ``text`` and those of ``tool_calls``, ``reasoning_content``,
        ``logprobs`` and ``citations`` that it has. Raises ``InputError`` without prompt and messages.
        """
        kwargs = dict(wrap_secrets(kwargs))
        return run(self._called_steps(decode_call(prompt, messages, **kwargs), prompt))

    async def acall(
        self, prompt: str | None = None, messages: Iterable[Message | Mapping[str, object]] | None = None, **kwargs: Any
    ) -> list[Any]:
        """``lm(...)``, awaited."""
        kwargs = dict(wrap_secrets(kwargs))
        return await arun(self._called_steps(decode_call(prompt, messages, **kwargs), prompt))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Ask the model itself, without call log and callbacks: for ``super().forward(request)``. Returns a ``Response``."""
        return run(self._steps(*args, **kwargs, streamed=False))

    async def aforward(self, *args: Any, **kwargs: Any) -> Any:
        """``forward``, awaited."""
        return await arun(self._steps(*args, **kwargs, streamed=False))

    def stream(self, request: Request) -> Generator[StreamEvent, None, Response]:
        """Answer a request, blocking, and yield its events as they arrive; the generator's value is the response.

        A model without streams yields the events of the whole answer. Closing the generator cancels the call.

        >>> class Shout(BaseLM):
        ...     def forward(self, request):
        ...         return "HELLO"
        >>> [event.text for event in Shout("shout").stream(Request((Message.user("hello"),))) if event.kind == "text_delta"]
        ['HELLO']
        """
        return stream(self.steps(request, streamed=True))

    async def astream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """``stream``, awaited. (Asynchronous generators have no value: ``collect(events)`` is the response.)"""
        request = _wrapped_request(request)
        async with aclosing(astream(self.steps(request, streamed=True))) as events:
            async for event in events:
                if type(event) is not Returned:
                    yield event

    def preview(self, request: Request | str) -> Preview:
        """Return a request, or that of a text, as a call would send it. Sends nothing and needs no key; see ``Preview``.

        >>> BaseLM("m").preview("Hi").request.messages[0].text
        'Hi'
        """
        from sigwire.lm.preview.preview import preview_of  # only previews need it

        asked = request if isinstance(request, Request) else decode_call(request)
        return preview_of(self, _wrapped_request(asked), self._draft, self._history, self._overrides)

    def _draft(self, request: Request) -> RequestDraft:
        """Return the request as the model sends it, with its encoding if it has one."""
        from sigwire.lm.preview.draft import RequestDraft

        return RequestDraft(request)

    def steps(self, request: Request, *, streamed: bool = False, prompt: str | None = None) -> Steps[Response]:
        """Answer a request in steps. If ``streamed``, they emit the events of the answer. ``prompt`` is for the log."""
        return self._logged_steps(request, prompt, streamed, partial(type(self).entries.steps, self))

    def _logged_steps(self, request: Request, prompt: str | None, streamed: bool, answer: _Answer) -> Steps[Response]:
        request = _wrapped_request(request) if request.options else request
        steps = self._recorded_steps(request, prompt, streamed, answer)
        return watched_steps("lm", self, lambda: _inputs(request, prompt, streamed), steps)

    def _recorded_steps(self, request: Request, prompt: str | None, streamed: bool, answer: _Answer) -> Steps[Response]:
        question = asked.question
        asker = question.asker if question is not None and question.request is request else None
        try:
            response = yield from answer(request, streamed)
        except Exception as error:
            record = CallRecord(self.model, self.model_type, request, prompt=prompt, asker=asker)
            self._history.add_failure(record, error)
            raise
        if self._history.size:
            self._history.keep(self.history_limit(kept_calls()))
            self._history.add(CallRecord(self.model, self.model_type, request, response, prompt, asker))
        return response

    def history_limit(self, configured: int) -> int:
        """Return how many calls ``history`` keeps. ``configured``: by the setting ``max_history_size``, 0 if it is not set.

        A history with a limit of 0 keeps none, whatever the setting is. A subclass may decide otherwise.
        """
        return max(self._history.size, configured)

    def check_options(self, options: Iterable[str], stage: str = "making a model") -> None:
        """Raise ``UnsupportedOption`` for a name that is no option of the model. ``forward`` of a subclass may take any."""

    def _called_steps(self, request: Request, prompt: str | None) -> Steps[list[Any]]:
        # a module's request is counted by the module
        steps = recorded_steps(self.model, self.model_type, request, self.steps(request, prompt=prompt))
        response = yield from counted_steps(type(self).__name__, self.model, steps)
        return encode_outputs(response)

    def _overridden_steps(self, effect: FunctionEffect[Response], streamed: bool) -> Steps[Response]:
        response: Response = yield effect
        if streamed:
            from sigwire.core.events import events_of  # only streams need events

            yield Emit(*events_of(response))
        return response

    def _steps(self, request: Request, *, streamed: bool) -> Steps[Response]:
        """Answer without log and callbacks. Models of sigwire override it."""
        raise ConfigurationError(
            f"{type(self).__name__} cannot answer (calling {self.model!r}). Define {type(self).entries.form}."
        )

    def targets(self) -> Sequence[RouteTarget]:
        """Return the models that a call may ask, in their order, as a router asks them: without their logs."""
        from sigwire.lm.policy.failover.targets import RouteTarget  # only routers need it

        return (RouteTarget(self, lambda request, streamed, _: type(self).entries.steps(self, request, streamed)),)

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model."""
        if self._capabilities is None:
            self._capabilities = type(self).default_capabilities(self)
        return self._capabilities

    @capabilities.setter
    def capabilities(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities

    def default_capabilities(self) -> Capabilities:
        """Return the capabilities of a model that is made without ``capabilities``. A subclass may override it."""
        return Capabilities()

    @property
    def history(self) -> CallLog:
        """The last calls. ``lm.history = []`` empties it."""
        return self._history

    @history.setter
    def history(self, calls: Sequence[Any]) -> None:
        if len(calls) and not isinstance(calls, CallLog):
            raise InputError(f"The history of {self.model!r} takes no other calls; lm.history = [] empties it.")
        self._history = calls if isinstance(calls, CallLog) else CallLog(self.history_size)

    def inspect_history(self, n: int = 1, file: TextIO | None = None, *, format: HistoryFormat = "text") -> None:
        """Print the last ``n`` calls, failed ones included, to the terminal or to ``file``: for people, "wire" or "json"."""
        from sigwire.lm.preview.printing import print_calls  # only printing needs it

        print_calls(self.history.records[-n:] if n > 0 else [], file, format, self.preview)

    def masked(self, text: str) -> str:
        """Return a text without the secrets that this model was given: keys, headers, passwords of its options.

        >>> BaseLM("m", api_key="abcd-12345").masked("the key abcd-12345 is wrong")
        'the key *** is wrong'
        """
        return redact(text, self.kwargs)

    def __repr__(self) -> str:
        known = vars(self)  # without an attribute if the making of the model failed
        options = {name: value for name, value in mask_secrets(known.get("kwargs", {})).items() if value is not None}
        shown = "".join(f", {name}={value!r}" for name, value in options.items())
        return f"{type(self).__name__}({known.get('model')!r}{shown})"

    def copy(self, **updates: Any) -> Self:
        """Return the model with changes to attributes or ``kwargs`` (``None`` removes one), own callbacks, and no history.

        >>> BaseLM("m", temperature=0.0).copy(seed=1, temperature=1.0).kwargs
        {'temperature': 1.0, 'max_tokens': None, 'seed': 1}
        """
        updates = dict(wrap_secrets(updates))
        new = copy.copy(self)
        new._history = CallLog(self._history.size)
        new.callbacks, new.kwargs = list(self.callbacks), dict(self.kwargs)
        new._removed = tuple(name for name in self._removed if name not in updates)
        for name, value in updates.items():
            if name not in new.kwargs and hasattr(new, name):
                setattr(new, name, value)
            elif value is None and name not in ("temperature", "max_tokens"):
                new.kwargs.pop(name, None)
            else:
                new.kwargs[name] = value
        return new

    def __copy__(self) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        memo[id(self)] = new = object.__new__(type(self))
        new.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return new

    def __getstate__(self) -> dict[str, object]:
        """Return the state for a pickle: no keys, tokens or headers. ``_removed`` names the options that had some."""
        kept = without_secrets(self.kwargs)
        removed = tuple(name for name, value in self.kwargs.items() if name not in kept or kept[name] != value)
        return {**self.__dict__, "kwargs": kept, "_removed": (*self._removed, *removed)}

    def dump_state(self) -> JsonObject:
        """Return the state that rebuilds the model, as JSON. Pass secrets and values that are no JSON again after loading.

        >>> sorted(BaseLM("m", api_key="secret", temperature=0.5).dump_state())
        ['cache', 'class', 'max_tokens', 'model', 'num_retries', 'temperature']
        """
        return {
            **_storable(self.kwargs),
            "class": _name_in_files(type(self)),
            "model": self.model,
            "cache": self.cache,
            "num_retries": self.num_retries,
            **({} if self.max_reasks is None else {"max_reasks": self.max_reasks}),
        }

    @classmethod
    def load_state(cls, state: Mapping[str, object], *, allow_unsafe_lm_state: bool = False) -> BaseLM:
        """Build a model from the dict of ``dump_state``. Contacts nothing.

        A state may name a class to import, and an address, which would receive your key. Without
        ``allow_unsafe_lm_state=True`` a foreign class raises ``StateError``, as does an address, or another option that
        decides where requests go, unless the model has the same address without it.

        >>> state = {"model": "openai/gpt-5-mini", "base_url": "https://gpu-box.example/v1"}
        >>> BaseLM.load_state(state, allow_unsafe_lm_state=True)
        LM('openai/gpt-5-mini', base_url='https://gpu-box.example/v1')
        """
        is_state = isinstance(state, Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may pass any object
        if not is_state or not isinstance(state.get("model"), str) or is_too_deep(dict(state)):
            raise StateError(
                "The saved language model has no 'model' (loading its state). Save it with lm.dump_state()."
            )
        target = _class_named(str(state.get("class") or ""), cls, allow_unsafe_lm_state)
        if target is not cls:  # its own load_state, if it has one
            return target.load_state(state, allow_unsafe_lm_state=allow_unsafe_lm_state)
        try:
            made = cls(**cls._options_of(state, allow_unsafe_lm_state))
        except StateError:  # of a target
            raise
        except (TypeError, CallerError) as error:
            raise StateError(
                f"The saved language model does not fit {_class_path(cls)} (loading its state): {str(error).rstrip('.')}. "
                "Save it again with lm.dump_state()."
            ) from error
        if not allow_unsafe_lm_state:
            made.check_addresses(state)
        return made

    def check_addresses(self, state: Mapping[str, object]) -> None:
        """Raise ``StateError`` if the file has an address that this model, made without it, does not have."""
        if found := untrusted_addresses(self, state):
            raise StateError(
                f"The saved language model {self.model!r} has {', '.join(found.values())}, which would get your prompts "
                "and your key (loading its state). Pass your model, load(..., lm=LM(...)), or allow_unsafe_lm_state=True if "
                "you trust the file."
            )

    @classmethod
    def _options_of(cls, state: Mapping[str, object], trusted: bool) -> dict[str, Any]:
        options = {name: value for name, value in state.items() if name not in _NO_OPTIONS}
        if trusted:
            return options
        return {name: value for name, value in storable_options(options).items() if not _is_endpoint(name)}


# Keys of a state that are no options: ``class`` names the model's class, some cannot be JSON, others are of another library.
_NO_OPTIONS = frozenset("callbacks capabilities class finetuning_model launch_kwargs train_kwargs".split())
# Options that decide where a request and its key are sent.
_ENDPOINTS = frozenset({"api_base", "base_url", "model_list"})
_ENDPOINT_WORD = re.compile(r"(?:^|_)(?:endpoints?|hosts?|proxy|proxies|servers?|urls?|uri)(?:_|$)", re.IGNORECASE)


def _is_endpoint(name: str) -> bool:
    return name in _ENDPOINTS or _ENDPOINT_WORD.search(name) is not None


def _storable(options: Mapping[str, object]) -> JsonObject:
    """Return the options for a file. An address stays without its user, password and query: another host is never meant."""
    return storable_options(
        {
            name: redact_url(value) if isinstance(value, str) and _is_endpoint(name) else value
            for name, value in options.items()
        }
    )


def untrusted_addresses(lm: BaseLM, state: Mapping[str, object]) -> dict[str, str]:
    """Return the options of a state that decide where requests and the key are sent, unless ``lm`` has the same address.

    Values are texts without users, passwords and queries.

    >>> untrusted_addresses(BaseLM("m"), {"model": "m", "base_url": "https://me:pass@gpu-box.example/v1", "api_base": None})
    {'base_url': "base_url='https://gpu-box.example/v1'"}
    """
    given = {name: value for name, value in state.items() if value not in (None, "", [], {}) and _is_endpoint(name)}
    own: str | None = None
    with suppress(ConfigurationError):  # a resource without an address in the environment
        own = getattr(lm, "address", None) if given else None
    found = dict[str, str]()
    for name, value in given.items():
        place = redact_url(value) if isinstance(value, str) else f"<{type(value).__name__}>"
        if own is None or place.rstrip("/") != own.rstrip("/"):
            found[name] = f"{name}={place!r:.120}"
    return found


def _class_path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


_IN_FILES: dict[str, type[BaseLM]] = {}  # by each name that files have for the class
_WRITTEN: dict[type[BaseLM], str] = {}


def named_in_files(name: str, *others: str) -> Callable[[type[M]], type[M]]:
    """Return a decorator of a class of sigwire: files name it ``name``; files may be of others, "" if they name no class.

    Files name such a class without trust in them. A class under another name of a file is imported from the path that the
    file has for it, if it is one of sigwire's models.
    """

    def register(cls: type[M]) -> type[M]:
        _IN_FILES.update(dict.fromkeys((name, _class_path(cls), *others), cls))
        _WRITTEN[cls] = name
        return cls

    return register


def _name_in_files(cls: type) -> str:
    return _WRITTEN.get(cls, _class_path(cls))


def _own_class(name: str) -> type[BaseLM] | None:
    """Return a class of sigwire by its name in a file. Its module is imported if need be, and registers it."""
    if name not in _IN_FILES:
        path = f"{DOOR}{name.removeprefix(NAMESPACE)}" if name.startswith(f"{NAMESPACE}.") else name
        room = __name__.rpartition(".")[0]
        if not name:
            import_module(f"{room}.client")  # a file without a class is of ``LM``
        for module in (path.rpartition(".")[0], path.rpartition(".")[0].rpartition(".")[0]):
            if name not in _IN_FILES and module.startswith((f"{DOOR}.", f"{room}.")):
                with suppress(ImportError, ValueError):  # some moved to the file of their package
                    import_module(module)
    return _IN_FILES.get(name)


def _class_named(name: str, cls: type[BaseLM], trusted: bool) -> type[BaseLM]:
    if name == _class_path(cls) or (found := _own_class(name)) is cls:
        return cls
    if found is not None:
        return found
    if not trusted:
        raise StateError(
            f"The saved language model has the class {name!r}, and loading it would import code (loading its state). "
            "Pass allow_unsafe_lm_state=True if you trust the file, or call load_state on that class."
        )
    from pkgutil import resolve_name  # only states need it

    try:
        named = resolve_name(name)  # also a class inside a class
    except (AttributeError, ImportError, ValueError):
        named = None
    if not (isinstance(named, type) and issubclass(named, BaseLM)):
        raise StateError(f"{name!r} is no language model class (loading its state). Check the file's 'class'.")
    return named


def _price(model: str, usage: Usage, may_import: bool) -> float | None:
    from sigwire.lm.policy.money.prices import prices  # only costs that are read need prices

    price_with(prices.price_of)
    return prices.price_of(model, usage, may_import)


price_with(_price)


def _inputs(request: Request, prompt: str | None, streamed: bool) -> dict[str, object]:
    """Return the inputs for callbacks: the request, and its form as messages and options."""
    messages, kwargs = encode_call(request)
    facts = {"request": request, "streamed": streamed, "prompt": prompt}
    return {**facts, "messages": messages, **storable_options(kwargs)}


def _wrapped_request(request: Request) -> Request:
    """Return the request with the secrets of its options as ``Secret``. Callers rebind their variable: a traceback shows it."""
    options = wrap_secrets(request.options) if request.options else request.options
    return request if options is request.options else replace(request, options=dict(options))
