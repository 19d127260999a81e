"""Records: fields win over methods, copies keep metadata, scores are numbers, JSON is lossless."""

from __future__ import annotations

import copy
import datetime
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from sigwire.core.example import Completions, Example, Prediction, outputs_of
from sigwire.core.json import dumps, loads
from sigwire.core.messages import Message
from sigwire.core.record import to_plain
from sigwire.core.report import CallReport
from sigwire.core.response import Attempt, Choice, LMWarning, Repair, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.errors import InputError, LMServerError
from sigwire.signatures.signature import Signature
from sigwire.signatures.types import Image

BOTH = pytest.mark.parametrize("kind", [Example, Prediction])


class Place(BaseModel):
    city: str
    since: datetime.date | None = None


@BOTH
def test_fields_are_read_by_attribute_item_and_view(kind: type[Example]) -> None:
    record = kind({"a": 1}, b=2, dspy_uuid="x")
    assert (record.a, record["b"], record.get("c"), record.get("c", 3)) == (1, 2, None, 3)
    assert ("a" in record, "c" in record, len(record)) == (True, False, 2)
    assert (record.keys(), record.values(), record.items()) == (["a", "b"], [1, 2], [("a", 1), ("b", 2)])
    assert record.keys(include_dspy=True) == ["a", "b", "dspy_uuid"]
    assert list(record) == ["a", "b", "dspy_uuid"]
    record.c = 3
    record["d"] = 4
    del record["a"]
    del record.b
    assert record.toDict() == {"dspy_uuid": "x", "c": 3, "d": 4}


@BOTH
@pytest.mark.parametrize(
    "name",
    ["items", "keys", "values", "get", "copy", "inputs", "labels", "without", "toDict", "response", "usage", "score_"],
)
def test_field_named_like_a_method_wins(kind: type[Example], name: str) -> None:
    record = kind(**{name: "mine", "other": 1}).with_inputs("other")
    assert getattr(record, name) == "mine"
    assert record[name] == "mine"
    assert kind.labels(record)[name] == "mine"
    assert kind.toDict(record) == {name: "mine", "other": 1}
    assert kind.from_json(kind.to_json(record)) == record
    assert copy.deepcopy(record) == record


def test_record_unpacks_and_compares_by_content() -> None:
    example = Example(a=1, b=[2])
    assert dict(**example) == {"a": 1, "b": [2]}
    assert example == Example(b=[2], a=1)
    assert hash(example) == hash(Example(b=[2], a=1))
    assert example != Example(a=1)
    assert example != {"a": 1, "b": [2]}
    assert Prediction(a=1) == Example(a=1)
    assert len({Example(a=1), Example(a=1), Example(a=2)}) == 2


@BOTH
def test_inputs_and_labels_split_the_fields(kind: type[Example]) -> None:
    bare = kind(q="?", a="!")
    example = bare.with_inputs("q")
    assert (example.inputs().toDict(), example.labels().toDict()) == ({"q": "?"}, {"a": "!"})
    for method in (bare.inputs, bare.labels):
        with pytest.raises(ValueError, match=r"with_inputs"):
            method()


@BOTH
def test_copies_keep_inputs_and_do_not_change_the_original(kind: type[Example]) -> None:
    example = kind(q="?", a="!").with_inputs("q")
    for made in (example.copy(a="x"), example.without("a"), kind(example), copy.copy(example), copy.deepcopy(example)):
        assert type(made) is kind
        assert made.inputs().toDict() == {"q": "?"}
        made.q = "changed"
    assert example == kind(q="?", a="!")
    assert pickle.loads(pickle.dumps(example)).inputs() == example.inputs()


def test_base_is_positional_or_keyword() -> None:
    base = Example(a=1).with_inputs("a")
    for made in (Example(base, b=2), Example(base=base, b=2)):
        assert made.toDict() == {"a": 1, "b": 2}
        assert made.inputs().toDict() == {"a": 1}
    assert Example(base={"a": 1}) == Example({"a": 1}) == Example(a=1)
    assert Example(base="camp").base == "camp"


