"""Behaviours of DSPy: retrieval, histories, models, embedders and the cache."""

import contextlib
import io
import random
import tempfile

import dspy
import numpy as np
import pydantic
from dspy.utils.dummies import DummyLM

from tests.dspy.behaviours.support import behaviour, raises

CORP = ["The cat sat on the mat.", "The dog barked at the mailman.", "Birds fly in the sky."]


def emb(texts):
    return np.stack(
        [np.array([1, 0, 0] if "cat" in t else [0, 1, 0] if "dog" in t else [0, 0, 1], dtype=np.float32) for t in texts]
    )


@behaviour
def retrieval_basic():
    from dspy.retrievers.embeddings import Embeddings

    r = Embeddings(corpus=CORP, embedder=emb, k=1)("I saw a dog running.")
    assert r.passages == [CORP[1]] and isinstance(r.indices, list) and len(r.indices) == 1


@behaviour
def retrieval_threads():
    from concurrent.futures import ThreadPoolExecutor

    from dspy.retrievers.embeddings import Embeddings

    e = Embeddings(corpus=CORP, embedder=emb, k=1)
    with ThreadPoolExecutor(5) as t:
        assert list(t.map(lambda q: e(q).passages[0], ["a cat", "my dog", "Birds"] * 4)) == CORP * 4


@behaviour
def retrieval_save():
    from dspy.retrievers.embeddings import Embeddings

    e = Embeddings(corpus=CORP, embedder=emb, k=1, normalize=False, brute_force_threshold=1000)
    d = tempfile.mkdtemp()
    e.save(d)
    n = Embeddings(corpus=["x"], embedder=emb, k=1, normalize=True, brute_force_threshold=500)
    n.load(d, emb)
    assert (
        n.corpus == CORP
        and n.k == 1
        and n.normalize is False
        and n.brute_force_threshold == 1000
        and n("cat sitting").passages == e("cat sitting").passages
    )


@behaviour
def retrieval_fromsaved():
    from dspy.retrievers.embeddings import Embeddings

    e = Embeddings(corpus=CORP, embedder=emb, k=3, normalize=True, brute_force_threshold=1000)
    d = tempfile.mkdtemp()
    e.save(d)
    n = Embeddings.from_saved(d, emb)
    assert n.k == 3 and n.normalize and n.corpus == CORP and n("dog").passages == e("dog").passages


@behaviour
def retrieval_missing():
    from dspy.retrievers.embeddings import Embeddings

    e = Embeddings(corpus=CORP, embedder=emb)
    with raises(FileNotFoundError, ValueError):
        e.load("/nonexistent/path", emb)
    with raises(FileNotFoundError, ValueError):
        Embeddings.from_saved("/nonexistent/path", emb)


@behaviour
def retrieval_batch_dups():
    from dspy.retrievers.embeddings import Embeddings

    e = Embeddings(corpus=CORP, embedder=emb, k=2)
    assert [e(q).passages[0] for q in ("cat", "cat")] == [CORP[0]] * 2


@behaviour
def retrieval_scores():
    from dspy.retrievers.embeddings import EmbeddingsWithScores

    r = EmbeddingsWithScores(corpus=CORP, embedder=emb, k=2)("dog")
    assert len(r.scores) == 2 and r.scores[0] >= r.scores[1] and r.passages[0] == CORP[1]


@behaviour
def retrieval_dummy_rm():
    from dspy.utils.dummies import dummy_rm

    with dspy.context(rm=dummy_rm(["a b c", "d e f"])):
        assert len(dspy.Retrieve(k=1)("a b").passages) == 1


class Usage(dspy.BaseLM):
    def forward(self, prompt=None, messages=None, **k):
        from types import SimpleNamespace as N

        return N(
            choices=[N(message=N(content="[[ ## reasoning ## ]]\nr\n[[ ## answer ## ]]\nParis"), finish_reason="stop")],
            usage={"total_tokens": 10, "prompt_tokens": 4, "completion_tokens": 6},
            model="u",
        )


@behaviour
def inspect_history():
    lm = DummyLM([{"answer": "P"}] * 3)
    with dspy.context(lm=lm):
        [dspy.Predict("q -> answer")(q=str(i)) for i in range(3)]
    buf = io.StringIO()
    with contextlib.redirect_stdout(buf):
        dspy.inspect_history(n=2)
    assert "P" in buf.getvalue()


