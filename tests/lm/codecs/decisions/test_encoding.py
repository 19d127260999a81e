"""Decision endpoints: requests. Whole bodies of each host, the kinds of questions, input, options, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, FilePart, ImagePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.decisions import OPENAI, encode
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.decisions.triage import PROFILES, asked, target_of

HOSTS = pytest.mark.parametrize("host", PROFILES)
TEAM: JsonObject = {"enum": ["billing", "tech"], "description": "Which team?"}


def questions_of(host: str, schema: JsonObject, **rest: Any) -> Any:
    return encode(asked(schema, **rest), target_of(host)).body["questions"]


def test_openai_gets_a_list_of_named_questions() -> None:
    assert encode(asked(), target_of("openai")).body == {
        "model": "m",
        "input": [{"role": "user", "content": "The shop is down."}],
        "questions": [
            {"type": "predicate", "name": "urgent", "instructions": "Must someone act within the hour?"},
            {
                "type": "choice",
                "name": "down",
                "instructions": "Down?",
                "choices": [
                    {"value": True, "description": "no page loads"},
                    {"value": False, "description": "a page loads"},
                ],
            },
            {
                "type": "choice",
                "name": "ticket.team",
                "instructions": "Team?",
                "choices": [{"value": "billing", "description": "money"}, {"value": "tech"}],
            },
            {
                "type": "choice",
                "name": "ticket.count",
                "instructions": "Count?",
                "choices": [{"value": "1"}, {"value": "2"}, {"value": "null"}],
            },
            {
                "type": "score",
                "name": "harm",
                "instructions": "Harm?",
                "levels": [{"label": "none"}, {"label": "severe", "description": "a wound"}],
            },
            {
                "type": "score",
                "name": "grade",
                "instructions": "Grade?",
                "levels": [{"label": "low"}, {"label": "mid"}, {"label": "high"}],
            },
            {
                "type": "predicate",
                "name": "tags[vip]",
                "instructions": "Tags?\nDoes this apply: vip (pays a lot)?",
            },
            {"type": "predicate", "name": "tags[legal]", "instructions": "Tags?\nDoes this apply: legal?"},
        ],
    }


def test_system_one_gets_questions_by_name_with_criteria() -> None:
    sent = encode(asked(), target_of("system-one"))
    assert sent.path == "/v1/systemone"
    assert sent.body["state"] == "The shop is down."
    questions: Any = sent.body["questions"]
    assert questions["down"] == {
        "type": "noul",
        "instructions": "Down?",
        "criteria": {"true": "no page loads", "false": "a page loads"},
    }
    assert questions["ticket.team"]["criteria"] == {"billing": "money", "tech": None}
    assert questions["harm"] == {"type": "score", "instructions": "Harm?", "criteria": ["none", "severe: a wound"]}
    assert questions["urgent"] == {"type": "noul", "instructions": "Must someone act within the hour?"}


def test_gemini_gets_questions_by_number() -> None:
    sent = encode(asked(), target_of("gemini"))
    questions: Any = sent.body["questions"]
    assert (sent.path, [*questions]) == ("/v1/decisions", [f"q{number}" for number in range(8)])
    assert questions["q1"]["criteria"] == {"true_description": "no page loads", "false_description": "a page loads"}
    assert questions["q2"]["criteria"] == {"billing": "money", "tech": ""}


@HOSTS
def test_encoded_request_has_the_questions_with_their_typed_values(host: str) -> None:
    questions = encode(asked(), target_of(host)).questions or ()
    found = {question.path: (question.kind, question.values) for question in questions}
    assert found["ticket.count"] == ("choice", (1, 2, None))
    assert found["down"] == ("bool", (True, False))
    assert found["grade"] == ("score", (0, 1, 2))
    assert found["version"] == ("choice", ("v1",))


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"enum": ["a", None, "b"]}, ("a", "b", None)),
        ({"type": ["boolean", "null"]}, (True, False, None)),
        ({"anyOf": [{"type": "boolean"}, {"const": "maybe"}]}, (True, False, "maybe")),
        ({"anyOf": [{"$ref": "#/$defs/d"}, {"type": "null"}]}, ("x", "y", None)),
        ({"allOf": [{"$ref": "#/$defs/d"}], "description": "D"}, ("x", "y")),
        ({"oneOf": [{"const": 1}, {"const": 2}]}, (1, 2)),
        ({"anyOf": [{"type": "number"}, {"type": "null"}], "x-levels": [{"label": "a"}, {"label": "b"}]}, (0, 1, None)),
        ({"enum": [False, True]}, (True, False)),
    ],
)
def test_values_of_a_question_come_from_any_form_of_the_schema(schema: JsonObject, values: tuple[Any, ...]) -> None:
    whole: JsonObject = {"properties": {"x": schema}, "$defs": {"d": {"enum": ["x", "y"]}}}
    questions = encode(asked(whole), target_of("openai")).questions or ()
    assert [question.values for question in questions] == [values]
    assert [list(map(type, question.values)) for question in questions] == [list(map(type, values))]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "string"}, "'x' is of type string"),
        ({"type": "number"}, "'x' is a number without levels"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "'x' is an object of any keys"),
        ({"type": "array", "items": {"type": "boolean"}}, "'x' is a list of other values"),
        ({"type": "array", "items": {"type": "object", "properties": {}}}, "'x' is a list of other values"),
        ({"type": "number", "x-levels": [{"label": "one"}]}, "'x' has fewer than two levels"),
        ({"type": "object", "properties": {"y": {}}}, "'x.y' is of any type"),
        ({"anyOf": [{"type": "boolean"}, {"type": "string"}]}, "'x' is of any type"),
        ({"$ref": "#/$defs/loop"}, "is nested too deeply"),
    ],
)
@HOSTS
def test_output_that_is_no_question_is_refused_with_its_path(host: str, schema: JsonObject, problem: str) -> None:
    loop: JsonObject = {"type": "object", "properties": {"n": {"$ref": "#/$defs/loop"}}}
    with pytest.raises(UnsupportedFeature, match=problem):
        encode(asked({"properties": {"x": schema}, "$defs": {"loop": loop}}), target_of(host))


def many(count: int, value: JsonObject) -> JsonObject:
    return {"properties": {f"x{number}": value for number in range(count)}}


@pytest.mark.parametrize(
    ("host", "schema", "problem"),
    [
        ("openai", many(401, {"type": "boolean"}), "401 questions are too many: openai/m takes 400"),
        ("gemini", many(1001, {"type": "boolean"}), "1001 questions are too many: gemini/m takes 1000"),
        ("openai", many(1, {"enum": [*map(str, range(256))]}), "256 values of the output 'x0'"),
        ("openai", many(1, {"type": "number", "x-levels": [{"label": str(n)} for n in range(11)]}), "11 levels of the"),
        ("openai", many(1, {"enum": [1, "1"]}), "Two values of the output 'x0' have the text '1'"),
        ("system-one", many(1, {"enum": [True, "true"]}), "have the text 'true'"),
        ("openai", {"properties": {"x": {"const": 1}}}, "without questions"),
        (
            "openai",
            {"properties": {"a.b": {"type": "boolean"}, "a": {"properties": {"b": {"type": "boolean"}}}}},
            "Two questions for openai/m are called 'a.b'",
        ),
    ],
    ids=["400", "1000", "255", "10 levels", "texts", "true", "constants", "names"],
)
def test_limit_of_a_host_is_an_error_before_anything_is_sent(host: str, schema: JsonObject, problem: str) -> None:
    with pytest.raises(UnsupportedFeature, match=problem):
        encode(asked(schema), target_of(host))


def test_limits_themselves_are_sent() -> None:
    assert len(questions_of("openai", many(400, {"type": "boolean"}))) == 400
    assert len(questions_of("openai", many(1, {"enum": [True, "true"]}))[0]["choices"]) == 2
    assert len(questions_of("system-one", many(401, {"type": "boolean"}))) == 401


def test_questions_are_those_of_the_host_when_two_hosts_have_one_label() -> None:
    request, numbered = asked(many(1, TEAM)), replace(OPENAI, ids=True)
    names = [encode(request, Target("h", "m", profile)).body["questions"] for profile in (OPENAI, numbered, OPENAI)]
    assert [questions[0]["name"] for questions in cast(Any, names)] == ["x0", "q0", "x0"]


def test_a_body_is_the_callers_to_change() -> None:
    questions_of("openai", many(1, TEAM))[0]["choices"].clear()
    assert len(questions_of("openai", many(1, TEAM))[0]["choices"]) == 2


TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {}}}


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (asked(many(1, TEAM), tools=(TOOL,)), "tools"),
        (Request((Message.user("q"),)), "without questions"),
        (Request((Message.user("q"),), response_format=ResponseFormat()), "without questions"),
        (asked(many(1, TEAM), options={"n": 2}), "several choices"),
    ],
    ids=["tools", "no format", "no schema", "n"],
)
@HOSTS
def test_feature_that_no_host_has_is_refused(host: str, request_: Request, problem: str) -> None:
    with pytest.raises(UnsupportedFeature, match=problem):
        encode(request_, target_of(host))


SOUND, PDF = AudioPart("aGk=", "wav"), FilePart(data="aGk=", media_type="application/pdf")


@pytest.mark.parametrize("host", ["openai", "system-one"])
@pytest.mark.parametrize(("part", "problem"), [(SOUND, "audio"), (PDF, "documents")], ids=["audio", "file"])
def test_input_that_a_host_has_no_place_for_is_refused(host: str, part: Any, problem: str) -> None:
    with pytest.raises(UnsupportedFeature, match=problem):
        encode(asked(many(1, TEAM), Message("user", (part,))), target_of(host))


def test_gemini_takes_sound_and_documents() -> None:
    linked = FilePart(url="https://a.example/b.pdf", media_type="application/pdf")
    note = FilePart(data="aGk=", media_type="text/plain")
    sent = encode(asked(many(1, TEAM), Message("user", (SOUND, PDF, linked, note))), target_of("gemini"))
    assert sent.body["input"] == [
        {"type": "audio", "data": "aGk=", "mime_type": "audio/wav"},
        {"type": "document", "data": "aGk=", "mime_type": "application/pdf"},
        {"type": "document", "uri": "https://a.example/b.pdf", "mime_type": "application/pdf"},
        {"type": "text", "text": "hi"},
    ]


@pytest.mark.parametrize("part", [FilePart(file_id="f"), ImagePart(file_id="f")], ids=["file", "image"])
@HOSTS
def test_file_of_the_host_by_its_id_is_refused(host: str, part: Any) -> None:
    with pytest.raises(UnsupportedFeature):
        encode(asked(many(1, TEAM), Message("user", (part,))), target_of(host))


@pytest.mark.parametrize("value", ["", " a", "a\n"])
def test_value_that_gemini_takes_no_id_of_is_refused(value: str) -> None:
    schema = many(1, {"enum": [value, "b"]})
    with pytest.raises(UnsupportedFeature, match="Rename the value"):
        encode(asked(schema), target_of("gemini"))
    assert len(questions_of("openai", schema)) == 1


def test_system_one_takes_no_images() -> None:
    with pytest.raises(UnsupportedFeature, match="image input"):
        encode(
            asked(many(1, TEAM), Message("user", (ImagePart(url="https://a.example/b.png"),))), target_of("system-one")
        )


@pytest.mark.parametrize(
    ("host", "options", "fields"),
    [
        ("openai", {"prompt_cache": {"key": "k"}, "user": "u"}, {"prompt_cache_key": "k", "safety_identifier": "u"}),
        ("system-one", {"temperature": 0.5, "prompt_cache": {"key": "k"}}, {"temperature": 0.5}),
        ("gemini", {"extra_body": {"labels": {"a": "b"}}}, {"labels": {"a": "b"}}),
        ("openai", {"extra_body": {"prompt_cache_options": {"ttl": "30m"}}}, {"prompt_cache_options": {"ttl": "30m"}}),
        ("openai", {"n": 1}, {}),
    ],
)
def test_options_are_placed(host: str, options: JsonObject, fields: JsonObject) -> None:
    body = encode(asked(many(1, TEAM), options=options), target_of(host)).body
    assert {
        name: value for name, value in body.items() if name not in ("model", "input", "state", "questions")
    } == fields


@pytest.mark.parametrize(
    ("host", "name"), [("openai", "temperature"), ("gemini", "temperature"), ("system-one", "max_tokens")]
)
def test_other_option_is_refused(host: str, name: str) -> None:
    with pytest.raises(UnsupportedOption, match=name):
        encode(asked(many(1, TEAM), options={name: 1}), target_of(host))


TALK = (
    Message.system("Sort it."),
    Message("user", (TextPart("See:"), ImagePart(data="aGk=", media_type="image/png"))),
    Message("assistant", (ThinkingPart("hm"), TextPart("Looking."), ToolCall("c_1", "look", {"at": 1}))),
    Message.tool(ToolResult("c_1", "look", "a wall")),
    Message.user("Now?"),
)


def test_openai_gets_the_conversation_as_items() -> None:
    assert encode(asked(many(1, TEAM), *TALK), target_of("openai")).body["input"] == [
        {"role": "system", "content": "Sort it."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See:"},
                {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
            ],
        },
        {"role": "assistant", "content": "Looking."},
        {"type": "function_call", "call_id": "c_1", "name": "look", "arguments": '{"at":1}'},
        {"type": "function_call_output", "call_id": "c_1", "output": "a wall"},
        {"role": "user", "content": "Now?"},
    ]


def test_gemini_gets_the_conversation_as_blocks() -> None:
    assert encode(asked(many(1, TEAM), *TALK), target_of("gemini")).body["input"] == [
        {"type": "text", "text": "System: Sort it."},
        {"type": "text", "text": "User: See:"},
        {"type": "image", "data": "aGk=", "mime_type": "image/png"},
        {"type": "text", "text": "Assistant: Looking."},
        {"type": "text", "text": 'look({"at":1})'},
        {"type": "text", "text": "Tool: look -> a wall"},
        {"type": "text", "text": "User: Now?"},
    ]


def test_system_one_gets_the_conversation_as_text() -> None:
    turns = (TALK[0], Message.user("See."), *TALK[2:])
    assert encode(asked(many(1, TEAM), *turns), target_of("system-one")).body["state"] == (
        'System: Sort it.\n\nUser: See.\n\nAssistant: Looking.\n\nlook({"at":1})\n\nTool: look -> a wall\n\nUser: Now?'
    )
