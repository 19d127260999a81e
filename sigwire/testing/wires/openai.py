"""The common part of OpenAI's two wires: key, names, schemas, error texts."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from sigwire.core.json import JsonObject
from sigwire.core.parts import ImagePart
from sigwire.core.request import ResponseFormat
from sigwire.core.response import Usage
from sigwire.core.tools.choice import ToolChoice
from sigwire.testing.answers import Fault, FaultKind
from sigwire.testing.rate_limit import Quota
from sigwire.testing.request_node import InvalidValue, Path, RequestNode
from sigwire.testing.wire import FakeWire, Rejected, Status, spec, tool_names

__all__ = [
    "OpenAIWire", "check_length", "check_name", "detailed_counts", "duration", "image", "padding", "read_choice",
    "read_effort", "read_format", "read_function", "stream_options",
]  # fmt: skip

EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# Keywords that a strict schema must not have.
NOT_STRICT = frozenset(
    """allOf not if then else dependentRequired dependentSchemas patternProperties propertyNames minProperties maxProperties
    uniqueItems contains minContains maxContains unevaluatedItems unevaluatedProperties minLength maxLength default
    oneOf""".split()
)


class OpenAIWire(FakeWire):
    """The part of an OpenAI wire that does not depend on the endpoint."""

    base = "/v1"
    wrong_key = (
        "Incorrect API key provided: ***. You can find your API key at https://platform.openai.com/account/api-keys."
    )
    no_key = Fault(
        "auth",
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
        "(i.e. Authorization: Bearer YOUR_KEY).",
    )
    no_such_model = "The model `{model}` does not exist or you do not have access to it."
    statuses: ClassVar[Mapping[str, Status]] = {
        "auth": (401, "invalid_request_error", "invalid_api_key"),
        "bad_request": (400, "invalid_request_error", None),
        "billing": (429, "insufficient_quota", "insufficient_quota"),
        "content_filter": (400, "invalid_request_error", "content_policy_violation"),
        "context_length": (400, "invalid_request_error", "context_length_exceeded"),
        "not_found": (404, "invalid_request_error", "model_not_found"),
        "overloaded": (503, "service_unavailable_error", "server_is_overloaded"),
        "permission": (403, "invalid_request_error", None),
        "rate_limit": (429, "requests", "rate_limit_exceeded"),
        "server": (500, "server_error", None),
        "timeout": (408, "timeout", None),
        "too_large": (413, "invalid_request_error", None),
    }

    messages: ClassVar[Mapping[FaultKind, str]] = {
        "rate_limit": "Rate limit reached for requests per min (RPM). Visit https://platform.openai.com/account/rate-limits.",
        "billing": "You exceeded your current quota, please check your plan and billing details.",
        "context_length": "This model's maximum context length is 128000 tokens. Your messages resulted in 130000 tokens.",
    }

    def describe(self, error: InvalidValue) -> Fault:
        place = dotted_path(error.path)
        text, code = {
            "missing": (f"Missing required parameter: '{place}'.", "missing_required_parameter"),
            "unknown": (f"Unknown parameter: '{place}'.", "unknown_parameter"),
            "empty": (f"Invalid '{place}': empty array. Expected an array with minimum length 1.", "empty_array"),
            "type": (
                f"Invalid type for '{place}': expected {_a(error.wanted)}, but got {_a(error.found)} instead.",
                "invalid_type",
            ),
            "value": (error.text, "invalid_value"),
        }[error.kind]
        return Fault("bad_request", text, code=code, param=place)

    def refuse(self, fault: Fault, request_id: str) -> JsonObject:
        _, kind, code = self.status(fault)
        return {"error": {"message": fault.message, "type": kind, "param": fault.param, "code": code}}

    def headers(self, fault: Fault | None, request_id: str) -> Mapping[str, str]:
        return {**super().headers(fault, request_id), "x-request-id": request_id}

    def quota_headers(self, quotas: Sequence[Quota]) -> Mapping[str, str]:
        headers: dict[str, str] = {}
        for name, limit, remaining, reset in quotas:
            headers[f"x-ratelimit-limit-{name}"] = str(limit)
            headers[f"x-ratelimit-remaining-{name}"] = str(remaining)
            headers[f"x-ratelimit-reset-{name}"] = duration(reset)
        return headers


def duration(seconds: float) -> str:
    """Return seconds as OpenAI's reset headers write a duration.

    >>> duration(0.12), duration(1.5), duration(360)
    ('120ms', '1.5s', '6m0s')
    """
    milliseconds = math.ceil(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes}m{rest / 1000:g}s" if minutes else f"{rest / 1000:g}s"


def padding(text: str) -> str:
    """Return random padding for a delta, which hides the length of its text."""
    return "x" * (16 - len(text) % 16)


def detailed_counts(usage: Usage) -> JsonObject:
    """Return the token counts of a reply of Responses and of decisions."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.total_tokens,
    }


