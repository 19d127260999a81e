"""Observe calls: listeners of their start and end, their tokens, and the place in a program that makes them.

callbacks  listeners at start and end       tracing    spans, metrics and records of ``logging``, as listeners
usage      tokens of any part of a program  place      module, turn and example of a call
otel       instrument(), uninstrument()     log_names  the loggers, and whether they show calls
reports    the calls in a call, as a tree
"""
