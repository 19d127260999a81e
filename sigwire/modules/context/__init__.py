"""Conversations of any length in windows of any size. An agent loads this when its conversation nears the window of its model.

compaction    Compaction and its strategies: what a fold leaves out
sizes         tokens of turns, windows of models, and the window that the text of a refusal names
folding       the steps of one fold, and the error of a conversation that has nothing left to fold
summary       the summary of what is left out
search_tools  the tools and passages that find what is left out
"""
