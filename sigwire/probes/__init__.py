"""Probes: what a model does, compared with what the provider table promises, in at most 40 requests.

table      the probes as rows: a request, what its answer must show, the capabilities that promise it
decisions  the rows of models that decide only
questions  messages, tools, schemas, media     promises   whether the table promises a feature, and how to ask all the same
running    the steps: ask, judge, ask again    report     ProbeRow, Verification
verify     verify, averify, and the plan before them
"""
