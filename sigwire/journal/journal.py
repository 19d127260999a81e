"""Journal: runs of programs that survive the death of their process."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_mapping
from sigwire.core.record import to_plain
from sigwire.effects.performing import performing
from sigwire.errors import ConfigurationError, InputError
from sigwire.journal.errors import PendingCall, RunIsLive
from sigwire.journal.forking import Fork, first_run, fork_of, next_name, plan_fork, with_fork
from sigwire.journal.lock import RunLock
from sigwire.journal.packing import pack, reading, unpack
from sigwire.journal.records import EffectRow, RunHead, RunInfo, StoredEffect
from sigwire.journal.results import dump_inputs, load_inputs
from sigwire.journal.session import OnChange, Redact, Session, pending_calls, read_key
from sigwire.journal.store import Store
from sigwire.journal.verdicts import read_checked_verdict
from sigwire.keywords import ChecksKeywords

__all__ = ["Decision", "Journal", "JournaledProgram"]

Decision: TypeAlias = Literal["rerun", "approve", "deny"] | Mapping[str, object]
"""Of a call that waits for approval: ``"approve"``, ``"deny"``, ``{"deny": "why"}`` or ``{"edit": {arguments}}``. Of a call
that a crash interrupted: ``"rerun"``, ``{"result": value}`` or ``{"deny": "why"}``."""


class JournaledProgram(Protocol):
    """A module of sigwire."""

    def __call__(self, *args: Any, **inputs: Any) -> Any: ...
    def acall(self, *args: Any, **inputs: Any) -> Any: ...
    def stream(self, *args: Any, **inputs: Any) -> Any: ...
    def astream(self, *args: Any, **inputs: Any) -> Any: ...
    def call_steps(self, *args: Any, **inputs: Any) -> Any: ...


class Journal(ChecksKeywords):
    """A SQLite file that records the runs of programs: each answer of a model and each result of a tool.

    A run that was killed goes on when it is started again with its name: recorded effects are not made again. A tool that
    ran at the moment of the kill follows its ``on_crash``. A finished run returns its result. Inputs and effects must have a
    JSON form, and the program must decide by them and by ``sigwire.durable`` alone (time, random numbers).

    Many runs and processes may share the file, on one machine. Every run has one owner at a time (``RunIsLive``). The file
    has prompts and answers, but no keys. ``redact`` gets each JSON value before it is written and returns the value to write;
    an answer that it changed is replayed as changed.

    >>> import tempfile
    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    >>> with tempfile.TemporaryDirectory() as folder, Journal(f"{folder}/runs.sqlite3") as journal:
    ...     first = journal.run(predict, run="sum-1", question="2+2?")
    ...     again = journal.run(predict, run="sum-1", question="2+2?")  # the model has no second answer
    ...     [(effect.place, effect.state) for effect in journal.effects("sum-1")]
    [('Predict.0/ask.0', 'done')]
    >>> first.answer, again.answer
    ('4', '4')
    """

    def __init__(self, path: str | os.PathLike[str], *, redact: Redact | None = None) -> None:
        self.path = Path(path).absolute()
        self._redact = redact
        self._store = Store(self.path)
        self._locks = self.path.with_name(f"{self.path.name}.locks")

    # --- runs ----------------------------------------------------------------------------------------

    def run(self, program: JournaledProgram, run: str, *, on_change: OnChange = "raise", **inputs: Any) -> Any:
        """Run a program, or continue its run of this name, blocking; return its result.

        Without inputs, a run that exists continues with its recorded inputs. Raises ``InputError`` for other inputs than the
        recorded ones, ``RunIsLive``, ``ApprovalNeeded`` for calls that wait for a decision, ``ToolInterrupted`` for calls
        that a crash interrupted, and ``JournalDivergence`` if the program changed. ``on_change="fork"`` continues a changed
        program as the run ``name~1``, which has the effects until the change.
        """
        session, given = self._session(program, run, inputs, on_change)
        with performing(session.frame()):
            return program(**given)

    async def arun(self, program: JournaledProgram, run: str, *, on_change: OnChange = "raise", **inputs: Any) -> Any:
        """``run``, awaited."""
        session, given = self._session(program, run, inputs, on_change)
        with performing(session.frame()):
            return await program.acall(**given)

    def stream(self, program: JournaledProgram, run: str, *, on_change: OnChange = "raise", **inputs: Any) -> Any:
        """``run`` as ``program.stream``: recorded answers and results emit their events at once."""
        session, given = self._session(program, run, inputs, on_change, replays=True)
        with performing(session.frame()):
            return program.stream(**given)

    def astream(self, program: JournaledProgram, run: str, *, on_change: OnChange = "raise", **inputs: Any) -> Any:
        """``stream``, awaited."""
        session, given = self._session(program, run, inputs, on_change, replays=True)
        with performing(session.frame()):
            return program.astream(**given)

    def resume(
        self, program: JournaledProgram, run: str, decisions: Mapping[str, Decision] | None = None, **inputs: Any
    ) -> Any:
        """Decide about the pending calls of a run, and continue it; without inputs, with its recorded inputs."""
        self.decide(run, decisions or {})
        return self.run(program, run, **inputs)

    async def aresume(
        self, program: JournaledProgram, run: str, decisions: Mapping[str, Decision] | None = None, **inputs: Any
    ) -> Any:
        """``resume``, awaited."""
        self.decide(run, decisions or {})
        return await self.arun(program, run, **inputs)

    def decide(self, run: str, decisions: Mapping[str, Decision]) -> None:
        """Record a decision for every pending call of a run (``Decision``).

        Nothing runs. Raises ``InputError`` for an id that is missing or unknown.
        """
        self._known_inputs(run)
        if not is_mapping(decisions):
            raise InputError(f"decisions are a dict of call ids, not {type(decisions).__name__} (deciding).")
        lock = RunLock.acquire(self._locks, run)
        try:
            found = {call.id: (row, call) for row, call in pending_calls(self._store, self._store.rows(run))}
            pending = {id for id, (row, _) in found.items() if row.decision is None}
            if wrong := sorted((pending - decisions.keys()) | (decisions.keys() - found.keys())):
                raise InputError(
                    f"The run {run!r} needs one decision for each pending call ({', '.join(sorted(pending)) or 'none'}); "
                    f"missing or unknown: {', '.join(wrong)}."
                )
            texts: dict[str, bytes] = {}
            for id, decision in decisions.items():
                self._check_decision(*found[id], decision)
            packed = {id: pack(cast(JsonValue, to_plain(each)), texts.__setitem__) for id, each in decisions.items()}
            self._store.decide(run, packed, texts)
        finally:
            lock.release()

    def _check_decision(self, row: EffectRow, call: PendingCall, decision: Decision) -> None:
        """Raise ``InputError`` unless a decision fits its call: one for approval also by the tool's schema, if it edits."""
        if call.kind == "crash":
            _check_crash(call.id, decision)
        else:
            asked: Mapping[str, Any] = {} if row.value is None else self._object(row.value)
            read_checked_verdict(call.id, decision, call.name, asked.get("parameters"))

    def fork(
        self, run: str, at: int | str, name: str | None = None, results: Mapping[str, object] | None = None
    ) -> str:
        """Make a new run with the effects that ``run`` had before ``at``; return its name. Performs nothing.

        ``at``: a turn of the outermost agent, or a place of ``effects`` (``"ReAct.0/turn.3"``). ``name`` is ``run~1`` or the
        next free number. ``journal.run(program, name)`` goes on from there, with another model, text or tool if wanted: the
        kept effects are given whatever asks for them. ``results`` replaces results of kept calls, JSON by place. Decisions
        about kept calls are kept, and so are the keys of calls (``current_call().idempotency_key``). The run ``run`` stays as
        it is. Raises ``InputError`` for an unknown run or place, a turn beyond the end, a name in use and a result of no kept
        call, and ``RunIsLive``.

        >>> import tempfile
        >>> from sigwire.core.tools.calls import ToolCall
        >>> from sigwire.lm.fake import FakeLM
        >>> from sigwire.modules.agents.react import ReAct
        >>> def price(item: str) -> int:
        ...     return 40
        >>> agent = ReAct("question -> answer", tools=[price])
        >>> agent.set_lm(FakeLM([ToolCall("a", "price", {"item": "tea"}), ToolCall("b", "submit", {"answer": "40"})]))
        >>> with tempfile.TemporaryDirectory() as folder, Journal(f"{folder}/runs.sqlite3") as journal:
        ...     _ = journal.run(agent, run="tea", question="What is tea?")
        ...     fork = journal.fork("tea", 1, results={"ReAct.0/turn.0/tool.0": 45})
        ...     agent.set_lm(FakeLM([ToolCall("b", "submit", {"answer": "45"})]))
        ...     fork, journal.run(agent, fork).answer
        ('tea~1', '45')
        """
        head = self._head(run)
        lock = RunLock.acquire(self._locks, run)
        try:
            texts: dict[str, bytes] = {}
            place, rows = plan_fork(run, self._store.rows(run), at, results or {}, texts)
            forked = next_name(run, self._store.head) if name is None else _checked_name(name)
            header = self._object(head.header)
            fork = Fork(run, first_run(run, fork_of(header)), place)
            now, packed = time.time(), pack(with_fork(header, fork), texts.__setitem__)
            new = replace(
                head, run=forked, state="running", header=packed, result=None, error=None, started=now, updated=now
            )
            if not self._store.fork(run, new, rows, texts):
                raise InputError(f"The journal has a run {forked!r} already (forking {run!r}). Give another name.")
            return forked
        finally:
            lock.release()

    def _session(
        self, program: JournaledProgram, run: str, inputs: dict[str, Any], on_change: OnChange, replays: bool = False
    ) -> tuple[Session, dict[str, Any]]:
        """Return the session, and the inputs for the program."""
        if not hasattr(program, "call_steps"):
            raise ConfigurationError(
                f"A Journal runs modules of sigwire, not {type(program).__name__} (starting the run). Write a Module whose "
                "forward does the work."
            )
        if on_change not in ("raise", "fork"):
            raise ConfigurationError(f'on_change is "raise" or "fork", not {on_change!r} (starting the run).')
        _checked_name(run)
        given: JsonObject | None = dump_inputs(inputs, program)
        if self._store.head(run) is not None and not inputs:
            given, inputs = None, load_inputs(program, self._known_inputs(run))
        session = Session(
            self._store, self._locks, program, run, given, redact=self._redact, on_change=on_change, replays=replays
        )
        return session, inputs

    def _known_inputs(self, run: str) -> JsonObject:
        return self._object(self._head(run).inputs)

    def _head(self, run: str) -> RunHead:
        if (head := self._store.head(_checked_name(run))) is None:
            raise InputError(f"The journal has no run {run!r}. journal.runs() lists the runs.")
        return head

    def _object(self, packed: bytes) -> JsonObject:
        return reading(lambda: dict(unpack(packed, self._store.text)))

    # --- the file ------------------------------------------------------------------------------------

    def runs(self) -> list[RunInfo]:
        """Return the runs, oldest first."""
        return [
            RunInfo(head.run, head.state, str(header.get("program")), inputs, head.error, head.started, head.updated)
            for head in self._store.heads()
            for header, inputs in [(self._object(head.header), self._object(head.inputs))]
        ]

    def effects(self, run: str) -> list[StoredEffect]:
        """Return the recorded effects of a run, in the order in which they began."""
        return [
            StoredEffect(row.place, row.kind, row.state, row.attempt, key, value, row.started, row.ended)
            for row in self._store.rows(run)
            for key in [read_key(self._store, row.key)]
            for value in [None if row.value is None else unpack(row.value, self._store.text)]
        ]

    def prune(self, older_than: float, *, unfinished: bool = False) -> int:
        """Delete finished runs that ended more than ``older_than`` (seconds) ago; return their number.

        ``unfinished=True`` deletes killed, failed and waiting runs too; a run that is live is kept.
        """
        pruned = 0
        for head in self._store.heads():
            if head.updated > time.time() - older_than or not (unfinished or head.state == "done"):
                continue
            with suppress(RunIsLive):
                lock = RunLock.acquire(self._locks, head.run)
                try:
                    self._store.remove(head.run)
                finally:
                    lock.release()
                pruned += 1
        self._store.remove_unused_texts()
        return pruned

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r})"


def _checked_name(run: object) -> str:
    if not isinstance(run, str) or not run:
        raise InputError(f"run is the name of the run, a text, not {run!r:.80} (starting or forking a run).")
    return run


def _check_crash(place: str, decision: Decision) -> None:
    given: Mapping[str, object] = decision if is_mapping(decision) else {}
    is_known = (
        decision == "rerun"
        or given.keys() == {"result"}
        or (given.keys() == {"deny"} and isinstance(given["deny"], str))
    )
    with suppress(ValueError, RecursionError):  # a result without a JSON form
        if is_known and to_plain(decision) is not None:
            return
    raise InputError(
        f'A decision is "rerun", {{"result": JSON value}} or {{"deny": "why"}}, not {decision!r:.80} (deciding about {place}).'
    )
