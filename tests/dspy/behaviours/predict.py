"""Behaviours of DSPy: predictors: state, options, inputs and warnings."""

import enum
import functools
import itertools
import json
import tempfile
from datetime import datetime

import dspy
import pydantic
from dspy import Predict
from dspy.utils.dummies import DummyLM

from tests.dspy.behaviours.support import behaviour, mismatch, notes, raises


class MyLM(dspy.BaseLM):
    def __init__(self, model, *, place, **k):
        super().__init__(model=model, **k)
        self.place = place

    def dump_state(self):
        s = super().dump_state()
        s["place"] = self.place
        return s

    @classmethod
    def load_state(cls, state):
        state = dict(state)
        for k in ("_dspy_lm_class", "class"):
            state.pop(k, None)
        return cls(**state)


class Outer:
    class Inner(dspy.BaseLM):
        pass


@behaviour
def predict_key():
    pass


@behaviour
def predict_reset_adapter():
    p = Predict("a -> b")
    p.adapter = "x"
    p.reset()
    assert p.adapter is None


@behaviour
def predict_lm_state_round():
    p = Predict("a -> b")
    p.lm = dspy.LM("openai/gpt-4o-mini", temperature=1, max_tokens=100, num_retries=10)
    s = p.dump_state()
    n = Predict("a -> b")
    n.load_state(s)
    assert n.lm.dump_state() == p.lm.dump_state()
    assert n.lm.num_retries == 10 and n.lm.kwargs["max_tokens"] == 100


@behaviour
def predict_lm_state_keys():
    s = dspy.LM("openai/gpt-4o-mini", temperature=1).dump_state()
    assert (
        s["model"] == "openai/gpt-4o-mini"
        and s["model_type"] == "chat"
        and s["temperature"] == 1
        and s["num_retries"] == 3
        and s["cache"] is True
    )


@behaviour
def predict_legacy_state():
    p = Predict("a -> b")
    p.lm = dspy.LM("openai/gpt-4o-mini", temperature=1)
    s = json.loads(json.dumps(p.dump_state()))
    for k in ("_dspy_lm_class", "class"):
        s["lm"].pop(k, None)
    n = Predict("a -> b")
    n.load_state(s)
    assert isinstance(n.lm, dspy.LM) and n.lm.model == "openai/gpt-4o-mini"


@behaviour
def predict_custom_lm_needs_trust():
    p = Predict("a -> b")
    p.lm = MyLM("m", place="x")
    s = p.dump_state()
    with raises(ValueError):
        Predict("a -> b").load_state(s)
    n = Predict("a -> b")
    n.load_state(s, allow_unsafe_lm_state=True)
    assert isinstance(n.lm, MyLM) and n.lm.place == "x"


@behaviour
def predict_nested_lm():
    p = Predict("a -> b")
    p.lm = Outer.Inner(model="m")
    n = Predict("a -> b")
    n.load_state(p.dump_state(), allow_unsafe_lm_state=True)
    assert isinstance(n.lm, Outer.Inner)


@behaviour
def predict_load_state_chain():
    p = Predict("a -> b")
    p.demos = [{"a": "1", "b": "2"}]
    n = Predict("a -> b").load_state(p.dump_state())
    assert n is not None and n.demos == p.demos


@behaviour
def predict_typed_demos():
    class Item(pydantic.BaseModel):
        name: str
        n: int

    class S(dspy.Signature):
        items: list[Item] = dspy.InputField()
        out: list[Item] = dspy.OutputField()
        total: int = dspy.OutputField()

    p = Predict(S)
    p.demos = [dspy.Example(items=[Item(name="a", n=1)], out=[Item(name="b", n=2)], total=3).with_inputs("items")]
    s = p.dump_state()
    assert s["demos"][0]["items"][0] == {"name": "a", "n": 1}
    n = Predict(S)
    n.load_state(json.loads(json.dumps(s)))
    d = n.demos[0]
    assert d["items"][0]["name"] == "a" and d["out"][0]["n"] == 2


