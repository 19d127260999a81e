"""Rows of data on many processes: chunks of rows go to any PEP 3148 executor as text, and records come back as text.

    driver  rows ─chunks─▶ executor.submit(run_chunk, job_text, chunk_text) ─▶ records
    worker  run_chunk: program, model and settings from the job; one event loop for the process; a journal line for each row

job      Job: what a worker needs, as JSON          paths    names of importable objects
worker   run_chunk                                  submissions  an executor, and the futures of chunks that are out
driver   Driver: chunks, losses, quarantine         journal  files of rows that started, and of their records
errors   JobRefused                                 orphan   the end of a worker whose driver was killed
coordinator  Coordinator: an HTTP server that gives permits within limits    lease_book  its permits, without a network
permits  the worker's side of a coordinator         ray_executor  RayExecutor

The room knows nothing of evaluation, which gives a job the runner of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names

if TYPE_CHECKING:
    from sigwire.jobs.coordinator import Coordinator
    from sigwire.jobs.errors import JobRefused
    from sigwire.jobs.job import Job
    from sigwire.jobs.permits import CoordinatorLost, permits_of
    from sigwire.jobs.ray_executor import RayExecutor
    from sigwire.jobs.worker import run_chunk

__all__ = ["Coordinator", "CoordinatorLost", "Job", "JobRefused", "RayExecutor", "permits_of", "run_chunk"]

__getattr__ = lazy_names(
    __name__,
    coordinator="Coordinator",
    errors="JobRefused",
    job="Job",
    permits="CoordinatorLost permits_of",
    ray_executor="RayExecutor",
    worker="run_chunk",
)
