"""Previews of programs: the requests that a program would send, and the history of the calls that it made.

whole_program  preview_all, check: every request of a program      findings  Finding: a part that a model does not take
made_up        made-up inputs and answers of a type                history   the last calls of models, as values and printed
"""
