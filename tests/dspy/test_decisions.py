"""Decided outputs of the door: how a call gets evidence in each driver, files of both libraries, pickles, sources, ReAnchor."""

from __future__ import annotations

import asyncio
import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

import sigwire.dspy as dspy
from sigwire.core.events import Finished
from sigwire.core.evidence import DecisionRule
from sigwire.core.report import CallReport
from sigwire.dspy.called_models import ClientModel
from sigwire.dspy.experimental import Choice, Noul, ReAnchor, Score, TypeSafe
from sigwire.errors import ConfigurationError, InputError
from sigwire.lm.fake import FakeLM
from sigwire.testing import FakeProvider
from tests.modules.deciding import choice, deciding_model

Grade = Score["weak", "fair", "strong"]
Desk = Choice[(7, "first floor"), ("attic", "top floor")]


class Visit(dspy.Signature):
    """Plan a visit."""

    note: str = dspy.InputField(desc="what the guest wrote")
    open: Noul = dspy.OutputField(desc="Is the house open?")
    grade: Grade = dspy.OutputField(desc="How strong is the wish?")  # type: ignore[valid-type]
    desk: Desk = dspy.OutputField(desc="Which desk?")  # type: ignore[valid-type]


STATED = {
    "open": {"noul": 0.75},
    "grade": {"probabilities": {"0": 0.125, "1": 0.25, "2": 0.625}, "confidence": 0.5},
    "desk": {"probabilities": {"7": 0.75, "attic": 0.25}, "confidence": 0.625},
}
FIELDS = {"open": {"threshold": 0.8}, "grade": {"cuts": [0.25, 1.75]}, "desk": {"weights": {"7": 0.25}}}


class Client:
    supports_decision_requests = True
    cache = True

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __call__(self, state: Any, questions: Any) -> Any:
        self.calls.append((state, questions))
        return {name: STATED[name] for name in questions}


def text_model() -> Any:
    return dspy.DummyLM([STATED] * 3)


def blocking(predict: Any) -> Any:
    return predict(note="x")


def awaited(predict: Any) -> Any:
    return asyncio.run(predict.acall(note="x"))


def streamed(predict: Any) -> Any:
    (last,) = [event for event in predict.stream(note="x") if isinstance(event, Finished)]
    return last.value


def async_streamed(predict: Any) -> Any:
    async def last() -> Any:
        (found,) = [event async for event in predict.astream(note="x") if isinstance(event, Finished)]
        return found.value

    return asyncio.run(last())


DRIVERS = [blocking, awaited, streamed, async_streamed]


def predictor(lm: Any, **fields: Any) -> Any:
    predict = dspy.Predict(Visit)
    predict.lm, predict.fields = lm, fields
    return predict


@pytest.mark.parametrize("ask", DRIVERS)
@pytest.mark.parametrize("make", [Client, text_model])
def test_value_holds_the_evidence_that_fields_decide(make: Callable[[], Any], ask: Callable[[Any], Any]) -> None:
    found = ask(predictor(make(), **FIELDS))
    assert (found.open.value, found.open.probability) == (False, 0.75)
    assert found.open.confidence == pytest.approx(0.05 / 0.8)
    assert (found.grade.value, found.grade.level, found.grade.confidence) == (1.5, 1, 0.5)
    assert (found.desk.value, found.desk.confidence) == ("attic", 0.625)
    evidence = CallReport.of(found).evidence
    assert evidence is not None
    assert {path: each.own_confidence for path, each in evidence.items()} == {"open": None, "grade": 0.5, "desk": 0.625}


@pytest.mark.parametrize("make", [Client, text_model])
def test_stream_emits_decided_outputs_once_and_whole(make: Callable[[], Any]) -> None:
    ends = [each.field for each in predictor(make()).stream(note="x") if type(each).__name__ == "FieldEnd"]
    assert ends == ["open", "grade", "desk"]


def test_cot_of_the_door_decides_on_a_text_model() -> None:
    thought = dspy.ChainOfThought(Visit)
    thought.predict.fields = {"open": {"threshold": 0.8}}
    with dspy.context(lm=dspy.DummyLM([{"reasoning": "It is late.", **STATED}])):
        found = thought(note="x")
    assert (found.reasoning, found.open.value) == ("It is late.", False)


