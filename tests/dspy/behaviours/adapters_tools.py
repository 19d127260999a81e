"""Behaviours of DSPy: tools and calls in each adapter, and their replay."""

import contextlib
import json

import dspy
from dspy.utils import DummyLM

from tests.dspy.behaviours.support import Scripted, behaviour, call, message, raises, sub, text_of

BAML = sub("adapters.baml_adapter").BAMLAdapter

QA = dspy.make_signature("question->answer")

Q = {"question": "Capital?"}


def fmt(adapter, sig, demos, inputs, lm_kwargs=None, lm=None):
    """Return the messages and options that reach the model."""
    lm = lm or Scripted("[[ ## answer ## ]]\nx", native=False)
    with contextlib.suppress(Exception):
        adapter(lm, dict(lm_kwargs or {}), sig, demos, inputs)
    m, k = lm.seen[0]
    return m, k


for name, mk in [
    ("chat", lambda: dspy.ChatAdapter()),
    ("json", lambda: dspy.JSONAdapter()),
    ("xml", lambda: dspy.XMLAdapter()),
    ("baml", lambda: BAML()),
]:

    def s(mk=mk):
        a = mk()
        lm = DummyLM([{"answer": "Paris"}], adapter=a)
        with dspy.context(adapter=a):
            assert a(lm, {}, QA, [], Q) == [{"answer": "Paris"}]

    s.__name__ = f"{name}_sync"
    behaviour(s)

    async def s(mk=mk):
        a = mk()
        lm = DummyLM([{"answer": "Paris"}], adapter=a)
        with dspy.context(adapter=a):
            assert await a.acall(lm, {}, QA, [], Q) == [{"answer": "Paris"}]

    s.__name__ = f"{name}_async"
    behaviour(s)


def search(query: str, k: int = 3) -> str:
    """Search for documents."""
    return query


class ToolSig(dspy.Signature):
    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    answer: str = dspy.OutputField()
    tool_calls: dspy.ToolCalls = dspy.OutputField()


class CallSig(dspy.Signature):
    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    tool_calls: dspy.ToolCalls = dspy.OutputField()


TI = {"question": "Weather?", "tools": [dspy.Tool(search)]}

for name, mk in [
    ("chat", lambda **k: dspy.ChatAdapter(**k)),
    ("json", lambda **k: dspy.JSONAdapter(**k)),
    ("xml", lambda **k: dspy.XMLAdapter(**k)),
]:

    def s(mk=mk):
        m = mk(use_native_function_calling=False).format(ToolSig, [], TI)
        t = m[0]["content"] + text_of(m[1]["content"])
        assert len(m) == 2 and "Weather?" in t and "search" in t and "Search for documents." in t and "query" in t

    s.__name__ = f"{name}_tool_text"
    behaviour(s)

    def s(mk=mk):
        m = mk(use_native_function_calling=False).format(ToolSig, [], TI)
        assert dspy.ToolCalls.description() in m[0]["content"] and "{'query': {'type': 'string'}" in text_of(
            m[1]["content"]
        )

    s.__name__ = f"{name}_tool_text_exact"
    behaviour(s)

    def s(mk=mk):
        m, k = fmt(mk(use_native_function_calling=True), ToolSig, [], TI, lm=Scripted("x", native=True))
        assert (
            k["tools"][0]["function"]["name"] == "search"
            and k["tools"][0]["function"]["parameters"]["required"] == ["query"]
            and "tool_calls" not in m[0]["content"]
            and "Search for" not in text_of(m[1]["content"])
        )

    s.__name__ = f"{name}_tool_native"
    behaviour(s)

    def s(mk=mk):
        m, k = fmt(
            mk(use_native_function_calling=True, parallel_tool_calls=True),
            CallSig,
            [],
            TI,
            lm=Scripted("x", native=True),
        )
        assert k["tool_choice"] == "auto" and k["parallel_tool_calls"] is True

    s.__name__ = f"{name}_parallel"
    behaviour(s)

    def s(mk=mk):
        lm = Scripted(message(None, [call("search", '{"query":"Paris"}', "c9")]), native=True)
        r = mk(use_native_function_calling=True)(lm, {}, ToolSig, [], TI)
        assert (
            r[0]["tool_calls"]
            == dspy.ToolCalls(tool_calls=[dspy.ToolCalls.ToolCall(id="c9", name="search", args={"query": "Paris"})])
            and r[0]["answer"] is None
        )

    s.__name__ = f"{name}_calls_answer_none"
    behaviour(s)

    def s(mk=mk, name=name):
        text = {"chat": "[[ ## answer ## ]]\nParis", "json": "{'answer': 'Paris'}", "xml": "<answer>Paris</answer>"}[
            name
        ]
        r = mk(use_native_function_calling=True)(Scripted(text, native=True), {}, ToolSig, [], TI)
        assert r[0]["answer"] == "Paris" and r[0]["tool_calls"] is None, r

    s.__name__ = f"{name}_no_calls_none"
    behaviour(s)


