"""``TypeSafe``: DSPy's client of System One, over the row ``typesafe``. It is a model, so that ``Predict(lm=...)`` takes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self, TextIO, cast

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Response
from sigwire.dspy.lm import LM, LM_CLASS_STATE_KEY
from sigwire.errors import InputError, warn_user
from sigwire.lm.base import named_in_files
from sigwire.lm.policy.cache.choice import CacheMode
from sigwire.lm.secrets import Secret, redact_url

__all__ = ["TypeSafe"]

_DEFAULT_URL = "https://api.typesafe.ai"
_CLASS_KEYS = ("_dspy_lm_class", LM_CLASS_STATE_KEY)  # DSPy's first: DSPy loads a file with it
_KEPT = ("noul", "score", "choice", "confidence", "probabilities")


@cast("Any", named_in_files("dspy.clients.typesafe.TypeSafe"))
class TypeSafe:
    """A model that answers questions with probabilities: ``client(state, questions)``, or ``Predict(..., lm=client)``.

    ``model``, ``base_url`` and ``api_key`` default to TYPESAFE_DEFAULT_MODEL, TYPESAFE_BASE_URL and TYPESAFE_API_KEY.
    A key of the environment is sent to TypeSafe's host, or to that of ``TYPESAFE_BASE_URL``; to another ``base_url`` pass one.
    ``timeout``: seconds of a call. Copies and states have no key; ``history`` has the last calls.

    >>> client = TypeSafe("jev-latest")
    >>> client.model, client.base_url, client.supports_decision_requests
    ('jev-latest', 'https://api.typesafe.ai', True)
    """

    supports_decision_requests = True

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        cache: CacheMode = True,
        timeout: float = 10.0,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.model = model or os.environ.get("TYPESAFE_DEFAULT_MODEL") or "jev-latest"
        self.base_url = (base_url or os.environ.get("TYPESAFE_BASE_URL") or _DEFAULT_URL).rstrip("/")
        self.api_key = None if api_key is None else Secret(api_key)
        self.cache: CacheMode = cache
        self.timeout, self.callbacks = timeout, [*(callbacks or ())]
        self._lm: tuple[tuple[object, ...], LM] | None = None

    @property
    def _model(self) -> LM:
        """The model behind the client; another one after a change of an attribute, with the same history."""
        key = (self.model, self.base_url, self.api_key, self.cache, self.timeout, *map(id, self.callbacks))
        if self._lm is None or self._lm[0] != key:
            is_usual = self.base_url == (os.environ.get("TYPESAFE_BASE_URL") or _DEFAULT_URL).rstrip("/")
            lm = LM(
                f"typesafe/{self.model}",
                base_url=None if is_usual else self.base_url,
                api_key=self.api_key,
                cache=self.cache,
                timeout=self.timeout,
                callbacks=self.callbacks,
            )
            if self._lm is not None:
                lm.history = self._lm[1].history
            self._lm = key, lm
        return self._lm[1]

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model: it decides only."""
        return self._model.capabilities

    @property
    def history(self) -> Any:
        """The last calls."""
        return self._model.history

    def respond(self, request: Request) -> Response:
        """Answer a request whose output schema has the questions."""
        return self._model.respond(request)

    async def arespond(self, request: Request) -> Response:
        """Answer as ``respond`` does, awaited."""
        return await self._model.arespond(request)

    def __call__(self, state: JsonValue, questions: Mapping[str, Any]) -> dict[str, Any]:
        """Answer questions about a state. Returns the answers by name, as the host gave them."""
        return _answers(self._model.respond(_request(state, questions)))

    async def acall(self, state: JsonValue, questions: Mapping[str, Any]) -> dict[str, Any]:
        """Answer questions, awaited."""
        return _answers(await self._model.arespond(_request(state, questions)))

    def copy(self, **kwargs: Any) -> Self:
        """Return a client with changes, its key and callbacks, and no history."""
        state = {name: value for name, value in self.dump_state().items() if name not in _CLASS_KEYS}
        options: dict[str, Any] = {**state, "api_key": self.api_key, "callbacks": self.callbacks, **kwargs}
        return type(self)(**options)

    def inspect_history(self, n: int = 1, file: TextIO | None = None) -> None:
        """Print the last ``n`` calls."""
        self._model.inspect_history(n, file)

    def dump_state(self) -> JsonObject:
        """Return what is needed to build the client again, without its key."""
        return {
            _CLASS_KEYS[0]: "dspy.clients.typesafe.TypeSafe",
            "model": self.model,
            "base_url": self.base_url,
            "cache": bool(self.cache),
            "timeout": self.timeout,
        }

    @classmethod
    def load_state(cls, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = True) -> Self:
        """Build a client from the dict of ``dump_state``. A file that is not trusted sets no other address, with a warning."""
        given = {name: value for name, value in state.items() if name not in _CLASS_KEYS}
        if not allow_unsafe_lm_state and (place := given.pop("base_url", None)) not in (None, cls().base_url):
            warn_user(
                f"The saved TypeSafe has another base_url, {redact_url(str(place))!r}, which is not loaded. "
                "Set it in your code, or trust the file with allow_unsafe_lm_state=True."
            )
        return cls(**given)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_lm": None, "api_key": None}

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()

    def __repr__(self) -> str:
        return f"TypeSafe({self.model!r}, base_url={self.base_url!r})"


def _request(state: JsonValue, questions: Mapping[str, Any]) -> Request:
    """Return the request. The body has state and questions as they were given, which may be objects with more than texts."""
    wires = {name: _plain(question) for name, question in questions.items()}
    schema: JsonObject = {"type": "object", "properties": {name: _schema(name, wire) for name, wire in wires.items()}}
    given: JsonObject = {"state": state, "questions": {**wires}}
    text = state if isinstance(state, str) else dumps(state)
    return Request((Message.user(text),), response_format=ResponseFormat(schema), options={"extra_body": given})


def _plain(question: Any) -> JsonObject:
    """Return a question as JSON; one of TypeSafe's package is a pydantic model."""
    return dict(question.model_dump() if hasattr(question, "model_dump") else question)


def _schema(name: str, question: JsonObject) -> JsonObject:
    kind, criteria = question.get("type"), question.get("criteria")
    if kind == "noul":
        return {"type": "boolean"}
    if kind == "choice" and isinstance(criteria, dict):
        return {"enum": [*criteria]}
    if kind == "score" and isinstance(criteria, list):
        return {"type": "number", "x-levels": [{"label": str(level)} for level in range(len(criteria))]}
    raise InputError(f"The question {name!r} is no noul, no choice with criteria and no score with a list of criteria.")


def _answers(response: Response) -> dict[str, Any]:
    raw: Any = response.raw
    found: dict[str, Any] = {}
    for name, answer in raw["answers"].items():
        kept = {key: answer[key] for key in _KEPT if key in answer}
        if "score" in kept:
            kept["probabilities"] = {int(level): share for level, share in kept["probabilities"].items()}
        found[name] = kept
    return found
