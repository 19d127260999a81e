"""Behaviours of DSPy: outputs that are decided, their configurations, the client of decisions and ReAnchor."""

import copy
import json
import tempfile
from pathlib import Path
from typing import Annotated, Literal, get_args

import dspy
import pydantic
from dspy.experimental import Choice, Noul, ReAnchor, Score, TypeSafe
from dspy.utils.dummies import DummyLM

from tests.dspy.behaviours.support import behaviour, raises

Grade = Score["weak", "fair", "strong"]
Desk = Choice[(7, "first floor"), ("attic", "top floor")]
STATED = {
    "open": {"noul": 0.75},
    "grade": {"probabilities": {"0": 0.125, "1": 0.25, "2": 0.625}, "confidence": 0.5},
    "desk": {"probabilities": {"7": 0.75, "attic": 0.25}, "confidence": 0.625},
}


class Visit(dspy.Signature):
    """Plan a visit."""

    note: str = dspy.InputField(desc="what the guest wrote")
    open: Noul = dspy.OutputField(desc="Is the house open?")
    grade: Grade = dspy.OutputField(desc="How strong is the wish?")
    desk: Desk = dspy.OutputField(desc="Which desk?")


class Plain(dspy.Signature):
    """Plan a visit."""

    note: str = dspy.InputField(desc="what the guest wrote")
    open: bool = dspy.OutputField(desc="Is the house open?")
    desk: Literal[7, "attic"] = dspy.OutputField(desc="Which desk?")


class Client:
    """A client of decisions that answers by a function of state, name and question."""

    supports_decision_requests = True

    def __init__(self, answer=None, cache=True):
        self.answer = answer or (lambda state, name, question: STATED[name])
        self.cache, self.calls = cache, []

    def __call__(self, state, questions):
        self.calls.append(copy.deepcopy((state, questions)))
        return {name: copy.deepcopy(self.answer(state, name, each)) for name, each in questions.items()}

    async def acall(self, state, questions):
        return self(state, questions)


def _p(true):
    return Client(lambda state, name, question: {"noul": true} if name == "open" else STATED[name])


def _configured(lm=None):
    predict = dspy.Predict(Visit)
    predict.lm = lm
    predict.fields = {
        "open": {"threshold": 0.75, "instructions": {"look": "at the date"}},
        "grade": {"cuts": [0.25, 1.75]},
        "desk": {"weights": {"7": 0.25}},
    }
    return predict


# --- types


@behaviour
def names_are_experimental_only():
    for name in ("Choice", "Noul", "ReAnchor", "Score", "TypeSafe"):
        assert hasattr(dspy.experimental, name)
        assert not hasattr(dspy, name)


@behaviour
def values_need_a_confidence():
    for kind, value in ((Noul, True), (Grade, 1.25), (Desk, "attic")):
        with raises(pydantic.ValidationError):
            kind(value=value)
        with raises(pydantic.ValidationError):
            kind(value=value, confidence=1.5)
        assert kind(value=value, confidence=0.5).value == value


@behaviour
def values_round_trip_as_json():
    for kind, value in ((Noul, False), (Grade, 0.5), (Desk, 7)):
        made = kind(value=value, confidence=0.5)
        assert pydantic.TypeAdapter(kind).validate_json(made.model_dump_json()) == made
        assert made.model_dump(mode="json") == {"value": value, "confidence": 0.5}


@behaviour
def values_have_their_evidence_in_json():
    assert Noul(value=True, confidence=0.5, probability=0.75).model_dump()["probability"] == 0.75
    made = Grade(value=1.0, confidence=0.5, probabilities={0: 0.25, 1: 0.5, 2: 0.25}, level=1)
    assert made.model_dump()["probabilities"] == {0: 0.25, 1: 0.5, 2: 0.25} and made.model_dump()["level"] == 1


@behaviour
def values_forbid_other_members():
    with raises(pydantic.ValidationError):
        Noul(value=True, confidence=0.5, mood="good")


@behaviour
def noul_is_a_truth_value():
    assert Noul(value=True, confidence=0.5) and not Noul(value=False, confidence=0.5)
    with raises(pydantic.ValidationError):
        Noul(value=1, confidence=0.5)


@behaviour
def score_is_a_number_within_its_levels():
    assert float(Grade(value=1.25, confidence=0.5)) == 1.25
    for value in (-0.5, 2.5, float("nan")):
        with raises(pydantic.ValidationError):
            Grade(value=value, confidence=0.5)


@behaviour
def choice_values_keep_their_types():
    truths, numbers = Choice[(True, "so"), (False, "not")], Choice[(1, "so"), (0, "not")]
    assert truths is not numbers
    assert type(truths(value=True, confidence=0.5).value) is bool
    assert type(numbers(value=1, confidence=0.5).value) is int