@behaviour
def parallel_override():
    m, k = fmt(
        dspy.ChatAdapter(use_native_function_calling=True, parallel_tool_calls=True),
        CallSig,
        [],
        TI,
        {"parallel_tool_calls": False},
        Scripted("x", native=True),
    )
    assert k["tool_choice"] == "auto" and k["parallel_tool_calls"] is False


@behaviour
def vague_list():
    a = dspy.ChatAdapter(use_native_function_calling=False)
    for t in (
        "[{'name': 'get', 'args': {'city': 'Paris'}]",
        "{'name': 'get', 'args': {'city': 'Paris'}}",
        '{"tool_calls": [{"name": "get", "args": {"city": "Paris"}}]}',
    ):

        def get(city: str):
            return city

        r = a(Scripted("[[ ## tool_calls ## ]]\n" + t), {}, CallSig, [], {"question": "q", "tools": [dspy.Tool(get)]})
        c = r[0]["tool_calls"].tool_calls[0]
        assert (c.name, c.args) == ("get", {"city": "Paris"}), t


@behaviour
def vague_eq():
    def get(city: str):
        return city

    r = dspy.ChatAdapter(use_native_function_calling=False)(
        Scripted("[[ ## tool_calls ## ]]\n{'name': 'get', 'args': {'city': 'Paris'}}"),
        {},
        CallSig,
        [],
        {"question": "q", "tools": [dspy.Tool(get)]},
    )
    assert r[0]["tool_calls"] == dspy.ToolCalls(
        tool_calls=[dspy.ToolCalls.ToolCall(name="get", args={"city": "Paris"})]
    ), r[0]["tool_calls"]


@behaviour
def call_with_unstructured():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        tools: list[dspy.Tool] = dspy.InputField()
        next_thought: dspy.Reasoning = dspy.OutputField()
        tool_calls: dspy.ToolCalls = dspy.OutputField()

    r = dspy.ChatAdapter(use_native_function_calling=True)(
        Scripted(
            message("I'll search.", [call("search", '{"query": "t"}')], reasoning="I need."), native=True, reasons=True
        ),
        {},
        S,
        [],
        TI,
    )
    assert r[0]["tool_calls"].tool_calls[0].id == "call_1" and r[0]["next_thought"] == dspy.Reasoning(
        content="I need."
    ), r


@behaviour
def call_with_structured():
    r = dspy.ChatAdapter(use_native_function_calling=True)(
        Scripted(
            message("[[ ## answer ## ]]\nI should.\n\n[[ ## completed ## ]]", [call("search", '{"query": "t"}')]),
            native=True,
        ),
        {},
        ToolSig,
        [],
        TI,
    )
    assert r[0]["answer"] == "I should." and r[0]["tool_calls"].tool_calls[0].id == "call_1"


@behaviour
def call_repaired_arguments():
    r = dspy.ChatAdapter(use_native_function_calling=True)(
        Scripted(message(None, [call("search", '{"query": "cats",}', "c")]), native=True), {}, CallSig, [], TI
    )
    assert r[0]["tool_calls"] == dspy.ToolCalls(
        tool_calls=[dspy.ToolCalls.ToolCall(id="c", name="search", args={"query": "cats"})]
    )


@behaviour
def call_only_no_text():
    r = dspy.ChatAdapter(use_native_function_calling=True)(
        Scripted(message(None, [call("search", '{"query": "t"}')]), native=True), {}, CallSig, [], TI
    )
    assert r == [
        {
            "tool_calls": dspy.ToolCalls(
                tool_calls=[dspy.ToolCalls.ToolCall(id="call_1", name="search", args={"query": "t"})]
            )
        }
    ]


@behaviour
def no_tools_input():
    with raises(ValueError):
        dspy.ChatAdapter(use_native_function_calling=True)(
            Scripted("x", native=True), {}, dspy.Signature("question -> calls: dspy.ToolCalls"), [], Q
        )


class HistSig(dspy.Signature):
    question: str = dspy.InputField()
    history: dspy.History = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    next_thought: dspy.Reasoning = dspy.OutputField()
    tool_calls: dspy.ToolCalls = dspy.OutputField()


