"""Tracing and logging, both as listeners: spans and metrics of OpenTelemetry, and records of ``logging``.

``names`` is the table of names; ``attributes`` and ``content`` turn requests, responses and messages into attributes; ``spans``
starts and ends spans; ``metrics`` and ``events`` record; ``listener`` is the listener; ``instrument`` switches it on. ``paths``
names modules. ``logs`` writes the records of ``logging``. Only ``instrument`` loads OpenTelemetry.
"""
