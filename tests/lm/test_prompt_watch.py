"""Prompts that a server cut are found by the tokens that it counted: made-up tokenizers, and answers over HTTP."""

from __future__ import annotations

import random
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, TextPart
from sigwire.core.request import Request
from sigwire.core.response import Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.effects.emitting import astream, stream
from sigwire.effects.steps import arun, run
from sigwire.errors import ContextWindowExceededError, UnsupportedFeature
from sigwire.lm.base import BaseLM
from sigwire.lm.client import LM
from sigwire.lm.prompt_watch import PromptWatch, size_of
from sigwire.lm.router import Router
from sigwire.modules.agents.react import ReAct
from sigwire.testing import Answer, FakeProvider

PROSE = (
    "The committee met again in the afternoon, and it decided that none of the older bridges would be closed. ".split()
)
CODE = (
    "def read(self, path: str) -> dict[str, int]: return {k: v for k, v in self._rows[path].items() if v > 0} ".split()
)
CHINESE = list("委员会下午再次开会决定不关闭任何一座旧桥明天继续讨论")
WORDS = {"prose": PROSE, "code": CODE, "chinese": CHINESE}


def text_of(kind: str, size: int, chance: random.Random) -> str:
    """Return a text of about ``size`` bytes."""
    words, blank = WORDS[kind], "" if kind == "chinese" else " "
    mean = sum(len((word + blank).encode()) for word in words) / len(words)
    return blank.join(chance.choices(words, k=round(size / mean)))


def asked(text: str) -> Request:
    return Request((Message.system("Answer."), Message.user(text)))


class Tokenizer:
    """Counts a token for a number of bytes, differing by 5 % between texts, and some for the template."""

    def __init__(self, bytes_a_token: float, template: int, chance: random.Random) -> None:
        self.bytes_a_token, self.template, self.chance = bytes_a_token, template, chance

    def count(self, request: Request, kept: float = 1.0) -> int:
        ratio = self.bytes_a_token * self.chance.uniform(0.95, 1.05)
        return round(size_of(request).bytes * kept / ratio) + self.template


@st.composite
def servers(draw: st.DrawFn) -> tuple[PromptWatch, Tokenizer, str, random.Random]:
    """A watch that has seen short prompts of a server, its tokenizer, and the kind of its texts."""
    chance = random.Random(draw(st.integers(0, 10_000)))
    kind = draw(st.sampled_from(sorted(WORDS)))
    tokenizer = Tokenizer(draw(st.floats(1.5, 6.0)), draw(st.integers(0, 40)), chance)
    watch = PromptWatch()
    for _ in range(draw(st.integers(3, 6))):
        request = asked(text_of(kind, chance.randrange(2500, 3600), chance))
        assert watch.warning(request, Usage(tokenizer.count(request), 10)) is None
    return watch, tokenizer, kind, chance


@given(servers(), st.integers(6_000, 30_000))
def test_watch_finds_no_cut_in_a_whole_prompt(
    server: tuple[PromptWatch, Tokenizer, str, random.Random], size: int
) -> None:
    watch, tokenizer, kind, chance = server
    request = asked(text_of(kind, size, chance))
    assert watch.warning(request, Usage(tokenizer.count(request), 10)) is None


@given(servers(), st.integers(6_000, 30_000), st.floats(0.1, 0.6))
def test_watch_finds_every_prompt_that_was_cut_below_six_tenths(
    server: tuple[PromptWatch, Tokenizer, str, random.Random], size: int, kept: float
) -> None:
    watch, tokenizer, kind, chance = server
    request = asked(text_of(kind, size, chance))
    tokenizer.template = 0
    found = watch.warning(request, Usage(tokenizer.count(request, kept), 10))
    assert found is not None
    assert found.feature == "context"


@given(servers(), st.sampled_from(sorted(WORDS)), st.integers(6_000, 30_000))
def test_watch_finds_no_cut_in_a_whole_prompt_of_another_kind_of_text(
    server: tuple[PromptWatch, Tokenizer, str, random.Random], kind: str, size: int
) -> None:
    """The tokenizer counts what a common vocabulary counts: 4.5 bytes of prose, 3 of code, 3 of Chinese."""
    watch, tokenizer, learned, chance = PromptWatch(), server[1], server[2], server[3]
    usual = {"prose": 4.5, "code": 3.0, "chinese": 3.0}
    tokenizer.bytes_a_token = usual[learned]
    for _ in range(3):
        request = asked(text_of(learned, 3000, chance))
        watch.warning(request, Usage(tokenizer.count(request), 10))
    tokenizer.bytes_a_token = usual[kind]
    request = asked(text_of(kind, size, chance))
    assert watch.warning(request, Usage(tokenizer.count(request), 10)) is None


