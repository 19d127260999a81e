"""The four ways to run a module: called, awaited, streamed, streamed and awaited. A test takes ``way`` as a parameter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["in_every_way"]


def called(module: Any, /, **inputs: Any) -> Any:
    return module(**inputs)


def awaited(module: Any, /, **inputs: Any) -> Any:
    return asyncio.run(module.acall(**inputs))


def streamed(module: Any, /, **inputs: Any) -> Any:
    events = module.stream(**inputs)
    list(events)
    return events.value


def streamed_and_awaited(module: Any, /, **inputs: Any) -> Any:
    async def read() -> Any:
        events = module.astream(**inputs)
        async for _ in events:
            pass
        return events.value

    return asyncio.run(read())


_WAYS: list[Callable[..., Any]] = [called, awaited, streamed, streamed_and_awaited]
in_every_way = pytest.mark.parametrize("way", _WAYS, ids=lambda way: way.__name__)
