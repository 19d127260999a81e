"""Optimizers: search for better texts, demos and options of a program. The program itself is never changed.

candidate       Candidate: the learned texts, demos and options as data; slots(), applied()
"""
