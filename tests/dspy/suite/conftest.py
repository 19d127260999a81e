"""The files run in processes of the command: the plugin needs its environment."""

from __future__ import annotations

collect_ignore_glob = ["*.py"]
