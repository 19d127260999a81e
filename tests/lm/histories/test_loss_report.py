"""The losses of a conversion are what the encoded request lacks: every loss is named, and nothing else is."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire import LM, Message, Request, to_provider
from sigwire.core.json import JsonObject, dumps
from sigwire.core.messages import Role
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs.shared.interface import EncodedRequest
from sigwire.lm.histories.losses import Loss
from sigwire.lm.litellm.codec import encode_call, target_for
from sigwire.testing import FakeProvider
from tests.lm.histories.any_history import TARGETS, WIRES_OF
from tests.lm.histories.marked import KINDS, marked_history, marks_of, unfounded, unreported
from tests.strategies import at_most

PAIRS = list(itertools.product(sorted(TARGETS), repeat=2))
FAMILIES = {"openai": "openai-chat", "litellm": "litellm/cohere"}
EVERY_KIND: list[tuple[Role, list[str]]] = [
    ("system", ["text"]),
    ("user", [*KINDS["user"]]),
    ("assistant", ["note", *KINDS["assistant"]]),
    ("tool", [*KINDS["tool"]]),
    ("system", ["text"]),
    ("assistant", ["thinking", "item"]),
    ("user", ["text"]),
    ("assistant", ["text", "item", "thinking of no provider"]),
]


@functools.cache
def model(target: str) -> Any:
    return LM(TARGETS[target], wire=WIRES_OF.get(target))


def encoded(target: str, history: tuple[Message, ...], **options: Any) -> EncodedRequest:
    request = Request(history, options=options)
    if target == "litellm":
        return encode_call(request, target_for("cohere/command-r", None))[1]
    backend = vars(model(target))["_backend"]
    sent: EncodedRequest = backend._route("none").codec.encode(request, backend.target_of(request))
    return sent


def converted(there: str, back: str, turns: Any) -> tuple[list[Message], tuple[Loss, ...], str]:
    """Return a history that one provider led, its losses at another, and the request as text."""
    history = marked_history(turns, FAMILIES.get(there, there))
    messages, losses = to_provider(history, model(back))
    return history, losses, dumps(encoded(back, messages).body)


@st.composite
def turn(draw: st.DrawFn) -> tuple[Role, list[str]]:
    role = draw(st.sampled_from(list(KINDS)))
    return role, draw(st.lists(st.sampled_from(list(KINDS[role])), max_size=4))


any_turns = st.lists(turn(), max_size=5)


@pytest.mark.parametrize(("there", "back"), PAIRS)
def test_every_loss_is_named_and_only_losses_are(there: str, back: str) -> None:
    history, losses, body = converted(there, back, EVERY_KIND)
    assert unreported(history, losses, body) == []
    assert unfounded(history, losses, body) == []


@given(st.sampled_from(PAIRS), any_turns)
@at_most(60)
def test_every_loss_of_any_history_is_named_and_only_losses_are(pair: tuple[str, str], turns: Any) -> None:
    history, losses, body = converted(*pair, turns)
    assert unreported(history, losses, body) == []
    assert unfounded(history, losses, body) == []


@pytest.mark.parametrize("back", sorted(TARGETS))
def test_report_without_a_loss_or_request_without_a_part_is_found(back: str) -> None:
    history, losses, body = converted("anthropic", back, EVERY_KIND)
    for number, loss in enumerate(losses):
        if loss.part is not None and loss.what != "text":
            assert unreported(history, (*losses[:number], *losses[number + 1 :]), body), loss
    missing = {(loss.message, loss.part) for loss in losses}
    for mark in marks_of(history):
        if (mark.message, mark.part) not in missing:
            emptied = functools.reduce(lambda text, needle: text.replace(needle, ""), mark.needles, body)
            assert mark in unreported(history, losses, emptied)
            assert unfounded(history, (Loss(mark.message, mark.part, mark.what, "", "content"),), body)


@given(st.sampled_from(PAIRS), any_turns)
@at_most(40)
def test_strict_call_raises_exactly_for_lost_content(pair: tuple[str, str], turns: Any) -> None:
    check_strict_call(*pair, turns)


@pytest.mark.parametrize("back", sorted(TARGETS))
def test_strict_call_raises_for_a_part_exactly_when_content_is_lost(back: str) -> None:
    for role, kinds in KINDS.items():
        for kind in kinds:
            check_strict_call(back, back, [(role, [kind])])
            check_strict_call("anthropic" if back == "gemini" else "gemini", back, [(role, [kind])])


def check_strict_call(there: str, back: str, turns: Any) -> None:
    history = marked_history(turns, FAMILIES.get(there, there))
    losses = to_provider(history, model(back)).losses
    try:
        body: JsonObject | None = encoded(back, tuple(history), strict_history=True).body
    except UnsupportedFeature:  # media are refused with or without the option
        body = None
    assert (body is None) == any(loss.severity == "content" for loss in losses), turns
    assert body is None or body == encoded(back, to_provider(history, model(back)).messages).body


@given(st.sampled_from(PAIRS), any_turns)
@at_most(40)
def test_second_conversion_of_any_history_has_no_losses(pair: tuple[str, str], turns: Any) -> None:
    there, back = pair
    once = to_provider(marked_history(turns, FAMILIES.get(there, there)), model(back)).messages
    assert to_provider(once, model(back)) == (once, ())


@given(st.sampled_from(PAIRS), any_turns)
@at_most(40)
def test_text_calls_and_results_are_there_after_a_way_back(pair: tuple[str, str], turns: Any) -> None:
    there, back = pair
    history = marked_history(turns, FAMILIES.get(there, there))
    away = to_provider(history, model(back)).messages
    kept = dumps([message.to_json() for message in to_provider(away, model(there)).messages])
    kinds = ("text", "call", "result")
    assert [mark for mark in marks_of(history) if mark.what in kinds and mark.needles[0] not in kept] == []


LOST: list[tuple[Role, list[str]]] = [("user", ["text"]), ("assistant", ["signed thinking", "text"])]
KEPT: list[tuple[Role, list[str]]] = [("user", ["text", "blank"]), ("assistant", ["text", "call"])]


@pytest.mark.parametrize("back", sorted(set(TARGETS) - {"litellm"}))
async def test_strict_history_refuses_before_anything_is_sent(back: str) -> None:
    there = "gemini" if back == "anthropic" else "anthropic"
    with FakeProvider(lambda request: "ok") as provider:
        url = provider.url(back)
        lm = LM(TARGETS[back], base_url=url, api_key="k", wire=WIRES_OF.get(back), strict_history=True, cache=False)
        lost = Request(tuple(marked_history(LOST, there)))
        with pytest.raises(UnsupportedFeature, match="would lose content"):
            lm.respond(lost)
        with pytest.raises(UnsupportedFeature, match="would lose content"):
            list(lm.stream(lost))
        with pytest.raises(UnsupportedFeature, match="would lose content"):
            await lm.arespond(lost)
        assert provider.requests == ()
        kept = Request(tuple(marked_history(KEPT, there)))
        assert lm.respond(kept).choices[0].text == (await lm.arespond(kept)).choices[0].text == "ok"
