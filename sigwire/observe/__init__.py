"""Watching calls: ``callbacks`` (what starts and ends), ``usage`` (tokens).

Lies below ``adapters`` and ``lm``, so both can report; who listens is told from above, by ``settings``.
"""
