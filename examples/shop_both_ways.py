"""Questions about the shop, answered in two ways: `python examples/shop_both_ways.py`.

`ReAct` writes tool calls, as many in a turn as do not depend on each other. `CodeAct` writes code that calls the same tools: in
one turn, or in two, if the model looks at the results before it submits. The model is a script that knows the shortest way in
each, so the table compares what the ways cost, not how clever a model is: requests, and the tokens of all requests and answers
(estimated, 3 bytes each). The exit code is 1 if an answer is wrong.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shop import Shop

from sigwire import (
    AgentRun,
    CodeAct,
    FakeLM,
    InputField,
    Message,
    OutputField,
    ReAct,
    Request,
    Signature,
    ToolCall,
    ToolCalls,
)
from sigwire.core.json import JsonValue
from sigwire.lm.fake import Answer
from sigwire.lm.policy.money.estimates import estimated_tokens

__all__ = ["TASKS", "Cost", "measured", "table"]

Call = tuple[str, dict[str, JsonValue]]
Plan = Generator[list[Call], list[Any], str]
"""The turns of a script: yields the calls of a turn, is sent their results, returns the answer."""


class AskShop(Signature):
    """Answer the question about the shop with the help of the tools."""

    question: str = InputField()
    answer: str = OutputField(desc="the value asked for, and nothing else")


# --- the tasks: a question, the answer of SQL, the turns of ReAct, the code of CodeAct ------------------------


@dataclass(frozen=True)
class Task:
    name: str
    question: str
    expected: str
    plan: Callable[[], Plan]
    code: str


def one_weight() -> Plan:
    (row,) = yield [("check_stock", {"product": "oak shelf"})]
    (pounds,) = yield [("convert_weight", {"value": row["weight_kg"], "from_unit": "kilograms", "to_unit": "pounds"})]
    return str(pounds)


def one_delay() -> Plan:
    (order,) = yield [("find_order", {"order_id": 1042})]
    (days,) = yield [("days_between", {"start": order["ordered_on"], "end": order["shipped_on"]})]
    return str(days)


CITIES = ["Lisbon", "Berlin", "Lyon", "Oslo", "Vienna", "Porto"]


def best_city() -> Plan:
    counts = yield [("count_orders", {"city": city, "year": 2024}) for city in CITIES]
    return max(zip(counts, CITIES, strict=True))[1]


GLASS = ["kettle", "shelf", "lamp", "tray", "basket", "clock", "stool"]


def glass_value() -> Plan:
    rows = yield [("check_stock", {"product": f"glass {kind}"}) for kind in GLASS]
    return str(round(sum(row["units"] * row["price_eur"] for row in rows), 2))


ORDERS = range(1001, 1016)


def best_customer() -> Plan:
    orders = yield [("find_order", {"order_id": number}) for number in ORDERS]
    customers = sorted({order["customer_id"] for order in orders})
    spent = yield [("total_spent", {"customer_id": customer, "year": 2024}) for customer in customers]
    return str(max(zip(spent, customers, strict=True))[1])


TASKS: Sequence[Task] = (
    Task(
        "a weight in pounds",
        "How many pounds does one oak shelf weigh?",
        "SELECT round(weight_kg / 0.45359237, 3) FROM stock WHERE product = 'oak shelf'",
        one_weight,
        """\
kilograms = check_stock("oak shelf")["weight_kg"]
submit(answer=str(convert_weight(kilograms, "kilograms", "pounds")))""",
    ),
    Task(
        "days until shipping",
        "How many days after the order was order 1042 shipped?",
        "SELECT cast(julianday(shipped_on) - julianday(ordered_on) AS INTEGER) FROM orders WHERE order_id = 1042",
        one_delay,
        """\
order = find_order(1042)
submit(answer=str(days_between(order["ordered_on"], order["shipped_on"])))""",
    ),
    Task(
        "the city with most orders",
        f"From which of {', '.join(CITIES)} came the most orders in 2024?",
        """SELECT city FROM orders JOIN customers USING (customer_id) WHERE ordered_on LIKE '2024%'
           GROUP BY city ORDER BY count(*) DESC LIMIT 1""",
        best_city,
        f"""\
cities = {CITIES}
counts = {{city: count_orders(city, 2024) for city in cities}}
submit(answer=max(cities, key=lambda city: counts[city]))""",
    ),
    Task(
        "the worth of seven goods",
        f"What are all glass goods in stock worth, in euros? There are {', '.join(GLASS)}.",
        "SELECT round(sum(units * price_eur), 2) FROM stock WHERE product LIKE 'glass %'",
        glass_value,
        f"""\
