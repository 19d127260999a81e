"""``CallReport``: how a result was made, as a tree of the calls of programs and of the tools in which programs ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias, cast

from sigwire.core.json import JsonObject, Value, decode_fields, decoding
from sigwire.core.record import Meta, Record
from sigwire.core.response import Attempt, LMWarning, Repair, Response, Usage, cost_of_attempts
from sigwire.errors import InputError, SigwireError
from sigwire.show.card import HasCard

__all__ = ["CallReport", "attempts_of", "usage_of", "warnings_of"]

_NO_USAGE = Usage()
_Cache: TypeAlias = Literal["hit", "miss", "off"]


@dataclass(frozen=True, slots=True, repr=False)
class CallReport(Value, HasCard):
    """How a result was made, typed: ``prediction.run``, ``CallReport.of(result)``. ``print(report)`` shows the tree.

    ``attempts``, ``usage``, ``cost`` and ``warnings`` are totals of the call and all calls inside it; each exchange is of one
    report. ``kind``: "module", or "tool" for a call of a tool in which a program ran. ``name``: the class of the module, or
    the tool. ``path``: that of the module in its program, as in ``error.where``. ``turn``: of the agent around, from 0.
    ``call``: the ids of the tool calls around, of a tool with its own ("call_0/call_1"). ``seconds``: until the end of the
    call. ``error``: the class of the exception that ended it. ``inner``: the calls inside, in order of start; parallel calls
    in call order.

    ``own`` and ``own_warnings``: those of this call alone. ``cache``: whether its response is from the cache ("hit"), could
    be stored there ("miss"), or neither ("off"). ``repairs``: accepted deviations; ``mode``: how outputs were requested;
    ``evidence``: of the deciding outputs of the result, by path.
    ``response``: of the outermost report, the last one. The JSON has no response.

    >>> from sigwire.core.example import Prediction
    >>> CallReport.of(Prediction(usage="heavy")).usage.input_tokens is None
    True
    """

    _shown_by = "sigwire.core.cards.reports:report"
    kind: Literal["module", "tool"] = "module"  # type: ignore[misc]  # of values in unions; no union has a report
    name: str = ""
    path: str = "self"
    turn: int | None = None
    call: str = ""
    seconds: float = 0.0
    error: str | None = None
    own: tuple[Attempt, ...] = ()
    own_warnings: tuple[LMWarning, ...] = ()
    cache: _Cache = "off"
    repairs: tuple[Repair, ...] = ()
    mode: str | None = None
    inner: tuple[CallReport, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    response: Response | None = field(default=None, compare=False)

    @classmethod
    def of(cls, result: object) -> CallReport:
        """Return the report of a prediction, or of an exception that ended a call. Raises ``InputError`` for other objects."""
        if isinstance(result, BaseException):
            return _of_error(result)
        if not isinstance(result, Record) or not type(result)._is_result:  # pyright: ignore[reportPrivateUsage]
            raise InputError(f"{type(result).__name__} is no result of a call. Pass a prediction or an exception.")
        return _of_meta(result._meta)  # pyright: ignore[reportPrivateUsage]

    def __str__(self) -> str:
        tree: str = CallReport._builder("tree")(self)
        return tree

    def to_json(self) -> JsonObject:
        """Return the report as JSON, without the response."""
        data = Value.to_json(self)
        del data["type"]  # of the values in unions
        if self.evidence:
            data["evidence"] = {path: each.to_json() for path, each in self.evidence.items()}
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Self:
        """Decode the result of ``to_json``. Raises ``StateError`` for other data. Members of enums are their values."""
        rest = {name: value for name, value in data.items() if name != "evidence"}
        made = cls(**decode_fields(cls, rest))
        if "evidence" not in data:
            return made
        from sigwire.core.evidence import Evidence  # few calls have evidence

        with decoding("CallReport", data):
            stored = cast("Mapping[str, Mapping[str, object]]", data["evidence"])
            return replace(made, evidence={path: Evidence.from_json(each) for path, each in stored.items()})

    def __iter__(self) -> Iterator[CallReport]:
        """Yield this report and all inside it, each before its inner ones.

        >>> report = CallReport(name="Team", inner=(CallReport(name="Predict", path="first"),))
        >>> [each.path for each in report]
        ['self', 'first']
        """
        stack: list[CallReport] = [self]
        while stack:
            report = stack.pop()
            yield report
            stack.extend(reversed(report.inner))

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every exchange."""
        return tuple(attempt for report in self for attempt in report.own) if self.inner else self.own

    @property
    def usage(self) -> Usage:
        """The tokens of all exchanges, failed ones included."""
        attempts = self.attempts
        total = attempts[0].usage if len(attempts) == 1 else sum((each.usage for each in attempts), _NO_USAGE)
        if self.response is None or (self.inner and attempts) or total != _NO_USAGE:
            return total
        return self.response.usage  # of a response without a log

    @property
    def warnings(self) -> tuple[LMWarning, ...]:
        """The features that were dropped or approximated, and the exceptions of tools; equal ones once."""
        if not self.inner:
            return self.own_warnings
        return tuple(dict.fromkeys(warning for report in self for warning in report.own_warnings))

    @property
    def cost(self) -> float | None:
        """The cost of all exchanges in US dollars; ``None`` if that of one is unknown. Answers of the cache cost nothing."""
        attempts = self.attempts
        if attempts:
            sent = self.usage.cost if len(attempts) == 1 else None
            return cost_of_attempts(attempts) if sent is None else sent
        if self.response is not None and not self.inner:
            return self.response.cost
        return 0.0 if any(report.cache == "hit" for report in self) else None