@behaviour
def criteria_are_copies():
    kind = Choice[("a", {"examples": ["x"]}), ("b", None)]
    kind.criteria()["a"]["examples"].append("y")
    assert kind.criteria() == {"a": {"examples": ["x"]}, "b": None}
    assert Grade.criteria() == ["weak", "fair", "strong"]
    assert Noul[(False, "shut")].criteria() == {"false": "shut"} and Noul.criteria() is None


@behaviour
def equal_criteria_are_one_type():
    assert Score["weak", "fair", "strong"] is Grade
    assert Noul[(True, "a"), (False, "b")] is Noul[(False, "b"), (True, "a")]


@behaviour
def wrong_subscriptions_are_value_errors():
    wrong = [
        (Score, ("alone",)),
        (Score, ("weak", None)),
        (Choice, ((1, "a"), ("1", "b"))),
        (Choice, (([], "bad"),)),
        (Choice, ("a", "b", "c")),
        (Noul, ((True, "a"), (True, "b"))),
        (Noul, (("yes", "a"),)),
        (Noul, ((True, 42),)),
    ]
    for kind, options in wrong:
        with raises(ValueError):
            kind[options]


# --- calls


def _check_configured(result):
    assert result.open.value is True and result.open.probability == 0.75 and result.open.confidence == 0
    assert result.grade.value == 1.5 and result.grade.level == 1 and result.grade.confidence == 0.5
    assert result.desk.value == "attic" and result.desk.probabilities == {"7": 0.75, "attic": 0.25}
    assert result.desk.confidence == 0.625


@behaviour
def client_and_chat_model_decide_alike():
    asked = _configured(Client())(note="x")
    _check_configured(asked)
    with dspy.context(adapter=dspy.ChatAdapter()):
        assert _configured(DummyLM([STATED]))(note="x").toDict() == asked.toDict()


@behaviour
def json_model_decides_alike():
    adapter = dspy.JSONAdapter()
    with dspy.context(adapter=adapter):
        _check_configured(_configured(DummyLM([STATED], adapter=adapter))(note="x"))


@behaviour
async def awaited_calls_decide_alike():
    _check_configured(await _configured(Client()).acall(note="x"))
    with dspy.context(adapter=dspy.ChatAdapter()):
        _check_configured(await _configured(DummyLM([STATED])).acall(note="x"))


@behaviour
def instructions_and_criteria_are_in_the_prompt():
    predict = _configured(DummyLM([STATED]))
    predict.set_criteria("grade", [{"sign": "asks nothing"}, "fair", {"examples": ["has booked"]}])
    with dspy.context(adapter=dspy.ChatAdapter()):
        predict(note="x")
    prompt = json.dumps(predict.lm.history[-1]["messages"])
    assert "at the date" in prompt and "asks nothing" in prompt and "has booked" in prompt


@behaviour
def demos_of_a_text_model_keep_their_labels():
    predict = _configured(DummyLM([STATED]))
    predict.demos = [{"note": "only a label", "open": False, "grade": 0.0, "desk": 7}]
    before = copy.deepcopy(predict.demos)
    with dspy.context(adapter=dspy.ChatAdapter()):
        predict(note="x")
    assert "only a label" in json.dumps(predict.lm.history[-1]["messages"]) and predict.demos == before


@behaviour
def completions_are_each_decided():
    signature = Visit.append("why", dspy.OutputField(), type_=str)
    first, second = {**STATED, "why": "one"}, {**STATED, "open": {"noul": 0.25}, "why": "two"}
    with dspy.context(adapter=dspy.ChatAdapter(), lm=DummyLM([first, second])):
        result = dspy.Predict(signature)(note="x", config={"n": 2})
    assert result.why == "one" and result.grade.value == 1.5
    assert result.completions[1].open.value is False and result.completions[1].why == "two"


@behaviour
def native_outputs_stay_native():
    class Native(dspy.Signature):
        note: str = dspy.InputField()
        open: Annotated[bool, Noul[(True, "lights are on")]] = dspy.OutputField(desc="Is it open?")
        desk: Annotated[Literal[7, "attic"], Desk] = dspy.OutputField(desc="Which desk?")

    predict = dspy.Predict(Native)
    predict.lm = Client()
    result = predict(note="x")
    assert result.open is True and result.desk == 7 and type(result.desk) is int


@behaviour
def plain_outputs_of_text_models_are_asked_as_ever():
    with dspy.context(lm=DummyLM([{"open": False, "desk": "attic"}])):
        result = dspy.Predict(Plain)(note="x")
    assert result.open is False and result.desk == "attic"


@behaviour
def configured_native_outputs_are_decided():
    predict = dspy.Predict(Plain)
    predict.fields = {"open": {"threshold": 0.8}, "desk": {"weights": {"7": 0.1}}}
    with dspy.context(lm=DummyLM([{name: STATED[name] for name in ("open", "desk")}])):
        result = predict(note="x")
    assert result.open is False and result.desk == "attic"


