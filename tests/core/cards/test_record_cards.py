"""Reprs and cards of records: examples, predictions, runs of agents, completions, sets of examples."""

from __future__ import annotations

import io
import pickle
import sys
import warnings

import pytest

from sigwire.core.cards.examples import Examples
from sigwire.core.example import Completions, Example, Prediction
from sigwire.core.response import Attempt, LMWarning, Repair, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import InputError
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.run import AgentRun
from sigwire.show.card import HasCard
from sigwire.signatures.signature import make_signature


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("no")


def text_of(shown: HasCard) -> str:
    file = io.StringIO()
    shown.show(file, width=80)
    return file.getvalue()


def add(a: int, b: int) -> int:
    return a + b


def rate(currency: str) -> float:
    return {"CHF": 1.06}[currency]


def agent_result(answer: str = "5", signature: str = "question -> answer") -> Prediction:
    agent = ReAct(signature, tools=[add, rate])
    calls = [ToolCall("a", "add", {"a": 2, "b": 3}), ToolCall("b", "rate", {"currency": "USD"})]
    output = make_signature(signature).spec.outputs[0].name
    agent.set_lm(FakeLM([calls, ToolCall("c", "submit", {output: answer})], usage=Usage(185, 29, cost=0.0001)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return agent(question="What is 2 + 3?")


def test_repr_of_a_prediction_has_its_outputs_cut_at_80() -> None:
    prediction = Prediction(topic="delivery", order=1042, text="x" * 1_000, bad=Unshowable())
    assert repr(prediction) == (
        f"Prediction(topic='delivery', order=1042, text='{'x' * 78}…, bad=<unshowable Unshowable: ValueError>)"
    )


def test_repr_of_a_prediction_has_declared_outputs_before_other_fields() -> None:
    signature = make_signature("question -> topic, order: int")
    prediction = Prediction.make({"note": "added", "order": 1, "topic": "x"}, signature=signature)
    assert repr(prediction) == "Prediction(order=1, topic='x', note='added')"


def test_repr_of_an_agents_prediction_is_a_line_under_500_characters_without_history() -> None:
    assert repr(agent_result()) == "Prediction(answer='5', run=<2 turns, 3 calls, 1 tool error, submit>)"
    long = repr(agent_result("word " * 1_000))
    assert len(long) < 500
    assert long.endswith("run=<2 turns, 3 calls, 1 tool error, submit>)")
    assert "History" not in long


def test_repr_of_many_outputs_keeps_the_summary_of_the_run() -> None:
    fields = dict(agent_result().__dict__)
    many = {f"field_{at}": "x" * 100 for at in range(50)}
    line = repr(Prediction.make({**many, **fields}))
    assert len(line) <= 500
    assert line.endswith(", …, run=<2 turns, 3 calls, 1 tool error, submit>)")


def test_run_is_found_when_an_output_has_the_name_of_a_field_of_runs() -> None:
    result = agent_result("done", "question -> steps")
    assert repr(result) == "Prediction(steps='done', run=<2 turns, 3 calls, 1 tool error, submit>)"


def test_fields_with_the_names_of_a_run_that_hold_no_turns_are_fields() -> None:
    prediction = Prediction(steps=["a"], history="b", termination_reason="c")
    assert repr(prediction) == "Prediction(steps=['a'], history='b', termination_reason='c')"


def test_card_of_an_agents_prediction_has_outputs_then_a_card_for_each_turn() -> None:
    result = agent_result()
    lines = text_of(result).splitlines()
    assert lines[0] == "Prediction  answer" + " " * 39 + "[submit] [1 tool error]"
    assert lines[1] == "  answer  5"
    assert "$0.0002 · 2 requests" in lines[2]
    assert "    add(a=2, b=3)           → 5" in lines
    assert "    rate(currency='USD')    ✗ The tool failed. KeyError: 'USD'" in lines
    assert any("KeyError('USD') at test_record_cards.py" in line for line in lines)
    assert repr(AgentRun.of(result)) == "AgentRun(2 turns, 3 calls, 1 tool error, submit)"
    assert "turn 2" in text_of(AgentRun.of(result))


def test_card_of_a_prediction_tags_what_is_odd() -> None:
    response = Response(
        usage=Usage(185, 29), model="openai/gpt-5-mini", warnings=(LMWarning("seed", "dropped"),), cache="hit"
    )
    prediction = Prediction.make({"a": 1}, response=response, repairs=[Repair("a", "a comma")], mode="native_json")
    text = text_of(prediction)
    assert "[1 repair] [1 warning] [cache hit]" in text
    assert "seed: dropped" in text
    assert "a comma" in text
    facts = "openai/gpt-5-mini · 185 in · 29 out · cost unknown · native_json · cache hit"
    assert facts in " ".join(text.split())


def test_card_of_a_plain_prediction_has_no_call_and_no_tag() -> None:
    assert text_of(Prediction(answer="4")) == "Prediction  answer\n  answer  4\n"


def test_card_imports_no_price_list() -> None:
    attempts = [Attempt(model="openai/gpt-5-mini", usage=Usage(185, 29))]
    prediction = Prediction.make({"a": 1}, attempts=attempts)
    loaded = "genai_prices" in sys.modules
    text = text_of(prediction)
    assert ("genai_prices" in sys.modules) is loaded
    assert loaded or "cost unknown" in text


def test_repr_of_an_example_is_read_back_by_eval() -> None:
    example = Example(question="2+2?", answer="4" * 200).with_inputs("question")
    assert eval(repr(example)) == example


def test_card_of_an_example_has_inputs_before_labels() -> None:
    example = Example(answer="4", question="2+2?").with_inputs("question")
    assert text_of(example) == "Example  question → answer\n  question  2+2?\n  answer    4\n"


def test_completions_are_shown_once_with_a_count() -> None:
    completions = Completions([{"answer": "4"}, {"answer": "four"}, {"answer": "4"}])
    assert repr(completions) == "Completions(3: answer)"
    assert text_of(completions).splitlines()[2:] == ["  2×  4", "  1   four"]


def test_card_of_a_prediction_folds_its_completions() -> None:
    prediction = Prediction.from_completions([{"answer": "4"}, {"answer": "four"}])
    assert "<summary><b>Completions</b> <small>2: answer</small></summary>" in prediction._repr_html_()


def test_examples_count_duplicates_distinct_values_and_overlap() -> None:
    train = [Example(q=str(n), tags=[n]).with_inputs("q") for n in range(3)]
    dev = Examples([train[0], train[0], Example(q="9").with_inputs("q")], train=train, other=[])
    assert repr(dev) == "Examples(3: q, tags)"
    assert dev.overlap == {"train": 2, "other": 0}
    assert text_of(dev).splitlines() == [
        "Examples  3 examples × 2 fields" + " " * 18 + "[1 duplicate] [2 also in train]",
        "  inputs  q",
        "  #  q                tags",
        "     str, 2 distinct  list, 1 distinct, 1 missing",
        "  0  0                [0]",
        "  1  0                [0]",
        "  2  9",
    ]


def test_examples_are_a_list_in_every_other_respect() -> None:
    rows = [Example(q=1), Example(q=2)]
    examples = Examples(rows)
    assert examples == rows
    assert examples[1:] == rows[1:]
    assert pickle.loads(pickle.dumps(examples)) == rows
    assert text_of(Examples()) == "Examples  0 examples × 0 fields\n"


@pytest.mark.parametrize("other", [1, "text", {"q": 1}])
def test_examples_refuse_what_is_no_other_set(other: object) -> None:
    with pytest.raises(InputError, match="'train' is a list of examples"):
        Examples([], train=other)  # type: ignore[arg-type]
