"""Reused answers of a search: each question is asked once, and nothing else changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from sigwire import Cassette, Evaluate, Predict
from sigwire.core.json import dumps
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall
from sigwire.effects.steps import run
from sigwire.errors import LMServerError
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.cache.memory import MemoryStore
from sigwire.modules.agents.react import ReAct
from sigwire.modules.module import Module
from sigwire.optimizers.engine.reuse import AnswerStore
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from sigwire.optimizers.rules.simba import SIMBA
from tests.jobs.engines import InlineExecutor
from tests.optimizers.stub import Stub, exact, number_of, pure_writer, rows
from tests.optimizers.table import TABLE, TRAIN, VAL, outcome
from tests.optimizers.test_executor import search
from tests.optimizers.writer import Writer

TURNS = 4
BOUNDED_BY_RUNS = {
    **{name: TABLE[name] for name in ("COPRO", "GEPA", "MIPROv2", "InferRules", "BootstrapFewShotWithRandomSearch")},
    "SIMBA": lambda **options: SIMBA(
        metric=exact, bsize=8, num_candidates=3, max_steps=2, prompt_model=pure_writer(), **options
    ),
}


class Searcher(Module):
    """An agent of four turns that no optimizer changes, and a predictor after it that optimizers tune."""

    def __init__(self) -> None:
        super().__init__()
        self.looked: list[int] = []

        def look(page: int) -> str:
            """Look at a page."""
            self.looked.append(page)
            return f"page {page}"

        self.prefix, self.stub = FakeLM(_turn), Stub()
        self.agent: Any = ReAct("question -> note", tools=[look])
        self.agent.set_lm(self.prefix)
        self.agent._compiled = True
        self.answer: Any = Predict("question -> answer", lm=self.stub)

    def forward(self, question: str) -> Any:
        self.agent(question=question)
        return self.answer(question=question)

    def asked(self) -> Counter[str]:
        """Return the requests, with their number."""
        return Counter(dumps(request.to_json()) for request in [*self.prefix.requests, *self.stub.requests])


def _turn(request: Request) -> Any:
    turn = sum(message.role == "tool" for message in request.messages)
    number = number_of("\n".join(message.text for message in request.messages))
    if turn == TURNS - 1:
        return ToolCall("end", "submit", {"note": f"seen {number}"})
    return ToolCall(f"c{turn}", "look", {"page": 10 * (number or 0) + turn})


def found(make: Any, *, awaited: bool = False, **options: Any) -> tuple[Searcher, Any]:
    program = Searcher()
    optimizer = make(**options)
    compiled: Any = (
        asyncio.run(optimizer.acompile(program, trainset=TRAIN, valset=VAL))
        if awaited
        else optimizer.compile(program, trainset=TRAIN, valset=VAL)
    )
    return program, compiled


# --- the same search, with fewer requests -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [each if each in ("COPRO", "GEPA") else pytest.param(each, marks=pytest.mark.long) for each in BOUNDED_BY_RUNS],
)
def test_search_that_reuses_answers_finds_the_same_and_asks_each_question_once(name: str) -> None:
    make = BOUNDED_BY_RUNS[name]
    asking, first = found(make, reuse=False)
    reusing, second = found(make, num_threads=3)
    assert outcome(second) == outcome(first)
    assert sorted(reusing.looked) == sorted(asking.looked)
    asked, reused = asking.asked(), reusing.asked()
    assert reused.keys() == asked.keys()
    report, before = second.optimization, first.optimization
    assert asked.total() - reused.total() == report.reused > 0
    assert before.reused == 0
    assert before.spent.calls - report.spent.calls == report.reused
    if name != "SIMBA":  # which samples each row several times
        assert set(reused.values()) == {1}


@pytest.mark.long
def test_repetitions_of_a_row_have_answers_of_their_own() -> None:
    """SIMBA samples a row several times: as many answers as samples, however many candidates ask."""
    asking, _ = found(BOUNDED_BY_RUNS["SIMBA"], reuse=False)
    reusing, _ = found(BOUNDED_BY_RUNS["SIMBA"])
    first = [Counter(dumps(each.to_json()) for each in one.prefix.requests) for one in (asking, reusing)]
    assert max(first[1].values()) > 1
    assert first[1].total() < first[0].total()


def test_search_of_an_agent_with_many_turns_before_the_change_pays_less_than_half() -> None:
    def make(**options: Any) -> COPRO:
        return COPRO(Writer(tuple(f"Try {n}." for n in range(40))), exact, breadth=8, depth=1, num_threads=1, **options)

    asking, _ = found(make, reuse=False)
    reusing, _ = found(make)
    assert reusing.asked().total() <= 0.5 * asking.asked().total()


def test_answers_beyond_the_bound_are_asked_again_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigwire.optimizers.engine.reuse._MOST_ANSWERS", 1)
    _, first = found(TABLE["COPRO"], reuse=False)
    bounded, second = found(TABLE["COPRO"], num_threads=1)
    assert outcome(second) == outcome(first)
    assert max(bounded.asked().values()) > 1


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 8}, {"awaited": True, "num_threads": 8}])
def test_equal_questions_at_one_time_are_asked_once(options: Any) -> None:
    reusing, compiled = found(TABLE["COPRO"], **options)
    assert set(reusing.asked().values()) == {1}
    assert outcome(compiled) == outcome(found(TABLE["COPRO"], reuse=False)[1])


def test_answer_that_is_stored_after_the_look_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = FakeLM([{"answer": "4"}])
    predict, store = Predict("question -> answer", lm=lm), AnswerStore()
    assert run(store.around("a/0", predict.call_steps(question="2+2?"))).answer == "4"
    looks, find = list[bytes](), MemoryStore.get

    def get(self: MemoryStore, key: bytes) -> Any:
        looks.append(key)
        return None if len(looks) == 1 else find(self, key)

    monkeypatch.setattr(MemoryStore, "get", get)
    assert run(store.around("a/0", predict.call_steps(question="2+2?"))).answer == "4"
    assert (len(lm.requests), store.reused, len(looks)) == (1, 1, 2)


def test_search_that_is_bounded_by_calls_gets_more_runs() -> None:
    runs = [found(TABLE["COPRO"], budget=150, reuse=reuse)[1].optimization.spent.runs for reuse in (False, True)]
    assert runs[1] > runs[0]


# --- what an answer may depend on ---------------------------------------------------------------------------


class Twice(Module):
    """Asks a question twice, which a sampling model answers in two ways; ``tuned`` is what optimizers change."""

    def __init__(self, lm: Any, seen: list[tuple[str, str]] | None = None) -> None:
        super().__init__()
        self.ask: Any = Predict("question -> answer", lm=lm)
        self.ask._compiled = True
        self.tuned: Any = Predict("question -> answer", lm=Stub())
        self.note: Any = [].append if seen is None else seen.append  # copies share functions

    def forward(self, question: str) -> Any:
        self.note((self.ask(question=question).answer, self.ask(question=question).answer))
        return self.tuned(question=question)


def test_equal_questions_at_two_places_have_two_answers() -> None:
    numbers = iter(range(10_000))
    lm = FakeLM(lambda request: {"answer": str(next(numbers))})
    seen: list[tuple[str, str]] = []
    TABLE["COPRO"](num_threads=1).compile(Twice(lm, seen), trainset=TRAIN, valset=VAL)
    assert all(one != other for one, other in seen)
    assert len(set(seen)) == len(lm.requests) / 2 < len(seen)


def test_models_of_one_name_do_not_share_answers() -> None:
    right, wrong = FakeLM(lambda request: {"answer": "one"}), FakeLM(lambda request: {"answer": "two"})

    class Two(Module):
        def __init__(self) -> None:
            super().__init__()
            self.first: Any = Predict("question -> answer", lm=right)
            self.tuned: Any = Predict("question -> answer", lm=Stub())
            self.first._compiled = True

        def forward(self, question: str) -> Any:
            self.first.lm = wrong if self.first.lm is right else right
            answers.append((self.first.lm is right, self.first(question=question).answer))
            return self.tuned(question=question)

    answers: list[tuple[bool, str]] = []
    TABLE["COPRO"](num_threads=1).compile(Two(), trainset=TRAIN, valset=VAL)
    assert {*answers} == {(True, "one"), (False, "two")}


def test_failed_question_is_asked_again() -> None:
    program: Any = Twice(Stub(failing=0.3))
    report = TABLE["COPRO"](num_threads=3).compile(program, trainset=TRAIN, valset=VAL).optimization
    assert report.reason == "finished"
    assert report.reused > 0


def test_error_of_a_joined_question_is_an_error_of_the_provider() -> None:
    lm = FakeLM(lambda request: LMServerError("down", model="m", provider="p"))
    program = Twice(lm)
    with pytest.raises(Exception, match="down"):
        COPRO(pure_writer(), exact, breadth=3, depth=1, num_threads=8).compile(program, trainset=TRAIN, valset=VAL)


# --- around a search ----------------------------------------------------------------------------------------


def test_cassette_around_a_search_records_each_question_once(tmp_path: Any) -> None:
    def compiled() -> tuple[Any, Any]:
        program = Twice(FakeLM(lambda request: {"answer": "red"}))
        done = BootstrapFewShotWithRandomSearch(exact, num_candidate_programs=2, num_threads=1).compile(
            program, trainset=TRAIN, valset=VAL
        )
        return program, done

    path = tmp_path / "search.jsonl"
    with Cassette(path, mode="record"):
        _, first = compiled()
    with Cassette(path, mode="replay"):
        program, second = compiled()
    assert outcome(first) == outcome(second)
    assert program.ask.lm.requests == []


def test_evaluation_asks_always() -> None:
    program = Searcher()
    for _ in range(2):
        Evaluate(devset=rows(2), metric=exact, progress=False)(program)
    assert set(program.asked().values()) == {2}


def test_report_names_the_reused_answers_and_keeps_their_number() -> None:
    _, compiled = found(TABLE["COPRO"])
    report = compiled.optimization
    assert f"{report.reused} answers reused" in str(report._card())
    assert type(report).from_json(report.to_json()).reused == report.reused
    old = report.to_json()
    del old["reused"]
    assert type(report).from_json(old).reused == 0


def test_search_on_an_executor_asks_always() -> None:
    program, _ = search(InlineExecutor())
    assert program.optimization.reused == 0  # type: ignore[attr-defined]
