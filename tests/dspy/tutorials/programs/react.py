"""A desk for train tickets: an agent with tools over typed records, and its trajectory."""

import dspy
from pydantic import BaseModel


class Passenger(BaseModel):
    passenger_id: str
    name: str
    email: str


class Train(BaseModel):
    train_id: str
    origin: str
    destination: str
    hours: float
    price: float


class Booking(BaseModel):
    number: str
    passenger: Passenger
    train: Train


passengers = {"Ines": Passenger(passenger_id="1", name="Ines", email="ines@example.org")}
trains = [
    Train(train_id="T1", origin="Oslo", destination="Bergen", hours=7, price=40),
    Train(train_id="T2", origin="Oslo", destination="Bergen", hours=6.5, price=60),
]
bookings = {}


def find_trains(origin: str, destination: str):
    """Find the trains from an origin to a destination."""
    found = [train for train in trains if (train.origin, train.destination) == (origin, destination)]
    if not found:
        raise ValueError("There is no such train.")
    return found


def find_passenger(name: str):
    """Find the profile of a passenger by name."""
    return passengers.get(name)


def book_train(train: Train, passenger: Passenger):
    """Book a train for a passenger."""
    number = f"B{len(bookings) + 1}"
    bookings[number] = Booking(number=number, passenger=passenger, train=train)
    return number, bookings[number]


class TrainDesk(dspy.Signature):
    """You are a desk for train tickets. Use the tools that the request of the user needs."""

    user_request: str = dspy.InputField()
    process_result: str = dspy.OutputField(desc="A message with the number of the booking, if there is one.")


agent = dspy.ReAct(TrainDesk, tools=[find_trains, find_passenger, book_train], max_iters=6)
SCRIPT = [
    {
        "next_thought": "I look for trains.",
        "next_tool_name": "find_trains",
        "next_tool_args": {"origin": "Oslo", "destination": "Bergen"},
    },
    {
        "next_thought": "I need the profile.",
        "next_tool_name": "find_passenger",
        "next_tool_args": {"name": "Ines"},
    },
    {
        "next_thought": "I book the fast train.",
        "next_tool_name": "book_train",
        "next_tool_args": {"train": trains[1].model_dump(), "passenger": passengers["Ines"].model_dump()},
    },
    {"next_thought": "The booking is made.", "next_tool_name": "finish", "next_tool_args": {}},
    {"reasoning": "The booking has a number.", "process_result": "Your booking is B1."},
]

dspy.configure(lm=dspy.utils.DummyLM(SCRIPT))
result = agent(user_request="please book the fastest train from Oslo to Bergen, I am Ines")
names = [result.trajectory[f"tool_name_{step}"] for step in range(4)]
booked = bookings["B1"]

dspy.configure(lm=dspy.utils.DummyLM(SCRIPT[:1] + SCRIPT[3:]))
second = agent(user_request="which trains are there from Oslo to Bergen?")

results = {
    "result": result.process_result == "Your booking is B1.",
    "tools": names == ["find_trains", "find_passenger", "book_train", "finish"],
    "thought": result.trajectory["thought_0"] == "I look for trains.",
    "arguments": result.trajectory["tool_args_1"] == {"name": "Ines"},
    "typed": (booked.train.train_id, type(booked.passenger).__name__) == ("T2", "Passenger"),
    "second": "Bergen" in str(second.trajectory["observation_0"]),
}
