"""Failover: a call goes on to another model where one fails, or cannot take the request.

health    the penalties and the circuit of a target
records   the table that ``lm.health()`` returns
consequences  what follows each failure
targets   the models of a route as one form
routing   the order of targets, and one call on its way through them
fallbacks, filters  the models behind a model; an answer that a content filter stopped, as an error
"""
