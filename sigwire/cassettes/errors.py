"""``CassetteMiss``: a program asks what its cassette does not have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sigwire.core.json import JsonObject
from sigwire.effects.network import NetworkUse
from sigwire.errors import StateError
from sigwire.journal.errors import JournalDivergence

__all__ = ["CassetteMiss"]


class CassetteMiss(JournalDivergence):
    """A cassette has no line for an effect of the program; nothing was sent and no tool was run.

    Attributes: ``path`` of the file, ``place`` in the program, ``now`` (the question as JSON), ``recorded`` (the nearest
    question of the file; empty if it has none), ``diff`` (a text). Like ``JournalDivergence``, it ends a run also in a tool.
    """

    def __init__(self, path: Path, place: str, recorded: JsonObject, now: JsonObject, what: str, diff: str) -> None:
        self.path, self.place, self.recorded, self.now, self.diff = path, place, recorded, now, diff
        StateError.__init__(
            self,
            f"{path} has no line for this: {what} (replaying {place}). Undo the change of the program or its inputs; or record "
            f'with mode="new" or mode="record" (pytest --cassette=new), and review the new lines.\n{diff}'.rstrip(),
        )

    @classmethod
    def outside(cls, path: Path, place: str, use: NetworkUse, target: str) -> CassetteMiss:
        """Return the error for something that a replay would send and that no cassette records."""
        what, instead = _OUTSIDE[use]
        miss = cls(path, place, {}, {use: target}, what, "")
        miss.args = (
            f"{path} is replayed, and {what.format(target=target)} (replaying {place or 'the block'}; nothing was sent). "
            f"{instead}",
        )
        return miss


_OUTSIDE: Mapping[NetworkUse, tuple[str, str]] = {
    "model": (
        "{target} would be asked outside of a module, which no cassette records",
        "Ask with a module such as Predict, or use a FakeLM or offline/lexical for direct calls and embeddings.",
    ),
    "tool": (
        "the MCP server {target} would be opened",
        'Open it with Cassette(..., tools="run"), or before the block of the cassette.',
    ),
    "file": (
        "a file would be fetched from {target}",
        "Fetch it before the block of the cassette, or read it from disk.",
    ),
}