@behaviour
def predict_sig_fields_state():
    class A(dspy.Signature):
        """Plain."""

        s = dspy.InputField(desc="first")
        m = dspy.OutputField()

    class B(dspy.Signature):
        """Other."""

        s = dspy.InputField(desc="second")
        m = dspy.OutputField(desc="d", prefix="P!")

    f = tempfile.mktemp(suffix=".json")
    a = Predict(A)
    a.save(f)
    b = Predict(B)
    assert b.signature.dump_state() != a.signature.dump_state()
    b.load(f)
    assert b.signature.dump_state() == a.signature.dump_state()


def _endpoint(key, unsafe, file):
    p = Predict("q -> a")
    p.lm = dspy.LM("openai/gpt-4o-mini")
    s = json.loads(json.dumps(p.dump_state()))
    s["lm"][key] = "http://over.local/v1"
    n = Predict("q -> a")
    with notes() as out:
        if file:
            f = tempfile.mktemp(suffix=".json")
            open(f, "w").write(json.dumps(s))
            n.load(f, allow_unsafe_lm_state=unsafe)
        else:
            n.load_state(s, allow_unsafe_lm_state=unsafe)
    assert n.lm is not None
    if unsafe:
        assert n.lm.kwargs[key] == "http://over.local/v1"
    else:
        assert key not in n.lm.kwargs and any(key in o for o in out), out


def _add_endpoints():
    cases = itertools.product((True, False), (False, True), ("api_base", "base_url"))
    for number, (file, unsafe, key) in enumerate(cases, 1):
        check = functools.partial(_endpoint, key, unsafe, file)
        check.__module__, check.__name__ = __name__, f"endpoint_{number}"
        behaviour(check)


_add_endpoints()


@behaviour
def predict_fwd2():
    dspy.configure(lm=DummyLM([{"x": "1", "y": "2"}]))
    r = Predict("q -> x, y")(q="?")
    assert (r.x, r.y) == ("1", "2")


@behaviour
def predict_fwd_nomore():
    dspy.configure(lm=DummyLM([{"answer": "No more responses"}]))
    assert Predict("q -> answer")(q="?").answer == "No more responses"


@behaviour
def predict_config_any():
    p = Predict("a -> b")
    p.update_config(new_key="v")
    assert p.get_config()["new_key"] == "v"


@behaviour
def predict_multi2():
    dspy.configure(lm=DummyLM([{"x": "1", "y": "2"}, {"x": "3", "y": "4"}]))
    r = Predict("q -> x, y", n=2)(q="?")
    assert r.completions.x == ["1", "3"] and r.completions.y[1] == "4"


@behaviour
def predict_datetime():
    class E(pydantic.BaseModel):
        name: str
        at: datetime

    class S(dspy.Signature):
        events: list[E] = dspy.InputField()
        text: str = dspy.OutputField()
        next: datetime = dspy.OutputField()

    dspy.configure(lm=DummyLM([{"text": "t", "next": "2024-11-27T14:00:00"}]))
    r = Predict(S)(events=[E(name="a", at=datetime(2024, 1, 1))])
    assert r.next == datetime(2024, 11, 27, 14)


@behaviour
def predict_enum1():
    class St(enum.Enum):
        P = "pending"
        G = "going"

    class S(dspy.Signature):
        a: St = dspy.InputField()
        b: St = dspy.OutputField()

    dspy.configure(lm=DummyLM([{"b": "going"}]))
    assert Predict(S)(a=St.P).b is St.G


@behaviour
def predict_enum2():
    class St(enum.Enum):
        OPEN = "CLOSED"
        CLOSED = "DONE"
        DONE = "OPEN"

    class S(dspy.Signature):
        a: St = dspy.InputField()
        b: St = dspy.OutputField()

    dspy.configure(lm=DummyLM([{"b": "DONE"}]))
    assert Predict(S)(a=St.OPEN).b is St.CLOSED


@behaviour
def predict_enum3():
    St = enum.Enum("St", ["P", "G"])

    class S(dspy.Signature):
        a: St = dspy.InputField()
        b: St = dspy.OutputField()

    dspy.configure(lm=DummyLM([{"b": "G"}]))
    assert Predict(S)(a=St.P).b is St.G


class Spy(dspy.LM):
    def __init__(self, model="dummy", answer="[[ ## answer ## ]]\nok"):
        super().__init__(model)
        self.calls = []
        self.answer = answer

    def __call__(self, prompt=None, messages=None, **k):
        self.calls.append({"messages": messages, "kwargs": k})
        return [self.answer]


