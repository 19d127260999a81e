"""One call of Predict whose answer is stored, two fields in and two out: in memory (h1), on disk (h2)."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sigwire
from benchmarks.predict import INPUTS, REPLY, Ask, checked, floor_messages, floor_read
from benchmarks.timing import FLOOR, SIGWIRE, Contestant, Job
from sigwire.testing import FakeProvider

__all__ = ["jobs"]

MODEL = "openai/gpt-4o-mini"
OPTIONS = {"model": MODEL, "temperature": 0.0, "max_tokens": 1000}


def jobs() -> Iterator[Job]:
    """Yield h1 and h2. The answers are asked for once, over HTTP."""
    with tempfile.TemporaryDirectory() as folder, FakeProvider([REPLY]) as provider:
        sigwire.configure_cache(disk_cache_dir=folder)
        lm = sigwire.LM(MODEL, base_url=provider.url("openai"), api_key="benchmark", temperature=0.0, max_tokens=1000)
        call, answer = sigwire_call(lm), lm_answer(lm)
        memory: dict[str, Any] = {}
        yield Job(
            "h1",
            "cached call, memory",
            "≤ 39 µs",
            {FLOOR: checked(floor(memory.get, memory.__setitem__, answer)), SIGWIRE: checked(call)},
        )
        sigwire.configure_cache(enable_memory_cache=False, disk_cache_dir=folder)
        get, put = on_disk(Path(folder) / "floor.sqlite3")
        yield Job(
            "h2", "cached call, disk", "≤ 56 µs", {FLOOR: checked(floor(get, put, answer)), SIGWIRE: checked(call)}
        )
        assert len(provider.requests) == 1
        sigwire.configure_cache(False, False)


def lm_answer(lm: sigwire.LM) -> Any:
    """Return the provider's JSON of the answer, which the floor stores as well."""
    return lm.history[-1]["response"].raw


def sigwire_call(lm: sigwire.LM) -> Contestant:
    predict = sigwire.Predict(Ask)
    predict.lm = lm
    predict(**INPUTS)

    def call() -> tuple[str, float]:
        prediction = predict(**INPUTS)
        return prediction.answer, prediction.confidence

    return call


# --- by hand -----------------------------------------------------------------------------------------


def floor(get: Callable[[str], Any], put: Callable[[str, Any], object], answer: Any) -> Contestant:
    """Return the whole call by hand: messages, key, look-up, reading."""

    def call() -> tuple[str, float]:
        request = {"messages": floor_messages(INPUTS["context"], INPUTS["question"]), **OPTIONS}
        key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
        found = get(key)
        if found is None:
            put(key, found := answer)
        return floor_read(found["choices"][0]["message"]["content"])

    return call


def on_disk(path: Path) -> tuple[Callable[[str], Any], Callable[[str, Any], object]]:
    """Return get and put of a table of JSON texts."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE answers (key TEXT UNIQUE, value TEXT)")

    def get(key: str) -> Any:
        row = connection.execute("SELECT value FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(key: str, value: Any) -> None:
        connection.execute("INSERT INTO answers VALUES (?, ?)", (key, json.dumps(value)))

    return get, put
