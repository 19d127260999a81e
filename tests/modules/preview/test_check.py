"""``check``: capabilities, windows, prices, budgets and targets of a router, from data with a source; nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic
import pytest

from sigwire import (
    LM,
    Budget,
    FakeLM,
    Image,
    InputField,
    JSONAdapter,
    OutputField,
    Predict,
    Price,
    ReAct,
    Request,
    Response,
    Router,
    Signature,
    Tool,
    check,
    context,
)  # fmt: skip
from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.request import ResponseFormat
from sigwire.core.response import Choice
from sigwire.core.tools.choice import ToolChoice
from sigwire.lm.preview import limits
from sigwire.lm.preview.limits import TokenLimit, input_limit, output_limit, prompt_cache_minimum
from sigwire.modules.preview.findings import Finding, findings_of

QA = "question -> answer"
LONG = Predict(Signature(QA, "Answer the question in a few words. " * 400))  # about 2,900 tokens


def found(program: Any, lm: Any, **options: Any) -> list[tuple[str, str]]:
    return [(each.level, each.feature) for each in check(program, lm, **options)]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, Mapping[str, object]]:
    """A table of LiteLLM's, and no genai-prices."""
    rows: dict[str, Mapping[str, object]] = {}
    monkeypatch.setattr(limits, "_table", lambda: rows)
    monkeypatch.setattr(limits, "load", lambda: None)
    monkeypatch.setattr("importlib.metadata.version", {"litellm": "1.0"}.get)
    return rows


# --- the wire: the encoder's errors and warnings ---------------------------------------------------------


class Rated(pydantic.BaseModel):
    stars: Annotated[int, pydantic.Field(multiple_of=5)]


def look(place: str) -> str:
    """Look at a place."""
    return place


class See(Signature):
    """Describe the picture."""

    picture: Image = InputField()
    answer: str = OutputField()


class Rate(Signature):
    """Rate the text."""

    text: str = InputField()
    rating: Rated = OutputField()


def test_unknown_option_is_an_error_that_names_the_option() -> None:
    (finding,) = check(Predict(QA, top_k=3), LM("openai/gpt-4.1"))
    assert (finding.level, finding.feature, finding.model) == ("error", "top_k", "openai/gpt-4.1")
    assert finding.source == "the provider table"
    assert "extra_body" in finding.fix


def test_dropped_keyword_of_a_schema_is_a_warning_with_its_path() -> None:
    with context(adapter=JSONAdapter()):
        (finding,) = check(Predict(Rate), LM("anthropic/claude-haiku-4-5"))
    assert finding.level == "warning"
    assert "multipleOf" in finding.what
    assert "stars" in finding.what


def test_image_for_a_model_without_images_is_an_error() -> None:
    assert found(Predict(See), LM("openai/gpt-3.5-turbo")) == [("error", "image")]


def test_tool_that_cannot_be_forced_while_the_model_thinks_is_a_warning() -> None:
    """The last turn of the agent forces ``submit``; its first does not."""
    request = Request((Message.user("Hi"),), (Tool(look).spec,), ToolChoice.REQUIRED)
    preview = LM("anthropic/claude-opus-5-5").preview(request)
    findings = [*findings_of("self", preview, LM("anthropic/claude-opus-5-5"))]
    assert [(each.level, each.feature) for each in findings] == [("warning", "tool_choice")]


def test_schema_beside_tools_is_a_warning_when_the_server_takes_either() -> None:
    form = ResponseFormat({"type": "object", "properties": {}, "additionalProperties": False})
    request = Request((Message.user("Hi"),), (Tool(look).spec,), response_format=form)
    lm = LM("llamacpp/m")
    findings = [*findings_of("self", lm.preview(request), lm)]
    assert [(each.level, each.feature) for each in findings] == [("warning", "response_format")]


def test_strict_makes_errors_of_warnings_and_allow_omits_a_feature() -> None:
    lm = LM("ollama/m", num_ctx=512)
    assert found(LONG, lm) == [("warning", "context")]
    assert found(LONG, lm, strict=True) == [("error", "context")]
    assert found(LONG, lm, allow=["context"]) == []


def test_truncation_by_the_provider_is_an_error_unless_it_is_allowed() -> None:
    lm = LM("openai/gpt-4.1", wire="responses", extra_body={"truncation": "auto"})
    (finding,) = check(Predict(QA), lm)
    assert (finding.level, finding.feature) == ("error", "truncation")
    assert check(Predict(QA), lm, allow=["truncation"]) == []
    assert found(Predict(QA), LM("openai/gpt-4.1", wire="responses", extra_body={"truncation": "disabled"})) == []


# --- windows -------------------------------------------------------------------------------------------


def test_request_over_the_window_of_the_capabilities_is_an_error() -> None:
    (finding,) = check(LONG, LM("vllm/m", capabilities=Capabilities(context_window=1000)))
    assert (finding.level, finding.feature, finding.source) == ("error", "window", "the capabilities of the model")
    assert "reads 1,000" in finding.what


def test_answer_that_may_exceed_the_window_is_a_warning() -> None:
    able = Capabilities(context_window=8000)
    assert found(LONG, LM("vllm/m", capabilities=able, max_tokens=1000)) == []
    assert found(LONG, LM("vllm/m", capabilities=able, max_tokens=7500)) == [("warning", "window")]