@behaviour
def state_and_questions_of_a_client():
    client = Client()
    predict = dspy.Predict(Visit)
    predict.lm = client
    predict(note="hello")
    state, questions = client.calls[0]
    assert state["inputs"] == {"note": "hello"} and state["instructions"] == "Plan a visit."
    assert questions["open"] == {"type": "noul", "instructions": "Is the house open?"}
    assert questions["grade"]["criteria"] == ["weak", "fair", "strong"] and questions["grade"]["type"] == "score"
    assert questions["desk"] == {
        "type": "choice",
        "instructions": "Which desk?",
        "criteria": {"7": "first floor", "attic": "top floor"},
    }


@behaviour
def native_and_rich_outputs_ask_the_same():
    client = Client()
    both = [
        dspy.Predict(Plain),
        dspy.Predict(Plain.with_updated_fields("open", type_=Noul)),
    ]
    for predict in both:
        predict.lm = client
    native, rich = (predict(note="x") for predict in both)
    assert client.calls[0] == client.calls[1]
    assert native.open is rich.open.value is True


@behaviour
def demos_and_signature_of_a_call_reach_the_client():
    client = Client()
    predict = _configured(client)
    predict.demos = [dspy.Example(note="kept", open=True)]
    predict(
        note="x",
        demos=[dspy.Example(note="given", open=False, augmented=True)],
        signature=Visit.with_instructions("Only today."),
    )
    state, _ = client.calls[-1]
    assert state["demos"] == [{"note": "given", "open": False}] and state["instructions"] == "Only today."
    assert predict.demos[0].note == "kept" and predict.signature is Visit


@behaviour
def trace_has_the_decided_values():
    predict = _configured(Client())
    with dspy.context(trace=[]):
        result = predict(note="x")
        step = dspy.settings.trace[0]
    assert step[0] is predict and step[1] == {"note": "x"} and step[2].open == result.open


@behaviour
def batch_asks_the_client_of_the_settings():
    with dspy.context(lm=_p(0.25)):
        rows = [dspy.Example(note=str(n)).with_inputs("note") for n in range(3)]
        assert [each.open.value for each in dspy.Predict(Visit).batch(rows, num_threads=2)] == [False] * 3


@behaviour
def client_of_a_call_comes_first():
    with dspy.context(lm=_p(0.25)):
        assert dspy.Predict(Visit)(note="x", lm=_p(0.875)).open.value is True


@behaviour
def subclass_of_typesafe_answers_itself():
    class Own(TypeSafe):
        def __call__(self, state, questions):
            return {name: copy.deepcopy(STATED[name]) for name in questions}

    predict = dspy.Predict(Visit)
    predict.lm = Own("jev-test")
    assert predict(note="x").desk.value == 7


@behaviour
def decided_values_are_inputs_of_other_predictors():
    result = _configured(Client())(note="x")
    signature = dspy.Signature(
        {
            "open": (Noul, dspy.InputField()),
            "desk": (Desk, dspy.InputField()),
            "answer": (str, dspy.OutputField()),
        }
    )
    lm = DummyLM([{"answer": "come in"}])
    with dspy.context(lm=lm):
        assert dspy.Predict(signature)(open=result.open, desk=result.desk).answer == "come in"
    assert '"confidence"' in lm.history[-1]["messages"][-1]["content"]


# --- numbers


@behaviour
def threshold_and_confidence():
    for true, value, confidence in (
        (0, False, 1),
        (0.5, False, 1 / 3),
        (0.75, True, 0),
        (0.875, True, 1 / 6),
        (1, True, 1 / 3),
    ):
        predict = dspy.Predict(Visit)
        predict.lm, predict.fields = _p(true), {"open": {"threshold": 0.75}}
        found = predict(note="x").open
        assert found.value is value and abs(found.confidence - confidence) < 1e-9, (true, found)


@behaviour
def thresholds_at_the_ends():
    for threshold, true, value in ((0, 0, True), (1, 0.99, False), (1, 1, True)):
        predict = dspy.Predict(Visit)
        predict.lm, predict.fields = _p(true), {"open": {"threshold": threshold}}
        assert predict(note="x").open.value is value


@behaviour
def cuts_choose_the_level_only():
    client = Client()
    for cuts, level in (([0.5, 1.5], 2), ([0.5, 1.75], 1), ([1.6, 1.7], 0)):
        predict = dspy.Predict(Visit)
        predict.lm, predict.fields = client, {"grade": {"cuts": cuts}}
        found = predict(note="x").grade
        assert (found.level, found.value, found.confidence) == (level, 1.5, 0.5)
    assert client.calls[0] == client.calls[1] == client.calls[2]


