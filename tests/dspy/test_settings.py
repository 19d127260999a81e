"""DSPy's view of the settings."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.errors import ConfigurationError

HINTS = [("max_errors", "Evaluate"), ("send_stream", "streamify"), ("usage_tracker", "track_usage")]
UNFIT = [
    ("disable_history", 1, "10,000"),
    ("allow_tool_async_sync_conversion", None, "async tools"),
    ("provide_traceback", False, "traceback"),
    ("async_max_workers", 0, "above 0"),
    ("rm", 3, "function of query"),
]


@pytest.mark.parametrize(("name", "hint"), HINTS)
def test_a_setting_of_dspy_alone_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"'{name}'\. .*{hint}.*adapter, budget, callbacks, fresh, injected, lm"
    ):
        dspy.configure(**{name: True})
    with pytest.raises(ConfigurationError, match=f"'{name}'" if name != "send_stream" else "'temperature'"):
        dspy.context(**({name: True} if name != "send_stream" else {"temperature": 1})).__enter__()


def test_values_are_those_of_the_core() -> None:
    with dspy.context(num_threads=2):
        assert (sigwire.settings.num_threads, dspy.settings.num_threads, dspy.settings["num_threads"]) == (2, 2, 2)
    with dspy.settings.context(num_threads=3):
        assert sigwire.settings.num_threads == 3
    assert dspy.settings.get("nothing", 1) == 1
    assert isinstance(dspy.settings, type(sigwire.settings))


async def test_send_stream_is_visible_inside_its_context_and_in_tasks() -> None:
    async def read() -> object:
        return dspy.settings.send_stream

    stream = dspy.SendStream()
    with dspy.context(send_stream=stream):
        assert dspy.settings.send_stream is stream
        assert dspy.settings["send_stream"] is dspy.settings.get("send_stream") is stream
        assert await asyncio.create_task(read()) is stream
        with dspy.context(num_threads=2):
            assert dspy.settings.send_stream is stream
    assert dspy.settings.send_stream is None


@pytest.mark.parametrize(("name", "value", "hint"), UNFIT)
def test_a_value_that_no_program_can_have_is_refused_with_a_hint(name: str, value: object, hint: str) -> None:
    for change in (dspy.configure, lambda **values: dspy.context(**values).__enter__()):
        with pytest.raises(ConfigurationError, match=f"'{name}' cannot be {value}. .*{hint}"):
            change(**{name: value})


def test_settings_of_dspy_alone_hold_inside_their_context_and_in_the_process() -> None:
    before = dspy.settings.copy()
    try:
        dspy.settings.configure(rm=print, async_max_workers=2, callbacks=None, disable_history=True)
        with dspy.context(rm=len):
            assert (dspy.settings.rm, dspy.settings["async_max_workers"], dspy.settings.get("rm")) == (len, 2, len)
        dspy.settings.rm = repr
        dspy.settings["num_threads"] = 3
        assert (dspy.settings.rm, dspy.settings.num_threads, "rm" in dspy.settings) == (repr, 3, True)
    finally:
        dspy.configure(**before)
    assert dspy.settings.config == before


def test_settings_return_from_a_file_without_the_key(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    lm = dspy.LM("openai/gpt-4.1-mini", temperature=0.5, api_key="sk-secret")
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter(strict=True), num_threads=3, async_max_workers=5):
        dspy.settings.save(path)
    assert "sk-secret" not in path.read_text(encoding="utf-8")
    loaded = dspy.load_settings(path)
    assert loaded.keys() == {"lm", "adapter", "num_threads", "async_max_workers"}
    with dspy.context(**loaded):
        assert (dspy.settings.lm.model, dspy.settings.lm.kwargs["temperature"]) == ("openai/gpt-4.1-mini", 0.5)
        assert dspy.settings.adapter == dspy.JSONAdapter(strict=True)
        assert (dspy.settings.num_threads, dspy.settings.async_max_workers) == (3, 5)


def test_saving_settings_refuses_a_listener_and_excludes_it_by_name(tmp_path: Path) -> None:
    with dspy.context(callbacks=[dspy.BaseCallback()]):
        with pytest.raises(sigwire.InputError, match=r"'callbacks' is no data .* exclude_keys=\['callbacks'\]"):
            dspy.settings.save(tmp_path / "settings.json")
        dspy.settings.save(tmp_path / "settings.json", exclude_keys=["callbacks"])
    with pytest.raises(sigwire.InputError, match="No file holds code"):
        dspy.settings.save(tmp_path / "settings.json", modules_to_serialize=[sigwire])


def test_loading_settings_refuses_a_pickle(tmp_path: Path) -> None:
    (tmp_path / "settings.pkl").write_bytes(b"\x80\x04N.")
    with pytest.raises(sigwire.StateError, match=r"settings\.pkl is no file of settings\.save"):
        dspy.load_settings(tmp_path / "settings.pkl", allow_pickle=True)


def test_disable_history_sets_the_size_of_histories() -> None:
    program = dspy.Predict("question -> answer", lm=dspy.DummyLM([{"answer": "a"}] * 3))
    with dspy.context(disable_history=False):
        assert dspy.settings.max_history_size == 10_000
        program(question="?")
        with dspy.context(disable_history=True):
            program(question="?")
    program(question="?")
    assert len(program.history) == 1
    with dspy.context(disable_history=False, max_history_size=2):
        assert dspy.settings.max_history_size == 2


def test_max_trace_size_starts_a_trace_unless_one_is_given() -> None:
    program = dspy.Predict("question -> answer", lm=dspy.DummyLM([{"answer": "a"}] * 6))
    with dspy.context(max_trace_size=2):
        for _ in range(3):
            program(question="?")
        assert len(dspy.settings.trace) == 2
        with dspy.context(max_trace_size=9, trace=None):
            program(question="?")
            assert dspy.settings.trace is None
        with dspy.context(max_trace_size=1):
            program(question="?")
            assert len(dspy.settings.trace) == 1


def test_settings_callbacks_are_a_list() -> None:
    assert dspy.settings.callbacks == dspy.settings["callbacks"] == [] == dspy.settings.copy()["callbacks"]
    listener = dspy.utils.callback.BaseCallback()
    with dspy.context(callbacks=dspy.settings.callbacks + [listener]):  # noqa: RUF005  (as programs of DSPy write it)
        assert dspy.settings.callbacks == [listener]


async def test_one_task_configures_while_it_runs_and_another_uses_a_context() -> None:
    async def change(number: int) -> int:
        dspy.configure(num_threads=number)
        return dspy.settings.num_threads

    before = dspy.settings.num_threads
    try:
        assert await asyncio.create_task(change(3)) == 3
        assert await change(4) == 4  # the first task is done
        with dspy.context(num_threads=6), pytest.raises(RuntimeError, match=r"same async task\. Use dspy\.context"):
            await asyncio.create_task(change(5))
        assert dspy.settings.num_threads == 4
        assert await asyncio.to_thread(dspy.configure, num_threads=7) is None
        assert dspy.settings.num_threads == 7
    finally:
        dspy.configure(num_threads=before)


def test_usage_tracker_is_that_of_the_block_and_counts_its_requests() -> None:
    lm = sigwire.FakeLM(["Hm."] * 4)
    assert dspy.settings.usage_tracker is None
    mine = dspy.utils.UsageTracker()
    with dspy.context(usage_tracker=mine), dspy.context(usage_tracker=mine, num_threads=2):
        lm("Hello")
        assert dspy.settings["usage_tracker"] is dspy.settings.get("usage_tracker") is mine
        with dspy.track_usage() as inner:
            lm("Hello again")
            assert dspy.settings.usage_tracker is inner
        lm("Bye")
    lm("Nobody counts")
    assert [len(tracker.attempts["fake"]) for tracker in (mine, inner)] == [3, 1]
    assert "usage_tracker" not in dspy.settings.copy()


async def test_a_tracker_in_two_tasks_keeps_their_own_trackers_apart() -> None:
    shared, lm = dspy.utils.UsageTracker(), sigwire.FakeLM(["Hm."] * 4)
    entered = asyncio.Event()

    async def ask(waits: bool) -> int:
        with dspy.track_usage() as mine:
            with dspy.context(usage_tracker=shared):
                await entered.wait() if waits else entered.set()
                await asyncio.sleep(0)
            await lm.acall("Hello")
        return len(mine.attempts["fake"])

    assert await asyncio.gather(ask(True), ask(False)) == [1, 1]
    assert not shared.attempts


async def test_a_refused_configure_counts_for_no_task() -> None:
    async def refused() -> None:
        with pytest.raises(ConfigurationError):
            dspy.configure(nonsense=1)
        await asyncio.sleep(10)

    task = asyncio.create_task(refused())
    await asyncio.sleep(0)
    with dspy.context():
        dspy.configure(num_threads=dspy.settings.num_threads)
    task.cancel()


def test_saved_adapter_keeps_native_types(tmp_path: Path) -> None:
    with dspy.context(adapter=dspy.ChatAdapter(native_response_types=[])):
        dspy.settings.save(tmp_path / "settings.json")
    loaded: Any = dspy.load_settings(tmp_path / "settings.json")["adapter"]
    assert (type(loaded), loaded.native_reasoning) == (dspy.ChatAdapter, False)


def test_a_program_has_settings_of_its_own() -> None:
    region = dspy.context(region="north", experimental=True)
    with pytest.warns(UserWarning, match="'region' is one of the program alone"):
        region.__enter__()
    try:
        with warnings.catch_warnings(action="error"), dspy.context(region="south"):
            assert (dspy.settings.region, dspy.settings["region"], dspy.settings.get("region")) == ("south",) * 3
        assert (dspy.settings.region, "region" in dspy.settings, dspy.settings.experimental) == ("north", True, True)
        assert dspy.settings.copy()["region"] == "north"
    finally:
        region.__exit__(None, None, None)
    assert (dspy.settings.get("region"), "region" in dspy.settings, dspy.settings.experimental) == (None, False, False)
    with pytest.raises(AttributeError, match="There is no setting 'region'"):
        _ = dspy.settings.region


def test_a_setting_of_the_program_is_saved_as_data(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="'region'"), dspy.context(region="north"):
        dspy.settings.save(tmp_path / "settings.json")
    assert dspy.load_settings(tmp_path / "settings.json") == {"region": "north"}


@pytest.mark.parametrize(
    ("name", "hint"), [("num_thread", "Did you mean num_threads?"), ("temperature", "an option of a model")]
)
def test_a_likely_mistake_is_no_setting_of_the_program(name: str, hint: str) -> None:
    for change in (dspy.configure, lambda **values: dspy.context(**values).__enter__()):
        with pytest.raises(ConfigurationError, match=hint):
            change(**{name: 1})