@pytest.mark.parametrize(("ask", "options"), [(blocking, {}), (awaited, {})])
def test_typesafe_is_asked_about_the_state_of_dspy(ask: Callable[[Any], Any], options: Any) -> None:
    script = json.dumps({"open": 0.75, "grade": [0.125, 0.25, 0.625], "desk": {"7": 0.75, "attic": 0.25}})
    with FakeProvider([script]) as provider:
        predict = predictor(TypeSafe("jev-test", base_url=provider.url("system-one"), api_key="test-only"), **FIELDS)
        predict.demos = [{"note": "a", "open": True}]
        found = ask(predict)
    body: Any = provider.requests[0].body
    assert body["state"] == {
        "instructions": "Plan a visit.",
        "input_fields": "1. `note` (str): what the guest wrote",
        "inputs": {"note": "x"},
        "demos": [{"note": "a", "open": True}],
    }
    assert body["questions"]["desk"]["criteria"] == {"7": "first floor", "attic": "top floor"}
    assert (found.open.value, found.grade.level, found.desk.value) == (False, 1, "attic")


def test_named_source_comes_before_probabilities_in_place_of_values() -> None:
    class Open(dspy.Signature):
        note: str = dspy.InputField()
        open: Noul = dspy.OutputField(desc="Is it open?")

    lm = FakeLM(
        [
            "[[ ## open ## ]]\ntrue\n\n[[ ## completed ## ]]",
            '[[ ## open ## ]]\ntrue\n\n[[ ## evidence_ ## ]]\n{"open": 0.75}\n\n[[ ## completed ## ]]',
        ]
    )
    asks = [dspy.Predict(Open, lm=lm, evidence=source) for source in ("sampled", "stated")]
    sampled, stated = asks[0](note="x", config={"n": 2}), None
    assert sampled.open.value is True
    lm = FakeLM(['[[ ## open ## ]]\ntrue\n\n[[ ## evidence_ ## ]]\n{"open": 0.75}\n\n[[ ## completed ## ]]'])
    stated = asks[1](note="x", lm=lm)
    assert stated.open == Noul(value=True, probability=0.75, confidence=0.5)


def test_rule_of_the_core_abstains_beside_fields() -> None:
    class Maybe(dspy.Signature):
        note: str = dspy.InputField()
        open: Noul | None = dspy.OutputField(desc="Is it open?")

    predict = dspy.Predict(Maybe)
    predict.lm = deciding_model(lambda row: choice(open={True: 0.625, False: 0.375}))
    assert predict(note="row 1").open == Noul(value=True, probability=0.625, confidence=0.25)
    predict.decisions = {"open": DecisionRule(least=0.9)}
    assert predict(note="row 1").open is None


def test_decisions_inside_of_another_output_are_a_warning() -> None:
    class Parts(BaseModel):
        open: Noul

    class Nested(dspy.Signature):
        note: str = dspy.InputField()
        parts: Parts = dspy.OutputField()

    lm = dspy.DummyLM([{"parts": {"open": {"value": True, "confidence": 0.5}}}])
    with dspy.context(lm=lm), pytest.warns(UserWarning, match="decisions inside of parts"):
        assert dspy.Predict(Nested)(note="x").parts.open.value is True


def test_values_and_predictions_survive_pickles_and_json() -> None:
    found = predictor(Client(), **FIELDS)(note="x")
    for each in found.values():
        assert pickle.loads(pickle.dumps(each)) == each
    assert pickle.loads(pickle.dumps(found)).desk == found.desk
    again = dspy.Prediction.from_json(json.loads(json.dumps(found.to_json())), signature=Visit)
    assert (again.open, again.grade, again.desk) == (found.open, found.grade, found.desk)


# What DSPy 3.4.1 writes for the signature.
SAVED = {
    "traces": [],
    "train": [],
    "demos": [{"note": "a", "open": True}],
    "signature": {
        "instructions": "Plan a visit.",
        "fields": [
            {"prefix": "Note:", "description": "what the guest wrote"},
            {"prefix": "Open:", "description": "Is the house open?"},
            {"prefix": "Grade:", "description": "How strong is the wish?"},
            {"prefix": "Desk:", "description": "Which desk?"},
        ],
    },
    "fields": {
        "open": {
            "threshold": 0.8,
            "instructions": {"look": "at the date"},
            "criteria": {"true": {"examples": ["lights"]}, "false": None},
        },
        "grade": {"cuts": [0.25, 1.75], "criteria": [{"sign": "none"}, "fair", "strong"]},
        "desk": {"weights": {"7": 0.25, "attic": 2}},
    },
    "lm": {
        "_dspy_lm_class": "dspy.clients.typesafe.TypeSafe",
        "model": "jev-test",
        "base_url": "https://api.typesafe.ai",
        "cache": True,
        "timeout": 10.0,
    },
    "metadata": {"dependency_versions": {"python": "3.11", "dspy": "3.4.1", "cloudpickle": "3.1"}},
}


