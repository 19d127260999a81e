"""A server that echoes what it was sent: no secret of a request is in its answer, error, history or frames."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire import Message, Request, Response
from sigwire.core.events import collect
from sigwire.errors import LMError
from sigwire.lm.client import LM
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.http.reply_mask import ReplyMask, StreamMask, sent_secrets
from sigwire.lm.http.transport import HttpTransport
from sigwire.lm.secrets import Secret
from sigwire.testing.clouds.event_stream import EventStreamFraming
from tests.lm.calls import HOWS, ask, forget_keys, stream
from tests.lm.loopback import Host, Reply
from tests.lm.replies import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES

ASK = Request((Message.user("Hi"),))
KEY, HEADER, PASSWORD = "sk-live/abcd-1234567890", "gw-0987654321-zyxw", "hunter2hunter2"
SECRETS = (KEY, HEADER, PASSWORD)
CONVERSE: Any = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 1},
}
WIRES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "chat": ("openai/gpt-4.1", CHAT, {}),
    "responses": ("openai/gpt-4.1", RESPONSES, {"wire": "responses"}),
    "anthropic": ("anthropic/claude-sonnet-4-5", MESSAGES, {}),
    "gemini": ("gemini/gemini-2.5-flash", GEMINI, {}),
    "ollama": ("ollama/qwen3", OLLAMA, {}),
    "converse": ("bedrock/amazon.nova-lite-v1:0", CONVERSE, {"region": "eu-west-1"}),
}
ECHO = " ".join(["You sent", *SECRETS, f"Bearer {KEY}", "and hi"])


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


class Chunks:
    """A streamed reply in chunks of ``size`` bytes."""

    def __init__(self, reply: HttpReply, size: int) -> None:
        self.status, self.headers = reply.status, reply.headers
        self._chunks = [reply.body[at : at + size] for at in range(0, len(reply.body), size)]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)

    async def __aiter__(self) -> Any:
        for chunk in self._chunks:
            yield chunk


class Echo:
    """A transport with a header of its own, whose server echoes every secret."""

    def __init__(self, reply: HttpReply, size: int = 7) -> None:
        self.reply, self.size = reply, size
        self.secrets = ({"x-gateway": Secret(HEADER)},)

    def send(self, request: HttpRequest) -> HttpReply:
        return self.reply

    async def asend(self, request: HttpRequest) -> HttpReply:
        return self.reply

    @contextmanager
    def stream(self, request: HttpRequest) -> Iterator[Any]:
        yield Chunks(self.reply, self.size)

    @asynccontextmanager
    async def astream(self, request: HttpRequest) -> Any:
        yield Chunks(self.reply, self.size)

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


def lm_of(name: str, transport: object) -> LM:
    model, _, options = WIRES[name]
    url = f"https://me:{PASSWORD}@llm.example/v1"
    return LM(model, api_key=KEY, base_url=url, transport=transport, **options)  # type: ignore[arg-type]


def echoing(body: Any, text: str = ECHO) -> bytes:
    return json.dumps(body).replace('"hi"', json.dumps(text)).encode()


def assert_clean(*values: object) -> None:
    for value in values:
        shown = value if isinstance(value, str) else json.dumps(value, default=repr)
        for secret in SECRETS:
            assert secret not in shown
            assert secret.replace("/", "\\/") not in shown


async def answered(how: str, streamed: bool, lm: LM) -> Response:
    return collect(await stream(how, lm, ASK)) if streamed else await ask(how, lm, ASK)


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", WIRES)
async def test_echo_in_an_answer_is_masked_everywhere(how: str, streamed: bool, name: str) -> None:
    body = echoing(WIRES[name][1])
    lm = lm_of(name, Echo(HttpReply(200, {"x-request-id": f"r-{KEY}", "x-echo": HEADER}, body)))
    response = await answered(how, streamed, lm)
    assert "You sent *** *** ***" in response.choices[0].text
    assert response.choices[0].text.endswith("and hi")
    assert_clean(response.to_json(), repr(lm.history), response.raw)


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("name", WIRES)
async def test_echo_in_an_error_is_masked_in_text_and_frames(how: str, streamed: bool, name: str, status: int) -> None:
    body = json.dumps({"error": {"message": ECHO, "type": "invalid_request_error", "code": KEY}}).encode()
    lm = lm_of(name, Echo(HttpReply(status, {"x-request-id": f"r-{KEY}"}, body))).copy(num_retries=0)
    with pytest.raises(LMError) as caught:
        await answered(how, streamed, lm)
    error = caught.value
    assert_clean(str(error), repr(error), repr(error.__cause__), str(error.provider_code), str(error.request_id))
    trace = sys.exc_info()[2] or error.__traceback__
    while trace is not None:
        if "/sigwire/" in trace.tb_frame.f_code.co_filename:
            assert_clean(*(repr(value) for value in trace.tb_frame.f_locals.values()))
        trace = trace.tb_next


@HOWS
async def test_echo_in_an_event_stream_of_bedrock_is_masked(how: str) -> None:
    events: list[Any] = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": ECHO}}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    body = b"".join(EventStreamFraming().frame(event, first=False) for event in events)
    reply = HttpReply(200, {"content-type": "application/vnd.amazon.eventstream"}, body)
    response = await answered(how, True, lm_of("converse", Echo(reply)))
    assert "You sent *** *** ***" in response.choices[0].text
    assert_clean(response.to_json())


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
async def test_headers_of_the_transport_that_a_server_echoes_are_masked(
    how: str, streamed: bool, serve: Callable[..., Host]
) -> None:
    plain = "research-cluster"  # no secret by its name or form: it stays in answers
    host = serve(echoing(CHAT, f"{HEADER} {plain}"), Reply({"error": {"message": f"bad {HEADER} {plain}"}}, 400))
    with HttpTransport(headers={"x-gateway": HEADER, "x-team": plain}) as transport:
        lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, transport=transport)
        assert (await answered(how, streamed, lm)).choices[0].text == f"*** {plain}"
        with pytest.raises(LMError, match=r"bad \*\*\* \*\*\*"):
            await answered(how, streamed, lm)


# --- the mask


@given(st.lists(st.integers(0, 90), max_size=5), st.sampled_from([ECHO, ECHO + KEY[:9], KEY[:5] + KEY + KEY[:-1]]))
def test_stream_mask_of_any_cut_is_the_mask_of_the_whole(places: list[int], text: str) -> None:
    mask, data, at = ReplyMask(SECRETS), text.encode(), sorted(places)
    masked = StreamMask(mask)
    parts = [masked.feed(data[a:b]) for a, b in zip([0, *at], [*at, len(data)], strict=True)]
    assert b"".join(parts) + masked.close() == mask.body(data)


def test_chunks_without_the_start_of_a_secret_are_not_held_back() -> None:
    masked, chunk = StreamMask(ReplyMask([KEY])), b"data: {}\n\n"
    assert masked.feed(chunk) is chunk


COMMON = ["lm-studio", "ollama", "EMPTY", "not-needed", "no-key-required", "sk-no-key-required"]


@pytest.mark.parametrize("word", COMMON)
def test_placeholder_of_a_key_stays_in_answers(word: str) -> None:
    assert sent_secrets({"authorization": Secret(f"Bearer {word}")}) in ((), (f"Bearer {word}",))
    assert word not in sent_secrets(Secret(word))


def test_chunk_without_a_secret_is_searched_once_and_passed_on_as_it_is() -> None:
    mask = ReplyMask(sent_secrets({"authorization": Secret(f"Bearer {KEY}")}, Secret(KEY)))
    assert len(mask.forms) > 1, "the header, the key and their escapes"
    assert set(mask.needles) < set(mask.forms), "the header contains the key"
    stream, chunk = StreamMask(mask), b'data: {"text": "hello"}\n\n'
    assert stream.feed(chunk) is chunk
    assert stream.feed(b"data: " + KEY.encode()[:9]) == b"data: "
    assert stream.feed(KEY.encode()[9:] + b"\n\n") == b"***\n\n"
