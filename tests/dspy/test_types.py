"""DSPy's types of fields, its error names and its decorators."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from sigwire.dspy.utils.callback import ACTIVE_CALL_ID

import sigwire
import sigwire.dspy as dspy
from sigwire.dspy.lm import BaseLM
from sigwire.dspy.types import (
    encode_audio,
    encode_file_to_dict,
    encode_image,
    split_message_content_for_custom_types,
)
from sigwire.dspy.utils.annotation import experimental

CITED = {"cited_text": "Tea", "document_index": 0, "start_char_index": 0, "end_char_index": 3}


@pytest.mark.parametrize(
    "value", [dspy.File(b"a"), dspy.Image("https://a.b/c.png"), dspy.Audio(b"a", audio_format="wav")]
)
def test_media_are_frozen_and_can_be_copied(value: Any) -> None:
    with pytest.raises(ValueError, match=r"is frozen \(setting 'url'\)"):
        value.url = "https://a.b/d.png"
    assert copy.deepcopy(value) == value == pickle.loads(pickle.dumps(value))


def test_format_of_media_returns_openai_content_parts() -> None:
    assert dspy.Image("https://e.org/a.png").format() == [
        {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}
    ]
    assert dspy.Audio(data="Pw==", audio_format="wav").format() == [
        {"type": "input_audio", "input_audio": {"data": "Pw==", "format": "wav"}}
    ]
    assert dspy.File(file_id="f").format() == [{"type": "file", "file": {"file_id": "f"}}]


def test_agent_without_tools_submits_its_answer() -> None:
    agent: Any = dspy.ReActV2("question -> answer")
    agent.set_lm(sigwire.FakeLM([{"answer": "yes"}]))
    result = agent(question="Is it?")
    assert (result.answer, result.termination_reason) == ("yes", "submit")


def test_document_is_made_of_a_text_or_of_fields() -> None:
    document = dspy.Document("Tea.", title="Drinks", context="a menu")
    assert document == dspy.Document(data="Tea.", title="Drinks", context="a menu")
    (block,) = document.format()
    assert block["source"] == {"type": "text", "media_type": "text/plain", "data": "Tea."}
    assert (block["title"], block["context"], str(document)) == ("Drinks", "a menu", "Document('Drinks': 4 chars)")
    assert dspy.Document(data="x", media_type="application/pdf").format()[0]["source"]["type"] == "base64"


@pytest.mark.parametrize("value", [[CITED], CITED, {"citations": [CITED]}])
def test_citations_are_read_from_the_forms_of_dspy(value: Any) -> None:
    citations = dspy.Citations.model_validate(value)
    assert (len(citations), citations[0].cited_text, [item.document_index for item in citations]) == (1, "Tea", [0])
    assert isinstance(citations[0], dspy.Citations.Citation)
    assert citations.format() == [{"type": "char_location", **CITED}]
    with pytest.raises(ValueError):
        dspy.Citations.model_validate("Tea")


def test_documents_and_citations_are_fields_of_a_signature() -> None:
    class Answer(dspy.Signature):
        documents: list[dspy.Document] = dspy.InputField()
        answer: str = dspy.OutputField()
        citations: dspy.Citations = dspy.OutputField()

    lm = dspy.DummyLM([{"answer": "Tea.", "citations": [CITED]}])
    predict = dspy.Predict(Answer, lm=lm)
    result = predict(documents=[dspy.Document("Tea is a drink.", title="Drinks")])
    assert result.citations[0].cited_text == "Tea"
    assert "Tea is a drink." in str(lm.history[-1]["messages"][-1]["content"])


def test_a_type_of_a_user_has_its_text_and_its_description() -> None:
    class Event(dspy.Type):
        """A day in town."""

        name: str

    assert (Event(name="fair").format(), Event.description()) == ({"name": "fair"}, "A day in town.")
    assert dspy.Type.description() == ""


def test_file_takes_its_arguments_without_names() -> None:
    file = dspy.File(b"%PDF", None, "a.pdf")
    assert file == dspy.File(file_data=b"%PDF", filename="a.pdf")
    assert (isinstance(file, sigwire.File), file.filename) == (True, "a.pdf")
    assert isinstance(dspy.File.from_url("https://x.example/a.pdf"), dspy.File)


@pytest.mark.parametrize(
    ("filename", "sent"),
    [("a.pdf", "application/pdf"), ("a", "application/octet-stream"), (None, "application/octet-stream")],
)
def test_file_of_bytes_has_no_type_and_is_sent_with_that_of_its_name(filename: str | None, sent: str) -> None:
    for file in (dspy.File(b"%PDF", filename=filename), dspy.File.from_bytes(b"%PDF", filename)):
        assert file.file_data == "data:application/octet-stream;base64,JVBERg=="
        assert file.part().media_type == sent
    assert dspy.File.from_bytes(b"a", "a.pdf", "text/plain").part().media_type == "text/plain"


@pytest.mark.parametrize(
    ("name", "core"),
    [
        ("DSPyError", "SigwireError"),
        ("LMAuthError", "LMAuthenticationError"),
        ("LMConfigurationError", "ConfigurationError"),
        ("LMNotConfiguredError", "LMNotConfigured"),
        ("LMProviderError", "LMError"),
        ("LMUnsupportedFeatureError", "UnsupportedFeature"),
    ],
)
def test_error_names_of_dspy_are_the_classes_of_the_core(name: str, core: str) -> None:
    assert getattr(dspy, name) is getattr(dspy.utils.exceptions, name) is getattr(sigwire, core)


class Listener(dspy.BaseCallback):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_module_start(self, call_id: str, instance: Any, inputs: Any) -> None:
        self.calls.append((ACTIVE_CALL_ID.get(), dict(inputs)))

    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.calls.append(exception or outputs)


class Shop(dspy.Module):
    @dspy.with_callbacks
    def find(self, name: str, most: int = 3) -> str:
        if not name:
            raise ValueError("no name")
        return name * most

    @dspy.with_callbacks
    async def afind(self, name: str) -> str:
        return name


async def test_with_callbacks_shows_calls_of_a_method_to_all_listeners() -> None:
    common, own = Listener(), Listener()
    with dspy.context(callbacks=[common]):
        assert Shop(callbacks=[own]).find("a", most=2) == "aa"
        assert await Shop().afind("b") == "b"
        with pytest.raises(ValueError, match="no name"):
            Shop().find(name="")
    assert common.calls[:4] == [(None, {"name": "a", "most": 2}), "aa", (None, {"name": "b"}), "b"]
    assert own.calls == common.calls[:2]
    assert str(common.calls[-1]) == "no name"
    assert Shop().find("a") == "aaa"


@pytest.mark.parametrize(
    ("owner", "method", "kind"),
    [
        (dspy.ChatAdapter, "format", "adapter_format"),
        (dspy.ChatAdapter, "parse", "adapter_parse"),
        (dspy.Tool, "run", "tool"),
        (BaseLM, "ask", "lm"),
        (dspy.Evaluate, "score", "evaluate"),
        (dspy.Teleprompter, "tune", "compile"),
    ],
)
def test_with_callbacks_finds_the_kind_of_an_object(owner: Any, method: str, kind: str) -> None:
    from sigwire.dspy.utils import callback

    assert vars(callback)["_kind_of"](object.__new__(owner), method) == kind


def test_experimental_puts_a_notice_before_the_docstring() -> None:
    @experimental
    def search() -> None:
        """Find."""

    assert str(search.__doc__).splitlines() == ["Experimental: this may change in any release.", "", "Find."]


# --- models


class Scripted(dspy.LM):
    def __init__(self, **options: Any) -> None:
        super().__init__("dummy", **options)

    def __call__(self, prompt: Any = None, messages: Any = None, **options: Any) -> Any:
        return ["[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]"]


def test_a_subclass_that_answers_itself_may_have_any_model_name() -> None:
    lm = Scripted(temperature=0.5, something="mine")
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        assert dspy.Predict("question -> answer")(question="?").answer == "yes"
    assert (lm.copy(temperature=0.25).kwargs["temperature"], copy.deepcopy(lm).model) == (0.25, "dummy")
    assert lm.dump_state()["model"] == "dummy"
    assert pickle.loads(pickle.dumps(lm)).model == "dummy"
    lm.capabilities = sigwire.Capabilities(native_tools=True)
    assert lm.capabilities.native_tools
    with pytest.raises(sigwire.ConfigurationError, match="dummy"):
        lm.forward("Hello")


def test_a_model_without_answers_of_its_own_needs_a_known_name() -> None:
    with pytest.raises(sigwire.ConfigurationError, match="dummy"):
        dspy.LM("dummy")


# --- agents


def double(n: int) -> int:
    return 2 * n


def test_a_script_of_dspy_runs_the_tools_and_finishes() -> None:
    lm = dspy.DummyLM(
        [
            {"next_thought": "Double it.", "next_tool_name": "double", "next_tool_args": {"n": 21}},
            {"next_thought": "Done.", "next_tool_name": "finish", "next_tool_args": {}},
            {"reasoning": "It is doubled.", "answer": "42"},
        ]
    )
    with dspy.context(lm=lm):
        result = dspy.ReAct("question -> answer", tools=[double])(question="What is 21 doubled?")
    assert result.answer == "42"
    assert result.trajectory == {
        "thought_0": "Double it.", "tool_name_0": "double", "tool_args_0": {"n": 21}, "observation_0": 42,
        "thought_1": "Done.", "tool_name_1": "finish", "tool_args_1": {}, "observation_1": "Completed.",
    }  # fmt: skip


def test_a_signature_with_the_fields_of_a_script_is_answered_with_fields() -> None:
    lm = dspy.DummyLM([{"next_thought": "Look.", "next_tool_name": "find"}])
    step = dspy.Predict("question -> next_thought, next_tool_name", lm=lm)(question="?")
    assert (step.next_thought, step.next_tool_name) == ("Look.", "find")


def test_react_v2_submits_or_is_made_to() -> None:
    agent = dspy.ReActV2("question -> answer", tools=[double], max_iters=1)
    agent.set_lm(sigwire.FakeLM([dspy.ToolCalls.ToolCall("submit", {"answer": "yes"})]))
    assert agent(question="?").termination_reason == "submit"
    call = dspy.ToolCalls.ToolCall("double", {"n": 1})
    agent.set_lm(sigwire.FakeLM([call, {"reasoning": "Enough.", "answer": "no"}]))
    forced = agent(question="?")
    assert (forced.answer, forced.termination_reason, len(forced.steps)) == ("no", "forced_submit", 1)


@pytest.mark.parametrize(
    ("signature", "tools"),
    [
        ("question -> history", []),
        ("question -> termination_reason", []),
        ("question, tools -> answer", []),
        ("question -> answer", [dspy.Tool(double, name="submit")]),
    ],
)
def test_react_v2_refuses_names_that_it_uses(signature: str, tools: list[Any]) -> None:
    with pytest.raises(sigwire.ConfigurationError, match="is reserved by ReActV2"):
        dspy.ReActV2(signature, tools=tools)


IMAGE = "https://example.com/cat.png"


def test_media_in_a_text_become_parts_of_the_message() -> None:
    text = f"Compare {dspy.Image(IMAGE)} and {dspy.File.from_file_id('f', 'a.pdf')}"
    (message, *others) = split_message_content_for_custom_types(
        [{"role": "user", "content": text}, {"role": "assistant", "content": text}]
    )
    assert [part["type"] for part in message["content"]] == ["text", "image_url", "text", "file"]
    assert message["content"][1] == dspy.Image(IMAGE).format()[0]
    assert others == [{"role": "assistant", "content": text}]


def test_marked_value_inside_json_becomes_a_part() -> None:
    text = json.dumps([str(dspy.Image(IMAGE))])
    (message,) = split_message_content_for_custom_types([{"role": "user", "content": text}])
    assert message["content"][1] == dspy.Image(IMAGE).format()[0]


def test_adapter_that_writes_an_image_into_a_text_sends_the_image() -> None:
    class Brief(dspy.ChatAdapter):
        def format_user_message_content(self, signature, inputs, *args, **kwargs):  # type: ignore[no-untyped-def]
            return f"Look: {inputs['image']}"

    lm = dspy.DummyLM([{"answer": "a cat"}])
    with dspy.context(lm=lm, adapter=Brief()):
        assert dspy.Predict("image: dspy.Image -> answer")(image=dspy.Image(IMAGE)).answer == "a cat"
    assert [part["type"] for part in lm.history[-1]["messages"][-1]["content"]] == ["text", "image_url"]


def test_media_are_read_from_paths_and_from_the_forms_of_dspy(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"tea")
    assert dspy.File.from_path(path).filename == "a.txt"
    made = dspy.File.from_path(path, filename="b.txt", mime_type="text/custom")
    assert (made.file_data, made.filename) == ("data:text/custom;base64,dGVh", "b.txt")
    assert repr(made) == "File(file_data=<DATA_URI(text/custom, 4 chars)>, filename='b.txt')"
    assert dspy.File.from_bytes(b"tea", mime_type="audio/mp3") == dspy.File(b"tea", media_type="audio/mp3")
    for kind in (dspy.Image, dspy.Audio, dspy.File):
        with pytest.raises(ValueError, match="File not found"), pytest.warns(DeprecationWarning, match="use from_path"):
            kind.from_file(tmp_path / "none.png")
    assert dspy.Image({"url": IMAGE}) == dspy.Image.model_validate(IMAGE) == dspy.Image(url=IMAGE)
    with pytest.warns(UserWarning, match="download"):
        assert dspy.Image(IMAGE, download=True).url == IMAGE


def test_helpers_encode_media() -> None:
    assert encode_image(dspy.Image(IMAGE)) == encode_image(IMAGE) == IMAGE
    assert encode_audio("data:audio/x-wav;base64,dGVh") == {"data": "dGVh", "audio_format": "wav"}
    assert encode_audio(b"tea", format="mp3") == {"data": "dGVh", "audio_format": "mp3"}
    assert encode_file_to_dict(dspy.File.from_file_id("f", "a.pdf")) == {"file_id": "f", "filename": "a.pdf"}
    with pytest.raises(ValueError, match="from_path"):
        encode_file_to_dict("a.pdf")


def test_reasoning_and_code_have_the_methods_of_dspy() -> None:
    both = dspy.Reasoning(content="a") + dspy.Reasoning(content="b")
    assert isinstance(both, dspy.Reasoning)
    assert both.content == "ab"
    assert type(dspy.Reasoning("a") + "b") is str
    assert dspy.Reasoning.parse_lm_response({"reasoning_content": "x"}) == "x"
    assert dspy.Reasoning.parse_lm_response("x") is None
    assert dspy.Code("Here:\n```python\nprint(1)```").code == "print(1)"
    assert dspy.Code("```python\n'''\n```x```\n'''\n```").code == "'''\n```x```\n'''"
    java = dspy.Code["java"].model_validate("```\nint a;\n```")
    assert (java.code, java.language, pickle.loads(pickle.dumps(java))) == ("int a;", "java", java)
    assert java != dspy.Code("int a;")


def test_history_is_lengthened_in_place() -> None:
    history = dspy.History(messages=[{"question": "1", "answer": "a"}])
    history.messages.append({"question": "2", "answer": "b"})
    history.messages.extend([{"question": "3", "answer": "c"}])
    lm = dspy.DummyLM([{"answer": "d"}])
    predict = dspy.Predict("question, history: dspy.History -> answer", lm=lm)
    assert predict(question="4", history=history).answer == "d"
    assert [message["role"] for message in lm.history[-1]["messages"]] == ["system", *("user", "assistant") * 3, "user"]
    assert history.messages[1] == {"question": "2", "answer": "b"}
    for again in (dspy.History.model_validate(history.model_dump()), pickle.loads(pickle.dumps(history))):
        assert again == history
    assert sigwire.History(history.messages) == history != dspy.History()


def test_types_are_found_in_an_annotation() -> None:
    class Event(dspy.Type):
        name: str

    find = dspy.Type.extract_custom_type_from_annotation
    assert find(list[dict[str, Event]]) == Event.extract_custom_type_from_annotation(Event) == [Event]
    assert (find(int), find(dspy.Image | None)) == ([], [dspy.Image])


class Event(dspy.Type):
    """A day in town."""

    name: str
    image: str = ""

    def format(self) -> Any:
        return dspy.Image(self.image).format() if self.image else f"<event {self.name}>"

    @classmethod
    def description(cls) -> str:
        return "Events have a name."


EVENTS = dspy.make_signature("event: Event, all: list[Event] -> code: dspy.Code", custom_types={"Event": Event})


@pytest.mark.parametrize("name", ["ChatAdapter", "JSONAdapter", "XMLAdapter"])
def test_prompt_has_the_format_and_the_description_of_a_type(name: str) -> None:
    adapter = getattr(dspy, name)()
    inputs = {"event": Event(name="fair"), "all": [Event(name="a"), Event(name="b", image=IMAGE)]}
    system, *_, asked = adapter.format(EVENTS, [{**inputs, "code": "x"}], inputs)
    assert "Events have a name." in system["content"]
    assert dspy.Code.description() in system["content"]
    assert "A day in town." not in system["content"]
    before, image, after = asked["content"]
    assert image == dspy.Image(IMAGE).format()[0]
    assert "<event fair>" in before["text"]
    assert '["<event a>","' in before["text"]
    assert after["text"].startswith('"]')


def test_saved_demo_is_written_by_the_format_of_its_type() -> None:
    demo = {"event": {"name": "fair"}, "all": [], "code": "x"}
    messages = dspy.ChatAdapter().format(EVENTS, [demo], {"event": Event(name="now"), "all": []})
    assert "<event fair>" in messages[1]["content"]


def test_document_stays_data_in_the_prompt() -> None:
    signature = dspy.make_signature("page: Document -> answer", custom_types={"Document": dspy.Document})
    asked = dspy.ChatAdapter().format(signature, [], {"page": dspy.Document("Tea.", title="Drinks")})[-1]
    assert '"data":"Tea."' in asked["content"]
    assert '"citations"' not in asked["content"]


def test_citations_are_left_to_a_model_that_cites() -> None:
    signature = dspy.make_signature("q -> a, c: Citations", custom_types={"Citations": dspy.Citations})
    for model, kept in (("anthropic/claude-haiku-4-5", ["a"]), ("openai/gpt-5-mini", ["a", "c"])):
        adapted = dspy.Citations.adapt_to_native_lm_feature(signature, "c", dspy.LM(model), {})
        assert list(adapted.output_fields) == kept
    found = dspy.Citations.parse_lm_response({"text": "", "citations": [CITED]})
    assert found is not None
    assert found[0].cited_text == "Tea"
    assert (dspy.Citations.parse_lm_response("Tea"), dspy.Citations.is_streamable(), dspy.Type.is_streamable()) == (
        None,
        True,
        False,
    )


def test_text_of_a_signature_means_the_types_of_the_door() -> None:
    signature = dspy.Signature("image: dspy.Image, tools: list[dspy.Tool] -> code: dspy.Code, calls: dspy.ToolCalls")
    kinds = [field.annotation for field in signature.fields.values()]
    assert kinds == [dspy.Image, list[dspy.Tool], dspy.Code, dspy.ToolCalls]
    assert (
        dspy.Signature("image: Image -> text", custom_types={"dspy": sigwire}).fields["image"].annotation
        is sigwire.Image
    )


def test_history_in_json_keeps_the_kind_of_media() -> None:
    history = dspy.History([{"image": dspy.Image(IMAGE), "code": dspy.Code["java"]("int a;"), "question": "?"}])
    turn = dspy.History.from_json(history.to_json()).messages[0]
    assert (turn["image"], turn["code"]) == (sigwire.Image(IMAGE), sigwire.Code["java"]("int a;"))
