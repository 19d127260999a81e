"""Media made to fit each provider, over the fake provider, which refuses what the real ones refuse."""

from __future__ import annotations

import base64
import io
import random
import sys
import threading
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

import sigwire
from sigwire.core.events import collect
from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart, TextPart
from sigwire.core.request import Request
from sigwire.core.response import LMWarning, Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import CallerError, LMInvalidRequestError, UnsupportedFeature
from sigwire.lm.client import LM
from sigwire.lm.codecs.anthropic import profiles as anthropic_profiles
from sigwire.lm.codecs.bedrock_converse import tables as converse_tables
from sigwire.lm.codecs.gemini import profiles as gemini_profiles
from sigwire.lm.codecs.ollama import tables as ollama_tables
from sigwire.lm.codecs.openai_chat import profiles as chat_profiles
from sigwire.lm.codecs.openai_responses import profiles as responses_profiles
from sigwire.lm.codecs.shared.interface import WireProfile
from sigwire.lm.media import fitting, pictures
from sigwire.lm.media.fitting import fit_media
from sigwire.lm.media.limits import LIMITS, MediaLimits
from sigwire.lm.portable import to_provider
from sigwire.lm.providers.families import FAMILIES
from sigwire.media.errors import UnsupportedMedia
from sigwire.media.sniff import pixels_of, sniff
from sigwire.testing import FakeProvider

MODELS = {
    "anthropic": "anthropic/claude-haiku-4-5",
    "openai": "openai/gpt-4.1-mini",
    "openai-responses": "openai/gpt-4.1-mini",
    "gemini": "gemini/gemini-3-flash",
    "ollama": "ollama/llava",
}
WIRES = pytest.mark.parametrize("wire", MODELS)
HOWS = pytest.mark.parametrize("how", ["blocking", "async", "streamed", "async streamed"])


def picture(form: str, size: tuple[int, int], mode: str = "RGB", color: object = 128, **options: object) -> ImagePart:
    buffer = io.BytesIO()
    Pillow.new(mode, size, color).save(buffer, form, **options)  # type: ignore[arg-type]
    return part_of(buffer.getvalue(), f"image/{form.lower()}")


def part_of(content: bytes, media_type: str | None) -> ImagePart:
    return ImagePart(data=base64.b64encode(content).decode(), media_type=media_type)


def noise(width: int, height: int) -> ImagePart:
    """An image that PNG cannot compress."""
    image = Pillow.frombytes("RGB", (width, height), random.Random(0).randbytes(3 * width * height))
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=0)
    return part_of(buffer.getvalue(), "image/png")


BMP, LONG, LARGE = picture("BMP", (40, 30)), picture("PNG", (8100, 3)), noise(1300, 1100)
TIFF = picture("TIFF", (40, 30), "RGBA", (1, 2, 3, 0))


def model_at(provider: FakeProvider, wire: str) -> LM:
    options = {"wire": "responses"} if wire == "openai-responses" else {}
    return LM(MODELS[wire], base_url=provider.url(wire), api_key="k", cache=False, limit=False, **options)


async def ask(how: str, lm: LM, *media: MediaPart) -> Response:
    request = Request((Message.user("Describe.", *media),))
    match how:
        case "blocking":
            return lm.respond(request)
        case "async":
            return await lm.arespond(request)
        case "streamed":
            return collect(lm.stream(request))
        case _:
            return collect([event async for event in lm.astream(request)])


def received(provider: FakeProvider) -> list[ImagePart]:
    parts = [part for message in provider.requests[-1].request.messages for part in message.parts]
    inner = [each for part in parts if isinstance(part, ToolResult) for each in part.media]
    return [part for part in (*parts, *inner) if isinstance(part, ImagePart)]


def content_of(part: ImagePart) -> bytes:
    return base64.b64decode(part.data or "")


# --- every wire


@HOWS
@WIRES
async def test_type_that_a_provider_refuses_is_converted_with_a_warning(wire: str, how: str) -> None:
    with FakeProvider(["Grey."]) as provider:
        response = await ask(how, model_at(provider, wire), BMP, TIFF)
        sent = received(provider)
    assert response.choices[0].text == "Grey."
    assert [(sniff(content_of(part)), pixels_of(content_of(part))) for part in sent] == [
        ("image/jpeg", (40, 30)), ("image/png", (40, 30)),
    ]  # fmt: skip
    warnings = [warning for warning in response.warnings if warning.feature == "media"]
    assert [warning.sent for warning in warnings] == ["image/jpeg, 40 x 30 pixels", "image/png, 40 x 30 pixels"]
    assert "its type is image/bmp" in warnings[0].detail


