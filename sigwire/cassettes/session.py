"""One block of a cassette: replays the effects that the file has, performs and records the others, as the mode allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias, cast

from sigwire.cassettes.asks import AskExchange
from sigwire.cassettes.errors import CassetteMiss
from sigwire.cassettes.exchanges import Exchange, ReadingExchange, ToolExchange
from sigwire.cassettes.lines import HEADS, CassetteFile, CassetteLine, LineSet, read_lines, without_failures
from sigwire.cassettes.packing import pack, unpack
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_object
from sigwire.effects.network import NetworkUse, refusing_network
from sigwire.effects.performing import Frame, Recordable, current_frame, performing
from sigwire.effects.steps import Effect, Steps
from sigwire.errors import ConfigurationError, StateError
from sigwire.lm.policy.cache.keys import canonical_bytes
from sigwire.modules.ask import Ask

__all__ = ["CassetteOptions", "CassetteSession", "RedactLine", "Resolved"]

RedactLine: TypeAlias = Callable[[JsonObject], JsonObject]
Resolved: TypeAlias = Literal["replay", "record", "new"]


@dataclass(frozen=True, slots=True)
class CassetteOptions:
    """The options of a cassette, as its constructor takes them.

    ``asks_again``: a question whose provider failed, and may not fail again, is asked again; a replay leaves such a failure out
    if the question was answered later.
    """

    redact: RedactLine | None
    runs_tools: bool
    speed: float | None
    asks_again: bool = False


class CassetteSession:
    """A block from its start to its end."""

    def __init__(self, path: Path, mode: Resolved, options: CassetteOptions) -> None:
        self.path, self._options = path, options
        self._file = None if mode == "replay" else CassetteFile(path, replaces=mode == "record")
        self._replays, self._is_open = mode == "replay", True
        lines = read_lines(path) if self._file is None else self._file.lines
        self._lines = LineSet(without_failures(lines, all_of_them=not self._replays) if options.asks_again else lines)
        self.misses = 0

    @contextmanager
    def block(self) -> Generator[None]:
        """The block in which the program must run. A replay refuses the network."""
        with performing(Frame(self._perform)), refusing_network(self._refuse) if self._replays else nullcontext():
            yield

    def _refuse(self, use: NetworkUse, target: str) -> Exception | None:
        """Return the error for something that would be sent in a replay; ``None`` for a server of tools that are to run."""
        if use == "tool" and self._options.runs_tools:
            return None
        self.misses += 1
        frame = current_frame()
        return CassetteMiss.outside(self.path, frame.path if frame else "", use, target)

    def close(self, *, complete: bool) -> str:
        """Close the file. Return where the lines of a recording that is not complete are; an empty text if there are none."""
        self._is_open = False
        kept = 0 if self._file is None else self._file.close(complete=complete)
        if self._file is None or not kept:
            return ""
        return (
            f"{kept} recorded lines are kept in {self._file.part} (closing the cassette {self.path} after an error). Rename "
            f'it to {self.path.name} and pass mode="new" to record the rest; the next recording replaces it.'
        )

    def unused(self) -> list[CassetteLine]:
        """Return the lines that a replay has not used. What ran inside a tool is left out, as the tool did not run."""
        heads = [head for head in HEADS if not self._options.runs_tools or head not in _OF_TOOLS]
        found = self._lines.unused(heads) if self._replays else []
        return [line for line in found if self._options.runs_tools or not _IN_TOOL.search(line.place)]

    # --- effects ---

    def _perform(self, effect: Recordable[object], frame: Frame) -> Steps[object]:
        if not self._is_open:
            raise StateError(
                f"The cassette {self.path} is closed (performing {frame.path}). Read streams inside its with block."
            )
        exchange = self._exchange(effect)
        if exchange is None:
            return (yield effect)
        media: dict[str, bytes] = {}
        question = self._redacted(cast("JsonObject", pack(exchange.question(), media.__setitem__)))
        key = _key(exchange.head, question)
        line = self._lines.take(exchange.head, key, frame.path)
        if line is None and self._replays and "sample" in question:  # of a recording without samples
            common = {name: value for name, value in question.items() if name != "sample"}
            line = self._lines.take(exchange.head, _key(exchange.head, common), frame.path)
        miss = partial(self._miss, exchange.head, frame.path, question, line)
        if line is not None:
            return (yield self._replayed(exchange, line, miss))
        if self._replays:
            raise miss()
        write = partial(self._write, exchange.head, {"place": frame.path, "key": key, **question}, media)
        return (yield from exchange.record(write))

    def _exchange(self, effect: Recordable[object]) -> Exchange | None:
        """Return the line of an effect; ``None`` for a tool run, and its approval, that are not to be recorded."""
        if isinstance(effect, Ask):
            return AskExchange(effect, self._options.speed)
        if effect.kind in _OF_TOOLS and self._options.runs_tools:
            return None
        return ToolExchange(effect) if effect.kind == "tool" else ReadingExchange(effect)

    def _replayed(self, exchange: Exchange, line: CassetteLine, miss: Callable[[], Exception]) -> Effect[object]:
        try:
            data = cast("JsonObject", unpack(line.data, self.path.with_name(f"{self.path.stem}.media")))
            return exchange.replay(data, miss)
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise StateError(
                f"{self.path}, line {line.number}, cannot be replayed: {error!r:.300} (replaying {line.place}). Correct the "
                "line, or record again."
            ) from error

    def _write(self, head: str, question: JsonObject, media: dict[str, bytes], outcome: JsonObject) -> None:
        if self._file is not None and self._is_open:
            packed = cast("JsonObject", pack(outcome, media.__setitem__))
            self._file.add(head, self._redacted({**question, **packed}), media)

    def _redacted(self, data: JsonObject) -> JsonObject:
        if self._options.redact is None:
            return data
        changed: object = self._options.redact(data)
        if not is_object(changed):
            raise ConfigurationError(
                f"redact returns the object of a line, not {type(changed).__name__} (changing a line of {self.path}). "
                "Return a dict."
            )
        return changed

    def _miss(self, head: str, place: str, question: JsonObject, line: CassetteLine | None) -> CassetteMiss:
        """Return the error for a question without a line; with ``line``, for a stream that is read further than it was."""
        from sigwire.journal.divergence import difference  # only misses need it

        self.misses += 1
        if line is not None:
            return CassetteMiss(
                self.path, place, line.question(), question, f"line {line.number} ends here, {_CLOSED}", ""
            )
        nearest = self._lines.nearest(head, place, question)
        if nearest is None:
            return CassetteMiss(self.path, place, {}, question, f"it has no line {head!r} at all", "")
        before, now = nearest.question(), question
        if before == now:
            what, diff = f"line {nearest.number} and its equals are used up", ""
        else:
            what, diff = difference(_flat(before), _flat(now))
        return CassetteMiss(self.path, place, before, now, f"{what}, compared with line {nearest.number}", diff)


def _key(head: str, question: JsonObject) -> str:
    return sha256(canonical_bytes([head, question])).hexdigest()[:32]


_OF_TOOLS = ("tool", "approval")
_IN_TOOL = re.compile(r"(?:^|/)tool\.\d+/(?!approval)")
_CLOSED = "as the stream was closed there"


def _flat(question: JsonObject) -> JsonObject:
    request: JsonValue = question.get("request")
    rest = {name: value for name, value in question.items() if name != "request"}
    return {**rest, **request} if isinstance(request, dict) else rest
