"""Fields with the names of methods, parameters and keywords: they work in every module and record, or are refused when made."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sigwire import (
    RLM,
    ChainOfThought,
    CodeAct,
    Evaluate,
    Example,
    FakeLM,
    Parallel,
    Predict,
    Prediction,
    ProgramOfThought,
    ReAct,
    SignatureError,
    SigwireError,
    ToolCall,
    load_records,
)

# A field may have the name of a method, of a parameter that a module takes, or of a word that programs use inside.
NAMES = """
args kwargs self cls config demos signature lm items keys values get tools history module name run copy with_inputs
toDict inputs labels without example prediction text type fields data request stream state model question context
reward_fn callbacks steps trace submit llm_query extract predict react to_json from_json base prefix budget usage score
id index reasoning tool_calls trajectory error path turn fresh rollout_id max_reasks show mode choice warnings attempts
class def None
""".split()
INSIDE = {"args", "self", "tools", "history", "submit", "llm_query", "reasoning", "trajectory", "inputs", "class"}
NO_NAMES = ["__class__", "__dict__", "__init__", "_answer", "a.b", "1st"]


def find(order: int) -> str:
    """Find an order."""
    return f"order {order}"


def exact(example: Any, prediction: Any, trace: object = None) -> bool:
    return True


def _submits(output: str) -> list[Any]:
    return [ToolCall("end", "submit", {output: "4"})] * 5


def _predict(text: str, output: str) -> Any:
    return Predict(text), [{output: "4"}] * 5


MAKE: dict[str, Callable[[str, str], tuple[Any, list[Any]]]] = {
    "Predict": _predict,
    "ChainOfThought": lambda text, output: _thought(ChainOfThought(text)),
    "ReAct": lambda text, output: (ReAct(text, tools=[find]), _submits(output)),
    "CodeAct": lambda text, output: _coded(CodeAct(text, tools=[find]), "react", output),
    "RLM": lambda text, output: _coded(RLM(text), "generate_action", output),
    "ProgramOfThought": lambda text, output: _coded(ProgramOfThought(text), "code_generate.predict", output),
}


def _thought(program: Any) -> tuple[Any, list[Any]]:
    return program, [dict.fromkeys(program.predict.signature.output_fields, "4")] * 5


def _coded(program: Any, path: str, output: str) -> tuple[Any, list[Any]]:
    """Return a program that runs code, and the answers of its model: the outputs and the submit function have free names."""
    outputs = [*dict(program.named_predictors())[path].signature.output_fields]
    code = f"{program._submit.name}(**{{{output!r}: '4'}})"
    return program, [dict.fromkeys(outputs, code)] * 5


def made(kind: str, text: str, output: str) -> Any:
    program, answers = MAKE[kind](text, output)
    program.set_lm(FakeLM(answers))
    return program


def _other(name: str, other: str) -> str:
    return other if name != other else f"{other}_2"


def _pairs() -> Iterator[Any]:
    for kind, name in product(MAKE, NAMES):
        yield pytest.param(kind, name, marks=() if kind == "Predict" or name in INSIDE else pytest.mark.long)


@pytest.mark.parametrize(("kind", "name"), [*_pairs()])
def test_field_of_any_name_is_an_input_and_an_output_or_is_refused_when_the_module_is_made(
    kind: str, name: str
) -> None:
    output = _other(name, "answer")
    try:
        program = made(kind, f"{name} -> {output}", output)
    except SigwireError:
        pass
    else:
        assert program(**{name: "v"})[output] == "4"
        assert asyncio.run(program.acall(**{name: "v"}))[output] == "4"
        assert [*program.stream(**{name: "v"})][-1].value[output] == "4"
    given = _other(name, "question")
    try:
        program = made(kind, f"{given} -> {name}", name)
    except SigwireError:
        return
    assert program(**{given: "v"})[name] == "4"


@pytest.mark.parametrize("name", NO_NAMES)
def test_word_that_is_no_name_of_a_field_is_refused_when_the_signature_is_made(name: str) -> None:
    for text in (f"{name} -> answer", f"question -> {name}"):
        with pytest.raises(SignatureError, match=r"field name|underscore|Expected"):
            Predict(text)


@pytest.mark.parametrize("name", NAMES)
def test_record_with_a_field_of_any_name_is_copied_pickled_and_read_again(name: str) -> None:
    example = Example({name: "v", "other": "4"})
    assert example[name] == Example(**{name: "v"})[name] == "v"
    assert name in example
    again = [pickle.loads(pickle.dumps(example)), copy.deepcopy(example), Example.from_json(Example.to_json(example))]
    assert again == [example] * 3
    assert name in repr(example)
    marked = Example.with_inputs(example, name)
    assert (Example.inputs(marked)[name], Example.labels(marked)["other"]) == ("v", "4")
    prediction = Prediction({name: "v"})
    assert Prediction.from_json(Prediction.to_json(prediction)) == prediction


@pytest.mark.parametrize("name", NAMES)
def test_example_with_a_field_of_any_name_is_evaluated_batched_and_stored(name: str, tmp_path: Path) -> None:
    output = _other(name, "answer")
    row = Example.with_inputs(Example({name: "v", output: "4"}), name)
    program = made("Predict", f"{name} -> {output}", output)
    log = tmp_path / "log.jsonl"
    assert Evaluate(devset=[row], metric=exact, progress=False, log=log)(program).score == 100
    assert load_records(log, program).results[0][1][output] == "4"
    assert program.batch([row])[0][output] == "4"
    assert Parallel()([(program, row)])[0][output] == "4"
    program.demos = demos = [{name: "a", output: "b"}]
    state = program.dump_state()
    assert made("Predict", f"{name} -> {output}", output).load_state(state, allow_unsafe_lm_state=True).demos == demos
    labelled = Example.with_inputs(Example({"question_": "v", name: "4"}), "question_")
    program = made("Predict", f"question_ -> {name}", name)
    assert Evaluate(devset=[labelled], metric=exact, progress=False)(program).score == 100
