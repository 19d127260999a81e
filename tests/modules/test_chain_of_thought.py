"""ChainOfThought: where its reasoning comes from, on every wire and in every kind of call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.two_step import TwoStepAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.events import FieldDelta, Finished
from sigwire.core.example import Example
from sigwire.core.response import Choice
from sigwire.errors import AdapterParseError
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.modules.chain_of_thought import ChainOfThought, Reasoned
from sigwire.settings import context
from sigwire.testing import FakeProvider

QA = "question -> answer"
WRITTEN = "[[ ## reasoning ## ]]\nSix sevens.\n\n[[ ## answer ## ]]\n42\n\n[[ ## completed ## ]]"
BARE = "[[ ## answer ## ]]\n42\n\n[[ ## completed ## ]]"
DEMO = Example(question="2*2?", reasoning="Two twos.", answer="4")

# Model and wire; the last group shows no thinking.
SHOWING = [
    ("anthropic/claude-sonnet-4-5", "anthropic"),
    ("anthropic/claude-opus-4-7", "anthropic"),
    ("gemini/gemini-2.5-flash", "gemini"),
    ("gemini/gemini-2.5-pro", "gemini"),
]
UNASKED = [
    ("ollama/qwen3", "ollama"),
    ("ollama/gpt-oss:20b", "ollama"),
    ("deepseek/deepseek-reasoner", "compatible"),
    ("mistral/magistral-medium-latest", "compatible"),
    ("vllm/Qwen/QwQ-32B", "compatible"),
]
SILENT = [("openai/gpt-5-mini", "openai"), ("openai/o1-pro", "openai")]
PLAIN = [("openai/gpt-4o-mini", "openai"), ("anthropic/claude-3-5-haiku-latest", "anthropic")]


def _blocking(module: Any, **inputs: Any) -> Any:
    return module(**inputs), ""


async def _awaited(module: Any, **inputs: Any) -> Any:
    return await module.acall(**inputs), ""


async def _streamed(module: Any, **inputs: Any) -> Any:
    events = [event async for event in module.astream(**inputs)]
    assert isinstance(events[-1], Finished)
    texts = [event.text for event in events if isinstance(event, FieldDelta) and event.field == "reasoning"]
    return events[-1].value, "".join(texts)


KINDS: list[Callable[..., Any]] = [_blocking, _awaited, _streamed]


async def call(kind: Callable[..., Any], module: Any) -> Any:
    """Call in one way; the text of the streamed reasoning is that of the result."""
    result = kind(module, question="6*7?")
    prediction, streamed = result if isinstance(result, tuple) else await result
    assert kind is not _streamed or streamed == prediction.reasoning
    return prediction


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("model", "wire"), [*SHOWING, *SILENT, *PLAIN])
async def test_reasoning_is_prompted_and_read_without_an_effort(
    model: str, wire: str, kind: Callable[..., Any]
) -> None:
    with FakeProvider([WRITTEN]) as provider:
        think = ChainOfThought(QA, lm=LM(model, api_key="k", base_url=provider.url(wire)))
        think.predict.demos = [DEMO]
        prediction = await call(kind, think)
        body = str(provider.requests[0].body)
    assert (prediction.reasoning, prediction.answer) == ("Six sevens.", "42")
    assert Reasoned.of(prediction) == Reasoned("Six sevens.", "written")
    assert "[[ ## reasoning ## ]]" in body
    assert "Two twos." in body


@pytest.mark.parametrize(("model", "wire"), UNASKED[:2])
def test_switches_prompt_the_reasoning_of_a_model_that_shows_its_own(model: str, wire: str) -> None:
    with FakeProvider([WRITTEN] * 3) as provider:
        lm = LM(model, api_key="k", base_url=provider.url(wire), cache=False)
        prompted = lm.copy(capabilities=replace(lm.capabilities, reasoning_unasked=False))
        thinks = [
            ChainOfThought(QA, rationale_field_type=str, lm=lm),
            ChainOfThought(QA, lm=prompted),
            ChainOfThought(QA, lm=lm, reasoning="off"),
        ]
        assert [think(question="6*7?").reasoning for think in thinks] == ["Six sevens."] * 3
        assert ["[[ ## reasoning ## ]]" in str(request.body) for request in provider.requests] == [True] * 3


SHOWN = [(*each, {"reasoning": "high"}) for each in (*SHOWING, UNASKED[0])] + [(*each, {}) for each in UNASKED]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("model", "wire", "effort"), SHOWN)
async def test_reasoning_is_the_shown_thinking_that_an_effort_or_the_model_switches_on(
    model: str, wire: str, effort: dict[str, Any], kind: Callable[..., Any]
) -> None:
    with FakeProvider([Choice(BARE, reasoning="Seven sixes.")]) as provider:
        think = ChainOfThought(QA, lm=LM(model, api_key="k", base_url=provider.url(wire), **effort))
        think.predict.demos = [DEMO]
        prediction = await call(kind, think)
        body = str(provider.requests[0].body)
    assert Reasoned.of(prediction) == Reasoned("Seven sixes.", "thinking")
    assert "[[ ## reasoning ## ]]" not in body
    assert "Two twos." in body


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("model", "wire"), SILENT)
async def test_reasoning_is_prompted_with_an_effort_when_the_provider_hides_thinking(
    model: str, wire: str, kind: Callable[..., Any]
) -> None:
    with FakeProvider([WRITTEN]) as provider:
        think = ChainOfThought(QA, lm=LM(model, api_key="k", base_url=provider.url(wire), reasoning="high"))
        prediction = await call(kind, think)
        assert "[[ ## reasoning ## ]]" in str(provider.requests[0].body)
    assert Reasoned.of(prediction) == Reasoned("Six sevens.", "written")


# --- answers that differ from what was asked ---------------------------------------------------------------

ABLE = Capabilities(reasoning=True)


def written(adapter: Adapter, reasoning: str = "Six sevens.") -> str:
    """An answer with reasoning in the layout of an adapter."""
    shown = {"reasoning": reasoning} if reasoning else {}
    return FakeLM([{**shown, "answer": "42"}], adapter=adapter)("?")[0]


ADAPTERS = [ChatAdapter(), JSONAdapter(), XMLAdapter()]
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
@each_adapter
async def test_written_reasoning_is_kept_when_no_thinking_comes(adapter: Adapter, kind: Callable[..., Any]) -> None:
    lm = FakeLM([written(adapter)], capabilities=ABLE, reasoning="low")
    with context(adapter=adapter):
        prediction = await call(kind, ChainOfThought(QA, lm=lm))
    assert Reasoned.of(prediction) == Reasoned("Six sevens.", "written")
    assert prediction.repairs == ()


@each_kind
@each_adapter
async def test_thinking_is_used_when_the_prompted_reasoning_is_missing(
    adapter: Adapter, kind: Callable[..., Any]
) -> None:
    lm = FakeLM([Choice(written(adapter, ""), reasoning="Seven sixes.")], capabilities=ABLE)
    with context(adapter=adapter):
        prediction = await call(kind, ChainOfThought(QA, lm=lm))
    assert (Reasoned.of(prediction), prediction.answer) == (Reasoned("Seven sixes.", "thinking"), "42")


@each_kind
@each_adapter
async def test_thinking_in_the_text_is_used_when_the_prompted_reasoning_is_missing(
    adapter: Adapter, kind: Callable[..., Any]
) -> None:
    lm = FakeLM(["<think>\nSeven sixes.\n</think>\n" + written(adapter, "")])
    with context(adapter=adapter):
        prediction = await call(kind, ChainOfThought(QA, lm=lm))
    assert (prediction.reasoning, prediction.answer) == ("Seven sixes.", "42")


@each_kind
@pytest.mark.parametrize("effort", [{}, {"reasoning": "low"}])
async def test_missing_reasoning_of_a_thinking_model_is_listed_as_a_repair(
    kind: Callable[..., Any], effort: dict[str, Any]
) -> None:
    prediction = await call(kind, ChainOfThought(QA, lm=FakeLM([BARE], capabilities=ABLE, **effort)))
    assert (prediction.answer, Reasoned.of(prediction)) == ("42", Reasoned("", None))
    assert [repair.field for repair in prediction.repairs] == ["reasoning"]


def test_missing_reasoning_that_is_prompted_is_a_parse_error_of_a_strict_adapter() -> None:
    lm = FakeLM([BARE], capabilities=ABLE)
    with context(adapter=ChatAdapter(strict=True)), pytest.raises(AdapterParseError, match="reasoning"):
        ChainOfThought(QA, lm=lm)(question="?")


def test_adapter_prompts_reasoning_that_a_provider_hides() -> None:
    signature = ChainOfThought(QA).predict.signature
    hidden = replace(ABLE, reasoning_hidden=True)
    assert "reasoning" in ChatAdapter().format(signature, {"question": "?"}, capabilities=hidden).messages[0].text
    assert "reasoning" not in ChatAdapter().format(signature, {"question": "?"}, capabilities=ABLE).messages[0].text


@each_kind
async def test_thinking_wins_over_written_reasoning_when_an_effort_is_set(kind: Callable[..., Any]) -> None:
    lm = FakeLM([Choice(WRITTEN, reasoning="Seven sixes.")], capabilities=ABLE, reasoning="low")
    assert Reasoned.of(await call(kind, ChainOfThought(QA, lm=lm))) == Reasoned("Seven sixes.", "thinking")


@each_kind
async def test_written_reasoning_wins_over_thinking_without_an_effort(kind: Callable[..., Any]) -> None:
    lm = FakeLM([Choice(WRITTEN, reasoning="Seven sixes.")], capabilities=ABLE)
    prediction = await call(kind, ChainOfThought(QA, lm=lm))
    assert Reasoned.of(prediction) == Reasoned("Six sevens.", "written")
    assert prediction.choice.reasoning == "Seven sixes."


def test_missing_reasoning_of_a_model_that_does_not_think_is_a_parse_error() -> None:
    with pytest.raises(AdapterParseError, match="reasoning"):
        ChainOfThought(QA, lm=FakeLM([BARE]))(question="?")


EFFORTS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"reasoning": "off"}, True),
    ({"reasoning_effort": "none"}, True),
    ({"reasoning": {"budget": 0}}, True),
    ({"reasoning_effort": "low"}, False),
    ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, False),
]


@pytest.mark.parametrize(("options", "prompted"), EFFORTS)
@pytest.mark.parametrize("place", ["model", "module", "call"])
def test_effort_of_model_module_or_call_decides_whether_reasoning_is_prompted(
    options: dict[str, Any], prompted: bool, place: str
) -> None:
    lm = FakeLM([Choice(WRITTEN, reasoning="hm")], capabilities=ABLE, **(options if place == "model" else {}))
    think = ChainOfThought(QA, lm=lm, **(options if place == "module" else {}))
    think(question="?", config=options if place == "call" else {})
    assert ("reasoning" in lm.requests[0].messages[0].text) is prompted


def test_effort_of_a_call_replaces_that_of_the_model() -> None:
    lm = FakeLM([WRITTEN], capabilities=ABLE, reasoning="high")
    ChainOfThought(QA, lm=lm)(question="?", config={"reasoning": "off"})
    assert "reasoning" in lm.requests[0].messages[0].text


@pytest.mark.parametrize("effort", [{}, {"reasoning": "low"}])
def test_rationale_of_another_type_is_always_prompted(effort: dict[str, Any]) -> None:
    lm = FakeLM([WRITTEN], capabilities=ABLE, **effort)
    prediction = ChainOfThought(QA, rationale_field_type=str, lm=lm)(question="?")
    assert Reasoned.of(prediction) == Reasoned("Six sevens.", "written")
    assert "reasoning" in lm.requests[0].messages[0].text


@pytest.mark.parametrize("demos", ["turns", "system"])
def test_reasoning_of_demos_reaches_a_thinking_model(demos: Any) -> None:
    lm = FakeLM([Choice(BARE, reasoning="hm")], capabilities=ABLE, reasoning="low")
    think = ChainOfThought(QA, lm=lm)
    think.predict.demos = [DEMO, {"question": "1*1?", "answer": "1"}]
    with context(adapter=ChatAdapter(demos=demos)):
        think(question="?")
    text = "\n".join(message.text for message in lm.requests[0].messages)
    assert text.count("reasoning of this example:\nTwo twos.") == 1


def test_second_step_extracts_prompted_reasoning_with_a_thinking_model() -> None:
    second = FakeLM([Choice(WRITTEN, reasoning="I extract.")], capabilities=ABLE, reasoning="low")
    lm = FakeLM(["Six sevens, so 42."], capabilities=ABLE)
    with context(adapter=TwoStepAdapter(second)):
        prediction = ChainOfThought(QA, lm=lm)(question="?")
    assert (prediction.reasoning, prediction.answer) == ("Six sevens.", "42")


def test_reasoned_of_another_prediction_names_the_class_to_use() -> None:
    lm = FakeLM([BARE])
    from sigwire.modules.predict import Predict

    with pytest.raises(ValueError, match="ChainOfThought"):
        Reasoned.of(Predict(QA, lm=lm)(question="?"))
