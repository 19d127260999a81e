"""``python -m benchmarks.prompt_tokens``: the tokens of prompts as a markdown table, beside DSPy's if it is installed.

A row is one signature with its demos and inputs, the same for both libraries. The figure is the text of all messages and, with
native tools, their JSON. Tokens are those of ``cl100k_base`` if tiktoken has that vocabulary on disk (litellm ships it:
set ``TIKTOKEN_CACHE_DIR`` to its ``litellm_core_utils/tokenizers``), else an estimate (``benchmarks.type_tokens``).
``--show ROW ADAPTER`` prints one of sigwire's prompts instead.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel

from benchmarks.type_tokens import estimated_tokens
from sigwire import ChatAdapter, InputField, JSONAdapter, OutputField, Signature, Tool, ToolCalls, XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.signatures.types import History

__all__ = ["ADAPTERS", "ROWS", "Row", "prompt", "table"]


class Line(BaseModel):
    description: str
    quantity: int
    unit_price: float


class Invoice(BaseModel):
    number: str
    currency: Literal["EUR", "USD", "GBP"]
    lines: list[Line]
    note: str | None = None


def search(query: str, limit: int = 5) -> list[str]:
    """Search the web for pages."""
    return [query] * limit


def weather(city: str, unit: Literal["C", "F"] = "C") -> str:
    """Return the weather in a city."""
    return f"{city}: 20 {unit}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One prompt: its fields as (type, description), instructions, demos and inputs."""

    instructions: str
    inputs: Mapping[str, tuple[Any, str]]
    outputs: Mapping[str, tuple[Any, str]]
    values: Mapping[str, Any]
    demo: Mapping[str, Any]
    demos: int = 0
    turns: int = 0
    tools: Sequence[Callable[..., Any]] = ()
    native: bool = False


_QA = Row(
    instructions="Answer the question in one sentence.",
    inputs={"question": (str, "")},
    outputs={"answer": (str, "")},
    values={"question": "What is the capital of France?"},
    demo={"question": "What is the capital of Italy?", "answer": "The capital of Italy is Rome."},
)
_LITERALS = Row(
    instructions="Classify a support ticket.",
    inputs={"ticket": (str, "the text of the ticket")},
    outputs={
        "category": (Literal["billing", "bug", "feature", "other"], "what it is about"),
        "urgency": (Literal["low", "medium", "high"], ""),
    },
    values={"ticket": "I was charged twice this month."},
    demo={"ticket": "The app crashes at start.", "category": "bug", "urgency": "high"},
)
_NESTED = Row(
    instructions="Read an invoice.",
    inputs={"text": (str, "")},
    outputs={"invoice": (Invoice, ""), "total": (float, "the sum of all lines")},
    values={"text": "Invoice A-2: 3 pencils at 0.50 EUR."},
    demo={
        "text": "Invoice A-1: 2 pens at 1.50 EUR.",
        "invoice": Invoice(number="A-1", currency="EUR", lines=[Line(description="Pen", quantity=2, unit_price=1.5)]),
        "total": 3.0,
    },
)
_TOOLS = replace(_QA, tools=(search, weather))
ROWS: Mapping[str, Row] = {
    "QA": _QA,
    "literals": _LITERALS,
    "nested": _NESTED,
    "two tools, text": _TOOLS,
    "two tools, native": replace(_TOOLS, native=True),
    "QA, 8 demos": replace(_QA, demos=8),
    "literals, 8 demos": replace(_LITERALS, demos=8),
    "nested, 8 demos": replace(_NESTED, demos=8),
    "two tools, text, 8 demos": replace(_TOOLS, demos=8),
    "QA, 4 turns": replace(_QA, turns=4),
}
ADAPTERS: Mapping[str, type[ChatAdapter | JSONAdapter | XMLAdapter]] = {
    "chat": ChatAdapter,
    "JSON": JSONAdapter,
    "XML": XMLAdapter,
}


