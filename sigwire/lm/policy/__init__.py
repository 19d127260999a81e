"""Policies around the exchanges of a call, apart from JSON and from how bytes move.

call     the call, its log, and the seam: layers around an exchange
retry    the layer that retries transient failures
waiting  the wait for a future of another call
"""
