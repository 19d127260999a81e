"""Behaviours of DSPy: optimizers, ensembles and data sets."""

import contextlib
import tempfile

import dspy
from dspy.teleprompt import BootstrapFewShot
from dspy.utils.dummies import DummyLM

from tests.dspy.behaviours.support import behaviour, raises


def ex(q, a):
    return dspy.Example(question=q, answer=a).with_inputs("question")


def simple(e, p, trace=None):
    return e.output == p.output


class Simple(dspy.Module):
    def __init__(self, sig, lm=None):
        super().__init__()
        self.predictor = dspy.Predict(sig)
        self.lm = None

    def forward(self, **k):
        return self.predictor(**k)


TR = [
    dspy.Example(input="What is the color of the sky?", output="blue").with_inputs("input"),
    dspy.Example(input="What does the fox say?", output="Ring!").with_inputs("input"),
]


@behaviour
def bootstrap_init():
    b = BootstrapFewShot(metric=simple, max_bootstrapped_demos=1, max_labeled_demos=1)
    assert b.metric is simple


@behaviour
def bootstrap_compile():
    dspy.configure(lm=DummyLM([{"output": "blue"}, {"output": "Ring!"}], follow_examples=True))
    s, t = Simple("input -> output"), Simple("input -> output")
    c = BootstrapFewShot(metric=simple, max_bootstrapped_demos=1, max_labeled_demos=1).compile(
        s, teacher=t, trainset=TR
    )
    assert c is not None and id(c) != id(s) and getattr(c, "_compiled", False) is True and s.predictor.demos == []


@behaviour
def bootstrap_demos():
    dspy.configure(lm=DummyLM([{"output": "blue"}, {"output": "Ring!"}]))
    s, t = Simple("input -> output"), Simple("input -> output")
    c = BootstrapFewShot(metric=simple, max_bootstrapped_demos=1, max_labeled_demos=1).compile(
        s, teacher=t, trainset=TR
    )
    d = c.predictor.demos
    assert len(d) == 1 and d[0].input == TR[0].input and d[0].output == "blue"


@behaviour
def bootstrap_errors():
    class Buggy(dspy.Module):
        def __init__(self):
            super().__init__()
            self.predictor = dspy.Predict("input -> output")

        def forward(self, **k):
            raise RuntimeError("Simulated")

    dspy.configure(lm=DummyLM([{"output": "blue"}]))
    b = BootstrapFewShot(metric=simple, max_bootstrapped_demos=1, max_labeled_demos=1, max_errors=1)
    with raises(Exception):
        b.compile(Simple("input -> output"), teacher=Buggy(), trainset=TR)


@behaviour
def bootstrap_validation_none():
    dspy.configure(lm=DummyLM([{"output": "zzz"}] * 9))
    b = BootstrapFewShot(metric=simple, max_bootstrapped_demos=1, max_labeled_demos=1)
    c = b.compile(Simple("input -> output"), teacher=Simple("input -> output"), trainset=TR)
    assert len(c.predictor.demos) == 1


@behaviour
def bootstrap_validation_attr():
    dspy.configure(lm=DummyLM([{"output": "blue"}, {"output": "Ring!"}]))
    b = BootstrapFewShot(metric=simple, max_bootstrapped_demos=1, max_labeled_demos=1)
    b.compile(Simple("input -> output"), teacher=Simple("input -> output"), trainset=TR)
    assert len(b.validation) > 0


@behaviour
def bootstrap_threshold():
    dspy.configure(lm=DummyLM([{"output": "blue"}, {"output": "Ring!"}]))
    BootstrapFewShot(
        metric=lambda e, p, t=None: 0.4, metric_threshold=0.5, max_bootstrapped_demos=1, max_labeled_demos=0
    ).compile(Simple("input -> output"), trainset=TR)


@behaviour
def labeled():
    from dspy.teleprompt import LabeledFewShot

    c = LabeledFewShot(k=1).compile(Simple("input -> output"), trainset=TR, sample=False)
    assert c.predictor.demos == TR[:1]


@behaviour
def ensemble():
    from dspy.teleprompt import Ensemble

    class M(dspy.Module):
        def __init__(self, v):
            super().__init__()
            self.v = v

        def forward(self, *a, **k):
            return self.v

    e = Ensemble(reduce_fn=lambda o: sum(o) / len(o)).compile([M(i) for i in range(5)])
    assert e() == 2


@behaviour
def ensemble_size():
    from dspy.teleprompt import Ensemble

    class M(dspy.Module):
        def forward(self, *a, **k):
            return 1

    e = Ensemble(size=3, reduce_fn=len).compile([M() for _ in range(5)])
    assert e() == 3


@behaviour
def ensemble_det():
    from dspy.teleprompt import Ensemble

    with raises(AssertionError, ValueError, NotImplementedError):
        Ensemble(deterministic=True).compile([])


