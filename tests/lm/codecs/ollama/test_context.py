"""Ollama's context window: requested for long prompts. ``tests/lm/test_prompt_watch.py`` has prompts that a server cuts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, TextPart
from sigwire.core.request import Request
from sigwire.core.tools.tool import Tool
from sigwire.lm.codecs import ollama
from sigwire.lm.codecs.ollama import OLLAMA, OLLAMA_CLOUD
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.untrusted import value_at

TARGET = Target("ollama", "m", OLLAMA)
TOOL = Tool.from_schema("f", "d" * 9000, {"type": "object", "properties": {}})
PNG = ImagePart(data="iVBO", media_type="image/png")


def asked(text: str, **options: JsonValue) -> Request:
    return Request((Message.user(text),), options=options)


def window(request: Request, target: Target[ollama.OllamaProfile] = TARGET) -> JsonValue:
    return value_at(ollama.encode(request, target).body, "options.num_ctx")


SMALL = Capabilities(context_window=8000)
WINDOWS: dict[str, tuple[Request, Target[ollama.OllamaProfile], int | None]] = {
    "a short request leaves it to the server": (asked("q"), TARGET, None),
    "room for the answer is part of it": (asked("a" * 6147), TARGET, 8192),
    "no more than the usual window": (asked("a" * 6144), TARGET, None),
    "a long request asks for a window that holds it": (asked("a" * 30_000), TARGET, 16384),
    "characters of several bytes count by their bytes": (asked("語" * 10_000), TARGET, 16384),
    "an answer that may be long": (asked("q", max_tokens=6000), TARGET, 8192),
    "an answer without an end": (asked("q", max_tokens=-1), TARGET, None),
    "tools count": (Request((Message.user("q"),), tools=(TOOL.spec,)), TARGET, 8192),
    "pictures count": (Request((Message("user", (TextPart("q"), PNG, PNG, PNG)),)), TARGET, 8192),
    "not more than the model has": (asked("a" * 30_000), replace(TARGET, capabilities=SMALL), 8000),
    "the caller's own window stays": (asked("a" * 30_000, num_ctx=5000), TARGET, 5000),
    "and so does one beside the options": (
        asked("a" * 30_000, extra_body={"options": {"num_ctx": 5001}}), TARGET, 5001,
    ),
    "the cloud chooses by itself": (asked("a" * 30_000), Target("ollama-cloud", "m", OLLAMA_CLOUD), None),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_window_for_returns_the_window_of_a_request(name: str) -> None:
    request, target, expected = WINDOWS[name]
    assert window(request, target) == expected


@given(st.text(max_size=50), st.integers(0, 400))
def test_window_fits_the_text_and_changes_seldom(text: str, times: int) -> None:
    tokens = len((text * times).encode("utf-8", "replace")) // 3
    chosen = window(asked(text * times))
    assert chosen is None or (isinstance(chosen, int) and chosen > tokens and chosen.bit_count() == 1)
