"""A team: an agent whose tools are programs with models of their own: `python examples/team.py`, also a part of `make demo`.

9. Two experts        each is a program with tools of its own; the outer agent sees their answers only
10. An approval inside   a refund waits for a person; its state is JSON; the run goes on where it was
11. A guard            what an expert returns passes a function before a model reads it

The signed-in user is injected: tools get it, no model sees or passes it. A provider on this machine counts the requests; the
tree of each run must have as many. The exit code is 1 otherwise.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.rule import Rule
from shop import Shop

import sigwire
from sigwire import ApprovalNeeded, Injected, InputField, Module, OutputField, ReAct, Signature, Tool, ToolFailed
from sigwire.testing import FakeProvider

STOCK = 'How many units of "oak shelf" are in stock?'
REFUND = "Refund order 1042."

console = Console(highlight=False)


@dataclass(frozen=True)
class User:
    """The signed-in customer."""

    name: str
    orders: frozenset[int]


class Ask(Signature):
    """Answer the customer with the help of the experts."""

    question: str = InputField()
    answer: str = OutputField(desc="the value asked for, and nothing else")


class StockDesk(Module):
    """Answer how many units of a product are in stock.

    Args:
        product: The product's name.
    """

    def __init__(self, shop: Shop) -> None:
        super().__init__()
        self.agent = ReAct(Ask, tools=[shop.check_stock])

    def forward(self, product: str) -> str:
        return str(self.agent(question=f'How many units of "{product}" are in stock?').answer)


class RefundDesk(Module):
    """Refund an order of the customer.

    Args:
        order: The number of the order.
    """

    def __init__(self, refunded: list[int]) -> None:
        super().__init__()

        def refund(order: int, user: Injected[User]) -> str:
            """Refund an order.

            Args:
                order: The number of the order to refund.
            """
            if order not in user.orders:
                raise ToolFailed(f"order {order} is not an order of {user.name}")
            refunded.append(order)
            return f"order {order} refunded, account DE-{order}-77"

        self.agent = ReAct(Ask, tools=[Tool(refund, approve=True)])

    def forward(self, order: int) -> str:
        return str(self.agent(question=f"Refund order {order}.").answer)


def without_accounts(answer: str) -> str:
    """A guard: no number of an account leaves the refund desk."""
    return re.sub(r", account \S+", "", answer)


def make_team(shop: Shop, refunded: list[int]) -> Any:
    refunds = Tool(RefundDesk(refunded), name="ask_refunds").then(without_accounts)
    return ReAct(Ask, tools=[Tool(StockDesk(shop), name="ask_stock"), refunds])


def pending(team: Any) -> tuple[str, str]:
    """Ask for a refund; return the id of the call that waits, and the state of the run as JSON."""
    try:
        team(question=REFUND)
    except ApprovalNeeded as needed:
        (call,) = needed.pending
        state = json.dumps(needed.state)
        console.print(
            f"  pending: {call.id} {call.name} {call.arguments}; state of {len(state):,} bytes", soft_wrap=True
        )
        return call.id, state
    raise SystemExit("FAILED: the refund did not wait for a decision")


def shown(result: Any, provider: FakeProvider, before: int) -> int:
    """Print the tree of a run; return 1 if it has other requests than the provider counted."""
    sent = len(provider.requests) - before
    console.print(str(result.run), markup=False, soft_wrap=True)
    is_same = len(result.run.attempts) == sent
    verdict = "[green]as many in the tree[/]" if is_same else f"[red]FAILED: {len(result.run.attempts)} in the tree[/]"
    line = f"  answer [bold]{result.answer}[/]; the provider counted {sent} requests: {verdict}"
    console.print(line, soft_wrap=True)
    return not is_same


def main() -> int:
    refunded: list[int] = []
    wrong = 0
    with tempfile.TemporaryDirectory() as name, FakeProvider(sigwire.LM("offline/lexical")) as provider:
        lm = sigwire.LM("openai/gpt-5-mini", base_url=provider.url("openai"), api_key="any key", cache=False)
        team = make_team(Shop(Path(name) / "shop.sqlite"), refunded)
        user = User("Maria Silva", frozenset({1042}))
        with sigwire.context(lm=lm, injected={"user": user}):
            console.print(Rule("9. Two experts"), f"[bold]{STOCK}[/]", sep="\n")
            wrong += shown(team(question=STOCK), provider, 0)

            console.print(Rule("10. An approval inside"), f"[bold]{REFUND}[/]", sep="\n")
            before = len(provider.requests)
            id, state = pending(team)
            wrong += bool(refunded)
            result = team.resume(json.loads(state), {id: "approve"})
            wrong += shown(result, provider, before) + (refunded != [1042])

            console.print(Rule("11. A guard"))
            shown_text = result.steps[0].results[0].text
            console.print(f"  the outer model read [bold]{shown_text}[/]; refunded: {refunded}")
            wrong += "account" in shown_text
    console.print(Rule())
    console.print("[red]Some runs differ.[/]" if wrong else "[green]One run, one tree; one approval, one refund.[/]")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
