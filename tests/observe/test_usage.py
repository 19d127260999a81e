"""Usage: sums by model, in every open tracker, from every thread."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pydantic
import pytest

from sigwire.core.response import Usage
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.observe.usage import UsageTracker, record_usage, track_usage
from sigwire.settings import bind

SUMS: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
    ([{"a": 1}, {"a": 2}], {"a": 3}),
    ([{"a": None}, {"a": 2}], {"a": 2}),
    ([{"a": 2}, {"a": None}], {"a": 2}),
    ([{"a": 1}, {"b": 2}], {"a": 1, "b": 2}),
    ([{"d": {"x": 1}}, {"d": {"x": 2, "y": 1}}], {"d": {"x": 3, "y": 1}}),
    ([{"d": None}, {"d": {"x": 2}}], {"d": {"x": 2}}),
    ([{"d": {"x": 2}}, {"d": None}], {"d": {"x": 2}}),
    ([{"a": 0.5}, {"a": 1}], {"a": 1.5}),
]


@pytest.mark.parametrize(("entries", "total"), SUMS)
def test_entries_are_summed_key_by_key(entries: list[dict[str, Any]], total: dict[str, Any]) -> None:
    tracker = UsageTracker()
    for entry in entries:
        tracker.add_usage("m", entry)
    assert tracker.get_total_tokens() == {"m": total}


def test_models_are_counted_separately_and_unknown_usage_is_ignored() -> None:
    with track_usage() as tracker:
        record_usage("a", Usage(input_tokens=1))
        record_usage("b", Usage(input_tokens=2, cost=0.5))
        record_usage("c", Usage())
    assert tracker.get_total_tokens() == {
        "a": {"input_tokens": 1, "prompt_tokens": 1, "total_tokens": 1},
        "b": {"input_tokens": 2, "prompt_tokens": 2, "total_tokens": 2, "cost": 0.5},
    }
    assert tracker.usage_data["a"] == [{"input_tokens": 1, "prompt_tokens": 1, "total_tokens": 1}]


def test_outer_tracker_counts_the_usage_of_an_inner_tracker() -> None:
    with track_usage() as outer:
        record_usage("m", Usage(input_tokens=1))
        with track_usage() as inner:
            record_usage("m", Usage(input_tokens=2))
        record_usage("m", Usage(input_tokens=4))
    record_usage("m", Usage(input_tokens=8))
    assert inner.get_total_tokens() == {"m": Usage(2).counts()}
    assert outer.get_total_tokens() == {"m": Usage(7).counts()}


async def test_tracker_counts_usage_of_tasks_and_threads() -> None:
    async def task() -> None:
        record_usage("m", Usage(input_tokens=1))

    with track_usage() as tracker:
        await asyncio.gather(task(), task(), asyncio.to_thread(record_usage, "m", Usage(input_tokens=1)))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(bind(lambda n: record_usage("m", Usage(output_tokens=n))), [1] * 50))
    assert tracker.get_total_tokens() == {"m": Usage(3, 50).counts()}


async def test_direct_calls_and_calls_of_modules_are_counted_once() -> None:
    lm = FakeLM(lambda request: {"answer": "a"}, usage=Usage(input_tokens=1))
    predict = Predict("question -> answer", lm=lm)
    with track_usage() as tracker:
        lm("hello")
        await lm.acall("hello")
        predict(question="?")
        await predict.acall(question="?")
    assert tracker.get_total_tokens() == {"fake": Usage(4).counts()}


def test_details_that_are_pydantic_models_are_summed_as_dicts() -> None:
    class Details(pydantic.BaseModel):
        cached_tokens: int
        audio_tokens: int | None = None

    tracker = UsageTracker()
    for _ in range(2):
        tracker.add_usage("m", {"prompt_tokens": 3, "details": Details(cached_tokens=2)})
    assert tracker.get_total_tokens() == {
        "m": {"prompt_tokens": 6, "details": {"cached_tokens": 4, "audio_tokens": None}}
    }