def hist(results=True, id="call_1", question=True, thought=True, n=1):
    calls = [
        dspy.ToolCalls.ToolCall(id=id if n == 1 else f"call_{i + 1}", name="search", args={"query": f"cats{i}"})
        for i in range(n)
    ]
    r = (
        dspy.ToolCallResults.from_tool_calls_and_values(calls, [{"items": [f"cat{i}"]} for i in range(n)])
        if results is True
        else results
    )
    turn = {}
    if question:
        turn["question"] = "Q1"
    if thought:
        turn["next_thought"] = dspy.Reasoning(content="I should search.")
    turn["tool_calls"] = dspy.ToolCalls(tool_calls=calls, tool_call_results=r)
    return dspy.History(messages=[turn])


def replay(h, adapter=None, native=True, sig=HistSig):
    i = {"history": h, "tools": [dspy.Tool(search)]}
    if "question" in sig.input_fields:
        i["question"] = "Q2"
    return fmt(
        adapter or dspy.ChatAdapter(use_native_function_calling=native), sig, [], i, lm=Scripted("x", native=native)
    )


@behaviour
def replay_native():
    m, k = replay(hist())
    assert (
        m[1]["role"] == "user"
        and "Q1" in text_of(m[1]["content"])
        and m[2]["role"] == "assistant"
        and "I should search." in m[2]["content"]
    )
    c = m[2]["tool_calls"][0]
    assert (
        c["id"] == "call_1"
        and c["type"] == "function"
        and c["function"]["name"] == "search"
        and json.loads(c["function"]["arguments"]) == {"query": "cats0"}
    )
    assert (
        m[3]["role"] == "tool"
        and m[3]["tool_call_id"] == "call_1"
        and json.loads(m[3]["content"]) == {"items": ["cat0"]}
    )
    assert m[4]["role"] == "user" and "Q2" in m[4]["content"] and "tools" in k


@behaviour
def replay_native_parallel():
    m, _ = replay(hist(n=2))
    assert [c["id"] for c in m[2]["tool_calls"]] == ["call_1", "call_2"] and [
        (x["role"], x["tool_call_id"]) for x in m[3:5]
    ] == [("tool", "call_1"), ("tool", "call_2")]


@behaviour
def replay_native_no_user():
    class S(dspy.Signature):
        history: dspy.History = dspy.InputField()
        tools: list[dspy.Tool] = dspy.InputField()
        next_thought: dspy.Reasoning = dspy.OutputField()
        tool_calls: dspy.ToolCalls = dspy.OutputField()

    m, _ = replay(hist(question=False, thought=False), sig=S)
    assert m[1]["role"] == "assistant" and m[1]["content"] is None and m[2]["role"] == "tool", m


for i, (id, res) in enumerate([("call_1", None), ("call_1", "other"), (None, "none")]):

    def s(id=id, res=res):
        R = dspy.ToolCallResults
        if res:
            res = R(
                tool_call_results=[
                    R.ToolCallResult(call_id="other" if res == "other" else None, name="search", value="x")
                ]
            )
        m, _ = replay(hist(results=res, id=id))
        assert (
            all("tool_calls" not in x for x in m)
            and all(x["role"] != "tool" for x in m)
            and m[2]["role"] == "assistant"
            and "I should search." in m[2]["content"]
        )

    s.__name__ = f"replay_unmatched_{i}"
    behaviour(s)

for name, mk in [
    ("chat", lambda: dspy.ChatAdapter(use_native_function_calling=False)),
    ("json", lambda: dspy.JSONAdapter(use_native_function_calling=False)),
]:

    def s(mk=mk):
        class S(dspy.Signature):
            question: str = dspy.InputField()
            history: dspy.History = dspy.InputField()
            tools: list[dspy.Tool] = dspy.InputField()
            next_thought: str = dspy.OutputField()
            tool_calls: dspy.ToolCalls = dspy.OutputField()

        m, k = replay(hist(), mk(), native=False, sig=S)
        assert all(x["role"] != "tool" for x in m) and [x["role"] for x in m[1:]] == [
            "user",
            "assistant",
            "user",
            "user",
        ], [x["role"] for x in m]
        assert (
            "Q1" in m[1]["content"]
            and "search" in m[2]["content"]
            and "cat0" in m[3]["content"]
            and "Q2" not in m[3]["content"]
            and "Q2" in m[4]["content"]
            and "tools" not in k
        )

    s.__name__ = f"replay_text_{name}"
    behaviour(s)
