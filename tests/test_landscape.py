"""The landscape reads only the request: the same request has the same answer, and better prompts have better answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from benchmarks.landscape.concepts import FILLER, HARMFUL, METHOD, read_guidance
from benchmarks.landscape.model import probability
from benchmarks.landscape.reading import prompt_of
from benchmarks.landscape.report import lines, summary
from benchmarks.landscape.runs import Side, run
from benchmarks.landscape.server import Landscape
from benchmarks.landscape.tasks import TASKS, TOOLS, Row, Task, feedback, is_right, row_of, split

ROWS = 60


def asked(
    task: Task,
    row: Row,
    instructions: str = "",
    demos: Sequence[tuple[Row, Any]] = (),
    tools: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the body of a request of a task, in sections or with native tools."""
    system = (
        f"Input fields:\n- {task.input} (string)\n\nOutput fields:\n- {task.output} (string)\n\n[[ ## completed ## ]]"
    )
    messages = [{"role": "system", "content": f"{system}\n\nTask:\n{task.instructions}\n{instructions}"}]
    for shown, value in demos:
        messages.append({"role": "user", "content": f"[[ ## {task.input} ## ]]\n{shown.text}"})
        text = value if isinstance(value, str) else json.dumps({"tool_calls": [value]})
        messages.append({"role": "assistant", "content": f"[[ ## {task.output} ## ]]\n{text}\n\n[[ ## completed ## ]]"})
    messages.append({"role": "user", "content": f"[[ ## {task.input} ## ]]\n{row.text}\n\nReply."})
    body: dict[str, Any] = {"model": "m", "messages": messages}
    if task.levers.tools:
        body["tools"] = [declared(name, (tools or {}).get(name, "")) for name in TOOLS]
    return body


def declared(name: str, added: str) -> dict[str, Any]:
    description, arguments = TOOLS[name]
    parameters = {"type": "object", "properties": {argument: {"type": "string"} for argument in arguments}}
    function = {"name": name, "description": f"{description} {added}", "parameters": parameters}
    return {"type": "function", "function": function}


def accuracy(task: Task, **shown: Any) -> float:
    """Return the mean probability of a right answer over rows that are not shown."""
    found = [prompt_of(asked(task, row, **shown)) for row in task.rows()[-ROWS:]]
    return sum(probability(prompt) for prompt in found if prompt is not None) / ROWS


def taught(task: Task) -> str:
    return "\n".join(concept.sentences[0] for concept in task.concepts)


def answered(landscape: Landscape, body: Mapping[str, Any]) -> Any:
    return landscape.complete(json.dumps(body).encode())["choices"][0]["message"]


# --- data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())
def test_split_is_disjoint_and_no_text_occurs_twice(task: Task) -> None:
    rows = split(task, 3)
    texts = [row.text.partition(") ")[2] for part in (rows.train, rows.val, rows.held_out) for row in part]
    assert len(set(texts)) == len(texts) == 420
    assert split(task, 3) == rows != split(task, 4)
    assert row_of(rows.train[0].ref) == (task, rows.train[0])


def test_metric_compares_with_the_expected_answer() -> None:
    row = TASKS["tools"].rows()[0]
    assert is_right(row, dict(row.expected))
    assert feedback(row, row.expected) == "Right."
    assert not is_right(row, row.naive)
    assert "not the expected" in feedback(row, row.naive)
    assert not is_right(row, None)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())
def test_sentences_teach_their_concept_alone(task: Task) -> None:
    for concept in task.concepts:
        for sentence in concept.sentences:
            assert read_guidance(sentence, task.concepts).taught == {concept.name}
        for sentence in concept.wrong_sentences:
            known = read_guidance(sentence, task.concepts)
            assert (known.taught, known.denied) == (set(), {concept.name})
    for sentence in (*FILLER, *HARMFUL, *METHOD):
        known = read_guidance(sentence, task.concepts)
        assert not known.taught | known.denied


# --- the model ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())
def test_same_request_has_the_same_answer(task: Task) -> None:
    bodies = [asked(task, row) for row in task.rows()[:40]]
    first, second, other = (
        [str(answered(landscape, body)) for body in bodies] for landscape in (Landscape(1), Landscape(1), Landscape(2))
    )
    assert first == second != other


def test_repeated_request_is_a_new_draw_above_temperature_zero() -> None:
    task = TASKS["coin"]
    landscape = Landscape(0)
    body = asked(task, task.rows()[0])
    assert len({str(answered(landscape, {**body, "temperature": 0})) for _ in range(40)}) == 1
    assert len({str(answered(landscape, {**body, "temperature": 1.0})) for _ in range(40)}) == 2


@pytest.mark.parametrize("name", ["tickets", "records"])
def test_instructions_and_demos_raise_accuracy_and_wrong_ones_lower_accuracy(name: str) -> None:
    task = TASKS[name]
    right = [(row, row.expected) for row in task.rows()[:16]]
    wrong = [(row, row.naive) for row in task.rows()[:16]]
    start = accuracy(task)
    assert 0.35 < start < 0.55
    assert accuracy(task, demos=right[:4]) > start + 0.05
    assert accuracy(task, demos=right) > accuracy(task, demos=right[:4])
    assert accuracy(task, demos=wrong) < start
    assert accuracy(task, instructions=taught(task)) > start + 0.3
    assert accuracy(task, instructions=taught(task), demos=right) > accuracy(task, instructions=taught(task))
    assert accuracy(task, instructions="\n".join(HARMFUL)) < start
    assert abs(accuracy(task, instructions="\n".join(FILLER[:4])) - start) < 0.01


