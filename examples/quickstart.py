"""A tour of sigwire in four steps, with no key and no network: `make demo`, or `python examples/quickstart.py`.

1. Predict with tools   the model's calls come back as data; nothing is executed
2. ReAct                a loop that does execute: ten questions over a real SQLite database, checked against SQL
3. Nested outputs       Predict and ChainOfThought through three prompt formats, which must give the same value
4. Every wire           the agent of step 2 over real HTTP, once per provider's wire: same calls, same results, same answers

The default model is `offline/lexical`: rules about words, not a language model. `SIGWIRE_LM=openai/gpt-5-mini make demo` runs
steps 1 to 3 with another model (the key is read from OPENAI_API_KEY). Step 4 compares wires and not models: it keeps the
embedded model, behind a provider on this machine. The exit code is 1 if a check fails, 2 if the model cannot be reached.
`make demo` then runs `examples/stream_agent.py`, which streams an agent, `examples/resume_agent.py`, which kills one, and
`examples/optimize_extraction.py` and `examples/optimize_tools.py`, which optimize programs.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table
from shop import Shop
from wires import ENDPOINTS, WireRun, run_over_wires

import sigwire
from sigwire import AgentRun, InputField, OutputField, Signature, Tool, ToolCalls

console = Console(highlight=False)
on_stderr = Console(stderr=True, highlight=False)
failures: list[str] = []


def check(passed: bool, what: str) -> None:
    """Print the verdict, and record a failure for the exit code."""
    console.print(f"   [green]ok[/]     {escape(what)}" if passed else f"   [red]FAILED[/] {escape(what)}")
    if not passed:
        failures.append(what)


# --- 1. Predict with tools: calls are data ---------------------------------------------------------


class ChooseCalls(Signature):
    """Choose the tool calls that answer the request."""

    request: str = InputField()
    tools: list[Tool] = InputField()
    calls: ToolCalls = OutputField()


def predict_calls(shop: Shop) -> None:
    console.print(Rule("1. Predict with tools: calls are printed, nothing is executed"))
    choose = sigwire.Predict(ChooseCalls)
    tools = [Tool(function) for function in shop.tools()]
    for request, expected in [
        ("How many units of the copper kettle are in stock?", "check_stock"),
        ("Convert 3 pounds to grams.", "convert_weight"),
    ]:
        prediction = choose(request=request, tools=tools)
        console.print(f" {request}")
        for call in prediction.calls:
            console.print(f"   [cyan]{call.name}[/] {escape(str(call.arguments))}")
        check([call.name for call in prediction.calls] == [expected], f"one call, to {expected}")
    check(shop.calls == [], "no tool was executed")


# --- 2. ReAct: tools over a database -----------------------------------------------------------------


class AskShop(Signature):
    """Answer the question about the shop with the help of the tools."""

    question: str = InputField()
    answer: str = OutputField(desc="the value asked for, and nothing else")


# Each question with SQL that computes its answer without the tools. None: the question has no answer.
QUESTIONS: list[tuple[str, str | None]] = [
    ("In which city does the customer Maria Silva live?", "SELECT city FROM customers WHERE name = 'Maria Silva'"),
    ("How many units of the copper kettle are in stock?", "SELECT units FROM stock WHERE product = 'copper kettle'"),
    (
        "How much did the customer with id 17 spend in 2025?",
        """SELECT round(sum(o.quantity * s.price_eur), 2) FROM orders o, stock s
           WHERE s.product = o.product AND o.customer_id = 17 AND o.ordered_on LIKE '2025-%'""",
    ),
    (
        "How many orders did customers from Lisbon place in 2025?",
        """SELECT count(*) FROM orders WHERE ordered_on BETWEEN '2025-01-01' AND '2025-12-31'
           AND customer_id IN (SELECT customer_id FROM customers WHERE city = 'Lisbon')""",
    ),
    ("Convert 12.5 kilograms to pounds.", "SELECT round(12.5 / 0.45359237, 3)"),
    (
        "How many days are there between 2025-03-01 and 2025-06-15?",
        "SELECT cast(julianday('2025-06-15') - julianday('2025-03-01') AS INTEGER)",
    ),
    (
        "How much did the customer Maria Silva spend in 2025?",
        """SELECT round(sum(o.quantity * s.price_eur), 2) FROM orders o, stock s, customers c
           WHERE s.product = o.product AND c.customer_id = o.customer_id
           AND c.name = 'Maria Silva' AND o.ordered_on LIKE '2025-%'""",
    ),
    (
        "What is the weight of one oak shelf in pounds?",
        "SELECT round(weight_kg / 0.45359237, 3) FROM stock WHERE product = 'oak shelf'",
    ),
    (
        "How many days are there between the date order 1042 was ordered and the date it was shipped?",
        "SELECT cast(julianday(shipped_on) - julianday(ordered_on) AS INTEGER) FROM orders WHERE order_id = 1042",
    ),
    ("Where is the parcel of order 1042 right now?", None),
]


def ask_shop(shop: Shop) -> None:
    console.print(Rule("2. ReAct: ten questions, tools over a SQLite database, answers checked against SQL"))
    agent = sigwire.ReAct(AskShop, tools=shop.tools(), max_iters=8)
    for number, (question, query) in enumerate(QUESTIONS, start=1):
        result = agent(question=question)
        console.print(f"[bold]{number:2}. {question}[/]")
        run = AgentRun.of(result)
        print_steps(run)
        console.print(f"   [bold]answer[/] {escape(result.answer)}  [dim]({run.termination_reason})[/]")
        if query is None:
            failed = any(outcome.is_error for step in run.steps for outcome in step.results)
            check(failed, "the tool failed, the model received the error, and the run ended with an answer")
        else:
            (expected,) = shop.sql(query)[0].values()
            check(is_answer(result.answer, expected), f"SQL says {expected}")


def print_steps(run: AgentRun) -> None:
    """Print each call and its result."""
    for step in run.steps:
        if step.thought:
            console.print(f"   [dim italic]{escape(step.thought)}[/]")
        results = {result.id: result for result in step.results}
        for call in step.calls:
            result = results.get(call.id)
            color = "red" if result is not None and result.is_error else "dim"
            console.print(f"   [cyan]{call.name}[/] {escape(str(call.arguments))}")
            console.print(f"     [{color}]{escape(result.text) if result else ''}[/]")


def is_answer(answer: str, expected: object) -> bool:
    """Return True if the answer is the expected text, or holds the expected number and no other."""
    if isinstance(expected, str):
        return answer.strip(" .").casefold() == expected.casefold()
    numbers = re.findall(r"-?\d+(?:\.\d+)?", answer.replace(",", ""))
    return len(numbers) == 1 and abs(float(numbers[0]) - float(str(expected))) < 0.01


# --- 3. Nested outputs, three prompt formats -------------------------------------------------------------


class Contact(BaseModel):
    name: str
    email: str


class Delivery(BaseModel):
    order_id: int
    recipient: Contact
    due: date
    speed: Literal["normal", "express"]


class ReadRequest(Signature):
    """Read the delivery that the message asks for."""

    message: str = InputField()
    delivery: Delivery = OutputField()


MESSAGE = "Please send order 1042 to Maria Silva (maria.silva@example.com) by express delivery, due 2026-01-15."
DELIVERY = Delivery(
    order_id=1042,
    recipient=Contact(name="Maria Silva", email="maria.silva@example.com"),
    due=date(2026, 1, 15),
    speed="express",
)


def nested_outputs() -> None:
    console.print(Rule("3. Nested outputs: Predict and ChainOfThought, three prompt formats, one value"))
    console.print(f" {escape(MESSAGE)}")
    table = Table("adapter", "Predict", "ChainOfThought")
    values: list[Delivery] = []
    for adapter in (sigwire.ChatAdapter(), sigwire.JSONAdapter(), sigwire.XMLAdapter()):
        with sigwire.context(adapter=adapter):
            predicted = sigwire.Predict(ReadRequest)(message=MESSAGE).delivery
            thought_through = sigwire.ChainOfThought(ReadRequest)(message=MESSAGE)
        values += [predicted, thought_through.delivery]
        table.add_row(type(adapter).__name__, str(predicted), str(thought_through.delivery))
    console.print(table)
    check(all(value == DELIVERY for value in values), "all six are the same delivery, and the right one")


# --- 4. The same agent over every wire ---------------------------------------------------------------------


class Transcript(NamedTuple):
    """The observable parts of a run: calls, tool results, answers. Ids are left out: they differ by provider."""

    calls: list[tuple[str, dict[str, Any] | None]]
    results: list[str]
    answers: list[str]
    delivery: Delivery


def ask_everything(lm: sigwire.LM, shop: Shop) -> Transcript:
    """Ask one model the ten questions with tools, then for one structured output."""
    agent = sigwire.ReAct(AskShop, tools=shop.tools(), max_iters=8)
    with sigwire.context(lm=lm, adapter=sigwire.JSONAdapter()):
        delivery = sigwire.Predict(ReadRequest)(message=MESSAGE).delivery
    with sigwire.context(lm=lm):
        answered = [agent(question=question) for question, _ in QUESTIONS]
    steps = [step for result in answered for step in AgentRun.of(result).steps]
    return Transcript(
        calls=[(call.name, call.arguments) for step in steps for call in step.calls],
        results=[result.text for step in steps for result in step.results],
        answers=[result.answer for result in answered],
        delivery=delivery,
    )


def every_wire(shop: Shop) -> None:
    console.print(Rule("4. Every wire: the same agent over real HTTP, a provider on this machine, one transcript"))
    reference = ask_everything(sigwire.LM("offline/lexical"), shop)
    table = Table(title="ten questions and one structured output, compared with the same without HTTP")
    for column in ("model", "wire", "calls", "a call's id", "result"):
        table.add_column(column, overflow="fold")
    differing: list[str] = []
    for run in run_over_wires(lambda lm: ask_everything(lm, shop)):
        same = run.is_accepted and run.result == reference
        table.add_row(*row_of(run), "[green]same[/]" if same else "[red]DIFFERENT[/]")
        differing += [] if same else [f"{run.endpoint.model} over {run.endpoint.wire}: {difference(run, reference)}"]
    for endpoint in ENDPOINTS:
        if not endpoint.is_open:
            table.add_row(endpoint.model, f"[dim]needs {endpoint.needs}[/]")
    console.print(table)
    for text in differing:
        console.print(f"   [red]{escape(text)}[/]")
    check(not differing, "every wire gave the same calls, results, answers and structured output")


def row_of(run: WireRun[Transcript]) -> tuple[str, ...]:
    """Return one line of the table: the endpoint, the number of calls and the id of the first call."""
    sent = [request for recorded in run.requests if (request := recorded.request)]
    ids = [call.id for request in sent for message in request.messages for call in message.tool_calls]
    return run.endpoint.model, run.endpoint.wire, str(len(run.result.calls)), next(iter(ids), "")


def difference(run: WireRun[Transcript], reference: Transcript) -> str:
    """Return the first difference from the transcript without HTTP."""
    if not run.is_accepted:
        refused = next((sent for sent in run.requests if sent.status != 200), run.requests[0])
        return f"{refused.path} answered {refused.status}: {refused.answer}"
    for name, here, there in zip(Transcript._fields, run.result, reference, strict=True):
        if here != there:
            return f"{name} {here} instead of {there}"
    return "nothing"


def main() -> int:
    model = os.environ.get("SIGWIRE_LM") or "offline/lexical"
    try:
        sigwire.configure(lm=sigwire.LM(model))
        console.print(f"sigwire {sigwire.__version__} with the model {model}")
        tour()
    except (sigwire.ConfigurationError, sigwire.LMError) as error:
        on_stderr.print(f"[red]{type(error).__name__}[/] {escape(str(error))}", soft_wrap=True)
        return 2
    console.print(Rule())
    console.print(f"[red]{len(failures)} checks failed[/]" if failures else "[green]Every check passed.[/]")
    return 1 if failures else 0


def tour() -> None:
    with tempfile.TemporaryDirectory() as directory:
        shop = Shop(Path(directory) / "shop.sqlite")
        predict_calls(shop)
        ask_shop(shop)
        nested_outputs()
        every_wire(shop)


if __name__ == "__main__":
    sys.exit(main())
