"""Results for tests of reports, and a reader of pages."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from sigwire.evaluate.calls import RecordedCall
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.failures import Failure
from sigwire.evaluate.result import EvaluationResult
from tests.evaluate.runs import make_result

__all__ = ["HEADER", "HOSTILE", "PageParts", "agent_cell", "asked_cell", "data_of", "mixed_result", "outside_data"]

HOSTILE = '<img src=x onerror=alert(1)></script></details><!--\x1b[31m\u202e\u2028&amp;"Evil"'
HEADER = {
    "type": "run",
    "started": "2026-11-21T23:00:12.250Z",
    "sigwire": "0.2.0",
    "lm": {"model": "openai/gpt-5-mini", "options": {}},
    "devset": {"n": 6, "name": "support.jsonl"},
    "metrics": ["exact"],
}
USAGE = {"openai/gpt-5-mini": {"input_tokens": 120, "output_tokens": 30, "cached_tokens": 100}}


def agent_cell(score: float, **rest: Any) -> Cell:
    """Return the cell of an agent's run: two turns, two calls, an error of a tool."""
    calls: list[dict[str, Any]] = [
        {"type": "tool_call", "id": "c1", "name": "find_order", "arguments": {"order": 7}},
        {"type": "tool_call", "id": "c2", "name": "rate", "arguments": {"currency": "USD"}},
    ]
    results: list[dict[str, Any]] = [
        {"type": "tool_result", "id": "c1", "name": "find_order", "content": {"status": "shipped"}},
        {"type": "tool_result", "id": "c2", "name": "rate", "content": f"The tool failed. {HOSTILE}", "is_error": True},
    ]
    messages: list[dict[str, Any]] = [
        {"question": "Where is order 7?"},
        {"role": "assistant", "parts": [{"type": "text", "text": "I look."}, *calls]},
        {"role": "tool", "parts": results},
        {"role": "assistant", "parts": [{"type": "text", "text": "It is shipped."}]},
    ]
    steps = [{"thought": "I look.", "calls": calls, "results": results, "seconds": 0.5}, {"thought": "It is shipped."}]
    history = {"messages": messages, "kinds": {"1": "message", "2": "message", "3": "message"}}
    outputs = {"answer": f"a{score:g}", "steps": steps, "history": history, "termination_reason": "submit"}
    return Cell(score, outputs=outputs, requests=2, usage=USAGE, cost=0.001, seconds=1.0, **rest)


def asked_cell(score: float = 1.0) -> Cell:
    """Return a cell with the messages of two calls, of which the second goes on with the first."""
    call: dict[str, Any] = {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"q": HOSTILE}}
    first = RecordedCall(
        "react",
        "openai/gpt-5-mini",
        ({"role": "user", "parts": [{"type": "text", "text": f"Where is it? {HOSTILE}"}]},),
        ({"role": "assistant", "parts": [call], "finish_reason": "tool_calls"},),
        ({"type": "function", "function": {"name": "find", "description": f"Find. {HOSTILE}", "parameters": {}}},),
        {"temperature": 0.5},
    )
    result = {"type": "tool_result", "id": "c1", "name": "find", "content": "In Oslo."}
    image = {"type": "image", "content": {"bytes": 1200, "sha256": "ab" * 32}}
    sent = ({"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [result]})
    said = {"role": "assistant", "parts": [{"type": "text", "text": "It is in Oslo."}, image], "finish_reason": "stop"}
    second = RecordedCall("react", "openai/gpt-5-mini", sent, (said,), like=0, shared=1)
    return Cell(score, outputs={"answer": "Oslo"}, requests=2, usage=USAGE, seconds=1.0, calls=(first, second))


def mixed_result(**options: Any) -> EvaluationResult:
    """Return a result with a right, a wrong, a failed and an unscored example, runs of an agent, and hostile values."""
    failure = Failure("program", "OutputTruncated", f"cut off {HOSTILE}", path="support.react", turn=3)
    cells = [
        Cell(1.0, outputs={"answer": "a1"}, requests=1, usage=USAGE, cost=0.001, seconds=0.5),
        Cell(0.0, outputs={"answer": HOSTILE}, feedback=HOSTILE, requests=1, cost=0.002, seconds=0.7),
        Cell(0.0, failure=failure, requests=3, seconds=2.0),
        Cell(None, failure=Failure("provider", "LMRateLimitError", "429"), requests=5, seconds=9.0),
        agent_cell(1.0),
        Cell(
            None, outputs={"answer": "x"}, failure=Failure("metric", "KeyError", "'a'", traceback="Trace", is_bug=True)
        ),
    ]
    fields = [{"question": f"q{index} {HOSTILE}", "answer": "a1"} for index in range(6)]
    return make_result(cells, name="Support", fields=fields, header=HEADER, **options)


class PageParts(HTMLParser):
    """The elements, attributes and scripts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.scripts: list[str] = []
        self.policy = self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["script"] and len(self.scripts) < self.tags.count("script"):
            self.scripts.append(data)
        elif "script" not in self.tags:
            self.text += data


_DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.DOTALL)


def data_of(page: str) -> Any:
    """Return the data of a page."""
    found = _DATA.search(page)
    assert found is not None
    return json.loads(found[2])


def outside_data(page: str) -> str:
    """Return a page without its data."""
    return _DATA.sub("", page, count=1)
