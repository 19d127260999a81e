"""``llm_query`` and ``llm_query_batched``: functions by which code asks a language model about texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sigwire.core.json import JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.gather import Gather
from sigwire.effects.performing import performed
from sigwire.effects.steps import Steps
from sigwire.errors import LMError, ModelError, ends_run
from sigwire.interpreters.host_calls import HostCallError, HostFunction
from sigwire.keywords import check_whole
from sigwire.lm.base import LanguageModel
from sigwire.modules.agents.tool_results import short_message
from sigwire.modules.ask import Ask
from sigwire.observe.reports import question_steps

__all__ = ["LANGUAGE_FUNCTIONS", "LanguageCalls", "check_limits"]

LANGUAGE_FUNCTIONS: Mapping[str, str] = {
    "llm_query": (
        "def llm_query(text: str) -> str\n    Ask a language model about the meaning of a text. It sees this text and nothing "
        "else. At most {most} texts in all."
    ),
    "llm_query_batched": "def llm_query_batched(texts: list[str]) -> list[str]\n    Ask about several texts at once.",
}
"""The functions as a model reads them. ``most``: the limit of texts."""


class LanguageCalls:
    """The calls of one run: at most ``most`` texts, ``parallel`` at once. ``lm`` returns the model."""

    def __init__(self, lm: Callable[[], LanguageModel], most: int, parallel: int) -> None:
        self._lm, self._most, self._parallel = lm, most, parallel
        self._used = 0

    @property
    def functions(self) -> Mapping[str, HostFunction]:
        """The host functions by name."""
        return {"llm_query": self.llm_query, "llm_query_batched": self.llm_query_batched}

    def llm_query(self, text: JsonValue) -> Steps[JsonValue]:
        """Ask about one text; return the answer."""
        (asked,) = self._taken([text])
        try:
            return (yield from self._ask(asked))
        except (LMError, ModelError) as error:
            _raise_if_final(error)
            raise HostCallError("RuntimeError", short_message(error)) from error

    def llm_query_batched(self, texts: JsonValue) -> Steps[JsonValue]:
        """Ask about several texts at once; return the answers in order. The answer to a text that failed is its error."""
        if not isinstance(texts, list):
            raise HostCallError("TypeError", "llm_query_batched takes a list of texts.")
        asked = self._taken(texts)
        if not asked:
            return []
        answers: JsonValue = yield Gather([self._ask_or_error(text) for text in asked], limit=self._parallel)
        return answers

    def _taken(self, texts: list[JsonValue]) -> list[str]:
        """Return the texts, counted. Raises ``HostCallError`` for other values and at the limit; then none is asked."""
        asked = [text for text in texts if isinstance(text, str) and text.strip()]
        if len(asked) < len(texts):
            raise HostCallError(
                "ValueError", "llm_query takes text that is not empty: the question and what it is about."
            )
        if self._used + len(asked) > self._most:
            raise HostCallError(
                "RuntimeError",
                f"{len(asked)} texts are above the limit: {self._used} of {self._most} are used. Use Python for the rest.",
            )
        self._used += len(asked)
        return asked

    def _ask_or_error(self, text: str) -> Steps[JsonValue]:
        try:
            return (yield from self._ask(text))
        except (LMError, ModelError) as error:
            _raise_if_final(error)
            return f"[ERROR] {short_message(error)}"

    def _ask(self, text: str) -> Steps[JsonValue]:
        lm = self._lm()
        response = yield from question_steps("llm_query", lm.model, _answered(lm, text))
        return response.choices[0].text if response.choices else ""


def _answered(lm: LanguageModel, text: str) -> Steps[Response]:
    response: Response = yield performed(Ask(lm, Request((Message.user(text),))))
    return response


def _raise_if_final(error: LMError | ModelError) -> None:
    """Raise the errors that end the run: keys, a provider that is down."""
    if ends_run(error):
        raise error


def check_limits(turns: object, calls: object, characters: object, parallel: object) -> None:
    """Raise ``ConfigurationError`` for a limit of an ``RLM`` that is no number, or out of bounds."""
    where = "creating an RLM"
    check_whole("max_iters", turns, where, of="turns", least=1)
    check_whole("max_llm_calls", calls, where, of="calls")
    check_whole("max_output_chars", characters, where, of="characters", least=1, most=100_000_000)
    check_whole("parallel", parallel, where, of="calls", least=1)
