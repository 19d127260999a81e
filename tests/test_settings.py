"""Settings: defaults for the process, values for a context, right in threads, tasks, pools and notebook cells."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.errors import ConfigurationError
from sigwire.lm.fake import FakeLM
from sigwire.observe.callbacks import BaseCallback
from sigwire.settings import Settings, bind, configure, context, current, settings

module = importlib.import_module("sigwire.settings")  # the package shows the object of that name


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    """Every test begins with the defaults and leaves them."""
    before = module._defaults
    module._defaults = Settings()
    yield
    module._defaults = before


def test_configure_is_visible_in_every_thread() -> None:
    seen: list[int] = []
    configure(num_threads=3)
    thread = threading.Thread(target=lambda: seen.append(settings.num_threads))
    thread.start()
    thread.join()
    assert seen == [3]


def test_any_thread_may_configure() -> None:
    threads = [threading.Thread(target=configure, kwargs={"num_threads": n}) for n in (2, 3)]
    for thread in threads:
        thread.start()
        thread.join()
    assert settings.num_threads == 3


async def test_any_task_may_configure() -> None:
    async def cell(n: int) -> None:
        configure(num_threads=n)

    await asyncio.create_task(cell(4))
    await asyncio.create_task(cell(5))
    assert settings.num_threads == 5


def test_context_ends_with_its_block_also_after_an_exception() -> None:
    seen: list[int] = []

    def fail() -> None:
        with context(num_threads=2):
            seen.append(settings.num_threads)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert seen == [2]
    assert settings.num_threads == 8


def test_contexts_nest_and_override_only_their_keys() -> None:
    with context(num_threads=2, max_trace_size=7):
        with context(num_threads=3):
            assert (settings.num_threads, settings.max_trace_size) == (3, 7)
        assert settings.num_threads == 2


def test_configure_inside_a_context_does_not_override_keys_of_the_context() -> None:
    with context(num_threads=2):
        assert settings.num_threads == 2
        configure(num_threads=5, max_trace_size=9)
        assert (settings.num_threads, settings.max_trace_size) == (2, 9)
    assert (settings.num_threads, settings.max_trace_size) == (5, 9)


UNKNOWN = [
    lambda: configure(temperature=1),
    lambda: context(temperature=1).__enter__(),
    lambda: settings.temperature,
    lambda: settings["temperature"],
]


@pytest.mark.parametrize("use", UNKNOWN)
def test_unknown_key_raises_with_the_known_keys(use: Any) -> None:
    with pytest.raises(
        (ConfigurationError, AttributeError, KeyError),
        match=r"'temperature'.*adapter, budget, callbacks, fresh, injected, lm",
    ):
        use()


def test_unknown_key_changes_nothing() -> None:
    with pytest.raises(ConfigurationError):
        configure(num_threads=2, temperature=1)
    assert settings.num_threads == 8


UNFIT: list[tuple[str, Any]] = [
    ("lm", "openai/gpt-5-mini"),
    ("lm", object()),
    ("adapter", "chat"),
    ("callbacks", "no list"),
    ("num_threads", 0),
    ("num_threads", "8"),
    ("max_history_size", -1),
    ("max_trace_size", None),
    ("lm", FakeLM),
    ("adapter", ChatAdapter),
    ("callbacks", [BaseCallback]),
    ("num_threads", True),
    ("trace", 3),
    ("track_usage", "no"),
]


@pytest.mark.parametrize(("name", "value"), UNFIT)
def test_invalid_value_raises_when_set(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"'{name}' takes "):
        configure(**{name: value})


def test_assigning_a_setting_raises() -> None:
    with pytest.raises(AttributeError, match="configure"):
        settings.num_threads = 2


def test_get_returns_the_default_for_unknown_names() -> None:
    assert settings.get("nothing") is None
    assert settings.get("num_threads") == 8
    assert "num_threads" in settings
    assert "nothing" not in settings
    assert list(settings) == [field.name for field in fields(Settings)]


async def test_tasks_inherit_the_context_and_are_isolated() -> None:
    async def task(n: int) -> list[int]:
        with context(num_threads=n):
            seen = [settings.num_threads]
            await asyncio.sleep(0.001)
            seen.append(settings.num_threads)
            seen.append(await asyncio.to_thread(lambda: settings.num_threads))
        return seen

    assert await asyncio.gather(*(task(n) for n in range(1, 9))) == [[n] * 3 for n in range(1, 9)]


def test_contexts_of_two_threads_are_isolated() -> None:
    barrier = threading.Barrier(2)
    seen: dict[int, list[int]] = {1: [], 2: []}

    def work(n: int) -> None:
        with context(num_threads=n):
            for _ in range(50):
                barrier.wait()
                seen[n].append(settings.num_threads)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {1: [1] * 50, 2: [2] * 50}


def test_thread_pool_sees_the_context_only_with_bind() -> None:
    with ThreadPoolExecutor(4) as pool, context(num_threads=2):
        assert list(pool.map(bind(lambda _: settings.num_threads), range(20))) == [2] * 20
        assert pool.submit(lambda: settings.num_threads).result() == 8


def test_bound_function_keeps_the_context_of_its_binding() -> None:
    with context(num_threads=2):
        bound = bind(lambda more: settings.num_threads + more)
    assert bound(more=1) == 3


def test_notebook_cells_share_configured_values() -> None:
    """A notebook runs each cell as a task in a context of its own: what a context variable holds would be lost."""

    async def configuring_cell() -> None:
        configure(num_threads=6)

    async def later_cell() -> int:
        return current().num_threads

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(loop.create_task(configuring_cell(), context=contextvars.Context()))
        assert loop.run_until_complete(loop.create_task(later_cell(), context=contextvars.Context())) == 6
    finally:
        loop.close()


def test_current_returns_one_object_until_a_change() -> None:
    with context(num_threads=2):
        assert current() is current()
        before = current()
        configure(max_trace_size=3)
        assert current() is not before


def test_docs_show_the_table_of_settings() -> None:
    text = (Path(__file__).parent.parent / "docs" / "modules.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| (.*?) \|$", text, re.MULTILINE))
    assert {name: rows.get(name) for name in settings} == settings.meanings()
