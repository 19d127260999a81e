"""Plots of runs as SVG: histograms, intervals, calibration, agreement of repeats. No script, font or link.

Lines and labels have the colour of the text around them; parts have the classes ``right``, ``wrong``, ``failed`` and
``unscored``, which the style of the page colours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sigwire.evaluate.statistics import Interval
from sigwire.show.cleaning import inline
from sigwire.show.numbers import count, money_text, seconds_text
from sigwire.show.svg import Scale, label, mark, percent, svg

__all__ = ["agreement", "calibration", "ends", "histogram", "interval_line", "interval_lines", "reliability"]

HEIGHT, TOP, BOTTOM, LINE = 170, 36, 22, 15
_BINS = 24
_CALIBRATION_BINS = 8
_INSET = 2.5
"""Percent of the width that lines of intervals leave free on both sides, for dots and labels at their ends."""


def histogram(
    groups: Mapping[str, Sequence[float]],
    unit: str,
    *,
    marks: bool = True,
    high: float | None = None,
    bins: int = _BINS,
) -> str:
    """Return a histogram of values by group, stacked; ``marks``: lines at the quantiles 50 and 95 %. Empty without values.

    ``groups``: by style class. ``high``: the end of the axis. A long tail is counted in the last bin. ``unit``: "s", "$" or "".

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
    labels = [label(0, HEIGHT - 5, _short(0, unit)), label(percent(100), HEIGHT - 5, last, "end")]
    name = f"Histogram of {count(len(values), 'value')}; median {_short(p50, unit)}, 95 % below {_short(p95, unit)}"
    return svg(HEIGHT, name, [*_stacks(counts, bins), *parts, _axis(), *labels])


def _stacks(counts: Mapping[str, Sequence[int]], bins: int) -> list[str]:
    most = max(map(sum, zip(*counts.values(), strict=True)))
    return [
        bar for place in range(bins) for bar in _bars(place, bins, {name: counts[name][place] for name in counts}, most)
    ]


def _quantile_marks(p50: float, p95: float, end: float, unit: str) -> list[str]:
    marks = _quantile("p95", p95, end, unit, least_before=50)
    return [*marks, *_quantile("p50", p50, end, unit, least_before=35, line=1)] if p95 > p50 * 1.05 else marks


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
    wide = 100 / bins
    parts: list[str] = []
    foot = float(HEIGHT - BOTTOM)
    for name, number in counts.items():
        if number:
            tall = max(1.5, number / most * (HEIGHT - TOP - BOTTOM))
            foot -= tall
            x, width = percent((place + 0.05) * wide), percent(0.9 * wide)
            parts.append(mark("rect", f"{number} {name}", css=name, x=x, y=foot, width=width, height=tall))
    return parts


def _quantile(name: str, value: float, end: float, unit: str, *, least_before: int, line: int = 0) -> list[str]:
    """Return a mark and its label, before it if it stands at ``least_before`` percent or later: there is room in any card."""
    share = Scale(0, end, 0, 100).at(value)
    x = percent(share)
    anchor, shift = ("end", -5) if share >= least_before else ("start", 5)
    shown = label(x, 12 + LINE * line, f"{name} {_short(value, unit)}", anchor, dx=shift)
    return [mark("line", css="mark", x1=x, x2=x, y1=2 + LINE * line, y2=HEIGHT - BOTTOM), shown]


def interval_line(mean: float, low: float | None, high: float | None) -> str:
    """Return a mean with its interval between 0 and 1; empty if the mean is no such number."""
    if not 0 <= mean <= 1:
        return ""
    scale, middle = Scale(0, 1, _INSET, 100 - _INSET), 14
    parts = [mark("line", css="axis", x1=percent(_INSET), x2=percent(100 - _INSET), y1=middle, y2=middle)]
    for at in (0, 0.25, 0.5, 0.75, 1):
        x = percent(scale.at(at))
        parts.append(mark("line", css="axis", x1=x, x2=x, y1=middle - 4, y2=middle + 4))
        parts.append(label(x, middle + 20, f"{at:g}", "middle"))
    if low is not None and high is not None:
        parts.append(_band(scale, low, high, middle))
    parts.append(mark("circle", css="dot", cx=percent(scale.at(mean)), cy=middle, r=6))
    return svg(40, f"The mean {mean:.3f} between 0 and 1", parts)


