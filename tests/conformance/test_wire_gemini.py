"""Recorded traffic of the Gemini API and Vertex AI: replies decode to their reading, requests are encoded equally."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any, cast

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.lm.codecs import gemini
from sigwire.lm.codecs.gemini import FINISH_REASONS, GEMINI, VERTEX, GeminiProfile
from sigwire.lm.codecs.shared.interface import EncodedRequest, ModelFacts, Target
from tests.conformance.readings import normal_form, read_call, reasoning_texts
from tests.conformance.recordings import ids, recorded
from tests.lm.codecs.gemini.reading import read_request

EXCHANGES = recorded("gemini.jsonl")
ABLE = Capabilities(
    json_schema=True, json_object=True, tools_with_json_schema=True, native_tools=True, tool_choice=True
)
HOSTS: dict[str, GeminiProfile] = {"google": GEMINI, "google-vertex": VERTEX}
OLDER = ModelFacts(thinking="budget", builtin_with_functions=False, media_in_results=False)
NEWER = ModelFacts(signed_calls=True)

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


def target_of(exchange: dict[str, Any]) -> Target[GeminiProfile]:
    facts = NEWER if exchange["model"].startswith("gemini-3") else OLDER
    return Target(exchange["provider"], exchange["model"], HOSTS[exchange["provider"]], ABLE, facts)


def sent_of(exchange: dict[str, Any]) -> EncodedRequest:
    return gemini.encode(Request((Message.user("q"),)), target_of(exchange))


def decoded(exchange: dict[str, Any]) -> Response:
    return gemini.decode(exchange["response"], sent_of(exchange), target_of(exchange))


ANSWERS = [exchange for exchange in EXCHANGES if "error" not in exchange["expected"]]
FAILURES = [exchange for exchange in EXCHANGES if "error" in exchange["expected"]]


# --- replies


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_reply_decodes_to_its_recorded_reading(exchange: dict[str, Any]) -> None:
    expected, response = exchange["expected"], decoded(exchange)
    assert len(response.choices) == expected["n_choices"] == 1
    choice = response.choices[0]
    assert choice.text == (expected["text"] or "")
    assert reasoning_texts(choice) == expected["reasoning_parts"]
    assert choice.refusal == expected["refusal"]
    assert [read_call(call) for call in choice.tool_calls] == expected_calls(expected["tool_calls"])
    assert builtin(choice) == expected["builtin"]
    assert choice.finish_reason == expected_finish(choice, expected)
    assert response.model == expected["response_model"]
    assert response.id == (expected["response_id"] or None)
    assert used(response) == expected_usage(exchange)
    assert response.raw is exchange["response"]


def expected_calls(calls: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    """Number the calls without an id in their order."""
    number = iter(range(len(calls)))
    return [(call["id"] or f"call_{next(number)}", call["name"], call["arguments"]) for call in calls]


def builtin(choice: Choice) -> list[str]:
    """Return the keys of parts that need no result of the caller; media of the model are among these."""
    kinds: list[str] = []
    for part in choice.parts:
        if isinstance(part, OpaquePart):
            assert isinstance(part.data, dict)
            kinds += [key for key in part.data if key != "thoughtSignature"]
        elif part.kind in ("image", "audio", "file"):
            kinds.append("inlineData")
    return kinds


def expected_finish(choice: Choice, expected: dict[str, Any]) -> str:
    return "tool_calls" if choice.tool_calls else FINISH_REASONS[expected["finish_reason"]]


def used(response: Response) -> tuple[int | None, ...]:
    usage = response.usage
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        usage.cache_write_tokens,
    )


def expected_usage(exchange: dict[str, Any]) -> tuple[int | None, ...]:
    """The recorded numbers are native: output without reasoning, input without results of built-in tools."""
    counts = exchange["expected"]["usage"]
    results = exchange["response"]["usageMetadata"].get("toolUsePromptTokenCount", 0)
    said, thought = counts["output"], counts["reasoning"]
    output = None if said is None and thought is None else (said or 0) + (thought or 0)
    return counts["input"] + results, output, counts["cached_input"], thought, None


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_total_tokens_equal_the_count_of_the_provider(exchange: dict[str, Any]) -> None:
    usage = decoded(exchange).usage
    assert usage.total_tokens == exchange["expected"]["usage"]["total"]


CITED = [exchange for exchange in ANSWERS if "citations" in exchange["features"]]


@pytest.mark.parametrize("exchange", CITED, ids=ids(CITED))
def test_recorded_citation_points_at_its_text(exchange: dict[str, Any]) -> None:
    choice = decoded(exchange).choices[0]
    grounding = exchange["response"]["candidates"][0]["groundingMetadata"]
    supports = grounding.get("groundingSupports", [])
    expected = [support["segment"]["text"] for support in supports for _ in support["groundingChunkIndices"]]
    placed: list[dict[str, Any]] = [citation for citation in choice.citations if "start_index" in citation]
    assert [citation["text"] for citation in placed] == expected
    for citation in placed:
        assert choice.text[citation["start_index"] : citation["end_index"]] == citation["text"]


@pytest.mark.parametrize("exchange", FAILURES, ids=ids(FAILURES))
def test_recorded_failure_is_an_error_with_its_message_and_code(exchange: dict[str, Any]) -> None:
    expected = exchange["expected"]["error"]
    error = gemini.decode_error(exchange["status"], {}, json.dumps(exchange["response"]), target_of(exchange))
    assert expected["message"].rstrip(".") in error.message
    assert error.provider_code == expected["type"].lower()
    assert error.status == expected["status"]
    assert not error.retryable


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_reply_in_history_is_sent_unchanged(exchange: dict[str, Any]) -> None:
    target = target_of(exchange)
    target = replace(target, facts=replace(target.facts, signed_calls=False))
    message = decoded(exchange).choices[0].message()
    stored = Message.from_json(json.loads(json.dumps(message.to_json())))
    contents = gemini.encode(Request((Message.user("q"), stored)), target).body["contents"]
    came = exchange["response"]["candidates"][0].get("content", {}).get("parts", [])
    written = [part for content in list_of(contents) if content["role"] == "model" for part in content["parts"]]
    assert written == [with_arguments(part) for part in came]


def list_of(value: Any) -> list[dict[str, Any]]:
    return list(value)


# --- requests

Rule = Callable[[dict[str, Any]], dict[str, Any]]
CALLERS_OWN = {"args", "response", "parameters", "parametersJsonSchema", "responseJsonSchema"}


def camel_case(body: dict[str, Any]) -> dict[str, Any]:
    named = {re.sub("_(.)", lambda found: found[1].upper(), key): child for key, child in body.items()}
    return {key: child if key in CALLERS_OWN else renamed(child) for key, child in named.items()}


def renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [renamed(item) for item in list_of(value)]
    return camel_case(cast("dict[str, Any]", value)) if isinstance(value, dict) else value


def without_system_role(body: dict[str, Any]) -> dict[str, Any]:
    if "systemInstruction" not in body:
        return body
    return {**body, "systemInstruction": {"parts": body["systemInstruction"]["parts"]}}


def one_content_for_neighbours(body: dict[str, Any]) -> dict[str, Any]:
    groups = groupby(body["contents"], lambda content: content["role"])
    contents = [{"role": role, "parts": [part for one in group for part in one["parts"]]} for role, group in groups]
    return {**body, "contents": contents}


def each_part(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Rule:
    def rule(body: dict[str, Any]) -> dict[str, Any]:
        contents = [{**content, "parts": list(map(change, content["parts"]))} for content in body["contents"]]
        return {**body, "contents": contents}

    return rule


def with_arguments(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "functionCall": {"args": {}, **part["functionCall"]}} if "functionCall" in part else part


def with_wrapped_response(part: dict[str, Any]) -> dict[str, Any]:
    if "functionResponse" not in part:
        return part
    result = part["functionResponse"]
    response = result["response"]
    wrapped = response if response.keys() in ({"output"}, {"error"}) else {"output": response}
    return {**part, "functionResponse": {**result, "response": wrapped}}


def one_list_of_functions(body: dict[str, Any]) -> dict[str, Any]:
    tools = body.get("tools")
    if tools is None:
        return body
    entries = [cast("dict[str, Any]", tools)] if isinstance(tools, dict) else list_of(tools)
    functions = [function for entry in entries for function in entry.get("functionDeclarations", ())]
    others = [entry for entry in entries if "functionDeclarations" not in entry]
    declared = [{"functionDeclarations": functions}] if functions else []
    return {**body, "tools": others + declared}


def each_function(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Rule:
    def rule(body: dict[str, Any]) -> dict[str, Any]:
        if "tools" not in body:
            return body
        entries = [
            {key: list(map(change, value)) if key == "functionDeclarations" else value for key, value in entry.items()}
            for entry in body["tools"]
        ]
        return {**body, "tools": entries}

    return rule


def schema_in_its_newer_place(function: dict[str, Any]) -> dict[str, Any]:
    if "parameters" not in function:
        return function
    schema = function["parameters"]
    rest = {key: value for key, value in function.items() if key != "parameters"}
    return {**rest, "parametersJsonSchema": {**schema, "type": schema["type"].lower()}}


def without_empty_description(function: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in function.items() if (key, value) != ("description", "")}


def without_empty_schema(function: dict[str, Any]) -> dict[str, Any]:
    nothing: tuple[Any, ...] = (
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {}, "additionalProperties": False},
    )
    return {key: value for key, value in function.items() if value not in nothing}


def levels_in_small_letters(body: dict[str, Any]) -> dict[str, Any]:
    config = body.get("generationConfig", {})
    thinking = config.get("thinkingConfig", {})
    if "thinkingLevel" not in thinking:
        return body
    thinking = {**thinking, "thinkingLevel": thinking["thinkingLevel"].lower()}
    return {**body, "generationConfig": {**config, "thinkingConfig": thinking}}


def without_empty_generation(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if (key, value) != ("generationConfig", {})}


def without_title_of_reference(body: dict[str, Any]) -> dict[str, Any]:
    config = body.get("generationConfig", {})
    schema = config.get("responseJsonSchema", {})
    if "$ref" not in schema:
        return body
    bare = {key: value for key, value in schema.items() if key != "title"}
    return {**body, "generationConfig": {**config, "responseJsonSchema": bare}}


EQUAL_FORMS: dict[str, Rule] = {
    "keys have two spellings": camel_case,
    "a system instruction's role is ignored": without_system_role,
    "neighbouring contents of one role are one": one_content_for_neighbours,
    "absent arguments are {}": each_part(with_arguments),
    "a response without output or error is the output": each_part(with_wrapped_response),
    "functions may be declared in one entry or in several": one_list_of_functions,
    "parameters is parametersJsonSchema in OpenAPI's words": each_function(schema_in_its_newer_place),
    "an empty description says nothing": each_function(without_empty_description),
    "a schema that declares no argument says nothing": each_function(without_empty_schema),
    "a thinking level's case says nothing": levels_in_small_letters,
    "an empty generationConfig says nothing": without_empty_generation,
    "a title beside a reference says nothing": without_title_of_reference,
}
"""Differences without meaning between a recorded and an encoded request, removed before the comparison."""

IN_WORDS = "minLength, maxLength, pattern and uniqueItems are read past by the API; we put them into the description"
EXCEPTIONS: dict[str, str] = {"ge-329b02a675": IN_WORDS, "ge-33b3c3d061": IN_WORDS}
"""Recorded requests that are encoded differently, each with the reason."""


def normal_body(body: dict[str, Any]) -> dict[str, Any]:
    return normal_form(body, EQUAL_FORMS)


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_recorded_request_is_read_and_encoded_equally(exchange: dict[str, Any]) -> None:
    if exchange["id"] in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[exchange["id"]])
    target = target_of(exchange)
    request = read_request(exchange["request"], target.profile)
    assert normal_body(gemini.encode(request, target).body) == normal_body(exchange["request"])
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request


def test_every_exception_still_differs() -> None:
    for exchange in (exchange for exchange in EXCHANGES if exchange["id"] in EXCEPTIONS):
        target = target_of(exchange)
        sent = gemini.encode(read_request(exchange["request"], target.profile), target)
        assert normal_body(sent.body) != normal_body(exchange["request"])
        assert {warning.feature for warning in sent.warnings} == {"schema"}


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_recorded_path_ends_with_the_encoded_path(exchange: dict[str, Any]) -> None:
    path = gemini.encode(Request((Message.user("q"),)), target_of(exchange)).path
    assert exchange["path"].endswith(re.sub("^/v1(beta)?/", "/", path))


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    answers, requests = (Counter(exchange["provider"] for exchange in part) for part in (ANSWERS, EXCHANGES))
    with capsys.disabled():
        print(
            f"\ngemini: {len(ANSWERS)} answers, {len(FAILURES)} failures, {len(EXCHANGES) - len(EXCEPTIONS)} requests"
        )
        print("  " + ", ".join(f"{name} {answers[name]}/{requests[name]}" for name in sorted(requests)))
    assert len(ANSWERS) + len(FAILURES) == len(EXCHANGES)
    assert EXCEPTIONS.keys() <= {exchange["id"] for exchange in EXCHANGES}
