"""A small shop: a SQLite database of customers, orders and stock, and the functions over it that become tools.

The rows are drawn from a seeded generator, so every run sees the same few hundred. Each method of ``Shop`` that has a
docstring with ``Args`` is an ordinary Python function; sigwire reads its name, types and docstring when it becomes a tool.
``Shop.calls`` lists what was executed, which lets the quickstart prove that a prediction alone executes nothing.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

from sigwire.errors import RetryTool, ToolFailed

__all__ = ["Shop"]

SCHEMA = """
CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT UNIQUE, city TEXT, joined_on TEXT);
CREATE TABLE stock (product TEXT PRIMARY KEY, units INTEGER, price_eur REAL, weight_kg REAL);
CREATE TABLE orders (
    order_id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers, product TEXT REFERENCES stock,
    quantity INTEGER, ordered_on TEXT, shipped_on TEXT
);
"""
FIRST_NAMES = ["Maria", "Jonas", "Aylin", "Pedro", "Greta", "Tomas", "Ines", "Karim", "Lena", "Oskar"]
LAST_NAMES = ["Silva", "Berg", "Costa", "Demir", "Novak", "Haas", "Moreau", "Lind"]
CITIES = ["Lisbon", "Berlin", "Lyon", "Oslo", "Vienna", "Porto"]
MATERIALS = ["copper", "oak", "linen", "glass", "steel", "wool"]
GOODS = ["kettle", "shelf", "lamp", "tray", "basket", "clock", "stool"]
KILOGRAMS = {"kilograms": 1.0, "grams": 0.001, "pounds": 0.45359237, "ounces": 0.028349523125}

Unit = Literal["kilograms", "grams", "pounds", "ounces"]


class Shop:
    """The shop behind one database file. Every method opens its own connection, so tools may run side by side."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.calls: list[str] = []
        with closing(sqlite3.connect(path)) as database, database:
            database.executescript(SCHEMA)
            _fill(database, random.Random(7))

    def tools(self) -> list[Callable[..., Any]]:
        """Return the functions that become tools."""
        return [
            self.find_customer,
            self.find_order,
            self.check_stock,
            self.total_spent,
            self.count_orders,
            self.convert_weight,
            self.days_between,
            self.track_parcel,
        ]

    def sql(self, query: str, *values: object) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        with closing(sqlite3.connect(self.path)) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(query, values)]

    # --- tools: look-ups ---------------------------------------------------------------------------

    def find_customer(self, name: str) -> dict[str, Any]:
        """Look up a customer by name: customer id, city and the date they joined.

        Args:
            name: The customer's full name.
        """
        return self._one("find_customer", "SELECT * FROM customers WHERE name = ? COLLATE NOCASE", name)

    def find_order(self, order_id: int) -> dict[str, Any]:
        """Look up an order by its number: customer, product, quantity, the dates it was ordered and shipped.

        Args:
            order_id: The order's number.
        """
        return self._one("find_order", "SELECT * FROM orders WHERE order_id = ?", order_id)

    def check_stock(self, product: str) -> dict[str, Any]:
        """Look up a product in stock: units left, price in euros, weight of one unit in kilograms.

        Args:
            product: The product's name, in the singular.
        """
        return self._one("check_stock", "SELECT * FROM stock WHERE product = ? COLLATE NOCASE", product)

    # --- tools: aggregates -------------------------------------------------------------------------

    def total_spent(self, customer_id: int, year: int) -> float:
        """Sum up what a customer spent on orders in a year, in euros.

        Args:
            customer_id: The customer's number.
            year: The calendar year.
        """
        query = """SELECT round(total(quantity * price_eur), 2) AS euros FROM orders JOIN stock USING (product)
                   WHERE customer_id = ? AND strftime('%Y', ordered_on) = ?"""
        return float(self._one("total_spent", query, customer_id, str(year))["euros"])

    def count_orders(self, city: str, year: int) -> int:
        """Count the orders that customers of a city placed in a year.

        Args:
            city: The city the customers live in.
            year: The calendar year.
        """
        query = """SELECT count(*) AS orders FROM orders JOIN customers USING (customer_id)
                   WHERE city = ? COLLATE NOCASE AND strftime('%Y', ordered_on) = ?"""
        return int(self._one("count_orders", query, city, str(year))["orders"])

    # --- tools: computations -----------------------------------------------------------------------

    def convert_weight(self, value: float, from_unit: Unit, to_unit: Unit) -> float:
        """Convert a weight from one unit to another.

        Args:
            value: The weight to convert.
            from_unit: The unit the value is in.
            to_unit: The unit wanted.
        """
        self.calls.append("convert_weight")
        return round(value * KILOGRAMS[from_unit] / KILOGRAMS[to_unit], 3)

    def days_between(self, start: date, end: date) -> int:
        """Compute the number of days between two dates.

        Args:
            start: The first date.
            end: The last date.
        """
        self.calls.append("days_between")
        return (end - start).days

    # --- a tool that fails on purpose ----------------------------------------------------------------

    def track_parcel(self, order_id: int) -> str:
        """Track the parcel of an order: where it is right now.

        Args:
            order_id: The order's number.
        """
        self.calls.append("track_parcel")
        raise ToolFailed(f"The carrier's tracking service is closed; nothing is known about order {order_id}.")

    # --- helpers -------------------------------------------------------------------------------------

    def _one(self, tool: str, query: str, *values: object) -> dict[str, Any]:
        self.calls.append(tool)
        if rows := self.sql(query, *values):
            return rows[0]
        raise RetryTool(f"Nothing found for {', '.join(map(str, values))}. Check the spelling.")


def _fill(database: sqlite3.Connection, chance: random.Random) -> None:
    database.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", _customers(chance))
    products = list(_stock(chance))
    database.executemany("INSERT INTO stock VALUES (?, ?, ?, ?)", products)
    database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", _orders(chance, [row[0] for row in products]))


def _customers(chance: random.Random) -> Iterator[tuple[int, str, str, str]]:
    names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    chance.shuffle(names)
    for number, name in enumerate(names, start=1):
        joined = date(2020, 1, 1) + timedelta(days=chance.randrange(1400))
        yield number, name, chance.choice(CITIES), joined.isoformat()


def _stock(chance: random.Random) -> Iterator[tuple[str, int, float, float]]:
    for material in MATERIALS:
        for good in GOODS:
            price, weight = chance.randint(900, 19900) / 100, chance.randint(20, 1900) / 100
            yield f"{material} {good}", chance.randint(0, 250), price, weight


def _orders(chance: random.Random, products: list[str]) -> Iterator[tuple[int, int, str, int, str, str | None]]:
    """400 orders over two years, sorted by date; those of the last week are not shipped yet."""
    days = sorted(chance.randrange(730) for _ in range(400))
    for order_id, day in enumerate(days, start=1001):
        ordered = date(2024, 1, 1) + timedelta(days=day)
        shipped = ordered + timedelta(days=chance.randint(1, 12)) if day < 723 else None
        customer_id, product = chance.randint(1, len(FIRST_NAMES) * len(LAST_NAMES)), chance.choice(products)
        shipped_on = shipped.isoformat() if shipped else None
        yield order_id, customer_id, product, chance.randint(1, 6), ordered.isoformat(), shipped_on