rows = [check_stock("glass " + kind) for kind in {GLASS}]
submit(answer=str(round(sum(row["units"] * row["price_eur"] for row in rows), 2)))""",
    ),
    Task(
        "the best of 15 customers",
        "Which of the customers of the orders 1001 to 1015 spent most in 2024? Answer with the customer id.",
        """SELECT customer_id FROM orders JOIN stock USING (product) WHERE ordered_on LIKE '2024%' AND customer_id IN
           (SELECT customer_id FROM orders WHERE order_id BETWEEN 1001 AND 1015)
           GROUP BY customer_id ORDER BY total(quantity * price_eur) DESC LIMIT 1""",
        best_customer,
        """\
customers = {find_order(number)["customer_id"] for number in range(1001, 1016)}
spent = {customer: total_spent(customer, 2024) for customer in customers}
submit(answer=str(max(spent, key=lambda customer: spent[customer])))""",
    ),
)


# --- the script ---------------------------------------------------------------------------------------------


def calling(plan: Plan) -> Callable[[Request], Answer]:
    """Return the model of ReAct: the calls of each turn, then ``submit``."""

    def answer(request: Request) -> Answer:
        results = [result.content for result in request.messages[-1].tool_results]
        try:
            calls = plan.send(results) if results else next(plan)
        except StopIteration as stop:
            calls = [("submit", {"answer": stop.value})]
        turn = len(request.messages)
        return ToolCalls([ToolCall(f"call_{turn}_{at}", name, given) for at, (name, given) in enumerate(calls)])

    return answer


def coding(*turns: str) -> Callable[[Request], Answer]:
    """Return the model of CodeAct: the code of each turn."""
    codes = iter(turns)
    return lambda request: {"reasoning": "This code is the next step.", "code": next(codes)}


def in_two_turns(code: str) -> tuple[str, str]:
    """Return code that shows its last variable, and the call of ``submit`` that follows."""
    *lines, submit = code.splitlines()
    return "\n".join([*lines, lines[-1].partition(" = ")[0]]), submit


@dataclass(frozen=True)
class Cost:
    """The requests and tokens of one answer, and whether it is right."""

    requests: int
    tokens: int
    is_right: bool


def cost_of(agent: ReAct[..., Any], script: Callable[[Request], Answer], task: Task, expected: str) -> Cost:
    """Return what an agent needs for a task."""
    agent.set_lm(lm := FakeLM(script))
    result = agent(question=task.question)
    history = AgentRun.of(result).history
    written = [
        message.to_json()
        for message in history.messages
        if isinstance(message, Message) and message.role == "assistant"
    ]
    sent = [message.to_json() for request in lm.requests for message in request.messages]
    tools = [tool for request in lm.requests for tool in request.tools]
    tokens = sum(estimated_tokens(json.dumps(each)) for each in [*written, *sent, *tools])
    return Cost(len(lm.requests), tokens, result.answer == expected)


COLUMNS = ("ReAct", "CodeAct, one turn", "CodeAct, two turns")


def measured() -> list[tuple[Task, list[Cost]]]:
    """Return each task with its costs in all ways."""
    rows: list[tuple[Task, list[Cost]]] = []
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder) / "shop.sqlite")
        for task in TASKS:
            (row,) = shop.sql(task.expected)
            (expected,) = map(str, row.values())
            scripts = (calling(task.plan()), coding(task.code), coding(*in_two_turns(task.code)))
            agents = (ReAct(AskShop, shop.tools()), CodeAct(AskShop, shop.tools()), CodeAct(AskShop, shop.tools()))
            pairs = zip(agents, scripts, strict=True)
            rows.append((task, [cost_of(agent, script, task, expected) for agent, script in pairs]))
    return rows


def table(rows: Sequence[tuple[Task, Sequence[Cost]]]) -> str:
    """Return requests and tokens as a markdown table."""
    lines = [f"| requests · tokens | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for task, costs in rows:
        lines.append(" | ".join([f"| {task.name}", *(f"{cost.requests} · {cost.tokens:,}" for cost in costs)]) + " |")
    sums = [
        (sum(costs[at].requests for _, costs in rows), sum(costs[at].tokens for _, costs in rows)) for at in range(3)
    ]
    lines.append(" | ".join(["| all", *(f"{requests} · {tokens:,}" for requests, tokens in sums)]) + " |")
    return "\n".join(lines)


def main() -> int:
    rows = measured()
    print(table(rows))
    wrong = [task.name for task, costs in rows if not all(cost.is_right for cost in costs)]
    print(f"Wrong: {', '.join(wrong)}." if wrong else "All answers are right.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
