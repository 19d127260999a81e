"""The tree of a run: each exchange once, in every total above it, in every way of calling; after replays; in errors."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import gc
import json
import pickle
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sigwire
from sigwire import (
    LM,
    RLM,
    AgentRun,
    ApprovalNeeded,
    BestOfN,
    Budget,
    Cassette,
    ChainOfThought,
    CodeAct,
    ContextWindowExceededError,
    Ensemble,
    Evaluate,
    Example,
    FakeLM,
    Journal,
    LMServerError,
    Module,
    Parallel,
    Predict,
    Prediction,
    ProgramOfThought,
    ReAct,
    Tool,
    ToolCall,
    Usage,
    track_usage,
)
from sigwire.core.events import event_from_json
from sigwire.core.report import CallReport
from sigwire.core.request import Request
from sigwire.core.response import Attempt
from sigwire.lm.policy.cache.cache import configure_cache
from sigwire.modules.agents.run import ReActStep
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.testing import FakeProvider, Fault

pytestmark = pytest.mark.filterwarnings("ignore::sigwire.errors.ToolWarning", "ignore::RuntimeWarning")

Program: TypeAlias = Any


def called(program: Program, **inputs: Any) -> Any:
    return program(**inputs)


def awaited(program: Program, **inputs: Any) -> Any:
    return asyncio.run(program.acall(**inputs))


def streamed(program: Program, **inputs: Any) -> Any:
    events = program.stream(**inputs)
    list(events)
    return events.value


def streamed_and_awaited(program: Program, **inputs: Any) -> Any:
    async def read() -> Any:
        events = program.astream(**inputs)
        async for _ in events:
            pass
        return events.value

    return asyncio.run(read())


WAYS = (called, awaited, streamed, streamed_and_awaited)
in_every_way = pytest.mark.parametrize("way", WAYS)


class Provider:
    """The models of a program. It counts what they were asked, and what they answered."""

    def __init__(self) -> None:
        self.models: list[FakeLM] = []
        self.failed = 0

    def model(self, answer: Callable[[Request], Any], **options: Any) -> FakeLM:
        def counting(request: Request) -> Any:
            found = answer(request)
            found = found(request) if callable(found) else found
            self.failed += isinstance(found, Exception)
            return found

        self.models.append(FakeLM(counting, usage=Usage(10, 1, cost=0.5), **options))
        return self.models[-1]

    def predict(self, *answers: Any) -> Predict[..., Any]:
        left = iter([*answers, *[answers[-1]] * 100])
        return Predict("q -> a", lm=self.model(lambda request: next(left)))

    @property
    def asked(self) -> int:
        return sum(len(model.requests) for model in self.models)


def is_down(request: Request) -> LMServerError:
    return LMServerError("down")


class Calls(Module):
    """A user's program: calls its parts in the given way, and returns a result of the given form."""

    def __init__(self, parts: Sequence[Any], form: str, at_once: str = "") -> None:
        super().__init__()
        self.parts, self.form, self.at_once = list(parts), form, at_once

    def forward(self, q: str) -> Any:
        if self.at_once == "parallel":
            found = Parallel(num_threads=2)([(part, {"q": q}) for part in self.parts])
        elif self.at_once == "threads":
            with ThreadPoolExecutor(2) as pool:
                contexts = [contextvars.copy_context() for _ in self.parts]
                futures = [
                    pool.submit(each.run, tried, part, q) for each, part in zip(contexts, self.parts, strict=True)
                ]
                found = [future.result() for future in futures]
        else:
            found = [tried(part, q) for part in self.parts]
        inner = next((each for each in found if isinstance(each, Prediction)), None)
        if self.form == "inner" and inner is not None:
            return inner
        return Prediction(a="own") if self.form != "text" else "text"


def tried(part: Any, q: str) -> Any:
    try:
        return part(q=q)
    except Exception as error:  # a program that goes on after an error
        return type(error).__name__


