"""``Cassette``, a block of code whose traffic with models and tools is recorded or replayed."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias, get_args

from sigwire.cassettes.session import CassetteOptions, CassetteSession, RedactLine, Resolved
from sigwire.errors import ConfigurationError, StateError, warn_user
from sigwire.keywords import ChecksKeywords

__all__ = ["Cassette", "CassetteMode"]

CassetteMode: TypeAlias = Literal["auto", "replay", "record", "new"]


class Cassette(ChecksKeywords):
    """A context manager that records the answers of models and the results of tools in a file, and replays them.

    Programs inside the block run blocking, awaited or streamed; a recording of one replays in the others. Code and threads
    without the context of the block are not recorded, and neither are a direct call ``lm(...)``, embeddings and fetched files:
    in a replay they raise ``CassetteMiss``.

    ``mode``: "replay" sends nothing and raises ``CassetteMiss`` for a question that is not in the file. "record" replaces
    the file, when the block ends without an error; after an error its lines are kept in ``<name>.part``. "new" replays the
    lines of the file and appends what it lacks. "auto" replays if the file exists or the variable ``CI`` is set, else records.
    (vcrpy: none, all, new_episodes, once.)
    ``redact`` gets the object of each line, and of each question before it is looked up, and returns what is written or
    compared. ``tools="run"`` runs tools always. ``strict=True``: lines that a replay did not use, and misses that the program
    caught, raise ``StateError``, else they warn. ``speed``: how fast a stream is replayed; 1.0 keeps the recorded times,
    ``None`` waits for nothing.

    Raises ``StateError`` for a missing or unreadable file, and for one that another block or process records. A torn last line,
    of a process that was killed, counts as not recorded. Secrets are masked by their form (``sk-...``, ``Bearer ...``).

    >>> import tempfile
    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for mode in ("record", "replay"):
    ...         with Cassette(f"{folder}/sum.jsonl", mode=mode):
    ...             print(predict(question="2+2?").answer)  # the model has no second answer
    4
    4
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: CassetteMode = "auto",
        *,
        redact: RedactLine | None = None,
        tools: Literal["replay", "run"] = "replay",
        strict: bool = False,
        speed: float | None = None,
    ) -> None:
        if mode not in get_args(CassetteMode) or tools not in ("replay", "run"):
            raise ConfigurationError(
                f'mode={mode!r:.80}, tools={tools!r:.80} (making a Cassette): mode is "auto", "replay", "record" or "new", and '
                'tools is "replay" or "run".'
            )
        if speed is not None and speed <= 0:
            raise ConfigurationError(f"speed is a number above 0, or None, not {speed!r:.80} (making a Cassette).")
        self.path, self.strict = Path(path), strict
        self.mode: CassetteMode = mode
        self._options = CassetteOptions(redact, tools == "run", speed)
        self._session: CassetteSession | None = None

    def __enter__(self) -> Self:
        if self._session is not None:
            raise StateError(f"The cassette {self.path} is open already (opening it). Make another Cassette.")
        mode = self._resolve()
        if mode == "replay" and not self.path.exists():
            raise StateError(
                f'{self.path} is no file (opening the cassette to replay it). Record it with mode="record" '
                "(pytest --cassette=record), and commit it."
            )
        self._session = CassetteSession(self.path, mode, self._options)
        self._block: AbstractContextManager[None] = self._session.block()
        self._block.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        self._block.__exit__(None, None, None)
        try:
            note = session.close(complete=kind is None)
        except (OSError, StateError) as failure:
            if error is None:
                raise
            note = str(failure)  # the error of the block is what the user must see
        if note and error is not None:
            error.add_note(note)
        elif note:  # the fixture of pytest has no error to show
            warn_user(note, RuntimeWarning)
        if kind is None:
            self._check(session)

    def _resolve(self) -> Resolved:
        if self.mode != "auto":
            return self.mode
        is_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
        return "replay" if is_ci or self.path.exists() else "record"

    def _check(self, session: CassetteSession) -> None:
        """Warn about lines that were not used, and about misses that the program caught; raise if ``strict``."""
        unused, problems = session.unused(), list[str]()
        if unused:
            problems.append(f"{len(unused)} lines were not used, such as line {unused[0].number} ({unused[0].place})")
        if session.misses:
            problems.append(f"{session.misses} CassetteMiss were raised, and caught by the program")
        if not problems:
            return
        text = f'{self.path}: {"; ".join(problems)} (closing the cassette). Record it again with mode="record".'
        if self.strict:
            raise StateError(text)
        warn_user(text, RuntimeWarning)

    def __repr__(self) -> str:
        return f"Cassette({str(self.path)!r}, mode={self.mode!r})"
