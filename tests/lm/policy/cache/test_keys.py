"""Keys of requests: equal requests have equal keys, and every change that a provider sees gives another key."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, TextPart
from sigwire.core.request import MemoTuple, Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.choice import ToolChoice
from sigwire.lm.client import LM
from sigwire.lm.policy.cache.keys import canonical_bytes, changes_with_time, plain_headers, request_key
from tests.strategies import any_text, requests

MODEL = b'["model"]'
HELLO = Request((Message.user("hello"),))
SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}


def key(request: Request, rollout_id: object = None) -> bytes:
    found = request_key(MODEL, request, rollout_id)
    assert found is not None
    assert len(found) == 32
    return found


def canonical(request: Request) -> str:
    """The request as the key should see it, by the standard library: numbers as floats, options sorted."""

    def plain(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            if isinstance(value, dict):
                return {name: plain(item) for name, item in value.items()}
            return [plain(item) for item in value] if isinstance(value, list | tuple) else value
        return str(int(value)) if float(value).is_integer() else value

    data = {"tool_choice": None, "parallel_tool_calls": None, "response_format": None, **request.to_json()}
    data.pop("repeated", None)
    options = {n: v for n, v in request.options.items() if v is not None and n not in ("prompt_cache", "service_tier")}
    return json.dumps(plain({**data, "options": dict(sorted(options.items()))}), sort_keys=False)


@given(requests)
def test_key_is_stable_over_copies(request: Request) -> None:
    copied = Request.from_json(json.loads(json.dumps(request.to_json())))
    assert key(copied) == key(request) == key(replace(request, tools=MemoTuple(request.tools), repeated=(1,)))


@given(requests, requests)
def test_keys_are_equal_only_for_requests_of_equal_content(first: Request, second: Request) -> None:
    assert (key(first) == key(second)) == (canonical(first) == canonical(second))


CHANGES = [
    replace(HELLO, messages=(Message.user("hello "),)),
    replace(HELLO, messages=(Message.system("hello"),)),
    replace(HELLO, messages=(Message("user", (TextPart("hel"), TextPart("lo"))),)),
    replace(HELLO, messages=(Message.user("hello"), Message.user("hello"))),
    replace(HELLO, messages=(Message("user", (TextPart("hello"), ImagePart(data="aGk=", media_type="image/png"))),)),
    replace(HELLO, messages=(Message("user", (TextPart("hello"), ImagePart(data="aGo=", media_type="image/png"))),)),
    replace(HELLO, messages=(Message.assistant("hello", [ToolCall("call_0", "f", {"a": 1})]),)),
    replace(HELLO, messages=(Message.assistant("hello", [ToolCall("call_0", "f", {"a": True})]),)),
    replace(HELLO, tools=(TOOL,)),
    replace(HELLO, tools=({"type": "function", "function": {"name": "g", "parameters": SCHEMA}},)),
    replace(HELLO, tool_choice=ToolChoice.REQUIRED),
    replace(HELLO, tool_choice=ToolChoice.AUTO),
    replace(HELLO, parallel_tool_calls=False),
    replace(HELLO, response_format=ResponseFormat()),
    replace(HELLO, response_format=ResponseFormat(SCHEMA)),
    replace(HELLO, response_format=ResponseFormat(SCHEMA, required=True)),
    replace(HELLO, options={"temperature": 0.0}),
    replace(HELLO, options={"temperature": 0.5}),
    replace(HELLO, options={"seed": 0}),
    replace(HELLO, options={"seed": False}),
    replace(HELLO, options={"seed": 1}),
    replace(HELLO, options={"seed": True}),
    replace(HELLO, options={"stop": ["a", 1]}),
    replace(HELLO, options={"stop": ["a", True]}),
    replace(HELLO, messages=(Message.user("hello" * 1000),)),
    replace(HELLO, messages=(Message.user("hello" * 1001),)),
    replace(HELLO, messages=(Message.user("hello" * 1000), Message.user("hello"))),
    replace(HELLO, options={"extra_body": {"a": 1}}),
    replace(HELLO, options={"extra_body": {"a": "1"}}),
    replace(HELLO, options={"extra_headers": {"anthropic-beta": "context-1m"}}),
]


def test_every_change_of_content_gives_another_key() -> None:
    assert len({key(HELLO), *map(key, CHANGES)}) == len(CHANGES) + 1


@pytest.mark.parametrize(
    "options",
    [
        {"prompt_cache": {"ttl": "1h"}},
        {"service_tier": "flex"},
        {"temperature": None},
        {"extra_headers": {"Traceparent": "00-1", "authorization": "Bearer k", "x-request-id": "1"}},
    ],
)
def test_options_that_change_no_answer_have_no_part_in_the_key(options: dict[str, Any]) -> None:
    extra = {} if "extra_headers" not in options else {"extra_headers": {}}
    assert key(replace(HELLO, options=options)) == key(replace(HELLO, options=extra))


def test_options_are_sorted_and_dicts_of_schemas_keep_their_order() -> None:
    first, second = ({"seed": 1, "top_p": 0.5}, {"top_p": 0.5, "seed": 1.0})
    assert key(replace(HELLO, options=first)) == key(replace(HELLO, options=second))
    turned: JsonObject = {**SCHEMA, "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}
    assert key(replace(HELLO, response_format=ResponseFormat(turned))) != key(
        replace(HELLO, response_format=ResponseFormat(SCHEMA))
    )


NUMBERS = st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, 0.5, 1e21, 10**21, 1e300]) | st.floats(-3, 3)


@given(NUMBERS, NUMBERS)
def test_equal_numbers_are_one_number(first: float, second: float) -> None:
    assert (canonical_bytes([first]) == canonical_bytes([second])) == (first == second)


@given(any_text, any_text)
def test_any_text_has_a_key_of_its_own(first: str, second: str) -> None:
    texts = [Request((Message.user(text),)) for text in (first, second)]
    assert (key(texts[0]) == key(texts[1])) == (first == second)


@given(st.lists(st.sampled_from(["a", "b", "a" * 5000]).map(Message.user), max_size=3), st.integers(0, 3))
def test_messages_at_any_place_have_a_part_in_the_key(messages: list[Message], at: int) -> None:
    whole, cut = Request(tuple(messages)), Request((*messages[:at], *messages[at + 1 :]))
    assert (key(whole) == key(cut)) == (whole == cut)


def _deep() -> Any:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), print, object(), {1: 2}, b"bytes", _deep()],
    ids=lambda value: type(value).__name__,
)
def test_request_without_canonical_form_has_no_key(value: Any) -> None:
    assert request_key(MODEL, replace(HELLO, options={"extra_body": {"a": value}})) is None
    assert request_key(MODEL, Request((Message.assistant("", [ToolCall("c", "f", {"a": value})]),))) is None
    assert request_key(MODEL, HELLO, rollout_id=value) is None
    assert request_key(MODEL, replace(HELLO, options={"seed": value})) is None


def test_rollout_id_and_model_give_other_keys() -> None:
    keys = {key(HELLO), key(HELLO, 0), key(HELLO, 1), key(HELLO, "1"), request_key(b'["other"]', HELLO)}
    assert len(keys) == 5
    assert key(HELLO, 1) == key(HELLO, 1.0)


@pytest.mark.parametrize(
    "request_",
    [
        replace(HELLO, tools=({"type": "web_search"},)),
        replace(HELLO, options={"extra_body": {"previous_response_id": "r1"}}),
        replace(HELLO, options={"extra_body": {"web_search_options": {}}}),
    ],
)
def test_answers_that_change_with_time_are_known(request_: Request) -> None:
    assert changes_with_time(request_)
    assert not changes_with_time(replace(HELLO, tools=(TOOL,)))


def test_headers_that_are_secret_or_trace_have_no_part() -> None:
    headers = {"X-Team": "a", "x-api-key": "k", "Authorization": "Bearer k", "baggage": "b", "x-tenant": "sk-1"}
    assert plain_headers(headers) == {"x-team": "a"}


# --- the identity of a model -------------------------------------------------------------------------


def identity(lm: LM, request: Request = HELLO) -> bytes:
    found: bytes = lm._backend.identity(request)  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(
    "changed",
    [
        {"base_url": "https://other.example/v1"},
        {"base_url": "https://llm.example/v2"},
        {"headers": {"openai-beta": "b"}},
        {"wire": "responses"},
        {"model": "openai/gpt-4o"},
        {"capabilities": replace(LM("openai/gpt-4o-mini").capabilities, images=False)},
    ],
)
def test_identity_differs_by_whatever_decides_an_answer(changed: dict[str, Any]) -> None:
    lm = LM("openai/gpt-4o-mini", base_url="https://llm.example/v1", api_key="k")
    assert identity(lm.copy(**changed)) != identity(lm)


def test_identity_has_no_key_user_query_or_timeout() -> None:
    lm = LM("openai/gpt-4o-mini", base_url="https://llm.example/v1", api_key="k")
    other = lm.copy(base_url="https://me:pass@llm.example/v1?key=k", api_key="other", timeout=3.0, num_retries=1)
    assert identity(other) == identity(lm)


def test_identity_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = LM("ollama/qwen3")
    monkeypatch.setenv("OLLAMA_HOST", "http://one:11434")
    first = identity(lm)
    monkeypatch.setenv("OLLAMA_HOST", "http://two:11434")
    assert identity(lm) != first
    monkeypatch.setenv("OLLAMA_HOST", "http://one:11434")
    assert identity(lm) == first


def test_identity_has_the_variables_of_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = LM("vertex/gemini-2.5-flash", project="one", location="europe-west1")
    assert identity(lm) != identity(lm.copy(project="two")) != identity(lm.copy(location="us-east1"))
