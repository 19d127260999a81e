"""The published JSON schema of records, and its validator, made once: ``jsonschema.validate`` checks the schema each time."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema.validators import validator_for

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "records.schema.json").read_text(encoding="utf-8"))
VALIDATOR = validator_for(SCHEMA)(SCHEMA)
