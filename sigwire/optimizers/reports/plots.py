"""Plots of a search as SVG, drawn with the colour of the text around them: no library, no script, no font.

score   the mean of each trial over the calls spent, a line for the best until then, the student with its interval
cost    the mean of each candidate over its cost for 1,000 runs; the front of those with all rows is joined
rows    candidates by validation rows: won, lost or as the student; rows by how many candidates solve them
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sigwire.errors import InputError
from sigwire.evaluate.statistics import mean_interval
from sigwire.files.whole import write_whole
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Spent
from sigwire.show.svg import Scale, label, mark, points, svg

__all__ = ["PlottedSearch", "PlottedTrial", "Svg", "plot"]

WIDTH, HEIGHT, MARGIN, BOTTOM = 640, 240, 48, 32
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


def plot(search: PlottedSearch, kind: str) -> Svg:
    """Return a plot of a search: "score", "cost" or "rows". Raises ``InputError`` for other names."""
    draw = _KINDS.get(kind)
    if draw is None:
        raise InputError(f"There is no plot {kind!r}; there are {', '.join(_KINDS)}.")
    return draw(search)


# --- the plots


def _score(search: PlottedSearch) -> Svg:
    trials = sorted((each.spent.calls, each.mean) for each in search.trials if each.mean is not None and each.spent)
    baseline = list(search.scores.get(search.baseline.digest, {}).values())
    start = sum(baseline) / len(baseline) if baseline else float("-inf")
    means = [mean for _, mean in trials]
    axes = _Axes.around([0, *(x for x, _ in trials)], [*means, start] if baseline else means, "calls", "mean score")
    band = _band(axes, baseline) if baseline else []
    return axes.drawing(
        "Mean score of trials over calls; the band is the student's 95 % interval", [*band, *_best(axes, trials, start)]
    )


def _best(axes: _Axes, means: Sequence[tuple[int, float]], best: float) -> list[str]:
    """Return a dot for each point, large if it is the best until then, and the line of the best."""
    corners: list[tuple[float, float]] = []
    dots: list[str] = []
    for calls, mean in means:
        title = f"{mean:.3f} at {calls} calls"
        dots.append(_dot(axes.x.at(calls), axes.y.at(mean), 4.0 if mean > best else 2.5, title))
        if mean > best:
            corners += [(axes.x.at(calls), axes.y.at(best)), (axes.x.at(calls), axes.y.at(mean))]
            best = mean
    return [*dots, _line([*corners, (WIDTH - 8, axes.y.at(best))])] if corners else dots


def _band(axes: _Axes, scores: Sequence[float]) -> list[str]:
    """Return the mean of scores as a dashed line, and its interval as a band."""
    mean, interval = sum(scores) / len(scores), mean_interval(scores)
    low, high = (interval.low, interval.high) if interval is not None else (mean, mean)
    top, end = axes.y.at(high), axes.y.at(low)
    wide, tall = WIDTH - MARGIN - 8, max(1.0, end - top)
    return [
        mark("rect", x=MARGIN, y=top, width=wide, height=tall, fill="currentColor", opacity="0.08"),
        _line([(MARGIN, axes.y.at(mean)), (WIDTH - 8, axes.y.at(mean))], dashed=True),
    ]


def _cost(search: PlottedSearch) -> Svg:
    rows = {digest: len(found) for digest, found in search.scores.items() if found}
    means = {digest: sum(search.scores[digest].values()) / count for digest, count in rows.items()}
    unit, costs = _costs({digest: cost for digest, cost in search.costs.items() if digest in rows})
    axes = _Axes.around([0.0, *costs.values()], [means[digest] for digest in costs], unit, "mean score")
    most = max(rows.values(), default=0)
    whole = {digest: cost for digest, cost in costs.items() if rows[digest] == most}
    places = {digest: (axes.x.at(cost), axes.y.at(means[digest])) for digest, cost in costs.items()}
    dots = [
        _dot(
            *place,
            6.0 if digest == search.winner.digest else 2.5,
            f"{digest[:8]}: {means[digest]:.3f} on {rows[digest]} rows",
            is_faint=digest not in whole,
        )
        for digest, place in places.items()
    ]
    line = _line([places[digest] for digest in _front(whole, means)])
    title = "Mean score of candidates over their cost; the large dot is the winner, faint ones ran on fewer rows"
    return axes.drawing(title, [line, *dots])


def _costs(spent: Mapping[str, Spent]) -> tuple[str, dict[str, float]]:
    """Return the unit and the cost of 1,000 runs of each candidate: US dollars if all are known, else seconds."""
    if all(cost.money and not cost.is_partial for cost in spent.values()):
        return "US dollars for 1,000 runs", {
            digest: 1000 * (cost.money or 0) / cost.runs for digest, cost in spent.items()
        }
    return "seconds for 1,000 runs", {digest: 1000 * cost.seconds / cost.runs for digest, cost in spent.items()}


def _front(costs: Mapping[str, float], means: Mapping[str, float]) -> list[str]:
    """Return the candidates that no cheaper one equals, by their cost."""
    front: list[str] = []
    for digest in sorted(costs, key=lambda each: (costs[each], -means[each])):
        if not front or means[digest] > means[front[-1]]:
            front.append(digest)
    return front


def _rows(search: PlottedSearch) -> Svg:
    scores = search.scores
    baseline = scores.get(search.baseline.digest, {})
    names = [trial.candidate.digest for trial in search.trials if scores.get(trial.candidate.digest)][:MOST_CANDIDATES]
    solved = {row: sum(scores[name].get(row, 0.0) for name in names) for row in baseline}
    rows = sorted(baseline, key=lambda row: (solved[row], row))[:MOST_ROWS]
    size = max(3.0, min(12.0, (WIDTH - MARGIN) / max(1, len(rows))))
    parts: list[str] = []
    for line, name in enumerate(names):
        for at, row in enumerate(rows):
            if (score := scores[name].get(row)) is not None:
                parts.append(_gain(MARGIN + at * size, 8 + line * 12, size, score - baseline[row]))
    height = 8 + 12 * max(1, len(names)) + 24
    labels = "".join(_text(4, 16 + 12 * line, str(line + 1)) for line in range(len(names)))
    caption = _text(MARGIN, height - 8, f"{len(rows)} rows, hardest first · ▲ won · ▼ lost · ▪ as the student")
    title = "Candidates by validation rows, compared with the student"
    return _drawing(height, title, [*parts, labels, caption])


_KINDS: Mapping[str, Callable[[PlottedSearch], Svg]] = {"score": _score, "cost": _cost, "rows": _rows}


# --- drawing


@dataclass(frozen=True, slots=True)
class _Axes:
    """The scales of a plot."""

    x: Scale
    y: Scale
    x_name: str
    y_name: str

    @classmethod
    def around(cls, xs: Iterable[float], ys: Sequence[float], x_name: str, y_name: str) -> _Axes:
        low, high = min(ys, default=0.0), max(ys, default=1.0)
        margin = max(0.05, (high - low) * 0.15)
        wide = Scale(0, max(xs) or 1.0, MARGIN, WIDTH - 8)
        return cls(wide, Scale(low - margin, high + margin, HEIGHT - BOTTOM, 8), x_name, y_name)

    def drawing(self, title: str, parts: Sequence[str]) -> Svg:
        frame = _line([(MARGIN, 8), (MARGIN, HEIGHT - BOTTOM), (WIDTH - 8, HEIGHT - BOTTOM)], width=1.0)
        labels = [
            _text(MARGIN, HEIGHT - 8, "0"),
            _text(WIDTH - 8, HEIGHT - 8, f"{self.x.high:,.4g} {self.x_name}", "end"),
            _text(MARGIN - 4, 16, f"{self.y.high:.2f}", "end"),
            _text(MARGIN - 4, HEIGHT - BOTTOM, f"{self.y.low:.2f}", "end"),
            _text(MARGIN + 4, 16, self.y_name),
        ]
        return _drawing(HEIGHT, title, [frame, *parts, *labels])


def _drawing(height: int, title: str, parts: Iterable[str]) -> Svg:
    style: dict[str, float | str] = {"width": WIDTH, "font_family": "sans-serif", "font_size": 11}
    return Svg(svg(WIDTH, height, title, parts, xmlns="http://www.w3.org/2000/svg", **style))


def _line(places: Sequence[tuple[float, float]], *, dashed: bool = False, width: float = 1.5) -> str:
    dashes = {"stroke_dasharray": "4 3"} if dashed else {}
    return mark("polyline", points=points(*places), fill="none", stroke="currentColor", stroke_width=width, **dashes)


def _dot(x: float, y: float, radius: float, title: str, *, is_faint: bool = False) -> str:
    faint = {"opacity": "0.35"} if is_faint else {}
    return mark("circle", title, cx=x, cy=y, r=radius, fill="currentColor", **faint)


def _gain(x: float, y: float, size: float, gain: float) -> str:
    wide, tall = size * 0.8, 9.0
    if gain > 0:
        return mark("path", d=f"M{x:.1f} {y + tall:.1f}h{wide:.1f}l{-wide / 2:.1f} {-tall:.1f}z", fill=_GOOD)
    if gain < 0:
        return mark("path", d=f"M{x:.1f} {y:.1f}h{wide:.1f}l{-wide / 2:.1f} {tall:.1f}z", fill=_BAD)
    side = min(wide, 4.0)
    return mark("rect", x=x, y=y + 3, width=side, height=side, fill="currentColor", opacity="0.3")


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return label(x, y, text, anchor, fill="currentColor", opacity="0.8")
