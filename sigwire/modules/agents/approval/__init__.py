"""Approval and limits of tool calls: gate, asking, limits, suspending, resuming, states."""
