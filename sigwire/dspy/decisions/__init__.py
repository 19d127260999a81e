"""Outputs that are decided, as in DSPy: their types, ``Predict.fields``, and the optimizer that fits its numbers.

values    Noul, Choice, Score                      fields     Predict.fields: rules, instructions and criteria by output
asking    how a call of Predict gets evidence      reanchor   ReAnchor
"""