def test_texts_of_tools_raise_accuracy_more_than_instructions_and_demos() -> None:
    task = TASKS["tools"]
    start = accuracy(task)
    texts = dict.fromkeys(TOOLS, "")
    for concept in task.concepts:
        texts[concept.tools[0]] += f" {concept.tool_sentences[0]}"
    ceiling = accuracy(
        task, instructions=taught(task), tools=texts, demos=[(row, row.expected) for row in task.rows()[:16]]
    )
    instructions = accuracy(task, instructions=taught(task))
    assert start < instructions < start + (ceiling - start) / 2 < accuracy(task, tools=texts) < ceiling


def test_null_task_is_flat() -> None:
    task = TASKS["coin"]
    demos = [(row, row.expected) for row in task.rows()[:16]]
    assert accuracy(task) == accuracy(task, instructions="\n".join((*HARMFUL, *METHOD)), demos=demos)


# --- the writing model ---------------------------------------------------------------------------------------

REFLECTION = """Input fields:
- current_instruction (string)
- runs (string)

Output fields:
- new_instruction (string): the instruction

[[ ## completed ## ]]"""


def written(task: Task, feedback_of: Any, current: str = "") -> list[frozenset[str]]:
    """Return what 40 proposals teach when the request shows three rows of one concept."""
    rows = [row for row in task.rows() if row.concept == task.concepts[0].name][:3]
    runs = "\n".join(f"{row.text}\nfeedback: {feedback_of(row)}" for row in rows)
    content = f"[[ ## current_instruction ## ]]\n{task.instructions} {current}\n\n[[ ## runs ## ]]\n{runs}"
    messages = [{"role": "system", "content": REFLECTION}, {"role": "user", "content": content}]
    landscape = Landscape(0)
    body = {"model": "m", "messages": messages, "temperature": 1.0}
    texts = [answered(landscape, body)["content"] for _ in range(40)]
    assert landscape.counts == {"task": 0, "writing": 40}
    assert all(text.startswith("[[ ## new_instruction ## ]]") for text in texts)
    return [read_guidance(text, task.concepts).taught for text in texts]


def test_failures_with_feedback_point_the_writer_at_their_concept() -> None:
    task = TASKS["tickets"]
    name = task.concepts[0].name
    failing = sum(name in taught for taught in written(task, lambda row: feedback(row, row.naive)))
    right = sum(name in taught for taught in written(task, lambda row: feedback(row, row.expected)))
    assert failing > 30
    assert right < 20


def test_writer_keeps_most_of_the_current_instruction() -> None:
    task = TASKS["records"]
    known = task.concepts[-1]
    kept = sum(known.name in taught for taught in written(task, lambda row: "", known.sentences[0]))
    assert kept > 30


@pytest.mark.parametrize(
    ("kind", "expected"), [("string[]", list), ("{ [key: string]: string }", dict), ("string", str)]
)
def test_writer_answers_in_the_type_of_the_field(kind: str, expected: type) -> None:
    system = (
        f"Input fields:\n- module_names (string[])\n\nOutput fields:\n- module_advice\n  type: {kind}\n\nTask:\nAdvise."
    )
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": '[[ ## module_names ## ]]\n["one"]\n\nReply with a JSON object.'},
        ],
    }
    value = json.loads(answered(Landscape(0), body)["content"])["module_advice"]
    assert isinstance(value, expected)
    assert list(value) == ["one"] if expected is dict else value


def test_writer_rewrites_the_texts_of_the_tools_that_the_request_shows() -> None:
    task = TASKS["tools"]
    concept = task.concepts[0]
    rows = [row for row in task.rows() if row.concept == concept.name][:3]
    runs = "\n".join(f"{row.text}\nfeedback: {feedback(row, row.naive)}" for row in rows)
    tools = json.dumps({name: {"description": TOOLS[name][0], "args": {}} for name in concept.tools})
    system = "Input fields:\n- tools (object)\n- runs (string)\n\nOutput fields:\n- tool_descriptions (object)\n"
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": f"[[ ## tools ## ]]\n{tools}\n\n[[ ## runs ## ]]\n{runs}"},
        ],
    }
    texts = json.loads(answered(Landscape(0), body)["content"])["tool_descriptions"]
    assert set(texts) == set(concept.tools)
    assert concept.tool_sentences[0] in texts[concept.tools[0]]["description"]


# --- runs --------------------------------------------------------------------------------------------------


def test_report_has_gains_calls_and_the_error_of_the_estimate() -> None:
    common = {"library": "a", "task": "tickets", "optimizer": "COPRO", "task_calls": 10, "writing_calls": 2, "runs": 12}
    runs = [
        {**common, "seed": seed, "start": 0.4, "final": final, "estimate": 0.6, "val_start": 0.5}
        for seed, final in enumerate((0.5, 0.7))
    ]
    of = summary(runs)
    assert (round(of["gain"] or 0), round(of["worst"] or 0), round(of["error"] or 0), round(of["flattery"] or 0)) == (
        20,
        10,
        0,
        -10,
    )
    assert list(lines(runs))[-1].startswith(
        "| tickets | COPRO | a | 2 | 40.0 | 60.0 | +20.0 | +10.0 | 12 | 10 | 2 | +0.0 | -10.0 |"
    )


@pytest.mark.long
def test_sigwire_session_runs_over_http() -> None:
    from benchmarks.landscape.run_sigwire import SigwireSession

    class Unchanged(SigwireSession):
        def compile(self, optimizer: str, budget: int | None) -> tuple[Any, float | None]:
            self.scored(self.student(), self.train[:5])
            return self.student(), None

    for name in ("tickets", "tools"):
        done = run(Side("sigwire", Unchanged), TASKS[name], "none", 0)
        assert done.start == done.final
        assert 0.3 < done.start < 0.6
        assert (done.task_calls, done.writing_calls) == (5, 0)
