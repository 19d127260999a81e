"""Reports of calls (``CallReport``), made of what agents, tools and programs collect while they run.

A ``CallNode`` is the collector of a running module or tool: inside its block it is the ``collector`` of the context. A
predictor adds a ``Leaf``; it sets no variable, and makes no report if nothing collects. Entries are added at the start of a
call and have their report at its end, so that the report of an error has all that ran until there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal, TypeVar

from sigwire.core.record import Meta, Record, new_record
from sigwire.core.report import CallReport, attempts_of
from sigwire.core.response import Attempt, LMWarning, Response, Usage
from sigwire.effects.collecting import Collector, collector
from sigwire.effects.steps import Steps
from sigwire.observe.callbacks import ACTIVE_TOOL_CALL
from sigwire.observe.place import path_in, running

__all__ = [
    "CallNode", "Leaf", "add_entry", "collected", "entries_of_call", "failed_attempts", "is_collecting", "label_first",
    "leaf_of", "question_steps", "reports_of", "with_cache_breaks", "with_report",
]  # fmt: skip

T = TypeVar("T")
R = TypeVar("R", bound=Record)


class Leaf:
    """The place of a predictor's call, or another question to a model, among the entries of the call around it."""

    __slots__ = ("_call", "_name", "_path", "_started", "_turn", "report")

    def __init__(self, around: Collector, module: object, name: str = "") -> None:
        self._name = name or type(module).__name__
        self._path, self._turn = _path_of(around.owner, module, self._name), running.get().turn
        self._call: str = getattr(ACTIVE_TOOL_CALL.get(), "within", "")
        self._started = perf_counter()
        self.report: CallReport | None = None
        around.add(self)

    def end(self, meta: Meta) -> None:
        """Add the report of a result."""
        response = meta.response
        self.report = CallReport(
            "module",
            self._name,
            self._path,
            self._turn,
            self._call,
            perf_counter() - self._started,
            None,
            tuple(attempts_of(meta)),
            () if response is None else response.warnings,
            "off" if response is None else response.cache,
            tuple(meta.repairs),
            meta.mode,
        )

    def fail(self, error: BaseException, attempts: Sequence[Attempt]) -> None:
        """Add the report of an error, with the exchanges until there."""
        kind, seconds = type(error).__name__, perf_counter() - self._started
        self.report = CallReport(
            "module", self._name, self._path, self._turn, self._call, seconds, kind, tuple(attempts)
        )

    def relabel(self, purpose: Literal["extract"]) -> None:
        """Set the purpose of the exchanges."""
        if (known := self.report) is not None:
            own = tuple(replace(each, purpose=purpose) for each in known.own)
            self.report = replace(known, own=own)


def entries_of_call() -> list[Any]:
    """Return the entries of the running call, which grow; an empty list if nothing collects."""
    around = collector.get()
    entries: list[Any] | None = None if around is None else around.entries
    return [] if entries is None else entries


def label_first(entries: Sequence[Any], purpose: Literal["fallback"], why: str) -> bool:
    """Set purpose and reason of the first exchange of ended calls; return False if there is none."""
    for entry in entries:
        if isinstance(entry, Leaf | CallNode):
            if (report := entry.report) is not None and (labeled := _labeled(report, purpose, why)) is not None:
                entry.report = labeled
                return True
        elif isinstance(entry, Collector) and label_first(entry.entries or (), purpose, why):
            return True
    return False


def _labeled(report: CallReport, purpose: Literal["fallback"], why: str) -> CallReport | None:
    if report.own:
        return replace(report, own=(replace(report.own[0], purpose=purpose, why=why), *report.own[1:]))
    for at, inner in enumerate(report.inner):
        if (labeled := _labeled(inner, purpose, why)) is not None:
            return replace(report, inner=(*report.inner[:at], labeled, *report.inner[at + 1 :]))
    return None


def leaf_of(module: object) -> Leaf | None:
    """Return the place of a predictor's call that begins; ``None`` if nothing collects."""
    around = collector.get()
    return None if around is None else Leaf(around, module)


