"""The cost of sigwire beside the same job written by hand: ``python -m benchmarks``.

Every job has a floor next to it: f-strings, ``json`` and pydantic, and nothing else. Floor, sigwire and the installed peers
take turns round by round, so that a busy machine slows every contestant alike. The result is the ratio within one run. The
answer of every contestant is checked before the contestant is timed.

timing     rounds, medians, the table        stub      a model that answers at once, always the same
predict    a call in process (b1 b2 b3)      growth    more fields, demos, turns, tools (j1 to j4)
tools      schemas, one call (e1 e2)         parsing   a large nested answer (f)
cached     a call whose answer is stored (h1 h2)
layers     the policies around a call (l1 to l3), loops and threads (m1)
imports    import and first class (a1)       memory    20,000 calls (i2)
experiments  a grid beside its evaluations (x1 x2), loaded (x3), planned (x4)
answers    answers that deviate from the requested form, by adapter: how many are read (``python -m benchmarks.answers``)
long_histories  turns, views, searches and tools in numbers, against bounds of CPU time (k1 to k6)
conversations  what is recalled of a long conversation, and its price (``python -m benchmarks.conversations``)
entries    the functions and files that a call and a streamed delta enter: exact counts, without times
peers      dspy, pydantic-ai and langchain, if installed
"""

import os

os.environ["SIGWIRE_CACHE"] = "off"  # of this process and of those that it starts; the jobs of ``cached`` switch it on
