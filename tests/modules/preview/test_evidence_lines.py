"""The preview of a call with evidence: its source, the outputs, and what it costs more."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest

from sigwire import LM, Predict, Price

NO_CHOICES = ("anthropic/claude-haiku-4-5", "ollama/qwen3")


def preview_of(model: str, source: Any, **more: Any) -> Any:
    lm = LM(model, price=Price(input=1_000.0, output=2_000.0))
    return Predict("text -> urgent: bool, mood: Literal['calm', 'sad'], why", lm=lm, evidence=source, **more).preview(
        text="x"
    )


def card_of(preview: Any) -> str:
    preview.show(file=(shown := StringIO()), width=200)
    return shown.getvalue()


@pytest.mark.parametrize(
    ("model", "source", "more", "lines"),
    [
        ("openai/gpt-4.1-mini", "stated", {}, ["stated: urgent, mood", "one more output, with the probabilities"]),
        ("openai/gpt-4.1-mini", "auto", {}, ["logprob: urgent, mood", "20 log probabilities of each token"]),
        ("openai/gpt-4.1-mini", "logprob", {"top_logprobs": 7}, ["logprob: urgent, mood", "7 log probabilities"]),
        ("openai/gpt-4.1-mini", "sampled", {}, ["5 answers to one request: output tokens 5 times"]),
        ("offline/lexical", "auto", {}, ["measured: urgent, mood"]),
    ],
)
def test_preview_has_the_source_of_evidence_and_what_it_asks_for(
    model: str, source: Any, more: Any, lines: list[str]
) -> None:
    preview = preview_of(model, source, **more)
    assert preview.evidence.paths == ("urgent", "mood")
    assert f"evidence {preview.evidence.source}" in repr(preview)
    assert [line for line in lines if line not in card_of(preview) or line not in preview._repr_html_()] == []


@pytest.mark.parametrize("model", NO_CHOICES)
def test_preview_of_sampled_evidence_has_the_further_requests_and_their_price(model: str) -> None:
    preview = preview_of(model, "sampled", n=3)
    tokens = int(preview.tokens)
    line = f"2 more requests: {2 * tokens:,} more tokens in, ≈${2 * tokens / 1_000:.2f}"
    assert (preview.repeat, preview.price) == (3, pytest.approx(3 * tokens / 1_000))
    assert line in card_of(preview)


def test_preview_has_no_line_of_evidence_when_none_is_asked_for() -> None:
    preview = preview_of("openai/gpt-4.1-mini", None)
    assert preview.evidence is None
    assert "evidence" not in card_of(preview) + repr(preview)
