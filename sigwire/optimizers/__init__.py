"""Optimizers: search for better texts, demos and options of a program. The program itself is never changed.

optimizer  Optimizer, the base of all: compile()     candidate  Candidate: learned texts, demos and options as data
rules      one file an optimizer                     rule       the effects of rules: Measure, Write, Report
operators  what rules share: demos, races, texts     task       the view that a rule has of a search
reflective  the searches of GEPA and SIMBA           judge      which of two candidates is better, beyond noise
engine     performs the effects of rules             selection  statistics of choosing the best of many
reports    the report, its plots and programs        sampling   choices by TPE, or at random
objectives  the headline, other scores, and what a run takes
options    SearchOptions, and their checks
events     Proposed, Measured, Dropped, Kept, ...    errors     SearchPaused, OptimizationInterrupted
progress  SearchProgress: trials, score, calls, money, time left
certificate  a bound on the loss of the rows that a program answers
teleprompter  Teleprompter, with a compile that callbacks see once
"""
