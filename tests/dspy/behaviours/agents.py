"""Behaviours of DSPy: ReAct and ReActV2."""

import json

import dspy
import pydantic
from dspy.utils.dummies import DummyLM

from tests.dspy.behaviours.support import ON_DSPY, behaviour, raises


def R(name, args=None, thought="t"):
    return {"next_thought": thought, "next_tool_name": name, "next_tool_args": args or {}}


@behaviour
def react_pydantic():
    class Info(pydantic.BaseModel):
        name: str
        date: str
        who: dict[str, str]

    def invite(participant: str, info: Info):
        "Invite."
        return f"{participant} to {info.name}"

    a = dspy.ReAct("participant, info: str -> event", tools=[invite])
    args = {"participant": "Al", "info": {"name": "Fair", "date": "2024", "who": {"Al": "a"}}}
    with dspy.context(lm=DummyLM([R("invite", args), R("finish"), {"reasoning": "r", "event": "ok"}])):
        r = a(participant="Al", info="x")
    assert (
        r.event == "ok"
        and r.trajectory["observation_0"] == "Al to Fair"
        and r.trajectory["tool_args_0"] == args
        and r.trajectory["observation_1"] == "Completed."
    )


@behaviour
def react_nohint():
    def foo(a, b):
        "Add."
        return a + b

    a = dspy.ReAct("a, b -> c: int", tools=[foo])
    with dspy.context(lm=DummyLM([R("foo", {"a": 1, "b": 2}), R("finish"), {"reasoning": "r", "c": 3}])):
        r = a(a=1, b=2)
    assert r.c == 3 and r.trajectory["observation_0"] == 3 and r.trajectory["tool_name_1"] == "finish"


@behaviour
def react_trajectory_keys():
    def foo(a, b):
        return a + b

    a = dspy.ReAct("a, b -> c: int", tools=[foo])
    with dspy.context(lm=DummyLM([R("foo", {"a": 1, "b": 2}), R("finish"), {"reasoning": "r", "c": 3}])):
        r = a(a=1, b=2)
    assert list(r.trajectory) == [
        f"{k}_{i}" for i in range(2) for k in ("thought", "tool_name", "tool_args", "observation")
    ], list(r.trajectory)


@behaviour
def react_error():
    def foo(a, b):
        raise Exception("tool error")

    a = dspy.ReAct("a, b -> c: int", tools=[foo])
    with dspy.context(lm=DummyLM([R("foo", {"a": 1, "b": 2}), R("foo", {"a": 1, "b": 2}), {"reasoning": "r", "c": 3}])):
        r = a(a=1, b=2, max_iters=2)
    assert (
        "tool error" in r.trajectory["observation_0"] and "tool error" in r.trajectory["observation_1"] and r.c == 3
    ), r.trajectory


@behaviour
async def react_async():
    async def foo(a: int, b: int) -> int:
        return a + b

    a = dspy.ReAct("a, b -> c: int", tools=[foo])
    with dspy.context(lm=DummyLM([R("foo", {"a": 1, "b": 2}), R("finish"), {"reasoning": "r", "c": 3}])):
        r = await a.acall(a=1, b=2)
    assert r.c == 3 and r.trajectory["observation_0"] == 3


@behaviour
async def react_async_error():
    async def foo(a, b):
        raise Exception("tool error")

    a = dspy.ReAct("a, b -> c: int", tools=[foo])
    with dspy.context(lm=DummyLM([R("foo", {"a": 1, "b": 2}), R("foo", {"a": 1, "b": 2}), {"reasoning": "r", "c": 3}])):
        r = await a.acall(a=1, b=2, max_iters=2)
    assert "tool error" in r.trajectory["observation_1"]


@behaviour
def react_truncate():
    def echo(text: str):
        "Echo."
        return text

    a = dspy.ReAct("q -> a", tools=[echo])
    n = [0]

    def fake(**k):
        n[0] += 1
        if n[0] < 3:
            return dspy.Prediction(next_thought="go on", next_tool_name="echo", next_tool_args={"text": "x"})
        if n[0] == 3:
            raise (
                dspy.ContextWindowExceededError(message="long", model="m")
                if ON_DSPY
                else dspy.ContextWindowExceededError("long")
            )
        return dspy.Prediction(next_thought="done", next_tool_name="finish", next_tool_args={})

    a.react = fake
    a.extract = lambda **k: dspy.Prediction(a="fin")
    r = a(q="?")
    assert "thought_0" not in r.trajectory and "thought_2" in r.trajectory and r.a == "fin"


@behaviour
def react_tools_dict():
    a = dspy.ReAct("q -> a", tools=[len])
    assert "len" in a.tools and isinstance(a.tools["len"], dspy.Tool)


@behaviour
def react_finish_tool():
    a = dspy.ReAct("q -> a", tools=[])
    assert "finish" in a.tools


@behaviour
def react_maxiters():
    def foo(a):
        return a

    a = dspy.ReAct("q -> a", tools=[foo], max_iters=3)
    assert a.max_iters == 3


