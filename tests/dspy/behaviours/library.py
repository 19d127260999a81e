"""Behaviours of DSPy: executors, settings, usage, decorators and small helpers."""

import asyncio
import tempfile
import threading
import time

import dspy
import pydantic
from dspy.utils.dummies import DummyLM
from dspy.utils.parallelizer import ParallelExecutor
from dspy.utils.usage_tracker import UsageTracker, track_usage

from tests.dspy.behaviours.support import behaviour, raises


def _bad(item):
    if item == 3:
        raise ValueError("three")
    if item == 9:
        raise RuntimeError("nine")
    return item


@behaviour
def executor_basic():
    assert ParallelExecutor(num_threads=3).execute(lambda x: 2 * x, [1, 2, 3]) == [2, 4, 6]


@behaviour
def executor_max():
    with raises(Exception):
        ParallelExecutor(num_threads=3, max_errors=1).execute(_bad, [1, 2, 3, 4])


@behaviour
def executor_max_ok():
    assert ParallelExecutor(num_threads=3, max_errors=2).execute(_bad, [1, 2, 3, 4]) == [1, 2, None, 4]


@behaviour
def executor_track():
    e = ParallelExecutor(num_threads=3, max_errors=3)
    assert e.execute(_bad, [1, 2, 3, 4, 9]) == [1, 2, None, 4, None]
    assert (
        sorted(e.failed_indices) == [2, 4]
        and isinstance(e.exceptions_map[2], ValueError)
        and isinstance(e.exceptions_map[4], RuntimeError)
    )


@behaviour
def executor_main():
    s = []
    assert ParallelExecutor(num_threads=1).execute(lambda x: s.append(threading.current_thread()) or x, [1, 2]) == [
        1,
        2,
    ]
    assert all(t is threading.main_thread() for t in s)


@behaviour
def executor_seq1():
    assert ParallelExecutor(num_threads=1, max_errors=2).execute(_bad, [1, 3, 4]) == [1, None, 4]


@behaviour
def executor_seq2():
    with raises(Exception):
        ParallelExecutor(num_threads=1, max_errors=1).execute(_bad, [1, 3, 4])


@behaviour
def executor_seq3():
    e = ParallelExecutor(num_threads=1, max_errors=3)
    e.execute(_bad, [1, 3, 9])
    assert sorted(e.failed_indices) == [1, 2]


@behaviour
def executor_compare():
    assert ParallelExecutor(num_threads=1, compare_results=True, disable_progress_bar=True).execute(
        lambda i: (i, i > 2), [1, 3]
    ) == [(1, False), (3, True)]


@behaviour
def executor_timeout0():
    assert ParallelExecutor(num_threads=2, timeout=0, disable_progress_bar=True).execute(lambda i: i, [1, 2]) == [1, 2]


@behaviour
def executor_timeout_none():
    assert ParallelExecutor(num_threads=2, timeout=None, disable_progress_bar=True).execute(lambda i: i, [1, 2]) == [
        1,
        2,
    ]


@behaviour
def settings_basic():
    dspy.configure(lm=dspy.LM("openai/gpt-4o"), adapter=dspy.JSONAdapter(), callbacks=[lambda x: x])
    assert (
        dspy.settings.lm.model == "openai/gpt-4o"
        and isinstance(dspy.settings.adapter, dspy.JSONAdapter)
        and len(dspy.settings.callbacks) == 1
    )
    dspy.configure(callbacks=[])


@behaviour
def settings_context():
    dspy.configure(lm=dspy.LM("openai/gpt-4o"))
    with dspy.context(lm=dspy.LM("openai/gpt-4o-mini"), callbacks=[]):
        assert dspy.settings.lm.model == "openai/gpt-4o-mini" and len(dspy.settings.callbacks) == 0
    assert dspy.settings.lm.model == "openai/gpt-4o"


@behaviour
def settings_parallel():
    from concurrent.futures import ThreadPoolExecutor

    dspy.configure(lm=dspy.LM("openai/gpt-4o"))

    def w(i):
        with dspy.context(lm=dspy.LM("openai/gpt-4o-mini"), trace=[i], callbacks=[]):
            return dspy.settings.lm.model == "openai/gpt-4o-mini" and dspy.settings.trace == [i]

    with ThreadPoolExecutor(3) as t:
        assert all(t.map(w, range(3)))
    assert dspy.settings.lm.model == "openai/gpt-4o"


