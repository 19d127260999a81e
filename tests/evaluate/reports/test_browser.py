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
from sigwire.show.numbers import count, money_text, seconds_text
from tests.evaluate.reports.browser import OUTSIDE, SMALLEST_TEXT, Tab, open_tab, resize
from tests.evaluate.reports.pages import HOSTILE, asked_cell, mixed_result
from tests.evaluate.runs import make_result, scored_cell

pytestmark = pytest.mark.long

IDS = "[...document.querySelectorAll('tr.row')].map(row => row.querySelector('td.id').textContent)"
DETAIL = "[...document.querySelectorAll('tr.detail')].map(row => row.textContent).join('|')"


def address(report: Any, path: Path, state: str = "") -> str:
    report.to_html(path / "report.html")
    return (path / "report.html").as_uri() + state


def thousand(**rest: Any) -> Any:
    """Return a result of 1,000 rows with ids of the user, a label that no output has, and durations of many digits."""
    cells = [
        scored_cell(float(index % 3 > 0), seconds=0.123456 + index, cost=1.8e-5, requests=1) for index in range(999)
    ]
    fields = [
        {"question": f"question {index}?", "answer": "a1", "id": f"train-{index:06d}", "topic": "maths"}
        for index in range(1000)
    ]
    return make_result([*cells, asked_cell(0.0)], fields=fields, **rest)


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


@pytest.mark.parametrize("width", [1200, 390])
async def test_link_to_a_row_opens_the_row_on_any_page_within_the_view(tmp_path: Path, width: int) -> None:
    async with open_tab(address(thousand(), tmp_path), tmp_path) as tab:
        await resize(tab, width)
        await tab.run("location.hash = '#open=id999'; new Promise(done => setTimeout(done, 100))")
        opened = "document.querySelector('[aria-expanded=true]')"
        assert await tab.run(f"{opened}.querySelector('td.id').textContent") == "id999"
        assert await tab.run("document.querySelector('.pages span').textContent") == "page 2 of 5"
        top, high = await tab.run(f"[{opened}.getBoundingClientRect().top, innerHeight]")
        assert 0 <= top < high
        await tab.run("[...document.querySelectorAll('.detail details')].forEach(each => { each.open = true })")
        await settled(tab)
        assert await tab.run(OUTSIDE) == []
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        assert await tab.run(SMALLEST_TEXT) >= 12
        detail = await tab.run(DETAIL)
        assert "expectedoutputs" in detail.replace("≠ ", "")
        for part in (
            "call 1 · react",
            "call 2 · react · openai/gpt-5-mini · 3 messages · stop",
            "Where is it?",
            "In Oslo.",
        ):
            assert part in detail
        assert detail.count("It is in Oslo.") == 1
        assert tab.problems == []


async def test_search_finds_what_a_person_sees_and_no_duration_or_name_of_a_field(tmp_path: Path) -> None:
    count_of = "document.querySelector('.count').textContent"
    async with open_tab(address(thousand(), tmp_path), tmp_path) as tab:
        for words, found in (("question 77?", 10), (".123456", 0), ("answer", 0), ("oslo", 1), ("train-000500", 1)):
            await tab.run(f"location.hash = '#q={words.replace(' ', '+')}'; new Promise(done => setTimeout(done, 100))")
            assert await tab.run(count_of) == f"{found} of 1,000", words


async def test_labels_that_no_output_has_are_further_fields_and_no_missing_outputs(tmp_path: Path) -> None:
    async with open_tab(address(thousand(), tmp_path, "#open=id0"), tmp_path) as tab:
        detail = await tab.run(DETAIL)
        assert "further fields of the exampleidtrain-000000topicmaths" in detail
        assert "none" not in detail
        expected = "document.querySelector('tr.row td[data-label=expected]').textContent"
        assert await tab.run(expected) == "a1"


async def test_numbers_of_the_table_are_those_of_the_summary(tmp_path: Path) -> None:
    values = [
        0,
        6.8e-6,
        0.00099961,
        0.0021,
        0.0591,
        0.99951,
        2.34,
        9.949,
        9.951,
        41,
        59.51,
        75,
        3723,
        1234.5,
        1.8e-5,
        0.5,
        1.0,
    ]
    async with open_tab(address(make_result([1]), tmp_path), tmp_path) as tab:
        assert await tab.run(f"{values}.map(duration)") == [seconds_text(value) for value in values]
        assert await tab.run(f"{values}.map(each => money(each))") == [money_text(value) for value in values]
        assert await tab.run("[0, 1, 1200].map(each => count(each, 'request'))") == [
            count(number, "request") for number in (0, 1, 1200)
        ]


@pytest.mark.parametrize("width", [1200, 390])
async def test_filters_of_a_comparison_name_their_program(tmp_path: Path, width: int) -> None:
    compared = compare({"baseline": thousand(), "optimized": thousand(), "third": thousand()})
    async with open_tab(address(compared, tmp_path, "#open=id999"), tmp_path) as tab:
        await resize(tab, width)
        assert await tab.run("document.querySelector('.whose').textContent") == "optimized:"
        names = await tab.run("[...document.querySelectorAll('.tools button')].map(each => each.ariaLabel)")
        assert names[1:3] == ["optimized: lost 0", "optimized: won 0"]
        await tab.run("const s = document.querySelector('select'); s.value = 1; s.dispatchEvent(new Event('change'))")
        assert await tab.run("document.querySelector('.whose').textContent") == "third:"
        assert await tab.run(OUTSIDE) == []
        assert await tab.run(SMALLEST_TEXT) >= 12
        assert tab.problems == []
