"""Behaviours of DSPy: examples and predictions."""

import json

import dspy

from tests.dspy.behaviours.support import behaviour, raises

Example = dspy.Example


@behaviour
def example_init():
    e = Example(a=1, b=2)
    assert (e.a, e.b) == (1, 2)


@behaviour
def example_base():
    e = Example(base=Example(a=1, b=2), c=3)
    assert (e.a, e.b, e.c) == (1, 2, 3)


@behaviour
def example_dict():
    e = Example(base={"a": 1}, c=3)
    assert (e.a, e.c) == (1, 3)


@behaviour
def example_item():
    e = Example()
    e["a"] = 1
    assert e["a"] == 1


@behaviour
def example_attr():
    e = Example(a=1)
    e.a = 2
    assert e.a == 2


@behaviour
def example_del():
    e = Example(a=1, b=2)
    del e["a"]
    with raises(AttributeError):
        e.a


@behaviour
def example_len():
    assert len(Example(a=1, b=2, dspy_hidden=3)) == 2


@behaviour
def example_eq():
    assert Example(a=1) == Example(a=1) != ""


@behaviour
def example_hash():
    assert hash(Example(a=1, b=2)) == hash(Example(a=1, b=2))


@behaviour
def example_views():
    e = Example(a=1, b=2, dspy_hidden=3)
    assert set(e.keys()) == {"a", "b"} and 1 in e.values() and ("b", 2) in e.items()


@behaviour
def example_get():
    e = Example(a=1)
    assert e.get("a") == 1 and e.get("c", "d") == "d"


@behaviour
def example_inputs():
    e = Example(a=1, b=2).with_inputs("a")
    assert e.inputs().toDict() == {"a": 1} and e.labels().toDict() == {"b": 2}


@behaviour
def example_input_keys():
    assert Example(a=1, b=2).with_inputs("a")._input_keys == {"a"}


@behaviour
def example_copy():
    c = Example(a=1, b=2).copy(c=3)
    assert (c.a, c.c) == (1, 3)
    with raises(AttributeError):
        c.without("a").a


@behaviour
def example_dict2():
    assert Example(a=1).toDict() == {"a": 1}


@behaviour
def example_history():
    h = dspy.History(messages=[{"q": "1", "a": "2"}])
    d = Example(h=h, q="x").toDict()
    assert (
        d["h"]["messages"] == [{"q": "1", "a": "2"}]
        and isinstance(d["h"], dict)
        and json.loads(json.dumps(d))["h"]["messages"] == d["h"]["messages"]
    )


@behaviour
def example_repr():
    assert "'a': 1" in repr(Example(a=1)) or "a=1" in repr(Example(a=1))


@behaviour
def example_repr_exact():
    assert repr(Example(a=1)) == "Example({'a': 1}) (input_keys=None)" == str(Example(a=1))


@behaviour
def example_in():
    assert "a" in Example(a=1) and "b" not in Example(a=1)


@behaviour
def example_unpack():
    assert {**Example(a=1, b=2)} == {"a": 1, "b": 2}


@behaviour
def example_noinputs():
    with raises(ValueError):
        Example(a=1).inputs()


Prediction = dspy.Prediction


@behaviour
def prediction_completions():
    p = Prediction.from_completions([{"a": "1"}, {"a": "2"}])
    assert p.a == "1" and p.completions.a == ["1", "2"] and p.completions[1].a == "2" and len(p.completions) == 2


@behaviour
def prediction_completions_dict():
    p = Prediction.from_completions({"a": ["1", "2"]})
    assert p.a == "1" and p.completions[1].a == "2" and "a" in p.completions


@behaviour
def prediction_float():
    assert float(Prediction(score=0.5)) == 0.5


@behaviour
def prediction_arith():
    a, b = Prediction(score=0.5), Prediction(score=0.25)
    assert a + b == 0.75 and sum([a, b]) == 0.75 and a / 2 == 0.25 and 1 / a == 2 and 1 + a == 1.5


@behaviour
def prediction_compare():
    a, b = Prediction(score=0.5), Prediction(score=0.25)
    assert a > b and b < a and a >= 0.5 and b <= 0.25 and a > 0.1


@behaviour
def prediction_no_score():
    with raises(ValueError):
        float(Prediction(a=1))


@behaviour
def prediction_usage():
    p = Prediction(a=1)
    p.set_lm_usage({"m": {"total_tokens": 1}})
    assert p.get_lm_usage() == {"m": {"total_tokens": 1}}


@behaviour
def prediction_base():
    assert Prediction({"a": 1}, b=2).toDict() == {"a": 1, "b": 2}
