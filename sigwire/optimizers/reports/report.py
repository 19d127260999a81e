"""Reports of searches as data: candidates, the estimate of the winner, the cost, and the reason of the end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self, cast

from sigwire.core.json import JsonObject, Value, decode_fields, decoding
from sigwire.errors import InputError
from sigwire.evaluate.figures.tool_counts import CallTotals, sorted_tools, tool_lines, warning_line
from sigwire.evaluate.records import RecordFile
from sigwire.evaluate.segments import Segment, segment_rows
from sigwire.evaluate.statistics import TOO_FEW, PairedDifference, paired_difference
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate, Slot
from sigwire.optimizers.certificate import Certificate, certificate_rows
from sigwire.optimizers.events import Certified, Measured, Proposed, RefusedText, SearchEvent, Spent, Warned
from sigwire.optimizers.judge import Judge
from sigwire.optimizers.reports.front import FrontEntry, front_table
from sigwire.optimizers.reports.plots import Svg, plot
from sigwire.optimizers.reports.prompts import winner_prompts
from sigwire.optimizers.reports.text_diff import TextDiff
from sigwire.show.card import BoundedRepr, Card, HasCard
from sigwire.show.cleaning import inline, number
from sigwire.show.numbers import count

__all__ = ["NONE_BETTER", "Estimate", "OptimizationReport", "SearchTrial", "StopReason", "trials_of"]


NONE_BETTER = "no candidate was shown to be better"
"""The reason if a search found nothing to compare with the student at its end."""


class StopReason(StrEnum):
    """Why a search stopped."""

    FINISHED = "finished"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Estimate(Value):
    """How good the found candidate is. Scores are means; ``rows`` is the number of validation rows.

    ``selection``: its mean on the rows on which it was chosen, too high. ``corrected``: less the optimism of that choice; right
    on average over all searches, and too high for programs that were accepted, since the same rows accepted them. ``test``:
    its mean on the test rows (or on those of ``hold_out``), which choose nothing; ``test_difference`` the paired difference to
    the student on them, unbiased for accepted programs too. ``sure``: how sure it is that it is better than the student, as the
    best of all candidates.
    """

    baseline: float | None = None
    selection: float | None = None
    corrected: float | None = None
    sure: float | None = None
    rows: int = 0
    test_baseline: float | None = None
    test: float | None = None
    test_rows: int = 0
    test_difference: PairedDifference | None = None

    @classmethod
    def of(
        cls,
        judge: Judge,
        baseline: Candidate,
        found: Candidate,
        candidates: Sequence[Candidate],
        rows: Sequence[str],
        sure: float | None,
    ) -> Estimate:
        """Return the estimate from the runs on the validation rows."""
        both = [each for each in rows if each in judge.table.scores(found, rows)]
        if not both:
            return cls()
        selection = judge.mean(found, both)
        return cls(
            baseline=_known(judge.mean(baseline, both)),
            selection=selection,
            corrected=selection - judge.optimism(candidates, rows),
            sure=sure,
            rows=len(both),
        )

    def with_test(self, judge: Judge, baseline: Candidate, found: Candidate, rows: Sequence[str]) -> Estimate:
        """Return the estimate with the runs on rows that the search did not see."""
        before, after = judge.table.scores(baseline, rows), judge.table.scores(found, rows)
        both = [row for row in rows if row in before and row in after]
        if not both:
            return self
        return replace(
            self,
            test_baseline=judge.mean(baseline, both),
            test=judge.mean(found, both),
            test_rows=len(both),
            test_difference=paired_difference([before[row] for row in both], [after[row] for row in both]),
        )

    @property
    def test_gain(self) -> float | None:
        """The mean difference to the student on the test rows."""
        return None if self.test is None or self.test_baseline is None else self.test - self.test_baseline

    @property
    def change(self) -> str:
        """The means of student and candidate on the test rows, as text. Rows that chose the candidate show no gain."""
        if self.test_difference is not None and self.test_gain is not None:
            ends = self.test_difference.interval
            text = f"{self.test_baseline:.3f} → {self.test:.3f} on {count(self.test_rows, 'test row')}, {self.test_gain:+.3f}"
            shown = text if ends is None else f"{text} [{ends.low:+.3f}, {ends.high:+.3f}]"
            return f"{shown}, {TOO_FEW}" if self.test_difference.is_few else shown
        if self.selection is not None and self.baseline is not None:
            sure = "" if self.sure is None else f", {self.sure:.2f} sure that it is better than the student"
            return f"chosen on {count(self.rows, 'row')}{sure}; gain not measured (testset= or hold_out= measures it)"
        return "not measured (compile(..., testset=) measures it)"


def _known(mean: float) -> float | None:
    return None if mean == float("-inf") else mean


@dataclass(frozen=True, slots=True)
class SearchTrial(BoundedRepr):
    """A candidate in the order of proposal: how it was made, its mean and number of validation rows, and its fate."""

    number: int
    candidate: Candidate
    origin: str = ""
    changes: tuple[str, ...] = ()
    mean: float | None = None
    rows: int = 0
    fate: str = ""
    spent: Spent | None = None

    def to_json(self) -> JsonObject:
        """Return the trial as JSON."""
        spent = None if self.spent is None else self.spent.to_json()
        known: JsonObject = {"origin": self.origin, "changes": list(self.changes), "mean": self.mean, "rows": self.rows}
        return {
            "number": self.number,
            "candidate": self.candidate.to_json(),
            **known,
            "fate": self.fate,
            "spent": spent,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SearchTrial:
        """Decode the result of ``to_json``."""
        return cls(**decode_fields(cls, data))


def trials_of(events: Sequence[tuple[SearchEvent, Spent]]) -> tuple[SearchTrial, ...]:
    """Return the trials of a search from its events, each with what was spent until then."""
    trials: dict[str, SearchTrial] = {}
    for event, spent in events:
        if isinstance(event, (Certified, Spent, RefusedText, Warned)):
            continue
        digest = event.candidate.digest
        trial = trials.get(digest) or SearchTrial(len(trials), event.candidate)
        if isinstance(event, Proposed):
            trial = replace(trial, origin=trial.origin or event.origin, changes=trial.changes or event.changes)
        elif isinstance(event, Measured):
            trial = replace(trial, mean=event.mean, rows=event.rows, spent=spent)
        else:
            trial = replace(trial, fate=event.why, spent=spent)
        trials[digest] = trial
    return tuple(trials.values())


@dataclass(frozen=True, repr=False)
class OptimizationReport(HasCard):
    """The report of ``compile``: ``program.optimization``.

    ``winner`` is what the program has, ``found`` what the rule found; they differ if the student was kept (``kept_student``:
    the reason). ``scores`` by candidate digest and validation row; ``subscores`` (what else the metric measured) by digest and
    name, means over validation rows; ``costs`` of all runs of a candidate, by digest.
    ``objectives``: if there are several, their names; ``outcomes`` (their means over validation rows) by digest and name;
    ``front``: the candidates that none beats in all of them, the highest score first.
    ``reused``: questions that were not asked, because the search had asked them before.
    ``calls``: calls and errors of tools, and warnings, of the whole search; ``winner_calls``: of the runs of the winner.
    ``segments``: the parts of a search that was resumed. ``prompts``: by predictor to which the winner gives demos, the
    messages that all of its calls share. ``certificate``: the bound of ``Calibrate(risk=)``.
    """

    optimizer: str
    baseline: Candidate
    winner: Candidate
    found: Candidate
    estimate: Estimate
    reason: StopReason
    spent: Spent
    trials: tuple[SearchTrial, ...] = ()
    refused: tuple[RefusedText, ...] = ()
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    subscores: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    objectives: tuple[str, ...] = ()
    outcomes: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    front: tuple[FrontEntry, ...] = ()
    costs: Mapping[str, Spent] = field(default_factory=dict[str, Spent])
    texts: Mapping[Slot, str] = field(default_factory=dict[str, str])  # of the student
    warnings: tuple[str, ...] = ()
    kept_student: str = ""
    resumed: int = 0
    reused: int = 0
    calls: CallTotals = field(default_factory=CallTotals)
    winner_calls: CallTotals = field(default_factory=CallTotals)
    segments: tuple[Segment, ...] = ()
    prompts: Mapping[str, tuple[JsonObject, ...]] = field(default_factory=dict[str, "tuple[JsonObject, ...]"])
    certificate: Certificate | None = None

    @classmethod
    def of(cls, program: object) -> OptimizationReport:
        """Return the report of a program that ``compile`` returned: its attribute ``optimization``, with its type.

        Also of a program that was saved and loaded. Raises ``InputError`` for other programs, ``StateError`` for a report of a
        file that no search wrote.
        """
        report = getattr(program, "optimization", None)
        if not isinstance(report, OptimizationReport):
            raise InputError(
                f"{type(program).__name__} has no report (reading it). Pass the program that compile returned."
            )
        return report

    def with_prompts(self, student: Module, model: object = None) -> Self:
        """Return the report with the prompts of the winner. ``model``: the one that the search asked."""
        return replace(self, prompts=winner_prompts(student, self.winner, model))

    # --- what it shows

    def plot(self, kind: str = "score") -> Svg:
        """Return a plot: "score" over calls, "cost" (score over cost), "rows" (candidates by rows), or "front" (the first two
        objectives). Raises ``InputError`` for "front" of a search with one objective.
        """
        return plot(self, kind)

    def diffs(self, candidate: Candidate | None = None) -> dict[Slot, TextDiff]:
        """Return the texts that a candidate changes, by default the winner, word by word."""
        texts = (candidate or self.winner).texts
        return {slot: TextDiff(self.texts.get(slot, ""), text) for slot, text in texts.items()}

    def measured(self, trial: SearchTrial) -> tuple[float | None, int]:
        """Return the mean of a trial on the validation rows that it ran on, all or not, and their number."""
        found = list(self.scores.get(trial.candidate.digest, {}).values())
        return (sum(found) / len(found), len(found)) if found else (trial.mean, trial.rows)

    def described(self, trial: SearchTrial) -> str:
        """Return what the candidate of a trial is, and how it was made."""
        made = trial.origin if trial.origin and not trial.origin.startswith("seed ") else ""
        return " · ".join(filter(None, (trial.candidate.summary, made)))

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report as one HTML file: held-out difference, plots, changed texts, demos, and a table of the trials."""
        from sigwire.evaluate.reports.page import write_page
        from sigwire.optimizers.reports.search_page import search_page

        write_page(search_page(self, self._card(), self.estimate.test_difference), path)

    @property
    def headline(self) -> str:
        """The result in one sentence, with its numbers of rows."""
        found = self.estimate
        if self.certificate is not None:
            return f"Certified: {self.certificate}"
        if self.found == self.baseline and found.baseline is not None:
            mean, n, rows = found.baseline, found.rows, "rows on which candidates are chosen"
            if found.test is not None:
                mean, n, rows = found.test, found.test_rows, "test rows"
            return f"The student is kept ({self.kept_student or NONE_BETTER}): {mean:.3f} on {n} {rows}"
        gain = found.change
        return f"The student is kept ({self.kept_student}); the best candidate: {gain}" if self.kept_student else gain

    def _card(self) -> Card:
        found, rows = self.estimate, list[tuple[str, list[str]]]()
        is_new = self.found != self.baseline
        if found.selection is not None and is_new:
            rows.append(
                (
                    "chosen at",
                    [f"{number(found.selection)} ({count(found.rows, 'row')}); the choice flatters this number"],
                )
            )
        if found.corrected is not None and is_new:
            rows.append(
                ("corrected", [f"{number(found.corrected)}, without the optimism of the choice; too high if accepted"])
            )
        if self.certificate is not None:
            rows += certificate_rows(self.certificate)
        elif found.test is None:
            rows.append(("held out", ["no test set was given"]))
        written = f" ({self.spent.writing_calls:,} for texts)" if self.spent.writing_calls else ""
        known = f" · {count(self.reused, 'answer')} reused" if self.reused else ""
        rows.append(("cost", [f"{count(self.spent.calls, 'call')}{written} · {self.spent.money_text}{known}"]))
        refused = f", {count(len(self.refused), 'text')} refused" if self.refused else ""
        rows.append(("stopped", [f"{self.reason.value}, {count(len(self.trials), 'trial')}{refused}"]))
        rows += [(label, lines) for label, lines in self._call_rows() if lines]
        rows += segment_rows(self.segments)
        rows += [("warning", [each]) for each in self.warnings]
        table = [["trial", "score", "rows", "candidate", "fate"]]
        for each in self.trials:
            if each.mean is not None or each.fate:
                mean, count_of_rows = self.measured(each)
                shown = [number(mean), str(count_of_rows or "")]
                table.append([str(each.number + 1), *shown, inline(self.described(each)), inline(each.fate)])
        changes = [Card(slot, rows=[("change", [diff.line])], is_open=True) for slot, diff in self.diffs().items()]
        front = [Card("front", table=front_table(self.front, self.objectives), is_open=True)] if self.front else []
        return Card(self.optimizer, self.headline, rows, children=[*changes, *front, Card("trials", table=table)])

    def _call_rows(self) -> list[tuple[str, list[str]]]:
        """Return the rows of tools and warnings, of the search and of the winner."""
        found: list[tuple[str, list[str]]] = []
        for whose, totals in (("", self.calls), (" of the winner", self.winner_calls)):
            found.append((f"tools{whose}", tool_lines(sorted_tools(totals.tools))))
            found.append((f"warnings{whose}", [warning_line(totals.warnings)] if totals.warnings else []))
        return found

    def __repr__(self) -> str:
        return inline(f"OptimizationReport({self.optimizer}, {count(len(self.trials), 'trial')}, {self.headline})", 500)

    # --- JSON

    def to_json(self) -> JsonObject:
        """Return the report as JSON."""
        return {
            "optimizer": self.optimizer,
            **{name: getattr(self, name).to_json() for name in _CANDIDATES},
            "estimate": self.estimate.to_json(),
            "reason": self.reason.value,
            "spent": self.spent.to_json(),
            "trials": [each.to_json() for each in self.trials],
            "refused": [each.to_json() for each in self.refused],
            "scores": {digest: dict(found) for digest, found in self.scores.items()},
            "subscores": {digest: dict(found) for digest, found in self.subscores.items()},
            **self._objectives_json(),
            "costs": {digest: cost.to_json() for digest, cost in self.costs.items()},
            "texts": dict(self.texts),
            "warnings": list(self.warnings),
            "kept_student": self.kept_student,
            "resumed": self.resumed,
            "reused": self.reused,
            "calls": self.calls.to_json(),
            "winner_calls": self.winner_calls.to_json(),
            "segments": [each.to_json() for each in self.segments],
            "prompts": {name: list(messages) for name, messages in self.prompts.items()},
            **({} if self.certificate is None else {"certificate": self.certificate.to_json()}),
        }

    def _objectives_json(self) -> JsonObject:
        if not self.objectives:
            return {}
        return {
            "objectives": list(self.objectives),
            "outcomes": {digest: dict(found) for digest, found in self.outcomes.items()},
            "front": [each.to_json() for each in self.front],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OptimizationReport:
        """Decode the result of ``to_json``."""
        values: dict[str, Any] = decode_fields(cls, data)
        with decoding("OptimizationReport", data):
            values["reason"] = StopReason(values["reason"])
            return cls(**values)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OptimizationReport:
        """Read the report of the last finished search of a journal. Raises ``InputError`` if there is none."""
        ends = [row for row in RecordFile.read(path) if row.get("type") == "end"]
        if not ends:
            raise InputError(
                f"{os.fspath(path)!r} has no finished search (reading a report). Compile again to resume it."
            )
        return cls.from_json(cast("Mapping[str, Any]", ends[-1].get("report")))

    def __deepcopy__(self, memo: Any) -> OptimizationReport:
        return self  # frozen


_CANDIDATES = ("baseline", "winner", "found")
