"""``ReportPage``: a report as one HTML file, without network, from template, style, script and data.

The data is one block of JSON in which ``< > &`` are escapes, so no value can end the block. The script draws values as text
only. The policy of the page (CSP) allows that one script by its hash, and no request. Values of reports are hostile: the
summary has them escaped, by ``summary.text``.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.errors import InputError
from sigwire.evaluate.figures.exports import write_text
from sigwire.evaluate.plain import plain_value
from sigwire.evaluate.reports.summary import text

__all__ = ["ReportPage", "data_block", "encoded", "package_text", "page_html", "write_page", "write_report"]

MOST_BYTES = 20_000_000
_CUTS = (4_000, 1_000, 250, 60)
"""Characters of a text value: the next one counts while the page is larger than ``MOST_BYTES``."""
_MOST_DEPTH = 60


@dataclass(frozen=True, slots=True)
class ReportPage:
    """The parts of a page. ``summary`` is HTML, readable without a script; ``data`` is for the script; ``note``: where the data
    is if no script runs. ``script`` is the source of the functions that draw the data, behind those of ``page.js``."""

    title: str
    summary: str
    data: JsonObject
    script: str
    note: str = ""


def write_report(report: object, path: str | os.PathLike[str]) -> None:
    """Write a result, a comparison or the report of a search as a page: its ``to_html``.

    Raises ``InputError`` for other objects.
    """
    write: Callable[[str | os.PathLike[str]], None] | None = getattr(report, "to_html", None)
    if write is None:
        raise InputError(
            f"{type(report).__name__} has no report (writing {os.fspath(path)!r}). Pass an EvaluationResult, a Comparison "
            "or an OptimizationReport; load_records(path) returns the result of a log."
        )
    write(path)


def write_page(page: ReportPage, path: str | os.PathLike[str]) -> None:
    """Write a page to a file. Directories are made."""
    write_text(path, page_html(page))


def page_html(page: ReportPage, most_bytes: int = MOST_BYTES) -> str:
    """Return a page as HTML. If it is larger than ``most_bytes``, its values are cut, and the page states the length."""
    data, block = page.data, data_block(page.data)
    for most in _CUTS:
        if len(block.encode("utf-8", "replace")) <= most_bytes:
            break
        data = {**cast(JsonObject, _cut(page.data, most)), "cut": most}
        block = data_block(data)
    return _filled(replace(page, data=data), block)


def _filled(page: ReportPage, block: str) -> str:
    script = package_text(__package__ or "", "page.js") + page.script
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return Template(package_text(__package__ or "", "page.html")).substitute(
        title=text(page.title),
        style=package_text(__package__ or "", "page.css"),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        summary=page.summary,
        cut=_cut_note(page.data),
        note=text(page.note, 1_000),
        data=block,
        script=script,
    )


def _cut_note(data: Mapping[str, JsonValue]) -> str:
    most = data.get("cut")
    if most is None:
        return ""
    return (
        f'<p class="cut">The values are cut to {most:,} characters: the page would be larger than {MOST_BYTES // 10**6} MB. '
        "The records have the whole values.</p>"
    )


def data_block(data: JsonValue) -> str:
    r"""Return JSON for a ``<script>`` element: no character in it can end the element or a line of JavaScript.

    >>> data_block({"answer": "</script>\u2028&"})
    '{"answer":"\\u003c/script\\u003e\\u2028\\u0026"}'
    """
    block = encoded(data)
    for each in "<>&\u2028\u2029":  # ``translate`` takes ten times as long
        block = block.replace(each, f"\\u{ord(each):04x}")
    return block


def encoded(data: JsonValue) -> str:
    """Return data as JSON text. Values that are no JSON, such as NaN and infinity, are text."""
    try:
        return _encode(data)
    except (TypeError, ValueError, RecursionError):
        return _encode(plain_value(data))


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _cut(value: JsonValue, most: int, depth: int = 0) -> JsonValue:
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[:most]}… {len(value) - most:,} more characters"
    if depth > _MOST_DEPTH:
        return "…"
    if isinstance(value, list):
        return [_cut(item, most, depth + 1) for item in value]
    return {name: _cut(item, most, depth + 1) for name, item in value.items()} if isinstance(value, dict) else value


@cache
def package_text(package: str, name: str) -> str:
    """Return the text of a file of a package, in a wheel or a zip as well."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
