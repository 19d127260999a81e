"""A text that UTF-8 cannot write, as a key of an input: every adapter raises a typed error that names the field."""

from __future__ import annotations

import pytest

import sigwire.dspy as dspy
from sigwire.errors import InputError

HALF = "\ud800"


@pytest.mark.parametrize("value", [{HALF: 1}, {"a": [{HALF: 1}]}], ids=["key", "nested key"])
@pytest.mark.parametrize("place", ["inputs", "demos"])
@pytest.mark.parametrize("adapter", ["ChatAdapter", "JSONAdapter", "XMLAdapter", "BAMLAdapter"])
def test_half_a_surrogate_pair_as_a_key_is_an_input_error(adapter: str, place: str, value: dict[str, object]) -> None:
    signature = dspy.Signature("question: dict -> answer: str")
    demos = [{"question": value, "answer": "a"}] if place == "demos" else []
    with pytest.raises(InputError, match=r"The field 'question' holds what JSON cannot express.*Give it as"):
        getattr(dspy, adapter)().format(signature, demos, {"question": value if place == "inputs" else {"a": 1}})
