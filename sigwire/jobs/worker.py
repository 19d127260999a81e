"""``run_chunk``: the rows of a chunk, in a worker. Two texts go in, one comes out.

    {"records": [...]}                                             one for each row
    {"records": [...], "refused": {"kind", "message"}}             why this worker, and each other, runs no more of them
    {"records": [...], "lost": [["row 7", 1]]}                     rows that were under way when an earlier worker was lost

Nothing is raised on purpose: an engine reads an exception as a lost worker and runs the chunk again. An engine that runs the
chunk of a lost worker again by itself (Dask) gets the other rows: a row that ended one worker ends no second one before the
driver knows of it. A process has one event
loop and, for each number of rows at once, one semaphore, which all chunks share; a job is built once.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import Context
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.lazy import version
from sigwire.effects.forks import on_fork
from sigwire.effects.loops import block_on
from sigwire.effects.steps import Steps, arun
from sigwire.effects.waiting import sleep
from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.jobs.errors import RowEnded, error_text
from sigwire.jobs.journal import BlockState, RowAttempt, key_of, read_block
from sigwire.jobs.orphan import DriverWatch
from sigwire.jobs.paths import digests_of, load_path
from sigwire.lm.base import BaseLM
from sigwire.lm.client import LM
from sigwire.lm.policy.limits.runs import Run, current_run
from sigwire.modules.module import Module
from sigwire.modules.programs.decoding import ProgramRegistry
from sigwire.settings import context

__all__ = ["RowSteps", "run_chunk"]

_KEPT_JOBS = 64
_NANNY_SECONDS = 1.0  # a nanny looks 20 times a second
_JOB = {*"program state lm adapter metrics settings concurrency key rows options runner journal".split(), "versions"}
_ROW = {"id", "index", "repeat", "inputs", "labels"}
_FORM = "job_text is that of Job.text(); chunk_text is {'block': name, 'rows': [row, ...]}."


class RowSteps(Protocol):
    """The runner of rows that a job names: called with program, metrics, options and the function that reads a row."""

    def steps(self, row: JsonObject) -> Steps[JsonObject]: ...


def run_chunk(job_text: str, chunk_text: str) -> str:
    """Run the rows of a chunk that its journal does not have; return their records as JSON. Blocks.

    ``job_text`` is that of ``Job.text``. Called again with the same texts, it makes no second call for a finished row, and
    none for a row that was under way in a call that ended without an answer: ``lost`` names it.
    The context of the caller does not count, as in the thread of a pool: the coordinator charges the budgets that are open
    there, and would wait for what the same call holds of them.
    """
    return Context().run(_run_chunk, job_text, chunk_text)


def _run_chunk(job_text: str, chunk_text: str) -> str:
    try:
        worker = _worker_of(job_text)
        chunk = _chunk_of(chunk_text)
    except Exception as error:  # code of the user is imported
        return json.dumps({"records": [], "refused": _refusal(error)})
    _wait_for_nanny()
    with _watch, worker.permits():
        _watch.start(worker.driver)
        return json.dumps(block_on(worker.run(chunk)))


class _Worker:
    """A job that is built: its runner, and the settings of its rows."""

    def __init__(self, job: JsonObject) -> None:
        _check_versions(cast("Mapping[str, str]", job["versions"]))
        settings = dict(cast(JsonObject, job["settings"]))
        program = _program_of(job)
        metrics = [load_path(str(path)) for path in cast("list[JsonValue]", job["metrics"])]
        self._settings: dict[str, object] = {
            **settings,
            **{name: made for name, made in (("lm", _lm_of(job)), ("adapter", _adapter_of(job["adapter"]))) if made},
        }
        make = cast("Callable[..., RowSteps]", load_path(str(job["runner"])))
        read = None if job["rows"] is None else load_path(str(job["rows"]))
        self._runner = make(program, metrics, job["options"], read)
        self._concurrency = cast(int, job["concurrency"])
        self.driver = job.get("driver")
        self._journal = None if job["journal"] is None else Path(str(job["journal"]))
        self._coordinator = cast("str | None", job.get("coordinator"))
        if self._coordinator is not None:
            self._settings["budget"] = (
                None  # of the driver's process, in a thread of it: the coordinator charges that budget
            )

    def permits(self) -> AbstractContextManager[object]:
        """Return the block in which calls of models need permits of the coordinator, if the job has one."""
        if self._coordinator is None:
            return nullcontext()
        from sigwire.jobs.permits import permits_of  # needed for limits only

        return permits_of(self._coordinator)

    async def run(self, chunk: JsonObject) -> JsonObject:
        """Return the answer for a chunk."""
        rows = cast("list[JsonObject]", chunk["rows"])
        block = None if self._journal is None else self._journal / str(chunk["block"])
        state = BlockState() if block is None else read_block(block)
        records = [state.done[key_of(row)] for row in rows if key_of(row) in state.done]
        answer: JsonObject = {"records": cast("list[JsonValue]", records)}
        if lost := [key for row in rows if (key := key_of(row)) in state.lost]:
            answer["lost"] = [[*key] for key in lost]
        attempt = RowAttempt(block)
        current_run.set(Run())
        try:
            with context(**self._settings):
                async with asyncio.TaskGroup() as group:
                    for row in rows:
                        if key_of(row) not in state.done and key_of(row) not in state.lost:
                            group.create_task(self._one(row, attempt, records, answer))
        finally:
            attempt.close()
        return answer

    async def _one(self, row: JsonObject, attempt: RowAttempt, records: list[JsonObject], answer: JsonObject) -> None:
        async with _slots(self._concurrency):
            if "refused" in answer or _watch.is_orphan or attempt.is_stopped():
                return
            attempt.start(row)
            try:
                record = await arun(self._runner.steps(row))
            except RowEnded as ended:
                answer.setdefault("refused", _refusal(ended.error))
                record = ended.record
            except Exception as error:  # of a kind that ends the run
                answer.setdefault("refused", _refusal(error))
                return
            attempt.done(record)
            records.append(record)


def _chunk_of(text: str) -> JsonObject:
    chunk = _parsed(text, "chunk_text", {"block", "rows"})
    rows = chunk["rows"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.keys() >= _ROW for row in rows):
        raise ConfigurationError(
            f"Each row of chunk_text is an object with {', '.join(sorted(_ROW))} (running a chunk)."
        )
    return chunk


def _parsed(text: str, name: str, keys: set[str]) -> JsonObject:
    try:
        data: JsonValue = json.loads(text)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name} is no JSON (running a chunk): {error}. {_FORM}") from error
    if not isinstance(data, dict) or not data.keys() >= keys:
        raise ConfigurationError(f"{name} is no object with {', '.join(sorted(keys))} (running a chunk). {_FORM}")
    return data


def _refusal(error: Exception) -> JsonObject:
    kind = "budget" if isinstance(error, BudgetSpent) else "versions" if isinstance(error, _OtherVersions) else "job"
    return {"kind": kind, "message": error_text(error)}


# --- one of each for a process -----------------------------------------------------------------------

_lock = threading.Lock()
_watch = DriverWatch()
_workers: OrderedDict[str, _Worker] = OrderedDict()
_ready_at = 0.0  # after which rows may end this process, if it has a nanny
_semaphores: dict[int, asyncio.Semaphore] = {}


def _worker_of(job_text: str) -> _Worker:
    """Return the worker of a job, built once. A job that is refused is read again each time."""
    digest = sha256(job_text.encode()).hexdigest()
    with _lock:
        worker = _workers.get(digest)
        if worker is None:
            worker = _workers[digest] = _Worker(_parsed(job_text, "job_text", _JOB))
            if len(_workers) > _KEPT_JOBS:
                _workers.popitem(last=False)
        return worker


def _slots(concurrency: int) -> asyncio.Semaphore:
    """Return the semaphore of all jobs with this concurrency. Called on the one loop, so without a lock."""
    return _semaphores.setdefault(concurrency, asyncio.Semaphore(concurrency))


def _wait_for_nanny() -> None:
    """Wait until the nanny of a new Dask worker knows that it runs: it starts no other one for a worker that dies before."""
    global _ready_at
    with suppress(ImportError, ValueError):  # ValueError: this is no worker of Dask
        if "distributed" in sys.modules and getattr(import_module("distributed").get_worker(), "nanny", None):
            with _lock:
                _ready_at = _ready_at or time.monotonic() + _NANNY_SECONDS
            sleep(_ready_at - time.monotonic())


@on_fork
def _forget() -> None:
    """Forget what belongs to the loop and the threads of the parent of a fork."""
    global _lock, _watch
    _lock, _watch = threading.Lock(), DriverWatch()
    _workers.clear()
    _semaphores.clear()


# --- building a job ----------------------------------------------------------------------------------


class _OtherVersions(ConfigurationError):
    """The worker has another version of something that decides the records."""


def _check_versions(wanted: Mapping[str, str]) -> None:
    if not wanted:
        return
    found = {"python": ".".join(map(str, sys.version_info[:2])), "sigwire": version()}
    found |= digests_of(name for name in wanted if name not in found)
    for name, value in wanted.items():
        if found.get(name, value) != value:
            other = f"{name} {found[name]}" if name in ("python", "sigwire") else f"another file of {name}"
            mine = f"{name} {value}" if name in ("python", "sigwire") else "the driver's"
            raise _OtherVersions(
                f"A worker has {other}, and the job was made with {mine} (building the job). Install the same, or pass "
                "allow_versions=True."
            )


def _program_of(job: JsonObject) -> object:
    data, state = job["program"], cast("JsonObject | None", job["state"])
    if isinstance(data, dict):
        program = _decoded_program(data)
    else:
        program = load_path(str(data))
        if isinstance(program, type) or (state is not None and not isinstance(program, Module)):
            program = cast("Callable[[], object]", program)()
    if state is not None and isinstance(program, Module):
        program = program.deepcopy().load_state(state, allow_unsafe_lm_state=True)  # the driver's own
        for predictor in program.predictors():
            predictor.lm = _with_key(predictor.lm, job["key"])
    return program


def _decoded_program(data: JsonObject) -> object:
    named = [load_path(str(path)) for path in cast("dict[str, str]", data.get("names") or {}).values()]
    functions = [cast("Callable[..., object]", each) for each in named if not isinstance(each, type)]
    return ProgramRegistry([each for each in named if isinstance(each, type)], functions, True).decode(data)


def _lm_of(job: JsonObject) -> object:
    given, key = job["lm"], job["key"]
    lm: Any = None
    if isinstance(given, dict):
        lm = BaseLM.load_state(given, allow_unsafe_lm_state=True)
    elif given is not None:
        path = str(given)
        lm = LM(path) if "/" in path else cast("Callable[[], object]", load_path(path))()
    return _with_key(lm, key)


def _with_key(lm: Any, key: JsonValue) -> Any:
    return lm if key is None or lm is None else lm.copy(api_key=load_path(str(key)))


def _adapter_of(data: JsonValue) -> object:
    if isinstance(data, dict):
        return cast("Callable[..., object]", load_path(str(data["class"])))(**cast(JsonObject, data["options"]))
    return None if data is None else cast("Callable[[], object]", load_path(str(data)))()
