"""Questions about the shop, each with the answer that SQL gives: the devset of the tutorial on agents.

Ten kinds of questions are for work on the agent (``questions(shop)``), six for the test at the end (``kinds=NEW``).
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing

from shop import Shop

from sigwire import Example, Prediction

__all__ = ["KINDS", "NEW", "is_right", "questions"]

SPENT = """SELECT round(total(quantity * price_eur), 2) FROM orders JOIN stock USING (product)
           JOIN customers USING (customer_id) WHERE name = :name AND ordered_on LIKE '2025%'"""
COUNT = """SELECT count(*) FROM orders JOIN customers USING (customer_id)
           WHERE city = :city AND ordered_on LIKE '2024%'"""
DAYS = "SELECT cast(julianday(shipped_on) - julianday(ordered_on) AS INTEGER) FROM orders WHERE order_id = :order_id"
POUNDS = "SELECT round(weight_kg / 0.45359237, 3) FROM stock WHERE product = :product"
CITY = "SELECT city FROM customers WHERE name = :name"
JOINED = "SELECT joined_on FROM customers WHERE name = :name"
UNITS = "SELECT units FROM stock WHERE product = :product"
PRICE = "SELECT price_eur FROM stock WHERE product = :product"
SHIPPED = "SELECT shipped_on FROM orders WHERE order_id = :order_id"
QUANTITY = "SELECT quantity FROM orders WHERE order_id = :order_id"
PRODUCT = "SELECT product FROM orders WHERE order_id = :order_id"

KINDS: Mapping[str, str] = {
    "In which city does {name} live?": CITY,
    "When did {name} join?": JOINED,
    "How many units of the {product} are left?": UNITS,
    "What does one {product} cost?": PRICE,
    "On which date was order {order_id} shipped?": SHIPPED,
    "How many items were in order {order_id}?": QUANTITY,
    "How much did {name} spend in 2025?": SPENT,
    "How many orders came from {city} in 2024?": COUNT,
    "How many pounds does one {product} weigh?": POUNDS,
    "How many days passed between the date order {order_id} was ordered and the date it was shipped?": DAYS,
}
NEW: Mapping[str, str] = {
    "Where does {name} live?": CITY,
    "Since when is {name} a customer?": JOINED,
    "What is the price of the {product}?": PRICE,
    "Which product is in order {order_id}?": PRODUCT,
    "How many orders did customers from {city} place in 2024?": COUNT,
    "How much money did {name} leave here in 2025?": SPENT,
}


def questions(shop: Shop, kinds: Mapping[str, str] = KINDS, seed: int = 0) -> list[Example]:
    """Return at most ten questions of each kind, with the answer of SQL; ``kind`` is their cluster."""
    chance = random.Random(seed)
    names = [row["name"] for row in shop.sql("SELECT name FROM customers ORDER BY customer_id")]
    products = [row["product"] for row in shop.sql("SELECT product FROM stock ORDER BY product")]
    cities = [row["city"] for row in shop.sql("SELECT DISTINCT city FROM customers ORDER BY city")]
    rows: dict[str, Example] = {}
    with closing(sqlite3.connect(shop.path)) as database:
        for kind, query in kinds.items():
            for _ in range(10):
                values: dict[str, object] = {"name": chance.choice(names), "product": chance.choice(products)}
                values |= {"city": chance.choice(cities), "order_id": chance.randint(1001, 1380)}
                question = kind.format(**values)
                (answer,) = database.execute(query, values).fetchone()
                rows[question] = Example(question=question, answer=str(answer), kind=kind).with_inputs("question")
    return list(rows.values())


def is_right(example: Example, prediction: Prediction, trace: object = None) -> bool:
    """Return True if the answer is the expected text, or has the expected number and no other."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?", prediction.answer)
    if re.fullmatch(r"-?\d+(?:\.\d+)?", example.answer):
        return len(numbers) == 1 and abs(float(numbers[0]) - float(example.answer)) < 0.01
    return bool(example.answer.casefold() == prediction.answer.strip(" .").casefold())