@behaviour
def settings_dspyparallel():
    a, b = DummyLM([{"answer": "A"}]), DummyLM([{"answer": "B"}])

    class M(dspy.Module):
        def __init__(self):
            self.p = dspy.Predict("question -> answer")

        def forward(self, question):
            with dspy.context(lm=a if question == "a" else b):
                return self.p(question=question)

    assert [r.answer for r in dspy.Parallel()([(M(), {"question": "a"}), (M(), {"question": "b"})])] == ["A", "B"]


@behaviour
async def settings_async_trace():
    class M(dspy.Module):
        def __init__(self):
            self.p = dspy.Predict("question -> answer")

        async def aforward(self, question):
            with dspy.context(lm=DummyLM([{"answer": question}]), trace=[]):
                await asyncio.sleep(0)
                r = await self.p.acall(question=question)
                assert len(dspy.settings.trace) == 1
                return r

    m = M()
    assert [r.answer for r in await asyncio.gather(*[m.acall(question=q) for q in "abc"])] == list("abc")


@behaviour
def settings_save():
    f = tempfile.mktemp(suffix=".pkl")
    dspy.configure(lm=dspy.LM("openai/gpt-4o"), adapter=dspy.JSONAdapter(), track_usage=True)
    dspy.settings.save(f, exclude_keys=["adapter", "track_usage", "callbacks"])
    dspy.configure(lm=None, adapter=None, track_usage=False)
    l = dspy.load_settings(f, allow_pickle=True)
    dspy.configure(**l)
    assert dspy.settings.lm.model == "openai/gpt-4o" and dspy.settings.adapter is None and not dspy.settings.track_usage


U = {
    "prompt_tokens": 1117,
    "completion_tokens": 46,
    "total_tokens": 1163,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}


@behaviour
def usage_add():
    t = UsageTracker()
    t.add_usage("m", U)
    assert len(t.usage_data["m"]) == 1 and t.usage_data["m"][0] == U


@behaviour
def usage_total():
    t = UsageTracker()
    t.add_usage("m", {**U, "prompt_tokens_details": {"cached_tokens": 200}})
    t.add_usage(
        "m",
        {
            "prompt_tokens": 800,
            "completion_tokens": 100,
            "total_tokens": 900,
            "prompt_tokens_details": {"cached_tokens": 300},
        },
    )
    x = t.get_total_tokens()["m"]
    assert (
        x["prompt_tokens"] == 1917 and x["total_tokens"] == 2063 and x["prompt_tokens_details"]["cached_tokens"] == 500
    )


@behaviour
def usage_models():
    t = UsageTracker()
    t.add_usage("m", U)
    t.add_usage("n", {"total_tokens": 900})
    x = t.get_total_tokens()
    assert x["m"]["total_tokens"] == 1163 and x["n"]["total_tokens"] == 900


@behaviour
def usage_new():
    t = UsageTracker()
    t.add_usage("m", {"prompt_tokens": 5})
    t.add_usage("m", {"completion_tokens": 2})
    x = t.get_total_tokens()["m"]
    assert x["prompt_tokens"] == 5 and x["completion_tokens"] == 2


@behaviour
def usage_none():
    t = UsageTracker()
    t.add_usage("m", {**U, "prompt_tokens_details": None, "completion_tokens_details": {}})
    t.add_usage(
        "m", {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 50}, "completion_tokens_details": None}
    )
    t.add_usage("m", {"completion_tokens_details": {"reasoning_tokens": 1}})
    x = t.get_total_tokens()["m"]
    assert (
        x["prompt_tokens"] == 1217
        and x["prompt_tokens_details"]["cached_tokens"] == 50
        and x["completion_tokens_details"]["reasoning_tokens"] == 1
    )


@behaviour
def usage_pydantic():
    class C(pydantic.BaseModel):
        e: int

    class P(pydantic.BaseModel):
        audio_tokens: int | None
        cached_tokens: int
        c: C

    t = UsageTracker()
    for _ in range(3):
        t.add_usage("m", {"prompt_tokens": 1, "prompt_tokens_details": P(audio_tokens=None, cached_tokens=3, c=C(e=5))})
    x = t.get_total_tokens()["m"]
    assert x["prompt_tokens_details"]["cached_tokens"] == 9 and x["prompt_tokens_details"]["c"]["e"] == 15


