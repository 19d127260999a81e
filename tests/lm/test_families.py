"""Rules of a model family on every door that serves it, at a fake provider that refuses what the vendor refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import sigwire
from sigwire.core.events import collect
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message, Part
from sigwire.core.parts import FilePart, ImagePart, OpaquePart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.specs import read_tools
from sigwire.errors import UnsupportedFeature
from sigwire.lm.client import LM
from sigwire.lm.codecs import openai_chat
from sigwire.lm.litellm.codec import encode_call, target_for
from sigwire.lm.portable import to_provider
from sigwire.lm.providers.registry import PROVIDERS
from sigwire.lm.router import Router
from sigwire.media.errors import UnsupportedMedia
from sigwire.testing import FakeProvider, Fault
from tests.grids import grid
from tests.lm.calls import TOOL, ask, patient, stream

CLAUDE_DOORS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "vertex-claude": "vertex/claude-sonnet-4-5@20250929",
    "bedrock": "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "compatible": "openrouter/anthropic/claude-sonnet-4.5",
}
O3_DOORS = {"openai": "openai/o3", "azure": "azure/o3", "compatible": "openrouter/openai/o3"}
GPT_DOORS = {
    "openai": "openai/gpt-4.1",
    "openai-responses": "openai/gpt-4.1",
    "azure": "azure/gpt-4.1",
    "azure-responses": "azure/gpt-4.1",
    "compatible": "openrouter/openai/gpt-4.1",
}
NOVA_DOORS = {"bedrock": "bedrock/us.amazon.nova-pro-v1:0", "compatible": "openrouter/amazon/nova-pro-v1"}
DOORS: dict[str, dict[str, str]] = {"claude": CLAUDE_DOORS, "o3": O3_DOORS, "gpt": GPT_DOORS, "nova": NOVA_DOORS}
RESPONSES = {"openai-responses": "responses", "azure-responses": "responses"}
VARIABLES: dict[str, Any] = {"bedrock": {"region": "us-east-1"}}


def lm_at(provider: FakeProvider, door: str, model: str, **options: Any) -> LM:
    wire, prefix = RESPONSES.get(door), model.partition("/")[0]
    more: dict[str, Any] = {"wire": wire} if wire else {}
    return LM(
        model,
        base_url=provider.url(door),
        api_key="k",
        cache=False,
        limit=False,
        retry=patient(retries=0),
        **VARIABLES.get(prefix, {}),
        **more,
        **options,
    )


ASKED = Message.user("q")
LOOP = (ASKED, Message.assistant("", (ToolCall("call_1", "f", {}),)), Message.tool(ToolResult("call_1", "f", "1")))


def asked(
    *messages: Message, tools: tuple[JsonObject, ...] = (), choice: ToolChoice | None = None, **options: Any
) -> Request:
    return Request(messages or (ASKED,), tools, choice, options=options)


# By the family and the rule: the request that the vendor refuses as it is, and the features of the warnings.
RULES: dict[tuple[str, str], tuple[Request, set[str]]] = {
    ("claude", "loop without thinking"): (
        asked(*LOOP, tools=(TOOL,), reasoning="high", max_tokens=8000),
        {"reasoning"},
    ),
    ("claude", "thinking and a temperature"): (asked(reasoning="low", temperature=0.5), {"temperature"}),
    ("claude", "thinking and a forced call"): (
        asked(tools=(TOOL,), choice=ToolChoice.REQUIRED, reasoning="low", max_tokens=9000),
        {"tool_choice"},
    ),
    ("claude", "temperature above 1"): (asked(temperature=1.7), {"temperature"}),
    ("claude", "temperature and top_p"): (asked(temperature=0.5, top_p=0.5), {"top_p"}),
    ("claude", "stop sequence of white space"): (asked(stop=["\n", "end"]), {"stop"}),
    ("claude", "longest answer"): (asked(max_tokens=100_000), {"max_tokens"}),
    ("claude", "answer to continue that ends with a blank"): (asked(ASKED, Message.assistant("a ")), set()),
    ("o3", "stop"): (asked(stop="end"), {"stop"}),
    ("o3", "temperature"): (asked(temperature=0.5), {"temperature"}),
    ("o3", "longest answer"): (asked(max_tokens=200_000), {"max_tokens"}),
    ("gpt", "longest answer"): (asked(max_tokens=64_000), {"max_tokens"}),
    ("gpt", "temperature above 2"): (asked(temperature=2.5), {"temperature"}),
    ("nova", "longest answer"): (asked(max_tokens=64_000), {"max_tokens"}),
    ("nova", "temperature above 1"): (asked(temperature=1.7), {"temperature"}),
}
CASES = {
    f"{door}-{family}-{rule}": (door, model, request, warned)
    for (family, rule), (request, warned) in RULES.items()
    for door, model in DOORS[family].items()
}


@grid("case, streamed, how", CASES, [False, True], ["blocking", "awaited"])
async def test_rule_of_a_family_holds_on_the_door(case: str, streamed: bool, how: str) -> None:
    door, model, request, warned = CASES[case]
    async with FakeProvider(["ok"]) as provider:
        lm = lm_at(provider, door, model)
        response = collect(await stream(how, lm, request)) if streamed else await ask(how, lm, request)
    assert response.choices[0].text == "ok"
    assert {warning.feature for warning in response.warnings} == warned


@pytest.mark.parametrize("case", CASES)
def test_rule_of_a_family_holds_when_a_failover_moves_the_conversation(case: str) -> None:
    door, model, request, warned = CASES[case]
    with FakeProvider([Fault("server")]) as first, FakeProvider(["ok"]) as second:
        router = Router([lm_at(first, "ollama", "ollama/qwen3"), lm_at(second, door, model)])
        response = router.respond(request)
        assert len(first.requests) == 1
    assert response.choices[0].text == "ok"
    assert warned <= {warning.feature for warning in response.warnings}


def test_rules_of_a_family_hold_for_the_calls_of_an_agent_inside_an_agent() -> None:
    script = [
        ToolCall("", "answer", {"question": "r"}),
        ToolCall("", "submit", {"answer": "2"}),
        ToolCall("", "submit", {"a": "4"}),
    ]
    with FakeProvider(script) as provider:
        agent = sigwire.ReAct("q -> a", tools=[sigwire.ReAct("question -> answer", tools=[])])
        agent.set_lm(lm_at(provider, "bedrock", CLAUDE_DOORS["bedrock"], temperature=1.7))
        assert agent(q="q").a == "4"
        assert [request.status for request in provider.requests] == [200, 200, 200]


LITELLM = [
    "anthropic/claude-sonnet-4-5",
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "vertex_ai/claude-sonnet-4-5@20250929",
]


@pytest.mark.parametrize("model", LITELLM)
def test_rules_of_claude_hold_through_litellm(model: str) -> None:
    target = target_for(model, None)
    loop, _ = encode_call(asked(*LOOP, tools=(TOOL,), reasoning="high"), target)
    hot, sent = encode_call(asked(temperature=1.7, top_p=0.5, max_tokens=100_000, stop=[" "]), target)
    assert not loop.keys() & {"reasoning_effort", "thinking"}
    assert {name: hot.get(name) for name in ("temperature", "top_p", "max_tokens", "stop")} == {
        "temperature": 1.0, "top_p": None, "max_tokens": 64_000, "stop": None,
    }  # fmt: skip
    assert {warning.feature for warning in sent.warnings} == {"temperature", "top_p", "max_tokens", "stop"}


THOUGHTS: dict[str, Part] = {
    "anthropic": ThinkingPart("hm", signature="c2ln", provider="anthropic"),
    "vertex-claude": ThinkingPart("hm", signature="c2ln", provider="anthropic"),
    "bedrock": ThinkingPart("hm", signature="c2ln", provider="bedrock"),
    "compatible": OpaquePart("openrouter", {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}),
}


@pytest.mark.parametrize(("door", "model"), CLAUDE_DOORS.items(), ids=CLAUDE_DOORS)
def test_loop_that_started_with_thinking_goes_on_thinking(door: str, model: str) -> None:
    with FakeProvider(["ok"]) as provider:
        lm = lm_at(provider, door, model)
        turn = Message("assistant", (THOUGHTS[door], *LOOP[1].parts))
        response = lm.respond(asked(ASKED, turn, LOOP[2], tools=(TOOL,), reasoning={"budget": 2000}, max_tokens=8000))
        asks = provider.requests[0].request
    assert response.warnings == ()
    assert asks is not None
    assert asks.options["reasoning"] == {"budget": 2000}


NEWER = {
    "anthropic": "anthropic/claude-opus-4-6",
    "vertex-claude": "vertex/claude-opus-4-6",
    "bedrock": "bedrock/us.anthropic.claude-opus-4-6-v1",
    "compatible": "openrouter/anthropic/claude-opus-4.6",
}


@pytest.mark.parametrize(("door", "model"), NEWER.items(), ids=NEWER)
def test_answer_to_continue_is_refused_before_it_is_sent_to_a_newer_claude(door: str, model: str) -> None:
    with FakeProvider(["ok"]) as provider:
        with pytest.raises(UnsupportedFeature, match="an answer to continue"):
            lm_at(provider, door, model).respond(asked(ASKED, Message.assistant("a")))
        assert provider.requests == ()


def test_o3_mini_gets_its_stop_sequence() -> None:
    with FakeProvider(["ok"]) as provider:
        response = lm_at(provider, "openai", "openai/o3-mini").respond(asked(stop=["end"]))
        assert provider.requests[0].body["stop"] == ["end"]  # type: ignore[index,call-overload]
    assert response.warnings == ()


@pytest.mark.parametrize(("most", "sent"), [(None, 32_768), (1000, 1000), (90_000, 64_000)])
def test_capabilities_of_the_user_decide_the_longest_answer(most: int | None, sent: int) -> None:
    able = replace(PROVIDERS["openai"].capabilities, max_output_tokens=most)
    backend: Any = LM("openai/gpt-4.1", api_key="k", capabilities=able)._backend
    body: Any = openai_chat.encode(asked(max_tokens=64_000), backend.target_of(Request())).body
    assert body["max_completion_tokens"] == sent


# --- where an option of one family goes


TOP_K = {
    "us.amazon.nova-pro-v1:0": {"inferenceConfig": {"topK": 5}},
    "anthropic.claude-3-5-sonnet-20241022-v2:0": {"top_k": 5},
    "mistral.mistral-large-2402-v1:0": {"top_k": 5},
    "us.meta.llama3-3-70b-instruct-v1:0": None,
    "amazon.titan-text-express-v1": None,
}


@pytest.mark.parametrize(("model", "wanted"), TOP_K.items(), ids=TOP_K)
def test_top_k_goes_to_its_place_of_the_vendor_on_bedrock(model: str, wanted: JsonObject | None) -> None:
    with FakeProvider(["ok"]) as provider:
        response = lm_at(provider, "bedrock", f"bedrock/{model}").respond(asked(top_k=5))
        body: Any = provider.requests[0].body
    assert body.get("additionalModelRequestFields") == wanted
    assert [warning.feature for warning in response.warnings] == ([] if wanted else ["top_k"])


NOVA_EFFORTS = {
    "off": ({"reasoning": "off", "max_tokens": 9}, None, []),
    "low": ({"reasoning": "low", "max_tokens": 9}, "low", []),
    "high": ({"reasoning": "high"}, "high", []),
    "high with a limit": ({"reasoning": "high", "max_tokens": 9}, "medium", ["reasoning"]),
    "with a temperature": ({"reasoning": "medium", "temperature": 0.5}, "medium", ["temperature"]),
    "without": ({"temperature": 0.5}, None, []),
}


@pytest.mark.parametrize(("options", "effort", "warned"), NOVA_EFFORTS.values(), ids=NOVA_EFFORTS)
def test_nova_2_is_asked_to_reason_with_an_effort(options: JsonObject, effort: str | None, warned: list[str]) -> None:
    with FakeProvider(["ok"]) as provider:
        response = lm_at(provider, "bedrock", "bedrock/us.amazon.nova-2-lite-v1:0").respond(asked(**options))
        body: Any = provider.requests[0].body
    fields = {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}} if effort else None
    assert body.get("additionalModelRequestFields") == fields
    assert ("temperature" in body.get("inferenceConfig", {})) is ("temperature" in options and not warned)
    assert [warning.feature for warning in response.warnings] == warned


# --- prompt caches


LONG = Message.system("s" * 4000)
MARKED = {
    "bedrock": ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", {"cachePoint": {"type": "default"}}),
    "bedrock-nova": ("bedrock/us.amazon.nova-pro-v1:0", {"cachePoint": {"type": "default"}}),
    "vertex-claude": ("vertex/claude-sonnet-4-5@20250929", {"cache_control": {"type": "ephemeral"}}),
}


@pytest.mark.parametrize(
    ("door", "model", "mark"), [(door.partition("-nova")[0], *row) for door, row in MARKED.items()]
)
def test_repeated_prompt_is_marked_for_the_cache_on_the_cloud(door: str, model: str, mark: JsonObject) -> None:
    with FakeProvider(["ok", "ok", "ok"]) as provider:
        lm = lm_at(provider, door, model)
        lm.respond(replace(asked(LONG, ASKED, Message.assistant("a"), ASKED), repeated=(1, 4)))
        lm.respond(asked(LONG, ASKED))
        lm.respond(asked(LONG, ASKED, prompt_cache={"ttl": "1h"}))
        bodies: list[Any] = [request.body for request in provider.requests]
    ((name, settings),) = mark.items()
    ends = bodies[0]["system"][-1], bodies[0]["messages"][-1]["content"][-1]
    assert [end[name] for end in ends] == [settings, settings]
    assert name not in str(bodies[1])
    assert str(bodies[2]).count(name) == 1
    assert bodies[2]["messages"][-1]["content"][-1][name].get("ttl") == (None if "nova" in model else "1h")


GATEWAYS = {"compatible": "openrouter/anthropic/claude-sonnet-4.5"}


def test_repeated_prompt_is_marked_for_the_cache_behind_a_gateway_as_at_the_vendor() -> None:
    history = (LONG, ASKED, Message.assistant("a"), ASKED)
    mark: JsonObject = {"type": "ephemeral"}
    with FakeProvider(["ok"] * 5) as provider:
        lm = lm_at(provider, "compatible", GATEWAYS["compatible"])
        lm.respond(replace(asked(*history), repeated=(1, 4)))
        lm.respond(replace(asked(*history, prompt_cache=False), repeated=(1, 4)))
        lm.respond(replace(asked(*history[1:]), repeated=(3,)))  # too short
        lm.respond(asked(LONG, ASKED, prompt_cache={"ttl": "1h"}))
        calls = Message("assistant", (ToolCall("call_1", "f", {}),))
        loop = (LONG, ASKED, calls, Message.tool(ToolResult("call_1", "f", "1")), ASKED)
        lm.respond(replace(asked(*loop), repeated=(3, 5)))
        bodies: list[Any] = [request.body for request in provider.requests]
    marked = [[place for place, each in enumerate(body["messages"]) if "cache_control" in str(each)] for body in bodies]
    assert marked == [[0, 3], [], [], [0, 1], [1, 4]]
    assert bodies[0]["messages"][0]["content"][-1]["cache_control"] == mark
    assert bodies[3]["messages"][-1]["content"][-1]["cache_control"] == {**mark, "ttl": "1h"}


def test_nova_keeps_its_cache_for_its_own_time_with_a_warning() -> None:
    with FakeProvider(["ok"]) as provider:
        lm = lm_at(provider, "bedrock", NOVA_DOORS["bedrock"])
        response = lm.respond(asked(LONG, ASKED, prompt_cache={"ttl": "1h"}))
        body: Any = provider.requests[0].body
    assert body["messages"][-1]["content"][-1] == {"cachePoint": {"type": "default"}}
    assert [warning.feature for warning in response.warnings] == ["prompt_cache"]


def test_models_without_a_prompt_cache_get_no_mark() -> None:
    request = replace(asked(LONG, ASKED, prompt_cache={}), repeated=(1, 2))
    with FakeProvider(["ok", "ok"]) as provider:
        for model in ("anthropic.claude-3-haiku-20240307-v1:0", "us.meta.llama3-3-70b-instruct-v1:0"):
            lm_at(provider, "bedrock", f"bedrock/{model}").respond(request)
        assert all("cachePoint" not in str(request.body) for request in provider.requests)


def test_caller_and_marks_have_at_most_four_points() -> None:
    request = replace(asked(LONG, ASKED, Message.assistant("a"), ASKED, prompt_cache={}), repeated=(1, 2, 3, 4, 4))
    with FakeProvider(["ok"]) as provider:
        lm_at(provider, "bedrock", CLAUDE_DOORS["bedrock"]).respond(request)
        assert str(provider.requests[0].body).count("cachePoint") == 4


# --- rules over a whole request of Bedrock


PDF = "JVBERi0xLjQgeA=="
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
BEDROCK = {"claude": CLAUDE_DOORS["bedrock"], "nova": NOVA_DOORS["bedrock"]}
NAMES: dict[str, tuple[list[str | None], list[str]]] = {
    "unnamed": ([None, None], ["document", "document-2"]),
    "equal as legal names": (["report.pdf", "report pdf"], ["report pdf", "report pdf-2"]),
    "in other letters": (["отчёт.pdf", "счёт.pdf"], ["document", "document-2"]),
    "equal but for case": (["A.pdf", "a.pdf"], ["A pdf", "a pdf-2"]),
    "a name that a number makes": ([None, "document-2", None], ["document", "document-2", "document-3"]),
}


def pdf(name: str | None = None) -> FilePart:
    return FilePart(data=PDF, filename=name, media_type="application/pdf")


def sent_names(provider: FakeProvider) -> list[str]:
    body: Any = provider.requests[-1].body
    blocks = [block for message in body["messages"] for block in message["content"]]
    inner = [each for block in blocks for each in block.get("toolResult", {}).get("content", ())]
    return [block["document"]["name"] for block in (*blocks, *inner) if "document" in block]


@pytest.mark.parametrize("model", BEDROCK.values(), ids=BEDROCK)
@pytest.mark.parametrize("turns", ["one turn", "a turn each"])
@pytest.mark.parametrize(("given", "wanted"), NAMES.values(), ids=NAMES)
def test_documents_of_a_request_have_different_legal_names(
    given: list[str | None], wanted: list[str], turns: str, model: str
) -> None:
    parts = tuple(map(pdf, given))
    each = [turn for part in parts for turn in (Message("user", (part, *ASKED.parts)), Message.assistant("a"))]
    messages = (Message("user", (*parts, *ASKED.parts)),) if turns == "one turn" else (*each, ASKED)
    with FakeProvider(["ok"]) as provider:
        lm_at(provider, "bedrock", model).respond(asked(*messages))
        assert sent_names(provider) == wanted


def test_names_of_documents_stay_when_a_conversation_goes_on() -> None:
    start = (Message("user", (pdf("a.pdf"), pdf("a.pdf"), *ASKED.parts)), Message.assistant("a"))
    results = (*LOOP[:2], Message.tool(ToolResult("call_1", "f", "1", media=(pdf("a.pdf"),))))
    with FakeProvider(["ok", "ok"]) as provider:
        lm = lm_at(provider, "bedrock", CLAUDE_DOORS["bedrock"])
        lm.respond(asked(*start, ASKED))
        first = sent_names(provider)
        lm.respond(asked(*start, *results, tools=(TOOL,)))
        assert (first, sent_names(provider)) == (["a pdf", "a pdf-2"], ["a pdf", "a pdf-2", "a pdf-3"])


def test_history_with_documents_in_the_form_of_bedrock_changes_no_more() -> None:
    made = to_provider([Message("user", (pdf(), pdf("b.pdf"), pdf("b.pdf")))], CLAUDE_DOORS["bedrock"])
    assert {loss.what for loss in made.losses} == {"filename", "text"}
    assert to_provider(made.messages, CLAUDE_DOORS["bedrock"]) == (made.messages, ())


@pytest.mark.parametrize("before", [(), LOOP], ids=["alone", "behind results"])
def test_document_without_a_text_gets_one_with_a_warning(before: tuple[Message, ...]) -> None:
    with FakeProvider(["ok"]) as provider:
        lm = lm_at(provider, "bedrock", CLAUDE_DOORS["bedrock"])
        response = lm.respond(asked(*before, Message("user", (pdf("a.pdf"),)), tools=(TOOL,)))
        body: Any = provider.requests[0].body
    assert body["messages"][-1]["content"][-1] == {"text": "See the attached document."}
    assert [warning.feature for warning in response.warnings] == ["text"]


def test_text_of_a_neighbouring_turn_is_enough_beside_a_document() -> None:
    with FakeProvider(["ok"]) as provider:
        lm = lm_at(provider, "bedrock", CLAUDE_DOORS["bedrock"])
        assert lm.respond(asked(ASKED, Message("user", (pdf("a.pdf"),)))).warnings == ()


def images(count: int) -> Message:
    return Message("user", (*(ImagePart(data=PNG, media_type="image/png"),) * count, *ASKED.parts))


COUNTS: dict[str, tuple[str, Message, bool]] = {
    "20 images to Nova": (BEDROCK["nova"], images(20), True),
    "25 images to Nova": (BEDROCK["nova"], images(25), False),
    "25 images to Claude": (BEDROCK["claude"], images(25), True),
    "5 documents": (BEDROCK["claude"], Message("user", (*(pdf(),) * 5, *ASKED.parts)), True),
    "6 documents": (BEDROCK["claude"], Message("user", (*(pdf(),) * 6, *ASKED.parts)), False),
}


@pytest.mark.parametrize(("model", "message", "fits"), COUNTS.values(), ids=COUNTS)
def test_count_of_media_above_the_limit_is_refused_before_it_is_sent(model: str, message: Message, fits: bool) -> None:
    with FakeProvider(["ok"]) as provider:
        lm = lm_at(provider, "bedrock", model)
        if fits:
            assert lm.respond(asked(message)).choices[0].text == "ok"
        else:
            with pytest.raises(UnsupportedMedia, match=r"takes (20|5) in one request"):
                lm.respond(asked(message))
        assert len(provider.requests) == fits


# --- tools that a gateway runs


SERVER_TOOLS: dict[str, tuple[JsonObject, JsonObject]] = {
    "its own type": (
        {"type": "openrouter:datetime", "parameters": {"timezone": "UTC"}},
        {"type": "openrouter:datetime", "parameters": {"timezone": "UTC"}},
    ),
    "web search": ({"type": "web_search"}, {"type": "openrouter:web_search"}),
    "web search with domains": (
        {"type": "web_search", "blocked_domains": ["a.org"]},
        {"type": "openrouter:web_search", "parameters": {"excluded_domains": ["a.org"]}},
    ),
}


@pytest.mark.parametrize(("tool", "wire"), SERVER_TOOLS.values(), ids=SERVER_TOOLS)
def test_tools_that_openrouter_runs_are_sent_in_its_form(tool: JsonObject, wire: JsonObject) -> None:
    target = target_of("openrouter/openai/gpt-4.1")
    sent = openai_chat.encode(Request((ASKED,), (*read_tools([tool]), TOOL)), target)
    tools: Any = sent.body["tools"]
    assert (tools[0], tools[1]["function"]["name"], sent.warnings) == (wire, "f", ())


def test_tool_of_another_gateway_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match=r"'openrouter:', and web_search"):
        openai_chat.encode(
            Request((ASKED,), read_tools([{"type": "computer"}])), target_of("openrouter/openai/gpt-4.1")
        )


def target_of(model: str) -> Any:
    backend: Any = LM(model, api_key="k")._backend
    return backend.target_of(Request())
