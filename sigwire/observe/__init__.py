"""Observe calls: ``callbacks`` (start and end of calls), ``usage`` (tokens). Used by ``adapters``, ``lm`` and above."""