class Usage(dspy.BaseLM):
    def forward(self, prompt=None, messages=None, **k):
        from types import SimpleNamespace as N

        return N(
            choices=[N(message=N(content="[[ ## reasoning ## ]]\nr\n[[ ## answer ## ]]\nParis"), finish_reason="stop")],
            usage={"total_tokens": 10, "prompt_tokens": 4, "completion_tokens": 6},
            model="u",
        )


@behaviour
def usage_ctx():
    with dspy.context(lm=Usage("u")):
        p = dspy.ChainOfThought("question -> answer")
        with track_usage() as t:
            p(question="a")
            p(question="b")
    assert (
        len(t.usage_data["u"]) == 2
        and list(t.get_total_tokens()) == ["u"]
        and t.get_total_tokens()["u"]["total_tokens"] == 20
    )


NOTE = ".. Note:: Experimental: This {} may change or be removed in a future release without warning"


@behaviour
def experimental():
    from dspy.utils.annotation import experimental

    @experimental
    def f():
        """Doc."""
        return 1

    assert NOTE.format("function") in f.__doc__ and "Doc." in f.__doc__ and f() == 1


@behaviour
def experimental_version():
    from dspy.utils.annotation import experimental

    @experimental(version="3.1.0")
    def f():
        return 1

    assert f.__doc__ == NOTE.format("function") + " (introduced in v3.1.0).", f.__doc__


@behaviour
def experimental_class():
    from dspy.utils.annotation import experimental

    @experimental
    class C:
        """Doc."""

        def m(self):
            return 1

    assert NOTE.format("class") in C.__doc__ and C().m() == 1


@behaviour
def experimental_call():
    from dspy.utils.annotation import experimental

    f = experimental(lambda: 2, version="4.0.0")
    assert "introduced in v4.0.0" in f.__doc__ and f() == 2


@behaviour
async def asyncify_many():
    assert await asyncio.gather(*[dspy.asyncify(lambda x: x + 1)(i) for i in range(4)]) == [1, 2, 3, 4]


@behaviour
def asyncify_limiter():
    from dspy.utils.asyncify import get_limiter

    async def go():
        assert get_limiter().total_tokens == 8
        with dspy.context(async_max_workers=16):
            assert get_limiter().total_tokens == 16

    asyncio.run(go())


@behaviour
async def asyncify_capacity():
    n = [0, 0]
    lock = threading.Lock()

    def work():
        with lock:
            n[0] += 1
            n[1] = max(n)
        time.sleep(0.05)
        with lock:
            n[0] -= 1

    with dspy.context(async_max_workers=2):
        await asyncio.gather(*[dspy.asyncify(work)() for _ in range(6)])
    assert n[1] <= 2, n


@behaviour
def example_attrs():
    from dspy.utils.exceptions import AdapterParseError

    s = dspy.make_signature("question -> a, b")
    e = AdapterParseError(
        adapter_name="ChatAdapter", signature=s, lm_response="resp", message="Fix!", parsed_result={"a": 1}
    )
    assert (
        e.adapter_name == "ChatAdapter"
        and e.signature == s
        and e.lm_response == "resp"
        and "Fix!" in str(e)
        and "resp" in str(e)
    )


@behaviour
def example_tree():
    from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError

    assert issubclass(ContextWindowExceededError, Exception) and issubclass(AdapterParseError, Exception)


@behaviour
def log():
    import dspy as d

    d.disable_logging()
    d.enable_logging()
    d.disable_litellm_logging() if hasattr(d, "disable_litellm_logging") else None


@behaviour
def hist_entry():
    lm = DummyLM([{"answer": "P"}])
    with dspy.context(lm=lm):
        dspy.Predict("q -> answer")(q="x")
    assert {
        "prompt",
        "messages",
        "kwargs",
        "response",
        "outputs",
        "usage",
        "cost",
        "timestamp",
        "uuid",
        "model",
        "model_type",
    } <= set(lm.history[-1])