@WIRES
async def test_declared_type_is_corrected_by_the_first_bytes(wire: str) -> None:
    with FakeProvider(["Grey."]) as provider:
        response = await ask(
            "blocking", model_at(provider, wire), replace(picture("PNG", (3, 3)), media_type="image/jpeg")
        )
        (sent,) = received(provider)
    assert sent.media_type in ("image/png", None)
    assert [warning.sent for warning in response.warnings] == ["image/png"]


@WIRES
async def test_image_that_fits_is_sent_as_it_is(wire: str) -> None:
    given = picture("JPEG", (300, 200))
    with FakeProvider(["Grey."]) as provider:
        response = await ask("blocking", model_at(provider, wire), given)
        (sent,) = received(provider)
    assert (sent.data, response.warnings) == (given.data, ())


@WIRES
async def test_bytes_of_no_known_type_are_left_to_the_provider(wire: str) -> None:
    with FakeProvider(["?"]) as provider:
        response = await ask("blocking", model_at(provider, wire), part_of(b"no image", "image/png"))
        assert content_of(received(provider)[0]) == b"no image"
    assert response.warnings == ()


# --- Anthropic's numbers


@HOWS
@pytest.mark.parametrize(
    ("given", "edge", "reason"), [(LONG, 8000, "8100 x 3 pixels"), (LARGE, 1300, "bytes as base64")]
)
async def test_long_and_large_images_fit_anthropic(given: ImagePart, edge: int, reason: str, how: str) -> None:
    with FakeProvider(["Grey."]) as provider:
        response = await ask(how, model_at(provider, "anthropic"), given)
        (sent,) = received(provider)
    size = pixels_of(content_of(sent))
    assert size is not None
    assert max(size) == edge
    assert len(sent.data or "") <= 5_242_880
    assert reason in response.warnings[0].detail


async def test_images_are_scaled_further_when_a_request_has_many() -> None:
    given = picture("PNG", (2100, 2))
    with FakeProvider(["Grey."] * 2) as provider:
        lm = model_at(provider, "anthropic")
        for count, edge in ((20, 2100), (21, 2000)):
            await ask("blocking", lm, *[given] * count)
            assert {(pixels_of(content_of(part)) or (0,))[0] for part in received(provider)} == {edge}


async def test_images_in_results_of_tools_fit_as_well() -> None:
    calls = Message.assistant(tool_calls=[ToolCall("a", "look", {})])
    turns = (Message.user("Look."), calls, Message.tool(ToolResult("a", "look", "Here.", media=(LONG, BMP))))
    for wire in MODELS:
        with FakeProvider(["Grey."]) as provider:
            response = await model_at(provider, wire).arespond(Request(turns))
            assert {sniff(content_of(part)) for part in received(provider)} <= {"image/jpeg", "image/png"}
        assert {warning.feature for warning in response.warnings} >= {"media"}


@pytest.mark.parametrize(("given", "text"), [(LARGE, "5 MB maximum"), (LONG, "8000 pixels")])
async def test_provider_refuses_what_was_not_made_to_fit(
    given: ImagePart, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS, "anthropic", MediaLimits())  # type: ignore[arg-type]
    with FakeProvider(["Grey."]) as provider, pytest.raises(LMInvalidRequestError, match=text):
        await ask("blocking", model_at(provider, "anthropic"), replace(given, media_type="image/png"))


