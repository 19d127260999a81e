"""A session of 60 turns in a window of 4,000 tokens, offline: ``python examples/long_session.py``.

The conversation keeps all turns. Requests leave out the oldest ones; each fold is printed. At the end, the turns that are left
out are searched as an agent searches them.
"""

from __future__ import annotations

from sigwire import LM, ChatSession, Compaction, Predict, compaction
from sigwire.modules.context.search_tools import search_tool

WINDOW = 4_000
NAMES = ("Ada", "Bruno", "Chen", "Dara", "Emil", "Fatou", "Goran", "Hana", "Ivo", "Jalil", "Kaya", "Lars")
TALK = "The order was packed in the morning, and the driver waited at the gate for a signature. " * 3


def main() -> int:
    """Lead the session; return 0 if no turn was lost."""
    predict = Predict("message, history: History -> reply", lm=LM("offline/lexical"))
    chat = ChatSession(predict, compaction=Compaction([compaction.drop_oldest()], window=WINDOW))
    folds = 0
    for number in range(60):
        name = NAMES[number % len(NAMES)]
        chat(message=f"Order {1000 + number} is for {name}, shelf {number * 7 % 40}. {TALK}")
        for fold in chat.conversation.folds[folds:]:
            kept = len(chat.conversation) - fold.upto
            print(f"turn {number}: {fold.tokens_before:,} -> {fold.tokens_after:,} tokens, {kept} turns are sent")
        folds = len(chat.conversation.folds)
    print(f"{len(chat.conversation)} turns are kept, {folds} folds")
    search = search_tool("search_conversation", lambda: chat.conversation)
    print(search(query="order 1003", count=1))
    return 0 if len(chat.conversation) == 60 and folds else 1


if __name__ == "__main__":
    raise SystemExit(main())
