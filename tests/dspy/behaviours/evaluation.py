"""Behaviours of DSPy: Evaluate and its metrics."""

import copy
import json
import tempfile

import dspy
from dspy.evaluate.evaluate import Evaluate
from dspy.evaluate.metrics import answer_exact_match
from dspy.utils.dummies import DummyLM

from tests.dspy.behaviours.support import behaviour


def ex(q, a):
    return dspy.Example(question=q, answer=a).with_inputs("question")


DEV = [ex("What is 1+1?", "2"), ex("What is 2+2?", "4")]


def lm_ok():
    return DummyLM({"What is 1+1?": {"answer": "2"}, "What is 2+2?": {"answer": "4"}})


@behaviour
def evaluate_init():
    e = Evaluate(devset=DEV, metric=answer_exact_match, display_progress=False)
    assert e.devset == DEV and e.metric is answer_exact_match and e.display_progress is False


@behaviour
def evaluate_threads():
    assert Evaluate(devset=DEV, metric=answer_exact_match, num_threads=7).num_threads == 7


@behaviour
def evaluate_threads_none():
    assert Evaluate(devset=DEV, metric=answer_exact_match).num_threads is None


@behaviour
def evaluate_call():
    with dspy.context(lm=lm_ok()):
        p = dspy.Predict("question -> answer")
        r = Evaluate(devset=DEV, metric=answer_exact_match, display_progress=False)(p)
        assert r.score == 100.0 and float(r) == 100.0


@behaviour
def evaluate_result_type():
    from dspy.evaluate.evaluate import EvaluationResult

    with dspy.context(lm=lm_ok()):
        r = Evaluate(devset=DEV, metric=answer_exact_match, display_progress=False)(dspy.Predict("question -> answer"))
    assert (
        isinstance(r, EvaluationResult)
        and isinstance(r, dspy.Prediction)
        and len(r.results) == 2
        and r.results[0][0] is DEV[0]
        and r.results[0][1].answer == "2"
        and r.results[0][2]
    )


@behaviour
def evaluate_bad():
    with dspy.context(lm=DummyLM({"What is 1+1?": {"answer": "0"}, "What is 2+2?": {"answer": "0"}})):
        assert (
            Evaluate(devset=DEV, metric=answer_exact_match, display_progress=False)(
                dspy.Predict("question -> answer")
            ).score
            == 0.0
        )


@behaviour
def evaluate_construct():
    with dspy.context(lm=DummyLM([{"answer": "a"}])):
        r = Evaluate(devset=[ex("q", {"a"})], metric=lambda e, p, t=None: p.answer == "a", display_progress=False)(
            dspy.Predict("question -> answer")
        )
        assert r.score == 100.0


@behaviour
def evaluate_dict_outputs():
    with dspy.context(lm=lm_ok()):
        Evaluate(
            devset=[ex("What is 1+1?", {"k": "v"})],
            metric=lambda e, p, t=None: True,
            display_progress=False,
            display_table=True,
        )(dspy.Predict("question -> answer"))


@behaviour
def evaluate_table():
    assert Evaluate(devset=DEV, metric=answer_exact_match, display_table=True).display_table is True


@behaviour
def evaluate_table_out():
    for t in (True, False, 1):
        with dspy.context(lm=lm_ok()):
            Evaluate(devset=DEV, metric=answer_exact_match, display_table=t, display_progress=False)(
                dspy.Predict("question -> answer")
            )


@behaviour
def evaluate_callback():
    from dspy.utils.callback import BaseCallback

    class CB(BaseCallback):
        def __init__(self):
            self.s = self.e = 0
            self.i = self.o = None

        def on_evaluate_start(self, call_id, instance, inputs):
            self.i = inputs
            self.s += 1

        def on_evaluate_end(self, call_id, outputs, exception=None):
            self.o = outputs
            self.e += 1

    c = CB()
    with dspy.context(lm=lm_ok(), callbacks=[c]):
        p = dspy.Predict("question -> answer")
        r = Evaluate(devset=DEV, metric=answer_exact_match, display_progress=False)(p)
    assert c.s == 1 and c.e == 1 and c.i["program"] is p and c.o == r


@behaviour
def evaluate_result_repr():
    from dspy.evaluate.evaluate import EvaluationResult

    r = EvaluationResult(score=100.0, results=[(DEV[0], dspy.Prediction(answer="a"), 100.0)])
    assert "100.0" in repr(r) and "1" in repr(r)


@behaviour
def evaluate_float_metric():
    with dspy.context(lm=lm_ok()):
        r = Evaluate(devset=DEV, metric=lambda e, p, t=None: 0.5, display_progress=False)(
            dspy.Predict("question -> answer")
        )
        assert r.score == 50.0


@behaviour
def evaluate_metric_override():
    with dspy.context(lm=lm_ok()):
        r = Evaluate(devset=DEV, display_progress=False)(
            dspy.Predict("question -> answer"), metric=answer_exact_match, num_threads=1
        )
        assert r.score == 100.0


