"""Cassettes: the traffic of a program with models and tools, recorded as lines of JSON and replayed without either.

cassette  Cassette, the public face      session    one block: replays and records effects     errors  CassetteMiss
lines     the file                       exchanges  the lines of tools and clocks          asks    the line of a question
packing   secrets and media of a line
"""
