"""BFCL scores of offline/lexical. ``python -m tests.conformance.test_bfcl_offline`` prints all of them.

With demos: a case with an even index is asked with the ``DEMOS`` cases of odd index in its category whose questions share
most rare words with its question (plain text only, nothing of the answers). A demo is a user message and the calls of
the assistant. "Without" are the even-indexed cases without demos. In a category whose right answer is no call, demos
call nothing.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.client import LM
from sigwire.lm.openai_dicts import decode_messages
from tests.conformance.bfcl_grader import Case, fixtures, grade, read_cases

DEMOS = 8
CATEGORIES = (
    "simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple", "live_simple",
    "live_multiple", "live_parallel", "live_parallel_multiple", "irrelevance", "live_irrelevance", "live_relevance",
)  # fmt: skip
FLOORS = {"simple_python": 42.0, "multiple": 32.0, "irrelevance": 75.0}
DECLINED = "None of the tools fits."


def ask(case: Case, demos: list[Case]) -> bool:
    """Return True if the model's answer to a case is right."""
    *before, question = decode_messages(case.messages)
    shown = [message for demo in demos for message in _as_turns(demo)]
    request = Request((*before, *shown, question), tuple(case.tools))
    choice = LEXICAL.respond(request).choices[0]
    return grade([(call.name, call.arguments or {}) for call in choice.tool_calls], case)


LEXICAL = LM("offline/lexical")


def _as_turns(demo: Case) -> tuple[Message, Message]:
    calls = [
        ToolCall(f"demo_{i}", call["name"], _first_accepted(call["arguments"]))
        for i, call in enumerate(demo.ground_truth or ())
    ]
    text = "" if calls else DECLINED
    return Message.user(demo.messages[-1]["content"]), Message.assistant(text, calls)


def _first_accepted(arguments: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the first accepted value of each argument; omit an argument whose first accepted value is ``""``."""
    return {name: _plain(values[0]) for name, values in arguments.items() if values and values[0] != ""}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return _first_accepted(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def nearest(case: Case, pool: list[Case], count: int) -> list[Case]:
    """Return the cases of a pool whose questions share most rare words with a case's question, nearest last."""
    bags = [set(_words(other)) for other in pool]
    spread = Counter(word for bag in bags for word in bag)
    mine = set(_words(case))
    likeness = [
        sum(math.log(1 + len(pool) / spread[word]) for word in mine & bag) / math.sqrt(1 + len(bag)) for bag in bags
    ]
    order = sorted(range(len(pool)), key=lambda i: (-likeness[i], i))[:count]
    return [pool[i] for i in reversed(order)]


def _words(case: Case) -> list[str]:
    return str(case.messages[-1]["content"]).lower().split()


def score(folder: Path, category: str) -> dict[str, float]:
    """Return the percentages of right answers: all cases, even-indexed cases without demos and with demos."""
    cases = read_cases(folder, category)
    pool = [case for case in cases[1::2] if case.ground_truth is not None]
    even = cases[::2]
    return {
        "all": _percent([ask(case, []) for case in cases]),
        "without": _percent([ask(case, []) for case in even]),
        "with": _percent([ask(case, nearest(case, pool, DEMOS)) for case in even]),
    }


def _percent(right: list[bool]) -> float:
    return 100 * sum(right) / len(right)


@pytest.fixture(scope="module")
def folder() -> Path:
    found = fixtures()
    if found is None:
        pytest.skip("the BFCL fixtures are missing; set SIGWIRE_FIXTURES")
    return found


@pytest.mark.parametrize(("category", "floor"), FLOORS.items())
def test_score_is_at_least_the_floor_of_its_category(folder: Path, category: str, floor: float) -> None:
    assert _percent([ask(case, []) for case in read_cases(folder, category)]) >= floor


@pytest.mark.long
def test_demos_raise_live_multiple_by_ten_points(folder: Path) -> None:
    scores = score(folder, "live_multiple")
    assert scores["with"] >= scores["without"] + 10


@pytest.mark.long
@pytest.mark.parametrize("category", CATEGORIES)
def test_demos_lower_the_score_of_no_category(folder: Path, category: str) -> None:
    scores = score(folder, category)
    assert scores["with"] >= scores["without"]


def _time_of_twenty_tools(folder: Path) -> float:
    """Return the median milliseconds of a request with 20 tools."""
    cases = read_cases(folder, "live_multiple")
    tools = list({tool["function"]["name"]: tool for case in cases for tool in case.tools}.values())
    times: list[float] = []
    for place, case in enumerate(cases[:150]):
        offered = tools[place : place + 20]
        request = Request(tuple(decode_messages(case.messages)), tuple(offered))
        start = time.perf_counter()
        LEXICAL.respond(request)
        times.append(1000 * (time.perf_counter() - start))
    return median(times)


def main() -> None:
    """Print the scores of every category and the time of a request."""
    folder = fixtures()
    if folder is None:
        raise SystemExit("The BFCL fixtures are missing. Set SIGWIRE_FIXTURES to the folder that contains bfcl/.")
    print(f"| category | cases | right % | even, no demos % | even, {DEMOS} demos % |\n|---|---:|---:|---:|---:|")
    total, right = 0, 0.0
    for category in CATEGORIES:
        scores = score(folder, category)
        count = len(read_cases(folder, category))
        total, right = total + count, right + scores["all"] * count
        print(f"| {category} | {count} | {scores['all']:.1f} | {scores['without']:.1f} | {scores['with']:.1f} |")
    print(f"| all | {total} | {right / total:.1f} | | |")
    print(f"\nA request with 20 tools: {_time_of_twenty_tools(folder):.2f} ms (median).")


if __name__ == "__main__":
    main()
