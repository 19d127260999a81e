"""Language models with DSPy's options.

BaseLM     model_type, the supports_... properties, supported_params
LM         the same for a model of the provider table; model_type="responses" is wire="responses"
DummyLM    the test model: a list of field dicts, a dict by substring, or the answers of matching demos
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import pairwise
from typing import Any, ClassVar, Self, cast

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, is_too_deep
from sigwire.core.messages import Message
from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.core.record import FieldValues
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, number_calls
from sigwire.dspy.models.litellm_options import TRANSLATED, chat_name, read_options, translate
from sigwire.dspy.models.overridden_call import ENTRIES, Entry, OverriddenCall, running_call
from sigwire.dspy.models.token_limits import check_reasoning_options, name_limit
from sigwire.dspy.saving import read_lm
from sigwire.dspy.tools import ToolCalls
from sigwire.effects.loops import block_on, to_thread
from sigwire.effects.steps import FunctionEffect, Steps, arun, run
from sigwire.errors import ConfigurationError, warn_user
from sigwire.lm import base, client
from sigwire.lm.fake import FakeLM
from sigwire.lm.openai_dicts import decode_call, encode_outputs
from sigwire.lm.policy.cache.choice import CacheMode
from sigwire.lm.preview.call_log import recorded_steps
from sigwire.lm.providers.registry import find_provider
from sigwire.lm.secrets import wrap_secrets
from sigwire.observe.usage import counted_steps

__all__ = ["LM", "LM_CLASS_STATE_KEY", "SCRIPTED_FINISH", "BaseLM", "DummyLM"]

LM_CLASS_STATE_KEY = "class"
"""The key of a model's class in its state; a ``load_state`` of yours removes it."""

SCRIPTED_FINISH = "finish"
"""The mark of a ``submit`` call that a script of DSPy wrote as ``next_tool_name="finish"``."""


class OverriddenEntries(base.Entries):
    """``forward`` and ``__call__`` in DSPy's form, blocking and awaited."""

    names = tuple(name for entry in ENTRIES for name in entry)
    form = (
        "forward(self, prompt=None, messages=None, **kwargs) or aforward; return an object or dict with "
        "choices[i].message.content"
    )

    def check(self, cls: type[base.BaseLM], overrides: Iterable[str]) -> None:
        """Entries have DSPy's form."""

    def steps(self, lm: Any, request: Request, streamed: bool) -> Steps[Response]:
        """Answer by the outermost of the entries that a subclass overrides, or by the model itself."""
        answer: Steps[Response] = lm._entries_steps(ENTRIES, request, streamed)
        return answer


