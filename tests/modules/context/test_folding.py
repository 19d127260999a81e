"""Folds of agents: when, where, what is sent, in all ways of calling; refusals, errors, strategies, on_turn."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from typing import Any

import pytest

import sigwire
from sigwire import (
    AgentRun,
    AgentStopped,
    BudgetSpent,
    Choice,
    Compacted,
    Compaction,
    ConfigurationError,
    ContextWindowExceededError,
    FakeLM,
    Fold,
    History,
    InputError,
    LMServerError,
    Message,
    ReAct,
    UsageUpdate,
)
from sigwire.compaction import Draft, clear_results, drop_oldest, summarize
from sigwire.core.capabilities import Capabilities
from sigwire.core.json import dumps
from sigwire.core.response import Response, Usage
from sigwire.lm.preview.tokens import estimate_tokens
from sigwire.modules.context.sizes import window_in_text
from tests.modules.context.worlds import World, called, last_result, names_of, note_of, shown_texts

MODES = ["run", "arun", "stream", "astream"]
NATIVE = {"native_tools": True, "parallel_tool_calls": True, "tool_choice": True}


def page(n: int) -> str:
    """Read a page."""
    return f"fact f{n} is v{n}. " + f"word{n} " * 120


def reading(pages: int) -> Any:
    """Return the turns of a model that reads pages, then submits."""

    def turn(request: Any) -> Any:
        if not request.tools:  # the extraction
            return {"reasoning": "r", "answer": "extracted"}
        result = last_result(request)
        found = None if result is None else re.search(r"fact f(\d+)", result.text)
        number = int(found[1]) + 1 if found else 0
        return called(f"p{number}", "page", n=number) if number < pages else called("s", "submit", answer="read")

    return turn


def agent_of(world: FakeLM, **options: Any) -> Any:
    agent: Any = ReAct("question -> answer", tools=[page], max_iters=60, **options)
    agent.set_lm(world)
    return agent


async def driven(mode: str, agent: Any, **inputs: Any) -> tuple[Any, list[Any]]:
    """Return the prediction and the events of a run."""
    if mode == "run":
        return await asyncio.to_thread(agent, **inputs), []
    if mode == "arun":
        return await agent.acall(**inputs), []
    if mode == "stream":
        events = await asyncio.to_thread(lambda: list(agent.stream(**inputs)))
    else:
        events = [event async for event in agent.astream(**inputs)]
    return events[-1].value, events


def sent(world: World) -> list[str]:
    return [dumps(request.to_json()) for request in world.requests]


# --- when and where ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_run_folds_near_the_window_and_is_never_refused(mode: str) -> None:
    world = World(reading(30), 2000)
    result, events = await driven(mode, agent_of(world, compaction=Compaction(window=2000)), question="Read.")
    assert (result.answer, world.refused) == ("read", [])
    history = AgentRun.of(result).history
    assert len(history) == 1 + 2 * 31
    assert len(history.folds) > 2
    assert all(fold.tokens_after < fold.tokens_before for fold in history.folds)
    assert [fold.upto for fold in history.folds] == sorted(fold.upto for fold in history.folds)
    compacted = [event for event in events if isinstance(event, Compacted)]
    assert [event.fold for event in compacted] == (list(history.folds) if events else [])
    assert all(event.path == "self" and event.turn is not None for event in compacted)


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("cached", [False, True])
async def test_all_ways_of_calling_send_equal_requests_and_fold_equally(mode: str, cached: bool) -> None:
    made = []
    for each in ("run", mode):
        world = World(reading(20), 2000)
        world.cached = cached
        result, _ = await driven(each, agent_of(world, compaction=Compaction(window=2000)), question="Read.")
        made.append((sent(world), AgentRun.of(result).history))
    assert made[0] == made[1]


async def test_stream_has_the_usage_of_a_summary_and_not_its_text() -> None:
    world = World(reading(12), 2000)
    agent = agent_of(world, compaction=Compaction([summarize()], window=2000))
    _, events = await driven("stream", agent, question="Read.")
    of_summary = [event for event in events if getattr(event, "path", "") == "summary"]
    assert {type(event).__name__ for event in of_summary} == {"AskStart", "UsageUpdate"}
    assert any(isinstance(event, UsageUpdate) for event in of_summary)


def test_between_two_folds_each_request_begins_with_the_one_before() -> None:
    world = World(reading(30), 2000)
    agent = agent_of(world, compaction=Compaction([drop_oldest()], window=2000))
    folds = len(AgentRun.of(agent(question="Read.")).history.folds)
    moved = 0
    for before, after in zip(world.requests, world.requests[1:], strict=False):
        same = before.messages == after.messages[: len(before.messages)] and before.tools == after.tools
        moved += not same
    assert moved == folds


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("known", ["capabilities", "compaction"])
def test_window_is_that_of_the_model_or_of_the_option(known: str, counts: bool) -> None:
    capabilities = Capabilities(**NATIVE, context_window=2000 if known == "capabilities" else None)
    world = World(reading(20), 2000, capabilities=capabilities)
    world.counts = counts
    compaction: Any = True if known == "capabilities" else Compaction(window=2000)
    result = agent_of(world, compaction=compaction)(question="Read.")
    assert world.refused == []
    assert AgentRun.of(result).history.folds


def test_max_tokens_of_the_answer_are_kept_free() -> None:
    world = World(reading(20), 2000)
    agent = agent_of(world, compaction=Compaction([drop_oldest()], window=2000), max_tokens=1000)
    folds = AgentRun.of(agent(question="Read.")).history.folds
    assert max(fold.tokens_before for fold in folds) < 1400


def test_price_lowers_the_window() -> None:
    world = World(reading(20), 10_000)
    with pytest.warns(UserWarning, match="No price of fake"):
        agent_of(world, compaction=Compaction([drop_oldest()], window=10_000, price=0.001))(question="Read.")
    sigwire.prices.register("priced/fake", sigwire.Price(input=1.0, output=1.0))
    priced = World(reading(20), 10_000, model="priced/fake")
    result = agent_of(priced, compaction=Compaction([drop_oldest()], window=10_000, price=0.002))(question="Read.")
    assert max(fold.tokens_before for fold in AgentRun.of(result).history.folds) < 2100


UNUSED = (
    "compaction core.words lm.preview.cache_health lm.preview.limits lm.preview.tokens modules.agents.tool_catalog "
    "modules.agents.tool_search modules.context modules.memory modules.skills signatures.types.views"
).split()


def test_run_without_folds_and_searches_loads_none_of_their_modules() -> None:
    code = (
        "import sys\nfrom sigwire import ReAct, FakeLM, ToolCall\nagent = ReAct('q -> a', tools=[len])\n"
        "agent.set_lm(FakeLM([ToolCall('a', 'len', {'obj': 'x'}), ToolCall('b', 'submit', {'a': 'x'})]))\n"
        "result = agent(q='?')\nagent.session(result.history)\nprint('\\n'.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    names = set(done.stdout.split())
    assert "sigwire.modules.agents.react" in names
    assert names & {f"sigwire.{name}" for name in UNUSED} == set()


def test_transcript_of_each_call_extends_that_of_the_call_before() -> None:
    world = World(reading(8), 2000)
    agent = agent_of(world, compaction=Compaction(window=2000))
    history = History()
    for task in range(4):
        after = AgentRun.of(agent(question=f"Task {task}.", history=history)).history
        assert after.messages[: len(history)] == history.messages
        assert after.folds[: len(history.folds)] == history.folds
        other = World(world.turn, 2000)
        copied = agent_of(other, compaction=Compaction(window=2000))
        copied(question="Next.", history=History.from_json(after.to_json()))
        again = World(world.turn, 2000)
        agent_of(again, compaction=Compaction(window=2000))(question="Next.", history=after)
        assert sent(again) == sent(other)
        history = after
    assert history.folds


# --- refusals ------------------------------------------------------------------------------------------------

REFUSALS = {
    "openai": "This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens.",
    "anthropic": "prompt is too long: {tokens} tokens > {limit} maximum",
    "gemini": "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).",
    "llama-server": "the request exceeds the available context size ({limit} tokens), try increasing it",
    "xai": "This model's maximum prompt length is {limit} but the request contains {tokens} tokens.",
    "vllm": "This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens (1 in the text).",
    "anthropic, with max_tokens": "input length and `max_tokens` exceed context limit: {tokens} + 1 > {limit}",
}


@pytest.mark.parametrize("provider", REFUSALS)
def test_window_is_learned_from_the_text_of_a_refusal(provider: str) -> None:
    world = World(reading(55), 4000)
    world.text = REFUSALS[provider]
    agent = agent_of(world, compaction=Compaction([drop_oldest()]))
    result = agent(question="Read.")
    assert (result.answer, len(world.refused)) == ("read", 1)
    fold = AgentRun.of(result).history.folds[0]
    assert (fold.why, AgentRun.of(result).history.folds[1].why) == ("refused", "window")
    assert fold.tokens_after < 1000
    agent(question="Read.")
    assert len(world.refused) == 1


def test_number_with_commas_is_read() -> None:
    assert window_in_text("maximum context length is 131,072 tokens") == 131072


def test_refusal_without_a_number_folds_at_a_share_of_the_refused_size() -> None:
    world = World(reading(30), 2000)
    world.text = "input is too long"
    result = agent_of(world, compaction=Compaction([drop_oldest()]))(question="Read.")
    assert (result.answer, len(world.refused)) == ("read", 1)
    assert [attempt.error for attempt in result.attempts if attempt.error] == ["context_length"]


def test_run_that_is_refused_after_a_fold_folds_further() -> None:
    world = World(reading(30), 2000)
    result = agent_of(world, compaction=Compaction([drop_oldest()], window=9000))(question="Read.")
    assert result.answer == "read"
    assert {fold.why for fold in AgentRun.of(result).history.folds} == {"refused", "window"}


@pytest.mark.parametrize("size", ["task", "turn"])
def test_task_or_turn_larger_than_the_window_ends_with_the_four_sizes(size: str) -> None:
    world = World(reading(2), 600)
    task = "word " * (1000 if size == "task" else 1)

    def large(n: int) -> str:
        return "word " * 2000

    tool = page if size == "task" else sigwire.Tool(large, name="page", description="", max_output=20_000)
    big: Any = ReAct("question -> answer", tools=[tool], compaction=Compaction(window=600))
    big.set_lm(world)
    with pytest.raises(
        ContextWindowExceededError,
        match=r"instructions [\d,]+, tools [\d,]+, task [\d,]+, latest turn [\d,]+; window 600",
    ) as caught:
        big(question=task)
    assert AgentRun.of(caught.value).termination_reason == "context_window_exceeded"


def test_error_names_the_folds_of_a_request_that_is_refused_after_three() -> None:
    def drop_one(draft: Draft) -> Draft:
        return draft.with_fold(upto=next(cut for cut in draft.cuts if cut > draft.fold.upto))

    world = World(reading(30), 2000)
    world.text = "input is too long"
    agent = agent_of(world, compaction=Compaction([drop_one]), extract=False)
    with pytest.raises(AgentStopped) as caught:
        agent(question="Read.", history=[{"question": "word " * 900} for _ in range(20)])
    assert len(world.refused) == 4
    assert "does not fit the model, after 3 folds in a row (asking fake)" in str(caught.value.__cause__)


def test_compaction_false_shortens_nothing() -> None:
    world = World(reading(30), 2000)
    with pytest.raises(AgentStopped) as caught:
        agent_of(world, compaction=False, extract=False)(question="Read.")
    assert (caught.value.reason, len(world.refused)) == ("context_window_exceeded", 1)
    assert AgentRun.of(caught.value).history.folds == ()


def test_extraction_reads_the_view() -> None:
    world = World(reading(99), 2000)
    agent = agent_of(world, compaction=Compaction([drop_oldest()], window=2000))
    agent.extract.set_lm(extract := FakeLM([{"reasoning": "r", "answer": "x"}]))
    result = agent(question="Read.", max_iters=20)
    assert result.termination_reason == "limit"
    text = extract.requests[0].messages[-1].text
    assert 'page({"n":19})' in text
    assert 'page({"n":1})' not in text


# --- summaries -----------------------------------------------------------------------------------------------


def test_summary_stands_in_the_note_and_is_counted() -> None:
    world = World(reading(20), 2000)
    result = agent_of(world, compaction=Compaction([summarize()], window=2000))(question="Read.")
    folds = AgentRun.of(result).history.folds
    assert len(world.summaries) == len(folds) >= 2
    assert "fact f0 is v0." in folds[-1].summary
    note = note_of(world.turns[-1])
    assert note is not None
    assert f"\n> {folds[-1].summary}" in note.text
    assert [each.purpose for each in result.attempts].count("summarize") == len(folds)
    assert sum(step.usage.input_tokens or 0 for step in result.steps) == sum(
        attempt.usage.input_tokens or 0 for attempt in result.attempts
    )


@pytest.mark.parametrize("cached", [True, False])
def test_summary_is_asked_behind_the_prefix_if_it_is_cached(cached: bool) -> None:
    world = World(reading(30), 4000)
    world.cached = cached
    agent_of(world, compaction=Compaction([summarize()], window=4000, at=0.7))(question="Read.")
    at = world.requests.index(world.summaries[0])
    before, asked = world.requests[at - 1], world.summaries[0]
    is_behind = asked.messages[: len(before.messages)] == before.messages and asked.tools == before.tools
    assert is_behind == cached


def test_summary_that_calls_a_tool_behind_the_prefix_is_asked_by_itself() -> None:
    class Eager(World):
        def summarized(self, request: Any) -> Any:
            return called("x", "page", n=1) if request.tools else super().summarized(request)

    world = Eager(reading(30), 4000)
    world.cached = True
    result = agent_of(world, compaction=Compaction([summarize()], window=4000, at=0.7))(question="Read.")
    assert len(world.summaries) == 2 * len(AgentRun.of(result).history.folds)
    assert "fact f0" in AgentRun.of(result).history.folds[-1].summary


BAD = {
    "empty": "",
    "refused": Choice(refusal="No."),
    "cut": Choice(text="fact", finish_reason="length"),
    "too long": ContextWindowExceededError("too long"),
}


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("bad", BAD)
def test_summary_without_a_text_is_a_warning(bad: str, cached: bool) -> None:
    class Poor(World):
        def summarized(self, request: Any) -> Any:
            return BAD[bad]

    world = Poor(reading(20), 4000)
    world.cached = cached
    result = agent_of(world, compaction=Compaction([summarize()], window=4000, at=0.7))(question="Read.")
    assert result.answer == "read"
    assert {fold.summary for fold in AgentRun.of(result).history.folds} == {""}
    assert "compaction" in {warning.feature for warning in sigwire.CallReport.of(result).warnings}


@pytest.mark.parametrize("error", [LMServerError("down"), KeyboardInterrupt()])
def test_error_of_the_provider_in_a_summary_is_raised_and_no_turn_is_lost(error: BaseException) -> None:
    class Down(World):
        def summarized(self, request: Any) -> Any:
            return error

    with pytest.raises(type(error)) as caught:
        agent_of(Down(reading(12), 2000), compaction=Compaction([summarize()], window=2000))(question="Read.")
    history = AgentRun.of(caught.value).history
    assert history.folds == ()
    assert len(history) > 4


def test_summary_beyond_the_budget_is_refused() -> None:
    world = World(reading(12), 2000)
    agent = agent_of(world, compaction=Compaction([summarize()], window=2000))
    with pytest.raises(BudgetSpent), sigwire.Budget(calls=5):
        agent(question="Read.")
    assert len(world.requests) == 5


def test_summary_of_a_program_of_the_user() -> None:
    class Short(sigwire.Module):
        def forward(self, earlier: str, summary_so_far: str) -> str:
            return f"{len(earlier) > 100} {summary_so_far}".strip()

    result = agent_of(World(reading(20), 2000), compaction=Compaction([summarize(Short())], window=2000))(
        question="Read."
    )
    assert AgentRun.of(result).history.folds[1].summary == "True True"


def test_trace_has_summaries_as_calls_of_their_predictor() -> None:
    world = World(reading(20), 4000)
    world.cached = True
    agent = agent_of(world, compaction=Compaction([summarize()], window=4000, at=0.7))
    trace: list[Any] = []
    with sigwire.context(trace=trace):
        agent(question="Read.")
    of_summary = [entry for entry in trace if entry[0] is agent.summary]
    assert len(of_summary) == len(world.summaries) > 0
    assert "fact f0" in of_summary[0][1]["earlier"]
    assert "fact f0" in of_summary[0][2].summary


# --- what finds it -------------------------------------------------------------------------------------------


class Searcher(World):
    """Reads pages, then follows the note: searches, reads a result, and submits what it found."""

    def __init__(self, pages: int, limit: int, query: str) -> None:
        super().__init__(self.next_page, limit)
        self.pages, self.query = pages, query
        self.found: list[str] = []

    def next_page(self, request: Any) -> Choice:
        result = last_result(request)
        offered = names_of(request)
        if result is not None and result.name not in ("page",):
            self.found.append(result.text)
            return called("s", "submit", answer=result.text)
        found = None if result is None else re.search(r"fact f(\d+)", result.text)
        number = int(found[1]) + 1 if found else 0
        if number < self.pages:
            return called(f"p{number}", "page", n=number)
        assert offered[-2:] == ["read_result", "search_conversation"]
        return called("f", "search_conversation", query=self.query)


def test_call_that_the_note_names_returns_what_was_left_out() -> None:
    world = Searcher(15, 2000, "fact f1")
    result = agent_of(world, compaction=Compaction([drop_oldest()], window=2000))(question="Read.")
    assert "fact f1 is v1" in result.answer
    assert "quoted as data" in result.answer
    assert "[turn 4, result of page]" in result.answer


def test_search_is_offered_from_the_request_after_the_fold_on() -> None:
    world = World(reading(15), 2000)
    agent_of(world, compaction=Compaction([drop_oldest()], window=2000))(question="Read.")
    for request in world.requests:
        names = names_of(request)
        assert ("search_conversation" in names) == (note_of(request) is not None)
        assert names[:2] == ["page", "submit"]


def test_result_that_was_left_out_is_read_in_a_later_run() -> None:
    world = World(reading(15), 2000)
    first = agent_of(world, compaction=Compaction(window=2000))(question="Read.")
    later = FakeLM([called("x", "read_result", id="p0"), called("y", "submit", answer="ok")])
    agent = agent_of(later, compaction=Compaction(window=2000))
    second = agent(question="What did page 0 say?", history=History.from_json(first.history.to_json()))
    assert "fact f0 is v0" in second.steps[0].results[0].text
    names = names_of(later.requests[0])
    assert names == ["page", "submit", "read_result", "search_conversation"]


def test_search_of_a_name_that_is_taken_gets_another() -> None:
    def search_conversation(query: str) -> str:
        """Mine."""
        return "mine"

    agent: Any = ReAct(
        "question -> answer", tools=[page, search_conversation], compaction=Compaction(window=2000), max_iters=40
    )
    agent.set_lm(world := World(reading(15), 2000))
    agent(question="Read.")
    note = note_of(world.turns[-1])
    assert note is not None
    assert 'search_conversation_2(query="...")' in note.text
    assert "search_conversation_2" in names_of(world.turns[-1])


def test_note_names_no_call_without_search() -> None:
    world = World(reading(15), 2000)
    history = AgentRun.of(agent_of(world, compaction=Compaction(window=2000, search=False))(question="Read.")).history
    note = note_of(world.turns[-1])
    assert note is not None
    assert "(query=" not in note.text
    assert names_of(world.turns[-1]) == ["page", "submit"]
    later = World(reading(1), 2000)
    agent_of(later, compaction=Compaction(window=2000))(question="Go on.", history=history)
    assert 'search_conversation(query="...")' in "".join(shown_texts(later.requests[0]))


# --- strategies ----------------------------------------------------------------------------------------------


def test_steps_run_in_order_until_the_request_fits() -> None:
    world = World(reading(20), 2000)
    seen: list[int] = []

    def looked(draft: Draft) -> Draft:
        seen.append(draft.fold.cleared)
        return draft

    compaction = Compaction([clear_results(), looked, drop_oldest()], window=2000, to=0.7)
    folds = AgentRun.of(agent_of(world, compaction=compaction)(question="Read.")).history.folds
    assert any(fold.cleared and not fold.upto for fold in folds)
    assert len(seen) < len(folds)


@pytest.mark.parametrize(
    ("strategy", "problem"),
    [
        (lambda draft: draft.with_fold(upto=2), "ended a fold at turn"),
        (lambda draft: draft.with_fold(cleared=-1), "cleared results before turn"),
        (lambda draft: draft.with_fold(summary=3), "made a summary"),
        (lambda draft: None, "returned NoneType"),
    ],
)
def test_strategy_that_returns_no_fold_is_named(strategy: Any, problem: str) -> None:
    agent = agent_of(World(reading(20), 2000), compaction=Compaction([strategy], window=2000))
    with pytest.raises(ConfigurationError, match=f"<lambda> {problem}"):
        agent(question="Read.")


def test_strategy_of_the_user_in_five_lines() -> None:
    def keep_four(draft: Draft) -> Draft:
        cuts = [cut for cut in draft.cuts if cut <= len(draft.history) - 4]
        return draft.with_fold(upto=cuts[-1]) if cuts else draft

    folds = AgentRun.of(
        agent_of(World(reading(20), 2000), compaction=Compaction([keep_four], window=2000))(question="?")
    )
    assert folds.history.folds


@pytest.mark.parametrize(
    "options",
    [
        {"at": 0.2, "to": 0.2},
        {"to": 0},
        {"at": 1.1},
        {"window": 0},
        {"price": -1},
        {"recall": -1},
        {"steps": [3]},
        {"at": "x"},
    ],
)
def test_compaction_refuses_wrong_options(options: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"\(making"):
        Compaction(**options)


def test_equal_compactions_are_equal() -> None:
    assert Compaction([clear_results(3), summarize(tokens=9)], at=0.5) == Compaction(
        [clear_results(3), summarize(tokens=9)], at=0.5
    )
    assert Compaction(at=0.5) != Compaction()
    assert len({Compaction(), Compaction()}) == 1
    with pytest.raises(AttributeError, match="immutable"):
        Compaction().at = 0.5


@pytest.mark.parametrize("make", [clear_results, summarize])
def test_strategies_refuse_wrong_options(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make(0) if make is clear_results else make(tokens=0)


@pytest.mark.parametrize("options", [{"compaction": 3}, {"compaction": "yes"}, {"on_turn": 3}])
def test_agent_refuses_wrong_options(options: Any) -> None:
    with pytest.raises(ConfigurationError, match="creating a ReAct"):
        ReAct("question -> answer", **options)


# --- on_turn -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("mode", MODES)
async def test_on_turn_replaces_one_request_only(mode: str, is_async: bool) -> None:
    seen: list[int] = []

    def change(view: History) -> History | None:
        seen.append(len(view))
        if len(view) != 3:
            return None
        return History([*view.messages[:1], Message.user("Only this.")])

    async def achange(view: History) -> History | None:
        return change(view)

    world = World(reading(3), 2000)
    result, _ = await driven(
        mode, agent_of(world, on_turn=achange if is_async else change), question="Read.", max_iters=4
    )
    assert seen[:3] == [1, 3, 5]
    assert [len(request.messages) for request in world.requests][:3] == [2, 3, 6]
    assert world.requests[1].messages[-1].text == "Only this."
    plain = World(reading(3), 2000)
    expected, _ = await driven(mode, agent_of(plain), question="Read.", max_iters=4)
    history = AgentRun.of(result).history
    assert len(history.messages) > 5
    assert all(turn != Message.user("Only this.") for turn in history.messages)
    assert history.messages[:3] == AgentRun.of(expected).history.messages[:3]


def test_pairs_of_a_replaced_view_are_repaired() -> None:
    world = World(reading(3), 2000)
    agent_of(world, on_turn=lambda view: view[:2] if len(view) == 3 else None)(question="Read.", max_iters=4)
    assert world.requests[1].messages[-1].tool_results[0].is_error


@pytest.mark.parametrize(
    "error", [ValueError("no"), ContextWindowExceededError("inner"), sigwire.EmptyResponse("inner")]
)
def test_error_of_on_turn_ends_the_run_and_is_located(error: Exception) -> None:
    def fail(view: History) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        agent_of(World(reading(3), 2000), on_turn=fail)(question="Read.")
    assert "on_turn" in "".join(getattr(caught.value, "__notes__", []))
    assert len(AgentRun.of(caught.value).history) == 1


def test_view_of_another_type_is_refused() -> None:
    with pytest.raises(InputError, match="on_turn returned list"):
        agent_of(World(reading(3), 2000), on_turn=lambda view: [])(question="Read.")


def test_on_turn_sees_the_view_of_a_folded_conversation() -> None:
    sizes: list[int] = []
    agent = agent_of(
        World(reading(20), 2000),
        compaction=Compaction([drop_oldest()], window=2000),
        on_turn=lambda view: sizes.append(len(view)),
    )
    history = AgentRun.of(agent(question="Read.")).history
    assert max(sizes) < len(history) // 2


def test_fold_is_a_value_with_json() -> None:
    fold = Fold(3, 2, "s", "refused", 10, 5, "search", "read")
    assert Fold.from_json(fold.to_json()) == fold
    assert sigwire.core.events.event_from_json(Compacted(fold, path="self", turn=2).to_json()) == Compacted(
        fold, path="self", turn=2
    )


def test_agent_without_tools_gets_passages_in_front_of_its_task() -> None:
    agent: Any = ReAct("question -> answer", compaction=Compaction([drop_oldest()], window=900, recall=2))
    agent.set_lm(world := World(lambda request: {"answer": "fine"}, 900))
    history = History()
    for number in range(20):
        history = AgentRun.of(agent(question=f"fact f{number} is v{number}. " + "word " * 40, history=history)).history
    agent(question="Which value has fact f1?", history=history)
    *_, passages, task = world.requests[-1].messages
    assert "fact f1 is v1" in passages.text
    assert "Which value has fact f1?" in task.text
    assert world.refused == []


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("search", [True, False])
def test_estimate_after_a_fold_counts_the_tools_that_it_adds(search: bool, counts: bool) -> None:
    class Counting(World):
        """Counts as the estimate does, so that only a part that is missing makes a difference."""

        def _answer(self, request: Any) -> Any:
            response = super()._answer(request)
            usage = Usage(int(estimate_tokens(self.model, request)), 20) if counts else Usage()
            return Response(response.choices, usage, self.model)

    world = Counting(reading(40), 10_000)
    agent = agent_of(world, compaction=Compaction([drop_oldest()], window=4000, search=search))
    fold = AgentRun.of(agent(question="Read.")).history.folds[0]
    after = next(request for request in world.requests if note_of(request) is not None)
    assert fold.tokens_after == pytest.approx(int(estimate_tokens(world.model, after)), rel=0.08)


def test_break_of_the_prompt_cache_by_a_fold_is_named_fold() -> None:
    world = World(reading(58), 10_000)
    world.cached = True
    result = agent_of(world, compaction=Compaction([drop_oldest()], window=5_000, to=0.7))(question="Read.")
    run = AgentRun.of(result)
    assert len(run.history.folds) >= 2
    assert [(found.place, found.why) for found in run.cache.breaks] == [
        ("tools" if number == 0 else "turn 1", "fold") for number in range(len(run.history.folds))
    ]
    assert not [warning for warning in sigwire.CallReport.of(result).warnings if warning.feature == "prompt_cache"]
