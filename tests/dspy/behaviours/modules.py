"""Behaviours of DSPy: programs: their parts, copies, files and histories."""

import asyncio
import json
import re
import threading

import dspy
from dspy.utils import DummyLM

from tests.dspy.behaviours.support import Scripted, behaviour, raises, sub

Example = dspy.Example

Module = dspy.Module


class Hop(dspy.Module):
    def __init__(self):
        super().__init__()
        self.predict1 = dspy.Predict("question -> query")
        self.predict2 = dspy.Predict("query -> answer")

    def forward(self, question):
        return self.predict2(query=self.predict1(question=question).query)


@behaviour
def module_init():
    assert Module()._compiled is False


@behaviour
def module_named():
    assert {n for n, _ in Hop().named_predictors()} == {"predict1", "predict2"}


@behaviour
def module_preds():
    assert len(Hop().predictors()) == 2 and all(isinstance(p, dspy.Predict) for p in Hop().predictors())


@behaviour
def module_forward():
    with dspy.context(lm=DummyLM({"What is 1+1?": {"query": "let me check"}, "let me check": {"answer": "2"}})):
        assert Hop()(question="What is 1+1?").answer == "2"


@behaviour
def module_nested():
    class H2(dspy.Module):
        def __init__(self):
            super().__init__()
            self.hop = Hop()

    assert {n for n, _ in H2().named_predictors()} == {"hop.predict1", "hop.predict2"}


@behaviour
def module_empty():
    m = Module()
    assert list(m.named_sub_modules()) == [("self", m)]


@behaviour
def module_single():
    m = Module()
    m.sub = Module()
    assert list(m.named_sub_modules()) == [("self", m), ("self.sub", m.sub)]


@behaviour
def module_levels():
    m = Module()
    m.sub = Module()
    m.sub.subsub = Module()
    assert [n for n, _ in m.named_sub_modules()] == ["self", "self.sub", "self.sub.subsub"]


@behaviour
def module_multi():
    m = Module()
    m.s1 = Module()
    m.s2 = Module()
    assert {n for n, _ in m.named_sub_modules()} == {"self", "self.s1", "self.s2"}


@behaviour
def module_other():
    m = Module()
    m.sub = Module()
    m.x = "no"
    assert [n for n, _ in m.named_sub_modules()] == ["self", "self.sub"]


def tree():
    root = Module()
    root.sub_module = Module()
    root.sub_module.nested_list = [Module(), {"key": Module()}]
    return root


@behaviour
def module_complex():
    root = tree()
    root.sub_module.nested_tuple = (Module(), [Module(), Module()])
    found = {n for n, _ in root.named_sub_modules()}
    assert found == {
        "self",
        "self.sub_module",
        "self.sub_module.nested_list[0]",
        "self.sub_module.nested_list[1][key]",
        "self.sub_module.nested_tuple[0]",
        "self.sub_module.nested_tuple[1][0]",
        "self.sub_module.nested_tuple[1][1]",
    }, found


@behaviour
def module_same():
    root = tree()
    same = Module()
    root.sub_module.nested_tuple = (Module(), [same, same])
    found = {n for n, _ in root.named_sub_modules()}
    assert "self.sub_module.nested_tuple[1][0]" in found and "self.sub_module.nested_tuple[1][1]" not in found


@behaviour
def module_set_by_name():
    f = sub("primitives.module").set_attribute_by_name
    root = tree()
    same = Module()
    root.sub_module.nested_tuple = (Module(), [same, same])
    for path in [
        "t",
        "sub_module.t",
        "sub_module.nested_list[0].t",
        "sub_module.nested_list[1]['key'].t",
        "sub_module.nested_tuple[0].t",
        "sub_module.nested_tuple[1][0].t",
    ]:
        f(root, path, True)
    assert (
        root.t is True
        and root.sub_module.t is True
        and root.sub_module.nested_list[1]["key"].t is True
        and root.sub_module.nested_tuple[1][1].t is True
    )


@behaviour
def module_dup():
    class Du(Module):
        def __init__(self):
            super().__init__()
            self.p0 = dspy.Predict("q -> a")
            self.p1 = self.p0

    assert len(Du().named_parameters()) == 1