@behaviour
def evaluate_prediction_metric():
    with dspy.context(lm=lm_ok()):
        r = Evaluate(
            devset=DEV, metric=lambda e, p, t=None: dspy.Prediction(score=0.5, feedback="x"), display_progress=False
        )(dspy.Predict("question -> answer"))
        assert r.score == 50.0


@behaviour
def evaluate_csv():
    f = tempfile.mktemp(suffix=".csv")
    with dspy.context(lm=lm_ok()):
        Evaluate(devset=DEV, metric=answer_exact_match, display_progress=False, save_as_csv=f)(
            dspy.Predict("question -> answer")
        )
    assert open(f).readline().strip().split(",")[0] == "question" or "question" in open(f).readline()


@behaviour
def evaluate_json():
    f = tempfile.mktemp(suffix=".json")
    with dspy.context(lm=lm_ok()):
        Evaluate(devset=DEV, metric=answer_exact_match, display_progress=False, save_as_json=f)(
            dspy.Predict("question -> answer")
        )
    d = json.load(open(f))
    assert len(d) == 2 and d[0]["question"] == "What is 1+1?"


@behaviour
def evaluate_fail_score():
    class B(dspy.Module):
        def forward(self, question):
            if "1+1" in question:
                raise ValueError("x")
            return dspy.Prediction(answer="4")

    r = Evaluate(devset=DEV, metric=answer_exact_match, display_progress=False, max_errors=10, failure_score=0.0)(B())
    assert r.score == 50.0


@behaviour
def metric_list():
    p = dspy.Prediction(answer="2")
    assert answer_exact_match(dspy.Example(answer=["2", "two"]), p)


@behaviour
def metric_no():
    assert not answer_exact_match(ex("q", "2"), dspy.Prediction(answer="3"))


@behaviour
def metric_predictor():
    p = dspy.Predict("question -> answer")
    p.answer = "2"
    assert answer_exact_match(ex("q", "2"), p)


@behaviour
def metric_frac():
    assert answer_exact_match(ex("q", "the cat sat"), dspy.Prediction(answer="cat sat down"), frac=0.5)


@behaviour
def metric_passage():
    from dspy.evaluate.metrics import answer_passage_match

    assert answer_passage_match(
        ex("q", "Paris"), dspy.Prediction(context=["Paris is nice"])
    ) and not answer_passage_match(ex("q", "Paris"), dspy.Prediction(context=["Rome"]))


@behaviour
def metric_norm():
    from dspy.evaluate import normalize_text

    assert normalize_text("The,  Eiffel  Tower!") == "eiffel tower"


@behaviour
def metric_em():
    from dspy.evaluate import EM

    assert EM("The Eiffel Tower", ["Eiffel Tower", "Louvre"]) and not EM("paris", ["Paris, France"])


@behaviour
def metric_f1():
    from dspy.evaluate.metrics import F1, HotPotF1, em_score, f1_score, precision_score

    assert (
        round(F1("Eiffel Tower is in Paris", ["Paris"]), 2) == 0.33
        and f1_score("the Eiffel Tower", "Eiffel Tower") == 1.0
        and HotPotF1("yes", ["no"]) == 0.0
        and em_score("a", "A")
        and round(precision_score("eiffel tower in paris", "eiffel tower"), 2) == 0.5
    )


def _sem(**k):
    from dspy.evaluate.auto_evaluation import SemanticF1

    with dspy.context(lm=DummyLM([{"reasoning": "c", "precision": 0.8, "recall": 0.6}])):
        return SemanticF1(**{x: v for x, v in k.items() if x != "trace"})(
            dspy.Example(question="t", response="a"), dspy.Prediction(response="r"), trace=k.get("trace")
        )


@behaviour
def semantic_f1_1():
    r = _sem()
    assert isinstance(r, dspy.Prediction) and isinstance(r.score, float)


@behaviour
def semantic_f1_2():
    r = _sem(threshold=0.5, trace=True)
    assert isinstance(r, dspy.Prediction) and r.score is True


@behaviour
def semantic_f1_3():
    assert abs(_sem().score - 2 * 0.48 / 1.4) < 1e-3


@behaviour
def semantic_f1_4():
    assert _sem() == _sem() and _sem() > 0.5


# Both judges may ask at once, so each answer has the fields of both.
CG = [
    {
        "reasoning": "a",
        "ground_truth_key_ideas": "i",
        "system_response_key_ideas": "i",
        "system_response_claims": "c",
        "discussion": "d",
        "completeness": 0.9,
        "groundedness": 0.8,
    }
] * 2


def _cg(**k):
    from dspy.evaluate.auto_evaluation import CompleteAndGrounded

    with dspy.context(lm=DummyLM(copy.deepcopy(CG))):
        return CompleteAndGrounded(**{x: v for x, v in k.items() if x != "trace"})(
            dspy.Example(question="t", response="a"), dspy.Prediction(response="r", context="c"), trace=k.get("trace")
        )


@behaviour
def grounded_1():
    r = _cg()
    assert isinstance(r, dspy.Prediction) and isinstance(r.score, float)


@behaviour
def grounded_2():
    r = _cg(threshold=0.7, trace=True)
    assert r.score is True
