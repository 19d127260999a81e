"""The LiteLLM backend: the release, the connection options, and answers of the real package to its mock requests.

Tests of the real package are skipped with a message if it is not installed.
"""

from __future__ import annotations

import copy
import importlib.metadata
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.effects.steps import arun, run
from sigwire.errors import (
    ConfigurationError,
    ContextWindowExceededError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMUnsupportedModelError,
)
from sigwire.lm.litellm import backend, tables
from sigwire.lm.litellm.backend import LiteLLM, check_release, connect
from sigwire.lm.litellm.codec import translate_error
from sigwire.lm.policy.call import Call, TargetKey
from sigwire.lm.providers.connection import ConnectionOptions
from tests.lm.litellm.test_codec import (
    ASKED,
    ASSISTANT,
    BLOCKS,
    CALL,
    SECOND,
    TOOL,
    USED,
    WIRE_ANSWERED,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_SECOND,
    encoded,
    features,
    made,
    target,
    thought,
)
from tests.lm.litellm.test_codec import answer as wire_answer
from tests.lm.replies import Double

# LiteLLM builds its pydantic models on first use.
pytestmark = pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class:UserWarning")


def new_call(request: Request) -> Call:
    return Call(request, TargetKey("litellm", None, None, "litellm/m"))


def answer(lm: LiteLLM, request: Request) -> Response:
    return run(lm.answer(new_call(request)))


async def aanswer(lm: LiteLLM, request: Request) -> Response:
    return await arun(lm.answer(new_call(request)))


def test_rows_1_to_4_url_and_key_are_arguments_when_given() -> None:
    sent = encoded(Request((ASKED,), options={"extra_headers": {"X-B": "2"}}))[1]
    connection = ConnectionOptions(api_key="k", base_url="https://x/v1", headers={"X-A": "1"})
    assert LiteLLM("acme/m", connection)._endpoint_arguments(sent) == {
        "api_key": "k",
        "api_base": "https://x/v1",
        "extra_headers": {"X-A": "1", "X-B": "2"},
    }
    assert LiteLLM("acme/m", ConnectionOptions(api_key=lambda: "new"))._endpoint_arguments(
        encoded(Request((ASKED,)))[1]
    ) == {"api_key": "new"}
    assert LiteLLM("acme/m", ConnectionOptions())._endpoint_arguments(encoded(Request((ASKED,)))[1]) == {}


def test_environment_key_is_not_sent_to_a_given_base_url() -> None:
    way = LiteLLM("groq/m", ConnectionOptions(base_url="https://elsewhere/v1"))._endpoint_arguments(
        encoded(Request((ASKED,)))[1]
    )
    assert way == {"api_base": "https://elsewhere/v1", "api_key": "not-given"}
    error = translate_error(made("AuthenticationError", 401), target(), way)
    assert "base_url may be a foreign host. Pass api_key" in str(error)


# --- the package ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["1.82.7", "1.82.8"])
def test_tampered_release_is_refused_before_its_import(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: release)
    backend._load.cache_clear()
    for refused in (check_release, backend._load, lambda: connect("acme/m", ConnectionOptions())):
        with pytest.raises(ConfigurationError, match=f"{release}.*steals credentials.*replace every key"):
            refused()


def test_missing_package_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ConfigurationError, match=r'pip install "sigwire\[litellm\]"'):
        connect("acme/m", ConnectionOptions())


@pytest.mark.parametrize(("setting", "value"), [("transport", Double()), ("wire", "x")])
def test_transport_and_wire_are_refused(setting: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")
    given: Any = {setting: value}
    with pytest.raises(ConfigurationError, match=f"does not support {setting}="):
        connect("acme/m", ConnectionOptions(**given))


def test_litellm_is_not_imported_before_the_first_call() -> None:
    script = """
import importlib.metadata, sys
importlib.metadata.version = lambda name: "9.9"
from sigwire.lm.litellm.backend import connect
from sigwire.lm.litellm.codec import encode_call, target_for
from sigwire.lm.providers.connection import ConnectionOptions
from sigwire.core.request import Request
connect("acme/m", ConnectionOptions())
encode_call(Request(), target_for("acme/m", None))
assert not {"litellm", "openai", "httpx"} & sys.modules.keys()
"""
    root = Path(__file__).resolve().parents[3]
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root)


