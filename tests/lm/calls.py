"""Helpers of the tests of models over HTTP: a request, a blocking or awaited call, retries without waits."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from sigwire.core.events import StreamEvent
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Response
from sigwire.lm.client import LM
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.lm.providers.registry import PROVIDERS
from tests.lm.policy.test_retry import Clock

__all__ = ["HELLO", "HOWS", "KEY", "TOOL", "WITH_TOOLS", "Clock", "ask", "forget_keys", "patient", "stream"]

KEY = "sk-canary-7Kq"
HELLO = Request((Message.user("hello"),))
QUESTION = Request(
    HELLO.messages,
    response_format=ResponseFormat(
        {"type": "object", "properties": {"urgent": {"type": "boolean"}}, "required": ["urgent"]}
    ),
)
"""A request that every model may get, those that decide only too."""
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
WITH_TOOLS = replace(HELLO, tools=(TOOL,))
HOWS = pytest.mark.parametrize("how", ["blocking", "awaited"])


async def ask(how: str, lm: LM, request: Request = HELLO) -> Response:
    return lm.respond(request) if how == "blocking" else await lm.arespond(request)


async def stream(how: str, lm: LM, request: Request = HELLO) -> list[StreamEvent]:
    return list(lm.stream(request)) if how == "blocking" else [event async for event in lm.astream(request)]


def patient(clock: Clock | None = None, retries: int = 3) -> RetryPolicy:
    return RetryPolicy(retries, clock=clock or Clock(), random=lambda: 0.0)


def forget_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own keys and addresses take no part."""
    for row in PROVIDERS.values():
        variables = [value for variable in row.variables.values() for value in variable.variables]
        keys = [key.variable for key in row.keys]
        for name in (*keys, *row.base_variables, *row.header_variables.values(), *variables):
            monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
