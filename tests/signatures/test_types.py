"""Field types: what they accept, what they refuse, and that they travel."""

from __future__ import annotations

import base64
import copy
import datetime
import io
import pickle
import wave
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from sigwire.core.example import Example, Prediction
from sigwire.core.json import dumps, loads
from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.errors import InputError
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.predict import Predict
from sigwire.signatures.types import Audio, Code, File, History, Image, Reasoning, Turn

PNG = b"\x89PNG\r\n\x1a\nrest"
PNG_URI = "data:image/png;base64," + base64.b64encode(PNG).decode()


class FakePil:
    """As much of a PIL image as is looked at."""

    mode, format = "RGB", None

    def save(self, target: io.BytesIO, format: str) -> None:
        target.write(format.encode())


# --- Image ---

IMAGES: list[tuple[str, Any, ImagePart]] = [
    ("address", Image("https://e.org/a.png"), ImagePart(url="https://e.org/a.png")),
    ("keyword", Image(url="http://e.org/a.png", detail="low"), ImagePart(url="http://e.org/a.png", detail="low")),
    ("cloud address", Image("gs://bucket/a.png"), ImagePart(url="gs://bucket/a.png")),
    ("data URI", Image(PNG_URI), ImagePart(data=base64.b64encode(PNG).decode(), media_type="image/png")),
    ("bytes", Image(PNG), ImagePart(data=base64.b64encode(PNG).decode(), media_type="image/png")),
    ("unknown bytes", Image(b"?", media_type="image/x"), ImagePart(data="Pw==", media_type="image/x")),
    ("base64", Image(data="Pw==", media_type="image/x"), ImagePart(data="Pw==", media_type="image/x")),
    ("PIL", Image(FakePil()), ImagePart(data="UE5H", media_type="image/png")),
    ("another image", Image(Image("https://e.org/a.png")), ImagePart(url="https://e.org/a.png")),
    ("from_url", Image.from_url("https://e.org/a.png"), ImagePart(url="https://e.org/a.png")),
]


@pytest.mark.parametrize(("image", "part"), [case[1:] for case in IMAGES], ids=[name for name, *_ in IMAGES])
def test_image_becomes_a_part(image: Image, part: ImagePart) -> None:
    assert image.part() == part
    assert Image.from_json(loads(dumps(image.to_json()))) == image


REFUSED = [
    ("cat.png", "from_path"),
    ("/etc/passwd", "from_path"),
    ("C:\\cat.png", "from_path"),
    ("file:///etc/passwd", "from_path"),
    ("~/cat.png", "from_path"),
    ("", "Unrecognized image .*not a URL"),
    ("data:image/png,plain", "base64"),
    (b"unknown", "media_type"),
    (3, "not int"),
]