@given(st.floats(1.5, 6.0), st.integers(6_000, 30_000))
def test_watch_without_an_earlier_answer_finds_no_cut_in_a_whole_prompt(ratio: float, size: int) -> None:
    request = asked(text_of("prose", size, random.Random(size)))
    assert PromptWatch().warning(request, Usage(round(size_of(request).bytes / ratio), 10)) is None


def test_missing_count_means_nothing_and_teaches_nothing() -> None:
    watch, request = PromptWatch(), asked(text_of("prose", 40_000, random.Random(1)))
    assert watch.warning(request, Usage(None, 10)) is None
    assert watch.warning(request, Usage(0, 10)) is None


@pytest.mark.parametrize(("counted", "written", "found"), [(7_000, 1_191, True), (7_000, 1_190, False)])
def test_full_window_is_found(counted: int, written: int, found: bool) -> None:
    request = asked(text_of("prose", 40_000, random.Random(1)))
    assert (PromptWatch().warning(request, Usage(counted, written), 8192) is not None) is found


def test_prompt_with_an_image_teaches_nothing() -> None:
    watch, text = PromptWatch(), text_of("prose", 3000, random.Random(1))
    with_image = Request((Message("user", (TextPart(text), ImagePart(data="iVBO", media_type="image/png"))),))
    for _ in range(5):
        watch.warning(with_image, Usage(3000, 1))
    assert watch.warning(asked(text * 10), Usage(6700, 1)) is None


# --- over HTTP -----------------------------------------------------------------------------------------

LONG = "One of many words. " * 2000  # 38,000 bytes
SERVERS = {"ollama": ("ollama/m", "ollama"), "vllm": ("vllm/m", "openai"), "openai": ("openai/our-own", "openai")}
DRIVERS = ("blocking", "awaited", "blocking stream", "awaited stream")


async def respond(lm: BaseLM, request: Request, driver: str) -> Response:
    how, _, streamed = driver.partition(" ")
    steps = partial(lm.steps, request, streamed=bool(streamed))
    return run(steps()) if how == "blocking" else await arun(steps())


def counting(counted: int) -> Answer:
    from sigwire.core.response import Choice

    return Response((Choice("Yes."),), Usage(counted, 5))


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(("counted", "warned"), [(9_500, []), (2_000, ["context"])])
async def test_answer_to_a_prompt_that_was_cut_has_a_warning(
    server: str, driver: str, counted: int, warned: list[str]
) -> None:
    name, wire = SERVERS[server]
    with FakeProvider(lambda _: counting(counted)) as provider:
        lm = LM(name, base_url=provider.url(wire), api_key="any")
        response = await respond(lm, asked(LONG), driver)
        lm.close()
    assert [warning.feature for warning in response.warnings] == warned
    assert all("num_ctx" in warning.detail for warning in response.warnings)


async def test_last_event_of_a_stream_has_the_warning() -> None:
    with FakeProvider(lambda _: counting(2_000)) as provider:
        lm = LM("ollama/m", base_url=provider.url("ollama"))
        events = [*stream(lm.steps(asked(LONG), streamed=True))]
        awaited = [event async for event in astream(lm.steps(asked(LONG), streamed=True))]
        lm.close()
    ends = [event for event in [*events, *awaited] if getattr(event, "kind", "") == "response_end"]
    assert [[warning.feature for warning in end.warnings] for end in ends] == [["context"], ["context"]]


def test_model_learns_from_its_answers() -> None:
    short = Request((Message.user("One of many words. " * 150),))
    with FakeProvider([counting(715)] * 3 + [counting(5_000)]) as provider:
        lm = LM("vllm/m", base_url=provider.url("openai"), api_key="any")
        whole = [lm.respond(short).warnings for _ in range(3)]
        cut = lm.respond(Request((Message.user(LONG),))).warnings
        lm.close()
    assert whole == [(), (), ()]
    assert [warning.feature for warning in cut] == ["context"]


def test_prompt_over_the_window_of_its_request_has_a_warning_before_the_call() -> None:
    lm = LM("ollama/m", num_ctx=2048)
    assert [warning.feature for warning in lm.preview(asked(LONG)).warnings] == ["context"]
    beside = LM("ollama/m", extra_body={"options": {"num_ctx": 2048}})
    assert [warning.feature for warning in beside.preview(asked(LONG)).warnings] == ["context"]
    assert lm.preview(asked("Short.")).warnings == LM("ollama/m").preview(asked(LONG)).warnings == ()


READ: list[tuple[int, JsonValue, list[str]]] = [
    (40_000, 9_000, []), (40_000, 1_200, ["context"]), (40_000, None, []), (100, 1, [])
]  # fmt: skip


