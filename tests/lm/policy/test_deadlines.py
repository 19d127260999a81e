"""``Timeout`` and ``deadline``: values, contexts, tools, name look-ups."""

from __future__ import annotations

import asyncio
import copy
import pickle
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import sigwire
import sigwire.lm.http.async_client  # its import takes a part of a short timeout
from sigwire.core.tools.calls import ToolCall
from sigwire.effects.loops import to_thread
from sigwire.errors import ConfigurationError, LMTimeoutError
from sigwire.lm.http.transport import HttpTransport
from sigwire.lm.policy.deadlines import Timeout, current_deadline, deadline, remaining_seconds, resolve_timeout
from sigwire.modules.agents.toolbox import Toolbox
from tests.lm.calls import HELLO, KEY, Clock, forget_keys, patient
from tests.patience import PATIENCE


def test_limits_are_those_of_the_timeout_or_the_number_or_the_transport() -> None:
    with HttpTransport(connect_timeout=3, timeout=5, idle_timeout=None) as transport:
        assert resolve_timeout(None, transport) == Timeout(3, None, None, 5, None)
        assert resolve_timeout(7, transport) == Timeout(3, None, None, 7, 7)
        assert resolve_timeout(Timeout(first=1), transport) == Timeout(first=1)
    assert resolve_timeout(None) == Timeout()
    assert resolve_timeout(None, object()) == Timeout(None, None, None, None, None)


@pytest.mark.parametrize(
    "wrong", [{"idle": 0}, {"total": -1}, {"first": "1"}, {"connect": True}, {"exchange": float("nan")}]
)
def test_timeout_refuses_what_is_no_limit(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="above 0, or None"):
        Timeout(**wrong)


def test_timeout_is_refused_by_name() -> None:
    wrong: Any = {"conect": 1}
    with pytest.raises(ConfigurationError, match="Did you mean connect"):
        Timeout(**wrong)


def test_timeout_survives_copies_and_pickles_of_a_model() -> None:
    lm = sigwire.LM("openai/gpt-4.1", timeout=Timeout(first=3))
    for other in (copy.deepcopy(lm), pickle.loads(pickle.dumps(lm)), lm.copy(temperature=1.0)):
        assert other.timeout == Timeout(first=3)
    assert lm.copy(timeout=5).timeout == 5
    assert "timeout=Timeout(connect=10.0, first=3" in repr(lm)


def test_earliest_of_nested_deadlines_holds() -> None:
    with deadline(10):
        outer = current_deadline()
        with deadline(20):
            assert current_deadline() == outer
        with deadline(5):
            assert (remaining_seconds() or 0) < 5.01
        assert current_deadline() == outer
    assert current_deadline() is None


@pytest.mark.parametrize("wrong", [-1, "5", float("nan"), None])
def test_deadline_refuses_what_is_no_time(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="number of seconds"), deadline(wrong):
        pass


async def test_deadline_holds_in_tasks_and_threads() -> None:
    async def left() -> float | None:
        return remaining_seconds()

    with deadline(10):
        assert all(await asyncio.gather(asyncio.create_task(left()), to_thread(remaining_seconds)))
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(sigwire.settings.bind(remaining_seconds)).result()


# --- tools ---------------------------------------------------------------------------------------------


def slow() -> str:
    time.sleep(90)
    return "done"


async def slow_async() -> str:
    await asyncio.sleep(90)
    return "done"


@pytest.mark.parametrize("function", [slow, slow_async])
@pytest.mark.parametrize("how", ["blocking", "awaited"])
@pytest.mark.parametrize(
    ("own", "text"), [(None, "before the deadline"), (9, "before the deadline"), (0.05, "within 0.05 seconds")]
)
async def test_deadline_bounds_tools(how: str, function: Callable[[], Any], own: float | None, text: str) -> None:
    box, calls = Toolbox([function], timeout=own), [ToolCall("call_0", function.__name__, {})]
    started = time.monotonic()
    with deadline(0.15):
        (result,) = box(calls) if how == "blocking" else await box.acall(calls)
    assert time.monotonic() - started < 60
    assert (result.is_error, result.text) == (True, f"The tool did not finish {text}.")


# --- name look-ups -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["blocking", "awaited"])
async def test_slow_name_lookup_ends_at_the_timeout(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)
    released, found = threading.Event(), list[str]()

    def hang(*args: Any, **kwargs: Any) -> Any:
        released.wait(PATIENCE)
        found.append("late")
        raise socket.gaierror("late")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    lm = sigwire.LM("openai/m", base_url="http://slow.example/v1", api_key=KEY, timeout=0.2, retry=patient(Clock()))
    with pytest.raises(LMTimeoutError):
        lm.respond(HELLO) if how == "blocking" else await lm.arespond(HELLO)
    assert found == []
    released.set()


def test_failed_name_lookup_is_a_transport_error(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    lm = sigwire.LM("openai/m", base_url="http://no.example/v1", api_key=KEY, num_retries=0)
    with pytest.raises(sigwire.LMTransportError, match="not known"):
        lm.respond(HELLO)
