"""Plots of a search as SVG, drawn with the colour of the text around them: no library, no script, no font.

score   the mean of each trial over the calls spent, a line for the best until then, the student with its interval; below it,
        if candidates raced, how many were still running
cost    the mean of each candidate over its cost for 1,000 runs; the front of those with all rows is joined
front   the first objective of candidates over the second; the entries of the front are joined
rows    candidates by validation rows: won, lost or as the student; rows by how many candidates solve them
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

from sigwire.errors import InputError, suggest
from sigwire.evaluate.pareto import pareto_front
from sigwire.evaluate.statistics import mean_interval
from sigwire.files.whole import write_whole
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Spent
from sigwire.show.numbers import count, money_text, seconds_text
from sigwire.show.svg import Scale, label, mark, percent, svg

__all__ = ["Dot", "PlottedSearch", "PlottedTrial", "Svg", "drawing", "plot", "scatter"]

WIDTH, HEIGHT, BOTTOM = 640, 240, 24
START, END = 9, 97  # percent of the width: left of it are the labels of the axis
RACE = 104  # height of the strip of a race
LEGEND = 17  # height of a line of a legend
MOST_CANDIDATES, MOST_ROWS = 40, 200
_GOOD = "color-mix(in srgb, #1a9850 75%, currentColor)"
_BAD = "color-mix(in srgb, #d73027 78%, currentColor)"


@dataclass(frozen=True, slots=True)
class Svg:
    """A drawing. Notebooks show it; ``save`` writes it to a file.

    >>> Svg("<svg></svg>")
    Svg(11 characters)
    """

    text: str

    @property
    def fluid(self) -> str:
        """The drawing for an element of a page, whose width it fills; the page has the font."""
        head, end, rest = self.text.partition(">")
        return _FOR_FILES.sub(lambda found: '<svg width="100%"' if found[0][0] == "<" else "", head) + end + rest

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing."""
        write_whole(path, self.text)

    def _repr_svg_(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Svg({len(self.text)} characters)"


class PlottedTrial(Protocol):
    """A trial, as plots read it."""

    @property
    def number(self) -> int: ...
    @property
    def candidate(self) -> Candidate: ...
    @property
    def mean(self) -> float | None: ...
    @property
    def spent(self) -> Spent | None: ...


class PlottedSearch(Protocol):
    """A report, as plots read it."""

    @property
    def baseline(self) -> Candidate: ...
    @property
    def winner(self) -> Candidate: ...
    @property
    def trials(self) -> Sequence[PlottedTrial]: ...
    @property
    def scores(self) -> Mapping[str, Mapping[str, float]]: ...
    @property
    def costs(self) -> Mapping[str, Spent]: ...
    @property
    def objectives(self) -> Sequence[str]: ...
    @property
    def outcomes(self) -> Mapping[str, Mapping[str, float]]: ...
    @property
    def front(self) -> Sequence[PlottedEntry]: ...


class PlottedEntry(Protocol):
    """An entry of the front, as plots read it."""

    @property
    def candidate(self) -> Candidate: ...
    @property
    def means(self) -> Mapping[str, float]: ...


def plot(search: PlottedSearch, kind: str) -> Svg:
    """Return a plot of a search: "score", "cost", "rows" or "front". Raises ``InputError`` for other names."""
    draw = _KINDS.get(kind)
    if draw is None:
        raise InputError(
            f"There is no plot {kind!r} (drawing a search). {suggest(kind, _KINDS)}There are {', '.join(_KINDS)}."
        )
    return draw(search)


_FOR_FILES = re.compile(r'<svg width="\d+"| (?:viewBox|xmlns|font-family|font-size)="[^"]*"')


# --- the plots


def _score(search: PlottedSearch) -> Svg:
    trials = [each for each in search.trials if each.spent and search.scores.get(each.candidate.digest)]
    ends = sorted((each.spent.calls, each.mean is None) for each in trials if each.spent)
    baseline = list(search.scores.get(search.baseline.digest, {}).values())
    start = sum(baseline) / len(baseline) if baseline else float("-inf")
    means = [_mean(search, each.candidate) for each in trials]
    calls = [at for at, _ in ends]
    first = calls[0] - 0.15 * (calls[-1] - calls[0]) if calls and 0.4 * calls[-1] < calls[0] < calls[-1] else 0
    axes = _Axes.around([first, *calls], [*means, start] if baseline else means, "calls")
    parts = _band(axes, baseline) if baseline else []
    most = max((len(found) for found in search.scores.values()), default=0)
    best: list[tuple[int, float]] = []
    for each, mean in zip(trials, means, strict=True):
        rows = len(search.scores[each.candidate.digest])
        if each.spent is not None:
            shown = f"trial {each.number + 1}: {mean:.3f} on {count(rows, 'row')} at {count(each.spent.calls, 'call')}"
            is_winner = each.candidate.digest == search.winner.digest
            parts.append(axes.dot(each.spent.calls, mean, 6.0 if is_winner else 3.5, shown, is_faint=rows < most))
            best += [(each.spent.calls, mean)] * (rows == most)
    parts += _best(axes, sorted(best), start)
    race = _race(axes, ends) if _is_race(ends) else []
    title = "Mean score of trials over calls; the band is the student's 95 % interval, the large dot the winner"
    return axes.drawing(title, parts, race)


def _mean(search: PlottedSearch, candidate: Candidate) -> float:
    found = search.scores[candidate.digest]
    return sum(found.values()) / len(found)


def _best(axes: _Axes, means: Sequence[tuple[int, float]], best: float) -> list[str]:
    """Return the line of the best mean until then, of the candidates that ran on all rows, as steps."""
    steps: list[tuple[float, float]] = []
    for calls, mean in means:
        if mean > best:
            steps += [(calls, best), (calls, mean)] if best > float("-inf") else [(calls, mean)]
            best = mean
    return axes.steps([*steps, (axes.x.high, best)]) if steps else []


def _is_race(ends: Sequence[tuple[int, bool]]) -> bool:
    """Return True if several candidates were dropped after the same call, as races do."""
    dropped = [calls for calls, is_dropped in ends if is_dropped]
    return len(set(dropped)) < len(dropped)


def _race(axes: _Axes, ends: Sequence[tuple[int, bool]]) -> list[str]:
    """Return the strip below the axis: how many candidates were still running after how many calls, as steps."""
    running, top, foot = len(ends), HEIGHT + 36, HEIGHT + RACE - 6
    y = Scale(0, running, foot, top)
    parts = [label(0, HEIGHT + 12, "candidates still running", fill="currentColor", opacity="0.8")]
    corners, since = [(axes.x.low, float(running))], axes.x.low
    for calls in sorted({calls for calls, is_dropped in ends if is_dropped}):
        place = axes.x.at((since + calls) / 2)
        parts.append(label(percent(place), y.at(running) - 4, str(running), "middle", fill="currentColor"))
        corners.append((calls, running))
        running -= sum(1 for each in ends if each == (calls, True))
        corners.append((calls, running))
        since = calls
    corners.append((axes.x.high, running))
    parts.append(label(percent(END + 1), y.at(running) + 4, str(running), fill="currentColor"))
    return [*parts, *_segments([(axes.x.at(at), y.at(number)) for at, number in corners])]


def _band(axes: _Axes, scores: Sequence[float]) -> list[str]:
    """Return the mean of scores as a dashed line, and its interval as a band."""
    mean, interval = sum(scores) / len(scores), mean_interval(scores)
    low, high = (interval.low, interval.high) if interval is not None else (mean, mean)
    top, end = axes.y.at(high), axes.y.at(low)
    wide = percent(END - START)
    band = {"fill": "currentColor", "opacity": "0.08"}
    return [
        mark("rect", "the student", x=percent(START), y=top, width=wide, height=max(1.0, end - top), **band),
        *_segments([(START, axes.y.at(mean)), (END, axes.y.at(mean))], dashed=True),
    ]


def _cost(search: PlottedSearch) -> Svg:
    rows = {digest: len(found) for digest, found in search.scores.items() if found}
    means = {digest: sum(search.scores[digest].values()) / number for digest, number in rows.items()}
    unit, costs = _costs({digest: cost for digest, cost in search.costs.items() if digest in rows})
    most = max(rows.values(), default=0)
    whole = {digest: cost for digest, cost in costs.items() if rows[digest] == most}
    numbers = {trial.candidate.digest: f"trial {trial.number + 1}" for trial in search.trials}
    dots = [
        Dot(
            cost,
            means[digest],
            f"{numbers.get(digest, 'the student')}: {means[digest]:.3f} on {count(rows[digest], 'row')}",
            is_large=digest == search.winner.digest,
            is_faint=digest not in whole,
        )
        for digest, cost in costs.items()
    ]
    line = [(costs[digest], means[digest]) for digest in _front(whole, means)]
    title = "Mean score of candidates over their cost; the large dot is the winner, faint ones ran on fewer rows"
    return scatter(title, dots, unit, line)


def _costs(spent: Mapping[str, Spent]) -> tuple[str, dict[str, float]]:
    """Return the unit and the cost of 1,000 runs of each candidate: US dollars if all are known, else seconds."""
    if all(cost.money and not cost.is_partial for cost in spent.values()):
        return "$ for 1,000 runs", {digest: 1000 * (cost.money or 0) / cost.runs for digest, cost in spent.items()}
    return "for 1,000 runs", {digest: 1000 * cost.seconds / cost.runs for digest, cost in spent.items()}


def _front(costs: Mapping[str, float], means: Mapping[str, float]) -> list[str]:
    """Return the candidates that no other beats in mean and cost, by their cost."""
    return sorted(
        pareto_front({digest: (means[digest], -cost) for digest, cost in costs.items()}), key=costs.__getitem__
    )


def _objectives(search: PlottedSearch) -> Svg:
    if len(search.objectives) < 2:
        raise InputError(
            'The search had one objective, so there is no front (plotting). Search with objectives=("score", "tokens").'
        )
    up, across = search.objectives[:2]
    means = {digest: found for digest, found in search.outcomes.items() if up in found and across in found}
    xs, ys = ([found[name] for found in means.values()] for name in (across, up))
    axes = _Axes.around(xs or [0.0], ys, _UNITS.get(across, across))
    numbers = {trial.candidate.digest: f"trial {trial.number + 1}" for trial in search.trials}
    front = {entry.candidate.digest: entry.means for entry in search.front}
    dots: list[str] = []
    for digest, found in {**means, **front}.items():
        values = ", ".join(f"{name} {value:.4g}" for name, value in found.items())
        title = f"{numbers.get(digest, 'the student')}: {values}"
        radius = 6.0 if digest == search.winner.digest else 3.5
        dots.append(axes.dot(found[across], found[up], radius, title, is_faint=digest not in front))
    line = axes.steps(sorted((found[across], found[up]) for found in front.values()))
    title = f"{up} of candidates over {across}; the large dot is the winner, faint ones are not on the front"
    return axes.drawing(title, [*line, *dots])


_UNITS: Mapping[str, str] = {"cost": "$", "seconds": "for a run"}


def _rows(search: PlottedSearch) -> Svg:
    scores = search.scores
    baseline = scores.get(search.baseline.digest, {})
    trials = [trial for trial in search.trials if scores.get(trial.candidate.digest)][:MOST_CANDIDATES]
    names = [trial.candidate.digest for trial in trials]
    solved = {row: sum(scores[name].get(row, 0.0) for name in names) for row in baseline}
    rows = sorted(baseline, key=lambda row: (solved[row], row))[:MOST_ROWS]
    wide = (100 - _ROW_LABEL) / max(1, len(rows))
    parts: list[str] = []
    for line, (trial, name) in enumerate(zip(trials, names, strict=True)):
        y = 4 + line * _ROW_HEIGHT
        parts.append(_text(0, y + 13, f"{trial.number + 1}"))
        for at, row in enumerate(rows):
            if (score := scores[name].get(row)) is not None:
                parts.append(_gain(_ROW_LABEL + at * wide, y, wide, score - baseline[row]))
    height = 4 + _ROW_HEIGHT * max(1, len(names)) + 40
    captions = [
        _text(0, height - 23, f"trials by {count(len(rows), 'row')}, hardest first"),
        _text(0, height - 6, "▀ won · ▄ lost · – as the student"),
    ]
    title = "Candidates by validation rows, compared with the student"
    return drawing(height, title, [*parts, *captions])


_ROW_LABEL, _ROW_HEIGHT = 5.0, 20
_KINDS: Mapping[str, Callable[[PlottedSearch], Svg]] = {
    "score": _score,
    "cost": _cost,
    "rows": _rows,
    "front": _objectives,
}


# --- drawing


class Dot(NamedTuple):
    """A place of a scatter plot. ``title``: what a pointer over it shows; ``text``: beside it."""

    x: float
    y: float
    title: str
    is_large: bool = False
    is_faint: bool = False
    text: str = ""


def scatter(
    title: str, dots: Sequence[Dot], unit: str, line: Sequence[tuple[float, float]] = (), legend: Sequence[str] = ()
) -> Svg:
    """Return scores over what they take, from 0. ``line``: the places of the front; ``legend``: lines below the axis.

    ``unit``: "$ ..." for US dollars, "for ..." for seconds, else the noun of counts.
    """
    axes = _Axes.around([0.0, *(each.x for each in dots)], [each.y for each in dots], unit)
    parts = [axes.dot(x, y, 6.0 if large else 3.5, name, is_faint=faint) for x, y, name, large, faint, _ in dots]
    rows = [_text(0, HEIGHT + 16 + LEGEND * place, each) for place, each in enumerate(legend)]
    return axes.drawing(title, [*axes.steps(line), *parts, *_dot_texts(axes, dots)], rows, 10 + LEGEND * len(legend))


_MIDDLE = (START + END) / 2


def _dot_texts(axes: _Axes, dots: Sequence[Dot]) -> Iterator[str]:
    """Yield the texts beside dots, towards the middle; those that would stand on another one are moved down."""
    taken: list[tuple[float, float]] = []
    for each in sorted(dots, key=lambda each: axes.y.at(each.y)):
        if each.text:
            x, y = axes.x.at(each.x), axes.y.at(each.y) + 4
            y = max([y, *(other + 12 for place, other in taken if abs(place - x) < 6)])
            taken.append((x, y))
            anchor, shift = ("start", 10) if x < _MIDDLE else ("end", -10)
            yield label(percent(x), y, each.text, anchor, dx=shift, fill="currentColor")


@dataclass(frozen=True, slots=True)
class _Axes:
    """The scales of a plot: values to percent across, and to pixels down."""

    x: Scale
    y: Scale
    unit: str

    @classmethod
    def around(cls, xs: Iterable[float], ys: Sequence[float], unit: str) -> _Axes:
        known = list(xs)
        first, last = min(known), max(known)
        low, high = min(ys, default=0.0), max(ys, default=1.0)
        margin = max(0.05, (high - low) * 0.15)
        wide = Scale(first, last if last > first else first + 1.0, START, END)
        return cls(wide, Scale(low - margin, high + margin, HEIGHT - BOTTOM, 8), unit)

    def drawing(self, title: str, parts: Sequence[str], strip: Sequence[str] = (), room: int = RACE) -> Svg:
        foot = HEIGHT - BOTTOM
        labels = [
            _text(START, foot + 17, self._shown(self.x.low)),
            _text(END, foot + 17, f"{self._shown(self.x.high)} {self.unit}", "end"),
        ]
        lines = _segments([(START, foot), (END, foot)], width=1.0)
        for tick in _ticks(self.y.low, self.y.high):
            y = self.y.at(tick)
            grid = {"stroke": "currentColor", "opacity": "0.15"}
            lines.append(mark("line", x1=percent(START), x2=percent(END), y1=y, y2=y, **grid))
            labels.append(_text(0, y + 4, f"{tick:.2f}"))
        return drawing(HEIGHT + (room if strip else 0), title, [*lines, *parts, *labels, *strip])

    def _shown(self, value: float) -> str:
        if self.unit.startswith("$"):
            return money_text(value).removeprefix("$")
        return seconds_text(value) if self.unit.startswith("for") else f"{value:,.0f}"

    def dot(self, x: float, y: float, radius: float, title: str, *, is_faint: bool = False) -> str:
        faint = {"opacity": "0.35"} if is_faint else {}
        place: dict[str, float | str] = {"cx": percent(self.x.at(x)), "cy": self.y.at(y)}
        return mark("circle", title, css="dot", **place, r=radius, fill="currentColor", **faint)

    def steps(self, places: Sequence[tuple[float, float]]) -> list[str]:
        """Return the line through some places."""
        return _segments([(self.x.at(x), self.y.at(y)) for x, y in places])


def _ticks(low: float, high: float) -> list[float]:
    """Return two to five round values of an axis.

    >>> _ticks(0.61, 0.97)
    [0.7, 0.8, 0.9]
    """
    size = next(size for size in (0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, high - low) if (high - low) / size <= 5)
    return [round(at * size, 2) for at in range(math.ceil(low / size), math.floor(high / size) + 1)]


def drawing(height: int, title: str, parts: Iterable[str]) -> Svg:
    """Return a drawing for a file, which ``fluid`` fits to a page."""
    style: dict[str, float | str] = {"font_family": "sans-serif", "font_size": 12}
    return Svg(svg(height, title, parts, width=WIDTH, xmlns="http://www.w3.org/2000/svg", **style))


def _segments(places: Sequence[tuple[float, float]], *, dashed: bool = False, width: float = 1.5) -> list[str]:
    """Return a line through places: lines have percent of the width, as paths and polylines have not."""
    style: dict[str, float | str] = {"stroke": "currentColor", "stroke_width": width}
    if dashed:
        style["stroke_dasharray"] = "4 3"
    return [
        mark("line", x1=percent(x), y1=y, x2=percent(end), y2=foot, **style) for (x, y), (end, foot) in pairwise(places)
    ]


def _gain(x: float, y: float, wide: float, gain: float) -> str:
    """Return the mark of a row: in the upper half if it is won, in the lower if it is lost, else a thin line between."""
    place: dict[str, float | str] = {"x": percent(x + 0.1 * wide), "width": percent(0.8 * wide)}
    if gain > 0:
        return mark("rect", **place, y=y, height=8, fill=_GOOD)
    if gain < 0:
        return mark("rect", **place, y=y + 8, height=8, fill=_BAD)
    return mark("rect", **place, y=y + 7, height=2, fill="currentColor", opacity="0.35")


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return label(percent(x), y, text, anchor, fill="currentColor", opacity="0.8")