class H(dspy.Signature):
    question: str = dspy.InputField()
    history: dspy.History = dspy.InputField()
    answer: str = dspy.OutputField()


def _hist(adapter, answer):
    lm = Spy(answer=answer)
    dspy.configure(lm=lm, adapter=adapter)
    Predict(H)(question="sure?", history=dspy.History(messages=[{"question": "first?", "answer": "one"}]))
    m = lm.calls[0]["messages"]
    assert (
        len(lm.calls) == 1
        and len(m) == 4
        and "first?" in m[1]["content"]
        and "one" in m[2]["content"]
        and "sure?" in m[3]["content"]
    )


@behaviour
def predict_hist_chat():
    _hist(dspy.ChatAdapter(), "[[ ## answer ## ]]\nok")


@behaviour
def predict_hist_json():
    _hist(dspy.JSONAdapter(), "{'answer':'ok'}")


class Usage(dspy.BaseLM):
    def forward(self, prompt=None, messages=None, **k):
        from types import SimpleNamespace as N

        return N(
            choices=[N(message=N(content="[[ ## answer ## ]]\nParis"), finish_reason="stop")],
            usage={"total_tokens": 10, "prompt_tokens": 4, "completion_tokens": 6},
            model="u",
        )


@behaviour
def predict_usage():
    dspy.configure(lm=Usage("u"), track_usage=True)
    r = Predict("question -> answer")(question="?")
    assert r.get_lm_usage()["u"]["total_tokens"] == 10


@behaviour
def predict_usage_parallel():
    dspy.configure(lm=Usage("u"), track_usage=True)
    p = Predict("question -> answer")
    rs = dspy.Parallel()([(lambda question: p(question=question), {"question": "a"})] * 2)
    assert [r.get_lm_usage()["u"]["total_tokens"] for r in rs] == [10, 10]


@behaviour
def predict_positional():
    with raises(ValueError):
        Predict("question -> answer")("hi")


@behaviour
def predict_no_lm():
    with dspy.context(lm=None), raises(ValueError):
        Predict("q -> a")(q="?")


@behaviour
def predict_lm_string():
    with raises(ValueError):
        dspy.configure(lm="openai/gpt-4o-mini")
        Predict("q -> a")(q="?")


@behaviour
def predict_lm_function():
    with raises(ValueError):
        dspy.configure(lm=lambda: 1)
        Predict("q -> a")(q="?")


def _constraints(adapter, answer):
    class S(dspy.Signature):
        """Do."""

        text: str = dspy.InputField(min_length=5, max_length=100, desc="in")
        n: int = dspy.InputField(gt=0, lt=10)
        score: float = dspy.OutputField(ge=0.0, le=1.0)
        count: int = dspy.OutputField(multiple_of=2)

    lm = Spy(answer=answer)
    dspy.configure(lm=lm, adapter=adapter)
    Predict(S)(text="hello world", n=5)
    m = lm.calls[0]["messages"][0]["content"]
    for x in (
        "minimum length: 5",
        "maximum length: 100",
        "greater than: 0",
        "less than: 10",
        "greater than or equal to: 0.0",
        "less than or equal to: 1.0",
        "multiple of the given number: 2",
    ):
        assert x in m, x


@behaviour
def predict_constraints_chat():
    _constraints(dspy.ChatAdapter(), "[[ ## score ## ]]\n0.5\n[[ ## count ## ]]\n2")


@behaviour
def predict_constraints_json():
    _constraints(dspy.JSONAdapter(), "{'score':'0.5', 'count':'2'}")


@behaviour
async def predict_async():
    with dspy.context(lm=DummyLM([{"answer": "P"}])):
        assert (await Predict("q -> answer").acall(q="?")).answer == "P"


@behaviour
def predict_prediction_option():
    class R(dspy.BaseLM):
        def forward(self, prompt=None, messages=None, **k):
            self.seen = k
            return Usage.forward(self)

    lm = R("r")
    with dspy.context(lm=lm):
        Predict("question -> answer")(question="?", prediction={"type": "content", "content": "A hen"})
        assert lm.seen["prediction"] == {"type": "content", "content": "A hen"}


