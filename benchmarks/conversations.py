"""``python -m benchmarks.conversations``: the recall of a conversation of 200 turns in a window of 8,000, and its price.

The user plants 50 facts, corrects 10 of them, and asks 50 questions, half of them in other words; a third of the facts come
from a tool. The model is a function of each request, as a real one is: it answers from what the request shows, and searches
if it sees nothing: always, half of the time, or never (``--searching``). A request above the window is refused. Assumed, not
measured: a summary keeps 80 % of the facts that it reads, and 97 % of those of the summary before. Tokens are characters
divided by four; prices are in units of an input token, at the ratios of Claude: read .1, written 1.25, output 5.

python -m benchmarks.conversations                 every view, two seeds, about a minute
python -m benchmarks.conversations --seeds 6       six seeds
python -m benchmarks.conversations default chat    these views only
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, Literal, NamedTuple, TypeAlias

from sigwire import (
    ChatSession,
    Choice,
    Compaction,
    ContextWindowExceededError,
    FakeLM,
    History,
    Message,
    Predict,
    ReAct,
    Request,
    Response,
    ToolCall,
    Usage,
)
from sigwire.compaction import drop_oldest
from sigwire.core.json import JsonValue, dumps

__all__ = ["VIEWS", "Row", "Searching", "measured", "table"]

Searching: TypeAlias = Literal["always", "half", "never"]

WINDOW, TURNS, FACTS, CORRECTED = 8_000, 200, 50, 10
READ, WRITTEN, OUTPUT = 0.1, 1.25, 5.0
OF_SUMMARY, OF_OWN_SUMMARY = 0.8, 0.97
NAMES = (
    "Ada Bruno Chen Dara Emil Fatou Goran Hana Ivo Jalil Kaya Lars Mina Nuno Olga Priya Quirin Rosa Sven Tala Umar Vera Wanda "
    "Xenia Yara Zeno Anders Belen Carlo Doris Enzo Flora Gita Hugo Ines Jonas Katja Luis Maren Nils Oskar Petra Rafael Selma "
    "Timo Ursula Viktor Wilma Yusuf Zita"
).split()
FILLER = (
    "The weather was fine and the train was late, so the meeting began with coffee and a long talk about the garden. "
)


class Step(NamedTuple):
    """A turn of the user: a text, and the answer that a question expects."""

    text: str
    expected: str = ""


def conversation(seed: int, turns: int = TURNS, facts: int = FACTS) -> list[Step]:
    """Return the turns of the user: facts, corrections of a fifth of them, then questions among them, and filler."""
    draw = random.Random(seed)
    names, codes = NAMES[:facts], [str(draw.randint(1000, 9999)) for _ in range(2 * facts)]
    given = [
        Step(f"Look up {name}." if number % 3 == 0 else f"The code of {name} is {codes[number]}.")
        for number, name in enumerate(names)
    ]
    corrected = draw.sample(range(facts), facts // (FACTS // CORRECTED))
    known = {name: codes[number] for number, name in enumerate(names)}
    known |= {names[number]: codes[facts + number] for number in corrected}
    later = [Step(f"Correction: the code of {names[number]} is {codes[facts + number]} now.") for number in corrected]
    asked = [
        Step(
            f"What is the code of {name}?" if draw.random() < 0.5 else f"Which number opens the door of {name}?",
            known[name],
        )
        for name in names
    ]
    draw.shuffle(asked)
    rest = max(turns - len(given) - len(later) - len(asked), 0)
    middle = [*later, *[Step("Go on.")] * rest]
    draw.shuffle(middle)
    return [Step(f"{step.text} {FILLER * draw.randint(1, 4)}", step.expected) for step in [*given, *middle]] + asked


def codes_of(seed: int, facts: int = FACTS) -> Mapping[str, str]:
    """Return the codes that the tool looks up."""
    draw = random.Random(seed)
    return {name: str(draw.randint(1000, 9999)) for name in NAMES[:facts]}


_FACT = re.compile(r"[Tt]he code of (\w+) is (\d{4})")


class Reader(FakeLM):
    """The model. ``limit``: the tokens of a request above which it refuses. ``units``: the price of all requests."""

    def __init__(self, limit: int, searching: Searching, seed: int) -> None:
        super().__init__(self._answered)
        self.limit, self.searching, self._draw = limit, searching, random.Random(seed)
        self.units = 0.0
        self.refusals = 0
        self._before: list[str] = []

    def _answer(self, request: Request) -> Response:
        texts = [dumps(list(request.tools)), *(dumps(message.to_json()) for message in request.messages)]
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(texts, self._before, strict=False)))
        tokens, cached = (sum(map(len, part)) // 4 for part in (texts, texts[:same]))
        if tokens > self.limit:
            self.refusals += 1
            raise ContextWindowExceededError(
                f"prompt is too long: {tokens} tokens > {self.limit} maximum", model=self.model
            )
        response = super()._answer(request)
        answered = sum(len(choice.text) + 30 * len(choice.tool_calls) for choice in response.choices) // 4 + 1
        if not _is_summary(request) or request.tools:
            self._before = texts
        self.units += cached * READ + (tokens - cached) * WRITTEN + answered * OUTPUT
        return Response(response.choices, Usage(tokens, answered, cached_tokens=cached), self.model)

    def _answered(self, request: Request) -> Any:
        return self._summary(request) if _is_summary(request) else self._turn(request)

    def _summary(self, request: Request) -> str:
        """Return the facts that are kept; a fact that is corrected has its newest value."""
        newest: dict[str, tuple[str, float]] = {}
        for line in "\n".join(_texts(request)).splitlines():
            share = OF_OWN_SUMMARY if "Kept:" in line else OF_SUMMARY
            newest |= {name: (code, share) for name, code in _FACT.findall(line)}
        kept = {name: code for name, (code, share) in newest.items() if self._draw.random() < share}
        return "Kept: " + " ".join(f"The code of {name} is {code}." for name, code in kept.items())

    def _turn(self, request: Request) -> Any:
        question = next(
            text for text in reversed(_user_texts(request)) if "[Note:" not in text and "[turn " not in text
        )
        tools: Any = request.tools
        offered = {str(tool["function"]["name"]) for tool in tools}
        last = request.messages[-1]
        if (found := re.search(r"Look up (\w+)\.", question)) and last.role != "tool":
            return _called("look_up", name=found[1])
        asked = re.search(r"(?:code of|door of) (\w+)\?", question)
        if asked is None:
            return self._submitted(offered, "Noted.")
        known = [code for text in _texts(request) for name, code in _FACT.findall(text) if name == asked[1]]
        searches = {"always": 1.0, "half": 0.5, "never": 0.0}[self.searching]
        if not known and last.role != "tool" and "search_conversation" in offered and self._draw.random() < searches:
            return _called("search_conversation", query=f"code of {asked[1]}")
        return self._submitted(offered, known[-1] if known else "unknown")

    @staticmethod
    def _submitted(offered: set[str], answer: str) -> Any:
        return _called("submit", answer=answer) if "submit" in offered else {"answer": answer}


def _called(name: str, /, **arguments: JsonValue) -> Choice:
    return Choice(tool_calls=(ToolCall("", name, dict(arguments)),), finish_reason="tool_calls")


def _texts(request: Request) -> Iterator[str]:
    for message in request.messages[1:]:
        yield message.text
        yield from (result.text for result in message.tool_results)


def _user_texts(request: Request) -> list[str]:
    return [message.text for message in request.messages if message.role == "user"]


def _is_summary(request: Request) -> bool:
    last = request.messages[-1]
    return last.role == "user" and ("the new summary" in last.text or "summary_so_far" in request.messages[0].text)


def _oldest_dropped(window: int, view: History) -> History:
    """Leave out the oldest turns until the request just fits, in each request: a view without folds, for comparison."""
    turns, sizes = view.messages, [_size(turn) for turn in view.messages]
    over = sum(sizes) - 0.7 * window
    starts = [at for at, turn in enumerate(turns) if not isinstance(turn, Message)]
    return view[next((at for at in starts if sum(sizes[:at]) >= over), max(starts, default=0)) :]


def _size(turn: object) -> int:
    """Return the tokens of a turn; one of fields is two messages with the marks of the adapter."""
    if isinstance(turn, Message):
        return len(dumps(turn.to_json())) // 4
    return len(str(turn)) // 4 + 60


VIEWS: Mapping[str, Callable[[int], Compaction | bool]] = {
    "drop each turn": lambda window: False,
    "drop": lambda window: Compaction([drop_oldest()], window=window, search=False),
    "tiered": lambda window: Compaction(window=window, search=False),
    "drop and search": lambda window: Compaction([drop_oldest()], window=window),
    "default": lambda window: Compaction(window=window),
    "chat": lambda window: Compaction(window=window),
    "chat, drop each turn": lambda window: False,
}
"""The views by name. ``tiered`` has the order of the default without its search; a chat has no tools, but passages."""


class Row(NamedTuple):
    """The recall of a view, in percent; its cost in units; its folds and the requests that the model refused."""

    view: str
    recall: float
    units: float
    folds: int
    refused: int


def measured(
    view: str, seed: int, searching: Searching = "always", turns: int = TURNS, facts: int = FACTS, window: int = WINDOW
) -> Row:
    """Return the row of a view: one conversation, led by the built package."""
    model, codes = Reader(window, searching, seed), codes_of(seed, facts)

    def look_up(name: str) -> str:
        """Look a person up."""
        return f"The code of {name} is {codes[name]}. " + FILLER * 5

    compaction = VIEWS[view](window)
    on_turn = partial(_oldest_dropped, window) if compaction is False else None
    if view.startswith("chat"):
        chat = ChatSession(
            Predict("message, history: History -> answer", lm=model), compaction=compaction, on_turn=on_turn
        )
    else:
        agent: Any = ReAct("message -> answer", tools=[look_up], compaction=compaction, on_turn=on_turn)
        agent.set_lm(model)
        chat = agent.session()
    right, wanted = 0, 0
    for text, expected in conversation(seed, turns, facts):
        message = re.sub(r"Look up (\w+)\.", lambda found: f"The code of {found[1]} is {codes[found[1]]}.", text)
        answer = chat(message=message if view.startswith("chat") else text).answer
        right += bool(expected) and answer == expected
        wanted += bool(expected)
    return Row(view, 100 * right / wanted, model.units, len(chat.conversation.folds), model.refusals)


def table(rows: Sequence[Sequence[Row]]) -> Iterator[str]:
    """Yield the lines of a markdown table: recall (worst and best seed), price in percent of the first row, folds, refusals."""
    yield "| view | recall (worst, best seed) | price | folds | refused |"
    yield "|---|---|---|---|---|"
    whole = sum(row.units for row in rows[0])
    for of_view in rows:
        recalls, price = [row.recall for row in of_view], 100 * sum(row.units for row in of_view) / whole
        recall = f"{sum(recalls) / len(recalls):.1f} % ({min(recalls):.0f}, {max(recalls):.0f})"
        folds = sum(row.folds for row in of_view) / len(of_view)
        yield f"| {of_view[0].view} | {recall} | {price:.1f} | {folds:.1f} | {sum(row.refused for row in of_view)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("views", nargs="*", help=f"some of {', '.join(VIEWS)}")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--searching", choices=["always", "half", "never"], default="always")
    given = parser.parse_args()
    rows = [[measured(view, seed, given.searching) for seed in range(given.seeds)] for view in given.views or VIEWS]
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