@behaviour
def react_image():
    img = dspy.Image("https://example.com/i.png")

    def shot() -> dspy.Image:
        "Take."
        return img

    a = dspy.ReAct("q -> a", tools=[shot])
    lm = DummyLM([R("shot"), R("finish"), {"reasoning": "r", "a": "ok"}])
    with dspy.context(lm=lm):
        r = a(q="?")
    assert r.trajectory["observation_0"] == img and "example.com/i.png" in str(lm.history[1]["messages"][-1]) + str(
        lm.history[1]["messages"]
    )


TC = dspy.ToolCalls.from_dict_list


def V(name, args, thought="t"):
    return {"next_thought": thought, "tool_calls": TC([{"name": name, "args": args}])}


def look(query: str) -> str:
    return f"found {query}"


@behaviour
def react_v2_submit_tool():
    a = dspy.ReActV2("question -> answer", tools=[])
    assert a.tools["submit"](answer="P") == {"answer": "P"}


@behaviour
def react_v2_loop():
    lm = DummyLM([V("look", {"query": "cats"}), V("submit", {"answer": "found cats"})])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        p = dspy.ReActV2("question -> answer", tools=[look])(question="cats")
    assert p.answer == "found cats" and p.termination_reason == "submit"


@behaviour
def react_v2_history():
    lm = DummyLM([V("look", {"query": "cats"}), V("submit", {"answer": "found cats"})])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        p = dspy.ReActV2("question -> answer", tools=[look])(question="cats")
    assert (
        sum("question" in e for e in p.history.messages) == 1 and p.history.messages[0]["tool_calls"].tool_calls[0].id
    )


@behaviour
def react_v2_top_args():
    lm = DummyLM(
        [
            {"next_thought": "t", "tool_calls": {"name": "look", "arguments": {"query": "cats"}}},
            V("submit", {"answer": "ok"}),
        ]
    )
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_native_function_calling=False)):
        p = dspy.ReActV2("question -> answer", tools=[look])(question="cats")
    assert p.answer == "ok" and p.termination_reason == "submit"


@behaviour
def react_v2_wrapped():
    lm = DummyLM(
        [{"next_thought": "t", "tool_calls": {"tool_calls": [{"name": "submit", "arguments": {"answer": "done"}}]}}]
    )
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_native_function_calling=False)):
        p = dspy.ReActV2("question -> answer", tools=[])(question="cats")
    assert p.answer == "done"


@behaviour
def react_v2_unknown():
    lm = DummyLM([V("missing", {"q": 1}), V("submit", {"answer": "done"})])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        p = dspy.ReActV2("question -> answer", tools=[])(question="cats")
    assert p.answer == "done"


@behaviour
def react_v2_old_history():
    lm = DummyLM([V("submit", {"answer": "done"})])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        p = dspy.ReActV2("question -> answer", tools=[])(
            question="now", history=dspy.History(messages=[{"question": "old", "answer": "x"}])
        )
    assert p.answer == "done"


class Native(dspy.BaseLM):
    def __init__(self, calls, **k):
        super().__init__("native", "chat", 0.0, 1000, True)
        self.calls = []
        self.script = calls

    @property
    def supports_function_calling(self):
        return True

    def forward(self, prompt=None, messages=None, **k):
        from types import SimpleNamespace as N

        self.calls.append({"messages": messages, "kwargs": k})
        cs = self.script[min(len(self.calls), len(self.script)) - 1]
        return N(
            choices=[
                N(
                    message=N(
                        content=None,
                        tool_calls=[
                            N(id=i, type="function", function=N(name=n, arguments=json.dumps(a))) for i, n, a in cs
                        ],
                    ),
                    finish_reason="tool_calls",
                )
            ],
            usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            model="native",
        )


@behaviour
def react_v2_native():
    lm = Native([[("p1", "look", {"query": "cats"})], [("p2", "submit", {"answer": "found cats"})]])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_native_function_calling=True)):
        p = dspy.ReActV2("question -> answer", tools=[look])(question="cats")
    assert p.answer == "found cats" and any(
        m["role"] == "tool" and m["tool_call_id"] == "p1" for m in lm.calls[1]["messages"]
    )


@behaviour
def react_v2_parallel():
    lm = Native(
        [[("p1", "look", {"query": "cats"}), ("p2", "look", {"query": "dogs"})], [("p3", "submit", {"answer": "both"})]]
    )
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_native_function_calling=True)):
        p = dspy.ReActV2("question -> answer", tools=[look])(question="x")
    assert [m["tool_call_id"] for m in lm.calls[1]["messages"] if m["role"] == "tool"] == ["p1", "p2"]


@behaviour
def react_v2_reserved():
    for r in ("history", "termination_reason"):
        with raises(ValueError, match=r):
            dspy.ReActV2(f"question -> answer, {r}: str", tools=[])
    for r in ("history", "tools"):
        with raises(ValueError, match=r):
            dspy.ReActV2(f"{r}, question -> answer", tools=[])


@behaviour
async def react_v2_async():
    async def alook(query: str) -> str:
        return f"found {query}"

    lm = DummyLM([V("alook", {"query": "cats"}), V("submit", {"answer": "ok"})])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        p = (
            await dspy.ReActV2("question -> answer", tools=[alook])(question="cats")
            if False
            else await dspy.ReActV2("question -> answer", tools=[alook]).acall(question="cats")
        )
    assert p.answer == "ok"