def prompt(row: Row, adapter: str) -> tuple[list[tuple[str, str]], str]:
    """Return sigwire's messages as (role, text), and the JSON of native tools."""
    fields: dict[str, Any] = {}
    if row.turns:
        fields["history"] = (History, InputField())
    fields |= {name: (kind, InputField(desc=desc or None)) for name, (kind, desc) in row.inputs.items()}
    if row.tools:
        fields["tools"] = (list[Tool], InputField())
    fields |= {name: (kind, OutputField(desc=desc or None)) for name, (kind, desc) in row.outputs.items()}
    if row.tools:
        fields["tool_calls"] = (ToolCalls, OutputField())
    signature = Signature(fields, row.instructions)
    values = dict(row.values)
    if row.tools:
        values["tools"] = [Tool(tool) for tool in row.tools]
    if row.turns:
        values["history"] = History([dict(row.demo)] * row.turns)
    plan = ADAPTERS[adapter]().plan(signature, Capabilities(native_tools=row.native))
    request = plan.format(values, [dict(row.demo)] * row.demos)
    messages: list[tuple[str, str]] = [(message.role, message.text) for message in request.messages]
    return messages, json.dumps(request.tools) if request.tools else ""


def _dspy_prompt(row: Row, adapter: str) -> tuple[list[tuple[str, str]], str]:
    dspy: Any = importlib.import_module("dspy")
    fields: dict[str, Any] = {}
    if row.turns:
        fields["history"] = (dspy.History, dspy.InputField())
    fields |= {name: (kind, dspy.InputField(**_desc(desc))) for name, (kind, desc) in row.inputs.items()}
    if row.tools:
        fields["tools"] = (list[dspy.Tool], dspy.InputField())
    fields |= {name: (kind, dspy.OutputField(**_desc(desc))) for name, (kind, desc) in row.outputs.items()}
    if row.tools:
        fields["tool_calls"] = (dspy.ToolCalls, dspy.OutputField())
    signature = dspy.Signature(fields, row.instructions)
    values = dict(row.values)
    if row.tools:
        values["tools"] = [dspy.Tool(tool) for tool in row.tools]
    if row.turns:
        values["history"] = dspy.History(messages=[dict(row.demo)] * row.turns)
    asked: list[tuple[Any, Any]] = []

    def record(lm: Any, prompt: Any = None, messages: Any = None, **options: Any) -> Any:
        asked.append((messages, options.get("tools")))
        raise _Recorded

    recorder = type("Recorder", (dspy.LM,), {"supports_function_calling": row.native, "__call__": record})
    form = getattr(dspy, f"{adapter.title() if adapter == 'chat' else adapter}Adapter")
    try:
        form(use_native_function_calling=row.native)(
            recorder("openai/gpt-4o-mini", cache=False), {}, signature, [dict(row.demo)] * row.demos, values
        )
    except Exception:
        if not asked:
            raise
    messages, tools = asked[0]
    return [(message["role"], _text(message["content"])) for message in messages], json.dumps(tools) if tools else ""


class _Recorded(Exception):
    """Raised after the first prompt was recorded."""


def _desc(text: str) -> dict[str, str]:
    return {"desc": text} if text else {}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content or ())


# --- counting ----------------------------------------------------------------------------------------


def _counter() -> tuple[str, Callable[[str], int]]:
    try:
        tiktoken: Any = importlib.import_module("tiktoken")
        encode: Callable[..., list[int]] = tiktoken.get_encoding("cl100k_base").encode
    except Exception:
        return "estimated tokens", estimated_tokens
    return "cl100k_base tokens", lambda text: len(encode(text, disallowed_special=()))


def _has_dspy() -> bool:
    return importlib.util.find_spec("dspy") is not None


def table() -> str:
    """Return the markdown table: sigwire, and after a stroke DSPy where it is importable."""
    unit, count = _counter()
    forms = [prompt, _dspy_prompt] if _has_dspy() else [prompt]

    def cell(row: Row, adapter: str) -> str:
        found = [form(row, adapter) for form in forms]
        return " / ".join(str(sum(count(text) for _, text in messages) + count(tools)) for messages, tools in found)

    lines = [f"| {unit}{': sigwire / DSPy' * (len(forms) > 1)} | {' | '.join(ADAPTERS)} |", "|---|---|---|---|"]
    for name, row in ROWS.items():
        lines.append(f"| {name} | {' | '.join(cell(row, adapter) for adapter in ADAPTERS)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.prompt_tokens", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--show", nargs=2, metavar=("ROW", "ADAPTER"), help="print one prompt")
    options = parser.parse_args()
    if not options.show:
        print(table())
        return
    messages, tools = prompt(ROWS[options.show[0]], options.show[1])
    for role, text in messages:
        print(f"--- {role} ---\n{text}\n")
    print(tools)


if __name__ == "__main__":
    main()