@pytest.mark.parametrize(("source", "message"), REFUSED, ids=[repr(source) for source, _ in REFUSED])
def test_image_raises_for_other_sources(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Image(source)


def test_image_needs_exactly_one_source() -> None:
    with pytest.raises(InputError, match="exactly one source, got 0"):
        Image()
    with pytest.raises(InputError, match="got 2"):
        Image("https://e.org/a.png", url="https://e.org/b.png")


MAGIC = [
    (PNG, "image/png"),
    (b"\xff\xd8\xff\xe0", "image/jpeg"),
    (b"GIF89a", "image/gif"),
    (b"RIFF0000WEBPVP8 ", "image/webp"),
    (b"BM00", "image/bmp"),
]


@pytest.mark.parametrize(("content", "media_type"), MAGIC)
def test_image_format_is_detected_from_bytes(content: bytes, media_type: str) -> None:
    assert Image(content).media_type == media_type


def test_image_from_path_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "picture.jpg"
    path.write_bytes(PNG)
    assert Image.from_path(path).url == PNG_URI  # what the bytes are counts, not the suffix
    path.write_bytes(b"?")
    assert Image.from_path(str(path)).media_type == "image/jpeg"


def test_images_are_values() -> None:
    image = Image(PNG)
    assert image == Image(PNG_URI)
    assert hash(image) == hash(Image(PNG_URI))
    assert copy.deepcopy(image) == pickle.loads(pickle.dumps(image)) == image
    assert len(repr(Image(PNG * 1000))) < 120
    with pytest.raises(AttributeError):
        image.url = "x"  # type: ignore[misc]


# --- Audio and File ---

SOUNDS: list[tuple[str, Any, AudioPart]] = [
    ("bytes", Audio(b"?", audio_format="wav"), AudioPart("Pw==", "wav")),
    ("MP3 as bytes", Audio(b"ID3\x04"), AudioPart("SUQzBA==", "mp3")),
    ("Ogg as base64", Audio(data=base64.b64encode(b"OggS\0").decode()), AudioPart("T2dnUwA=", "ogg")),
    ("WAV as bytes", Audio(b"RIFF....WAVEfmt "), AudioPart("UklGRi4uLi5XQVZFZm10IA==", "wav")),
    ("MP3 that is said to be WAV", Audio(b"ID3\x04", audio_format="wav"), AudioPart("SUQzBA==", "wav")),
    ("base64", Audio(data="Pw==", audio_format="mp3"), AudioPart("Pw==", "mp3")),
    ("data URI", Audio("data:audio/mp3;base64,Pw=="), AudioPart("Pw==", "mp3")),
    ("x- format", Audio.from_url("data:audio/x-wav;base64,Pw=="), AudioPart("Pw==", "wav")),
]


@pytest.mark.parametrize(("audio", "part"), [case[1:] for case in SOUNDS], ids=[name for name, *_ in SOUNDS])
def test_audio_becomes_a_part(audio: Audio, part: AudioPart) -> None:
    assert audio.part() == part
    assert Audio.from_json(loads(dumps(audio.to_json()))) == audio


def test_audio_is_read_from_files_and_samples_and_never_fetched(tmp_path: Path) -> None:
    path = tmp_path / "a.MP3"
    path.write_bytes(b"?")
    assert Audio.from_path(path) == Audio(data="Pw==", audio_format="mp3")
    with wave.open(io.BytesIO(base64.b64decode(Audio.from_array([0.0, 1.0, -2.0], 8000).data))) as sound:
        assert (sound.getframerate(), sound.readframes(3)) == (8000, b"\x00\x00\xff\x7f\x01\x80")
    for unknown in (b"?", "Pw=="):
        with pytest.raises(InputError, match=r"Unknown audio format of bytes \(creating an Audio\)\. Pass it: "):
            Audio(unknown)
    with pytest.raises(InputError, match="Download it"):
        Audio.from_url("https://e.org/a.wav")
    with pytest.raises(InputError, match="from_path"):
        Audio("a.wav")


FILES: list[tuple[str, Any, FilePart]] = [
    ("id", File(file_id="f"), FilePart(file_id="f")),
    ("address", File.from_url("https://e.org/a.pdf"), FilePart(url="https://e.org/a.pdf")),
    ("bytes", File.from_bytes(b"?", filename="a.pdf"), FilePart("Pw==", None, None, "a.pdf", "application/pdf")),
    ("base64", File(file_data="Pw==", media_type="text/x"), FilePart("Pw==", media_type="text/x")),
    ("data URI", File(file_data="data:text/x;base64,Pw=="), FilePart("Pw==", media_type="text/x")),
]


@pytest.mark.parametrize(("file", "part"), [case[1:] for case in FILES], ids=[name for name, *_ in FILES])
def test_file_becomes_a_part(file: File, part: FilePart) -> None:
    assert file.part() == part
    assert File.from_json(loads(dumps(file.to_json()))) == file


def test_file_from_path_reads_a_file_and_file_needs_a_source(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"?")
    assert File.from_path(path).part() == FilePart("Pw==", None, None, "a.txt", "text/plain")
    with pytest.raises(InputError, match="needs file_data"):
        File()
    with pytest.raises(InputError, match="from_path"):
        File(url="/etc/passwd")
    with pytest.raises(InputError, match="base64"):
        File(file_data="/etc/passwd")


class Report(BaseModel):
    """A user's model that contains field types."""

    title: str
    pictures: list[Image]
    sound: Audio | None = None
    source: Code | None = None
    past: History | None = None
    thought: Reasoning = Reasoning("")


def test_field_types_work_inside_pydantic_models() -> None:
    report = Report.model_validate(
        {
            "title": "t",
            "pictures": ["https://e.org/a.png", {"url": PNG_URI}, Image(PNG)],
            "sound": {"data": "Pw==", "audio_format": "wav"},
            "source": "```python\nx\n```",
            "past": [{"q": "a"}],
            "thought": "hm",
        }
    )
    assert report.pictures[1] == report.pictures[2] == Image(PNG)
    assert (report.sound, report.source, report.past) == (
        Audio(b"?", audio_format="wav"),
        Code("x"),
        History([{"q": "a"}]),
    )
    assert type(report.thought) is Reasoning
    assert Report.model_validate_json(report.model_dump_json()) == report
    assert set(Report.model_json_schema()["properties"]) == set(Report.model_fields)


@pytest.mark.parametrize("bad", ["/etc/passwd", {"url": "/etc/passwd"}, {"path": "x"}, 3, {}])
def test_pydantic_model_raises_for_invalid_images(bad: Any) -> None:
    with pytest.raises(ValidationError):
        Report(title="t", pictures=[bad])


# --- Reasoning and Code ---


def test_reasoning_is_a_string() -> None:
    thought = Reasoning("2 + 2 is 4")
    assert thought == "2 + 2 is 4"
    assert thought.content == "2 + 2 is 4"
    assert type(thought.content) is str
    assert (thought[:1], thought.upper(), "is" in thought, thought + "!") == ("2", "2 + 2 IS 4", True, "2 + 2 is 4!")
    assert Reasoning(content="x") == "x"
    assert copy.deepcopy(thought) == pickle.loads(pickle.dumps(thought)) == thought
    with pytest.raises(ValueError, match="not int"):
        Reasoning.read(3)


CODES = [
    ("bare", "print(1)", "print(1)"),
    ("fenced", "```\nprint(1)\n```", "print(1)"),
    ("tagged", "```python\nprint(1)\n```", "print(1)"),
    ("with talk around", "Sure:\n```python\nprint(1)\n```\nDone.", "print(1)"),
    ("two blocks", "```python\na\n```\nand\n```python\nb\n```", "a\n\nb"),
    ("another language beside", "```sh\npip\n```\n```python\nb\n```", "b"),
    ("only another language", "```sh\npip\n```", "pip"),
    ("longer fence", "````python\n```\nx\n```\n````", "```\nx\n```"),
    ("empty block", "```python\n```", ""),
    ("indentation stays", "```\n    x\n  y\n```", "    x\n  y"),
    ("unclosed", "```python\nprint(1)", "```python\nprint(1)"),
    ("unclosed before a block", "````\n```\nx\n```", "x"),
    ("lines of Windows", "Sure:\r\n```python\r\na\r\nb\r\n```\r\nDone.", "a\r\nb"),
]


@pytest.mark.parametrize(("name", "text", "code"), CODES, ids=[name for name, *_ in CODES])
def test_code_is_read_from_fences(name: str, text: str, code: str) -> None:
    assert Code.read(text).code == code
    whole = name in ("tagged", "longer fence", "empty block")  # a fence of the language around the whole text
    assert Code(text).code == Code(code=text).code == (code if whole else text)


def test_code_removes_fences_of_its_own_language_only() -> None:
    assert Code["java"]("\n```java\nx();\n```\n").code == "x();"
    assert Code["java"]("```python\nx()\n```").code == "```python\nx()\n```"
    assert Java("```java\nx();\n```").code == "x();"


@pytest.mark.parametrize("value", [123, None, b"x", ["x"], {"code": "x"}])
def test_code_of_another_type_is_an_input_error(value: Any) -> None:
    with pytest.raises(InputError, match=rf"Code is text, not {type(value).__name__}"):
        Code(code=value)


@given(st.one_of(st.text(), st.lists(st.sampled_from(["```", "````", "python", "x", "\n", " ", "`"])).map("".join)))
def test_code_equals_its_decoded_json(text: str) -> None:
    assert Code.read(Code(text).to_json()) == Code(text)
    assert Code.read(Code(text).fenced()) == Code(text)


@pytest.mark.parametrize("text", ["```" + "x" * 500_000 + "`", "```x\n" * 100_000, "````\n" + "```y `\n" * 100_000])
def test_unclosed_fences_are_read_in_one_pass(text: str) -> None:
    assert Code.read(text).code == text  # looking for each one's end would take minutes


class Java(Code):
    """A language as a class of its own, which every type checker reads."""

    language = "java"


def test_code_language_may_be_a_class() -> None:
    value = Java.read("```python\nx\n```\n```java\ny\n```")
    assert (type(value), value.code, repr(value)) == (Java, "y", "Java('y')")
    assert type(pickle.loads(pickle.dumps(value))) is Java
    assert copy.deepcopy(value) == value
    assert TypeAdapter(Java).validate_python("y") == value


def test_code_has_its_language() -> None:
    java = Code["Java"]
    assert java is Code["java"]
    assert issubclass(java, Code)
    assert (java.language, Code.language, Code["python"]) == ("java", "python", Code)
    assert java.read("```python\nx\n```\n```java\ny\n```").code == "y"
    assert TypeAdapter(java).validate_python({"code": "x"}) == java("x")
    assert repr(java("x")) == "Code['java']('x')"
    assert copy.deepcopy(java("x")) == pickle.loads(pickle.dumps(java("x"))) == java("x")


# --- History ---


def test_history_is_immutable() -> None:
    turns = [{"question": "a", "answer": "b"}]
    history = History(messages=turns)
    turns[0]["answer"] = "changed"
    turns.append({})
    assert history == History([{"question": "a", "answer": "b"}])
    longer = history.append({"question": "c"}, Message.user("d")).append(question="e")
    assert (len(history), len(longer)) == (1, 4)
    assert longer.messages[0] is history.messages[0]
    assert longer[-2:] == History([Message.user("d"), {"question": "e"}])
    assert (history + History([Message.user("x")])).messages[1] == Message.user("x")
    with pytest.raises(TypeError, match=r"history = history\.append"):
        history.messages.append({})  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="is immutable"):
        history.messages = ()
    with pytest.raises(TypeError):
        history.messages[0]["answer"] = "x"  # type: ignore[index]