def agent_of(provider: Provider, parts: Sequence[Any], *, extracts: bool = False, **options: Any) -> ReAct[..., Any]:
    """Return an agent whose model calls each part once, in one turn; then it submits, or its outputs are extracted."""

    def tool_of(part: Any, name: str) -> Tool:
        def ask(q: str) -> str:
            result = part(q=q)
            return str(getattr(result, "a", result))

        return Tool(ask, name=name, description="Ask.")

    names = [f"ask_{number}" for number in range(len(parts))]
    agent = ReAct(
        "q -> a",
        tools=[tool_of(part, name) for part, name in zip(parts, names, strict=True)],
        max_iters=1 if extracts else 5,
        on_tool_error="answer",
        **options,
    )

    def answer(request: Request) -> Any:
        if any(message.role == "tool" for message in request.messages):
            return ToolCall("", "submit", {"a": "done"})
        return [ToolCall(f"call_{number}", name, {"q": name}) for number, name in enumerate(names)]

    agent.react.lm = provider.model(answer)
    agent.extract.set_lm(provider.model(lambda request: {"reasoning": "read", "a": "extracted"}))
    return agent


def built(provider: Provider, shape: Any) -> Any:
    kind, *rest = shape
    match kind:
        case "answer":
            return provider.predict({"a": "yes"})
        case "reasked":
            program = provider.predict("no layout at all", {"a": "yes"})
            program.max_reasks = 1
            program.signature = program.signature.append("n", sigwire.OutputField(), int)
            program.lm = provider.model(iter_of([{"a": "yes", "n": "many"}, {"a": "yes", "n": 1}]))
            return program
        case "unreadable":
            program = provider.predict("no layout")
            program.signature = program.signature.append("n", sigwire.OutputField(), int)
            return program
        case "down":
            return provider.predict(is_down)
        case "best":
            inner = built(provider, rest[0])
            return BestOfN(inner, N=2, reward_fn=lambda inputs, prediction: 0.0, threshold=1.0)
        case "agent":
            return agent_of(provider, [built(provider, part) for part in rest[0]], extracts=rest[1])
        case _:
            return Calls([built(provider, part) for part in rest[0]], rest[1], rest[2])


def iter_of(answers: list[Any]) -> Callable[[Request], Any]:
    left = iter(answers * 50)
    return lambda request: next(left)


LEAVES = st.sampled_from([("answer",), ("reasked",), ("unreadable",), ("down",)])


FORMS = st.sampled_from(["inner", "own", "text"])


def _around(parts: Any) -> Any:
    several = st.lists(parts, min_size=1, max_size=3)
    return (
        st.tuples(st.just("calls"), several, FORMS, st.sampled_from(["", "parallel", "threads"]))
        | st.tuples(st.just("agent"), several, st.booleans())
        | st.tuples(st.just("best"), parts)
    )  # fmt: skip


SHAPES = st.tuples(
    st.just("calls"), st.lists(st.recursive(LEAVES, _around, max_leaves=5), min_size=1, max_size=3), st.just("own"),
    st.sampled_from(["", "parallel"]),
)  # fmt: skip


def check_tree(report: CallReport) -> None:
    """Each exchange is of one leaf, and every total is the sum of those inside."""
    leaves = [each for each in report if not each.inner]
    assert [attempt for leaf in leaves for attempt in leaf.own] == list(report.attempts)
    for each in report:
        assert len(each.attempts) == len(each.own) + sum(len(inner.attempts) for inner in each.inner)
        assert not (each.own and each.inner)
    assert CallReport.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert all(len(line) <= 80 for line in str(report).splitlines())


@in_every_way
@given(shape=SHAPES)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_run_tree_agrees_with_the_provider_tracker_and_budget(way: Callable[..., Any], shape: Any) -> None:
    provider = Provider()
    program = built(provider, shape)
    with track_usage() as tracker, Budget() as budget:
        result = way(program, q="?")
    check_tree(result.run)
    tracked = [attempt for made in tracker.attempts.values() for attempt in made]
    answered = provider.asked - provider.failed
    assert len(result.attempts) == provider.asked == len(tracked) == len(tracker.runs[0].attempts)
    assert [len(tracker.runs), budget.spent.calls] == [1, provider.asked]
    assert result.usage.cost == (0.5 * answered or None)
    assert (result.run.usage.input_tokens or 0) == 10 * answered
    assert result.run.cost == (0.5 * answered if provider.asked else None)