@behaviour
def module_transactional(tmp):
    class Pr(dspy.Module):
        def __init__(self):
            super().__init__()
            self.a = dspy.ChainOfThought("question -> answer")
            self.b = dspy.ChainOfThought("question -> answer")

    s = Pr()
    e = Example(question="q", answer="a").with_inputs("question")
    s.a.predict.demos = [e]
    s.b.predict.demos = [e]
    s.save(str(tmp / "s.json"), save_program=False)
    raw = json.loads((tmp / "s.json").read_text())
    (tmp / "s.json").write_text(json.dumps({k: v for k, v in raw.items() if "b." not in k}))
    t = Pr()
    with raises(KeyError):
        t.load(str(tmp / "s.json"))
    assert t.a.predict.demos == []


@behaviour
def module_set_lm():
    h = Hop()
    lm = DummyLM([{}])
    h.set_lm(lm)
    assert h.predict1.lm is lm and h.get_lm() is lm


@behaviour
def module_get_lm_many():
    h = Hop()
    h.predict1.lm = DummyLM([{}])
    h.predict2.lm = DummyLM([{}])
    with raises(ValueError):
        h.get_lm()


@behaviour
def module_map():
    h = Hop()
    new = dspy.Predict("x -> y")
    h.map_named_predictors(lambda p: new)
    assert h.predict1 is new


@behaviour
def module_repr():
    assert "predict1" in repr(Hop())


@behaviour
def module_no_super():
    class N(dspy.Module):
        def __init__(self):
            self.p = dspy.Predict("q -> a")

    assert N().history == [] and N().callbacks == [] and N()._compiled is False


@behaviour
def module_cross_version(tmp):
    st = {
        "react": {
            "traces": [],
            "train": [],
            "demos": [
                {
                    "augmented": True,
                    "question": "x",
                    "trajectory": "",
                    "next_thought": "t",
                    "next_tool_name": "finish",
                    "next_tool_args": {},
                }
            ],
            "signature": {
                "instructions": "Imagine you are a detective.",
                "fields": [
                    {"prefix": "Question:", "description": "${question}"},
                    {"prefix": "Trajectory:", "description": "${trajectory}"},
                    {"prefix": "Next Thought:", "description": "${next_thought}"},
                    {"prefix": "Next Tool Name:", "description": "${next_tool_name}"},
                    {"prefix": "Next Tool Args:", "description": "${next_tool_args}"},
                ],
            },
            "lm": None,
        },
        "extract.predict": {
            "traces": [],
            "train": [],
            "demos": [{"question": "x", "trajectory": "t", "reasoning": "r", "answer": "a"}],
            "signature": {
                "instructions": "Given the very verbose",
                "fields": [
                    {"prefix": "Question:", "description": "${question}"},
                    {"prefix": "Trajectory:", "description": "${trajectory}"},
                    {"prefix": "Reasoning: Let's think step by step in order to", "description": "${reasoning}"},
                    {"prefix": "Answer:", "description": "${answer}"},
                ],
            },
            "lm": None,
        },
        "metadata": {"dependency_versions": {"python": "3.11", "dspy": "3.0.1", "cloudpickle": "3.1"}},
    }
    (tmp / "p.json").write_text(json.dumps(st))
    r = dspy.ReAct("question->answer", tools=[])
    r.load(tmp / "p.json")
    assert "Given the very verbose" in r.extract.predict.signature.instructions and len(r.extract.predict.demos) == 1