def test_every_change_increments_the_version() -> None:
    example = Example(a=1)
    versions = [example._version]
    for change in (
        lambda: setattr(example, "a", 2),
        lambda: example.__setitem__("b", 1),
        lambda: example.__delitem__("b"),
    ):
        change()
        versions.append(example._version)
    assert versions == sorted(set(versions))


def test_repr_evaluates_to_an_equal_record() -> None:
    for record in (Example(a=1, b="x").with_inputs("a"), Prediction(a=[1])):
        again = eval(repr(record))
        assert again == record
        assert again._input_keys == record._input_keys


def test_to_dict_returns_plain_data() -> None:
    day = datetime.date(2026, 1, 2)
    record = Example(inner=Example(x=1), place=Place(city="Ulm", since=day), many=[Place(city="Bonn")], on=day)
    assert record.toDict() == {
        "inner": {"x": 1},
        "place": {"city": "Ulm", "since": "2026-01-02"},
        "many": [{"city": "Bonn", "since": None}],
        "on": day,
    }


# --- JSON ---

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(
    st.text(max_size=8).filter(lambda name: name not in ("_meta", "_version", "_input_keys")), JSON
)


@given(FIELDS, st.none() | st.sets(st.text(max_size=3)))
def test_plain_record_equals_its_decoded_json(fields: dict[str, Any], chosen: set[str] | None) -> None:
    for kind in (Example, Prediction):
        record: Any = kind(fields)
        if chosen is not None:
            record = kind.with_inputs(record, *chosen)
        back = kind.from_json(loads(dumps(kind.to_json(record))))
        assert type(back) is kind
        assert back == record
        assert back._input_keys == record._input_keys


def test_from_json_with_a_signature_restores_types() -> None:
    task = Signature(
        "q, tools: list[Tool], images: list[Image] -> place: Place, day: date | None, calls: ToolCalls",
        custom_types={"Place": Place, "date": datetime.date},
    )
    record = Example(
        q="?", place=Place(city="Ulm"), day=datetime.date(2026, 1, 2), calls=ToolCalls([ToolCall("c", "f", {})]),
        images=[Image("https://e.org/a.png")], beside={"x": 1},
    )  # fmt: skip
    assert Example.from_json(loads(dumps(record.to_json())), signature=task) == record
    assert Prediction.from_json(loads(dumps(Prediction(record).to_json())), signature=task) == record


BYTES: list[tuple[str, Any]] = [
    ("bytes", b"\xff\x00"),
    ("bytes", b"plain"),
    ("list[bytes]", [b"\xfe", b""]),
    ("bytes | None", b"\xff"),
    ("bytes | None", None),
    ("dict[str, bytes]", {"a": b"\xff"}),
]


@pytest.mark.parametrize(("kind", "value"), BYTES)
def test_bytes_equal_their_decoded_json(kind: str, value: Any) -> None:
    record = Example(raw=value, text="t")
    stored = loads(dumps(record.to_json()))
    assert Example.from_json(stored, signature=Signature(f"raw: {kind} -> text")) == record


def test_prediction_is_decoded_with_its_metadata() -> None:
    response = Response((Choice(text="4"),), Usage(1, 2), "m", warnings=(LMWarning("f", "d"),))
    prediction = Prediction.make(
        {"answer": 4}, response=response, choice=response.choices[0], repairs=(Repair("answer", "trimmed"),), mode="prompt",
        attempts=(Attempt(model="m"),), completions=[{"answer": 4}, {"answer": 5}],
    )  # fmt: skip
    prediction.set_lm_usage({"m": {"total_tokens": 3}})
    back = Prediction.from_json(loads(dumps(prediction.to_json())))
    for name in ("response", "choice", "repairs", "mode", "attempts", "usage", "warnings"):
        assert getattr(back, name) == getattr(prediction, name), name
    assert back == prediction
    assert back.completions.answer == [4, 5]
    assert back.get_lm_usage() == {"m": {"total_tokens": 3}}