class BaseLM(base.BaseLM):
    """Base of language models that takes DSPy's arguments in DSPy's order.

    A subclass defines one of these, or its awaited form; every call goes through them, ``__call__`` around ``forward``:

        forward(prompt=None, messages=None, **kwargs)    an OpenAI-shaped object or dict, a list of texts, or a Response
        __call__(prompt=None, messages=None, **kwargs)   a list of texts or dicts

    Without ``capabilities`` the ``supports_...`` properties and ``supported_params`` give them; a subclass may override these.

    >>> class Able(BaseLM):
    ...     supports_function_calling = True
    >>> Able("m", "chat", 0.5).capabilities.native_tools
    True
    """

    fixed_methods: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("__call__", "acall"), ""),
        **dict.fromkeys(
            ("respond", "arespond", "stream", "astream", "steps"),
            "define forward(self, prompt=None, messages=None, **kwargs) and aforward, or __call__ and acall; or write a class "
            "with respond, arespond, model and capabilities around a model, which needs no base class",
        ),
    }
    entries = OverriddenEntries()
    history_size = 10_000

    def __init__(
        self,
        model: str,
        model_type: str = "chat",
        temperature: float | None = None,
        max_tokens: int | None = None,
        cache: CacheMode = True,
        callbacks: Sequence[Any] | None = None,
        num_retries: int = 3,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            model,
            temperature=temperature,
            max_tokens=max_tokens,
            cache=cache,
            callbacks=callbacks,
            num_retries=num_retries,
            **kwargs,
        )
        self.model_type = model_type

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        load = getattr(cls.__dict__.get("load_state"), "__func__", None)
        if load is not None and "allow_unsafe_lm_state" not in signature(load).parameters:
            type.__setattr__(cls, "load_state", classmethod(partial(_load_with, load)))

    def __call__(
        self, prompt: str | None = None, messages: Iterable[Message | Mapping[str, object]] | None = None, **kwargs: Any
    ) -> list[Any]:
        """Answer a prompt or messages, in either place; see ``sigwire.BaseLM``."""
        kwargs = dict(wrap_secrets(kwargs))
        prompt, messages = _placed(prompt, messages)
        if "__call__" not in self._overrides and "acall" in self._overrides:
            return block_on(self.acall(prompt, messages, **kwargs))
        return run(self._output_steps(decode_call(prompt, messages, **kwargs), prompt))

    async def acall(
        self, prompt: str | None = None, messages: Iterable[Message | Mapping[str, object]] | None = None, **kwargs: Any
    ) -> list[Any]:
        """``lm(...)``, awaited."""
        kwargs = dict(wrap_secrets(kwargs))
        prompt, messages = _placed(prompt, messages)
        if "acall" not in self._overrides and "__call__" in self._overrides:
            return await to_thread(self, prompt, messages, **kwargs)
        return await arun(self._output_steps(decode_call(prompt, messages, **kwargs), prompt))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Ask the model itself, without call log and callbacks: for ``super().forward(...)``. Returns a ``Response``."""
        return run(self._model_steps(decode_call(*args, **kwargs), streamed=False))

    async def aforward(self, *args: Any, **kwargs: Any) -> Any:
        """``forward``, awaited."""
        return await arun(self._model_steps(decode_call(*args, **kwargs), streamed=False))

    def _output_steps(self, request: Request, prompt: str | None) -> Steps[list[Any]]:
        """Return the steps of ``lm(...)``. Inside an overridden ``__call__`` they are part of the call around them."""
        around = running_call.get()
        if around is not None and around.lm is self:
            return around.keep((yield from self._inner_steps(request, False)))
        # a module's request is counted by the module
        steps = self._logged_steps(request, prompt, False, self._inner_steps)
        steps = recorded_steps(self.model, self.model_type, request, steps)
        response = yield from counted_steps(type(self).__name__, self.model, steps)
        return encode_outputs(response)

    def _inner_steps(self, request: Request, streamed: bool) -> Steps[Response]:
        return self._entries_steps(ENTRIES[1:], request, streamed)

    def _entries_steps(self, entries: Iterable[Entry], request: Request, streamed: bool) -> Steps[Response]:
        """Answer by the first of the entries that a subclass overrides, or by the model itself."""
        entry = next((entry for entry in entries if not self._overrides.isdisjoint(entry)), None)
        if entry is None:
            return self._model_steps(request, streamed=streamed)
        call = OverriddenCall(self, entry, self._overrides, request)
        return self._overridden_steps(FunctionEffect(call.run, call.arun), streamed)

    def _model_steps(self, request: Request, *, streamed: bool) -> Steps[Response]:
        """Answer by the model itself."""
        return self._steps(request, streamed=streamed)

    def history_limit(self, configured: int) -> int:
        """Return how many calls ``history`` keeps: by ``max_history_size``, also if that is less; else DSPy's 10,000."""
        return configured or self._history.size

    def default_capabilities(self) -> Capabilities:
        """Return the capabilities of a model that is made without ``capabilities``."""
        return Capabilities(
            native_tools=self.supports_function_calling,
            parallel_tool_calls=self.supports_function_calling,
            json_schema=self.supports_response_schema,
            json_object="response_format" in self.supported_params,
            reasoning=self.supports_reasoning,
        )

    @property
    def supports_function_calling(self) -> bool:
        """True if the model takes tools natively."""
        return self._capabilities is not None and self._capabilities.native_tools

    @property
    def supports_reasoning(self) -> bool:
        """True if the model reasons natively."""
        return self._capabilities is not None and self._capabilities.reasoning

    @property
    def supports_response_schema(self) -> bool:
        """True if the model answers by a JSON Schema."""
        return self._capabilities is not None and self._capabilities.json_schema

    @property
    def supported_params(self) -> set[str]:
        """The generation options that are known to work; empty if nothing is known."""
        return set()

    def dump_state(self) -> JsonObject:
        """Return what is needed to build the model again, as JSON and without secrets."""
        return {**super().dump_state(), "model_type": self.model_type}

    @classmethod
    def load_state(
        cls, state: Mapping[str, object], *, allow_unsafe_lm_state: bool = False, allow_custom_lm_class: bool = False
    ) -> base.BaseLM:
        """Build a model from the dict of ``dump_state``, also one of DSPy. Both options trust the state.

        >>> BaseLM.load_state({"_dspy_lm_class": "dspy.clients.lm.LM", "model": "openai/gpt-4o"})
        LM('openai/gpt-4o')
        """
        is_trusted = allow_unsafe_lm_state or allow_custom_lm_class
        return super().load_state(read_lm(state), allow_unsafe_lm_state=is_trusted)

    def check_addresses(self, state: Mapping[str, object]) -> None:
        """Warn of an address as DSPy does. The model sends nothing without it: the provider's host is another one."""
        if found := base.untrusted_addresses(self, state):
            warn_user(
                f"The saved model has {', '.join(found)}, which would get your key and is not loaded. Set it in your code, "
                "lm.copy(base_url=...), or trust the file with allow_unsafe_lm_state=True."
            )
            self._removed = (*self._removed, *("base_url" if name == "api_base" else name for name in found))