@behaviour
def weights_choose_the_value_only():
    client = Client()
    for weights, value in (({}, 7), ({"7": 0.25}, "attic"), ({"7": 0}, "attic"), ({"7": 10, "attic": 100}, "attic")):
        predict = dspy.Predict(Visit)
        predict.lm, predict.fields = client, {"desk": {"weights": weights}}
        found = predict(note="x").desk
        assert (found.value, found.probabilities, found.confidence) == (value, {"7": 0.75, "attic": 0.25}, 0.625)
    assert all(call == client.calls[0] for call in client.calls)


@behaviour
def weighted_ties_go_to_the_most_probable():
    predict = dspy.Predict(Visit)
    predict.lm, predict.fields = Client(), {"desk": {"weights": {"attic": 3}}}
    assert predict(note="x").desk.value == 7


@behaviour
def probabilities_decide_and_not_the_choice_of_the_client():
    def answer(state, name, question):
        even = {"choice": "attic", "probabilities": {"attic": 0.5, "7": 0.5}, "confidence": 0.25}
        return even if name == "desk" else STATED[name]

    predict = dspy.Predict(Visit)
    predict.lm = Client(answer)
    found = predict(note="x").desk
    assert found.value == 7 and type(found.value) is int and found.confidence == 0.25


@behaviour
def literals_are_read_with_their_types():
    for options, label, wanted in (
        (Literal[1, 2], "2", 2),
        (Literal["a", "b"], "b", "b"),
        (Literal[3, "other"], "3", 3),
    ):

        def answer(state, name, question, label=label):
            shares = {key: 0.75 if key == label else 0.25 for key in question["criteria"]}
            return {"probabilities": shares, "confidence": 0.5}

        for kind in (options, Choice[tuple((value, "") for value in get_args(options))]):
            signature = dspy.Signature(
                {"note": (str, dspy.InputField()), "pick": (kind, dspy.OutputField(desc="Which?"))}
            )
            predict = dspy.Predict(signature)
            predict.lm = Client(answer)
            found = predict(note="x").pick
            value = found if kind is options else found.value
            assert value == wanted and type(value) is type(wanted)


@behaviour
def labels_of_python_values_are_those_of_str():
    kind = Literal[None, True, "other"]
    client = Client(
        lambda state, name, question: {"probabilities": {"None": 0.5, "True": 0.25, "other": 0.25}, "confidence": 0.5}
    )
    signature = dspy.Signature({"note": (str, dspy.InputField()), "pick": (kind, dspy.OutputField(desc="Which?"))})
    predict = dspy.Predict(signature)
    predict.lm = client
    assert predict(note="x").pick is None


@behaviour
def configuration_is_read_when_the_call_begins():
    predict = dspy.Predict(Visit)
    predict.fields = {"open": {"threshold": 0.5}}

    def answer(state, name, question):
        predict.fields["open"]["threshold"] = 0.9
        return STATED[name]

    predict.lm = Client(answer)
    assert [predict(note="x").open.value for _ in range(2)] == [True, False]


# --- what is refused

WRONG_FIELDS = [
    {"open": {"threshold": -0.1}},
    {"open": {"threshold": float("nan")}},
    {"missing": {"threshold": 0.5}},
    {"open": None},
    {"open": {"threshold": 0.5, "treshold": 0.5}},
    {"grade": {"cuts": [0.5, 1.5], "weights": {}}},
    *(
        {"desk": {"weights": each}}
        for each in ({"cellar": 1}, {7: 1}, {"7": -1}, {"7": float("inf")}, {"7": True}, [1, 2])
    ),
    {"desk": {"weights": {"7": 0, "attic": 0}}},
    *({"grade": {"cuts": each}} for each in ([0, 1.5], [0.5, 2], [1.5, 0.5], [0.5, 0.5], [0.5], [True, 1.5])),
]


@behaviour
def wrong_configurations_are_refused_before_the_call():
    for fields in WRONG_FIELDS:
        predict = dspy.Predict(Visit)
        predict.lm, predict.fields = Client(), fields
        with raises(ValueError):
            predict(note="x")
        assert not predict.lm.calls


@behaviour
def wrong_configurations_are_not_saved():
    for fields in WRONG_FIELDS:
        predict = dspy.Predict(Visit)
        predict.fields = fields
        with raises(ValueError):
            predict.dump_state()


@behaviour
def wrong_configurations_are_not_loaded():
    predict = _configured()
    before = predict.dump_state()
    for fields in WRONG_FIELDS:
        with raises(ValueError):
            predict.load_state({**copy.deepcopy(before), "fields": fields})
        assert predict.dump_state() == before


