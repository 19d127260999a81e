"""Recorded runs: a program that was killed goes on where it was, and repeats no effect that it finished.

journal   Journal, the public face     session   one run: records and replays effects     errors     pending calls, divergence
store     the SQLite file              packing   values as bytes                          lock       one owner for each run
records   rows as values               divergence  the difference of two fingerprints     results    results as JSON
verdicts  decisions about tool calls that ask for approval    forking   runs that begin with the effects of another
"""
