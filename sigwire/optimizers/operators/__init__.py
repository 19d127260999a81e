"""Operators of searches, which rules share: how candidates are made, varied and raced."""
