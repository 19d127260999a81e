"""``python -m benchmarks.entries``: the functions and files of sigwire that a call enters, and a streamed delta of a field.

The counts are exact and the same on a busy machine, unlike times. An entry is a ``call`` event of ``sys.setprofile`` in a file
of the package: a call of a function, or a step of a generator or coroutine. Lambdas, comprehensions and C code do not count.
The stub server answers over HTTP, as in job c1; the LM, its client and the plan of the signature are warm.

python -m benchmarks.entries               one table
python -m benchmarks.entries --list call   each entry of a row, in order: call, awaited or delta
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import sigwire
from benchmarks.over_http import model, predictor
from benchmarks.predict import INPUTS
from benchmarks.server import serving
from sigwire.core.events import FieldDelta

__all__ = ["Entry", "Recorder", "counts", "up_to_http"]

PACKAGE = f"{Path(sigwire.__file__).parent}/"
SKIPPED = frozenset({"<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
WARM_CALLS = 5
FIRST_DELTAS = 5
MOST_STREAMS = 100
QUESTION = "When was the bridge opened?"


class Entry(NamedTuple):
    """A function of the package that was entered."""

    file: str
    function: str


class Recorder:
    """A context manager that records the entries of the current thread.

    >>> from benchmarks.entries import Recorder
    >>> with Recorder() as recorder:
    ...     _ = sigwire.ToolCall.read("call_0", "f", "{}")
    >>> recorder.entries[0]
    Entry(file='core/tools/calls.py', function='read')
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def __enter__(self) -> Recorder:
        self._before = sys.getprofile()
        sys.setprofile(self._record)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(self._before)

    def _record(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name not in SKIPPED:
            self.entries.append(Entry(code.co_filename.removeprefix(PACKAGE), code.co_name))


def up_to_http(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries before the first one of ``lm/http``: what stands between the inputs and the socket.

    >>> up_to_http([Entry("modules/module.py", "__call__"), Entry("lm/http/exchange.py", "send")])
    [Entry(file='modules/module.py', function='__call__')]
    """
    return entries[: next((n for n, entry in enumerate(entries) if entry.file.startswith("lm/http/")), len(entries))]


def files(entries: Sequence[Entry]) -> int:
    return len({entry.file for entry in entries})


def one_call(port: int) -> list[Entry]:
    """Return the entries of one blocking call."""
    predict = predictor(port, "predict")
    return recorded(lambda: predict(**INPUTS), predict)


def one_awaited_call(port: int) -> list[Entry]:
    """Return the entries of one awaited call."""
    predict = predictor(port, "predict")
    with closing(asyncio.new_event_loop()) as loop:
        return recorded(lambda: loop.run_until_complete(predict.acall(**INPUTS)), predict)


def recorded(call: Callable[[], object], predict: Any) -> list[Entry]:
    for _ in range(WARM_CALLS):
        call()
    with Recorder() as recorder:
        call()
    predict.lm.close()
    return recorder.entries


def deltas(port: int, script: str = "alone") -> list[list[Entry]]:
    """Return the entries of each delta of a field since the event before it, without the first deltas."""
    predict: Any = sigwire.Predict("question -> answer")
    predict.lm = model(port, script)
    for _ in range(2):
        for _ in predict.stream(question=QUESTION):
            pass
    found = [*between_deltas(predict.stream(question=QUESTION))][FIRST_DELTAS:]
    predict.lm.close()
    return found


def deltas_read_alone(port: int) -> list[list[Entry]]:
    """Return the deltas that a read of the socket gave alone: on a busy machine a read gives several, so it streams again."""
    for _ in range(MOST_STREAMS):
        found = deltas(port)
        if alone := [delta for delta, after in pairwise(found) if has_read(delta) and has_read(after)]:
            return alone
    raise RuntimeError(f"No delta was read alone in {MOST_STREAMS} streams.")


def has_read(entries: Sequence[Entry]) -> bool:
    return len(up_to_http(entries)) < len(entries)


def between_deltas(stream: Iterator[object]) -> Iterator[list[Entry]]:
    while True:
        with Recorder() as recorder:
            event = next(stream, None)
        if event is None:
            return
        if type(event) is FieldDelta:
            yield recorder.entries


def middle(streamed: Sequence[list[Entry]]) -> list[Entry]:
    """Return the delta with the median number of entries."""
    return sorted(streamed, key=len)[len(streamed) // 2]


def counts(port: int) -> Iterator[tuple[str, int, int]]:
    """Yield the rows of the table: what, entries, files."""
    for name, entries in (("call", one_call(port)), ("awaited call", one_awaited_call(port))):
        before = up_to_http(entries)
        yield f"{name}: inputs to lm/http", len(before), files(before)
        yield f"{name}: whole", len(entries), files(entries)
    alone, together = middle(deltas_read_alone(port)), deltas(port, "fields")
    yield "a field delta that is read alone", len(alone), files(alone)
    entries = [entry for delta in together for entry in delta]
    yield "a field delta of many in a read, mean", round(len(entries) / len(together)), files(entries)


LISTED: dict[str, Callable[[int], Sequence[Entry]]] = {
    "call": one_call,
    "awaited": one_awaited_call,
    "delta": lambda port: middle(deltas_read_alone(port)),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entries", description="What a call enters.")
    parser.add_argument("--list", choices=LISTED, help="each entry of a row")
    arguments = parser.parse_args()
    with serving() as port:
        if arguments.list:
            for entry, number in Counter(LISTED[arguments.list](port)).items():
                print(f"{number:4}  {entry.file}: {entry.function}")
        else:
            print("| what | entries | files |\n| --- | --- | --- |")
            for what, entries, number in counts(port):
                print(f"| {what} | {entries} | {number} |")


if __name__ == "__main__":
    main()
