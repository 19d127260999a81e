"""One hundred and sixty-eight support messages with their topic and the order they are about: the data of the optimization examples.

They were written for these examples, each once; ``split`` refuses two messages that share most of their words.
"""

from __future__ import annotations

import random
import re

from sigwire import Example

__all__ = ["TOPICS", "examples", "split"]

TOPICS: dict[str, list[str]] = {
    "delivery": [
        "Order 1042 was promised for Monday and the courier still has not come.",
        "Where is my parcel? The tracking page for 2210 has not moved in a week.",
        "Nobody rang the bell, yet the driver marked 3317 as handed over.",
        "My package 1188 seems to be stuck at the depot in Lyon.",
        "The courier left order 2954 with a neighbour I do not know.",
        "Can you tell me when the van with 1730 will arrive today?",
        "Tracking says my parcel 4021 went back to the warehouse.",
        "I moved house; please send 1555 to the new address instead.",
        "The shipment 2608 came two weeks late, after the birthday.",
        "Half of order 3090 arrived, the second box is still on its way?",
        "Your driver could not find our street, so 1911 was not dropped off.",
        "Is there a way to have package 2777 sent by express?",
        "The parcel locker did not open, so I cannot collect 3456.",
        "I have waited at home for 1620 all day and no courier came.",
        "The tracking link for 1101 opens an empty page.",
        "Please leave parcel 2302 with the concierge if I am out.",
        "It has been nine days and order 1873 is not here.",
        "Can the courier come after six in the evening for 4410?",
        "The label on package 3561 had the street of somebody else.",
        "Why was 2046 shipped from Spain when I live next to your warehouse?",
        "I got a message that 1397 was delivered, but the doorstep is empty.",
        "How much longer will the van with my shelf need, order 2864?",
        "Customs is holding shipment 3175 and asks for papers.",
        "Could you combine 1502 and the other parcel into one delivery?",
        "The driver threw the box of 4233 over the fence.",
        "My tracking number for 2718 is not recognised by the carrier.",
        "When do you ship on public holidays? I am waiting for 1964.",
        "I will be abroad; hold package 3640 at the depot until Friday.",
    ],
    "billing": [
        "You charged my card twice for order 1043.",
        "The invoice for 2211 shows the wrong company name.",
        "Why is there a fee of four euros on the bill for 3318?",
        "I need a receipt with tax for 1189, please.",
        "My bank statement shows a payment for 2955 that I cancelled.",
        "The discount code was not taken off the price of 1731.",
        "Please send the invoice of 4022 to our accounting department.",
        "I paid 1556 by transfer, yet you sent a reminder.",
        "The amount debited for 2609 is higher than on the website.",
        "Can I pay 3091 in three instalments?",
        "Our tax number is missing on the bill for 1912.",
        "My credit card was declined, although the bank says it is fine; order 2778.",
        "You billed shipping for 3457, which should have been free.",
        "When will the card be debited for 1621?",
        "My card was declined for 1102 although there is money on it.",
        "The tax on the invoice of 2303 is not the one of my country.",
        "I was billed in dollars and not in euros for order 1874.",
        "Which account do I transfer the payment for 4411 to?",
        "The voucher is still shown as unused, yet 3562 cost the full price.",
        "Two identical amounts left my bank account on the day of 2047.",
        "Can you split the bill for 1398 between me and my flatmate?",
        "The reminder fee on 2865 is not justified, I paid in time.",
        "Please add our purchase number to the invoice for 3176.",
        "The price of 1503 was lower in the basket than at the checkout.",
        "I never received a receipt by email for 4234.",
        "My employer needs a bill with the company address for 2719.",
        "What is the extra charge called handling on 1965?",
        "Is it possible to pay 3641 on delivery in cash?",
    ],
    "refund": [
        "I sent back 1044 three weeks ago and have not got my money.",
        "Please give me my money back for 2212, it does not fit.",
        "How do I return order 3319?",
        "The refund for 1190 is ten euros short.",
        "I would like to send back the lamp from 2956 and be reimbursed.",
        "You confirmed the return of 1732, but nothing was reimbursed.",
        "Can I exchange the shelf in 4023 or only return it?",
        "I changed my mind about 1557 within the fourteen days.",
        "The return label for 2610 cannot be printed.",
        "Where does the money for the returned 3092 go, to my card?",
        "I returned two of three items from 1913, please reimburse those.",
        "Your shop refused my return of 2779 because the box was open.",
        "I cancelled 3458 at once and want the full sum back.",
        "How long does a reimbursement for 1622 take?",
        "I returned 1103 a month ago, where is my money?",
        "Please pay back 2304, the gift arrived after the party.",
        "The refund for 1875 went to a card that I closed.",
        "I would like to send back 4412, it does not suit the room.",
        "Only one of the two returned lamps of 3563 was credited.",
        "How do I print a return label for 2048?",
        "The sofa cover in 1399 does not fit, please take it back.",
        "You promised compensation for 2866 and nothing happened.",
        "The shop credit for 3177 has expired, can I have cash?",
        "Do I have to pay the postage when I return 1504?",
        "My cancellation of 4235 was ignored and I want the sum back.",
        "I exchanged 2720 for a cheaper one and wait for the difference.",
        "Is a refund possible without the original box of 1966?",
        "The reimbursement for 3642 is five euros short.",
    ],
    "damage": [
        "The kettle in 1045 is dented and leaks.",
        "One leg of the stool from 2213 came broken.",
        "There is a crack in the glass tray, order 3320.",
        "The clock from 1191 stopped after one day.",
        "The linen basket in 2957 is torn at the bottom.",
        "The lamp of 1733 flickers and smells burnt.",
        "My oak shelf 4024 has deep scratches on top.",
        "The box of 1558 was crushed and two glasses are shattered.",
        "The steel tray from 2611 is bent and rusty.",
        "A screw is missing, so the shelf in 3093 wobbles.",
        "The wool blanket 1914 has a hole and loose threads.",
        "The switch of the new lamp does not work, order 2780.",
        "The lid of the copper pot in 3459 does not close, it is warped.",
        "The paint peels off the stool, order 1623.",
        "The handle of the kettle from 1104 broke off on the first day.",
        "Water drips through the bottom of the pot in 2305.",
        "The glass of the lamp in 1876 arrived in pieces.",
        "There are dark stains on the wool blanket of 4413.",
        "The shelf of 3564 is missing two of its boards.",
        "A corner of the tray from 2049 is chipped.",
        "The clock of 1400 ticks loudly and loses ten minutes a day.",
        "The stool in 2867 tilts because one leg is too short.",
        "The seam of the basket from 3178 has come apart.",
        "The plug of the lamp in 1505 gets hot and smells of plastic.",
        "The copper of my pot 4236 turned green after one wash.",
        "The parcel of 2721 was wet and the cardboard inside is mouldy.",
        "The drawer of the oak cabinet, order 1967, is jammed.",
        "My rug 3643 has a long tear on one side.",
    ],
    "account": [
        "I cannot log in any more, the password link never arrives.",
        "Please change the email address of my account.",
        "How do I delete my profile and all my data?",
        "My login is locked after three attempts.",
        "I have two accounts by accident, can you merge them?",
        "The code for signing in is sent to my old phone.",
        "Please unsubscribe me from the newsletter.",
        "My name is misspelt in my profile.",
        "I forgot which email I registered with.",
        "Someone signed in to my account from another country.",
        "How can my colleague get access to our company account?",
        "The app logs me out every few minutes.",
        "I want to change my password but the button is grey.",
        "Which personal data do you store about me?",
        "The page says that my user name is already taken.",
        "Which phone number do you have on file for me?",
        "I never got the email to confirm my registration.",
        "Please close my profile, I do not shop here any more.",
        "Two-factor sign in stopped working since I changed my phone.",
        "How do I update my date of birth?",
        "My saved addresses have vanished from my profile.",
        "Can I use one login for the website and the app?",
        "You keep sending me adverts although I opted out.",
        "I am asked for a password that I never set.",
        "My daughter registered with my email by mistake, can you undo it?",
        "Where can I see all devices that are logged in?",
        "I want a copy of the personal data in my account.",
        "The captcha keeps rejecting me when I sign in.",
    ],
    "product": [
        "Does the copper kettle work on an induction stove?",
        "What are the measurements of the small oak shelf?",
        "Is the linen basket washable?",
        "Will the wool rug be in stock again in spring?",
        "Which bulb fits the glass lamp?",
        "Do you have the stool in a darker colour?",
        "How many kilograms can the steel shelf hold?",
        "Is the clock silent enough for a bedroom?",
        "What is the difference between the two trays?",
        "Can the copper pot go into the dishwasher?",
        "Is the wood from certified forests?",
        "Do you sell spare lids for the basket?",
        "Is there a larger version of the glass tray?",
        "Does the lamp come with a dimmer?",
        "What is the kettle made of inside?",
        "How wide is the large linen basket?",
        "Can the wool blanket be washed at forty degrees?",
        "Is the oak shelf delivered assembled or flat?",
        "Do you have the lamp with a longer cable?",
        "Which screws do I need to mount the steel shelf on plaster?",
        "How many cups does the copper kettle hold?",
        "Is the glass tray safe for the oven?",
        "Does the clock need a battery or does it plug in?",
        "When will the green rug be available?",
        "Are the stools stackable?",
        "Can I get a sample of the oak colours?",
        "Is there a lid for the small pot?",
        "What weight does the stool carry?",
    ],
}