def interval_lines(
    rows: Sequence[tuple[str, float, float | None, float | None]], *, is_difference: bool = False
) -> str:
    """Return values with their intervals on one axis, each below its label. ``rows``: label, value, low and high end.

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
    scale, foot = Scale(low, high, _INSET, 100 - _INSET), 6 + len(rows) * 40
    parts = [mark("line", css="axis", x1=0, x2=percent(100), y1=foot, y2=foot)]
    axis = [
        label(0, foot + LINE, f"{low:+.2f}" if is_difference else f"{low:.2f}"),
        label(percent(100), foot + LINE, f"{high:+.2f}" if is_difference else f"{high:.2f}", "end"),
    ]
    if is_difference:
        zero = scale.at(0)
        parts.append(mark("line", css="mark", x1=percent(zero), x2=percent(zero), y1=2, y2=foot))
        if 15 < zero < 85:  # the label has room between those of the ends
            axis.append(label(percent(zero), foot + LINE, "0", "middle"))
    for place, (name, value, first, last) in enumerate(rows):
        y = 30 + place * 40
        if first is not None and last is not None:
            parts.append(_band(scale, first, last, y))
        parts.append(mark("circle", css="dot", cx=percent(scale.at(value)), cy=y, r=6))
        parts.append(label(0, y - 14, inline(name, 34), css="name"))
        shown = f"{value:+.3f}" if is_difference else f"{value:.3f}"
        parts.append(label(percent(100), y - 14, shown, "end", css="name"))
    return svg(foot + 22, "Values with their intervals", [*parts, *axis])


def _band(scale: Scale, low: float, high: float, y: int) -> str:
    x, end = scale.at(low), scale.at(high)
    return mark("rect", css="band", x=percent(x), y=y - 5, width=percent(max(end - x, 0.5)), height=10, rx=5)


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
    parts = [
        (len(found), sum(stated for stated, _ in found) / len(found), sum(score for _, score in found) / len(found))
        for _, found in sorted(bins.items())
    ]
    error = sum(abs(n * (score - stated)) for n, stated, score in parts) / max(len(pairs), 1)
    return reliability(parts, error)


def reliability(bins: Sequence[tuple[int, float, float]], error: float, source: str = "stated") -> str:
    """Return the observed share over the probability; the area of a dot is its number of values.

    ``bins``: number, mean probability and observed share of each; ``error``: their mean gap; ``source``: of the probabilities,
    the name of their axis. Empty without bins.

    >>> reliability([(10, 0.9, 0.8)], 0.1).count("<circle")
    1
    """
    if not bins:
        return ""
    total = sum(n for n, _, _ in bins)
    across, down, foot = Scale(0, 1, 4, 96), Scale(0, 1, HEIGHT - BOTTOM, 12), HEIGHT - BOTTOM
    left, right = percent(4), percent(96)
    parts = [
        mark("line", css="mark", x1=left, y1=foot, x2=right, y2=12),
        mark("line", css="axis", x1=left, y1=foot, x2=right, y2=foot),
        mark("line", css="axis", x1=left, y1=foot, x2=left, y2=12),
    ]
    for n, p, score in bins:
        radius = 3 + 9 * math.sqrt(n / total)
        title = f"{count(n, 'value')}: {source} {p:.2f}, observed {score:.2f}"
        x, y = percent(across.at(p)), down.at(score)
        parts.append(mark("circle", title, css="dot", cx=x, cy=y, r=radius, opacity="0.7"))
    labels = [
        label(left, HEIGHT - 5, f"{source} 0"),
        label(percent(50), HEIGHT - 5, f"gap {error:.3f}", "middle"),
        label(right, HEIGHT - 5, f"{source} 1", "end"),
        label(left, 20, "observed 1", dx=6),
    ]
    shown = f"Observed score over {source} probability; mean gap {error:.3f}"
    return svg(HEIGHT, shown, [*parts, *labels])


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
    step = max(1, (most + 1) // 8)  # labels that have room in the narrowest card
    for place, number in enumerate(counts):
        name = "right" if place == most else "wrong" if place == 0 else "mixed"
        parts += _bars(place, most + 1, {name: number}, max(counts))
        x = percent((place + 0.5) * 100 / (most + 1))
        if place % step == 0:
            parts.append(label(x, HEIGHT - 5, f"{place} of {most}" if most < 4 else str(place), "middle"))
        tall = number / max(counts) * (HEIGHT - TOP - BOTTOM)
        if number and most < 10:
            parts.append(label(x, HEIGHT - BOTTOM - tall - 4, f"{number:,}", "middle"))
    return svg(HEIGHT, f"Right repeats of {count(len(repeats), 'example')}", [*parts, _axis()])


def _axis() -> str:
    foot = HEIGHT - BOTTOM
    return mark("line", css="axis", x1=0, x2=percent(100), y1=foot, y2=foot)


def _short(value: float, unit: str) -> str:
    """Return a value with its unit.

    >>> _short(1.234, "s"), _short(0.04, "$"), _short(0.25, "s"), _short(0.3, "")
    ('1.2 s', '$0.04', '250 ms', '0.3')
    """
    return seconds_text(value) if unit == "s" else money_text(value) if unit == "$" else f"{value:.3g}"
