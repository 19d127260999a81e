"""A text up to outputs in it: however it is cut, no mark is shown, nothing is lost, and the cut makes no difference."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.streaming.text_before_outputs import LeadingTextReader
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.signatures.signature import Signature

ASK = Signature("question -> answer, count: int")
LAYOUTS: dict[str, Layout] = {
    name: adapter.plan(ASK, Capabilities()).layout
    for name, adapter in {"chat": ChatAdapter(), "json": JSONAdapter(), "xml": XMLAdapter()}.items()
}
SOUP = st.lists(
    st.sampled_from(
        ["[[ ## answer ## ]]", "[[ ## ", "[[", " ", "\n", "<answer>", "<ans", "<", "{", '"answer"', "so", "é"]
    )
).map("".join)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@given(text=SOUP, cuts=st.lists(st.integers(0, 60)))
@example(text=" [[ ## ", cuts=[1])
@example(text="  \n<ans", cuts=[1, 3])
def test_what_is_shown_and_what_is_kept_are_the_text(layout: Layout, text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    whole, pieces = LeadingTextReader(layout), LeadingTextReader(layout)
    at_once = whole.feed(text)
    shown = "".join(pieces.feed(text[start:end]) for start, end in pairwise(places))
    assert shown == at_once
    assert not any(layout.opening(name).strip() in shown for name in layout.codecs)
    assert shown + pieces.release() == at_once + whole.release() == text
    assert pieces.feed("[[ ## answer ## ]]") == "[[ ## answer ## ]]"
