"""``cache_health``: breaks of the prompt cache, by requests and by counts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import InputError
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.money.prices import Price, prices
from sigwire.lm.preview.cache_health import CacheBreak, CacheHealth, cache_health
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.run import AgentRun
from sigwire.modules.agents.session import ChatSession

TOOL: Any = {"type": "function", "function": {"name": "find", "description": "", "parameters": {}}}
OTHER: Any = {"type": "function", "function": {"name": "more", "description": "", "parameters": {}}}


def conversation(turns: int, edited: int | None = None) -> tuple[Message, ...]:
    said = [Message.user(f"turn {at}{' edited' if at == edited else ''} " + "word " * 400) for at in range(turns)]
    return (Message.system("Rules. " * 300), Message.user("a demo"), Message.assistant("its answer"), *said)


def call(turns: int, cached: int | None, written: int | None = None, edited: int | None = None, **changes: Any) -> Any:
    """Return a call of a conversation of some turns; a turn has 500 tokens, what is before them 1,000."""
    messages = conversation(turns, edited)
    request = Request(messages, (TOOL,), repeated=(3, len(messages)))
    facts = {name: changes.pop(name) for name in ("model", "time", "moved", "path") if name in changes}
    usage = Usage(1_000 + 500 * turns, 10, cached, written)
    known = {"model": "m", "time": float(turns), "moved": "", "path": "react", **facts}
    return SimpleNamespace(request=replace(request, **changes), response=Response((Choice("x"),), usage), **known)


def first(cached: int = 0) -> list[Any]:
    return [call(10, cached, 6_000 - cached), call(11, 6_000, 500)]


LONG = {"prompt_cache": {"ttl": "1h"}}
CAUSES: dict[str, tuple[Any, str, int]] = {
    "fold": (call(12, 1_000, 6_000, edited=0, moved="fold"), "turn 0", 5_500),
    "on_turn": (call(12, 1_500, 5_500, edited=1, moved="on_turn"), "turn 1", 5_000),
    "tools found": (call(12, 0, 7_000, tools=(TOOL, OTHER)), "tools", 6_500),
    "edited": (call(12, 3_500, 3_500, edited=5), "turn 5", 3_000),
    "settings": (call(12, 0, 7_000, options={"reasoning": "high"}), "settings", 6_500),
    "model": (call(12, 0, 7_000, model="n"), "settings", 6_500),
    "expired": (call(12, 0, 7_000, time=900.0), "", 6_500),
    "unexplained": (call(12, 2_000, 5_000), "", 4_500),
}


@pytest.mark.parametrize("why", CAUSES)
def test_planted_cause_is_found_with_its_place_and_tokens(why: str) -> None:
    planted, place, missed = CAUSES[why]
    health = cache_health([*first(), planted, call(13, 7_000, 500, time=901.0)])
    found = [(each.request, each.place, each.why, each.missed_tokens) for each in health.breaks if each.request == 2]
    assert found == [(2, place, why, missed)]


def test_prompt_without_marks_that_is_never_read_is_found() -> None:
    calls = [call(turns, 0, repeated=()) for turns in (10, 11)]
    (found,) = cache_health(calls).breaks
    assert (found.request, found.why) == (1, "not cached")
    assert 4_096 <= found.missed_tokens <= 6_000
    assert not cache_health([call(2, 0, repeated=()), call(3, 0, repeated=())]).breaks


OTHER_START: dict[str, Any] = {
    "instructions": {"messages": (Message.system("Others. " * 300), *conversation(12)[1:])},
    "demos": {"messages": (*conversation(12)[:1], Message.user("another demo"), *conversation(12)[2:])},
    "tools": {"tools": (OTHER,)},
}


@pytest.mark.parametrize("place", OTHER_START)
def test_place_names_the_first_segment_that_changed(place: str) -> None:
    (found,) = cache_health([*first(), call(12, 0, 7_000, **OTHER_START[place])]).breaks
    assert (found.place, found.why) == (place, "edited")


def test_200_clean_turns_have_no_break() -> None:
    calls = [
        call(turns, 500 + 500 * turns if turns > 1 else 0, 1_500 if turns == 1 else 500) for turns in range(1, 201)
    ]
    health = cache_health(calls)
    assert health.breaks == ()
    assert health.requests == 200
    assert health.hit_share is not None
    assert health.hit_share > 0.97
    assert (health.missed_tokens, health.missed_cost) == (0, 0.0)


@pytest.mark.parametrize("cached", [0, None])
def test_same_bytes_without_counts_claim_nothing(cached: int | None) -> None:
    calls = [call(turns, cached) for turns in (10, 11, 12)]
    assert cache_health(calls).breaks == ()


def test_change_that_cost_nothing_is_no_break() -> None:
    assert cache_health([*first(), call(12, 5_000, 2_000, edited=9)]).breaks == ()


def test_calls_of_other_origins_and_other_conversations_are_no_break() -> None:
    other = call(3, 0, 2_500, path="extract", messages=(Message.system("Extract."),), repeated=(1,))
    anew = call(12, 1_000, 6_000, edited=0)
    assert cache_health([*first(), other, anew]).breaks == ()


def test_answers_of_the_own_cache_are_left_out() -> None:
    kept = call(12, 0, 7_000, edited=3)
    kept.response = replace(kept.response, cache="hit")
    assert cache_health([*first(), kept]).requests == 2


def test_missed_tokens_have_a_price_if_the_prices_are_known() -> None:
    prices.register("priced-model", Price(input=10.0, output=1.0, cached=1.0))
    calls = [call(10, 0, 6_000, model="priced-model"), call(12, 1_000, 6_000, model="priced-model", edited=2)]
    (found,) = cache_health(calls).breaks
    assert found.missed_tokens == 5_000
    assert found.missed_cost == pytest.approx(0.045)
    unknown = cache_health([*first(), CAUSES["edited"][0]])
    assert unknown.missed_cost is None


def test_health_is_a_value_with_a_card() -> None:
    health = cache_health([*first(), CAUSES["edited"][0]])
    assert CacheHealth.from_json(json.loads(json.dumps(health.to_json()))) == health
    assert repr(health).startswith("CacheHealth(3 requests, 49% of 19,500 tokens cached, 1 break, 3,000 tokens missed")
    assert "edited" in health._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert CacheBreak(1, "tools", "edited") == CacheBreak(1, "tools", "edited")


def cassette(path: Path, calls: list[Any]) -> Path:
    lines: list[Any] = [{"cassette": 1}]
    for number, each in enumerate(calls):
        body = {"request": each.request.to_json(), "response": each.response.to_json()}
        lines.append({"lm": 2, "place": f"ReAct.0/turn.{number}/ask.0", "model": each.model, **body})
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def test_file_of_a_cassette_is_read(tmp_path: Path) -> None:
    planted = CAUSES["tools found"][0]
    path = cassette(tmp_path / "calls.jsonl", [*first(), planted])
    assert cache_health(path) == cache_health([*first(), planted])
    path.write_text(path.read_text() + '{"lm": 2, "pla')
    assert cache_health(path).requests == 3


@pytest.mark.parametrize("text", ["", "no json", '{"other": 1}\n', '{"cassette": 1}\n{"lm": 2\n{"lm": 2}\n'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(InputError, match="reading calls"):
        cache_health(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be read"):
        cache_health(tmp_path / "missing")


def test_verb_prints_breaks_and_fails_if_one_is_unplanned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sigwire.cli import main

    path = cassette(tmp_path / "calls.jsonl", [*first(), CAUSES["edited"][0]])
    assert main(["cache", str(path)]) == 1
    assert "turn 5" in capsys.readouterr().out
    planned = cassette(tmp_path / "planned.jsonl", [*first(), CAUSES["tools found"][0]])
    assert main(["cache", str(planned), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["breaks"][0]["why"] == "tools found"


# --- agents


class CountingLM(FakeLM):
    """A model that counts as a provider with a prompt cache does: equal messages at the start are read."""

    def __init__(self, script: Any, lost: tuple[int, ...] = ()) -> None:
        super().__init__(self._counted)
        self._script, self._lost, self._known, self._sent = list(script), lost, list[Message](), 0

    def _counted(self, request: Request) -> Response:
        sizes = [len(message.text) for message in request.messages]
        shared = 0
        while shared < min(len(self._known), len(sizes)) and self._known[shared] == request.messages[shared]:
            shared += 1
        cached = 0 if self._sent in self._lost else sum(sizes[:shared])
        self._known, self._sent = list(request.messages), self._sent + 1
        calls = tuple(self._script.pop(0))
        usage = Usage(sum(sizes), 5, cached, sum(sizes) - cached)
        return Response((Choice(tool_calls=calls, finish_reason="tool_calls"),), usage)


def agent_of(lm: FakeLM) -> ReAct[..., Any]:
    agent = ReAct("question -> answer", tools=[Tool(read_page, repeat=True)])
    agent.set_lm(lm)
    return agent


def read_page() -> str:
    """Return a text."""
    return "text " * 200


STEP, END = [ToolCall("", "read_page", {})], [ToolCall("", "submit", {"answer": "x"})]


@pytest.mark.parametrize("mode", ["sync", "async", "stream"])
def test_run_of_an_agent_warns_once_of_unplanned_breaks_in_a_row(mode: str) -> None:
    import asyncio

    agent = agent_of(CountingLM([STEP, STEP, STEP, STEP, END], lost=(2, 3)))
    inputs = {"question": "long " * 1_000}
    if mode == "sync":
        result = agent(**inputs)
    elif mode == "async":
        result = asyncio.run(agent.acall(**inputs))
    else:
        stream = agent.stream(**inputs)
        assert list(stream)
        result = stream.value
    assert [warning.feature for warning in result.warnings] == ["prompt_cache"]
    health = AgentRun.of(result).cache
    assert [(each.request, each.why) for each in health.breaks] == [(2, "unexplained"), (3, "unexplained")]
    assert health.requests == 5
    assert health.missed_tokens > 8_000


def test_clean_run_has_no_breaks_and_no_warning() -> None:
    result = agent_of(CountingLM([STEP] * 8 + [END]))(question="long " * 1_000)
    health = AgentRun.of(result).cache
    assert (health.breaks, result.warnings, health.requests) == ((), (), 9)
    assert health.hit_share is not None
    assert health.hit_share > 0.7


def test_turn_that_the_caller_changed_is_named_on_the_next_run() -> None:
    agent = agent_of(CountingLM([STEP, END] * 2))
    turns = [{"question": "one", "answer": "1"}, {"question": "two", "answer": "2 " * 2_000}]
    first = agent(question="three", history=turns)
    turns[1]["question"] = "two, edited"
    result = agent(question="three", history=turns)
    (found,) = AgentRun.of(result).cache.breaks
    assert (found.request, found.place, found.why) == (0, "turn 2", "edited")
    assert [warning.feature for warning in result.warnings] == ["prompt_cache"]
    assert not first.warnings


def test_session_that_goes_on_has_no_breaks() -> None:
    session = ChatSession(agent_of(CountingLM([STEP, END] * 3)))
    for question in ("long " * 1_000, "second", "third"):
        result = session(question=question)
        assert AgentRun.of(result).cache.breaks == ()
        assert not result.warnings
