"""``RayExecutor`` without a cluster: what Ray is asked for."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from sigwire.errors import ConfigurationError
from sigwire.jobs import RayExecutor
from tests.jobs.app import double


def test_executor_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match="pip install ray"):
        RayExecutor().submit(double, 2)


def test_executor_makes_one_task_of_a_function_that_ray_does_not_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, float]] = []

    def remote(**options: float) -> Any:
        made.append(options)
        return lambda function: SimpleNamespace(remote=lambda *args: Reference(function(*args)))

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(remote=remote))
    executor = RayExecutor(num_cpus=2)
    assert [executor.submit(double, number).result() for number in (1, 2)] == [2, 4]
    assert made == [{"max_retries": 0, "num_cpus": 2}]


class Reference:
    """A reference to the result of a task, as Ray's."""

    def __init__(self, value: object) -> None:
        self._value = value

    def future(self) -> Future[object]:
        found: Future[object] = Future()
        found.set_result(self._value)
        return found
