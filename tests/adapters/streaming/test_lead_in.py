"""Answers in wrappings that the whole reader takes off: whatever the cut, what is told is what is read, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.json import dumps
from tests.adapters.streaming.emitting import cuts, pieces_of
from tests.adapters.streaming.test_streaming import Texts, check, json_people, plan_of, texts

JSON, CHAT, XML = JSONAdapter(), ChatAdapter(), XMLAdapter()


def written(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


OBJECTS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "as it is": written,
    "over lines": lambda made: written(made, 2),
    "blanks around": lambda made: f" \n\t{written(made)}\n ",
    "a mark of byte order": lambda made: "\ufeff" + written(made),
    "a fence": lambda made: f"```json\n{written(made, 2)}\n```",
    "a fence without a word": lambda made: f"```\n{written(made)}\n```\n",
    "prose before": lambda made: f"Sure, here it is:\n\n{written(made)}",
    "prose after": lambda made: f"{written(made)}\n\nIs there anything else?",
    "prose around a fence": lambda made: f"Of course.\n```json\n{written(made)}\n```\nAs you asked.",
    "thinking before": lambda made: f"<think>{{}} or so</think>\n{written(made)}",
    "thinking that the prompt opened": lambda made: f"Is it {{}}? No.\n</think>\n{written(made)}",
    "an envelope": lambda made: written({"json": made}),
    "an envelope of the task's name": lambda made: written({"answer": made}),
    "an envelope in a fence": lambda made: f"```json\n{written({'output': made})}\n```",
    "a call": lambda made: written({"name": "answer", "arguments": made}),
    "a call with its arguments as text": lambda made: written({"name": "answer", "arguments": written(made)}),
    "a text": lambda made: written(written(made)),
    "a stray member first": lambda made: written({"note": {"text": "x"}, **made}),
    "a stray member last": lambda made: written({**made, "confidence": 0.5}),
    "a member twice": lambda made: f'{written(made)[:-1]}, "text": "again"}}',
    "a comma at the end": lambda made: written(made)[:-1] + ",}",
    "a comment": lambda made: "{ // so\n" + written(made)[1:],
    "python": repr,
}  # fmt: skip

VALUES = st.fixed_dictionaries({
    "text": texts, "maybe": st.none() | texts, "other": texts, "short": texts, "names": st.lists(texts, max_size=2),
    "person": json_people.map(lambda person: person.model_dump()), "number": st.integers(-9, 9).map(float),
    "kind": st.sampled_from(["a", "b"]),
})  # fmt: skip
PLAIN: dict[str, Any] = {
    "text": "Oslo, by the fjord", "maybe": None, "other": 'a "quoted" word', "short": "s", "names": ["a", "b"],
    "person": {"name": "Ada", "age": 36, "friends": [{"name": "Bo", "age": None, "friends": []}]},
    "number": 0.5, "kind": "a",
}  # fmt: skip


each_adapter = pytest.mark.parametrize("adapter", [JSON, CHAT], ids=["json", "chat"])


def check_cut(adapter: Adapter, text: str, outputs: Any = PLAIN) -> None:
    """Told character by character, and in two pieces at places all over it; every output comes."""
    plan = plan_of(adapter)
    for pieces in [[*text], *([text[:cut], text[cut:]] for cut in range(0, len(text), 17))]:
        assert sorted(check(plan, text, pieces).ended) == sorted(outputs)


@each_adapter
@given(st.sampled_from(sorted(OBJECTS)), VALUES, cuts)
def test_an_object_is_told_as_it_is_read_in_every_wrapping(
    adapter: Adapter, shape: str, values: dict[str, Any], at: list[int]
) -> None:
    text = OBJECTS[shape](values)
    check(plan_of(adapter), text, pieces_of(text, at))


@pytest.mark.parametrize("shape", OBJECTS)
@each_adapter
def test_each_wrapping_is_one_that_is_read(adapter: Adapter, shape: str) -> None:
    check_cut(adapter, OBJECTS[shape](PLAIN))


@given(st.sampled_from(sorted(OBJECTS)), st.fixed_dictionaries({"text": texts}, optional={"other": texts}), cuts)
def test_so_is_an_object_of_texts_alone(shape: str, values: dict[str, Any], at: list[int]) -> None:
    text = OBJECTS[shape](values)
    check(plan_of(JSON, Texts), text, pieces_of(text, at))


# --- the wrappings of one member -----------------------------------------------------------------------------

MEMBERS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "a value in an envelope of its own name": lambda made: {**made, "person": {"person": made["person"]}},
    "a value in any envelope": lambda made: {**made, "person": {"value": made["person"]}},
    "a value as text": lambda made: {**made, "person": written(made["person"]), "names": written(made["names"])},
    "a value in a fence in a text": lambda made: {**made, "person": f"```json\n{written(made['person'])}\n```"},
    "a number as text": lambda made: {**made, "number": str(made["number"])},
    "a word in other letters": lambda made: {**made, "kind": made["kind"].upper()},
    "none as a word": lambda made: {**made, "maybe": "null"},
    "a text as a number": lambda made: {**made, "text": 7},
}  # fmt: skip
UNREAD: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "a text as an object": lambda made: {**made, "text": {"text": made["text"]}},
    "a text as a list": lambda made: {**made, "text": [made["text"]]},
}


@each_adapter
@given(st.sampled_from(sorted({**MEMBERS, **UNREAD})), VALUES, cuts)
def test_so_is_a_member_in_a_wrapping_of_its_own(
    adapter: Adapter, shape: str, values: dict[str, Any], at: list[int]
) -> None:
    text = written({**MEMBERS, **UNREAD}[shape](values))
    check(plan_of(adapter), text, pieces_of(text, at))


@pytest.mark.parametrize("shape", MEMBERS)
def test_such_a_member_is_read(shape: str) -> None:
    check_cut(JSON, written(MEMBERS[shape](PLAIN)))


# --- sections and tags ---------------------------------------------------------------------------------------

AROUND: Mapping[str, Callable[[str], str]] = {
    "as it is": str,
    "a fence": lambda text: f"```\n{text}\n```",
    "a fence of a language": lambda text: f"```xml\n{text}\n```",
    "prose before": lambda text: f"Sure, here it is:\n\n{text}",
    "prose after": lambda text: f"{text}\n\nAnything else?",
    "thinking before": lambda text: f"<think>So.</think>\n\n{text}",
    "thinking that the prompt opened": lambda text: f"So.\n</think>\n{text}",
    "a mark of byte order": lambda text: "\ufeff" + text,
    "an outer tag": lambda text: f"<answer>\n{text}\n</answer>",
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
}
marked = pytest.mark.parametrize("adapter", [CHAT, XML], ids=["chat", "xml"])


@marked
@given(st.sampled_from(sorted(AROUND)), VALUES, cuts)
def test_sections_and_tags_are_told_as_they_are_read_in_every_wrapping(
    adapter: Adapter, shape: str, values: dict[str, Any], at: list[int]
) -> None:
    plan = plan_of(adapter)
    text = AROUND[shape](plan.layout.write(values))
    check(plan, text, pieces_of(text, at))


@marked
@given(st.sampled_from(sorted(OBJECTS)), json_people, cuts)
def test_so_is_an_object_in_a_section_or_a_tag(adapter: Adapter, shape: str, person: Any, at: list[int]) -> None:
    plan = plan_of(adapter)
    text = plan.layout.write(PLAIN).replace(dumps(PLAIN["person"]), OBJECTS[shape](person.model_dump()))
    check(plan, text, pieces_of(text, at))
