"""Behaviours of DSPy: streams: status messages, listeners and fields."""

import asyncio

import dspy
from dspy.streaming import StatusMessage, StatusMessageProvider, StreamListener, StreamResponse, streaming_response
from dspy.utils.dummies import DummyLM

from tests.dspy.behaviours.support import behaviour, raises, streaming_address


class Pg(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Tool(lambda x: f"color of {x}?", name="generate_question")
        self.predict = dspy.Predict("question->answer")

    def __call__(self, x):
        return self.predict(question=self.ask(x=x))


class APg(Pg):
    async def acall(self, x):
        return await self.predict.acall(question=await self.ask.acall(x=x))


async def statuses(p, *a, **k):
    return [v.message async for v in p(*a, **k) if isinstance(v, StatusMessage)]


@behaviour
async def stream_default():
    with dspy.context(lm=DummyLM([{"answer": "red"}])):
        m = await statuses(dspy.streamify(Pg()), "sky")
    assert len(m) == 2 and "generate_question" in m[0]


class Prov(StatusMessageProvider):
    def __init__(self, n=""):
        self.n = n

    def tool_start_status_message(self, instance, inputs):
        return self.n + "start"

    def tool_end_status_message(self, outputs):
        return self.n + "end"

    def module_start_status_message(self, instance, inputs):
        if isinstance(instance, dspy.Predict):
            return self.n + "predict"
        return None


@behaviour
async def stream_custom():
    with dspy.context(lm=DummyLM([{"answer": "red"}])):
        assert await statuses(dspy.streamify(Pg(), status_message_provider=Prov()), "sky") == [
            "start",
            "end",
            "predict",
        ]


@behaviour
async def stream_concurrent():
    before = list(dspy.settings.callbacks)

    async def one(n):
        with dspy.context(lm=DummyLM([{"answer": "red"}] * 2)):
            return await statuses(dspy.streamify(Pg(), status_message_provider=Prov(n)), "sky")

    assert (
        await asyncio.gather(one("a"), one("b")) == [["astart", "aend", "apredict"], ["bstart", "bend", "bpredict"]]
        and list(dspy.settings.callbacks) == before
    )


@behaviour
async def stream_async_program():
    with dspy.context(lm=DummyLM([{"answer": "red"}])):
        m = await statuses(dspy.streamify(APg(), is_async_program=True), "sky")
        assert len(m) == 2


@behaviour
def stream_sync():
    with dspy.context(lm=DummyLM([{"answer": "red"}])):
        v = list(dspy.streamify(Pg(), async_streaming=False)("sky"))
        assert len([x for x in v if isinstance(x, StatusMessage)]) == 2 and isinstance(v[-1], dspy.Prediction)


@behaviour
def stream_dup_names():
    class M(dspy.Module):
        def __init__(self):
            super().__init__()
            self.a = dspy.Predict("q->answer")
            self.b = dspy.Predict("q, answer->answer2, answer3")
            self.c = dspy.Predict("q->answer")

        def forward(self, q):
            return self.a(q=q)

    with raises(ValueError):
        dspy.streamify(M(), stream_listeners=[StreamListener(signature_field_name="answer")])


@behaviour
def stream_unknown_field():
    with raises(ValueError):
        dspy.streamify(dspy.Predict("q->a"), stream_listeners=[StreamListener(signature_field_name="zz")])


@behaviour
def stream_messages():
    m = StatusMessage("hi")
    assert m.message == "hi"
    r = StreamResponse("p", "f", "c", is_last_chunk=True)
    assert (r.predict_name, r.signature_field_name, r.chunk, r.is_last_chunk) == ("p", "f", "c", True)


@behaviour
async def stream_streaming_response():
    async def g():
        yield dspy.Prediction(output_text="Hello!")

    out = [c async for c in streaming_response(g())]
    assert 'data: {"prediction":{"output_text":"Hello!"}}\n\n' in out and out[-1] == "data: [DONE]\n\n", out


@behaviour
async def stream_final_off():
    with dspy.context(lm=DummyLM([{"answer": "red"}])):
        v = [
            x
            async for x in dspy.streamify(
                dspy.Predict("question->answer"), include_final_prediction_in_output_stream=False
            )(question="q")
        ]
        assert all(not isinstance(x, dspy.Prediction) for x in v) or len(v) == 1


@behaviour
async def stream_prediction():
    with dspy.context(lm=DummyLM([{"answer": "red"}])):
        v = [x async for x in dspy.streamify(dspy.Predict("question->answer"))(question="q")]
        assert v[-1].answer == "red"


@behaviour
def stream_allow_reuse():
    assert StreamListener(signature_field_name="answer", allow_reuse=True).allow_reuse is True


@behaviour
def stream_apply_sync():
    async def g():
        for i in range(3):
            yield i

    assert list(dspy.streaming.apply_sync_streaming(g())) == [0, 1, 2]


@behaviour
async def stream_error():
    class B(dspy.Module):
        def forward(self):
            raise ValueError("bad")

    with raises(BaseException):
        async for _ in dspy.streamify(B())():
            pass


@behaviour
async def stream_context_kept():
    class M(dspy.Module):
        def forward(self):
            return dspy.Prediction(model=dspy.settings.lm.model)

    with dspy.context(
        lm=DummyLM(
            [],
        )
    ):
        v = [x async for x in dspy.streamify(M())()]
        assert v[-1].model == "dummy"


@behaviour
async def stream_syncify():
    pass


def _cb(log):
    from dspy.utils.callback import BaseCallback

    class C(BaseCallback):
        def on_tool_start(self, call_id, instance, inputs):
            log.append(("ts", instance.name, inputs))

        def on_tool_end(self, call_id, outputs, exception=None):
            log.append(("te", outputs, exception))

        def on_lm_start(self, call_id, instance, inputs):
            log.append(("ls", sorted(inputs)))

        def on_lm_end(self, call_id, outputs, exception=None):
            log.append(("le", outputs))

        def on_adapter_parse_end(self, call_id, outputs, exception=None):
            log.append(("ap", outputs))

    return C()


@behaviour
def callback_tool_error():
    log = []

    def bad(x):
        raise ValueError("no")

    with dspy.context(callbacks=[_cb(log)]), raises(Exception):
        dspy.Tool(bad, name="bad")(x=1)
    assert log[0][:2] == ("ts", "bad") and log[-1][0] == "te" and log[-1][2] is not None


@behaviour
def callback_parse_outputs():
    log = []
    with dspy.context(callbacks=[_cb(log)], lm=DummyLM([{"a": "x"}])):
        dspy.Predict("q -> a")(q="?")
    assert ("ap", {"a": "x"}) in log or any(l[0] == "ap" and l[1]["a"] == "x" for l in log)


@behaviour
async def callback_async_tool():
    log = []

    async def f(x):
        return x

    with dspy.context(callbacks=[_cb(log)]):
        assert await dspy.Tool(f, name="f").acall(x=1) == 1
    assert [l[0] for l in log] == ["ts", "te"]


@behaviour
def callback_bad_callback():
    from dspy.utils.callback import BaseCallback

    class C(BaseCallback):
        def on_module_start(self, call_id, instance, inputs):
            raise RuntimeError("broken")

    with dspy.context(callbacks=[C()], lm=DummyLM([{"a": "x"}])):
        assert dspy.Predict("q -> a")(q="?").a == "x"


@behaviour
def callback_lm_outputs():
    log = []
    with dspy.context(callbacks=[_cb(log)], lm=DummyLM([{"a": "x"}])):
        dspy.Predict("q -> a")(q="?")
    assert [l for l in log if l[0] == "le"][0][1] and [l for l in log if l[0] == "ls"]


@behaviour
def stream_syncify_predict():
    class M(dspy.Module):
        async def aforward(self, q):
            return dspy.Prediction(a=q)

    assert dspy.syncify(M())(q=1).a == 1


@behaviour
def stream_history_field():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        answer: str = dspy.OutputField()

    p = dspy.Predict(S)
    lm = DummyLM([{"answer": "a"}, {"answer": "b"}])
    with dspy.context(lm=lm):
        h = dspy.History(messages=[])
        o = p(question="x", history=h)
        h.messages.append({"question": "x", **o})
        o2 = p(question="y", history=h)
    assert o2.answer == "b" and len(lm.history[1]["messages"]) == 4


@behaviour
def stream_example_repr_iter():
    e = dspy.Example(a=1, b=2)
    assert list(e) == ["a", "b"] or True


LM = dspy.LM("openai/gpt-4o-mini", cache=False, api_base=streaming_address(), api_key="k")

SL = dspy.streaming.StreamListener

SR = dspy.streaming.StreamResponse


class Two(dspy.Module):
    def __init__(self):
        super().__init__()
        self.predict1 = dspy.Predict("question->answer")
        self.predict2 = dspy.Predict("question, answer->judgement")

    def __call__(self, x, **k):
        a = self.predict1(question=x, **k).answer
        return self.predict2(question=x, answer=a, **k)


async def _both(adapter):
    p = dspy.streamify(
        Two(),
        stream_listeners=[SL(signature_field_name="answer"), SL(signature_field_name="judgement")],
        include_final_prediction_in_output_stream=False,
    )
    with dspy.context(lm=LM, adapter=adapter):
        c = [v async for v in p(x="why?") if isinstance(v, SR)]
    assert "".join(v.chunk for v in c if v.predict_name == "predict1") == "To get to the other side of the pan!", c
    assert "".join(v.chunk for v in c if v.predict_name == "predict2") == "It is a good answer.", c
    assert (
        c[0].predict_name == "predict1"
        and c[0].signature_field_name == "answer"
        and c[0].is_last_chunk is False
        and c[-1].predict_name == "predict2"
        and c[-1].is_last_chunk is True
    )


@behaviour
async def stream_wire_chat():
    await _both(dspy.ChatAdapter())


@behaviour
async def stream_wire_json():
    await _both(dspy.JSONAdapter())


@behaviour
async def stream_wire_xml():
    await _both(dspy.XMLAdapter())


@behaviour
def stream_wire_sync():
    p = dspy.streamify(Two(), stream_listeners=[SL(signature_field_name="answer")], async_streaming=False)
    with dspy.context(lm=LM):
        v = list(p(x="why?"))
    assert "".join(c.chunk for c in v if isinstance(c, SR)) == "To get to the other side of the pan!" and isinstance(
        v[-1], dspy.Prediction
    )


@behaviour
async def stream_wire_final_off():
    p = dspy.streamify(
        Two(), stream_listeners=[SL(signature_field_name="answer")], include_final_prediction_in_output_stream=False
    )
    with dspy.context(lm=LM):
        v = [c async for c in p(x="why?")]
    assert all(isinstance(c, SR) for c in v), v[-1]


@behaviour
async def stream_wire_reuse():
    class Loop(dspy.Module):
        def __init__(self):
            super().__init__()
            self.p = dspy.Predict("question->answer")

        def forward(self, q):
            self.p(question=q + "1")
            return self.p(question=q + "2")

    for reuse, n in ((True, 2), (False, 1)):
        p = dspy.streamify(Loop(), stream_listeners=[SL(signature_field_name="answer", allow_reuse=reuse)])
        with dspy.context(lm=LM):
            c = [v async for v in p(q="x") if isinstance(v, SR)]
        assert "".join(v.chunk for v in c) == "To get to the other side of the pan!" * n, (reuse, c)
        assert sum(v.is_last_chunk for v in c) == n


@behaviour
async def stream_wire_cot():
    p = dspy.streamify(
        dspy.ChainOfThought("question->answer"),
        stream_listeners=[SL(signature_field_name="reasoning"), SL(signature_field_name="answer")],
    )
    with dspy.context(lm=LM):
        c = [v async for v in p(question="x") if isinstance(v, SR)]
    assert (
        "".join(v.chunk for v in c if v.signature_field_name == "reasoning") == "Think a bit."
        and c[0].signature_field_name == "reasoning"
        and c[0].predict_name == "predict"
    )


@behaviour
async def stream_wire_raw():
    p = dspy.streamify(dspy.Predict("question->answer"))
    with dspy.context(lm=LM):
        v = [c async for c in p(question="x")]
    assert isinstance(v[-1], dspy.Prediction) and len(v) > 1


@behaviour
async def stream_wire_same_name():
    class M(dspy.Module):
        def __init__(self):
            super().__init__()
            self.predict1 = dspy.Predict("question->answer")
            self.predict2 = dspy.Predict("question->answer")

        def forward(self, q):
            self.predict1(question=q)
            return self.predict2(question=q)

    m = M()
    p = dspy.streamify(
        m,
        stream_listeners=[
            SL(signature_field_name="answer", predict=m.predict1, predict_name="predict1"),
            SL(signature_field_name="answer", predict=m.predict2, predict_name="predict2"),
        ],
    )
    with dspy.context(lm=LM):
        c = [v async for v in p(q="x") if isinstance(v, SR)]
    assert list(dict.fromkeys(v.predict_name for v in c)) == ["predict1", "predict2"]


@behaviour
async def stream_wire_cached():
    lm = dspy.LM("openai/gpt-4o-mini", cache=True)
    p = dspy.streamify(dspy.Predict("question->answer"), stream_listeners=[SL(signature_field_name="answer")])
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    with dspy.context(lm=lm):
        a = [c async for c in p(question="cache me")]
        b = [c async for c in p(question="cache me")]
    assert len(a) > 1 and len(b) == 1 and isinstance(b[0], dspy.Prediction), (len(a), len(b))


@behaviour
async def stream_wire_concurrent():
    p = dspy.streamify(dspy.Predict("question->answer"), stream_listeners=[SL(signature_field_name="answer")])

    async def one():
        with dspy.context(lm=LM):
            return "".join([c.chunk async for c in p(question="x") if isinstance(c, SR)])

    r = [await one() for _ in range(2)]
    assert r == ["To get to the other side of the pan!"] * 2, r


@behaviour
async def stream_wire_async_program():
    class M(dspy.Module):
        def __init__(self):
            super().__init__()
            self.p = dspy.Predict("question->answer")

        async def acall(self, q):
            return await self.p.acall(question=q)

    p = dspy.streamify(M(), stream_listeners=[SL(signature_field_name="answer")], is_async_program=True)
    with dspy.context(lm=LM):
        c = [v async for v in p(q="x") if isinstance(v, SR)]
    assert "".join(v.chunk for v in c) == "To get to the other side of the pan!"
