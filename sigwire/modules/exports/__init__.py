"""Exports: the request of a call as data for code without sigwire."""
