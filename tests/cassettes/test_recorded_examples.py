"""Programs of ``examples``, recorded with a provider on this machine and replayed here without it.

``pytest -p pytest_sigwire --cassette=record tests/cassettes/test_recorded_examples.py`` records them again, after a change of
their prompts: the cassettes show in a review what models get.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import Cassette, JSONAdapter, Predict, ReAct
from sigwire.testing import FakeProvider

pytest_plugins = ["pytest_sigwire"]
ROOT = Path(__file__).resolve().parents[2]
MODEL = "openai/gpt-5-mini"


@pytest.fixture
def cassette_options() -> dict[str, Any]:
    return {"strict": True}


@pytest.fixture
def lm(request: pytest.FixtureRequest) -> Iterator[sigwire.LM]:
    """The model of a provider that answers by rules; in a replay a model without a server."""
    if request.config.getoption("--cassette", default="replay") == "replay":
        yield sigwire.LM(MODEL, base_url="http://127.0.0.1:9/v1", api_key="sk-none", num_retries=0)
        return
    with FakeProvider(sigwire.LM("offline/lexical")) as provider:
        yield sigwire.LM(MODEL, base_url=provider.url("openai"), api_key="sk-none")


@pytest.fixture
def tour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The module ``examples/quickstart.py``; without rich, which shows its results, the test is skipped."""
    pytest.importorskip("rich")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    import quickstart  # type: ignore[import-not-found, unused-ignore]

    yield quickstart
    for name in set(sys.modules) - before:
        if (ROOT / "examples" / f"{name}.py").exists():
            del sys.modules[name]


def test_tour_chooses_calls(cassette: Cassette, lm: sigwire.LM, tour: Any, tmp_path: Path) -> None:
    shop = tour.Shop(tmp_path / "shop.sqlite")
    request = "How many units of the copper kettle are in stock?"
    calls = Predict(tour.ChooseCalls, lm=lm)(request=request, tools=shop.tools()).calls
    assert [(call.name, call.arguments) for call in calls] == [("check_stock", {"product": "copper kettle"})]


@pytest.mark.parametrize("number", [0, 7])
def test_tour_answers_with_tools_that_do_not_run(
    cassette: Cassette, lm: sigwire.LM, tour: Any, tmp_path: Path, number: int, request: pytest.FixtureRequest
) -> None:
    shop = tour.Shop(tmp_path / "shop.sqlite")
    question, query = tour.QUESTIONS[number]
    result = ReAct(tour.AskShop, tools=shop.tools(), max_iters=8, lm=lm)(question=question)
    (row,) = shop.sql(query)
    assert str(next(iter(row.values()))) in result.answer
    if request.config.getoption("--cassette", default="replay") == "replay":
        assert shop.calls == []


def test_tour_reads_a_nested_value_streamed_and_awaited(lm: sigwire.LM, tour: Any, cassette: Cassette) -> None:
    read = Predict(tour.ReadRequest, lm=lm)
    with sigwire.context(adapter=JSONAdapter()):
        values = [
            read(message=tour.MESSAGE),
            asyncio.run(read.acall(message=tour.MESSAGE)),
            list(read.stream(message=tour.MESSAGE))[-1].value,
        ]
    assert [value.delivery for value in values] == [tour.DELIVERY] * 3
