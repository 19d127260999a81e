"""The table of README that has sigwire beside its peers: sigwire's column is observed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.beside.libraries import LIBRARIES
from benchmarks.beside.situations import SITUATIONS, observe
from benchmarks.beside.table import stored, table
from sigwire import configure_cache

SLOW = [name for name in SITUATIONS if name.startswith("100 calls at once")]


@pytest.mark.filterwarnings("ignore::sigwire.ToolWarning")  # of the tool that raises
@pytest.mark.parametrize(
    "situation", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in SITUATIONS]
)
def test_column_of_sigwire_is_what_is_observed(situation: str, tmp_path: Path) -> None:
    configure_cache(disk_cache_dir=tmp_path)  # the default, which the suite switches off
    assert observe(situation, LIBRARIES["sigwire"]) == stored()["rows"][situation]["sigwire"]


def test_table_has_every_situation_and_every_library() -> None:
    assert list(stored()["rows"]) == list(SITUATIONS)
    assert list(stored()["versions"]) == list(LIBRARIES)
    assert len(table(stored()).splitlines()) == 2 + len(SITUATIONS)
