"""Histories of ReAct: unique call ids."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.tools.calls import ToolCall
from sigwire.modules.agents.conversation import with_fresh_ids

ids = st.sampled_from(["", "a", "b", "call_0", "call_1", "call_2"])


def calls_named(*given: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(call_id, "f", {"n": number}) for number, call_id in enumerate(given))


@pytest.mark.parametrize(
    ("given", "taken", "wanted"),
    [
        (["a", "b"], set[str](), ["a", "b"]),
        (["a", "b"], {"c"}, ["a", "b"]),
        (["a", "b"], {"b"}, ["a", "call_0"]),
        (["a", "a"], {"call_0"}, ["a", "call_1"]),
        (["", "a"], {"call_0"}, ["call_1", "a"]),
        ([], {"a"}, []),
    ],
)
def test_with_fresh_ids_replaces_used_and_missing_ids_only(
    given: list[str], taken: set[str], wanted: list[str]
) -> None:
    assert [call.id for call in with_fresh_ids(calls_named(*given), taken)] == wanted


@given(st.lists(ids, max_size=5), st.frozensets(ids.filter(bool)))
def test_with_fresh_ids_gives_unique_ids(given: list[str], taken: frozenset[str]) -> None:
    calls = calls_named(*given)
    named = with_fresh_ids(calls, taken)
    fresh = [call.id for call in named]
    assert all(fresh)
    assert len({*fresh, *taken}) == len(fresh) + len(taken)
    assert [replace(call, id="") for call in named] == [replace(call, id="") for call in calls]
