"""Behaviours of DSPy: images, sounds and files."""

import dspy
import pydantic
from dspy.utils import DummyLM

from tests.dspy.behaviours.support import behaviour, count_parts, raises, sub

START, END = "<<CUSTOM-TYPE-START-IDENTIFIER>>", "<<CUSTOM-TYPE-END-IDENTIFIER>>"

Audio = dspy.Audio


@behaviour
def audio_fields():
    a = Audio(data="REVNTw==", audio_format="wav")
    assert a.data == "REVNTw==" and a.audio_format == "wav"


@behaviour
def audio_format():
    assert Audio(data="REVNTw==", audio_format="wav").format() == [
        {"type": "input_audio", "input_audio": {"data": "REVNTw==", "format": "wav"}}
    ]


@behaviour
def audio_uri():
    a = Audio("data:audio/x-wav;base64,REVNTw==")
    assert a.audio_format == "wav" and a.data == "REVNTw=="


@behaviour
def audio_bytes():
    a = Audio(b"DEMO", audio_format="mp3")
    assert a.data == "REVNTw==" and a.audio_format == "mp3"


@behaviour
def audio_path(tmp):
    (tmp / "a.wav").write_bytes(b"DEMO")
    a = Audio.from_path(str(tmp / "a.wav"))
    assert a.audio_format == "wav" and a.data == "REVNTw=="


@behaviour
def audio_no_path():
    with raises(ValueError):
        Audio.from_path("/none/x.wav")


@behaviour
def audio_prompt():
    with dspy.context(lm=(lm := DummyLM([{"t": "x"}]))):
        dspy.Predict("a: dspy.Audio -> t")(a=Audio(data="REVNTw==", audio_format="wav"))
    assert count_parts(lm.history[-1]["messages"], "input_audio") == 1


@behaviour
def audio_encode():
    assert sub("adapters.types.audio").encode_audio(Audio(data="eA==", audio_format="wav")) == {
        "data": "eA==",
        "audio_format": "wav",
    }


@behaviour
def audio_repr():
    assert "REVNT08AREVNT08AREVNT08AREVNT08AREVNT08AREVNT08AREVNT08A" not in repr(
        Audio(data="REVNT08A" * 10, audio_format="wav")
    )


Image = dspy.Image


def predictor(sig, out, adapter=None):
    lm = DummyLM([out], adapter=adapter)
    return dspy.Predict(sig), lm


for name, sig, inputs, out in [
    (
        "probs",
        "image: dspy.Image, class_labels: list[str] -> probabilities: dict[str, float]",
        {"image": "https://e.com/d.jpg", "class_labels": ["dog", "cat"]},
        {"probabilities": {"dog": 0.8, "cat": 0.2}},
    ),
    (
        "code",
        "image: dspy.Image, target_language: str -> generated_code: str",
        {"image": "https://e.com/d.jpg", "target_language": "HTML"},
        {"generated_code": "<button>x</button>"},
    ),
    (
        "bbox",
        "image: dspy.Image -> bboxes: list[Tuple[int, int, int, int]]",
        {"image": "https://e.com/d.jpg"},
        {"bboxes": [(1, 2, 3, 4), (5, 6, 7, 8)]},
    ),
    (
        "caps",
        "image: dspy.Image, languages: list[str] -> captions: dict[str, str]",
        {"image": "https://e.com/d.jpg", "languages": ["en"]},
        {"captions": {"en": "A"}},
    ),
]:

    def one(sig=sig, inputs=inputs, out=out):
        p, lm = predictor(sig, out)
        with dspy.context(lm=lm):
            r = p(**{k: Image(v) if k == "image" else v for k, v in inputs.items()})
        ((k, v),) = out.items()
        assert getattr(r, k) == v

    one.__name__ = "image_basic_" + name
    behaviour(one)


def pil():
    from PIL import Image as P

    return P.new("RGB", (6, 3), color="red")


def adapters():
    return {
        "chat": dspy.ChatAdapter(),
        "json": dspy.JSONAdapter(),
        "baml": sub("adapters.baml_adapter").BAMLAdapter(),
        "xml": dspy.XMLAdapter(),
    }


SIG = "image: dspy.Image, class_labels: list[str] -> probabilities: dict[str, float]"

