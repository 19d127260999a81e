"""The files of the pages: in the package, and without addresses."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from sigwire.evaluate.reports.page import package_text

FILES = [
    ("sigwire.evaluate.reports", "page.html"),
    ("sigwire.evaluate.reports", "page.css"),
    ("sigwire.evaluate.reports", "page.js"),
    ("sigwire.evaluate.reports", "records.js"),
    ("sigwire.optimizers.reports", "search.js"),
]


@pytest.mark.parametrize(("package", "name"), FILES)
def test_file_of_a_page_has_no_address_and_no_end_of_its_element(package: str, name: str) -> None:
    text = package_text(package, name).replace("http-equiv", "")
    assert re.findall(r"https?:|//\w+\.\w+|src=|href=|url\(|@import", text) == []
    assert name == "page.html" or "</" not in text


def test_files_of_pages_are_all_tested() -> None:
    packages = {package for package, _ in FILES}
    found = {(each, file.name) for each in packages for file in files(each).iterdir() if not file.name.endswith(".py")}
    assert {(package, name) for package, name in found if name != "__pycache__"} == set(FILES)


def test_texts_of_the_page_have_contrast_on_light_and_dark() -> None:
    style = package_text("sigwire.evaluate.reports", "page.css")
    for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]:
        colours = dict(re.findall(r"--([\w-]+): (#\w+)", block))
        for name in ("ink", "soft", "right", "wrong", "failed", "call"):
            for ground in ("paper", "card", "hover"):
                light, dark = sorted((_luminance(colours[name]), _luminance(colours[ground])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, ground)


def _luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
