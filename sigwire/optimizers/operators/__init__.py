"""Operators of searches, which rules share.

demos      demos from runs and from rows             proposing  new instructions, summaries, rules
racing     race(): losers are dropped by blocks      climbing   one step of coordinate ascent
choosing   candidates as choices by predictor         texts      checks of proposals, fences
holding    rows on which no candidate may be worse     labels     models, adapters, options by label
deciding   numbers of rules to try                   fitting_rules  the rules of a program while they are fitted
"""