for ad in ("chat", "json", "baml", "xml"):
    for kind in ("url", "pil"):

        def one(ad=ad, kind=kind):
            a = adapters()[ad]
            p, lm = predictor(SIG, {"probabilities": {"dog": 0.8}}, a)
            with dspy.context(lm=lm, adapter=a):
                r = p(image=Image("https://e.com/d.jpg") if kind == "url" else Image(pil()), class_labels=["dog"])
            assert r.probabilities == {"dog": 0.8} and count_parts(lm.history[-1]["messages"], "image_url") == 1

        one.__name__ = f"image_valid_{ad}_{kind}"
        behaviour(one)


def roundtrip(sig, example, inputs, out, tmp):
    p, lm = predictor(sig, out)
    with dspy.context(lm=lm):
        c = dspy.teleprompt.LabeledFewShot(k=1).compile(student=p, trainset=[example], sample=False)
        c.save(str(tmp / "m.json"))
        l = dspy.Predict(sig)
        l.load(str(tmp / "m.json"))
        r = l(**inputs)
    return r, lm.history[-1]["messages"]


@behaviour
def image_save(tmp):
    r, m = roundtrip(
        "image: dspy.Image -> caption: str",
        dspy.Example(image=Image("https://e.com/a.jpg"), caption="1"),
        {"image": Image("https://e.com/d.jpg")},
        {"caption": "x"},
        tmp,
    )
    assert count_parts(m, "image_url") == 2 and "CUSTOM-TYPE" not in str(m)


class ImList(dspy.Signature):
    image_list: list[dspy.Image] = dspy.InputField(desc="images")
    caption: str = dspy.OutputField()


@behaviour
def image_save_list(tmp):
    e = dspy.Example(image_list=[Image("https://e.com/a.jpg"), Image("https://e.com/b.jpg")], caption="1").with_inputs(
        "image_list"
    )
    r, m = roundtrip(ImList, e, dict(e.inputs().items()), {"caption": "x"}, tmp)
    assert r.caption == "x" and count_parts(m, "image_url") == 4


class ImModel(pydantic.BaseModel):
    image: dspy.Image
    image_list: list[dspy.Image] | None = None
    output: str


class ImModelSig(dspy.Signature):
    model_input: ImModel = dspy.InputField()
    output: str = dspy.OutputField()


@behaviour
def image_save_model(tmp):
    mi = ImModel(image=Image("https://e.com/a.jpg"), image_list=[Image("https://e.com/b.jpg")], output="x")
    e = dspy.Example(model_input=mi, output="x").with_inputs("model_input")
    r, m = roundtrip(ImModelSig, e, {"model_input": mi}, {"output": "x"}, tmp)
    assert r.output == "x" and count_parts(m, "image_url") == 4


@behaviour
def image_optional():
    class S(dspy.Signature):
        image: dspy.Image | None = dspy.InputField()
        output: str = dspy.OutputField()

    p, lm = predictor(S, {"output": "H"})
    with dspy.context(lm=lm):
        assert p(image=None).output == "H"
    assert count_parts(lm.history[-1]["messages"], "image_url") == 0


@behaviour
def image_format():
    assert Image("https://e.com/a.jpg").format() == [{"type": "image_url", "image_url": {"url": "https://e.com/a.jpg"}}]


@behaviour
def image_repr():
    assert repr(Image("https://e.com/a.jpg")) == "Image(url='https://e.com/a.jpg')"


@behaviour
def image_str():
    assert (
        str(Image("https://e.com/a.jpg"))
        == START + '[{"type": "image_url", "image_url": {"url": "https://e.com/a.jpg"}}]' + END
    )


@behaviour
def image_str_pil():
    s = str(Image(pil()))
    assert s.startswith(START) and "base64" in s and s.endswith(END)


@behaviour
def image_invalid():
    with raises(ValueError):
        Image("this_is_not_a_url_or_file")


@behaviour
def image_pil():
    assert Image(pil()).url.startswith("data:image/png;base64,")


@behaviour
def image_path(tmp):
    pil().save(tmp / "a.png")
    assert Image.from_path(str(tmp / "a.png")).url.startswith("data:image/png;base64,")


