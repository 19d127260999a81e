"""Models of objects that are called: with messages, or with a state and questions about it, such as one of a test."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from inspect import isroutine
from typing import TYPE_CHECKING, Any, cast

from sigwire.core.capabilities import Capabilities
from sigwire.core.evidence import Question, label_of
from sigwire.core.narrow import is_mapping
from sigwire.dspy.lm import BaseLM
from sigwire.effects.loops import to_thread

if TYPE_CHECKING:
    from sigwire.core.request import Request
    from sigwire.core.response import Response
    from sigwire.lm.codecs.shared.interface import EncodedRequest, Target

__all__ = ["ClientModel", "as_model"]


class _CalledLM(BaseLM):
    """A model that calls an object with messages. It has no state: a saved program omits it, as it omits the object."""

    dump_state: Any = None

    def __init__(self, called: Any) -> None:
        self._called = called
        super().__init__(str(getattr(called, "model", type(called).__name__)), cache=False)

    def _can(self, name: str) -> bool:
        return getattr(self._called, name, False) is True

    @property
    def supports_function_calling(self) -> bool:
        return self._can("supports_function_calling")

    @property
    def supports_response_schema(self) -> bool:
        return self._can("supports_response_schema")

    def __call__(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        return self._called(messages=messages, **kwargs)

    async def acall(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        awaited: Any = getattr(self._called, "acall", None)
        if awaited is None:
            return await to_thread(partial(self._called, messages=messages, **kwargs))
        return await awaited(messages=messages, **kwargs)


def as_model(lm: Any) -> Any:
    """Return a language model; an object without requests is called with ``messages`` and returns texts or dicts.

    Such an object may have ``model``, ``acall`` and the ``supports_...`` flags of DSPy. A stand-in made by ``unittest.mock``
    is one too. A function, a class, and what cannot be called are returned as they are. An object with
    ``supports_decision_requests`` is called with state and questions.

    >>> class Says:
    ...     def __call__(self, messages, **options):
    ...         return [f"{len(messages)} message"]
    >>> as_model(Says())(messages=[{"role": "user", "content": "Hi"}])
    ['1 message']
    """
    if _is_client(lm):
        return ClientModel(lm)
    is_model = isinstance(getattr(lm, "capabilities", None), Capabilities)
    return lm if is_model or isinstance(lm, type) or isroutine(lm) or not callable(lm) else _CalledLM(lm)


def _is_client(lm: object) -> bool:
    """Return True for an object that is called with state and questions, and for a ``TypeSafe`` that overrides its call."""
    if getattr(lm, "supports_decision_requests", False) is not True or isinstance(lm, type | ClientModel):
        return False
    owners = [next((at for at, each in enumerate(type(lm).__mro__) if name in vars(each)), None) for name in _ENTRIES]
    call, respond = owners
    return call is not None and (respond is None or call < respond)


_ENTRIES = ("__call__", "respond")


class ClientModel:
    """A model that calls a client with state and questions, ``acall`` of it if awaited. It has no state to save.

    >>> class Sure:
    ...     supports_decision_requests = True
    ...     def __call__(self, state, questions):
    ...         return {name: {"noul": 1.0} for name in questions}
    >>> ClientModel(Sure()).capabilities.decides
    'only'
    """

    supports_decision_requests = True
    capabilities = Capabilities(decides="only")
    dump_state: Any = None

    def __init__(self, client: Any) -> None:
        self.client = client
        self.model, self.cache = str(getattr(client, "model", type(client).__name__)), getattr(client, "cache", False)

    @property
    def _target(self) -> Target[Any]:
        from sigwire.lm.codecs.decisions import TYPESAFE
        from sigwire.lm.codecs.shared.interface import Target

        return Target(type(self.client).__name__, self.model, TYPESAFE)

    def respond(self, request: Request) -> Response:
        """Answer a request whose output schema has the questions."""
        sent, given = self._sent(request)
        return self._read(self.client(**given), sent)

    async def arespond(self, request: Request) -> Response:
        """Answer as ``respond`` does, awaited."""
        sent, given = self._sent(request)
        awaited: Any = getattr(self.client, "acall", None)
        answers = await (awaited(**given) if awaited is not None else to_thread(partial(self.client, **given)))
        return self._read(answers, sent)

    def _sent(self, request: Request) -> tuple[EncodedRequest, dict[str, Any]]:
        from sigwire.lm.codecs.decisions import encode

        sent, questions = encode(request, self._target), dict[str, Any]()
        for asked in sent.questions or ():
            if (found := cast("Any", sent.body["questions"]).get(asked.path)) is not None:
                questions[asked.path] = (
                    found if asked.kind != "choice" else {**found, "criteria": _relabeled(found, asked)}
                )
        return sent, {"state": sent.body["state"], "questions": questions}

    def _read(self, answers: Any, sent: EncodedRequest) -> Response:
        from sigwire.lm.codecs.decisions import decode

        asked = {each.path: each for each in sent.questions or ()}
        whole = {name: _whole(asked.get(name), answer) for name, answer in dict(answers).items()}
        return decode({"model": self.model, "answers": whole}, sent, self._target)


def _relabeled(question: Any, asked: Question) -> dict[str, Any]:
    """Return the criteria of a choice by DSPy's texts of its values."""
    return {str(value): text for value, text in zip(asked.values, question["criteria"].values(), strict=True)}


def _whole(asked: Question | None, answer: Any) -> Any:
    """Return an answer with what clients may leave out: its type, and the choice or the mean level of its probabilities."""
    if asked is None or not isinstance(answer, Mapping):
        return answer
    found: dict[str, Any] = dict(cast("Mapping[str, Any]", answer))
    given: Any = found.get("probabilities")
    if asked.kind == "bool" or not is_mapping(given):
        return {"type": "noul" if asked.kind == "bool" else asked.kind, **found}
    by_text: dict[str, Any] = {str(label): share for label, share in given.items()}
    labels = {str(value): label_of(value) for value in asked.values}
    found["probabilities"] = {labels.get(text, text): share for text, share in by_text.items()}
    if asked.kind == "score":
        found["score"] = sum(level * by_text.get(str(level), 0) for level in asked.values)
    else:  # the most probable one, whatever the client chose: DSPy reads the probabilities alone
        found["choice"] = labels[max(labels, key=lambda text: by_text.get(text, 0))]
    return {"type": asked.kind, **found}
