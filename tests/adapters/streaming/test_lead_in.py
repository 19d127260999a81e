"""Answers in wrappings that the parse removes: at every cut, the streamed values are the parsed ones."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.plan import Plan
from sigwire.adapters.streaming.field_reader import FieldReader
from sigwire.adapters.streaming.lead_in import LeadInReader
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.events import FieldDelta, TextDelta
from sigwire.core.json import dumps
from tests.adapters.streaming.emitting import cut_at, cuts
from tests.adapters.streaming.test_streaming import Texts, check, json_people, plan_of, texts

JSON, CHAT, XML = JSONAdapter(), ChatAdapter(), XMLAdapter()


def write_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


OBJECTS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "as it is": write_json,
    "over lines": lambda values: write_json(values, 2),
    "blanks around": lambda values: f" \n\t{write_json(values)}\n ",
    "a mark of byte order": lambda values: "\ufeff" + write_json(values),
    "a fence": lambda values: f"```json\n{write_json(values, 2)}\n```",
    "a fence without a word": lambda values: f"```\n{write_json(values)}\n```\n",
    "prose before": lambda values: f"Sure, here it is:\n\n{write_json(values)}",
    "prose after": lambda values: f"{write_json(values)}\n\nIs there anything else?",
    "prose around a fence": lambda values: f"Of course.\n```json\n{write_json(values)}\n```\nAs you asked.",
    "thinking before": lambda values: f"<think>{{}} or so</think>\n{write_json(values)}",
    "thinking that the prompt opened": lambda values: f"Is it {{}}? No.\n</think>\n{write_json(values)}",
    "an envelope": lambda values: write_json({"json": values}),
    "an envelope of the task's name": lambda values: write_json({"answer": values}),
    "an envelope in a fence": lambda values: f"```json\n{write_json({'output': values})}\n```",
    "a call": lambda values: write_json({"name": "answer", "arguments": values}),
    "a call with its arguments as text": lambda values: write_json({"name": "answer", "arguments": write_json(values)}),
    "a text": lambda values: write_json(write_json(values)),
    "a stray member first": lambda values: write_json({"note": {"text": "x"}, **values}),
    "a stray member last": lambda values: write_json({**values, "confidence": 0.5}),
    "a member twice": lambda values: f'{write_json(values)[:-1]}, "text": "again"}}',
    "a comma at the end": lambda values: write_json(values)[:-1] + ",}",
    "a comment": lambda values: "{ // so\n" + write_json(values)[1:],
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
    """Stream single characters, and two chunks at many cuts. Every output is emitted."""
    plan = plan_of(adapter)
    for chunks in [[*text], *([text[:cut], text[cut:]] for cut in range(0, len(text), 17))]:
        assert sorted(check(plan, text, chunks).ended) == sorted(outputs)


@each_adapter
@given(st.sampled_from(sorted(OBJECTS)), VALUES, cuts)
def test_wrapped_object_streams_the_parsed_values(
    adapter: Adapter, shape: str, values: dict[str, Any], at: list[int]
) -> None:
    text = OBJECTS[shape](values)
    check(plan_of(adapter), text, cut_at(text, at))


@pytest.mark.parametrize("shape", OBJECTS)
@each_adapter
def test_every_wrapping_of_an_object_is_read(adapter: Adapter, shape: str) -> None:
    check_cut(adapter, OBJECTS[shape](PLAIN))


@given(st.sampled_from(sorted(OBJECTS)), st.fixed_dictionaries({"text": texts}, optional={"other": texts}), cuts)
def test_wrapped_object_of_texts_streams_the_parsed_values(shape: str, values: dict[str, Any], at: list[int]) -> None:
    text = OBJECTS[shape](values)
    check(plan_of(JSON, Texts), text, cut_at(text, at))


# --- the wrappings of one member -----------------------------------------------------------------------------

MEMBERS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "a value in an envelope of its own name": lambda values: {**values, "person": {"person": values["person"]}},
    "a value in any envelope": lambda values: {**values, "person": {"value": values["person"]}},
    "a value as text": lambda values: {**values, "person": write_json(values["person"]), "names": write_json(values["names"])},
    "a value in a fence in a text": lambda values: {**values, "person": f"```json\n{write_json(values['person'])}\n```"},
    "a number as text": lambda values: {**values, "number": str(values["number"])},
    "a word in other letters": lambda values: {**values, "kind": values["kind"].upper()},
    "none as a word": lambda values: {**values, "maybe": "null"},
    "a text as a number": lambda values: {**values, "text": 7},
}  # fmt: skip
UNREAD: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "a text as an object": lambda values: {**values, "text": {"text": values["text"]}},
    "a text as a list": lambda values: {**values, "text": [values["text"]]},
}


@each_adapter
@given(st.sampled_from(sorted({**MEMBERS, **UNREAD})), VALUES, cuts)
def test_wrapped_member_streams_the_parsed_value(
    adapter: Adapter, shape: str, values: dict[str, Any], at: list[int]
) -> None:
    text = write_json({**MEMBERS, **UNREAD}[shape](values))
    check(plan_of(adapter), text, cut_at(text, at))


@pytest.mark.parametrize("shape", MEMBERS)
def test_every_wrapping_of_a_member_is_read(shape: str) -> None:
    check_cut(JSON, write_json(MEMBERS[shape](PLAIN)))


# --- known lead-ins ------------------------------------------------------------------------------------------

LEAD_INS = [
    "Sure:\n\n", "Sure! Here is the answer you asked for:\n", "Of course.\r\n\r\n", "```\n", "```json\n", "\n```xml\n",
    "Here are the fields:\n\n```\n", "Certainly!\n\nHere you go:\n",
]  # fmt: skip
each_layout = pytest.mark.parametrize("adapter", [JSON, CHAT, XML], ids=["json", "chat", "xml"])


@each_layout
@pytest.mark.parametrize("before", LEAD_INS)
def test_known_lead_in_delays_no_delta(adapter: Adapter, before: str) -> None:
    plan = plan_of(adapter, Texts)
    plain, after = plan.layout.write({"text": "one two three", "other": "four"}), "\n```"
    bare, wrapped = first_delta(plan, plain), first_delta(plan, before + plain + after)
    assert wrapped == len(before) + bare
    check(plan, before + plain + after, [*before, *plain, *after])


def first_delta(plan: Plan, text: str) -> int:
    """Return the number of characters that were fed when the first delta of a field was emitted."""
    reader = FieldReader(plan)
    return next(n for n, char in enumerate(text, 1) if any(type(e) is FieldDelta for e in reader.feed(TextDelta(char))))


@each_layout
@pytest.mark.parametrize(
    "before", ["Sure.\n" * 5, "So, the user wants:\n", "Sure, let me think about it\n", "Sure: 1.\nNo:\n", "A: "]
)
def test_any_other_lead_in_holds_the_fields_to_the_end(adapter: Adapter, before: str) -> None:
    plan = plan_of(adapter, Texts)
    draft, answer = (plan.layout.write({"text": text, "other": "x"}) for text in ("draft", "final"))
    reader = FieldReader(plan)
    assert list(reader.feed(TextDelta(before + draft))) == []
    streamed = check(plan, f"{before}{draft}</think>{answer}", [before, draft, "</think>", answer])
    assert streamed.texts["text"] == "final"


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
def test_wrapped_sections_and_tags_stream_the_parsed_values(
    adapter: Adapter, shape: str, values: dict[str, Any], at: list[int]
) -> None:
    plan = plan_of(adapter)
    text = AROUND[shape](plan.layout.write(values))
    check(plan, text, cut_at(text, at))


@marked
@given(st.sampled_from(sorted(OBJECTS)), json_people, cuts)
def test_wrapped_object_in_a_section_or_a_tag_streams_the_parsed_value(
    adapter: Adapter, shape: str, person: Any, at: list[int]
) -> None:
    plan = plan_of(adapter)
    text = plan.layout.write(PLAIN).replace(dumps(PLAIN["person"]), OBJECTS[shape](person.model_dump()))
    check(plan, text, cut_at(text, at))


class Sink:
    """Takes the texts of the outputs."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def opens(self, text: str) -> bool:
        return True

    def feed(self, text: str) -> None:
        self.texts.append(text)

    def close(self) -> None: ...


@pytest.mark.parametrize("texts", [[], ["a", "b"]])
def test_reader_is_no_part_of_a_cycle(texts: list[str]) -> None:
    sink: Any = Sink()
    reference = weakref.ref(sink)
    gc.disable()
    try:
        reader = LeadInReader(sink, ())
        for text in texts:
            reader.feed(text)
        assert sink.texts == texts
        del reader, sink
        assert reference() is None
    finally:
        gc.enable()
