"""The libraries: a typed answer, a text, an agent with one tool, and many calls at once, each written as documented.

Only the address, the key and the model are set; all else is the default of the library. A method that a library lacks is
``None``. Imports are late, because few environments have all of them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

__all__ = ["LIBRARIES", "Library", "installed"]

MODEL = "gpt-4.1"
KEY = "sk-any"
AskText = Callable[[str], object]
Tool = Callable[..., object]


class Library:
    """A library at the address of a provider. ``typed`` returns (topic, order), ``text`` and ``agent`` a text."""

    package = ""
    has_agent = True

    def __init__(self, url: str) -> None:
        self.url = url

    def typed(self, message: str) -> tuple[str, int]:
        """Sort a message: its topic and the number of its order."""
        raise NotImplementedError

    def text(self, question: str) -> str:
        """Answer a question in free text."""
        raise NotImplementedError

    def agent(self, question: str, tool: Tool) -> str:
        """Answer a question with a tool."""
        raise NotImplementedError

    def many(self, number: int) -> int:
        """Ask ``number`` different questions at once; return how many were answered."""
        with ThreadPoolExecutor(number) as pool:
            return sum(pool.map(self._is_answered, range(number)))

    def _is_answered(self, position: int) -> bool:
        try:
            return bool(self.text(f"Question {position}?"))
        except Exception:
            return False


class SignatureLibrary(Library):
    """A library of signatures and modules: sigwire and DSPy differ in the option of the address only."""

    address = ""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.lib: Any = importlib.import_module(self.package)
        self.lm = self.lib.LM(f"openai/{MODEL}", api_key=KEY, **{self.address: url})

    def typed(self, message: str) -> tuple[str, int]:
        with self.lib.context(lm=self.lm):
            result = self.lib.Predict("message -> topic: Literal['billing', 'delivery'], order: int")(message=message)
        return result.topic, result.order

    def text(self, question: str) -> str:
        with self.lib.context(lm=self.lm):
            return str(self.lib.Predict("question -> answer")(question=question).answer)

    def agent(self, question: str, tool: Tool) -> str:
        with self.lib.context(lm=self.lm):
            return str(self.lib.ReAct("question -> answer", tools=[tool], max_iters=3)(question=question).answer)


class Sigwire(SignatureLibrary):
    package, address = "sigwire", "base_url"


class DSPy(SignatureLibrary):
    package, address = "dspy", "api_base"


class PydanticAI(Library):
    package = "pydantic-ai-slim"

    def _agent(self, **options: object) -> Any:
        lib: Any = importlib.import_module("pydantic_ai")
        models: Any = importlib.import_module("pydantic_ai.models.openai")
        providers: Any = importlib.import_module("pydantic_ai.providers.openai")
        model = models.OpenAIChatModel(MODEL, provider=providers.OpenAIProvider(base_url=self.url, api_key=KEY))
        return lib.Agent(model, **options)

    def typed(self, message: str) -> tuple[str, int]:
        result = self._agent(output_type=ticket_model()).run_sync(message).output
        return result.topic, result.order

    def text(self, question: str) -> str:
        return str(self._agent().run_sync(question).output)

    def agent(self, question: str, tool: Tool) -> str:
        return str(self._agent(tools=[tool]).run_sync(question).output)


class Ax(Library):
    package = "axllm"

    def _forward(self, signature: str, values: Mapping[str, object], *tools: object) -> Mapping[str, Any]:
        lib: Any = importlib.import_module("axllm")
        client = lib.ai("openai", api_key=KEY, base_url=self.url, model=MODEL)
        made: Mapping[str, Any] = lib.ax(signature, {"functions": [*tools]} if tools else None).forward(client, values)
        return made

    def typed(self, message: str) -> tuple[str, int]:
        result = self._forward('message:string -> topic:class "billing, delivery", order:number', {"message": message})
        return result["topic"], result["order"]

    def text(self, question: str) -> str:
        return str(self._forward("question:string -> answer:string", {"question": question})["answer"])

    def agent(self, question: str, tool: Tool) -> str:
        lib: Any = importlib.import_module("axllm")
        parameters = {"type": "object", "properties": {"product": {"type": "string"}}, "required": ["product"]}

        def run(arguments: dict[str, Any]) -> object:
            return tool(**arguments)

        made = lib.Tool(tool.__name__, tool.__doc__, parameters, run)
        return str(self._forward("question:string -> answer:string", {"question": question}, made)["answer"])


class LiteLLM(Library):
    package = "litellm"
    has_agent = False

    def _complete(self, prompt: str, **options: object) -> str:
        lib: Any = importlib.import_module("litellm")
        messages = [{"role": "user", "content": prompt}]
        reply = lib.completion(model=f"openai/{MODEL}", api_base=self.url, api_key=KEY, messages=messages, **options)
        return str(reply.choices[0].message.content)

    def typed(self, message: str) -> tuple[str, int]:
        result = ticket_model().model_validate_json(self._complete(message, response_format=ticket_model()))
        return result.topic, result.order

    def text(self, question: str) -> str:
        return self._complete(question)


class Instructor(Library):
    package = "instructor"
    has_agent = False

    def _create(self, prompt: str, response_model: object) -> Any:
        lib: Any = importlib.import_module("instructor")
        client = lib.from_provider(f"openai/{MODEL}", base_url=self.url, api_key=KEY)
        return client.create(response_model=response_model, messages=[{"role": "user", "content": prompt}])

    def typed(self, message: str) -> tuple[str, int]:
        result = self._create(message, ticket_model())
        return result.topic, result.order

    def text(self, question: str) -> str:
        return str(self._create(question, str))


def ticket_model() -> Any:
    """Return the pydantic model of the typed answer."""
    pydantic: Any = importlib.import_module("pydantic")
    return pydantic.create_model("Ticket", topic=(Literal["billing", "delivery"], ...), order=(int, ...))


LIBRARIES: Mapping[str, type[Library]] = {
    "sigwire": Sigwire,
    "DSPy": DSPy,
    "pydantic-ai": PydanticAI,
    "axllm": Ax,
    "LiteLLM": LiteLLM,
    "instructor": Instructor,
}


def installed() -> dict[str, tuple[type[Library], str]]:
    """Return the installed libraries with their versions."""
    found: dict[str, tuple[type[Library], str]] = {}
    for name, library in LIBRARIES.items():
        try:
            found[name] = (library, importlib.metadata.version(library.package))
        except importlib.metadata.PackageNotFoundError:
            if importlib.util.find_spec(library.package) is not None:
                found[name] = (library, str(importlib.import_module(library.package).__version__))
    return found
