"""The steps that all wires share: options, tools, reasoning, finish reasons, counts."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import FilePart
from sigwire.core.request import Request
from sigwire.core.response import Attempt, Choice, FinishReason, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.names import NameRules
from sigwire.errors import InputError, UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.shared.assembly import headers_for, merge_extra_body, repeat_warning
from sigwire.lm.codecs.shared.choices import is_synthetic_id, join_responses, resolve_finish
from sigwire.lm.codecs.shared.history import HistoryRules, normalize_history
from sigwire.lm.codecs.shared.interface import ModelFacts, Target, WireProfile
from sigwire.lm.codecs.shared.media import text_of_file
from sigwire.lm.codecs.shared.options import (
    Drop,
    OptionTable,
    Place,
    Skip,
    merge_objects,
    place_options,
    require_feature,
)
from sigwire.lm.codecs.shared.reasoning import (
    BUDGETS,
    EFFORTS,
    ReasoningRequest,
    budget_for,
    effort_for_budget,
    fit_effort,
    requested_reasoning,
)
from sigwire.lm.codecs.shared.schema import SchemaRules, const_to_enum
from sigwire.lm.codecs.shared.tools import OfferedTools, name_map, offered_tools, provider_data
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, remove_members, string_of, value_at
from sigwire.lm.codecs.shared.usage import UsageTable, read_usage

PLAIN = WireProfile(family="home", path="/chat", names=NameRules(), headers={"X-Version": "1"})
TARGET = Target("home", "m", PLAIN)
TABLE: OptionTable = {
    "max_tokens": Place("config.maxTokens"),
    "stop": Place("config.stop", lambda value: value if isinstance(value, list) else [value]),
    "seed": Drop("there is no seed; it was left out."),
    "reasoning": Skip(),
}


# --- shapes ------------------------------------------------------------------------------------------------------


def test_history_rules_of_a_profile_have_its_family() -> None:
    assert PLAIN.history_rules.family == "home"
    assert replace(PLAIN, family="away").history_rules.family == "away"


def test_targets_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        TARGET.model = "n"  # type: ignore[misc]


# --- options -----------------------------------------------------------------------------------------------------


def test_options_go_to_their_places_and_what_is_dropped_is_a_warning() -> None:
    body, warnings = place_options({"max_tokens": 5, "stop": "a", "seed": 1, "reasoning": "low"}, TABLE, TARGET)
    assert body == {"config": {"maxTokens": 5, "stop": ["a"]}}
    assert [(warning.feature, warning.detail) for warning in warnings] == [
        ("seed", "home/m: there is no seed; it was left out.")
    ]


def test_an_option_that_is_none_was_not_given_and_extras_are_known_everywhere() -> None:
    options: JsonObject = {"seed": None, "max_tokens": None, "extra_body": {}, "extra_headers": {}}
    assert place_options(options, TABLE, TARGET) == ({}, ())


def test_an_unknown_option_names_the_known_ones_and_the_way_around() -> None:
    with pytest.raises(
        UnsupportedOption, match=r"home has no option 'n'.*max_tokens, reasoning, seed, stop.*extra_body"
    ):
        place_options({"n": 2}, TABLE, TARGET)


def test_extra_body_is_merged_last_and_deep() -> None:
    body: JsonObject = {"config": {"a": 1}, "b": [1]}
    request = Request(options={"extra_body": {"config": {"c": 2}, "b": [2], "d": None}})
    assert merge_extra_body(body, request) == {"config": {"a": 1, "c": 2}, "b": [2], "d": None}
    assert body == {"config": {"a": 1}, "b": [1]}
    with pytest.raises(InputError, match="extra_body must be an object"):
        merge_extra_body(body, Request(options={"extra_body": [1]}))


def test_merging_changes_neither_side() -> None:
    left: JsonObject = {"a": {"b": {"c": 1}}}
    right: JsonObject = {"a": {"b": {"d": 2}}}
    assert merge_objects(left, right) == {"a": {"b": {"c": 1, "d": 2}}}
    assert (left, right) == ({"a": {"b": {"c": 1}}}, {"a": {"b": {"d": 2}}})


def test_headers_are_the_dialects_and_the_callers() -> None:
    assert headers_for(Request(), PLAIN) == {"X-Version": "1"}
    asked = Request(options={"extra_headers": {"X-Version": "2", "X-N": 3}})
    assert headers_for(asked, PLAIN) == {"X-Version": "2", "X-N": "3"}
    with pytest.raises(InputError, match="extra_headers must be an object"):
        headers_for(Request(options={"extra_headers": "x"}), PLAIN)


def test_a_feature_without_a_place_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(UnsupportedFeature, match=r"^home/m has no place for sound\. Write it down\.$"):
        require_feature(False, "sound", TARGET, "Write it down.")


# --- tools -------------------------------------------------------------------------------------------------------

PARAMETERS: JsonObject = {"type": "object", "properties": {"x": {"const": 1}}}


def function(name: str, parameters: JsonValue = None) -> JsonObject:
    inner: JsonObject = {"name": name, "description": "d"}
    return {"type": "function", "function": inner | ({"parameters": parameters} if parameters is not None else {})}


def offered(request: Request, target: Target[WireProfile] = TARGET) -> OfferedTools:
    return offered_tools(request, name_map(request.tools, frozenset(), target.profile.names), target)


def test_tools_are_read_with_names_for_the_wire_and_compiled_schemas() -> None:
    search: JsonObject = {"type": "web_search", "web_search": {"max_uses": 2}}
    strict = replace(TARGET, profile=replace(PLAIN, tool_schema=SchemaRules(rewrite=(const_to_enum,))))
    read = offered(Request(tools=(function("a.b", PARAMETERS), function("c"), search)), strict)
    schema: JsonObject = {"type": "object", "properties": {"x": {"enum": [1]}}}
    assert read.functions == (("a_b", "d", schema, {}), ("c", "d", None, {}))
    assert read.builtin == (("web_search", {"max_uses": 2}),)
    assert (read.choice, read.allowed, read.forced_name) == (None, (), None)


def test_a_lossy_schema_warns_with_the_tools_own_name() -> None:
    few = SchemaRules(keep=frozenset({"type", "properties"}))
    strict = replace(TARGET, profile=replace(PLAIN, tool_schema=few))
    warnings = offered(Request(tools=(function("a.b", PARAMETERS),)), strict).warnings
    assert [warning.detail.split(":")[0] for warning in warnings] == ["tool 'a.b'"]


def test_choices_are_read_with_the_names_of_the_wire() -> None:
    tools = (function("a.b"), function("c"), function("d"))
    named = offered(Request(tools=tools, tool_choice=ToolChoice.named("a.b")))
    assert (named.choice, named.allowed, named.forced_name) == ("required", ("a_b",), "a_b")
    assert [name for name, *_ in named.allowed_functions()] == ["a_b"]
    some = offered(Request(tools=tools, tool_choice=ToolChoice("auto", ("c", "d"))))
    assert (some.choice, some.forced_name) == ("auto", None)
    assert [name for name, *_ in some.allowed_functions()] == ["c", "d"]
    assert len(offered(Request(tools=tools)).allowed_functions()) == 3


def test_a_choice_without_tools_is_no_choice_and_one_of_a_stranger_is_an_error() -> None:
    assert offered(Request(tool_choice=ToolChoice.REQUIRED)) == OfferedTools()
    with pytest.raises(InputError, match="Offered: no tools"):
        offered(Request(tool_choice=ToolChoice.named("x")))


def test_name_map_includes_names_of_past_calls() -> None:
    history = (
        Message.assistant(tool_calls=[ToolCall("1", "old.call", {})]),
        Message.tool(ToolResult("1", "old.result", "")),
    )
    repaired = normalize_history(history, HistoryRules())
    assert repaired.messages[-1].tool_results[0].name == "old.call"
    names = name_map([function("new.tool")], repaired.call_names, NameRules())
    for name in ("new.tool", "old.call"):
        assert "." not in names.encode(name)
        assert names.decode(names.encode(name)) == name


def test_provider_data_is_the_familys_own() -> None:
    call = ToolCall("1", "f", {}, provider_data={"home": {"a": 1}})
    assert provider_data(call, "home") == {"a": 1}
    assert provider_data(call, "away") == {}
    assert provider_data(ToolCall("1", "f", {}, provider_data="loose"), "home") == {}


# --- reasoning ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        (None, None),
        ("off", ReasoningRequest("off")),
        ("xhigh", ReasoningRequest("xhigh")),
        ({"budget": 9}, ReasoningRequest(budget=9)),
        ({"budget": 0}, ReasoningRequest("off")),
    ],
)
def test_requested_reasoning_accepts_efforts_and_budgets(asked: JsonValue, read: ReasoningRequest | None) -> None:
    assert requested_reasoning(Request(options={"reasoning": asked})) == read


NEAREST: dict[tuple[str, tuple[str, ...]], str] = {
    ("minimal", ("low", "medium", "high")): "low",
    ("max", ("low", "medium", "high")): "high",
    ("max", ("low", "medium", "high", "xhigh")): "xhigh",
    ("medium", ("low", "high", "max")): "high",
    ("xhigh", ("low", "high", "max")): "max",
    ("off", ("low", "high")): "low",
    ("off", ("off", "high")): "off",
    ("low", ("off", "high")): "high",
}


@pytest.mark.parametrize(("case", "chosen"), NEAREST.items(), ids=map(str, NEAREST))
def test_the_nearest_effort_is_chosen_and_a_change_is_a_warning(case: tuple[str, tuple[str, ...]], chosen: str) -> None:
    asked, efforts = case
    effort, warnings = fit_effort(ReasoningRequest(asked), efforts, TARGET)
    assert effort == chosen
    assert len(warnings) == (asked != chosen)


@pytest.mark.parametrize("efforts", [(), ("off",)])
def test_a_model_without_efforts_cannot_be_asked_for_one(efforts: tuple[str, ...]) -> None:
    with pytest.raises(UnsupportedFeature, match="home/m has no place for reasoning effort 'low'"):
        fit_effort(ReasoningRequest("low"), efforts, TARGET)


@given(st.integers(1, 100_000), st.lists(st.sampled_from(EFFORTS), min_size=1, unique=True))
def test_a_budget_is_always_turned_into_an_effort_with_a_warning(budget: int, efforts: list[str]) -> None:
    effort, warnings = fit_effort(ReasoningRequest(budget=budget), ["high", *efforts], TARGET)
    assert effort in ["high", *efforts]
    assert effort != "off"
    assert [warning.feature for warning in warnings] == ["reasoning"]


def test_efforts_and_budgets_stand_for_each_other() -> None:
    for effort, budget in BUDGETS.items():
        assert effort_for_budget(budget) == ("low" if effort == "minimal" else effort)
        assert budget_for(ReasoningRequest(effort), TARGET) == (budget, ())


def test_a_budget_is_kept_within_what_the_model_takes() -> None:
    small = replace(TARGET, facts=ModelFacts(budgets=(100, 200)))
    assert budget_for(ReasoningRequest(budget=150), small) == (150, ())
    assert budget_for(ReasoningRequest("max"), small) == (200, ())
    budget, warnings = budget_for(ReasoningRequest(budget=50), small)
    assert budget == 100
    assert [warning.detail for warning in warnings] == [
        "home/m takes budgets of 100 to 200 tokens; 100 was requested instead."
    ]


# --- replies -----------------------------------------------------------------------------------------------------

REASONS: dict[str, FinishReason] = {"end": "stop", "cut": "length", "tool": "tool_calls", "bad": "content_filter"}
GOOD = ToolCall("1", "f", {})
BROKEN = ToolCall.read("2", "f", "{")
SETTLED: dict[str, tuple[object, str, list[ToolCall], str | None, FinishReason, int]] = {
    "a plain stop": ("end", "t", [], None, "stop", 0),
    "calls speak louder than the reason": ("end", "", [GOOD], None, "tool_calls", 1),
    "broken calls that were not cut are calls": ("tool", "", [GOOD, BROKEN], None, "tool_calls", 2),
    "a cut answer loses its broken last call": ("cut", "", [GOOD, BROKEN], None, "length", 1),
    "a cut answer keeps its whole calls": ("cut", "", [BROKEN, GOOD], None, "length", 2),
    "a filtered answer keeps its reason": ("bad", "", [GOOD], None, "content_filter", 1),
    "a filtered answer loses its broken last call": ("bad", "", [GOOD, BROKEN], None, "content_filter", 1),
    "a refusal is filtered": ("end", "", [], "no", "content_filter", 0),
    "calls that are missing": ("tool", "", [], None, "error", 0),
    "an unknown reason with text": ("new", "t", [], None, "stop", 0),
    "an unknown reason without": (None, "", [], None, "error", 0),
    "a reason that is no word": (3, "t", [], None, "stop", 0),
}


@pytest.mark.parametrize(("reason", "text", "calls", "refusal", "wanted", "left"), SETTLED.values(), ids=SETTLED)
def test_finish_reasons_settle_with_the_content(
    reason: object, text: str, calls: list[ToolCall], refusal: str | None, wanted: FinishReason, left: int
) -> None:
    settled, kept, warnings = resolve_finish(reason, REASONS, text=text, calls=calls, refusal=refusal)
    assert settled == wanted
    assert kept == tuple(calls[:left])
    lost = [] if reason is not None else ["finish_reason"]
    assert [warning.feature for warning in warnings] == ["tool_calls"] * (len(calls) - left) + lost


def test_counts_are_read_by_the_first_path_that_has_a_number() -> None:
    data: JsonObject = {"a": None, "b": {"c": 3}, "price": 0.25}
    paths: UsageTable = {"input_tokens": ("a", "b.c"), "output_tokens": "b.c.d", "cost": "price"}
    assert read_usage(data, paths) == (Usage(input_tokens=3, cost=0.25), ())
    assert read_usage(None, paths) == (Usage(), ())
    assert value_at(data, "b.c") == 3


def test_synthetic_ids_are_distinguished_from_given_ids() -> None:
    assert [is_synthetic_id(call_id) for call_id in ("call_12", "call_1a", "toolu_1", "call_")] == [
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (FilePart(data="aGk=", media_type="text/plain"), "hi"),
        (FilePart(data="aGk=", media_type="text/markdown", filename="a.md"), "a.md:\nhi"),
        (FilePart(data="aGk=", media_type="application/pdf"), None),
        (FilePart(data="!", media_type="text/plain"), None),
        (FilePart(url="u", media_type="text/plain"), None),
    ],
)
def test_text_documents_can_be_sent_as_text(part: FilePart, text: str | None) -> None:
    assert text_of_file(part) == text


def test_several_answers_to_one_request_are_one_response() -> None:
    several = [
        Response((Choice(text),), Usage(10, 7), "m", text, (LMWarning("n", "twice"),), (Attempt(),), {"id": text})
        for text in "ab"
    ]
    assert join_responses(several) == Response(
        (Choice("a"), Choice("b")),
        Usage(20, 14),
        "m",
        "a",
        (LMWarning("n", "twice"),),
        (Attempt(), Attempt()),
        [{"id": "a"}, {"id": "b"}],
    )


@pytest.mark.parametrize(("n", "warned"), [(None, False), (1, False), ("3", False), (3, True)])
def test_sending_a_request_several_times_is_a_warning(n: JsonValue, warned: bool) -> None:
    assert bool(repeat_warning(Request(options={"n": n}), TARGET)) is warned


@given(st.recursive(st.none() | st.integers() | st.text(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)))
def test_json_of_others_reads_as_nothing_where_it_is_of_another_kind(data: JsonValue) -> None:
    assert all(type(found) is dict for found in objects_of(data))
    assert object_of(data) == (data if isinstance(data, dict) else {})
    assert string_of(data, "a") in (None, data.get("a") if isinstance(data, dict) else None)
    assert all(value is not None for value in remove_members(object_of(data), ("a",)).values())