@in_every_way
@pytest.mark.parametrize("extracts", [False, True])
def test_agent_counts_the_programs_in_its_tools(way: Callable[..., Any], extracts: bool) -> None:
    provider = Provider()
    agent = agent_of(
        provider, [provider.predict({"a": "x"}), agent_of(provider, [provider.predict({"a": "y"})])], extracts=extracts
    )
    result = way(agent, q="?")
    run, first = AgentRun.of(result), result.steps[0]
    assert len(run.attempts) == len(result.attempts) == provider.asked == 6
    assert (run.usage, run.cost) == (result.usage, 3.0)
    assert first.usage.input_tokens == 50
    assert [(each.kind, each.name, each.call) for each in first.reports] == [
        ("module", "Predict", ""),
        ("tool", "ask_0", "call_0"),
        ("tool", "ask_1", "call_1"),
    ]
    assert [attempt.purpose for attempt in run.attempts][-1] == ("extract" if extracts else "ask")
    assert result.run.inner[: len(first.reports)] == first.reports
    inner = first.reports[2].inner[0]
    assert (inner.name, inner.path, [each.call for each in inner.inner]) == (
        "ReAct",
        "tools['ask_1'].part",
        ["call_1", "call_1/call_0", "call_1"],
    )
    assert [(each.path, each.turn) for each in inner.inner[:1]] == [("tools['ask_1'].part.react", 0)]


class Team(Module):
    def __init__(self, provider: Provider) -> None:
        super().__init__()
        self.cot = ChainOfThought("q -> a", lm=provider.model(lambda request: {"reasoning": "r", "a": "x"}))
        self.experts = {"law": agent_of(provider, [provider.predict({"a": "y"})])}
        self.first: Any = None

    def forward(self, q: str) -> Any:
        self.cot(q=q)
        self.first = self.experts["law"](q=q)
        return self.first


@in_every_way
def test_returned_inner_prediction_keeps_its_own_report(way: Callable[..., Any]) -> None:
    team = Team(provider := Provider())
    result = way(team, q="?")
    assert (len(result.attempts), len(team.first.attempts)) == (provider.asked, provider.asked - 1) == (4, 3)
    assert result == team.first
    assert [(each.name, each.path) for each in result.run][:4] == [
        ("Team", "self"),
        ("Predict", "cot.predict"),
        ("ReAct", "experts[law]"),
        ("Predict", "experts[law].react"),
    ]
    again = result.copy(a="other")
    assert (len(again.attempts), again.run) == (4, result.run)


def test_program_called_twice_has_two_reports() -> None:
    team = Team(Provider())
    first, second = team(q="?"), team(q="?")
    assert (len(first.attempts), len(second.attempts)) == (4, 4)


@in_every_way
def test_paths_in_reports_are_the_names_in_the_program(way: Callable[..., Any]) -> None:
    provider = Provider()
    held = ChainOfThought("q -> a", lm=provider.model(lambda request: {"reasoning": "r", "a": "x"}))

    class Teams(Module):
        def __init__(self) -> None:
            super().__init__()
            self.agent = agent_of(provider, [held, agent_of(provider, [provider.predict({"a": "y"})], extracts=True)])

        def forward(self, q: str) -> Any:
            return self.agent(q=q)

    teams = Teams()
    result = way(teams, q="?")
    names = dict(teams.named_predictors())
    paths = [each.path for each in result.run if each.name == "Predict"]
    assert len(paths) == provider.asked == 6
    assert set(paths) <= names.keys()
    assert next(path for path in paths if "tools" in path) == "agent.tools['ask_0'].part.predict"


def test_bare_predictor_has_a_report_with_name_and_time() -> None:
    provider = Provider()
    report = provider.predict({"a": "x"})(q="?").run
    assert (report.kind, report.name, report.path, report.turn, report.call) == ("module", "Predict", "self", None, "")
    assert (report.inner, len(report.attempts), report.cost, report.error) == ((), 1, 0.5, None)
    assert report.seconds > 0
    assert report.response is not None


def test_field_named_run_wins() -> None:
    result = Predict("q -> run", lm=FakeLM([{"run": "fast"}]))(q="?")
    assert (result.run, CallReport.of(result).name) == ("fast", "Predict")


@in_every_way
def test_results_of_other_types_have_their_runs_in_the_tracker(way: Callable[..., Any]) -> None:
    provider = Provider()
    program = Calls([provider.predict({"a": "x"}), agent_of(provider, [provider.predict({"a": "y"})])], "text")
    with track_usage() as outer:
        provider.predict({"a": "first"})(q="?")
        with track_usage() as tracker:
            assert way(program, q="?") == "text"
    (run,) = tracker.runs
    assert (run.name, len(run.attempts), [each.path for each in run.inner]) == ("Calls", 4, ["parts[0]", "parts[1]"])
    assert [each.name for each in outer.runs] == ["Predict", "Calls"]