@behaviour
def knn_few_shot():
    from dspy.teleprompt.knn_fewshot import KNNFewShot
    from dspy.utils import DummyVectorizer

    tr = [
        ex("What is the capital of France?", "Paris"),
        ex("What is the largest ocean?", "Pacific"),
        ex("What is 2+2?", "4"),
    ]
    k = KNNFewShot(k=2, trainset=tr, vectorizer=dspy.Embedder(DummyVectorizer()))
    dspy.configure(lm=DummyLM([{"answer": "Madrid"}, {"answer": "10"}, {"answer": "x"}]))
    s = dspy.Predict("question -> answer")
    c = k.compile(s, teacher=dspy.Predict("question -> answer"))
    assert c(question="What is the capital of Spain?").answer in ("Madrid", "10", "x")


@behaviour
def copro():
    from dspy.teleprompt import COPRO

    o = COPRO(metric=simple, breadth=2, depth=1, init_temperature=1.4)
    assert o.metric is simple and o.breadth == 2 and o.depth == 1 and o.init_temperature == 1.4


@behaviour
def copro_run():
    from dspy.teleprompt import COPRO

    lm = DummyLM(
        [
            {"proposed_instruction": "Opt 1", "proposed_prefix_for_output_field": "P"},
            {"proposed_instruction": "Opt 2", "proposed_prefix_for_output_field": "P"},
        ]
        + [{"output": "blue"}] * 20
    )
    dspy.configure(lm=lm)
    c = COPRO(metric=simple, breadth=2, depth=1, init_temperature=1.4).compile(
        Simple("input -> output"), trainset=TR, eval_kwargs={"num_threads": 1, "display_progress": False}
    )
    assert c is not None and isinstance(c, Simple)


@behaviour
def random_search():
    from dspy.teleprompt import BootstrapFewShotWithRandomSearch

    dspy.configure(lm=DummyLM(["x"] and [{"output": "blue"}] * 99))
    c = BootstrapFewShotWithRandomSearch(
        metric=simple, max_bootstrapped_demos=1, max_labeled_demos=1, num_candidate_programs=1, num_threads=1
    ).compile(Simple("input -> output"), trainset=TR)
    assert isinstance(c, Simple) and c.candidate_programs


@behaviour
def better_together():
    from dspy.teleprompt import BetterTogether

    b = BetterTogether(metric=simple, p=dspy.BootstrapFewShot(metric=simple))
    assert b.metric is simple and "p" in b.optimizers


@behaviour
def utils_eval():
    from dspy.teleprompt.utils import eval_candidate_program

    class E:
        def __call__(self, *a, **k):
            return 0

    with raises(Exception) if False else contextlib.nullcontext():
        ev = lambda program, devset=None, **k: dspy.Prediction(score=0.9)
        r = eval_candidate_program(2, [1, 2, 3, 4], None, ev)
        assert float(getattr(r, "score", r)) == 0.9


@behaviour
def bootstrap_trace():
    from dspy.teleprompt.bootstrap_trace import bootstrap_trace_data

    dspy.configure(lm=DummyLM([{"output": "blue"}, {"output": "Ring!"}]))
    r = bootstrap_trace_data(program=Simple("input -> output"), dataset=TR, metric=simple, num_threads=1)
    assert len(r) == 2 and {"example", "prediction", "trace", "example_ind", "score"} <= set(r[0])


@behaviour
def gepa_init():
    with raises(Exception):
        dspy.GEPA(metric=lambda g, p: 1)


@behaviour
def gepa_budget():
    with raises(Exception):
        dspy.GEPA(metric=lambda g, p, trace=None, pred_name=None, pred_trace=None: 1, reflection_lm=DummyLM([]))


@behaviour
def simba():
    from dspy.teleprompt import SIMBA

    assert SIMBA(metric=simple, bsize=2, max_steps=1).max_steps == 1


@behaviour
def mipro_auto():
    with raises(ValueError):
        dspy.MIPROv2(metric=simple, auto="huge")


@behaviour
def dataset():
    from dspy.datasets.dataset import Dataset

    class C(Dataset):
        def __init__(self, **k):
            super().__init__(**k)
            self._train = [{"content": "a", "question": "q", "answer": "x"}]
            self._dev = []
            self._test = []

    d = C(train_seed=1, input_keys=["content", "question"])
    e = d.train[0]
    assert (
        e._input_keys == {"content", "question"}
        and e.inputs().keys() == ["content", "question"]
        and e.labels().keys() == ["answer"]
    )


@behaviour
def dataloader_csv():
    from dspy.datasets import DataLoader

    f = tempfile.mktemp(suffix=".csv")
    open(f, "w").write("content,question,answer\nc,q,a\n")
    r = DataLoader().from_csv(f, fields=["content", "question", "answer"], input_keys=("content", "question"))
    assert len(r) == 1 and r[0].inputs().keys() == ["content", "question"]


@behaviour
def dataloader_split():
    from dspy.datasets import DataLoader

    d = DataLoader()
    s = d.train_test_split([ex(str(i), "a") for i in range(10)], train_size=0.7, test_size=0.3)
    assert len(s["train"]) == 7 and len(s["test"]) == 3


@behaviour
def dataloader_sample():
    from dspy.datasets import DataLoader

    assert len(DataLoader().sample([1, 2, 3, 4], 2)) == 2


@behaviour
def gsm8k():
    from dspy.datasets.gsm8k import gsm8k_metric

    assert gsm8k_metric(dspy.Example(answer="42"), dspy.Prediction(answer="The answer is 42"))
