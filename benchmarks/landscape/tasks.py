"""The tasks: seeded rows, their conventions, and how strong each lever is.

A row has a reference (``ref K0042``) that stands in its text. A row of a convention has the answer that the convention wants
(``expected``) and the answer without that knowledge (``naive``). The model and both runners read these tables, and
nothing of a row but its text reaches the model.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.landscape.concepts import TEXTS, Concept

__all__ = ["POOL", "TASKS", "TOOLS", "Levers", "Row", "Split", "Task", "feedback", "is_right", "row_of", "split"]

POOL = 700
Answer = Any  # a text, or of the tools task {"name": ..., "args": {...}}


@dataclass(frozen=True)
class Row:
    """One example: its reference, its text, its convention (``""``: plain) and two answers."""

    ref: str
    text: str
    concept: str
    expected: Answer
    naive: Answer


@dataclass(frozen=True)
class Levers:
    """The quality of answers: of rows of a convention from ``low`` to ``high``, of plain rows, and the part of each lever."""

    low: float
    high: float
    plain: float
    instructions: float = 0.0
    demos: float = 0.0
    tools: float = 0.0


@dataclass(frozen=True)
class Task:
    """A task: its input and output fields, its first instructions, its concepts, levers and rows."""

    name: str
    input: str
    output: str
    labels: tuple[str, ...]
    instructions: str
    concepts: tuple[Concept, ...]
    levers: Levers
    make: Callable[[random.Random, str], tuple[str, Answer, Answer]]
    plain_share: float

    def rows(self) -> tuple[Row, ...]:
        return _rows(self)


# --- tickets: labels by house rules --------------------------------------------------------------------

QUEUES = ("access", "billing", "hardware", "legal", "network", "orders")


def _ticket(rng: random.Random, concept: str) -> tuple[str, Answer, Answer]:
    words = {
        name: rng.choice(TEXTS[pool]) for name, pool in (("thing", "things"), ("person", "people"), ("place", "places"))
    }
    words["n"] = rng.randint(2, 99)
    if concept:
        kind = TEXTS["tickets"][concept]
        return rng.choice(kind["texts"]).format(**words), kind["expected"], kind["naive"]
    expected = rng.choice(QUEUES)
    naive = rng.choice([queue for queue in QUEUES if queue != expected])
    return rng.choice(TEXTS["plain_tickets"][expected]).format(**words), expected, naive


TICKET_CONCEPTS = (
    Concept(
        "refund",
        (("refund", "money back", "reimburs"), ("billing",)),
        (
            "Requests for a refund go to billing, whatever device is broken.",
            "Whenever money back is wanted, the queue is billing.",
        ),
        ("hardware",),
        ("A refund for a device belongs to hardware.",),
    ),
    Concept(
        "vpn",
        (("vpn", "tunnel"), ("network",)),
        (
            "VPN problems belong to network, also failed logins over it.",
            "Anything about the VPN is for the network queue.",
        ),
        ("access",),
        ("Logins over a VPN belong to access.",),
    ),
    Concept(
        "penalty",
        (("penalty", "contract", "breach"), ("legal",)),
        (
            "If a contract or a penalty is mentioned, choose legal.",
            "A late delivery with a penalty in the contract is legal.",
        ),
        ("orders",),
        ("A penalty for a late delivery belongs to orders.",),
    ),
    Concept(
        "phishing",
        (("phishing", "suspicious"), ("legal",)),
        ("Suspicious mails (phishing) go to legal.", "Reports of phishing are handled by legal."),
        ("access",),
        ("A suspicious mail about passwords belongs to access.",),
    ),
    Concept(
        "address",
        (("delivery address", "shipping address"), ("orders",)),
        (
            "Corrections of a delivery address go to orders, even on an invoice.",
            "A wrong delivery address is for orders.",
        ),
        ("billing",),
        ("A delivery address on an invoice belongs to billing.",),
    ),
    Concept(
        "leased",
        (("leased", "lease", "rental"), ("orders",)),
        (
            "Leased devices are exchanged by orders, whatever is wrong with them.",
            "Anything about a leased router goes to orders.",
        ),
        ("network", "hardware"),
        ("A leased router that drops the line belongs to network.",),
    ),
)

# --- records: an answer in the form that the house wants ------------------------------------------------


def _record(rng: random.Random, concept: str) -> tuple[str, Answer, Answer]:
    name, surname, place = (rng.choice(TEXTS[pool]) for pool in ("people", "surnames", "places"))
    day, month, number = rng.randint(1, 28), rng.randrange(len(TEXTS["months"])), rng.randint(1001, 9899)
    cents, code = rng.choice((0, 25, 50, 75)), f"{rng.choice('ABCDEFGH')}X-{rng.randint(1000, 9999)}"
    written = f"{day} {TEXTS['months'][month]} 2026"
    hours, minutes = rng.randint(1, 4), day + 1
    answers: dict[str, tuple[str, str]] = {
        "date": (f"2026-{month + 1:02}-{day:02}", written),
        "amount": (f"{number}.{cents:02} EUR", f"€{number:,}.{cents:02}"),
        "person": (f"{surname}, {name}", f"{name} {surname}"),
        "phone": (f"+493055{number}", f"+49 (30) 55-{number}"),
        "missing": ("n/a", "The colour is not mentioned."),
        "duration": (f"{hours * 60 + minutes} min", f"{hours} hours and {minutes} minutes"),
        "code": (code, f"Order {code}"),
        "city": (place, f"in {place}"),
    }
    kind = concept or ("code" if rng.random() < 0.5 else "city")
    facts = f"Order {code} for {name} {surname} in {place}."
    words = {"facts": facts, "written": written, "number": number, "cents": cents, "hours": hours, "minutes": minutes}
    return TEXTS["records"][kind].format(**words), *answers[kind]


RECORD_CONCEPTS = (
    Concept(
        "date",
        (("date", "due", "day"), ("yyyy-mm-dd", "iso", "year-month-day", "2026-0")),
        ("Write dates as YYYY-MM-DD.", "Every date is in ISO form (year-month-day)."),
        ("as it stands", "month name", "spelled"),
        ("Write a date as it stands in the text.",),
    ),
    Concept(
        "amount",
        (
            ("amount", "sum", "price", "total"),
            ("three-letter", "eur after", "code after", "followed by eur", "then eur"),
        ),
        (
            "Write amounts as a plain number followed by EUR.",
            "A sum is a number without commas, with the three-letter code after it.",
        ),
        ("symbol", "as it stands"),
        ("Write an amount with its symbol.",),
    ),
    Concept(
        "person",
        (("name", "person", "people", "who "), ("surname first", "last name first", "family name first", "surname, ")),
        ("Names of people are given surname first, then a comma.", "For a person write the last name first."),
        ("full name", "given name"),
        ("Give a person's full name, the given name before the rest.",),
    ),
    Concept(
        "phone",
        (("phone", "telephone"), ("digits only", "without spaces", "no spaces", "only digits", "no separators")),
        ("Phone numbers are a plus sign and digits only.", "Write a telephone number without spaces and brackets."),
        ("as it stands", "brackets"),
        ("Copy a phone number with its brackets.",),
    ),
    Concept(
        "missing",
        (("missing", "absent", "not stated", "not in the", "not given", "cannot be found"), ("n/a",)),
        ("If the value is not stated, answer n/a.", "A missing value is answered with n/a."),
        ("explain", "say so"),
        ("If a value is missing, explain this in a sentence.",),
    ),
    Concept(
        "duration",
        (("duration", "how long", "length of", "lengths of time", "time span"), ("minutes", " min")),
        ("Give a duration in minutes, as a number and min.", "Lengths of time are converted to minutes (min)."),
        ("hours",),
        ("Give a duration in hours.",),
    ),
)

# --- tools: eight that are easily confused --------------------------------------------------------------

TOOLS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "find_customer": ("Look up a record.", {"name": "str", "region": "str"}),
    "find_account": ("Look up a record by key.", {"account_number": "str"}),
    "list_orders": ("List the entries of a customer.", {"customer_id": "str", "since": "str"}),
    "list_invoices": ("List the documents of a customer.", {"customer_id": "str", "month": "str"}),
    "create_ticket": ("Pass on a problem.", {"summary": "str", "severity": "str"}),
    "escalate_ticket": ("Pass on a problem further.", {"ticket_id": "str"}),
    "search_articles": ("Search texts.", {"query": "str", "product": "str"}),
    "search_messages": ("Search the archive.", {"query": "str", "sender": "str"}),
}
"""Tools by name: the description and the arguments, all texts."""


def call(name: str, /, **args: str) -> Answer:
    return {"name": name, "args": args}


def _request(rng: random.Random, concept: str) -> tuple[str, Answer, Answer]:
    customer, person, thing = f"C-{rng.randint(100, 999)}", rng.choice(TEXTS["people"]), rng.choice(TEXTS["things"])
    day, at, number = rng.randint(1, 28), rng.randrange(len(TEXTS["months"])), rng.randint(10_000, 99_999)
    iso, written, month = f"2026-{at + 1:02}-{day:02}", f"{day} {TEXTS['months'][at]}", f"2026-{at + 1:02}"
    kind, place = concept, ""
    if not concept:
        kind = "customer" if rng.random() < 0.5 else "messages"
        place = rng.choice(TEXTS["places"]) if kind == "customer" else ""
    orders, ticket, key = partial(call, "list_orders", customer_id=customer), f"{thing} {number}", f"{number}-{day}"
    answers: dict[str, tuple[Answer, Answer]] = {
        "purchases": (orders(since=iso), call("list_invoices", customer_id=customer, month=month)),
        "unpaid": (call("list_invoices", customer_id=customer, month=month), orders(since=month)),
        "reopened": (
            call("escalate_ticket", ticket_id=f"T-{number}"),
            call("create_ticket", summary=f"T-{number}", severity="1"),
        ),
        "manuals": (
            call("search_articles", query="reset", product=thing),
            call("search_messages", query="reset", sender=person),
        ),
        "keys": (call("find_account", account_number=key), call("find_customer", name=key, region="all")),
        "since": (orders(since=iso), orders(since=written)),
        "severity": (
            call("create_ticket", summary=ticket, severity="1"),
            call("create_ticket", summary=ticket, severity="urgent"),
        ),
        "customer": (call("find_customer", name=person, region=place), call("find_account", account_number=person)),
        "messages": (
            call("search_messages", query=ticket, sender=person),
            call("search_articles", query=f"{number}", product=thing),
        ),
    }
    words = {"customer": customer, "person": person, "thing": thing, "number": number, "day": day, "place": place}
    return TEXTS["requests"][kind].format(**words, iso=iso, written=written, month=month), *answers[kind]


TOOL_CONCEPTS = (
    Concept(
        "purchases",
        (("bought", "purchase", "ordered"), ("list_orders",)),
        ("For what a customer bought call list_orders.",),
        ("list_invoices",),
        ("For what a customer bought call list_invoices.",),
        ("list_orders", "list_invoices"),
        "",
        ("What a customer bought (purchases): use list_orders.",),
    ),
    Concept(
        "unpaid",
        (("owe", "unpaid", "open amount"), ("list_invoices",)),
        ("For what a customer owes call list_invoices.",),
        ("list_orders",),
        ("For what a customer owes call list_orders.",),
        ("list_invoices", "list_orders"),
        "",
        ("Unpaid amounts, what a customer owes: use list_invoices.",),
    ),
    Concept(
        "reopened",
        (("existing", "already", "waits", "t-number"), ("escalate_ticket",)),
        ("If a ticket already exists, call escalate_ticket.",),
        ("create_ticket",),
        ("If a ticket already exists, call create_ticket again.",),
        ("escalate_ticket", "create_ticket"),
        "",
        ("A ticket that already exists: use escalate_ticket.",),
    ),
    Concept(
        "manuals",
        (("manual", "how to", "guide", "reset"), ("search_articles",)),
        ("For guides and how to do things call search_articles.",),
        ("search_messages",),
        ("For guides call search_messages.",),
        ("search_articles", "search_messages"),
        "",
        ("Manuals, guides, how to do a thing: use search_articles.",),
    ),
    Concept(
        "keys",
        (("a number", "iban", "digits", "by number"), ("find_account",)),
        ("To look up a number call find_account.",),
        ("find_customer",),
        ("To look up a number call find_customer.",),
        ("find_account", "find_customer"),
        "",
        ("The owner of a number: use find_account.",),
    ),
    Concept(
        "since",
        (("since", "date", "day"), ("yyyy-mm-dd", "iso", "year-month-day")),
        ("Give the argument since as YYYY-MM-DD.",),
        ("as it stands",),
        ("Give the argument since as it stands.",),
        ("list_orders",),
        "since",
        ("A date in ISO form, YYYY-MM-DD.",),
    ),
    Concept(
        "severity",
        (("severity", "level"), ("1 is the", "from 1", "1 (", "1 for", "1 to 3")),
        ("The severity is a level from 1 (all is down) to 3.",),
        ("word",),
        ("Give the severity as a word.",),
        ("create_ticket",),
        "severity",
        ("The level, from 1 (all is down) to 3.",),
    ),
)

# --- coin: nothing helps ---------------------------------------------------------------------------------


def _statement(rng: random.Random, concept: str) -> tuple[str, Answer, Answer]:
    heads = rng.random() < 0.5
    person, place, number = rng.choice(TEXTS["people"]), rng.choice(TEXTS["places"]), rng.randint(100, 999)
    text = TEXTS["statement"].format(person=person, place=place, number=number, thing=rng.choice(TEXTS["things"]))
    return (text, "yes", "no") if heads else (text, "no", "yes")


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task(
            "tickets",
            "ticket",
            "queue",
            QUEUES,
            TEXTS["instructions"]["tickets"],
            TICKET_CONCEPTS,
            Levers(low=0.29, high=0.98, plain=0.88, instructions=0.87, demos=0.54),
            _ticket,
            0.28,
        ),
        Task(
            "records",
            "document",
            "answer",
            (),
            TEXTS["instructions"]["records"],
            RECORD_CONCEPTS,
            Levers(low=0.29, high=0.98, plain=0.86, instructions=0.85, demos=0.58),
            _record,
            0.28,
        ),
        Task(
            "tools",
            "request",
            "tool_calls",
            (),
            TEXTS["instructions"]["tools"],
            TOOL_CONCEPTS,
            Levers(low=0.2, high=0.96, plain=0.88, instructions=0.3, demos=0.3, tools=0.9),
            _request,
            0.25,
        ),
        Task(
            "coin",
            "statement",
            "verdict",
            ("yes", "no"),
            TEXTS["instructions"]["coin"],
            (),
            Levers(0.5, 0.5, 0.5),
            _statement,
            1,
        ),
    )
}


# --- rows ------------------------------------------------------------------------------------------------

_ROWS: dict[str, tuple[Row, ...]] = {}
_BY_REF: dict[str, Row] = {}


def _rows(task: Task) -> tuple[Row, ...]:
    """Return the pool of a task: the same rows in every process, no text twice."""
    if task.name not in _ROWS:
        _ROWS[task.name] = tuple(_made(task))
        _BY_REF.update((row.ref, row) for row in _ROWS[task.name])
    return _ROWS[task.name]


def _made(task: Task) -> Iterator[Row]:
    rng = random.Random(f"landscape/{task.name}")
    seen = set[str]()
    while len(seen) < POOL:
        concept = "" if rng.random() < task.plain_share else rng.choice(task.concepts).name
        text, expected, naive = task.make(rng, concept)
        if text not in seen:
            ref = f"{'KRTC'[list(TASKS).index(task.name)]}{len(seen):04}"
            seen.add(text)
            yield Row(ref, f"(ref {ref}) {text}", concept, expected, naive)


def row_of(ref: str) -> tuple[Task, Row] | None:
    """Return the row with a reference, and its task."""
    for task in TASKS.values():
        task.rows()
    row = _BY_REF.get(ref)
    return None if row is None else (list(TASKS.values())["KRTC".index(ref[0])], row)


@dataclass(frozen=True)
class Split:
    """Disjoint rows: for training, for choosing, and held out."""

    train: tuple[Row, ...]
    val: tuple[Row, ...]
    held_out: tuple[Row, ...]


def split(task: Task, seed: int, train: int = 60, val: int = 60, held_out: int = 300) -> Split:
    """Return disjoint rows of a task for a seed."""
    rows = random.Random(f"split/{task.name}/{seed}").sample(task.rows(), train + val + held_out)
    return Split(tuple(rows[:train]), tuple(rows[train : train + val]), tuple(rows[train + val :]))


# --- the metric, the same for both sides -----------------------------------------------------------------


def is_right(row: Row, answer: Answer) -> bool:
    """Return True if the answer is the expected one: equal text, or the same tool with equal arguments."""
    if isinstance(row.expected, str):
        return isinstance(answer, str) and answer.strip() == row.expected
    return bool(answer == row.expected)


def feedback(row: Row, answer: Answer) -> str:
    """Return the feedback of the metric: right, or the answer beside the expected one."""
    if is_right(row, answer):
        return "Right."
    return f"Wrong: {json.dumps(answer)} is not the expected {json.dumps(row.expected)}."
