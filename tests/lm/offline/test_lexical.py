"""offline/lexical as a language model: a request in, a response out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigwire
from sigwire.core.events import collect
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice
from sigwire.core.schema import validator
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import OutputTruncated
from sigwire.lm.client import LM
from tests.strategies import at_most

LEXICAL = LM("offline/lexical")


def tool(name: str, description: str, /, *required: str, **properties: Any) -> JsonObject:
    schemas = {n: p if isinstance(p, dict) else {"type": p} for n, p in properties.items()}
    parameters: JsonObject = {"type": "object", "properties": schemas, "required": list(required or properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


WEATHER = tool("weather", "The weather in a city.", city="string")
MEMBER = tool(
    "library.find_member",
    "Look up a library member by name: member id, branch.",
    name={"type": "string", "description": "Full name."},
)
LOANS = tool(
    "library.count_loans",
    "Count the books that a member has borrowed.",
    member_id={"type": "integer", "description": "The member's number."},
)
OPENING = tool(
    "library.opening_hours",
    "Opening hours of a branch of the library.",
    branch={"type": "string", "description": "Name of the branch."},
)
SUBMIT = tool("submit", "Hand in the final outputs. This ends the task.", answer="string")
LIBRARY = (MEMBER, LOANS, OPENING)


def ask(text: str, *tools: JsonObject, **rest: Any) -> Choice:
    return LEXICAL.respond(Request((Message.user(text),), tools, **rest)).choices[0]


def calls(choice: Choice) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in choice.tool_calls]


def test_lexical_calls_the_tool_that_the_question_names() -> None:
    choice = ask("What are the opening hours of the Riverside branch?", *LIBRARY)
    assert calls(choice) == [("library.opening_hours", {"branch": "Riverside"})]
    assert choice.finish_reason == "tool_calls"


@pytest.mark.parametrize("question", ["Who painted the Mona Lisa?", "Hello!", "", "Translate 'dog' to French."])
def test_lexical_calls_nothing_and_names_itself_when_no_tool_fits(question: str) -> None:
    choice = ask(question, *LIBRARY)
    assert choice.tool_calls == ()
    assert "not a language model" in choice.text


def test_lexical_calls_nothing_when_a_required_value_is_missing() -> None:
    assert ask("How many books has the member borrowed?", LOANS).tool_calls == ()


def test_lexical_obeys_the_tool_choice() -> None:
    question = "What is the weather in Oslo?"
    assert ask(question, WEATHER, tool_choice=ToolChoice.NONE).tool_calls == ()
    assert [name for name, _ in calls(ask("Hello!", WEATHER, tool_choice=ToolChoice.REQUIRED))] == ["weather"]
    named = ToolChoice.named("library.opening_hours")
    assert [name for name, _ in calls(ask(question, WEATHER, *LIBRARY, tool_choice=named))] == ["library.opening_hours"]


def test_lexical_makes_a_call_for_each_value_unless_parallel_calls_are_off() -> None:
    question = "What is the weather in Oslo and Rome?"
    assert calls(ask(question, WEATHER)) == [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]
    assert [call.id for call in ask(question, WEATHER).tool_calls] == ["call_0", "call_1"]
    assert len(ask(question, WEATHER, parallel_tool_calls=False).tool_calls) == 1


def test_lexical_makes_a_call_for_each_clause() -> None:
    question = "What is the weather in Oslo, and what are the opening hours of the Riverside branch?"
    assert {name for name, _ in calls(ask(question, WEATHER, *LIBRARY))} == {"weather", "library.opening_hours"}


def run(question: str, results: dict[str, Any], *tools: JsonObject, most: int = 8) -> list[tuple[str, Any]]:
    """Return all calls until the model stops calling; an exception in ``results`` is returned as an error."""
    messages, made = [Message.user(question)], list[tuple[str, Any]]()
    for _ in range(most):
        choice = LEXICAL.respond(Request(tuple(messages), tools)).choices[0]
        made += calls(choice)
        if not choice.tool_calls or any(call.name == "submit" for call in choice.tool_calls):
            return made
        answers = [_result(call, results[call.name]) for call in choice.tool_calls]
        messages += [choice.message(), Message.tool(*answers)]
    raise AssertionError(f"no end after {made}")


def _result(call: ToolCall, result: Any) -> ToolResult:
    failed = isinstance(result, Exception)
    return ToolResult(call.id, call.name, str(result) if failed else result, failed)


FOUND = {"library.find_member": {"member_id": 31, "branch": "Hilltop"}, "library.count_loans": 4}


def test_lexical_looks_up_an_id_before_the_call_with_the_id() -> None:
    assert run("How many books has Ann Lee borrowed?", FOUND, *LIBRARY, SUBMIT) == [
        ("library.find_member", {"name": "Ann Lee"}),
        ("library.count_loans", {"member_id": 31}),
        ("submit", {"answer": "4"}),
    ]


def test_lexical_stops_when_a_result_answers_the_question() -> None:
    assert run("Which branch does the member Ann Lee use?", FOUND, *LIBRARY, SUBMIT) == [
        ("library.find_member", {"name": "Ann Lee"}),
        ("submit", {"answer": "Hilltop"}),
    ]


def test_lexical_reports_a_failed_call_without_a_repetition() -> None:
    made = run(
        "How many books has Ann Lee borrowed?",
        {**FOUND, "library.find_member": LookupError("the desk is closed")},
        *LIBRARY,
        SUBMIT,
    )
    assert [name for name, _ in made] == ["library.find_member", "submit"]
    assert "the desk is closed" in made[-1][1]["answer"]


def test_lexical_reports_a_failure_in_a_flag_or_in_the_text() -> None:
    call = ToolCall("c1", "weather", {"city": "Oslo"})
    asked = (Message.user("What is the weather in Oslo?"), Message("assistant", (call,)))
    results_of_wires = [ToolResult("c1", "weather", "boom", is_error=True), ToolResult("c1", "weather", "ERROR: boom")]
    answers = [
        LEXICAL.respond(Request((*asked, Message.tool(result)), (WEATHER,))).choices[0].text
        for result in results_of_wires
    ]
    assert answers == ["I could not find this out: boom"] * 2


def test_lexical_answers_in_text_when_no_tool_takes_the_answer() -> None:
    messages = (
        Message.user("What is the weather in Oslo?"),
        Message.assistant("", [ToolCall("call_0", "weather", {"city": "Oslo"})]),
        Message.tool(ToolResult("call_0", "weather", "snow")),
    )
    choice = LEXICAL.respond(Request(messages, (WEATHER,))).choices[0]
    assert (choice.text, choice.tool_calls) == ("snow", ())


results = st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=8) | st.lists(st.integers(0, 3), max_size=2)
shapes = results | st.dictionaries(
    st.sampled_from(["id", "member_id", "name", "branch", "city", "error"]), results, max_size=3
)


@given(
    st.sampled_from(
        ["How many books has Ann Lee borrowed?", "Weather in Oslo and opening hours of the Hilltop branch"]
    ),
    shapes,
    shapes,
)
@at_most(60)
def test_lexical_ends_every_loop_and_makes_no_call_twice(question: str, one: Any, other: Any) -> None:
    given_results = {
        "library.find_member": one,
        "library.count_loans": other,
        "library.opening_hours": one,
        "weather": other,
    }
    made = run(question, given_results, *LIBRARY, WEATHER, SUBMIT)
    assert len({json.dumps(call) for call in made}) == len(made)


@given(st.text(max_size=80))
@at_most(60)
def test_lexical_answers_any_question_with_text_or_valid_calls(question: str) -> None:
    choice = ask(question, *LIBRARY, WEATHER)
    assert choice.text or choice.tool_calls
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in (*LIBRARY, WEATHER)}  # type: ignore[index, call-overload]
    assert all(validator(schemas[call.name])(call.arguments) == [] for call in choice.tool_calls)  # type: ignore[index]


def turns(question: str, *answers: ToolCall, text: str = "") -> list[Message]:
    return [Message.user(question), Message.assistant(text, answers)]


@pytest.mark.parametrize("meant", ["weather", "concerts"])
def test_lexical_chooses_the_tool_of_similar_demos(meant: str) -> None:
    concerts = tool("concerts", "Concerts in a city.", city="string")
    shown = [
        *turns("What is up in Rome tonight?", ToolCall("d0", meant, {"city": "Rome"})),
        *turns("What is up in Bonn?", ToolCall("d1", meant, {"city": "Bonn"})),
    ]
    request = Request((*shown, Message.user("What is up in Lyon tonight?")), (WEATHER, concerts))
    assert calls(LEXICAL.respond(request).choices[0]) == [(meant, {"city": "Lyon"})]


def test_lexical_calls_nothing_when_a_similar_demo_calls_nothing() -> None:
    asked = "What is the weather like in King Lear?"
    shown = turns(
        "What is the weather like in the play King Lear?", text="That is no question for the weather service."
    )
    request = Request((*shown, Message.user(asked)), (WEATHER,))
    assert LEXICAL.respond(request).choices[0].tool_calls == ()


TEXT, INTEGER = {"type": "string"}, {"type": "integer"}


def an_object(**properties: Any) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties)}


SCHEMAS: list[JsonObject] = [
    an_object(n={"type": "integer", "minimum": 5}),
    an_object(kind={"enum": ["a", "b"]}, ok={"type": "boolean"}),
    an_object(when={"type": "string", "format": "date"}, t={"type": ["string", "null"]}),
    {
        **an_object(items={"type": "array", "items": {"$ref": "#/$defs/Item"}, "minItems": 1}),
        "$defs": {"Item": an_object(name=TEXT, cost={"type": "number"})},
    },
    an_object(x={"anyOf": [INTEGER, {"type": "null"}]}),
]


@given(st.text(max_size=60), st.sampled_from(SCHEMAS))
@at_most(60)
def test_lexical_returns_json_that_is_valid_for_the_schema(question: str, schema: JsonObject) -> None:
    choice = ask(question, response_format=ResponseFormat(schema))
    assert validator(schema)(json.loads(choice.text)) == []


def test_lexical_gives_equal_responses_to_equal_requests() -> None:
    request = Request((Message.user("How many books has Ann Lee borrowed?"),), LIBRARY)
    assert len({LM("offline/lexical").respond(request).choices[0].text for _ in range(3)}) == 1
    assert LEXICAL.respond(request) == LM("offline/lexical").respond(request)


def test_lexical_counts_words_as_tokens() -> None:
    usage = LEXICAL.respond(Request((Message.user("one two three"),))).usage
    assert usage.input_tokens == 3
    assert usage.output_tokens
    assert LEXICAL.respond(Request((Message.user("hello"),))).model == "offline/lexical"


@pytest.mark.parametrize("how", ["answered", "awaited", "streamed"])
async def test_lexical_ends_a_text_at_the_limit_of_tokens(how: str) -> None:
    whole = ask("hello").text
    request = Request((Message.user("hello"),), options={"max_tokens": 3})
    if how == "streamed":
        response = collect(LEXICAL.stream(request))
    else:
        response = LEXICAL.respond(request) if how == "answered" else await LEXICAL.arespond(request)
    (choice,) = response.choices
    assert choice.text == whole[: len(choice.text)] == "I am offline"
    assert choice.finish_reason == "length"
    assert response.usage.output_tokens == 3
    assert ask("hello", options={"max_tokens": 512}).text == whole


def test_lexical_cuts_the_call_at_the_limit_and_drops_later_calls() -> None:
    question, tokens = "What's the weather in Oslo and Rome?", 9  # a call takes nine: {"city":"Oslo"}
    whole = ask(question, WEATHER)
    assert [call.arguments for call in whole.tool_calls] == [{"city": "Oslo"}, {"city": "Rome"}]
    cut = ask(question, WEATHER, options={"max_tokens": tokens - 2})
    assert [call.error is not None for call in cut.tool_calls] == [True]
    assert cut.finish_reason == "length"
    assert ask(question, WEATHER, options={"max_tokens": tokens}).tool_calls == whole.tool_calls[:1]
    assert ask(question, WEATHER, options={"max_tokens": 2 * tokens}) == whole


@pytest.mark.parametrize("module", [sigwire.Predict, sigwire.ReAct])
def test_answer_of_lexical_that_is_cut_is_an_error_of_a_program(module: Any) -> None:
    program = module("question -> answer", **({"tools": []} if module is sigwire.ReAct else {}))
    with sigwire.context(lm=LM("offline/lexical", max_tokens=2)), pytest.raises(OutputTruncated):
        program(question="Where is Oslo?")
