"""Agents with many tools: some are sent, the model or its provider searches the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, WebSearch
from sigwire.core.tools.texts import ToolText
from sigwire.core.tools.tool import Tool
from sigwire.errors import ConfigurationError, ToolDefinitionError
from sigwire.journal.journal import Journal
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.code.code_act import CodeAct
from sigwire.modules.predict import Predict
from sigwire.testing import FakeProvider, Fault

NOUNS = ["invoice", "parcel", "refund", "tariff", "glacier", "violin", "enzyme", "harbour", "orchard", "satellite"]
VERBS = ["list", "cancel", "archive", "translate", "measure"]
SUBMIT = ToolCall("", "submit", {"answer": "done"})


def tools(count: int = 600, **options: Any) -> list[Tool]:
    """Tools such as ``cancel_parcel_3``, which return their number."""
    made: list[Tool] = []

    def handler(at: int) -> Any:
        def run(region: str) -> int:
            return at

        return run

    for at in range(count):
        verb, noun = VERBS[at % 5], NOUNS[at // 5 % 10]
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {"region": {"type": "string", "description": f"Region r{at // 50} of the {noun}."}},
            "required": ["region"],
        }
        name, text = f"{verb}_{noun}_{at // 50}", f"{verb.title()} one {noun} in region r{at // 50}."
        made.append(Tool.from_schema(name, text, schema, handler(at), **options))
    return made


def offered(request: Request) -> list[str]:
    return [each["function"]["name"] for each in request.tools]  # type: ignore[index, misc, call-overload]


def bodies(provider: FakeProvider) -> list[Any]:
    return [each.body for each in provider.requests]


def first_result(result: Any) -> Any:
    return result.steps[0].results[0].content


def find(query: str, **more: Any) -> ToolCall:
    return ToolCall("", "find_tools", {"query": query, **more})


def use(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("", name, arguments if arguments else {"region": "r1"})


def run(script: Sequence[Any], agent: ReAct[..., Any] | None = None, **inputs: Any) -> tuple[Any, FakeLM]:
    lm, agent = FakeLM(list(script)), agent or ReAct("question -> answer", tools=tools())
    agent.set_lm(lm)
    return agent(**(inputs or {"question": "How long is the glacier?"})), lm


@pytest.mark.parametrize(
    ("wire", "model", "hosted"),
    [
        ("openai", "openai/gpt-4o", False),
        ("openai-responses", "openai/gpt-5.4", True),
        ("anthropic", "anthropic/claude-sonnet-4-5", True),
        ("gemini", "gemini/gemini-2.5-flash", False),
        ("ollama", "ollama/qwen3", False),
        ("bedrock", "bedrock/amazon.nova-lite-v1:0", False),
    ],
)
def test_right_one_of_600_tools_is_called_on_each_wire(wire: str, model: str, hosted: bool) -> None:
    script: list[Any] = [[use("cancel_parcel_7")], [SUBMIT]]
    with FakeProvider(([] if hosted else [[find("cancel a parcel in region r7")]]) + script) as provider:
        agent = ReAct("question -> answer", tools=tools())
        agent.set_lm(LM(model, base_url=provider.url(wire), api_key="any", num_retries=0))
        result = agent(question="Stop it, please.")
        sent = [json.dumps(each.get("tools") or each["toolConfig"]["tools"]) for each in bodies(provider)]
    assert (result.answer, result.steps[-2].results[-1].content) == ("done", 356)
    assert not result.warnings
    if hosted:
        assert len(set(sent)) == 1
    else:
        assert max(map(len, sent)) < 24_000
        assert len(sent[0]) < len(sent[1]) == len(sent[2])


@pytest.mark.parametrize(
    ("wire", "model"), [("openai-responses", "openai/gpt-5.4"), ("anthropic", "anthropic/claude-opus-4-8")]
)
def test_two_runs_send_equal_tools_if_the_provider_searches(wire: str, model: str) -> None:
    with FakeProvider([[use("list_violin_0")], [SUBMIT]] * 2) as provider:
        agent = ReAct("question -> answer", tools=[Tool(len, "keep", "Always.", defer=False), *tools(40)])
        agent.set_lm(LM(model, base_url=provider.url(wire), api_key="any", num_retries=0))
        first = agent(question="Which violins?")
        agent(question="Entirely another thing.", history=first.history)
        sent = [each["tools"] for each in bodies(provider)]
        turns = [json.dumps(each.get("messages") or each.get("input")) for each in bodies(provider)]
    assert sent[0] == sent[1] == sent[2] == sent[3]
    by_name = {each.get("name"): each for each in sent[0]}
    assert [name for name, each in by_name.items() if not each.get("defer_loading")][:2] == ["keep", "submit"]
    assert "find_tools" not in by_name
    assert turns[1].startswith(turns[0][:-1])
    assert turns[3].startswith(turns[2][:-1])
    assert "tool_search" in turns[3]  # the search comes back unchanged


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "openai/gpt-5.4"])
def test_search_of_the_provider_is_a_named_loss_for_another_provider(model: str) -> None:
    from sigwire.lm.portable import to_provider

    wire = "anthropic" if "claude" in model else "openai-responses"
    with FakeProvider([[use("list_violin_0")], [SUBMIT]]) as provider:
        agent = ReAct("question -> answer", tools=tools(40))
        agent.set_lm(LM(model, base_url=provider.url(wire), api_key="any", num_retries=0))
        messages = [turn for turn in agent(question="Which?").history.messages if isinstance(turn, Message)]
    assert any(loss.what == "opaque" for loss in to_provider(messages, "gemini/gemini-2.5-flash").losses)


@pytest.mark.parametrize("mode", ["sync", "async", "stream"])
def test_run_goes_on_with_find_tools_if_the_provider_refuses_its_search(mode: str) -> None:
    refused = Fault("bad_request", "tools.0.custom.defer_loading: Extra inputs are not permitted")
    with FakeProvider([refused, [find("cancel parcel r7")], [use("cancel_parcel_7")], [SUBMIT]]) as provider:
        agent = ReAct("question -> answer", tools=tools())
        agent.set_lm(
            LM("anthropic/claude-sonnet-4-5", base_url=provider.url("anthropic"), api_key="any", num_retries=0)
        )
        result = in_mode(agent, mode, question="Stop it.")
        sent = [[each["name"] for each in body["tools"]] for body in bodies(provider)]
    assert result.answer == "done"
    assert [warning.feature for warning in result.warnings] == ["tool_search"]
    assert "find_tools" not in sent[0]
    assert "find_tools" in sent[1]
    assert "cancel_parcel_7" in sent[2]


def in_mode(agent: Any, mode: str, **inputs: Any) -> Any:
    import asyncio

    if mode == "stream":
        *_, last = agent.stream(**inputs)
        return last.value
    return agent(**inputs) if mode == "sync" else asyncio.run(agent.acall(**inputs))


def test_found_tools_are_behind_all_others_and_stay() -> None:
    script = [
        [find("translate an enzyme"), find("measure orchard", count=2)],
        [use("translate_enzyme_1")],
        [find("zzz")],
        [SUBMIT],
    ]
    _, lm = run(script)
    names = [offered(request) for request in lm.requests]
    assert names[0][-2:] == ["submit", "find_tools"]
    assert len(names[0]) == 22
    assert names[1][:22] == names[0]
    assert len(names[1]) == 29
    assert names[1][22].startswith("translate_enzyme")
    assert names[1] == names[2] == names[3]


def test_tools_that_fit_the_inputs_are_sent_in_the_order_of_definition() -> None:
    _, lm = run([[SUBMIT]], question="measure the glacier of region r3")
    order = [tool.name for tool in tools()]
    names = offered(lm.requests[0])[:-2]
    assert "measure_glacier_3" in names
    assert names == sorted(names, key=order.index)


def test_tools_of_the_given_history_are_offered_from_the_start() -> None:
    first, _ = run([[find("cancel parcel r7")], [use("cancel_parcel_7")], [SUBMIT]])
    _, lm = run([[SUBMIT]], question="Another thing", history=first.history)
    assert "cancel_parcel_7" in offered(lm.requests[0])


def test_known_tool_that_was_not_offered_runs_and_is_offered_from_then_on() -> None:
    result, lm = run([[use("cancel_parcel_7")], [SUBMIT]])
    assert result.steps[0].results[0].content == 356
    assert "cancel_parcel_7" not in offered(lm.requests[0])
    assert offered(lm.requests[1])[-1] == "cancel_parcel_7"


def test_invalid_call_of_a_tool_that_was_not_offered_gets_its_schema() -> None:
    result, lm = run([[use("cancel_parcel_7", place=1)], [SUBMIT]])
    text = result.steps[0].results[0].text
    assert '"Region r7 of the parcel."' in text
    assert result.steps[0].results[0].is_error
    assert offered(lm.requests[1])[-1] == "cancel_parcel_7"


def test_unknown_name_gets_five_nearest_names() -> None:
    result, _ = run([[use("cancel_parcels_7")], [SUBMIT]])
    text = result.steps[0].results[0].text
    assert "cancel_parcel_7" in text
    assert text.count(",") == 4
    assert len(text) < 250


def test_tools_with_defer_false_are_always_sent_and_with_defer_true_only_by_search() -> None:
    agent = ReAct(
        "question -> answer",
        tools=[
            Tool(len, "size", "Length.", defer=False),
            Tool(abs, "glacier", "How long is the glacier.", defer=True),
            *tools(4),
        ],
    )
    _, lm = run([[find("glacier")], [SUBMIT]], agent)
    assert offered(lm.requests[0])[0] == "size"
    assert "glacier" not in offered(lm.requests[0])
    assert offered(lm.requests[1])[-1] == "glacier"


@pytest.mark.parametrize(
    ("option", "count", "is_on"),
    [("auto", 30, False), ("auto", 31, True), (True, 20, False), (True, 21, True), (3, 4, True), (False, 50, False)],
)
def test_search_is_on_for_many_tools(option: Any, count: int, is_on: bool) -> None:
    agent = ReAct("question -> answer", tools=tools(count), tool_search=option)
    _, lm = run([[SUBMIT]], agent, question="one region")
    assert ("find_tools" in offered(lm.requests[0])) == is_on
    if option == 3:
        assert len(offered(lm.requests[0])) == 5


def test_large_schemas_are_searched_if_the_window_is_known() -> None:
    from sigwire.core.capabilities import Capabilities

    agent = ReAct("question -> answer", tools=tools(25))
    size = agent.toolbox.schema_size
    lm = FakeLM([[SUBMIT]] * 2, capabilities=Capabilities(native_tools=True, context_window=size * 5))
    agent.set_lm(lm)
    agent(question="one glacier region list cancel measure")
    names = offered(lm.requests[0])
    assert names[-1] == "find_tools"
    assert 8 <= len(names) <= 15
    lm.capabilities = Capabilities(native_tools=True, context_window=size * 10)
    agent(question="one")
    assert len(offered(lm.requests[1])) == 26


def test_embedder_finds_tools_by_vectors_and_words_break_ties() -> None:
    def vectorizer(texts: list[str]) -> list[list[float]]:
        return [[float("violin" in text or "fiddle" in text), 0.1] for text in texts]

    agent = ReAct("question -> answer", tools=tools(), tool_search=vectorizer)
    result, lm = run([[find("fiddle to measure r9", count=3)], [SUBMIT]], agent, question="the fiddle")
    assert all("violin" in name for name in offered(lm.requests[0])[:-2])
    assert first_result(result)[0]["name"] == "measure_violin_9"


def test_search_reads_the_texts_of_the_predictor_and_finds_aliases() -> None:
    agent = ReAct("question -> answer", tools=tools())
    agent.react.tool_texts["cancel_parcel_7"] = ToolText("Xylophone.", alias="stop_delivery")
    result, lm = run([[find("xylophone")], [use("cancel_parcel_7")], [SUBMIT]], agent)
    assert first_result(result)[0]["name"] == "stop_delivery"
    assert offered(lm.requests[1])[-1] == "stop_delivery"


def test_predict_sends_the_tools_that_it_is_given() -> None:
    lm = FakeLM([[ToolCall("", "list_invoice_0", {"region": "r"})]])
    program = Predict("question, tools: list[Tool] -> calls: ToolCalls", lm=lm)
    program(question="q", tools=tools(50, defer=True))
    assert len(lm.requests[0].tools) == 50
    assert "defer" not in json.dumps(lm.requests[0].to_json())


def test_code_lists_some_functions_and_calls_all() -> None:
    pytest.importorskip("pydantic_monty")
    code = "found = find_tools('cancel parcel r7', count=1)\nprint(found[0]['name'])\nsubmit(answer=str(cancel_parcel_7('r7')))"
    lm = FakeLM([{"reasoning": "Search.", "code": code}])
    agent = CodeAct("question -> answer", tools=tools())
    agent.set_lm(lm)
    result = agent(question="measure the glacier of region r3")
    prompt = lm.requests[0].messages[-1].text
    assert (result.answer, [call.name for call in result.steps[0].calls]) == (
        "356",
        ["python", "find_tools", "cancel_parcel_7"],
    )
    assert "def measure_glacier_3(" in prompt
    assert "def find_tools(" in prompt
    assert "def submit(" in prompt
    assert "cancel_parcel_7" not in prompt
    assert prompt.count("def ") == 22


def test_resumed_run_offers_the_tools_that_it_offered() -> None:
    from sigwire.journal.errors import ApprovalNeeded

    agent = ReAct("question -> answer", tools=[*tools(), Tool(len, "pay", "Pay.", approve=True, defer=False)])
    agent.set_lm(
        FakeLM(
            [[find("cancel parcel r7", count=1)], [find("list violin r9", count=1), ToolCall("p", "pay", {"obj": []})]]
        )
    )
    with pytest.raises(ApprovalNeeded) as caught:
        agent(question="measure the glacier")
    lm = FakeLM([[SUBMIT]])
    other = ReAct("question -> answer", tools=[*tools(), Tool(len, "pay", "Pay.", approve=True, defer=False)])
    other.set_lm(lm)
    state = json.loads(json.dumps(caught.value.state))
    result = other.resume(state, {caught.value.pending[0].id: "approve"})
    assert result.answer == "done"
    assert offered(lm.requests[0])[-2:] == ["cancel_parcel_7", "list_violin_9"]


@pytest.mark.parametrize("option", [0, -1, "always", 1.5, None])
def test_other_values_of_tool_search_are_refused(option: Any) -> None:
    with pytest.raises(ConfigurationError, match="tool_search is"):
        ReAct("question -> answer", tools=[len], tool_search=option)


def test_deferred_tool_without_search_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'abs' has defer=True"):
        ReAct("question -> answer", tools=[Tool(abs, defer=True)], tool_search=False)
    with pytest.raises(ToolDefinitionError, match="defer is True, False or None"):
        Tool(abs, defer="later")  # type: ignore[arg-type]


def test_tool_of_the_provider_stays_offered() -> None:
    agent = ReAct("question -> answer", tools=[WebSearch(), *tools()])
    _, lm = run([[SUBMIT]], agent)
    assert lm.requests[0].tools[0]["type"] == "web_search"


def test_name_find_tools_of_the_user_is_kept() -> None:
    agent = ReAct("question -> answer", tools=[Tool(len, "find_tools", "Of the user.", defer=False), *tools()])
    _, lm = run([[SUBMIT]], agent)
    assert offered(lm.requests[0])[0] == "find_tools"
    assert offered(lm.requests[0])[-1] == "find_more_tools"


def test_option_is_kept_in_the_file_of_a_program() -> None:
    from sigwire.modules.programs.library import _react  # pyright: ignore[reportPrivateUsage]

    assert _react(ReAct("q -> a", tools=[len], tool_search=7))["tool_search"] == 7
    assert "tool_search" not in _react(ReAct("q -> a", tools=[len]))


def test_agent_with_few_tools_loads_no_search() -> None:
    import subprocess
    import sys

    program = (
        "import sys, sigwire\n"
        "agent = sigwire.ReAct('q -> a', tools=[len])\n"
        "agent.set_lm(sigwire.FakeLM([[sigwire.ToolCall('a', 'submit', {'a': 'x'})]]))\n"
        "assert agent(q='x').a == 'x'\n"
        "print([name for name in sys.modules if 'tool_search' in name or name.endswith('core.words')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("stops_at", [1, 2])
def test_journaled_run_that_was_interrupted_offers_the_same_tools(tmp_path: Path, stops_at: int) -> None:
    script: list[Any] = [[find("cancel parcel r7", count=1)], [use("cancel_parcel_7")], [SUBMIT]]
    whole = FakeLM(script)
    agent = ReAct("question -> answer", tools=tools())
    agent.set_lm(whole)
    agent(question="measure the glacier")

    broken = FakeLM([*script[:stops_at], KeyboardInterrupt()])
    agent.set_lm(broken)
    journal = Journal(tmp_path / "runs.db")
    with pytest.raises(KeyboardInterrupt):
        journal.run(agent, "run", question="measure the glacier")
    rest = FakeLM(script[stops_at:])
    agent.set_lm(rest)
    assert journal.run(agent, "run", question="measure the glacier").answer == "done"
    assert [offered(each) for each in rest.requests] == [offered(each) for each in whole.requests[stops_at:]]