def test_call_of_a_model_by_a_program_is_in_its_report() -> None:
    class Asks(Module):
        def __init__(self) -> None:
            super().__init__()
            self.lm = FakeLM(["4"])

        def forward(self, q: str) -> Any:
            return Prediction(a=self.lm(q)[0])

    with track_usage() as tracker:
        result = Asks()(q="2+2?")
    assert [(each.name, len(each.own)) for each in result.run.inner] == [("FakeLM", 1)]
    assert len(tracker.attempts["fake"]) == 1


@in_every_way
def test_parallel_calls_are_in_call_order(way: Callable[..., Any]) -> None:
    gate = threading.Barrier(2, timeout=20)
    provider, slow = Provider(), threading.Event()

    def first(request: Request) -> Any:
        gate.wait()
        slow.wait(20)
        return {"a": "slow"}

    def second(request: Request) -> Any:
        gate.wait()
        slow.set()
        return {"a": "quick"}

    parts: list[Any] = [Predict("q -> a", lm=provider.model(answer)) for answer in (first, second)]
    if way in (awaited, streamed_and_awaited):  # the answers of a FakeLM block the loop
        parts = [Calls([part], "own") for part in parts]
    result = way(agent_of(provider, parts), q="?")
    assert [each.call for each in result.steps[0].reports] == ["", "call_0", "call_1"]


@in_every_way
def test_members_of_an_ensemble_and_best_of_n_are_counted(way: Callable[..., Any]) -> None:
    provider = Provider()
    members = [provider.predict({"a": "x"}) for _ in range(3)]
    assert len(way(Ensemble(reduce_fn=sigwire.majority).compile(members), q="?").attempts) == 3
    best = BestOfN(members[0], N=3, reward_fn=lambda inputs, prediction: 0.0, threshold=1.0)
    result = way(best, q="?")
    assert [(result.run.name, len(result.attempts))] == [("BestOfN", 3)]
    assert [each.path for each in result.run.inner] == ["module"] * 3


def test_tool_without_a_program_has_no_report() -> None:
    def add(q: str) -> str:
        return q

    agent = ReAct("q -> a", tools=[add])
    agent.set_lm(FakeLM([ToolCall("c", "add", {"q": "1"}), ToolCall("s", "submit", {"a": "1"})]))
    result = agent(q="?")
    assert [each.kind for each in result.run.inner] == ["module", "module"]
    assert "report" not in ToolRun(result.steps[0].calls[0], *(result.steps[0].results * 2)).to_json()


# --- errors -------------------------------------------------------------------------------------------


@in_every_way
def test_error_has_the_tree_until_there(way: Callable[..., Any]) -> None:
    provider = Provider()
    down = provider.predict(is_down)
    inner = Calls([provider.predict({"a": "x"})], "own")

    class Both(Module):
        def forward(self, q: str) -> Any:
            inner(q=q)
            return down(q=q)

    agent = agent_of(provider, [Both(), provider.predict({"a": "y"})])
    agent.toolbox.on_error = None
    with pytest.raises(LMServerError) as raised, track_usage() as tracker:
        way(agent, q="?")
    report = CallReport.of(raised.value)
    check_tree(report)
    assert len(report.attempts) == len(raised.value.attempts) == provider.asked == 4
    assert [(each.name, each.error) for each in report if each.error] == [
        ("ReAct", "LMServerError"),
        ("ask_0", "LMServerError"),
        ("Both", "LMServerError"),
        ("Predict", "LMServerError"),
    ]
    assert (report.path, AgentRun.of(raised.value).attempts) == ("self", report.attempts)
    assert sum(map(len, tracker.attempts.values())) == 4


@in_every_way
def test_error_after_a_reask_has_both_requests(way: Callable[..., Any]) -> None:
    program = Predict("q -> n: int", max_reasks=1, lm=FakeLM([{"n": "many"}, LMServerError("down")]))
    with pytest.raises(LMServerError) as raised, track_usage() as tracker:
        way(program, q="?")
    assert [attempt.error for attempt in CallReport.of(raised.value).attempts] == [None, "server"]
    assert sum(map(len, tracker.attempts.values())) == 2


def test_exception_object_that_is_raised_twice_counts_each_call_once() -> None:
    error = LMServerError("down")
    inner = Calls([Predict("q -> a", lm=FakeLM([error, error]))], "own")
    inner.forward = lambda q: inner.parts[0](q=q)  # type: ignore[method-assign]
    program = Calls([inner, inner], "own")
    assert [attempt.error for attempt in program(q="?").attempts] == ["server", "server"]


