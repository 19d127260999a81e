"""BFCL: the rules of acceptance on the reference calls of the shared cases, and on calls that differ from them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import sigwire
from sigwire import Example
from tests.conformance.bfcl_cases import calls_of
from tests.evaluate.metrics.test_bfcl import made


@pytest.fixture(scope="module")
def shared(fixtures: Path) -> list[Example]:
    if not (fixtures / "bfcl").is_dir():
        pytest.skip("the shared fixtures have no folder bfcl")
    return sigwire.load_bfcl(fixtures / "bfcl")


def test_reference_calls_of_the_shared_cases_match_in_any_order(shared: list[Example]) -> None:
    assert len(shared) > 800
    rng = random.Random(12)
    for example in shared:
        calls = list(calls_of({"ground_truth": example.ground_truth}))
        if example.ground_truth is None:
            calls = [(example.tools[0].name, {})]
        rng.shuffle(calls)
        assert sigwire.bfcl_match(example, made(*calls)).value == 1, example.id


def test_a_changed_call_of_the_shared_cases_is_no_match(shared: list[Example]) -> None:
    for example in shared:
        if calls := list(calls_of({"ground_truth": example.ground_truth})):
            name, arguments = calls[0]
            wrong = [
                calls[1:],
                [*calls, calls[0]],
                [(name, {**arguments, "no_such_argument": 1}), *calls[1:]],
                [(f"{name}_2", arguments), *calls[1:]],
            ]
            for each in wrong:
                found = sigwire.bfcl_match(example, made(*each))
                assert found.value == 0, example.id
                assert found.feedback, example.id
