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