@behaviour
def predict_prediction_input():
    class R(dspy.BaseLM):
        def forward(self, prompt=None, messages=None, **k):
            self.seen = k
            return Usage.forward(self)

    lm = R("r")
    with dspy.context(lm=lm):
        Predict("question, prediction -> answer")(question="?", prediction="because")
        assert "prediction" not in lm.seen


@behaviour
def predict_serialize_object():
    from dspy.predict.predict import serialize_object

    class W(pydantic.BaseModel):
        url: pydantic.HttpUrl
        at: datetime

    s = serialize_object(W(url="https://www.example.com", at=datetime(2021, 1, 1, 12)))
    assert s == {"url": "https://www.example.com/", "at": "2021-01-01T12:00:00"}


@behaviour
def predict_demo_state_pydantic():
    class W(pydantic.BaseModel):
        url: pydantic.HttpUrl
        at: datetime

    class S(dspy.Signature):
        w: W = dspy.InputField()
        a: str = dspy.OutputField()

    p = Predict(S)
    p.demos = [{"w": W(url="https://www.example.com", at=datetime(2021, 1, 1, 12)), "a": "x"}]
    s = json.loads(json.dumps(p.dump_state()))
    assert s["demos"][0]["w"] == {"url": "https://www.example.com/", "at": "2021-01-01T12:00:00"}


@behaviour
def predict_trace_limit():
    dspy.configure(lm=DummyLM([{"answer": "P"}] * 10), max_trace_size=3, trace=[])
    p = Predict("q -> answer")
    for _ in range(10):
        p(q="?")
    assert len(dspy.settings.trace) == 3


@behaviour
def predict_trace_none():
    dspy.configure(lm=DummyLM([{"answer": "P"}] * 2), trace=None)
    Predict("q -> answer")(q="?")
    assert dspy.settings.trace is None


@behaviour
def predict_hist_limit():
    dspy.configure(lm=DummyLM([{"answer": "P"}] * 10), max_history_size=5)
    p = Predict("q -> answer")
    for _ in range(10):
        p(q="?")
    assert len(p.history) == 5


@behaviour
def predict_hist_off():
    dspy.configure(lm=DummyLM([{"answer": "P"}] * 3), disable_history=True)
    p = Predict("q -> answer")
    p(q="?")
    assert len(p.history) == 0


@behaviour
def predict_default_input():
    class S(dspy.Signature):
        context: str = dspy.InputField(default="DEFAULT_CONTEXT")
        question: str = dspy.InputField()
        answer: str = dspy.OutputField()

    lm = Spy()
    dspy.configure(lm=lm)
    Predict(S)(question="?")
    assert "DEFAULT_CONTEXT" in lm.calls[0]["messages"][-1]["content"]


@behaviour
def predict_extra_warns():
    dspy.configure(lm=DummyLM([{"answer": "P"}]))
    with notes() as out:
        r = Predict("question -> answer")(question="?", extra_field="x")
    assert any("extra_field" in o for o in out) and r.answer == "P"


@behaviour
def predict_missing_optional():
    class S(dspy.Signature):
        q: str = dspy.InputField()
        c: str | None = dspy.InputField()
        answer: str = dspy.OutputField()

    dspy.configure(lm=DummyLM([{"answer": "P"}]))
    with notes() as out:
        Predict(S)(q="?")
    assert not any("'c'" in o for o in out)


@behaviour
def predict_missing_required():
    dspy.configure(lm=DummyLM([{"answer": "P"}]))
    with notes() as out:
        Predict("question -> answer")()
    assert any("question" in o for o in out)


def _types(sig, good, bad):
    if good is not None:
        dspy.configure(lm=DummyLM([{"result": "x"}]))
        with notes() as out:
            Predict(sig)(**good)
        assert not mismatch(out), ("good", out)
    for b in bad:
        dspy.configure(lm=DummyLM([{"result": "x"}]))
        with notes() as out:
            Predict(sig)(**b)
        assert mismatch(out), ("bad", b, out)


@behaviour
def input_type_image():
    _types("q: dspy.Image -> result", {"q": dspy.Image("https://example.com/i.jpg")}, [{"q": "dog_image"}])


