"""Recorded traffic, read in place from ``SIGWIRE_FIXTURES`` (else ``../shared/fixtures`` beside the checkout)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FIXTURES = Path(os.environ.get("SIGWIRE_FIXTURES", Path(__file__).parents[3] / "shared" / "fixtures"))

Exchange = dict[str, Any]


def recorded(name: str) -> list[Exchange]:
    """Return the exchanges of a file, none if the file is missing."""
    file = FIXTURES / "wire" / name
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def ids(exchanges: list[Exchange]) -> list[str]:
    return [f"{exchange['id']}-{exchange['provider']}" for exchange in exchanges]
