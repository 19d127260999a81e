"""Optimizers tune the text of summaries, and states keep it."""

from __future__ import annotations

import json
import re
from itertools import count
from typing import Any

import pytest

from sigwire import Compaction, Example, FakeLM, ReAct
from sigwire.compaction import summarize
from sigwire.optimizers.rules.gepa import GEPA
from tests.modules.context.test_folding import page
from tests.modules.context.worlds import World, called, last_result, shown_texts
from tests.optimizers.stub import HINT, exact


class Forgetful(World):
    """Reads 14 pages, then answers from what it sees. A summary has the facts only if its instructions have the hint."""

    def __init__(self) -> None:
        super().__init__(self.next_page, 2_000)

    def next_page(self, request: Any) -> Any:
        result = last_result(request)
        found = None if result is None else re.search(r"fact f(\d+)", result.text)
        number = int(found[1]) + 1 if found else 0
        if number < 14:
            return called(f"p{number}", "page", n=number)
        text = "\n".join(shown_texts(request))
        asked = re.search(r"value of f(\d+)", text)
        value = re.search(rf"fact f{asked[1]} is (\w+)", text) if asked else None
        return called("s", "submit", answer=value[1] if value else "unknown")

    def summarized(self, request: Any) -> Any:
        return super().summarized(request) if HINT in request.messages[0].text else "Pages were read."


def agent() -> Any:
    made: Any = ReAct(
        "question -> answer",
        tools=[page],
        max_iters=40,
        compaction=Compaction([summarize()], window=2_000, search=False),
    )
    made.set_lm(Forgetful())
    return made


def rows(count: int) -> list[Example]:
    return [
        Example(question=f"The value of f{n % 4}?", answer=f"v{n % 4}").with_inputs("question") for n in range(count)
    ]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)])
def test_gepa_changes_the_text_of_summaries_where_it_matters(seed: int) -> None:
    """With its default selector: ``summary`` and ``react`` are blamed alike, and one of them is drawn."""
    ideas = count()
    writer = FakeLM(lambda request: {"instruction": f"{HINT} Idea {next(ideas)}."})
    optimizer = GEPA(exact, max_metric_calls=60, reflection_lm=writer, num_threads=1, seed=seed)
    before = agent()
    assert before(question="The value of f1?").answer == "unknown"
    after = optimizer.compile(before, trainset=rows(6), valset=rows(4))
    assert HINT in after.summary.signature.instructions
    assert after(question="The value of f1?").answer == "v1"
    state = json.loads(json.dumps(after.dump_state()))
    state["summary"]["lm"] = state["react"]["lm"] = state["extract.predict"]["lm"] = None
    loaded = agent()
    loaded.load_state(state)
    loaded.set_lm(Forgetful())
    assert loaded(question="The value of f1?").answer == "v1"
