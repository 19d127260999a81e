"""DSPy's records of a session of code."""

from __future__ import annotations

import pytest

import sigwire.dspy as dspy
from sigwire import ConfigurationError
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


def test_history_append_returns_a_longer_history() -> None:
    empty = REPLHistory(max_output_chars=3)
    longer = empty.append(code="a", output="1").append(code="b", output="2", reasoning="why")
    assert (len(empty), len(longer), bool(empty), bool(longer)) == (0, 2, False, True)
    assert ([entry.code for entry in longer], longer.max_output_chars) == (["a", "b"], 3)
    assert ("Step 2\nwhy" in longer.format(), "Step" in empty.format()) == (True, False)


@pytest.mark.parametrize("signature", ["SUBMIT -> a", "print, q -> a", "q -> trajectory", "q -> final_reasoning"])
def test_rlm_refuses_names_of_its_session_and_result(signature: str) -> None:
    with pytest.raises(ConfigurationError, match="itself"):
        dspy.RLM(signature)


def test_rlm_refuses_a_tool_named_submit() -> None:
    with pytest.raises(ConfigurationError, match="SUBMIT"):
        dspy.RLM("q -> a", tools=[dspy.Tool(len, name="SUBMIT")])
