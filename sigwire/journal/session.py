"""One run of a program with a journal: replays the effects that are recorded, performs and records the others.

A tool is recorded as "started" before it begins and as "done" after its end; other effects are written once, when done.
Replay is by place: the first place without a recorded value is performed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.lazy import version
from sigwire.effects.loops import to_thread
from sigwire.effects.performing import Frame, Recordable, current_frame, passed_on
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.errors import InputError, StateError, warn_user
from sigwire.journal.divergence import divergence
from sigwire.journal.errors import ApprovalNeeded, JournalDivergence, PendingCall, ToolInterrupted
from sigwire.journal.forking import KEPT, Fork, first_run, fork_of, next_name, with_fork
from sigwire.journal.lock import RunLock
from sigwire.journal.packing import digest_of, pack, reading, unpack
from sigwire.journal.records import EffectRow, RunHead
from sigwire.journal.results import dump_result, load_result
from sigwire.journal.store import Store

__all__ = ["OnChange", "Redact", "Session", "pending_calls", "read_key"]

Redact: TypeAlias = Callable[[JsonValue], JsonValue]
OnChange: TypeAlias = Literal["raise", "fork"]

_WHY = "the process ended while the tool ran"


class Session:
    """A run from its start or restart to its end. ``inputs`` are ``None`` if the recorded inputs are used.

    ``replays`` runs a finished program again, for the events of a stream.
    """

    def __init__(
        self,
        store: Store,
        locks: Path,
        program: object,
        run: str,
        inputs: JsonObject | None,
        *,
        redact: Redact | None,
        on_change: OnChange,
        replays: bool = False,
    ) -> None:
        self._store, self._locks, self._program = store, locks, program
        self._run, self._inputs = run, inputs
        self._redact, self._on_change, self._replays = redact, on_change, replays
        self._rows: dict[str, EffectRow] = {}
        self._done: list[str] = []
        self._held: list[RunLock] = []
        self._changing = threading.Lock()
        head = store.head(run)
        self._fork = None if head is None else self._fork_of(head)
        self._is_finished = False
        self._outer = current_frame()

    def frame(self) -> Frame:
        """Return the frame under which the program must run. Forks of a run share its name, and so the keys of its calls."""
        return Frame(self._perform, first_run(self._run, self._fork), around=self._around)

    def _around(self, steps: Steps[Any]) -> Steps[Any]:
        """Return the steps of the whole run."""
        try:
            finished = self._open()
            if finished is not None:
                return finished[0]
            value = yield from steps
            yield _stored(partial(self._finish, value))
            return value
        except Exception as error:
            if self._held and not self._is_finished:
                state = "waiting" if isinstance(error, ApprovalNeeded) else "failed"
                self._store.set_run(self._run, state, f"{type(error).__name__}: {error}"[:2000])
            raise
        finally:
            for lock in self._held:
                lock.release()
            self._held = []

    # --- start and end ---

    def _open(self) -> tuple[object] | None:
        """Lock the run and read it; return its result if it is finished."""
        self._held.append(RunLock.acquire(self._locks, self._run))
        head = self._store.head(self._run)
        if head is None:
            self._add_run()
            return None
        if self._inputs is not None and head.inputs_digest != digest_of(self._inputs):
            raise InputError(
                f"The run {self._run!r} began with other inputs (starting the run). Pass the same, none, or another run=."
            )
        self._check_program(head)
        self._is_finished = head.state == "done"
        if head.result is not None and not self._replays:
            return (load_result(self._program, unpack(head.result, self._store.text)),)
        self._read_rows()
        return None

    def _add_run(self) -> None:
        now, given = time.time(), self._inputs or {}
        texts: dict[str, bytes] = {}
        header, inputs = pack(_header(self._program), texts.__setitem__), self._pack(given, texts)
        head = RunHead(self._run, "running", header, inputs, digest_of(given), None, None, now, now)
        self._store.add_run(head, texts)

    def _fork_of(self, head: RunHead) -> Fork | None:
        return reading(lambda: fork_of(unpack(head.header, self._store.text)))

    def _check_program(self, head: RunHead) -> None:
        if self._fork is not None and self._fork.at:  # made for another program; ``_recorded`` compares the places
            return
        before, now = unpack(head.header, self._store.text), _header(self._program)
        if {**before, "sigwire": "", "fork": None} != {**now, "sigwire": "", "fork": None}:
            warn_user(
                f"The run {self._run!r} is of another program: {before}, now {now} (starting the run). Recorded effects are "
                "used where place and request are equal.",
                RuntimeWarning,
            )

    def _read_rows(self) -> None:
        self._rows = {row.place: row for row in self._store.rows(self._run)}
        pending = pending_calls(self._store, [row for row in self._rows.values() if row.state == "started"])
        if any(row.on_crash == "fail" for row, _ in pending):
            raise ToolInterrupted(self._run, [call for row, call in pending if row.on_crash == "fail"])
        if pending:
            raise ApprovalNeeded(self._run, [call for _, call in pending])

    def _finish(self, value: object) -> None:
        if self._is_finished:
            return
        if unused := self._unused_decisions():
            raise StateError(
                f"The decisions about {', '.join(unused)} were not used: the program did not make these calls again (ending "
                f"the run {self._run!r}). Run the program that was suspended."
            )
        result = dump_result(self._program, value)
        texts: dict[str, bytes] = {}
        packed = None if result is None else self._pack(result, texts)
        self._store.set_run(self._run, "done", None, packed, texts)

    def _unused_decisions(self) -> list[str]:
        """Return the places of decided calls that this run did not reach; a decision about a call settles those inside."""
        decided = {place for place, row in self._rows.items() if row.decision is not None}
        outer = [place for place in decided if not any(place.startswith(f"{other}/") for other in decided)]
        return sorted(set(outer).difference(self._done))

    # --- effects ---

    def _perform(self, effect: Recordable[Any], frame: Frame) -> Steps[Any]:
        place, key = frame.path, effect.fingerprint()
        fingerprint = digest_of([effect.kind, key])
        row = self._recorded(place, effect, fingerprint, key)
        if row is not None and row.value is not None and row.decision is None:
            self._done.append(place)
            data = unpack(row.value, self._store.text)
            return (yield reading(lambda: effect.load(data)))
        attempt = 1 if row is None else reading(lambda: int(row.attempt) + 1)
        write = self._writer(effect, place, fingerprint, key, attempt)
        decision = None if row is None or row.decision is None else unpack(row.decision, self._store.text)
        if decision is not None and decision != "rerun":
            settled = effect.dump(cast(Any, effect).settle(decision))
            yield _stored(partial(write, "done", settled))
            return (yield effect.load(settled))
        on_crash = getattr(effect, "on_crash", None)
        if on_crash is not None:
            yield _stored(partial(write, "started"))
        try:
            value = yield from passed_on(effect, place, self._outer)
        except Exception as error:
            data = effect.dump_error(error)
            if data is not None or on_crash is not None:
                yield _stored(partial(write, "failed", data))
            raise
        waits = getattr(effect, "waits", None)
        yield _stored(partial(write, "waiting" if waits is not None and waits(value) else "done", effect.dump(value)))
        return value

    def _recorded(self, place: str, effect: Recordable[Any], fingerprint: str, key: JsonObject) -> EffectRow | None:
        """Return the row of a place. If another effect is recorded there, raise ``JournalDivergence``, or fork the run."""
        with self._changing:
            while (row := self._rows.get(place)) is not None and row.fingerprint != fingerprint:
                if row.fingerprint == KEPT and row.kind == effect.kind:
                    return row
                if self._on_change != "fork":
                    now = cast(JsonObject, self._redacted(cast(JsonValue, key)))
                    raise divergence(place, read_key(self._store, row.key), now)
                self._continue_as_fork()
        if row is None and self._fork is not None and self._fork.is_missing(place):
            now = cast(JsonObject, self._redacted(cast(JsonValue, key)))
            raise JournalDivergence(place, {}, now, f"the run {self._fork.of!r} has no effect there", "")
        return row

    def _continue_as_fork(self) -> None:
        """Continue as another run, which has the effects of this run until here."""
        run = next_name(self._run)
        self._held.append(RunLock.acquire(self._locks, run))
        head, done = self._store.head(self._run), set(self._done)
        assert head is not None
        self._fork, texts = Fork(self._run, first_run(self._run, self._fork)), dict[str, bytes]()
        header = with_fork(unpack(head.header, self._store.text), self._fork)
        forked = replace(
            head, run=run, state="running", header=pack(header, texts.__setitem__), result=None, error=None
        )
        self._store.fork(self._run, forked, [row for place, row in self._rows.items() if place in done], texts)
        self._run, self._is_finished = run, False
        self._read_rows()

    def _writer(
        self, effect: Recordable[Any], place: str, fingerprint: str, key: JsonObject, attempt: int
    ) -> Callable[..., None]:
        """Return the function that writes the row of an effect: ``write(state, value)``."""
        started, on_crash = time.time(), getattr(effect, "on_crash", None)

        def write(state: str, value: JsonValue = None) -> None:
            texts: dict[str, bytes] = {}
            data = None if value is None else self._pack(value, texts)
            ended = None if state == "started" else time.time()
            packed_key = self._pack_key(key, texts)
            row = EffectRow(
                place, effect.kind, fingerprint, state, attempt, on_crash, packed_key, data, None, started, ended
            )
            self._store.put(self._run, row, texts)
            if state in ("done", "waiting"):
                self._done.append(place)

        return write

    # --- values ---

    def _redacted(self, value: JsonValue) -> JsonValue:
        return value if self._redact is None else self._redact(value)

    def _pack(self, value: JsonValue, texts: dict[str, bytes]) -> bytes:
        return pack(self._redacted(value), texts.__setitem__)

    def _pack_key(self, key: JsonObject, texts: dict[str, bytes]) -> bytes:
        """Pack a fingerprint; the items of its lists (messages, tools) are kept apart, once for all requests."""
        redacted = cast(JsonObject, self._redacted(cast(JsonValue, key)))
        lists = [name for name, value in redacted.items() if isinstance(value, list)]
        short: dict[str, Any] = dict(redacted)
        for name in lists:
            short[name] = [self._keep(item, texts) for item in short[name]]
        return pack([short, cast(JsonValue, lists)], texts.__setitem__)

    @staticmethod
    def _keep(item: JsonValue, texts: dict[str, bytes]) -> str:
        digest = digest_of(item)
        texts[digest] = pack(item, texts.__setitem__)
        return digest


def read_key(store: Store, packed: bytes) -> JsonObject:
    """Return the fingerprint of a packed key."""

    def read() -> JsonObject:
        key, lists = unpack(packed, store.text)
        for name in lists:
            key[name] = [unpack(store.text(digest), store.text) for digest in key[name]]
        return dict(key)

    return reading(read)


def pending_calls(store: Store, rows: Any) -> list[tuple[EffectRow, PendingCall]]:
    """Return the calls that wait for a decision: for approval, and those that a crash interrupted.

    Calls inside another call that waits are not among them. A call for approval may get another decision until the run used
    the first.
    """
    started = [row for row in rows if _was_interrupted(row)]
    places = {row.place for row in started}
    waiting = [*started, *(row for row in rows if row.state == "waiting")]
    outer = [row for row in waiting if not any(row.place.startswith(f"{place}/") for place in places)]
    return [(row, _pending(row, store)) for row in outer]


def _was_interrupted(row: EffectRow) -> bool:
    return row.state == "started" and row.on_crash != "rerun" and row.decision is None


def _pending(row: EffectRow, store: Store) -> PendingCall:
    key, verdict = read_key(store, row.key), None if row.value is None else unpack(row.value, store.text)
    arguments: Any = key.get("arguments") or {}
    name = str(key.get("name", row.kind))
    if verdict is None:
        return PendingCall(row.place, name, arguments, _WHY)
    return PendingCall(row.place, name, arguments, str(verdict["why"]), "approval")


def _header(program: object) -> JsonObject:
    signature: Any = getattr(getattr(program, "signature", None), "signature", None)
    return {"sigwire": version(), "program": type(program).__name__, "signature": signature and str(signature)}


def _stored(write: Callable[[], None]) -> FunctionEffect[None]:
    """Return the effect of a write, which must not block an event loop."""
    return FunctionEffect(write, partial(to_thread, write))
