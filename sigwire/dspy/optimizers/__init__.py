"""Parts of the optimizers of the door.

reanchor  ReAnchor: the numbers of decisions
gepa      GEPA with DSPy's metric and proposers          random_search  the random search with ``restrict``
together  BetterTogether as DSPy's class takes it        unavailable    optimizers that have their names only
"""
