"""The peers, where somebody installed them: the job of b1 and b3 as their own documentation writes it, caches off."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.timing import Contestant

__all__ = ["predict"]

Demos = Sequence[Mapping[str, Any]]


def predict(inputs: Mapping[str, str], reply: str, demos: Demos = ()) -> dict[str, Contestant]:
    """A contestant for every peer that is installed and gives the right answer."""
    contestants: dict[str, Contestant] = {}
    for name, make in PEERS.items():
        if importlib.util.find_spec(name) is not None:
            contestant = make(inputs, reply, demos)
            assert contestant() == ("1932", 0.9), name
            contestants[name] = contestant
    return contestants


def dspy(inputs: Mapping[str, str], reply: str, demos: Demos) -> Contestant:
    library: Any = importlib.import_module("dspy")
    types: Any = importlib.import_module("types")
    message = types.SimpleNamespace(content=reply, tool_calls=None, reasoning_content=None)
    choices = [types.SimpleNamespace(message=message, finish_reason="stop")]

    class Stub(library.BaseLM):  # type: ignore[misc]
        def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
            return types.SimpleNamespace(choices=choices, usage={}, model="stub")

    library.configure(lm=Stub("stub"), disable_history=True)
    module = library.Predict("context, question -> answer, confidence: float")
    module.demos = [library.Example(**demo).with_inputs("context", "question") for demo in demos]

    def call() -> tuple[str, float]:
        prediction = module(**inputs)
        return prediction.answer, prediction.confidence

    return call


def pydantic_ai(inputs: Mapping[str, str], reply: str, demos: Demos) -> Contestant:
    library: Any = importlib.import_module("pydantic_ai")
    messages: Any = importlib.import_module("pydantic_ai.messages")
    function_model: Any = importlib.import_module("pydantic_ai.models.function")
    pydantic: Any = importlib.import_module("pydantic")
    output = pydantic.create_model("Output", answer=(str, ...), confidence=(float, ...))

    def answer(history: Any, info: Any) -> Any:
        tool = info.output_tools[0].name
        return messages.ModelResponse([messages.ToolCallPart(tool, '{"answer": "1932", "confidence": 0.9}')])

    agent = library.Agent(function_model.FunctionModel(answer), output_type=output, instructions="Answer.")
    past: list[Any] = []
    for demo in demos:
        past.append(messages.ModelRequest([messages.UserPromptPart(_ask(demo))]))
        past.append(messages.ModelResponse([messages.TextPart(f"{demo['answer']} {demo['confidence']}")]))

    def call() -> tuple[str, float]:
        result = agent.run_sync(_ask(inputs), message_history=past or None).output
        return result.answer, result.confidence

    return call


def langchain_core(inputs: Mapping[str, str], reply: str, demos: Demos) -> Contestant:
    models: Any = importlib.import_module("langchain_core.language_models.fake_chat_models")
    prompts: Any = importlib.import_module("langchain_core.prompts")
    parsers: Any = importlib.import_module("langchain_core.output_parsers")
    pydantic: Any = importlib.import_module("pydantic")
    output = pydantic.create_model("Output", answer=(str, ...), confidence=(float, ...))
    model = models.FakeListChatModel(responses=['{"answer": "1932", "confidence": 0.9}'])
    ask = ("human", "Context: {context}\n\nQuestion: {question}")
    shown = prompts.FewShotChatMessagePromptTemplate(
        examples=[{key: str(value) for key, value in demo.items()} for demo in demos],
        example_prompt=prompts.ChatPromptTemplate.from_messages([ask, ("ai", "{answer} {confidence}")]),
    )
    turns = [("system", "Answer the question from the context."), *([shown] if demos else []), ask]
    chain = (
        prompts.ChatPromptTemplate.from_messages(turns) | model | parsers.PydanticOutputParser(pydantic_object=output)
    )

    def call() -> tuple[str, float]:
        result = chain.invoke(dict(inputs))
        return result.answer, result.confidence

    return call


def _ask(fields: Mapping[str, Any]) -> str:
    return f"Context: {fields['context']}\n\nQuestion: {fields['question']}"


PEERS: Mapping[str, Callable[[Mapping[str, str], str, Demos], Contestant]] = {
    "dspy": dspy,
    "langchain_core": langchain_core,
    "pydantic_ai": pydantic_ai,
}
