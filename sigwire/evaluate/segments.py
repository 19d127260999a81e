"""``Segment``: a part of a run, from a start to the next: in which surroundings it ran, and which models answered in it.

A run that is resumed has several. Their headers stand in its file, each in front of its records.
"""

from __future__ import annotations

import platform
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sigwire.core.json import JsonObject, Value
from sigwire.core.lazy import version
from sigwire.core.narrow import is_items, is_object
from sigwire.errors import warn_user
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.fingerprint.reading import package_version
from sigwire.evaluate.git import git_state
from sigwire.show.numbers import count

__all__ = ["Segment", "SegmentCounter", "segment_rows", "surroundings", "utc_now", "warn_of_unknown"]

_DECIDING = ("pydantic", "jsonschema")  # packages whose version can change an answer
_MOST_NAMED = 6


def surroundings(*, with_git: bool = True) -> JsonObject:
    """Return the facts of each header about the place of its part: time, versions, and in a repository the commit."""
    git = git_state() if with_git else None
    return {
        "sigwire": version(),
        "started": utc_now(),
        "python": platform.python_version(),
        "packages": {name: package_version(name) for name in _DECIDING},
        **({} if git is None else {"git": git}),
    }


@dataclass(frozen=True, slots=True)
class Segment(Value):
    """A part of a run. ``records``: those that it made and that count; ``served``: answers by the name that a model reports.

    ``model``: the one that was asked, "" if it is unknown, as ``commit``. ``forced``: what differs from the part before, which
    ``resume="force"`` kept.

    >>> header = {"started": "2026-01-02T03:04:05.006Z", "sigwire": "0.1", "git": {"commit": "0123456789ab", "dirty": True}}
    >>> print(Segment.of(header, 3, {"m-2026 fp_44": 3}))
    2026-01-02 03:04 · commit 0123456789 with changes · sigwire 0.1 · 3 records · m-2026 fp_44
    """

    started: str = ""
    sigwire: str = ""
    python: str = ""
    model: str = ""
    commit: str = ""
    dirty: bool = False
    forced: tuple[str, ...] = ()
    records: int = 0
    served: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(cls, header: Mapping[str, Any], records: int, served: Mapping[str, int]) -> Segment:
        """Return the part of a header."""
        git, lm, forced = header.get("git"), header.get("lm"), header.get("forced")
        found: JsonObject = git if is_object(git) else {}
        return cls(
            str(header.get("started", "")),
            str(header.get("sigwire", "")),
            str(header.get("python", "")),
            model=str(lm.get("model") or "") if is_object(lm) else "",
            commit=str(found.get("commit", "")),
            dirty=found.get("dirty") is True,
            forced=tuple(map(str, forced)) if is_items(forced) else (),
            records=records,
            served=dict(served),
        )

    @property
    def reported(self) -> Mapping[str, int]:
        """The answers by the name that their model reports, without the names that were asked for."""
        asked = {part.rpartition("/")[2] for part in (self.model, *self.model.split(", "))} | {self.model}
        return {name: number for name, number in self.served.items() if name not in asked}

    @property
    def commit_text(self) -> str:
        """The commit as text, and whether files differ from it."""
        return f"commit {self.commit[:10]}{' with changes' if self.dirty else ''}" if self.commit else ""

    def __str__(self) -> str:
        parts = (
            self.started[:16].replace("T", " "),
            self.commit_text,
            f"sigwire {self.sigwire}" if self.sigwire else "",
            f"Python {self.python}" if self.python else "",
            count(self.records, "record"),
            ", ".join(self.reported),
            f"kept by force: {'; '.join(self.forced)}" if self.forced else "",
        )
        return " · ".join(part for part in parts if part)


class SegmentCounter:
    """Counts the records and the reported models of the parts of a run, in the order of their headers.

    >>> counter = SegmentCounter([{"sigwire": "0.1"}, {"sigwire": "0.2"}])
    >>> counter.add(Cell(1.0, served={"m": 2}), 1)
    >>> [(each.sigwire, each.records, each.served) for each in counter.segments()]
    [('0.2', 1, {'m': 2})]
    """

    def __init__(self, headers: Iterable[Mapping[str, Any]] = ()) -> None:
        self.headers: list[Mapping[str, Any]] = [*headers]
        self._records, self._served = Counter[int](), dict[int, Counter[str]]()
        self._lock = threading.Lock()

    def start(self, header: Mapping[str, Any]) -> None:
        """Begin the next part."""
        self.headers.append(header)

    def add(self, cell: Cell, number: int = -1) -> None:
        """Count a record of a part, by default of the last one. Thread-safe."""
        place = number % len(self.headers) if self.headers else 0
        with self._lock:
            self._records[place] += 1
            served = self._served.setdefault(place, Counter())
            served.update(cell.served)
            served.update({f"{name} (metric)": answers for name, answers in cell.metric_served.items()})

    def segments(self) -> tuple[Segment, ...]:
        """Return the parts; those without a record, such as one that found all of them, are left out."""
        found = [
            Segment.of(header, self._records[place], self._served.get(place, {}))
            for place, header in enumerate(self.headers)
        ]
        return tuple(each for each in found if each.records or each.forced) or tuple(found[-1:])


def segment_rows(segments: Sequence[Segment]) -> list[tuple[str, list[str]]]:
    """Return the rows of a card about the parts of a run: one each if there are several, else the models that answered in place
    of the one that was asked.

    >>> segment_rows([Segment(served={"m fp_1": 3, "m fp_2": 1})])
    [('served by', ['m fp_1: 3 answers, m fp_2: 1 answer'])]
    """
    if len(segments) > 1:
        return [("segments", [f"{number}: {each}" for number, each in enumerate(segments, 1)])]
    served = [f"{name}: {count(number, 'answer')}" for each in segments for name, number in each.reported.items()]
    return [("served by", [", ".join(served)])] if served else []


def warn_of_unknown(name: str, *headers: Mapping[str, Any]) -> None:
    """Warn that a file is resumed whose records depend on what no fingerprint can compare, each part by its name."""
    found: dict[str, None] = {}
    for header in headers:
        fingerprint = header.get("fingerprint")
        unknown = fingerprint.get("unknown") if is_object(fingerprint) else None
        found |= dict.fromkeys(map(str, unknown)) if is_items(unknown) else {}
    if not found:
        return
    shown = "; ".join([*found][:_MOST_NAMED])
    more = f"; … {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    warn_user(
        f"{name} is resumed, and nothing shows whether these parts of the run are the same: {shown}{more}. If one has "
        "changed, write another file."
    )


def utc_now() -> str:
    """Return the time in UTC, to the millisecond."""
    seconds = time.time()
    return f"{_second_text(int(seconds))}.{int(seconds % 1 * 1000):03d}Z"


@lru_cache(maxsize=1)
def _second_text(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
