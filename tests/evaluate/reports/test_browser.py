"""Pages of reports in a browser: the state in the address, filters, sort, search, keys, drill-down, and hostile values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sigwire.core.response import Attempt, Repair
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.evaluate.cell import Cell, TraceStep
from sigwire.evaluate.comparison import compare
from sigwire.evaluate.failures import Failure
from sigwire.modules.agents.run import ReActStep
from tests.evaluate.reports.browser import Tab, open_tab
from tests.evaluate.reports.pages import HOSTILE, mixed_result
from tests.evaluate.runs import make_result, scored_cell

pytestmark = pytest.mark.long

IDS = "[...document.querySelectorAll('tr.row')].map(row => row.querySelector('td.id').textContent)"
DETAIL = "[...document.querySelectorAll('tr.detail')].map(row => row.textContent).join('|')"


def address(report: Any, path: Path, state: str = "") -> str:
    report.to_html(path / "report.html")
    return (path / "report.html").as_uri() + state


async def settled(tab: Tab) -> None:
    """Wait for the delay of the search."""
    await tab.run("new Promise(done => setTimeout(done, 250))")


async def test_page_opens_the_example_of_its_address_and_keeps_to_the_filter(tmp_path: Path) -> None:
    async with open_tab(address(mixed_result(), tmp_path, "#show=failed&open=id2"), tmp_path) as tab:
        assert await tab.run(IDS) == ["id2"]
        detail = await tab.run(DETAIL)
        assert "OutputTruncated (program; at support.react, turn 3)" in detail
        assert r"\x1b[31m\u202e" in detail
        assert await tab.run("document.querySelector('.count').textContent") == "1 of 6"
        assert tab.problems == []


async def test_hostile_values_in_the_browser_are_text(tmp_path: Path) -> None:
    hostile = compare({HOSTILE: mixed_result(), "other": mixed_result()})
    for report in (mixed_result(), hostile):
        state = "#" + "&".join(f"open=id{index}" for index in range(6))
        async with open_tab(address(report, tmp_path, state), tmp_path) as tab:
            assert await tab.run("document.querySelectorAll('tr.detail').length") == 6
            assert await tab.run("document.querySelectorAll('img, iframe, a, [onerror], main script').length") == 0
            assert await tab.run("/[\\x1b\\u202e\\u2028]/.test(document.body.innerText)") is False
            assert "<img src=x onerror=alert(1)>" in await tab.run("document.querySelector('main').textContent")
            assert tab.problems == []


async def test_keys_and_clicks_search_sort_open_and_close(tmp_path: Path) -> None:
    async with open_tab(address(mixed_result(), tmp_path), tmp_path) as tab:
        assert await tab.run(IDS) == ["id2", "id3", "id5", "id1", "id0", "id4"]
        await tab.run("document.querySelector('[data-key=seconds] button').click()")
        assert (await tab.run(IDS))[:3] == ["id3", "id2", "id4"]
        await tab.run("document.querySelector('[data-key=seconds] button').click()")
        assert (await tab.run(IDS))[-1] == "id3"
        assert "sort=seconds" in await tab.run("location.hash")

        for key in ("j", "j", "Enter"):
            await tab.press(key)
        assert await tab.run("document.activeElement.getAttribute('aria-expanded')") == "true"
        opened = await tab.run("location.hash")
        assert "open=id" in opened
        await tab.press("Escape")
        assert await tab.run(DETAIL) == ""

        for key in "/order":
            await tab.press(key)
        await settled(tab)
        assert await tab.run(IDS) == ["id4"]
        await tab.run("document.querySelector('tr.row').click()")
        detail = await tab.run(DETAIL)
        for part in (
            "turn 1",
            "find_order(order=7)",
            '→ {"status":"shipped"}',
            "✗ The tool failed.",
            "ended by submit",
        ):
            assert part in detail
        assert "history" not in detail.partition("turns")[0]
        assert tab.problems == []


async def test_differing_fields_are_marked_beside_their_labels(tmp_path: Path) -> None:
    async with open_tab(address(make_result([1, 0]), tmp_path, "#open=id0&open=id1"), tmp_path) as tab:
        marks = (
            "[...document.querySelectorAll('tr.detail')].map(row => row.querySelector('.equal, .differs').textContent)"
        )
        assert await tab.run(marks) == ["≠ a0", "a1"]


async def test_failed_run_of_an_agent_shows_turns_attempts_repairs_and_traceback(tmp_path: Path) -> None:
    call, result = ToolCall("c", "find", {"q": HOSTILE}), ToolResult("c", "find", "nothing", is_error=True)
    failed = Cell(
        0.0,
        failure=Failure(
            "program", "ValueError", "no", path="agent.react", turn=2, traceback=f"Frames {HOSTILE}", is_bug=True
        ),
        attempts=(Attempt("ask", "m", error="LMServerError: 500", status=500), Attempt("repair", "m")),
        repairs=(Repair("answer", f"a comma {HOSTILE}"),),
        trace=(TraceStep("agent.react", {"fields": {"question": "traced", "__proto__": "odd"}}),),
        steps=(ReActStep("I look.", (call,), (result,), error="interrupted"),),
    )
    async with open_tab(address(make_result([failed]), tmp_path, "#open=id0"), tmp_path) as tab:
        detail = await tab.run(DETAIL)
        for part in (
            "agent.react, turn 2",
            "Frames <img",
            "I look.",
            "find(q=",
            "✗ nothing",
            "interrupted",
            "a comma",
            "500",
        ):
            assert part in detail
        assert "__proto__odd" in detail
        assert tab.problems == []


async def test_large_table_has_pages_of_200_rows(tmp_path: Path) -> None:
    async with open_tab(address(make_result([1, 0] * 250), tmp_path, "#page=2&sort=index"), tmp_path) as tab:
        assert (await tab.run(IDS))[::199] == ["id200", "id399"]
        assert await tab.run("document.querySelector('.pages').textContent") == "previouspage 2 of 3next"
        await tab.run("[...document.querySelectorAll('.pages button')].at(-1).click()")
        assert len(await tab.run(IDS)) == 100
        await tab.run(
            "[...document.querySelectorAll('.tools button')].find(each => each.textContent === 'wrong 250').click()"
        )
        assert await tab.run("location.hash") == "#show=wrong&sort=index"
        assert len(await tab.run(IDS)) == 200


async def test_comparison_starts_with_the_lost_examples_and_changes_its_program(tmp_path: Path) -> None:
    one, two, three = make_result([1, 0, 1, 1, 0]), make_result([1, 1, 0, 1, 0]), make_result([0, 0, 1, 1, 1])
    async with open_tab(address(compare({"a": one, "b": two, "c": three}), tmp_path, "#open=id2"), tmp_path) as tab:
        assert (await tab.run(IDS))[0] == "id2"
        assert "= same" not in await tab.run("document.querySelector('tr.row').textContent")
        labels = await tab.run("[...document.querySelectorAll('.detail th')].map(each => each.textContent)")
        assert labels == ["", "expected", "a", "b"]
        filters = await tab.run("[...document.querySelectorAll('.tools button')].map(each => each.textContent)")
        assert filters == ["all", "lost 1", "won 1", "wrong 2", "failed 0", "not scored 0", "right 3"]
        await tab.run("const s = document.querySelector('select'); s.value = 1; s.dispatchEvent(new Event('change'))")
        assert (await tab.run(IDS))[0] == "id0"
        assert "with=c" in await tab.run("location.hash")
        assert tab.problems == []


async def test_comparison_filters_by_the_metric_that_is_chosen(tmp_path: Path) -> None:
    cells = [
        [scored_cell(score, subscores={"exact": score, "topic": topic}) for score, topic in found]
        for found in ([(1, 1), (0, 1), (1, 0.5), (1, 1)], [(1, 0), (1, 1), (1, 1), (1, 0)])
    ]
    one, two = (make_result(found, metric_names=["exact", "topic"]) for found in cells)
    filters = "[...document.querySelectorAll('.tools button')].map(each => each.textContent)"
    choose = "const s = document.querySelector('select'); s.value = 1; s.dispatchEvent(new Event('change'))"
    async with open_tab(address(compare({"a": one, "b": two}), tmp_path), tmp_path) as tab:
        assert (await tab.run(filters))[1:4] == ["lost 0", "won 1", "wrong 0"]
        await tab.run(choose)
        assert (await tab.run(filters))[1:4] == ["lost 2", "won 1", "wrong 2"]
        assert "metric=topic" in await tab.run("location.hash")
        assert (await tab.run(IDS))[:2] == ["id0", "id3"]
        assert tab.problems == []
    async with open_tab(address(one, tmp_path, "#metric=topic&show=wrong"), tmp_path) as tab:
        assert await tab.run(IDS) == ["id2"]
        assert tab.problems == []


async def test_printed_page_shows_the_summary_and_no_table(tmp_path: Path) -> None:
    async with open_tab(address(mixed_result(), tmp_path), tmp_path) as tab:
        await tab._send("Emulation.setEmulatedMedia", media="print")
        assert await tab.run("getComputedStyle(document.querySelector('#rows')).display") == "none"
        assert await tab.run("document.querySelectorAll('svg').length") >= 2
