"""Callbacks of the door: handlers get inputs and outputs in DSPy's forms; those of the core get the core's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.dspy.utils import BaseCallback

Seen = list[tuple[str, Any]]
KINDS = ("module", "lm", "adapter_format", "adapter_parse", "tool")


def listener(base: type) -> Any:
    """Return a listener that keeps the inputs and the outputs of each call."""
    seen: Seen = []

    def starts(kind: str) -> Callable[..., None]:
        return lambda self, call_id, instance, inputs: seen.append((f"{kind} starts", inputs))

    def ends(kind: str) -> Callable[..., None]:
        return lambda self, call_id, outputs, exception=None: seen.append((f"{kind} ends", outputs))

    handlers = {f"on_{kind}_{name}": make(kind) for kind in KINDS for name, make in (("start", starts), ("end", ends))}
    made = type("Listener", (base,), handlers)()
    made.seen = seen
    return made


def double(n: int) -> int:
    return 2 * n


def ask() -> Any:
    return dspy.Predict("question -> answer", lm=dspy.DummyLM([{"answer": "4"}]))


class Outer(dspy.Module):
    def forward(self, question: str, times: int = 1) -> Any:
        return double(times)


async def called(how: str, program: Any, *args: Any, **inputs: Any) -> Any:
    if how == "streamed":
        return [item async for item in dspy.streamify(program)(*args, **inputs)][-1]
    return program(*args, **inputs) if how == "blocking" else await program.acall(*args, **inputs)


@pytest.mark.parametrize("how", ["blocking", "awaited", "streamed"])
async def test_listener_of_the_door_gets_the_forms_of_dspy(how: str) -> None:
    mine = listener(dspy.BaseCallback)
    with dspy.context(callbacks=[mine]):
        await called(how, ask(), question="2+2?", config={"temperature": 0.5})
    seen = dict(mine.seen)
    assert seen["module starts"] == {"args": (), "kwargs": {"question": "2+2?", "config": {"temperature": 0.5}}}
    assert seen["module ends"].answer == "4"
    assert seen["adapter_format starts"].keys() == {"signature", "demos", "inputs"}
    assert [message["role"] for message in seen["adapter_format ends"]] == ["system", "user"]
    assert seen["lm starts"] == {
        "prompt": None,
        "messages": seen["adapter_format ends"],
        "kwargs": {"temperature": 0.5},
    }
    (text,) = seen["lm ends"]
    assert "[[ ## answer ## ]]" in text
    assert (seen["adapter_parse starts"].keys(), seen["adapter_parse ends"]) == (
        {"signature", "completion"},
        {"answer": "4"},
    )
    assert seen["adapter_parse starts"]["completion"] == text


@pytest.mark.parametrize("how", ["blocking", "awaited"])
async def test_listener_of_the_door_gets_keywords_of_tools_and_modules(how: str) -> None:
    mine = listener(BaseCallback)
    with dspy.context(callbacks=[mine]):
        assert await called(how, dspy.Tool(double), n=21) == 42
        assert await called(how, Outer(), "why?", times=2) == 4
    assert mine.seen == [
        ("tool starts", {"kwargs": {"n": 21}}),
        ("tool ends", 42),
        ("module starts", {"args": (), "kwargs": {"question": "why?", "times": 2}}),
        ("module ends", 4),
    ]


@pytest.mark.parametrize("how", ["blocking", "awaited"])
async def test_call_of_a_model_has_its_prompt_and_a_list_of_answers(how: str) -> None:
    mine = listener(dspy.BaseCallback)
    lm = dspy.DummyLM([{"answer": "a"}, {"answer": "b"}], callbacks=[mine])
    outputs = await called(how, lm, "Hi", n=2)
    assert mine.seen == [("lm starts", {"prompt": "Hi", "messages": None, "kwargs": {"n": 2}}), ("lm ends", outputs)]
    assert len(outputs) == 2


def test_outputs_of_a_failed_call_are_none() -> None:
    mine = listener(dspy.BaseCallback)
    with dspy.context(callbacks=[mine]), pytest.raises(ZeroDivisionError):
        dspy.Tool(lambda n: 1 // n, name="divide", args={"n": {"type": "integer"}})(n=0)
    assert mine.seen[-1] == ("tool ends", None)


def test_listener_of_the_core_gets_the_forms_of_the_core_beside_one_of_the_door() -> None:
    mine, core = listener(dspy.BaseCallback), listener(sigwire.BaseCallback)
    with dspy.context(callbacks=[mine, core]):
        ask()(question="2+2?")
    seen = dict(core.seen)
    assert seen["module starts"] == {"question": "2+2?"}
    assert isinstance(seen["lm ends"], sigwire.Response)
    assert isinstance(dict(mine.seen)["lm ends"], list)


def test_handler_is_skipped_with_a_warning_when_the_reader_of_a_listener_fails() -> None:
    class Broken(sigwire.BaseCallback):
        def read_inputs(self, kind: str, instance: Any, inputs: Any) -> Any:
            raise LookupError("no inputs")

    with dspy.context(callbacks=[Broken()]), pytest.warns(RuntimeWarning, match=r"on_tool_start failed .* no inputs"):
        assert dspy.Tool(double)(n=1) == 2