def test_turn_may_be_a_record() -> None:
    assert History([Example(question="a")]).messages[0] == {"question": "a"}


def test_prediction_is_a_turn_with_its_inputs_only() -> None:
    prediction = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))(question="2+2?")
    with pytest.raises(InputError, match=r"history\.append\(question=\.\.\., \*\*prediction\)"):
        History().append(prediction)
    longer = History().append(question="2+2?", **prediction)
    assert longer.messages[0] == {"question": "2+2?", "answer": "4"}
    assert History([Prediction(answer="4")]).messages[0] == {"answer": "4"}


WRONG_JSON: list[Any] = [
    None, [], {}, "text", {"messages": 5}, {"messages": [5]}, {"messages": [{}], "kinds": {"0": "message"}},
    {"messages": [{"a": 1}], "kinds": {"0": {"a": "Image"}}}, {"messages": [{"a": 1}], "kinds": {"0": {"a": 5}}},
    {"messages": [{"role": 1, "parts": 2}], "kinds": {"0": "message"}},
]  # fmt: skip


@pytest.mark.parametrize("data", WRONG_JSON, ids=str)
def test_json_of_another_form_is_an_input_error(data: Any) -> None:
    with pytest.raises(InputError, match="History"):
        History.from_json(data)


def test_call_without_a_name_in_a_history_is_an_input_error() -> None:
    agent = ReAct("q -> a", tools=[len], lm=FakeLM(["x"]))
    for call in ({"id": "5", "function": None}, 5):
        with pytest.raises(InputError, match="A tool call"):
            agent(q="x", history=[{"role": "assistant", "tool_calls": [call]}])


