"""Excerpts of failed answers: bounded, with the start, the end and the text after each mark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sigwire.adapters.prompts.excerpts import LONGEST_RESENT, excerpt, shorten_answer
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall

LONG = "x" * 100_000


@given(st.text("abc[]", max_size=300), st.lists(st.sampled_from(["a", "[b]", "zz"]), max_size=3), st.integers(8, 80))
def test_excerpt_is_bounded_and_keeps_both_ends(text: str, marks: list[str], longest: int) -> None:
    found = excerpt(text, marks, longest)
    size = min(len(text), longest // (len(set(marks)) + 2))
    assert len(found) <= longest + 4 * len("\n[... 300 characters omitted ...]\n")
    assert found.startswith(text[:size])
    assert found.endswith(text[len(text) - size :])
    assert found == text or len(text) > longest


def test_excerpt_keeps_the_text_after_each_mark() -> None:
    found = excerpt(f"start {LONG}<n>many</n>{LONG}<m>none</m>{LONG} end", ["<n>", "<m>", "<o>"])
    assert [part for part in ("start ", "<n>many</n>", "<m>none</m>", " end") if part not in found] == []
    assert len(found) < LONGEST_RESENT + 500


def test_short_answer_is_not_copied() -> None:
    choice = Choice("short", (ToolCall("a", "f", {"n": 1}),))
    assert shorten_answer(choice) is choice


def test_long_answer_keeps_its_other_parts_and_the_ids_of_its_calls() -> None:
    thinking = ThinkingPart("hm", signature="s")
    call = ToolCall("a", "f", {"text": LONG})
    message = shorten_answer(Choice(LONG, (call,), parts=(thinking, TextPart(LONG), call))).message()
    assert message.parts[0] is thinking
    assert [(call.id, call.arguments) for call in message.tool_calls] == [("a", None)]
    assert len(message.text) + len(message.tool_calls[0].arguments_text) < 2 * LONGEST_RESENT + 500
