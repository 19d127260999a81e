"""Requests of calls that ask for no evidence: their bytes are those of before evidence was known.

A digest changes with every intended change of prompts: write the new one, which the failure shows.
"""

from __future__ import annotations

import hashlib
from itertools import product
from typing import Any, Literal

import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.json import dumps
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.cache.keys import request_key
from sigwire.modules.predict import Predict
from sigwire.settings import context
from sigwire.signatures.declarations import OutputField
from sigwire.signatures.signature import make_signature

KINDS: list[Any] = [
    bool,
    float,
    int,
    str,
    Literal["a", "b"],
    list[Literal["x", "y"]],
    bool | None,
    list[str],
    dict[str, float],
    list[int],
]
DESCRIPTIONS = ["", "how many", "it's // odd", "two\nlines"]
DIGESTS = {"ChatAdapter": "4589669e058f8ebd", "JSONAdapter": "ef26f2cc04de4959", "XMLAdapter": "248f06cb4389e2f8"}
KEYS = {
    "ChatAdapter": "f3a0a38df4133eaa",
    "JSONAdapter": "400d6618dd559314",
    "XMLAdapter": "8aaf20c5cb76e936",
}  # of the cache


@pytest.mark.parametrize("adapter", [ChatAdapter(), JSONAdapter(), XMLAdapter()], ids=lambda each: type(each).__name__)
def test_requests_of_forty_signatures_keep_their_bytes_and_their_keys_in_the_cache(adapter: Any) -> None:
    digest, keys = hashlib.sha256(), hashlib.sha256()
    for kind, desc in product(KINDS, DESCRIPTIONS):
        signature = make_signature("text -> why").append("found", OutputField(desc=desc or None), kind)
        lm = FakeLM(["no answer"], capabilities=Capabilities(json_schema=True))
        with context(adapter=adapter), pytest.raises(Exception, match="found"):
            Predict(signature, lm=lm, temperature=0.5)(text="x")
        digest.update(dumps(lm.requests[0].to_json()).encode())
        keys.update(request_key(b"a model", lm.requests[0]) or b"")
    assert keys.hexdigest()[:16] == KEYS[type(adapter).__name__]
    assert digest.hexdigest()[:16] == DIGESTS[type(adapter).__name__]
