"""A language model for tests: it answers from a script and remembers its requests.

Output fields are formatted like a model's answer: in the chat layout, or in that of ``adapter``. The layout is JSON or XML for
an adapter of that name, and the value of ``format_outputs(fields) -> str`` for an object with this method.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, TypeAlias, cast

from sigwire.core.capabilities import Capabilities
from sigwire.core.events import Cut, by_word, events_of
from sigwire.core.json import dumps
from sigwire.core.request import Request
from sigwire.core.response import Attempt, Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolCalls, number_calls
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, LMError, UnsupportedOption, suggest
from sigwire.lm.base import BaseLM
from sigwire.lm.option_aliases import OPTION_NAMES
from sigwire.lm.policy.call import Call, TargetKey, through
from sigwire.lm.policy.money.opened import open_budgets

__all__ = ["Answer", "FakeLM"]

Answer: TypeAlias = (
    str
    | Mapping[str, object]
    | ToolCall
    | ToolCalls
    | Sequence[object]
    | Choice
    | Response
    | BaseException
    | type[BaseException]
    | Callable[[Request], object]
)
"""One scripted answer; see ``FakeLM``."""


class FakeLM(BaseLM):
    """A model that answers from a script, one item per choice.

    An item is a text; a dict of output fields (``ToolCalls`` in it become calls); a ``ToolCall`` or a list of them (also
    ``{"name", "args"}`` dicts); a ``Choice``; a ``Response`` or a list of texts, which answers all ``n`` choices of a request;
    an exception, which is raised; or a function of the request that returns any of these. A function in place of the script
    answers every request. ``usage`` is that of each response. In a stream, ``cut`` splits texts into deltas, by default into
    words. ``requests`` holds every request in order, also those of copies. Raises ``ConfigurationError`` when the script
    has no item left.

    >>> from sigwire.core.messages import Message
    >>> lm = FakeLM(["Hello", ToolCall("call_0", "add", {"a": 1})])
    >>> lm("Hi")
    ['Hello']
    >>> lm.respond(Request((Message.user("Go on"),))).choices[0].tool_calls[0].name
    'add'
    >>> len(lm.requests), lm.requests[0].messages[-1].text
    (2, 'Hi')
    """

    fixed_methods: ClassVar[Mapping[str, str]] = {"default_capabilities": "pass capabilities=Capabilities(...)"}

    def __init__(
        self,
        answers: Iterable[Answer] | Callable[[Request], Answer] | str = (),
        *,
        model: str = "fake",
        capabilities: Capabilities | None = None,
        usage: Usage | None = None,
        adapter: object = None,
        cut: Cut = by_word,
        **kwargs: Any,
    ) -> None:
        default = Capabilities(native_tools=True, parallel_tool_calls=True, tool_choice=True)
        super().__init__(model, capabilities=capabilities or default, **kwargs)
        self.check_options(self.kwargs, f"making a {type(self).__name__}")
        self.requests: list[Request] = []
        self.usage = usage or Usage()
        self.cut = cut
        self._format = _field_format(adapter)
        self._queue, self._next_answer = _script([answers] if isinstance(answers, str) else answers)

    @property
    def remaining(self) -> int | None:
        """The number of scripted answers left; ``None`` if the script is a function or an iterator."""
        return len(self._queue) if self._queue is not None else None

    def check_options(self, options: Iterable[str], stage: str = "calling the model") -> None:
        """Raise ``UnsupportedOption`` for a name that no wire knows."""
        own = self.own_options | {"evidence"} if self.capabilities.decides == "also" else self.own_options
        if unknown := {*options} - OPTION_NAMES - own:
            settings = [*(FakeLM.__init__.__kwdefaults__ or ()), *(BaseLM.__init__.__kwdefaults__ or ())]
            hint = suggest(min(unknown), [*OPTION_NAMES, *settings])
            raise UnsupportedOption(
                provider=type(self).__name__, option=min(unknown), known=sorted(OPTION_NAMES), stage=stage, hint=hint
            )

    def _answer(self, request: Request) -> Response:
        if request.options:
            self.check_options(request.options)
        self.requests.append(request)
        wanted = int(cast(Any, request.options.get("n")) or 1)
        choices: list[Choice] = []
        while len(choices) < wanted:
            answer = self._resolve(self._next(request), request)
            if isinstance(answer, Response):
                return answer if answer.model else replace(answer, model=self.model)
            choices.extend(answer)
        return Response(tuple(choices), self.usage, self.model)

    def _steps(self, request: Request, *, streamed: bool) -> Steps[Response]:
        budgets = open_budgets()
        if not budgets:
            return self._scripted_steps(request, streamed)
        from sigwire.lm.policy.money.leases import money_layers  # only budgets need it

        call = Call(request, TargetKey("fake", None, None, self.model), streamed=streamed)
        layers = money_layers(budgets, None, self.capabilities.max_output_tokens, None)
        return through(layers, call, partial(self._scripted_steps, request, streamed, call))

    def _scripted_steps(self, request: Request, streamed: bool, call: Call | None = None) -> Steps[Response]:
        if call is not None:
            call.begin(in_process=True)
        try:
            response = self._answer(request)
        except LMError as error:  # a script may have one exception several times: what a run set on it is removed
            error.__dict__.pop("call_report", None)
            error.attempts = (Attempt(model=self.model, error=error.code),)
            raise
        if streamed:
            for event in events_of(response, self.cut):
                yield Emit(event)
        return response

    def _next(self, request: Request) -> Answer:
        try:
            return self._next_answer(request)
        except (IndexError, StopIteration):
            last = request.messages[-1].text if request.messages else ""
            raise ConfigurationError(
                f"{type(self).__name__} has no answer left (request {len(self.requests)} of the test, which ends with "
                f"{last[-120:]!r}). Script one more answer, or find out why the program calls the model again."
            ) from None

    def _resolve(self, answer: object, request: Request) -> Sequence[Choice] | Response:
        if isinstance(answer, Response):
            return answer
        if _is_error(answer):
            raise cast(BaseException, answer)
        if callable(answer):
            return self._resolve(answer(request), request)
        if isinstance(answer, (list, tuple)):
            answer = cast("Sequence[object]", answer)
            if answer and not _are_calls(answer):
                return [choice for item in answer for choice in _choices(self._resolve(item, request))]
        return (self._choice(answer),)

    def _choice(self, answer: object) -> Choice:
        if isinstance(answer, Choice):
            return answer
        if isinstance(answer, str):
            return Choice(answer)
        if isinstance(answer, Mapping):
            return self._fields_choice(cast("Mapping[str, object]", answer))
        if isinstance(answer, (ToolCall, ToolCalls, list, tuple)):
            calls = ToolCalls([answer] if isinstance(answer, ToolCall) else cast("Iterable[ToolCall]", answer))
            text = answer.text if isinstance(answer, ToolCalls) else ""
            return Choice(text, number_calls(calls), finish_reason="tool_calls")
        raise ConfigurationError(
            f"{type(self).__name__} cannot answer with {type(answer).__name__} (reading the script). "
            "Use a text, a dict of fields, tool calls, a Choice, a Response, an exception or a function of the request."
        )

    def _fields_choice(self, fields: Mapping[str, object]) -> Choice:
        called = {name: value for name, value in fields.items() if isinstance(value, ToolCalls)}
        if not called:
            return Choice(self._format(fields))
        rest = {name: value for name, value in fields.items() if name not in called}
        text = self._format(rest) if rest else "\n".join(calls.text for calls in called.values())
        calls = number_calls(chain.from_iterable(called.values()))
        return Choice(text, calls, finish_reason="tool_calls" if calls else "stop")


_Next: TypeAlias = Callable[[Request], Answer]


def _script(answers: Iterable[Answer] | _Next) -> tuple[deque[Answer] | None, _Next]:
    if isinstance(answers, (list, tuple)):
        queue = deque(cast("Sequence[Answer]", answers))
        return queue, lambda request: queue.popleft()
    if callable(answers):
        return None, answers
    endless = iter(answers)
    return None, lambda request: next(endless)


def _is_error(answer: object) -> bool:
    return isinstance(answer, BaseException) or (isinstance(answer, type) and issubclass(answer, BaseException))


def _choices(answer: Sequence[Choice] | Response) -> Sequence[Choice]:
    return answer.choices if isinstance(answer, Response) else answer


def _are_calls(items: Sequence[object]) -> bool:
    return bool(items) and all(
        isinstance(item, ToolCall)
        or (
            isinstance(item, Mapping)
            and ("function" in item or {"name", "args"} <= item.keys() or {"name", "arguments"} <= item.keys())
        )
        for item in items
    )


_FieldFormat: TypeAlias = Callable[[Mapping[str, object]], str]


def _chat(fields: Mapping[str, object]) -> str:
    sections = [f"[[ ## {name} ## ]]\n{_text(value)}" for name, value in fields.items()]
    return "\n\n".join([*sections, "[[ ## completed ## ]]\n"])


# By class name: lm does not import adapters.
_FORMATS: Mapping[str, _FieldFormat] = {
    "JSONAdapter": lambda fields: dumps({name: _to_plain(value) for name, value in fields.items()}),
    "XMLAdapter": lambda fields: "\n".join(f"<{name}>\n{_text(value)}\n</{name}>" for name, value in fields.items()),
}


def _field_format(adapter: object) -> _FieldFormat:
    custom: _FieldFormat | None = getattr(adapter, "format_outputs", None)
    return custom or next((_FORMATS[c.__name__] for c in type(adapter).__mro__ if c.__name__ in _FORMATS), _chat)


def _text(value: object) -> str:
    plain = _to_plain(value)
    return plain if isinstance(plain, str) else dumps(plain)


def _to_plain(value: object) -> object:
    if isinstance(value, str):
        return value
    from pydantic_core import to_jsonable_python  # late: only values that are no text need it

    plain: object = to_jsonable_python(value)
    return plain
