"""Calls of the methods that a subclass of a model overrides. ``super()`` inside such a call answers for the model.

``__call__`` returns texts, which are only a part of a response: the call keeps the responses of ``super()``, with their usage
and metadata.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeAlias

from sigwire.core.request import Request
from sigwire.core.response import Response, Usage
from sigwire.dspy.models.answers import decode_answer
from sigwire.effects.loops import block_on_result, to_thread
from sigwire.lm.openai_dicts import encode_call, encode_outputs

__all__ = ["ENTRIES", "Entry", "OverriddenCall", "running_call"]

Entry: TypeAlias = tuple[str, str]
ENTRIES: tuple[Entry, ...] = (("__call__", "acall"), ("forward", "aforward"))
"""The methods that a subclass may override, blocking and awaited; the outer entry first."""


class OverriddenCall:
    """One call of an entry that a subclass overrides. ``super()`` inside of it adds the model's responses."""

    def __init__(self, lm: Any, entry: Entry, overrides: frozenset[str], request: Request) -> None:
        self.lm, self._entry, self._overrides = lm, entry, overrides
        self._messages, self._kwargs = encode_call(request)
        self._kept: list[tuple[list[Any], Response]] = []

    def run(self) -> Response:
        blocking, awaited = self._entry
        with self._running():
            answer = self._call(blocking if blocking in self._overrides else awaited)
            return self._response(block_on_result(answer))

    async def arun(self) -> Response:
        blocking, awaited = self._entry
        with self._running():
            is_blocking = awaited not in self._overrides
            answer = await to_thread(self._call, blocking) if is_blocking else self._call(awaited)
            return self._response(await answer if inspect.isawaitable(answer) else answer)

    def _call(self, name: str) -> Any:
        return getattr(self.lm, name)(messages=self._messages, **self._kwargs)

    @contextmanager
    def _running(self) -> Generator[None]:
        token = running_call.set(self if "__call__" in self._entry else None)
        try:
            yield
        finally:
            running_call.reset(token)

    def keep(self, response: Response) -> list[Any]:
        """Return the outputs of a response, which is kept until the call returns: outputs are only a part of it."""
        self._kept.append((encode_outputs(response), response))
        return self._kept[-1][0]

    def _response(self, answer: object) -> Response:
        decoded = next((response for outputs, response in self._kept if outputs is answer), None)
        decoded = decoded or decode_answer(answer, model=self.lm.model)
        if not self._kept:
            return decoded
        return replace(decoded, usage=sum((response.usage for _, response in self._kept), Usage()))


running_call: ContextVar[OverriddenCall | None] = ContextVar("sigwire_overridden_call", default=None)