def _of_meta(meta: Meta) -> CallReport:
    response: Response | None = meta.response
    if meta.report is not None and not meta.report.inner:  # nothing was asked: the response is of an earlier call
        response = None
    cache: _Cache = "off" if response is None else response.cache
    evidence: dict[str, Any] = dict(meta.evidence or {})
    if meta.report is not None:
        known: CallReport = meta.report
        return replace(
            known, evidence=evidence, response=response, repairs=tuple(meta.repairs), mode=meta.mode, cache=cache
        )
    return CallReport(
        name=meta.made_by,
        seconds=meta.seconds,
        own=tuple(attempts_of(meta)),
        own_warnings=() if response is None else response.warnings,
        cache=cache,
        repairs=tuple(meta.repairs),
        mode=meta.mode,
        evidence=evidence,
        response=response,
    )


def _of_error(error: BaseException) -> CallReport:
    known: object = getattr(error, "call_report", None)
    partial: object = getattr(error, "partial", None)
    response = partial if isinstance(partial, Response) else None
    evidence: dict[str, Any] = getattr(error, "evidence", None) or {}
    if isinstance(known, CallReport):
        return replace(known, evidence=evidence, response=response)
    where = error.where if isinstance(error, SigwireError) else None
    return CallReport(
        name="" if where is None else where.module.partition(" ")[0],
        path="self" if where is None else where.path or "self",
        error=type(error).__name__,
        own=tuple(getattr(error, "attempts", ())),
        own_warnings=() if response is None else response.warnings,
        evidence=evidence,
        response=response,
    )


def attempts_of(meta: Meta) -> Sequence[Attempt]:
    """Return every exchange of a result."""
    if meta.report is not None:
        found: Sequence[Attempt] = meta.report.attempts
        return found
    return meta.attempts or (meta.response.attempts if meta.response is not None else ())


def usage_of(meta: Meta) -> Usage:
    """Return the usage of a whole call, failed attempts included."""
    if meta.report is not None:
        total: Usage = meta.report.usage
        return total
    if attempts := meta.attempts:
        return sum((attempt.usage for attempt in attempts), Usage())
    return meta.response.usage if meta.response is not None else Usage()


def warnings_of(meta: Meta) -> tuple[LMWarning, ...]:
    """Return the warnings of a whole call."""
    if meta.report is not None:
        found: tuple[LMWarning, ...] = meta.report.warnings
        return found
    return meta.response.warnings if meta.response is not None else ()
