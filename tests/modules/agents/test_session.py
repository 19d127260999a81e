"""``ChatSession``: the conversation is kept between calls, after errors, and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sigwire
from sigwire import FakeLM, History, Predict, ReAct, ToolCall
from sigwire.modules.agents.session import ChatSession
from sigwire.signatures.types.history import Turn
from tests.modules.code.driving import MODES, called


def submit(answer: str) -> ToolCall:
    return ToolCall("c", "submit", {"answer": answer})


def agent(*replies: Any) -> ReAct[..., Any]:
    made: ReAct[..., Any] = ReAct("question -> answer", tools=[lambda_tool])
    made.set_lm(FakeLM(list(replies)))
    return made


def lambda_tool(n: int) -> int:
    """Double a number."""
    return 2 * n


@pytest.mark.parametrize("way", ["blocking", "awaited", "streamed", "streamed awaited"])
async def test_each_turn_sees_the_turns_before(way: str) -> None:
    program = agent(submit("one"), submit("two"))
    chat = program.session()

    async def ask(question: str) -> Any:
        if way == "blocking":
            return chat(question=question)
        if way == "awaited":
            return await chat.acall(question=question)
        if way == "streamed":
            return list(chat.stream(question=question))[-1].value
        return [event async for event in chat.astream(question=question)][-1].value

    assert (await ask("first?")).answer == "one"
    assert (await ask("second?")).answer == "two"
    sent = "\n".join(str(message.to_json()) for message in program.react.lm.requests[1].messages)
    assert "first?" in sent
    assert "second?" in sent


def test_conversation_continues_from_its_json() -> None:
    chat = agent(submit("one")).session()
    chat(question="first?")
    data = json.loads(json.dumps(chat.to_json()))
    program = agent(submit("two"))
    again = program.session(data)
    assert again(question="second?").answer == "two"
    assert "first?" in str([message.to_json() for message in program.react.lm.requests[0].messages])


def test_failed_call_keeps_the_complete_turns() -> None:
    chat = agent(ToolCall("a", "lambda_tool", {"n": 2}), sigwire.LMServerError("down"), submit("four")).session()
    with pytest.raises(sigwire.LMServerError):
        chat(question="2 doubled?")
    assert any(getattr(turn, "role", None) == "tool" for turn in chat.conversation)
    assert chat().answer == "four"


def test_predictor_with_a_history_has_sessions() -> None:
    lm = FakeLM([{"answer": "Hello"}, {"answer": "Ada"}])
    chat = ChatSession(Predict("question, past: History -> answer", lm=lm))
    chat(question="I am Ada.")
    assert chat(question="Who am I?").answer == "Ada"
    assert [dict(turn) for turn in chat.conversation] == [  # type: ignore[call-overload]
        {"question": "I am Ada.", "answer": "Hello"},
        {"question": "Who am I?", "answer": "Ada"},
    ]


class Cancelled(BaseException):
    pass


def stopping(error: BaseException, answers: list[Any]) -> Any:
    """Return a predictor with a history whose model raises the error first."""

    def respond(request: Any) -> Any:
        if not lm.requests[1:]:
            raise error
        return answers.pop(0)

    lm = FakeLM(respond)
    return Predict("question, past: History -> answer", lm=lm)


def asked(chat: Any) -> list[str]:
    return [message.text for message in chat.program.lm.requests[-1].messages[1:]]


@pytest.mark.parametrize("mode", MODES)
def test_cancelled_turn_of_a_predictor_stays_and_is_marked(mode: str) -> None:
    chat = ChatSession(stopping(Cancelled(), [{"answer": "Ada"}]))
    with pytest.raises(Cancelled):
        called(mode, chat, question="I am Ada.")
    assert chat.conversation.messages[0] == {"question": "I am Ada."}
    again = ChatSession(chat.program, json.loads(json.dumps(chat.to_json())))
    assert called(mode, again, question="Who am I?").answer == "Ada"
    first, mark, last = asked(again)
    assert ("I am Ada." in first, mark, "Who am I?" in last) == (True, "[No answer: the call was cancelled.]", True)
    assert len(again.conversation) == 3


@pytest.mark.parametrize("inputs", [{}, {"question": "I am Ada."}])
def test_cancelled_turn_of_a_predictor_is_asked_again(inputs: dict[str, str]) -> None:
    chat = ChatSession(stopping(Cancelled(), [{"answer": "Hello Ada"}]))
    with pytest.raises(Cancelled):
        chat(question="I am Ada.")
    assert chat(**inputs).answer == "Hello Ada"
    assert len(asked(chat)) == 1
    assert [dict(turn) for turn in chat.conversation] == [{"question": "I am Ada.", "answer": "Hello Ada"}]  # type: ignore[call-overload]


async def test_turn_of_a_predictor_is_marked_when_its_stream_is_closed() -> None:
    lm = FakeLM([{"answer": "one two three"}])
    chat = ChatSession(Predict("question, past: History -> answer", lm=lm))
    events = chat.astream(question="Count.")
    await anext(events)
    assert chat.is_busy
    await events.aclose()
    assert not chat.is_busy
    assert [dict(turn) if isinstance(turn, Turn) else turn.text for turn in chat.conversation] == [
        {"question": "Count."},
        "[No answer: the call was cancelled.]",
    ]


@pytest.mark.parametrize("error", [sigwire.LMServerError("down"), sigwire.ContentFiltered("no")])
def test_failed_turn_of_a_predictor_is_not_kept(error: Exception) -> None:
    chat = ChatSession(stopping(error, [{"answer": "Ada"}]))
    with pytest.raises(type(error)):
        chat(question="I am Ada.")
    assert len(chat.conversation) == 0


def test_session_of_an_rlm_continues() -> None:
    program: Any = sigwire.RLM("log -> cause")
    program.set_lm(FakeLM([{"reasoning": "Look.", "code": "submit(cause=log)"}] * 2))
    chat = ChatSession(program)
    assert (chat(log="disk").cause, chat(log="net").cause) == ("disk", "net")
    assert "disk" in str([message.text for message in program.generate_action.lm.requests[-1].messages])


def test_program_without_a_history_is_refused() -> None:
    with pytest.raises(sigwire.ConfigurationError, match="takes no history"):
        ChatSession(Predict("question -> answer"))


def test_call_during_another_call_is_refused() -> None:
    inner: list[type[BaseException]] = []

    def again() -> str:
        """Ask the session again."""
        try:
            chat(question="now?")
        except sigwire.SessionBusy as error:
            inner.append(type(error))
        return "asked"

    program: ReAct[..., Any] = ReAct("question -> answer", tools=[again])
    program.set_lm(FakeLM([ToolCall("a", "again", {}), submit("done")]))
    chat = program.session()
    assert chat(question="?").answer == "done"
    assert inner == [sigwire.SessionBusy]


def test_copy_of_a_session_goes_its_own_way() -> None:
    chat = agent(submit("one"), submit("two")).session()
    chat(question="first?")
    other = chat.deepcopy()
    other(question="second?")
    assert len(other.conversation) > len(chat.conversation)
    assert isinstance(chat.conversation, History)