@behaviour
def module_cross_version_loop(tmp):
    st = {
        "react": {
            "traces": [],
            "train": [],
            "demos": [
                {
                    "augmented": True,
                    "question": "x",
                    "trajectory": "",
                    "next_thought": "t",
                    "next_tool_name": "finish",
                    "next_tool_args": {},
                }
            ],
            "signature": {
                "instructions": "Imagine you are a detective.",
                "fields": [
                    {"prefix": "Question:", "description": "${question}"},
                    {"prefix": "Trajectory:", "description": "${trajectory}"},
                    {"prefix": "Next Thought:", "description": "${next_thought}"},
                    {"prefix": "Next Tool Name:", "description": "${next_tool_name}"},
                    {"prefix": "Next Tool Args:", "description": "${next_tool_args}"},
                ],
            },
            "lm": None,
        },
        "extract.predict": {
            "traces": [],
            "train": [],
            "demos": [],
            "signature": {
                "instructions": "Given the very verbose",
                "fields": [
                    {"prefix": "Question:", "description": "${question}"},
                    {"prefix": "Trajectory:", "description": "${trajectory}"},
                    {"prefix": "Reasoning: Let's think step by step in order to", "description": "${reasoning}"},
                    {"prefix": "Answer:", "description": "${answer}"},
                ],
            },
            "lm": None,
        },
        "metadata": {"dependency_versions": {}},
    }
    (tmp / "p.json").write_text(json.dumps(st))
    r = dspy.ReAct("question->answer", tools=[])
    r.load(tmp / "p.json")
    assert "detective" in r.react.signature.instructions and len(r.react.demos) == 1


@behaviour
def program_deepcopy():
    c = dspy.ChainOfThought(dspy.Signature("q -> a"))
    d = c.deepcopy()
    assert (
        len(c.parameters()) == len(d.parameters())
        and c.parameters()[0] is not d.parameters()[0]
        and c.parameters()[0].__dict__ == d.parameters()[0].__dict__
    )


class Locked(dspy.Module):
    def __init__(self):
        self.lock = threading.Lock()
        self.cot = dspy.ChainOfThought("q -> a")


@behaviour
def program_uncopyable():
    m = Locked()
    c = m.deepcopy()
    assert (
        m.lock is c.lock
        and m.parameters()[0] is not c.parameters()[0]
        and m.parameters()[0].__dict__ == c.parameters()[0].__dict__
    )


@behaviour
def program_uncopyable_nested():
    class Out(dspy.Module):
        def __init__(self):
            self.submodel = Locked()

    m = Out()
    c = m.deepcopy()
    assert m.submodel.lock is c.submodel.lock and m.parameters()[0] is not c.parameters()[0]


@behaviour
def program_json(tmp):
    m = dspy.ChainOfThought(dspy.Signature("q -> a"))
    m.predict.signature = m.predict.signature.with_instructions("Help.")
    m.predict.demos = [
        Example(q="c?", a="P", reasoning="n").with_inputs("q"),
        Example(q=[Example(q="x"), Example(q="y")], a="P", reasoning="n").with_inputs("q"),
    ]
    m.save(tmp / "m.json")
    n = dspy.ChainOfThought(dspy.Signature("q -> a"))
    n.load(tmp / "m.json")
    assert (
        str(n.predict.signature) == str(m.predict.signature)
        and n.predict.demos[0] == m.predict.demos[0].toDict()
        and n.predict.demos[1] == m.predict.demos[1].toDict()
    )


@behaviour
def program_pickle_refused(tmp):
    m = dspy.Predict("q -> a")
    with raises(Exception):
        m.save(tmp / "m.pkl")
        dspy.Predict("q -> a").load(tmp / "m.pkl")


@behaviour
def program_pickle(tmp):
    m = dspy.Predict("q -> a")
    m.save(tmp / "m.pkl")
    dspy.Predict("q -> a").load(tmp / "m.pkl", allow_pickle=True)


@behaviour
def program_whole_program(tmp):
    m = dspy.ChainOfThought("q -> a")
    m.save(tmp / "d", save_program=True)
    n = dspy.load(tmp / "d", allow_pickle=True)
    assert list(n.predict.signature.fields) == list(m.predict.signature.fields)


@behaviour
def program_suffix(tmp):
    with raises(ValueError):
        dspy.Predict("q -> a").save(tmp / "m.txt")


@behaviour
def program_usage_str():
    class Pr(dspy.Module):
        def __init__(self):
            self.predict = dspy.Predict("question -> answer")

        def forward(self, question, **k):
            return self.predict(question=question).answer

    with dspy.context(lm=DummyLM([{"answer": "P"}]), track_usage=True):
        assert Pr()(question="q") == "P"


class WithCot(dspy.Module):
    def __init__(self, **k):
        super().__init__(**k)
        self.cot = dspy.ChainOfThought("question -> answer")

    def forward(self, question, **k):
        return self.cot(question=question)

    async def aforward(self, question, **k):
        return await self.cot.acall(question=question)


