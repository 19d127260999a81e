"""The longest answers of models, compared with the data that LiteLLM ships; the models on which they differ are a table."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from sigwire.lm.providers.families import family_facts
from sigwire.lm.providers.registry import find_provider

VENDORS = {"anthropic", "openai", "gemini", "bedrock_converse"}
DIFFERENT = {
    "gpt-4*": "8,192 for question and answer together (OpenAI)",
    "*sonnet-4-6*": "128,000 at Anthropic, 64,000 elsewhere",
    "*claude-3-*": "Bedrock lists less than Anthropic",
    "*claude-instant*": "an older limit of Bedrock",
    "*nova-2*": "65,535 at others",
    "*image*": "models that draw",
    "*-tts*": "models that speak",
    "*computer-use-preview-10-2025*": "64,000 of Gemini 2.5's 65,536",
    "*deep-research*": "agents of Google",
}


@pytest.mark.parametrize(
    ("model", "longest"),
    [
        ("openai/gpt-4o-2024-05-13", 4096),
        ("openai/gpt-4o", 16_384),
        ("openai/gpt-4-1106-preview", 4096),
        ("openai/computer-use-preview", 1024),
        ("openai/o3-deep-research", 100_000),
        ("openrouter/perplexity/sonar-deep-research", None),
        ("openrouter/google/gemma-4-26b-a4b-it", None),
        ("anthropic/claude-opus-5-5", 128_000),
        ("anthropic/claude-sonnet-5", 128_000),
        ("anthropic/claude-mythos-5-1", 128_000),
        ("bedrock/us.amazon.nova-premier-v1:0", 10_000),
        ("bedrock/us.anthropic.claude-opus-5", 128_000),
        ("anthropic/claude-next", None),
    ],
)
def test_longest_answer_of_a_model(model: str, longest: int | None) -> None:
    row, name = find_provider(model)
    facts = row.facts_of(name)
    assert (family_facts(model) if row.prefix == "openrouter" else facts).max_output == longest


def _listed() -> Iterator[tuple[str, int]]:
    found = importlib.util.find_spec("litellm")
    if found is None or found.origin is None:
        pytest.skip('LiteLLM, whose data is compared, is not installed: pip install "sigwire[litellm]"')
    (path,) = Path(found.origin).parent.glob("model_prices_and_context_window_backup.json")
    rows: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    for name, row in rows.items():
        is_chat = row.get("mode") in ("chat", "responses") and row.get("litellm_provider") in VENDORS
        if is_chat and isinstance(limit := row.get("max_output_tokens"), int):
            yield name, limit


@pytest.mark.long
def test_longest_answers_are_those_that_litellm_lists() -> None:
    wrong = {
        name: (mine, limit)
        for name, limit in _listed()
        if (mine := family_facts(name).max_output) is not None
        if mine not in (limit, limit + 1)  # 65,536 is 65,535 on some pages of Google
        if not any(fnmatchcase(name, pattern) for pattern in DIFFERENT)
    }
    assert wrong == {}