@in_every_way
def test_extraction_that_does_not_fit_counts_its_requests(way: Callable[..., Any]) -> None:
    def page(n: int) -> str:
        return "word " * 500

    agent = ReAct("q -> a", tools=[page], max_iters=2)
    agent.react.lm = FakeLM([ToolCall(f"c{n}", "page", {"n": n}) for n in range(2)])
    agent.extract.set_lm(FakeLM([ContextWindowExceededError("long"), {"reasoning": "r", "a": "x"}]))
    result = way(agent, q="?")
    assert [attempt.error for attempt in result.attempts] == [None, None, "context_length", None]


@in_every_way
def test_warning_of_a_tool_is_once_in_the_warnings(way: Callable[..., Any]) -> None:
    def broken(q: str) -> str:
        raise KeyError("order")

    inner = ReAct("q -> a", tools=[broken])

    def answer(request: Request) -> Any:
        is_called = any(message.role == "tool" for message in request.messages)
        return ToolCall("s", "submit", {"a": "x"}) if is_called else ToolCall("b", "broken", {"q": ""})

    inner.set_lm(FakeLM(answer))
    result = way(agent_of(Provider(), [inner]), q="?")
    assert [warning.feature for warning in result.warnings] == ["tool"]
    assert result.warnings == result.run.inner[1].inner[0].warnings
    alone = way(inner, q="?")
    assert (len(alone.warnings), alone.run.own_warnings) == (1, alone.warnings)


def test_exception_without_attributes_is_raised_unchanged() -> None:
    class Fixed(Exception):
        __slots__ = ()

        def __setattr__(self, name: str, value: object) -> None:
            if not name.startswith("__"):
                raise AttributeError(name)
            super().__setattr__(name, value)

    class Raises(Module):
        def forward(self, q: str) -> Any:
            raise Fixed("no")

    with pytest.raises(Fixed):
        Raises()(q="?")


# --- replays ------------------------------------------------------------------------------------------


def nested(provider: Provider) -> ReAct[..., Any]:
    return agent_of(provider, [provider.predict({"a": "x"}), agent_of(provider, [provider.predict({"a": "y"})])])


@in_every_way
def test_journal_gives_the_tree_of_the_whole_run(way: Callable[..., Any], tmp_path: Path) -> None:
    provider, fails = Provider(), [True]
    agent = nested(provider)
    answer = agent.react.lm

    def second_is_down(request: Request) -> Any:
        if fails[0] and any(message.role == "tool" for message in request.messages):
            return LMServerError("down")
        return answer.respond(request).choices[0]

    agent.react.lm = FakeLM(second_is_down, usage=Usage(10, 1, cost=0.5))
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(LMServerError):
            journal.run(agent, run="r", q="?")
        fails[0] = False
        with track_usage() as tracker:
            result = journaled(journal, agent, way)
        assert len(result.attempts) == 6
        assert sum(map(len, tracker.attempts.values())) == 1  # what is paid now
        again = journal.run(agent, run="r")
        assert (again.run.inner, again.attempts) == (result.run.inner, result.attempts)


def journaled(journal: Journal, program: Program, way: Callable[..., Any]) -> Any:
    class InRun:
        def __call__(self, **inputs: Any) -> Any:
            return journal.run(program, "r", **inputs)

        async def acall(self, **inputs: Any) -> Any:
            return await journal.arun(program, "r", **inputs)

        def stream(self, **inputs: Any) -> Any:
            return journal.stream(program, "r", **inputs)

        def astream(self, **inputs: Any) -> Any:
            return journal.astream(program, "r", **inputs)

    return way(InRun(), q="?")


