"""The cache around calls of models, over HTTP on the loopback interface."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.core.events import ChoiceEnd, TextDelta, collect
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.errors import ConfigurationError, LMError
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.cache import choice as choices
from sigwire.lm.policy.cache.answers import decode_response, encode_response
from sigwire.lm.policy.cache.cache import cache, configure_cache, read_environment
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.modules.predict import Predict
from sigwire.observe.callbacks import BaseCallback
from sigwire.observe.usage import track_usage
from sigwire.settings import context
from sigwire.testing import FakeProvider, Fault
from tests.lm.calls import HELLO, HOWS, ask, stream

MakeLM = Callable[..., LM]
PLACES = {
    "openai": ("openai/gpt-4o-mini", {}),
    "openai-responses": ("openai/gpt-4o-mini", {"wire": "responses"}),
    "anthropic": ("anthropic/claude-sonnet-4-5", {}),
    "gemini": ("gemini/gemini-2.5-flash", {}),
    "ollama": ("ollama/qwen3", {}),
}


# --- hits --------------------------------------------------------------------------------------------


@HOWS
@pytest.mark.parametrize("place", PLACES)
async def test_equal_request_is_a_hit_over_every_wire(provider: FakeProvider, how: str, place: str) -> None:
    model, options = PLACES[place]
    lm = LM(model, base_url=provider.url(place), api_key="k", **options)
    miss, hit = await ask(how, lm), await ask(how, lm)
    assert len(provider.requests) == 1
    assert (miss.cache, miss.cached_usage, len(miss.attempts)) == ("miss", None, 1)
    assert (hit.cache, hit.choices, hit.attempts, hit.raw) == ("hit", miss.choices, (), miss.raw)
    assert hit.cached_usage == miss.usage
    assert (hit.usage.input_tokens, hit.usage.output_tokens, hit.usage.cost) == (0, 0, 0.0)


def test_hit_in_a_new_process_is_from_the_file(folder: Path, provider: FakeProvider, lm_of: MakeLM) -> None:
    first = lm_of().respond(HELLO)
    configure_cache(disk_cache_dir=folder)  # as a new process begins
    hit = lm_of().respond(HELLO)
    assert (hit.cache, hit.choices, hit.cached_usage, hit.attempts) == ("hit", first.choices, first.usage, ())
    assert lm_of().respond(HELLO) is hit  # from memory now
    assert len(provider.requests) == 1


def test_damaged_row_is_asked_for_again_and_replaced(folder: Path, provider: FakeProvider, lm_of: MakeLM) -> None:
    lm_of()("hello")
    connection = sqlite3.connect(folder / "cache-1.sqlite3")
    connection.execute("UPDATE answers SET value = zeroblob(60)")
    connection.commit()
    connection.close()
    configure_cache(disk_cache_dir=folder)
    again = lm_of().respond(HELLO)
    assert (again.cache, [attempt.purpose for attempt in again.attempts]) == ("miss", ["ask"])
    configure_cache(disk_cache_dir=folder)
    assert lm_of()("hello") == ["answer 2"]


@HOWS
@pytest.mark.parametrize("place", PLACES)
async def test_streamed_hit_emits_the_events_of_the_answer(provider: FakeProvider, how: str, place: str) -> None:
    model, options = PLACES[place]
    lm = LM(model, base_url=provider.url(place), api_key="k", **options)
    first = await stream(how, lm)
    again = await stream(how, lm)
    assert len(provider.requests) == 1
    assert (collect(first).cache, collect(again).cache) == ("miss", "hit")
    assert collect(again).cached_usage == collect(first).usage
    for events in (first, again):
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "answer 1"
        assert sum(isinstance(event, ChoiceEnd) for event in events) == 1
    assert (await ask(how, lm)).cache == "hit"  # a streamed answer is that of a whole call


def test_answer_at_a_high_temperature_is_kept_like_any_other(provider: FakeProvider, lm_of: MakeLM) -> None:
    assert lm_of(temperature=1.5)("hello") == lm_of(temperature=1.5)("hello")
    assert lm_of(temperature=1.0)("hello") == ["answer 2"]


def test_hit_counts_in_the_history_and_in_callbacks_but_not_in_the_usage(lm_of: MakeLM) -> None:
    ends: list[Any] = []

    class Listener(BaseCallback):
        def on_lm_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
            ends.append(outputs)

    lm = lm_of(callbacks=[Listener()])
    lm("hello")
    with track_usage() as tracker:
        lm("hello")
        assert tracker.get_total_tokens() == {}
        lm("another")
        assert [*tracker.get_total_tokens()] == ["openai/gpt-4o-mini"]
    assert (len(ends), len(lm.history)) == (3, 3)
    assert lm.history[1]["cost"] == 0.0


def test_predict_on_a_hit_has_no_usage_and_no_attempts(folder: Path) -> None:
    with FakeProvider(["[[ ## answer ## ]]\n4\n\n[[ ## completed ## ]]"]) as provider:
        predict = Predict("question -> answer")
        predict.set_lm(LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k"))
        with track_usage() as tracker:
            first, second = predict(question="2+2?"), predict(question="2+2?")
    assert (first.answer, second.answer) == ("4", "4")
    assert second.response.cache == "hit"
    assert (len(first.attempts), len(second.attempts)) == (1, 0)
    assert second.get_lm_usage() == {}
    assert tracker.get_total_tokens() == first.get_lm_usage()


@HOWS
@pytest.mark.parametrize("place", [place for place in PLACES if place != "openai-responses"])  # its texts have ids
async def test_answer_of_text_is_stored_with_its_raw_once(provider: FakeProvider, how: str, place: str) -> None:
    model, options = PLACES[place]
    lm = LM(model, base_url=provider.url(place), api_key="k", cache=False, **options)
    for response in (await ask(how, lm), collect(await stream(how, lm))):
        row = json.loads(encode_response(response))
        assert isinstance(row, list)
        assert (isinstance(row[-2], list), row[-1]) == (True, None)
        assert decode_response(encode_response(response)).choices == response.choices


# --- which answers are kept --------------------------------------------------------------------------

FILTERED = Response((Choice("no", finish_reason="content_filter"),), Usage())
KEPT = [
    Choice("4"),
    Choice("cut", finish_reason="length"),
    Choice(refusal="I will not."),
    sigwire.ToolCall("call_0", "f", {"a": 1}),
]
LIVE: list[Request] = [
    Request(HELLO.messages, options={"extra_body": {"tools": [{"type": "web_search"}]}}),
    Request(HELLO.messages, ({"type": "web_search"},)),
]


@pytest.mark.parametrize("answer", KEPT)
def test_complete_answer_is_kept(folder: Path, answer: Any) -> None:
    with FakeProvider([answer, "another"]) as provider:
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
        assert lm.respond(HELLO).choices == lm.respond(HELLO).choices


def test_filtered_answer_is_not_kept(folder: Path) -> None:
    with FakeProvider([FILTERED, "another"]) as provider:
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
        assert lm.respond(HELLO).choices[0].finish_reason == "content_filter"
        assert lm("hello") == ["another"]


def test_error_is_not_kept(folder: Path) -> None:
    with FakeProvider([Fault(), "another"]) as provider:
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", num_retries=0)
        with pytest.raises(LMError):
            lm("hello")
        assert lm("hello") == ["another"]


@HOWS
async def test_stream_that_breaks_or_is_left_is_not_kept(provider: FakeProvider, lm_of: MakeLM, how: str) -> None:
    lm = lm_of()
    if how == "blocking":
        events = lm.stream(HELLO)
        next(events)
        events.close()
    else:
        aevents = lm.astream(HELLO)
        await anext(aevents)
        await aevents.aclose()
    assert (await ask(how, lm)).cache == "miss"
    assert len(provider.requests) == 2


@pytest.mark.parametrize("request_", LIVE)
def test_request_whose_answer_changes_with_time_is_kept_only_if_asked(
    provider: FakeProvider, lm_of: MakeLM, request_: Request
) -> None:
    provider.script = FakeProvider(lambda request: "found").script
    lm = LM("openai/gpt-5.5", base_url=provider.url("openai-responses"), api_key="k", wire="responses")
    assert (lm.respond(request_).cache, lm.respond(request_).cache) == ("off", "off")
    on = lm.copy(cache="on")
    assert (on.respond(request_).cache, on.respond(request_).cache) == ("miss", "hit")


def test_request_without_a_key_is_asked_each_time(lm_of: MakeLM) -> None:
    request = Request(HELLO.messages, options={"seed": float("nan")})
    assert [lm_of().respond(request).cache for _ in range(2)] == ["off", "off"]


def test_models_without_a_provider_have_no_cache(folder: Path) -> None:
    assert [FakeLM(["a", "b"]).respond(HELLO).cache for _ in range(2)] == ["off", "off"]
    assert [LM("offline/lexical").respond(HELLO).cache for _ in range(2)] == ["off", "off"]


def test_two_servers_with_one_model_name_share_nothing(provider: FakeProvider, lm_of: MakeLM) -> None:
    with FakeProvider(["other"]) as second:
        assert lm_of()("hello") == ["answer 1"]
        assert LM("openai/gpt-4o-mini", base_url=second.url("openai"), api_key="k")("hello") == ["other"]


# --- what a call asks for ----------------------------------------------------------------------------


def test_options_for_the_cache_reach_no_provider(provider: FakeProvider, lm_of: MakeLM) -> None:
    lm = lm_of(rollout_id=7)
    assert lm("hello", cache=False) == ["answer 1"]
    assert lm("hello", fresh=True, rollout_id="a", cache=True) == ["answer 2"]
    assert lm.copy(cache=False)("hello", fresh=False) == ["answer 3"]
    for recorded in provider.requests:
        assert isinstance(recorded.body, dict)
        assert recorded.body.keys().isdisjoint({"cache", "fresh", "rollout_id"})


def test_rollout_id_is_another_sample_at_temperature_0(lm_of: MakeLM) -> None:
    lm = lm_of(temperature=0.0)
    assert lm("hello") == ["answer 1"]
    assert [lm("hello", rollout_id=number) for number in (1, 2, 1)] == [["answer 2"], ["answer 3"], ["answer 2"]]
    assert lm.copy(rollout_id=2)("hello") == ["answer 3"]
    assert lm("hello", rollout_id=None) == ["answer 1"]


def test_fresh_reads_nothing_and_stores(lm_of: MakeLM) -> None:
    lm = lm_of()
    assert lm("hello") == ["answer 1"]
    assert lm("hello", fresh=True) == ["answer 2"]
    assert lm("hello") == ["answer 2"]
    with context(fresh=True):
        assert lm("hello") == ["answer 3"]
    assert lm("hello") == ["answer 3"]


def test_cache_false_reads_and_stores_nothing(lm_of: MakeLM) -> None:
    lm = lm_of()
    assert lm("hello", cache=False) == ["answer 1"]
    assert lm("hello") == ["answer 2"]
    assert lm_of(cache=False).respond(HELLO).cache == "off"
    assert lm_of(cache=False)("hello", cache=True) == ["answer 2"]


def test_predict_passes_the_options_for_the_cache(provider: FakeProvider, lm_of: MakeLM) -> None:
    provider.script = FakeProvider(lambda request: "[[ ## answer ## ]]\n4\n\n[[ ## completed ## ]]").script
    predict = Predict("question -> answer", rollout_id=1)
    predict.set_lm(lm_of())
    asked: list[str] = []
    for config in ({}, {}, {"rollout_id": 2}, {"rollout_id": 2}, {"fresh": True}, {"cache": False}):
        asked.append(predict(question="2+2?", config=config).response.cache)
    assert asked == ["miss", "hit", "miss", "hit", "miss", "off"]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"cache": {"ttl": "1h"}}, "prompt_cache="),
        ({"cache": "1h"}, "prompt_cache="),
        ({"fresh": "yes"}, "fresh is True or False"),
        ({"strict_window": "no"}, "strict_window is True or False"),
        ({"strict_history": 1}, "strict_history is True or False"),
        ({"rollout_id": 1.5}, "rollout_id is a number or a text"),
    ],
)
def test_option_of_the_wrong_form_is_refused(lm_of: MakeLM, options: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        lm_of()("hello", **options)
    with pytest.raises(ConfigurationError, match=what):
        lm_of(**options)


# --- the process -------------------------------------------------------------------------------------


def test_memory_alone_has_no_file(tmp_path: Path, provider: FakeProvider, lm_of: MakeLM) -> None:
    configure_cache(enable_disk_cache=False, disk_cache_dir=tmp_path / "none")
    assert lm_of()("hello") == lm_of()("hello")
    assert cache.path is None
    assert not (tmp_path / "none").exists()


def test_disk_alone_keeps_nothing_in_memory(folder: Path, provider: FakeProvider, lm_of: MakeLM) -> None:
    configure_cache(enable_memory_cache=False, disk_cache_dir=folder)
    assert lm_of()("hello") == lm_of()("hello")
    assert (cache.stats().memory_entries, cache.stats().disk_entries, cache.path) == (0, 1, folder / "cache-1.sqlite3")


def test_stats_count_and_clear_empties(provider: FakeProvider, lm_of: MakeLM) -> None:
    for text in ("hello", "hello", "other"):
        lm_of()(text)
    found = cache.stats()
    assert (found.hits, found.misses, found.stored, found.memory_entries, found.disk_entries) == (1, 2, 2, 2, 2)
    assert found.memory_bytes > 0
    cache.clear()
    assert (cache.stats().memory_entries, cache.stats().disk_entries) == (0, 0)
    assert lm_of()("hello") == ["answer 3"]


def test_answers_older_than_the_ttl_are_asked_for_again(
    folder: Path, provider: FakeProvider, lm_of: MakeLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure_cache(disk_cache_dir=folder, ttl=60)
    now = [1000.0]
    monkeypatch.setattr(cache, "_clock", lambda: now[0])
    monkeypatch.setattr(cache._disk, "_clock", lambda: now[0])
    lm = lm_of()
    assert lm("hello") == ["answer 1"]
    now[0] += 59
    assert lm("hello") == ["answer 1"]
    now[0] += 2
    assert lm("hello") == ["answer 2"]
    assert lm("hello") == ["answer 2"]


@pytest.mark.parametrize("options", [{"disk_cache_dir": ""}, {"disk_cache_dir": 5}, {"enable_disk_cache": "no"}])
def test_configure_cache_refuses_values_of_other_types(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(options))} is .* \\(configure_cache\\)"):
        configure_cache(**options)


def test_configure_cache_expands_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    configure_cache(disk_cache_dir="~/answers")
    assert cache.path is not None
    assert cache.path.parent == tmp_path / "answers"


@pytest.mark.parametrize(
    "options", [{"ttl": float("nan")}, {"memory_max_entries": 0}, {"ttl": -1}, {"disk_size_limit_bytes": "2GB"}]
)
def test_configure_cache_refuses_numbers_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(options))} is a number above 0"):
        configure_cache(**options)


@pytest.mark.parametrize(
    ("mode", "memory", "disk"), [("off", False, False), ("memory", True, False), ("disk", True, True), ("", True, True)]
)
def test_environment_decides_without_configure_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, memory: bool, disk: bool
) -> None:
    monkeypatch.setenv("SIGWIRE_CACHE", mode)
    monkeypatch.setenv("SIGWIRE_CACHE_DIR", str(tmp_path / "cache"))
    read_environment()
    assert (cache.memory is not None, cache.path is not None, choices.is_off()) == (memory, disk, not (memory or disk))


def test_unknown_mode_of_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGWIRE_CACHE", "of")
    with pytest.raises(ConfigurationError, match="SIGWIRE_CACHE is off, memory or disk, not 'of'"):
        read_environment()


def test_call_has_no_layer_of_the_cache_when_off(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = LM("openai/gpt-4o-mini", api_key="k")
    configure_cache(False, False)
    assert lm._outer_layers(choices.CacheChoice()) == ()
    configure_cache(enable_disk_cache=False)
    assert len(lm._outer_layers(choices.CacheChoice())) == 1
    assert lm._outer_layers(choices.CacheChoice(cache=False)) == ()


def test_hits_need_no_key(folder: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url("openai"))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert LM("openai/gpt-4o-mini")("hello") == ["answer 1"]
    monkeypatch.delenv("OPENAI_API_KEY")
    assert LM("openai/gpt-4o-mini")("hello") == ["answer 1"]


async def test_answers_are_shared_by_threads_and_tasks(provider: FakeProvider, lm_of: MakeLM) -> None:
    lm = lm_of()
    assert await lm.acall("hello") == ["answer 1"]
    assert await asyncio.to_thread(lm, "hello") == ["answer 1"]
    assert {text for (text,) in await asyncio.gather(*(lm.acall("hello") for _ in range(20)))} == {"answer 1"}
    assert len(provider.requests) == 1


def test_retries_are_inside_the_cache(folder: Path) -> None:
    with FakeProvider([Fault(), "answer"]) as provider:
        retry = RetryPolicy(first_wait=0.001)
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", retry=retry)
        miss, hit = lm.respond(HELLO), lm.respond(HELLO)
    assert [attempt.error for attempt in miss.attempts] == ["server", None]
    assert (hit.cache, hit.attempts) == ("hit", ())


def test_message_objects_are_not_changed(lm_of: MakeLM) -> None:
    request = Request((Message.user("hello"),))
    lm_of().respond(request)
    assert request == Request((Message.user("hello"),))