@pytest.mark.parametrize(("family", "size"), [("anthropic", 32_000_000), ("gemini", 20_000_000), ("groq", 4_000_000)])
def test_total_of_a_request_is_refused_with_limit_and_size(family: str, size: int) -> None:
    file = FilePart(data="JVBE" + "A" * (size // 2), media_type="application/pdf")
    fit_media([Message("user", (file,))], family, [])
    with pytest.raises(UnsupportedMedia, match=rf"{size + 8} bytes as base64; {family} takes {size}"):
        fit_media([Message("user", (file, file))], family, [])


@pytest.mark.parametrize("how", ["blocking", "async", "async streamed"])
async def test_request_that_does_not_fit_goes_to_the_next_model(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "gemini", MediaLimits(request_size=10))  # type: ignore[arg-type]
    with FakeProvider(["Grey."]) as provider:
        second = model_at(provider, "anthropic")
        lm = LM(MODELS["gemini"], base_url=provider.url("gemini"), api_key="k", cache=False, fallbacks=[second])
        response = await ask(how, lm, picture("PNG", (9, 9)))
        (request,) = provider.requests
    assert (response.choices[0].text, request.path.endswith("/messages")) == ("Grey.", True)


# --- what cannot be made to fit


def test_missing_pillow_is_named_with_the_extra_and_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    long, small = picture("PNG", (8100, 5)), picture("PNG", (5, 5))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UnsupportedMedia, match=r"8100 x 5 pixels, the limit 8000.*sigwire\[media\]") as caught:
        fit_media([Message("user", (long,))], "anthropic", [])
    assert isinstance(caught.value, CallerError)
    assert fit_media([Message("user", (small,))], "anthropic", [])


@pytest.mark.parametrize("width", [60_000, 2**31 - 1])
def test_image_that_would_fill_the_memory_is_not_decoded(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = content_of(picture("PNG", (1, 1)))
    monkeypatch.setitem(sys.modules, "PIL", None)  # the header decides
    bomb = bomb[:16] + width.to_bytes(4, "big") + width.to_bytes(4, "big") + bomb[24:]
    with pytest.raises(UnsupportedMedia, match="is not decoded; the limit is 50000000 pixels"):
        fit_media([Message("user", (part_of(bomb, "image/png"),))], "anthropic", [])


@pytest.mark.parametrize(("most", "sent"), [(320, (20, 16)), (100, (10, 8))])
def test_large_photo_is_decoded_at_a_fraction_of_its_edges(
    most: int, sent: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "MOST_PIXELS", most)
    monkeypatch.setitem(LIMITS, "anthropic", replace(LIMITS["anthropic"], edge=30, many=None))  # type: ignore[misc]
    warnings: list[LMWarning] = []
    (message,) = fit_media([Message("user", (picture("JPEG", (40, 32), color=most % 255),))], "anthropic", warnings)
    assert pixels_of(content_of(message.parts[0])) == sent
    assert f"it was decoded at {sent[0]} x {sent[1]} pixels" in warnings[0].detail
    monkeypatch.setattr(pictures, "MOST_PIXELS", 10)
    with pytest.raises(UnsupportedMedia, match="40 x 32 pixels is not decoded"):
        fit_media([Message("user", (picture("JPEG", (40, 32), color=most % 255 + 60),))], "anthropic", [])


def test_large_tiff_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_PIXELS", 100)
    with pytest.raises(UnsupportedMedia, match="40 x 31 pixels is not decoded"):
        fit_media([Message("user", (picture("TIFF", (40, 31)),))], "anthropic", [])


@pytest.mark.parametrize("content", [b"BM" + bytes(60), b"\x00\x00\x00\x18ftypheic" + bytes(40), b"II*\x00" + bytes(9)])
def test_image_that_pillow_cannot_decode_is_refused(content: bytes) -> None:
    with pytest.raises(UnsupportedMedia, match="Pillow cannot decode the image"):
        fit_media([Message("user", (part_of(content, None),))], "anthropic", [])


# --- one image


def test_image_is_turned_by_its_metadata_which_are_left_out() -> None:
    exif = Pillow.Exif()
    exif[0x0112], exif[0x010F] = 6, "a camera of Ada"
    turned = converted(content_of(picture("TIFF", (40, 30))))
    given = content_of(picture("JPEG", (400, 300), exif=exif))
    assert b"Ada" in given
    assert pixels_of(converted(given, edge=200)) == (150, 200)
    assert b"Ada" not in converted(given, edge=200)
    assert pixels_of(turned) == (40, 30)


def test_animation_becomes_its_first_frame() -> None:
    frames = [Pillow.new("RGB", (9, 9), color) for color in ("red", "blue")]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    with Pillow.open(io.BytesIO(converted(buffer.getvalue()))) as image:
        red, _, blue = image.getpixel((4, 4))  # type: ignore[misc]
    assert (red > 200, blue < 60) == (True, True)


def test_transparent_image_that_is_too_large_gets_a_white_background() -> None:
    image = Pillow.frombytes("RGBA", (60, 60), random.Random(0).randbytes(4 * 3600))
    image.putalpha(0)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    found = pictures.convert(buffer.getvalue(), None, 3000)
    assert (found.media_type, found.size) == ("image/jpeg", (60, 60))
    with Pillow.open(io.BytesIO(found.content)) as sent:
        assert min(sent.convert("L").tobytes()) > 240


@given(st.integers(1, 120), st.integers(1, 120), st.integers(1, 90), st.integers(700, 9000))
def test_converted_image_is_within_the_limits_and_keeps_its_form(width: int, height: int, edge: int, most: int) -> None:
    found = pictures.convert(content_of(noise(width, height)), edge, most)
    assert len(found.content) <= most
    assert pixels_of(found.content) == found.size
    assert max(found.size) <= max(edge, 1)
    if min(found.size) > 20:
        assert found.size[0] / found.size[1] == pytest.approx(width / height, rel=0.1)


def test_limit_below_every_form_is_refused() -> None:
    with pytest.raises(UnsupportedMedia, match="at most 10 bytes"):
        pictures.convert(content_of(BMP), None, 10)


def converted(content: bytes, edge: int | None = None) -> bytes:
    return pictures.convert(content, edge, None).content


# --- the same bytes again


def test_same_image_is_converted_once_and_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    convert = pictures.convert

    def counting(content: bytes, edge: int | None, most_bytes: int | None) -> pictures.Encoded:
        made.append(len(content))
        return convert(content, edge, most_bytes)

    monkeypatch.setattr(pictures, "convert", counting)
    monkeypatch.setattr(fitting, "_memo", fitting._Memo(1000))  # pyright: ignore[reportPrivateUsage]
    turns = [Message("user", (picture("BMP", (41, 30)),))]
    first, second = (fit_media(turns, "anthropic", []) for _ in range(2))
    assert (first, len(made)) == (second, 1)
    for width in range(50, 60):  # the memo drops the oldest
        fit_media([Message("user", (picture("BMP", (width, 30)),))], "anthropic", [])
    assert fit_media(turns, "anthropic", []) == first
    assert len(made) == 12


@pytest.mark.parametrize("streamed", [False, True])
async def test_awaited_call_converts_in_another_thread(streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    convert = pictures.convert

    def recording(*given: Any) -> pictures.Encoded:
        threads.append(threading.current_thread())
        return convert(*given)

    monkeypatch.setattr(pictures, "convert", recording)
    monkeypatch.setattr(fitting, "_memo", fitting._Memo(1000))  # pyright: ignore[reportPrivateUsage]
    with FakeProvider(["Grey."]) as provider:
        await ask("async streamed" if streamed else "async", model_at(provider, "openai"), BMP)
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


def test_unchanged_message_stays_the_same_object() -> None:
    turns = [
        Message.user("a"),
        Message("user", (TextPart("b"), picture("PNG", (3, 3)), ImagePart(url="https://e.org/a"))),
    ]
    assert [*map(id, fit_media(turns, "anthropic", []))] == [*map(id, turns)]


# --- sound and files


@pytest.mark.parametrize(
    ("declared", "content", "sent", "warned"),
    [
        ("mp3", b"RIFF\x00\x00\x00\x00WAVEfmt ", "wav", True),
        ("wav", b"ID3\x04" + bytes(9), "mp3", True),
        ("mpeg", b"ID3\x04" + bytes(9), "mp3", False),
        ("x-wav", b"RIFF\x00\x00\x00\x00WAVEfmt ", "wav", False),
        ("opus", b"OggS\x00" + bytes(9), "opus", False),
        ("wav", b"unknown bytes", "wav", False),
    ],
)
async def test_format_of_sound_is_corrected(declared: str, content: bytes, sent: str, warned: bool) -> None:
    given = Message("user", (AudioPart(base64.b64encode(content).decode(), declared),))
    warnings: list[LMWarning] = []
    (part,) = fit_media([given], "openai-chat", warnings)[0].parts
    assert isinstance(part, AudioPart)
    assert (part.format, bool(warnings)) == (sent, warned)


@pytest.mark.parametrize(
    ("declared", "content", "sent"),
    [
        ("application/octet-stream", b"%PDF-1.7", "application/pdf"),
        ("image/png", b"%PDF-1.7", "application/pdf"),
        ("text/plain", b"%PDF-1.7 is how a PDF begins", "text/plain"),
        ("application/msword", b"BM", "application/msword"),
        (None, b"%PDF-1.7", None),
        ("application/pdf", b"?", "application/pdf"),
    ],
)
def test_type_of_a_file_is_corrected(declared: str | None, content: bytes, sent: str | None) -> None:
    given = Message("user", (FilePart(data=base64.b64encode(content).decode(), media_type=declared),))
    (part,) = fit_media([given], "unknown", [])[0].parts
    assert isinstance(part, FilePart)
    assert part.media_type == sent


@pytest.mark.long
def test_text_requests_import_nothing_of_media() -> None:
    import subprocess

    program = (
        "import sys, sigwire\n"
        "from sigwire.testing import FakeProvider\n"
        "with FakeProvider(['Hi']) as provider:\n"
        "    sigwire.LM('openai/gpt-4.1', base_url=provider.url('openai'), api_key='k', cache=False)('Hi')\n"
        "assert not [name for name in sys.modules if name.startswith(('PIL', 'sigwire.lm.media'))]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_program_takes_an_image_field_that_needs_a_conversion() -> None:
    with FakeProvider(["[[ ## color ## ]]\ngrey"]) as provider:
        describe = sigwire.Predict("image: sigwire.Image -> color", lm=model_at(provider, "anthropic"))
        assert describe(image=sigwire.Image(content_of(BMP))).color == "grey"


def test_every_family_of_the_table_is_that_of_a_profile() -> None:
    modules = (anthropic_profiles, converse_tables, gemini_profiles, chat_profiles, responses_profiles, ollama_tables)
    profiles = [value for module in modules for value in vars(module).values() if isinstance(value, WireProfile)]
    hosts, models = {profile.family for profile in profiles}, {rule.facts.family for rule in FAMILIES} - {""}
    assert {*LIMITS} <= {*hosts, *models, *(f"{host}/{model}" for host in hosts for model in models)}


def test_each_row_of_limits_names_its_source() -> None:
    assert all(limits.source.startswith("https://") for limits in LIMITS.values())


def test_portable_history_names_each_image_that_was_made_to_fit() -> None:
    history = [Message.user("q"), Message.assistant("a"), Message("user", (TextPart("And?"), BMP, LONG))]
    lm = LM("anthropic/claude-haiku-4-5", api_key="k")
    messages, losses = to_provider(history, lm)
    assert [(loss.message, loss.what, loss.severity) for loss in losses] == [(2, "media", "form"), (2, "media", "form")]
    assert losses[0].why.startswith("An image was converted: its type is image/bmp")
    with FakeProvider(["ok", "ok"]) as provider:
        for turns in (history, messages):
            model_at(provider, "anthropic").respond(Request(tuple(turns)))
        given, converted = provider.requests
    assert given.body["messages"] == converted.body["messages"]  # type: ignore[index, call-overload]
    assert to_provider(messages, lm) == (messages, ())


@pytest.mark.parametrize("place", ["turn", "result"])
@pytest.mark.parametrize("streamed", [False, True])
def test_model_without_images_refuses_them_before_sending(place: str, streamed: bool) -> None:
    image = picture("PNG", (2, 2))
    call = Message.assistant(tool_calls=[ToolCall("c1", "f", {})])
    results = Message.tool(ToolResult("c1", "f", "ok", media=(image,)))
    turns = (Message("user", (image,)),) if place == "turn" else (Message.user("q"), call, results)
    with FakeProvider(["seen"]) as provider:
        lm = LM("openai/gpt-3.5-turbo", base_url=provider.url("openai"), api_key="k", num_retries=0)
        with pytest.raises(UnsupportedFeature, match=r"gpt-3\.5-turbo does not take images.*capabilities="):
            collect(lm.stream(Request(turns))) if streamed else lm.respond(Request(turns))
        assert not provider.requests
        able = lm.copy(capabilities=replace(lm.capabilities, images=True))
        assert able.respond(Request(turns)).choices[0].text == "seen"
    kept = to_provider(turns, lm)
    assert [loss.what for loss in kept.losses if loss.severity == "content"] == ["media"]
