"""A landscape of prompts: a simulated model over HTTP whose accuracy depends on the content of requests.

concepts   sentences and what they teach    tasks      rows, levers, the metric
reading    the parts of a request           model      how good an answer is
writer     the writing model                server     OpenAI's chat wire
runs       one run of one optimizer         report     the table of runs
run_sigwire, run_dspy (dspy_programs)       the two sides
"""