@behaviour
def inspect_history_lm():
    lm = DummyLM([{"answer": "Pq"}])
    with dspy.context(lm=lm):
        dspy.Predict("q -> answer")(q="x")
    buf = io.StringIO()
    with contextlib.redirect_stdout(buf):
        lm.inspect_history()
    assert "Pq" in buf.getvalue()


@behaviour
def global_history():
    from dspy.clients.base_lm import GLOBAL_HISTORY

    GLOBAL_HISTORY.clear()
    lm = DummyLM([{"answer": "P"}])
    with dspy.context(lm=lm):
        dspy.Predict("q -> answer")(q="x")
    assert len(GLOBAL_HISTORY) == 1 and "messages" in GLOBAL_HISTORY[0]


@behaviour
def dummy_lm_list():
    lm = DummyLM([{"answer": "a"}, {"answer": "b"}])
    assert "a" in lm("x")[0] and "b" in lm("y")[0] and "No more responses" in lm("z")[0]


@behaviour
def dummy_lm_follow():
    lm = DummyLM([{"answer": "red"}], follow_examples=True)
    p = dspy.Predict("question -> answer")
    p.demos = [dspy.Example(question="sky?", answer="blue")]
    with dspy.context(lm=lm):
        assert p(question="sky?").answer == "blue"


@behaviour
def lm_call():
    lm = DummyLM([{"answer": "a"}])
    assert isinstance(lm(messages=[{"role": "user", "content": "x"}]), list)


@behaviour
def lm_copy():
    lm = dspy.LM("openai/gpt-4o-mini", temperature=0.3)
    c = lm.copy(temperature=0.9)
    assert c.kwargs["temperature"] == 0.9 and lm.kwargs["temperature"] == 0.3 and c.model == lm.model


@behaviour
def lm_rollout_copy():
    c = dspy.LM("openai/gpt-4o-mini").copy(rollout_id=5, temperature=1.0)
    assert c.kwargs["rollout_id"] == 5


@behaviour
def lm_kwargs():
    lm = dspy.LM("openai/gpt-4o-mini", temperature=0.3, max_tokens=10, top_p=0.5)
    assert lm.kwargs["top_p"] == 0.5 and lm.kwargs["max_tokens"] == 10


@behaviour
def lm_no_key():
    assert "api_key" not in dspy.LM("openai/gpt-4o-mini", api_key="sk-x").dump_state()


@behaviour
def lm_provider_attrs():
    lm = dspy.LM("openai/gpt-4o-mini")
    assert lm.model_type == "chat" and lm.cache is True and lm.num_retries == 3 and lm.history == []


@behaviour
def base_custom():
    class My(dspy.BaseLM):
        def forward(self, prompt=None, messages=None, **k):
            return Usage.forward(self)

    with dspy.context(lm=My(model="my", temperature=0.0)):
        assert dspy.Predict("question -> answer")(question="q").answer == "Paris"


@behaviour
async def base_custom_async():
    class My(dspy.BaseLM):
        async def aforward(self, prompt=None, messages=None, **k):
            return Usage.forward(self)

    with dspy.context(lm=My(model="my")):
        assert (await dspy.Predict("question -> answer").acall(question="q")).answer == "Paris"


@behaviour
def base_call_override():
    class My(dspy.BaseLM):
        def __init__(self):
            super().__init__("m")

        def __call__(self, prompt=None, messages=None, **k):
            return ["[[ ## answer ## ]]\nhi"]

    with dspy.context(lm=My()):
        assert dspy.Predict("question -> answer")(question="q").answer == "hi"


@behaviour
def base_outputs():
    lm = Usage("u")
    assert (
        lm("x") == ["[[ ## reasoning ## ]]\nr\n[[ ## answer ## ]]\nParis"]
        and lm.history[-1]["usage"]["total_tokens"] == 10
    )


@behaviour
def embedder_callable():
    e = dspy.Embedder(lambda texts: [[float(len(t)), 1.0] for t in texts], caching=False)
    assert e(["ab", "c"]).tolist() == [[2, 1], [1, 1]] and e("abc").tolist() == [3, 1]