@behaviour
def wrong_criteria_are_refused():
    for field, criteria in (
        ("open", ["yes", "no"]),
        ("open", {"yes": "a"}),
        ("desk", ["a", "b"]),
        ("desk", {"7": "a"}),
        ("grade", {"0": "a", "1": "b", "2": "c"}),
        ("grade", ["a", "b"]),
    ):
        predict = dspy.Predict(Visit)
        with raises(ValueError, match="riteria"):
            predict.set_criteria(field, criteria)
        assert predict.fields == {}


@behaviour
def instructions_are_json():
    for given in ({"a": {1: "b"}}, {"a": float("nan")}, {"a": {"b"}}, 42):
        predict = dspy.Predict(Visit)
        predict.fields = {"open": {"threshold": 0.5, "instructions": given}}
        with raises(ValueError, match="nstructions"):
            predict.dump_state()


@behaviour
def signature_of_a_call_keeps_the_answers_of_configured_outputs():
    for name, kind in (
        ("grade", Score["low", "mid", "high"]),
        ("grade", Score["a", "b"]),
        ("desk", Literal[7, "cellar"]),
        ("open", Literal[True, "x"]),
    ):
        predict = _configured(Client())
        with raises(ValueError, match="preserve the answer space"):
            predict(note="x", signature=Visit.with_updated_fields(name, type_=kind))
        assert not predict.lm.calls


@behaviour
def outputs_without_answers_are_refused_by_a_client():
    for kind in (str, int, list[str]):
        predict = dspy.Predict(Visit.with_updated_fields("open", type_=kind))
        predict.lm = Client()
        with raises(ValueError):
            predict(note="x")
        assert not predict.lm.calls


@behaviour
def weights_that_leave_no_probability_are_an_error():
    def answer(state, name, question):
        return {"probabilities": {"7": 1, "attic": 0}, "confidence": 0.5} if name == "desk" else STATED[name]

    predict = dspy.Predict(Visit)
    predict.lm, predict.fields = Client(answer), {"desk": {"weights": {"7": 0}}}
    with raises(ValueError):
        predict(note="x")


@behaviour
def broken_evidence_is_an_error():
    for name, broken in (
        ("open", {"noul": 1.1}),
        ("open", {"noul": float("nan")}),
        ("grade", {"probabilities": {0: 0.5, 1: 0.5}, "confidence": 0.5}),
        ("grade", {"probabilities": {0: 0, 1: 0, 2: 0}, "confidence": 0.5}),
        ("desk", {"probabilities": {"cellar": 1}, "confidence": 0.5}),
    ):
        predict = dspy.Predict(Visit)
        predict.lm = Client(
            lambda state, asked, question, name=name, broken=broken: broken if asked == name else STATED[asked]
        )
        with raises(Exception):
            predict(note="x")


@behaviour
def broken_evidence_of_a_client_is_a_value_error():
    predict = dspy.Predict(Visit)
    predict.lm = _p(1.1)
    with raises(ValueError):
        predict(note="x")


@behaviour
def options_of_generation_are_refused_by_a_client():
    predict = dspy.Predict(Visit)
    predict.lm = Client()
    with raises(ValueError):
        predict(note="x", config={"temperature": 0.5})
    assert not predict.lm.calls


# --- states and files


@behaviour
def fields_are_in_the_state():
    predict = _configured()
    assert predict.dump_state()["fields"] == predict.fields
    assert "fields" not in dspy.Predict(Visit).dump_state()


@behaviour
def files_keep_the_configurations():
    predict = _configured()
    predict.set_criteria("open", {"true": {"examples": ["lights"]}, "false": None})
    path = Path(tempfile.mkdtemp(), "visit.json")
    predict.save(path)
    assert json.loads(path.read_text())["fields"] == predict.fields
    loaded = dspy.Predict(Visit)
    loaded.load(path)
    assert loaded.fields == predict.fields
    one, other = Client(), Client()
    assert predict(note="x", lm=one).toDict() == loaded(note="x", lm=other).toDict()
    assert one.calls == other.calls


@behaviour
def loaded_configurations_are_copies():
    predict = _configured()
    loaded = dspy.Predict(Visit).load_state(predict.dump_state())
    loaded.fields["open"]["threshold"] = 0.5
    assert predict.fields["open"]["threshold"] == 0.75
    copied = predict.deepcopy()
    copied.fields["open"]["threshold"] = 0.5
    assert predict.fields["open"]["threshold"] == 0.75


@behaviour
def reset_copy_keeps_the_configurations():
    predict = _configured(Client())
    made = predict.reset_copy()
    assert made.lm is None and made.fields == predict.fields