@in_every_way
def test_cassette_gives_the_tree_of_the_recorded_run(way: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Cassette(path, mode="record"):
        recorded = way(nested(Provider()), q="?")
    provider = Provider()
    with Cassette(path, mode="replay"), track_usage() as tracker:
        replayed = way(nested(provider), q="?")
    assert provider.asked == 0
    assert len(replayed.attempts) == len(recorded.attempts) == 6
    assert [(each.name, each.path) for each in replayed.run] == [(each.name, each.path) for each in recorded.run]
    assert sum(map(len, tracker.attempts.values())) == 6  # a replay counts as the run did


def waiting(provider: Provider) -> ReAct[..., Any]:
    """Return an agent whose tool asks a predictor, then an agent that pays; the payment waits for a decision."""

    def pay(q: str) -> str:
        return "paid"

    def answer(request: Request) -> Any:
        is_paid = any(message.role == "tool" for message in request.messages)
        return ToolCall("s", "submit", {"a": "x"}) if is_paid else ToolCall("p", "pay", {"q": "1"})

    payer = ReAct("q -> a", tools=[Tool(pay, approve=True)])
    payer.set_lm(provider.model(answer))
    before = provider.predict({"a": "checked"})

    class Checked(Module):
        def forward(self, q: str) -> Any:
            before(q=q)
            return payer(q=q)

    return agent_of(provider, [Checked(), provider.predict({"a": "beside"})])


@in_every_way
def test_approval_gives_the_tree_of_the_whole_run(way: Callable[..., Any]) -> None:
    provider = Provider()
    with pytest.raises(ApprovalNeeded) as raised:
        way(waiting(provider), q="?")
    state = json.loads(json.dumps(raised.value.state))
    assert len(CallReport.of(raised.value).attempts) == provider.asked == 4
    decisions = {call.id: "approve" for call in raised.value.pending}
    other = waiting(provider)

    class Resumed:
        def __call__(self) -> Any:
            return other.resume(state, decisions)

        async def acall(self) -> Any:
            return await other.aresume(state, decisions)

        def stream(self) -> Any:
            return other.resume_stream(state, decisions)

        def astream(self) -> Any:
            return other.aresume_stream(state, decisions)

    result = way(Resumed())
    check_tree(result.run)
    assert len(result.attempts) == provider.asked == 7  # the check before the payment was asked again
    assert result.steps[0].usage.input_tokens == 60


def test_state_of_an_earlier_version_is_resumed() -> None:
    provider = Provider()
    with pytest.raises(ApprovalNeeded) as raised:
        waiting(provider)(q="?")
    state = json.loads(json.dumps(raised.value.state))
    for each in (state, *state["inner"].values()):
        del each["reports"]
        each["attempts"] = [{"model": "fake", "usage": {"input_tokens": 10}}]
        for done in each["results"]:
            done.pop("report", None)
    decisions = {call.id: "approve" for call in raised.value.pending}
    result = waiting(Provider()).resume(state, decisions)
    assert (result.a, len(result.attempts)) == ("done", 5)


def test_steps_and_tool_runs_of_older_files_have_no_reports() -> None:
    step = agent_of(provider := Provider(), [provider.predict({"a": "x"})])(q="?").steps[0]
    data = json.loads(json.dumps(step.to_json()))
    assert ReActStep.from_json(data) == step
    del data["reports"]
    assert ReActStep.from_json(data).reports == ()
    run = ToolRun(step.calls[0], step.results[0], step.results[0], report=step.reports[1])
    assert ToolRun.from_json(json.loads(json.dumps(run.to_json()))) == run


def test_cache_hit_is_a_node_without_attempts() -> None:
    configure_cache(enable_disk_cache=False)
    script: list[Any] = [Fault("server"), "[[ ## a ## ]]\nx"]  # the failure is retried
    with FakeProvider(script) as provider, track_usage() as tracker:
        lm = LM("openai/m", base_url=provider.url("compatible"), api_key="k", cache=True, num_retries=1)
        part = Predict("q -> a", lm=lm)
        program = Calls([part, part], "own")
        first, second = program(q="cache?"), program(q="cache?")
    assert [[leaf.cache for leaf in each.run.inner] for each in (first, second)] == [["miss", "hit"], ["hit", "hit"]]
    assert (second.attempts, second.run.cost, len(first.attempts), len(tracker.hits)) == ((), 0.0, 2, 3)


def test_prediction_keeps_its_tree_in_json_pickle_and_copies() -> None:
    result = nested(Provider())(q="?")
    agent = nested(Provider())
    loaded = agent.load_result(json.loads(json.dumps(result.to_json())))
    for each in (loaded, pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert (each.run.inner, each.attempts, each.usage) == (result.run.inner, result.attempts, result.usage)


def test_report_keeps_no_prompt_and_no_answer() -> None:
    provider = Provider()
    part = provider.predict({"a": "SECRET ANSWER"})
    result = Calls([part], "own")(q="SECRET QUESTION")
    assert "SECRET" not in json.dumps(result.run.to_json())


def right(example: Any, prediction: Any, trace: Any = None) -> float:
    return 1.0


def test_evaluation_counts_the_requests_of_inner_programs_once() -> None:
    provider = Provider()
    down = Predict("q -> a", lm=provider.model(lambda request: LMServerError("down")))
    agent = agent_of(provider, [down])
    agent.toolbox.on_error = None
    rows = [Example(q="1", a="x").with_inputs("q")]
    result = Evaluate(devset=rows, metric=right, progress=False)(agent)
    (record,) = result.run.records
    assert (record.cell.requests, [attempt.error for attempt in record.cell.attempts]) == (2, ["server"])


# --- code ---------------------------------------------------------------------------------------------


@in_every_way
def test_agents_that_run_code_count_programs_in_tools(way: Callable[..., Any]) -> None:
    pytest.importorskip("pydantic_monty")
    provider = Provider()
    part = provider.predict({"a": "x"})

    def ask(q: str) -> str:
        """Ask."""
        return str(part(q=q).a)

    act = CodeAct("q -> a", tools=[ask])
    act.react.lm = provider.model(lambda request: {"reasoning": "r", "code": "submit(a=ask('1') + ask('2'))"})
    result = way(act, q="?")
    assert (len(result.attempts), len(result.steps[0].reports)) == (provider.asked, 3) == (3, 3)
    rlm = RLM("q -> a", tools=[ask], sub_lm=provider.model(lambda request: "four"))
    rlm.generate_action.lm = provider.model(
        lambda request: {"reasoning": "r", "code": "submit(a=ask('1') + llm_query('2'))"}
    )
    before = provider.asked
    result = way(rlm, q="?")
    assert len(result.attempts) == provider.asked - before == 3
    assert [each.name for each in result.run.inner] == ["Predict", "ask", "llm_query"]
    thought = ProgramOfThought("q -> a")
    thought.set_lm(
        provider.model(
            iter_of(
                [{"reasoning": "r", "generated_code": "1 +"}, {"reasoning": "r", "generated_code": "submit(a='x')"}]
            )
        )
    )
    assert len(way(thought, q="?").attempts) == 2


# --- streams ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
def test_events_name_the_calls_around(is_async: bool) -> None:
    provider = Provider()
    expert = agent_of(provider, [provider.predict({"a": "x"})])

    def ask(q: str) -> str:
        return str(expert(q=q).a)

    agent = ReAct("q -> a", tools=[ask])

    def answer(request: Request) -> Any:
        if any(message.role == "tool" for message in request.messages):
            return ToolCall("", "submit", {"a": "done"})
        return [ToolCall("left", "ask", {"q": "1"}), ToolCall("right", "ask", {"q": "2"})]

    agent.react.lm = provider.model(answer)

    async def read() -> list[Any]:
        return [event async for event in agent.astream(q="?")]

    events = asyncio.run(read()) if is_async else list(agent.stream(q="?"))
    emitted: list[Any] = events[:-1]
    assert {event.within for event in emitted} == {"", "left", "right", "left/call_0", "right/call_0"}
    done = {(event.within, event.result.id) for event in emitted if type(event).__name__ == "ToolDone"}
    assert {("", "left"), ("", "right"), ("left", "call_0"), ("right", "call_0")} <= done
    texts = {within: [event for event in emitted if event.within == within] for within in ("left", "right")}
    assert len(texts["left"]) == len(texts["right"]) > 0
    assert [event_from_json(json.loads(json.dumps(event.to_json()))) for event in emitted] == emitted
    assert all("within" not in event.to_json() for event in emitted if not event.within)


# --- cards --------------------------------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e" + "x" * 300


def hostile() -> CallReport:
    leaf = CallReport(
        name=HOSTILE,
        path=HOSTILE,
        turn=3,
        error=HOSTILE,
        seconds=70,
        own=(Attempt(usage=Usage(10**9, 1, cost=9999.5)),),
    )
    deep = leaf
    for _ in range(40):
        deep = CallReport("tool", HOSTILE, HOSTILE, inner=(deep, leaf))
    return CallReport(name="Team", inner=(leaf, deep))


def test_tree_fits_eighty_columns_and_is_clean() -> None:
    lines = str(hostile()).splitlines()
    assert max(map(len, lines)) <= 80
    assert not {"\x1b", "\u202e"} & set("".join(lines))
    assert [line.count("  ") > 0 for line in lines[:2]] == [True, True]
    wide = CallReport(name="日本語" * 30, seconds=0.1)
    from sigwire.show.cleaning import display_width

    assert display_width(str(wide)) <= 80


def test_tree_shows_requests_tokens_cost_and_time_of_each_call() -> None:
    result = nested(Provider())(q="?")
    lines = str(result.run).splitlines()
    assert (lines[0][:6], "6 requests · 66 tokens · $3.00" in lines[0]) == ("ReAct ", True)
    assert [line[: len(line) - len(line.lstrip())] for line in lines[:4]] == ["", "  ", "  ", "    "]
    assert "ask_0 tools['ask_0'] turn 1" in lines[2]


def test_html_cards_nest_and_escape() -> None:
    page = cast(Any, hostile())._repr_html_()
    assert ("<script" in page, "\x1b" in page) == (False, False)
    result = nested(Provider())(q="?")
    assert result.run._repr_html_().count("<details open>") >= 7
    assert "1 request" in result.steps[0]._repr_html_()  # a call of a turn shows what ran inside


def test_large_tree_is_shown_in_part() -> None:
    report = CallReport(name="Team", inner=tuple(CallReport(name=f"P{n}") for n in range(1000)))
    assert len(str(report).splitlines()) == 201
    assert str(report).endswith("… 801 more calls")


def test_usage_of_deep_trees_needs_no_recursion() -> None:
    report = CallReport(own=(Attempt(usage=Usage(1)),))
    for _ in range(5000):
        report = CallReport(inner=(report,))
    assert (report.usage.input_tokens, len(list(report))) == (1, 5001)


def test_tree_holds_little_memory() -> None:
    class Many(Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = Provider().predict({"a": "x"})

        def forward(self, q: str) -> Any:
            for _ in range(40):
                self.ask(q=q)
            return Prediction(a="x")

    program = Many()
    program(q="?")
    program.ask.lm.requests.clear()
    tracemalloc.start()
    result = program(q="?")
    program.ask.lm.requests.clear()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / len(list(result.run)) < 2048  # bytes


@pytest.mark.parametrize("begins", ["before the timeout", "after the timeout"])
@pytest.mark.parametrize("is_awaited", [False, True])
def test_request_of_a_thread_that_goes_on_after_the_timeout_of_its_tool_is_counted(
    begins: str, is_awaited: bool
) -> None:
    ended, timed_out = threading.Event(), threading.Event()

    def answer(request: Request) -> Any:
        if begins == "before the timeout":
            timed_out.wait(20)
        return {"fact": "old"}

    sub = Predict("topic -> fact", lm=FakeLM(answer, usage=Usage(7, 1)))

    class Desk(Module):
        def __init__(self) -> None:
            super().__init__()
            self.sub = sub

        def forward(self, topic: str) -> Any:
            try:
                if begins == "after the timeout":
                    timed_out.wait(20)
                return self.sub(topic=topic)
            finally:
                ended.set()

    desk = Desk()

    def ask(topic: str) -> str:
        return str(desk(topic=topic).fact)

    def decide(request: Request) -> Any:
        if request.messages[-1].role != "tool":
            return ToolCall("a", "ask", {"topic": "tea"})
        timed_out.set()
        assert ended.wait(20)
        return ToolCall("b", "submit", {"text": "late"})

    agent = ReAct("task -> text", tools=[Tool(ask, timeout=0.02)])
    agent.react.lm = FakeLM(decide, usage=Usage(5, 1))
    with track_usage() as tracker:
        result = asyncio.run(agent.acall(task="x")) if is_awaited else agent(task="x")
    late = [(each.name, each.path) for each in result.run.inner if each.path.endswith("sub")]
    assert late == [("Predict", "tools['ask'].desk.sub")]
    assert [len(result.run.attempts), len(tracker.runs[0].attempts)] == [3, 3]
    assert result.usage.input_tokens == tracker.get_total_tokens()["fake"]["input_tokens"] == 17


def test_program_that_returns_a_kept_prediction_asks_nothing() -> None:
    class Kept(Module):
        def __init__(self) -> None:
            super().__init__()
            self.sub = Predict("topic -> fact", lm=FakeLM([{"fact": "old"}], usage=Usage(7, 1, cost=0.5)))
            self.known: Any = None

        def forward(self, topic: str) -> Any:
            self.known = self.known or self.sub(topic=topic)
            return self.known

    kept = Kept()
    first, second = kept(topic="tea"), kept(topic="tea")
    assert [first.run.usage, first.usage, first.run.cost] == [Usage(7, 1, cost=0.5)] * 2 + [0.5]
    assert [second.run.usage, second.usage, second.run.cost, second.run.attempts] == [Usage(), Usage(), None, ()]
    assert kept.known.usage.input_tokens == 7