@behaviour
def image_no_path():
    with raises(ValueError):
        Image.from_path("/none/a.png")


@behaviour
def image_bytes():
    import io as _io

    b = _io.BytesIO()
    pil().save(b, format="PNG")
    assert Image(b.getvalue()).url.startswith("data:image/png;base64,")


@behaviour
def image_from_pil():
    assert Image.from_PIL(pil()).url.startswith("data:image/png")


@behaviour
def image_from_file(tmp):
    pil().save(tmp / "a.png")
    assert Image.from_file(str(tmp / "a.png")).url.startswith("data:image/png")


@behaviour
def image_url_kw():
    assert (
        Image(url="https://e.com/a.jpg").url == "https://e.com/a.jpg"
        and Image({"url": "https://e.com/a.jpg"}).url == "https://e.com/a.jpg"
    )


@behaviour
def image_frozen():
    with raises(Exception):
        Image("https://e.com/a.jpg").url = "x"


@behaviour
def image_encode():
    e = sub("adapters.types.image").encode_image
    assert (
        e("https://e.com/a.jpg") == "https://e.com/a.jpg"
        and e(pil()).startswith("data:image/png")
        and e(Image("https://e.com/a.jpg")) == "https://e.com/a.jpg"
    )


@behaviour
def image_few_shot():
    for ad in adapters().values():

        class S(dspy.Signature):
            image: dspy.Image = dspy.InputField()
            text: str = dspy.OutputField()

        m = ad.format(
            S,
            [dspy.Example(image=Image(f"https://e.com/{i}.jpg"), text="t") for i in (1, 2)],
            {"image": Image("https://e.com/3.jpg")},
        )
        assert len(m) == 6
        for i, k in ((1, 1), (3, 2), (5, 3)):
            assert {"type": "image_url", "image_url": {"url": f"https://e.com/{k}.jpg"}} in m[i]["content"]


@behaviour
def image_three_parts():
    for ad in (dspy.ChatAdapter(), dspy.JSONAdapter()):
        m = ad.format(dspy.Signature("image: dspy.Image -> text"), [], {"image": Image("https://e.com/3.jpg")})
        assert [p["type"] for p in m[1]["content"]] == ["text", "image_url", "text"]


class Wrap(pydantic.BaseModel):
    images: list[dspy.Image]
    tag: list[str]


@behaviour
def image_nested():
    for ad in adapters().values():

        class S(dspy.Signature):
            image: Wrap = dspy.InputField()
            text: str = dspy.OutputField()

        m = ad.format(
            S,
            [
                dspy.Example(
                    image=Wrap(images=[Image("https://e.com/1.jpg"), Image("https://e.com/2.jpg")], tag=["t"]), text="x"
                )
            ],
            {"image": Wrap(images=[Image("https://e.com/4.jpg")], tag=["t"])},
        )
        assert (
            len(m) == 4
            and count_parts(m[1]["content"], "image_url") == 2
            and {"type": "image_url", "image_url": {"url": "https://e.com/4.jpg"}} in m[-1]["content"]
        )


File = dspy.File


def txt(tmp):
    (tmp / "f.txt").write_text("This is a test.")
    return str(tmp / "f.txt")


@behaviour
def file_path(tmp):
    f = File.from_path(txt(tmp))
    assert f.file_data.startswith("data:text/plain;base64,") and f.filename == "f.txt"


@behaviour
def file_path_name(tmp):
    assert File.from_path(txt(tmp), filename="c.txt").filename == "c.txt"


@behaviour
def file_bytes():
    f = File.from_bytes(b"x")
    assert (
        f.file_data.startswith("data:application/octet-stream;base64,")
        and f.filename is None
        and File.from_bytes(b"x", filename="t").filename == "t"
    )


@behaviour
def file_id():
    f = File.from_file_id("f-1", filename="d.pdf")
    assert f.file_id == "f-1" and f.file_data is None and f.filename == "d.pdf"


@behaviour
def file_kw():
    f = File(file_data="data:text/plain;base64,dGVzdA==", filename="t")
    assert f.file_data == "data:text/plain;base64,dGVzdA==" and File(file_id="x").file_id == "x"


