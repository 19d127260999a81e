"""Routers and models with fallbacks as values: saved, loaded, copied, pickled, shown, previewed; wrong arguments."""

from __future__ import annotations

import copy
import io
import json
import pickle
from typing import Any

import pytest

import sigwire
from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import ConfigurationError, LMServerError, StateError, UnsupportedOption
from sigwire.lm.base import BaseLM
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.failover.health import Health
from sigwire.lm.router import Router
from tests.lm.calls import HELLO, KEY, forget_keys

FIRST, SECOND = "openai/gpt-5-mini", "anthropic/claude-haiku-4-5"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


def models(lm: Any) -> list[str]:
    return [repr(target.lm) for target in lm.targets()]


def through_json(lm: BaseLM, **options: Any) -> BaseLM:
    state = json.loads(json.dumps(lm.dump_state()))
    assert KEY not in json.dumps(state)
    return LM.load_state(state, **options)


# --- saved and loaded --------------------------------------------------------------------------------------


def test_fallbacks_survive_saving_copies_and_pickles() -> None:
    lm = LM(FIRST, api_key=KEY, temperature=0.5, fallbacks=[SECOND, LM("ollama/qwen3", num_retries=1)])
    expected = models(LM(FIRST, temperature=0.5, fallbacks=[SECOND, LM("ollama/qwen3", num_retries=1)]))
    assert models(through_json(lm))[1:] == expected[1:]
    assert (
        models(lm.copy())[1:]
        == models(copy.deepcopy(lm))[1:]
        == models(pickle.loads(pickle.dumps(lm)))[1:]
        == expected[1:]
    )
    assert repr(lm) == (
        "LM('openai/gpt-5-mini', temperature=0.5, fallbacks=['anthropic/claude-haiku-4-5', LM('ollama/qwen3')], api_key=***)"
    )


def test_copy_of_a_model_changes_the_fallbacks_that_inherit() -> None:
    lm = LM(FIRST, fallbacks=[SECOND]).copy(temperature=1.0)
    assert models(lm)[1] == "LM('anthropic/claude-haiku-4-5', temperature=1.0)"
    assert models(lm.copy(fallbacks=[])) == ["LM('openai/gpt-5-mini', temperature=1.0)"]
    assert models(lm.copy(fallbacks=["ollama/qwen3"]))[1] == "LM('ollama/qwen3', temperature=1.0)"


def test_router_survives_saving_copies_and_pickles() -> None:
    router = Router(
        [FIRST, LM(SECOND, api_key=KEY)], api_key=KEY, temperature=0.5, model="both", health=Health(limit=7.0),
        patience=1.0, on_filter="next", timeout=30,
    )  # fmt: skip
    loaded = through_json(router)
    assert isinstance(loaded, Router)
    assert loaded.dump_state() == router.dump_state()
    assert (loaded.model, loaded._routing.health.limit, loaded._routing.total) == ("both", 7.0, 30)
    assert repr(loaded) == (
        "Router([LM('openai/gpt-5-mini', temperature=0.5, timeout=30), LM('anthropic/claude-haiku-4-5')], model='both')"
    )
    for same in (router.copy(), copy.copy(router), copy.deepcopy(router), pickle.loads(pickle.dumps(router))):
        assert isinstance(same, Router)
        assert same.dump_state() == router.dump_state()
        assert same._routing.patience == 1.0


def test_program_with_a_router_is_saved_and_loaded() -> None:
    program = sigwire.Predict("question -> answer")
    program.set_lm(Router([FIRST, SECOND]))
    loaded = sigwire.Predict("question -> answer")
    loaded.load_state(json.loads(json.dumps(program.dump_state())))
    assert isinstance(loaded.lm, Router)


def test_files_name_a_router_as_before_it_moved() -> None:
    state = Router([FIRST, SECOND]).dump_state()
    assert state["class"] == "sigwire.lm.router.router.Router"
    assert isinstance(LM.load_state({**state, "class": "sigwire.lm.router.Router"}), Router)
    assert isinstance(LM.load_state(state), Router)


@pytest.mark.parametrize("kind", [Router, LM])
def test_saved_addresses_of_targets_are_refused_unless_they_are_trusted(kind: type) -> None:
    target = LM(SECOND, base_url="https://elsewhere.example")
    lm = Router([FIRST, target]) if kind is Router else LM(FIRST, fallbacks=[target])
    with pytest.raises(StateError, match=r"base_url='https://elsewhere.example'.*lm=LM"):
        through_json(lm)
    assert "elsewhere" in models(through_json(lm, allow_unsafe_lm_state=True))[1]


@pytest.mark.parametrize("part", [5, [5], ["nonsense"], "nonsense", [{"model": "m", "class": "os.path"}], None])
def test_hostile_state_is_a_state_error(part: object) -> None:
    for state in (Router([FIRST]).dump_state(), LM(FIRST).dump_state()):
        name = "targets" if "targets" in state else "fallbacks"
        with pytest.raises(StateError):
            LM.load_state({**state, name: part})