# --- the real package, with its own mock answers ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def theirs() -> Any:
    try:
        check_release()
    except ConfigurationError as error:
        pytest.skip(str(error))
    return backend._load()


def mocked(reply: Any, *messages: Message, **rest: Any) -> Request:
    """A request that LiteLLM answers by itself."""
    options = {**rest.pop("options", {}), "extra_body": {"mock_response": reply}}
    return Request(messages or (ASKED,), options=options, **rest)


ANSWER = wire_answer(
    {"content": "Hi", "reasoning_content": "hm", **BLOCKS, "tool_calls": [{**WIRE_CALL, "index": 2}, WIRE_SECOND]},
    "tool_calls",
)


def check_answer(response: Response) -> None:
    (choice,) = response.choices
    assert choice.tool_calls == (CALL, SECOND)
    assert (choice.text, choice.reasoning, choice.finish_reason) == ("Hi", "hm", "tool_calls")
    assert choice.parts == (
        thought("anthropic"),
        OpaquePart("litellm/anthropic", BLOCKS),
        TextPart("Hi"),
        CALL,
        SECOND,
    )
    assert (response.id, response.model, response.usage) == ("r1", "m-1", USED)
    assert isinstance(response.raw, dict)
    assert response.raw["id"] == "r1"


@pytest.mark.long  # importing the package takes seconds
def test_package_answers_with_calls(theirs: Any) -> None:
    lm = connect("anthropic/claude-x", ConnectionOptions(api_key="k"))
    check_answer(answer(lm, mocked(ANSWER, tools=(TOOL,), tool_choice=ToolChoice.REQUIRED)))


@pytest.mark.long  # importing the package takes seconds
async def test_package_answers_with_calls_awaited(theirs: Any) -> None:
    lm = connect("anthropic/claude-x", ConnectionOptions(api_key="k"))
    check_answer(await aanswer(lm, mocked(ANSWER, tools=(TOOL,), tool_choice=ToolChoice.REQUIRED)))


@pytest.mark.long  # the import of the package takes 5 s
def test_package_accepts_a_whole_conversation(theirs: Any) -> None:
    lm = connect("anthropic/claude-x", ConnectionOptions(api_key="k"))
    turn = answer(lm, mocked(ANSWER, tools=(TOOL,))).choices[0].message()
    results = Message.tool(ToolResult("c1", "f", "ok"), ToolResult("c2", "f", "boom", is_error=True))
    response = answer(
        lm, mocked("done", Message.system("S"), ASKED, turn, results, tools=(TOOL,), options={"max_tokens": 9})
    )
    assert [(choice.text, choice.finish_reason) for choice in response.choices] == [("done", "stop")]
    assert response.usage.input_tokens is not None


@pytest.mark.long  # the import of the package takes 5 s
async def test_row_43_choices_are_requested_one_by_one(theirs: Any) -> None:
    lm = connect("anthropic/claude-x", ConnectionOptions(api_key="k"))
    request = mocked("Hi", options={"n": 2})
    for response in (answer(lm, request), await aanswer(lm, request)):
        assert [choice.text for choice in response.choices] == ["Hi", "Hi"]
        assert features(response.warnings) == ["n"]
    at_once = answer(connect("openai/gpt-4o", ConnectionOptions(api_key="k")), request)
    assert [choice.text for choice in at_once.choices] == ["Hi", "Hi"]
    assert at_once.warnings == ()


