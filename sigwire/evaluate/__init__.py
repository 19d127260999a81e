"""Evaluation: programs are run on examples, their predictions scored, and two programs compared.

statistics   intervals, tests of paired differences, corrections: pure functions
quantiles    normal and Student's t
"""
