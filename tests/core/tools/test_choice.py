"""The ``tool_choice`` of callers: modes, names, and the objects of OpenAI and Anthropic."""

from __future__ import annotations

from typing import Any

import pytest

from sigwire.core.request import Request
from sigwire.core.tools.choice import ToolChoice, read_tool_choice
from sigwire.errors import InputError
from sigwire.lm.openai_dicts import decode_call

NAMED = ToolChoice.named("f")
F: dict[str, Any] = {"type": "function", "name": "f"}
NESTED: dict[str, Any] = {"type": "function", "function": {"name": "f"}}
CHOICES: dict[str, tuple[Any, ToolChoice | None]] = {
    "nothing": (None, None),
    "a choice": (NAMED, NAMED),
    "a mode": ("required", ToolChoice.REQUIRED),
    "a name": ("f", NAMED),
    "chat completions": (NESTED, NAMED),
    "Responses": (F, NAMED),
    "Anthropic": ({"type": "tool", "name": "f"}, NAMED),
    "Anthropic's any": ({"type": "any"}, ToolChoice.REQUIRED),
    "Anthropic's none": ({"type": "none"}, ToolChoice.NONE),
    "several of chat completions": (
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NESTED]}},
        ToolChoice("auto", ("f",)),
    ),
    "several of Responses": (
        {"type": "allowed_tools", "mode": "required", "tools": [F, {**F, "name": "g"}]},
        ToolChoice("required", ("f", "g")),
    ),
}


@pytest.mark.parametrize(("given", "choice"), CHOICES.values(), ids=CHOICES)
def test_choice_is_read_from_every_public_form(given: Any, choice: ToolChoice | None) -> None:
    assert read_tool_choice(given) == choice
    assert decode_call(messages=[], tool_choice=given).tool_choice == choice


@pytest.mark.parametrize(
    "given", [3, {}, {"type": "web_search"}, {"function": {"name": None}}, {"type": "tool", "name": ""}]
)
def test_any_other_choice_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="tool_choice"):
        decode_call(messages=[], tool_choice=given)
    with pytest.raises(InputError, match="tool_choice"):
        Request(tool_choice=given)
