"""Bounds of ``repr``, one line for each element of a list in IPython, and code of a call as code."""

from __future__ import annotations

import io
from typing import Any

import pytest

from sigwire import CodeAct, Example, FakeLM, Prediction, ToolCall, ToolCalls
from sigwire.show.card import HasCard

LONG = "x" * 3_000_000
CODE = "total = 1\nfor each in range(3):\n    total += each\nprint(total)"


@pytest.mark.parametrize(
    "shown",
    [
        Example(text=LONG, count=5).with_inputs("text"),
        Example(**{f"field_{n}": n for n in range(1_000)}),
        ToolCalls([ToolCall("1", "search", {"query": LONG})] * 3, text=LONG),
        ToolCalls([ToolCall(str(n), "search", {"n": n}) for n in range(1_000)]),
    ],
    ids=["long example", "example of many fields", "long calls", "many calls"],
)
def test_repr_of_any_size_has_at_most_500_characters(shown: object) -> None:
    assert len(repr(shown)) <= 500
    assert "…" in repr(shown)
    assert len(str(shown)) <= 500


def test_short_records_and_calls_have_the_repr_of_dataclasses() -> None:
    example = Example(question="q" * 300, k=3)
    assert eval(repr(example), {"Example": Example}) == example
    calls = ToolCalls([ToolCall("call_0", "add", {"a": 1})], text="Adding.")
    assert repr(calls) == f"ToolCalls([{calls[0]!r}], text='Adding.')"
    assert eval(repr(calls), {"ToolCalls": ToolCalls, "ToolCall": ToolCall}) == calls


@pytest.mark.parametrize("shown", [Prediction(answer="4"), ToolCalls([ToolCall("1", "add", {"a": 1})])])
def test_elements_of_a_list_are_lines_in_ipython_and_alone_a_card(shown: HasCard) -> None:
    pretty: Any = pytest.importorskip("IPython.lib.pretty").pretty
    out = io.StringIO()
    shown.show(file=out, width=80)
    assert pretty(shown) == out.getvalue().rstrip("\n") != repr(shown)
    for container in ([shown, shown], (shown,), {"first": shown}):
        assert "".join(pretty(container).split()) == "".join(repr(container).split())


def test_code_of_a_call_is_shown_as_lines_of_code() -> None:
    lm = FakeLM([{"reasoning": "sum", "code": CODE}, {"reasoning": "done", "code": "submit(answer='4')"}])
    agent = CodeAct("question -> answer", tools=[])
    agent.set_lm(lm)
    result = agent(question="1 + 0 + 1 + 2?")
    out = io.StringIO()
    result.show(file=out, width=60)
    lines = out.getvalue().splitlines()
    first = lines.index("    python")
    assert lines[first + 1 : first + 6] == [*(f"      {line}" for line in CODE.splitlines()), "      → 4"]
    assert "python(code=\"submit(answer='4')\")" in out.getvalue()
    assert f"<b>python</b></code><br><code>{CODE}</code>" in result._repr_html_()
