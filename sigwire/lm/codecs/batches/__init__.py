"""Batch APIs: many requests in one, answered within a day at half the price. Pure, as the wires of single requests.

    shared    the seam: calls, lines, statuses, listings
    anthropic, gemini, openai    one module a wire, each a ``BatchWire``

A line holds the body that the wire's codec encodes, and a result the body that it decodes. ``WIRES`` names the module of a
row of the provider table.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["WIRES"]

WIRES: Mapping[str, str] = {"anthropic": "anthropic", "gemini": "gemini", "openai": "openai"}
"""The module of each provider that has a batch API."""
