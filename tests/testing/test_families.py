"""The fake provider refuses what the vendor of a model refuses, whichever host serves it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.errors import LMError
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider
from sigwire.testing.families import RULES, check_family
from sigwire.testing.request_node import InvalidValue
from sigwire.testing.wire import ParsedRequest
from tests.lm.test_families import CASES, CLAUDE_DOORS, NEWER, lm_at

# A temperature above 2 is a rule of hosts, and checked by their wires.
REFUSED = {name: case for name, case in CASES.items() if "above 2" not in name}
ASKED = Message.user("q")
OTHER: list[tuple[str, Request]] = [
    ("claude-opus-4-8", Request((ASKED,), options={"temperature": 1})),
    ("claude-sonnet-4-5", Request((ASKED,), options={"reasoning": {"budget": 4096}, "max_tokens": 4096})),
    *((model, Request((ASKED, Message.assistant("a")))) for model in NEWER.values()),
    *(
        (model, Request((ASKED,), options={"max_tokens": 300_000}))
        for model in ("claude-3-haiku", "claude-3-5-sonnet", "claude-opus-4-1", "gpt-4o", "o3", "gpt-5")
    ),
]
BROKEN = [*((model, request) for _, model, request, _ in REFUSED.values()), *OTHER]


@pytest.mark.parametrize("case", REFUSED)
def test_request_that_breaks_a_rule_of_the_family_is_refused(case: str) -> None:
    door, model, request, _ = REFUSED[case]
    with pytest.raises(InvalidValue):
        check_family(ParsedRequest(model, request), door)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.place} {rule.models.pattern}")
def test_each_rule_is_broken_by_a_request_and_names_its_source(rule: Any) -> None:
    texts = [rule.check(ParsedRequest(model, request)) for model, request in BROKEN if rule.models.search(_name(model))]
    assert any(texts)
    assert re.fullmatch(r"https://[^ ]+", rule.source)


def _name(model: Any) -> str:
    return str(model).rpartition("/")[2]


EXTRA: dict[str, tuple[str, str, dict[str, Any]]] = {
    "top_k of another vendor": ("bedrock/us.amazon.nova-pro-v1:0", "extraneous key", {"top_k": 5}),
    "topK of Nova": (CLAUDE_DOORS["bedrock"], "extraneous key", {"inferenceConfig": {"topK": 5}}),
    "top_k to Llama": ("bedrock/us.meta.llama3-3-70b-instruct-v1:0", "extraneous key", {"top_k": 5}),
}


@pytest.mark.parametrize(("model", "text", "fields"), EXTRA.values(), ids=EXTRA)
def test_converse_refuses_a_field_of_another_vendor(model: str, text: str, fields: dict[str, Any]) -> None:
    refuse(model, text, {"additionalModelRequestFields": fields})


PDF: dict[str, Any] = {"format": "pdf", "name": "a", "source": {"bytes": "JVBE"}}
PNG: dict[str, Any] = {"image": {"format": "png", "source": {"bytes": "iVBO"}}}
TEXT = {"text": "q"}
CONTENTS: dict[str, tuple[str, list[Any]]] = {
    "two names alike": ("duplicate document names", [{"document": PDF}, {"document": PDF}, TEXT]),
    "no text": ("must also include a text block", [{"document": PDF}]),
    "six documents": ("more than 5 documents", [*({"document": {**PDF, "name": f"a{n}"}} for n in range(6)), TEXT]),
    "21 images": ("more than 20 images", [*([PNG] * 21), TEXT]),
}


@pytest.mark.parametrize(("text", "content"), CONTENTS.values(), ids=CONTENTS)
def test_converse_refuses_documents_and_images_by_its_rules_of_a_request(text: str, content: list[Any]) -> None:
    refuse("bedrock/us.amazon.nova-pro-v1:0", text, {"messages": [{"role": "user", "content": content}]})


def test_converse_refuses_a_cache_point_for_a_model_without_a_prompt_cache() -> None:
    content = [TEXT, {"cachePoint": {"type": "default"}}]
    body = {"messages": [{"role": "user", "content": content}]}
    refuse("bedrock/us.meta.llama3-3-70b-instruct-v1:0", "prompt caching", body)


def refuse(model: str, text: str, body: dict[str, Any]) -> None:
    with FakeProvider(["ok"]) as provider:
        lm: LM = lm_at(provider, "bedrock", model)
        with pytest.raises(LMError, match=text):
            lm("q", extra_body=body)
