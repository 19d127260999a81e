"""A landscape of prompts: a simulated model over HTTP whose accuracy depends on what a request says.

concepts   what guidance teaches            tasks      rows, levers, the metric
reading    what a request says              model      how good an answer is
writer     the writing model                server     OpenAI's chat wire
runs       one run of one optimizer         report     the table of runs
run_sigwire, run_dspy (dspy_programs)       the two sides
"""