@behaviour
def file_format():
    f = File.from_bytes(b"t", filename="t.txt").format()
    assert isinstance(f, list) and f[0]["type"] == "file" and set(f[0]["file"]) == {"file_data", "filename"}


@behaviour
def file_format_id():
    assert File.from_file_id("f").format() == [{"type": "file", "file": {"file_id": "f"}}]


@behaviour
def file_repr():
    r = repr(File.from_bytes(b"Test content", filename="test.txt"))
    assert "application/octet-stream" in r and "filename='test.txt'" in r


@behaviour
def file_repr_uri():
    assert "DATA_URI" in repr(File.from_bytes(b"Test content"))


@behaviour
def file_repr_id():
    r = repr(File.from_file_id("a", filename="d"))
    assert "file_id='a'" in r and "filename='d'" in r


@behaviour
def file_str():
    s = str(File.from_bytes(b"t"))
    assert START in s and END in s


@behaviour
def file_encode_path(tmp):
    with raises(ValueError):
        sub("adapters.types.file").encode_file_to_dict(txt(tmp))


@behaviour
def file_encode_bytes():
    assert (
        sub("adapters.types.file")
        .encode_file_to_dict(b"t")["file_data"]
        .startswith("data:application/octet-stream;base64,")
    )


@behaviour
def file_ctor_bytes():
    f = File(b"t", filename="t.txt")
    assert f.file_data.startswith("data:application/octet-stream;base64,") and f.filename == "t.txt"


@behaviour
def file_ctor_uri():
    assert File("data:text/plain;base64,aGVsbG8=").file_data == "data:text/plain;base64,aGVsbG8="


@behaviour
def file_conflict():
    with raises(TypeError, match="file_data"):
        File(b"t", file_data="data:text/plain;base64,aGVsbG8=")


@behaviour
def file_invalid_str():
    with raises(ValueError):
        sub("adapters.types.file").encode_file_to_dict("https://nothing")


@behaviour
def file_invalid():
    with raises(ValueError):
        File(invalid="dict")


@behaviour
def file_sig(tmp):
    p, lm = predictor("document: dspy.File -> summary: str", {"summary": "s"})
    with dspy.context(lm=lm):
        assert p(document=File.from_path(txt(tmp))).summary == "s"
    assert count_parts(lm.history[-1]["messages"], "file") == 1


@behaviour
def file_list(tmp):
    class S(dspy.Signature):
        documents: list[dspy.File] = dspy.InputField()
        summary: str = dspy.OutputField()

    p, lm = predictor(S, {"summary": "s"})
    with dspy.context(lm=lm):
        p(documents=[File.from_path(txt(tmp)), File.from_file_id("f")])
    assert count_parts(lm.history[-1]["messages"], "file") == 2


@behaviour
def file_optional():
    class S(dspy.Signature):
        document: dspy.File | None = dspy.InputField()
        output: str = dspy.OutputField()

    p, lm = predictor(S, {"output": "H"})
    with dspy.context(lm=lm):
        assert p(document=None).output == "H"


@behaviour
def file_save(tmp):
    r, m = roundtrip(
        "document: dspy.File -> summary: str",
        dspy.Example(document=File.from_path(txt(tmp)), summary="t"),
        {"document": File.from_file_id("f")},
        {"summary": "s"},
        tmp,
    )
    assert count_parts(m, "file") == 2


@behaviour
def file_frozen():
    with raises(TypeError, ValueError, AttributeError):
        File.from_bytes(b"t").file_data = "x"


@behaviour
def file_all():
    f = File(file_data="data:text/plain;base64,dGVzdA==", file_id="1", filename="t")
    assert set(f.format()[0]["file"]) == {"file_data", "file_id", "filename"}


@behaviour
def file_none():
    with raises(ValueError):
        File.from_path("/none/x.txt")


@behaviour
def file_mime(tmp):
    assert File.from_path(txt(tmp), mime_type="text/custom").file_data.startswith(
        "data:text/custom;base64,"
    ) and File.from_bytes(b"x", mime_type="audio/mp3").file_data.startswith("data:audio/mp3;base64,")


@behaviour
def file_uri_format():
    assert (
        "data:text/plain;base64,"
        in File.from_bytes(b"x", filename="t", mime_type="text/plain").format()[0]["file"]["file_data"]
    )