@behaviour
def embedder_batch():
    n = []
    e = dspy.Embedder(lambda t: n.append(len(t)) or [[0.0]] * len(t), batch_size=2, caching=False)
    e(["a", "b", "c"])
    assert n == [2, 1]


@behaviour
def embedder_np():
    e = dspy.Embedder(lambda t: np.ones((len(t), 3)), caching=False)
    r = e(["a"])
    assert r.shape == (1, 3) and r.dtype == np.float32


@behaviour
async def embedder_async():
    assert (await dspy.Embedder(lambda t: [[1.0]] * len(t), caching=False).acall(["a"])).shape == (1, 1)


@behaviour
def embedder_invalid():
    with raises(ValueError):
        dspy.Embedder(123)(["x"])


def _cache():
    from dspy.clients.cache import Cache

    return Cache(
        enable_disk_cache=True,
        enable_memory_cache=True,
        disk_cache_dir=tempfile.mkdtemp(),
        disk_size_limit_bytes=1024 * 1024,
        memory_max_entries=100,
    )


RQ = {"model": "m", "messages": [{"role": "user", "content": "x"}], "temperature": 0.7}


def resp(text):
    from types import SimpleNamespace as N

    return N(
        text=text,
        usage={"prompt_tokens": 10},
        cache_hit=False,
        choices=[N(message=N(content=text), finish_reason="stop")],
        model="m",
    )


@behaviour
def cache_init():
    c = _cache()
    assert c.enable_memory_cache and c.enable_disk_cache


@behaviour
def cache_invalid():
    from dspy.clients.cache import Cache

    with raises(ValueError):
        Cache(
            enable_disk_cache=False,
            enable_memory_cache=True,
            disk_cache_dir="",
            disk_size_limit_bytes=0,
            memory_max_entries=-1,
        )
    with raises(ValueError):
        Cache(
            enable_disk_cache=False,
            enable_memory_cache=True,
            disk_cache_dir="",
            disk_size_limit_bytes=0,
            memory_max_entries=None,
        )


@behaviour
def cache_key():
    c = _cache()
    assert len(c.cache_key({"prompt": "H", "model": "m"})) == 64 and c.cache_key(RQ) == c.cache_key(
        dict(reversed(list(RQ.items())))
    )


@behaviour
def cache_key_pyd():
    class Q(pydantic.BaseModel):
        a: str

    c = _cache()
    assert c.cache_key({"d": Q(a="x")}) == c.cache_key({"d": Q(a="x")}) != c.cache_key({"d": Q(a="y")})
    assert len(c.cache_key({"d": Q})) == 64


@behaviour
def cache_put():
    c = _cache()
    c.put(RQ, resp("T"))
    r = c.get(RQ)
    assert r is not None and getattr(r, "cache_hit", True) and not r.usage


@behaviour
def cache_ignored():
    c = _cache()
    assert (
        c.cache_key({**RQ, "api_key": "a"}, ["api_key"])
        == c.cache_key({**RQ, "api_key": "b"}, ["api_key"])
        == c.cache_key(RQ)
    )


@behaviour
def cache_unserializable():
    c = _cache()
    c.put({"x": object()}, 1)
    assert True


@behaviour
def cache_reset():
    c = _cache()
    c.put(RQ, resp("T"))
    assert len(c.memory_cache) == 1
    c.reset_memory_cache()
    assert len(c.memory_cache) == 0 and c.get(RQ) is not None


@behaviour
def cache_save():
    c = _cache()
    c.put(RQ, resp("T"))
    f = tempfile.mktemp(suffix=".pkl")
    c.save_memory_cache(f)
    n = _cache()
    n.load_memory_cache(f, allow_pickle=True)
    assert n.cache_key(RQ) in n.memory_cache


@behaviour
def cache_request_cache():
    from dspy.clients.cache import request_cache

    n = [0]

    @request_cache()
    def f(prompt, **k):
        n[0] += 1
        return resp(prompt)

    k = str(random.random())
    a = f(prompt=k, model="m")
    b = f(prompt=k, model="m")
    f(prompt=k, model="m2")
    assert n[0] == 2 and b is not None


@behaviour
def cache_configure():
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True, memory_max_entries=10)
