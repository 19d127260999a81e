"""The fake provider's decision endpoints: OpenAI's, System One's and the Gemini API's.

read     the input as messages, the questions as the JSON Schema of an output by name: a model that decides can answer
write    the scripted text is JSON by name of a question: a number (of a bool p(true), of a score the mean level), {label: p},
         a list of p by level, a value, or null for a refusal. A choice with evidence has its distributions
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, cast

from sigwire.core.evidence import label_of
from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, TextPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import ConfigurationError
from sigwire.testing.answers import Fault
from sigwire.testing.chunking import Cutter
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.wire import (
    USUAL_STATUSES,
    FakeWire,
    IdSequence,
    ParsedRequest,
    ReceivedRequest,
    Status,
    usage_of,
)
from sigwire.testing.wires.gemini import Gemini
from sigwire.testing.wires.openai import OpenAIWire, detailed_counts, dotted_path, image

__all__ = ["DECISION_WIRES", "GeminiDecisions", "OpenAIDecisions", "SystemOne"]


class _Scripted(NamedTuple):
    """One answer: the values of a question, their probabilities, and the value that the model answered."""

    kind: Literal["bool", "choice", "score"]
    values: list[Any]
    labels: list[str]
    shares: list[float] | None

    @property
    def best(self) -> Any:
        shares = self.shares or []
        return self.values[shares.index(max(shares))]

    @property
    def mean(self) -> float:
        return sum(level * share for level, share in enumerate(self.shares or []))

    @property
    def confidence(self) -> float:
        return max(self.shares or [0.0])


# --- what all three share


def _answers(response: Response, parsed: ParsedRequest) -> dict[str, _Scripted]:
    """Return the scripted answer to each question. Raises ``ConfigurationError`` for a script that does not fit."""
    wanted: Any = parsed.request.response_format
    questions = cast("Mapping[str, JsonObject]", wanted.schema["properties"])
    choice = response.choices[0]
    given = _script_of(choice)
    return {name: _answer(name, question, choice, given) for name, question in questions.items()}


def _script_of(choice: Choice) -> Mapping[str, JsonValue]:
    try:
        data = loads(choice.text or "{}")
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise ConfigurationError(
            f"The scripted text {choice.text!r:.60} is no JSON object (writing the answer). Write the answers by name of the "
            "question: '{\"urgent\": 0.9}'."
        )
    return cast("Mapping[str, JsonValue]", data)


def _answer(name: str, question: JsonObject, choice: Choice, given: Mapping[str, JsonValue]) -> _Scripted:
    kind, values, labels = _described(question)
    evidence: Any = (choice.evidence or {}).get(name)
    if evidence is not None:
        script: Any = None if evidence.get("refused") else dict(_labelled(evidence))
    elif name in given:
        script = given[name]
    else:
        raise ConfigurationError(
            f"The script has no answer to {name!r} (writing the answer). Its names are {[*given]}."
        )
    if script is None:
        return _Scripted(kind, values, labels, None)
    return _Scripted(kind, values, labels, _shares(name, kind, values, labels, script))


def _labelled(evidence: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    for value, share in zip(evidence["values"], evidence["probabilities"], strict=True):
        yield label_of(value), share


def _described(question: JsonObject) -> tuple[Literal["bool", "choice", "score"], list[Any], list[str]]:
    levels = question.get("x-levels")
    if isinstance(levels, list):
        return "score", [*range(len(levels))], [str(cast(JsonObject, level)["label"]) for level in levels]
    if question.get("type") == "boolean":
        return "bool", [True, False], ["true", "false"]
    values: list[Any] = [*cast("list[JsonValue]", question["enum"])]
    return "choice", values, [*map(label_of, values)]


def _shares(name: str, kind: str, values: list[Any], labels: list[str], script: Any) -> list[float]:
    if isinstance(script, dict):
        by_label = cast("dict[str, float]", script)
        keys = labels if kind != "score" or set(by_label) <= set(labels) else [*map(str, values)]
        return [float(by_label.get(key, 0.0)) for key in keys]
    if isinstance(script, list):
        return [float(share) for share in cast("list[float]", script)]
    if values == [True, False] and isinstance(script, int | float) and not isinstance(script, bool):
        return [float(script), 1 - float(script)]
    if kind == "score" and isinstance(script, int | float):
        return [max(0.0, 1 - abs(script - level)) for level in values]
    if (label := label_of(script)) in labels:
        return [float(label == each) for each in labels]
    raise ConfigurationError(f"{script!r:.60} is no answer to {name!r} (writing the answer). Its values are {labels}.")


def _text_messages(text: str) -> tuple[Message, ...]:
    return (Message.user(text),)


class _NamedQuestions(FakeWire):
    """Questions by name in an object, with criteria: System One's form."""

    least_choices: ClassVar[int] = 1
    most_choices: ClassVar[int] = 255
    least_levels: ClassVar[int] = 1
    most_levels: ClassVar[int] = 10
    bool_criteria: ClassVar[tuple[str, str]] = ("true", "false")

    def split(self, body: JsonObject, parsed: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        raise ConfigurationError("This endpoint does not stream.")

    def schema(self, questions: RequestNode) -> ResponseFormat:
        """Return the questions as the schema of an output. Raises ``InvalidValue`` for a question that the host refuses."""
        named = {name: questions[name] for name in questions.fields()}
        if not named:
            raise InvalidValue("empty", questions.path)
        members: JsonObject = {name: self._question(node) for name, node in named.items()}
        return ResponseFormat({"type": "object", "properties": members, "required": [*members]})

    def _question(self, node: RequestNode) -> JsonObject:
        kind = node["type"].text({"noul", "choice", "score"})
        node.fields({"type", "instructions", "criteria"})
        described: JsonObject = {"description": self.instructions(node)}
        if kind == "noul":
            criteria = node.get("criteria")
            given: Mapping[str, Any] = criteria.fields(set(self.bool_criteria)) if criteria else {}
            meanings = zip(("true", "false"), self.bool_criteria, strict=True)
            return {
                **described,
                "type": "boolean",
                "x-criteria": {to: _content_text(given[of]) for to, of in meanings if given.get(of)},
            }
        if kind == "choice":
            options = node["criteria"]
            self._count(options, len(options.fields()), self.least_choices, self.most_choices)
            meanings_by_label: JsonObject = {
                name: _content_text(text) for name, text in options.fields().items() if text
            }
            return {**described, "enum": [*options.fields()], "x-criteria": meanings_by_label}
        levels = node["criteria"].items()
        self._count(node["criteria"], len(levels), self.least_levels, self.most_levels)
        labels: list[JsonValue] = [{"label": _content_text(level.value)} for level in levels]
        return {**described, "type": "number", "x-levels": labels}

    def instructions(self, node: RequestNode) -> str:
        """Return the instructions of a question, as text."""
        given = node["instructions"]
        parts = given.items(filled=True) if given.kind == "array" else [given]
        return " ".join(part.text() if part.kind == "string" else part["text"].text() for part in parts)

    def _count(self, node: RequestNode, count: int, least: int, most: int) -> None:
        if count < least:
            raise node.wrong(
                f"Value should have at least {least} item{'s' * (least > 1)} after validation, not {count}"
            )
        if count > most:
            raise node.wrong(f"Value should have at most {most} items after validation, not {count}")

    def answers(self, response: Response, parsed: ParsedRequest) -> JsonObject:
        """Return the answers by name."""
        return {name: _named_answer(name, each) for name, each in _answers(response, parsed).items()}


def _named_answer(name: str, answer: _Scripted) -> JsonObject:
    if answer.shares is None:
        raise ConfigurationError(
            f"This host refuses no single question (writing the answer to {name!r}). Script a value."
        )
    if answer.kind == "bool":
        return {"type": "noul", "noul": answer.shares[0], "confidence": answer.confidence}
    if answer.kind == "choice":
        shares: JsonObject = dict(zip(answer.labels, answer.shares, strict=True))
        return {"type": "choice", "choice": answer.best, "confidence": answer.confidence, "probabilities": shares}
    return {
        "type": "score",
        "score": answer.mean,
        "confidence": answer.confidence,
        "legend": {str(level): label for level, label in enumerate(answer.labels)},
        "probabilities": {str(level): share for level, share in enumerate(answer.shares)},
    }


def _content_text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


class SystemOne(_NamedQuestions):
    """``POST /v1/systemone``. Content is text, an object or an array; instructions may be missing."""

    name = "system-one"
    route = re.compile(r"/v1/systemone")
    statuses: ClassVar[Mapping[str, Status]] = {
        **{kind: (status, f"{kind}_error", None) for kind, status in USUAL_STATUSES.items()},
        "auth": (401, "authentication_error", None),
        "bad_request": (422, "validation_error", None),
    }
    wrong_key = "Invalid API key."
    no_key = Fault("auth", "Missing API key.")
    no_such_model = "Unknown model: {model}"

    def status(self, fault: Fault) -> Status:
        return (400, "invalid_request_error", None) if fault.kind == "not_found" else super().status(fault)

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        model, state = body["model"].text(), body["state"]
        if state.kind not in ("object", "array"):
            state.text()
        text = _content_text(state.value)
        return ParsedRequest(model, Request(_text_messages(text), response_format=self.schema(body["questions"])))

    def instructions(self, node: RequestNode) -> str:
        given = node.get("instructions")
        if given is None and node["type"].value == "noul" and not node.has("criteria"):
            given = node["instructions"]
        return "" if given is None else _content_text(given.value)

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        usage = usage_of(response, parsed)
        counts: JsonObject = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        answers = self.answers(response, parsed)
        return {"model": response.model or parsed.model, "answers": answers, "usage": counts}

    def describe(self, error: InvalidValue) -> Fault:
        texts = {
            "missing": "Field required",
            "unknown": "Extra inputs are not permitted",
            "empty": "Dictionary should have at least 1 item after validation, not 0",
            "type": f"Input should be a valid {error.wanted}",
        }
        return Fault("bad_request", texts.get(error.kind, error.text), param=dotted_path(("body", *error.path)))

    def refuse(self, fault: Fault, request_id: str) -> JsonObject:
        status, kind, _ = self.status(fault)
        if status == 422:
            place: list[JsonValue] = [*(fault.param or "body").split(".")]
            return {"detail": [{"loc": place, "msg": fault.message, "type": kind}]}
        return {"detail": {"error_type": kind, "message": fault.message}}

    def headers(self, fault: Fault | None, request_id: str) -> Mapping[str, str]:
        return {**super().headers(fault, request_id), "x-typesafe-request-id": request_id}


class GeminiDecisions(_NamedQuestions, Gemini):
    """``POST /v1/decisions`` below a base URL of its own, since OpenAI's endpoint has the same path."""

    name = "gemini-decisions"
    base = "/gemini-decisions"
    route = re.compile(r"/gemini-decisions/v1(?:alpha|beta)?/decisions")
    least_choices = 2
    least_levels, most_levels = 2, 255
    bool_criteria = ("true_description", "false_description")

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        body.fields({"model", "input", "questions"})
        questions = body["questions"]
        if len(questions.fields()) > 1000:
            raise questions.wrong(f"At most 1000 questions per request, got {len(questions.fields())}.")
        for name in questions.fields():
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise questions.wrong(f"Invalid question ID '{name}'.")
        given = body["input"]
        blocks = given.items(filled=True) if given.kind == "array" else [given]
        parts = (TextPart(given.text()),) if given.kind == "string" else tuple(map(_block, blocks))
        request = Request((Message("user", parts),), response_format=self.schema(questions))
        return ParsedRequest(body["model"].text().removeprefix("models/"), request)

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        usage, refusal = usage_of(response, parsed), response.choices[0].refusal
        counts: JsonObject = {
            "total_input_tokens": usage.input_tokens,
            "total_output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        }
        if refusal is not None:
            return {"prompt_feedback": {"block_reason": "safety", "block_reason_message": refusal}, "usage": counts}
        return {"answers": self.answers(response, parsed), "usage": counts}


def _block(node: RequestNode) -> Part:
    kind = node["type"].text({"text", "image", "audio", "document", "video"})
    if kind == "text":
        node.fields({"type", "text"})
        return TextPart(node["text"].text())
    node.fields(_MEDIA_FIELDS)
    uri, data, media_type = (node.text_at(name) or None for name in ("uri", "data", "mime_type"))
    if uri is None:
        for name in ("data", "mime_type"):
            node[name].text()
    if kind == "audio" and data is not None:
        return AudioPart(data, (media_type or "").partition("/")[2])
    make = ImagePart if kind == "image" else FilePart
    return make(url=uri, data=data, media_type=media_type)


_MEDIA_FIELDS = frozenset("type data mime_type uri resolution processing channels sample_rate".split())


# --- OpenAI


_FIELDS = frozenset({"input", "model", "questions", "prompt_cache_key", "prompt_cache_options", "safety_identifier"})
_ITEMS = frozenset({"message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"})
_KINDS = {"predicate": {"type", "name", "instructions"}, "choice": {"choices"}, "score": {"levels"}}
_ROLES: Mapping[str, Any] = {"user": "user", "system": "system", "developer": "system", "assistant": "assistant"}


class OpenAIDecisions(OpenAIWire):
    """``POST /v1/decisions``."""

    name = "decisions"
    route = re.compile(r"/v1/decisions")

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        body.fields(_FIELDS)
        model, questions = body["model"].text(), _sized(body["questions"], 1, 400)
        options: JsonObject = {}
        if user := body.get("safety_identifier"):
            options["user"] = user.text()
        if key := body.get("prompt_cache_key"):
            options["prompt_cache"] = {"key": key.text()}
        members: JsonObject = {}
        for number, question in enumerate(questions):
            name = question.text_at("name") or f"#{number}"
            if name in members:
                raise question["name"].wrong(f"Duplicate question name: '{name}'.")
            members[name] = _listed_question(question)
        schema: JsonObject = {"type": "object", "properties": members, "required": [*members]}
        return ParsedRequest(model, Request(_input(body["input"]), (), None, None, ResponseFormat(schema), options))

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        return {
            "answers": [_listed_answer(name, answer) for name, answer in _answers(response, parsed).items()],
            "model": response.model or parsed.model,
            "usage": detailed_counts(usage_of(response, parsed)),
        }

    def split(self, body: JsonObject, parsed: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        raise ConfigurationError("This endpoint does not stream.")


def _sized(node: RequestNode, least: int, most: int) -> list[RequestNode]:
    items = node.items(filled=True)
    place, count = dotted_path(node.path), len(items)
    for word, limit, is_wrong in (("short", least, count < least), ("long", most, count > most)):
        if is_wrong:
            bound = "minimum" if word == "short" else "maximum"
            raise node.wrong(
                f"Invalid '{place}': array too {word}. Expected an array with {bound} length {limit}, but got an array with "
                f"length {count} instead."
            )
    return items


def _listed_question(node: RequestNode) -> JsonObject:
    kind = node["type"].text(_KINDS)
    node.fields(_KINDS["predicate"] | _KINDS[kind])
    instructions = node["instructions"]
    described: JsonObject = {"description": instructions.text() if instructions.kind == "string" else "(parts)"}
    if kind == "predicate":
        return {**described, "type": "boolean"}
    if kind == "choice":
        values, meanings = _options(node["choices"], 2, 255, "value")
        return {**described, "enum": values, "x-criteria": meanings}
    labels, meanings = _options(node["levels"], 2, 10, "label")
    levels: list[JsonValue] = [{"label": label, "description": meanings.get(str(label), "")} for label in labels]
    return {**described, "type": "number", "x-levels": levels}


def _options(node: RequestNode, least: int, most: int, key: str) -> tuple[list[JsonValue], JsonObject]:
    values: list[JsonValue] = []
    meanings: JsonObject = {}
    for item in _sized(node, least, most):
        item.fields({key, "description"})
        value = item[key].value if key == "value" and item[key].kind == "boolean" else item[key].text()
        if any(type(value) is type(other) and value == other for other in values):
            raise item.wrong(f"Duplicate {key}: {label_of(value)!r}.")
        values.append(value)
        if meaning := item.text_at("description"):
            meanings[label_of(value)] = meaning
    return values, meanings


def _listed_answer(name: str, answer: _Scripted) -> JsonObject:
    named: JsonObject = {"name": None if name.startswith("#") else name}
    if answer.shares is None:
        return {"type": "refusal", **named}
    if answer.kind == "bool":
        return {"type": "predicate", **named, "probability": answer.shares[0]}
    pairs: Sequence[Any] = [*zip(answer.values, answer.labels, answer.shares, strict=True)]
    if answer.kind == "choice":
        shares: list[JsonValue] = [{"value": value, "probability": share} for value, _, share in pairs]
        return {
            "type": "choice",
            **named,
            "choice": answer.best,
            "confidence": answer.confidence,
            "probabilities": shares,
        }
    levels: list[JsonValue] = [{"value": value, "label": label, "probability": p} for value, label, p in pairs]
    return {"type": "score", **named, "score": answer.mean, "confidence": answer.confidence, "probabilities": levels}


def _input(node: RequestNode) -> tuple[Message, ...]:
    if node.kind == "string":
        return _text_messages(node.text())
    calls: dict[str, str] = {}
    messages: list[Message] = []
    for item in node.items(filled=True):
        kind = item["type"].text(_ITEMS) if item.has("type") else "message"
        role, parts = _read_item(item, kind, calls)
        if messages and messages[-1].role == role and role in ("assistant", "tool"):
            parts = (*messages.pop().parts, *parts)
        messages.append(Message(role, parts))
    return tuple(messages)


def _read_item(item: RequestNode, kind: str, calls: dict[str, str]) -> tuple[Any, tuple[Part, ...]]:
    if kind == "message":
        item.fields({"type", "role", "content", "phase"})
        role = item["role"].text(_ROLES)
        return _ROLES[role], _content(item["content"], role)
    id = item["call_id"].text()
    if kind.endswith("_output"):
        item.fields({"type", "id", "call_id", "output", "status"})
        if id not in calls:
            raise InvalidValue(
                "value", ("input",), text=f"No tool call found for function call output with call_id {id}."
            )
        parts = _content(item["output"], "result")
        text = "".join(part.text for part in parts if isinstance(part, TextPart))
        return "tool", (ToolResult(id, calls[id], text, media=tuple(p for p in parts if isinstance(p, ImagePart))),)
    item.fields({"type", "id", "call_id", "name", "arguments", "input", "namespace", "status"})
    calls[id] = item["name"].text()
    given = item["arguments" if kind == "function_call" else "input"].text()
    return "assistant", (ToolCall.read(id, calls[id], given),)


_PARTS: Mapping[str, frozenset[str]] = {
    "user": frozenset({"input_text", "input_image", "input_json"}),
    "result": frozenset({"input_text", "input_image"}),
    "system": frozenset({"input_text"}),
    "developer": frozenset({"input_text"}),
    "assistant": frozenset({"output_text", "refusal"}),
}


def _content(node: RequestNode, role: str) -> tuple[Part, ...]:
    if node.kind == "string":
        return (TextPart(node.value),) if node.value else ()
    return tuple(_part(part, part["type"].text(_PARTS[role])) for part in node.items())


def _part(node: RequestNode, kind: str) -> Part:
    if kind == "input_image":
        node.fields({"type", "image_url", "detail", "prompt_cache_breakpoint"})
        return image(node["image_url"].text(), node.text_at("detail") or None)
    if kind == "input_json":
        return TextPart(str(node["data"].value))
    return TextPart(node["refusal" if kind == "refusal" else "text"].text())


DECISION_WIRES = (OpenAIDecisions(), SystemOne(), GeminiDecisions())
"""The endpoints, in the order of their profiles."""
