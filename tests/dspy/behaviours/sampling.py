"""Behaviours of DSPy: parallel programs, BestOfN, Refine, KNN, majority and chains."""

import dspy
from dspy import Predict, Signature
from dspy.utils.dummies import DummyLM

from tests.dspy.behaviours.support import behaviour, raises


class Mod(dspy.Module):
    def __init__(self, f):
        super().__init__()
        self.predictor = Predict("question -> answer")
        self.f = f

    def forward(self, **k):
        return self.f(self, **k)


def _sampled(cls):
    dspy.configure(lm=DummyLM([{"answer": "a b"}] * 9))
    n = [0]
    rw = [0]

    def go(self, **k):
        n[0] += 1
        return self.predictor(**k)

    def reward(args, pred):
        rw[0] += 1
        return 1.0 if len(pred.answer) == 1 else 0.0

    r = cls(module=Mod(go), N=3, reward_fn=reward, threshold=1.0)(question="?")
    assert r.answer == "a b" and n[0] == 3 and rw[0] > 0, n


@behaviour
def bestofn():
    _sampled(dspy.BestOfN)


@behaviour
def refine():
    _sampled(dspy.Refine)


def _failing(cls, **k):
    dspy.configure(lm=DummyLM([{"answer": "x"}] * 9))
    n = [0]

    def go(self, **kk):
        n[0] += 1
        raise ValueError("Deliberate")

    c = cls(module=Mod(go), reward_fn=lambda _, __: 1.0, threshold=0.0, **k)
    with raises(ValueError):
        c(question="?")
    return n[0], c


@behaviour
def bestofn_fail():
    _failing(dspy.BestOfN, N=3)


@behaviour
def refine_fail():
    _failing(dspy.Refine, N=3)


@behaviour
def bestofn_fail1():
    assert _failing(dspy.BestOfN, N=3, fail_count=1)[0] == 2


@behaviour
def refine_fail1():
    assert _failing(dspy.Refine, N=3, fail_count=1)[0] == 2


@behaviour
def refine_last():
    n, c = _failing(dspy.Refine, N=1, fail_count=1)
    assert c.fail_count == 1


@behaviour
def refine_zero():
    assert _failing(dspy.Refine, N=3, fail_count=0)[0] == 1


@behaviour
def parallel():
    dspy.configure(lm=DummyLM([{"output": str(i)} for i in range(5)]))

    class M(dspy.Module):
        def __init__(self):
            super().__init__()
            self.p = Predict("input -> output")
            self.par = dspy.Parallel(num_threads=2)

        def forward(self, input):
            return self.par([(self.p, input)] * 5)

    assert {r.output for r in M()(dspy.Example(input="x").with_inputs("input"))} == set("01234")


@behaviour
def parallel_usage():
    class M(dspy.Module):
        def forward(self):
            p = Predict("input -> output")
            return dspy.Parallel(num_threads=2)([(p, {"input": "1"}), (p, {"input": "2"})])

    with dspy.context(lm=DummyLM([{"output": "1"}, {"output": "2"}]), track_usage=True):
        r = M()()
    assert all(x.get_lm_usage() is not None for x in r)


def _knn():
    from dspy.predict import KNN
    from dspy.utils import DummyVectorizer

    t = [
        dspy.Example(question=q, answer=a).with_inputs("question")
        for q, a in (
            ("What is the capital of France?", "Paris"),
            ("What is the largest ocean?", "Pacific"),
            ("What is 2+2?", "4"),
        )
    ]
    return KNN(k=2, trainset=t, vectorizer=dspy.Embedder(DummyVectorizer()))


@behaviour
def knn_init():
    k = _knn()
    assert k.k == 2 and len(k.trainset_vectors) == 3


@behaviour
def knn_query():
    r = _knn()(question="What is 3+3?")
    assert len(r) == 2 and r[0].answer == "4"


@behaviour
def knn_query2():
    assert "Paris" in [x.answer for x in _knn()(question="What is the capital of Germany?")]


@behaviour
def majority_field():
    p = dspy.Prediction.from_completions(
        [{"answer": "2", "other": "1"}, {"answer": "2", "other": "1"}, {"answer": "3", "other": "2"}]
    )
    assert dspy.majority(p, field="other").completions[0]["other"] == "1"


@behaviour
def majority_list():
    assert dspy.majority([{"answer": "2"}, {"answer": "2"}, {"answer": "3"}]).completions[0]["answer"] == "2"


@behaviour
def majority_tie():
    assert dspy.majority([{"answer": "2"}, {"answer": "3"}]).completions[0]["answer"] == "2"


@behaviour
def majority_completions():
    c = dspy.Prediction.from_completions([{"answer": "2"}, {"answer": "2"}, {"answer": "3"}]).completions
    assert dspy.majority(c).completions[0]["answer"] == "2"


@behaviour
def majority_norm():
    from dspy.evaluate.metrics import normalize_text

    assert (
        dspy.majority([{"answer": "2"}, {"answer": " 2."}, {"answer": "3"}], normalize=normalize_text).completions[0][
            "answer"
        ]
        == "2"
    )


QA = Signature("question -> answer")


@behaviour
def multi_chain():
    dspy.configure(lm=DummyLM([{"rationale": "mine", "answer": "blue"}]))
    c = [dspy.Prediction(rationale=r, answer=a) for r, a in (("x", "blue"), ("y", "green"), ("z", "blue"))]
    r = dspy.MultiChainComparison(QA)(c, question="?")
    assert r.rationale == "mine" and r.answer == "blue"


@behaviour
def multi_chain_count():
    with raises(AssertionError, ValueError):
        dspy.MultiChainComparison(QA, M=3)([dspy.Prediction(rationale="x", answer="y")], question="?")


@behaviour
def chain_of_thought():
    dspy.configure(lm=DummyLM([{"reasoning": "r", "answer": "2"}]))
    p = dspy.ChainOfThought("question -> answer")
    assert list(p.predict.signature.output_fields) == ["reasoning", "answer"] and p(question="?").answer == "2"


@behaviour
def chain_of_thought_field():
    p = dspy.ChainOfThought("q -> a", rationale_field=dspy.OutputField(desc="why"))
    assert list(p.predict.signature.output_fields)[0] == "reasoning"


@behaviour
async def chain_of_thought_async():
    with dspy.context(lm=DummyLM([{"reasoning": "r", "answer": "2"}])):
        assert (await dspy.ChainOfThought("q -> answer").acall(q="?")).answer == "2"
