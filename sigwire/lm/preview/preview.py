"""``Preview``: the first request of a call, before it is sent: wire, bytes, command, tokens, price, cache.

``preview_of`` makes it of a *draft*, which the model makes by the code that sends. No key is read and no socket is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TextIO, TypeAlias

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.request import Request
from sigwire.core.response import LMWarning, Usage
from sigwire.errors import CallerError, ConfigurationError
from sigwire.lm.preview.curl import MASK, curl_command
from sigwire.lm.preview.draft import CacheState, RequestDraft
from sigwire.lm.preview.tokens import TokenEstimate, estimate_tokens
from sigwire.lm.secrets import Secret, redact_url
from sigwire.show.card import Card, HasCard
from sigwire.show.cleaning import inline
from sigwire.show.numbers import count, money_text

if TYPE_CHECKING:
    from sigwire.lm.preview.call_log import CallLog

__all__ = ["AskedEvidence", "Preview", "Previewed", "preview_of"]

_Row: TypeAlias = tuple[str, Sequence[str]]


class Previewed(Protocol):
    """The part of a model that a preview reads."""

    @property
    def model(self) -> str: ...


class AskedEvidence(NamedTuple):
    """The evidence that a request asks for: its source, and the paths of the outputs."""

    source: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Preview(HasCard):
    """A request before it is sent: ``program.preview(...)``, ``lm.preview(request)``.

    ``request`` is canonical, with the options of the model. ``path`` and ``turn`` are those of the predictor in its program.
    ``warnings``: features that the encoder drops or approximates. ``errors``: reasons why the call would be refused before
    anything is sent. ``repeat``: how often the request is sent, on a wire with one choice an answer. ``cache``: "hit", if the
    stored answer would be returned and nothing sent; "miss"; or "off". ``evidence``: what a predictor with ``evidence=`` asks
    for; the card has its price.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.lm.client import LM
    >>> preview = LM("openai/gpt-4.1-mini", cache=False).preview(Request((Message.user("Hello!"),)))
    >>> preview.wire["url"], preview.wire["headers"]["authorization"]
    ('https://api.openai.com/v1/chat/completions', 'Bearer env:OPENAI_API_KEY')
    >>> preview.json()
    b'{"model":"gpt-4.1-mini","messages":[{"role":"user","content":"Hello!"}]}'
    >>> preview.cache, preview.errors
    ('off', ())
    """

    model: str
    request: Request
    warnings: tuple[LMWarning, ...] = ()
    errors: tuple[CallerError, ...] = ()
    repeat: int = 1
    cache: CacheState = "off"
    path: str | None = None
    turn: int | None = None
    evidence: AskedEvidence | None = None
    _draft: RequestDraft = field(default=RequestDraft(Request()), repr=False, compare=False)
    _calls: Callable[[], Iterable[tuple[Request, int]]] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def wire(self) -> Mapping[str, Any] | None:
        """``method``, ``url``, ``headers`` and ``body`` of the request, ``env:NAME`` in place of a key, ``***`` of a secret.

        For LiteLLM: ``method`` is its function, ``body`` the arguments. ``None`` for a model without a wire, and if the
        request cannot be encoded.
        """
        draft = self._draft
        if draft.arguments is not None:
            return {"method": "litellm.completion", "url": None, "headers": {}, "body": _masked(draft.arguments)}
        if draft.http is None:
            return None
        url, headers = draft.http.url, draft.http.headers
        return {
            "method": draft.http.method,
            "url": redact_url(url) if isinstance(url, Secret) else url,
            "headers": {name: MASK if isinstance(value, Secret) else value for name, value in headers.items()},
            "body": _masked(draft.body),
        }

    def json(self) -> bytes:
        """Return the body byte for byte as a call sends it, secrets of ``extra_body`` included.

        The canonical request for a model without a wire. Raises the first of ``errors`` if the request cannot be encoded.
        """
        if self.errors:
            raise self.errors[0]
        if self._draft.http is not None:
            return self._draft.http.body
        plain: JsonValue = self.request.to_json() if self._draft.arguments is None else self._draft.arguments
        return json.dumps(plain, ensure_ascii=False, default=str).encode("utf-8", "replace")

    def curl(self) -> str:
        """Return a command for a POSIX shell that sends the request, with the key as a variable: ``$OPENAI_API_KEY``.

        Raises ``ConfigurationError`` for a model without an HTTP wire.
        """
        wire, http = self.wire, self._draft.http
        if self.errors:
            raise self.errors[0]
        if wire is None or http is None:
            raise ConfigurationError(
                f"{self.model} is not reached over a wire of sigwire's, so there is no command (making a preview). Read "
                "preview.request."
            )
        body = wire["body"]
        text = http.body.decode("utf-8", "replace") if body == self._draft.body else None
        return curl_command(wire["url"], wire["headers"], body, text)

    @cached_property
    def tokens(self) -> TokenEstimate:
        """The input tokens, estimated; exact if tiktoken and its vocabulary are on this machine."""
        return estimate_tokens(self.model, self.request, self._calls())

    @cached_property
    def price(self) -> float | None:
        """The cost of the input tokens in US dollars; ``None`` if no price is known. The first read may load a price table."""
        return self.cost(Usage(int(self.tokens), 0))

    @cached_property
    def ceiling(self) -> float | None:
        """The cost with an answer of ``max_tokens`` tokens; ``None`` without that option or a price."""
        most = self.request.options.get("max_tokens")
        return self.cost(Usage(int(self.tokens), most)) if isinstance(most, int) else None

    def cost(self, usage: Usage) -> float | None:
        """Return the cost of a usage in US dollars, ``repeat`` times; ``None`` if no price is known. May load a price table."""
        from sigwire.lm.policy.money.prices import cost_of  # may load price tables

        found = cost_of(self.model, usage, self._draft.price)
        return None if found is None else float(found.money) * self.repeat

    def __repr__(self) -> str:
        facts = [inline(self.model, 80), *([f"at {inline(self.path, 80)}"] if self.path not in (None, "self") else ())]
        price = _dollars("≈", self.price) if self._knows_price() else ""
        facts += [f"{self.tokens.short} tokens in", *([price] if price else ())]
        facts += [f"evidence {self.evidence.source}"] if self.evidence is not None else []
        facts += [count(len(self.errors), "error")] if self.errors else []
        return f"Preview({', '.join(facts)})"

    def show(self, file: TextIO | None = None, width: int | None = None) -> None:
        """Print the preview as text, with its price."""
        _ = self.price
        super().show(file, width)

    def _knows_price(self) -> bool:
        """Return True if the price needs no table that is not loaded yet: a repr imports nothing."""
        from sigwire.lm.policy.money.catalogs import is_loaded, is_local
        from sigwire.lm.policy.money.prices import prices

        known = "price" in self.__dict__ or self._draft.price is not None or is_loaded() or is_local(self.model)
        return known or prices.find(self.model) is not None

    def _card(self) -> Card:
        wire = self.wire
        rows = [*self._wire_rows(wire), *self._estimate_rows(), ("cache", [self.cache])]
        rows += [("sent", [f"{self.repeat} times"])] if self.repeat > 1 else []
        rows += [] if self.evidence is None else [("evidence", [*self._evidence_lines(self.evidence)])]
        rows += [("warning", [f"{each.feature}: {each.detail}"]) for each in self.warnings]
        rows += [("error", [str(error)]) for error in self.errors]
        return Card("Preview", self.model, rows, children=list(self._parts(wire)))

    def _wire_rows(self, wire: Mapping[str, Any] | None) -> Iterable[_Row]:
        if wire is not None:
            yield "wire", [" ".join(part for part in (wire["method"], wire["url"]) if part)]
            yield from ((name, [value]) for name, value in wire["headers"].items())
        if self.path is not None:
            yield "path", [self.path if self.turn is None else f"{self.path}, turn {self.turn}"]

    def _estimate_rows(self) -> Iterable[_Row]:
        yield "tokens", [f"{self.tokens} by {self.tokens.method}"]
        if self._knows_price():
            known = [_dollars("≈", self.price), _dollars("≤", self.ceiling)]
            yield "price", [" · ".join(filter(None, known)) or "cost unknown"]

    def _evidence_lines(self, asked: AskedEvidence) -> Iterable[str]:
        """Yield the source with the outputs, and what the request has or costs more because of it."""
        yield f"{asked.source}: {inline(', '.join(asked.paths), 200)}"
        options = self.request.options
        if asked.source == "stated":
            yield "one more output, with the probabilities"
        elif asked.source == "logprob":
            yield f"{options.get('top_logprobs')} log probabilities of each token"
        elif asked.source == "sampled" and self.repeat == 1:
            yield f"{options.get('n')} answers to one request: output tokens {options.get('n')} times"
        elif asked.source == "sampled":
            more = self.repeat - 1
            known = self.price if self._knows_price() else None
            price = "" if known is None else f", {_dollars('≈', known * more / self.repeat)}"
            yield f"{more} more requests: {int(self.tokens) * more:,} more tokens in{price}"

    def _parts(self, wire: Mapping[str, Any] | None) -> Iterable[Card]:
        request = self.request
        messages = [(message.role, message.text[:20_000].splitlines()) for message in request.messages]
        yield Card(count(len(messages), "message"), rows=messages, is_open=True)
        if request.tools:
            named = [(_tool_name(tool), [dumps(tool)]) for tool in request.tools]
            yield Card(count(len(named), "tool"), rows=named)
        if wire is not None:
            yield Card("body", rows=[("", [json.dumps(wire["body"], ensure_ascii=False, default=str)[:20_000]])])


def preview_of(
    lm: Previewed,
    request: Request,
    draft: Callable[[Request], RequestDraft] | None = None,
    log: CallLog | None = None,
    overrides: Collection[str] = (),
) -> Preview:
    """Return the preview of a request.

    ``draft``: the model's encoder. ``log``: its earlier calls. ``overrides``: methods that may change the request.
    """
    calls = partial(_counted, log)
    try:
        made = RequestDraft(request) if draft is None else draft(request)
    except CallerError as error:
        return Preview(lm.model, request, errors=(error,), _draft=RequestDraft(request), _calls=calls)
    changed = [LMWarning("override", f"{' and '.join(sorted(overrides))} of the model may change the request")]
    return Preview(
        lm.model,
        made.request,
        (*made.warnings, *(changed if overrides else ())),
        repeat=made.repeat,
        cache=made.cache,
        _draft=made,
        _calls=calls,
    )


def _counted(log: CallLog | None) -> list[tuple[Request, int]]:
    """Return the requests whose input tokens the provider counted."""
    found = [(record.request, record.response) for record in (() if log is None else log.records)]
    return [(request, r.usage.input_tokens) for request, r in found if r.cache != "hit" and r.usage.input_tokens]


def _tool_name(tool: JsonObject) -> str:
    function = tool.get("function")
    return str(function.get("name") if isinstance(function, dict) else tool.get("type"))


def _masked(value: JsonValue) -> JsonValue:
    """Return a JSON value with ``***`` in place of secrets."""
    if isinstance(value, dict):
        return {name: _masked(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return MASK if isinstance(value, Secret) else value


def _dollars(mark: str, cost: float | None) -> str:
    """Return a cost for people; "" if it is not known.

    >>> _dollars("≈", 0.0000462), _dollars("≤", 12.5), _dollars("≈", None)
    ('≈$0.000046', '≤$12.50', '')
    """
    if cost is None:
        return ""
    return f"{mark}{money_text(cost)}"
