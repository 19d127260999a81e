"""Experiments: programs, models, optimizers, seeds and data sets as one grid, measured and compared as one object.

point  Point and Measured: a cell of the grid, and what was found at it
"""