def stream_options(body: RequestNode, known: Collection[str]) -> tuple[bool, RequestNode]:
    """Parse the stream options of a request."""
    streamed, options = body.flag_at("stream"), body.get("stream_options")
    if options is None:
        return streamed, RequestNode({}, ("stream_options",))
    if not streamed:
        raise options.wrong("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    options.fields(known)
    return streamed, options


def dotted_path(path: Path) -> str:
    """Return a path in OpenAI's form: ``messages[0].content``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _a(name: str) -> str:
    return name if name == "null" else f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


def check_name(node: RequestNode) -> str:
    """Return the name of a tool or a format."""
    name = check_length(node, 64)
    if not NAME.fullmatch(name):
        raise node.wrong(
            f"Invalid '{dotted_path(node.path)}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'."
        )
    return name


def check_length(node: RequestNode, most: int) -> str:
    """Return a text of at most so many characters."""
    if len(text := node.text()) > most:
        raise node.wrong(
            f"Invalid '{dotted_path(node.path)}': string too long. Expected a string with maximum length {most}, but got a "
            f"string with length {len(text)} instead."
        )
    return text


def read_function(function: RequestNode, *, defer: bool = False) -> JsonObject:
    """Return a function tool. Without ``strict`` the provider makes schemas strict itself: only an explicit true is checked."""
    name, parameters = check_name(function["name"]), function.get("parameters")
    if parameters:
        _check_schema(parameters, f"function '{name}'", function.flag_at("strict"), "invalid_function_parameters")
    return spec(name, function.text_at("description"), parameters.value if parameters else {}, defer=defer)


def read_format(node: RequestNode | None, nested: str | None, code: str) -> ResponseFormat | None:
    """Return an output format. ``nested``: the member that holds the schema's; ``code``: of the error for a wrong schema."""
    kind = node["type"].text({"text", "json_object", "json_schema"}) if node else "text"
    if node is None or kind != "json_schema":
        return ResponseFormat() if kind == "json_object" else None
    described = node[nested] if nested else node
    described.fields({"name", "description", "schema", "strict", *(() if nested else ("type",))})
    name, schema = check_name(described["name"]), described["schema"]
    _check_schema(schema, f"response_format '{name}'", described.flag_at("strict"), code)
    return ResponseFormat(schema.value, name)


def read_effort(node: RequestNode | None) -> JsonObject:
    """Return the option of an effort."""
    effort = node.text(EFFORTS) if node else None
    return {} if effort is None else {"reasoning": "off" if effort == "none" else effort}


def _check_schema(node: RequestNode, owner: str, strict: bool, code: str) -> None:
    schema = node.fields()
    if schema and schema.get("type") != "object":
        found = f"got 'type: \"{schema.get('type')}\"'."
        raise _invalid(node, owner, f"schema must be a JSON Schema of 'type: \"object\"', {found}", code)
    for place in node.walk() if strict else ():
        if problem := _not_strict(place):
            raise _invalid(node, owner, f"In context={place.path[len(node.path) :]}, {problem}", code)


def _invalid(node: RequestNode, owner: str, problem: str, code: str) -> Rejected:
    return Rejected(
        Fault("bad_request", f"Invalid schema for {owner}: {problem}", code=code, param=dotted_path(node.path))
    )


def _not_strict(node: RequestNode) -> str | None:
    if node.kind != "object" or node.path[-1:] == ("properties",):
        return None
    schema = node.fields()
    if forbidden := sorted(schema.keys() & NOT_STRICT):
        return f"'{forbidden[0]}' is not permitted."
    if not node.has("properties"):
        return None
    if schema.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    required = [item.value for item in node["required"].items()] if node.has("required") else []
    if missing := [name for name in node["properties"].fields() if name not in required]:
        return (
            "'required' is required to be supplied and to be an array including every key in properties. "
            f"Missing '{missing[0]}'."
        )
    return None


def image(url: str, detail: str | None) -> ImagePart:
    """Return an image by its URL, which can be a data URL."""
    if found := re.fullmatch(r"data:([^;,]+);base64,(.*)", url, re.DOTALL):
        return ImagePart(data=found[2], media_type=found[1], detail=detail)
    return ImagePart(url=url, detail=detail)


def read_choice(node: RequestNode | None, tools: tuple[JsonObject, ...], *, nested: bool) -> ToolChoice | None:
    """Return the choice of tools. ``nested``: its members stand in an object by the name of its type."""
    if node is None:
        return None
    if node.kind == "string":
        return _MODES[node.text(_MODES)]
    if (kind := node["type"].text({"function", "allowed_tools"})) == "function":
        node.fields(None if nested else {"type", "name"})
        return ToolChoice.named(_offered_name(node, tools, nested))
    allowed = node[kind] if nested else node
    names = tuple(_offered_name(tool, tools, nested) for tool in allowed["tools"].items(filled=True))
    return ToolChoice("required" if allowed["mode"].text({"auto", "required"}) == "required" else "auto", names)


_MODES = {"auto": ToolChoice.AUTO, "none": ToolChoice.NONE, "required": ToolChoice.REQUIRED}


def _offered_name(function: RequestNode, tools: tuple[JsonObject, ...], nested: bool) -> str:
    node = (function["function"] if nested else function)["name"]
    if node.text() not in tool_names(tools):
        raise node.wrong(f"Tool choice '{node.value}' not found in 'tools' parameter.")
    return node.text()