@behaviour
def criteria_are_read_and_set_as_copies():
    predict = dspy.Predict(Visit)
    assert predict.get_criteria("desk") == {"7": "first floor", "attic": "top floor"}
    assert predict.get_criteria("grade") == ["weak", "fair", "strong"] and predict.get_criteria("open") is None
    given = {"true": {"examples": ["lights"]}, "false": None}
    predict.set_criteria("open", given)
    given["true"]["examples"].clear()
    predict.get_criteria("open")["true"]["examples"].clear()
    assert predict.get_criteria("open") == {"true": {"examples": ["lights"]}, "false": None}
    predict.set_criteria("open", None)
    assert predict.get_criteria("open") is None


@behaviour
def criteria_of_metadata_are_read():
    kind = Annotated[bool, Noul[(False, "shut")]]
    assert dspy.Predict(Plain.with_updated_fields("open", type_=kind)).get_criteria("open") == {"false": "shut"}


@behaviour
def file_of_a_client_has_no_key():
    predict = dspy.Predict(Visit)
    predict.lm = TypeSafe("jev-test", api_key="key-of-a-test", base_url="https://example.test")
    path = Path(tempfile.mkdtemp(), "client.json")
    predict.save(path)
    assert "key-of-a-test" not in path.read_text()
    loaded = dspy.Predict(Visit)
    loaded.load(path, allow_unsafe_lm_state=True)
    assert isinstance(loaded.lm, TypeSafe) and loaded.lm.base_url == "https://example.test"


@behaviour
def decided_demos_are_saved():
    predict = dspy.Predict(Visit)
    predict.demos = [{"note": "a", "open": Noul(value=False, probability=0.25, confidence=0.5)}]
    path = Path(tempfile.mkdtemp(), "demos.json")
    predict.save(path)
    loaded = dspy.Predict(Visit)
    loaded.load(path)
    client = Client()
    loaded(note="x", lm=client)
    assert client.calls[-1][0]["demos"][0]["open"] == {"value": False, "probability": 0.25, "confidence": 0.5}


@behaviour
def programs_keep_the_configurations():
    class Plan(dspy.Module):
        def __init__(self):
            super().__init__()
            self.judge = dspy.Predict(Visit)
            self.tell = dspy.Predict("open: bool -> answer")

        def forward(self, note):
            return self.tell(open=self.judge(note=note).open.value)

    program = Plan()
    program.judge.fields["open"] = {"threshold": 0.9}
    path = Path(tempfile.mkdtemp(), "plan.json")
    program.save(path)
    loaded = Plan()
    loaded.load(path)
    assert loaded.judge.fields == {"open": {"threshold": 0.9}} and loaded.tell.fields == {}
    loaded.judge.lm = Client()
    with dspy.context(lm=DummyLM([{"answer": "closed"}]), trace=[]):
        assert loaded(note="x").answer == "closed"
        assert dspy.settings.trace[1][1] == {"open": False}


# --- ReAnchor


class Same(dspy.Signature):
    pair: str = dspy.InputField()
    same: bool = dspy.OutputField(desc="Are the two alike?")


def _leaning(state, name, question):
    pair = state["inputs"]["pair"]
    return {"noul": 0.9 if pair.startswith("alike") else 0.7}


def _rows(*kinds):
    return [dspy.Example(pair=kind, same=kind != "other").with_inputs("pair") for kind in kinds]


ROWS = ["alike", "other"] * 6


def _agrees(row, found, trace=None):
    return float(found.same == row.same)


def _fitted(metric=_agrees, rows=ROWS, answer=_leaning, **options):
    optimizer = ReAnchor(metric, num_threads=2, **options)
    with dspy.context(lm=Client(answer)):
        return optimizer.compile(dspy.Predict(Same), trainset=_rows(*rows)), optimizer.report


@behaviour
def reanchor_fits_a_threshold():
    program, report = _fitted()
    assert program.fields == {"same": {"threshold": 0.8}}
    assert report["train_score_before"] == 0.5 and report["train_score"] == 1.0 and "val_score" not in report
    (row,) = report["fitted"]
    assert (row["predictor"], row["field"], row["parameter"], row["value"]) == ("self", "same", "threshold", 0.8)


@behaviour
def reanchor_leaves_the_student_as_it_is():
    student = dspy.Predict(Same)
    with dspy.context(lm=Client(_leaning)):
        program = ReAnchor(_agrees, num_threads=1).compile(student, trainset=_rows(*ROWS))
    assert student.fields == {} and program is not student and program._compiled


@behaviour
def reanchor_scores_the_validation_rows():
    optimizer = ReAnchor(_agrees, num_threads=1)
    with dspy.context(lm=Client(_leaning)):
        optimizer.compile(dspy.Predict(Same), trainset=_rows(*ROWS), valset=_rows("alike", "alike", "other", "other"))
    assert optimizer.report["val_score_before"] == 0.5 and optimizer.report["val_score"] == 1.0


@behaviour
def reanchor_reads_scores_of_predictions():
    program, _ = _fitted(lambda row, found, trace=None: dspy.Prediction(score=_agrees(row, found)))
    assert program.fields == {"same": {"threshold": 0.8}}


