"""DSPy's view of the settings."""

from __future__ import annotations

import asyncio

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.errors import ConfigurationError

HINTS = [
    ("disable_history", "max_history_size"),
    ("send_stream", "streamify"),
    ("usage_tracker", "track_usage"),
    ("async_max_workers", "num_threads"),
]


@pytest.mark.parametrize(("name", "hint"), HINTS)
def test_a_setting_of_dspy_alone_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"'{name}'\. .*{hint}.*adapter, budget, callbacks, fresh, lm"):
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