def test_smallest_known_window_counts(table: dict[str, Mapping[str, object]]) -> None:
    table["m"] = {"max_input_tokens": 9000, "max_output_tokens": 100, "prompt_cache_min_tokens": 4096}
    assert input_limit("acme/m", Capabilities(context_window=8000)) == (8000, "the capabilities of the model")
    assert input_limit("acme/m", Capabilities(context_window=10_000)) == TokenLimit(9000, "LiteLLM 1.0")
    assert input_limit("acme/other", Capabilities()) is None
    assert output_limit("litellm/acme/m", Capabilities()) == TokenLimit(100, "LiteLLM 1.0")
    assert prompt_cache_minimum("acme/m").tokens == 4096
    assert input_limit("ollama/m", Capabilities()) is None  # the server decides


def test_window_of_genai_prices_is_read() -> None:
    pytest.importorskip("genai_prices")
    limit = input_limit("openai/gpt-5-mini", Capabilities())
    assert limit is not None
    assert limit.tokens in (272_000, 400_000)
    assert limit.source.startswith(("genai-prices ", "LiteLLM "))


def test_max_tokens_over_the_limit_of_the_model_is_a_warning(table: dict[str, Mapping[str, object]]) -> None:
    table["mistral-large-latest"] = {"max_output_tokens": 32_768}
    (finding,) = check(
        Predict(QA), LM("mistral/mistral-large-latest", max_tokens=50_000, price=Price(input=1, output=1))
    )
    assert (finding.level, finding.feature, finding.source) == ("warning", "max_tokens", "LiteLLM 1.0")


def test_max_tokens_that_the_wire_lowers_is_one_warning(table: dict[str, Mapping[str, object]]) -> None:
    table["gpt-4.1"] = {"max_output_tokens": 32_768}
    (finding,) = check(Predict(QA), LM("openai/gpt-4.1", max_tokens=50_000, price=Price(input=1, output=1)))
    assert (finding.level, finding.feature) == ("warning", "max_tokens")
    assert "32768 was sent" in finding.what


# --- prompt caches, prices, budgets ------------------------------------------------------------------------


def test_mark_of_a_prompt_cache_below_the_minimum_is_a_fact(table: dict[str, Mapping[str, object]]) -> None:
    table["claude-haiku-4-5"] = {"prompt_cache_min_tokens": 4096}
    lm = LM("anthropic/claude-haiku-4-5", prompt_cache={"ttl": "1h"}, price=Price(input=1, output=1))
    (finding,) = check(Predict(QA), lm)
    assert (finding.level, finding.feature) == ("info", "prompt_cache")
    assert "4,096" in finding.what
    table["claude-haiku-4-5"] = {"prompt_cache_min_tokens": 10}
    assert check(Predict(QA), lm) == []


def test_unknown_price_is_a_fact() -> None:
    pytest.importorskip("genai_prices")
    assert found(Predict(QA), LM("openai/no-such-model")) == [("info", "price")]
    assert found(Predict(QA), LM("openai/no-such-model", price=Price(input=1, output=1))) == []
    assert found(Predict(QA), LM("ollama/m")) == []


PRICED = {"price": Price(input=1, output=10)}
BUDGETS: list[tuple[Mapping[str, Any], Mapping[str, Any], list[tuple[str, str]]]] = [
    ({"calls": 1}, PRICED, []),
    ({"calls": 0}, PRICED, [("error", "budget")]),
    ({"tokens": 100}, PRICED, [("error", "budget")]),
    ({"money": 0.001}, {**PRICED, "max_tokens": 1000}, [("error", "budget")]),
    ({"money": 0.1}, {**PRICED, "max_tokens": 1000}, []),
    ({"money": 1.0, "strict": True}, PRICED, [("error", "budget")]),
]


@pytest.mark.parametrize(("budget", "options", "expected"), BUDGETS)
def test_call_that_does_not_fit_into_an_open_budget_is_an_error(
    budget: Mapping[str, Any], options: Mapping[str, Any], expected: list[tuple[str, str]]
) -> None:
    with Budget(**budget) as opened:
        assert found(Predict(QA), LM("vllm/m", **options)) == expected
    assert opened.spent.calls == 0


def test_budget_that_needs_a_price_is_an_error_for_a_model_without_one() -> None:
    with Budget(money=1.0):
        assert ("error", "budget") in found(Predict(QA), LM("openai/no-such-model"))


# --- several models ------------------------------------------------------------------------------------


class Plain:
    """A model of the user, without a wire."""

    model, capabilities = "plain", Capabilities()

    def respond(self, request: Request) -> Response:
        return Response((Choice("A"),))

    async def arespond(self, request: Request) -> Response:
        return self.respond(request)


def test_each_target_of_a_router_is_checked_with_its_own_wire() -> None:
    router = Router([LM("anthropic/claude-haiku-4-5"), LM("openai/gpt-4.1"), Plain()])
    (finding,) = check(Predict(QA, top_k=3), router)
    assert (finding.level, finding.feature, finding.model) == ("error", "top_k", "openai/gpt-4.1")


def test_target_that_is_skipped_is_a_warning() -> None:
    small = FakeLM(model="small", capabilities=Capabilities(images=False))
    findings = check(Predict(See), Router([LM("openai/gpt-4.1"), small]))
    assert [(each.level, each.feature, each.model) for each in findings] == [("warning", "image", "small")]


def test_fallbacks_are_checked() -> None:
    lm = LM("anthropic/claude-haiku-4-5", fallbacks=[LM("ollama/m", num_ctx=512)])
    assert [(each.level, each.model) for each in check(LONG, lm)] == [("warning", "ollama/m")]


def test_check_sends_nothing(sockets: list[str]) -> None:
    check(ReAct(QA, tools=[look]), Router([LM("openai/gpt-4.1"), LM("ollama/m")]))
    assert sockets == []


def test_finding_is_a_value_of_its_parts() -> None:
    level: Literal["error", "warning", "info"] = Finding("self", "What.").level
    assert (level, str(Finding("self", "What.", "Do."))) == ("error", "self: What. Do.")
