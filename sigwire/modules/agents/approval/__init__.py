"""Approval and limits of tool calls.

gate    CallGate: which calls of a turn run                  limits    CallRules and CallCounts
asking  the question about a call, recorded by a journal     states    the JSON of a run that waits
resuming  a run is suspended, and continued by its decisions
"""
