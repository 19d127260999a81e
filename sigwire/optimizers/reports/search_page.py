"""The page of a search: the held-out difference, plots, changed texts word by word, demos of the winner, and the trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.evaluate.figures.run_card import fields_text
from sigwire.evaluate.reports import charts, summary
from sigwire.evaluate.reports.page import ReportPage, package_text
from sigwire.evaluate.statistics import PairedDifference
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.reports.plots import Svg
from sigwire.optimizers.reports.text_diff import TextDiff
from sigwire.show.card import Card
from sigwire.show.numbers import count

__all__ = ["PagedSearch", "PagedTrial", "search_page"]

_MOST_DIFFS = 200  # trials
T = TypeVar("T", bound="PagedTrial")


class PagedTrial(Protocol):
    """A trial, as the page reads it."""

    @property
    def candidate(self) -> Candidate: ...


class PagedSearch(Protocol[T]):
    """A report, as the page reads it."""

    @property
    def optimizer(self) -> str: ...
    @property
    def headline(self) -> str: ...
    @property
    def objectives(self) -> Sequence[str]: ...
    @property
    def winner(self) -> Candidate: ...
    @property
    def trials(self) -> Sequence[T]: ...
    def measured(self, trial: T, /) -> tuple[float | None, int]: ...
    def described(self, trial: T, /) -> str: ...
    @property
    def texts(self) -> Mapping[str, str]: ...
    @property
    def prompts(self) -> Mapping[str, Sequence[JsonObject]]: ...
    def plot(self, kind: str = ...) -> Svg: ...
    def diffs(self, candidate: Candidate | None = ...) -> Mapping[str, TextDiff]: ...
    def to_json(self) -> JsonObject: ...


def search_page(search: PagedSearch[T], card: Card, held_out: PairedDifference | None) -> ReportPage:
    """Return the page of a search. ``card``: the card of its report; ``held_out``: the difference on the test rows."""
    parts = [
        summary.header("optimization", search.optimizer, [count(len(search.trials), "trial")]),
        f'<p class="headline">{summary.text(search.headline, 1_000)}</p>',
        summary.figures(list(_held_out(held_out)), is_broad=True),
        summary.card_rows(card),
        summary.figures(list(_plots(search))),
        summary.figures([("candidates by validation rows", search.plot("rows").fluid)], is_broad=True),
        *_changes(search),
        *_demos(search),
        _program(search),
    ]
    diffs: list[JsonValue] = [_diff_data(search, each.candidate) for each in search.trials[:_MOST_DIFFS]]
    known: list[JsonValue] = [
        {"name": search.described(each), "mean": mean, "rows": rows}
        for each in search.trials
        for mean, rows in [search.measured(each)]
    ]
    data: JsonObject = {
        "kind": "search",
        "report": search.to_json(),
        "winner": search.winner.digest,
        "diffs": diffs,
        "known": known,
    }
    script = package_text(__package__ or "", "search.js")
    note = "The table of trials needs JavaScript. OptimizationReport.load(journal) returns this report."
    return ReportPage(f"{search.optimizer} · {search.headline}", "".join(parts), data, script, note)


def _held_out(found: PairedDifference | None) -> Iterator[tuple[str, str]]:
    if found is not None:
        drawn = charts.interval_lines([("winner", found.mean, *charts.ends(found.interval))], is_difference=True)
        yield f"paired difference from the student on {found.n} held-out rows", drawn


def _plots(search: PagedSearch[T]) -> Iterator[tuple[str, str]]:
    band = "the band is the student's 95 % interval, the large dot the winner, faint ones ran on fewer rows"
    yield f"mean score of trials over calls; {band}", search.plot("score").fluid
    yield "mean score of candidates over cost; large: the winner, faint: on fewer rows", search.plot("cost").fluid
    if len(search.objectives) > 1:
        up, across = search.objectives[:2]
        yield (
            f"{up} of candidates over {across}; joined: those that none beats in all objectives",
            search.plot("front").fluid,
        )


def _changes(search: PagedSearch[T]) -> Iterator[str]:
    """Yield the texts that the winner changes, word by word."""
    for slot, diff in search.diffs(search.winner).items():
        yield f'<section><h2>{summary.text(slot)}</h2><div class="diff">{diff.html}</div></section>'


def _demos(search: PagedSearch[T]) -> Iterator[str]:
    """Yield the demos of the winner as its model reads them; their fields if the report does not have its prompts."""
    winner = search.winner
    for name, demos in winner.demos.items():
        of_runs = sum(demo.augmented for demo in demos)
        made = f"{count(len(demos), 'demo')}: {of_runs} from runs, {len(demos) - of_runs} from labels"
        if messages := search.prompts.get(name):
            yield summary.messages(f"prompt of {name}", made if demos else "no demos", messages)
        else:
            table = [["row", "made by", "fields"]]
            table += [[demo.row, "a run" if demo.augmented else "labels", _shown(demo.fields)] for demo in demos]
            yield summary.cards([Card(name, count(len(demos), "demo"), table=table if demos else ())])
    if options := {**winner.lm_options, **winner.choices}:
        rows = [(name, [str(value)]) for name, value in options.items()]
        yield summary.cards([Card("options of the model", rows=rows)])


def _program(search: PagedSearch[T]) -> str:
    """Return all texts of the winner, changed or not, folded."""
    texts = {**search.texts, **search.winner.texts}
    parts = "".join(f"<h3>{summary.text(slot)}</h3><pre>{summary.block(text)}</pre>" for slot, text in texts.items())
    return f"<details><summary>all texts of the winner</summary>{parts}</details>" if parts else ""


def _shown(fields: JsonObject) -> str:
    return fields_text({name: value for name, value in fields.items() if name != "augmented"})


def _diff_data(search: PagedSearch[T], candidate: Candidate) -> JsonObject:
    """Return the changed texts of a candidate as parts: the kind, the old words, the new words."""
    found = search.diffs(candidate)
    return {slot: [cast(JsonValue, list(part)) for part in diff.parts()] for slot, diff in found.items()}