@pytest.mark.parametrize("bad", ["text", {"messages": []}, [3], ["text"], [{1: 2}]])
def test_history_raises_for_other_values(bad: Any) -> None:
    with pytest.raises(InputError):
        History(bad)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
CALL = ToolCall("call_0", "f", {"a": [1]}, provider_data={"signature": "s"})
OWN = st.sampled_from(
    [
        ToolCalls([CALL], "text"),
        Image(PNG),
        Audio(b"?", audio_format="wav"),
        File(file_id="f"),
        Code("```\nx\n```"),
        Code["java"]("y"),
        Reasoning("r"),
    ]
)
FIELD_TURNS = st.dictionaries(st.text(max_size=6), JSON | OWN, max_size=3)
MESSAGES = st.sampled_from(
    [
        Message.user("u"),
        Message.assistant("t", [CALL]),
        Message.tool(ToolResult("call_0", "f", {"x": 1}, is_error=True)),
    ]
)


@given(st.lists(FIELD_TURNS | MESSAGES, max_size=4))
def test_history_equals_its_decoded_json(turns: list[Any]) -> None:
    history = History(turns)
    back = History.from_json(loads(dumps(history.to_json())))
    assert back == history
    for turn, original in zip(back.messages, history.messages, strict=True):
        if isinstance(original, Turn) and isinstance(turn, Turn):
            assert {k: type(v) for k, v in turn.items()} == {k: type(v) for k, v in original.items()}
    assert TypeAdapter(History).validate_python(history.to_json()) == history


def test_users_data_is_never_read_as_a_field_type() -> None:
    for turn in ({"role": "user", "parts": []}, {"type": "message", "kinds": "x"}, {"x": {"url": "https://e.org"}}):
        assert History.from_json(History([turn]).to_json()) == History([turn])


def test_nested_pydantic_values_become_plain_json() -> None:
    class Place(BaseModel):
        on: datetime.date

    history = History([{"places": [Place(on=datetime.date(2026, 1, 2))]}])
    assert history.to_json() == {"messages": [{"places": [{"on": "2026-01-02"}]}]}


def test_history_is_read_from_the_json_of_dspy() -> None:
    assert History.read({"messages": [{"question": "a"}]}) == History([{"question": "a"}])


def test_histories_are_copied_and_pickled() -> None:
    history = History([{"a": [1]}, Message.user("u")])
    assert copy.deepcopy(history) == pickle.loads(pickle.dumps(history)) == history
