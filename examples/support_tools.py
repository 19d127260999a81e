"""The data of an optimization example: eight support tools with terse descriptions, and 120 requests (`support_requests.tsv`).

The requests were written for this example, in the words of customers; ``split`` refuses two that share most of their words.
"""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

from support_mail import refuse_duplicates

from sigwire import Example, Tool, ToolCall, ToolCalls

__all__ = ["TOOLS", "split"]


def shipment_events(order_id: int) -> str:
    """Query carrier scan log."""
    return "in transit"


def consignee_update(order_id: int) -> str:
    """Patch recipient record."""
    return "patched"


def order_void(order_id: int) -> str:
    """Set state VOID prior to dispatch."""
    return "void"


def rma_create(order_id: int) -> str:
    """Open inbound RMA."""
    return "RMA-1"


def payment_reversal(order_id: int) -> str:
    """Reverse captured transaction."""
    return "reversed"


def document_emit(order_id: int) -> str:
    """Emit fiscal document."""
    return "emitted"


def ledger_adjust(order_id: int) -> str:
    """Post promotional credit."""
    return "posted"


def claim_file(order_id: int) -> str:
    """Register defect case."""
    return "case 1"


TOOLS = [
    Tool(function)
    for function in (
        shipment_events, consignee_update, order_void, rma_create,
        payment_reversal, document_emit, ledger_adjust, claim_file,
    )
]  # fmt: skip


def split(seed: int = 0) -> tuple[list[Example], list[Example], list[Example]]:
    """Return 48 requests for training, 32 for validation and 40 for the test, of each tool alike.

    >>> [len(part) for part in split()]
    [48, 32, 40]
    """
    with Path(__file__).with_name("support_requests.tsv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    refuse_duplicates([line["request"] for line in lines])
    source = random.Random(seed)
    train: list[Example] = []
    val: list[Example] = []
    test: list[Example] = []
    for tool in TOOLS:
        own = [_example(line["request"], tool.name) for line in lines if line["tool"] == tool.name]
        source.shuffle(own)
        train += own[:6]
        val += own[6:10]
        test += own[10:]
    for part in (train, val, test):
        source.shuffle(part)
    return train, val, test


def _example(request: str, tool: str) -> Example:
    order = re.search(r"\b\d{4}\b", request)
    calls = ToolCalls([ToolCall(id="", name=tool, arguments={"order_id": int(order.group()) if order else 0})])
    return Example(request=request, tools=TOOLS, tool_calls=calls).with_inputs("request", "tools")
