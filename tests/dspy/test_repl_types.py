"""DSPy's records of a session of code."""

from __future__ import annotations

import pytest

import sigwire.dspy as dspy
from sigwire import FakeLM
from sigwire.dspy.primitives.repl_types import REPLEntry, REPLHistory, REPLVariable


def test_variable_has_type_size_and_description() -> None:
    variable = REPLVariable.from_value("ages", [1, 2], dspy.InputField(desc="in years", ge=0))
    assert (variable.type_name, variable.total_length, variable.desc) == ("list", 12, "in years")
    assert "Description: in years\nConstraints: at least 0\n" in variable.format()


def test_variable_keeps_beginning_and_end_when_long() -> None:
    assert REPLVariable.from_value("page", "a" * 60 + "b" * 60, preview_chars=5).preview == "aa...bbb"


@pytest.mark.parametrize(("most", "shown"), [(4, True), (3, False), (0, False)])
def test_entry_shortens_a_long_output(most: int, shown: bool) -> None:
    text = REPLEntry("print(x)", "abcd").format(0, most)
    assert (text.startswith("Step 1\n"), "Output (4 chars)" in text) == (True, True)
    assert ("abcd" in text, f"{4 - most} characters omitted" in text) == (shown, not shown)


def test_a_history_is_text_in_a_prompt_and_in_a_saved_demo() -> None:
    ask = dspy.Predict(
        dspy.make_signature({"repl_history": (REPLHistory, dspy.InputField()), "a": (str, dspy.OutputField())})
    )
    done = REPLHistory().append(code="1 + 1", output="2")
    read = REPLHistory.read(done.to_json())
    assert (read.format(), len(read), REPLHistory.read(done)) == (done.format(), 0, done)
    for given in (done, read):
        ask.set_lm(lm := FakeLM([{"a": "x"}]))
        ask(repl_history=given)
        assert "Step 1\n```python\n1 + 1\n```" in lm.requests[0].messages[-1].text
    with pytest.raises(ValueError, match="not int"):
        REPLHistory.read(3)


def test_history_append_returns_a_longer_history() -> None:
    empty = REPLHistory(max_output_chars=3)
    longer = empty.append(code="a", output="1").append(code="b", output="2", reasoning="why")
    assert (len(empty), len(longer), bool(empty), bool(longer)) == (0, 2, False, True)
    assert ([entry.code for entry in longer], longer.max_output_chars) == (["a", "b"], 3)
    assert ("Step 2\nwhy" in longer.format(), "Step" in empty.format()) == (True, False)
