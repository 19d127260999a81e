"""The installed peers: the jobs b1, b3, c1 and c2 as each peer's documentation writes a call, caches off."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from benchmarks.timing import Contestant

__all__ = ["awaited_over_http", "evaluated_over_http", "over_http", "predict"]

Demos = Sequence[Mapping[str, Any]]


def predict(inputs: Mapping[str, str], reply: str, demos: Demos = ()) -> dict[str, Contestant]:
    """Return a contestant for each installed peer that gives the right answer."""
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


# --- over HTTP -----------------------------------------------------------------------------------------


def over_http(port: int, script: str, inputs: Mapping[str, str]) -> dict[str, Contestant]:
    """Return the contestants of c1: each installed peer, with one client for all calls."""
    url = f"http://127.0.0.1:{port}/{script}"
    return {name: make(url, inputs) for name, (make, _) in HTTP_PEERS.items() if importlib.util.find_spec(name)}


def awaited_over_http(
    port: int, script: str, inputs: Mapping[str, str], expected: object
) -> dict[str, Callable[[], Awaitable[None]]]:
    """Return the contestants of c2: awaited calls that check the answer."""
    url = f"http://127.0.0.1:{port}/{script}"
    return {
        name: _checking(make(url, inputs), expected)
        for name, (_, make) in HTTP_PEERS.items()
        if importlib.util.find_spec(name)
    }


def _checking(call: Callable[[], Awaitable[object]], expected: object) -> Callable[[], Awaitable[None]]:
    async def check() -> None:
        assert await call() == expected

    return check


def dspy_http(url: str, inputs: Mapping[str, str]) -> Contestant:
    module = _dspy_module(url)

    def call() -> tuple[str, float]:
        prediction = module(**inputs)
        return prediction.answer, prediction.confidence

    return call


def dspy_awaited(url: str, inputs: Mapping[str, str]) -> Callable[[], Awaitable[object]]:
    module = _dspy_module(url)

    async def call() -> tuple[str, float]:
        prediction = await module.acall(**inputs)
        return prediction.answer, prediction.confidence

    return call


def evaluated_over_http(url: str, rows: Sequence[Mapping[str, str]]) -> dict[str, Callable[[], int]]:
    """Return the contestant of n3: DSPy's ``Evaluate`` of rows that are right where ``answer`` is ``label``."""
    if importlib.util.find_spec("dspy") is None:
        return {}
    module, library = _dspy_module(url), importlib.import_module("dspy")
    devset = [library.Example(row).with_inputs("context", "question") for row in rows]

    def exact(example: Any, prediction: Any, trace: object = None) -> bool:
        return bool(prediction.answer == example.label)

    evaluate = library.Evaluate(devset=devset, metric=exact, num_threads=8, display_progress=False)
    return {"dspy": lambda: round(evaluate(module).score / 100 * len(rows))}


def _dspy_module(url: str) -> Any:
    library: Any = importlib.import_module("dspy")
    library.configure(disable_history=True)
    module = library.Predict("context, question -> answer, confidence: float")
    module.lm = library.LM("openai/gpt-4o-mini", api_base=url, api_key="benchmark", cache=False)
    return module


def openai_http(url: str, inputs: Mapping[str, str]) -> Contestant:
    client: Any = importlib.import_module("openai").OpenAI(base_url=url, api_key="benchmark")
    messages = _openai_messages(inputs)
    return lambda: _read(client.chat.completions.create(model="gpt-4o-mini", messages=messages))


def openai_awaited(url: str, inputs: Mapping[str, str]) -> Callable[[], Awaitable[object]]:
    client: Any = importlib.import_module("openai").AsyncOpenAI(base_url=url, api_key="benchmark")
    messages = _openai_messages(inputs)

    async def call() -> tuple[str, float]:
        return _read(await client.chat.completions.create(model="gpt-4o-mini", messages=messages))

    return call


def _openai_messages(inputs: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the messages of the client, which has no signatures: written before the calls."""
    return [{"role": "system", "content": "Answer from the context."}, {"role": "user", "content": _ask(inputs)}]


def _read(answer: Any) -> tuple[str, float]:
    _, _, answered, _, confidence, *_ = re.split(
        r"^\[\[ ## (\w+) ## \]\]$", answer.choices[0].message.content, flags=re.MULTILINE
    )
    return answered.strip(), float(confidence)


HTTP_PEERS: Mapping[
    str,
    tuple[
        Callable[[str, Mapping[str, str]], Contestant],
        Callable[[str, Mapping[str, str]], Callable[[], Awaitable[object]]],
    ],
] = {
    "dspy": (dspy_http, dspy_awaited),
    "openai": (openai_http, openai_awaited),
}
