"""Strategies of a ``Compaction``: what requests of a long conversation leave out. Conversations keep all turns.

    from sigwire import Compaction, ReAct, compaction

    steps = [compaction.clear_results(keep=4), compaction.summarize(tokens=800)]
    agent = ReAct("task -> report", tools=[search], compaction=Compaction(steps))

A strategy of your own is a function of a ``Draft``:

    def keep_ten(draft: compaction.Draft) -> compaction.Draft:
        cuts = [cut for cut in draft.cuts if cut <= len(draft.history) - 10]
        return draft.with_fold(upto=cuts[-1]) if cuts else draft
"""

from __future__ import annotations

from sigwire.modules.context.compaction import Draft, Strategy, clear_results, drop_oldest, summarize
from sigwire.modules.context.summary import ConversationSummary

__all__ = ["ConversationSummary", "Draft", "Strategy", "clear_results", "drop_oldest", "summarize"]
