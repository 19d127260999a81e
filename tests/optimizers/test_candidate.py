"""Candidates: data with a digest, the slots of a program, and the application to a copy that shares what cannot be copied."""

from __future__ import annotations

import asyncio
import json
import pickle
import random
import socket
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire import ChainOfThought, ConfigurationError, Example, Module, Predict, ReAct, Tool, ToolText
from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.journal.packing import digest_of
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.optimizers.candidate import Candidate, Demo, applied, candidate_of, check_text, slots
from sigwire.testing import FakeProvider

NAMES = ["route", "self", "agent.react", "steps[0].predict", "parts['a.b']"]
TEXTS = st.dictionaries(st.sampled_from([f"{name}.instructions" for name in NAMES]), st.text())
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def made_demo(fields: dict[str, Any], row: str) -> Demo:
    return Demo(Example(fields).with_inputs("a").to_json(), row)


DEMOS = st.builds(
    made_demo,
    st.dictionaries(st.sampled_from(["a", "b", "augmented"]), PLAIN),
    st.text(),
)
CANDIDATES = st.builds(
    Candidate,
    TEXTS,
    st.dictionaries(st.sampled_from(NAMES), st.lists(DEMOS, max_size=2).map(tuple)),
    st.dictionaries(st.sampled_from(["temperature", "top_p"]), st.floats(0, 1)),
    st.lists(st.text(), max_size=2).map(tuple),
)


def shuffled(mapping: Mapping[str, Any], seed: int) -> dict[str, Any]:
    items = list(mapping.items())
    random.Random(seed).shuffle(items)
    return dict(items)


# --- data -----------------------------------------------------------------------------------------------


@given(CANDIDATES, st.integers())
def test_digest_does_not_depend_on_order_and_parents(candidate: Candidate, seed: int) -> None:
    texts, demos = shuffled(candidate.texts, seed), shuffled(candidate.demos, seed)
    other = Candidate(texts, demos, shuffled(candidate.lm_options, seed))
    assert other == candidate
    assert hash(other) == hash(candidate)
    assert other.digest == candidate.digest


@given(CANDIDATES)
def test_candidate_survives_json_and_pickle(candidate: Candidate) -> None:
    read = Candidate.from_json(json.loads(json.dumps(candidate.to_json())))
    assert read == candidate
    assert read.parents == candidate.parents
    assert read.demos == candidate.demos
    assert pickle.loads(pickle.dumps(candidate)) == candidate


@given(CANDIDATES, CANDIDATES)
def test_changes_are_empty_only_between_equal_candidates(one: Candidate, other: Candidate) -> None:
    assert bool(one.changes(other)) == (one != other)
    assert one.changes(one) == {}


def test_added_text_has_the_candidate_as_its_parent() -> None:
    base = Candidate()
    child = base.with_text("self.instructions", "Be brief.")
    assert child.parents == (base.digest,)
    assert child.with_demos("self", [], "x", "y").parents == ("x", "y")
    assert child.with_lm_options({"temperature": 0.5}).lm_options == {"temperature": 0.5}
    assert base == Candidate()


def test_candidate_keeps_its_content_when_the_given_dict_changes() -> None:
    texts = {"self.instructions": "a"}
    candidate = Candidate(texts)
    texts["self.instructions"] = "b"
    assert candidate == Candidate({"self.instructions": "a"})


# --- programs -------------------------------------------------------------------------------------------


