"""Experiments: programs, models, optimizers, seeds and data sets as one grid, measured and compared as one object.

point      Point and Measured: a cell of the grid, and what was found at it
result     ExperimentResult: what an experiment found
arm        ArmResult: an arm over its seeds             comparing  pairs of arms, the best, sensitivity
tables     the table of arms, LaTeX, flat rows         plots      score, front, seeds
page       the page of an experiment, and those of its points
"""
