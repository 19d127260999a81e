"""``TypeSafe`` of the door: questions about a state, as a model of a program, its cache, history, copies and states."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire import InputError
from sigwire.dspy.experimental import TypeSafe
from sigwire.lm.policy.cache.cache import configure_cache
from sigwire.testing import FakeProvider

QUESTIONS: dict[str, Any] = {
    "flag": {"type": "noul", "instructions": "Is it so?"},
    "kind": {"type": "choice", "instructions": "Which?", "criteria": {"a": None, "b": "second"}},
    "rating": {"type": "score", "instructions": "How good?", "criteria": ["bad", "fair", "great"]},
}
SCRIPT = json.dumps({"flag": 0.75, "kind": {"a": 0.25, "b": 0.75}, "rating": [0.25, 0.25, 0.5]})
ANSWERS = {
    "flag": {"noul": 0.75, "confidence": 0.75},
    "kind": {"choice": "b", "confidence": 0.75, "probabilities": {"a": 0.25, "b": 0.75}},
    "rating": {"score": 1.25, "confidence": 0.5, "probabilities": {0: 0.25, 1: 0.25, 2: 0.5}},
}


def client_of(provider: FakeProvider, **options: Any) -> TypeSafe:
    return TypeSafe("jev-test", base_url=provider.url("system-one"), **{"api_key": "test-only", **options})


def sent(provider: FakeProvider) -> list[Any]:
    return [request.body for request in provider.requests]


def blocking(client: TypeSafe, *given: Any) -> Any:
    return client(*given)


def awaited(client: TypeSafe, *given: Any) -> Any:
    return asyncio.run(client.acall(*given))


@pytest.mark.parametrize("ask", [blocking, awaited])
@pytest.mark.parametrize("state", ["The text.", {"text": "x", "n": [1]}])
def test_client_sends_state_and_questions_as_given_and_returns_answers(ask: Callable[..., Any], state: Any) -> None:
    with FakeProvider([SCRIPT]) as provider:
        assert ask(client_of(provider), state, QUESTIONS) == ANSWERS
    assert provider.requests[0].body == {"model": "jev-test", "state": state, "questions": QUESTIONS}


def test_question_that_is_none_is_an_input_error() -> None:
    with FakeProvider([SCRIPT]) as provider, pytest.raises(InputError, match="'where' is no noul"):
        client_of(provider)("x", {"where": {"type": "box"}})
    assert provider.requests == ()


def test_client_is_the_model_of_a_program() -> None:
    with FakeProvider(['{"flag": 0.75}', '{"flag": 0.25}']) as provider:
        client = client_of(provider)
        predict = dspy.Predict("text -> flag: bool")
        assert predict(text="x", lm=client).flag is True
        with dspy.context(lm=client):
            assert asyncio.run(predict.acall(text="y")).flag is False
    assert [*sent(provider)[0]["questions"]] == ["flag"]


def test_cache_history_and_changes_of_attributes(tmp_path: Path) -> None:
    configure_cache(disk_cache_dir=tmp_path / "cache")
    with FakeProvider([SCRIPT] * 3) as provider:
        client = client_of(provider)
        first, second = client("x", QUESTIONS), client("x", QUESTIONS)
        assert (first, len(provider.requests)) == (second, 1)
        client.model = "jev-other"
        client("x", QUESTIONS)
        client.cache = False
        client("x", QUESTIONS)
    assert [body["model"] for body in sent(provider)] == ["jev-test", "jev-other", "jev-other"]
    assert len(client.history) == 4
    assert "test-only" not in str([*client.history])


def test_copies_states_and_pickles_have_no_key() -> None:
    client = TypeSafe("jev-test", api_key="test-only", base_url="https://example.test/", cache=False)
    state = client.dump_state()
    assert state["base_url"] == "https://example.test"
    assert "api_key" not in state
    assert TypeSafe.load_state(state).dump_state() == state
    assert client.copy(model="other").model == "other"
    assert (client.copy().api_key, copy.deepcopy(client).model) == ("test-only", "jev-test")
    assert "test-only" not in repr(client)
    assert b"test-only" not in pickle.dumps(client)


def test_environment_names_model_host_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider([SCRIPT], key="environment-key") as provider:
        monkeypatch.setenv("TYPESAFE_DEFAULT_MODEL", "jev-environment")
        monkeypatch.setenv("TYPESAFE_BASE_URL", provider.url("system-one") + "/")
        monkeypatch.setenv("TYPESAFE_API_KEY", "environment-key")
        assert TypeSafe()("x", QUESTIONS) == ANSWERS
    assert sent(provider)[0]["model"] == "jev-environment"
