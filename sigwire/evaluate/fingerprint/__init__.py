"""The content that a result depends on: of a program, its models, its metrics.

reading     ``PartReader``: the named parts of programs, functions and values
identity    ``run_fingerprint``: the parts of a run, and what differs between two runs
"""