@behaviour
def input_type_int():
    _types("count: int, name: str -> result", {"count": 42, "name": "t"}, [{"count": "not an int", "name": "t"}])


@behaviour
def input_type_list():
    _types("items: list[str] -> result", {"items": ["a"]}, [{"items": "no list"}])


@behaviour
def input_type_literal():
    _types(
        "s: Literal['a','b'], p: Literal[1,2] -> result", {"s": "a", "p": 1}, [{"s": "z", "p": 1}, {"s": "a", "p": 5}]
    )


@behaviour
def input_type_union():
    _types("m: Literal['a','b']|None -> result", {"m": "a"}, [{"m": "z"}])


@behaviour
def input_type_union_none():
    _types("m: Literal['a','b']|None -> result", {"m": None}, [])


@behaviour
def input_type_liststr():
    _types("n: list[str] -> result", {"n": ["A"]}, [{"n": [1, None]}])


@behaviour
def input_type_nested():
    _types(
        "n: list[int], s: list[str] -> result", {"n": [1], "s": ["a"]}, [{"n": ["1"], "s": ["a"]}, {"n": [1], "s": [1]}]
    )


@behaviour
def input_type_empty():
    _types("n: list[int], s: list[str] -> result", {"n": [], "s": []}, [])


@behaviour
def input_type_dict():
    _types("m: dict[str,int] -> result", {"m": {"a": 1}}, [{"m": {"a": "1"}}, {"m": {1: 1}}])


@behaviour
def input_type_tuple():
    _types(
        "f: tuple[str,int,bool], v: tuple[int,...] -> result",
        {"f": ("h", 4, True), "v": (1, 2)},
        [{"f": (1, 4, True), "v": (1,)}, {"f": ("h", 4), "v": (1,)}, {"f": ("h", 4, True), "v": ("a",)}],
    )


@behaviour
def input_type_off():
    dspy.configure(warn_on_type_mismatch=False, lm=DummyLM([{"result": "x"}]))
    with notes() as out:
        Predict("count: int -> result")(count="no")
    assert not mismatch(out)


@behaviour
def input_type_untyped():
    _types("count, name -> result", {"count": "abc", "name": 123}, [])


@behaviour
def input_type_untyped_class():
    class S(dspy.Signature):
        count = dspy.InputField()
        name = dspy.InputField()
        result = dspy.OutputField()

    _types(S, {"count": "abc", "name": 123}, [])


@behaviour
def input_type_str_list():
    class S(dspy.Signature):
        name: str = dspy.InputField()
        result = dspy.OutputField()

    _types(S, {"name": ["a", "b"]}, [])


class Box:
    class Query(pydantic.BaseModel):
        text: str


@behaviour
def input_type_custom():
    _types(dspy.Signature("query: Box.Query -> result"), {"query": Box.Query(text="x")}, [{"query": "x"}])


class SpyA(dspy.ChatAdapter):
    def __init__(self):
        super().__init__()
        object.__setattr__(self, "s", [])
        object.__setattr__(self, "ins", [])

    def __call__(self, *a, **k):
        self.s.append(("sync", dspy.settings.adapter))
        self.ins.append(k.get("inputs"))
        return super().__call__(*a, **k)

    async def acall(self, *a, **k):
        self.s.append(("async", dspy.settings.adapter))
        self.ins.append(k.get("inputs"))
        return await super().acall(*a, **k)


@behaviour
def predict_adapter_attributes():
    class A(dspy.ChatAdapter):
        def __init__(self):
            super().__init__()
            self.n = 0

        def __call__(self, *a, **k):
            self.n += 1
            return super().__call__(*a, **k)

    a = A()
    with dspy.context(lm=DummyLM([{"b": "x"}]), adapter=a):
        Predict("a -> b")(a="q")
    assert a.n == 1


@behaviour
def predict_adapter_precedence():
    x, y, z = SpyA(), SpyA(), SpyA()
    with dspy.context(lm=DummyLM([{"b": "x"}] * 3), adapter=x):
        p = Predict("a -> b")
        p(a="q")
        assert len(x.s) == 1
        p.adapter = y
        p(a="q")
        assert len(y.s) == 1 and len(x.s) == 1
        p(a="q", adapter=z)
        assert len(z.s) == 1 and len(y.s) == 1


