"""Modules as tools: names, descriptions, parameters and refusals."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from sigwire import (
    RLM,
    BestOfN,
    ChainOfThought,
    CodeAct,
    FakeLM,
    History,
    InputError,
    InputField,
    Module,
    MultiChainComparison,
    OutputField,
    Predict,
    ProgramOfThought,
    ReAct,
    Refine,
    Signature,
    Tool,
    ToolDefinitionError,
    WebSearch,
)
from sigwire.core.tools.module_tool import result_types
from sigwire.core.tools.tool import as_tool


class Place(BaseModel):
    city: str
    floor: int = 0


class LabelText(Signature):
    """Label a text."""

    text: str = InputField(desc="a text of a user")
    style: Literal["short", "long"] = InputField(default="short")
    most: int = InputField(default=3, ge=1, le=9)
    places: list[Place] = InputField(default_factory=list)
    history: History = InputField()
    label: str = OutputField()
    score: float = OutputField()


class HTTPExpert(Module):
    """Answer questions about HTTP.

    Args:
        question: what to answer
    """

    def forward(self, question: str, depth: Annotated[int, Field(ge=1)] = 2) -> dict[str, int]:
        """Not the description."""
        return {question: depth}


class Awaited(Module):
    async def aforward(self, question: str) -> str:
        """Answer later."""
        return question


class Expert(Predict):
    pass


def best(module: Any) -> BestOfN:
    return BestOfN(module, 2, lambda inputs, prediction: 1.0, 1.0)


def fetch(url: str) -> str:
    return url


MADE: dict[str, Any] = {
    "Predict": Predict,
    "ChainOfThought": ChainOfThought,
    "ReAct": lambda signature: ReAct(signature, tools=[fetch]),
    "CodeAct": CodeAct,
    "RLM": RLM,
    "ProgramOfThought": ProgramOfThought,
    "BestOfN": lambda signature: best(ChainOfThought(signature)),
    "Refine": lambda signature: Refine(Predict(signature), 2, lambda inputs, prediction: 1.0, 1.0),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_module_is_described_by_its_signature(make: Any) -> None:
    tool = Tool(make(LabelText))
    assert (tool.name, tool.description) == ("label_text", "Label a text.")
    properties: Any = tool.parameters["properties"]
    assert list(properties) == ["text", "style", "most", "places"]
    assert tool.parameters["required"] == ["text"]
    assert properties["text"] == {"type": "string", "description": "a text of a user"}
    assert properties["style"] == {"type": "string", "enum": ["short", "long"], "default": "short"}
    assert properties["most"] == {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}
    assert properties["places"]["items"]["properties"]["city"] == {"type": "string"}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_tool_of_a_text_signature_is_named_by_its_outputs(make: Any) -> None:
    assert [Tool(make(text)).name for text in ("q -> answer", "q -> label, score: float")] == [
        "answer",
        "label_and_score",
    ]


def test_tool_of_a_users_module_class_has_its_name() -> None:
    assert (Tool(Expert("q -> answer")).name, Tool(Expert(LabelText)).name) == ("expert", "label_text")


def test_arguments_of_a_signature_are_validated_and_converted() -> None:
    tool = Tool(Predict(LabelText))
    bound = tool.bind({"text": "t", "most": "4", "places": [{"city": "Bonn"}]})
    assert bound.kwargs == {"text": "t", "most": 4, "places": [Place(city="Bonn")]}
    for wrong in ({}, {"text": "t", "most": 10}, {"text": "t", "style": "odd"}, {"text": "t", "history": []}):
        with pytest.raises(InputError):
            tool.bind(wrong)


def test_forward_describes_a_users_module() -> None:
    tool = Tool(HTTPExpert())
    assert (tool.name, tool.description) == ("http_expert", "Answer questions about HTTP.")
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "what to answer"},
            "depth": {"type": "integer", "minimum": 1, "default": 2},
        },
        "required": ["question"],
    }
    assert (Tool(Awaited()).name, Tool(Awaited()).description) == ("awaited", "Answer later.")
    assert Tool(best(HTTPExpert())).parameters == tool.parameters


def test_forward_of_a_class_goes_before_its_signature() -> None:
    class Shout(Predict):
        def forward(self, words: str) -> str:
            """Shout."""
            return words

    tool = Tool(Shout("question -> answer"))
    assert (tool.name, tool.description, list(tool.parameters["properties"])) == ("shout", "Shout.", ["words"])  # type: ignore[arg-type]


def test_subclass_chooses_its_tool_source() -> None:
    class Wrapped(Module):
        def __init__(self, inner: Module) -> None:
            self.inner, self.other = inner, Predict("x -> y")

        def forward(self, **inputs: Any) -> Any:
            return self.inner(**inputs)

        def tool_source(self) -> object:
            return self.inner.tool_source()

    tool = Tool(Wrapped(Predict("question -> answer", lm=FakeLM([{"answer": "42"}]))))
    assert (tool.name, tool(question="x").answer) == ("wrapped", "42")
    assert list(tool.parameters["properties"]) == ["question"]  # type: ignore[arg-type]


def test_partial_binds_inputs_of_a_module() -> None:
    module, expert = Predict(LabelText), HTTPExpert()
    for handler, left in (
        (partial(module, style="long"), ["text", "most", "places"]),
        (partial(expert, depth=1), ["question"]),
    ):
        tool = Tool(handler)
        assert list(tool.parameters["properties"]) == left  # type: ignore[arg-type]
        assert tool.handler is handler
    assert list(Tool(partial(expert, "why?")).parameters["properties"]) == ["depth"]  # type: ignore[arg-type]
    assert Tool(partial(expert, "why?"))(depth=3) == {"why?": 3}


def test_options_replace_the_texts_of_the_module() -> None:
    given = {"type": "object", "properties": {"text": {"type": "string"}}}
    tool = Tool(Predict(LabelText), name="mark", description="Mark it.", timeout=2.0)
    assert (tool.name, tool.description, tool.timeout) == ("mark", "Mark it.", 2.0)
    described = Tool(Predict(LabelText), parameters=given)
    assert (described.name, described.description, described.parameters) == ("label_text", "Label a text.", given)


def test_texts_are_fixed_when_the_tool_is_made() -> None:
    module = Predict(LabelText)
    tool = Tool(module)
    module.signature = module.signature.with_instructions("Something else.")
    assert tool.description == "Label a text."
    assert Tool(module).description == "Something else."


class Closed(Module):
    def forward(self, **kwargs: Any) -> str:
        return ""


class Handle:
    pass


class Opaque(Module):
    def forward(self, question: str, handle: Handle) -> str:
        return question


class Empty(Module):
    pass


REFUSED: list[tuple[Any, str]] = [
    (Empty(), "Empty cannot be a tool: it has no signature and no forward"),
    (MultiChainComparison("q -> answer"), "MultiChainComparison cannot be a tool"),
    (Closed(), r"Closed cannot be a tool: its forward takes \*\*kwargs only"),
    (Opaque(), r"'Opaque'.*'handle'.*Handle.*functools.partial\(\.\.\., handle="),
    (Predict("q, tools: list[Tool] -> calls: ToolCalls"), r"Predict .*'tools'.*functools.partial\(module, tools="),
    (partial(Predict("q -> answer"), "q"), "Predict takes its inputs by name"),
    (Predict, r"Predict is the class of a module.*Tool\(Predict\(\.\.\.\)\)"),
    (partial(Predict, lm=None), "Predict is the class of a module"),
]


@pytest.mark.parametrize(("module", "problem"), REFUSED, ids=[text[:20] for _, text in REFUSED])
def test_module_that_no_model_can_call_is_refused(module: Any, problem: str) -> None:
    with pytest.raises(ToolDefinitionError, match=problem):
        Tool(module)


def test_partial_makes_a_refused_module_a_tool() -> None:
    assert list(Tool(partial(Opaque(), handle=Handle())).parameters["properties"]) == ["question"]  # type: ignore[arg-type]
    offering = partial(Predict("q, tools: list[Tool] -> calls: ToolCalls"), tools=[fetch])
    assert list(Tool(offering).parameters["properties"]) == ["q"]  # type: ignore[arg-type]


def test_direct_call_returns_what_the_module_returns() -> None:
    lm = FakeLM([{"label": "spam", "score": 0.5}] * 2)
    tool = Tool(Predict(LabelText, lm=lm))
    assert tool(text="t").label == "spam"
    with pytest.raises(InputError):
        tool(text="t", most=10)
    assert len(lm.requests) == 1


def test_result_types_are_those_of_the_sent_outputs() -> None:
    assert result_types(ChainOfThought("q -> n: int")) == {"": int}
    assert result_types(best(Predict(LabelText))) == {"label": str, "score": float}
    assert result_types(HTTPExpert()) == {"": dict[str, int]}
    assert result_types(fetch) == {"": str}


def test_tool_of_a_module_survives_pickling() -> None:
    tool = pickle.loads(pickle.dumps(Tool(Predict("q -> answer"))))
    assert (tool.name, tool.bind({"q": "x"}).kwargs) == ("answer", {"q": "x"})


def test_web_search_is_a_tool_of_its_name() -> None:
    search = WebSearch(max_uses=2)
    assert as_tool(search) == Tool.web_search(search)
    with pytest.raises(ToolDefinitionError, match="named 'web_search'"):
        as_tool(search, "look_up")
