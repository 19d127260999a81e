"""Models of a user's own in DSPy's form: each way of writing one, asked each way."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.choice import ToolChoice
from sigwire.dspy.lm import BaseLM
from sigwire.errors import ConfigurationError, LMUnexpectedError

HELLO = Request((Message.user("hello"),))


def completion(text: str, **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text, **message}, "finish_reason": "stop"}], "model": "served"}


class Forward(BaseLM):
    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        self.seen = (prompt, messages, kwargs)
        return completion(messages[-1]["content"].upper())


class AForward(BaseLM):
    async def aforward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return SimpleNamespace(
            choices=[
                SimpleNamespace(message=SimpleNamespace(content=messages[-1]["content"].upper()), finish_reason="stop")
            ],
            usage={"prompt_tokens": 3, "completion_tokens": 1},
            model="served",
        )


class Called(BaseLM):
    def __call__(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> list[Any]:
        return [messages[-1]["content"].upper()] if messages else ["NOTHING"]


class Answered(BaseLM):
    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        return Response((Choice(text=messages[-1]["content"].upper()),))


WAYS = [Forward, AForward, Called, Answered]


@pytest.mark.parametrize("way", WAYS)
def test_respond_answers_with_each_form_of_custom_model(way: type[BaseLM]) -> None:
    assert way("m").respond(HELLO).choices[0].text == "HELLO"


@pytest.mark.parametrize("way", WAYS)
async def test_arespond_answers_with_each_form_of_custom_model(way: type[BaseLM]) -> None:
    assert (await way("m").arespond(HELLO)).choices[0].text == "HELLO"


@pytest.mark.parametrize("way", [Forward, AForward, Answered])
async def test_call_returns_a_list_blocking_in_a_loop_and_awaited(way: type[BaseLM]) -> None:
    assert way("m")("hello") == ["HELLO"]
    assert await way("m").acall("hello") == ["HELLO"]


def test_forward_receives_an_openai_shaped_call() -> None:
    lm = Forward("m")
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    request = Request((Message.user("hi"),), (tool,), ToolChoice.named("f"), False, options={"temperature": 0.5})
    lm.respond(request)
    assert lm.seen == (
        None,
        [{"role": "user", "content": "hi"}],
        {
            "temperature": 0.5,
            "tools": [tool],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "parallel_tool_calls": False,
        },
    )


def test_call_returns_a_dict_when_a_choice_has_more_than_text() -> None:
    class Rich(BaseLM):
        def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
            return completion(
                "said",
                reasoning_content="thought",
                tool_calls=[{"id": "call_7", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
            )

    (output,) = Rich("m")("go")
    assert output == {
        "text": "said",
        "reasoning_content": "thought",
        "tool_calls": [{"id": "call_7", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
    }


def test_model_without_forward_raises_with_a_hint() -> None:
    with pytest.raises(ConfigurationError, match=r"Define forward\(self, prompt=None"):
        BaseLM("m")("hello")


def test_forward_result_of_unknown_form_is_an_error() -> None:
    class Wrong(BaseLM):
        def forward(self, **kwargs: Any) -> Any:
            return 42

    with pytest.raises(LMUnexpectedError, match="int, which has no list of choices"):
        Wrong("m")("hello")