@behaviour
def predict_adapter_none():
    x, y = SpyA(), SpyA()
    with dspy.context(lm=DummyLM([{"b": "x"}] * 2), adapter=x):
        p = Predict("a -> b")
        p.adapter = y
        p(a="q", adapter=None)
        assert len(x.s) == 1 and not y.s


@behaviour
def predict_adapter_none2():
    with dspy.context(lm=DummyLM([{"b": "x"}]), adapter=None):
        assert Predict("a -> b")(a="q", adapter=None).b == "x"


@behaviour
def predict_adapter_reserved():
    z = SpyA()
    with dspy.context(lm=DummyLM([{"b": "x"}])), notes() as out:
        Predict("a -> b")(a="q", adapter=z)
    assert z.ins == [{"a": "q"}] and not out, (z.ins, out)


@behaviour
async def predict_adapter_async():
    y, z = SpyA(), SpyA()
    with dspy.context(lm=DummyLM([{"b": "x"}] * 2), adapter=SpyA()):
        p = Predict("a -> b")
        p.adapter = y
        await p.acall(a="q")
        assert [k for k, _ in y.s] == ["async"]
        await p.acall(a="q", adapter=z)
        assert len(z.s) == 1


@behaviour
def predict_adapter_visible():
    x, z = SpyA(), SpyA()
    with dspy.context(lm=DummyLM([{"b": "x"}]), adapter=x):
        Predict("a -> b")(a="q", adapter=z)
        assert [v for _, v in z.s] == [z] and dspy.settings.adapter is x


@behaviour
async def predict_adapter_visible_async():
    x, z = SpyA(), SpyA()
    with dspy.context(lm=DummyLM([{"b": "x"}]), adapter=x):
        p = Predict("a -> b")
        p.adapter = z
        await p.acall(a="q")
        assert [v for _, v in z.s] == [z] and dspy.settings.adapter is x


@behaviour
def predict_adapter_not_saved():
    p = Predict("a -> b")
    p.adapter = SpyA()
    s = p.dump_state()
    assert "adapter" not in s
    n = Predict("a -> b")
    n.load_state(s)
    assert n.adapter is None


def R(name, args=None, thought="t"):
    return {"next_thought": thought, "next_tool_name": name, "next_tool_args": args or {}}


@behaviour
def predict_batch():
    class M(dspy.Module):
        def __init__(self):
            super().__init__()
            self.p = Predict("input -> output")

        def forward(self, input):
            return self.p.batch([input] * 3)

    with dspy.context(lm=DummyLM([{"output": str(i)} for i in range(3)])):
        assert {r.output for r in M()(dspy.Example(input="x").with_inputs("input"))} == set("012")


@behaviour
def predict_nested_parallel():
    dspy.configure(lm=DummyLM([{"output": str(i)} for i in range(5)]))
    p = Predict("input -> output")
    par = dspy.Parallel(num_threads=2)
    x = dspy.Example(input="x").with_inputs("input")
    o = par([(p, x), (p, x), (par, [(p, x), (p, x)])])
    assert len({o[0].output, o[1].output, o[2][0].output, o[2][1].output}) == 4


@behaviour
def predict_nested_batch():
    dspy.configure(lm=DummyLM([{"output": str(i)} for i in range(4)]))

    class M(dspy.Module):
        def __init__(self):
            super().__init__()
            self.p = Predict("input -> output")

        def forward(self, input):
            return self.p.batch([dspy.Example(input=input).with_inputs("input")] * 2)

    r = M().batch([dspy.Example(input="x").with_inputs("input")] * 2)
    assert {r[i][j].output for i in (0, 1) for j in (0, 1)} == set("0123")


@behaviour
def predict_batch_failed():
    class F(dspy.Module):
        def forward(self, value):
            if value == 42:
                raise ValueError("bad")
            return f"ok{value}"

    r, f, e = F().batch(
        [dspy.Example(value=v).with_inputs("value") for v in (1, 42, 3)],
        return_failed_examples=True,
        provide_traceback=True,
    )
    assert r == ["ok1", None, "ok3"] and f[0].inputs()["value"] == 42 and isinstance(e[0], ValueError)


@behaviour
def retry_import():
    pass
