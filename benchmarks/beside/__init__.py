"""sigwire beside its peers in the same situations: ``python -m benchmarks.beside``.

libraries    how each library writes a typed call, a text call, an agent and many calls, as its documentation does
situations   the situations: what the provider answers, and what is observed
table        the stored outcomes (outcomes.json) as the table of README

Each library talks to a fake provider over HTTP with its default settings. A library that is not installed is left out.
"""