class Session:
    """A session of an MCP server, with a lock and a socket, which no copy may touch."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.socket = socket.socketpair()

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"content": [{"type": "text", "text": f"{name} {arguments['n']}"}]}

    def close(self) -> None:
        for end in self.socket:
            end.close()


def search(query: str, k: int = 3) -> str:
    """Search the web.

    Args:
        query: The query.
    """
    return query


async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "done"


class Program(Module):
    def __init__(self, session: Session, lm: FakeLM) -> None:
        self.session, self.lm = session, lm
        lock = threading.Lock()

        def guarded(n: int) -> int:
            """Add one."""
            with lock:
                return n + 1

        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        mcp = Tool.from_mcp_tool(session, {"name": "math.half", "description": "Half.", "inputSchema": schema})
        self.steps_: list[Any] = [
            Predict("question -> query", lm=lm, temperature=0.2),
            ChainOfThought("query -> answer: int"),
        ]
        self.agent: ReAct[..., Any] = ReAct(
            "question -> answer", tools=[search, wait, guarded, mcp, Tool(len, name="size", tunable=False)]
        )
        self.offer: Predict[..., Any] = Predict("question, tools: list[Tool] -> tool_calls: ToolCalls")
        self.offer.demos = [Example(question="?", tool_calls=ToolCalls([ToolCall("", "search", {"query": "x"})]))]

    def forward(self, question: str) -> Any:
        return self.agent(question=question)


@pytest.fixture
def program() -> Any:
    session = Session()
    yield Program(session, FakeLM([]))
    session.close()


EXAMPLES = [
    Example(question="?", tools=[Tool(search, name="find")]),
    Example(question="?", tools={"pause": wait}),
    Example(question="?", tools=["a name from a file"]),
    Example(question="?"),
]
WIRES = {
    "openai": ("openai/gpt-4.1-mini", None),
    "openai-responses": ("openai/gpt-4.1-mini", "responses"),
    "anthropic": ("anthropic/claude-haiku-4-5", None),
    "gemini": ("gemini/gemini-3-flash", None),
    "ollama": ("ollama/qwen3", None),
}


def full_candidate(program: Module, examples: Any = EXAMPLES) -> Candidate:
    """A candidate that changes every slot."""
    texts = slots(program, examples, tune={"instructions", "fields", "tools", "tool_names", "demos"})
    changed = {slot: f"n{number}" if slot.endswith(".alias") else f"new {number}" for number, slot in enumerate(texts)}
    demo = Demo(Example(augmented=True, question="2+2?", query="sum").with_inputs("question").to_json(), "r1")
    return Candidate(changed, {"steps_[0]": (demo,)}, {"temperature": 0.9})


def test_slots_are_the_texts_of_the_program(program: Program) -> None:
    found = slots(program, EXAMPLES)
    assert found["steps_[0].instructions"] == program.steps_[0].signature.instructions
    assert found["agent.react.tools.search.desc"] == "Search the web."
    assert found["agent.react.tools.search.args.query"] == "The query."
    assert found["agent.react.tools.search.args.k"] == ""
    assert found["agent.react.tools.math.half.desc"] == "Half."
    assert found["agent.react.tools.math.half.args.n"] == ""
    assert found["offer.tools.find.desc"] == "Search the web."
    assert found["offer.tools.pause.args.seconds"] == ""
    assert not any(".size." in slot or "submit" in slot or slot.endswith(".alias") for slot in found)
    assert not any(slot.startswith(("offer.fields.tools", "agent.react.fields.history")) for slot in found)


def test_tune_narrows_the_slots(program: Program) -> None:
    assert {slot.rpartition(".")[2] for slot in slots(program, tune={"instructions"})} == {"instructions"}
    assert slots(program, tune={"demos"}) == {}
    assert slots(program, tune={"tool_names"})["agent.react.tools.search.alias"] == "search"
    with pytest.raises(ConfigurationError, match="'prompts'"):
        slots(program, tune={"prompts"})


def test_slots_have_the_texts_that_an_earlier_candidate_set(program: Program) -> None:
    candidate = full_candidate(program)
    found = slots(applied(program, candidate), EXAMPLES, tune={"instructions", "fields", "tools", "tool_names"})
    assert found == candidate.texts


def test_application_does_not_change_the_student(program: Program) -> None:
    before, configs = digest_of(program.dump_state()), [dict(each.config) for each in program.predictors()]
    applied(program, full_candidate(program)).predictors()[0].config["top_p"] = 1
    assert digest_of(program.dump_state()) == before
    assert [each.config for each in program.predictors()] == configs
    assert program.agent.toolbox.tools["search"].description == "Search the web."


def test_candidate_applied_twice_gives_equal_programs(program: Program) -> None:
    candidate = full_candidate(program)
    once = applied(program, candidate)
    assert digest_of(applied(program, candidate).dump_state()) == digest_of(once.dump_state())
    assert digest_of(applied(once, candidate).dump_state()) == digest_of(once.dump_state())


def test_baseline_changes_nothing(program: Program) -> None:
    assert applied(program, candidate_of(program)).dump_state() == program.dump_state()


def test_application_shares_models_tools_and_clients(program: Program) -> None:
    made = applied(program, full_candidate(program))
    assert made.lm is program.lm
    assert made.session is program.session
    assert made.predictors()[0].lm is program.lm
    assert all(made.agent.toolbox.tools[name] is tool for name, tool in program.agent.toolbox.tools.items())
    assert made.agent is not program.agent
    assert isinstance(made.agent.react.tool_texts["search"], ToolText)
    assert program.agent.react.tool_texts == {}


def test_copy_uses_the_plan_of_the_student(program: Program) -> None:
    program.steps_[0].lm = FakeLM([{"query": "sum"}] * 2)
    program.steps_[0](question="2+2?")
    made = applied(program, Candidate())
    assert vars(made.steps_[0])["_plan"] is vars(program.steps_[0])["_plan"]
    assert made.steps_[0](question="2+2?").query == "sum"


@pytest.mark.parametrize("awaited", [False, True])
def test_applied_agent_runs_tools_with_sessions_locks_and_async_handlers(program: Program, awaited: bool) -> None:
    made = applied(program, full_candidate(program))
    names = {name: text.alias for name, text in made.agent.react.tool_texts.items()}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("math.half", {"n": 4}),
        ("guarded", {"n": 1}),
        ("wait", {"seconds": 0}),
        ("search", {"query": "q"}),
    ]
    made.set_lm(
        FakeLM(
            [
                [ToolCall(f"call_{name}", str(names[name]), arguments) for name, arguments in calls],
                ToolCall("call_s", "submit", {"answer": "done"}),
            ]
        )
    )
    result = asyncio.run(made.acall(question="?")) if awaited else made(question="?")
    assert [(each.name, each.content) for each in result.steps[0].results] == [
        ("math.half", "math.half 4"), ("guarded", 2), ("wait", "done"), ("search", "q"),
    ]  # fmt: skip


def test_demos_and_options_are_set_on_the_copy(program: Program) -> None:
    made = applied(program, full_candidate(program))
    first, *others = made.predictors()
    assert first.demos == [Example(augmented=True, question="2+2?", query="sum")]
    assert first.config == {"temperature": 0.9}
    assert all(each.config["temperature"] == 0.9 for each in others)
    assert made.offer.demos == program.offer.demos
    assert applied(program, Candidate(demos={"offer": ()})).offer.demos == []


@pytest.mark.parametrize("wire", WIRES)
def test_demo_with_tool_calls_is_encoded_for_every_wire(wire: str) -> None:
    student: Predict[..., Any] = Predict("question, tools: list[Tool] -> tool_calls: ToolCalls")
    calls = ToolCalls([ToolCall("call_0", "search", {"query": "an old query"})])
    demo = Demo.from_json(Demo(Example(question="Before?", tool_calls=calls).to_json(), "r1").to_json())
    made = applied(student, Candidate({"self.tools.search.alias": "look_up"}, {"self": (demo,)}))
    name, own_wire = WIRES[wire]
    with FakeProvider([ToolCall("call_1", "look_up", {"query": "q"})]) as provider:
        made.set_lm(LM(name, base_url=provider.url(wire), api_key="any", wire=own_wire))
        assert made(question="?", tools=[search]).tool_calls[0].name == "search"
        body = json.dumps(provider.requests[0].body)
    assert "an old query" in body
    assert "look_up" in body


def test_predictor_alone_is_named_self() -> None:
    predict = Predict("question -> answer")
    assert set(slots(predict)) == {"self.instructions", "self.fields.question.desc", "self.fields.answer.desc"}
    made = applied(predict, Candidate({"self.fields.answer.desc": "one word"}))
    assert made.signature.spec.by_name["answer"].description == "one word"


@pytest.mark.parametrize(
    "slot",
    [
        "other.instructions",
        "steps_[0]",
        "steps_[0].demos",
        "steps_[0].fields.none.desc",
        "steps_[0].fields.query",
        "steps_[0].instructions.more",
        "steps_[0].tools.search.desc",
        "agent.react.tools.search",
        "agent.react.tools.search.timeout",
    ],
)
def test_unknown_slot_is_refused(program: Program, slot: str) -> None:
    with pytest.raises(ConfigurationError, match="The candidate has the slot"):
        applied(program, Candidate({slot: "text"}))


def test_unknown_predictor_of_demos_is_refused(program: Program) -> None:
    with pytest.raises(ConfigurationError, match="demos of 'other'"):
        applied(program, Candidate(demos={"other": ()}))


def test_program_without_predictors_has_no_candidate() -> None:
    class Bare(Module):
        def forward(self) -> int:
            return 1

    with pytest.raises(ConfigurationError, match="no predictors"):
        candidate_of(Bare())


@pytest.mark.parametrize(
    ("slot", "text", "problem"),
    [
        ("p.instructions", "", "empty"),
        ("p.instructions", "x" * 5000, None),
        ("p.tools.search.desc", "x" * 1025, "1025 characters"),
        ("p.tools.search.args.query", "x" * 1024, None),
        ("p.tools.search.alias", "web search", "not a name"),
        ("p.tools.search.alias", "submit", "reserved"),
        ("p.tools.search.alias", "look_up", None),
    ],
)
def test_text_is_checked_for_its_slot(slot: str, text: str, problem: str | None) -> None:
    found = check_text(slot, text)
    assert found is None if problem is None else problem in str(found)


# --- frozen predictors ----------------------------------------------------------------------------------


class TwoSteps(Module):
    """A program of two predictors, the second of them frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Predict("a -> b"), Predict("b -> c")
        self.second._compiled = True


def test_frozen_predictor_has_no_texts_and_takes_no_options() -> None:
    program = TwoSteps()
    assert {slot.partition(".")[0] for slot in slots(program)} == {"first"}
    made = applied(program, Candidate(lm_options={"temperature": 0.5}))
    assert (made.first.config, made.second.config) == ({"temperature": 0.5}, {})
    with pytest.raises(ConfigurationError, match="Its predictors are: first"):
        applied(program, Candidate({"second.instructions": "Be brief."}))
    program.first._compiled = True
    with pytest.raises(ConfigurationError, match="nothing to optimize"):
        candidate_of(program)


def test_program_that_was_compiled_is_tuned_again() -> None:
    program = Predict("a -> b")
    program._compiled = True
    assert "self.instructions" in slots(program)