def examples() -> list[Example]:
    """Return all messages, with the number of the order or 0."""
    rows: list[Example] = []
    for topic, messages in TOPICS.items():
        for message in messages:
            order = re.search(r"\b\d{4}\b", message)
            row = Example(message=message, topic=topic, order=int(order.group()) if order else 0)
            rows.append(row.with_inputs("message"))
    return rows


def split(seed: int = 0) -> tuple[list[Example], list[Example], list[Example]]:
    """Return 60 messages for training, 48 for validation and 60 for the test, of each topic alike.

    >>> [len(part) for part in split()]
    [60, 48, 60]
    """
    rows = examples()
    _refuse_duplicates(rows)
    source = random.Random(seed)
    train: list[Example] = []
    val: list[Example] = []
    test: list[Example] = []
    for topic in TOPICS:
        own = [row for row in rows if row.topic == topic]
        source.shuffle(own)
        train += own[:10]
        val += own[10:18]
        test += own[18:]
    for part in (train, val, test):
        source.shuffle(part)
    return train, val, test


def _refuse_duplicates(rows: list[Example]) -> None:
    words = [frozenset(re.findall(r"[a-z]+", str(row.message).lower())) for row in rows]
    for at, first in enumerate(words):
        for second in words[:at]:
            if len(first & second) / len(first | second) > 0.6:
                raise ValueError(f"two messages are nearly equal: {rows[at].message}")