@behaviour
def reanchor_writes_its_report():
    folder = tempfile.mkdtemp()
    _fitted(log_dir=folder)
    assert json.loads(Path(folder, "report.json").read_text())["train_score"] == 1.0


@behaviour
def reanchor_keeps_what_one_row_would_change():
    def answer(state, name, question):
        pair = state["inputs"]["pair"]
        return {"noul": 0.875 if pair.startswith("alike") else 0.375 if pair.startswith("odd") else 0.125}

    rows = [*(f"alike{n}" for n in range(9)), "odd", *["other"] * 9]
    program, report = _fitted(rows=rows, answer=answer)
    assert program.fields == {} and report["train_score"] == report["train_score_before"]
    assert "skipped" in report["fitted"][0]


@behaviour
def reanchor_keeps_a_threshold_that_is_as_good():
    student = dspy.Predict(Same)
    student.fields = {"same": {"threshold": 0.75}}
    with dspy.context(lm=Client(_leaning)):
        assert ReAnchor(_agrees, num_threads=1).compile(student, trainset=_rows(*ROWS)).fields == student.fields


@behaviour
def reanchor_keeps_the_criteria():
    student = dspy.Predict(Same)
    student.set_criteria("same", {"true": "one thing", "false": "two things"})
    with dspy.context(lm=Client(_leaning)):
        program = ReAnchor(_agrees, num_threads=1).compile(student, trainset=_rows(*ROWS))
    assert program.fields == {"same": {"criteria": {"true": "one thing", "false": "two things"}, "threshold": 0.8}}


@behaviour
def reanchor_may_set_the_threshold_to_zero():
    rows = [dspy.Example(pair=str(n), same=True).with_inputs("pair") for n in range(10)]
    with dspy.context(lm=Client(lambda state, name, question: {"noul": 0.0})):
        program = ReAnchor(_agrees, num_threads=1).compile(dspy.Predict(Same), trainset=rows)
    assert program.fields == {"same": {"threshold": 0.0}}


@behaviour
def reanchor_fits_weights():
    class Kind(dspy.Signature):
        item: str = dspy.InputField()
        kind: Literal["x", "y"] = dspy.OutputField(desc="Which?")

    def answer(state, name, question):
        x = 0.75 if state["inputs"]["item"] == "x" else 0.625
        return {"probabilities": {"x": x, "y": 1 - x}, "confidence": 0.5}

    rows = [dspy.Example(item=each, kind=each).with_inputs("item") for each in ["x", "y"] * 5]
    with dspy.context(lm=Client(answer)):
        optimizer = ReAnchor(lambda row, found, trace=None: float(found.kind == row.kind), num_threads=1)
        program = optimizer.compile(dspy.Predict(Kind), trainset=rows)
        assert [program(item=each).kind for each in "xy"] == ["x", "y"]
    weights = program.fields["kind"]["weights"]
    assert 0.625 * weights["x"] < 0.375 * weights["y"] and 0.75 * weights["x"] > 0.25 * weights["y"]
    assert optimizer.report["fitted"][0]["parameter"] == "weights"


class Rate(dspy.Signature):
    item: str = dspy.InputField()
    grade: Grade = dspy.OutputField(desc="How strong?")


def _rate(metric):
    levels = {"low": {0: 0.25, 1: 0.25, 2: 0.5}, "high": {0: 0.0, 1: 0.125, 2: 0.875}}
    client = Client(lambda state, name, question: {"probabilities": levels[state["inputs"]["item"]], "confidence": 0.5})
    rows = [
        dspy.Example(item=each, level={"low": 0, "high": 2}[each]).with_inputs("item") for each in ["low", "high"] * 5
    ]
    with dspy.context(lm=client):
        return ReAnchor(metric, num_threads=1).compile(dspy.Predict(Rate), trainset=rows)


@behaviour
def reanchor_fits_cuts():
    cuts = _rate(lambda row, found, trace=None: float(found.grade.level == row.level)).fields["grade"]["cuts"]
    assert 1.25 < cuts[0] < cuts[1] <= 1.875


@behaviour
def reanchor_keeps_cuts_that_the_metric_does_not_read():
    assert _rate(lambda row, found, trace=None: 1 - abs(found.grade.value - row.level) / 2).fields == {}


@behaviour
def reanchor_fits_each_predictor_of_a_program():
    class Batch(dspy.Module):
        def __init__(self):
            super().__init__()
            self.judge = dspy.Predict(Same)

        def forward(self, pairs):
            return dspy.Prediction(found=[self.judge(pair=pair).same for pair in pairs])

    rows = [dspy.Example(pairs=["alike", "other"], found=[True, False]).with_inputs("pairs") for _ in range(10)]
    with dspy.context(lm=Client(_leaning)):
        optimizer = ReAnchor(lambda row, found, trace=None: float(row.found == found.found), num_threads=1)
        program = optimizer.compile(Batch(), trainset=rows)
    assert isinstance(program, Batch) and program.judge.fields == {"same": {"threshold": 0.8}}
    assert optimizer.report["fitted"][0]["predictor"] == "judge"