@pytest.mark.long  # the import of the package takes 5 s
async def test_timeout_covers_the_whole_request(theirs: Any) -> None:
    lm = connect("anthropic/claude-x", ConnectionOptions(api_key="k", timeout=0.05))
    late: Any = {"mock_response": "Hi", "mock_delay": 9}
    with pytest.raises(LMTimeoutError, match="in time"):
        await aanswer(lm, Request((ASKED,), options={"extra_body": late}))


MOCKED_ERRORS = {
    "litellm.RateLimitError": LMRateLimitError,
    "litellm.ContextWindowExceededError": ContextWindowExceededError,
    "litellm.InternalServerError": LMServerError,
}


@pytest.mark.long  # the import of the package takes 5 s
@pytest.mark.parametrize(("word", "kind"), MOCKED_ERRORS.items(), ids=MOCKED_ERRORS)
async def test_package_errors_become_lm_errors(theirs: Any, word: str, kind: type[LMError]) -> None:
    lm = connect("groq/m", ConnectionOptions(api_key="k"))
    with pytest.raises(LMError, match="this is a mock") as caught:
        answer(lm, mocked(word))
    assert type(caught.value) is kind
    assert caught.value.__suppress_context__
    with pytest.raises(kind):
        await aanswer(lm, mocked(word))


@pytest.mark.long  # the import of the package takes 5 s
def test_row_74_unknown_provider_is_named(theirs: Any) -> None:
    message = "^The provider 'nobody' is unknown to sigwire and to LiteLLM. Check the spelling of 'nobody/m'"
    with pytest.raises(LMUnsupportedModelError, match=message):
        answer(connect("nobody/m", ConnectionOptions(api_key="k")), mocked("Hi"))


@pytest.mark.long  # the import of the package takes 5 s
def test_refused_option_error_names_drop_params(theirs: Any) -> None:
    request = mocked("Hi")
    extra: Any = {"mock_response": "Hi", "logit_bias": {"5": 1}}
    with pytest.raises(LMInvalidRequestError, match=r"does not support.*drop_params"):
        answer(
            connect("anthropic/claude-x", ConnectionOptions(api_key="k")),
            replace(request, options={"extra_body": extra}),
        )


@pytest.mark.long  # the import of the package takes 5 s
def test_every_exception_of_the_package_has_a_rule(theirs: Any) -> None:
    known = {code for rule in tables.ERRORS for code in rule.codes}
    missing = {
        name
        for name, value in vars(theirs.exceptions).items()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == "litellm.exceptions"
        if not known & {cls.__name__.lower() for cls in value.__mro__}
    }
    assert missing <= NO_PROVIDER_FAILED, missing


NO_PROVIDER_FAILED = {
    "BlockedPiiEntityError",
    "GuardrailRaisedException",
    "ModelNotMappedError",
    "ModifyResponseException",
    "OpenAIError",
    "SensitiveDataRouteException",
}
"""Exceptions of LiteLLM's own proxy and guards, which a call without them does not raise."""


@pytest.mark.long  # the import of the package takes 5 s
def test_import_of_the_package_sets_its_flags_and_restores_the_environment(
    theirs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    assert theirs.suppress_debug_info is True
    assert theirs.telemetry is False
    assert os.environ.get("LITELLM_LOCAL_MODEL_COST_MAP") is None
    for model, missing in (("anthropic/claude-x", "n"), ("ollama_chat/x", "parallel_tool_calls")):
        assert missing not in theirs.get_supported_openai_params(model)


@pytest.mark.long  # the import of the package takes 5 s
@pytest.mark.parametrize("message", [WIRE_ASKED, ASSISTANT, WIRE_ANSWERED], ids=["user", "assistant", "tool"])
def test_package_accepts_the_encoded_messages(theirs: Any, message: JsonObject) -> None:
    fixed = theirs.utils.validate_and_fix_openai_messages([copy.deepcopy(message)])
    assert {name: fixed[0].get(name) for name in message} == message
