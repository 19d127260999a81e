"""The events of streamed replies."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sigwire.core.events import StreamEvent, TextDelta
from sigwire.core.json import JsonValue
from sigwire.effects.emitting import stream
from sigwire.effects.steps import FunctionEffect
from sigwire.lm.stream_events import emit_decoded

EVENTS = 1_000


class Decoder:
    """Counts the events of the wire."""

    def __init__(self) -> None:
        self.fed = 0

    def feed(self, event: JsonValue) -> list[StreamEvent]:
        self.fed += 1
        return [TextDelta(str(event))]

    def close(self, *, end_mark: bool = False) -> list[StreamEvent]:
        return []


class Reply:
    """A reply whose whole body arrives at once, or in chunks."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = iter(chunks)
        self.lifted = 0

    def next(self) -> FunctionEffect[bytes | None]:
        async def awaited() -> bytes | None:
            return next(self._chunks, None)

        return FunctionEffect(lambda: next(self._chunks, None), awaited)

    def end_first(self) -> None:
        self.lifted += 1

    def masked(self, event: JsonValue) -> JsonValue:
        return event


def call() -> Any:
    report = SimpleNamespace(first=None)

    def count_emitted(number: int) -> None:
        report.first = report.first or (1.0 if number else None)

    report.count_emitted = count_emitted
    return SimpleNamespace(report=report)


BODY = b"".join(b"data: %d\n\n" % number for number in range(EVENTS))


@pytest.mark.parametrize("chunks", [[BODY], [BODY[:3], b"", BODY[3:]], [BODY[:1500], BODY[1500:]]])
def test_first_events_are_emitted_before_the_rest_is_decoded(chunks: list[bytes]) -> None:
    decoder, events = Decoder(), list[StreamEvent]()
    reply: Any = Reply(*chunks)

    def decode(*sent: object) -> Decoder:
        return decoder

    codec: Any = SimpleNamespace(FRAMING="sse", decoder=decode)
    nothing: Any = None
    emitted = stream(emit_decoded(call(), reply, codec, nothing, nothing, events))
    assert next(emitted) == TextDelta("0")
    assert decoder.fed < EVENTS / 2
    texts = ["0", *[event.text for event in emitted]]
    assert json.dumps(texts) == json.dumps([str(number) for number in range(EVENTS)])
    assert events == [TextDelta(text) for text in texts]
    assert reply.lifted == 1


class Sliced(bytes):
    """Counts the bytes that slices copy."""

    copied = 0

    def __getitem__(self, key: Any) -> Any:
        found = cast(bytes, bytes(self)[key])
        Sliced.copied += len(found)
        return Sliced(found)


class SilentDecoder(Decoder):
    """Decodes to no event."""

    def feed(self, event: JsonValue) -> list[StreamEvent]:
        return []


def test_bytes_without_events_are_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sliced, "copied", 0)
    body = Sliced(b": still thinking\n" * 5_000)
    reply: Any = Reply(body)
    codec: Any = SimpleNamespace(FRAMING=Lines, decoder=lambda *sent: SilentDecoder())  # pyright: ignore[reportUnknownLambdaType]
    nothing: Any = None
    assert [*stream(emit_decoded(call(), reply, codec, nothing, nothing, []))] == []
    assert Sliced.copied == len(body)


class Lines:
    """A framing that finds nothing."""

    has_end_mark = False

    def __init__(self, limit: int) -> None:
        pass

    def feed(self, data: bytes) -> list[JsonValue]:
        return []

    def close(self) -> list[JsonValue]:
        return []
