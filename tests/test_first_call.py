"""The modules that a first call loads over each wire. Every other module is loaded on first use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from sigwire.testing import FakeProvider

ROOT = Path(__file__).resolve().parent.parent

# Runs in a fresh interpreter, which prints the answer and the loaded modules.
PROGRAM = """
import json, sys
before = set(sys.modules)
import sigwire
lm = sigwire.LM({model!r}, api_key="any", base_url={url!r}, {options})
predict = sigwire.Predict("question -> answer, confidence: float, known: bool, tries: int")
predict.set_lm(lm)
said = predict(question="When was it opened?")
{then}
print(json.dumps([[said.answer, said.confidence, said.known, said.tries], sorted(set(sys.modules) - before)]))
"""
ANSWER = "\n\n".join(
    f"[[ ## {name} ## ]]\n{value}"
    for name, value in (("answer", "1932"), ("confidence", "0.9"), ("known", "true"), ("tries", "3"), ("completed", ""))
)
WIRES = {
    "openai": ("openai/gpt-4o-mini", "", {"openai_chat"}),
    "openai-responses": ("openai/gpt-4o-mini", "wire='responses'", {"openai_responses"}),
    "anthropic": ("anthropic/claude-sonnet-4-5", "", {"anthropic"}),
    "gemini": ("gemini/gemini-2.5-flash", "", {"gemini"}),
    "ollama": ("ollama/qwen3", "", {"ollama"}),
    "bedrock": ("bedrock/amazon.nova-lite-v1:0", "", {"bedrock_converse"}),
}
"""The model, what else it takes, and the codecs it needs. Responses tokens_by_text tables with the chat wire."""

FOREIGN = (
    # importlib.metadata: what pydantic looks for plugins with. encodings.idna: for hosts whose names are not ASCII.
    "aiohttp asyncio docstring_parser email encodings.idna hashlib http importlib.metadata jsonschema litellm "
    "botocore pydantic sqlite3 ssl urllib.request"
).split()
STREAMS = "core.events lm.codecs.shared.framing lm.http.reply_stream lm.stream_events adapters.streaming".split()
TOOLS = (
    "core.tools.docstring core.tools.mcp core.tools.function core.schema modules.agents.react modules.agents.toolbox "
    "adapters.text_tools.grammar adapters.text_tools.reader adapters.text_tools.registry"
).split()
OTHERS = (
    "adapters.json adapters.two_step adapters.xml cli dspy lm.http.async_client lm.fake lm.litellm.backend "
    "lm.litellm.effects lm.offline modules.batch modules.chain_of_thought testing"
).split()
CODECS = {"anthropic", "bedrock_converse", "gemini", "ollama", "openai_chat", "openai_responses"}


def ours(names: Iterable[str]) -> set[str]:
    return {f"sigwire.{name}" for name in names}


def loaded(place: str, then: str = "") -> set[str]:
    """The modules that are loaded after a first call over a wire."""
    model, options, _ = WIRES[place]
    with FakeProvider([ANSWER] * 2) as provider:
        program = PROGRAM.format(model=model, options=options, url=provider.url(place), then=then)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    answer, modules = json.loads(done.stdout)
    assert answer == ["1932", 0.9, True, 3]
    return set(modules)


@pytest.mark.parametrize("place", WIRES)
def test_first_blocking_call_loads_only_what_it_needs(place: str) -> None:
    modules = loaded(place)
    assert modules & {*FOREIGN, *ours(STREAMS), *ours(TOOLS), *ours(OTHERS)} == set()
    spoken = {name for name in CODECS if f"sigwire.lm.codecs.{name}" in modules}
    assert spoken == WIRES[place][2]
    parts = {f"lm.codecs.{codec}.{part}" for codec in spoken for part in ("rejected_call", "stream_decoder")}
    assert modules & ours(parts) == set()


def test_lazy_modules_load_when_used() -> None:
    then = "list(predict.stream(question='And now?')); sigwire.Tool(print, name='say'); sigwire.ReAct"
    tools = ours(["core.tools.docstring", "core.tools.function", "modules.agents.react", "modules.agents.toolbox"])
    assert ours(STREAMS) | tools <= loaded("openai", then)
