"""What sigwire costs beside the same job written by hand: ``python -m benchmarks``.

Every job has a floor next to it: f-strings, ``json`` and pydantic, with nothing around them. Floor, sigwire and whatever peers
are installed take turns round by round, so that a busy machine slows all of them alike; what counts is the ratio within one
run. Every contestant's answer is checked before it is timed.

timing     rounds, medians, the table        stub      a model that answers at once, always the same
predict    a call in process (b1 b2 b3)      growth    more fields, demos, turns, tools (j1 to j4)
tools      schemas, one call (e1 e2)         parsing   a large nested answer (f)
imports    import and first class (a1)       memory    20,000 calls (i2)
peers      dspy, pydantic-ai and langchain, where somebody installed them
"""