@pytest.mark.parametrize(("size", "read", "warned"), READ)
def test_row_75_truncated_prompt_gets_a_warning(size: int, read: JsonValue, warned: list[str]) -> None:
    from sigwire.testing import Raw

    counts: JsonObject = {} if read is None else {"prompt_eval_count": read}
    message: JsonObject = {"role": "assistant", "content": "a"}
    with FakeProvider([Raw({"message": message, "done": True, "done_reason": "stop", **counts})]) as provider:
        lm = LM("ollama/m", base_url=provider.url("ollama"))
        response = lm.respond(Request((Message.user("a" * size),)))
        lm.close()
    assert [warning.feature for warning in response.warnings] == warned
    assert all("num_ctx" in warning.detail for warning in response.warnings)


# --- refused prompts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", DRIVERS)
async def test_strict_window_sends_nothing_when_the_window_of_the_request_is_too_small(driver: str) -> None:
    with FakeProvider(["a"]) as provider:
        lm = LM("ollama/m", base_url=provider.url("ollama"), num_ctx=2048, strict_window=True)
        with pytest.raises(ContextWindowExceededError, match=r"\(encoding the request\): About 9,\d+ tokens") as caught:
            await respond(lm, asked(LONG), driver)
        assert provider.requests == ()
        assert (await respond(lm, asked("Short."), driver)).choices[0].text == "a"
        lm.close()
    assert isinstance(caught.value, UnsupportedFeature)
    assert [type(error).__name__ for error in lm.preview(asked(LONG)).errors] == ["PromptTooLong"]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("server", SERVERS)
async def test_strict_window_refuses_an_answer_to_a_part_of_the_prompt(server: str, driver: str) -> None:
    name, wire = SERVERS[server]
    with FakeProvider(lambda _: counting(2_000)) as provider:
        lm = LM(name, base_url=provider.url(wire), api_key="any", strict_window=True)
        with pytest.raises(
            ContextWindowExceededError, match=r"part of the prompt\. The server counted 2,000"
        ) as caught:
            await respond(lm, asked(LONG), driver)
        lm.close()
    (attempt,) = caught.value.attempts
    assert (attempt.error, attempt.usage.input_tokens) == ("context_length", 2_000)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("options", [{"num_ctx": 2048}, {}], ids=["before", "after"])
async def test_cut_prompt_leads_to_the_next_target_when_the_window_is_strict(
    driver: str, options: dict[str, int]
) -> None:
    with FakeProvider(lambda _: counting(2_000)) as small, FakeProvider([counting(9_500)]) as large:
        first = LM("ollama/m", base_url=small.url("ollama"), strict_window=True, **options)
        router = Router([first, LM("openai/gpt-4.1", base_url=large.url("openai"), api_key="any")])
        emitted = not options and "stream" in driver  # content of the first answer: no other target is asked
        if emitted:
            with pytest.raises(ContextWindowExceededError):
                await respond(router, asked(LONG), driver)
        else:
            response = await respond(router, asked(LONG), driver)
            assert [each.purpose for each in response.attempts] == ["skip" if options else "ask", "fallback"]
        assert router.health()[0].penalty == 0.0
        router.close()


@pytest.mark.parametrize("how", ["blocking", "awaited", "streamed"])
async def test_agent_shortens_its_conversation_to_a_strict_window(how: str) -> None:
    def look(page: int) -> str:
        """Read a page."""
        return f"Page {page}. " + "One of many words. " * 300

    calls = [ToolCall(f"call_{page}", "look", {"page": page}) for page in range(4)]
    script: list[Answer] = [*calls[:3], "Pages 0 and 1 were read.", calls[3]]  # the fourth request asks for the summary
    with FakeProvider([*script, ToolCall("call_9", "submit", {"answer": "Done."})]) as provider:
        lm = LM("ollama/m", base_url=provider.url("ollama"), num_ctx=4096, strict_window=True)
        agent = ReAct("question -> answer", tools=[look], lm=lm)
        if how == "streamed":
            found = list(agent.stream(question="?"))[-1].value
        else:
            found = agent(question="?") if how == "blocking" else await agent.acall(question="?")
        lm.close()
    assert found.answer == "Done."
    sent = [each.request for each in provider.requests if each.request is not None]
    whole = [
        [len(result.text) == len(look(0)) for each in request.messages for result in each.tool_results]
        for request in sent
    ]
    # The third result would exceed the window: a summary replaces what is older, and the conversation keeps all.
    assert whole == [[], [True], [True, True], [], [True], [True, True]]
    assert "Pages 0 and 1 were read." in sent[4].messages[2].text
    results = [result for step in found.steps for result in step.results if result.name == "look"]
    assert [result.text == look(page) for page, result in enumerate(results)] == [True] * 4
