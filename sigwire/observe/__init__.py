"""Observe calls: ``callbacks`` (start and end), ``usage`` (tokens), ``place`` (module, turn, example), ``tracing``."""
