"""Plans for models that decide only: the system message, the demos, the schema of the questions, and what is refused."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.two_step import TwoStepAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.response import Choice
from sigwire.errors import AdapterParseError, UnsupportedFeature
from sigwire.lm.fake import FakeLM
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature, make_signature

DECIDES = Capabilities(decides="only")
ADAPTERS = pytest.mark.parametrize(
    "adapter",
    [
        ChatAdapter(),
        JSONAdapter(),
        XMLAdapter(),
        TwoStepAdapter(FakeLM()),
        ChatAdapter(demos="system"),
        JSONAdapter(strict=True),
    ],
    ids=["chat", "json", "xml", "two steps", "demos in the system message", "strict"],
)


class Sort(Signature):
    """Sort the ticket."""

    text: str = InputField(desc="what the customer wrote")
    urgent: bool = OutputField(desc="Must someone act now?")
    team: Literal["a", "b"] = OutputField()


@ADAPTERS
def test_request_has_instructions_demos_inputs_and_the_schema(adapter: Adapter) -> None:
    plan = adapter.plan(Sort, DECIDES)
    request = plan.format({"text": "Help"}, [{"text": "Hi", "urgent": False, "team": "b"}])
    assert (plan.mode, plan.tools_mode, plan.warnings) == ("decisions", None, ())
    assert [(message.role, message.text) for message in request.messages] == [
        ("system", "The first exchange is an example of the task, not part of the conversation.\n\nSort the ticket."),
        ("user", "[[ ## text ## ]]\nHi"),
        ("assistant", '{"urgent": false, "team": "b"}'),
        ("user", "[[ ## text ## ]]\nHelp"),
    ]
    schema: Any = request.response_format and request.response_format.schema
    assert schema["properties"]["urgent"] == {"type": "boolean", "description": "Must someone act now?"}
    assert schema["required"] == ["urgent", "team"]


@ADAPTERS
def test_request_without_demos_has_the_bare_instructions(adapter: Adapter) -> None:
    messages = adapter.plan(Sort, DECIDES).format({"text": "Help"}).messages
    assert [message.text for message in messages] == ["Sort the ticket.", "[[ ## text ## ]]\nHelp"]


@ADAPTERS
def test_answer_is_read_as_json(adapter: Adapter) -> None:
    plan = adapter.plan(Sort, DECIDES)
    assert plan.parse(Choice('{"urgent": true, "team": "a"}')).fields == {"urgent": True, "team": "a"}
    assert plan.follow_up(Choice('{"urgent": true, "team": "a"}')) is None
    with pytest.raises(AdapterParseError, match="team"):
        plan.parse(Choice('{"urgent": true, "team": "z"}'))


@ADAPTERS
def test_tools_are_refused(adapter: Adapter) -> None:
    signature = make_signature("text, tools: list[Tool] -> urgent: bool, calls: ToolCalls")
    with pytest.raises(UnsupportedFeature, match="has tools"):
        adapter.plan(signature, DECIDES)


@pytest.mark.parametrize("decides", ["no", "also"])
def test_other_models_get_the_layout_of_the_adapter(decides: Literal["no", "also"]) -> None:
    plain, plan = ChatAdapter().plan(Sort), ChatAdapter().plan(Sort, Capabilities(decides=decides))
    assert plan.format({"text": "x"}) == plain.format({"text": "x"})
