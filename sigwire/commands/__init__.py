"""The verbs of the command line, one file each: ``add(parser)``, and ``run(options)``, which returns the exit status.

eval        an evaluation                       view           the report of an evaluation, as HTML
export      records in another format           preview        the request of a call, without the call
check       what a model does not take          optimize       a search
models      providers, keys and prices          doctor         facts for a bug report
verify      what a model really does            cache          what the prompt cache read of recorded calls
completion  completions of shells               fake_provider  a provider on the loopback interface
scale       runs over many rows: coordinator, batch

parser      the parser of all verbs              output         tables, JSON, errors, exit status
programs    app:program, its model and state    data           files of examples, inputs of programs
arguments   arguments by name, and errors in terms of them

A file imports nothing but the standard library at its top: ``sigwire VERB --help`` loads it. ``sigwire --help`` loads none.
"""
