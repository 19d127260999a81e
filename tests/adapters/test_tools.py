"""Tools in adapters: native, as text, and calls found by the shape of the response. Adapters run no tool."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import AfterValidator

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.plan import Plan
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.core.tools.calls import CallError, ToolCall, ToolCalls, ToolResult, WebSearch
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.function import FunctionArguments
from sigwire.core.tools.tool import Tool
from sigwire.errors import AdapterParseError, EmptyResponse, InputError, OutputTruncated, UnsupportedFeature
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.signatures.types import History

NATIVE = Capabilities(native_tools=True, tool_choice=True)
TEXT = Capabilities()
BLOCK = '~~~tool_call\n{"name": "ping", "arguments": {"host": "a"}}\n~~~'


def ping(host: str) -> str:
    """Ask a host whether it is there.

    Args:
        host: its name
    """
    raise AssertionError("adapters run no tools")


def other() -> str:
    """Another tool."""
    raise AssertionError("adapters run no tools")


PING, OTHER = Tool(ping), Tool(other)
Choose = Signature("question, tools: list[Tool] -> calls: ToolCalls", "Choose.")
Plain = Signature(
    {"question": InputField(), "answer": OutputField(), "score": (float, OutputField(default=1.0))}, "Answer."
)
Both = Plain.append("tools", InputField(), list[Tool]).append("calls", OutputField(), ToolCalls)
Chatting = Signature("question, tools: list[Tool], history: History -> answer, calls: ToolCalls", "Answer.")
ADAPTERS: list[Adapter] = [ChatAdapter(), JSONAdapter(), XMLAdapter()]
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)
each_mode = pytest.mark.parametrize("capabilities", [NATIVE, TEXT], ids=["native", "text"])


def text_of(request: Request) -> str:
    return "\n".join(message.text for message in request.messages)


def answered(plan: Plan, text: str = "", *calls: ToolCall, **rest: Any) -> tuple[Response, Choice]:
    response = plan.normalize(Response((Choice(text=text, tool_calls=calls, **rest),)), [PING, OTHER])
    return response, response.choices[0]


# --- what is sent ------------------------------------------------------------------------------------


@each_adapter
def test_native_tools_are_in_the_request_and_not_in_the_prompt(adapter: Adapter) -> None:
    request = adapter.format(Both, {"question": "Q?", "tools": [PING]}, capabilities=NATIVE)
    assert request.tools == (PING.spec,)
    assert (request.tool_choice, request.parallel_tool_calls) == (None, None)
    for word in ("ping", "tool_call", "ToolCalls", "## tools ##", "## calls ##", "<calls>", '"calls"'):
        assert word not in text_of(request)


@each_adapter
def test_system_message_describes_tools_when_not_native(adapter: Adapter) -> None:
    request = adapter.format(Both, {"question": "Q?", "tools": [PING]}, capabilities=TEXT, tool_choice="auto")
    system, user = request.messages
    assert (request.tools, request.tool_choice, request.options) == ((), None, {})
    assert "~~~tool_call" in system.text
    assert '"name": "ping"' in system.text
    assert "ping" not in user.text


@each_adapter
@each_mode
def test_empty_list_of_tools_means_no_tools(adapter: Adapter, capabilities: Capabilities) -> None:
    request = adapter.format(Both, {"question": "Q?", "tools": []}, capabilities=capabilities, tool_choice="required")
    assert (request.tools, request.tool_choice) == ((), None)
    assert "tool_call" not in text_of(request)
    assert "call tools" not in text_of(request).lower()


@each_adapter
def test_signature_without_tools_is_formatted_equally_for_every_model(adapter: Adapter) -> None:
    texts = {
        repr(
            adapter.format(
                Plain, {"question": "Q? ~~~tool_call"}, [{"question": "q", "answer": BLOCK}], capabilities=able
            )
        )
        for able in (TEXT, NATIVE, Capabilities(runs_own_tools=True))
    }
    assert len(texts) == 1
    assert "\\~~~" not in texts.pop()


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        (None, None),
        ("auto", ToolChoice.AUTO),
        ("any", ToolChoice.REQUIRED),
        ("ping", ToolChoice.named("ping")),
        ({"type": "function", "function": {"name": "ping"}}, ToolChoice.named("ping")),
        ({"type": "tool", "name": "ping"}, ToolChoice.named("ping")),
        ({"type": "any"}, ToolChoice.REQUIRED),
        (ToolChoice.NONE, ToolChoice.NONE),
    ],
)
def test_tool_choice_is_a_request_option(given: Any, choice: ToolChoice | None) -> None:
    options = {"tool_choice": given, "parallel_tool_calls": False, "temperature": 0.5}
    request = ChatAdapter().plan(Both, NATIVE).format({"question": "Q?", "tools": [PING]}, options=options)
    assert (request.tool_choice, request.parallel_tool_calls) == (choice, False)
    assert request.options == {"temperature": 0.5}
    assert options["tool_choice"] is given


@pytest.mark.parametrize("wrong", [3, {"type": "sometimes"}, {"mode": []}])
def test_invalid_tool_choice_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="tool_choice"):
        ChatAdapter().format(Both, {"question": "Q?", "tools": [PING]}, capabilities=NATIVE, tool_choice=wrong)


def test_required_tool_choice_is_in_the_prompt_when_not_native() -> None:
    ask = {"question": "Q?", "tools": [PING, OTHER]}
    plan = ChatAdapter().plan(Both, TEXT)
    assert "must call ping now" in plan.format(ask, options={"tool_choice": "ping"}).messages[-1].text
    assert "must call a tool now" in plan.format(ask, options={"tool_choice": "required"}).messages[-1].text
    assert "tool_call" not in text_of(plan.format(ask, options={"tool_choice": "none"}))


def test_tools_are_accepted_as_one_several_dict_or_functions() -> None:
    plan = ChatAdapter().plan(Both, NATIVE)
    for given in (PING, [PING], (PING,), {"ping": PING}, [ping]):
        assert [tool.name for tool in plan.tools_of({"tools": given})] == ["ping"]
    assert plan.tools_of({}) == ()
    assert ChatAdapter().plan(Plain).tools_of({"question": "Q?"}) == ()


def test_tool_prompt_is_written_once_for_equal_tools() -> None:
    plan = ChatAdapter().plan(Both, TEXT)
    first = plan.format({"question": "1", "tools": [PING]})
    again = plan.format({"question": "2", "tools": [PING]})
    others = plan.format({"question": "3", "tools": [PING, OTHER]})
    assert first.messages[0] is again.messages[0]
    assert '"name": "other"' in others.messages[0].text


class Counted(Tool):
    """A tool that counts how often its spec or its parameters are read."""

    reads: ClassVar[list[str]] = []

    @property
    def spec(self) -> JsonObject:
        self.reads.append("spec")
        return super().spec

    @property
    def parameters(self) -> JsonObject:
        self.reads.append("parameters")
        return super().parameters


@each_mode
def test_plan_reads_no_unchanged_tools_in_any_container(capabilities: Capabilities) -> None:
    plan, tools = ChatAdapter().plan(Both, capabilities), [Counted(ping), Counted(other)]
    choice = Choice(text=f"Well.\n{BLOCK}")
    for given in (tools, [*tools], tuple(tools), {"a": tools[0], "b": tools[1]}):
        plan.format({"question": "Q?", "tools": given})
        offered = plan.tools_of({"tools": given})
        assert plan.check_calls(plan.normalize(Response((choice,)), offered), offered).choices[0].tool_calls
        if given is tools:
            Counted.reads.clear()
        plan.text_reader(offered)
    assert not Counted.reads


@each_mode
def test_plan_caches_prompts_of_several_tool_lists(capabilities: Capabilities) -> None:
    plan, lists = ChatAdapter().plan(Both, capabilities), ([PING], [OTHER], [OTHER, PING], [PING, OTHER])
    first, again = ([plan.format({"question": "Q?", "tools": tools}) for tools in lists] for _ in range(2))
    for one, other_one in zip(first, again, strict=True):
        assert one.messages[0] is other_one.messages[0]
        assert one.tools is other_one.tools
    assert len({(str(one.tools), one.messages[0].text) for one in first}) == len(lists)


def test_plan_bounds_its_cached_tool_prompts() -> None:
    plan = ChatAdapter().plan(Both, NATIVE)

    def offer_anew() -> weakref.ref[Any]:
        def ping(host: str) -> str:
            return host

        plan.format({"question": "Q?", "tools": [Tool(ping)]})
        return weakref.ref(ping)

    functions = [offer_anew() for _ in range(40)]
    gc.collect()
    assert sum(function() is not None for function in functions) < 10


def test_plan_returns_the_given_tools_when_others_are_equal() -> None:
    plan = ChatAdapter().plan(Both, NATIVE)
    loose = Tool(ping, parameters=FunctionArguments(ping, {"host": Annotated[str, AfterValidator(str.lower)]}))
    for tool in (PING, loose, PING):
        assert tool == PING
        assert plan.tools_of({"tools": [tool]})[0] is tool


def test_plan_detects_a_tool_list_changed_in_place() -> None:
    plan, tools = ChatAdapter().plan(Both, NATIVE), [PING]
    assert [plan.format({"question": "Q?", "tools": tools}).tools] == [(PING.spec,)]
    tools[:] = [OTHER, PING]
    assert plan.format({"question": "Q?", "tools": tools}).tools == (OTHER.spec, PING.spec)


@each_mode
def test_threads_with_a_shared_plan_get_their_tools(capabilities: Capabilities) -> None:
    plan = ChatAdapter().plan(Both, capabilities)

    def offers_of(name: str) -> set[bool]:
        tools = [Tool(ping, name=name)]
        requests = [plan.format({"question": "Q?", "tools": tools}) for _ in range(100)]
        return {f"'{name}'" in str(one.tools) or f'"{name}"' in one.messages[0].text for one in requests}

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(offers_of, [f"tool_{n}" for n in range(24)])) == [{True}] * 24


def test_tools_with_duplicate_names_are_refused() -> None:
    with pytest.raises(InputError, match="'ping'"):
        ChatAdapter().plan(Both).format({"question": "Q?", "tools": [PING, Tool(ping)]})


def test_tool_schemas_are_shown_full_or_compact() -> None:
    ask = {"question": "Q?", "tools": [PING]}
    full = ChatAdapter().format(Both, ask).messages[0].text
    brief = ChatAdapter(tool_schemas="compact").format(Both, ask).messages[0].text
    assert '"properties"' in full
    assert "ping(host: string): Ask a host whether it is there." in brief


def test_built_in_tool_is_refused_when_tools_are_text() -> None:
    with pytest.raises(UnsupportedFeature, match="web_search"):
        ChatAdapter().format(Both, {"question": "Q?", "tools": [Tool.web_search(WebSearch())]}, capabilities=TEXT)


# --- which mode ----------------------------------------------------------------------------------------


def test_unavailable_native_tools_are_a_warning_and_an_error_when_strict() -> None:
    plan = ChatAdapter(native_tools=True).plan(Both, TEXT)
    assert plan.tools_mode == "text"
    response, _ = answered(plan, "[[ ## answer ## ]]\nx")
    assert [warning.feature for warning in response.warnings] == ["native_tools"]
    with pytest.raises(UnsupportedFeature, match="no native tools"):
        ChatAdapter(native_tools=True, strict=True).plan(Both, TEXT)


def test_native_tools_are_disabled_by_option() -> None:
    assert ChatAdapter(native_tools=False).plan(Both, NATIVE).tools_mode == "text"
    assert ChatAdapter().plan(Both, NATIVE).tools_mode == "native"
    assert ChatAdapter().plan(Plain, NATIVE).tools_mode is None


# --- what comes back -----------------------------------------------------------------------------------


@each_mode
def test_text_call_becomes_a_tool_call(capabilities: Capabilities) -> None:
    response, choice = answered(ChatAdapter().plan(Both, capabilities), f"Let me see.\n{BLOCK}", raw={"kept": 1})
    assert choice == Choice(
        "Let me see.", (ToolCall("call_0", "ping", {"host": "a"}),), finish_reason="tool_calls", raw={"kept": 1}
    )
    recovered = LMWarning("native_tools", "the model wrote its calls as text; they were read as fenced")
    assert response.warnings == ((recovered,) if capabilities is NATIVE else ())


def test_call_markup_with_native_calls_is_text() -> None:
    call = ToolCall("c1", "ping", {"host": "b"})
    _, choice = answered(ChatAdapter().plan(Both, NATIVE), BLOCK, call)
    assert (choice.text, choice.tool_calls) == (BLOCK, (call,))


def test_text_is_not_read_for_calls_when_the_provider_runs_tools() -> None:
    able = Capabilities(native_tools=True, runs_own_tools=True)
    _, choice = answered(ChatAdapter().plan(Both, able), BLOCK)
    assert (choice.text, choice.tool_calls) == (BLOCK, ())


def test_text_is_not_read_for_calls_when_no_tools_are_offered() -> None:
    response = Response((Choice(text=BLOCK),))
    assert ChatAdapter().plan(Both, TEXT).normalize(response, []) is response
    assert ChatAdapter().plan(Plain, TEXT).normalize(response, [PING]) is response


def test_call_ids_are_unique_in_the_conversation() -> None:
    plan = ChatAdapter().plan(Both, TEXT)
    text = f'{BLOCK}\n{BLOCK.replace("ping", "other")}\n~~~tool_call\n{{"name": "ping", "id": "call_1"}}\n~~~'
    choice = plan.normalize(Response((Choice(text=text),)), [PING], taken=["call_0", "call_1"]).choices[0]
    assert [call.id for call in choice.tool_calls] == ["call_2", "call_3", "call_4"]


def test_other_parts_of_an_answer_stay_before_the_text() -> None:
    thinking, opaque = ThinkingPart("hm", "sig"), OpaquePart("p", {"a": 1})
    choice = Choice.from_parts([thinking, TextPart(f"See.\n{BLOCK}"), opaque])
    found = ChatAdapter().plan(Both, NATIVE).normalize(Response((choice,)), [PING]).choices[0]
    assert found.parts == (thinking, opaque, TextPart("See."), *found.tool_calls)


@each_adapter
@each_mode
def test_text_with_calls_is_kept_and_missing_outputs_have_defaults(
    adapter: Adapter, capabilities: Capabilities
) -> None:
    plan = adapter.plan(Both, capabilities)
    _, choice = answered(plan, f"Let me see.\n{BLOCK}")
    fields = plan.parse(choice).fields
    assert fields == {"score": 1.0, "calls": ToolCalls([ToolCall("call_0", "ping", {"host": "a"})], "Let me see.")}


@each_adapter
@each_mode
def test_outputs_with_calls_are_read(adapter: Adapter, capabilities: Capabilities) -> None:
    plan = adapter.plan(Both, capabilities)
    text = plan.layout.write({"answer": "soon", "score": 0.5})
    _, choice = answered(plan, text, ToolCall("c", "ping", {"host": "a"}))
    fields = plan.parse(choice).fields
    assert (fields["answer"], fields["score"], len(fields["calls"])) == ("soon", 0.5, 1)


def test_unreadable_output_with_calls_is_omitted_with_a_repair() -> None:
    plan = ChatAdapter().plan(Both, NATIVE)
    text = "[[ ## answer ## ]]\nsoon\n[[ ## score ## ]]\nhigh"
    parsed = plan.parse(Choice(text=text, tool_calls=(ToolCall("c", "ping", {}),)))
    assert "answer" in parsed.fields
    assert any(repair.field == "score" for repair in parsed.repairs)


def test_calls_output_is_empty_when_the_model_made_no_call() -> None:
    plan = ChatAdapter().plan(Both, NATIVE)
    fields = plan.parse(Choice(text="[[ ## answer ## ]]\n4\n[[ ## score ## ]]\n0.5")).fields
    assert fields == {"answer": "4", "score": 0.5, "calls": ToolCalls()}
    with pytest.raises(AdapterParseError):
        plan.parse(Choice(text="no sections"))


def test_prose_is_the_text_of_calls_when_calls_are_the_only_output() -> None:
    fields = ChatAdapter().plan(Choose, NATIVE).parse(Choice(text="No tool fits.")).fields
    assert (len(fields["calls"]), fields["calls"].text) == (0, "No tool fits.")


def test_error_for_calls_without_output_names_the_field_to_add() -> None:
    plan = ChatAdapter().plan(Plain.append("tools", InputField(), list[Tool]), NATIVE)
    with pytest.raises(EmptyResponse, match="calls: ToolCalls"):
        plan.parse(Choice(tool_calls=(ToolCall("c", "ping", {}),)))


@each_mode
def test_malformed_arguments_are_an_error_of_their_call_only(capabilities: Capabilities) -> None:
    bad = '~~~tool_call\n{"name": "ping", "arguments": {"host": "rm -rf /srv/cache/old}\n~~~'
    plan = ChatAdapter().plan(Choose, capabilities)
    _, choice = answered(plan, f"Two.\n{bad}\n{BLOCK}")
    broken, good = plan.parse(choice).fields["calls"]
    assert (broken.arguments, broken.error.code) == (None, "malformed_json")
    assert "rm -rf /srv/cache/old" in broken.raw_arguments
    assert (good.arguments, good.error) == ({"host": "a"}, None)
    assert choice.text == "Two."


# --- cut off -------------------------------------------------------------------------------------------


def test_truncated_call_is_an_output_truncated_error() -> None:
    plan = ChatAdapter().plan(Choose, TEXT)
    response, choice = answered(
        plan, '~~~tool_call\n{"name": "ping", "arguments": {"host": "rm -rf /srv', finish_reason="length"
    )
    assert choice.tool_calls == ()
    assert [warning.feature for warning in response.warnings] == ["tool_calls"]
    with pytest.raises(OutputTruncated, match="max_tokens"):
        plan.parse(choice)


def test_complete_calls_are_kept_when_truncated_with_a_repair() -> None:
    cut = ToolCall("c2", "ping", None, '{"host": "rm', CallError("malformed_json", "cut"))
    whole = ToolCall("c1", "ping", {"host": "a"})
    plan = ChatAdapter().plan(Both, NATIVE)
    response, choice = answered(plan, "[[ ## answer ## ]]\nhalf an ans", whole, cut, finish_reason="length")
    parsed = plan.parse(choice)
    assert choice.tool_calls == (whole,)
    assert response.warnings
    assert "answer" not in parsed.fields
    assert any("cut off" in repair.what for repair in parsed.repairs)
    with pytest.raises(OutputTruncated):
        ChatAdapter(strict=True).plan(Both, NATIVE).parse(choice)


# --- again ---------------------------------------------------------------------------------------------


def test_invalid_calls_are_answered_with_tool_results() -> None:
    bad = ToolCall("c2", "ping", None, "{", CallError("malformed_json", "The arguments are not valid JSON."))
    choice = Choice(tool_calls=(ToolCall("c1", "other", {}), bad))
    request = Request((Message.user("Q?"),), (PING.spec,))
    native = ChatAdapter().plan(Both, NATIVE).reask(request, choice)
    assert native.tools == request.tools
    assert native.messages[1] == choice.message()
    good_result, bad_result = native.messages[2].tool_results
    assert (good_result.id, good_result.is_error) == ("c1", True)
    assert "not valid JSON" in bad_result.text
    as_text = ChatAdapter().plan(Both, TEXT).reask(request, choice)
    assert [message.role for message in as_text.messages] == ["user", "assistant", "user"]
    assert "~~~tool_result" in as_text.messages[-1].text
    assert not as_text.messages[1].tool_calls


# --- demos and history ---------------------------------------------------------------------------------

DEMO = {"question": "old?", "calls": ToolCalls([ToolCall("x", "ping", {"host": "d"})], "Looking.")}


def test_demo_with_calls_has_parts_when_tools_are_native() -> None:
    request = ChatAdapter().format(Choose, {"question": "Q?", "tools": [PING]}, [DEMO, dict(DEMO)], capabilities=NATIVE)
    roles = [message.role for message in request.messages]
    assert roles == ["system", *["user", "assistant", "tool"] * 2, "user"]
    said, result = request.messages[2], request.messages[3].tool_results[0]
    assert said.text == "Looking."
    assert said.tool_calls[0].id == result.id
    ids = [call.id for message in request.messages for call in message.tool_calls]
    assert len(set(ids)) == 2


def test_demo_with_calls_is_text_when_tools_are_text() -> None:
    request = ChatAdapter().format(Choose, {"question": "Q?", "tools": [PING]}, [DEMO], capabilities=TEXT)
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
    said = request.messages[2].text
    assert said == 'Looking.\n\n~~~tool_call\n{"name": "ping", "arguments": {"host": "d"}}\n~~~'


@pytest.mark.parametrize(
    "calls",
    [
        {"tool_calls": [{"name": "ping", "args": {"host": "d"}}], "text": "Looking."},
        ToolCalls([ToolCall("x", "ping", {"host": "d"})], "Looking.").to_json(),
    ],
)
def test_demo_from_json_is_formatted_equally(calls: Any) -> None:
    ask = {"question": "Q?", "tools": [PING]}
    for capabilities in (NATIVE, TEXT):
        live = ChatAdapter().format(Choose, ask, [DEMO], capabilities=capabilities)
        saved = ChatAdapter().format(Choose, ask, [{"question": "old?", "calls": calls}], capabilities=capabilities)
        assert saved == live


def test_demo_with_results_is_formatted() -> None:
    demo = {**DEMO, "tool_results": [ToolResult("x", "ping", "there")]}
    request = ChatAdapter().format(Choose, {"question": "Q?", "tools": [PING]}, [demo], capabilities=NATIVE)
    (result,) = request.messages[3].tool_results
    assert (result.content, result.id) == ("there", request.messages[2].tool_calls[0].id)


HISTORY = History(
    [
        {"question": "first?", "answer": "1"},
        Message.user("Is a there?"),
        Message("assistant", (ThinkingPart("hm", "sig"), TextPart("Looking."), ToolCall("c1", "ping", {"host": "a"}))),
        Message.tool(ToolResult("c1", "ping", {"up": True})),
    ]
)


def test_history_with_tool_turns_has_parts_when_tools_are_native() -> None:
    ask = {"question": "And b?", "tools": [PING]}
    request = ChatAdapter().format(Chatting, ask, history=HISTORY, capabilities=NATIVE)
    assert request.messages[3:6] == HISTORY.messages[1:]
    assert "And b?" in request.messages[6].text


def test_history_with_tool_turns_is_text_when_tools_are_text() -> None:
    ask = {"question": "And b?", "tools": [PING]}
    request = ChatAdapter().format(Chatting, ask, history=HISTORY, capabilities=TEXT)
    said, results = request.messages[4:6]
    assert said.parts == (
        ThinkingPart("hm", "sig"),
        TextPart('Looking.\n\n~~~tool_call\n{"name": "ping", "arguments": {"host": "a"}}\n~~~'),
    )
    assert results == Message.user('~~~tool_result\n{"name": "ping", "result": {"up": true}}\n~~~')


def test_history_that_ends_with_results_gets_no_empty_user_message() -> None:
    for capabilities, role in ((NATIVE, "tool"), (TEXT, "user")):
        plan = ChatAdapter().plan(Chatting, capabilities)
        request = plan.format({"tools": [PING], "history": HISTORY})
        assert request.messages[-1].role == role


@each_mode
def test_turn_of_fields_with_calls_and_results_is_formatted(capabilities: Capabilities) -> None:
    turn = {**DEMO, "answer": "wait", "tool_results": [ToolResult("x", "ping", "there")]}
    plan = ChatAdapter().plan(Chatting, capabilities)
    request = plan.format({"question": "Q?", "tools": [PING], "history": History([turn])})
    roles = [message.role for message in request.messages]
    assert roles == ["system", "user", "assistant", "tool" if capabilities is NATIVE else "user", "user"]
    if capabilities is NATIVE:
        assert request.messages[2].tool_calls[0].id == request.messages[3].tool_results[0].id == "x"


@each_mode
def test_tool_choice_that_is_not_offered_is_an_error_with_the_offered_names(capabilities: Capabilities) -> None:
    inputs = {"question": "Q?", "tools": [PING]}
    with pytest.raises(InputError, match=r"'pong'.*on offer are ping"):
        ChatAdapter().format(Both, inputs, capabilities=capabilities, tool_choice={"type": "function", "name": "pong"})


@pytest.mark.parametrize("schemas", ["full", "compact"])
@pytest.mark.parametrize("native", [True, False])
def test_every_schema_without_properties_makes_the_same_request(schemas: Any, native: bool) -> None:
    plan = ChatAdapter(tool_schemas=schemas).plan(Choose, Capabilities(native_tools=native))
    given: list[JsonObject | None] = [None, {}, {"type": "object"}, {"type": "object", "properties": {}}]
    tools = [Tool.from_schema("ping", "Say hello.", schema) for schema in given]
    requests = [plan.format({"question": "Q?", "tools": [tool]}) for tool in tools]
    assert all(request == requests[0] for request in requests)