def test_value_without_a_json_form_raises_with_its_type() -> None:
    with pytest.raises(ValueError, match="object has no JSON form"):
        to_plain({"x": object()})


# --- Prediction ---


def test_metadata_is_read_by_attribute_and_fields_win() -> None:
    response = Response((Choice(text="4"),), Usage(1, 2), "m", attempts=(Attempt(),), warnings=(LMWarning("f", "d"),))
    prediction = Prediction.make({"answer": 4}, response=response, choice=response.choices[0], mode="prompt")
    assert (prediction.response, prediction.choice.text, prediction.mode) == (response, "4", "prompt")
    assert (prediction.usage, prediction.warnings, prediction.attempts) == (
        Usage(1, 2),
        response.warnings,
        (Attempt(),),
    )
    assert prediction.get_lm_usage() == {
        "m": {"input_tokens": 1, "output_tokens": 2, "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    }
    assert prediction.toDict() == {"answer": 4}
    assert prediction.copy(answer=5).response is response
    prediction.response = "a field"
    assert (prediction.response, prediction.usage) == ("a field", Usage(1, 2))


def test_bare_prediction_has_empty_metadata() -> None:
    bare = Prediction(a=1)
    assert (bare.response, bare.choice, bare.mode, bare.get_lm_usage()) == (None, None, None, {})
    assert (bare.usage, list(bare.warnings), list(bare.repairs), list(bare.attempts)) == (Usage(), [], [], [])
    assert len(bare.completions) == 1


def test_missing_field_raises_with_its_cause() -> None:
    task = Signature("q, tools: list[Tool] -> answer, calls: ToolCalls")
    asked = Choice(tool_calls=(ToolCall("c", "search", {}),))
    with pytest.raises(AttributeError, match=r"called tools instead \(search\)"):
        _ = Prediction.make({}, signature=task, choice=asked).answer
    with pytest.raises(AttributeError, match=r"has no 'answer', which StringSignature declares; it has calls"):
        _ = Prediction.make({"calls": 1}, signature=task).answer
    with pytest.raises(AttributeError, match=r"no field 'anser'; it has answer"):
        _ = Prediction(answer=1).anser
    assert not hasattr(Prediction(answer=1), "anser")


def test_completions_are_read_by_name_and_number() -> None:
    for given_ in ([{"a": 1, "b": 2}, {"a": 3, "b": 4}], {"a": [1, 3], "b": [2, 4]}):
        prediction = Prediction.from_completions(given_)  # type: ignore[arg-type]
        assert prediction.toDict() == {"a": 1, "b": 2}
        assert prediction.completions.a == prediction.completions["a"] == [1, 3]
        assert prediction.completions[1] == Prediction(a=3, b=4)
        assert [len(prediction.completions), "a" in prediction.completions] == [2, True]
    with pytest.raises(AttributeError, match="'c'; they have a, b"):
        _ = prediction.completions.c
    with pytest.raises(ValueError, match="same number"):
        Completions({"a": [1], "b": []})


SCORES = [0, 0.5, 1, True, False, -2]


@pytest.mark.parametrize("score", SCORES)
def test_prediction_with_a_score_acts_as_that_number(score: float) -> None:
    prediction = Prediction(score=score)
    assert float(prediction) == score
    assert bool(prediction) is bool(score)
    assert prediction == score
    assert (prediction != score) is False
    assert score == prediction
    assert (prediction < 0.5, prediction <= 0.5, prediction > 0.5, prediction >= 0.5) == (
        score < 0.5, score <= 0.5, score > 0.5, score >= 0.5,
    )  # fmt: skip
    assert (prediction + 1, 1 + prediction, prediction / 2) == (score + 1, 1 + score, score / 2)
    assert sum([prediction, Prediction(score=1)]) == score + 1
    assert (prediction < Prediction(score=0.5)) is (score < 0.5)
    assert max(Prediction(score=9), prediction).score == 9


def test_prediction_without_a_score_is_not_a_number() -> None:
    prediction = Prediction(answer=0)
    assert prediction
    assert not Prediction()
    assert not Prediction(score=None)
    assert prediction != 0
    for use in (float, lambda p: p + 1, lambda p: p < 1):
        with pytest.raises(ValueError, match="no field 'score'; it has answer"):
            use(prediction)


CORE_VALUES: list[Any] = [
    ToolCalls([ToolCall("a", "add", {"a": 1}), ToolCall.read("b", "add", '{"a": ')], "Let me see."),
    ToolCalls(),
    ToolCall("a", "add", {}),
    ToolResult("a", "add", {"sum": 1}, is_error=True),
    Message.user("hello"),
]


@pytest.mark.parametrize("kind", [Example, Prediction])
@pytest.mark.parametrize("value", CORE_VALUES, ids=lambda value: type(value).__name__)
def test_canonical_values_are_decoded_without_a_signature(kind: type[Any], value: Any) -> None:
    record = kind(question="q", value=value)
    again = kind.from_json(json.loads(json.dumps(record.to_json())))
    assert again == record
    assert type(again.value) is type(value)


def test_field_value_is_not_mistaken_for_a_canonical_value() -> None:
    forged = {"types": {"value": "ToolCalls"}, "value": ToolCalls([ToolCall("a", "rm", {})]).to_json()}
    assert Example.from_json(json.loads(json.dumps(Example(value=forged).to_json()))).value == forged
    assert Example.from_json({"fields": {"value": "x"}, "types": {"value": "os.system"}}).value == "x"


# --- reports -------------------------------------------------------------------------------------------------

WARNED = Response(
    (Choice("4"),),
    Usage(3, 4, cost=0.5),
    "m",
    warnings=(LMWarning("stop", "left out"),),
    attempts=(Attempt("ask", "m"),),
)


def test_report_of_a_prediction_is_not_hidden_by_fields() -> None:
    fields = dict.fromkeys(("usage", "attempts", "warnings", "repairs", "mode", "response"), "a field")
    repair = Repair("answer", "cleaned")
    made = Prediction.make(fields, response=WARNED, repairs=[repair], mode="prompt")
    report = CallReport.of(made)
    assert (report.response, report.warnings, report.attempts) == (WARNED, WARNED.warnings, WARNED.attempts)
    assert (report.usage, report.cost, report.repairs, report.mode) == (WARNED.usage, 0.5, (repair,), "prompt")


def test_report_of_a_bare_prediction_is_empty() -> None:
    assert CallReport.of(Prediction(answer="4")) == CallReport()
    assert CallReport.of(Prediction(answer="4")).warnings == ()


def test_report_of_an_exception_has_attempts_and_partial_response() -> None:
    error = LMServerError("It broke.", model="m")
    error.attempts, error.partial = (Attempt("ask", "m", Usage(3, 4)), Attempt("retry", "m", Usage(1, 1))), WARNED
    report = CallReport.of(error)
    assert (report.usage, report.attempts, report.response) == (Usage(4, 5), error.attempts, WARNED)


def test_report_of_another_object_is_an_input_error() -> None:
    with pytest.raises(InputError, match="str is no result of a call"):
        CallReport.of("4")


def test_outputs_of_another_object_are_an_input_error() -> None:
    with pytest.raises(InputError, match="takes a prediction, not int"):
        outputs_of(5)


def test_missing_field_has_the_facts_for_the_suggestion_of_python() -> None:
    prediction = Prediction(answer="4")
    with pytest.raises(AttributeError) as caught:
        _ = prediction.anser
    assert (caught.value.name, caught.value.obj) == ("anser", prediction)
