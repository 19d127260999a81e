"""Call a program in each of its four ways."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["MODES", "called", "events", "size_of"]

MODES = ["sync", "async", "stream", "astream"]


def called(mode: str, program: Any, **inputs: Any) -> Any:
    """Return the result of a call. Raises its error."""
    if mode == "sync":
        return program(**inputs)
    if mode == "async":
        return asyncio.run(program.acall(**inputs))
    return events(mode, program, **inputs)[-1].value


def events(mode: str, program: Any, **inputs: Any) -> list[Any]:
    async def collected() -> list[Any]:
        return [event async for event in program.astream(**inputs)]

    return asyncio.run(collected()) if mode == "astream" else list(program.stream(**inputs))


def size_of(request: Any) -> int:
    """Return the characters of all messages of a request."""
    return sum(len(message.text) for message in request.messages)