@behaviour
def reanchor_asks_each_row_once_for_all_settings():
    client = Client(_leaning)
    with dspy.context(lm=client):
        ReAnchor(_agrees, num_threads=2).compile(dspy.Predict(Same), trainset=_rows(*ROWS))
    assert len({json.dumps(call, sort_keys=True) for call in client.calls}) == 2


@behaviour
def reanchor_of_a_text_model_turns_probabilities_on():
    class Answers(dspy.BaseLM):
        def __init__(self):
            super().__init__("answers", cache=False)

        def forward(self, prompt=None, messages=None, **kwargs):
            from types import SimpleNamespace as Made

            text = "".join(str(message["content"]) for message in messages)
            value = '{"noul": %s}' % (0.9 if "alike" in messages[-1]["content"] else 0.7) if "noul" in text else "True"
            content = f"[[ ## same ## ]]\n{value}\n\n[[ ## completed ## ]]"
            choice = Made(message=Made(content=content, tool_calls=None), finish_reason="stop", index=0)
            return Made(choices=[choice], usage={"total_tokens": 2}, model="answers")

    with dspy.context(lm=Answers(), adapter=dspy.ChatAdapter()):
        optimizer = ReAnchor(_agrees, num_threads=1, require_cache=False)
        program = optimizer.compile(dspy.Predict(Same), trainset=_rows(*ROWS))
    assert program.fields == {"same": {"threshold": 0.8}}


@behaviour
def reanchor_needs_a_cache_or_a_waiver():
    with dspy.context(lm=Client(_leaning, cache=False)):
        with raises(ValueError, match="require_cache=False"):
            ReAnchor(_agrees).compile(dspy.Predict(Same), trainset=_rows(*ROWS))
        program = ReAnchor(_agrees, require_cache=False, num_threads=1).compile(
            dspy.Predict(Same), trainset=_rows(*ROWS)
        )
    assert program.fields == {"same": {"threshold": 0.8}}


@behaviour
def reanchor_refuses_a_cache_that_is_off_for_a_predictor():
    with dspy.context(lm=Client(_leaning)), raises(ValueError, match="require_cache=False"):
        ReAnchor(_agrees).compile(dspy.Predict(Same, cache=False), trainset=_rows(*ROWS))


@behaviour
def reanchor_needs_rows_and_a_decision():
    with dspy.context(lm=Client(_leaning)):
        with raises(ValueError, match="trainset"):
            ReAnchor(_agrees).compile(dspy.Predict(Same), trainset=[])
        with raises(ValueError, match="decision output"):
            ReAnchor(_agrees).compile(dspy.Predict("pair -> answer"), trainset=_rows(*ROWS))


@behaviour
def reanchor_refuses_a_metric_without_a_number():
    for value in (float("nan"), float("inf")):
        with raises(Exception):
            _fitted(lambda row, found, trace=None, value=value: value)


@behaviour
def reanchor_refuses_unknown_arguments():
    with dspy.context(lm=Client(_leaning)), raises(Exception):
        ReAnchor(_agrees).compile(dspy.Predict(Same), trainset=_rows(*ROWS), unsupported=None)


@behaviour
def reanchor_result_is_saved():
    program, _ = _fitted()
    path = Path(tempfile.mkdtemp(), "same.json")
    program.save(path)
    loaded = dspy.Predict(Same)
    loaded.load(path)
    assert loaded.fields == {"same": {"threshold": 0.8}}


# --- TypeSafe


@behaviour
def typesafe_reads_its_environment():
    import os

    given = {
        "TYPESAFE_DEFAULT_MODEL": "jev-env",
        "TYPESAFE_BASE_URL": "https://env.test/",
        "TYPESAFE_API_KEY": "key-of-env",
    }
    os.environ.update(given)
    try:
        client = TypeSafe()
        assert (client.model, client.base_url) == ("jev-env", "https://env.test")
        assert "key-of-env" not in str(client.dump_state())
    finally:
        for name in given:
            del os.environ[name]


@behaviour
def typesafe_copies_and_states():
    client = TypeSafe("jev-test", api_key="key-of-a-test", base_url="https://a.test", timeout=3)
    state = client.dump_state()
    assert "api_key" not in state and TypeSafe.load_state(state).dump_state() == state
    assert client.copy(model="other").model == "other" and client.copy().base_url == "https://a.test"
    assert TypeSafe("jev-test").base_url == "https://api.typesafe.ai" and client.supports_decision_requests is True
