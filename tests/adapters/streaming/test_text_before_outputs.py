"""Free text before outputs: at every cut, no mark is shown, no text is lost, and the shown text is the same."""

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
MIXES = st.lists(
    st.sampled_from(
        ["[[ ## answer ## ]]", "[[ ## ", "[[", " ", "\n", "<answer>", "<ans", "<", "{", '"answer"', "so", "é"]
    )
).map("".join)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@given(text=MIXES, cuts=st.lists(st.integers(0, 60)))
@example(text=" [[ ## ", cuts=[1])
@example(text="  \n<ans", cuts=[1, 3])
def test_shown_and_held_text_are_the_text_at_every_cut(layout: Layout, text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    whole, chunks = LeadingTextReader(layout), LeadingTextReader(layout)
    at_once = whole.feed(text)
    shown = "".join(chunks.feed(text[start:end]) for start, end in pairwise(places))
    assert shown == at_once
    assert not any(layout.text_before(name).strip() in shown for name in layout.codecs)
    assert shown + chunks.release() == at_once + whole.release() == text
    assert chunks.feed("[[ ## answer ## ]]") == "[[ ## answer ## ]]"