class CallNode(Collector):
    """A running call of a module or a tool; as a context manager, the collector of the block.

    ``report`` is that of the ended call; ``None`` for a tool in which no program ran.
    """

    __slots__ = ("_around", "_call", "_names", "_path", "_started", "_turn", "kind", "module", "name", "report", "root")

    def __init__(
        self, kind: Literal["module", "tool"], name: str, module: object = None, call: str | None = None
    ) -> None:
        self.owner, self.further, self.entries = self, None, list[Any]()
        self._around = around = collector.get()
        self.kind: Literal["module", "tool"] = kind
        self.name, self.module = name, module
        self._path = _path_of(None if around is None else around.owner, module, name) if kind == "module" else ""
        self._turn = running.get().turn
        self._call: str = getattr(ACTIVE_TOOL_CALL.get(), "within", "") if call is None else call
        self._names: dict[int, str | None] | None = None
        owner: CallNode | None = None if around is None else around.owner
        self.root: CallNode | None = (self if kind == "module" else None) if owner is None else owner.root
        self._started = perf_counter()
        self.report: CallReport | None = None
        if around is not None:
            around.add(self)

    @property
    def path(self) -> str:
        """The path of the module in its program; of a tool, where the programs in it are."""
        if self.kind == "module":
            return self._path
        owner: CallNode | None = None if self._around is None else self._around.owner
        return _joined("" if owner is None else owner.path, f"tools[{self.name!r}]")

    def path_to(self, module: object, owner: CallNode) -> str | None:
        """Return the path of a module in this program; ``None`` if it is no part. ``owner``: the call around it."""
        if module is self.module:
            return self._path
        names = self._names = self._names if self._names is not None else {}
        if id(module) not in names:
            names[id(module)] = (
                owner.direct_path_to(module) or path_in(self.module, module) or owner.inner_path_to(module)
            )
        return names[id(module)]

    def direct_path_to(self, module: object) -> str | None:
        """Return the path of a module that is an attribute of this one; the search of the whole program is slower."""
        attributes: dict[str, object] = getattr(self.module, "__dict__", {})
        name = next((name for name, value in attributes.items() if value is module), None)
        return None if name is None else _joined(self._path, name)

    def inner_path_to(self, module: object) -> str | None:
        """Return the path of a module in this one, which is no part of the program."""
        name = path_in(self.module, module)
        return None if name is None else _joined(self._path, name)

    def __enter__(self) -> CallNode:
        collector.set(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if (now := collector.get()) is not None and now.owner is self:
            collector.set(self._around)
        if self.entries and self._around is not None:
            _pass_on(self.entries, self._around)
        if self.entries or self.kind == "module":
            self.report = self.snapshot(None if error is None else type(error).__name__)
            if self.kind == "tool" and not self.report.inner:
                self.report = None
        self.entries, self.further = None, self._around
        self.owner = self.root = self.module = (
            None  # the owner of a node is the node: a cycle would wait for the garbage collector
        )

    def snapshot(self, error: str | None = None) -> CallReport:
        """Return the report of what ran until now."""
        entries = self.entries or ()
        return CallReport(
            self.kind,
            self.name,
            self.path,
            self._turn,
            self._call,
            perf_counter() - self._started,
            error,
            (),
            tuple(_warnings_of(entries)),
            inner=reports_of(entries),
        )


def _path_of(owner: CallNode | None, module: object, name: str) -> str:
    """Return the path of a call inside ``owner``. A module that is no part of the program has the name of its class."""
    if owner is None:
        return "self"
    root = owner.root
    found = None if root is None else root.path_to(module, owner)
    return found or (owner.path if owner.kind == "tool" else _joined(owner.path, name))


def _joined(outer: str, inner: str) -> str:
    return inner if outer in ("", "self") else f"{outer}.{inner}"


def reports_of(entries: Sequence[Any]) -> tuple[CallReport, ...]:
    """Return the reports of entries, of calls that run until now."""
    found: list[CallReport] = []
    for entry in tuple(entries):  # a thread may add one
        report: CallReport | None = None
        if isinstance(entry, Leaf):
            report = entry.report
        elif isinstance(entry, CallNode):
            report = entry.report
            if report is None and entry.entries is not None:
                report = entry.snapshot()
                report = report if report.inner or entry.kind == "module" else None
        elif isinstance(entry, CallReport):
            report = entry
        elif isinstance(entry, Collector):  # steps that ran beside others
            found.extend(reports_of(entry.entries or ()))
        if report is not None:
            found.append(report)
    return tuple(found)


def _pass_on(entries: list[Any], around: Collector) -> None:
    """Give the call around what goes on after the end of this one: the requests of threads that a timeout left."""
    for entry in tuple(entries):
        if isinstance(entry, Leaf):
            if entry.report is None:
                entries.remove(entry)
                around.add(entry)
        elif isinstance(entry, Collector) and entry.entries is not None:
            entry.further = around
            _pass_on(entry.entries, around)


def _warnings_of(entries: Sequence[Any]) -> Iterator[LMWarning]:
    for entry in tuple(entries):
        if type(entry) is LMWarning:
            yield entry
        elif type(entry) is Collector:
            yield from _warnings_of(entry.entries or ())


def is_collecting(module: object) -> bool:
    """Return True if the running call is that of the module."""
    around = collector.get()
    return around is not None and around.owner is not None and around.owner.module is module


def add_entry(entry: CallReport | LMWarning | None) -> None:
    """Add a warning, or the report of a call that does not run again, to the running call."""
    if entry is not None and (around := collector.get()) is not None:
        around.add(entry)


def collected(module: object, start: Callable[[], Steps[T]]) -> Steps[T]:
    """Run the steps of a module's call; a prediction gets the report, in a copy, and an error too."""
    node = CallNode("module", type(module).__name__, module)
    try:
        with node:
            value = yield from start()
    except BaseException as error:
        _attach(error, node.report)
        raise
    return with_report(value, node.report)


def with_report(value: T, report: CallReport | None) -> T:
    """Return the prediction with the report. The given one may be an inner call's, with a report of its own."""
    if not isinstance(value, Record) or not type(value)._is_result:  # pyright: ignore[reportPrivateUsage]
        return value
    known: Meta = value._meta  # pyright: ignore[reportPrivateUsage]
    meta = known.with_report(report)
    keys = value._input_keys  # pyright: ignore[reportPrivateUsage]
    return new_record(type(value), dict(value.__dict__), keys, meta)


def with_cache_breaks(value: R, breaks: Sequence[Any]) -> R:
    """Return a result with the breaks of the prompt cache in its metadata."""
    keys, meta = value._input_keys, replace(value._meta, cache_breaks=breaks)  # pyright: ignore[reportPrivateUsage]
    return new_record(type(value), dict(value.__dict__), keys, meta)


def _attach(error: BaseException, report: CallReport | None) -> None:
    with suppress(Exception):  # a user's exception class may refuse attributes
        setattr(error, "call_report", report)  # noqa: B010
        if report is not None and isinstance(getattr(error, "attempts", None), tuple):
            setattr(error, "attempts", report.attempts)  # noqa: B010


def question_steps(name: str, model: str, steps: Steps[Response]) -> Steps[Response]:
    """Run the steps of a question that no predictor asks, and add its report to the running call."""
    if (around := collector.get()) is None:
        return (yield from steps)
    leaf = Leaf(around, None, name)
    try:
        response = yield from steps
    except BaseException as error:
        leaf.fail(error, failed_attempts(error, model))
        raise
    unlogged = () if response.cache == "hit" else (Attempt(model=model, usage=response.usage),)
    leaf.end(Meta(response=response, attempts=response.attempts or unlogged))
    return response


def failed_attempts(error: BaseException, model: str) -> tuple[Attempt, ...]:
    """Return the exchanges of a question that failed: those of its error, or that of its partial response."""
    if getattr(error, "call_report", None) is not None:
        return ()  # an exception object that is raised again has those of an earlier call
    attempts: tuple[Attempt, ...] = tuple(getattr(error, "attempts", ()))
    usage: Usage | None = getattr(getattr(error, "partial", None), "usage", None)
    if usage is None:
        return attempts
    if not attempts:
        return (Attempt(model=model, usage=usage),)
    last = attempts[-1]
    return (*attempts[:-1], replace(last, usage=usage)) if last.usage == Usage() else attempts
