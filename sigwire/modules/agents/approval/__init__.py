"""Approval and limits of tool calls.

gate        CallGate: which calls of a turn run                 limits     CallRules and CallCounts
asking      the question about a call, recorded by a journal    suspending  the end of a run that waits
states      the JSON of a run that waits                        resuming   the continuation of such a run
"""
