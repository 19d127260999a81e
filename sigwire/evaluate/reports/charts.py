"""Plots of runs as SVG: histograms, intervals, calibration, agreement of repeats. No script, font or link.

Lines and labels have the colour of the text around them; parts have the classes ``right``, ``wrong``, ``failed`` and
``unscored``, which the style of the page colours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sigwire.evaluate.statistics import Interval
from sigwire.show.cleaning import inline
from sigwire.show.svg import Scale, label, mark, svg

__all__ = ["agreement", "calibration", "ends", "histogram", "interval_line", "interval_lines"]

WIDTH, HEIGHT, MARGIN, TOP, BOTTOM = 360, 150, 10, 22, 20
_BINS = 24
_CALIBRATION_BINS = 8


def histogram(
    groups: Mapping[str, Sequence[float]],
    unit: str,
    *,
    marks: bool = True,
    high: float | None = None,
    bins: int = _BINS,
) -> str:
    """Return a histogram of values by group, stacked; ``marks``: lines at the quantiles 50 and 95 %. Empty without values.

    ``groups``: by style class. ``high``: the end of the axis. A long tail is counted in the last bin.

    >>> histogram({"right": [1.0, 2.0], "wrong": [2.0]}, "s").count("<rect")
    3
    """
    values = sorted(value for found in groups.values() for value in found)
    if not values:
        return ""
    p50, p95 = (values[min(int(share * len(values)), len(values) - 1)] for share in (0.5, 0.95))
    end = high or _end(values[-1], p95)
    counts = {name: _counted(found, end, bins) for name, found in groups.items()}
    parts = _quantile_marks(p50, p95, end, unit) if marks else []
    last = f"≥ {_short(end, unit)}" if values[-1] > end else _short(end, unit)
    labels = [label(MARGIN, HEIGHT - 5, _short(0, unit)), label(WIDTH - MARGIN, HEIGHT - 5, last, "end")]
    name = f"Histogram of {len(values)} values; median {_short(p50, unit)}, 95 % below {_short(p95, unit)}"
    return svg(WIDTH, HEIGHT, name, [*_stacks(counts, bins), *parts, _axis(), *labels])


def _stacks(counts: Mapping[str, Sequence[int]], bins: int) -> list[str]:
    most = max(map(sum, zip(*counts.values(), strict=True)))
    return [
        bar for place in range(bins) for bar in _bars(place, bins, {name: counts[name][place] for name in counts}, most)
    ]


def _quantile_marks(p50: float, p95: float, end: float, unit: str) -> list[str]:
    marks = _quantile("p95", p95, end, unit, is_before=p95 > 0.6 * end)
    if p95 > p50 * 1.05:
        marks += _quantile("p50", p50, end, unit, is_before=p95 - p50 < 0.35 * end, line=1)
    return marks


def _end(most: float, p95: float) -> float:
    """Return the end of an axis, a round number."""
    end = min(most, 2 * p95) or most or 1.0
    size = math.pow(10, math.floor(math.log10(end)))
    return next(factor * size for factor in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if factor * size >= end * 0.999)


def _counted(values: Sequence[float], end: float, bins: int) -> list[int]:
    counts = [0] * bins
    for value in values:
        counts[max(0, min(int(value / end * bins), bins - 1))] += 1
    return counts


def _bars(place: int, bins: int, counts: Mapping[str, int], most: int) -> list[str]:
    """Return the stacked bars of one bin."""
    wide = (WIDTH - 2 * MARGIN) / bins
    parts: list[str] = []
    foot = float(HEIGHT - BOTTOM)
    for name, count in counts.items():
        if count:
            tall = max(1.5, count / most * (HEIGHT - TOP - BOTTOM))
            foot -= tall
            x = MARGIN + place * wide + 0.5
            parts.append(mark("rect", f"{count} {name}", css=name, x=x, y=foot, width=wide - 1, height=tall))
    return parts


def _quantile(name: str, value: float, end: float, unit: str, *, is_before: bool, line: int = 0) -> list[str]:
    x = Scale(0, end, MARGIN, WIDTH - MARGIN).at(value)
    place, anchor = (x - 4, "end") if is_before else (x + 4, "start")
    shown = label(place, 10 + 11 * line, f"{name} {_short(value, unit)}", anchor)
    return [mark("line", css="mark", x1=x, x2=x, y1=2 + 11 * line, y2=HEIGHT - BOTTOM), shown]


def interval_line(mean: float, low: float | None, high: float | None) -> str:
    """Return a mean with its interval between 0 and 1; empty if the mean is no such number."""
    if not 0 <= mean <= 1:
        return ""
    scale, middle = Scale(0, 1, MARGIN, WIDTH - MARGIN), 14
    parts = [mark("line", css="axis", x1=MARGIN, x2=WIDTH - MARGIN, y1=middle, y2=middle)]
    for at in (0, 0.25, 0.5, 0.75, 1):
        x = scale.at(at)
        parts.append(mark("line", css="axis", x1=x, x2=x, y1=middle - 4, y2=middle + 4))
        parts.append(label(x, middle + 18, f"{at:g}", "middle"))
    if low is not None and high is not None:
        parts.append(_band(scale, low, high, middle))
    parts.append(mark("circle", css="dot", cx=scale.at(mean), cy=middle, r=6))
    return svg(WIDTH, 38, f"The mean {mean:.3f} between 0 and 1", parts)


def interval_lines(
    rows: Sequence[tuple[str, float, float | None, float | None]], *, is_difference: bool = False
) -> str:
    """Return values with their intervals, a line for each, on one axis. ``rows``: label, value, low and high end.

    ``is_difference``: the axis has 0, as a dashed line. Empty without finite values.

    >>> interval_lines([("baseline", 0.7, 0.6, 0.8), ("optimized", 0.8, None, None)]).count("<circle")
    2
    """
    rows = [row for row in rows if math.isfinite(row[1])]
    if not rows:
        return ""
    known = [end for row in rows for end in row[1:] if end is not None] + [0.0] * is_difference
    margin = (max(known) - min(known)) * 0.08 or 0.05
    low, high = min(known) - margin, max(known) + margin
    start, end, foot = 150, 690, 8 + len(rows) * 26
    scale = Scale(low, high, start, end)
    parts: list[str] = []
    if is_difference:
        zero = scale.at(0)
        parts.append(mark("line", css="mark", x1=zero, x2=zero, y1=2, y2=foot))
        axis = [label(zero, foot + 12, "0", "middle")]
    else:
        parts.append(mark("line", css="axis", x1=start, x2=end, y1=foot, y2=foot))
        axis = [label(start, foot + 12, f"{low:.2f}"), label(end, foot + 12, f"{high:.2f}", "end")]
    for place, (name, value, first, last) in enumerate(rows):
        y = 14 + place * 26
        if first is not None and last is not None:
            parts.append(_band(scale, first, last, y))
        parts.append(mark("circle", css="dot", cx=scale.at(value), cy=y, r=6))
        parts.append(label(start - 14, y + 4, inline(name, 24), "end"))
        parts.append(label(end + 66, y + 4, f"{value:+.3f}" if is_difference else f"{value:.3f}", "end"))
    return svg(end + 70, foot + 16, "Values with their intervals", [*parts, *axis])


def _band(scale: Scale, low: float, high: float, y: int) -> str:
    x, end = scale.at(low), scale.at(high)
    return mark("rect", css="band", x=x, y=y - 5, width=max(end - x, 2.0), height=10, rx=5)


def ends(interval: Interval | None) -> tuple[float | None, float | None]:
    """Return the ends of an interval, as far as there is one."""
    return (None, None) if interval is None else (interval.low, interval.high)


def calibration(pairs: Sequence[tuple[float, float]]) -> str:
    """Return the observed score over the stated probability, in eight bins; the area of a dot is its number of values.

    ``pairs``: the probability and the score, both between 0 and 1.

    >>> calibration([(0.9, 1), (0.92, 0), (0.1, 0)]).count("<circle")
    2
    """
    bins: dict[int, list[tuple[float, float]]] = {}
    for stated, score in pairs:
        bins.setdefault(min(int(stated * _CALIBRATION_BINS), _CALIBRATION_BINS - 1), []).append((stated, score))
    if not bins:
        return ""
    size, start = HEIGHT - TOP - BOTTOM + 12, 110
    foot = HEIGHT - BOTTOM
    parts = [
        mark("line", css="mark", x1=start, y1=foot, x2=start + size, y2=foot - size),
        mark("path", css="axis", fill="none", d=f"M{start} {foot - size}V{foot}H{start + size}"),
    ]
    for _, found in sorted(bins.items()):
        stated, score = (sum(each[place] for each in found) / len(found) for place in (0, 1))
        radius = 3 + 9 * math.sqrt(len(found) / len(pairs))
        title = f"{len(found)} values: stated {stated:.2f}, observed {score:.2f}"
        x, y = start + stated * size, foot - score * size
        parts.append(mark("circle", title, css="dot", cx=x, cy=y, r=radius, opacity="0.7"))
    labels = [
        label(start + size, HEIGHT - 5, "stated 1", "end"),
        label(start - 4, foot, "0", "end"),
        label(start - 4, foot - size + 8, "observed 1", "end"),
    ]
    error = sum(abs(sum(s - p for p, s in found)) for found in bins.values()) / len(pairs)
    labels.append(label(start + size + 12, foot - size + 8, f"gap {error:.3f}"))
    shown = f"Observed score over stated probability; mean gap {error:.3f}"
    return svg(WIDTH, HEIGHT, shown, [*parts, *labels])


def agreement(repeats: Sequence[Sequence[float]], most: int) -> str:
    """Return how many examples have how many right repeats: bars from 0 to ``most``. Empty for single runs.

    ``repeats``: the scores of each example; a score of 1 and more is right.
    """
    if most < 2 or not repeats:
        return ""
    counts = [0] * (most + 1)
    for scores in repeats:
        counts[sum(score >= 1 for score in scores)] += 1
    parts: list[str] = []
    for place, count in enumerate(counts):
        name = "right" if place == most else "wrong" if place == 0 else "mixed"
        parts += _bars(place, most + 1, {name: count}, max(counts))
        x = MARGIN + (place + 0.5) * (WIDTH - 2 * MARGIN) / (most + 1)
        parts.append(label(x, HEIGHT - 5, f"{place} of {most}", "middle"))
        tall = count / max(counts) * (HEIGHT - TOP - BOTTOM)
        parts.append(label(x, HEIGHT - BOTTOM - tall - 4, f"{count}", "middle"))
    return svg(WIDTH, HEIGHT, f"Right repeats of {len(repeats)} examples", [*parts, _axis()])


def _axis() -> str:
    foot = HEIGHT - BOTTOM
    return mark("line", css="axis", x1=MARGIN, x2=WIDTH - MARGIN, y1=foot, y2=foot)


def _short(value: float, unit: str) -> str:
    """Return a value with its unit, three digits at most.

    >>> _short(1.234, "s"), _short(0.00004, "$"), _short(0.25, "s"), _short(0.3, "")
    ('1.2 s', '$ 4e-05', '250 ms', '0.3')
    """
    if unit == "s":
        return f"{1000 * value:.3g} ms" if 0 < value < 1 else f"{value:.2g} s" if value < 100 else f"{value:.0f} s"
    return f"$ {value:.2g}" if unit == "$" else f"{value:.3g}"
