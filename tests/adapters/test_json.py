"""One JSON object: the mode that a model allows, the requested schema, and wrappers around the object."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from sigwire.adapters.json import JSONAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.request import ResponseFormat
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCalls
from sigwire.errors import AdapterParseError, UnsupportedFeature
from sigwire.lm.client import LM
from sigwire.modules.predict import Predict
from sigwire.settings import context
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.testing import FakeProvider

QA = Signature("question -> answer, score: float")
Choosing = Signature("question, tools: list[Tool] -> answer, calls: ToolCalls")
OnlyCalls = Signature("question, tools: list[Tool] -> calls: ToolCalls")
GOOD = '{"answer": "yes", "score": 1.0}'
ALL = Capabilities(native_tools=True, json_schema=True, json_object=True, tools_with_json_schema=True)

MODES: list[tuple[Any, Capabilities, str, bool]] = [
    (QA, ALL, "native_schema", False),
    (QA, replace(ALL, schema_on_demand=True), "schema, not enforced", False),
    (QA, Capabilities(json_object=True), "native_json", True),
    (QA, Capabilities(), "prompt", True),
    (Choosing, ALL, "native_schema", False),
    (Choosing, replace(ALL, tools_with_json_schema=False), "prompt", True),
    (Choosing, replace(ALL, native_tools=False), "prompt", True),
    (OnlyCalls, ALL, "prompt", False),
]


@pytest.mark.parametrize(("signature", "able", "mode", "warns"), MODES)
def test_mode_is_the_strictest_possible_and_a_lower_one_is_a_warning(
    signature: Any, able: Capabilities, mode: str, warns: bool
) -> None:
    plan = JSONAdapter().plan(signature, able)
    warnings = plan.normalize(Response((Choice(text=GOOD),))).warnings
    assert (plan.mode, [warning.feature for warning in warnings]) == (mode, ["structured_output"] * warns)
    response_format = plan.format({"question": "Q?"}).response_format
    assert (response_format is None) == (mode == "prompt")
    if mode == "native_json":
        assert response_format == ResponseFormat(None)


def test_require_schema_refuses_models_without_schema() -> None:
    assert JSONAdapter(require_schema=True).plan(QA, ALL).mode == "native_schema"
    with pytest.raises(UnsupportedFeature, match="no structured output"):
        JSONAdapter(require_schema=True).plan(QA, Capabilities())


class Part(BaseModel):
    name: str
    parts: list[Part] = []


class Whole(Signature):
    """Take it apart."""

    text: str = InputField()
    tree: Part = OutputField(desc="the tree")
    other: Part | None = OutputField()
    count: int = OutputField(desc="how many", ge=0)


def test_output_schema_is_one_object_with_shared_definitions() -> None:
    schema = JSONAdapter().plan(Whole, ALL).format({"text": "x"}).response_format.schema  # type: ignore[union-attr]
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"tree": {"name": "a", "parts": [{"name": "b"}]}, "other": None, "count": 1})
    assert not validator.is_valid({"tree": {"name": "a", "parts": [{}]}, "other": None, "count": 1})
    assert not validator.is_valid({"tree": {"name": "a"}, "count": -1})
    assert validator.is_valid({"tree": {"name": "a"}, "count": 1})
    assert schema["properties"]["count"]["description"] == "how many"  # type: ignore[index, call-overload]
    assert schema["additionalProperties"] is False  # type: ignore[index]


WRAPPERS = [
    GOOD,
    f"```json\n{GOOD}\n```",
    f"Here you are:\n{GOOD}\nAnything else?",
    f'{{"json": {GOOD}}}',
    f'{{"response": {GOOD}}}',
    f'{{"type": "function", "name": "response", "parameters": {GOOD}}}',
    f'"{GOOD}"'.replace('"answer"', '\\"answer\\"').replace('"yes"', '\\"yes\\"').replace('"score"', '\\"score\\"'),
    '{"answer": "yes", "score": 1.0, "extra": true}',
    "{'answer': 'yes', 'score': 1.0,}",
    f"<think>Hm.</think>{GOOD}",
]


@pytest.mark.parametrize("text", WRAPPERS)
def test_wrappers_are_repairs_that_strict_refuses(text: str) -> None:
    parsed = JSONAdapter().plan(QA).parse(Choice(text=text))
    assert parsed.fields == {"answer": "yes", "score": 1.0}
    assert bool(parsed.repairs) == (text != GOOD)
    if text != GOOD:
        with pytest.raises(AdapterParseError):
            JSONAdapter(strict=True).parse(QA, text)


@pytest.mark.parametrize("text", ['{"answer": "yes", "score": 1', '{"answer": "ye', '{"answer": "yes"}', "[]", "yes"])
def test_truncated_or_missing_members_are_errors(text: str) -> None:
    with pytest.raises(AdapterParseError):
        JSONAdapter().parse(QA, text)


def test_calls_without_text_need_no_object() -> None:
    plan = JSONAdapter().plan(OnlyCalls, ALL)
    assert plan.format({"question": "Q?"}).response_format is None
    assert plan.parse(Choice(text="No.")).fields == {"calls": ToolCalls((), "No.")}


# --- the mode that was sent


class Tree(BaseModel):
    label: str
    kids: list[Tree] = []


class Counts(Signature):
    """Count the letters."""

    word: str = InputField()
    counts: dict[str, int] = OutputField()


class Parse(Signature):
    """Parse the sentence."""

    word: str = InputField()
    tree: Tree = OutputField()


ANSWERS: dict[type[Signature], str] = {
    QA: '{"answer": "A", "score": 1.0}',
    Counts: '{"counts": {"a": 1}}',
    Parse: '{"tree": {"label": "S", "kids": []}}',
}
LABEL = "schema, not enforced"
MODELS = {
    "openai": "openai/gpt-4.1",
    "responses": "openai/gpt-5-pro",
    "anthropic": "anthropic/claude-sonnet-5",
    "gemini": "gemini/gemini-3-flash",
}
# The mode without a demand. With one, a schema that OpenAI cannot enforce (a map) is refused.
SENT: list[tuple[str, type[Signature], str]] = [
    ("openai", QA, LABEL),
    ("openai", Parse, LABEL),
    ("openai", Counts, LABEL),
    ("responses", Parse, LABEL),
    ("responses", Counts, LABEL),
    ("anthropic", QA, "native_schema"),
    ("anthropic", Counts, "prompt"),
    ("anthropic", Parse, "prompt"),
    ("gemini", Counts, "native_schema"),
    ("gemini", Parse, "native_schema"),
]


def streamed(predict: Predict, inputs: dict[str, str]) -> Any:
    with predict.stream(**inputs) as stream:
        for _ in stream:
            pass
        return stream.value


async def astreamed(predict: Predict, inputs: dict[str, str]) -> Any:
    async with predict.astream(**inputs) as stream:
        async for _ in stream:
            pass
        return stream.value


RUNS: dict[str, Callable[[Predict, dict[str, str]], Any]] = {
    "call": lambda predict, inputs: predict(**inputs),
    "acall": lambda predict, inputs: asyncio.run(predict.acall(**inputs)),
    "stream": streamed,
    "astream": lambda predict, inputs: asyncio.run(astreamed(predict, inputs)),
}


@pytest.mark.parametrize(("wire", "signature", "mode"), SENT)
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("options", [{}, {"require_schema": True}, {"strict": True}], ids=str)
def test_mode_of_a_prediction_is_what_was_sent_and_a_required_schema_is_refused_before(
    wire: str, signature: type[Signature], mode: str, run: Any, options: dict[str, bool]
) -> None:
    with FakeProvider([ANSWERS[signature]]) as provider:
        url = provider.url(wire.replace("responses", "openai"))
        lm = LM(MODELS[wire], base_url=url, api_key="k", num_retries=0)
        predict = Predict(signature, lm=lm)
        inputs = dict.fromkeys(signature.input_fields, "abc")
        with context(adapter=JSONAdapter(**options)):
            if options and (mode == "prompt" or (mode == LABEL and signature is Counts)):
                with pytest.raises(UnsupportedFeature, match="requires it, so nothing was sent"):
                    run(predict, inputs)
                assert not provider.requests
                return
            assert run(predict, inputs).mode == ("native_schema" if options else mode)
        sent = json.dumps(provider.requests[0].body)
        assert any(key in sent for key in ("json_schema", "responseJsonSchema")) == (mode != "prompt")
        assert ('"strict": true' in sent) == (mode == LABEL and options != {})
