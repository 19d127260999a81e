"""Policies around the exchanges of a call, apart from JSON and from how bytes move.

call       the call, its log, and the seam: layers around an exchange
deadlines  limits of time: ``Timeout`` of a model, ``deadline`` of a context
retry      the layer that retries transient failures
throttle   budgets of retries, by target
waiting    the wait for a future of another call
registry   what a process knows of targets, by key: throttles, limiters, circuits
guard      the lock of state that ``finally`` blocks change
cache      the folder of the cache of responses: a layer around an answer
limits     the folder of the limiter: a layer around an exchange
money      the folder of prices and budgets: a layer around an exchange
failover   the folder of routes: a call goes on to another model
"""
