"""Plots of an experiment as SVG, for pages and papers: drawn with the colour of the text around them.

score   the mean of each arm over the calls of its search; small dots are its seeds
front   the mean of each arm over what the measurement of one seed costs; the front is joined
seeds   the mean at each seed, by arm, with the interval of the mean
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sigwire.errors import ConfigurationError, InputError, suggest
from sigwire.experiments.arm import ArmResult, interval_text
from sigwire.optimizers.reports.plots import Dot, Svg, drawing, scatter
from sigwire.show.cleaning import inline, number
from sigwire.show.svg import Scale, label, mark, percent

__all__ = ["front_plot", "plot_arms", "score_plot", "seeds_plot"]

ROW, START, END = 42, 3.0, 97.0
"""Height of an arm; percent of the width where the axis begins and ends."""
MOST_OF_NAME = 34  # so many characters fit on a phone, beside number and mean


def score_plot(arms: Sequence[ArmResult]) -> Svg:
    """Return the mean of each arm over the calls of its search at one seed."""
    arms = _known(arms)
    dots = [
        Dot(_calls(arm, seed), mean, f"{inline(arm.name)}, seed {seed}: {mean:.3f}", is_faint=True)
        for arm in arms
        for seed, mean in (arm.seed_means.items() if len(arm.points) > 1 else ())
    ]
    places = {arm.name: arm.search_calls / len(arm.points) for arm in arms}
    return scatter(
        "Mean test score of arms over the calls of their search; small dots are seeds",
        [*dots, *_dots(arms, places)],
        "calls of the search",
        legend=_legend(arms),
    )


def _calls(arm: ArmResult, seed: int) -> int:
    return arm.reports[seed].spent.calls if seed in arm.reports else 0


def front_plot(arms: Sequence[ArmResult], costs: Mapping[str, float], front: Sequence[str], unit: str) -> Svg:
    """Return the mean of each arm over its cost; ``front`` is joined, by data set. ``unit``: as of ``scatter``."""
    arms = _known(arms)
    line = sorted((costs[arm.name], arm.mean) for arm in arms if arm.name in front)
    is_one = len({arm.labels["dataset"] for arm in arms}) == 1
    return scatter(
        "Mean test score of arms over what a seed costs; the front is joined",
        _dots(arms, costs),
        unit,
        line if is_one else (),
        _legend(arms),
    )


def _known(arms: Sequence[ArmResult]) -> list[ArmResult]:
    found = [arm for arm in arms if arm.mean == arm.mean]
    if not found:
        raise ConfigurationError("No arm has a mean score (plotting arms). Look at the failures of their rows.")
    return found


def _dots(arms: Sequence[ArmResult], places: Mapping[str, float]) -> list[Dot]:
    """Return the dots of arms with their numbers; arms at one place share a dot."""
    numbers: dict[tuple[float, float], list[int]] = {}
    for at, arm in enumerate(arms, 1):
        numbers.setdefault((places[arm.name], arm.mean), []).append(at)
    return [
        Dot(
            x,
            y,
            "; ".join(f"{inline(arms[at - 1].name)}: {y:.3f}" for at in found),
            is_large=True,
            text=", ".join(map(str, found)),
        )
        for (x, y), found in numbers.items()
    ]


def _legend(arms: Sequence[ArmResult]) -> list[str]:
    return [f"{at}  {inline(arm.name, MOST_OF_NAME)}   {arm.mean:.3f}" for at, arm in enumerate(arms, 1)]


def seeds_plot(arms: Sequence[ArmResult]) -> Svg:
    """Return the means at each seed by arm, on one axis: dots are seeds, the line is the mean with its interval."""
    arms = _known(arms)
    known = [value for arm in arms for value in _numbers(arm)]
    margin = (max(known) - min(known)) * 0.05 or 0.05
    scale = Scale(min(known) - margin, max(known) + margin, START, END)
    foot = ROW * len(arms) + 8
    parts = [part for at, arm in enumerate(arms) for part in _row(arm, scale, 8 + at * ROW)]
    ends = {"stroke": "currentColor", "stroke_width": "1", "opacity": "0.55"}
    parts.append(mark("line", x1=percent(0), x2=percent(100), y1=foot, y2=foot, **ends))
    parts.append(_text(0, foot + 16, f"{scale.low:.2f}"))
    parts.append(_text(100, foot + 16, f"{scale.high:.2f}", "end"))
    return drawing(foot + 24, "Mean test score at each seed, by arm, with the interval of the mean", parts)


def _numbers(arm: ArmResult) -> Iterator[float]:
    yield arm.mean
    yield from arm.seed_means.values()
    if arm.interval is not None:
        yield from (arm.interval.low, arm.interval.high)


def _row(arm: ArmResult, scale: Scale, y: float) -> Iterator[str]:
    """Yield the name of an arm, its mean and interval, and its seeds below them."""
    middle, colour = y + 26.0, {"fill": "currentColor"}
    yield label(percent(0), y + 12, inline(arm.name, MOST_OF_NAME), css="name", **colour)
    yield label(percent(100), y + 12, number(arm.mean), "end", css="name", **colour)
    if arm.interval is not None:
        low, high = scale.at(arm.interval.low), scale.at(arm.interval.high)
        title = f"{inline(arm.name)}: {interval_text(arm.interval)}"
        band = {"x": percent(low), "width": percent(max(high - low, 0.3)), "rx": "4", "opacity": "0.18", **colour}
        yield mark("rect", title, css="band", y=middle - 5, height="10", **band)
    x = percent(scale.at(arm.mean))
    yield mark("line", x1=x, x2=x, y1=middle - 8, y2=middle + 8, stroke="currentColor", stroke_width="2")
    for seed, mean in arm.seed_means.items():
        yield mark(
            "circle",
            f"seed {seed}: {mean:.3f}",
            css="dot",
            cx=percent(scale.at(mean)),
            cy=middle,
            r="3.5",
            opacity="0.75",
            **colour,
        )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return label(percent(x), y, text, anchor, fill="currentColor", opacity="0.8")


def plot_arms(kind: str, draw: Mapping[str, Callable[[], Svg]]) -> Svg:
    """Return a plot by its name. Raises ``InputError`` for an unknown one."""
    if kind not in draw:
        raise InputError(
            f"There is no plot {kind!r:.80} (plotting an experiment). {suggest(kind, draw)}Plots: {', '.join(draw)}."
        )
    return draw[kind]()
