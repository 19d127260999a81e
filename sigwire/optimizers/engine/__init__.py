"""The engine of searches.

engine    performs the effects of a rule            search  rows, and the comparison with the student at the end
store     finished runs and answers; the journal    plan    the cost of a search, before any call
spending  the budget and the totals                 identity  the digests that identify a search in its journal
reuse     answers of models that are known          sizes   tokens and money of the calls of a plan
"""
