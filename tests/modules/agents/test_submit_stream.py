"""The submitted outputs in the stream of an agent, for each reason that ends a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.text_tools.styles import STYLES
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.events import (
    AskStart,
    FieldDelta,
    FieldEnd,
    FieldPartial,
    Finished,
    ProgramEvent,
    TextDelta,
    ToolDone,
)
from sigwire.core.json import dumps
from sigwire.core.parts import TextPart
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.module import Module
from sigwire.settings import context
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.testing import FakeProvider, Streamed

pytestmark = pytest.mark.filterwarnings("ignore::sigwire.errors.ToolWarning")

Read = Callable[[Module], list[ProgramEvent]]

OUTPUTS: dict[str, Any] = {"answer": 'He said "no".\n</tool_call> é', "items": ["a b", "[[ ## x ## ]]"], "count": 2}
LOOK = ToolCall("a", "look", {"at": "here"})
SUBMIT = ToolCall("b", "submit", OUTPUTS)
NOTHING = ToolCall("c", "submit", {**OUTPUTS, "answer": "nothing", "items": []})


def look(at: str) -> str:
    """Look around."""
    if at == "nowhere":
        raise LookupError(at)
    return f"something {at}"


def agent(*answers: Any, signature: Any = "question -> answer, items: list[str], count: int") -> ReAct[..., Any]:
    made: ReAct[..., Any] = ReAct(signature, tools=[look])
    if answers:
        made.set_lm(FakeLM(list(answers)))
    return made


def _blocking(program: Module) -> list[ProgramEvent]:
    return list(program.stream(question="?"))


def _awaited(program: Module) -> list[ProgramEvent]:
    async def read() -> list[ProgramEvent]:
        return [event async for event in program.astream(question="?")]

    return asyncio.run(read())


def value_of(events: list[ProgramEvent]) -> Any:
    last = events[-1]
    assert isinstance(last, Finished)
    return last.value


@pytest.fixture(params=[_blocking, _awaited], ids=["blocking", "awaited"])
def read(request: pytest.FixtureRequest) -> Read:
    reader: Read = request.param
    return reader


def shown(events: Iterable[ProgramEvent]) -> dict[str, dict[str, Any]]:
    """Return the outputs that a consumer has at the end, by path: joined texts; an ``AskStart`` clears those of its module."""
    fields: dict[str, dict[str, Any]] = {}
    ended: set[tuple[str, str]] = set()
    for event in events:
        match event:
            case AskStart():
                fields[event.path] = {}
                ended = {(path, name) for path, name in ended if path != event.path}
            case FieldDelta() | FieldPartial() | FieldEnd():
                assert (event.path, event.field) not in ended
                here = fields[event.path]
                if isinstance(event, FieldDelta):
                    here[event.field] = here.get(event.field, "") + event.text
                elif isinstance(event, FieldPartial):
                    here[event.field] = event.value
                else:
                    ended.add((event.path, event.field))
            case _:
                pass
    assert ended >= {(path, name) for path, here in fields.items() for name in here}
    return {path: here for path, here in fields.items() if here}


WIRES = {
    "openai": ("openai/gpt-4.1-mini", None),
    "openai-responses": ("openai/gpt-4.1-mini", "responses"),
    "anthropic": ("anthropic/claude-haiku-4-5", None),
    "gemini": ("gemini/gemini-3-flash", None),
    "ollama": ("ollama/qwen3", None),
}


def _joined_outputs(events: Iterable[ProgramEvent], field: str) -> int:
    return sum(1 for event in events if isinstance(event, FieldDelta | FieldPartial) and event.field == field)


@pytest.mark.parametrize("wire", WIRES)
def test_agent_stream_emits_returned_outputs_over_every_wire(wire: str, read: Read) -> None:
    name, own_wire = WIRES[wire]
    program = agent()
    with FakeProvider([LOOK, SUBMIT], streamed=Streamed(cut=5)) as provider:
        program.set_lm(LM(name, base_url=provider.url(wire), api_key="any", wire=own_wire))
        events = read(program)
    assert shown(events) == {"react": OUTPUTS}
    assert {name: value_of(events)[name] for name in OUTPUTS} == OUTPUTS
    if wire not in ("gemini", "ollama"):  # arguments arrive in one event
        assert _joined_outputs(events, "answer") > 2
        assert _joined_outputs(events, "items") > 1


@pytest.mark.parametrize("style", ["fenced", "hermes", "qwen3_coder", "mistral", "pythonic"])
def test_agent_stream_emits_returned_outputs_when_calls_are_text(style: str, read: Read) -> None:
    calls = STYLES[style].calls
    program = agent()
    program.set_lm(FakeLM([calls([LOOK]), f"That is all.\n{calls([SUBMIT])}"], capabilities=Capabilities()))
    with context(adapter=ChatAdapter(text_tools=style)):
        assert shown(read(program)) == {"react": OUTPUTS}


@pytest.mark.parametrize(
    "refused",
    [
        [ToolCall("d", "look", {"at": "nowhere"}), NOTHING],  # another call of the turn failed
        ToolCall("d", "submit", {**OUTPUTS, "count": "many"}),
        ToolCall("d", "submit", {"answer": "nothing"}),
        ToolCall.read("d", "submit", '{"answer": "nothing", "items": ["a", '),
    ],
)
def test_rejected_outputs_restart_with_the_next_turn(refused: Any, read: Read) -> None:
    events = read(agent(refused, SUBMIT))
    assert shown(events) == {"react": OUTPUTS}
    emitted = [event.field for event in events if isinstance(event, FieldDelta) and event.turn == 0]
    assert emitted


def test_second_submission_of_a_turn_emits_nothing(read: Read) -> None:
    assert shown(read(agent([SUBMIT, NOTHING]))) == {"react": OUTPUTS}


def test_outputs_with_user_validators_are_emitted_once_accepted(read: Read) -> None:
    seen: list[str] = []

    def known(word: str) -> str:
        seen.append(word)
        return word.upper()

    class Checked(Signature):
        question: str = InputField()
        word: Annotated[str, AfterValidator(known)] = OutputField()
        rest: str | None = OutputField()

    events = read(agent(ToolCall("a", "submit", {"word": "yes", "rest": None}), signature=Checked))
    assert seen == ["yes"]
    assert shown(events) == {"react": {"word": "YES"}}
    done = next(number for number, event in enumerate(events) if isinstance(event, ToolDone))
    assert any(isinstance(event, FieldDelta) for event in events[done:])


def test_plain_text_output_is_emitted_at_the_end(read: Read) -> None:
    assert shown(read(agent("It is here.", signature="question -> answer"))) == {"react": {"answer": "It is here."}}


LAID_OUT = {
    ChatAdapter: "I know it now.\n\n[[ ## answer ## ]]\n{answer}\n\n[[ ## completed ## ]]",
    XMLAdapter: "I know it now.\n\n<answer>\n{answer}\n</answer>",
    JSONAdapter: '{{"answer": "{answer}"}}',
}


@pytest.mark.parametrize("adapter", LAID_OUT)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_outputs_in_adapter_layout_are_emitted_without_marks(adapter: type[Any], size: int, read: Read) -> None:
    text = LAID_OUT[adapter].format(answer="It is [1, <2.")
    program = agent(signature="question -> answer")
    program.set_lm(FakeLM([text], cut=lambda whole: [whole[at : at + size] for at in range(0, len(whole), size)]))
    with context(adapter=adapter()):
        events = read(program)
    assert shown(events) == {"react": {"answer": "It is [1, <2."}}
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert said.strip() == ("" if adapter is JSONAdapter else "I know it now.")


@pytest.mark.parametrize("text", ["See [[ ## answer ## ]] there.", "[[ ## ans", "A list: [[1, 2], [[ ##"])
def test_marks_without_outputs_are_emitted_as_text(text: str, read: Read) -> None:
    events = read(agent(Choice.from_parts([TextPart(text), LOOK]), NOTHING))
    turn = events[: next(number for number, event in enumerate(events) if isinstance(event, ToolDone))]
    assert "".join(event.text for event in turn if isinstance(event, TextDelta)) == text


def test_extracted_outputs_are_emitted_by_the_extraction(read: Read) -> None:
    extracted = {"reasoning": "I looked.", **OUTPUTS}
    assert shown(read(agent("It is here.", extracted))) == {"extract.predict": extracted}


def test_agent_inside_a_tool_emits_its_outputs(read: Read) -> None:
    class Team(Module):
        def __init__(self) -> None:
            self.helper = agent(LOOK, NOTHING)
            self.lead: ReAct[..., Any] = ReAct("question -> answer, items: list[str], count: int", tools=[self.ask])
            self.lead.react.lm = FakeLM([ToolCall("a", "ask", {"question": "?"}), SUBMIT])

        def ask(self, question: str) -> str:
            return str(self.helper(question=question).answer)

        def forward(self, question: str) -> Any:
            return self.lead(question=question)

    assert shown(read(Team())) == {"helper.react": NOTHING.arguments, "lead.react": OUTPUTS}


# --- a submission in a block of text, emitted while it is written --------------------------------------------


def _block(**outputs: Any) -> str:
    return f'~~~tool_call\n{{"name": "submit", "arguments": {dumps({**OUTPUTS, **outputs})}}}\n~~~'


def _text_agent(*answers: str, signature: Any = "question -> answer, items: list[str], count: int") -> ReAct[..., Any]:
    made: ReAct[..., Any] = ReAct(signature, tools=[look], max_iters=2, extract=False)
    made.set_lm(FakeLM(list(answers), cut=list, capabilities=Capabilities()))
    return made


@pytest.mark.parametrize("style", ["fenced", "hermes", "granite", "llama3_json", "mistral", "phi4", "xlam"])
def test_submission_in_the_taught_form_is_emitted_while_it_is_written(style: str, read: Read) -> None:
    with context(adapter=ChatAdapter(text_tools=style)):
        events = read(_text_agent(STYLES[style].calls([SUBMIT])))
    assert shown(events) == {"react": OUTPUTS}
    assert _joined_outputs(events, "answer") == len(OUTPUTS["answer"])
    assert [event.kind for event in events if not isinstance(event, Finished)].count("ask_start") == 1


def test_submission_in_a_block_is_emitted_while_it_is_written(read: Read) -> None:
    events = read(_text_agent(f"Here it is.\n{_block()}"))
    assert shown(events) == {"react": OUTPUTS}
    assert _joined_outputs(events, "answer") == len(OUTPUTS["answer"])
    kinds = [event.kind for event in events if not isinstance(event, Finished | TextDelta)]
    assert kinds.index("field_delta") < kinds.index("tool_call_start")
    assert kinds.count("ask_start") == 1


@pytest.mark.parametrize(
    "draft",
    [
        f"I could call it:\n{_block(answer='a draft')}\nBut let me check.</think>\n",
        f"<think>\n{_block(answer='a draft')}\n</think>\n",
    ],
    ids=["a thought that the prompt opened", "a thought"],
)
def test_outputs_of_a_block_that_is_no_call_are_restarted(draft: str, read: Read) -> None:
    events = read(_text_agent(draft + _block(), _block()))
    assert shown(events) == {"react": OUTPUTS}
    assert value_of(events).answer == OUTPUTS["answer"]


def test_outputs_of_a_block_are_restarted_by_an_answer_in_plain_text(read: Read) -> None:
    thought = '~~~tool_call\n{"name": "submit", "arguments": {"answer": "a draft"}}\n~~~\nNo.</think>\n'
    events = read(_text_agent(f"{thought}It is sunny.", signature="question -> answer"))
    assert shown(events) == {"react": {"answer": value_of(events).answer}}
    assert value_of(events).answer.endswith("It is sunny.")


@given(st.text(max_size=20), st.text(max_size=20), st.sampled_from(["", "Sure.\n", "\n\n"]))
def test_streamed_submission_equals_the_returned_one(answer: str, item: str, before: str) -> None:
    events = _blocking(_text_agent(before + _block(answer=answer, items=[item])))
    value = value_of(events)
    assert shown(events)["react"] == {
        "items": value["items"],
        "count": 2,
        **({"answer": value.answer} if answer else {}),
    }
