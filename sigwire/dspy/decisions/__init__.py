"""Outputs that are decided, as in DSPy.

values    Noul, Choice, Score                      fields     Predict.fields: rules, instructions and criteria by output
asking    how a call of Predict gets evidence
"""
