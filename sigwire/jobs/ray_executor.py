"""``RayExecutor``: the workers of a Ray cluster as a PEP 3148 executor. Ray is imported by the first chunk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from sigwire.errors import ConfigurationError

__all__ = ["RayExecutor"]

P = ParamSpec("P")
T = TypeVar("T")


class RayExecutor(Executor):
    """The workers of the Ray cluster that ``ray.init`` has joined, for ``map_rows``.

    Each chunk is a task of ``num_cpus`` CPUs that Ray does not retry: the driver does, with the journal of the rows
    (https://docs.ray.io/en/latest/ray-core/fault_tolerance/tasks.html). The end of the executor leaves Ray running. Raises
    ``ConfigurationError`` if Ray is not installed.

    >>> RayExecutor(num_cpus=2).num_cpus
    2
    """

    def __init__(self, *, num_cpus: float = 1) -> None:
        self.num_cpus = num_cpus
        self._tasks: dict[object, Any] = {}  # each new task of a function costs an export

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Send a call to a worker; return its future."""
        try:
            ray: Any = import_module("ray")
        except ImportError as error:
            raise ConfigurationError(
                "Ray is not installed (sending a chunk). Install it beside sigwire: pip install ray."
            ) from error
        if function not in self._tasks:
            self._tasks[function] = ray.remote(max_retries=0, num_cpus=self.num_cpus)(function)
        future: Future[T] = self._tasks[function].remote(*args, **kwargs).future()
        return future