def _placed(prompt: Any, messages: Any) -> tuple[Any, Any]:
    """Return prompt and messages; a list of messages in the place of the prompt is the messages."""
    return (None, prompt) if messages is None and is_sequence(prompt) else (prompt, messages)


def _load_with(load: Callable[[type, FieldValues], BaseLM], cls: type, state: FieldValues, **options: object) -> BaseLM:
    """Call a ``load_state`` with DSPy's arguments, which are the class and the state."""
    return load(cls, state)


_NO_LIMITS: Mapping[str, None] = {"temperature": None, "max_tokens": None}


@base.named_in_files("sigwire.dspy.lm.LM", "dspy.clients.lm.LM")
class LM(BaseLM, client.LM):
    """``sigwire.LM`` with DSPy's options; every other option is that of ``sigwire.LM``.

    A subclass that answers itself may have any name as its model. In ``kwargs`` the limit of tokens of OpenAI's reasoning
    models is ``max_completion_tokens``. ``finetuning_model``, ``launch_kwargs`` and ``train_kwargs`` are kept as attributes
    and not saved: nothing is trained here. ``use_developer_role`` is what the Responses wire does.

    LiteLLM's options are taken (``models.litellm_options``): ``vertex_project``, ``aws_region_name``, ``request_timeout``,
    ``response_format``, ``drop_params`` and others by sigwire's names, options of the host as the host has them. An option
    that sigwire does not know goes into the body of requests; a misspelt one is refused. ``model_type="text"`` is LiteLLM's
    model ``text-completion-openai/...``.

    Raises ``ConfigurationError`` for another ``model_type``, for a reasoning model with a temperature other than 1 or a limit
    below 16000, and for LiteLLM's options that have no counterpart; ``UnsupportedOption`` for a misspelt option.

    >>> lm = LM("openai/gpt-5-mini", "responses", 1.0, 20_000, rollout_id=3)
    >>> lm.model_type, lm.supports_function_calling, lm.kwargs["rollout_id"], lm.kwargs["max_completion_tokens"]
    ('responses', True, 3, 20000)
    """

    fixed_methods: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("supports_function_calling", "supports_reasoning", "supports_response_schema", "supported_params"),
        "pass capabilities=Capabilities(...) to the constructor",
    )
    own_options = TRANSLATED
    open_options = True
    provider: object = None

    def __init__(
        self,
        model: str,
        model_type: str = "chat",
        temperature: float | None = None,
        max_tokens: int | None = None,
        cache: CacheMode = True,
        callbacks: Sequence[Any] | None = None,
        num_retries: int = 3,
        *,
        wire: str | None = None,
        finetuning_model: str | None = None,
        launch_kwargs: Mapping[str, Any] | None = None,
        train_kwargs: Mapping[str, Any] | None = None,
        use_developer_role: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs = dict(wrap_secrets(kwargs))
        self.finetuning_model, self.use_developer_role = finetuning_model, use_developer_role
        self.launch_kwargs, self.train_kwargs = dict(launch_kwargs or {}), dict(train_kwargs or {})
        self._answers_itself = bool(self._overrides) and not _is_known(model)
        if self._answers_itself:
            base.BaseLM.__init__(
                self,
                model,
                temperature=temperature,
                max_tokens=max_tokens,
                cache=cache,
                callbacks=callbacks,
                num_retries=num_retries,
                **kwargs,
            )
            self.model_type = model_type
            return
        if not is_mapping(kwargs.get("provider", {})):  # DSPy's object for training; OpenRouter's option is a mapping
            self.provider = kwargs.pop("provider")
        model, kwargs = read_options(model, model_type, kwargs)
        wire = wire or _wire_of(model_type, model)
        super().__init__(model, model_type, temperature, max_tokens, cache, callbacks, num_retries, wire=wire, **kwargs)
        check_reasoning_options(model, temperature, max_tokens)
        self.kwargs = name_limit(model, self.kwargs)

    def copy(self, **updates: Any) -> Self:
        """Return the model with changes; see ``sigwire.LM.copy``."""
        if self._answers_itself:
            return base.BaseLM.copy(self, **updates)  # pyright: ignore[reportReturnType]
        kind = updates.get("model_type", self.model_type)
        name = updates.pop("model", self.model if kind == "text" else chat_name(self.model, self.model_type))
        model, options = read_options(name, kind, wrap_secrets(updates))
        updates = options if model == self.model else {**options, "model": model}
        if "model_type" in updates:
            updates.setdefault("wire", _wire_of(updates["model_type"], model))
        new = super().copy(**updates)
        if "max_tokens" in updates and "max_completion_tokens" not in updates:
            new.kwargs.pop("max_completion_tokens", None)
        new.kwargs = name_limit(new.model, new.kwargs)
        return new

    def dump_state(self) -> JsonObject:
        """Return what is needed to build the model again, as JSON and without secrets, in DSPy's form.

        >>> state = LM("openai/gpt-5-mini").dump_state()
        >>> state["class"], state["train_kwargs"]
        ('dspy.clients.lm.LM', {})
        """
        if self._answers_itself:
            return {**base.BaseLM.dump_state(self), "model_type": self.model_type}
        name: JsonObject = {LM_CLASS_STATE_KEY: "dspy.clients.lm.LM"} if type(self) is LM else {}
        role: JsonObject = {"use_developer_role": True} if self.use_developer_role else {}
        state: JsonObject = {**_NO_TRAINING, **super().dump_state(), **name, **role}
        if state.get("max_tokens") is None and "max_completion_tokens" in state:
            state["max_tokens"] = state.pop("max_completion_tokens")
        return state

    @classmethod
    def load_state(
        cls, state: Mapping[str, object], *, allow_unsafe_lm_state: bool = False, allow_custom_lm_class: bool = False
    ) -> base.BaseLM:
        """Build a model from the dict of ``dump_state``; also a copy with a limit that the constructor refuses."""
        is_trusted = allow_unsafe_lm_state or allow_custom_lm_class
        given = dict(state) if is_mapping(state) and not is_too_deep(dict(state)) else {}
        limits = {name: given[name] for name in ("temperature", "max_tokens") if given.get(name) is not None}
        try:
            check_reasoning_options(str(given.get("model")), **{**_NO_LIMITS, **cast("Any", limits)})
        except ConfigurationError:  # copy(temperature=0.7): ``copy`` takes any
            made: Any = super().load_state({**given, **dict.fromkeys(limits)}, allow_unsafe_lm_state=is_trusted)
            changed: base.BaseLM = made.copy(**limits)
            return changed
        except TypeError:  # a value of another type: the constructor refuses it in words
            pass
        return super().load_state(state, allow_unsafe_lm_state=is_trusted)

    def prepare_request(self, request: Request) -> Request:
        """Return the request with LiteLLM's options in sigwire's form."""
        if TRANSLATED.isdisjoint(request.options):
            return super().prepare_request(request)
        passes_on = find_provider(self.model)[0].backend == "bridge"
        return super().prepare_request(translate(request, self._known_options, passes_on=passes_on))

    def check_options(self, options: Iterable[str], stage: str = "making an LM") -> None:
        """Raise ``ConfigurationError`` for an option that the model does not take; a subclass may take any."""
        if not self._answers_itself:
            super().check_options(options, stage)

    def _model_steps(self, request: Request, *, streamed: bool) -> Steps[Response]:
        """Answer by the model itself. Raises ``ConfigurationError`` for an unknown model."""
        if self._answers_itself:
            find_provider(self.model)
        return super()._model_steps(request, streamed=streamed)

    def __getstate__(self) -> dict[str, object]:
        return base.BaseLM.__getstate__(self) if self._answers_itself else super().__getstate__()

    def __setstate__(self, state: dict[str, object]) -> None:
        if state.get("_answers_itself"):
            self.__dict__.update(state)
        else:
            super().__setstate__(state)

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model."""
        return base.BaseLM.capabilities.__get__(self) if self._answers_itself else super().capabilities

    @capabilities.setter
    def capabilities(self, capabilities: Capabilities) -> None:
        parent: Any = base.BaseLM if self._answers_itself else client.LM
        parent.capabilities.__set__(self, capabilities)


# DSPy's options of models that it trains: in states and in arguments empty, as no model is trained here.
_NO_TRAINING: JsonObject = {"finetuning_model": None, "launch_kwargs": {}, "train_kwargs": {}}
_WIRES: Mapping[str, str | None] = {"chat": None, "responses": "responses", "text": None}


def _wire_of(model_type: str, model: str) -> str | None:
    """Return the wire of a ``model_type``; ``None`` leaves it to the provider table."""
    if model_type not in _WIRES:
        raise ConfigurationError(
            f"model_type={model_type!r} is not supported (creating LM({model!r})). Use one of {', '.join(_WIRES)}."
        )
    wire = _WIRES[model_type]
    return None if wire is None or find_provider(model)[0].backend else wire


def _is_known(model: str) -> bool:
    try:
        find_provider(model)
    except ConfigurationError:
        return False
    return True


class DummyLM(FakeLM, BaseLM):
    """DSPy's test model.

    ``answers`` is a list of field dicts, used up one per choice (then every answer is "No more responses"; a text in the
    list is the whole text of an answer); or a dict from a substring of the last message to a field dict. A script of DSPy
    for ``ReAct`` works: ``next_thought``, ``next_tool_name``, ``next_tool_args`` are a call, and ``finish`` submits the
    fields of the next answer; for ``ReActV2``, ``tool_calls`` are calls. ``follow_examples`` repeats the answer of the demo
    whose inputs are those of the request. ``reasoning`` adds reasoning beside each answer.

    >>> lm = DummyLM([{"answer": "red"}])
    >>> print(lm("What color?")[0])
    [[ ## answer ## ]]
    red
    <BLANKLINE>
    [[ ## completed ## ]]
    <BLANKLINE>
    >>> DummyLM({"sky": {"answer": "blue"}})("the sky")[0].splitlines()[1]
    'blue'
    """

    def __init__(
        self,
        answers: Iterable[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]] = (),
        follow_examples: bool = False,
        reasoning: bool = False,
        adapter: object = None,
        **kwargs: Any,
    ) -> None:
        self.answers = answers
        self._by_substring = cast("Mapping[str, Mapping[str, Any]]", answers) if isinstance(answers, Mapping) else None
        self._remaining = deque[Mapping[str, Any]](() if isinstance(answers, Mapping) else answers)
        self.follow_examples = follow_examples
        self.reasoning = reasoning
        super().__init__(self._dummy_answer, model="dummy", adapter=adapter, capabilities=Capabilities(), **kwargs)

    def get_convo(self, index: int) -> tuple[list[JsonObject], list[Any]]:
        """Return the messages and the outputs of one of the calls that ``history`` still holds."""
        entry = self.history[index]
        return entry["messages"], entry["outputs"]

    def _dummy_answer(self, request: Request) -> Choice:
        text = _matching_answer(request.messages) if self.follow_examples else None
        if text is None:
            fields = self._fields(request)
            script: object = fields
            if isinstance(script, str):
                return Choice(script)
            choice = self._scripted_calls(fields, request) or self._fields_choice(fields)
        else:
            choice = Choice(text)
        return replace(choice, reasoning="This is scripted reasoning." if self.reasoning else None)

    def _scripted_calls(self, fields: FieldValues, request: Request) -> Choice | None:
        """Return the calls of a script of DSPy; ``None`` for other answers, and if the request asks for these fields."""
        name = next((name for name in ("next_tool_name", "tool_calls") if name in fields), None)
        if name is None or "next_thought" not in fields or any(name in message.text for message in request.messages):
            return None
        mark = SCRIPTED_FINISH if fields.get(name) == "finish" else None
        if name == "tool_calls":
            given = ToolCalls.model_validate(fields[name])
            turn = sum(message.role == "assistant" for message in request.messages)
            ids = (f"call_{turn}_{at}" if call.id == f"call_{at}" else call.id or "" for at, call in enumerate(given))
            calls = [ToolCall(id, call.name, call.arguments) for id, call in zip(ids, given, strict=True)]
        elif mark:
            outputs = {name: value for name, value in self._fields(request).items() if name != "reasoning"}
            calls = [ToolCall.read("", "submit", outputs)]
        else:
            calls = [ToolCall.read("", str(fields[name]), fields.get("next_tool_args"))]
        if (
            not request.tools and "submit" not in request.messages[0].text
        ):  # an agent without tools asks for the outputs
            submit = next((call for call in calls if call.name == "submit"), None)
            if submit is None:
                return self._dummy_answer(request)
            return self._fields_choice({"reasoning": fields["next_thought"], **(submit.arguments or {})})
        calls = [replace(call, provider_data=mark) for call in calls]
        return Choice(str(fields.get("next_thought", "")), number_calls(calls), finish_reason="tool_calls")

    def _fields(self, request: Request) -> Mapping[str, Any]:
        nothing = {"answer": "No more responses"}
        if self._by_substring is not None:
            last = request.messages[-1].text if request.messages else ""
            return next((fields for part, fields in self._by_substring.items() if part in last), nothing)
        return self._remaining.popleft() if self._remaining else nothing


def _matching_answer(messages: tuple[Message, ...]) -> str | None:
    """The answer of the last demo whose inputs begin the last message (a reminder of the format may follow them)."""
    if not messages:
        return None
    last = messages[-1].text.strip()
    for asked, answered in reversed(list(pairwise(messages[:-1]))):
        inputs = asked.text.strip()
        if (asked.role, answered.role) == ("user", "assistant") and inputs and (last + "\n").startswith(inputs + "\n"):
            return answered.text
    return None
