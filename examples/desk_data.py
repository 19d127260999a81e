"""The data of the tutorials: 300 messages to a support desk and 60 invoices, made by seeded generators.

A message is one of 60 written sentences (twelve a team) with another product, number and frame each time, so messages of one
sentence are no independent observations: ``Example.sentence`` is their cluster, and ``mail_split`` never splits it.
"""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

from sigwire import Example

__all__ = ["TEAMS", "invoices", "mail", "mail_split"]

TEAMS = {
    "delivery": """
        My parcel has not come yet, {days} days after the date you promised.
        The tracking page still shows the depot in {city}.
        The courier marked it as complete, but my doorbell never rang.
        Can the delivery go to my office in {city} instead?
        Which day will the driver be here?
        It was shipped to my old address in {city}.
        Is there a faster shipping for {euros} euros?
        Half of the parcel is missing: {count} boxes were promised.
        When does the {product} leave your warehouse?
        The van has passed my street twice without a stop.
        Your carrier writes that the house was empty, which is not true.
        I have waited {days} days for the {product}, where is it?""",
    "billing": """
        You have charged my card twice, {euros} euros each time.
        The invoice shows another name than mine.
        Why is the delivery on my bill when it was free?
        I need a receipt with my tax number on it.
        The discount of {count} % is missing on the invoice.
        My payment of {euros} euros does not show up.
        I was asked to pay again although my bank has sent the money.
        The price on the bill is not the price of the shop.
        Please split the amount of {euros} euros into {count} parts.
        There is a fee of {euros} euros that I do not understand.
        The direct debit failed and I do not know why.
        Please send the invoice to my accountant in {city}.""",
    "returns": """
        I would like my money back for the {product}.
        The {product} is too small, how can I send it back?
        Please refund the {euros} euros, I found it cheaper.
        I changed my mind and want to return it.
        Where do I get a label for the return?
        The refund was promised {days} days ago.
        Can I exchange the {product} for a blue one?
        I ordered two by mistake, one shall go back.
        It does not match my kitchen, please take it back.
        How many days do I have to give the {product} back?
        You received my return {days} days ago and I still wait for {euros} euros.
        I no longer want the {product}, please cancel it.""",
    "quality": """
        The {product} arrived broken, its handle came off.
        There is a crack in the glass of the {product}.
        After {days} days the {product} leaks.
        The paint is scratched on {count} sides.
        It smells burnt as soon as I switch it on.
        One leg of the {product} is shorter than the others.
        The lid does not close, it seems bent.
        The {product} was damaged when I opened the parcel.
        Two screws are missing, so it cannot be built.
        The colour is not the one in the picture.
        It makes a loud noise since day {count}.
        The zip of the cover is defective.""",
    "account": """
        I cannot log in since yesterday.
        The password mail never arrives.
        Please change my email address.
        My account has been locked for {days} days.
        How do I delete my account and all data?
        I have two accounts and need only one.
        The code on my phone is refused {count} times out of ten.
        Please correct my name in the profile.
        A stranger has used my login in {city}.
        I do not want your newsletter any more.
        Where can I change my password?
        My loyalty points are gone from the profile.""",
}
PRODUCTS = [
    f"{material} {good}" for material in ("copper", "oak", "glass") for good in ("kettle", "lamp", "tray", "stool")
]
CITIES = ("Lisbon", "Berlin", "Lyon", "Oslo", "Vienna", "Porto")
FRAMES = ("{text}", "Hello, {text}", "{text} Thank you!", "Good morning. {text}", "{text} Regards, {name}")
MENTIONS = ("It is about order {order}.", "My order is {order}.", "Order number {order}.", "(order {order})", "", "")
NAMES = ("Maria Silva", "Jonas Berg", "Aylin Demir", "Greta Haas", "Karim Lind")


def mail(seed: int = 0) -> list[Example]:
    """Return 300 messages with the team that answers each, and the number of the order or None.

    >>> len(mail()), sorted(mail()[0])
    (300, ['message', 'order', 'sentence', 'team'])
    """
    chance = random.Random(seed)
    rows: dict[str, Example] = {}
    for team, texts in TEAMS.items():
        for sentence in texts.strip().splitlines():
            count = len(rows) + 5
            while len(rows) < count:  # a copy of an earlier message is drawn again
                row = _message(chance, team, sentence.strip())
                rows.setdefault(row.message, row)
    shuffled = list(rows.values())
    chance.shuffle(shuffled)
    return shuffled


def _message(chance: random.Random, team: str, sentence: str) -> Example:
    mention = chance.choice(MENTIONS)
    order = chance.randint(1001, 9999)
    text = sentence.format(
        days=chance.randint(2, 30),
        euros=chance.randint(5, 400),
        count=chance.randint(2, 9),
        city=chance.choice(CITIES),
        product=chance.choice(PRODUCTS),
    )
    text = f"{text} {mention.format(order=order)}".strip()
    text = chance.choice(FRAMES).format(text=text, name=chance.choice(NAMES))
    row = Example(message=text, team=team, order=order if mention else None, sentence=sentence)
    return row.with_inputs("message")


def mail_split(seed: int = 0) -> tuple[list[Example], list[Example], list[Example]]:
    """Return 100 messages for training, 75 for the choice and 125 for the test; no two parts share a sentence.

    >>> [len(part) for part in mail_split()]
    [100, 75, 125]
    """
    chance = random.Random(seed)
    parts: dict[str, int] = {}
    for texts in TEAMS.values():
        sentences = [text.strip() for text in texts.strip().splitlines()]
        chance.shuffle(sentences)
        parts |= {sentence: 0 if place < 4 else 1 if place < 7 else 2 for place, sentence in enumerate(sentences)}
    train, val, test = ([row for row in mail(seed) if parts[row.sentence] == part] for part in range(3))
    return train, val, test


def invoices(count: int = 60, seed: int = 0) -> list[Example]:
    """Return invoices as text, each with its content as plain JSON.

    >>> invoices(1)[0].invoice["lines"][0]
    {'item': 'oak stool', 'units': 8, 'unit_price': 184.0}
    """
    chance = random.Random(seed)
    return [Example(**_invoice(chance)).with_inputs("text") for _ in range(count)]


def _invoice(chance: random.Random) -> dict[str, object]:
    number, day = f"R-{chance.randint(1000, 9999)}", date(2026, 1, 1) + timedelta(days=chance.randrange(300))
    buyer, city = chance.choice(NAMES), chance.choice(CITIES)
    lines: list[dict[str, Any]] = [
        {"item": item, "units": chance.randint(1, 12), "unit_price": chance.randint(2, 800) / 2}
        for item in chance.sample(PRODUCTS, chance.randint(1, 3))
    ]
    rows = [f"{line['units']} x {line['item']} at {line['unit_price']:.2f} EUR" for line in lines]
    total = sum(float(line["units"]) * float(line["unit_price"]) for line in lines)
    text = "\n".join([f"Invoice {number} of {day}", f"To {buyer}, {city}", *rows, f"Total {total:.2f} EUR"])
    content = {"number": number, "issued": f"{day}", "buyer": {"name": buyer, "city": city}, "lines": lines}
    return {"text": text, "invoice": {**content, "total": total}}
