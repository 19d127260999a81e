"""The shared parts of behaviours: the registry, scripted models, and the runner of one behaviour.

A behaviour is a function that asserts one public behaviour of DSPy in words of this project. It imports ``dspy``, which is
DSPy or, behind the import hook of ``tests/dspy/suite``, the door.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import inspect
import io
import logging
import pathlib
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import dspy

ON_DSPY = dspy.__name__ == "dspy"

BEHAVIOURS: dict[str, Callable[..., Any]] = {}
"""The behaviours by name, ``file/function``."""


def behaviour(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a behaviour under the name of its file and its own."""
    name = f"{function.__module__.rpartition('.')[2]}/{function.__name__}"
    assert name not in BEHAVIOURS, f"two behaviours {name}"
    BEHAVIOURS[name] = function
    return function


def failure_of(name: str) -> str:
    """Run one behaviour; return "" if it holds, else the error in one line. Settings are as before after it."""
    function = BEHAVIOURS[name]
    before = dict(dspy.settings.copy())
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with tempfile.TemporaryDirectory() as folder:
                given = {"tmp": pathlib.Path(folder)} if "tmp" in inspect.signature(function).parameters else {}
                result = function(**given)
                if inspect.iscoroutine(result):
                    asyncio.run(result)
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        finally:
            dspy.configure(**{key: value for key, value in before.items() if dspy.settings.get(key) is not value})
    return ""


def sub(path: str) -> Any:
    """Return the module ``dspy.path``."""
    return importlib.import_module(f"dspy.{path}")


class raises:  # noqa: N801
    """Assert that the block raises one of the classes, with a text that ``match`` finds; ``value`` is the error."""

    def __init__(self, *kinds: type[BaseException], match: str = "") -> None:
        self.kinds, self.match = kinds, match

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        assert error is not None, f"none of {self.kinds} was raised"
        if not isinstance(error, self.kinds):
            return False
        assert re.search(self.match, str(error)), f"the text {str(error)!r} has no {self.match!r}"
        self.value = error
        return True


class _Notes(logging.Handler):
    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self.texts = texts

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextlib.contextmanager
def notes() -> Iterator[list[str]]:
    """Collect the texts of warnings and log records of the block."""
    texts: list[str] = []
    handler = _Notes(texts)
    loggers = [logging.getLogger(name) for name in ("dspy", "sigwire")]
    for logger in loggers:
        logger.addHandler(handler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield texts
        finally:
            for logger in loggers:
                logger.removeHandler(handler)
            texts += [str(warning.message) for warning in caught]


def mismatch(texts: list[str]) -> bool:
    """Return True if a text reports that an input does not fit its type."""
    return any("ismatch" in text or "does not fit" in text for text in texts)


def message(content: str | None = None, calls: Any = None, **more: Any) -> SimpleNamespace:
    """Return a message of a chat completion."""
    reasoning = more.pop("reasoning", None)
    return SimpleNamespace(content=content, tool_calls=calls, reasoning_content=reasoning, **more)


def call(name: str, args: str, id: str = "call_1") -> SimpleNamespace:
    """Return a tool call of a chat completion."""
    return SimpleNamespace(id=id, type="function", function=SimpleNamespace(name=name, arguments=args))


def text_of(content: Any) -> str:
    """Return the text of a message's content, a string or parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def count_parts(value: Any, kind: str) -> int:
    """Return how many dicts of type ``kind`` are inside a value."""
    if isinstance(value, dict):
        return (value.get("type") == kind) + sum(count_parts(each, kind) for each in value.values())
    return sum(count_parts(each, kind) for each in value) if isinstance(value, list | tuple) else 0


class Scripted(dspy.BaseLM):  # type: ignore[misc]
    """A model that returns the given texts, messages or errors in order, the last again; ``seen`` has what it got."""

    def __init__(self, *replies: Any, native: bool = False, reasons: bool = False, schema: bool = False, **more: Any):
        params = set(more.pop("params", ()))
        super().__init__(more.pop("model", "openai/scripted"), cache=False, **more)
        self.replies, self.seen = list(replies), []
        self.native, self.reasons, self.schema, self.params = native, reasons, schema, params

    @property
    def supports_function_calling(self) -> bool:
        return self.native

    @property
    def supports_reasoning(self) -> bool:
        return self.reasons

    @property
    def supports_response_schema(self) -> bool:
        return self.schema

    @property
    def supported_params(self) -> set[str]:
        return self.params

    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> SimpleNamespace:
        self.seen.append((messages, kwargs))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        written = message(reply) if isinstance(reply, str) or reply is None else reply
        end = "tool_calls" if written.tool_calls else "stop"
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        choice = SimpleNamespace(message=written, finish_reason=end, index=0)
        return SimpleNamespace(choices=[choice], usage=usage, model=self.model)

    async def aforward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> SimpleNamespace:
        return self.forward(prompt, messages, **kwargs)


_providers = contextlib.ExitStack()
close_providers = _providers.close


@functools.cache
def streaming_address() -> str:
    """Return the address of a provider that streams fields in small chunks; it runs until ``close_providers``."""
    from sigwire.testing import FakeProvider
    from sigwire.testing.answers import Streamed

    return _providers.enter_context(FakeProvider(_written, streamed=Streamed(cut=4))).url("openai")


def _written(request: Any) -> str:
    import json

    text = "\n".join(each.text for each in request.messages)
    fields = {"answer": "To get to the other side of the pan!"}
    if "judgement" in text:
        fields = {"judgement": "It is a good answer."}
    if "reasoning" in text:
        fields = {"reasoning": "Think a bit.", **fields}
    if "JSON" in text and "[[ ## completed ## ]]" not in text:
        return json.dumps(fields)
    if "<answer>" in text or "<judgement>" in text:
        return "\n".join(f"<{name}>\n{value}\n</{name}>" for name, value in fields.items())
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()) + "\n\n[[ ## completed ## ]]"
