"""Experiments: programs, models, optimizers, seeds and data sets as one grid, measured and compared as one object.

declaration  the values of its axes, checked     experiment  Experiment
planning     ExperimentPlan, before any call     running     a run under way, and its events
record       experiment.json, and what changed   folder      the files of an experiment, load_experiment
progress     how many points are finished        point       a cell of the grid, and what was found at it
result       ExperimentResult                    arm         ArmResult: an arm over its seeds
reproducing  an experiment run again from its files, with the recorded answers or with new ones
comparing    pairs of arms, the best, sensitivity
tables       the table of arms, LaTeX, flat rows
plots        score, front, seeds                 page        the page of an experiment, and those of its points
"""