OUT = '{"reasoning": "R", "answer": "Paris"}'


@behaviour
def program_history():
    with dspy.context(lm=Scripted(OUT), adapter=dspy.JSONAdapter(), max_history_size=100):
        p = WithCot()
        p(question="q")
        p.cot(question="q")
        assert (
            (len(p.history), len(p.cot.history), len(p.cot.predict.history)) == (1, 2, 2)
            and p.history[0] is p.cot.history[0]
            and p.history[0]["outputs"] == [OUT]
        )
        with dspy.context(disable_history=True):
            p(question="q")
        assert len(p.history) == 1
        p(question="q")
        assert len(p.history) == 2 and len(p.cot.history) == 3


@behaviour
def program_history_default():
    with dspy.context(lm=Scripted(OUT), adapter=dspy.JSONAdapter()):
        p = WithCot()
        p(question="q")
        p.cot(question="q")
        assert (len(p.history), len(p.cot.history), len(p.cot.predict.history)) == (1, 2, 2), p.history


@behaviour
def program_history_parallel():
    with dspy.context(lm=Scripted(OUT), adapter=dspy.JSONAdapter(), max_history_size=100):
        p = WithCot()
        dspy.Parallel()([(p, {"question": "a"}), (p, {"question": "b"})])
        assert len(p.history) == 2 == len(p.cot.predict.history)


@behaviour
async def program_history_async():
    with dspy.context(lm=Scripted(OUT), adapter=dspy.JSONAdapter(), max_history_size=100):
        p = WithCot()
        await p.acall(question="q")
        await p.cot.acall(question="q")
        assert (len(p.history), len(p.cot.history)) == (1, 2) and p.history[0] is p.cot.history[0]


@behaviour
def program_usage_parallel():
    class Pr(dspy.Module):
        def __init__(self, lm):
            self.lm = lm
            self.p = dspy.ChainOfThought("question -> answer")

        def forward(self, question):
            with dspy.context(lm=self.lm):
                return self.p(question=question)

    with dspy.context(track_usage=True, adapter=dspy.JSONAdapter()):
        r = dspy.Parallel()(
            [
                (Pr(Scripted(OUT, model="openai/a")), {"question": "a"}),
                (Pr(Scripted(OUT, model="openai/b")), {"question": "b"}),
            ]
        )
    assert set(r[0].get_lm_usage()) == {"openai/a"} and set(r[1].get_lm_usage()) == {"openai/b"}


@behaviour
async def program_usage_async():
    p = dspy.Predict("question -> answer")
    with dspy.context(track_usage=True, adapter=dspy.JSONAdapter(), lm=Scripted('{"answer": "P"}', model="openai/a")):
        r = await asyncio.gather(*[p.acall(question="q") for _ in range(4)])
    assert all(x.get_lm_usage()["openai/a"]["prompt_tokens"] == 3 for x in r)


@behaviour
def program_forward_direct():

    class Te(dspy.Module):
        def forward(self, x):
            return x

    assert Te()(x="t") == "t" and Te().forward("t") == "t"


@behaviour
def program_state_keys(tmp):
    m = dspy.ChainOfThought("q -> a")
    m.save(tmp / "m.json")
    raw = json.loads((tmp / "m.json").read_text())
    assert set(raw) == {"predict", "metadata"}


@behaviour
def program_reset_copy():
    m = dspy.ChainOfThought("q -> a")
    m.predict.demos = [Example(q="1", a="2")]
    assert m.reset_copy().predict.demos == []


@behaviour
def program_named_sub_types():
    h = Hop()
    assert [n for n, _ in h.named_sub_modules(dspy.Predict)] == ["self.predict1", "self.predict2"]


@behaviour
def program_load_missing(tmp):
    (tmp / "x.json").write_text(json.dumps({"metadata": {"dependency_versions": {}}}))
    with raises(KeyError):
        dspy.ChainOfThought("q -> a").load(tmp / "x.json")


@behaviour
def meta():

    assert re.match(r"\d+\.\d+\.\d+", dspy.__version__)


@behaviour
def meta_names():
    assert dspy.__author__ and dspy.__author_email__ and dspy.__url__ and dspy.__description__
