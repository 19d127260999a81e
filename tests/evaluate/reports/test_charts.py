"""Plots of reports: well-formed, within their frame, and empty without values."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from sigwire.evaluate.reports import charts
from sigwire.evaluate.statistics import Interval

DRAWINGS = [
    charts.histogram({"right": [0.1, 0.2, 9.0], "wrong": [0.3]}, "s"),
    charts.histogram({"right": [0.0, 0.0]}, "$"),
    charts.histogram({"wrong": [0.00001]}, "$"),
    charts.interval_line(0.7, 0.5, 0.9),
    charts.interval_line(1.0, None, None),
    charts.interval_lines([("a <b>", 0.5, 0.4, 0.6), ("b", float("nan"), None, None)]),
    charts.interval_lines([("same", 0.0, None, None)], is_difference=True),
    charts.calibration([(0.0, 0.0), (1.0, 1.0), (0.5, 1.0)]),
    charts.agreement([[1, 1], [0, 1], [0, 0]], 2),
]


_ACROSS = ("x", "x1", "x2", "cx")


@pytest.mark.parametrize("drawing", DRAWINGS, ids=[str(number) for number in range(len(DRAWINGS))])
def test_drawing_is_well_formed_and_within_its_frame(drawing: str) -> None:
    root = ElementTree.fromstring(drawing)
    assert (root.attrib["width"], "viewBox" in root.attrib) == ("100%", False)  # it fills its card, and scales no text
    height = float(root.attrib["height"])
    assert {element.tag for element in root.iter()} <= {"svg", "title", "rect", "line", "circle", "path", "text"}
    assert root.attrib["role"] == "img"
    for element in list(root.iter())[1:]:
        across = [float(value.removesuffix("%")) for name, value in element.attrib.items() if name in _ACROSS]
        down = [float(value) for name, value in element.attrib.items() if name in ("y", "y1", "y2", "cy")]
        assert all(0 <= value <= 100 for value in across)
        assert all(0 <= value <= height for value in down)


@pytest.mark.parametrize(
    "drawing",
    [
        charts.histogram({"right": []}, "s"),
        charts.interval_line(1.5, None, None),
        charts.interval_lines([]),
        charts.calibration([]),
        charts.agreement([[1], [0]], 1),
        charts.agreement([], 3),
    ],
)
def test_drawing_without_values_is_empty(drawing: str) -> None:
    assert drawing == ""


def test_long_tail_of_a_histogram_is_counted_in_the_last_bin() -> None:
    drawing = charts.histogram({"right": [1.0] * 99 + [500.0]}, "s")
    assert "≥ 2.0 s" in drawing
    assert "<title>1 right</title>" in drawing


def test_ends_of_no_interval_are_unknown() -> None:
    assert charts.ends(None) == (None, None)
    assert charts.ends(Interval(0.25, 0.75)) == (0.25, 0.75)
