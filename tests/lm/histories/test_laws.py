"""The laws of ``to_provider``: it is pure and idempotent, reports every change, and keeps texts, calls and results."""

from __future__ import annotations

import copy
import functools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire import LM, PortableHistory, to_provider
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart
from sigwire.core.tools.calls import ToolCall
from tests.lm.histories.any_history import TARGETS, WIRES_OF, histories
from tests.strategies import at_most


@functools.cache
def model(target: str) -> LM:
    return LM(TARGETS[target], wire=WIRES_OF.get(target))


def converted(history: list[Message] | tuple[Message, ...], target: str) -> PortableHistory:
    return to_provider(history, model(target))


targets = st.sampled_from(sorted(TARGETS))


@given(histories, targets)
@at_most(25)
def test_conversion_changes_nothing_in_its_own_result(history: list[Message], target: str) -> None:
    before = copy.deepcopy(history)
    once = converted(history, target)
    assert history == before
    again = converted(once.messages, target)
    assert again.losses == ()
    assert again.messages == once.messages


@given(histories, targets)
@at_most(25)
def test_losses_are_empty_exactly_when_nothing_changed(history: list[Message], target: str) -> None:
    messages, losses = converted(history, target)
    assert (list(messages) == history) == (losses == ())
    assert all(0 <= loss.message < len(history) for loss in losses)


@given(histories, targets, targets)
@at_most(25)
def test_there_and_back_keeps_texts_calls_and_results(history: list[Message], there: str, back: str) -> None:
    kept = converted(converted(converted(history, back).messages, there).messages, back).messages
    everything = "\n".join(_texts(kept))
    assert [text for text in _texts(history) if text.strip() and text not in everything] == []
    assert [(call.name, call.arguments) for call in _calls(kept)] == [
        (call.name, call.arguments) for call in _calls(history)
    ]


@given(histories, targets)
@at_most(25)
def test_content_is_lost_only_in_losses_of_that_severity(history: list[Message], target: str) -> None:
    messages, losses = converted(history, target)
    if not any(loss.severity == "content" for loss in losses):
        for kind in ("thinking", "opaque"):
            assert _count(messages, kind) >= _count(history, kind) - sum(loss.severity == "none" for loss in losses)
        pictures = [json.dumps(message.to_json()).count('"image"') for message in history]
        assert sum(json.dumps(message.to_json()).count('"image"') for message in messages) == sum(pictures)


def _texts(history: list[Message] | tuple[Message, ...]) -> list[str]:
    texts = [part.text for message in history for part in message.parts if isinstance(part, TextPart)]
    return texts + [result.text for message in history for result in message.tool_results]


def _calls(history: list[Message] | tuple[Message, ...]) -> list[ToolCall]:
    return [call for message in history for call in message.tool_calls]


def _count(history: list[Message] | tuple[Message, ...], kind: str) -> int:
    return sum(part.kind == kind for message in history for part in message.parts)


@pytest.mark.parametrize("target", TARGETS)
def test_history_of_plain_texts_is_returned_as_it_is(target: str) -> None:
    history = (Message.system("S"), Message.user("q"), Message.assistant("a"), Message.user("go on"))
    assert converted(history, target) == PortableHistory(history, ())