def test_file_of_dspy_is_loaded_and_written_again(tmp_path: Path) -> None:
    (tmp_path / "dspy.json").write_text(json.dumps(SAVED))
    predict = dspy.Predict(Visit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions
        predict.load(tmp_path / "dspy.json")
    assert predict.fields == SAVED["fields"]
    assert isinstance(predict.lm, TypeSafe)
    client = Client()
    predict(note="x", lm=client)
    questions = client.calls[0][1]
    assert questions["open"]["criteria"] == {"true": '{"examples": ["lights"]}'}
    assert questions["grade"]["criteria"][1] == "fair"
    assert "at the date" in questions["open"]["instructions"]
    state = predict.dump_state()
    assert state["fields"] == SAVED["fields"]
    assert state["lm"]["_dspy_lm_class"] == "dspy.clients.typesafe.TypeSafe"


def test_address_of_a_file_that_is_not_trusted_is_not_loaded() -> None:
    lm = {**SAVED["lm"], "base_url": "https://me:secret@other.test"}  # type: ignore[dict-item]
    with pytest.warns(UserWarning, match="another base_url") as caught:
        predict: Any = dspy.Predict(Visit).load_state({**SAVED, "lm": lm})
    assert predict.lm.base_url == "https://api.typesafe.ai"
    assert "secret" not in str(caught[0].message)


def test_misfits_name_output_and_remedy() -> None:
    predict = predictor(Client(), cellar={"threshold": 0.5})
    with pytest.raises(
        ConfigurationError, match=r"fields\['cellar'\] is of no deciding output. They are: open, grade, desk"
    ):
        predict(note="x")
    predict.fields = {"desk": {"weights": {"cellar": 1}}}
    with pytest.raises(ConfigurationError, match="the labels are 7, attic"):
        predict(note="x")
    with pytest.raises(InputError, match="trainset is empty"):
        ReAnchor(lambda row, found: 1.0).compile(predict, trainset=[])


def test_client_may_have_no_awaited_call_and_keeps_its_place_in_settings() -> None:
    client = Client()
    with dspy.context(lm=client):
        assert isinstance(dspy.settings.lm, ClientModel)
        assert awaited(dspy.Predict(Visit)).open.value is True
    assert len(client.calls) == 1


# --- ReAnchor


class Same(dspy.Signature):
    pair: str = dspy.InputField()
    same: bool = dspy.OutputField(desc="Are the two alike?")
    kind: Literal["x", "y"] = dspy.OutputField(desc="Which kind?")
    sure: Annotated[bool, Noul[(True, "no doubt")]] = dspy.OutputField(desc="Sure?")


class Leaning(Client):
    def __call__(self, state: Any, questions: Any) -> Any:
        self.calls.append(state)
        return {
            "same": {"noul": 0.9 if state["inputs"]["pair"] == "alike" else 0.7},
            "kind": {"probabilities": {"x": 0.75, "y": 0.25}, "confidence": 0.5},
            "sure": {"noul": 0.75},
        }


def examples() -> list[Any]:
    return [dspy.Example(pair=kind, same=kind == "alike").with_inputs("pair") for kind in ["alike", "other"] * 5]


def agrees(row: Any, found: Any, trace: object = None) -> float:
    return float(found.same == row.same)


def compiled(optimizer: Any, student: Any, **options: Any) -> Any:
    return optimizer.compile(student, **options)


def acompiled(optimizer: Any, student: Any, **options: Any) -> Any:
    return asyncio.run(optimizer.acompile(student, **options))


@pytest.mark.filterwarnings("ignore:.*copies of others")
@pytest.mark.parametrize("compile_with", [compiled, acompiled])
def test_reanchor_reports_each_output_and_changes_what_the_metric_reads(compile_with: Callable[..., Any]) -> None:
    optimizer = ReAnchor(agrees, num_threads=1, progress=False)
    with dspy.context(lm=Leaning()):
        program = compile_with(optimizer, dspy.Predict(Same), trainset=examples(), valset=examples()[:4])
    assert program.fields == {"same": {"threshold": 0.8}}
    assert program.decisions == {}
    assert {name: optimizer.report[name] for name in optimizer.report if name != "fitted"} == {
        "train_score_before": 0.5,
        "train_score": 1.0,
        "val_score_before": 0.5,
        "val_score": 1.0,
    }
    assert ["skipped" in row for row in optimizer.report["fitted"]] == [False, True, True]


@pytest.mark.filterwarnings("ignore:.*copies of others")
def test_reanchor_keeps_a_rule_of_the_core_where_it_is() -> None:
    student = dspy.Predict(Same)
    student.decisions = {"same": DecisionRule(threshold=0.6)}
    with dspy.context(lm=Leaning()):
        program = ReAnchor(agrees, num_threads=1, progress=False).compile(student, trainset=examples())
    assert program.fields == {}
    assert program.decisions["same"].threshold == pytest.approx(0.8)
    assert student.decisions["same"].threshold == 0.6