def test_target_that_cannot_be_saved_is_named() -> None:
    with pytest.raises(StateError, match="class Plain cannot be saved"):
        Router([Plain()]).dump_state()


class Plain:
    model, capabilities = "plain", Capabilities()

    def respond(self, request: Request) -> Response:
        return Response()

    async def arespond(self, request: Request) -> Response:
        return Response()


# --- wrong arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Router([]), "needs a target"),
        (lambda: Router("openai/gpt-4.1"), "targets is a list"),
        (lambda: Router([io.StringIO()]), "not StringIO"),  # type: ignore[list-item]
        (lambda: Router([FakeLM]), "not type"),  # type: ignore[list-item]
        (lambda: Router([FakeLM()], temperature=1.0), "no option 'temperature' of its own"),
        (lambda: Router([FIRST], on_filter="pass"), "on_filter"),  # type: ignore[arg-type]
        (lambda: Router([FIRST], patience=-1), "patience"),
        (lambda: Router([FIRST], health=Health(limit=-1)), "limit"),
        (lambda: Router([FIRST], health=3), r"health is a Health, not 3 .* Write Health"),  # type: ignore[arg-type]
        (lambda: Health(half_life=0), "half_life"),
        (lambda: LM(FIRST, fallbacks=SECOND), "fallbacks is a list"),
        (lambda: LM(FIRST, fallbacks=["nonsense"]), "nonsense"),
        (lambda: LM(FIRST)("Hi", fallbacks=[SECOND]), "fallbacks is no option of one request"),
    ],
)
def test_wrong_arguments_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make()


def test_option_that_no_target_knows_is_refused() -> None:
    router = Router([FIRST, SECOND])
    with pytest.raises(UnsupportedOption, match="nonsense"):
        router.check_options(["nonsense", "top_k"])
    router.check_options(["top_k", "frequency_penalty"])
    with pytest.raises(UnsupportedOption, match="nonsense"):
        Router([FIRST], nonsense=1)


def test_key_of_the_first_provider_goes_to_no_other_provider() -> None:
    assert models(Router([FIRST, SECOND, "openai/gpt-4.1"], api_key=KEY)) == [
        "LM('openai/gpt-5-mini', api_key=***)", "LM('anthropic/claude-haiku-4-5')", "LM('openai/gpt-4.1', api_key=***)",
    ]  # fmt: skip


# --- for people --------------------------------------------------------------------------------------------


def test_preview_and_check_are_those_of_the_first_target() -> None:
    router = Router([FIRST, SECOND])
    preview = router.preview("Hi")
    assert preview.wire is not None
    assert preview.wire["url"] == LM(FIRST).preview("Hi").wire["url"]  # type: ignore[index]
    assert Router([Plain()]).preview("Hi").model == "plain"
    program = sigwire.Predict("question -> answer", top_k=3)
    assert [finding.what for finding in sigwire.check(program, router)] == [
        finding.what for finding in sigwire.check(program, LM(FIRST))
    ]
    assert sigwire.check(sigwire.Predict("question -> answer"), LM(FIRST, fallbacks=[SECOND])) == []


def test_health_is_a_table_with_a_card() -> None:
    router = Router([FakeLM([LMServerError()], model="a"), FakeLM(["B"], model="b")], clock=lambda: 0.0)
    router.respond(HELLO)
    table = router.health()
    assert [(row.model, row.answers, row.failures, row.last_failure) for row in table] == [
        ("a", 0, 1, "server"), ("b", 1, 0, None),
    ]  # fmt: skip
    shown = io.StringIO()
    table.show(shown)
    assert "a      closed  1.0      0        1         server" in shown.getvalue()
    assert repr(table) == "HealthTable(a closed, b closed)"
    assert len(LM(FIRST).health()) == 1


def test_history_of_a_router_has_each_call_once() -> None:
    first, second = FakeLM([LMServerError()], model="a"), FakeLM(["B"], model="b")
    router = Router([first, second])
    before = len(sigwire.history(1_000_000))
    router.respond(HELLO)
    assert len(sigwire.history(1_000_000)) == before + 1
    (call,) = router.history.records
    assert call.model == "a, b"


def test_usage_and_cost_are_counted_for_the_target_that_answered() -> None:
    usage = sigwire.Usage(input_tokens=3, output_tokens=4, cost=0.25)
    router = Router([FakeLM([LMServerError()], model="a"), FakeLM(["B"], model="b", usage=usage)])
    with sigwire.track_usage() as tracker:
        router("Hi")
    assert tracker.get_total_cost() == {"a": 0.0, "b": 0.25}
    assert {model: counts["input_tokens"] for model, counts in tracker.get_total_tokens().items()} == {"b": 3}


def test_health_of_a_provider_is_shared_by_routers_and_forgotten_with_the_process() -> None:
    first = Router([FIRST, FakeLM(["A"])])
    assert first._routing.circuit(first.targets(), 0) is Router([FIRST])._routing.circuit(LM(FIRST).targets(), 0)
    assert first._routing.circuit(first.targets(), 1) is not Router([FIRST, FakeLM()])._routing.circuit(
        first.targets(), 1
    )
