"""Tool calls against the expected ones, and their feedback."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigwire
from sigwire import Example, FakeLM, Predict, Prediction, ReAct, ToolCall, ToolCalls
from sigwire.evaluate.metrics.tool_calls import calls_of, pair_calls
from sigwire.evaluate.scores import Score

CALL = st.builds(
    lambda name, q: {"name": name, "args": {"q": q}}, st.sampled_from(["search", "lookup"]), st.integers(0, 2)
)
CALLS = st.lists(CALL, max_size=5)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments}


def score(wanted: list[dict[str, Any]], made: list[dict[str, Any]], **options: Any) -> Score:
    metric = sigwire.tool_call_match(**options)
    return metric(Example(tool_calls=wanted), Prediction(tool_calls=ToolCalls(made)))


@pytest.mark.parametrize(
    ("wanted", "made", "options", "feedback"),
    [
        ([call("f", q=1)], [call("f", q=1)], {}, ""),
        ([call("f", q=1)], [call("f", q=1.0)], {}, ""),
        ([call("f", q=1)], [call("f", q=True)], {}, "expected f(q=1), got f(q=True)"),
        ([call("search", q="tea")], [call("lookup", q="tea")], {}, "expected search(q='tea'), got lookup(q='tea')"),
        ([call("search", q="tea")], [call("lookup", q="tea")], {"names": False}, ""),
        ([call("f", q=1)], [call("f", q=1, n=2)], {}, "expected f(q=1), got f(q=1, n=2)"),
        ([call("f", q=1)], [call("f", q=1, n=2)], {"arguments": "subset"}, ""),
        ([call("f", q=1)], [call("f", n=2)], {"arguments": "subset"}, "expected f(q=1), got f(n=2)"),
        ([call("f", q=1)], [call("f")], {"arguments": "ignore"}, ""),
        ([call("f", q="Tea")], [call("f", q="tea")], {"arguments": lambda a, b: a["q"].lower() == b["q"]}, ""),
        ([], [], {}, ""),
        ([], [call("f")], {}, "expected no call, got f()"),
        ([call("f"), call("g")], [], {}, "expected f() and g(), got no call"),
        ([call("f"), call("g")], [call("g"), call("f")], {}, ""),
        ([call("f"), call("g")], [call("g"), call("f")], {"order": True}, "expected the order f, g, got g, f"),
        ([call("f"), call("g")], [call("f")], {}, "missing g()"),
        ([call("f")], [call("f"), call("f")], {}, "needless f()"),
        (
            [call("f"), call("g", q=1)],
            [call("h"), call("g", q=2)],
            {},
            "expected f(), got h(); expected g(q=1), got g(q=2)",
        ),
    ],
)
def test_tool_call_match(
    wanted: list[dict[str, Any]], made: list[dict[str, Any]], options: dict[str, Any], feedback: str
) -> None:
    found = score(wanted, made, **options)
    assert (found.value, found.feedback) == (float(not feedback), feedback)


def test_subscores_are_precision_and_recall() -> None:
    found = score([call("f"), call("g")], [call("f"), call("h"), call("i"), call("j")])
    assert found.subscores == {"precision": 0.25, "recall": 0.5}


@given(CALLS, st.randoms())
def test_match_in_any_order_does_not_depend_on_the_order(calls: list[dict[str, Any]], rng: random.Random) -> None:
    made = rng.sample(calls, len(calls))
    assert score(calls, made).value == 1


@given(CALLS, CALLS, st.randoms())
def test_score_of_any_calls_does_not_depend_on_their_order(
    wanted: list[dict[str, Any]], made: list[dict[str, Any]], rng: random.Random
) -> None:
    first, shuffled = score(wanted, made), score(rng.sample(wanted, len(wanted)), rng.sample(made, len(made)))
    assert (first.value, first.subscores) == (shuffled.value, shuffled.subscores)


@given(CALLS, CALLS)
def test_a_match_in_order_is_a_match_in_any_order(wanted: list[dict[str, Any]], made: list[dict[str, Any]]) -> None:
    ordered, free = score(wanted, made, order=True), score(wanted, made)
    assert ordered.value == float(wanted == made) <= free.value
    assert ordered.subscores["recall"] <= free.subscores["recall"]


@given(CALLS, CALLS)
def test_swapping_both_sides_swaps_precision_and_recall(
    wanted: list[dict[str, Any]], made: list[dict[str, Any]]
) -> None:
    one, other = score(wanted, made), score(made, wanted)
    assert one.value == other.value
    assert one.subscores["precision"] == other.subscores["recall"]


def test_pairs_are_as_many_as_possible() -> None:
    wanted = [ToolCall("a", "any", {}), ToolCall("b", "g", {})]
    made = [ToolCall("c", "g", {}), ToolCall("d", "f", {})]

    def fits(one: ToolCall, other: ToolCall) -> bool:
        return one.name in ("any", other.name)

    assert pair_calls(wanted, made, fits) == {0: 1, 1: 0}


def test_arguments_that_are_no_object_fit_only_if_arguments_are_ignored() -> None:
    made = Prediction(tool_calls=ToolCalls([ToolCall.read("a", "f", "{")]))
    example = Example(tool_calls=[call("f")])
    found = sigwire.tool_call_match()(example, made)
    assert found.value == 0
    assert "whose arguments are not a JSON object" in found.feedback
    assert sigwire.tool_call_match(arguments="ignore")(example, made).value == 1


def test_calls_of_every_output_count_and_those_of_a_named_field_only() -> None:
    made = Prediction(first=ToolCalls([call("f")]), second=ToolCalls([call("g")]), answer="x")
    assert [each.name for each in calls_of(made)] == ["f", "g"]
    assert [each.name for each in calls_of(made, "second")] == ["g"]
    assert sigwire.tool_call_match(field="first")(Example(tool_calls=[call("f")]), made).value == 1
    assert list(calls_of(Prediction(calls=None), "calls")) == []


def test_a_prediction_without_calls_is_an_error() -> None:
    with pytest.raises(sigwire.InputError, match=r"no output of type ToolCalls; it has answer\. Pass the name"):
        calls_of(Prediction(answer="4"))
    with pytest.raises(sigwire.InputError, match="not from str"):
        calls_of("4")
    with pytest.raises(sigwire.InputError, match=r"example\.tool_calls has tool calls"):
        sigwire.tool_call_match()(Example(tool_calls="f()"), Prediction(tool_calls=ToolCalls()))


def test_an_unknown_rule_of_arguments_is_refused() -> None:
    with pytest.raises(sigwire.ConfigurationError, match="'exact', 'subset', 'ignore', or a function"):
        sigwire.tool_call_match(arguments="fuzzy")  # type: ignore[arg-type]


# --- programs ----------------------------------------------------------------------------------------


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def test_calls_of_a_predict_are_compared() -> None:
    lm = FakeLM([ToolCall("a", "double", {"n": 21})])
    choose = Predict("question, tools: list[sigwire.Tool] -> tool_calls: sigwire.ToolCalls", lm=lm)
    made = choose(question="Twice 21?", tools=[sigwire.Tool(double)])
    assert sigwire.tool_call_match()(Example(tool_calls=[call("double", n=21)]), made).value == 1
    assert sigwire.tool_call_match()(Example(tool_calls=[]), made).feedback == "expected no call, got double(n=21)"


@pytest.mark.parametrize("together", [True, False])
def test_calls_of_an_agent_are_those_of_all_steps_without_submit(together: bool) -> None:
    submit = ToolCall("c", "submit", {"answer": 84})
    last: list[Any] = (
        [[submit, ToolCall("b", "double", {"n": 42})]] if together else [ToolCall("b", "double", {"n": 42}), submit]
    )
    agent = ReAct("question -> answer: int", tools=[double])
    agent.set_lm(FakeLM([ToolCall("a", "double", {"n": 21}), *last]))
    made = agent(question="Four times 21?")
    expected = Example(tool_calls=[call("double", n=21), call("double", n=42)])
    assert sigwire.tool_call_match(order=True)(expected, made).value == 1


def test_submit_of_an_agent_has_another_name_if_a_tool_has_its_name() -> None:
    def submit(text: str) -> str:
        """Submit a text."""
        return text

    agent = ReAct("question -> answer: int", tools=[submit])
    agent.set_lm(FakeLM([ToolCall("a", "submit", {"text": "x"}), ToolCall("b", "submit_answer", {"answer": 1})]))
    assert [each.name for each in calls_of(agent(question="?"))] == ["submit"]


def test_rejected_submits_are_no_calls() -> None:
    agent = ReAct("question -> answer: int", tools=[double])
    agent.set_lm(FakeLM([ToolCall("a", "submit", {"result": 1}), ToolCall("b", "submit", {"answer": 1})]))
    assert list(calls_of(agent(question="?"))) == []
